// A program that commits, waits for a watch while the wall clock runs, and ends as it is told, without stopping the network.
//
// ends exit|_exit|abort|crash|kill

#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>

#include "check.h"

static int changed;

static void change(FDBFuture *f, void *unused) {
    (void)f, (void)unused;
    __atomic_store_n(&changed, 1, __ATOMIC_SEQ_CST);
}

static void put(FDBDatabase *db, const char *value) {
    FDBTransaction *tr = begin(db);
    fdb_error_t error;
    do {
        fdb_transaction_set(tr, KEY("a"), KEY(value));
        error = finish(fdb_transaction_commit(tr));
        if (error) SAME(finish(fdb_transaction_on_error(tr, error)), 0);
    } while (error);
    fdb_transaction_destroy(tr);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    FDBDatabase *db = start(NULL);
    FDBTransaction *tr = begin(db);
    FDBFuture *watch = fdb_transaction_watch(tr, KEY("a"));
    SAME(finish(fdb_transaction_commit(tr)), 0);
    SAME(fdb_future_set_callback(watch, change, NULL), 0);
    usleep(100000);
    put(db, "1");
    while (!__atomic_load_n(&changed, __ATOMIC_SEQ_CST)) usleep(1000);
    put(db, "2");
    char how = argv[1][0] == '_' ? '_' : argv[1][0];
    if (how == '_') _exit(0);
    if (how == 'a') abort();
    if (how == 'c') *(volatile int *)8 = 1;
    if (how == 'k') kill(getpid(), SIGKILL);
    return 0;
}
