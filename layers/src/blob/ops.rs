//! Operations on blobs in one transaction.

use super::{
    Error, Expect, Generation, MAX_PART_BYTES,
    keys::{self, Manifest, Place},
};
use crate::{
    canonical, limits, sometimes,
    tx::{Isolation, RangeOption, Transaction, VALUE_SIZE_LIMIT},
};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::Subspace;
use futures::TryStreamExt;
use std::pin::pin;

/// The maximum number of bytes that one transaction reads, including the chunks' keys: reading more could
/// exceed a transaction's time limit.
pub const MAX_READ_BYTES: u64 = limits::READ_LIMIT as u64;

/// The maximum number of chunks that one transaction reads.
pub const MAX_READ_CHUNKS: u64 = 100_000;

/// Blobs in their own subspace.
#[derive(Clone, Debug)]
pub struct Blobs {
    pub(super) subspace: Subspace,
    pub(super) chunk: u64,
    pub(super) part: u64,
}

/// The metadata of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The size in bytes.
    pub size: u64,
    /// The current generation.
    pub generation: Generation,
}

impl Blobs {
    /// The blobs in `subspace`, which must not be used for anything else; with chunks of 10,000 bytes and
    /// parts of 1,000,000.
    pub fn new(subspace: Subspace) -> Blobs {
        Blobs { subspace, chunk: 10_000, part: 1_000_000 }
    }

    /// Like [`new`](Blobs::new), with other sizes: `chunk` bytes per key, and up to `part` bytes, a multiple
    /// of `chunk`, per transaction of an upload or of [`Pages`](super::Pages).
    pub fn with_sizes(subspace: Subspace, chunk: usize, part: usize) -> Result<Blobs, Error> {
        if !(1..=VALUE_SIZE_LIMIT).contains(&chunk) {
            return Err(Error::ChunkSize(chunk));
        }
        if !(chunk..=MAX_PART_BYTES).contains(&part) || !part.is_multiple_of(chunk) {
            return Err(Error::PartSize { part, chunk });
        }
        Ok(Blobs { subspace, chunk: chunk as u64, part: part as u64 })
    }

    /// Replaces or creates a blob.
    pub async fn write<T: Transaction>(&self, tx: &T, blob: &[u8], data: &[u8]) -> Result<Generation, Error> {
        let tx = &tx.writing().await;
        self.fits(blob, Place::Own, self.chunk, data.len())?;
        let old = self.manifest(tx, blob, Isolation::Serializable).await?;
        let generation = next(tx, old).await?;
        if let Some(old) = old {
            self.clear(tx, blob, &old, 0);
        }
        let new = Manifest { size: data.len() as u64, chunk: self.chunk, generation, place: Place::Own };
        self.put(tx, blob, &new, 0, data);
        tx.set(&keys::manifest(&self.subspace, blob), &new.encode());
        Ok(generation)
    }

    /// Writes at the end; creates a missing blob.
    pub async fn append<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
        data: &[u8],
    ) -> Result<Generation, Error> {
        let tx = &tx.writing().await;
        let old = self.manifest_to_write(tx, blob).await?;
        self.splice(tx, blob, old, old.map_or(0, |old| old.size), data).await
    }

    /// Overwrites the bytes from `start`, and appends what extends beyond the end. From 0, creates a missing
    /// blob.
    pub async fn write_at<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
        start: u64,
        data: &[u8],
    ) -> Result<Generation, Error> {
        let tx = &tx.writing().await;
        end(start, data.len() as u64)?;
        let old = self.manifest_to_write(tx, blob).await?;
        match old.map_or(0, |old| old.size) {
            size if start > size => Err(Error::BeyondEnd { offset: start, size }),
            _ => self.splice(tx, blob, old, start, data).await,
        }
    }

    /// Truncates a blob to `size` bytes.
    pub async fn truncate<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
        size: u64,
    ) -> Result<Generation, Error> {
        let tx = &tx.writing().await;
        let old = self.manifest_to_write(tx, blob).await?.ok_or(Error::Missing)?;
        if size > old.size {
            return Err(Error::BeyondEnd { offset: size, size: old.size });
        }
        let last = size - size % old.chunk;
        let kept = match last < size {
            true => self.chunk(tx, blob, &old, last).await?.slice(..(size - last) as usize),
            false => Bytes::new(),
        };
        // An upload's place always has content: an id without content may be used again.
        let place = if size == 0 { Place::Own } else { old.place };
        let new = Manifest { size, generation: next(tx, Some(old)).await?, place, ..old };
        self.clear(tx, blob, &old, last);
        self.put(tx, blob, &new, last, &kept);
        tx.set(&keys::manifest(&self.subspace, blob), &new.encode());
        Ok(new.generation)
    }

    /// Removes a blob; returns whether it existed.
    pub async fn delete<T: Transaction>(&self, tx: &T, blob: &[u8]) -> Result<bool, Error> {
        let tx = &tx.writing().await;
        let Some(old) = self.manifest_to_write(tx, blob).await? else { return Ok(false) };
        self.clear(tx, blob, &old, 0);
        tx.clear(&keys::manifest(&self.subspace, blob));
        Ok(true)
    }

    /// The whole content. For more than one transaction can read, as with [`read_range`](Blobs::read_range),
    /// use [`Pages`](super::Pages).
    pub async fn read<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
        isolation: Isolation,
    ) -> Result<Option<Bytes>, Error> {
        self.read_range(tx, blob, 0, u64::MAX, isolation).await
    }

    /// Up to `length` bytes from `start`: fewer if the blob ends before, none from its end on.
    ///
    /// Fails with [`Error::TooLong`] beyond [`MAX_READ_BYTES`] or [`MAX_READ_CHUNKS`]: a transaction that
    /// exceeds its time limit would be retried forever.
    pub async fn read_range<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
        start: u64,
        length: u64,
        isolation: Isolation,
    ) -> Result<Option<Bytes>, Error> {
        let tx = &tx.reading().await;
        let end = end(start, length)?;
        let Some(manifest) = self.manifest(tx, blob, isolation).await? else { return Ok(None) };
        self.slice(tx, blob, &manifest, start, end, isolation).await.map(Some)
    }

    /// Like [`read_range`](Blobs::read_range), for a blob that must be in this generation.
    pub async fn read_range_of<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
        generation: Generation,
        start: u64,
        length: u64,
        isolation: Isolation,
    ) -> Result<Bytes, Error> {
        let tx = &tx.reading().await;
        let end = end(start, length)?;
        let manifest = self.manifest(tx, blob, isolation).await?;
        match manifest.filter(|manifest| manifest.generation == generation) {
            Some(manifest) => self.slice(tx, blob, &manifest, start, end, isolation).await,
            None => Err(Error::Changed {
                expected: Expect::Generation(generation),
                found: manifest.map(|manifest| manifest.generation),
            }),
        }
    }

    /// The size of the blob in bytes.
    pub async fn size<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
        isolation: Isolation,
    ) -> Result<Option<u64>, Error> {
        Ok(self.stat(tx, blob, isolation).await?.map(|stat| stat.size))
    }

    /// Whether the blob exists. An empty blob exists.
    pub async fn exists<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
        isolation: Isolation,
    ) -> Result<bool, Error> {
        Ok(self.stat(tx, blob, isolation).await?.is_some())
    }

    /// Size and generation.
    pub async fn stat<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
        isolation: Isolation,
    ) -> Result<Option<Stat>, Error> {
        let tx = &tx.reading().await;
        let manifest = self.manifest(tx, blob, isolation).await?;
        Ok(manifest.map(|manifest| Stat { size: manifest.size, generation: manifest.generation }))
    }

    /// Writes `data` from `start`, which is not beyond the end. The chunks at both ends keep their bytes
    /// outside of the written range.
    async fn splice<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
        old: Option<Manifest>,
        start: u64,
        data: &[u8],
    ) -> Result<Generation, Error> {
        let generation = next(tx, old).await?;
        let fresh = Manifest { size: 0, chunk: self.chunk, generation, place: Place::Own };
        let old = old.unwrap_or(fresh);
        let end = end(start, data.len() as u64)?;
        self.fits(blob, old.place, old.chunk, data.len())?;
        let (first, last) = (start - start % old.chunk, end - end % old.chunk);
        let mut bytes = BytesMut::new();
        if first < start {
            let chunk = self.chunk(tx, blob, &old, first).await?;
            bytes.extend_from_slice(&chunk[..(start - first) as usize]);
        }
        bytes.extend_from_slice(data);
        if last < end && end < old.size {
            let chunk = self.chunk(tx, blob, &old, last).await?;
            bytes.extend_from_slice(&chunk[(end - last) as usize..]);
        }
        sometimes!(first < start && last > first, "blob: a write begins and ends in different chunks");
        let new = Manifest { size: old.size.max(end), generation, ..old };
        self.put(tx, blob, &new, first, &bytes);
        tx.set(&keys::manifest(&self.subspace, blob), &new.encode());
        Ok(generation)
    }

    /// The content from `start` to `end`, or to its own end.
    async fn slice<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
        manifest: &Manifest,
        start: u64,
        end: u64,
        isolation: Isolation,
    ) -> Result<Bytes, Error> {
        let end = end.min(manifest.size);
        if start >= end {
            return Ok(Bytes::new());
        }
        let limit = self.readable(blob, manifest);
        if end - start > limit {
            return Err(Error::TooLong { bytes: end - start, limit });
        }
        let content = keys::content(&self.subspace, blob, manifest.place);
        let first = start - start % manifest.chunk;
        let range = RangeOption::new(content.pack(&(first,)), content.pack(&(end,)));
        let mut rows = pin!(tx.get_ranges_keyvalues(range, isolation));
        // Allocates for the rows that exist, since the manifest's size is not trusted, and stops at the first
        // damaged chunk.
        let mut bytes = BytesMut::new();
        let mut offset = first;
        while let Some(row) = rows.try_next().await? {
            let (found,): (u64,) =
                canonical::unpack_below(&content, &row.key).map_err(|_| Error::foreign(&row.key))?;
            if found != offset || row.value.len() as u64 != manifest.chunk.min(manifest.size - offset) {
                return Err(Error::Damaged(offset));
            }
            bytes.extend_from_slice(&row.value);
            offset += row.value.len() as u64;
        }
        match offset < end {
            true => Err(Error::Damaged(offset)),
            false => Ok(bytes.freeze().slice((start - first) as usize..(end - first) as usize)),
        }
    }

    /// The number of bytes of a blob that one transaction can read.
    pub(super) fn readable(&self, blob: &[u8], manifest: &Manifest) -> u64 {
        let key = keys::content(&self.subspace, blob, manifest.place).pack(&(u64::MAX,));
        manifest.chunk * (MAX_READ_BYTES / (manifest.chunk + key.len() as u64)).min(MAX_READ_CHUNKS)
    }

    /// The chunk at `offset`, read before a write changes part of it.
    async fn chunk<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
        manifest: &Manifest,
        offset: u64,
    ) -> Result<Bytes, Error> {
        let key = keys::content(&self.subspace, blob, manifest.place).pack(&(offset,));
        let length = manifest.chunk.min(manifest.size.saturating_sub(offset));
        let chunk = tx.get(&key, Isolation::Serializable).await?;
        chunk.filter(|chunk| chunk.len() as u64 == length).ok_or(Error::Damaged(offset))
    }

    pub(super) async fn manifest<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
        isolation: Isolation,
    ) -> Result<Option<Manifest>, Error> {
        let key = keys::manifest(&self.subspace, blob);
        limits::key(&key)?;
        tx.get(&key, isolation).await?.map(|value| Manifest::decode(&key, &value)).transpose()
    }

    /// The manifest of a blob, after checking that its keys are short enough to be written.
    async fn manifest_to_write<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
    ) -> Result<Option<Manifest>, Error> {
        self.fits(blob, Place::Own, self.chunk, 0)?;
        self.manifest(tx, blob, Isolation::Serializable).await
    }

    /// Checks that `bytes` bytes can be written in one transaction.
    pub(super) fn fits(&self, blob: &[u8], place: Place, chunk: u64, bytes: usize) -> Result<(), Error> {
        let key = keys::content(&self.subspace, blob, place).pack(&(u64::MAX,));
        limits::key(&key)?;
        // A key is sent with its value, and twice more in its conflict range. Up to two chunks of the blob
        // are written again.
        let chunks = bytes / chunk as usize + 2;
        Ok(limits::transaction(bytes + 2 * chunk as usize + chunks * (3 * key.len() + 16))?)
    }

    /// Writes `bytes` as chunks from `offset`, which must be the start of a chunk.
    pub(super) fn put<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
        manifest: &Manifest,
        offset: u64,
        bytes: &[u8],
    ) {
        let content = keys::content(&self.subspace, blob, manifest.place);
        for (number, chunk) in (0..).zip(bytes.chunks(manifest.chunk as usize)) {
            tx.set(&content.pack(&(offset + number * manifest.chunk,)), chunk);
        }
    }

    /// Clears the chunks from `offset` on.
    pub(super) fn clear<T: Transaction>(&self, tx: &T, blob: &[u8], manifest: &Manifest, offset: u64) {
        let content = keys::content(&self.subspace, blob, manifest.place);
        tx.clear_range(&content.pack(&(offset,)), &content.range().1);
    }
}

/// The generation after `old`.
pub(super) async fn next<T: Transaction>(tx: &T, old: Option<Manifest>) -> Result<Generation, Error> {
    let version = tx.get_read_version().await?;
    // A generation of another transaction has a lower read version.
    let step = match old {
        Some(old) if old.generation.version == version => old.generation.step + 1,
        _ => 0,
    };
    Ok(Generation { version, step })
}

/// The end of `length` bytes from `start`.
fn end(start: u64, length: u64) -> Result<u64, Error> {
    start.checked_add(length).ok_or(Error::Overflow { start, length })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::TooLarge;

    #[test]
    fn sizes_are_validated() {
        let sizes = |chunk, part| Blobs::with_sizes(Subspace::from("b"), chunk, part).map(drop);
        assert_eq!(sizes(1, 1), Ok(()));
        assert_eq!(sizes(VALUE_SIZE_LIMIT, MAX_PART_BYTES), Ok(()));
        assert_eq!(sizes(0, 1), Err(Error::ChunkSize(0)));
        assert_eq!(sizes(VALUE_SIZE_LIMIT + 1, 1), Err(Error::ChunkSize(VALUE_SIZE_LIMIT + 1)));
        assert_eq!(sizes(10, 25), Err(Error::PartSize { part: 25, chunk: 10 }));
        assert_eq!(sizes(10, 5), Err(Error::PartSize { part: 5, chunk: 10 }));
        let part = MAX_PART_BYTES + 10;
        assert_eq!(sizes(10, part), Err(Error::PartSize { part, chunk: 10 }));
    }

    #[test]
    fn the_default_sizes_are_those_of_the_documentation() {
        let blobs = Blobs::new(Subspace::from("b"));
        assert_eq!((blobs.chunk, blobs.part), (10_000, 1_000_000));
    }

    #[test]
    fn what_does_not_fit_is_refused_before_it_is_written() {
        let blobs = Blobs::new(Subspace::from("b"));
        assert_eq!(blobs.fits(b"x", Place::Own, 10_000, 9_900_000), Ok(()));
        let whole = blobs.fits(b"x", Place::Own, 10_000, 9_990_000);
        assert!(matches!(whole, Err(Error::TooLarge(TooLarge::Transaction { .. }))), "{whole:?}");
        // One byte per key: the keys account for most of the size.
        let keys = blobs.fits(b"x", Place::Own, 1, 200_000);
        assert!(matches!(keys, Err(Error::TooLarge(TooLarge::Transaction { .. }))), "{keys:?}");
        let long = blobs.fits(&[b'k'; 9_995], Place::Own, 10_000, 0);
        assert!(matches!(long, Err(Error::TooLarge(TooLarge::Key { .. }))), "{long:?}");
    }

    #[test]
    fn a_slice_ends_at_the_last_offset() {
        assert_eq!(end(5, 0), Ok(5));
        assert_eq!(end(0, u64::MAX), Ok(u64::MAX));
        assert_eq!(end(1, u64::MAX), Err(Error::Overflow { start: 1, length: u64::MAX }));
    }
}
