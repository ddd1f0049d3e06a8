// The program's clock, randomness and threads are its own, on its threads and in callbacks on the network thread.

#define _GNU_SOURCE
#include "check.h"

#include <sched.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

// The kernel's clock, past every library.
static double kernel(clockid_t clock) {
    struct timespec time;
    SAME(syscall(SYS_clock_gettime, clock, &time), 0);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static double library(clockid_t clock) {
    struct timespec time;
    SAME(clock_gettime(clock, &time), 0);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void *nothing(void *unused) { return unused; }

static void look_around(void) {
    struct timeval now;
    char name[256];
    cpu_set_t cpus;
    pthread_t thread;
    double before = kernel(CLOCK_MONOTONIC);
    CHECK(library(CLOCK_MONOTONIC) >= before && library(CLOCK_MONOTONIC) <= kernel(CLOCK_MONOTONIC));
    before = kernel(CLOCK_REALTIME);
    CHECK(library(CLOCK_REALTIME) >= before && library(CLOCK_REALTIME) <= kernel(CLOCK_REALTIME));
    SAME(gettimeofday(&now, NULL), 0);
    CHECK(now.tv_sec + now.tv_usec / 1e6 >= before - 1e-5 && now.tv_sec <= kernel(CLOCK_REALTIME));
    SAME(pthread_create(&thread, NULL, nothing, NULL), 0);
    SAME(pthread_join(thread, NULL), 0);
    SAME(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    CHECK(CPU_COUNT(&cpus) >= 1);
    CHECK(sysconf(_SC_NPROCESSORS_ONLN) >= 1);
    SAME(gethostname(name, sizeof name), 0);
    unsigned char bytes[8];
    SAME(getrandom(bytes, sizeof bytes, 0), sizeof bytes);
    for (int i = 0; i < 8; i++) printf("%02x", bytes[i]);
    SAME(getentropy(bytes, sizeof bytes), 0);
    for (int i = 0; i < 8; i++) printf("%02x", bytes[i]);
    puts("");
}

static int looked;

static void look(FDBFuture *f, void *unused) {
    (void)f, (void)unused;
    CHECK(pthread_equal(pthread_self(), network));
    look_around();
    __atomic_store_n(&looked, 1, __ATOMIC_SEQ_CST);
}

int main(void) {
    FDBDatabase *db = start(NULL);
    look_around();
    FDBTransaction *tr = begin(db);
    FDBFuture *f = fdb_transaction_get(tr, KEY("a"), 0);
    SAME(fdb_future_set_callback(f, look, NULL), 0);
    while (!__atomic_load_n(&looked, __ATOMIC_SEQ_CST)) usleep(100);
    fdb_future_destroy(f);
    // A retry waits in virtual time, not in the program's.
    double before = kernel(CLOCK_MONOTONIC);
    int64_t longest = 600000;
    SAME(fdb_transaction_set_option(tr, FDB_TR_OPTION_MAX_RETRY_DELAY, (const uint8_t *)&longest, 8), 0);
    for (int i = 0; i < 14; i++) SAME(finish(fdb_transaction_on_error(tr, 1020)), 0);
    CHECK(kernel(CLOCK_MONOTONIC) - before < 10);
    fdb_transaction_destroy(tr);
    stop(db);
    return 0;
}
