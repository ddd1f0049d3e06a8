//! Blobs: byte strings of any length, cut into chunks, read and changed in part or as a whole.
//!
//! # Promise
//!
//! * A blob is what was written last. It has no holes, and an empty blob is not a missing one.
//! * [`Blobs::read_range`] is a slice that ends where the blob ends: from at or beyond the end, or of no
//!   bytes, it is empty. It reads the chunks that it needs, and [`Blobs::size`] reads none.
//! * A write begins at the blob's end at the latest, and a truncation does not lengthen
//!   ([`Error::BeyondEnd`]). [`Blobs::append`] and [`Blobs::write_at`] at 0 make a blob that is missing.
//! * Every change gives the blob a [`Generation`] that it never had before and never will have again.
//! * The functions that take a transaction compose with anything else in it. [`Blobs::upload_once`] takes
//!   effect exactly once ([`once`](crate::once)).
//!
//! A blob beyond what one transaction can write or read comes and goes in several of them:
//!
//! * *Upload*: the content is put in numbered parts where nobody reads, under an [`UploadId`] drawn
//!   beforehand, and one transaction makes it the blob's content. It may demand that the blob is still
//!   as it was ([`Expect`]). A part may be put again, by the same process or another.
//! * [`Pages`] read a blob over many transactions, each of which makes sure of the generation. A reader
//!   sees one content, the old or the new one, or [`Error::Changed`]; never a mix.
//! * [`Blobs::collect`] removes what uploads have left that were given up: those that put no part while it
//!   waits, however old they are. An upload that was collected can put no more parts and cannot be finished.
//! * No number that is stored leads to an allocation beyond what is stored, or to an overflow: content that
//!   its manifest does not fit is [`Error::Damaged`] or [`Error::Foreign`].
//!
//! # What it does not do
//!
//! * Changes of one blob do not scale: all of them write its manifest.
//! * It does not keep old content for readers that are under way: they begin again.
//! * It does not know a dead upload from a slow one: who collects says how long to wait for a sign of life.
//! * One transaction does not read more than [`MAX_READ_BYTES`] and [`MAX_READ_CHUNKS`], an upload has not more
//!   than [`MAX_PARTS`] parts.
//! * Chunk sizes may differ from writer to writer; a blob keeps that with which it was written as a whole.
//!
//! # What it costs
//!
//! | operation | reads | writes | conflicts with |
//! |---|---|---|---|
//! | write | manifest | manifest, 1 clear, each chunk | other changes and readers of the blob |
//! | append, write_at | manifest, up to 2 chunks | manifest, chunks touched | the same |
//! | truncate | manifest, up to 1 chunk | manifest, 1 clear, up to 1 chunk | the same |
//! | delete | manifest | 2 clears | the same |
//! | read, read_range | manifest, chunks in the range | – | changes of the blob |
//! | size, exists, stat | manifest | – | changes of the blob |
//! | put a part | record | 1 clear, chunks of the part, 2 | the end of the upload |
//! | finish | record, manifest, 1 key a part | manifest, 4 clears | changes and readers of the blob |
//! | collect | 2 keys an upload, twice | 4 clears an upload | the collected uploads |
//!
//! A chunk of 10,000 bytes is a good beginning; 1,000 to 5,000 serve random access better, 50,000 and more
//! sequential reads.
//!
//! ```
//! use shaketable_layers::{blob::{Blobs, Error}, tx::{Isolation, Transaction}};
//!
//! async fn log<T: Transaction>(tx: &T, blobs: &Blobs, line: &[u8]) -> Result<u64, Error> {
//!     blobs.append(tx, b"log", line).await?;
//!     blobs.append(tx, b"log", b"\n").await?;
//!     // Keep it below a megabyte: begin again with this line.
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
