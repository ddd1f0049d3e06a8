// Copies rows from one cluster to another, each in a retry loop, and checks that they are two.

#include "check.h"

enum { ROWS = 30, MOST = 16 };

static FDBDatabase *named(const char *connection) {
    FDBDatabase *db = NULL;
    SAME(fdb_create_database_from_connection_string(connection, &db), 0);
    return db;
}

static void put(FDBDatabase *db, const char *key, const char *value) {
    FDBTransaction *tr = begin(db);
    fdb_error_t error;
    do {
        fdb_transaction_set(tr, KEY(key), (const uint8_t *)value, (int)strlen(value));
        error = finish(fdb_transaction_commit(tr));
        if (error) SAME(finish(fdb_transaction_on_error(tr, error)), 0);
    } while (error);
    fdb_transaction_destroy(tr);
}

// The value as a string; empty if there is none.
static void get(FDBDatabase *db, const char *key, char *into) {
    FDBTransaction *tr = begin(db);
    fdb_error_t error;
    fdb_bool_t present = 0;
    const uint8_t *value;
    int length = 0;
    do {
        FDBFuture *f = fdb_transaction_get(tr, KEY(key), 0);
        error = wait_for(f);
        if (!error) SAME(fdb_future_get_value(f, &present, &value, &length), 0);
        if (!error && present) memcpy(into, value, length);
        into[present ? length : 0] = 0;
        fdb_future_destroy(f);
        if (error) SAME(finish(fdb_transaction_on_error(tr, error)), 0);
    } while (error);
    fdb_transaction_destroy(tr);
}

int main(void) {
    FDBDatabase *one = start(NULL), *again = named("one:a@127.0.0.1:4500");
    FDBDatabase *two = named("two:b@127.0.0.1:4500"), *moved = named("two:b@10.0.0.1:4500,10.0.0.2:4500");
    char key[16], value[16], found[16];
    for (int i = 0; i < ROWS; i++) {
        snprintf(key, sizeof key, "row%d", i);
        snprintf(value, sizeof value, "%d", i * i);
        put(one, key, value);
        get(again, key, found);
        CHECK(!strcmp(found, value));
        get(two, key, found);
        CHECK(!found[0]);
        put(two, key, value);
        get(moved, key, found);
        printf("%s = %s\n", key, found);
        CHECK(!strcmp(found, value));
    }
    put(two, "row0", "other");
    get(one, "row0", found);
    CHECK(!strcmp(found, "0"));
    FDBDatabase *more[MOST], *refused;
    for (int i = 0; i < MOST - 2; i++) {
        snprintf(value, sizeof value, "more:%d@h:1", i);
        more[i] = named(value);
        fdb_database_destroy(more[i]);
    }
    SAME(fdb_create_database_from_connection_string("more:still@127.0.0.1:1", &refused), 2104);
    fdb_database_destroy(again);
    fdb_database_destroy(two);
    fdb_database_destroy(moved);
    stop(one);
    return 0;
}
