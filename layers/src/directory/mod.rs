//! Directories: names that lead to short prefixes, so that key schemas need no long ones.
//!
//! The bytes are those of the official directory layer, version 1.0.0: what one writes, the other reads.
//!
//! # Promise
//!
//! * A path leads to at most one directory. Its prefix is its own: it begins no other directory's prefix
//!   and is begun by none, so that no two directories share a key.
//! * A prefix that was allocated is never given again, also not after its directory is removed.
//! * Directories are a tree. A directory moves with all below it, to a path of its partition whose parent
//!   is there, and keeps its prefix: its content does not move.
//! * Removal takes the directory, all below it and what they hold, in one transaction.
//! * A directory has the layer tag it was created with; who asks for another one is refused. The tag
//!   `partition` makes it a layer of its own, everything of which lies below its prefix.
//! * Calls of one transaction may run concurrently in one task: those that create one path agree on one
//!   directory and one prefix.
//! * Directories are created concurrently without conflicts, unless in one parent under one name.
//! * Inside a [session](crate::once) operations take effect exactly once: after an unknown result a create is
//!   not told that its own directory exists already, nor a removal that its own is not there.
//!
//! # What it does not do
//!
//! * It keeps nobody from writing below the prefix of a directory that was moved or removed: see
//!   [`Directories::check`].
//! * It does not empty a prefix that is given by hand. Concurrent calls of one transaction that give
//!   prefixes by hand are not told of each other's.
//! * A transaction that reads without its own writes (options 51 and 601) can neither create nor allocate.
//! * A removal is one transaction: a tree of very many directories is refused, and must be removed piece by
//!   piece.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | open, exists | 1 + 2 for each name, one after the other | – | changes of a directory on the path |
//! | list, list_page | the same and 1 range | – | the same, and creations in the directory |
//! | create | the same, and about 8 for each directory made | 2 rows and 3 of the allocator for each | the same path, a prefix by hand |
//! | rename | as two opens | 1 row, 1 clear | changes of either path |
//! | remove | the same and 1 range for each directory below | 2 range clears for each | changes below |
//!
//! The allocator reads its marks serializably and its windows at snapshot: two transactions conflict
//! there only if they draw the same candidate.
//!
//! ```
//! use shaketable_layers::{directory::{Chance, Directories, Error}, tx::{Isolation, Transaction}};
//!
//! async fn schedule<T: Transaction>(tx: &T, chance: Chance) -> Result<Vec<String>, Error> {
//!     let directories = Directories::default();
//!     let scheduling = directories.create_or_open(tx, &["scheduling"], b"", chance).await?;
//!     tx.set(&scheduling.subspace()?.pack(&("class", "10:00 chem 101")), b"100");
//!     scheduling.below().create_or_open(tx, &["archive"], b"", chance).await?;
//!     directories.list(tx, &["scheduling"], Isolation::Serializable).await
//! }
//! ```

mod allocator;
mod error;
mod handle;
mod keys;
mod ops;
mod path;

pub use allocator::{Allocator, Chance};
pub use error::Error;
pub use handle::Directory;
pub use keys::{Node, Nodes, PARTITION, VERSION};
pub use ops::Directories;
pub use path::Path;
