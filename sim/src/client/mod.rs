//! The simulated FoundationDB client: the whole contract of `shaketable_layers::tx` over the
//! cluster's messages.
//!
//! A read is a walk over the transaction's own writes ([`write_map`]) and what it knows of its
//! snapshot ([`snapshot_cache`]), joined in [`segments`]; [`range`] says what has to be fetched on
//! the way, and [`connection`] fetches it. Where FoundationDB's client lets an application see its
//! inner workings (conflict ranges, batches, sizes, unreadable ranges), this one works alike.

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
mod sizes;
mod snapshot_cache;
mod special_keys;
mod stack;
mod stamp;
mod storage;
mod transaction;
mod version;
mod wakers;
mod watch;
mod write;
mod write_map;

pub use database::SimDatabase;
pub use transaction::SimTransaction;
