// A program that ends without stopping the network.

#include "check.h"

int main(void) {
    FDBTransaction *tr = begin(start(NULL));
    fdb_transaction_set(tr, KEY("a"), KEY("b"));
    SAME(finish(fdb_transaction_commit(tr)), 0);
    return 0;
}
