// Versionstamps: ready when their commit is, and waiting for nothing before it.

#include "check.h"

static int order[2], count;

static void note(FDBFuture *f, void *which) {
    (void)f;
    order[__atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST) % 2] = (int)(size_t)which;
}

static void ignore(FDBFuture *f, void *unused) {
    (void)f;
    (void)unused;
}

int main(void) {
    FDBDatabase *db = start(NULL);
    FDBTransaction *tr = begin(db);
    const uint8_t *stamp;
    int length;
    // Whoever sees that the commit is ready sees the stamp, after a success, a conflict and a commit without writes.
    for (int i = 0; i < 300; i++) {
        fdb_error_t expected = 0, stamped = 0;
        FDBTransaction *other = begin(db);
        CHECK(has(tr, "a", i ? "b" : NULL));
        if (i % 3 != 2) fdb_transaction_set(tr, KEY("a"), KEY("b"));
        if (i % 3 == 1) {
            fdb_transaction_set(other, KEY("a"), KEY("b"));
            SAME(finish(fdb_transaction_commit(other)), 0);
            expected = 1020;
            stamped = 2020;
        }
        if (i % 3 == 2) stamped = 2021;
        FDBFuture *f = fdb_transaction_get_versionstamp(tr), *c = fdb_transaction_commit(tr);
        SAME(wait_for(c), expected);
        SAME(fdb_future_is_ready(f), 1);
        SAME(fdb_future_get_key(f, &stamp, &length), stamped);
        fdb_future_destroy(f);
        fdb_future_destroy(c);
        fdb_transaction_reset(tr);
        fdb_transaction_destroy(other);
    }
    // And its callback is called first.
    for (int i = 0; i < 100; i++) {
        fdb_transaction_set(tr, KEY("a"), KEY("b"));
        FDBFuture *f = fdb_transaction_get_versionstamp(tr), *c = fdb_transaction_commit(tr);
        count = 0;
        SAME(fdb_future_set_callback(c, note, (void *)2), 0);
        SAME(fdb_future_set_callback(f, note, (void *)1), 0);
        while (__atomic_load_n(&count, __ATOMIC_SEQ_CST) < 2) usleep(50);
        SAME(order[0], 1);
        fdb_future_destroy(f);
        fdb_future_destroy(c);
        fdb_transaction_reset(tr);
    }
    // Nothing has been committed: what waits for the stamp does not drive the clock.
    FDBFuture *f = fdb_transaction_get_read_version(tr);
    int64_t before, after;
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_int64(f, &before), 0);
    fdb_future_destroy(f);
    FDBFuture *waiting = fdb_transaction_get_versionstamp(tr);
    SAME(fdb_future_set_callback(waiting, ignore, NULL), 0);
    usleep(50000);
    FDBTransaction *other = begin(db);
    f = fdb_transaction_get_read_version(other);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_int64(f, &after), 0);
    fdb_future_destroy(f);
    // Versions are microseconds.
    CHECK(after - before < 4000000);
    SAME(finish(fdb_transaction_get(tr, KEY("a"), 0)), 0);
    fdb_transaction_reset(tr);
    SAME(wait_for(waiting), 1100);
    fdb_future_destroy(waiting);
    fdb_transaction_destroy(other);
    fdb_transaction_destroy(tr);
    stop(db);
    puts("passed");
    return 0;
}
