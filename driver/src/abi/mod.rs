//! FoundationDB's C interface, as `fdb_c.h` of 7.4 declares it for the API versions 630 to 740.
//!
//! Every function of the header is here. Keys and values that a program passes are copied during the call. Futures own
//! their results ([`future`]). Handles may be used and destroyed in any order and by any thread; a handle that was
//! destroyed must not be used, which this library cannot detect any more than the C client can.
//!
//! # Versions of the API
//!
//! A program selects one of 630 to 740, once. These are all differences between them in the C client of 7.4, in
//! `fdb_c.cpp`, `NativeAPI.actor.cpp`, `ReadYourWrites.actor.cpp` and `MultiVersionTransaction.actor.cpp`:
//!
//! | from | before | from then on | here |
//! |---|---|---|---|
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
//! Addresses have ports, special keys have modules, options persist and an error that cannot be retried ends a
//! transaction since 630 or earlier.
//!
//! The library of 7.4 also exports functions that the header does not declare for 630 to 740 and that are not here: those
//! removed before 630 (`fdb_create_cluster`, `fdb_cluster_*`, `fdb_future_get_cluster`, `_get_database`, `_get_version`,
//! `_is_error`, `fdb_transaction_get_range_selector`), and those by which one client library uses another
//! (`fdb_database_create_shared_state`, `_set_shared_state`, `fdb_future_get_shared_state`,
//! `fdb_use_future_protocol_version`, `fdb_transaction_read_blob_granules_start`, `_finish`). Functions that changed before
//! 630 have one form only: no versioned symbol leaves the library.
//!
//! # What the cluster does not have
//!
//! | functions | answer |
//! |---|---|
//! | transactions of a tenant, `fdb_tenant_get_id` | 2131 `tenant_not_found`, as of a cluster without tenants |
//! | `fdb_database_*` and `fdb_tenant_*` of blob granules | 2108 `unsupported_operation` |
//! | `fdb_transaction_*` and `fdb_readbg_*` of blob granules | 2108 |
//! | `fdb_database_create_snapshot` | 2108 |
//! | `fdb_database_reboot_worker`, `fdb_database_force_recovery_with_data_loss` | 2108 |
//! | `fdb_result_get_*` | 2108: every result is an error |
//! | `fdb_future_get_bool`, `_get_keyrange_array`, `_get_granule_summary_array`, `_readbg_get_descriptions` | the error of the future, 2000 if it has none |
//!
//! # Where it differs from the C client
//!
//! * [`fdb_get_error`](errors::fdb_get_error) returns the name of a code.
//! * In a child of a process that forks while its network runs, every call is 1101 `operation_cancelled` at once; with the
//!   C client it never ends.
//! * A result that is read as another type is 2000 `client_invalid_operation`; the C client does not check.
//! * What is outstanding when the network stops ends with 1101 `operation_cancelled`; with the C client it never ends.
//! * A cluster file need not exist, and its addresses have no meaning ([`shaketable_session::settings`]), unless it names
//!   a server of ours ([`shaketable_session::address`]). If that cannot be reached, calls end with 1031
//!   ([`shaketable_session::remote`]); with the C client they never end.
//! * Network options are checked and have no effect: there are no trace files, TLS or other client libraries.

pub mod database;
pub mod errors;
mod fork;
pub mod future;
pub mod memory;
pub mod network;
mod network_option;
pub mod ranges;
pub mod results;
pub mod transaction;
pub mod types;
pub mod unsupported;
pub mod value;
pub mod versions;
