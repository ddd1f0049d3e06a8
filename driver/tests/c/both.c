// A program that is C and C++: what the header has besides functions.

#include "check.h"

typedef char key_has_12_bytes[sizeof(FDBKey) == 12 ? 1 : -1];
typedef char row_has_24_bytes[sizeof(FDBKeyValue) == 24 ? 1 : -1];
typedef char mapped_row_has_112_bytes[sizeof(FDBMappedKeyValue) == 112 ? 1 : -1];

static void count_call(FDBFuture *f, void *parameter) {
    (void)f;
    ++*(int *)parameter;
}

int main(void) {
    FDBDatabase *db = start(NULL);
    FDBTransaction *tr = begin(db);
    const uint8_t *found;
    int length, called = 0;
    CHECK(sizeof(key_has_12_bytes) == sizeof(row_has_24_bytes) && sizeof(mapped_row_has_112_bytes) == 1);
    fdb_transaction_set(tr, KEY("a"), KEY("1"));
    fdb_transaction_atomic_op(tr, KEY("a"), KEY("2"), FDB_MUTATION_TYPE_BYTE_MAX);
    CHECK(has(tr, "a", "2"));
    FDBFuture *f = fdb_transaction_get_key(tr, FDB_KEYSEL_LAST_LESS_OR_EQUAL((const uint8_t *)"b", 1), 0);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_key(f, &found, &length), 0);
    CHECK(length == 1 && *found == 'a');
    SAME(fdb_future_set_callback(f, count_call, &called), 0);
    SAME(called, 1);
    fdb_future_destroy(f);
    CHECK(fdb_error_predicate(FDB_ERROR_PREDICATE_RETRYABLE, 1020));
    SAME(finish(fdb_transaction_commit(tr)), 0);
    fdb_transaction_destroy(tr);
    stop(db);
    puts("passed");
    return 0;
}
