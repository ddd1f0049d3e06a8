// Transactions, futures, options and errors, as a program in C uses them.

#include "check.h"

#include <limits.h>

static void before_the_network(void) {
    SAME(fdb_select_api_version_impl(740, 730), 2202);
    SAME(fdb_select_api_version_impl(801, 801), 2203);
    SAME(fdb_select_api_version_impl(199, 740), 2203);
    SAME(fdb_get_max_api_version(), 800);
}

static void network_options(void) {
    int64_t ten = 10;
    CHECK(strstr(fdb_get_client_version(), "7.4"));
    SAME(fdb_network_set_option(FDB_NET_OPTION_TRACE_ENABLE, NULL, 0), 0);
    SAME(fdb_network_set_option(FDB_NET_OPTION_TRACE_ROLL_SIZE, (const uint8_t *)&ten, 8), 0);
    SAME(fdb_network_set_option(FDB_NET_OPTION_TRACE_ROLL_SIZE, (const uint8_t *)&ten, 4), 2006);
    SAME(fdb_network_set_option(9999, NULL, 0), 2007);
}

static void errors(void) {
    CHECK(!strcmp(fdb_get_error(1020), "not_committed"));
    CHECK(fdb_get_error(123456));
    SAME(fdb_error_predicate(FDB_ERROR_PREDICATE_RETRYABLE, 1020), 1);
    SAME(fdb_error_predicate(FDB_ERROR_PREDICATE_RETRYABLE, 1021), 1);
    SAME(fdb_error_predicate(FDB_ERROR_PREDICATE_MAYBE_COMMITTED, 1021), 1);
    SAME(fdb_error_predicate(FDB_ERROR_PREDICATE_MAYBE_COMMITTED, 1020), 0);
    SAME(fdb_error_predicate(FDB_ERROR_PREDICATE_RETRYABLE_NOT_COMMITTED, 1020), 1);
    SAME(fdb_error_predicate(FDB_ERROR_PREDICATE_RETRYABLE, 2101), 0);
}

static void reads_and_writes(FDBDatabase *db) {
    char key[] = "copied";
    int64_t version, size;
    FDBTransaction *tr = begin(db);
    fdb_transaction_set(tr, KEY(key), KEY("value"));
    key[0] = 'X'; // It was copied.
    fdb_transaction_set(tr, KEY("other"), KEY("more"));
    CHECK(has(tr, "copied", "value"));
    CHECK(has(tr, "absent", NULL));
    FDBFuture *f = fdb_transaction_get_approximate_size(tr);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_int64(f, &size), 0);
    CHECK(size > 20);
    fdb_future_destroy(f);
    SAME(fdb_transaction_get_committed_version(tr, &version), 0);
    SAME(version, -1);
    SAME(finish(fdb_transaction_commit(tr)), 0);
    SAME(fdb_transaction_get_committed_version(tr, &version), 0);
    CHECK(version > 0);
    fdb_transaction_reset(tr);
    CHECK(has(tr, "copied", "value"));
    fdb_transaction_clear(tr, KEY("copied"));
    fdb_transaction_clear_range(tr, KEY("o"), KEY("p"));
    CHECK(has(tr, "copied", NULL));
    CHECK(has(tr, "other", NULL));
    SAME(finish(fdb_transaction_commit(tr)), 0);
    fdb_transaction_destroy(tr);
}

static FDBFuture *range(FDBTransaction *tr, int limit, FDBStreamingMode mode, int iteration, int reverse) {
    return fdb_transaction_get_range(tr, FDB_KEYSEL_FIRST_GREATER_OR_EQUAL((const uint8_t *)"r", 1),
                                     FDB_KEYSEL_FIRST_GREATER_OR_EQUAL((const uint8_t *)"s", 1), limit, 0, mode,
                                     iteration, 0, reverse);
}

static void ranges(FDBDatabase *db) {
    FDBTransaction *tr = begin(db);
    const FDBKeyValue *rows;
    int count;
    fdb_bool_t more;
    fdb_transaction_set(tr, KEY("r1"), KEY("one"));
    fdb_transaction_set(tr, KEY("r2"), KEY("two"));
    fdb_transaction_set(tr, KEY("r3"), KEY("three"));
    SAME(finish(fdb_transaction_commit(tr)), 0);
    fdb_transaction_reset(tr);
    FDBFuture *f = range(tr, 0, FDB_STREAMING_MODE_WANT_ALL, 0, 0);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_keyvalue_array(f, &rows, &count, &more), 0);
    SAME(count, 3);
    SAME(more, 0);
    CHECK(rows[2].key_length == 2 && !memcmp(rows[2].key, "r3", 2));
    CHECK(rows[2].value_length == 5 && !memcmp(rows[2].value, "three", 5));
    SAME(fdb_future_get_int64(f, &(int64_t){0}), 2000);
    // As many releases as reads free it; one that failed is none.
    SAME(fdb_future_get_keyvalue_array(f, &rows, &count, &more), 0);
    fdb_future_release_memory(f);
    SAME(fdb_future_get_error(f), 0);
    CHECK(!memcmp(rows[2].key, "r3", 2));
    fdb_future_release_memory(f);
    SAME(fdb_future_get_keyvalue_array(f, &rows, &count, &more), 1102);
    SAME(fdb_future_get_error(f), 1102);
    fdb_future_destroy(f);
    // A release before the first read cancels that read out.
    f = range(tr, 0, FDB_STREAMING_MODE_WANT_ALL, 0, 0);
    SAME(wait_for(f), 0);
    fdb_future_release_memory(f);
    SAME(fdb_future_get_keyvalue_array(f, &rows, &count, &more), 0);
    SAME(fdb_future_get_keyvalue_array(f, &rows, &count, &more), 0);
    fdb_future_release_memory(f);
    SAME(fdb_future_get_keyvalue_array(f, &rows, &count, &more), 1102);
    fdb_future_destroy(f);
    f = range(tr, 2, FDB_STREAMING_MODE_EXACT, 0, 1);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_keyvalue_array(f, &rows, &count, &more), 0);
    SAME(count, 2);
    SAME(more, 1);
    CHECK(!memcmp(rows[0].key, "r3", 2));
    fdb_future_destroy(f);
    SAME(finish(range(tr, 0, FDB_STREAMING_MODE_EXACT, 0, 0)), 2210);
    SAME(finish(range(tr, 0, FDB_STREAMING_MODE_ITERATOR, 0, 0)), 2000);
    SAME(finish(range(tr, -1, FDB_STREAMING_MODE_EXACT, 0, 0)), 2210);
    SAME(finish(range(tr, -1, FDB_STREAMING_MODE_WANT_ALL, 0, 0)), 0);
    SAME(finish(range(tr, -2, FDB_STREAMING_MODE_WANT_ALL, 0, 0)), 2012);
    const uint8_t *key;
    f = fdb_transaction_get_key(tr, FDB_KEYSEL_LAST_LESS_THAN((const uint8_t *)"r3", 2), 0);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_key(f, &key, &count), 0);
    CHECK(count == 2 && !memcmp(key, "r2", 2));
    fdb_future_destroy(f);
    // Offsets far beyond all keys.
    const int offsets[] = {INT_MIN, INT_MAX};
    for (int i = 0; i < 4; i++) {
        SAME(finish(fdb_transaction_get_key(tr, KEY("r3"), i % 2, offsets[i / 2], 0)), 0);
        SAME(finish(fdb_transaction_get_range(tr, KEY("r1"), 0, offsets[i / 2], KEY("r3"), 0, offsets[i % 2], 0, 0,
                                              FDB_STREAMING_MODE_WANT_ALL, 0, 0, i % 2)),
             0);
    }
    const FDBKey *keys;
    f = fdb_transaction_get_range_split_points(tr, KEY("r"), KEY("s"), 1000000);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_key_array(f, &keys, &count), 0);
    CHECK(count >= 2 && !memcmp(keys[0].key, "r", 1));
    fdb_future_destroy(f);
    SAME(finish(fdb_transaction_get_range_split_points(tr, KEY("s"), KEY("r"), 1000)), 2005);
    // There are special keys behind the last shard.
    SAME(finish(fdb_transaction_get_estimated_range_size_bytes(tr, KEY("r"), KEY("\xff\xff/status"))), 0);
    const char **texts;
    f = fdb_transaction_get_addresses_for_key(tr, KEY("r"));
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_string_array(f, &texts, &count), 0);
    CHECK(count > 0 && strchr(texts[0], ':'));
    fdb_future_destroy(f);
    fdb_transaction_destroy(tr);
}

static void conflicts(FDBDatabase *db) {
    FDBTransaction *first = begin(db), *second = begin(db);
    CHECK(has(first, "counter", NULL));
    CHECK(has(second, "counter", NULL));
    fdb_transaction_set(first, KEY("counter"), KEY("1"));
    fdb_transaction_set(second, KEY("counter"), KEY("1"));
    SAME(finish(fdb_transaction_commit(first)), 0);
    fdb_error_t error = finish(fdb_transaction_commit(second));
    SAME(error, 1020);
    SAME(finish(fdb_transaction_on_error(second, error)), 0);
    CHECK(has(second, "counter", "1"));
    SAME(finish(fdb_transaction_on_error(second, 2101)), 2101);
    fdb_transaction_reset(second);
    SAME(finish(fdb_transaction_on_error(second, -1)), 4000);
    fdb_transaction_reset(second);
    SAME(fdb_transaction_add_conflict_range(second, KEY("b"), KEY("a"), FDB_CONFLICT_RANGE_TYPE_READ), 2005);
    SAME(fdb_transaction_add_conflict_range(second, KEY("a"), KEY("b"), 7), 2000);
    SAME(fdb_transaction_add_conflict_range(second, KEY("a"), KEY("b"), FDB_CONFLICT_RANGE_TYPE_WRITE), 0);
    SAME(finish(fdb_transaction_commit(second)), 0);
    fdb_transaction_destroy(first);
    fdb_transaction_destroy(second);
}

static void options(FDBDatabase *db) {
    int64_t limit = 1;
    FDBTransaction *tr = begin(db);
    SAME(fdb_transaction_set_option(tr, 99999, NULL, 0), 2007);
    SAME(fdb_transaction_set_option(tr, FDB_TR_OPTION_RETRY_LIMIT, (const uint8_t *)&limit, 8), 0);
    SAME(finish(fdb_transaction_on_error(tr, 1020)), 0);
    SAME(finish(fdb_transaction_on_error(tr, 1020)), 1020);
    fdb_transaction_reset(tr);
    // A wrong value is the error of the next call.
    SAME(fdb_transaction_set_option(tr, FDB_TR_OPTION_RETRY_LIMIT, (const uint8_t *)&limit, 3), 0);
    SAME(finish(fdb_transaction_get_read_version(tr)), 2006);
    fdb_transaction_reset(tr);
    SAME(finish(fdb_transaction_get_read_version(tr)), 0);
    SAME(fdb_database_set_option(db, 99999, NULL, 0), 2007);
    SAME(fdb_database_set_option(db, FDB_DB_OPTION_TRANSACTION_RETRY_LIMIT, (const uint8_t *)&limit, 8), 0);
    fdb_transaction_destroy(tr);
}

static void atomic_operations(FDBDatabase *db) {
    FDBTransaction *tr = begin(db);
    uint8_t one[8] = {1}, stamped[] = "stamped-0123456789\x08\0\0\0";
    const uint8_t *stamp;
    int length;
    fdb_transaction_atomic_op(tr, KEY("sum"), one, 8, FDB_MUTATION_TYPE_ADD);
    fdb_transaction_atomic_op(tr, KEY("sum"), one, 8, FDB_MUTATION_TYPE_ADD);
    fdb_transaction_atomic_op(tr, stamped, sizeof stamped - 1, KEY("x"), FDB_MUTATION_TYPE_SET_VERSIONSTAMPED_KEY);
    FDBFuture *versionstamp = fdb_transaction_get_versionstamp(tr);
    SAME(fdb_future_get_key(versionstamp, &stamp, &length), 2015);
    SAME(finish(fdb_transaction_commit(tr)), 0);
    SAME(wait_for(versionstamp), 0);
    SAME(fdb_future_get_key(versionstamp, &stamp, &length), 0);
    SAME(length, 10);
    uint8_t key[18];
    memcpy(key, "stamped-", 8);
    memcpy(key + 8, stamp, 10);
    fdb_future_destroy(versionstamp);
    fdb_transaction_reset(tr);
    FDBFuture *f = fdb_transaction_get(tr, key, sizeof key, 1);
    fdb_bool_t present;
    const uint8_t *value;
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_value(f, &present, &value, &length), 0);
    CHECK(present && length == 1 && *value == 'x');
    fdb_future_destroy(f);
    f = fdb_transaction_get(tr, KEY("sum"), 0);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_value(f, &present, &value, &length), 0);
    CHECK(present && length == 8 && *value == 2);
    fdb_future_destroy(f);
    fdb_transaction_atomic_op(tr, KEY("sum"), one, 8, 77);
    SAME(finish(fdb_transaction_commit(tr)), 2018);
    fdb_transaction_destroy(tr);
}

static void count_up(FDBFuture *f, void *counter) {
    CHECK(fdb_future_is_ready(f));
    __atomic_add_fetch((int *)counter, 1, __ATOMIC_SEQ_CST);
}

static void watches(FDBDatabase *db) {
    int fired = 0;
    FDBTransaction *tr = begin(db);
    FDBFuture *watch = fdb_transaction_watch(tr, KEY("watched"));
    SAME(fdb_future_set_callback(watch, count_up, &fired), 0);
    SAME(finish(fdb_transaction_commit(tr)), 0);
    fdb_transaction_reset(tr);
    SAME(fdb_future_is_ready(watch), 0);
    fdb_transaction_set(tr, KEY("watched"), KEY("new"));
    SAME(finish(fdb_transaction_commit(tr)), 0);
    SAME(wait_for(watch), 0);
    while (!__atomic_load_n(&fired, __ATOMIC_SEQ_CST)) usleep(100);
    fdb_future_destroy(watch);
    SAME(fired, 1);
    fdb_transaction_destroy(tr);
}

static pthread_t called_on;

static void look(FDBFuture *f, void *error) {
    called_on = pthread_self();
    SAME(fdb_future_block_until_ready(f), 0);
    *(fdb_error_t *)error = fdb_future_get_error(f);
}

static void read_in_a_callback(FDBFuture *f, void *tr) {
    (void)f;
    FDBFuture *next = fdb_transaction_get(tr, KEY("next"), 0);
    SAME(fdb_future_block_until_ready(next), 2026);
    fdb_future_destroy(next);
    called_on = pthread_self();
}

static void futures(FDBDatabase *db) {
    FDBTransaction *tr = begin(db);
    fdb_error_t error = -1;
    int fired = 0;
    // A callback of a future that is ready is called at once.
    FDBFuture *f = fdb_transaction_get(tr, KEY("a"), 0);
    SAME(wait_for(f), 0);
    SAME(fdb_future_set_callback(f, look, &error), 0);
    SAME(error, 0);
    CHECK(pthread_equal(called_on, pthread_self()));
    fdb_future_cancel(f); // Too late to have an effect.
    SAME(fdb_future_get_error(f), 0);
    fdb_future_destroy(f);
    // A callback on the network thread must not block.
    f = fdb_transaction_get(tr, KEY("b"), 0);
    SAME(fdb_future_set_callback(f, read_in_a_callback, tr), 0);
    SAME(wait_for(f), 0);
    while (!pthread_equal(called_on, network)) usleep(100);
    fdb_future_destroy(f);
    // Cancelled and destroyed futures call their callbacks, once.
    f = fdb_transaction_watch(tr, KEY("c"));
    SAME(fdb_future_get_error(f), 2015);
    SAME(fdb_future_set_callback(f, count_up, &fired), 0);
    SAME(fdb_future_set_callback(f, count_up, &fired), 0);
    fdb_future_cancel(f);
    SAME(wait_for(f), 1101);
    fdb_future_destroy(f);
    while (__atomic_load_n(&fired, __ATOMIC_SEQ_CST) < 2) usleep(100);
    f = fdb_transaction_watch(tr, KEY("d"));
    SAME(fdb_future_set_callback(f, count_up, &fired), 0);
    fdb_future_destroy(f);
    while (__atomic_load_n(&fired, __ATOMIC_SEQ_CST) < 3) usleep(100);
    // Futures outlive their transaction, and transactions their database.
    f = fdb_transaction_watch(tr, KEY("e"));
    FDBFuture *get = fdb_transaction_get(tr, KEY("f"), 0);
    FDBFuture *read = fdb_transaction_get_read_version(tr);
    fdb_transaction_destroy(tr);
    SAME(finish(f), 1025);
    SAME(finish(get), 1025);
    fdb_future_destroy(read);
    FDBDatabase *another;
    SAME(fdb_create_database(NULL, &another), 0);
    tr = begin(another);
    fdb_database_destroy(another);
    CHECK(has(tr, "absent", NULL));
    fdb_transaction_cancel(tr);
    SAME(finish(fdb_transaction_get(tr, KEY("a"), 0)), 1025);
    fdb_transaction_destroy(tr);
    SAME(fired, 3);
}

static void what_there_is_not(FDBDatabase *db) {
    FDBTenant *tenant;
    FDBTransaction *tr;
    SAME(fdb_database_open_tenant(db, KEY("t"), &tenant), 0);
    SAME(fdb_tenant_create_transaction(tenant, &tr), 0);
    fdb_transaction_set(tr, KEY("a"), KEY("b"));
    SAME(finish(fdb_transaction_get(tr, KEY("a"), 0)), 2131);
    SAME(finish(fdb_transaction_commit(tr)), 2131);
    SAME(finish(fdb_tenant_get_id(tenant)), 2131);
    fdb_transaction_destroy(tr);
    fdb_tenant_destroy(tenant);
    SAME(finish(fdb_database_force_recovery_with_data_loss(db, KEY("dc"))), 0);
    SAME(finish(fdb_database_create_snapshot(db, KEY("id"), KEY("command"))), 2509);
    SAME(finish(fdb_database_create_snapshot(db, KEY("0123456789abcdefABCDEF0123456789"), KEY("command"))), 2505);
    SAME(finish(fdb_database_blobbify_range(db, KEY("a"), KEY("b"))), 2108);
    FDBResult *result = fdb_readbg_parse_snapshot_file(KEY("file"), NULL, NULL);
    SAME(fdb_result_get_keyvalue_array(result, NULL, NULL, NULL), 2108);
    fdb_result_destroy(result);
    FDBReadBlobGranuleContext context = {0};
    tr = begin(db);
    result = fdb_transaction_read_blob_granules(tr, KEY("a"), KEY("b"), 0, 0, context);
    SAME(fdb_result_get_bg_mutations_array(result, NULL, NULL), 2108);
    fdb_result_destroy(result);
    fdb_transaction_destroy(tr);
    FDBFuture *f = fdb_database_get_server_protocol(db, 0);
    uint64_t protocol;
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_uint64(f, &protocol), 0);
    CHECK(protocol == 0x0FDB00B074000000ULL);
    fdb_future_destroy(f);
    f = fdb_database_get_server_protocol(db, protocol);
    SAME(fdb_future_is_ready(f), 0);
    fdb_future_cancel(f);
    SAME(finish(f), 1101);
    CHECK(fdb_database_get_main_thread_busyness(db) >= 0 && fdb_database_get_main_thread_busyness(db) <= 1);
}

static void mark(void *ended) { *(int *)ended = 1; }

int main(void) {
    int ended = 0;
    before_the_network();
    errors();
    FDBDatabase *db = start(NULL), *other;
    SAME(fdb_add_network_thread_completion_hook(mark, &ended), 0);
    network_options();
    SAME(fdb_create_database_from_connection_string("shaketable:x@127.0.0.1:1", &other), 2104);
    reads_and_writes(db);
    ranges(db);
    conflicts(db);
    options(db);
    atomic_operations(db);
    watches(db);
    futures(db);
    what_there_is_not(db);
    FDBTransaction *tr = begin(db);
    FDBFuture *outstanding = fdb_transaction_watch(tr, KEY("never"));
    stop(db);
    SAME(ended, 1);
    SAME(finish(outstanding), 1101);
    SAME(finish(fdb_transaction_get(tr, KEY("late"), 0)), 1101);
    fdb_transaction_destroy(tr);
    puts("passed");
    return 0;
}
