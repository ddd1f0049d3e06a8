// Orders of calls that FoundationDB's library refuses, or that crash it. The argument names one. What crashes it must not
// return here.

#include "check.h"

static void only_numbers_and_names_come_first(void) {
    SAME(fdb_get_max_api_version(), 800);
    CHECK(fdb_get_error(2200));
    SAME(fdb_error_predicate(FDB_ERROR_PREDICATE_RETRYABLE, 1020), 1);
}

static void client_version_first(void) { fdb_get_client_version(); }

// FoundationDB's library exports it, and its header leaves it out.
void fdb_use_future_protocol_version(void);

static void protocol_first(void) { fdb_use_future_protocol_version(); }

static void set_up_first(void) { fdb_setup_network(); }

static void option_first(void) { fdb_network_set_option(FDB_NET_OPTION_TRACE_ENABLE, NULL, 0); }

// They do not reach the client.
static void options_of_the_chooser_first(void) {
    SAME(fdb_network_set_option(9999, NULL, 0), 2007);
    SAME(fdb_network_set_option(FDB_NET_OPTION_DISABLE_MULTI_VERSION_CLIENT_API, KEY("x")), 2006);
    SAME(fdb_network_set_option(FDB_NET_OPTION_DISABLE_MULTI_VERSION_CLIENT_API, NULL, 0), 0);
}

static void hook(void *unused) { (void)unused; }

static void refuse_all_of_the_network(void) {
    FDBDatabase *db = NULL;
    SAME(fdb_run_network(), 2008);
    SAME(fdb_stop_network(), 2008);
    SAME(fdb_create_database(NULL, &db), 2008);
    SAME(fdb_create_database_from_connection_string("x:y@127.0.0.1:1", &db), 2008);
    SAME(fdb_add_network_thread_completion_hook(hook, NULL), 2008);
    CHECK(!db);
}

static void network_before_the_version(void) { refuse_all_of_the_network(); }

static void network_before_its_set_up(void) {
    SAME(fdb_select_api_version(740), 0);
    refuse_all_of_the_network();
    SAME(fdb_network_set_option(FDB_NET_OPTION_SUPPORTED_CLIENT_VERSIONS, KEY("x")), 4100);
}

static void version_twice(void) {
    SAME(fdb_select_api_version_impl(740, 730), 2202);
    SAME(fdb_select_api_version(740), 0);
    SAME(fdb_select_api_version(740), 2201);
    SAME(fdb_select_api_version(730), 2201);
    SAME(fdb_select_api_version_impl(740, 730), 2201);
}

static void set_up_twice(void) {
    SAME(fdb_select_api_version(740), 0);
    SAME(fdb_setup_network(), 0);
    SAME(fdb_setup_network(), 2009);
    SAME(fdb_select_api_version(740), 2201);
}

static void options_after_the_set_up(void) {
    uint64_t two = 2;
    SAME(fdb_select_api_version(740), 0);
    SAME(fdb_setup_network(), 0);
    SAME(fdb_network_set_option(FDB_NET_OPTION_DISABLE_MULTI_VERSION_CLIENT_API, NULL, 0), 2007);
    SAME(fdb_network_set_option(FDB_NET_OPTION_DISABLE_MULTI_VERSION_CLIENT_API, KEY("x")), 2006);
    SAME(fdb_network_set_option(FDB_NET_OPTION_CALLBACKS_ON_EXTERNAL_THREADS, NULL, 0), 2007);
    SAME(fdb_network_set_option(FDB_NET_OPTION_DISABLE_LOCAL_CLIENT, NULL, 0), 2007);
    SAME(fdb_network_set_option(FDB_NET_OPTION_CLIENT_THREADS_PER_VERSION, (const uint8_t *)&two, 8), 2007);
    SAME(fdb_network_set_option(FDB_NET_OPTION_DISABLE_CLIENT_BYPASS, NULL, 0), 4100);
    SAME(fdb_network_set_option(FDB_NET_OPTION_EXTERNAL_CLIENT, NULL, 0), 4100);
    // These do not come too late.
    SAME(fdb_network_set_option(FDB_NET_OPTION_TRACE_ENABLE, NULL, 0), 0);
    SAME(fdb_network_set_option(FDB_NET_OPTION_CLIENT_BUGGIFY_ENABLE, NULL, 0), 0);
}

static void stop_before_run(void) {
    FDBDatabase *db = NULL;
    SAME(fdb_select_api_version(740), 0);
    SAME(fdb_setup_network(), 0);
    SAME(fdb_create_database(NULL, &db), 0);
    SAME(fdb_stop_network(), 0);
    SAME(fdb_stop_network(), 0);
    SAME(fdb_run_network(), 0);
    fdb_database_destroy(db);
}

static void run_twice(void) {
    stop(start(NULL));
    SAME(fdb_run_network(), 2025);
    SAME(fdb_stop_network(), 0);
}

#define ORDER(name) {#name, name}

static const struct {
    const char *name;
    void (*run)(void);
} orders[] = {
    ORDER(only_numbers_and_names_come_first),
    ORDER(client_version_first),
    ORDER(protocol_first),
    ORDER(set_up_first),
    ORDER(option_first),
    ORDER(options_of_the_chooser_first),
    ORDER(network_before_the_version),
    ORDER(network_before_its_set_up),
    ORDER(version_twice),
    ORDER(set_up_twice),
    ORDER(options_after_the_set_up),
    ORDER(stop_before_run),
    ORDER(run_twice),
};

int main(int count, char **arguments) {
    for (size_t i = 0; count == 2 && i < sizeof orders / sizeof *orders; i++) {
        if (!strcmp(arguments[1], orders[i].name)) {
            orders[i].run();
            puts("passed");
            return 0;
        }
    }
    return 2;
}
