//! Indexes of ranks: the position of each score among the scores of its group.
//!
//! The grouped columns of the index's expression are the score, the columns before them the group
//! ([`KeyExpression::grouping_columns`](crate::expression::KeyExpression::grouping_columns): by default the
//! last column is the score). The index has the entries of a value index, and for each group a [`RankedSet`]
//! of its packed scores in [`Part::Secondary`].
//!
//! The rank of a record is the number of scores below its own, in its group: the least score has rank 0.
//! Records with the same score have the same rank. By default equal scores count once, so that ranks have no
//! gaps; with the option [`COUNT_DUPLICATES`] each record counts, and the rank is the number of records with
//! a lesser score. These are the settings, with the names that Java's Record Layer gives them:
//!
//! | option | values |
//! |---|---|
//! | [`COUNT_DUPLICATES`] | `true`, `false` (default) |
//! | [`LEVELS`] | the number of levels, 2 to 8; 6 by default |
//! | [`HASH`] | `JDK` (default), `CRC`; Java has two more |
//!
//! # Conflicts
//!
//! Besides its entries, a save of a record with another score than before
//!
//! * reads whether its old score has other entries, unless duplicates are counted: it conflicts with saves
//!   that give another record the same score, or take it from one;
//! * changes the ranked set of its group: see [`ranked_set`](super::ranked_set) for what that conflicts with.
//!   Saves of records with other scores seldom conflict: of 40 that are in flight together, among 200 scores
//!   of one group, about seven.
//!
//! Looking up a rank, a score, or entries by rank conflicts with almost all changes of lesser scores.

use super::{
    IndexAt, IndexEntry, IndexMaintainer, IndexScan,
    by_rank::ByRank,
    ranked_set::{Config, Hash, MAX_LEVELS, RankedSet},
    value::ValueIndex,
};
use crate::{
    cursor::{BoxCursor, Continuation, Spent, TupleRange},
    error::Error,
    metadata::{Index, RecordMetaData},
    store::{Part, StoredRecord},
    value::Tuple,
};
use foundationdb_tuple::Subspace;
use futures::future::{BoxFuture, FutureExt, ready};
use shaketable_tx::{Isolation, RangeOption, Transaction};
use std::collections::BTreeSet;

/// The option with which records with equal scores count separately.
pub const COUNT_DUPLICATES: &str = "rankCountDuplicates";
/// The option that sets the number of levels of the ranked sets. It must not change while the index has
/// entries.
pub const LEVELS: &str = "rankNLevels";
/// The option that sets the hash of scores.
pub const HASH: &str = "rankHashFunction";

/// Maintains indexes of ranks.
#[derive(Clone, Copy, Debug, Default)]
pub struct RankIndex;

/// The settings of an index, or why they are not valid.
fn config(index: &Index) -> Result<Config, String> {
    let option = |name: &str| index.options.get(name).map(String::as_str);
    let default = Config::default();
    Ok(Config {
        count_duplicates: match option(COUNT_DUPLICATES) {
            None | Some("false") => false,
            Some("true") => true,
            Some(other) => return Err(format!("option {COUNT_DUPLICATES} is {other:?}, not true or false")),
        },
        hash: match option(HASH) {
            None => default.hash,
            Some("JDK") => Hash::Jdk,
            Some("CRC") => Hash::Crc,
            Some(other) => return Err(format!("option {HASH} is {other:?}, not JDK or CRC")),
        },
        levels: match option(LEVELS).map(str::parse) {
            None => default.levels,
            Some(Ok(levels @ 2..=MAX_LEVELS)) => levels,
            Some(_) => return Err(format!("option {LEVELS} is not a number from 2 to {MAX_LEVELS}")),
        },
    })
}

/// The ranked set of a group of an index of ranks. The index's options were validated with the meta-data; if
/// they are not valid, they are those by default.
pub(super) fn set_of<T: Transaction>(at: IndexAt<'_, T>, group: &Tuple) -> RankedSet {
    let space = at.space(Part::Secondary);
    let space = Subspace::from_bytes([space.bytes(), &group.pack()].concat());
    RankedSet::new(space, config(at.index).unwrap_or_default())
}

/// The ranked set of a key's group, and the key's element in it.
fn element_of<T: Transaction>(at: IndexAt<'_, T>, key: &Tuple) -> (RankedSet, Vec<u8>) {
    let (group, score) = key.split_at(at.index.expression.grouping_columns());
    (set_of(at, &group), score.pack())
}

/// The rank of a key, which is a group and a score: how many scores of the group are less. The score need not
/// be in the index.
pub async fn count_below<T: Transaction>(
    at: IndexAt<'_, T>,
    key: &Tuple,
    isolation: Isolation,
) -> Result<i64, Error> {
    let (set, score) = element_of(at, key);
    set.rank(at.transaction()?, &score, isolation).await
}

/// The rank of a key, which is a group and a score; `None` if the group does not have the score.
pub async fn rank_of<T: Transaction>(
    at: IndexAt<'_, T>,
    key: &Tuple,
    isolation: Isolation,
) -> Result<Option<i64>, Error> {
    let (set, score) = element_of(at, key);
    match set.contains(at.transaction()?, &score, isolation).await? {
        true => Ok(Some(set.rank(at.transaction()?, &score, isolation).await?)),
        false => Ok(None),
    }
}

/// The score with this rank in a group; `None` beyond the last. With duplicates counted, the score of the
/// record that has this place when the records are in order.
pub async fn score_at<T: Transaction>(
    at: IndexAt<'_, T>,
    group: &Tuple,
    rank: i64,
    isolation: Isolation,
) -> Result<Option<Tuple>, Error> {
    let Some(score) = set_of(at, group).get_nth(at.transaction()?, rank, isolation).await? else {
        return Ok(None);
    };
    Tuple::unpack(&score).map(Some).ok_or_else(|| Error::foreign("a score of a ranked set", &score))
}

/// How many scores a group has, or how many records if duplicates are counted.
pub async fn count_scores<T: Transaction>(
    at: IndexAt<'_, T>,
    group: &Tuple,
    isolation: Isolation,
) -> Result<i64, Error> {
    set_of(at, group).size(at.transaction()?, isolation).await
}

/// The keys of a record; each has one entry, however often the expression gives it.
fn keys<T: Transaction>(at: IndexAt<'_, T>, record: Option<&StoredRecord>) -> Result<BTreeSet<Tuple>, Error> {
    let Some(record) = record else { return Ok(BTreeSet::new()) };
    Ok(at.keys(record)?.iter().map(|key| key.tuple()).collect())
}

/// Whether a record has an entry with this key.
async fn has_entries<T: Transaction>(at: IndexAt<'_, T>, key: &Tuple) -> Result<bool, Error> {
    let range = RangeOption::from(at.rows_of(key)).limit(1);
    let rows = at.transaction()?.get_range_all(range, Isolation::Serializable);
    Ok(!rows.await?.is_empty())
}

async fn check<T: Transaction>(
    at: IndexAt<'_, T>,
    old: Option<&StoredRecord>,
    new: Option<&StoredRecord>,
) -> Result<(), Error> {
    ValueIndex.check(at, old, new).await?;
    for key in keys(at, new)? {
        let (set, score) = element_of(at, &key);
        let named = |too_large| Error::EntryTooLarge { index: at.index.name.clone(), too_large };
        set.check(&score).map_err(named)?;
    }
    Ok(())
}

async fn update<T: Transaction>(
    at: IndexAt<'_, T>,
    old: Option<&StoredRecord>,
    new: Option<&StoredRecord>,
) -> Result<(), Error> {
    ValueIndex.update(at, old, new).await?;
    let counts = config(at.index).unwrap_or_default().count_duplicates;
    let (old, new) = (keys(at, old)?, keys(at, new)?);
    for key in old.difference(&new) {
        if counts || !has_entries(at, key).await? {
            let (set, score) = element_of(at, key);
            set.remove(at.transaction()?, &score).await?;
        }
    }
    for key in new.difference(&old) {
        let (set, score) = element_of(at, key);
        set.add(at.transaction()?, &score).await?;
    }
    Ok(())
}

/// Makes the ranked set have the score of a key as often as the entries with this key need it.
pub(super) async fn repair<T: Transaction>(at: IndexAt<'_, T>, key: &Tuple) -> Result<(), Error> {
    let (tx, (set, score)) = (at.transaction()?, element_of(at, key));
    let range = RangeOption::from(at.rows_of(key));
    let wanted = match config(at.index).unwrap_or_default().count_duplicates {
        true => tx.get_range_all(range, Isolation::Serializable).await?.len() as i64,
        false => i64::from(has_entries(at, key).await?),
    };
    set.remove_times(tx, &score, |count| (count - wanted).max(0)).await?;
    while set.count(tx, &score, Isolation::Serializable).await? < wanted {
        set.add(tx, &score).await?;
    }
    Ok(())
}

fn delete_where<T: Transaction>(at: IndexAt<'_, T>, prefix: &Tuple) -> Result<bool, Error> {
    if !can_delete_where(at, prefix) {
        return Ok(false);
    }
    let (begin, end) = TupleRange::all_of(prefix.clone()).keys(&at.space(Part::Secondary));
    at.store.context().clear_range(&begin, &end)?;
    at.delete_entries_where(prefix)
}

/// The scores of a group have one ranked set, which can only be removed as a whole.
fn can_delete_where<T: Transaction>(at: IndexAt<'_, T>, prefix: &Tuple) -> bool {
    prefix.len() <= at.index.expression.grouping_columns() && at.begins_with_primary_key(prefix.len())
}

impl<T: Transaction> IndexMaintainer<T> for RankIndex {
    fn validate(&self, index: &Index, _: &RecordMetaData) -> Result<(), String> {
        config(index).map(drop)
    }

    fn is_idempotent(&self, index: &Index) -> bool {
        !config(index).unwrap_or_default().count_duplicates
    }

    fn has_values(&self) -> bool {
        true
    }

    fn check<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        check(at, old, new).boxed()
    }

    fn update<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        old: Option<&'a StoredRecord>,
        new: Option<&'a StoredRecord>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        update(at, old, new).boxed()
    }

    fn scan(
        &self,
        at: IndexAt<'_, T>,
        scan: IndexScan,
        range: TupleRange,
        reverse: bool,
        from: Continuation,
        spent: &Spent,
    ) -> Result<BoxCursor<IndexEntry>, Error> {
        match scan {
            IndexScan::ByValue => at.scan_entries(&range, reverse, from, spent),
            IndexScan::ByRank => Ok(Box::new(ByRank::new(at, range, reverse, from, spent)?)),
            IndexScan::ByGroup => Err(at.no_scan("an index of ranks is scanned by value or by rank")),
        }
    }

    fn can_delete_where(&self, at: IndexAt<'_, T>, prefix: &Tuple) -> bool {
        can_delete_where(at, prefix)
    }

    fn delete_where<'a>(
        &'a self,
        at: IndexAt<'a, T>,
        prefix: &'a Tuple,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        ready(delete_where(at, prefix)).boxed()
    }
}
