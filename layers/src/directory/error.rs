//! Why an operation on a directory did not happen.

use super::Path;
use bytes::Bytes;

layer_error! {
    /// What an operation on a directory can fail with. No directory was changed; a create that is refused
    /// may have used up a candidate of the allocator, which does no harm.
    pub enum Error {
        /// There is no such directory.
        #[error("there is no directory {0}")]
        NotFound(Path),
        /// There is one already.
        #[error("the directory {0} exists already")]
        AlreadyExists(Path),
        /// The directory was created for something else.
        #[error("the directory {path} has the layer tag \"{}\", not \"{}\"", .found.escape_ascii(), .asked.escape_ascii())]
        WrongTag {
            /// The directory.
            path: Path,
            /// The tag that was asked for.
            asked: Bytes,
            /// The tag that it has.
            found: Bytes,
        },
        /// The root holds the other directories; it is none itself.
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
        /// A directory stays in its partition, because its content lies there.
        #[error("{from} cannot be moved to {to}, in another partition")]
        BetweenPartitions {
            /// The source.
            from: Path,
            /// The destination.
            to: Path,
        },
        /// A move does not create directories on the way.
        #[error("there is no directory for {0} to be moved into")]
        NoParent(Path),
        /// This layer chooses all prefixes itself.
        #[error("a prefix for {0} was given, and manual prefixes are not enabled")]
        ManualPrefix(Path),
        /// Within a partition all prefixes are the allocator's.
        #[error("a prefix for {0} was given, which lies in a partition")]
        PrefixInPartition(Path),
        /// The prefix is a directory's, or begins one, or continues one; or it is nobody's to give.
        #[error("the prefix \"{}\" for {path} is in use", .prefix.escape_ascii())]
        PrefixInUse {
            /// The directory that was to have it.
            path: Path,
            /// The prefix.
            prefix: Bytes,
        },
        /// The allocator has chosen a prefix under which somebody who asked no directory has written.
        #[error("there are keys at the prefix \"{}\", which was allocated for {path}", .prefix.escape_ascii())]
        PrefixNotEmpty {
            /// The directory that was to have it.
            path: Path,
            /// The prefix.
            prefix: Bytes,
        },
        /// The allocator has chosen a prefix that clashes with one that was given by hand.
        #[error("the prefix \"{}\", allocated for {path}, clashes with a manual one", .prefix.escape_ascii())]
        PrefixClash {
            /// The directory that was to have it.
            path: Path,
            /// The prefix.
            prefix: Bytes,
        },
        /// A partition holds directories; keys belong into these.
        #[error("the directory {0} is a partition, which holds no keys of its own")]
        Partition(Path),
        /// The handle's path no longer leads to its directory: it was moved or removed.
        #[error("the directory that was at {0} is not there any more")]
        Stale(Path),
        /// A later version of the directory layer has written here; this one cannot read it.
        #[error("the directories of {path} are of version {}.{}.{}", .version[0], .version[1], .version[2])]
        TooNew {
            /// The root, or the partition.
            path: Path,
            /// The version found.
            version: [u32; 3],
        },
        /// A later version of the directory layer has written here; this one can only read it.
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
