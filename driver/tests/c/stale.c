// A program that reads a result after its future was destroyed: what a sanitizer must report.

#include "check.h"

int main(void) {
    FDBDatabase *db = start(NULL);
    FDBTransaction *tr = begin(db);
    fdb_bool_t present;
    const uint8_t *value;
    int length;
    fdb_transaction_set(tr, KEY("a"), KEY("a value that is on the heap, wherever short ones are"));
    FDBFuture *f = fdb_transaction_get(tr, KEY("a"), 0);
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_value(f, &present, &value, &length), 0);
    fdb_future_destroy(f);
    fdb_transaction_destroy(tr);
    stop(db);
    return value[0] == 'z';
}
