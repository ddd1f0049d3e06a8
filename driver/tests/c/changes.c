// Streams of changes and limits of split points, of version 800. With an argument: a removed function, which ends the
// program.

#define FDB_API_VERSION 800
#include "check.h"

// FoundationDB's library of 7.4 exports it, and the header of 8.0 leaves it out.
FDBFuture *fdb_database_blobbify_range(FDBDatabase *d, const uint8_t *begin, int begin_length, const uint8_t *end,
                                       int end_length);
FDBResult *fdb_readbg_parse_delta_file(const uint8_t *data, int length, const void *prefix, const void *encryption);
fdb_error_t fdb_future_get_granule_summary_array(FDBFuture *f, const void **out, int *out_count);

static void call_what_is_removed(FDBDatabase *db, const char *name) {
    FDBTenant *tenant = NULL;
    int count;
    const void *found;
    if (!strcmp(name, "fdb_database_open_tenant")) (void)!fdb_database_open_tenant(db, KEY("t"), &tenant);
    if (!strcmp(name, "fdb_tenant_get_id")) (void)!fdb_tenant_get_id(tenant);
    if (!strcmp(name, "fdb_tenant_create_transaction")) (void)!fdb_tenant_create_transaction(tenant, NULL);
    if (!strcmp(name, "fdb_tenant_destroy")) fdb_tenant_destroy(tenant);
    if (!strcmp(name, "fdb_database_blobbify_range")) fdb_database_blobbify_range(db, KEY("a"), KEY("b"));
    if (!strcmp(name, "fdb_readbg_parse_delta_file")) fdb_readbg_parse_delta_file(KEY("f"), NULL, NULL);
    if (!strcmp(name, "fdb_future_get_granule_summary_array")) {
        fdb_future_get_granule_summary_array(fdb_database_list_cdc_streams(db), &found, &count);
    }
}

static void streams(FDBDatabase *db) {
    const FDBCdcStreamInfo *info;
    const FDBCdcVersionedMutations *mutations;
    FDBCdcConsumer *consumers[2];
    int count = -1;
    uint64_t stream = 0;
    int64_t position = 0;
    SAME(finish(fdb_database_register_cdc_stream(db, KEY("s"), KEY("a"), KEY("b"))), 2000);
    SAME(finish(fdb_database_remove_cdc_stream(db, KEY("s"))), 0);
    SAME(finish(fdb_database_remove_cdc_stream(db, KEY(""))), 2000);
    FDBFuture *f = fdb_database_list_cdc_streams(db);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_cdc_stream_info_array(f, &info, &count), 0);
    SAME(count, 0);
    // It has no other result.
    SAME(fdb_future_get_cdc_consumer(f, consumers), 2000);
    SAME(fdb_future_get_cdc_versioned_mutations(f, &mutations, &count, &position), 2000);
    fdb_future_destroy(f);
    f = fdb_database_create_cdc_consumer(db, KEY("s"));
    SAME(wait_for(f), 2000);
    SAME(fdb_future_get_cdc_consumer(f, consumers), 2000);
    fdb_future_destroy(f);
    f = fdb_database_resume_cdc_consumer(db, UINT64_MAX, -7);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_cdc_stream_info_array(f, &info, &count), 2000);
    SAME(fdb_future_get_cdc_consumer(f, &consumers[0]), 0);
    SAME(fdb_future_get_cdc_consumer(f, &consumers[1]), 0);
    fdb_future_destroy(f);
    for (int i = 0; i < 2; i++) {
        f = fdb_cdc_consumer_consume(consumers[i]);
        SAME(wait_for(f), 2000);
        SAME(fdb_future_get_cdc_versioned_mutations(f, &mutations, &count, &position), 2000);
        fdb_future_destroy(f);
        SAME(finish(fdb_cdc_consumer_acknowledge(consumers[i])), 2000);
        SAME(fdb_cdc_consumer_get_position(consumers[i], &stream, &position), 0);
        CHECK(stream == UINT64_MAX && position == -7);
        fdb_cdc_consumer_destroy(consumers[i]);
    }
}

// The keys of a future, one after another.
static int keys_of(FDBFuture *f, char *keys) {
    const FDBKey *found;
    int count;
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_key_array(f, &found, &count), 0);
    *keys = 0;
    for (int i = 0; i < count; i++) {
        strncat(keys, (const char *)found[i].key, found[i].key_length);
        strcat(keys, " ");
    }
    fdb_future_destroy(f);
    return count;
}

static void split_points(FDBDatabase *db) {
    static uint8_t value[50000];
    static char all[8000], some[8000];
    FDBTransaction *tr = begin(db);
    for (int i = 100; i < 150; i++) {
        char key[8];
        snprintf(key, sizeof key, "row%d", i);
        fdb_transaction_set(tr, KEY(key), value, sizeof value);
    }
    SAME(finish(fdb_transaction_commit(tr)), 0);
    fdb_transaction_reset(tr);
    int count = keys_of(fdb_transaction_get_range_split_points(tr, KEY("row"), KEY("rox"), 200000), all);
    CHECK(count >= 5);
    for (int limit = -1; limit <= count; limit++) {
        FDBFuture *f = fdb_transaction_get_range_split_points_with_limit(tr, KEY("row"), KEY("rox"), 200000, limit);
        const int expected = limit < 0 || limit + 2 > count ? count : limit + 2;
        SAME(keys_of(f, some), expected);
        // The first ones, between the ends.
        CHECK(!strncmp(some, all, strlen(some) - 4) && !strcmp(some + strlen(some) - 4, "rox "));
    }
    SAME(finish(fdb_transaction_get_range_split_points_with_limit(tr, KEY("b"), KEY("a"), 200000, 1)), 2005);
    fdb_transaction_destroy(tr);
}

int main(int count, char **arguments) {
    FDBDatabase *db = start(NULL);
    if (count == 2) {
        call_what_is_removed(db, arguments[1]);
        return 0;
    }
    streams(db);
    split_points(db);
    stop(db);
    puts("passed");
    return 0;
}
