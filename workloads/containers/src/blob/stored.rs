//! Everything that is stored, read by the key schema, chunk by chunk, as a model.

use super::Stored;
use crate::shared;
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, unpack};
use shaketable_layers::blob::Generation;
use shaketable_tx::{self as tx, Tx};
use std::collections::BTreeMap;

pub(crate) fn space() -> Subspace {
    Subspace::from("blobs")
}

/// The key of a blob's manifest, and the subspace of its content when that is in place.
pub(crate) fn places(name: &[u8]) -> (Vec<u8>, Subspace) {
    (space().pack(&(0, TupleBytes::from(name))), space().subspace(&(1, TupleBytes::from(name))))
}

/// Reads every blob by the key schema, chunk by chunk. The inner error describes a broken invariant: a chunk
/// that belongs to no blob, has the wrong length, or is missing.
pub(crate) async fn stored(tx: &Tx) -> tx::Result<Result<BTreeMap<Vec<u8>, Stored>, String>> {
    let rows = shared::rows(tx, &space()).await?;
    Ok(whole(rows.into_iter().map(|row| (row.key, row.value)).collect()))
}

fn whole(rows: BTreeMap<Bytes, Bytes>) -> Result<BTreeMap<Vec<u8>, Stored>, String> {
    let words = |key: &[u8]| format!("\"{}\"", key.escape_ascii());
    let (mut model, mut named) = (BTreeMap::new(), 0);
    for (key, value) in &rows {
        let Ok((0, name)) = space().unpack::<(i64, TupleBytes<'_>)>(key) else { continue };
        let (size, chunk, version, step, upload): (u64, u64, i64, i64, TupleBytes<'_>) =
            unpack(value).map_err(|_| format!("a manifest that cannot be read: {}", words(key)))?;
        let place = match upload.is_empty() {
            true => places(&name).1,
            false => space().subspace(&(2, upload)),
        };
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < size {
            let at = bytes.len() as u64;
            let chunk = rows.get(&place.pack(&(at,))[..]).filter(|c| c.len() as u64 == chunk.min(size - at));
            bytes.extend_from_slice(
                chunk.ok_or_else(|| format!("{} of {size} bytes lacks its chunk at {at}", words(&name)))?,
            );
            named += 1;
        }
        model.insert(name.to_vec(), Stored { generation: Generation { version, step }, bytes });
    }
    let uploads = uploads(&rows)?;
    match model.len() + named + uploads == rows.len() {
        true => Ok(model),
        false => Err(format!(
            "of {} keys {} belong to no blob and no upload",
            rows.len(),
            rows.len() - model.len() - named - uploads
        )),
    }
}

/// The number of keys that belong to uploads in progress: their records, the marks of their parts, and their
/// chunks.
fn uploads(rows: &BTreeMap<Bytes, Bytes>) -> Result<usize, String> {
    let mut keys = 0;
    for (key, record) in rows {
        let Ok((3, id)) = space().unpack::<(i64, TupleBytes<'_>)>(key) else { continue };
        let (_, chunk, part, _): (TupleBytes<'_>, u64, u64, i64) =
            unpack(record).map_err(|_| "an upload's record that cannot be read".to_owned())?;
        let signs = rows.get(&space().pack(&(5, id.clone()))[..]);
        let (marks, content) = (space().subspace(&(4, id.clone())), space().subspace(&(2, id)));
        let (begin, end) = marks.range();
        keys += 1 + usize::from(signs.is_some());
        for (mark, length) in rows.range(Bytes::from(begin)..Bytes::from(end)) {
            let number: Option<(u64,)> = marks.unpack(mark).ok();
            let length: Option<(u64,)> = unpack(length).ok();
            let (Some((number,)), Some((length,))) = (number, length) else {
                return Err("a part's mark that cannot be read".to_owned());
            };
            keys += 1;
            for at in (0..length).step_by(chunk as usize) {
                let stored = rows.get(&content.pack(&(number * part + at,))[..]);
                if stored.is_none_or(|stored| stored.len() as u64 != chunk.min(length - at)) {
                    return Err(format!("part {number} of an upload lacks its chunk at {at}"));
                }
                keys += 1;
            }
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_and_missing_chunks_are_found() {
        let (manifest, content) = places(b"x");
        let key = |at: u64| Bytes::from(content.pack(&(at,)));
        let size = foundationdb_tuple::pack(&(3u64, 2u64, 5i64, 0i64, TupleBytes::from(&b""[..])));
        let mut rows = BTreeMap::from([
            (Bytes::from(manifest), Bytes::from(size)),
            (key(0), Bytes::from_static(b"ab")),
            (key(2), Bytes::from_static(b"c")),
        ]);
        let model = whole(rows.clone()).expect("a whole blob");
        assert_eq!(model[&b"x"[..]].bytes, b"abc");
        rows.insert(key(4), Bytes::new());
        assert!(whole(rows.clone()).is_err_and(|why| why.contains("no blob and no upload")));
        rows.remove(&key(2));
        assert!(whole(rows).is_err_and(|why| why.contains("at 2")));
    }
}
