//! The key schemas of jobs and workspaces.
//!
//! ```text
//! (jobs, job)                  =  (rows, finished, cursor)      the progress of a job
//!
//! (workspace, 0)               =  (build)                       the current build
//! (workspace, 1, build)        =  (version, base)               a build in progress
//! (workspace, 2, build, ..)    =  a build's data
//! (workspace, 3, build)        =  claims                        of a build in progress: i64, little-endian
//! (workspace, 4, build)        =  ''                            a retired build, to be cleared
//! ```
//!
//! `cursor` is the first key that a job has not passed. `base` is the build that was current when this one
//! began. `version` is the read version at which it began: it distinguishes the build from an earlier one
//! with the same id, and does not measure its age, because versions jump when the cluster recovers. `claims`
//! counts the claims, so that an observer can see whether the builder is at work.

use super::Error;
use crate::tx::Env;
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, pack, unpack};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Identifies a build. Draw it before any retry loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BuildId(pub [u8; 16]);

impl BuildId {
    /// A new id from the backend's randomness.
    pub fn draw(env: &Env) -> BuildId {
        BuildId(env.random_bytes())
    }

    fn decode(bytes: &[u8]) -> Option<BuildId> {
        bytes.try_into().ok().map(BuildId)
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// The progress of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The number of processed rows.
    pub rows: u64,
    /// Whether all rows have been processed.
    pub finished: bool,
    /// The first key that it has not passed.
    pub cursor: Bytes,
}

impl Progress {
    pub(super) fn encode(&self) -> Vec<u8> {
        pack(&(self.rows, self.finished, TupleBytes::from(&self.cursor[..])))
    }

    pub(super) fn decode(key: &[u8], value: &[u8]) -> Result<Progress, Error> {
        let (rows, finished, cursor): (u64, bool, TupleBytes<'_>) =
            unpack(value).map_err(|_| Error::foreign(key))?;
        Ok(Progress { rows, finished, cursor: Bytes::copy_from_slice(&cursor) })
    }
}

/// The metadata of a build in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The read version at which it began.
    pub version: i64,
    /// The build that was current when it began.
    pub base: Option<BuildId>,
}

impl Record {
    pub fn encode(&self) -> Vec<u8> {
        let base = self.base.map_or(Vec::new(), |build| build.0.to_vec());
        pack(&(self.version, TupleBytes::from(base)))
    }

    pub fn decode(key: &[u8], value: &[u8]) -> Result<Record, Error> {
        let (version, base): (i64, TupleBytes<'_>) = unpack(value).map_err(|_| Error::foreign(key))?;
        let base = match &base[..] {
            [] => None,
            id => Some(BuildId::decode(id).ok_or_else(|| Error::foreign(key))?),
        };
        Ok(Record { version, base })
    }
}

pub(super) fn pointer(workspace: &Subspace) -> Vec<u8> {
    workspace.pack(&(0,))
}

pub(super) fn pointed(key: &[u8], value: &[u8]) -> Result<BuildId, Error> {
    let (id,): (TupleBytes<'_>,) = unpack(value).map_err(|_| Error::foreign(key))?;
    BuildId::decode(&id).ok_or_else(|| Error::foreign(key))
}

pub(super) fn point(build: BuildId) -> Vec<u8> {
    pack(&(TupleBytes::from(&build.0[..]),))
}

/// The subspace with one row for each build in progress.
pub(super) fn records(workspace: &Subspace) -> Subspace {
    workspace.subspace(&(1,))
}

/// The subspace with one row for each retired build.
pub(super) fn retirements(workspace: &Subspace) -> Subspace {
    workspace.subspace(&(4,))
}

pub(super) fn record(workspace: &Subspace, build: BuildId) -> Vec<u8> {
    records(workspace).pack(&(TupleBytes::from(&build.0[..]),))
}

pub(super) fn claims(workspace: &Subspace, build: BuildId) -> Vec<u8> {
    workspace.pack(&(3, TupleBytes::from(&build.0[..])))
}

/// How often a build was claimed, decoded from the value at [`claims`].
pub(super) fn claimed(key: &[u8], value: Option<&[u8]>) -> Result<i64, Error> {
    value.map_or(Ok(0), |value| value.try_into().map(i64::from_le_bytes).map_err(|_| Error::foreign(key)))
}

pub(super) fn retirement(workspace: &Subspace, build: BuildId) -> Vec<u8> {
    retirements(workspace).pack(&(TupleBytes::from(&build.0[..]),))
}

/// The build of a row of [`records`] or [`retirements`], by its key.
pub(super) fn build(part: &Subspace, key: &[u8]) -> Result<BuildId, Error> {
    let (id,): (TupleBytes<'_>,) = part.unpack(key).map_err(|_| Error::foreign(key))?;
    BuildId::decode(&id).ok_or_else(|| Error::foreign(key))
}

pub(super) fn data(workspace: &Subspace, build: BuildId) -> Subspace {
    workspace.subspace(&(2, TupleBytes::from(&build.0[..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_round_trips_and_garbage_is_foreign() {
        let foreign = Error::foreign(b"k");
        for cursor in [&b""[..], b"\0", b"a\0\xff"] {
            let progress = Progress { rows: 7, finished: false, cursor: Bytes::copy_from_slice(cursor) };
            assert_eq!(Progress::decode(b"k", &progress.encode()), Ok(progress));
        }
        assert_eq!(Progress::decode(b"k", b"x"), Err(foreign.clone()));
        for base in [None, Some(BuildId([0; 16]))] {
            let record = Record { version: -1, base };
            assert_eq!(Record::decode(b"k", &record.encode()), Ok(record));
        }
        let short = pack(&(1i64, TupleBytes::from(&b"id"[..])));
        assert_eq!(Record::decode(b"k", &short), Err(foreign.clone()));
        assert_eq!(claimed(b"k", None), Ok(0));
        assert_eq!(claimed(b"k", Some(&258i64.to_le_bytes())), Ok(258));
        assert_eq!(claimed(b"k", Some(b"x")), Err(foreign.clone()));
        assert_eq!(pointed(b"k", &point(BuildId([9; 16]))), Ok(BuildId([9; 16])));
        assert_eq!(pointed(b"k", &pack(&("short",))), Err(foreign));
    }

    #[test]
    fn a_build_is_identified_by_the_key_of_its_record_and_builds_are_disjoint() {
        let (workspace, id) = (Subspace::from("w"), BuildId([0xff; 16]));
        assert_eq!(build(&records(&workspace), &record(&workspace, id)), Ok(id));
        assert_eq!(build(&retirements(&workspace), &retirement(&workspace, id)), Ok(id));
        let pointer = pointer(&workspace);
        assert_eq!(build(&records(&workspace), &pointer), Err(Error::foreign(&pointer)));
        let (_, end) = data(&workspace, BuildId([0; 16])).range();
        assert!(end <= data(&workspace, BuildId([1; 16])).range().0);
    }
}
