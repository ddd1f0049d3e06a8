// What differs between the versions of the API. Compiled for several of them.

#include "check.h"

static int64_t version_of(FDBFuture *f) {
    int64_t version = 0;
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_int64(f, &version), 0);
    fdb_future_destroy(f);
    return version;
}

static double seconds(FDBFuture *f) {
    double seconds = -1;
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_double(f, &seconds), 0);
    fdb_future_destroy(f);
    return seconds;
}

int main(void) {
    FDBDatabase *db = start(NULL);
    FDBTransaction *tr = begin(db), *other = begin(db);
    SAME(fdb_select_api_version(FDB_API_VERSION), 2201);

    // The read version after a commit.
    int64_t committed, before = version_of(fdb_transaction_get_read_version(tr));
    fdb_transaction_set(tr, KEY("a"), KEY("b"));
    SAME(finish(fdb_transaction_commit(tr)), 0);
    SAME(fdb_transaction_get_committed_version(tr, &committed), 0);
    int64_t after = version_of(fdb_transaction_get_read_version(tr));
    if (FDB_API_VERSION < 700) CHECK(after >= committed);
    else SAME(after, before);
    SAME(version_of(fdb_transaction_get_read_version(tr)), after);
    CHECK((version_of(fdb_transaction_get_total_cost(tr)) == 0) == (FDB_API_VERSION < 700));
    CHECK(seconds(fdb_transaction_get_tag_throttled_duration(tr)) == 0);
    // It must be reset all the same.
    SAME(finish(fdb_transaction_get(tr, KEY("a"), 0)), 2017);
    SAME(finish(fdb_transaction_get_read_version(tr)), 2017);
    fdb_transaction_reset(tr);
    CHECK(has(tr, "a", "b"));

    // And after a commit that fails.
    before = version_of(fdb_transaction_get_read_version(tr));
    fdb_transaction_set(other, KEY("a"), KEY("c"));
    SAME(finish(fdb_transaction_commit(other)), 0);
    fdb_transaction_set(tr, KEY("a"), KEY("d"));
    SAME(finish(fdb_transaction_commit(tr)), 1020);
    after = version_of(fdb_transaction_get_read_version(tr));
    CHECK((after > before) == (FDB_API_VERSION < 700));
    SAME(finish(fdb_transaction_on_error(tr, 1020)), 0);
    CHECK(has(tr, "a", "c"));

    // Special keys.
    fdb_error_t refused = FDB_API_VERSION < 700 ? 2004 : 2114;
    fdb_transaction_reset(tr);
    fdb_transaction_set(tr, KEY("\xff\xff/management/options/x"), KEY(""));
    SAME(finish(fdb_transaction_commit(tr)), refused);
    fdb_transaction_reset(tr);
    fdb_transaction_clear(tr, KEY("\xff\xff/management/options/x"));
    SAME(finish(fdb_transaction_commit(tr)), refused);
    fdb_transaction_reset(tr);
    fdb_transaction_clear_range(tr, KEY("\xff\xff/a"), KEY("\xff\xff/b"));
    SAME(finish(fdb_transaction_commit(tr)), refused);
    fdb_transaction_reset(tr);

    // The cache of read versions.
    SAME(fdb_transaction_set_option(tr, FDB_TR_OPTION_USE_GRV_CACHE, NULL, 0), 0);
    SAME(finish(fdb_transaction_get_read_version(tr)), FDB_API_VERSION < 720 ? 0 : 2007);
    fdb_transaction_reset(tr);

    // What is new in 8.0, and what it has removed.
    const int is_eight = FDB_API_VERSION >= 800;
    const int64_t delay = 10, below = -1;
    const uint64_t protocol = is_eight ? 0x0FDB00B080000000 : 0x0FDB00B074000000;
    const char *client = is_eight ? "8.0.0,shaketable,fdb00b080000000" : "7.4.0,shaketable,fdb00b074000000";
    CHECK(!strcmp(fdb_get_client_version(), client));
    FDBFuture *f = fdb_database_get_server_protocol(db, 0);
    uint64_t found;
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_uint64(f, &found), 0);
    CHECK(found == protocol);
    fdb_future_destroy(f);
    CHECK(!strcmp(fdb_get_error(1251), is_eight ? "transaction_grv_queue_rejected" : "UNKNOWN_ERROR"));
    CHECK(!strcmp(fdb_get_error(1223), is_eight ? "UNKNOWN_ERROR" : "proxy_tag_throttled"));
    // Its codes are not in older headers.
    SAME(fdb_network_set_option((FDBNetworkOption)84, KEY("127.0.0.1")), is_eight ? 0 : 2007);
    SAME(fdb_network_set_option((FDBNetworkOption)84, KEY("::1")), is_eight ? 0 : 2007);
    SAME(fdb_network_set_option((FDBNetworkOption)84, KEY("nowhere")), is_eight ? 2006 : 2007);
    SAME(fdb_network_set_option((FDBNetworkOption)84, NULL, 0), is_eight ? 2006 : 2007);
    FDBDatabase *configuration = NULL;
    SAME(fdb_create_database(NULL, &configuration), 0);
    SAME(fdb_database_set_option(configuration, (FDBDatabaseOption)800, NULL, 0), is_eight ? 2007 : 0);
    fdb_database_destroy(configuration);
    const FDBTransactionOption queue = (FDBTransactionOption)1103;
    SAME(fdb_transaction_set_option(tr, queue, (const uint8_t *)&delay, 8), is_eight ? 0 : 2007);
    SAME(finish(fdb_transaction_get_read_version(tr)), 0);
    fdb_transaction_reset(tr);
    SAME(fdb_transaction_set_option(tr, queue, (const uint8_t *)&below, 8), is_eight ? 0 : 2007);
    SAME(finish(fdb_transaction_get_read_version(tr)), is_eight ? 2006 : 0);
    fdb_transaction_reset(tr);

    // Errors that 8.0 does not retry.
    for (int i = 0; i < 2; i++) {
        const fdb_error_t error = i ? 1079 : 1223;
        SAME(fdb_error_predicate(FDB_ERROR_PREDICATE_RETRYABLE, error), !is_eight && error == 1223);
        SAME(fdb_error_predicate(FDB_ERROR_PREDICATE_RETRYABLE_NOT_COMMITTED, error), !is_eight && error == 1223);
        SAME(finish(fdb_transaction_on_error(tr, error)), is_eight ? error : 0);
        fdb_transaction_reset(tr);
    }
    SAME(finish(fdb_transaction_on_error(tr, 4000)), 4000);
    fdb_transaction_reset(tr);

    // The longest key with raw access, and where longer ones end.
    static uint8_t bytes[10100];
    const FDBKeyValue *rows;
    int count;
    fdb_bool_t more;
    memset(bytes, 'k', sizeof bytes);
    for (int length = 10000; length <= 10009; length++) {
        const int is_too_long = length > (is_eight ? 10000 : 10008);
        SAME(fdb_transaction_set_option(tr, FDB_TR_OPTION_RAW_ACCESS, NULL, 0), 0);
        fdb_transaction_set(tr, bytes, length, KEY("x"));
        SAME(finish(fdb_transaction_commit(tr)), is_too_long ? 2102 : 0);
        fdb_transaction_reset(tr);
        SAME(fdb_transaction_set_option(tr, FDB_TR_OPTION_RAW_ACCESS, NULL, 0), 0);
        fdb_transaction_atomic_op(tr, bytes, length, KEY("x"), FDB_MUTATION_TYPE_ADD);
        SAME(finish(fdb_transaction_commit(tr)), is_too_long ? 2102 : 0);
        fdb_transaction_reset(tr);
        SAME(fdb_transaction_set_option(tr, FDB_TR_OPTION_RAW_ACCESS, NULL, 0), 0);
        f = fdb_transaction_watch(tr, bytes, length);
        for (int n = 0; n < 100 * is_too_long && !fdb_future_is_ready(f); n++) usleep(1000);
        SAME(fdb_future_get_error(f), is_too_long ? 2102 : 2015);
        fdb_future_destroy(f);
        fdb_transaction_reset(tr);
        // A read of such a key is none, and in no conflict.
        SAME(finish(fdb_transaction_get(tr, bytes, length, 0)), 0);
        const uint8_t begin[] = "\xff\xff/transaction/read_conflict_range/";
        const uint8_t end[] = "\xff\xff/transaction/read_conflict_range0";
        f = fdb_transaction_get_range(tr, FDB_KEYSEL_FIRST_GREATER_OR_EQUAL(begin, (int)sizeof begin - 1),
                                      FDB_KEYSEL_FIRST_GREATER_OR_EQUAL(end, (int)sizeof end - 1), 0, 0,
                                      FDB_STREAMING_MODE_WANT_ALL, 1, 0, 0);
        SAME(wait_for(f), 0);
        SAME(fdb_future_get_keyvalue_array(f, &rows, &count, &more), 0);
        SAME(count == 0, is_too_long);
        fdb_future_destroy(f);
        fdb_transaction_reset(tr);
        // So is a clear.
        fdb_transaction_clear(tr, bytes, length);
        CHECK((version_of(fdb_transaction_get_approximate_size(tr)) == 0) == is_too_long);
        fdb_transaction_reset(tr);
    }
    int64_t sizes[2];
    for (int i = 0; i < 2; i++) {
        const int length = !i ? 10050 : is_eight ? 10001 : 10009;
        SAME(fdb_transaction_add_conflict_range(tr, bytes, length, KEY("l"), FDB_CONFLICT_RANGE_TYPE_WRITE), 0);
        sizes[i] = version_of(fdb_transaction_get_approximate_size(tr));
        fdb_transaction_reset(tr);
    }
    SAME(sizes[0], sizes[1]);

    // The bytes of a batch of what the transaction has written itself, so that it asks no server.
    fdb_transaction_clear_range(tr, KEY("row"), KEY("rox"));
    for (int i = 100; i < 300; i++) {
        char key[8];
        snprintf(key, sizeof key, "row%d", i);
        fdb_transaction_set(tr, KEY(key), bytes, 1000);
    }
    const FDBStreamingMode modes[] = {FDB_STREAMING_MODE_SERIAL, FDB_STREAMING_MODE_WANT_ALL};
    for (int i = 0; i < 2; i++) {
        f = fdb_transaction_get_range(tr, FDB_KEYSEL_FIRST_GREATER_OR_EQUAL((const uint8_t *)"row", 3),
                                      FDB_KEYSEL_FIRST_GREATER_OR_EQUAL((const uint8_t *)"rox", 3), 0, 0,
                                      modes[i], 1, 0, 0);
        SAME(wait_for(f), 0);
        SAME(fdb_future_get_keyvalue_array(f, &rows, &count, &more), 0);
        SAME(count, is_eight ? 119 : 79);
        CHECK(more);
        fdb_future_destroy(f);
    }
    fdb_transaction_destroy(tr);
    fdb_transaction_destroy(other);
    stop(db);
    puts("passed");
    return 0;
}
