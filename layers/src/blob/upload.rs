//! Content too large for one transaction: it is put in numbered parts in a place that readers do not access,
//! and one transaction then makes it the blob's content.

use super::{
    Blobs, Error, Generation, UploadId,
    keys::{self, Manifest, Place, Record},
    ops::next,
};
use crate::{
    canonical, limits,
    once::{Outcome, Session, converging},
    reachable, read, sometimes,
    tx::{
        ConflictRangeType, Database, Isolation, KeyValue, MutationType, RangeOption, RunError, Transaction,
        key_after,
    },
};
use bytes::Bytes;
use foundationdb_tuple::{Subspace, pack, unpack};
use futures::{StreamExt, TryStreamExt, future::try_join, stream};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt, future::Future, time::Duration};

/// The maximum size of a part, in bytes: half of a transaction, which leaves room for keys and conflict
/// ranges.
pub const MAX_PART_BYTES: usize = limits::TRANSACTION_SIZE_LIMIT / 2;

/// The maximum number of parts of an upload: as many as the transaction that finishes it can read, if the
/// prefix of the subspace is short ([`READ_LIMIT`](limits::READ_LIMIT) bytes including the keys).
pub const MAX_PARTS: u64 = 100_000;

/// The number of uploads that one transaction of [`Blobs::collect`] reads.
const PAGE: usize = 100;

/// The condition on the existing blob under which an upload replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expect {
    /// No condition.
    Anything,
    /// The blob does not exist.
    Absent,
    /// It is still in this generation.
    Generation(Generation),
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expect::Anything => f.write_str("any"),
            Expect::Absent => f.write_str("absent"),
            Expect::Generation(generation) => generation.fmt(f),
        }
    }
}

impl Expect {
    fn check(self, found: Option<Generation>) -> Result<(), Error> {
        let fits = match self {
            Expect::Anything => true,
            Expect::Absent => found.is_none(),
            Expect::Generation(generation) => found == Some(generation),
        };
        match fits {
            true => Ok(()),
            false => Err(Error::Changed { expected: self, found }),
        }
    }
}

impl Blobs {
    /// Begins an upload. While the upload is in progress, beginning it again only counts as a sign of life.
    /// Fails with [`Error::NoUpload`] if its content has already become a blob's content.
    pub async fn begin_upload<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
        upload: UploadId,
    ) -> Result<(), Error> {
        let tx = &tx.writing().await;
        self.fits(blob, Place::Own, self.chunk, 0)?;
        let version = tx.get_read_version().await?;
        let blob = Bytes::copy_from_slice(blob);
        let new = Record { blob, chunk: self.chunk, part: self.part, version };
        if let Some(old) = self.record(tx, upload).await? {
            if (Record { version, ..old }) != new {
                return Err(Error::OtherUpload(upload));
            }
            self.sign(tx, upload);
            return Ok(());
        }
        let content = keys::content(&self.subspace, &new.blob, Place::Upload(upload));
        let first = RangeOption::from(content.range()).limit(1);
        if !read::all::<_, Error>(tx, first, Isolation::Serializable).await?.is_empty() {
            return Err(Error::NoUpload(upload));
        }
        tx.set(&keys::record(&self.subspace, upload), &new.encode());
        Ok(())
    }

    /// Puts a part, numbered from 0, and replaces an earlier part with the same number. Parts with different
    /// numbers do not conflict with each other. Repeating it is harmless, so that [`converging`] is
    /// sufficient. Each call counts as a sign of life.
    pub async fn put_part<T: Transaction>(
        &self,
        tx: &T,
        upload: UploadId,
        number: u64,
        data: &[u8],
    ) -> Result<(), Error> {
        let tx = &tx.writing().await;
        // Serializable: no part can be added to an upload that ends meanwhile.
        let record = self.record(tx, upload).await?.ok_or(Error::NoUpload(upload))?;
        let bytes = data.len();
        if bytes == 0 || bytes as u64 > record.part {
            return Err(Error::PartLength { number, bytes, limit: record.part });
        }
        if number >= MAX_PARTS {
            return Err(Error::PartNumber { number });
        }
        let place = Place::Upload(upload);
        self.fits(&record.blob, place, record.chunk, bytes)?;
        let content = keys::content(&self.subspace, &record.blob, place);
        let start = number * record.part;
        let mark = keys::marks(&self.subspace, upload).pack(&(number,));
        // Otherwise an abandoned attempt that commits late could overwrite the part that has replaced its
        // own.
        tx.add_conflict_key(&mark, ConflictRangeType::Read)?;
        tx.clear_range(&content.pack(&(start,)), &content.pack(&(start + record.part,)));
        let manifest = record.manifest(upload, bytes as u64, Generation { version: 0, step: 0 });
        self.put(tx, &record.blob, &manifest, start, data);
        tx.set(&mark, &pack(&(bytes as u64,)));
        self.sign(tx, upload);
        Ok(())
    }

    /// The parts that were put, each with its length: what another process needs to continue the upload.
    pub async fn parts<T: Transaction>(
        &self,
        tx: &T,
        upload: UploadId,
        isolation: Isolation,
    ) -> Result<Vec<(u64, u64)>, Error> {
        let tx = &tx.reading().await;
        let marks = keys::marks(&self.subspace, upload);
        let rows = read::all::<_, Error>(tx, RangeOption::from(marks.range()), isolation).await?;
        rows.iter().map(|row| part(&marks, row)).collect()
    }

    /// The uploads in progress, in the order of their ids: up to `most` of them after `after`.
    pub async fn uploads<T: Transaction>(
        &self,
        tx: &T,
        after: Option<UploadId>,
        most: usize,
        isolation: Isolation,
    ) -> Result<Vec<UploadId>, Error> {
        let tx = &tx.reading().await;
        let rows = self.records(tx, after, most, isolation).await?;
        rows.iter().map(|row| keys::upload(&self.subspace, &row.key)).collect()
    }

    /// Makes the uploaded parts the blob's content: parts from 0 on, all of full size except the last.
    pub async fn finish_upload<T: Transaction>(
        &self,
        tx: &T,
        upload: UploadId,
        expect: Expect,
    ) -> Result<Generation, Error> {
        let tx = &tx.writing().await;
        let record = self.record(tx, upload).await?.ok_or(Error::NoUpload(upload))?;
        let (parts, old) = try_join(
            self.parts(tx, upload, Isolation::Serializable),
            self.manifest(tx, &record.blob, Isolation::Serializable),
        )
        .await?;
        for (expected, window) in (0..).zip(parts.windows(2)) {
            if window[0] != (expected, record.part) {
                return Err(match window[0].0 == expected {
                    true => Error::ShortPart(expected),
                    false => Error::MissingPart(expected),
                });
            }
        }
        if let Some((number, length)) = parts.last() {
            let expected = parts.len() as u64 - 1;
            if *number != expected {
                return Err(Error::MissingPart(expected));
            }
            if !(1..=record.part).contains(length) {
                return Err(Error::Damaged(expected * record.part));
            }
        }
        expect.check(old.map(|old| old.generation))?;
        if let Some(old) = old {
            reachable!("blob: an upload takes the place of other content");
            self.clear(tx, &record.blob, &old, 0);
        }
        let size = parts.iter().map(|(_, length)| length).sum();
        let generation = next(tx, old).await?;
        let mut manifest = record.manifest(upload, size, generation);
        if size == 0 {
            // An id without content may be used again.
            manifest.place = Place::Own;
        }
        tx.set(&keys::manifest(&self.subspace, &record.blob), &manifest.encode());
        self.forget(tx, upload);
        Ok(generation)
    }

    /// Abandons an upload and removes its parts; returns whether it was in progress.
    pub async fn abandon_upload<T: Transaction>(&self, tx: &T, upload: UploadId) -> Result<bool, Error> {
        let tx = &tx.writing().await;
        let Some(record) = self.record(tx, upload).await? else { return Ok(false) };
        let content = record.manifest(upload, 0, Generation { version: 0, step: 0 });
        self.clear(tx, &record.blob, &content, 0);
        self.forget(tx, upload);
        Ok(true)
    }

    /// Abandons the uploads that show no sign of life for `patience`, measured by this process's own timer,
    /// and removes their parts; returns the ids of those that it removed. Live uploads are safe if `patience`
    /// is longer than they ever take between two parts, including retries during a recovery of the cluster.
    ///
    /// Uses many transactions: each reads a hundred uploads, and there is one for each upload that is
    /// removed, which conflicts with whatever that upload still does. Can be repeated at any time. An upload
    /// whose removal committed with an unknown result may be missing in the returned ids.
    ///
    /// Dropping the future: some uploads may have been removed, the others are unchanged. Call it again.
    pub fn collect<D: Database>(
        &self,
        db: &D,
        patience: Duration,
    ) -> impl Future<Output = Result<Vec<UploadId>, RunError<Error>>> + Send {
        async move {
            let observed = self.observe_all(db).await?;
            if observed.is_empty() {
                return Ok(Vec::new());
            }
            db.env().sleep(patience).await;
            let mut collected = Vec::new();
            for (upload, observed) in &observed {
                let removed = db.run(|tx, _| async move {
                    match self.observe(&tx, *upload).await? == *observed {
                        true => self.abandon_upload(&tx, *upload).await,
                        false => Ok(false),
                    }
                });
                let removed = removed.await?;
                sometimes!(removed, "blob: an upload that was given up is collected");
                sometimes!(!removed, "blob: an upload that lives is not collected");
                collected.extend(removed.then_some(*upload));
            }
            Ok(collected)
        }
    }

    /// Replaces or creates a blob with content of up to [`MAX_PARTS`] parts, exactly once. A failure before
    /// the last transaction changes nothing that readers see; its parts are left to
    /// [`collect`](Blobs::collect), as they are if the future is dropped.
    pub fn upload_once<D: Database>(
        &self,
        session: &mut Session<D>,
        blob: &[u8],
        data: &[u8],
        expect: Expect,
    ) -> impl Future<Output = Outcome<Generation, Error>> + Send {
        async move {
            let db = session.database().clone();
            let upload = UploadId::draw(db.env());
            match self.put_all(&db, blob, upload, data).await {
                Ok(()) => {
                    session.apply(|tx| async move { self.finish_upload(&tx, upload, expect).await }).await
                }
                Err(e) => Outcome::Refused(e.error),
            }
        }
    }

    /// Begins an upload and puts all its parts, each in its own transaction. May be repeated by any process
    /// that has the same data, and continues where it stopped if the future was dropped.
    pub fn put_all<D: Database>(
        &self,
        db: &D,
        blob: &[u8],
        upload: UploadId,
        data: &[u8],
    ) -> impl Future<Output = Result<(), RunError<Error>>> + Send {
        async move {
            let last = (data.len() as u64).div_ceil(self.part).saturating_sub(1);
            if last >= MAX_PARTS {
                let error = Error::PartNumber { number: last };
                return Err(RunError { error, maybe_committed: false, attempts: 0 });
            }
            converging(db, |tx| async move { self.begin_upload(&tx, blob, upload).await }).await?;
            for (number, part) in (0..).zip(data.chunks(self.part as usize)) {
                converging(db, |tx| async move { self.put_part(&tx, upload, number, part).await }).await?;
            }
            Ok(())
        }
    }

    async fn record<T: Transaction>(&self, tx: &T, upload: UploadId) -> Result<Option<Record>, Error> {
        let key = keys::record(&self.subspace, upload);
        let value = tx.get(&key, Isolation::Serializable).await?;
        value.map(|value| Record::decode(&key, &value)).transpose()
    }

    /// The rows of the records after the upload `after`.
    async fn records<T: Transaction>(
        &self,
        tx: &T,
        after: Option<UploadId>,
        most: usize,
        isolation: Isolation,
    ) -> Result<Vec<KeyValue>, Error> {
        if most == 0 {
            return Ok(Vec::new());
        }
        let (first, end) = keys::records(&self.subspace).range();
        let begin = after.map_or(first, |after| key_after(&keys::record(&self.subspace, after)).into());
        read::all(tx, RangeOption::new(begin, end).limit(most), isolation).await
    }

    /// The state of an upload that changes while it is alive.
    async fn observe<T: Transaction>(&self, tx: &T, upload: UploadId) -> Result<ObservedUpload, Error> {
        let (record, signs) = (keys::record(&self.subspace, upload), keys::signs(&self.subspace, upload));
        let read = |key: &[u8]| tx.get(key, Isolation::Serializable);
        let (record, signs) = try_join(read(&record), read(&signs)).await?;
        Ok(ObservedUpload { record, signs })
    }

    /// The same for all uploads, one page at a time.
    async fn observe_all<D: Database>(
        &self,
        db: &D,
    ) -> Result<BTreeMap<UploadId, ObservedUpload>, RunError<Error>> {
        let mut all = BTreeMap::new();
        loop {
            let after = all.last_key_value().map(|(upload, _)| *upload);
            let page = db
                .run(|tx, _| async move {
                    let uploads = self.uploads(&tx, after, PAGE, Isolation::Snapshot).await?;
                    let (blobs, tx) = (self, &tx);
                    let looks = uploads.into_iter().map(|upload| async move {
                        Ok::<_, Error>((upload, blobs.observe(tx, upload).await?))
                    });
                    let looks: Vec<_> = looks.collect();
                    stream::iter(looks).buffered(read::AT_ONCE).try_collect::<Vec<_>>().await
                })
                .await?;
            let ends = page.len() < PAGE;
            all.extend(page);
            if ends {
                return Ok(all);
            }
        }
    }

    /// Adds a sign of life.
    fn sign<T: Transaction>(&self, tx: &T, upload: UploadId) {
        tx.atomic_op(&keys::signs(&self.subspace, upload), &1u64.to_le_bytes(), MutationType::Add);
    }

    /// Clears the metadata of an upload, but not its content.
    fn forget<T: Transaction>(&self, tx: &T, upload: UploadId) {
        tx.clear(&keys::record(&self.subspace, upload));
        tx.clear(&keys::signs(&self.subspace, upload));
        let (begin, end) = keys::marks(&self.subspace, upload).range();
        tx.clear_range(&begin, &end);
    }
}

impl Record {
    /// The manifest of a blob with this upload's content.
    fn manifest(&self, upload: UploadId, size: u64, generation: Generation) -> Manifest {
        Manifest { size, chunk: self.chunk, generation, place: Place::Upload(upload) }
    }
}

/// The state of an upload as read by a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ObservedUpload {
    record: Option<Bytes>,
    signs: Option<Bytes>,
}

/// A part that was put, decoded from its mark: its number and its length.
fn part(marks: &Subspace, row: &KeyValue) -> Result<(u64, u64), Error> {
    let foreign = || Error::foreign(&row.key);
    let (number,): (u64,) = canonical::unpack_below(marks, &row.key).map_err(|_| foreign())?;
    let (length,): (u64,) = unpack(&row.value).map_err(|_| foreign())?;
    Ok((number, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_generation_is_compared_with_the_existing_one() {
        let generation = Generation { version: 4, step: 0 };
        let found = Some(generation);
        let other = Some(Generation { version: 4, step: 1 });
        for found in [None, found] {
            assert_eq!(Expect::Anything.check(found), Ok(()));
        }
        assert_eq!(Expect::Absent.check(None), Ok(()));
        assert_eq!(Expect::Absent.check(found), Err(Error::Changed { expected: Expect::Absent, found }));
        let expected = Expect::Generation(generation);
        assert_eq!(expected.check(found), Ok(()));
        for found in [None, other] {
            assert_eq!(expected.check(found), Err(Error::Changed { expected, found }));
        }
        let words = expected.check(None).unwrap_err().to_string();
        assert_eq!(words, "the blob is in generation none, not 4.0");
    }
}
