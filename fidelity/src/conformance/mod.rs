//! Comparison of a database with recorded results of a real FoundationDB cluster.
//!
//! `conformance/` of this crate contains the recordings and describes their formats: of the client, of the
//! directory layer, of the tuple layer, of special keys. [`read`] reads a folder of them.
//! [`Recording::replay`] replays one on any database, whose user keyspace it clears; that of special keys
//! manages the cluster, too. [`replay`] and [`replay_directories`] replay one case. [`record`] performs
//! scripts for the client and records a database's results.

mod cases;
mod directories;
mod folder;
mod format;
mod record;
mod replay;
mod special;
mod tuples;

pub use cases::{Bytes, Case, Selector, Step};
pub use directories::{DirectoryCase, DirectoryStep, replay_directories};
pub use folder::{ReadError, impossible, read};
pub use format::{FormatError, Recording, parse};
pub use record::{Recorded, record};
pub use replay::{Difference, Replayed, prepare, replay};
pub use special::{SpecialLine, replay_special};
pub use tuples::{RecordedElement, TupleCase, replay_tuple};
