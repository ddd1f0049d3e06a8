// One thread that moves amounts between accounts in a retry loop, and prints what it sees.

#include "check.h"

enum { ACCOUNTS = 5, TRANSFERS = 60 };

static void account(char *key, int number) { snprintf(key, 16, "account%d", number); }

static int64_t balance(FDBTransaction *tr, int number, fdb_error_t *error) {
    char key[16];
    fdb_bool_t present = 0;
    const uint8_t *value;
    int length;
    int64_t amount = 100;
    account(key, number);
    FDBFuture *f = fdb_transaction_get(tr, KEY(key), 0);
    *error = wait_for(f);
    if (!*error) SAME(fdb_future_get_value(f, &present, &value, &length), 0);
    if (present) memcpy(&amount, value, 8);
    fdb_future_destroy(f);
    return amount;
}

static void put(FDBTransaction *tr, int number, int64_t amount) {
    char key[16];
    account(key, number);
    fdb_transaction_set(tr, KEY(key), (const uint8_t *)&amount, 8);
}

int main(int argc, char **argv) {
    FDBDatabase *db = start(argc > 1 ? argv[1] : NULL);
    FDBTransaction *tr = begin(db);
    for (int i = 0; i < TRANSFERS; i++) {
        int from = i % ACCOUNTS, to = (i * 3 + 1) % ACCOUNTS;
        fdb_error_t error;
        do {
            int64_t left = balance(tr, from, &error), right = 0;
            if (!error) right = balance(tr, to, &error);
            if (!error && from != to) {
                put(tr, from, left - 1);
                put(tr, to, right + 1);
            }
            if (!error) error = finish(fdb_transaction_commit(tr));
            int64_t version = 0;
            SAME(fdb_transaction_get_committed_version(tr, &version), 0);
            printf("%d: %lld %lld, error %d at %lld\n", i, (long long)left, (long long)right, error, (long long)version);
            // Not every error can be retried; the transfer is made again all the same.
            if (error && finish(fdb_transaction_on_error(tr, error))) fdb_transaction_reset(tr);
        } while (error);
        fdb_transaction_reset(tr);
    }
    fdb_transaction_destroy(tr);
    stop(db);
    return 0;
}
