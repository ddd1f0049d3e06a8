//! FoundationDB's C client library over a simulated cluster.
//!
//! A program that is written against FoundationDB's C library, or against a binding of it, runs on the
//! simulated cluster of [`shaketable_sim`] if it finds this library in its place:
//!
//! ```text
//! cargo build -p shaketable-driver
//! LD_LIBRARY_PATH=target/debug SHAKETABLE_SEED=7 SHAKETABLE_FAULTS=standard SHAKETABLE_REPORT=- python3 program.py
//! ```
//!
//! Several programs share the cluster of `shaketable serve` if their cluster file, or `SHAKETABLE_SERVER`,
//! names it. `shaketable with` does so with many seeds: see `docs/src/programs.md`.
//!
//! [`shaketable_session`] carries calls to the cluster and answers back: its
//! [`settings`](shaketable_session::settings) say what determines a run, and its
//! [`report`](shaketable_session::report) what the cluster did to the program. [`abi`] is the C interface.
//!
//! Crates in Rust that use `foundationdb` run within the simulation itself: see [`embedded`].
//!
//! The library exports FoundationDB's functions and nothing else: the simulator's runtime replaces functions
//! of the C library, such as `clock_gettime`, for itself, and not for the program that loads it.

pub mod abi;
pub mod embedded;
