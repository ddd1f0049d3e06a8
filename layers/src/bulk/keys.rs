//! The key schemas of jobs and workspaces.
//!
//! ```text
//! (jobs, job)                  =  (rows, finished, cursor)      how far a job has come
//!
//! (workspace, 0)               =  (build)                       the current build
//! (workspace, 1, build)        =  (state, version, base)        a build that is not the current one
//! (workspace, 2, build, ..)    =  its data
//! ```
//!
//! `cursor` is the first key that a job has not passed. `state` is 0 while a build is made and 1 when it
//! only waits to be cleared; `base` is the build that was current when it began.

use super::Error;
use crate::tx::Env;
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, pack, unpack};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Names a build. Draw it before any retry loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BuildId(pub [u8; 16]);

impl BuildId {
    /// A new id from the backend's randomness.
    pub fn draw(env: &Env) -> BuildId {
        crate::called!();
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

/// How far a job has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How many rows it has done.
    pub rows: u64,
    /// Whether nothing is left to do.
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

/// What is known of a build that is not the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Whether it only waits to be cleared.
    pub retired: bool,
    /// The read version at which it began.
    pub version: i64,
    /// What was current when it began.
    pub base: Option<BuildId>,
}

impl Record {
    pub fn encode(&self) -> Vec<u8> {
        let base = self.base.map_or(Vec::new(), |build| build.0.to_vec());
        pack(&(i64::from(self.retired), self.version, TupleBytes::from(base)))
    }

    pub fn decode(key: &[u8], value: &[u8]) -> Result<Record, Error> {
        let (state, version, base): (i64, i64, TupleBytes<'_>) =
            unpack(value).map_err(|_| Error::foreign(key))?;
        let base = match &base[..] {
            [] => None,
            id => Some(BuildId::decode(id).ok_or_else(|| Error::foreign(key))?),
        };
        match state {
            0 | 1 => Ok(Record { retired: state == 1, version, base }),
            _ => Err(Error::foreign(key)),
        }
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

pub(super) fn records(workspace: &Subspace) -> Subspace {
    workspace.subspace(&(1,))
}

pub(super) fn record(workspace: &Subspace, build: BuildId) -> Vec<u8> {
    records(workspace).pack(&(TupleBytes::from(&build.0[..]),))
}

/// The build of a record, by its key.
pub(super) fn build(workspace: &Subspace, key: &[u8]) -> Result<BuildId, Error> {
    let (id,): (TupleBytes<'_>,) = records(workspace).unpack(key).map_err(|_| Error::foreign(key))?;
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
            let record = Record { retired: base.is_some(), version: -1, base };
            assert_eq!(Record::decode(b"k", &record.encode()), Ok(record));
        }
        let state = pack(&(2i64, 1i64, TupleBytes::from(&b""[..])));
        assert_eq!(Record::decode(b"k", &state), Err(foreign.clone()));
        assert_eq!(pointed(b"k", &point(BuildId([9; 16]))), Ok(BuildId([9; 16])));
        assert_eq!(pointed(b"k", &pack(&("short",))), Err(foreign));
    }

    #[test]
    fn a_build_is_told_by_the_key_of_its_record_and_builds_are_apart() {
        let (workspace, id) = (Subspace::from("w"), BuildId([0xff; 16]));
        assert_eq!(build(&workspace, &record(&workspace, id)), Ok(id));
        let pointer = pointer(&workspace);
        assert_eq!(build(&workspace, &pointer), Err(Error::foreign(&pointer)));
        let (_, end) = data(&workspace, BuildId([0; 16])).range();
        assert!(end <= data(&workspace, BuildId([1; 16])).range().0);
    }
}
