// A program that was written for API version 630.

#define FDB_API_VERSION 630
#include "check.h"

int main(void) {
    FDBDatabase *db = start(NULL);
    FDBTransaction *tr = begin(db);
    const FDBKeyValue *rows;
    int64_t version;
    int count;
    fdb_bool_t more;
    fdb_transaction_set(tr, KEY("a"), KEY("b"));
    SAME(finish(fdb_transaction_commit(tr)), 0);
    fdb_transaction_reset(tr);
    FDBFuture *f = fdb_transaction_get_read_version(tr);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_int64(f, &version), 0);
    CHECK(version > 0);
    fdb_future_destroy(f);
    f = fdb_transaction_get_range(tr, FDB_KEYSEL_FIRST_GREATER_OR_EQUAL((const uint8_t *)"", 0),
                                  FDB_KEYSEL_FIRST_GREATER_OR_EQUAL((const uint8_t *)"\xff", 1), 0, 0,
                                  FDB_STREAMING_MODE_ITERATOR, 1, 1, 0);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_keyvalue_array(f, &rows, &count, &more), 0);
    SAME(count, 1);
    CHECK(rows->key_length == 1 && *rows->key == 'a' && *rows->value == 'b');
    fdb_future_destroy(f);
    fdb_transaction_destroy(tr);
    stop(db);
    puts("passed");
    return 0;
}
