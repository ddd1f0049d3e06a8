//! How one call is performed in a transaction, and the claim that a look reads no chunk which it does not
//! need.

use super::{
    Answer, Blob, Op, planted,
    stored::{places, space},
};
use crate::shared::one_call;
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, pack, unpack};
use shaketable::specimen::Content;
use shaketable_layers::blob::{Blobs, Error, Generation, MAX_READ_BYTES, MAX_READ_CHUNKS};
use shaketable_tx::{
    self as tx,
    Isolation::{self, Serializable, Snapshot},
    RangeOption, Transaction, Tx, always, strinc,
};

/// The layer with the chunk size of this kind of writers.
pub(super) fn of_kind(chunks: [usize; 2], kind: usize) -> Blobs {
    match kind % 3 {
        2 => Blobs::new(space()),
        kind => blobs(chunks[kind]),
    }
}

/// The layer with chunks of this size, and ten of them in a part.
pub(super) fn blobs(chunk: usize) -> Blobs {
    Blobs::with_sizes(space(), chunk, 10 * chunk).expect("sizes within the limits")
}

/// The generation to request when the blob has this one: the same, or another.
pub(super) fn generation_to_ask(found: Option<Generation>, same: bool) -> Generation {
    let found = found.unwrap_or(Generation { version: 0, step: 0 });
    Generation { step: found.step + i64::from(!same), ..found }
}

impl Blob {
    pub(super) async fn do_it(&self, tx: &Tx, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        match self.planted {
            Some(planted) => planted::perform(planted, self, tx, op, isolation).await,
            None => self.right(tx, op, isolation).await,
        }
    }

    /// Performs a call correctly.
    pub(super) async fn right(&self, tx: &Tx, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        let of_kind = |kind: usize| of_kind(self.chunks, kind);
        let one = of_kind(0);
        Ok(match op {
            Op::Write(kind, name, data) => {
                Answer::Written(of_kind(*kind).write(tx, self.name(*name), &data.bytes()).await?)
            }
            Op::Append(kind, name, data) => {
                Answer::Written(of_kind(*kind).append(tx, self.name(*name), &data.bytes()).await?)
            }
            Op::WriteAt(name, start, data) => {
                Answer::Written(one.write_at(tx, self.name(*name), *start, &data.bytes()).await?)
            }
            Op::Truncate(name, size) => Answer::Written(one.truncate(tx, self.name(*name), *size).await?),
            Op::Delete(name) => Answer::Deleted(one.delete(tx, self.name(*name)).await?),
            Op::Read(name) => {
                let content = one.read(tx, self.name(*name), isolation).await?;
                Answer::Content(content.as_ref().map(Content::from))
            }
            Op::ReadRange(name, start, length) => {
                let slice = one.read_range(tx, self.name(*name), *start, *length, isolation).await?;
                Answer::Content(slice.as_ref().map(Content::from))
            }
            Op::ReadRangeOf(name, same, start, length) => {
                let (name, tx) = (self.name(*name), &one_call(tx, true).await);
                let found = one.stat(tx, name, isolation).await?.map(|stat| stat.generation);
                let ask = generation_to_ask(found, *same);
                let slice = one.read_range_of(tx, name, ask, *start, *length, isolation).await?;
                Answer::Content(Some(Content::from(&slice)))
            }
            Op::Size(kind, name) => Answer::Size(of_kind(*kind).size(tx, self.name(*name), isolation).await?),
            Op::Exists(name) => Answer::Exists(one.exists(tx, self.name(*name), isolation).await?),
            Op::Stat(name) => {
                let stat = one.stat(tx, self.name(*name), isolation).await?;
                Answer::Stat(stat.map(|stat| (stat.size, stat.generation)))
            }
            Op::Foreign(chunk) => Answer::Foreign(foreign(&one_call(tx, false).await, *chunk).await?),
            Op::Sizes(chunk, part) => {
                // A read, so that the call has a place in the history.
                one.exists(tx, self.name(0), isolation).await?;
                Blobs::with_sizes(space(), *chunk, *part)?;
                Answer::Sized
            }
        })
    }

    /// Claims that a look reads no chunk outside of `start` to `end`. This is checked only for the first read
    /// of a blob in its transaction, because the conflict ranges of all reads add up.
    pub(super) async fn sparing(
        &self,
        tx: &Tx,
        content: &Subspace,
        before: Vec<(Bytes, bool)>,
        chunk: Option<u64>,
        (start, end): (u64, u64),
    ) -> Result<(), Error> {
        let (Some(chunk), true) = (chunk, before.is_empty()) else { return Ok(()) };
        for (key, _) in conflicts(tx, content).await? {
            let at = |at: u64| content.pack(&(at,));
            let needed = start < end && at(start - start % chunk)[..] <= key[..] && key[..] <= at(end)[..];
            always!(
                needed,
                "the bytes from {start} to {end}, in chunks of {chunk}, need no chunk at {}",
                key.escape_ascii()
            );
        }
        Ok(())
    }

    /// The size of a blob and the size of its chunks, read at snapshot so that this read does not conflict.
    pub(super) async fn chunk(&self, tx: &Tx, name: &[u8]) -> Result<Option<(u64, u64)>, Error> {
        let manifest = tx.get(&places(name).0, Snapshot).await?;
        let sizes = |value: Bytes| {
            let parts: (u64, u64, i64, i64, TupleBytes<'_>) = unpack(&value).ok()?;
            Some((parts.0, parts.1))
        };
        Ok(manifest.and_then(sizes))
    }
}

/// The name of a blob that no writer writes.
const FOREIGN: &[u8] = b"foreign";

/// The number of bytes of a foreign blob with chunks of this size that one transaction reads.
pub(super) fn readable(chunk: u64) -> u64 {
    let key = places(FOREIGN).1.pack(&(u64::MAX,)).len() as u64;
    chunk * (MAX_READ_BYTES / (chunk + key)).min(MAX_READ_CHUNKS)
}

/// Stores a foreign blob with chunks of this size and of the largest possible length, reads it and changes
/// it, and removes it. Returns how each call was refused.
async fn foreign(tx: &Tx, chunk: usize) -> Result<Vec<String>, Error> {
    let (layer, (manifest, content), at) = (blobs(chunk), places(FOREIGN), chunk as u64);
    let (limit, mut refused) = (readable(at), Vec::new());
    let slice =
        async |start, length| layer.read_range(tx, FOREIGN, start, length, Serializable).await.map(drop);
    let mut add = |called: Result<(), Error>| match called {
        Err(Error::Fdb(e)) => Err(Error::Fdb(e)),
        called => {
            refused.push(called.map_or_else(|e| e.to_string(), |()| String::new()));
            Ok(())
        }
    };
    tx.set(&manifest, &pack(&(u64::MAX, at, 0, 0, TupleBytes::from(&b""[..]))));
    add(slice(0, limit + 1).await)?;
    add(slice(1, limit).await)?;
    tx.set(&content.pack(&(at,)), &vec![0; chunk]);
    add(slice(0, at + 1).await)?;
    tx.set(&content.pack(&(0,)), &vec![0; chunk]);
    add(slice(0, at + 1).await)?;
    tx.clear(&content.pack(&(at,)));
    add(slice(0, at + 1).await)?;
    tx.set(&content.pack(&(0,)), &vec![0; chunk + 1]);
    add(slice(0, 1).await)?;
    add(layer.truncate(tx, FOREIGN, 1).await.map(drop))?;
    add(layer.write_at(tx, FOREIGN, 1, b"x").await.map(drop))?;
    add(layer.append(tx, FOREIGN, b"x").await.map(drop))?;
    tx.clear(&manifest);
    tx.clear(&content.pack(&(0,)));
    Ok(refused)
}

const READ: &[u8] = b"\xff\xff/transaction/read_conflict_range/";

/// The keys below `space` that this transaction has read serializably so far: each key at which such a range
/// begins or ends, and whether it begins there.
pub(super) async fn conflicts(tx: &Tx, space: &Subspace) -> tx::Result<Vec<(Bytes, bool)>> {
    // Everything with this prefix, because encoded integers may begin with 0xff, where the range of a
    // subspace ends.
    let end = strinc(space.bytes()).unwrap_or_else(|| vec![0xff].into());
    let range = RangeOption::new([READ, space.bytes()].concat(), [READ, &end].concat());
    let rows = tx.get_range_all(range, Serializable).await?;
    Ok(rows.into_iter().map(|row| (row.key.slice(READ.len()..), &row.value[..] == b"1")).collect())
}
