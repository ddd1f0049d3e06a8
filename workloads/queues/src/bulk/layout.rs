//! Where the rows, their index and the builds are stored, and what a row of each contains.

use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, pack, unpack};
use shaketable_layers::bulk::{self, BuildId, Error, Job};
use shaketable_tx::{
    self as tx, Isolation::Serializable, KeyValue, MutationType, RangeOption, Transaction, Tx,
};

pub(super) fn rows() -> Subspace {
    Subspace::from("rows")
}

pub(super) fn counts() -> Subspace {
    Subspace::from("counts")
}

pub(super) fn entries() -> Subspace {
    Subspace::from("entries")
}

pub(super) fn jobs() -> Subspace {
    Subspace::from("jobs")
}

pub(super) fn workspace_space() -> Subspace {
    Subspace::from("workspace")
}

pub(super) fn job() -> Job {
    Job::new(&jobs(), b"index", rows().range()).expect("a short name")
}

/// The key of the job's progress.
pub(super) fn job_key() -> Vec<u8> {
    jobs().pack(&(TupleBytes::from(&b"index"[..]),))
}

pub(super) fn workspace() -> bulk::Workspace {
    bulk::Workspace::new(workspace_space()).expect("a short prefix")
}

/// The value in a row of the source.
pub(super) fn value(row: &[u8]) -> Result<i64, Error> {
    unpack::<(i64,)>(row).map(|(value,)| value).map_err(|_| Error::Foreign(Bytes::copy_from_slice(row)))
}

/// The build with this tag. A tag identifies one operation of a run.
pub(super) fn build_id(tag: u32) -> BuildId {
    BuildId(u128::from(tag).to_be_bytes())
}

/// The tag of a build.
pub(super) fn tag_of(build: BuildId) -> u32 {
    u128::from_be_bytes(build.0) as u32
}

/// The value of a row of a build.
pub(super) fn built(tag: u32) -> Vec<u8> {
    pack(&(tag,))
}

/// The tag of a build's rows. All rows must be present and have the same tag.
pub(super) fn tag(space: &Subspace, rows: &[KeyValue], expected: i64) -> Result<u32, String> {
    let mut tag = None;
    for (place, row) in (0..).zip(rows) {
        let at: Option<(i64,)> = space.unpack(&row.key).ok();
        let found: Option<(u32,)> = unpack(&row.value).ok();
        match (at, found) {
            (Some((at,)), Some((found,))) if at == place && tag.is_none_or(|tag| tag == found) => {
                tag = Some(found);
            }
            _ => {
                return Err(format!(
                    "row {place} of a build is {at:?} with tag {found:?}, after tag {tag:?}"
                ));
            }
        }
    }
    match tag {
        Some(tag) if rows.len() as i64 == expected => Ok(tag),
        _ => Err(format!("a build has {} of {expected} rows", rows.len())),
    }
}

/// Adds a row to the index, or removes it.
fn index(tx: &Tx, row: &[u8], value: i64, adds: bool) {
    let one: i64 = if adds { 1 } else { -1 };
    tx.atomic_op(&counts().pack(&(value,)), &one.to_le_bytes(), MutationType::Add);
    let entry = entries().pack(&(value, TupleBytes::from(row)));
    match adds {
        true => tx.set(&entry, b""),
        false => tx.clear(&entry),
    }
}

/// What the job does with a row.
pub(super) async fn work(tx: Tx, row: KeyValue) -> Result<(), Error> {
    index(&tx, &row.key, value(&row.value)?, true);
    Ok(())
}

/// Sets a row or removes it, and updates the index if the job has passed the row. Returns the previous value.
pub(super) async fn put(tx: &Tx, job: &Job, row: i64, new: Option<i64>) -> Result<Option<i64>, Error> {
    let key = rows().pack(&(row,));
    let indexed = job.has_passed(tx, &key).await?;
    let old = tx.get(&key, Serializable).await?.map(|old| value(&old)).transpose()?;
    if indexed {
        old.into_iter().for_each(|old| index(tx, &key, old, false));
        new.into_iter().for_each(|new| index(tx, &key, new, true));
    }
    match new {
        Some(new) => tx.set(&key, &pack(&(new,))),
        None => tx.clear(&key),
    }
    Ok(old)
}

/// The rows of a space after `last`, up to `most` of them.
pub(super) async fn rest(
    tx: &Tx,
    space: &Subspace,
    last: Option<&[u8]>,
    most: Option<usize>,
) -> Result<Vec<KeyValue>, Error> {
    let (begin, end) = space.range();
    let begin = last.map_or(Bytes::from(begin), tx::key_after);
    let range = RangeOption { limit: most, ..RangeOption::new(begin, end) };
    Ok(tx.get_range_all(range, Serializable).await?)
}
