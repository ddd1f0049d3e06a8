// Threads that set a callback, wait for it to be called, and destroy the future at once, while the call that set the
// callback may not have returned: what a binding does that wraps futures in its own. The library must not look at a
// future after it has made it reachable to whoever destroys it. Signals stop the setting thread at any instruction, so that
// the others have time for all of this between any two.

#include "check.h"
#include <signal.h>

enum { THREADS = 4, ROUNDS = 100, BATCH = 4 };

static FDBDatabase *db;

static pthread_t threads[THREADS];
static int setting[THREADS];

static void pause_here(int signal) {
    (void)signal;
    usleep(300);
}

struct slot {
    FDBFuture *future;
    int fired;
    int taken;
};

static void fire(FDBFuture *f, void *parameter) {
    struct slot *slot = parameter;
    (void)fdb_future_get_error(f);
    // From here on another thread may destroy the future.
    __atomic_store_n(&slot->fired, 1, __ATOMIC_SEQ_CST);
}

// Destroys its own future: the last reference that the program has.
static void destroy(FDBFuture *f, void *count) {
    fdb_future_destroy(f);
    __atomic_add_fetch((int *)count, 1, __ATOMIC_SEQ_CST);
}

static struct slot slots[THREADS][BATCH];
static int is_over;

// Destroys futures the moment that their callbacks were called.
static void *reap(void *unused) {
    (void)unused;
    while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST))
        for (int i = 0; i < THREADS; i++)
            for (int j = 0; j < BATCH; j++)
                if (__atomic_exchange_n(&slots[i][j].fired, 0, __ATOMIC_SEQ_CST)) {
                    fdb_future_destroy(slots[i][j].future);
                    __atomic_store_n(&slots[i][j].taken, 1, __ATOMIC_SEQ_CST);
                }
    return NULL;
}

// Interrupts threads that are setting a callback.
static void *interrupt(void *unused) {
    (void)unused;
    for (unsigned turn = 0; !__atomic_load_n(&is_over, __ATOMIC_SEQ_CST); turn++) {
        int i = turn % THREADS;
        if (__atomic_exchange_n(&setting[i], 0, __ATOMIC_SEQ_CST)) SAME(pthread_kill(threads[i], SIGUSR1), 0);
    }
    return NULL;
}

static void *work(void *number) {
    struct slot *mine = slots[(size_t)number];
    FDBTransaction *tr = begin(db);
    int destroyed = 0, own = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int j = 0; j < BATCH; j++) {
            mine[j].taken = 0;
            FDBFuture *f = fdb_transaction_get(tr, KEY("k"), 0);
            mine[j].future = f;
            // It becomes ready before the callback is set, after it, or at that moment.
            (void)fdb_future_is_ready(f);
            __atomic_store_n(&setting[(size_t)number], 1, __ATOMIC_SEQ_CST);
            for (volatile int wait = round * 37 % 6000; wait > 0; wait--) continue;
            SAME(fdb_future_set_callback(f, fire, &mine[j]), 0);
            __atomic_store_n(&setting[(size_t)number], 0, __ATOMIC_SEQ_CST);
        }
        FDBFuture *f = fdb_transaction_get(tr, KEY("k"), 0);
        SAME(fdb_future_set_callback(f, destroy, &destroyed), 0);
        own++;
        for (int j = 0; j < BATCH; j++)
            while (!__atomic_load_n(&mine[j].taken, __ATOMIC_SEQ_CST)) sched_yield();
        while (__atomic_load_n(&destroyed, __ATOMIC_SEQ_CST) != own) sched_yield();
        if (round % 16 == 0) fdb_transaction_reset(tr);
    }
    fdb_transaction_destroy(tr);
    return NULL;
}

int main(void) {
    pthread_t reaper, interrupter;
    SAME(signal(SIGUSR1, pause_here) == SIG_ERR, 0);
    db = start(NULL);
    SAME(pthread_create(&reaper, NULL, reap, NULL), 0);
    for (size_t i = 0; i < THREADS; i++) SAME(pthread_create(&threads[i], NULL, work, (void *)i), 0);
    SAME(pthread_create(&interrupter, NULL, interrupt, NULL), 0);
    for (int i = 0; i < THREADS; i++) SAME(pthread_join(threads[i], NULL), 0);
    __atomic_store_n(&is_over, 1, __ATOMIC_SEQ_CST);
    SAME(pthread_join(reaper, NULL), 0);
    SAME(pthread_join(interrupter, NULL), 0);
    stop(db);
    puts("passed");
    return 0;
}
