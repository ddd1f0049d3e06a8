//! The sequential model: blobs by name.

use super::{Blob, Data, foreign, generation_to_ask, stored::places};
use shaketable::specimen::{At, Content};
use shaketable_layers::blob::{Error, Expect, Generation};
use shaketable_tx::{VALUE_SIZE_LIMIT, limits};
use std::collections::BTreeMap;

/// All blobs, by name, and the configuration that says what is named and how large chunks are.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub(super) workload: Blob,
    pub(crate) blobs: BTreeMap<Vec<u8>, Stored>,
}

/// A blob of the model.
#[derive(Clone, PartialEq)]
pub struct Stored {
    /// Its generation.
    pub generation: Generation,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.generation, Content::from(&self.bytes))
    }
}

impl Model {
    /// No blobs.
    pub(super) fn of(workload: Blob) -> Model {
        Model { workload, blobs: BTreeMap::new() }
    }

    pub(super) fn write(&mut self, written: (usize, usize, Data), at: &At) -> Result<Generation, Error> {
        let (kind, name, data) = written;
        let (name, chunk) = (self.name(name), self.workload.chunks.get(kind).copied().unwrap_or(10_000));
        self.change(name, at, |bytes| {
            fits(name, chunk, data.length())?;
            *bytes = data.bytes();
            Ok(())
        })
    }

    pub(super) fn append(&mut self, _: usize, named: (usize, Data), at: &At) -> Result<Generation, Error> {
        let (name, data) = named;
        self.change(self.name(name), at, |bytes| {
            bytes.extend(data.bytes());
            Ok(())
        })
    }

    pub(super) fn write_at(
        &mut self,
        named: (usize, Data),
        start: u64,
        at: &At,
    ) -> Result<Generation, Error> {
        let (name, data) = named;
        end(start, data.length() as u64)?;
        self.change(self.name(name), at, |bytes| {
            let size = bytes.len() as u64;
            if start > size {
                return Err(Error::BeyondEnd { offset: start, size });
            }
            let (from, to) = (start as usize, start as usize + data.length());
            bytes.splice(from..to.min(bytes.len()), data.bytes());
            Ok(())
        })
    }

    pub(super) fn truncate(&mut self, name: usize, size: u64, at: &At) -> Result<Generation, Error> {
        let name = self.name(name);
        writable(name)?;
        if !self.blobs.contains_key(name) {
            return Err(Error::Missing);
        }
        self.change(name, at, |bytes| match bytes.len() as u64 {
            now if size > now => Err(Error::BeyondEnd { offset: size, size: now }),
            _ => {
                bytes.truncate(size as usize);
                Ok(())
            }
        })
    }

    pub(super) fn delete(&mut self, name: usize) -> Result<bool, Error> {
        let name = self.name(name);
        writable(name)?;
        Ok(self.blobs.remove(name).is_some())
    }

    pub(super) fn read(&self, name: usize) -> Result<Option<Content>, Error> {
        self.read_range(name, (0, u64::MAX))
    }

    pub(super) fn read_range(&self, name: usize, slice: (u64, u64)) -> Result<Option<Content>, Error> {
        let (start, end) = (slice.0, end(slice.0, slice.1)?);
        Ok(self.blob(name)?.map(|blob| {
            let size = blob.bytes.len() as u64;
            let (start, end) = (start.min(size) as usize, end.min(size) as usize);
            Content::from(&blob.bytes[start..end])
        }))
    }

    pub(super) fn read_range_of(&self, name: usize, of: (bool, (u64, u64))) -> Result<Content, Error> {
        let (same, slice) = of;
        let found = self.blob(name)?.map(|blob| blob.generation);
        let (ask, read) = (generation_to_ask(found, same), self.read_range(name, slice)?);
        let changed = Error::Changed { expected: Expect::Generation(ask), found };
        read.filter(|_| found == Some(ask)).ok_or(changed)
    }

    pub(super) fn size(&self, _: usize, name: usize) -> Result<Option<u64>, Error> {
        Ok(self.stat(name)?.map(|(size, _)| size))
    }

    pub(super) fn exists(&self, name: usize) -> Result<bool, Error> {
        Ok(self.blob(name)?.is_some())
    }

    pub(super) fn stat(&self, name: usize) -> Result<Option<(u64, Generation)>, Error> {
        Ok(self.blob(name)?.map(|blob| (blob.bytes.len() as u64, blob.generation)))
    }

    pub(super) fn sizes(&self, chunk: usize, part: usize) -> Result<(), Error> {
        if chunk == 0 || chunk > VALUE_SIZE_LIMIT {
            return Err(Error::ChunkSize(chunk));
        }
        if part < chunk || part > 5_000_000 || !part.is_multiple_of(chunk) {
            return Err(Error::PartSize { part, chunk });
        }
        Ok(())
    }

    pub(super) fn foreign(&self, chunk: usize) -> Result<Vec<String>, Error> {
        Ok(foreign::expected(chunk))
    }

    fn name(&self, name: usize) -> &'static [u8] {
        self.workload.name(name)
    }

    /// A blob that is read.
    fn blob(&self, name: usize) -> Result<Option<&Stored>, Error> {
        let name = self.name(name);
        limits::key(&places(name).0)?;
        Ok(self.blobs.get(name))
    }

    /// Applies a change to a blob. Returns its new generation.
    pub(crate) fn change(
        &mut self,
        name: &[u8],
        at: &At,
        change: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<Generation, Error> {
        writable(name)?;
        let mut blob = self
            .blobs
            .get(name)
            .cloned()
            .unwrap_or(Stored { generation: Generation { version: -1, step: 0 }, bytes: Vec::new() });
        change(&mut blob.bytes)?;
        let version = at.read_version.unwrap_or(0);
        let generation = match blob.generation {
            Generation { version: known, step } if known == version => Generation { version, step: step + 1 },
            _ => Generation { version, step: 0 },
        };
        self.blobs.insert(name.to_vec(), Stored { generation, ..blob });
        Ok(generation)
    }
}

/// The end of a slice, or the error for an end that overflows.
fn end(start: u64, length: u64) -> Result<u64, Error> {
    start.checked_add(length).ok_or(Error::Overflow { start, length })
}

/// Refuses a name that is too long to be written.
pub(crate) fn writable(name: &[u8]) -> Result<(), Error> {
    Ok(limits::key(&places(name).1.pack(&(u64::MAX,)))?)
}

/// Refuses content that is too large for the transaction which writes it as a whole.
fn fits(name: &[u8], chunk: usize, bytes: usize) -> Result<(), Error> {
    let key = places(name).1.pack(&(u64::MAX,)).len();
    Ok(limits::transaction(bytes + 2 * chunk + (bytes / chunk + 2) * (3 * key + 16))?)
}
