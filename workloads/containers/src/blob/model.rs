//! The sequential model: blobs by name.

use super::{
    Answer, Blob, Op,
    client::{self, generation_to_ask},
    stored::places,
};
use shaketable::specimen::{At, Content};
use shaketable_layers::blob::{Error, Expect, Generation};
use shaketable_tx::{VALUE_SIZE_LIMIT, limits};
use std::collections::BTreeMap;

/// All blobs, by name.
pub type Model = BTreeMap<Vec<u8>, Stored>;

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

impl Blob {
    /// Performs one call on the model.
    pub(super) fn replayed(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
        let slice = |model: &Model, name: &[u8], start: u64, length: u64| {
            let end = end(start, length)?;
            readable(name)?;
            let slice = model.get(name).map(|blob| {
                let size = blob.bytes.len() as u64;
                let (start, end) = (start.min(size) as usize, end.min(size) as usize);
                Content::from(&blob.bytes[start..end])
            });
            Ok::<_, Error>(slice)
        };
        let read = |model: &Model, name: usize| {
            readable(self.name(name))?;
            Ok::<_, Error>(model.get(self.name(name)).cloned())
        };
        Ok(match op {
            Op::Write(kind, name, data) => change(model, self.name(*name), at, |bytes| {
                let chunk = self.chunks.get(kind % 3).copied().unwrap_or(10_000);
                fits(self.name(*name), chunk, data.length)?;
                *bytes = data.bytes();
                Ok(())
            })?,
            Op::Append(_, name, data) => change(model, self.name(*name), at, |bytes| {
                bytes.extend(data.bytes());
                Ok(())
            })?,
            Op::WriteAt(name, start, data) => {
                end(*start, data.length as u64)?;
                change(model, self.name(*name), at, |bytes| {
                    let size = bytes.len() as u64;
                    if *start > size {
                        return Err(Error::BeyondEnd { offset: *start, size });
                    }
                    let (from, to) = (*start as usize, *start as usize + data.length);
                    bytes.splice(from..to.min(bytes.len()), data.bytes());
                    Ok(())
                })?
            }
            Op::Truncate(name, size) => {
                let name = self.name(*name);
                writable(name)?;
                if !model.contains_key(name) {
                    return Err(Error::Missing);
                }
                change(model, name, at, |bytes| match bytes.len() as u64 {
                    now if *size > now => Err(Error::BeyondEnd { offset: *size, size: now }),
                    _ => {
                        bytes.truncate(*size as usize);
                        Ok(())
                    }
                })?
            }
            Op::Delete(name) => {
                writable(self.name(*name))?;
                Answer::Deleted(model.remove(self.name(*name)).is_some())
            }
            Op::Read(name) => Answer::Content(slice(model, self.name(*name), 0, u64::MAX)?),
            Op::ReadRange(name, start, length) => {
                Answer::Content(slice(model, self.name(*name), *start, *length)?)
            }
            Op::ReadRangeOf(name, same, start, length) => {
                let found = read(model, *name)?.map(|blob| blob.generation);
                let slice = slice(model, self.name(*name), *start, *length)?;
                let ask = generation_to_ask(found, *same);
                match found == Some(ask) {
                    true => Answer::Content(slice),
                    false => return Err(Error::Changed { expected: Expect::Generation(ask), found }),
                }
            }
            Op::Size(_, name) => Answer::Size(read(model, *name)?.map(|blob| blob.bytes.len() as u64)),
            Op::Exists(name) => Answer::Exists(read(model, *name)?.is_some()),
            Op::Stat(name) => {
                Answer::Stat(read(model, *name)?.map(|blob| (blob.bytes.len() as u64, blob.generation)))
            }
            Op::Sizes(chunk, part) => match (*chunk, *part) {
                (chunk, _) if chunk == 0 || chunk > VALUE_SIZE_LIMIT => return Err(Error::ChunkSize(chunk)),
                (chunk, part) if part < chunk || part > 5_000_000 || part % chunk > 0 => {
                    return Err(Error::PartSize { part, chunk });
                }
                _ => Answer::Sized,
            },
            Op::Foreign(chunk) => {
                let (chunk, limit) = (*chunk as u64, client::readable(*chunk as u64));
                let too_long = Error::TooLong { bytes: limit + 1, limit };
                let beyond = Error::Overflow { start: u64::MAX, length: 1 };
                let refused = [
                    Some(too_long),
                    Some(Error::Damaged(0)),
                    Some(Error::Damaged(0)),
                    None,
                    Some(Error::Damaged(chunk)),
                    Some(Error::Damaged(0)),
                    Some(Error::Damaged(0)),
                    Some(Error::Damaged(0)),
                    Some(beyond),
                ];
                let words = |refused: Option<Error>| refused.map_or_else(String::new, |e| e.to_string());
                Answer::Foreign(refused.map(words).into())
            }
        })
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

/// Refuses a name that is too long to be read.
fn readable(name: &[u8]) -> Result<(), Error> {
    Ok(limits::key(&places(name).0)?)
}

/// Applies a change to a blob of the model.
pub(crate) fn change(
    model: &mut Model,
    name: &[u8],
    at: &At,
    change: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
) -> Result<Answer, Error> {
    writable(name)?;
    let mut blob = model
        .get(name)
        .cloned()
        .unwrap_or(Stored { generation: Generation { version: -1, step: 0 }, bytes: Vec::new() });
    change(&mut blob.bytes)?;
    let version = at.read_version.unwrap_or(0);
    blob.generation = match blob.generation {
        Generation { version: known, step } if known == version => Generation { version, step: step + 1 },
        _ => Generation { version, step: 0 },
    };
    let generation = blob.generation;
    model.insert(name.to_vec(), blob);
    Ok(Answer::Written(generation))
}
