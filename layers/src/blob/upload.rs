//! Content beyond one transaction: put in numbered parts where nobody reads, then made the blob's
//! content by one transaction.

use super::{
    Blobs, Error, Generation, UploadId,
    keys::{self, Manifest, Place, Record},
    ops::next,
};
use crate::{
    limits,
    once::{Outcome, Session, converging},
    reachable, sometimes,
    tx::{Database, Isolation, RangeOption, RunError, Transaction},
};
use bytes::Bytes;
use foundationdb_tuple::{pack, unpack};
use serde::{Deserialize, Serialize};
use std::{fmt, future::Future};

/// The largest part, in bytes: half of a transaction, so that keys and conflict ranges have room.
pub const MAX_PART_BYTES: usize = limits::TRANSACTION_SIZE_LIMIT / 2;

/// What must be true of a blob when an upload takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expect {
    /// Nothing.
    Anything,
    /// There is no such blob.
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
    /// Begins an upload. To begin it again does nothing, as long as it is under way.
    pub async fn begin_upload<T: Transaction>(
        &self,
        tx: &T,
        blob: &[u8],
        upload: UploadId,
    ) -> Result<(), Error> {
        crate::called!();
        self.fits(blob, Place::Own, self.chunk, 0)?;
        let version = tx.get_read_version().await?;
        let blob = Bytes::copy_from_slice(blob);
        let new = Record { blob, chunk: self.chunk, part: self.part, version };
        let key = keys::record(&self.subspace, upload);
        if let Some(old) = self.record(tx, upload).await? {
            return match (Record { version, ..old }) == new {
                true => Ok(()),
                false => Err(Error::OtherUpload(upload)),
            };
        }
        let manifest = self.manifest(tx, &new.blob, Isolation::Serializable).await?;
        if manifest.is_some_and(|manifest| manifest.place == Place::Upload(upload)) {
            return Err(Error::NoUpload(upload));
        }
        tx.set(&key, &new.encode());
        Ok(())
    }

    /// Puts a part, numbered from 0; one of that number that came before is replaced. Parts do not
    /// conflict with each other. Repeating it does no harm: [`converging`] is enough for it.
    pub async fn put_part<T: Transaction>(
        &self,
        tx: &T,
        upload: UploadId,
        number: u64,
        data: &[u8],
    ) -> Result<(), Error> {
        crate::called!();
        // Serializable: nothing can come to an upload that has ended meanwhile.
        let record = self.record(tx, upload).await?.ok_or(Error::NoUpload(upload))?;
        let bytes = data.len();
        if bytes == 0 || bytes as u64 > record.part {
            return Err(Error::PartLength { number, bytes, limit: record.part });
        }
        let overflow = Error::Overflow { start: number.saturating_mul(record.part), length: record.part };
        let end = number.checked_add(1).and_then(|next| next.checked_mul(record.part)).ok_or(overflow)?;
        let place = Place::Upload(upload);
        self.fits(&record.blob, place, record.chunk, bytes)?;
        let content = keys::content(&self.subspace, &record.blob, place);
        let start = end - record.part;
        tx.clear_range(&content.pack(&(start,)), &content.pack(&(end,)));
        let manifest = record.manifest(upload, bytes as u64, Generation { version: 0, step: 0 });
        self.put(tx, &record.blob, &manifest, start, data);
        tx.set(&keys::marks(&self.subspace, upload).pack(&(number,)), &pack(&(bytes as u64,)));
        Ok(())
    }

    /// Which parts have come, and how long each is: what another process needs to go on.
    pub async fn parts<T: Transaction>(
        &self,
        tx: &T,
        upload: UploadId,
        isolation: Isolation,
    ) -> Result<Vec<(u64, u64)>, Error> {
        crate::called!();
        let marks = keys::marks(&self.subspace, upload);
        let rows = tx.get_range_all(RangeOption::from(marks.range()), isolation).await?;
        let part = |row: crate::tx::KeyValue| {
            let number = marks.unpack(&row.key).map_err(|_| Error::foreign(&row.key));
            let length = unpack(&row.value).map_err(|_| Error::foreign(&row.key));
            number.and_then(|(number,)| Ok((number, length.map(|(length,)| length)?)))
        };
        rows.into_iter().map(part).collect()
    }

    /// Makes what was uploaded the blob's content: its parts from 0 on, all of the full size but the last.
    pub async fn finish_upload<T: Transaction>(
        &self,
        tx: &T,
        upload: UploadId,
        expect: Expect,
    ) -> Result<Generation, Error> {
        crate::called!();
        let record = self.record(tx, upload).await?.ok_or(Error::NoUpload(upload))?;
        let parts = self.parts(tx, upload, Isolation::Serializable).await?;
        for (expected, window) in (0..).zip(parts.windows(2)) {
            if window[0] != (expected, record.part) {
                return Err(match window[0].0 == expected {
                    true => Error::ShortPart(expected),
                    false => Error::MissingPart(expected),
                });
            }
        }
        if let Some((number, _)) = parts.last()
            && *number + 1 != parts.len() as u64
        {
            return Err(Error::MissingPart(parts.len() as u64 - 1));
        }
        let old = self.manifest(tx, &record.blob, Isolation::Serializable).await?;
        expect.check(old.map(|old| old.generation))?;
        if let Some(old) = old {
            reachable!("blob: an upload takes the place of other content");
            self.clear(tx, &record.blob, &old, 0);
        }
        let size = parts.iter().map(|(_, length)| length).sum();
        let generation = next(tx, old).await?;
        let manifest = record.manifest(upload, size, generation);
        tx.set(&keys::manifest(&self.subspace, &record.blob), &manifest.encode());
        self.forget(tx, upload);
        Ok(generation)
    }

    /// Gives an upload up and removes its parts; whether it was under way.
    pub async fn abandon_upload<T: Transaction>(&self, tx: &T, upload: UploadId) -> Result<bool, Error> {
        crate::called!();
        let Some(record) = self.record(tx, upload).await? else { return Ok(false) };
        let content = record.manifest(upload, 0, Generation { version: 0, step: 0 });
        self.clear(tx, &record.blob, &content, 0);
        self.forget(tx, upload);
        Ok(true)
    }

    /// Gives up to `most` uploads up that began more than `age` versions ago (a cluster counts about a
    /// million a second). Answers which.
    pub async fn collect<T: Transaction>(
        &self,
        tx: &T,
        age: i64,
        most: usize,
    ) -> Result<Vec<UploadId>, Error> {
        crate::called!();
        let before = tx.get_read_version().await?.saturating_sub(age);
        let range = RangeOption::from(keys::records(&self.subspace).range());
        // Only what is collected needs to be as it was: new uploads do not conflict.
        let rows = tx.get_range_all(range, Isolation::Snapshot).await?;
        let mut collected = Vec::new();
        for row in rows {
            if Record::decode(&row.key, &row.value)?.version < before && collected.len() < most {
                let upload = keys::upload(&self.subspace, &row.key)?;
                self.abandon_upload(tx, upload).await?;
                collected.push(upload);
            }
        }
        sometimes!(!collected.is_empty(), "blob: an upload that was given up is collected");
        Ok(collected)
    }

    /// Replaces a blob, or makes it, with content of any length, exactly once. What fails before the
    /// last transaction has changed nothing that anybody reads; its parts are left to
    /// [`collect`](Blobs::collect).
    pub fn upload_once<D: Database>(
        &self,
        session: &mut Session<D>,
        blob: &[u8],
        data: &[u8],
        expect: Expect,
    ) -> impl Future<Output = Outcome<Generation, Error>> + Send {
        crate::called!();
        async move {
            let db = session.database().clone();
            let upload = UploadId::draw(db.env());
            match self.put_all(&db, blob, upload, data).await {
                Ok(()) => self.finish_upload_once(session, upload, expect).await,
                Err(e) => Outcome::Refused(e.error),
            }
        }
    }

    /// Begins an upload and puts all its parts, each in a transaction of its own. May be done again, by
    /// anybody who has the same data.
    pub fn put_all<D: Database>(
        &self,
        db: &D,
        blob: &[u8],
        upload: UploadId,
        data: &[u8],
    ) -> impl Future<Output = Result<(), RunError<Error>>> + Send {
        crate::called!();
        async move {
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

    /// Clears what is known of an upload but its content.
    fn forget<T: Transaction>(&self, tx: &T, upload: UploadId) {
        tx.clear(&keys::record(&self.subspace, upload));
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

once_forms! { impl Blobs, Error {
    finish_upload_once = finish_upload(upload: UploadId, expect: Expect) -> Generation;
    abandon_upload_once = abandon_upload(upload: UploadId) -> bool;
} }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_is_compared() {
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
