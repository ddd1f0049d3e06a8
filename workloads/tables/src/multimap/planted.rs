//! Planted bugs: multimaps implemented or used wrongly.

use super::{
    Answer, Op,
    client::perform as right,
    operations::{content, copies_space, pair, set_space},
};
use crate::models::labels::{Which, digits, label};
use foundationdb_tuple::Subspace;
use shaketable::{
    specimen::{self, INTERLEAVED, UNRECORDED, ran},
    weakened::{Flaw, everything, flawed},
    workload::Outcome,
};
use shaketable_layers::{
    label::Label,
    multimap::{Error, Multimap, Multiset},
};
use shaketable_tx::{
    Database, Db,
    Isolation::{self, Serializable, Snapshot},
    KeyValue, RangeOption, Transaction, Tx, limits,
    nesting::MAX_DEPTH,
    once::Session,
    strinc,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two removals of copies that run side by side in one transaction are checked against one count", "two futures in one transaction";
    Unrecorded = UNRECORDED, "an addition is retried after an unknown result without an operation record", "the counter of the documentation's own example";
    OwnTransaction = "own-transaction", "an addition inside a transaction is given the database and commits by itself", "the older guide's add_class";
    FirstBatch = "first-batch", "the first batch of a range read is taken for all values", "a range that is longer than a batch";
    TextLabels = "text-labels", "labels are stored as text, so that 1 and \"1\" are one", "labels without their types";
    BarePrefix = "bare-prefix", "the values of an index include those of every key with its bytes as a prefix", "a prefix without its end";
    Latest = "latest", "an index keeps only the value that was added last", "a map taken for a multimap";
    ReadAddWrite = "read-add-write", "copies are added to a count read at snapshot, and the sum is stored", "an update that is lost";
    AddReads = "add-reads", "an addition reads the count serializably", "isolation gone too far";
    CopiesCutOff = "copies-cut-off", "copies are added as a number of 16 bits", "a number that outgrows its field";
    PageSkips = "page-skips", "a page begins after all keys with the previous value's key as a prefix", "a cursor that is a prefix";
    CountConflicts = "count-conflicts", "a count that is requested at snapshot is read serializably", "an isolation that is not passed on";
    TooDeep = "too-deep", "a value that is nested one deeper than it can be read is stored", "a limit off by one";
    ValuesEnd = "values-end", "the values under an index are listed up to the text U+FFFF", "a range that ends at a constant";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform(planted: Planted, tx: &Tx, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
    let (set, stock) = (Multimap::new(set_space()), Multiset::new(copies_space()));
    match (planted, op) {
        (Planted::FirstBatch, Op::Get(_, None, usize::MAX)) => {
            right(&flawed(tx, Flaw::FirstBatch, everything()), op, isolation).await
        }
        (Planted::BarePrefix, Op::Get(i, None, usize::MAX)) => {
            let mut begin = set_space().pack(&(label(*i),));
            // The end of a text or of bytes is one zero byte.
            begin.pop_if(|last| *last == 0);
            let end = strinc(&begin).unwrap_or_default();
            Ok(values(&tx.get_range_all(RangeOption::new(begin, end), Serializable).await?))
        }
        (Planted::TextLabels, Op::Add(i, v)) => {
            let (i, v) = pair(&set_space(), *i, *v);
            set.add(tx, &digits(&i), &digits(&v)).await.map(|()| Answer::Written)
        }
        (Planted::Latest, Op::Add(i, _)) => {
            right(tx, op, isolation).await?;
            let (begin, end) = set_space().subspace(&(label(*i),)).range();
            tx.clear_range(&begin, &end);
            right(tx, op, isolation).await
        }
        (Planted::ReadAddWrite, Op::AddCopies(i, v, copies)) if *copies > 0 => {
            let key = key(copies_space(), *i, *v);
            let (i, v) = pair(&copies_space(), *i, *v);
            limits::key(&key)?;
            let sum = stock.count(tx, &i, &v, Snapshot).await? + u64::from(*copies);
            tx.set(&key, &sum.to_le_bytes());
            Ok(Answer::Written)
        }
        (Planted::AddReads, Op::AddCopies(i, v, _)) => {
            let (i, v) = pair(&copies_space(), *i, *v);
            stock.count(tx, &i, &v, Serializable).await?;
            right(tx, op, isolation).await
        }
        (Planted::ValuesEnd, Op::Get(i, None, usize::MAX)) => {
            let (begin, end) = set_space().subspace(&(label(*i),)).range();
            let mut rows = tx.get_range_all(RangeOption::new(begin, end), Serializable).await?;
            rows.retain(|row| !row.key.windows(2).any(|bytes| bytes == b"\xf4\x8f"));
            Ok(values(&rows))
        }
        (Planted::TooDeep, Op::Add(i, v)) => {
            let key = key(set_space(), *i, *v);
            // This byte opens a nested tuple, and occurs nowhere else in a label.
            if key.iter().filter(|byte| **byte == 5).count() != MAX_DEPTH + 1 {
                return right(tx, op, isolation).await;
            }
            tx.set(&key, b"");
            Ok(Answer::Written)
        }
        (Planted::CopiesCutOff, Op::AddCopies(i, v, copies)) => {
            right(tx, &Op::AddCopies(*i, *v, *copies & 0xffff), isolation).await
        }
        (Planted::PageSkips, Op::Get(i, Some(v), most)) => {
            let begin = strinc(&key(set_space(), *i, *v)).unwrap_or_default().to_vec();
            let end = set_space().subspace(&(label(*i),)).range().1;
            let range = RangeOption::new(begin, end).limit((*most).max(1));
            Ok(values(&tx.get_range_all(range, Serializable).await?))
        }
        (Planted::CountConflicts, Op::Count(..)) => right(tx, op, Serializable).await,
        _ => right(tx, op, isolation).await,
    }
}

/// All calls in one transaction, except for additions to a set, which have separate transactions.
pub async fn own_transactions(
    session: &mut Session<Db>,
    ops: &[Op],
) -> Option<Outcome<specimen::Answer<Answer>>> {
    if ops.len() < 2 || !ops.iter().any(|op| matches!(op, Op::Add(..))) {
        return None;
    }
    let db = &session.database().clone();
    let calls = db.run(|tx, _| async move {
        let mut answers = Vec::new();
        for op in ops {
            let apart = db.run(|own, _| async move { right(&own, op, Serializable).await });
            answers.push(match op {
                Op::Add(..) => apart.await.map_err(|e| e.error)?,
                _ => right(&tx, op, Serializable).await?,
            });
        }
        Ok::<_, Error>(answers)
    });
    Some(ran(calls.await))
}

fn key(space: Subspace, index: Which, value: Which) -> Vec<u8> {
    space.pack(&pair(&space, index, value))
}

/// The last part of each key, whatever precedes it.
fn values(rows: &[KeyValue]) -> Answer {
    let last = |row: &KeyValue| set_space().unpack::<Vec<Label>>(&row.key).ok()?.pop();
    Answer::Values(rows.iter().filter_map(last).map(|label| content(&label)).collect())
}
