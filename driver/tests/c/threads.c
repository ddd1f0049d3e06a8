// Threads that read, write, cancel, destroy and set callbacks in any order, with faults, while others do the same.

#include "check.h"

enum { THREADS = 6, STEPS = 400 };

static FDBDatabase *db;
static int expected, fired;

static void count_up(FDBFuture *f, void *unused) {
    (void)unused;
    (void)fdb_future_get_error(f);
    __atomic_add_fetch(&fired, 1, __ATOMIC_SEQ_CST);
}

static unsigned draw(unsigned *state) {
    *state = *state * 1103515245u + 12345u;
    return *state >> 16;
}

static FDBFuture *call(FDBTransaction *tr, unsigned which, const char *key) {
    switch (which % 10) {
    case 0: return fdb_transaction_commit(tr);
    case 1: return fdb_transaction_watch(tr, KEY(key));
    case 2: return fdb_transaction_on_error(tr, 1020);
    case 3: return fdb_transaction_get_versionstamp(tr);
    case 4: return fdb_transaction_get_read_version(tr);
    case 5:
        return fdb_transaction_get_range(tr, FDB_KEYSEL_FIRST_GREATER_OR_EQUAL((const uint8_t *)"", 0),
                                         FDB_KEYSEL_FIRST_GREATER_OR_EQUAL((const uint8_t *)"z", 1), 3, 0,
                                         FDB_STREAMING_MODE_ITERATOR, 1, 0, 0);
    default: return fdb_transaction_get(tr, KEY(key), which & 16);
    }
}

static void *work(void *number) {
    unsigned state = (unsigned)(size_t)number;
    FDBTransaction *tr = begin(db);
    FDBFuture *waiting[4] = {NULL};
    unsigned kinds[4] = {0};
    for (int step = 0; step < STEPS; step++) {
        char key[8];
        snprintf(key, sizeof key, "k%u", draw(&state) % 20);
        unsigned slot = draw(&state) % 4, which = draw(&state);
        FDBFuture **f = &waiting[slot];
        if (!*f) {
            kinds[slot] = which % 10;
            *f = call(tr, which, key);
            if (which & 32) {
                __atomic_add_fetch(&expected, 1, __ATOMIC_SEQ_CST);
                SAME(fdb_future_set_callback(*f, count_up, NULL), 0);
            }
        }
        switch (draw(&state) % 12) {
        case 0: fdb_future_cancel(*f); break;
        case 1: fdb_future_destroy(*f); *f = NULL; break;
        case 2: fdb_transaction_set(tr, KEY(key), KEY("value")); break;
        case 3: fdb_transaction_clear_range(tr, KEY(key), KEY("kz")); break;
        case 4: fdb_transaction_reset(tr); break;
        case 5: fdb_transaction_cancel(tr); fdb_transaction_reset(tr); break;
        case 6: fdb_transaction_destroy(tr); tr = begin(db); break;
        case 7: fdb_future_release_memory(*f); break;
        case 8: (void)fdb_future_is_ready(*f); break;
        default:
            // Watches and versionstamps may wait for ever; the others end.
            if (kinds[slot] != 1 && kinds[slot] != 3) {
                (void)finish(*f);
                *f = NULL;
            }
        }
    }
    for (int i = 0; i < 4; i++)
        if (waiting[i]) fdb_future_destroy(waiting[i]);
    fdb_transaction_destroy(tr);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    db = start(NULL);
    for (size_t i = 0; i < THREADS; i++) SAME(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) SAME(pthread_join(threads[i], NULL), 0);
    stop(db);
    SAME(fired, expected);
    CHECK(expected > THREADS * 20);
    return 0;
}
