//! Why an operation on a blob did not happen.

use super::{Expect, Generation, UploadId};

layer_error! {
    /// What an operation on a blob can fail with; nothing was changed.
    pub enum Error {
        /// A chunk is a value: it has a byte at least, and no more than a value may have.
        #[error("chunks of {0} bytes: from 1 to {limit} are possible", limit = crate::tx::VALUE_SIZE_LIMIT)]
        ChunkSize(usize),
        /// A part is whole chunks, and leaves room in its transaction.
        #[error("parts of {part} bytes: whole chunks of {chunk} are possible, up to {limit}",
                limit = super::MAX_PART_BYTES)]
        PartSize {
            /// The part size asked for.
            part: usize,
            /// The chunk size.
            chunk: usize,
        },
        /// There is no such blob.
        #[error("there is no such blob")]
        Missing,
        /// A blob has no holes: a write begins at its end at the latest, and a cut is inside.
        #[error("offset {offset} is beyond the end of a blob of {size} bytes")]
        BeyondEnd {
            /// The offset asked for.
            offset: u64,
            /// The blob's size.
            size: u64,
        },
        /// The last byte would have no offset.
        #[error("{length} bytes from offset {start} end beyond the last offset")]
        Overflow {
            /// The first offset.
            start: u64,
            /// How many bytes.
            length: u64,
        },
        /// More than is read in one transaction, which does not live long enough: read it in
        /// [`Pages`](super::Pages), or a slice of it.
        #[error("{bytes} bytes are more than one transaction reads: up to {limit} in chunks of this size")]
        TooLong {
            /// How many bytes were asked for that are there.
            bytes: u64,
            /// How many can be read.
            limit: u64,
        },
        /// A chunk of the content is absent, or of another length than it must have.
        #[error("the content is damaged at offset {0}")]
        Damaged(u64),
        /// The blob is not in the generation that was asked for.
        #[error("the blob is in generation {}, not {expected}", .found.map_or("none".into(), |g| g.to_string()))]
        Changed {
            /// What was expected of it.
            expected: Expect,
            /// Its generation, if it exists.
            found: Option<Generation>,
        },
        /// No such upload is under way: it was never begun, is finished, or was given up.
        #[error("no upload {0} is under way")]
        NoUpload(UploadId),
        /// The upload's id is in use for another blob or with other sizes.
        #[error("upload {0} is of another blob, or has other sizes")]
        OtherUpload(UploadId),
        /// A part has a byte at least, and no more than the upload's part size.
        #[error("part {number} of {bytes} bytes: from 1 to {limit} are possible")]
        PartLength {
            /// The part's number.
            number: u64,
            /// Its length.
            bytes: usize,
            /// The upload's part size.
            limit: u64,
        },
        /// Parts are numbered from 0, and there are no more of them than one transaction can count.
        #[error("part {number}: there are up to {limit} parts", limit = super::MAX_PARTS)]
        PartNumber {
            /// The part's number.
            number: u64,
        },
        /// An upload cannot be finished without this part.
        #[error("part {0} is missing")]
        MissingPart(u64),
        /// Only the last part may be shorter than the upload's part size.
        #[error("part {0} is shorter than the others, but not the last one")]
        ShortPart(u64),
    }
}
