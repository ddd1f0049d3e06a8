// A program that forks while its network runs. The child's calls end at once with an error, and so does the child.

#include "check.h"
#include <sys/wait.h>
#include <time.h>

static int called;

static void note(FDBFuture *f, void *unused) {
    (void)unused;
    called = fdb_future_get_error(f);
}

static void child(FDBDatabase *db, FDBTransaction *tr, FDBFuture *before) {
    FDBTransaction *other;
    FDBDatabase *another;
    SAME(finish(fdb_transaction_get(tr, KEY("a"), 0)), 1101);
    fdb_transaction_set(tr, KEY("a"), KEY("b"));
    SAME(finish(fdb_transaction_commit(tr)), 1101);
    SAME(finish(fdb_transaction_on_error(tr, 1020)), 1101);
    SAME(fdb_database_create_transaction(db, &other), 1101);
    SAME(fdb_create_database(NULL, &another), 1101);
    // What the parent waits for.
    SAME(fdb_future_set_callback(before, note, NULL), 0);
    SAME(called, 1101);
    SAME(fdb_future_is_ready(before), 1);
    SAME(finish(before), 1101);
    fdb_transaction_reset(tr);
    fdb_transaction_destroy(tr);
    fdb_database_destroy(db);
    SAME(fdb_stop_network(), 1101);
    SAME(fdb_run_network(), 1101);
    exit(0);
}

int main(void) {
    struct timespec start_of, end_of;
    int status;
    FDBDatabase *db = start(NULL);
    FDBTransaction *tr = begin(db);
    CHECK(has(tr, "a", NULL));
    FDBFuture *before = fdb_transaction_watch(tr, KEY("a"));
    clock_gettime(CLOCK_MONOTONIC, &start_of);
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (!pid) child(db, tr, before);
        SAME(waitpid(pid, &status, 0), pid);
        SAME(status, 0);
    }
    clock_gettime(CLOCK_MONOTONIC, &end_of);
    CHECK(end_of.tv_sec - start_of.tv_sec < 9);
    // The parent goes on.
    fdb_future_destroy(before);
    fdb_transaction_set(tr, KEY("a"), KEY("b"));
    SAME(finish(fdb_transaction_commit(tr)), 0);
    fdb_transaction_destroy(tr);
    stop(db);
    puts("passed");
    return 0;
}
