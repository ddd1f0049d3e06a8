// What differs between the versions of the API. Compiled for several of them.

#include "check.h"

static int64_t version_of(FDBFuture *f) {
    int64_t version = 0;
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_int64(f, &version), 0);
    fdb_future_destroy(f);
    return version;
}

static double seconds(FDBFuture *f) {
    double seconds = -1;
    SAME(wait_for(f), 0);
    SAME(fdb_future_get_double(f, &seconds), 0);
    fdb_future_destroy(f);
    return seconds;
}

int main(void) {
    FDBDatabase *db = start(NULL);
    FDBTransaction *tr = begin(db), *other = begin(db);
    SAME(fdb_select_api_version(FDB_API_VERSION), 2201);

    // The read version after a commit.
    int64_t committed, before = version_of(fdb_transaction_get_read_version(tr));
    fdb_transaction_set(tr, KEY("a"), KEY("b"));
    SAME(finish(fdb_transaction_commit(tr)), 0);
    SAME(fdb_transaction_get_committed_version(tr, &committed), 0);
    int64_t after = version_of(fdb_transaction_get_read_version(tr));
    if (FDB_API_VERSION < 700) CHECK(after >= committed);
    else SAME(after, before);
    SAME(version_of(fdb_transaction_get_read_version(tr)), after);
    CHECK((version_of(fdb_transaction_get_total_cost(tr)) == 0) == (FDB_API_VERSION < 700));
    CHECK(seconds(fdb_transaction_get_tag_throttled_duration(tr)) == 0);
    // It must be reset all the same.
    SAME(finish(fdb_transaction_get(tr, KEY("a"), 0)), 2017);
    SAME(finish(fdb_transaction_get_read_version(tr)), 2017);
    fdb_transaction_reset(tr);
    CHECK(has(tr, "a", "b"));

    // And after a commit that fails.
    before = version_of(fdb_transaction_get_read_version(tr));
    fdb_transaction_set(other, KEY("a"), KEY("c"));
    SAME(finish(fdb_transaction_commit(other)), 0);
    fdb_transaction_set(tr, KEY("a"), KEY("d"));
    SAME(finish(fdb_transaction_commit(tr)), 1020);
    after = version_of(fdb_transaction_get_read_version(tr));
    CHECK((after > before) == (FDB_API_VERSION < 700));
    SAME(finish(fdb_transaction_on_error(tr, 1020)), 0);
    CHECK(has(tr, "a", "c"));

    // Special keys.
    fdb_error_t refused = FDB_API_VERSION < 700 ? 2004 : 2114;
    fdb_transaction_reset(tr);
    fdb_transaction_set(tr, KEY("\xff\xff/management/options/x"), KEY(""));
    SAME(finish(fdb_transaction_commit(tr)), refused);
    fdb_transaction_reset(tr);
    fdb_transaction_clear(tr, KEY("\xff\xff/management/options/x"));
    SAME(finish(fdb_transaction_commit(tr)), refused);
    fdb_transaction_reset(tr);
    fdb_transaction_clear_range(tr, KEY("\xff\xff/a"), KEY("\xff\xff/b"));
    SAME(finish(fdb_transaction_commit(tr)), refused);
    fdb_transaction_reset(tr);

    // The cache of read versions.
    SAME(fdb_transaction_set_option(tr, FDB_TR_OPTION_USE_GRV_CACHE, NULL, 0), 0);
    SAME(finish(fdb_transaction_get_read_version(tr)), FDB_API_VERSION < 720 ? 0 : 2007);
    fdb_transaction_destroy(tr);
    fdb_transaction_destroy(other);
    stop(db);
    puts("passed");
    return 0;
}
