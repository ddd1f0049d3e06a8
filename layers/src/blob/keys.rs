//! The key schema of blobs.
//!
//! ```text
//! (blobs, 0, blob)             =  (size, chunk, version, step, upload)    manifest
//! (blobs, 1, blob, offset)     =  chunk         content written in place
//! (blobs, 2, upload, offset)   =  chunk         content written by an upload
//! (blobs, 3, upload)           =  (blob, chunk, part, version)            an upload in progress
//! (blobs, 4, upload, number)   =  (length)                                a part that was put
//! (blobs, 5, upload)           =  count         signs of life: 64 bits, little-endian
//! ```
//!
//! The manifest holds the length of the content, its chunk size, its generation and its location: in place if
//! `upload` is empty, as it is for an empty blob. Every chunk except the last has exactly the manifest's
//! chunk size, so that the offset determines the chunk.
//!
//! Each part that is put adds a sign of life to its upload. The count has its own key, written by an atomic
//! operation, so that parts do not conflict with each other.
//!
//! Decoded data is checked against what a writer could have written: no number that is read leads to an
//! arithmetic overflow, or to an allocation larger than what is stored.

use super::{Error, MAX_PART_BYTES};
use crate::{
    once::{self, Answer, Packed},
    tx::{Env, VALUE_SIZE_LIMIT},
};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, pack, unpack};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A state of a blob. It never recurs, not even if the blob is deleted and created again: it consists of the
/// read version of the transaction that created the state, and the number of the change within that
/// transaction. Two transactions with the same read version that change the same blob conflict. Only a
/// transaction that deletes a blob and creates it again counts from 0 again, and the states that it deleted
/// are not visible to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Generation {
    /// The read version.
    pub version: i64,
    /// The number of the change within the transaction, from 0.
    pub step: i64,
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.version, self.step)
    }
}

/// The two numbers, packed.
impl Answer for Generation {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        Packed((self.version, self.step)).encode(out)
    }
    fn decode(bytes: Bytes) -> Option<Generation> {
        Packed::decode(bytes).map(|Packed((version, step))| Generation { version, step })
    }
}

/// Identifies an upload. Draw it before any retry loop: otherwise, an attempt that committed with an unknown
/// result would leave its parts under another id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UploadId(pub [u8; 16]);

impl UploadId {
    /// A new id from the backend's randomness.
    pub fn draw(env: &Env) -> UploadId {
        UploadId(env.random_bytes())
    }
}

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// The location of a blob's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Under the blob's own key.
    Own,
    /// Under the id of an upload.
    Upload(UploadId),
}

/// The metadata of a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub size: u64,
    pub chunk: u64,
    pub generation: Generation,
    pub place: Place,
}

impl Manifest {
    pub fn encode(&self) -> Vec<u8> {
        let upload = match &self.place {
            Place::Own => &[][..],
            Place::Upload(id) => &id.0[..],
        };
        let Generation { version, step } = self.generation;
        pack(&(self.size, self.chunk, version, step, TupleBytes::from(upload)))
    }

    pub fn decode(key: &[u8], value: &[u8]) -> Result<Manifest, Error> {
        let (size, chunk, version, step, upload): (u64, u64, i64, i64, TupleBytes<'_>) =
            unpack(value).map_err(|_| Error::foreign(key))?;
        let place = match &upload[..] {
            [] => Place::Own,
            id => Place::Upload(UploadId(id.try_into().map_err(|_| Error::foreign(key))?)),
        };
        // The following step must be representable too.
        match is_chunk(chunk) && (0..i64::MAX).contains(&step) {
            true => Ok(Manifest { size, chunk, generation: Generation { version, step }, place }),
            false => Err(Error::foreign(key)),
        }
    }
}

/// Whether a writer could have cut content into chunks of this size.
fn is_chunk(chunk: u64) -> bool {
    (1..=VALUE_SIZE_LIMIT as u64).contains(&chunk)
}

/// An upload in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub blob: Bytes,
    pub chunk: u64,
    pub part: u64,
    /// The read version at which it began: distinguishes it from an earlier upload with the same id.
    pub version: i64,
}

impl Record {
    pub fn encode(&self) -> Vec<u8> {
        pack(&(TupleBytes::from(&self.blob[..]), self.chunk, self.part, self.version))
    }

    pub fn decode(key: &[u8], value: &[u8]) -> Result<Record, Error> {
        let (blob, chunk, part, version): (TupleBytes<'_>, u64, u64, i64) =
            unpack(value).map_err(|_| Error::foreign(key))?;
        let is_part = (chunk..=MAX_PART_BYTES as u64).contains(&part) && is_chunk(chunk);
        match is_part && part.is_multiple_of(chunk) {
            true => Ok(Record { blob: Bytes::copy_from_slice(&blob), chunk, part, version }),
            false => Err(Error::foreign(key)),
        }
    }
}

pub(super) fn manifest(blobs: &Subspace, blob: &[u8]) -> Vec<u8> {
    blobs.pack(&(0, TupleBytes::from(blob)))
}

pub(super) fn content(blobs: &Subspace, blob: &[u8], place: Place) -> Subspace {
    match place {
        Place::Own => blobs.subspace(&(1, TupleBytes::from(blob))),
        Place::Upload(id) => blobs.subspace(&(2, TupleBytes::from(&id.0[..]))),
    }
}

/// All uploads in progress.
pub(super) fn records(blobs: &Subspace) -> Subspace {
    blobs.subspace(&(3,))
}

pub(super) fn record(blobs: &Subspace, upload: UploadId) -> Vec<u8> {
    records(blobs).pack(&(TupleBytes::from(&upload.0[..]),))
}

/// The upload of a record, by its key.
pub(super) fn upload(blobs: &Subspace, key: &[u8]) -> Result<UploadId, Error> {
    let (id,): (TupleBytes<'_>,) = records(blobs).unpack(key).map_err(|_| Error::foreign(key))?;
    id[..].try_into().map(UploadId).map_err(|_| Error::foreign(key))
}

pub(super) fn marks(blobs: &Subspace, upload: UploadId) -> Subspace {
    blobs.subspace(&(4, TupleBytes::from(&upload.0[..])))
}

/// The key that counts an upload's signs of life.
pub(super) fn signs(blobs: &Subspace, upload: UploadId) -> Vec<u8> {
    blobs.pack(&(5, TupleBytes::from(&upload.0[..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_sort_as_offsets_do_whatever_the_name() {
        let blobs = Subspace::from("b");
        for name in [&b""[..], b"\0", b"\0\xff", b"\xff\xff", b"a"] {
            let content = content(&blobs, name, Place::Own);
            let keys: Vec<_> = [0u64, 1, 255, 256, 10_000, u64::MAX].map(|at| content.pack(&(at,))).into();
            assert!(keys.is_sorted());
            let (begin, end) = content.range();
            assert!(keys.iter().all(|key| begin <= *key && *key < end));
        }
        let (_, end) = content(&blobs, b"a", Place::Own).range();
        assert!(end <= content(&blobs, b"a\0", Place::Own).pack(&(0u64,)), "a name does not cover another");
    }

    #[test]
    fn what_is_stored_round_trips_and_garbage_is_foreign() {
        let generation = Generation { version: 7, step: 2 };
        for place in [Place::Own, Place::Upload(UploadId([0xff; 16]))] {
            let manifest = Manifest { size: u64::MAX, chunk: 10, generation, place };
            assert_eq!(Manifest::decode(b"k", &manifest.encode()), Ok(manifest));
        }
        let record = Record { blob: Bytes::from_static(b"\0x"), chunk: 1, part: 3, version: 9 };
        assert_eq!(Record::decode(b"k", &record.encode()), Ok(record.clone()));
        let foreign = Error::foreign(b"k");
        assert_eq!(Manifest::decode(b"k", b""), Err(foreign.clone()));
        let short = pack(&(1u64, 1u64, 1i64, 0i64, TupleBytes::from(&b"short"[..])));
        assert_eq!(Manifest::decode(b"k", &short), Err(foreign.clone()));
        let no_chunk = pack(&(1u64, 0u64, 1i64, 0i64, TupleBytes::from(&b""[..])));
        assert_eq!(Manifest::decode(b"k", &no_chunk), Err(foreign.clone()));
        assert_eq!(Record::decode(b"k", &pack(&("x",))), Err(foreign.clone()));
        let larger = VALUE_SIZE_LIMIT + 1;
        for (chunk, part) in [(0, 3), (1, 0), (2, 3), (3, 2), (larger, MAX_PART_BYTES), (larger, larger)] {
            let record = Record { chunk: chunk as u64, part: part as u64, ..record.clone() };
            assert_eq!(Record::decode(b"k", &record.encode()), Err(foreign.clone()), "{chunk} {part}");
        }
        let part = MAX_PART_BYTES as u64 + 1;
        assert_eq!(Record::decode(b"k", &Record { part, ..record }.encode()), Err(foreign));
    }

    #[test]
    fn a_manifest_that_would_overflow_is_foreign() {
        let decode = |chunk: u64, step: i64| {
            Manifest::decode(b"k", &pack(&(u64::MAX, chunk, 7i64, step, TupleBytes::from(&b""[..]))))
        };
        assert!(decode(VALUE_SIZE_LIMIT as u64, i64::MAX - 1).is_ok());
        for (chunk, step) in [(VALUE_SIZE_LIMIT as u64 + 1, 0), (u64::MAX, 0), (1, i64::MAX), (1, -1)] {
            assert_eq!(decode(chunk, step), Err(Error::foreign(b"k")), "{chunk} {step}");
        }
    }

    #[test]
    fn an_upload_is_identified_by_the_key_of_its_record() {
        let (blobs, id) = (Subspace::from("b"), UploadId([0; 16]));
        assert_eq!(upload(&blobs, &record(&blobs, id)), Ok(id));
        let mark = marks(&blobs, id).pack(&(0u64,));
        assert_eq!(upload(&blobs, &mark), Err(Error::foreign(&mark)));
    }

    #[test]
    fn generations_are_answers_in_order() {
        let (first, second) = (Generation { version: 5, step: 9 }, Generation { version: 6, step: 0 });
        assert!(first < second);
        let mut out = BytesMut::new();
        assert_eq!(first.encode(&mut out), Ok(None));
        assert_eq!(Generation::decode(out.freeze()), Some(first));
        assert_eq!(first.to_string(), "5.9");
    }
}
