//! Planted bugs: counters implemented or used wrongly.

use super::{Counter, CounterAnswer, CounterOp, Which, sum};
use crate::shared::{self, isolation, seen_before};
use shaketable::{
    prelude::*,
    specimen::Answer,
    weakened::{Flaw, everything, flawed},
};
use shaketable_layers::counter::{Error, Part};
use shaketable_tx::key_after;

#[shaketable::planted]
impl Counter {
    /// The sum is computed by the client from a snapshot read and stored.
    #[bug(add, "an update that is lost")]
    async fn read_add_write(&self, tx: &Tx, which: Which, part: Part, by: i64) -> Result<(), Error> {
        let key = which.key(part);
        let value = number(tx.get(&key, Snapshot).await?);
        tx.set(&key, &value.wrapping_add(by).to_le_bytes());
        Ok(())
    }

    /// An addition reads the counter serializably.
    #[bug(add, "isolation gone too far")]
    async fn add_reads(&self, tx: &Tx, which: Which, part: Part, by: i64) -> Result<(), Error> {
        tx.get(&which.key(part), Serializable).await?;
        which.add(tx, part, by).await
    }

    /// Whether the bounds hold is read in an earlier transaction.
    #[bug(*, "a check apart from its act")]
    async fn decision_before(
        &self,
        session: &mut Session<Db>,
        ops: &[CounterOp],
    ) -> Option<Outcome<Answer<CounterAnswer>>> {
        let &[CounterOp::add_within { which, part, by, bounds }] = ops else { return None };
        let decide = |tx| async move {
            which.add_within(&flawed(&tx, Flaw::Unwritten, everything()), part, by, bounds).await
        };
        let act = |tx, after| async move {
            which.add(&tx, part, by).await?;
            Ok(vec![CounterAnswer::add_within(after)])
        };
        Some(seen_before(session, decide, act).await)
    }

    /// The parts are read in one transaction each.
    #[bug(get, "a sum over several versions")]
    async fn torn_sum(&self, db: &Db, which: Which, snapshot: bool) -> Result<i64, Error> {
        if !which.split {
            let read = db.run(|tx, _| async move { which.get(&tx, isolation(snapshot)).await });
            return read.await.map_err(|e| e.error);
        }
        let ((mut begin, end), mut parts) = (which.space().range(), Vec::new());
        loop {
            let next = &RangeOption::new(begin, end.clone()).limit(1);
            let read = db.run(|tx, _| async move {
                Ok::<_, Error>(tx.get_range_all(next.clone(), Serializable).await?)
            });
            let Some(row) = read.await.map_err(|e| e.error)?.pop() else { return sum(parts) };
            begin = key_after(&row.key).into();
            parts.push(number(Some(row.value)));
        }
    }

    /// Setting a counter clears only the parts that this client knows.
    #[bug(set, "a counter reset where shards are known by number")]
    async fn known_parts(&self, tx: &Tx, which: Which, value: i64) -> Result<(), Error> {
        if !which.split {
            return which.set(tx, value).await;
        }
        (0..u64::from(which.parts)).for_each(|part| tx.clear(&which.key(Part(part))));
        which.set(&flawed(tx, Flaw::Uncleared, everything()), value).await
    }

    /// An addition has an operand of four bytes, and truncates the value to them.
    #[bug(add, "an atomic addition takes the operand's length")]
    async fn short_operand(&self, tx: &Tx, which: Which, part: Part, by: i64) -> Result<(), Error> {
        tx.atomic_op(&which.key(part), &(by as i32).to_le_bytes(), MutationType::Add);
        Ok(())
    }

    /// Parts are read as unsigned numbers.
    #[bug(get, "a counter that was never thought negative")]
    async fn unsigned_parts(&self, tx: &Tx, which: Which, snapshot: bool) -> Result<i64, Error> {
        if !which.split {
            return which.get(tx, isolation(snapshot)).await;
        }
        let rows = shared::rows(tx, &which.space()).await?;
        sum(rows.iter().map(|row| row.value[..].try_into().map_or(0, u64::from_le_bytes)))
    }

    /// A look before a write is performed at snapshot.
    #[bug(get, "a snapshot read in a composed look-up")]
    async fn get_at_snapshot(&self, tx: &Tx, which: Which) -> Result<i64, Error> {
        which.get(tx, Snapshot).await
    }

    /// A sum that does not fit into 64 bits is returned as the largest number.
    #[bug(get, "an overflow that is hidden")]
    async fn saturating_sum(&self, tx: &Tx, which: Which, snapshot: bool) -> Result<i64, Error> {
        match which.get(tx, isolation(snapshot)).await {
            Err(Error::Overflow(sum)) => Ok(if sum > 0 { i64::MAX } else { i64::MIN }),
            other => other,
        }
    }

    /// Setting a split counter clears all keys with its prefix.
    #[bug(set, "prefix confusion")]
    async fn wide_clear(&self, tx: &Tx, which: Which, value: i64) -> Result<(), Error> {
        if which.split {
            let (begin, end) = which.space().range();
            tx.clear_range(&begin, &[&end[..], b"\xff"].concat());
        }
        which.set(tx, value).await
    }
}

fn number(value: Option<Bytes>) -> i64 {
    value.and_then(|value| value[..].try_into().ok()).map_or(0, i64::from_le_bytes)
}
