// Many small transactions of one thread, each of which reads and writes a key; or few large ones that are reset.
//
// Prints the largest size of the process, kilobytes.
//
// many COUNT [RESET-MEGABYTES]

#include <sys/resource.h>

#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc >= 2);
    int count = atoi(argv[1]), megabytes = argc > 2 ? atoi(argv[2]) : 0;
    static uint8_t megabyte[100000];
    FDBDatabase *db = start(NULL);
    FDBTransaction *tr = begin(db);
    for (int i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof key, "key%d", i % 1000);
        fdb_error_t error;
        do {
            FDBFuture *f = fdb_transaction_get(tr, KEY(key), 0);
            error = wait_for(f);
            fdb_future_destroy(f);
            if (megabytes) break;
            fdb_transaction_set(tr, KEY(key), KEY(key));
            if (!error) error = finish(fdb_transaction_commit(tr));
            if (error) SAME(finish(fdb_transaction_on_error(tr, error)), 0);
        } while (error);
        for (int part = 0; part < 10 * megabytes; part++) {
            snprintf(key, sizeof key, "part%d", part);
            fdb_transaction_set(tr, KEY(key), megabyte, sizeof megabyte);
        }
        fdb_transaction_reset(tr);
    }
    fdb_transaction_destroy(tr);
    stop(db);
    struct rusage usage;
    SAME(getrusage(RUSAGE_SELF, &usage), 0);
    printf("%ld\n", usage.ru_maxrss);
    return 0;
}
