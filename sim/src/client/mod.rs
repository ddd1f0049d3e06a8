//! The simulated FoundationDB client: the complete contract of `shaketable_tx`, implemented with the
//! cluster's messages.
//!
//! A read walks over the transaction's own writes ([`write_map`]) and the cached part of its snapshot
//! ([`snapshot_cache`]), combined in [`segments`]; [`range`] determines what must be fetched on the way, and
//! [`connection`] fetches it. Where an application can observe the internals of FoundationDB's client
//! (conflict ranges, batches, sizes, unreadable ranges), this client works in the same way.

mod backoff;
#[cfg(test)]
mod brute_force;
mod commit;
mod conflict;
mod connection;
mod contract;
mod database;
mod get;
mod guard;
mod keys;
mod landings;
mod life;
mod limits;
mod locations;
mod mapped;
mod native;
mod options;
mod proxies;
mod range;
mod read;
mod record;
mod segments;
mod selector;
mod shared;
mod sizes;
mod snapshot_cache;
mod special_keys;
mod stack;
mod stamp;
mod storage;
mod transaction;
mod version;
mod versionstamp;
mod wakers;
mod watch;
mod watch_cell;
mod write;
mod write_map;

pub use connection::ReadVersions;
pub use database::{SimDatabase, WeakDatabase};
pub(crate) use proxies::Proxies;
pub use shared::Label;
pub use sizes::commit as commit_size;
pub use transaction::SimTransaction;
