//! Blobs: byte strings of any length, read and changed in part or as a whole; uploads beyond the 10 MB and 5
//! seconds of a transaction, by parts and one switch.
//!
//! # Promise
//!
//! * A blob holds what was written last. It has no holes, and an empty blob differs from a missing one.
//! * [`Blobs::read_range`] returns a slice that ends at the end of the blob: from the end or beyond it, or of
//!   zero bytes, the slice is empty. It reads only the chunks that it needs; [`Blobs::size`] reads none.
//! * A write must begin at or before the blob's end, and a truncation must not lengthen the blob
//!   ([`Error::BeyondEnd`]). [`Blobs::append`], and [`Blobs::write_at`] at 0, create a missing blob.
//! * Every change gives the blob a [`Generation`] that it never had before and never will have again.
//! * Functions that take a transaction can be combined with others in it. [`Blobs::upload_once`] takes effect
//!   exactly once ([`once`](crate::once)).
//!
//! A blob that is too large for one transaction is written and read in several:
//!
//! * *Upload*: the content is put in numbered parts in a place that readers do not access, under an
//!   [`UploadId`] drawn beforehand, and one transaction makes it the blob's content. That transaction may
//!   require the blob to be unchanged ([`Expect`]). A part may be put again, by the same process or another.
//! * [`Pages`] read a blob in many transactions, each of which checks the generation. A reader sees one
//!   content, the old or the new one, or [`Error::Changed`], but never a mixture.
//! * [`Blobs::collect`] removes the remains of abandoned uploads: those that put no part while it waits,
//!   however old they are. An upload that was collected can put no more parts and cannot be finished.
//! * No stored number leads to an allocation larger than what is stored, or to an overflow: content that does
//!   not match its manifest is reported as [`Error::Damaged`] or [`Error::Foreign`].
//!
//! # What it does not do
//!
//! * Changes of one blob do not scale: all of them write its manifest.
//! * It does not keep old content for readers in progress: they start again.
//! * It cannot distinguish a dead upload from a slow one: the caller of `collect` specifies how long to wait
//!   for a sign of life.
//! * One transaction reads at most [`MAX_READ_BYTES`] and [`MAX_READ_CHUNKS`]; an upload has at most
//!   [`MAX_PARTS`] parts.
//! * Chunk sizes may differ between writers; a blob keeps the chunk size with which it was last written as a
//!   whole.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | write | manifest | manifest, 1 clear, each chunk | other changes and readers of the blob |
//! | append, write_at | manifest, up to 2 chunks | manifest, chunks touched | as for write |
//! | truncate | manifest, up to 1 chunk | manifest, 1 clear, up to 1 chunk | as for write |
//! | delete | manifest | 2 clears | as for write |
//! | read, read_range | manifest, chunks in the range | – | changes of the blob |
//! | size, exists, stat | manifest | – | changes of the blob |
//! | put a part | record | 1 clear, chunks of the part, 2 | the end of the upload |
//! | finish | record, manifest, 1 key a part | manifest, 4 clears | changes and readers of the blob |
//! | collect | 2 keys an upload, twice | 4 clears an upload | the collected uploads |
//!
//! A chunk size of 10,000 bytes is a good default; 1,000 to 5,000 suit random access better, 50,000 and more
//! suit sequential reads.
//!
//! ```
//! use shaketable_layers::blob::{Blobs, Error};
//! use shaketable_tx::{Isolation, Transaction};
//!
//! async fn log<T: Transaction>(tx: &T, blobs: &Blobs, line: &[u8]) -> Result<u64, Error> {
//!     blobs.append(tx, b"log", line).await?;
//!     blobs.append(tx, b"log", b"\n").await?;
//!     // Keep it below a megabyte: start again with this line.
//!     match blobs.size(tx, b"log", Isolation::Serializable).await? {
//!         Some(size) if size < 1_000_000 => Ok(size),
//!         _ => {
//!             blobs.write(tx, b"log", line).await?;
//!             Ok(line.len() as u64)
//!         }
//!     }
//! }
//! ```

mod error;
mod keys;
mod ops;
mod pages;
mod upload;

pub use error::Error;
pub use keys::{Generation, UploadId};
pub use ops::{Blobs, MAX_READ_BYTES, MAX_READ_CHUNKS, Stat};
pub use pages::Pages;
pub use upload::{Expect, MAX_PART_BYTES, MAX_PARTS};
