//! The key schema of blobs.
//!
//! ```text
//! (blobs, 0, blob)             =  (size, chunk, version, step, upload)    manifest
//! (blobs, 1, blob, offset)     =  chunk         content written in place
//! (blobs, 2, upload, offset)   =  chunk         content that came by an upload
//! (blobs, 3, upload)           =  (blob, chunk, part, version)            an upload under way
//! (blobs, 4, upload, number)   =  (length)                                a part that has come
//! ```
//!
//! The manifest says how long the content is, how it is cut, in which generation it is, and where: in
//! place when `upload` is empty. Every chunk but the last has exactly the manifest's chunk size, so that
//! an offset tells the chunk.

use super::Error;
use crate::{
    once::{self, Answer, Packed},
    tx::Env,
};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, pack, unpack};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A state of a blob. It never comes back, not even when the blob is deleted and made anew: it is the
/// read version of the transaction that made the state, and the number of the change within. Two
/// transactions with one read version that change one blob conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Generation {
    /// The read version.
    pub version: i64,
    /// Counts the changes by one transaction, from 0.
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

/// Names an upload. Draw it before any retry loop: an attempt that committed unseen would otherwise
/// leave its parts under another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UploadId(pub [u8; 16]);

impl UploadId {
    /// A new id from the backend's randomness.
    pub fn draw(env: &Env) -> UploadId {
        crate::called!();
        UploadId(env.random_bytes())
    }
}

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Where a blob's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Under the blob's own name.
    Own,
    /// Where an upload has put it.
    Upload(UploadId),
}

/// What is known of a blob without its content.
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
        let (size, chunk, version, step, upload): (_, _, _, _, TupleBytes<'_>) =
            unpack(value).map_err(|_| Error::foreign(key))?;
        let place = match &upload[..] {
            [] => Place::Own,
            id => Place::Upload(UploadId(id.try_into().map_err(|_| Error::foreign(key))?)),
        };
        match chunk {
            0 => Err(Error::foreign(key)),
            _ => Ok(Manifest { size, chunk, generation: Generation { version, step }, place }),
        }
    }
}

/// An upload under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub blob: Bytes,
    pub chunk: u64,
    pub part: u64,
    /// The read version at which it began.
    pub version: i64,
}

impl Record {
    pub fn encode(&self) -> Vec<u8> {
        pack(&(TupleBytes::from(&self.blob[..]), self.chunk, self.part, self.version))
    }

    pub fn decode(key: &[u8], value: &[u8]) -> Result<Record, Error> {
        let (blob, chunk, part, version): (TupleBytes<'_>, _, _, _) =
            unpack(value).map_err(|_| Error::foreign(key))?;
        match (chunk, part) {
            (0, _) | (_, 0) => Err(Error::foreign(key)),
            _ => Ok(Record { blob: Bytes::copy_from_slice(&blob), chunk, part, version }),
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

/// All uploads under way.
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
        assert_eq!(Record::decode(b"k", &record.encode()), Ok(record));
        let foreign = Error::foreign(b"k");
        assert_eq!(Manifest::decode(b"k", b""), Err(foreign.clone()));
        let short = pack(&(1u64, 1u64, 1i64, 0i64, TupleBytes::from(&b"short"[..])));
        assert_eq!(Manifest::decode(b"k", &short), Err(foreign.clone()));
        let no_chunk = pack(&(1u64, 0u64, 1i64, 0i64, TupleBytes::from(&b""[..])));
        assert_eq!(Manifest::decode(b"k", &no_chunk), Err(foreign.clone()));
        assert_eq!(Record::decode(b"k", &pack(&("x",))), Err(foreign));
    }

    #[test]
    fn an_upload_is_told_by_the_key_of_its_record() {
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
