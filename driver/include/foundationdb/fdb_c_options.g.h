/*
 * The codes of fdb_c.h, which includes this: options, streaming modes, mutations, conflict ranges and
 * predicates of errors.
 *
 * The comment of an option that has a value begins with the kind of value: "integer" is 8 bytes,
 * little-endian; "text" has no NUL at its end. All others are set with NULL and 0.
 */

#ifndef FDB_C_OPTIONS_G_H
#define FDB_C_OPTIONS_G_H

/* Of the process; set before fdb_setup_network. */
typedef enum {
    /* No effect. */
    FDB_NET_OPTION_LOCAL_ADDRESS = 10,
    FDB_NET_OPTION_CLUSTER_FILE = 20,

    /* Text: the folder of the trace files; none for the current one. */
    FDB_NET_OPTION_TRACE_ENABLE = 30,
    /* Integer: the bytes of one trace file, and of all; 0 for no limit. */
    FDB_NET_OPTION_TRACE_ROLL_SIZE = 31,
    FDB_NET_OPTION_TRACE_MAX_LOGS_SIZE = 32,
    /* Text. */
    FDB_NET_OPTION_TRACE_LOG_GROUP = 33,
    /* Text: "xml" or "json". */
    FDB_NET_OPTION_TRACE_FORMAT = 34,
    /* Text: "now" or "realtime". */
    FDB_NET_OPTION_TRACE_CLOCK_SOURCE = 35,
    /* Text: letters, digits and underscores for the names of trace files. */
    FDB_NET_OPTION_TRACE_FILE_IDENTIFIER = 36,
    FDB_NET_OPTION_TRACE_SHARE_AMONG_CLIENT_THREADS = 37,
    FDB_NET_OPTION_TRACE_INITIALIZE_ON_SETUP = 38,
    /* Text: the end of the name of a trace file that is still written. */
    FDB_NET_OPTION_TRACE_PARTIAL_FILE_SUFFIX = 39,

    /* Text: "name=value". */
    FDB_NET_OPTION_KNOB = 40,

    /* Text: a path; no effect. */
    FDB_NET_OPTION_TLS_PLUGIN = 41,
    /* The certificates, the key and the authorities of TLS, each as bytes or as text with a path. */
    FDB_NET_OPTION_TLS_CERT_BYTES = 42,
    FDB_NET_OPTION_TLS_CERT_PATH = 43,
    FDB_NET_OPTION_TLS_KEY_BYTES = 45,
    FDB_NET_OPTION_TLS_KEY_PATH = 46,
    /* Bytes: what the certificates of others must satisfy. */
    FDB_NET_OPTION_TLS_VERIFY_PEERS = 47,

    /* Faults in the client itself. */
    FDB_NET_OPTION_BUGGIFY_ENABLE = 48,
    FDB_NET_OPTION_BUGGIFY_DISABLE = 49,
    /* Integer: percent. */
    FDB_NET_OPTION_BUGGIFY_SECTION_ACTIVATED_PROBABILITY = 50,
    FDB_NET_OPTION_BUGGIFY_SECTION_FIRED_PROBABILITY = 51,

    FDB_NET_OPTION_TLS_CA_BYTES = 52,
    FDB_NET_OPTION_TLS_CA_PATH = 53,
    /* Text: the password of the key; set before the key. */
    FDB_NET_OPTION_TLS_PASSWORD = 54,
    FDB_NET_OPTION_TLS_DISABLE_PLAINTEXT_CONNECTION = 55,

    /* The use of other client libraries, for clusters of other releases. */
    FDB_NET_OPTION_DISABLE_MULTI_VERSION_CLIENT_API = 60,
    FDB_NET_OPTION_CALLBACKS_ON_EXTERNAL_THREADS = 61,
    /* Text: the path of a library, and of a folder with libraries. */
    FDB_NET_OPTION_EXTERNAL_CLIENT_LIBRARY = 62,
    FDB_NET_OPTION_EXTERNAL_CLIENT_DIRECTORY = 63,
    FDB_NET_OPTION_DISABLE_LOCAL_CLIENT = 64,
    /* Integer: network threads of each library; with 2 or more this library itself is not used. */
    FDB_NET_OPTION_CLIENT_THREADS_PER_VERSION = 65,
    /* Text: a path. */
    FDB_NET_OPTION_FUTURE_VERSION_CLIENT_LIBRARY = 66,
    FDB_NET_OPTION_RETAIN_CLIENT_LIBRARY_COPIES = 67,
    FDB_NET_OPTION_IGNORE_EXTERNAL_CLIENT_FAILURES = 68,
    FDB_NET_OPTION_FAIL_INCOMPATIBLE_CLIENT = 69,

    FDB_NET_OPTION_DISABLE_CLIENT_STATISTICS_LOGGING = 70,
    /* Two names of one option. */
    FDB_NET_OPTION_ENABLE_SLOW_TASK_PROFILING = 71,
    FDB_NET_OPTION_ENABLE_RUN_LOOP_PROFILING = 71,
    /* USE_GRV_CACHE needs it from version 720. */
    FDB_NET_OPTION_DISABLE_CLIENT_BYPASS = 72,

    /* Requests that fail at random. */
    FDB_NET_OPTION_CLIENT_BUGGIFY_ENABLE = 80,
    FDB_NET_OPTION_CLIENT_BUGGIFY_DISABLE = 81,
    /* Integer: percent. */
    FDB_NET_OPTION_CLIENT_BUGGIFY_SECTION_ACTIVATED_PROBABILITY = 82,
    FDB_NET_OPTION_CLIENT_BUGGIFY_SECTION_FIRED_PROBABILITY = 83,

#if FDB_API_VERSION >= 800
    /* Text: an address of IPv4 or IPv6, for traces. */
    FDB_NET_OPTION_TRACE_IP = 84,
#endif

    /* Text: "none", "log_file" or "network_lossy". */
    FDB_NET_OPTION_DISTRIBUTED_CLIENT_TRACER = 90,
    /* Text: a folder for temporary files. */
    FDB_NET_OPTION_CLIENT_TMP_DIR = 91,

    /* Between client libraries; programs do not set these. */
    FDB_NET_OPTION_SUPPORTED_CLIENT_VERSIONS = 1000,
    FDB_NET_OPTION_EXTERNAL_CLIENT = 1001,
    FDB_NET_OPTION_EXTERNAL_CLIENT_TRANSPORT_ID = 1002
} FDBNetworkOption;

/* Of a database. Those that are called TRANSACTION_ are what its transactions begin with. */
typedef enum {
    /* Integer: entries. */
    FDB_DB_OPTION_LOCATION_CACHE_SIZE = 10,
    /* Integer: watches at a time, 10000 unless set and 1000000 at most. */
    FDB_DB_OPTION_MAX_WATCHES = 20,
    /* Text: where the program runs; nearby servers are preferred. */
    FDB_DB_OPTION_MACHINE_ID = 21,
    FDB_DB_OPTION_DATACENTER_ID = 22,
    /* Whether snapshot reads see what their transaction wrote; they do from version 300. */
    FDB_DB_OPTION_SNAPSHOT_RYW_ENABLE = 26,
    FDB_DB_OPTION_SNAPSHOT_RYW_DISABLE = 27,
    /* Integer: bytes. */
    FDB_DB_OPTION_TRANSACTION_LOGGING_MAX_FIELD_LENGTH = 405,
    /* Integer: milliseconds. */
    FDB_DB_OPTION_TRANSACTION_TIMEOUT = 500,
    /* Integer: how often. */
    FDB_DB_OPTION_TRANSACTION_RETRY_LIMIT = 501,
    /* Integer: milliseconds. */
    FDB_DB_OPTION_TRANSACTION_MAX_RETRY_DELAY = 502,
    /* Integer: bytes. */
    FDB_DB_OPTION_TRANSACTION_SIZE_LIMIT = 503,
    FDB_DB_OPTION_TRANSACTION_CAUSAL_READ_RISKY = 504,
    /* No effect from version 630. */
    FDB_DB_OPTION_TRANSACTION_INCLUDE_PORT_IN_ADDRESS = 505,
    FDB_DB_OPTION_TRANSACTION_AUTOMATIC_IDEMPOTENCY = 506,
    FDB_DB_OPTION_TRANSACTION_BYPASS_UNREADABLE = 700,
    FDB_DB_OPTION_TRANSACTION_USED_DURING_COMMIT_PROTECTION_DISABLE = 701,
    FDB_DB_OPTION_TRANSACTION_REPORT_CONFLICTING_KEYS = 702,
#if FDB_API_VERSION < 800
    FDB_DB_OPTION_USE_CONFIG_DATABASE = 800,
#endif
    /* Integer: percent. */
    FDB_DB_OPTION_TEST_CAUSAL_READ_RISKY = 900
} FDBDatabaseOption;

/* Of a transaction; fdb_transaction_reset removes them. */
typedef enum {
    /* The commit may happen twice after a fault. */
    FDB_TR_OPTION_CAUSAL_WRITE_RISKY = 10,
    /* The read version may be old after a fault. */
    FDB_TR_OPTION_CAUSAL_READ_RISKY = 20,
    FDB_TR_OPTION_CAUSAL_READ_DISABLE = 21,
    /* No effect from version 630. */
    FDB_TR_OPTION_INCLUDE_PORT_IN_ADDRESS = 23,
    /* The next write, of whatever thread, is in no conflict with reads of others. */
    FDB_TR_OPTION_NEXT_WRITE_NO_WRITE_CONFLICT_RANGE = 30,
    /* For FoundationDB's own use. */
    FDB_TR_OPTION_COMMIT_ON_FIRST_PROXY = 40,
    FDB_TR_OPTION_CHECK_WRITES_ENABLE = 50,
    /* Reads do not see what the transaction wrote. Only before its first read or write. */
    FDB_TR_OPTION_READ_YOUR_WRITES_DISABLE = 51,
    /* No effect. */
    FDB_TR_OPTION_READ_AHEAD_DISABLE = 52,
    FDB_TR_OPTION_DURABILITY_DATACENTER = 110,
    FDB_TR_OPTION_DURABILITY_RISKY = 120,
    FDB_TR_OPTION_DURABILITY_DEV_NULL_IS_WEB_SCALE = 130,
    /* Before or after the transactions without an option. */
    FDB_TR_OPTION_PRIORITY_SYSTEM_IMMEDIATE = 200,
    FDB_TR_OPTION_PRIORITY_BATCH = 201,
    FDB_TR_OPTION_INITIALIZE_NEW_DATABASE = 300,
    /* Keys that begin with FF may be read and written, or only read. */
    FDB_TR_OPTION_ACCESS_SYSTEM_KEYS = 301,
    FDB_TR_OPTION_READ_SYSTEM_KEYS = 302,
    /* The keys of all tenants. */
    FDB_TR_OPTION_RAW_ACCESS = 303,
    FDB_TR_OPTION_BYPASS_STORAGE_QUOTA = 304,
    FDB_TR_OPTION_DEBUG_DUMP = 400,
    /* Text: a name. */
    FDB_TR_OPTION_DEBUG_RETRY_LOGGING = 401,
    /* Text: an identifier of 100 bytes at most. The first of the two is the old one. */
    FDB_TR_OPTION_TRANSACTION_LOGGING_ENABLE = 402,
    FDB_TR_OPTION_DEBUG_TRANSACTION_IDENTIFIER = 403,
    /* After DEBUG_TRANSACTION_IDENTIFIER. */
    FDB_TR_OPTION_LOG_TRANSACTION = 404,
    /* Integer: bytes; negative for no limit. */
    FDB_TR_OPTION_TRANSACTION_LOGGING_MAX_FIELD_LENGTH = 405,
    FDB_TR_OPTION_SERVER_REQUEST_TRACING = 406,
    /* Integer: milliseconds; 0 for none. From version 610 fdb_transaction_on_error keeps these three. */
    FDB_TR_OPTION_TIMEOUT = 500,
    /* Integer: how often; -1 for no limit. */
    FDB_TR_OPTION_RETRY_LIMIT = 501,
    /* Integer: milliseconds; 1000 unless set. */
    FDB_TR_OPTION_MAX_RETRY_DELAY = 502,
    /* Integer: bytes, 32 to 10000000. */
    FDB_TR_OPTION_SIZE_LIMIT = 503,
    /* Bytes: 16 to 255 of them. For FoundationDB's own use. */
    FDB_TR_OPTION_IDEMPOTENCY_ID = 504,
    FDB_TR_OPTION_AUTOMATIC_IDEMPOTENCY = 505,
    /* Whether storage servers keep in memory what is read, and how urgent the reads are. */
    FDB_TR_OPTION_READ_SERVER_SIDE_CACHE_ENABLE = 507,
    FDB_TR_OPTION_READ_SERVER_SIDE_CACHE_DISABLE = 508,
    FDB_TR_OPTION_READ_PRIORITY_NORMAL = 509,
    FDB_TR_OPTION_READ_PRIORITY_LOW = 510,
    FDB_TR_OPTION_READ_PRIORITY_HIGH = 511,
    /* Whether snapshot reads see what the transaction wrote; they do from version 300. */
    FDB_TR_OPTION_SNAPSHOT_RYW_ENABLE = 600,
    FDB_TR_OPTION_SNAPSHOT_RYW_DISABLE = 601,
    /* A locked database may be read and written. */
    FDB_TR_OPTION_LOCK_AWARE = 700,
    /* A call during the commit fails alone: the commit and what else is outstanding goes on. */
    FDB_TR_OPTION_USED_DURING_COMMIT_PROTECTION_DISABLE = 701,
    /* A locked database may be read. */
    FDB_TR_OPTION_READ_LOCK_AWARE = 702,
    /* For FoundationDB's own use. */
    FDB_TR_OPTION_FIRST_IN_BATCH = 710,
    FDB_TR_OPTION_USE_PROVISIONAL_PROXIES = 711,
    /* After a conflict the special keys have the ranges that were in conflict. */
    FDB_TR_OPTION_REPORT_CONFLICTING_KEYS = 712,
    /* Reads of special keys may touch several modules, or none; special keys may be written. */
    FDB_TR_OPTION_SPECIAL_KEY_SPACE_RELAXED = 713,
    FDB_TR_OPTION_SPECIAL_KEY_SPACE_ENABLE_WRITES = 714,
    /* Text: 16 bytes at most, and at most 5 of them. */
    FDB_TR_OPTION_TAG = 800,
    FDB_TR_OPTION_AUTO_THROTTLE_TAG = 801,
    /* Bytes: 33 of them, the span that this transaction is a part of. */
    FDB_TR_OPTION_SPAN_PARENT = 900,
    FDB_TR_OPTION_EXPENSIVE_CLEAR_COST_ESTIMATION_ENABLE = 1000,
    /* What was written with a versionstamp may be read, without the stamp. */
    FDB_TR_OPTION_BYPASS_UNREADABLE = 1100,
    /* The read version may be one that the database got a moment ago, or never. */
    FDB_TR_OPTION_USE_GRV_CACHE = 1101,
    FDB_TR_OPTION_SKIP_GRV_CACHE = 1102,
#if FDB_API_VERSION >= 800
    /* Integer: milliseconds that a request for a read version may be kept back; it fails if it would be longer. */
    FDB_TR_OPTION_MAX_GRV_QUEUE_DELAY = 1103,
#endif
    /* Text: a token of the tenants that it gives access to. */
    FDB_TR_OPTION_AUTHORIZATION_TOKEN = 2000,
    /* Each read asks several servers and compares what they say. */
    FDB_TR_OPTION_ENABLE_REPLICA_CONSISTENCY_CHECK = 4000,
    /* Integer: how many. */
    FDB_TR_OPTION_CONSISTENCY_CHECK_REQUIRED_REPLICAS = 4001
} FDBTransactionOption;

/* How much of a range one call returns. */
typedef enum {
    FDB_STREAMING_MODE_WANT_ALL = -2,
    /* More with each iteration, which the caller counts from 1. */
    FDB_STREAMING_MODE_ITERATOR = -1,
    /* All up to the limit, which there must be. */
    FDB_STREAMING_MODE_EXACT = 0,
    FDB_STREAMING_MODE_SMALL = 1,
    FDB_STREAMING_MODE_MEDIUM = 2,
    FDB_STREAMING_MODE_LARGE = 3,
    FDB_STREAMING_MODE_SERIAL = 4
} FDBStreamingMode;

/*
 * What fdb_transaction_atomic_op does with the value of a key. Before an operation from ADD to MIN, except
 * APPEND_IF_FITS, the value gets the length of the operand, by zeros at its end or by a cut. A key without
 * a value gets the operand, except with COMPARE_AND_CLEAR.
 */
typedef enum {
    /* Of little-endian integers. */
    FDB_MUTATION_TYPE_ADD = 2,
    /* Two names for each. */
    FDB_MUTATION_TYPE_AND = 6,
    FDB_MUTATION_TYPE_BIT_AND = 6,
    FDB_MUTATION_TYPE_OR = 7,
    FDB_MUTATION_TYPE_BIT_OR = 7,
    FDB_MUTATION_TYPE_XOR = 8,
    FDB_MUTATION_TYPE_BIT_XOR = 8,
    /* Without an effect, and without an error, if the value would be too long. */
    FDB_MUTATION_TYPE_APPEND_IF_FITS = 9,
    /* Of little-endian unsigned integers. */
    FDB_MUTATION_TYPE_MAX = 12,
    FDB_MUTATION_TYPE_MIN = 13,
    /*
     * The commit puts its versionstamp of 10 bytes into the key or the operand, and sets the key. The last
     * 4 bytes (little-endian) say where to put it, and are removed. Before version 520 it was 2 bytes in
     * keys, and none in operands, where the place was the first byte.
     */
    FDB_MUTATION_TYPE_SET_VERSIONSTAMPED_KEY = 14,
    FDB_MUTATION_TYPE_SET_VERSIONSTAMPED_VALUE = 15,
    /* In the order of keys. */
    FDB_MUTATION_TYPE_BYTE_MIN = 16,
    FDB_MUTATION_TYPE_BYTE_MAX = 17,
    /* Clears the key if its value is the operand. */
    FDB_MUTATION_TYPE_COMPARE_AND_CLEAR = 20
} FDBMutationType;

typedef enum {
    FDB_CONFLICT_RANGE_TYPE_READ = 0,
    FDB_CONFLICT_RANGE_TYPE_WRITE = 1
} FDBConflictRangeType;

/* For fdb_error_predicate. */
typedef enum {
    FDB_ERROR_PREDICATE_RETRYABLE = 50000,
    /* The commit may have happened. */
    FDB_ERROR_PREDICATE_MAYBE_COMMITTED = 50001,
    /* It has not. */
    FDB_ERROR_PREDICATE_RETRYABLE_NOT_COMMITTED = 50002
} FDBErrorPredicate;

#endif
