//! Planted bugs: multimaps implemented or used wrongly.

use super::{
    Multimap, MultimapAnswer, MultimapOp, Pair, content, copies_pair, copies_space, set, set_pair, set_space,
    stock,
};
use crate::models::labels::{Which, digits, label};
use shaketable::{
    prelude::*,
    specimen::{Answer, Content, ran},
    weakened::{Flaw, everything, flawed},
};
use shaketable_layers::{label::Label, multimap::Error};
use shaketable_tx::{limits, nesting::MAX_DEPTH, strinc};

#[shaketable::planted]
impl Multimap {
    /// An addition inside a transaction is given the database and commits by itself.
    ///
    /// All calls are in one transaction, except for additions to a set, which have separate transactions.
    #[bug(*, "the older guide's add_class")]
    async fn own_transaction(
        &self,
        session: &mut Session<Db>,
        ops: &[MultimapOp],
    ) -> Option<Outcome<Answer<MultimapAnswer>>> {
        if ops.len() < 2 || !ops.iter().any(|op| matches!(op, MultimapOp::add { .. })) {
            return None;
        }
        let (db, env) = (&session.database().clone(), &session.database().env().clone());
        let calls = db.run(|tx, _| async move {
            let mut answers = Vec::new();
            for op in ops {
                let apart = db.run(|own, _| async move { self.perform(&own, env, op, Serializable).await });
                answers.push(match op {
                    MultimapOp::add { .. } => apart.await.map_err(|e| e.error)?,
                    _ => self.perform(&tx, env, op, Serializable).await?,
                });
            }
            Ok::<_, Error>(answers)
        });
        Some(ran(calls.await))
    }

    /// The first batch of a range read is taken for all values.
    #[bug(get, "a range that is longer than a batch")]
    async fn first_batch(
        &self,
        tx: &Tx,
        isolation: Isolation,
        i: Which,
        after: Option<Which>,
        most: usize,
    ) -> Result<Vec<Content>, Error> {
        let first = flawed(tx, Flaw::FirstBatch, everything());
        let tx = if is_everything(after, most) { &first } else { tx };
        self.get(tx, isolation, i, after, most).await
    }

    /// Labels are stored as text, so that 1 and "1" are one.
    #[bug(add, "labels without their types")]
    async fn text_labels(&self, tx: &Tx, pair: Pair) -> Result<(), Error> {
        let (index, value) = set_pair(pair);
        set().add(tx, &digits(&index), &digits(&value)).await
    }

    /// The values of an index include those of every key with its bytes as a prefix.
    #[bug(get, "a prefix without its end")]
    async fn bare_prefix(
        &self,
        tx: &Tx,
        isolation: Isolation,
        i: Which,
        after: Option<Which>,
        most: usize,
    ) -> Result<Vec<Content>, Error> {
        if !is_everything(after, most) {
            return self.get(tx, isolation, i, after, most).await;
        }
        let mut begin = set_space().pack(&(label(i),));
        // The end of a text or of bytes is one zero byte.
        begin.pop_if(|last| *last == 0);
        let end = strinc(&begin).unwrap_or_default();
        Ok(values(&tx.get_range_all(RangeOption::new(begin, end), isolation).await?))
    }

    /// An index keeps only the value that was added last.
    #[bug(add, "a map taken for a multimap")]
    async fn latest(&self, tx: &Tx, pair: Pair) -> Result<(), Error> {
        self.add(tx, pair).await?;
        let (begin, end) = set_space().subspace(&(label(pair.0),)).range();
        tx.clear_range(&begin, &end);
        self.add(tx, pair).await
    }

    /// Copies are added to a count read at snapshot, and the sum is stored.
    #[bug(add_copies, "an update that is lost")]
    async fn read_add_write(&self, tx: &Tx, pair: Pair, copies: u32) -> Result<(), Error> {
        if copies == 0 {
            return self.add_copies(tx, pair, copies).await;
        }
        let (index, value) = copies_pair(pair);
        let key = copies_space().pack(&(&index, &value));
        limits::key(&key)?;
        let sum = stock().count(tx, &index, &value, Snapshot).await? + u64::from(copies);
        tx.set(&key, &sum.to_le_bytes());
        Ok(())
    }

    /// An addition reads the count serializably.
    #[bug(add_copies, "isolation gone too far")]
    async fn add_reads(&self, tx: &Tx, pair: Pair, copies: u32) -> Result<(), Error> {
        self.count(tx, Serializable, pair).await?;
        self.add_copies(tx, pair, copies).await
    }

    /// Copies are added as a number of 16 bits.
    #[bug(add_copies, "a number that outgrows its field")]
    async fn copies_cut_off(&self, tx: &Tx, pair: Pair, copies: u32) -> Result<(), Error> {
        self.add_copies(tx, pair, copies & 0xffff).await
    }

    /// A page begins after all keys with the previous value's key as a prefix.
    #[bug(get, "a cursor that is a prefix")]
    async fn page_skips(
        &self,
        tx: &Tx,
        isolation: Isolation,
        i: Which,
        after: Option<Which>,
        most: usize,
    ) -> Result<Vec<Content>, Error> {
        let Some(v) = after else { return self.get(tx, isolation, i, after, most).await };
        let begin = strinc(&set_space().pack(&set_pair((i, v)))).unwrap_or_default().to_vec();
        let end = set_space().subspace(&(label(i),)).range().1;
        let range = RangeOption::new(begin, end).limit(most.max(1));
        Ok(values(&tx.get_range_all(range, isolation).await?))
    }

    /// A count that is requested at snapshot is read serializably.
    #[bug(count, "an isolation that is not passed on")]
    async fn count_conflicts(&self, tx: &Tx, pair: Pair) -> Result<u64, Error> {
        self.count(tx, Serializable, pair).await
    }

    /// A value that is nested one deeper than it can be read is stored.
    #[bug(add, "a limit off by one")]
    async fn too_deep(&self, tx: &Tx, pair: Pair) -> Result<(), Error> {
        let key = set_space().pack(&set_pair(pair));
        // This byte opens a nested tuple, and occurs nowhere else in a label.
        if key.iter().filter(|byte| **byte == 5).count() != MAX_DEPTH + 1 {
            return self.add(tx, pair).await;
        }
        tx.set(&key, b"");
        Ok(())
    }

    /// The values under an index are listed up to the text U+FFFF.
    #[bug(get, "a range that ends at a constant")]
    async fn values_end(
        &self,
        tx: &Tx,
        isolation: Isolation,
        i: Which,
        after: Option<Which>,
        most: usize,
    ) -> Result<Vec<Content>, Error> {
        if !is_everything(after, most) {
            return self.get(tx, isolation, i, after, most).await;
        }
        let (begin, end) = set_space().subspace(&(label(i),)).range();
        let mut rows = tx.get_range_all(RangeOption::new(begin, end), isolation).await?;
        rows.retain(|row| !row.key.windows(2).any(|bytes| bytes == b"\xf4\x8f"));
        Ok(values(&rows))
    }
}

/// Whether a page has all values of its index.
fn is_everything(after: Option<Which>, most: usize) -> bool {
    after.is_none() && most == usize::MAX
}

/// The last part of each key, whatever precedes it.
fn values(rows: &[tx::KeyValue]) -> Vec<Content> {
    let last = |row: &tx::KeyValue| set_space().unpack::<Vec<Label>>(&row.key).ok()?.pop();
    rows.iter().filter_map(last).map(|label| content(&label)).collect()
}
