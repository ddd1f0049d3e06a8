//! The C client, as the contract has it.

mod database;
mod network;
mod raw;
mod time;
mod transaction;

pub use database::{FdbDatabase, Unreachable};
pub use network::{Buggify, Network, StartError};
pub use time::RealTime;
pub use transaction::FdbTransaction;
