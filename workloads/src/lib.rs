//! The workloads that come with the `shaketable` command.
//!
//! [`catalogue`] is the list of them; [`conformance`] compares a client with what a real cluster answered. What
//! a workload is, and everything that runs and judges one, is the crate [`shaketable`].

// Unit tests have no workloads: see `catalogue::catalogue`.
#![cfg_attr(test, allow(dead_code))]

pub mod catalogue;
#[cfg(feature = "command")]
pub mod command;
pub mod conformance;
