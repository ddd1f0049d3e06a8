// What old versions of the API do otherwise. Compiled for several of them.

#include "check.h"

static FDBDatabase *open_database(void) {
#if FDB_API_VERSION < 610
    FDBCluster *cluster;
    FDBDatabase *db;
    SAME(fdb_select_api_version(FDB_API_VERSION), 0);
    SAME(fdb_setup_network(), 0);
    SAME(pthread_create(&network, NULL, run_network, NULL), 0);
    FDBFuture *f = fdb_create_cluster(NULL);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_cluster(f, &cluster), 0);
    fdb_future_destroy(f);
    SAME(finish(fdb_cluster_create_database(cluster, (const uint8_t *)"XY", 2)), 2013);
    f = fdb_cluster_create_database(cluster, (const uint8_t *)"DB", 2);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_database(f, &db), 0);
    fdb_future_destroy(f);
    fdb_cluster_destroy(cluster);
    return db;
#else
    return start(NULL);
#endif
}

int main(void) {
    FDBDatabase *db = open_database();
    FDBTransaction *tr = begin(db);
    fdb_bool_t present;
    const uint8_t *value;
    int length;
    int64_t version;

    // The own writes of a snapshot read.
    fdb_transaction_set(tr, KEY("a"), KEY("b"));
    FDBFuture *f = fdb_transaction_get(tr, KEY("a"), 1);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_value(f, &present, &value, &length), 0);
    SAME(present, FDB_API_VERSION >= 300);
    fdb_future_destroy(f);

    // After a commit.
    SAME(finish(fdb_transaction_commit(tr)), 0);
    SAME(fdb_transaction_get_committed_version(tr, &version), 0);
    CHECK(version > 0);
    SAME(finish(fdb_transaction_get(tr, KEY("a"), 0)), FDB_API_VERSION < 410 ? 0 : 2017);
    fdb_transaction_reset(tr);

    // After an error that is not retryable.
    SAME(finish(fdb_transaction_on_error(tr, 2000)), 2000);
    SAME(finish(fdb_transaction_get(tr, KEY("a"), 0)), FDB_API_VERSION < 610 ? 0 : 1025);
    fdb_transaction_reset(tr);

    // Versionstamps: "k" and ten bytes, with the offset 1.
    const char *zeros = "\0\0\0\0\0\0\0\0\0\0";
    char key[16] = "k";
    memcpy(key + 1, zeros, 10);
    key[11] = 1;
    int offset = FDB_API_VERSION < 520 ? 2 : 4;
    fdb_transaction_atomic_op(tr, (const uint8_t *)key, 11 + offset, KEY("v"), FDB_MUTATION_TYPE_SET_VERSIONSTAMPED_KEY);
    fdb_transaction_atomic_op(tr, KEY("s"), (const uint8_t *)zeros, 10, FDB_MUTATION_TYPE_SET_VERSIONSTAMPED_VALUE);
    SAME(finish(fdb_transaction_commit(tr)), FDB_API_VERSION < 520 ? 0 : 2000);
    fdb_transaction_destroy(tr);

#if FDB_API_VERSION < 620
    tr = begin(db);
    f = fdb_transaction_get_read_version(tr);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_version(f, &version), 0);
    CHECK(version > 0);
    fdb_future_destroy(f);
    fdb_transaction_destroy(tr);
#endif
    stop(db);
    puts("passed");
    return 0;
}
