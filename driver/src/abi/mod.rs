//! FoundationDB's C interface, as `fdb_c.h` of 7.4 declares it for the API versions 200 to 740, and that of
//! 8.0 for version 800.
//!
//! Every function of both headers is here. Keys and values that a program passes are copied during the call.
//! Futures own their results ([`future`]). Handles may be used and destroyed in any order and by any thread;
//! a handle that was destroyed must not be used, which this library cannot detect any more than the C client
//! can.
//!
//! # Versions of the API
//!
//! A program selects one of 200 to 740, once. These are the differences between them in the C client of 7.4,
//! in `fdb_c.cpp`, `NativeAPI.actor.cpp`, `ReadYourWrites.actor.cpp` and `MultiVersionTransaction.actor.cpp`:
//!
//! | from | before | from then on | here |
//! |---|---|---|---|
//! | 300 | snapshot reads do not see the transaction's own writes | they do, unless `SNAPSHOT_RYW_DISABLE` | [`versions`] |
//! | 300 | system keys may be watched and be in conflict ranges without an option; conflict ranges do not count for the size | 2004 | always the latter |
//! | 410 | a commit resets its transaction | it must be reset | [`versions`] |
//! | 510 | `AND` and `MIN` of an absent key are 0 | they are the operand | always the latter |
//! | 520 | a versionstamp has an offset of two bytes in a key, and none in a value | of four | [`versions`] |
//! | 610 | `on_error` with an error that is not retryable resets the transaction | it must be reset | [`versions`] |
//! | 610 | timeout, retry limit and delay are lost with `on_error` | they persist | always the latter |
//! | 610 | databases come from clusters, through futures | `fdb_create_database` | [`removed`] |
//! | 630 | addresses have no port | they have | always the latter |
//! | 700 | the end of a commit, successful or not, gives the transaction a new read version, and its cost and throttling begin at 0 | they stay until a reset | [`versions`] |
//! | 700 | `MAX_RETRY_DELAY` has no effect on the wait after a failed commit | it has | always the latter |
//! | 700 | writes of special keys are 2004 | they are 2114, or 2115 with `SPECIAL_KEY_SPACE_ENABLE_WRITES` if no module takes them | [`versions`] |
//! | 700 | error message, management, configuration, global configuration, tracing and actor lineage have no special keys | they have | no version has them |
//! | 710 | databases of one cluster share no state | they share it, if several client libraries may be loaded | no difference to see |
//! | 720 | `USE_GRV_CACHE` always works | it is 2007, with the next call, unless several client libraries may be loaded (`DISABLE_CLIENT_BYPASS` or an external client) | [`versions`] |
//! | 720 | special keys of client profiling | none | no version has them |
//! | 730 | failures of external client libraries are ignored | they are errors | there are none to load |
//! | 740 | no special key `fault_tolerance_metrics_json` | one | no version has it |
//!
//! A program that selects 800 finds the client of 8.0 instead. What that does otherwise than the client of
//! 7.4 is as read from the source of the main branch, not seen on a cluster. There it does so for every
//! version; here programs of older versions keep what 7.4 does. What was removed ends a program that was
//! compiled for 800, whatever version it selects.
//!
//! | source | 7.4 | 8.0 | here |
//! |---|---|---|---|
//! | `CMakeLists.txt`, `ProtocolVersions.cmake` | client 7.4, protocol 0FDB00B074000000 | 8.0.0, 0FDB00B080000000 | [`network`], [`database`] |
//! | `fdb_c.cpp` | tenants | a call ends the program | [`removed`] |
//! | `fdb_c.h` | blob granules | the library has none of their functions | [`removed`]: a call ends the program |
//! | `fdb_c.h`, `NativeCdc.cpp` | no streams of changes | some, which a cluster admits if `ENABLE_NATIVE_CDC` is set | [`cdc`] |
//! | `fdb_c.h`, `NativeAPI.actor.cpp` | split points have no limit | `fdb_transaction_get_range_split_points_with_limit` | [`ranges`] |
//! | `fdb_c.cpp` | batches of `SERIAL` and `WANT_ALL` have 80,000 bytes | 120,000 | [`versions`] |
//! | `fdb_c.cpp`, `NativeAPI.actor.cpp` | 1223 and 1079 are retried | the codes are gone; what would be 1223 here is 1213 | [`versions`] |
//! | `NativeAPI.actor.cpp` | throttling of tags may last | its duration is 0 | [`versions`] |
//! | `NativeAPI.actor.cpp` | with raw access keys have 10,008 bytes; reads, clears and conflict ranges allow as many | 10,000 | [`versions`] |
//! | `fdb.options` | no network option `TRACE_IP` | 2006 for what is no address | [`network`] |
//! | `fdb.options` | no transaction option `MAX_GRV_QUEUE_DELAY` | a longer wait for a read version is 1251; 2006 below 0 and from 2^31 on | [`versions`]; no wait is that long |
//! | `fdb.options` | a database option `USE_CONFIG_DATABASE` | 2007 | [`versions`] |
//! | `error_definitions.h` | errors of tenants, metaclusters and blob granules, among others | other names, and none for those | [`errors`] |
//! | `NativeAPI.actor.cpp` | no committed version if an idempotency id settled an unknown result | it is set | always the latter |
//! | `ReadYourWrites.cpp` | a cancel, a timeout or misuse that ends a commit leaves its watches until the reset | they end with its error | always the former |
//! | `DatabaseContext.cpp` | special keys of tenants | none | no version has them |
//!
//! The 111 functions of the library of 7.4 are here, and the 13 that 8.0 adds: those of the headers, those
//! that older headers have ([`removed`]), and those by which one client library uses another, which no
//! program calls ([`unsupported`]). Functions that changed before 200 have one form only.
//!
//! # What the cluster does not have
//!
//! Functions of tenants and blob granules end a program of version 800.
//!
//! | functions | answer |
//! |---|---|
//! | transactions of a tenant, `fdb_tenant_get_id` | 2131 `tenant_not_found`, as of a cluster without tenants |
//! | `fdb_database_*` and `fdb_tenant_*` of blob granules | 2108 `unsupported_operation` |
//! | `fdb_transaction_*` and `fdb_readbg_*` of blob granules | 2108 |
//! | `fdb_database_create_snapshot` | 2505 `snap_path_not_whitelisted`, as of a cluster whose servers run no program |
//! | `fdb_database_reboot_worker` | 2108 |
//! | `fdb_result_get_*` | 2108: every result is an error |
//! | `fdb_database_*_cdc_*`, `fdb_cdc_consumer_*` | 2000 `client_invalid_operation`, as of a cluster that admits no stream of changes; none is listed or removed, and a consumer that is resumed has its position |
//! | `fdb_future_get_bool`, `_get_keyrange_array`, `_get_cdc_versioned_mutations`, `_get_granule_summary_array`, `_readbg_get_descriptions` | the error of the future, 2000 if it has none |
//!
//! # Where it differs from the C client
//!
//! * [`fdb_get_error`](errors::fdb_get_error) returns the name of a code.
//! * In a child of a process that forks while its network runs, every call is 1101 `operation_cancelled` at
//!   once; with the C client it never ends.
//! * A result that is read as another type is 2000 `client_invalid_operation`; the C client does not check.
//! * What is outstanding when the network stops ends with 1101 `operation_cancelled`; with the C client it
//!   never ends.
//! * A cluster file need not exist, and its addresses have no meaning ([`shaketable_session::settings`]),
//!   unless it names a server of ours ([`shaketable_session::address`]). If that cannot be reached, calls end
//!   with 1031 ([`shaketable_session::remote`]); with the C client they never end.
//! * Network options are checked and have no effect: there are no trace files, TLS or other client libraries.

pub mod cdc;
pub mod database;
pub mod errors;
mod fork;
pub mod future;
pub mod memory;
pub mod network;
mod network_option;
pub mod ranges;
pub mod removed;
mod restart;
pub mod results;
mod selected;
mod time;
pub mod transaction;
pub mod types;
pub mod unsupported;
pub mod value;
pub mod versions;
