// Adds items, each in a transaction that also counts it, and prints the number of each that was acknowledged; without an
// end, or until an error that cannot be retried ends the retry loop.
//
// worker CLUSTER-FILE NAME [COUNT]

#include "check.h"

// Adds an item once, whatever happens to its commits: an item that is there was added before.
static fdb_error_t add(FDBTransaction *tr, const char *key) {
    static const int64_t one = 1;
    for (;;) {
        fdb_bool_t present = 0;
        const uint8_t *value;
        int length;
        FDBFuture *f = fdb_transaction_get(tr, KEY(key), 0);
        fdb_error_t error = wait_for(f);
        if (!error) SAME(fdb_future_get_value(f, &present, &value, &length), 0);
        fdb_future_destroy(f);
        if (!error && present) return 0;
        if (!error) {
            fdb_transaction_set(tr, KEY(key), KEY("item"));
            fdb_transaction_atomic_op(tr, KEY("count"), (const uint8_t *)&one, 8, FDB_MUTATION_TYPE_ADD);
            error = finish(fdb_transaction_commit(tr));
        }
        if (!error) return 0;
        error = finish(fdb_transaction_on_error(tr, error));
        if (error) return error;
    }
}

int main(int argc, char **argv) {
    CHECK(argc >= 3);
    FDBDatabase *db = start(argv[1]);
    FDBTransaction *tr = begin(db);
    int count = argc > 3 ? atoi(argv[3]) : -1;
    for (int i = 0; i != count; i++) {
        char key[64];
        snprintf(key, sizeof key, "item/%s/%06d", argv[2], i);
        fdb_error_t error = add(tr, key);
        if (error) {
            fprintf(stderr, "item %d: %s (%d)\n", i, fdb_get_error(error), error);
            return 3;
        }
        printf("%d\n", i);
        fflush(stdout);
        fdb_transaction_reset(tr);
    }
    fdb_transaction_destroy(tr);
    stop(db);
    return 0;
}
