//! Directories: paths of names that are mapped to short prefixes, byte-compatible with the official directory
//! layer, with its moves, its partitions and its high-contention allocator.
//!
//! The format is that of the official directory layer, version 1.0.0: each can read what the other writes.
//!
//! # Promise
//!
//! * A path leads to at most one directory. Its prefix is unique: it is not a prefix of another directory's
//!   prefix, nor the reverse, so that no two directories share a key.
//! * An allocated prefix is never allocated again, even after its directory is removed.
//! * Directories form a tree. A directory is moved together with all directories below it, to a path in its
//!   partition whose parent exists, and keeps its prefix: its content does not move.
//! * Removal deletes the directory, all directories below it and their content, in one transaction.
//! * A directory keeps the layer tag with which it was created; opening it with another tag is refused. The
//!   tag `partition` makes it a separate layer, which stores everything below the directory's prefix.
//! * Calls of one transaction may run concurrently: calls that create the same path create one directory with
//!   one prefix.
//! * Directories can be created concurrently without conflicts, except with the same name in the same parent.
//! * In a [session](crate::once), operations take effect exactly once: after an unknown result, a create does
//!   not fail because its own directory exists already, nor a removal because its own directory is already
//!   gone.
//!
//! # What it does not do
//!
//! * It does not prevent writes below the prefix of a directory that was moved or removed: see
//!   [`Directories::check`].
//! * It does not clear a prefix that is given manually.
//! * A transaction that does not read its own writes (options 51 and 601) can neither create directories nor
//!   allocate prefixes.
//! * A removal is one transaction: a tree with too many directories is refused, and must be removed in
//!   pieces.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | open, exists | 1 + 2 for each name, sequentially | – | changes of a directory on the path |
//! | list, list_page | as for open, and 1 range | – | as for open, and creations in the directory |
//! | create | as for open, and about 8 for each directory created | 2 rows and 3 of the allocator for each | creations of the same path, manual prefixes |
//! | rename | as two opens | 1 row, 1 clear | changes of either path |
//! | remove | as for open, and 1 range for each directory below | 2 range clears for each | changes below |
//!
//! The allocator reads its marks serializably and its windows at snapshot: two transactions conflict in the
//! allocator only if they draw the same candidate.
//!
//! ```
//! use shaketable_layers::directory::{CandidateSeed, Directories, Error};
//! use shaketable_tx::{Isolation, Transaction};
//!
//! async fn schedule<T: Transaction>(tx: &T, seed: CandidateSeed) -> Result<Vec<String>, Error> {
//!     let directories = Directories::default();
//!     let scheduling = directories.create_or_open(tx, &["scheduling"], b"", seed).await?;
//!     tx.set(&scheduling.subspace()?.pack(&("class", "10:00 chem 101")), b"100");
//!     scheduling.below().create_or_open(tx, &["archive"], b"", seed).await?;
//!     directories.list(tx, &["scheduling"], Isolation::Serializable).await
//! }
//! ```

mod allocator;
mod creation;
mod error;
mod handle;
mod keys;
mod lookup;
mod ops;
mod path;

pub use allocator::{Allocator, CandidateSeed};
pub use error::Error;
pub use handle::Directory;
pub use keys::{Node, Nodes, PARTITION, VERSION};
pub use ops::Directories;
pub use path::Path;
