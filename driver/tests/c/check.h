// What the C programs of the tests share: checks, and a network thread.

#ifndef FDB_API_VERSION
#define FDB_API_VERSION 740
#endif
#include <fdb_c.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);            \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

#define SAME(found, expected)                                                                  \
    do {                                                                                       \
        long long found_ = (found), expected_ = (expected);                                    \
        if (found_ != expected_) {                                                             \
            fprintf(stderr, "%s:%d: %s is %lld and not %lld\n", __FILE__, __LINE__, #found,    \
                    found_, expected_);                                                        \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

#define KEY(text) (const uint8_t *)(text), (int)strlen(text)

static pthread_t network;

static inline void *run_network(void *unused) {
    (void)unused;
    SAME(fdb_run_network(), 0);
    return NULL;
}

// Selects the version, starts the network thread and opens a database.
static inline FDBDatabase *start(const char *cluster_file) {
    FDBDatabase *db = NULL;
    SAME(fdb_select_api_version(FDB_API_VERSION), 0);
    SAME(fdb_setup_network(), 0);
    SAME(pthread_create(&network, NULL, run_network, NULL), 0);
    SAME(fdb_create_database(cluster_file, &db), 0);
    return db;
}

static inline void stop(FDBDatabase *db) {
    fdb_database_destroy(db);
    SAME(fdb_stop_network(), 0);
    SAME(pthread_join(network, NULL), 0);
}

static inline FDBTransaction *begin(FDBDatabase *db) {
    FDBTransaction *tr = NULL;
    SAME(fdb_database_create_transaction(db, &tr), 0);
    return tr;
}

// Waits for a future, and returns its error.
static inline fdb_error_t wait_for(FDBFuture *f) {
    SAME(fdb_future_block_until_ready(f), 0);
    return fdb_future_get_error(f);
}

// Waits for a future, destroys it, and returns its error.
static inline fdb_error_t finish(FDBFuture *f) {
    fdb_error_t error = wait_for(f);
    fdb_future_destroy(f);
    return error;
}

// Whether the key has this value, or none if it is null.
static inline int has(FDBTransaction *tr, const char *key, const char *value) {
    FDBFuture *f = fdb_transaction_get(tr, KEY(key), 0);
    SAME(wait_for(f), 0);
    fdb_bool_t present;
    const uint8_t *found = NULL;
    int length = 0;
    SAME(fdb_future_get_value(f, &present, &found, &length), 0);
    int same = value ? present && length == (int)strlen(value) && !memcmp(found, value, length) : !present;
    fdb_future_destroy(f);
    return same;
}
