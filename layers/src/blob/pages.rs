//! Reading a blob in many transactions.

use super::{Blobs, Error, Expect, Generation, Stat, keys::Manifest};
use crate::{
    reachable,
    tx::{Database, Isolation, RunError},
};
use bytes::{Bytes, BytesMut};
use std::future::Future;

/// Reads one content of a blob, one part at a time, each in its own transaction, which checks that the
/// content is still the same.
#[derive(Clone, Debug)]
pub struct Pages {
    blobs: Blobs,
    blob: Bytes,
    manifest: Manifest,
    offset: u64,
}

impl Pages {
    /// The pages of the blob in its current state; `None` if it does not exist. Dropping the future has no
    /// effect.
    pub fn open<D: Database>(
        db: &D,
        blobs: &Blobs,
        blob: &[u8],
    ) -> impl Future<Output = Result<Option<Pages>, RunError<Error>>> + Send {
        async move {
            let manifest =
                db.run(|tx, _| async move { blobs.manifest(&tx, blob, Isolation::Snapshot).await }).await?;
            let (blobs, blob) = (blobs.clone(), Bytes::copy_from_slice(blob));
            Ok(manifest.map(|manifest| Pages { blobs, blob, manifest, offset: 0 }))
        }
    }

    /// The metadata of the content that is read.
    pub fn stat(&self) -> Stat {
        Stat { size: self.manifest.size, generation: self.manifest.generation }
    }

    /// The next page; `None` after the last one. Fails with [`Error::Changed`] if the blob has changed since:
    /// what was read so far must be discarded, and only a new reader can reach the end.
    ///
    /// Dropping the future has no effect: the next call reads the same page.
    pub fn next<D: Database>(
        &mut self,
        db: &D,
    ) -> impl Future<Output = Result<Option<Bytes>, RunError<Error>>> + Send {
        async move {
            let Manifest { size, generation, .. } = self.manifest;
            if self.offset >= size {
                return Ok(None);
            }
            let (blobs, blob, from) = (&self.blobs, &self.blob[..], self.offset);
            // The length of a part, unless the blob's own chunks are too small for that; and not beyond the
            // end, which may be the largest possible offset.
            let length = blobs.part.min(blobs.readable(blob, &self.manifest)).min(size - from);
            let page = db
                .run(|tx, _| async move {
                    blobs.read_range_of(&tx, blob, generation, from, length, Isolation::Snapshot).await
                })
                .await?;
            self.offset += page.len() as u64;
            Ok(Some(page))
        }
    }
}

impl Blobs {
    /// A whole blob of any length, read page by page, with its generation. Fails with [`Error::Changed`] if
    /// it was changed meanwhile. Dropping the future has no effect.
    pub fn read_paged<D: Database>(
        &self,
        db: &D,
        blob: &[u8],
    ) -> impl Future<Output = Result<Option<(Generation, Bytes)>, RunError<Error>>> + Send {
        async move {
            let Some(mut pages) = Pages::open(db, self, blob).await? else { return Ok(None) };
            let mut content = BytesMut::new();
            loop {
                match pages.next(db).await {
                    Ok(Some(page)) => content.extend_from_slice(&page),
                    Ok(None) => return Ok(Some((pages.stat().generation, content.freeze()))),
                    Err(e) => {
                        if let Error::Changed { expected: Expect::Generation(_), .. } = e.error {
                            reachable!("blob: a reader notices that the content has changed");
                        }
                        return Err(e);
                    }
                }
            }
        }
    }
}
