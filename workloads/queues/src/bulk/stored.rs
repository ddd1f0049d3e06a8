//! Everything that is stored, read as a model, with the invariants that hold at every version.

use super::{
    Model,
    layout::{counts, entries, job, rows, tag, value, workspace_space},
};
use crate::shared::{self, check_ended};
use foundationdb_tuple::{Bytes as TupleBytes, unpack};
use shaketable_layers::bulk::Progress;
use shaketable_tx::{self as tx, Isolation::Serializable, KeyValue, Tx};
use std::collections::{BTreeMap, BTreeSet};

/// Reads everything that is stored, as a model. The inner error describes a broken invariant.
pub(super) async fn stored(tx: &Tx, build: i64) -> tx::Result<Result<Model, String>> {
    let mut read = Vec::new();
    for space in [rows(), counts(), entries(), workspace_space()] {
        read.push(shared::rows(tx, &space).await?);
    }
    let progress = match job().progress(tx, Serializable).await {
        Ok(progress) => progress,
        Err(e) => return check_ended(&e),
    };
    let [rows, counts, entries, workspace] = &read[..] else { return Ok(Err("four spaces".into())) };
    Ok(whole(&progress, rows, counts, entries)
        .and_then(|rows| Ok(Model { rows, tag: current(workspace, build)?, ..Model::default() })))
}

/// The rows, if the index covers exactly those that the job has passed.
fn whole(
    progress: &Progress,
    stored: &[KeyValue],
    counts: &[KeyValue],
    entries: &[KeyValue],
) -> Result<BTreeMap<i64, i64>, String> {
    let foreign = |row: &KeyValue| format!("a row that no client writes: {}", row.key.escape_ascii());
    let (mut model, mut right) = (BTreeMap::new(), (BTreeMap::new(), BTreeSet::new()));
    for row in stored {
        let (at,): (i64,) = rows().unpack(&row.key).map_err(|_| foreign(row))?;
        let value = value(&row.value).map_err(|_| foreign(row))?;
        model.insert(at, value);
        if row.key < progress.cursor {
            *right.0.entry(value).or_insert(0) += 1;
            right.1.insert((value, row.key.to_vec()));
        }
    }
    let mut index = (BTreeMap::new(), BTreeSet::new());
    for row in counts {
        let (value,): (i64,) = self::counts().unpack(&row.key).map_err(|_| foreign(row))?;
        let count = row.value[..].try_into().map(i64::from_le_bytes).map_err(|_| foreign(row))?;
        if count != 0 {
            index.0.insert(value, count);
        }
    }
    for row in entries {
        let (value, key): (i64, TupleBytes<'_>) =
            self::entries().unpack(&row.key).map_err(|_| foreign(row))?;
        index.1.insert((value, key.to_vec()));
    }
    match index == right {
        true => Ok(model),
        false => Err(format!(
            "after {} rows the index counts {:?} in {} entries, it should count {:?} in {}",
            progress.rows,
            index.0,
            index.1.len(),
            right.0,
            right.1.len()
        )),
    }
}

/// The tag of the current build, if that is complete, and every other row belongs to a build that is known.
fn current(stored: &[KeyValue], rows: i64) -> Result<Option<u32>, String> {
    let space = workspace_space();
    let mut builds: BTreeMap<Vec<u8>, Vec<KeyValue>> = BTreeMap::new();
    let (mut pointer, mut known, mut claimed) = (None, BTreeSet::new(), BTreeSet::new());
    let mut retired = BTreeSet::new();
    for row in stored {
        if let Ok((0,)) = space.unpack::<(i64,)>(&row.key) {
            pointer = unpack::<(TupleBytes<'_>,)>(&row.value).ok().map(|(build,)| build.to_vec());
        } else if let Ok((1, build)) = space.unpack::<(i64, TupleBytes<'_>)>(&row.key) {
            known.insert(build.to_vec());
        } else if let Ok((3, build)) = space.unpack::<(i64, TupleBytes<'_>)>(&row.key) {
            claimed.insert(build.to_vec());
        } else if let Ok((4, build)) = space.unpack::<(i64, TupleBytes<'_>)>(&row.key) {
            retired.insert(build.to_vec());
        } else if let Ok((2, build, _)) = space.unpack::<(i64, TupleBytes<'_>, i64)>(&row.key) {
            builds.entry(build.to_vec()).or_default().push(row.clone());
        } else {
            return Err(format!("a row that no client writes: {}", row.key.escape_ascii()));
        }
    }
    if let Some(build) = claimed.iter().find(|build| !known.contains(*build)) {
        return Err(format!("build {} has claims, but is not in progress", build.escape_ascii()));
    }
    let of = |build: &Vec<u8>| {
        [known.contains(build), retired.contains(build), pointer.as_ref() == Some(build)]
            .into_iter()
            .filter(|is| *is)
            .count()
    };
    if let Some(build) = known.iter().chain(&retired).chain(&pointer).find(|build| of(build) != 1) {
        return Err(format!("build {} is in two states", build.escape_ascii()));
    }
    if let Some(build) = builds.keys().find(|build| of(build) == 0) {
        return Err(format!("build {} has rows, but is not known", build.escape_ascii()));
    }
    let Some(build) = pointer else { return Ok(None) };
    let data = space.subspace(&(2, TupleBytes::from(&build[..])));
    tag(&data, builds.get(&build).map_or(&[][..], Vec::as_slice), rows).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::layout::built;
    use foundationdb_tuple::{Subspace, pack};

    fn row(space: Subspace, at: i64, value: Vec<u8>) -> KeyValue {
        KeyValue::new(space.pack(&(at,)), value)
    }

    #[test]
    fn a_row_that_was_done_twice_or_left_out_is_found() {
        let stored: Vec<_> = (0..3).map(|at| row(rows(), at, pack(&(0i64,)))).collect();
        let progress = Progress { rows: 2, finished: false, cursor: stored[2].key.clone() };
        let entries: Vec<_> = stored[..2]
            .iter()
            .map(|row| KeyValue::new(entries().pack(&(0i64, TupleBytes::from(&row.key[..]))), ""))
            .collect();
        let count = |n: i64| vec![row(counts(), 0, n.to_le_bytes().to_vec())];
        assert!(whole(&progress, &stored, &count(2), &entries).is_ok());
        assert!(whole(&progress, &stored, &count(3), &entries).is_err());
        assert!(whole(&progress, &stored, &count(2), &entries[..1]).is_err());
    }

    #[test]
    fn an_incomplete_build_is_found() {
        let space = Subspace::from("s");
        let built = |tags: &[u32]| -> Vec<KeyValue> {
            (0..).zip(tags).map(|(at, tag)| row(space.clone(), at, built(*tag))).collect()
        };
        assert_eq!(tag(&space, &built(&[7, 7]), 2), Ok(7));
        assert!(tag(&space, &built(&[7]), 2).is_err());
        assert!(tag(&space, &built(&[7, 8]), 2).is_err());
        assert!(tag(&space, &built(&[7, 7])[1..], 1).is_err());
    }
}
