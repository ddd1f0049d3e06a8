//! Comparison of a database with what a real FoundationDB cluster was recorded to answer.
//!
//! `conformance/` of this crate holds the recordings and says what their formats are: of the client, of the
//! directory layer, of the tuple layer. [`check`] replays them on a calm simulated cluster; [`replay`] and
//! [`replay_directories`] replay one case on any database.

mod cases;
mod check;
mod directories;
mod format;
mod replay;
mod tuples;

pub use cases::{Bytes, Case, Selector, Step};
pub use check::{CheckError, check};
pub use directories::{DirectoryCase, DirectoryStep, replay_directories};
pub use format::{FormatError, Recording, parse};
pub use replay::{Replayed, prepare, replay};
pub use tuples::{RecordedElement, TupleCase, replay_tuple};
