/*
 * The C interface of FoundationDB 7.4, for programs of API versions 200 to 740, and of 8.0, for version 800.
 *
 *     #define FDB_API_VERSION 740
 *     #include <foundationdb/fdb_c.h>
 *
 * Keys, values and texts that a call takes are copied before it returns. A function that returns an
 * FDBFuture never returns NULL, and reports its error through the future. The caller destroys what it is
 * given: futures, results, databases, tenants and transactions, each with its own function and in any order.
 * What is read out of a future or a result belongs to it, and is valid until that is destroyed or released.
 */

#ifndef FDB_C_H
#define FDB_C_H

#include "fdb_c_apiversion.g.h"

#if defined(FDB_USE_LATEST_API_VERSION)
#define FDB_API_VERSION FDB_LATEST_API_VERSION
#elif defined(FDB_USE_LATEST_BINDINGS_API_VERSION)
#define FDB_API_VERSION FDB_LATEST_BINDINGS_API_VERSION
#endif

#if !defined(FDB_API_VERSION)
#error "Define FDB_API_VERSION before fdb_c.h is included: 200 to 800"
#elif FDB_API_VERSION < 200
#error "FDB_API_VERSION is below 200, the oldest version that this library speaks"
#elif FDB_API_VERSION > FDB_LATEST_API_VERSION
#error "FDB_API_VERSION is above 800, the newest version of this header"
#endif

#if FDB_API_VERSION < 800
/* The first version with tenants. */
#define FDB_API_VERSION_TENANT_API_RELEASED 720
#endif

/* A program may define these two itself. */
#ifndef DLLEXPORT
#define DLLEXPORT
#endif
#ifndef WARN_UNUSED_RESULT
#ifdef __GNUG__
#define WARN_UNUSED_RESULT __attribute__((warn_unused_result))
#else
#define WARN_UNUSED_RESULT
#endif
#endif

#include <stdint.h>

#include "fdb_c_options.g.h"
#include "fdb_c_types.h"

/*
 * A function that FDB_API_VERSION no longer has is a macro that does not compile. Without it C compilers may
 * take a call for that of an undeclared function, which the library has, and which ends the program.
 */
#define This_FoundationDB_API_function_is_removed_at_this_FDB_API_VERSION() (= =)
#define FDB_REMOVED_FUNCTION This_FoundationDB_API_function_is_removed_at_this_FDB_API_VERSION(0)

#ifdef __cplusplus
extern "C" {
#endif

/* --- Errors and versions --- */

/* A text for an error code. It is never freed. */
DLLEXPORT const char *fdb_get_error(fdb_error_t code);

/* Whether an FDBErrorPredicate holds for an error code. */
DLLEXPORT fdb_bool_t fdb_error_predicate(int predicate, fdb_error_t code);

/* Comes first in a program, once. The second takes the newest version of the library if that is lower. */
#define fdb_select_api_version(v) fdb_select_api_version_impl(v, FDB_API_VERSION)
#define fdb_select_api_version_capped(v)                                                                     \
    fdb_select_api_version_impl(                                                                             \
        v, FDB_API_VERSION < fdb_get_max_api_version() ? FDB_API_VERSION : fdb_get_max_api_version())
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_select_api_version_impl(int runtime_version, int header_version);

DLLEXPORT int fdb_get_max_api_version(void);

/* Release, source and protocol, separated by commas. It is never freed. */
DLLEXPORT const char *fdb_get_client_version(void);

/* --- The network: one thread of the program runs it --- */

DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_network_set_option(FDBNetworkOption option, const uint8_t *value,
                                                                int value_length);

DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_setup_network(void);

/* Returns after fdb_stop_network. The network cannot run again in this process. */
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_run_network(void);

/* Join the thread of fdb_run_network after this. */
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_stop_network(void);

/* The hook is called on the network thread, before fdb_run_network returns. */
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_add_network_thread_completion_hook(void (*hook)(void *),
                                                                                void *parameter);

/* --- What results consist of. Lengths are in bytes. --- */

#pragma pack(push, 4)
typedef struct key {
    const uint8_t *key;
    int key_length;
} FDBKey;

#if FDB_API_VERSION >= 630
typedef struct keyvalue {
    const uint8_t *key;
    int key_length;
    const uint8_t *value;
    int value_length;
} FDBKeyValue;
#else
typedef struct keyvalue {
    const void *key;
    int key_length;
    const void *value;
    int value_length;
} FDBKeyValue;
#endif

typedef struct keyrange {
    const uint8_t *begin_key;
    int begin_key_length;
    const uint8_t *end_key;
    int end_key_length;
} FDBKeyRange;
#pragma pack(pop)

typedef struct keyselector {
    FDBKey key;
    fdb_bool_t orEqual;
    int offset;
} FDBKeySelector;

/* The range that a row maps to, and its m_size rows. */
typedef struct getrangereqandresult {
    FDBKeySelector begin;
    FDBKeySelector end;
    FDBKeyValue *data;
    int m_size, m_capacity;
} FDBGetRangeReqAndResult;

/* The buffer is the client's own. */
typedef struct mappedkeyvalue {
    FDBKey key;
    FDBKey value;
    FDBGetRangeReqAndResult getRange;
    unsigned char buffer[32];
} FDBMappedKeyValue;

#if FDB_API_VERSION >= 800
/* --- Streams of changes --- */

/* The type of an FDBCdcMutation: a mutation, or one of the two that are no atomic operation. */
typedef enum {
    FDB_CDC_MUTATION_TYPE_SET_VALUE = 0,
    FDB_CDC_MUTATION_TYPE_CLEAR_RANGE = 1,
    FDB_CDC_MUTATION_TYPE_ADD = 2,
    FDB_CDC_MUTATION_TYPE_AND = 6,
    FDB_CDC_MUTATION_TYPE_OR = 7,
    FDB_CDC_MUTATION_TYPE_XOR = 8,
    FDB_CDC_MUTATION_TYPE_APPEND_IF_FITS = 9,
    FDB_CDC_MUTATION_TYPE_MAX = 12,
    FDB_CDC_MUTATION_TYPE_MIN = 13,
    FDB_CDC_MUTATION_TYPE_SET_VERSIONSTAMPED_KEY = 14,
    FDB_CDC_MUTATION_TYPE_SET_VERSIONSTAMPED_VALUE = 15,
    FDB_CDC_MUTATION_TYPE_BYTE_MIN = 16,
    FDB_CDC_MUTATION_TYPE_BYTE_MAX = 17,
    FDB_CDC_MUTATION_TYPE_MIN_V2 = 18,
    FDB_CDC_MUTATION_TYPE_AND_V2 = 19,
    FDB_CDC_MUTATION_TYPE_COMPARE_AND_CLEAR = 20
} FDBCdcMutationType;

#pragma pack(push, 4)
typedef struct cdc_stream_info {
    FDBKey name;
    uint64_t stream_id;
    FDBKeyRange key_range;
    int64_t min_version;
} FDBCdcStreamInfo;

/* A key and its value or operand, or the begin and the end of a range. */
typedef struct cdc_mutation {
    uint8_t type;
    const uint8_t *param1;
    int param1_length;
    const uint8_t *param2;
    int param2_length;
} FDBCdcMutation;

/* What was committed at a version. */
typedef struct cdc_versioned_mutations {
    int64_t version;
    const FDBCdcMutation *mutations;
    int mutation_count;
} FDBCdcVersionedMutations;
#pragma pack(pop)
#endif

/* --- Blob granules: version 800 has the types only --- */

#pragma pack(push, 4)
typedef struct granulesummary {
    FDBKeyRange key_range;
    int64_t snapshot_version;
    int64_t snapshot_size;
    int64_t delta_version;
    int64_t delta_size;
} FDBGranuleSummary;
#pragma pack(pop)

/* How a program reads the files. Each function gets userContext as its last argument. */
typedef struct readgranulecontext {
    void *userContext;
    /* Begins to load a part of a file, and returns a number for it that is in use only once. */
    int64_t (*start_load_f)(const char *filename, int filename_length, int64_t offset, int64_t length,
                            int64_t full_file_length, void *context);
    /* Returns what was loaded, which stays the program's. */
    uint8_t *(*get_load_f)(int64_t load, void *context);
    /* The data is not needed any more. */
    void (*free_load_f)(int64_t load, void *context);
    /* Whether no file is read. */
    fdb_bool_t debugNoMaterialize;
    /* Granules that are loaded at a time. */
    int granuleParallelism;
} FDBReadBlobGranuleContext;

/* The type of an FDBBGMutation. */
typedef enum { FDB_BG_MUTATION_TYPE_SET_VALUE = 0, FDB_BG_MUTATION_TYPE_CLEAR_RANGE = 1 } FDBBGMutationType;

#pragma pack(push, 4)
typedef struct bgtenantprefix {
    fdb_bool_t present;
    FDBKey prefix;
} FDBBGTenantPrefix;

typedef struct bgencryptionkey {
    int64_t domain_id;
    uint64_t base_key_id;
    uint32_t base_kcv;
    uint64_t random_salt;
    FDBKey base_key;
} FDBBGEncryptionKey;

typedef struct bgencryptionctx {
    fdb_bool_t present;
    FDBBGEncryptionKey textKey;
    uint32_t textKCV;
    FDBBGEncryptionKey headerKey;
    uint32_t headerKCV;
    FDBKey iv;
} FDBBGEncryptionCtx;

typedef struct bgfilepointer {
    const uint8_t *filename_ptr;
    int filename_length;
    int64_t file_offset;
    int64_t file_length;
    int64_t full_file_length;
    int64_t file_version;
    FDBBGEncryptionCtx encryption_ctx;
} FDBBGFilePointer;

typedef struct bgmutation {
    uint8_t type;
    int64_t version;
    const uint8_t *param1_ptr;
    int param1_length;
    const uint8_t *param2_ptr;
    int param2_length;
} FDBBGMutation;

typedef struct bgfiledescription {
    FDBKeyRange key_range;
    fdb_bool_t snapshot_present;
    FDBBGFilePointer snapshot_file_pointer;
    int delta_file_count;
    FDBBGFilePointer *delta_files;
    int memory_mutation_count;
    FDBBGMutation *memory_mutations;
    FDBBGTenantPrefix tenant_prefix;
} FDBBGFileDescription;
#pragma pack(pop)

/* --- Futures --- */

/* A future that is not ready ends with error 1101. */
DLLEXPORT void fdb_future_cancel(FDBFuture *f);

/*
 * Gives one read of the result back. After as many as there were reads the result is freed, pointers into it
 * end, and only the error can be read.
 */
DLLEXPORT void fdb_future_release_memory(FDBFuture *f);

/* Frees the future and its result, and cancels it if it is not ready. */
DLLEXPORT void fdb_future_destroy(FDBFuture *f);

/* Not on the network thread. The error is that of the wait, not of the future. */
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_block_until_ready(FDBFuture *f);

DLLEXPORT fdb_bool_t fdb_future_is_ready(FDBFuture *f);

/* Called once: at once if the future is ready, on the network thread otherwise. It must not block. */
typedef void (*FDBCallback)(FDBFuture *future, void *parameter);
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_set_callback(FDBFuture *f, FDBCallback callback, void *parameter);

/* What the call ended with. */
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_error(FDBFuture *f);

/* Each of these reads one type of result of a future that is ready. With an error it sets nothing. */
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_bool(FDBFuture *f, fdb_bool_t *out);
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_int64(FDBFuture *f, int64_t *out);
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_uint64(FDBFuture *f, uint64_t *out);
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_double(FDBFuture *f, double *out);
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_key(FDBFuture *f, const uint8_t **out_key, int *out_length);
/* The value is set only if the key has one. */
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_value(FDBFuture *f, fdb_bool_t *out_present,
                                                              const uint8_t **out_value, int *out_length);
/* out_more is whether the range may have more rows than these. */
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_keyvalue_array(FDBFuture *f, const FDBKeyValue **out_rows,
                                                                       int *out_count, fdb_bool_t *out_more);
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_mappedkeyvalue_array(FDBFuture *f,
                                                                             const FDBMappedKeyValue **out_rows,
                                                                             int *out_count, fdb_bool_t *out_more);
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_key_array(FDBFuture *f, const FDBKey **out_keys,
                                                                  int *out_count);
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_string_array(FDBFuture *f, const char ***out_strings,
                                                                     int *out_count);
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_keyrange_array(FDBFuture *f, const FDBKeyRange **out_ranges,
                                                                       int *out_count);
#if FDB_API_VERSION < 800
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_granule_summary_array(FDBFuture *f,
                                                                              const FDBGranuleSummary **out_summaries,
                                                                              int *out_count);
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_readbg_get_descriptions(FDBFuture *f, FDBBGFileDescription **out,
                                                                            int *out_count);
#else
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_cdc_stream_info_array(FDBFuture *f,
                                                                              const FDBCdcStreamInfo **out_streams,
                                                                              int *out_count);
/* Each call gives a handle, which the caller destroys. */
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_cdc_consumer(FDBFuture *f, FDBCdcConsumer **out_consumer);
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_cdc_versioned_mutations(
    FDBFuture *f, const FDBCdcVersionedMutations **out_mutations, int *out_count, int64_t *out_consumed_version);
#endif

/* --- Results: as futures, but there is no wait --- */

/* Frees the result and what was read out of it. */
DLLEXPORT void fdb_result_destroy(FDBResult *r);

DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_result_get_keyvalue_array(FDBResult *r, const FDBKeyValue **out_rows,
                                                                       int *out_count, fdb_bool_t *out_more);
#if FDB_API_VERSION < 800
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_result_get_bg_mutations_array(FDBResult *r,
                                                                           const FDBBGMutation **out_mutations,
                                                                           int *out_count);

/* The content of a file of blob granules, of which the program has the bytes. */
DLLEXPORT WARN_UNUSED_RESULT FDBResult *fdb_readbg_parse_snapshot_file(const uint8_t *data, int length,
                                                                       const FDBBGTenantPrefix *tenant_prefix,
                                                                       const FDBBGEncryptionCtx *encryption);
DLLEXPORT WARN_UNUSED_RESULT FDBResult *fdb_readbg_parse_delta_file(const uint8_t *data, int length,
                                                                    const FDBBGTenantPrefix *tenant_prefix,
                                                                    const FDBBGEncryptionCtx *encryption);
#endif

/* --- Databases --- */

/* NULL stands for the default cluster file. */
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_create_database(const char *cluster_file, FDBDatabase **out_database);

/* Takes what would be in a cluster file. */
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_create_database_from_connection_string(const char *connection,
                                                                                    FDBDatabase **out_database);

DLLEXPORT void fdb_database_destroy(FDBDatabase *d);

DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_database_set_option(FDBDatabase *d, FDBDatabaseOption option,
                                                                 const uint8_t *value, int value_length);

DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_database_open_tenant(FDBDatabase *d, const uint8_t *name,
                                                                  int name_length, FDBTenant **out_tenant);

DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_database_create_transaction(FDBDatabase *d,
                                                                         FDBTransaction **out_transaction);

/* How busy the network thread is: 0 to 1. */
DLLEXPORT WARN_UNUSED_RESULT double fdb_database_get_main_thread_busyness(FDBDatabase *d);

/* A uint64. Ready as soon as the protocol is not the expected one; 0 expects none. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_get_server_protocol(FDBDatabase *d, uint64_t expected);

/* A key, which is JSON. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_get_client_status(FDBDatabase *d);

/* For operators. The duration is in seconds. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_reboot_worker(FDBDatabase *d, const uint8_t *address,
                                                                   int address_length, fdb_bool_t check, int duration);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_force_recovery_with_data_loss(FDBDatabase *d,
                                                                                   const uint8_t *data_center,
                                                                                   int data_center_length);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_create_snapshot(FDBDatabase *d, const uint8_t *uid,
                                                                     int uid_length, const uint8_t *command,
                                                                     int command_length);

#if FDB_API_VERSION < 800
/* Blob granules of the ranges from begin to end, which is not included. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_purge_blob_granules(FDBDatabase *d, const uint8_t *begin,
                                                                         int begin_length, const uint8_t *end,
                                                                         int end_length, int64_t version,
                                                                         fdb_bool_t force);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_wait_purge_granules_complete(FDBDatabase *d,
                                                                                  const uint8_t *purge_key,
                                                                                  int purge_key_length);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_blobbify_range(FDBDatabase *d, const uint8_t *begin,
                                                                    int begin_length, const uint8_t *end,
                                                                    int end_length);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_blobbify_range_blocking(FDBDatabase *d, const uint8_t *begin,
                                                                             int begin_length, const uint8_t *end,
                                                                             int end_length);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_unblobbify_range(FDBDatabase *d, const uint8_t *begin,
                                                                      int begin_length, const uint8_t *end,
                                                                      int end_length);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_list_blobbified_ranges(FDBDatabase *d, const uint8_t *begin,
                                                                            int begin_length, const uint8_t *end,
                                                                            int end_length, int limit);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_verify_blob_range(FDBDatabase *d, const uint8_t *begin,
                                                                       int begin_length, const uint8_t *end,
                                                                       int end_length, int64_t version);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_flush_blob_range(FDBDatabase *d, const uint8_t *begin,
                                                                      int begin_length, const uint8_t *end,
                                                                      int end_length, fdb_bool_t compact,
                                                                      int64_t version);
#else
/* Streams of the changes of a range. A registered stream has a number, a uint64. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_register_cdc_stream(FDBDatabase *d, const uint8_t *name,
                                                                         int name_length, const uint8_t *begin,
                                                                         int begin_length, const uint8_t *end,
                                                                         int end_length);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_remove_cdc_stream(FDBDatabase *d, const uint8_t *name,
                                                                       int name_length);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_list_cdc_streams(FDBDatabase *d);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_create_cdc_consumer(FDBDatabase *d, const uint8_t *name,
                                                                         int name_length);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_database_resume_cdc_consumer(FDBDatabase *d, uint64_t stream_id,
                                                                         int64_t consumed_version);

DLLEXPORT void fdb_cdc_consumer_destroy(FDBCdcConsumer *consumer);
/* Versioned mutations. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_cdc_consumer_consume(FDBCdcConsumer *consumer);
/* The stream need not keep what was consumed. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_cdc_consumer_acknowledge(FDBCdcConsumer *consumer);
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_cdc_consumer_get_position(FDBCdcConsumer *consumer,
                                                                       uint64_t *out_stream_id,
                                                                       int64_t *out_consumed_version);
#endif

/* --- Tenants: with version 800 the library has them, and a call ends the program --- */

DLLEXPORT void fdb_tenant_destroy(FDBTenant *tenant);

DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_tenant_create_transaction(FDBTenant *tenant,
                                                                       FDBTransaction **out_transaction);

/* An int64. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_tenant_get_id(FDBTenant *tenant);

#if FDB_API_VERSION < 800
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_tenant_purge_blob_granules(FDBTenant *tenant, const uint8_t *begin,
                                                                       int begin_length, const uint8_t *end,
                                                                       int end_length, int64_t version,
                                                                       fdb_bool_t force);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_tenant_wait_purge_granules_complete(FDBTenant *tenant,
                                                                                const uint8_t *purge_key,
                                                                                int purge_key_length);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_tenant_blobbify_range(FDBTenant *tenant, const uint8_t *begin,
                                                                  int begin_length, const uint8_t *end, int end_length);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_tenant_blobbify_range_blocking(FDBTenant *tenant, const uint8_t *begin,
                                                                           int begin_length, const uint8_t *end,
                                                                           int end_length);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_tenant_unblobbify_range(FDBTenant *tenant, const uint8_t *begin,
                                                                    int begin_length, const uint8_t *end,
                                                                    int end_length);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_tenant_list_blobbified_ranges(FDBTenant *tenant, const uint8_t *begin,
                                                                          int begin_length, const uint8_t *end,
                                                                          int end_length, int limit);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_tenant_verify_blob_range(FDBTenant *tenant, const uint8_t *begin,
                                                                     int begin_length, const uint8_t *end,
                                                                     int end_length, int64_t version);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_tenant_flush_blob_range(FDBTenant *tenant, const uint8_t *begin,
                                                                    int begin_length, const uint8_t *end,
                                                                    int end_length, fdb_bool_t compact,
                                                                    int64_t version);
#endif

/* --- Transactions --- */

/* Outstanding calls end with error 1025. */
DLLEXPORT void fdb_transaction_destroy(FDBTransaction *tr);

/* Outstanding and later calls end with error 1025, until a reset. */
DLLEXPORT void fdb_transaction_cancel(FDBTransaction *tr);

/* The transaction is as a new one; outstanding calls end with error 1025. */
DLLEXPORT void fdb_transaction_reset(FDBTransaction *tr);

DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_transaction_set_option(FDBTransaction *tr, FDBTransactionOption option,
                                                                    const uint8_t *value, int value_length);

DLLEXPORT void fdb_transaction_set_read_version(FDBTransaction *tr, int64_t version);

/* An int64. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_get_read_version(FDBTransaction *tr);

/* Reads. A snapshot read is in no conflict with writes of others. */

/* A value. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_get(FDBTransaction *tr, const uint8_t *key, int key_length,
                                                            fdb_bool_t snapshot);

/*
 * Key selectors, for the arguments from a key to an offset. They start at the last key of the database that
 * is less than the given one (or equal to it, with or_equal), and move on by as many keys as the offset says.
 */
#define FDB_KEYSEL_LAST_LESS_THAN(k, l) k, l, 0, 0
#define FDB_KEYSEL_LAST_LESS_OR_EQUAL(k, l) k, l, 1, 0
#define FDB_KEYSEL_FIRST_GREATER_THAN(k, l) k, l, 1, 1
#define FDB_KEYSEL_FIRST_GREATER_OR_EQUAL(k, l) k, l, 0, 1

/* A key: empty or FF if none is found before or after. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_get_key(FDBTransaction *tr, const uint8_t *key, int key_length,
                                                                fdb_bool_t or_equal, int offset, fdb_bool_t snapshot);

/* Rows of the keys from begin to end, which is not included. limit and target_bytes are 0 for none. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_get_range(
    FDBTransaction *tr, const uint8_t *begin, int begin_length, fdb_bool_t begin_or_equal, int begin_offset,
    const uint8_t *end, int end_length, fdb_bool_t end_or_equal, int end_offset, int limit, int target_bytes,
    FDBStreamingMode mode, int iteration, fdb_bool_t snapshot, fdb_bool_t reverse);

/* Mapped rows. The mapper is a packed tuple. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_get_mapped_range(
    FDBTransaction *tr, const uint8_t *begin, int begin_length, fdb_bool_t begin_or_equal, int begin_offset,
    const uint8_t *end, int end_length, fdb_bool_t end_or_equal, int end_offset, const uint8_t *mapper,
    int mapper_length, int limit, int target_bytes, FDBStreamingMode mode, int iteration, fdb_bool_t snapshot,
    fdb_bool_t reverse);

/* Strings: the addresses of the servers that have the key. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_get_addresses_for_key(FDBTransaction *tr, const uint8_t *key,
                                                                              int key_length);

/* An int64: about how many bytes a range has. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_get_estimated_range_size_bytes(FDBTransaction *tr,
                                                                                       const uint8_t *begin,
                                                                                       int begin_length,
                                                                                       const uint8_t *end,
                                                                                       int end_length);

/* Keys that divide a range into parts of about chunk_size bytes. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_get_range_split_points(FDBTransaction *tr,
                                                                               const uint8_t *begin, int begin_length,
                                                                               const uint8_t *end, int end_length,
                                                                               int64_t chunk_size);
#if FDB_API_VERSION >= 800
/* At most so many of them, besides the ends of the range. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_get_range_split_points_with_limit(
    FDBTransaction *tr, const uint8_t *begin, int begin_length, const uint8_t *end, int end_length, int64_t chunk_size,
    int limit);
#endif

/* Ready when the key has another value after the commit. Resets do not end it then. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_watch(FDBTransaction *tr, const uint8_t *key, int key_length);

/* Writes. Their errors are those of the commit. */

DLLEXPORT void fdb_transaction_set(FDBTransaction *tr, const uint8_t *key, int key_length, const uint8_t *value,
                                   int value_length);

DLLEXPORT void fdb_transaction_atomic_op(FDBTransaction *tr, const uint8_t *key, int key_length,
                                         const uint8_t *operand, int operand_length, FDBMutationType type);

DLLEXPORT void fdb_transaction_clear(FDBTransaction *tr, const uint8_t *key, int key_length);

/* From begin to end, which is not included. */
DLLEXPORT void fdb_transaction_clear_range(FDBTransaction *tr, const uint8_t *begin, int begin_length,
                                           const uint8_t *end, int end_length);

DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_transaction_add_conflict_range(FDBTransaction *tr, const uint8_t *begin,
                                                                            int begin_length, const uint8_t *end,
                                                                            int end_length, FDBConflictRangeType type);

/* The end of a transaction. */

/* No value: the error says whether it is committed. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_commit(FDBTransaction *tr);

/* After an error: waits, and resets the transaction for another attempt, or fails with the same error. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_on_error(FDBTransaction *tr, fdb_error_t error);

/* After the commit; -1 if there was nothing to commit. */
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_transaction_get_committed_version(FDBTransaction *tr,
                                                                               int64_t *out_version);

/* A key of 10 bytes. Asked for before the commit, and ready when it is. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_get_versionstamp(FDBTransaction *tr);

/* An int64: about how many bytes a commit would send. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_get_approximate_size(FDBTransaction *tr);

/* A double: seconds. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_get_tag_throttled_duration(FDBTransaction *tr);

/* An int64. */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_get_total_cost(FDBTransaction *tr);

#if FDB_API_VERSION < 800
/* Blob granules. A version of -2 is that of the transaction. */

DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_get_blob_granule_ranges(FDBTransaction *tr,
                                                                                const uint8_t *begin, int begin_length,
                                                                                const uint8_t *end, int end_length,
                                                                                int limit);
DLLEXPORT WARN_UNUSED_RESULT FDBResult *fdb_transaction_read_blob_granules(FDBTransaction *tr, const uint8_t *begin,
                                                                           int begin_length, const uint8_t *end,
                                                                           int end_length, int64_t begin_version,
                                                                           int64_t read_version,
                                                                           FDBReadBlobGranuleContext context);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_summarize_blob_granules(FDBTransaction *tr,
                                                                                const uint8_t *begin, int begin_length,
                                                                                const uint8_t *end, int end_length,
                                                                                int64_t version, int limit);
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_transaction_read_blob_granules_description(
    FDBTransaction *tr, const uint8_t *begin, int begin_length, const uint8_t *end, int end_length,
    int64_t begin_version, int64_t read_version, int64_t *out_read_version);
#endif

/* --- What older versions have --- */

#if FDB_API_VERSION < 620
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_version(FDBFuture *f, int64_t *out_version);
#elif FDB_API_VERSION < 800
#define fdb_future_get_version(f, out) FDB_REMOVED_FUNCTION
#endif

#if FDB_API_VERSION < 610 || defined(FDB_INCLUDE_LEGACY_TYPES)
/* A cluster has no option. */
typedef enum { FDB_CLUSTER_OPTION_DUMMY_DO_NOT_USE = -1 } FDBClusterOption;
#endif

/* Databases come from clusters, and both from futures. The caller destroys them. */
#if FDB_API_VERSION < 610
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_create_cluster(const char *cluster_file);
DLLEXPORT void fdb_cluster_destroy(FDBCluster *c);
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_cluster_set_option(FDBCluster *c, FDBClusterOption option,
                                                                const uint8_t *value, int value_length);
/* The name of the database is "DB". */
DLLEXPORT WARN_UNUSED_RESULT FDBFuture *fdb_cluster_create_database(FDBCluster *c, const uint8_t *name,
                                                                    int name_length);
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_cluster(FDBFuture *f, FDBCluster **out_cluster);
DLLEXPORT WARN_UNUSED_RESULT fdb_error_t fdb_future_get_database(FDBFuture *f, FDBDatabase **out_database);
#else
#define fdb_create_cluster(path) FDB_REMOVED_FUNCTION
#define fdb_cluster_destroy(c) FDB_REMOVED_FUNCTION
#define fdb_cluster_set_option(c, option, value, length) FDB_REMOVED_FUNCTION
#define fdb_cluster_create_database(c, name, length) FDB_REMOVED_FUNCTION
#define fdb_future_get_cluster(f, out) FDB_REMOVED_FUNCTION
#define fdb_future_get_database(f, out) FDB_REMOVED_FUNCTION
#endif

/* Removed before version 200. */
#define fdb_future_is_error(f) FDB_REMOVED_FUNCTION
#define fdb_transaction_get_range_selector(tr, begin, begin_length, begin_or_equal, begin_offset, end, end_length, \
                                           end_or_equal, end_offset, limit)                                       \
    FDB_REMOVED_FUNCTION

#ifdef __cplusplus
}
#endif

#endif
