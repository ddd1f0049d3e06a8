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
    weakened::{Flaw, everything, flawed, weakened},
    workload::Outcome,
};
use shaketable_layers::{
    label::Label,
    multimap::{Error, Multimap, Multiset},
};
use shaketable_tx::{
    Database,
    Isolation::{self, Serializable, Snapshot},
    KeyValue, MutationType, RangeOption, Transaction, limits,
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
    EmptyIsNoElement = "empty-is-no-element", "whether a value exists is judged by the stored value, which is empty", "absent and empty treated alike";
    Latest = "latest", "an index keeps only the value that was added last", "a map taken for a multimap";
    ReadAddWrite = "read-add-write", "copies are added to a count read at snapshot, and the sum is stored", "an update that is lost";
    AddReads = "add-reads", "an addition reads the count serializably", "isolation gone too far";
    SnapshotRemove = "snapshot-remove", "whether there are copies to remove is read at snapshot", "a decision on a snapshot read";
    ZeroStays = "zero-stays", "the last copy leaves a count of zero", "a counter that is never cleared";
    ZeroAppears = "zero-appears", "adding zero copies creates a count of zero", "an atomic addition creates its key";
    CopiesCutOff = "copies-cut-off", "copies are added as a number of 16 bits", "a number that outgrows its field";
    PageRepeats = "page-repeats", "a page begins with the value after which it should begin", "a bound taken for an open one";
    PageSkips = "page-skips", "a page begins after all keys with the previous value's key as a prefix", "a cursor that is a prefix";
    RemovesAll = "removes-all", "removing a copy removes all copies", "a multiset taken for a set";
    CountConflicts = "count-conflicts", "a count that is requested at snapshot is read serializably", "an isolation that is not passed on";
    RemovedFirst = "removed-first", "copies are removed before it is known whether there are as many", "a refusal that comes too late";
    TooDeep = "too-deep", "a value that is nested one deeper than it can be read is stored", "a limit off by one";
    ValuesEnd = "values-end", "the values under an index are listed up to the text U+FFFF", "a range that ends at a constant";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform<T: Transaction>(
    planted: Planted,
    tx: &T,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let (set, stock) = (Multimap::new(set_space()), Multiset::new(copies_space()));
    match (planted, op) {
        (Planted::FirstBatch, Op::Get(_, None, usize::MAX)) => {
            right(&flawed(tx, Flaw::FirstBatch, everything()), op, isolation).await
        }
        (Planted::BarePrefix, Op::Get(i, None, usize::MAX)) => {
            let whole = set_space().pack(&(label(*i),));
            // The end of a text or of bytes is one zero byte.
            let bare = if whole.last() == Some(&0) { &whole[..whole.len() - 1] } else { &whole[..] };
            let end = strinc(bare).unwrap_or_default();
            Ok(values(&tx.get_range_all(RangeOption::new(bare.to_vec(), end), Serializable).await?))
        }
        (Planted::EmptyIsNoElement, Op::IsElement(i, v)) => {
            let value = tx.get(&key(set_space(), *i, *v), Serializable).await?;
            Ok(Answer::Is(value.is_some_and(|value| !value.is_empty())))
        }
        (Planted::TextLabels, Op::Add(i, v) | Op::Remove(i, v) | Op::IsElement(i, v)) => {
            let (i, v) = text_pair(*i, *v);
            match op {
                Op::Add(..) => set.add(tx, &i, &v).await.map(|()| Answer::Written),
                Op::Remove(..) => set.remove(tx, &i, &v).await.map(|()| Answer::Written),
                _ => set.is_element(tx, &i, &v, isolation).await.map(Answer::Is),
            }
        }
        (Planted::TextLabels, Op::Get(i, None, most)) => {
            let found = set.get(tx, &digits(&label(*i)), None, *most, isolation).await?;
            Ok(Answer::Values(found.iter().map(content).collect()))
        }
        (Planted::Latest, Op::Add(i, _)) => {
            let (begin, end) = set_space().subspace(&(label(*i),)).range();
            let answer = right(tx, op, isolation).await;
            if answer.is_ok() {
                tx.clear_range(&begin, &end);
            }
            right(tx, op, isolation).await.and(answer)
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
        (Planted::SnapshotRemove, Op::RemoveCopies(..)) => {
            right(&weakened(tx.clone(), everything()), op, isolation).await
        }
        (Planted::ZeroStays, Op::RemoveCopies(i, v, asked)) => {
            let removed = right(tx, op, isolation).await?;
            if removed == Answer::Copies(0) && *asked > 0 {
                tx.set(&key(copies_space(), *i, *v), &0i64.to_le_bytes());
            }
            Ok(removed)
        }
        (Planted::RemovedFirst, Op::RemoveCopies(i, v, _)) => {
            let removed = right(tx, op, isolation).await;
            if let Err(Error::TooFew { .. }) = removed {
                tx.clear(&key(copies_space(), *i, *v));
            }
            removed
        }
        (Planted::ValuesEnd, Op::Get(i, None, usize::MAX)) => {
            let (begin, end) = set_space().subspace(&(label(*i),)).range();
            let mut rows = tx.get_range_all(RangeOption::new(begin, end), Serializable).await?;
            rows.retain(|row| !row.key.windows(2).any(|bytes| bytes == b"\xf4\x8f"));
            Ok(values(&rows))
        }
        (Planted::TooDeep, Op::Add(i, v)) => match right(tx, op, isolation).await {
            Err(Error::TooLarge(limits::TooLarge::Depth { limit })) => {
                let key = key(set_space(), *i, *v);
                let deepest = key.iter().filter(|byte| **byte == 5).count();
                if deepest > limit + 1 {
                    return right(tx, op, isolation).await;
                }
                tx.set(&key, b"");
                Ok(Answer::Written)
            }
            added => added,
        },
        (Planted::ZeroAppears, Op::AddCopies(i, v, 0)) => {
            let key = key(copies_space(), *i, *v);
            limits::key(&key)?;
            tx.atomic_op(&key, &0i64.to_le_bytes(), MutationType::Add);
            Ok(Answer::Written)
        }
        (Planted::CopiesCutOff, Op::AddCopies(i, v, copies)) => {
            right(tx, &Op::AddCopies(*i, *v, *copies & 0xffff), isolation).await
        }
        (Planted::PageRepeats | Planted::PageSkips, Op::Get(i, Some(v), most)) => {
            let (key, (_, end)) = (key(set_space(), *i, *v), set_space().subspace(&(label(*i),)).range());
            let begin = match planted {
                Planted::PageRepeats => key,
                _ => strinc(&key).unwrap_or_default().to_vec(),
            };
            let range = RangeOption::new(begin, end).limit((*most).max(1));
            Ok(values(&tx.get_range_all(range, Serializable).await?))
        }
        (Planted::RemovesAll, Op::RemoveCopies(i, v, asked)) if *asked > 0 => {
            let answer = right(tx, op, isolation).await?;
            tx.clear(&key(copies_space(), *i, *v));
            Ok(answer)
        }
        (Planted::CountConflicts, Op::Count(..)) => right(tx, op, Serializable).await,
        _ => right(tx, op, isolation).await,
    }
}

/// All calls in one transaction, except for additions to a set, which have separate transactions.
pub async fn own_transactions<D: Database>(
    session: &mut Session<D>,
    ops: &[Op],
) -> Option<Outcome<specimen::Answer<Answer>>> {
    if ops.len() < 2 || !ops.iter().any(|op| matches!(op, Op::Add(..))) {
        return None;
    }
    let db = &session.database().clone();
    let calls = db.run(|tx, _| async move {
        let mut answers = Vec::new();
        for op in ops {
            answers.push(match op {
                Op::Add(..) => {
                    let added = db.run(|own, _| async move { right(&own, op, Serializable).await }).await;
                    added.map_err(|e| e.error)?
                }
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

/// An index and a value, with integers as their digits.
fn text_pair(index: Which, value: Which) -> (Label, Label) {
    let (index, value) = pair(&set_space(), index, value);
    (digits(&index), digits(&value))
}

/// The last part of each key, whatever precedes it.
fn values(rows: &[KeyValue]) -> Answer {
    let last = |row: &KeyValue| set_space().unpack::<Vec<Label>>(&row.key).ok()?.pop();
    Answer::Values(rows.iter().filter_map(last).map(|label| content(&label)).collect())
}
