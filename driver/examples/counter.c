// Adds one to a counter twenty times, with a retry loop as FoundationDB's documentation describes it, and prints what is
// counted: 20, or more if a commit whose result was unknown had taken effect.

#define FDB_API_VERSION 740
#include <foundationdb/fdb_c.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t KEY[] = "counter", ONE[8] = {1};

static void check(fdb_error_t error) {
    if (!error) return;
    fprintf(stderr, "%s (%d)\n", fdb_get_error(error), error);
    exit(1);
}

// Waits for a future, and returns its error.
static fdb_error_t wait_for(FDBFuture *f) {
    check(fdb_future_block_until_ready(f));
    return fdb_future_get_error(f);
}

static fdb_error_t finish(FDBFuture *f) {
    fdb_error_t error = wait_for(f);
    fdb_future_destroy(f);
    return error;
}

static void add(FDBTransaction *tr) {
    fdb_error_t error;
    do {
        fdb_transaction_atomic_op(tr, KEY, sizeof KEY - 1, ONE, sizeof ONE, FDB_MUTATION_TYPE_ADD);
        error = finish(fdb_transaction_commit(tr));
        if (error) check(finish(fdb_transaction_on_error(tr, error)));
    } while (error);
    fdb_transaction_reset(tr);
}

static uint64_t counted(FDBTransaction *tr) {
    for (;;) {
        FDBFuture *f = fdb_transaction_get(tr, KEY, sizeof KEY - 1, 0);
        fdb_error_t error = wait_for(f);
        fdb_bool_t present = 0;
        const uint8_t *value = NULL;
        int length = 0;
        uint64_t count = 0;
        if (!error) check(fdb_future_get_value(f, &present, &value, &length));
        if (present && length == sizeof count) memcpy(&count, value, sizeof count);
        fdb_future_destroy(f);
        if (!error) return count;
        check(finish(fdb_transaction_on_error(tr, error)));
    }
}

static void *network(void *unused) {
    (void)unused;
    check(fdb_run_network());
    return NULL;
}

int main(void) {
    pthread_t thread;
    FDBDatabase *db;
    FDBTransaction *tr;
    check(fdb_select_api_version(FDB_API_VERSION));
    check(fdb_setup_network());
    if (pthread_create(&thread, NULL, network, NULL)) return 1;
    check(fdb_create_database(NULL, &db));
    check(fdb_database_create_transaction(db, &tr));
    for (int i = 0; i < 20; i++) add(tr);
    uint64_t count = counted(tr);
    fdb_transaction_destroy(tr);
    fdb_database_destroy(db);
    check(fdb_stop_network());
    pthread_join(thread, NULL);
    printf("%" PRIu64 "\n", count);
    return count == 20 ? 0 : 1;
}
