//! A blob read over many transactions.

use super::{Blobs, Error, Expect, Generation, Stat, keys::Manifest};
use crate::{
    reachable,
    tx::{Database, Isolation, RunError},
};
use bytes::{Bytes, BytesMut};
use std::future::Future;

/// Reads one content of a blob, a part at a time, each in a transaction of its own that makes sure that
/// it is still the same content.
#[derive(Clone, Debug)]
pub struct Pages {
    blobs: Blobs,
    blob: Bytes,
    manifest: Manifest,
    offset: u64,
}

impl Pages {
    /// The pages of a blob as it is now; `None` when there is no such blob. Dropping the future has no effect.
    pub fn open<D: Database>(
        db: &D,
        blobs: &Blobs,
        blob: &[u8],
    ) -> impl Future<Output = Result<Option<Pages>, RunError<Error>>> + Send {
        crate::called!();
        async move {
            let manifest =
                db.run(|tx, _| async move { blobs.manifest(&tx, blob, Isolation::Snapshot).await }).await?;
            let (blobs, blob) = (blobs.clone(), Bytes::copy_from_slice(blob));
            Ok(manifest.map(|manifest| Pages { blobs, blob, manifest, offset: 0 }))
        }
    }

    /// What is read.
    pub fn stat(&self) -> Stat {
        crate::called!();
        Stat { size: self.manifest.size, generation: self.manifest.generation }
    }

    /// The next page, `None` behind the last one. [`Error::Changed`] when the blob is no longer what it
    /// was: what was read so far is of no use, and only a new reader will see the end.
    ///
    /// Dropping the future has no effect: the same page is read by the next call.
    pub fn next<D: Database>(
        &mut self,
        db: &D,
    ) -> impl Future<Output = Result<Option<Bytes>, RunError<Error>>> + Send {
        crate::called!();
        async move {
            let Manifest { size, generation, .. } = self.manifest;
            if self.offset >= size {
                return Ok(None);
            }
            let (blobs, blob, from) = (&self.blobs, &self.blob[..], self.offset);
            // As wide as a part, which the blob's own chunks may be too small for; and not beyond the end,
            // which may be the last offset of all.
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
    /// A whole blob of any length, page by page, with its generation. [`Error::Changed`] when it was
    /// changed meanwhile. Dropping the future has no effect.
    pub fn read_paged<D: Database>(
        &self,
        db: &D,
        blob: &[u8],
    ) -> impl Future<Output = Result<Option<(Generation, Bytes)>, RunError<Error>>> + Send {
        crate::called!();
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
