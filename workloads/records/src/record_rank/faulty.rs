//! A maintainer of indexes of ranks that is wrong.

use super::{Board, Schema, planted::Planted, ranked::key, stored::set};
use crate::record_shared::{
    columns::{Col, tuple},
    faulty::{Change, Fault, Right, plant},
};
use shaketable_record::{
    error::Error,
    index::{IndexAt, IndexMaintainer, Registry, ValueIndex, ranked_set::RankedSet},
    metadata::index_types,
    store::StoredRecord,
    value::Tuple,
};
use shaketable_tx::{
    Isolation::{self, Serializable, Snapshot},
    MutationType, RangeOption, Transaction,
};
use std::collections::BTreeSet;

/// Registers the maintainer with the bug, if it is one of the maintainer.
pub(super) fn register<T: Transaction>(planted: Planted, schema: Schema, registry: &mut Registry<T>) {
    use Planted::*;
    let is_in_maintainer = matches!(
        planted,
        OldForgotten
            | DeleteForgotten
            | CountedTwice
            | MoveForgotten
            | TiesRemoved
            | TiesKept
            | TiesAtSnapshot
            | SpanLost
            | RowKept
            | SpanAtSnapshot
    );
    if is_in_maintainer {
        plant(registry, &[index_types::RANK], Wrong { planted, schema });
    }
}

/// Updates indexes of ranks with the bug.
#[derive(Clone, Copy)]
struct Wrong {
    planted: Planted,
    schema: Schema,
}

/// A key of a board, as its group and its score.
type Key = (Vec<Col>, Vec<u8>);

impl Wrong {
    fn keys<T: Transaction>(
        at: IndexAt<'_, T>,
        record: Option<&StoredRecord>,
    ) -> Result<BTreeSet<Key>, Error> {
        let Some(record) = record else { return Ok(BTreeSet::new()) };
        let key = |key: Tuple| {
            let (group, score) = key.split_at(at.index.expression.grouping_columns());
            Some((Col::all_of(&group)?, score.pack()))
        };
        Ok(at.keys(record)?.into_iter().filter_map(|found| key(found.tuple())).collect())
    }

    fn set(&self, board: Board, group: &[Col]) -> RankedSet {
        RankedSet::new(set(board, group), self.schema.of(board).config())
    }
}

impl<T: Transaction> Fault<T> for Wrong {
    async fn update<'a>(
        &'a self,
        right: &'a Right<T>,
        at: IndexAt<'a, T>,
        (old, new): Change<'a>,
    ) -> Result<(), Error> {
        let Some(board) = Board::named(&at.index.name) else { return right.update(at, old, new).await };
        let (tx, kept) = (at.transaction()?, self.schema.of(board));
        let (before, after) = (Wrong::keys(at, old)?, Wrong::keys(at, new)?);
        match self.planted {
            Planted::OldForgotten => return right.update(at, None, new).await,
            Planted::DeleteForgotten if new.is_none() => return ValueIndex.update(at, old, new).await,
            Planted::CountedTwice => {
                right.update(at, old, new).await?;
                for (group, score) in before.intersection(&after) {
                    self.set(board, group).add(tx, score).await?;
                }
                return Ok(());
            }
            Planted::SpanLost | Planted::RowKept => {
                let mut rows = Vec::new();
                for (group, score) in before.difference(&after) {
                    for level in 1..kept.levels {
                        let row = key(&set(board, group), level, score);
                        rows.extend(count(tx, &row).await?.map(|count| (group, level, row, count)));
                    }
                }
                right.update(at, old, new).await?;
                for (group, level, row, own) in rows {
                    // Another record may have the same score.
                    if count(tx, &row).await?.is_none() {
                        let first = key(&set(board, group), level, b"");
                        let range = RangeOption::new(first, row.clone()).limit(1).reversed();
                        let previous = tx.get_range_all(range, Serializable).await?;
                        let previous = previous.first().map(|row| row.key.to_vec()).unwrap_or_default();
                        tx.atomic_op(&previous, &(1 - own).to_le_bytes(), MutationType::Add);
                        if self.planted == Planted::RowKept {
                            tx.set(&row, &(own - 1).to_le_bytes());
                        }
                    }
                }
                return Ok(());
            }
            Planted::SpanAtSnapshot => {
                let mut kept_rows = Vec::new();
                for (group, _) in before.union(&after) {
                    for level in 1..kept.levels {
                        let row = key(&set(board, group), level, b"");
                        let value = tx.get(&row, Snapshot).await?;
                        kept_rows.push((row, value));
                    }
                }
                right.update(at, old, new).await?;
                for (row, value) in kept_rows {
                    let now = tx.get(&row, Snapshot).await?;
                    if let (Some(now), true) = (&now, value.is_some() && now != value) {
                        tx.set(&row, now);
                    }
                }
                return Ok(());
            }
            _ => {}
        }
        let isolation = if self.planted == Planted::TiesAtSnapshot { Snapshot } else { Serializable };
        let mut shared = Vec::new();
        if self.planted == Planted::TiesKept {
            for key in before.difference(&after) {
                shared.push(has_entries(at, key, isolation).await?);
            }
        }
        ValueIndex.update(at, old, new).await?;
        for (n, key) in before.difference(&after).enumerate() {
            let (group, score) = key;
            let is_kept = match self.planted {
                Planted::TiesRemoved => false,
                Planted::TiesKept => shared[n],
                Planted::MoveForgotten if after.iter().any(|(_, other)| other == score) => true,
                _ => !kept.counts && has_entries(at, key, isolation).await?,
            };
            if !is_kept {
                self.set(board, group).remove(tx, score).await?;
            }
        }
        for (group, score) in after.difference(&before) {
            self.set(board, group).add(tx, score).await?;
        }
        Ok(())
    }
}

async fn count<T: Transaction>(tx: &T, row: &[u8]) -> Result<Option<i64>, Error> {
    let value = tx.get(row, Serializable).await?;
    Ok(value.and_then(|value| Some(i64::from_le_bytes(value[..].try_into().ok()?))))
}

async fn has_entries<T: Transaction>(
    at: IndexAt<'_, T>,
    (group, score): &Key,
    isolation: Isolation,
) -> Result<bool, Error> {
    let score = Tuple::unpack(score).unwrap_or_default();
    let rows = RangeOption::from(at.rows_of(&tuple(group).followed_by(&score))).limit(1);
    Ok(!at.transaction()?.get_range_all(rows, isolation).await?.is_empty())
}
