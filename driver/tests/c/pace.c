// Keeps the time of a served cluster at the pace of the wall clock as long as it runs: a watch waits. Programs that measure
// and sleep by the wall clock need it.

#include "check.h"

int main(void) {
    FDBDatabase *db = start(NULL);
    FDBTransaction *tr = begin(db);
    FDBFuture *watch = fdb_transaction_watch(tr, KEY("\xfe/pace"));
    SAME(finish(fdb_transaction_commit(tr)), 0);
    puts("keeping pace");
    fflush(stdout);
    return wait_for(watch);
}
