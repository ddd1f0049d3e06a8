//! FoundationDB's C interface, as `fdb_c.h` of 7.4 declares it for the API versions 200 to 740.
//!
//! Every function of the header is here. Keys and values that a program passes are copied during the call.
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
//! The 111 functions of the library of 7.4 are here: those of the header, those that older headers have
//! ([`removed`]), and those by which one client library uses another, which no program calls
//! ([`unsupported`]). Functions that changed before 200 have one form only.
//!
//! # What the cluster does not have
//!
//! | functions | answer |
//! |---|---|
//! | transactions of a tenant, `fdb_tenant_get_id` | 2131 `tenant_not_found`, as of a cluster without tenants |
//! | `fdb_database_*` and `fdb_tenant_*` of blob granules | 2108 `unsupported_operation` |
//! | `fdb_transaction_*` and `fdb_readbg_*` of blob granules | 2108 |
//! | `fdb_database_create_snapshot` | 2505 `snap_path_not_whitelisted`, as of a cluster whose servers run no program |
//! | `fdb_database_reboot_worker` | 2108 |
//! | `fdb_result_get_*` | 2108: every result is an error |
//! | `fdb_future_get_bool`, `_get_keyrange_array`, `_get_granule_summary_array`, `_readbg_get_descriptions` | the error of the future, 2000 if it has none |
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
pub mod results;
pub mod transaction;
pub mod types;
pub mod unsupported;
pub mod value;
pub mod versions;
