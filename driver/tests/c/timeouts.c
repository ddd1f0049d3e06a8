// Timeouts while the program sleeps, while it computes, and without a server. The arguments are what there is, and the cluster file.

#include "check.h"
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static FDBTransaction *timed(FDBDatabase *db, int64_t milliseconds) {
    FDBTransaction *tr = begin(db);
    SAME(fdb_transaction_set_option(tr, FDB_TR_OPTION_TIMEOUT, (const uint8_t *)&milliseconds, 8), 0);
    fdb_transaction_set(tr, KEY("a"), KEY("b"));
    return tr;
}

static fdb_error_t commit(FDBTransaction *tr) { return finish(fdb_transaction_commit(tr)); }

static void with_a_cluster(FDBDatabase *db) {
    FDBTransaction *tr = timed(db, 10);
    usleep(400000);
    SAME(commit(tr), 1031);
    fdb_transaction_destroy(tr);
    // Its time is not over.
    tr = timed(db, 60000);
    usleep(400000);
    SAME(commit(tr), 0);
    fdb_transaction_destroy(tr);
}

static void computing(FDBDatabase *db) {
    FDBTransaction *tr = timed(db, 2000);
    double start = now();
    while (now() - start < 2.5) continue;
    SAME(commit(tr), 0);
    fdb_transaction_destroy(tr);
}

// Waits for a future that ends after so many seconds.
static void ends_after(FDBFuture *f, fdb_error_t error, double start, double seconds) {
    SAME(wait_for(f), error);
    double took = now() - start;
    CHECK(took > seconds - 0.001 && took < seconds + 0.4);
    fdb_future_destroy(f);
}

static void without_a_server(FDBDatabase *db) {
    int64_t milliseconds = 500;
    double start = now();
    FDBTransaction *tr = timed(db, 500);
    ends_after(fdb_transaction_get_read_version(tr), 1031, start, 0.5);
    fdb_transaction_reset(tr);
    FDBFuture *f = fdb_transaction_get_read_version(tr);
    fdb_transaction_reset(tr);
    SAME(finish(f), 1025);
    f = fdb_transaction_get_read_version(tr);
    fdb_future_cancel(f);
    SAME(finish(f), 1101);
    SAME(fdb_database_set_option(db, FDB_DB_OPTION_TRANSACTION_TIMEOUT, (const uint8_t *)&milliseconds, 8), 0);
    start = now();
    fdb_transaction_reset(tr);
    ends_after(fdb_transaction_get_read_version(tr), 1031, start, 0.5);
    milliseconds = 0;
    SAME(fdb_database_set_option(db, FDB_DB_OPTION_TRANSACTION_TIMEOUT, (const uint8_t *)&milliseconds, 8), 0);
    // A transaction without a timeout ends when no server is sought any more.
    fdb_transaction_reset(tr);
    SAME(finish(fdb_transaction_get_read_version(tr)), 1031);
    // From then on, too, those with one have their time, and what nothing waits for can be reset.
    start = now();
    f = fdb_transaction_get_read_version(tr);
    fdb_transaction_reset(tr);
    SAME(finish(f), 1025);
    fdb_transaction_destroy(tr);
    tr = timed(db, 500);
    ends_after(fdb_transaction_get_read_version(tr), 1031, start, 0.5);
    fdb_transaction_destroy(tr);
    tr = timed(db, 60000);
    f = fdb_transaction_commit(tr);
    fdb_transaction_destroy(tr);
    SAME(finish(f), 1025);
}

int main(int count, char **arguments) {
    CHECK(count == 3);
    FDBDatabase *db = start(arguments[2]);
    if (!strcmp(arguments[1], "lost")) without_a_server(db);
    else with_a_cluster(db);
    if (!strcmp(arguments[1], "alone")) computing(db);
    stop(db);
    puts("passed");
    return 0;
}
