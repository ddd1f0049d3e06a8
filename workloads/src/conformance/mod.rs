//! Comparison of a database with what a real FoundationDB cluster was recorded to answer.
//!
//! `conformance/` of this crate holds the recordings and says what their format is. [`check`]
//! replays them on a calm simulated cluster; [`replay`] replays one case on any database.

mod cases;
mod check;
mod format;
mod replay;

pub use cases::{Bytes, Case, Selector, Step};
pub use check::{CheckError, check};
pub use format::{FormatError, parse};
pub use replay::{Replayed, prepare, replay};
