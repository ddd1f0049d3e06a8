//! Errors of directory operations.

use super::Path;
use bytes::Bytes;

layer_error! {
    /// Why an operation on a directory failed. No directory was changed; a create that is refused may have
    /// used up a candidate of the allocator, which is harmless.
    pub enum Error {
        /// The directory does not exist.
        #[error("there is no directory {0}")]
        NotFound(Path),
        /// The directory exists already.
        #[error("the directory {0} exists already")]
        AlreadyExists(Path),
        /// The directory was created with another layer tag.
        #[error("the directory {path} has the layer tag \"{}\", not \"{}\"", .found.escape_ascii(), .asked.escape_ascii())]
        WrongTag {
            /// The directory.
            path: Path,
            /// The requested tag.
            asked: Bytes,
            /// The tag of the directory.
            found: Bytes,
        },
        /// The root contains the other directories; it is not itself a directory.
        #[error("the root directory cannot be {0}")]
        Root(&'static str),
        /// The destination lies below the source, or is the source.
        #[error("{from} cannot be moved to {to}, which lies below it")]
        BelowItself {
            /// The source.
            from: Path,
            /// The destination.
            to: Path,
        },
        /// A directory cannot leave its partition, because its content is stored there.
        #[error("{from} cannot be moved to {to}, in another partition")]
        BetweenPartitions {
            /// The source.
            from: Path,
            /// The destination.
            to: Path,
        },
        /// A move does not create parent directories.
        #[error("there is no directory for {0} to be moved into")]
        NoParent(Path),
        /// This layer allocates all prefixes itself.
        #[error("a prefix for {0} was given, and manual prefixes are not enabled")]
        ManualPrefix(Path),
        /// Within a partition, the allocator chooses all prefixes.
        #[error("a prefix for {0} was given, which lies in a partition")]
        PrefixInPartition(Path),
        /// The prefix equals, contains or is contained in a directory's prefix, or must not be given to a
        /// directory.
        #[error("the prefix \"{}\" for {path} is in use", .prefix.escape_ascii())]
        PrefixInUse {
            /// The directory that was to get the prefix.
            path: Path,
            /// The prefix.
            prefix: Bytes,
        },
        /// The allocator chose a prefix that already contains keys, written by a client that does not use
        /// directories.
        #[error("there are keys at the prefix \"{}\", which was allocated for {path}", .prefix.escape_ascii())]
        PrefixNotEmpty {
            /// The directory that was to get the prefix.
            path: Path,
            /// The prefix.
            prefix: Bytes,
        },
        /// The allocator chose a prefix that overlaps with a manual one.
        #[error("the prefix \"{}\", allocated for {path}, clashes with a manual one", .prefix.escape_ascii())]
        PrefixClash {
            /// The directory that was to get the prefix.
            path: Path,
            /// The prefix.
            prefix: Bytes,
        },
        /// A partition contains directories; keys must be stored in those.
        #[error("the directory {0} is a partition, which holds no keys of its own")]
        Partition(Path),
        /// The handle's path no longer leads to its directory: the directory was moved or removed.
        #[error("the directory that was at {0} is not there any more")]
        Stale(Path),
        /// A later version of the directory layer has written this data; this version cannot read it.
        #[error("the directories of {path} are of version {}.{}.{}", .version[0], .version[1], .version[2])]
        TooNew {
            /// The root, or the partition.
            path: Path,
            /// The version found.
            version: [u32; 3],
        },
        /// A later version of the directory layer has written this data; this version can only read it.
        #[error(
            "the directories of {path} are of version {}.{}.{}, to be read only",
            .version[0], .version[1], .version[2]
        )]
        ReadOnly {
            /// The root, or the partition.
            path: Path,
            /// The version found.
            version: [u32; 3],
        },
    }
}
