//! A blob that no writer writes: it is longer than one transaction reads, and damaged.

use super::{blobs, stored::places};
use foundationdb_tuple::{Bytes as TupleBytes, pack};
use shaketable_layers::blob::{Error, MAX_READ_BYTES, MAX_READ_CHUNKS};
use shaketable_tx::{Isolation::Serializable, Transaction, Tx};

/// Its name.
const FOREIGN: &[u8] = b"foreign";

/// The number of bytes of a foreign blob with chunks of this size that one transaction reads.
fn readable(chunk: u64) -> u64 {
    let key = places(FOREIGN).1.pack(&(u64::MAX,)).len() as u64;
    chunk * (MAX_READ_BYTES / (chunk + key)).min(MAX_READ_CHUNKS)
}

/// Stores a foreign blob with chunks of this size and of the largest possible length, reads it and changes
/// it, and removes it. Returns how each call was refused; empty if it was not.
pub(super) async fn refusals(tx: &Tx, chunk: usize) -> Result<Vec<String>, Error> {
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

/// How they should be refused.
pub(super) fn expected(chunk: usize) -> Vec<String> {
    let (chunk, limit) = (chunk as u64, readable(chunk as u64));
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
    refused.map(|refused| refused.map_or_else(String::new, |e| e.to_string())).into()
}
