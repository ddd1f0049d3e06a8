//! Comparison of a database with recorded results of a real FoundationDB cluster.
//!
//! `conformance/` of this crate contains the recordings and describes their formats: of the client, of the
//! directory layer, of the tuple layer, of special keys. [`check`] replays them on a calm simulated cluster,
//! and [`check_on`] on any database, except that it leaves special keys alone, which manage a cluster;
//! [`replay`] and [`replay_directories`] replay one case. [`record`] draws scripts for the client and records
//! a database's results.

mod cases;
mod check;
mod directories;
mod format;
mod record;
mod replay;
mod scripts;
mod special;
mod tuples;

pub use cases::{Bytes, Case, Selector, Step};
pub use check::{CheckError, check, check_on};
pub use directories::{DirectoryCase, DirectoryStep, replay_directories};
pub use format::{FormatError, Recording, parse};
pub use record::{Recorded, record, record_simulated};
pub use replay::{Replayed, prepare, replay};
pub use scripts::{KINDS, scripts};
pub use special::{SpecialLine, replay_special};
pub use tuples::{RecordedElement, TupleCase, replay_tuple};
