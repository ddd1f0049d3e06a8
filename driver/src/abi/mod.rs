//! FoundationDB's C interface, as `fdb_c.h` of 7.4 declares it for the API versions 630 to 740.
//!
//! Every function of the header is here. Keys and values that a program passes are copied during the call. Futures own
//! their results ([`future`]). Handles may be used and destroyed in any order and by any thread; a handle that was
//! destroyed must not be used, which this library cannot detect any more than the C client can.
//!
//! The behaviour is that of API version 740. Functions that the header removed before 630 are not exported.
//!
//! # What the cluster does not have
//!
//! | functions | answer |
//! |---|---|
//! | transactions of a tenant, `fdb_tenant_get_id` | 2136 `tenants_disabled`, as of a cluster without tenants |
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
//! * A result that is read as another type is 2000 `client_invalid_operation`; the C client does not check.
//! * What is outstanding when the network stops ends with 1101 `operation_cancelled`; with the C client it never ends.
//! * A cluster file need not exist, and its addresses have no meaning ([`shaketable_session::settings`]), unless it names
//!   a server of ours ([`shaketable_session::address`]). If that cannot be reached, calls end with 1031
//!   ([`shaketable_session::remote`]); with the C client they never end.
//! * Network options are checked and have no effect: there are no trace files, TLS or other client libraries.

pub mod database;
pub mod errors;
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
