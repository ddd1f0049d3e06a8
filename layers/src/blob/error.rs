//! Errors of blob operations.

use super::{Expect, Generation, UploadId};

layer_error! {
    /// Why an operation on a blob failed; nothing was changed.
    pub enum Error {
        /// A chunk is stored as a value: it has at least one byte, and at most as many as a value may have.
        #[error("chunks of {0} bytes: from 1 to {limit} are possible", limit = crate::tx::VALUE_SIZE_LIMIT)]
        ChunkSize(usize),
        /// A part consists of whole chunks, and leaves room in its transaction.
        #[error("parts of {part} bytes: whole chunks of {chunk} are possible, up to {limit}",
                limit = super::MAX_PART_BYTES)]
        PartSize {
            /// The requested part size.
            part: usize,
            /// The chunk size.
            chunk: usize,
        },
        /// The blob does not exist.
        #[error("there is no such blob")]
        Missing,
        /// A blob has no holes: a write must begin at or before its end, and a truncation must not lengthen
        /// it.
        #[error("offset {offset} is beyond the end of a blob of {size} bytes")]
        BeyondEnd {
            /// The requested offset.
            offset: u64,
            /// The blob's size.
            size: u64,
        },
        /// The last byte would have an offset beyond 64 bits.
        #[error("{length} bytes from offset {start} end beyond the last offset")]
        Overflow {
            /// The first offset.
            start: u64,
            /// The number of bytes.
            length: u64,
        },
        /// More than one transaction can read within its time limit: use [`Pages`](super::Pages), or read a
        /// slice.
        #[error("{bytes} bytes are more than one transaction reads: up to {limit} in chunks of this size")]
        TooLong {
            /// The number of existing bytes that were requested.
            bytes: u64,
            /// The number of bytes that can be read.
            limit: u64,
        },
        /// A chunk of the content is missing, or has the wrong length.
        #[error("the content is damaged at offset {0}")]
        Damaged(u64),
        /// The blob is not in the requested generation.
        #[error("the blob is in generation {}, not {expected}", .found.map_or("none".into(), |g| g.to_string()))]
        Changed {
            /// The expected generation.
            expected: Expect,
            /// Its generation, if it exists.
            found: Option<Generation>,
        },
        /// The upload is not in progress: it was never begun, is finished, or was abandoned.
        #[error("no upload {0} is under way")]
        NoUpload(UploadId),
        /// The upload's id is in use for another blob or with other sizes.
        #[error("upload {0} is of another blob, or has other sizes")]
        OtherUpload(UploadId),
        /// A part has at least one byte, and at most the upload's part size.
        #[error("part {number} of {bytes} bytes: from 1 to {limit} are possible")]
        PartLength {
            /// The part's number.
            number: u64,
            /// Its length.
            bytes: usize,
            /// The upload's part size.
            limit: u64,
        },
        /// Parts are numbered from 0, and their number is limited to what one transaction can count.
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
