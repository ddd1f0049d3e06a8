//! The contract implemented over the C client.

mod database;
mod network;
mod raw;
mod time;
mod transaction;

pub use database::{FdbDatabase, Unreachable};
pub use network::{Buggify, Network, StartError, is_simulated};
pub use time::RealTime;
pub use transaction::FdbTransaction;
