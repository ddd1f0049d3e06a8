//! How one call is performed in a transaction.

use super::{
    Answer, Op,
    operations::{content, copies_pair, copies_space, set_pair, set_space},
};
use crate::models::labels::label;
use shaketable_layers::{
    label::Label,
    multimap::{self, Error, Multiset},
};
use shaketable_tx::{Isolation, Tx};

/// Performs a call correctly, a look at this isolation.
pub(super) async fn perform(tx: &Tx, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
    let (set, stock) = (multimap::Multimap::new(set_space()), Multiset::new(copies_space()));
    let written = |()| Answer::Written;
    match op {
        Op::Add(i, v) => {
            let (i, v) = set_pair(*i, *v);
            set.add(tx, &i, &v).await.map(written)
        }
        Op::Remove(i, v) => {
            let (i, v) = set_pair(*i, *v);
            set.remove(tx, &i, &v).await.map(written)
        }
        Op::RemoveAll(i) => set.remove_all(tx, &label(*i)).await.map(written),
        Op::IsElement(i, v) => {
            let (i, v) = set_pair(*i, *v);
            set.is_element(tx, &i, &v, isolation).await.map(Answer::Is)
        }
        Op::Get(i, after, most) => {
            let after = after.map(|v| set_pair(*i, v).1);
            let values = set.get(tx, &label(*i), after.as_ref(), *most, isolation).await?;
            Ok(Answer::Values(values.iter().map(content).collect()))
        }
        Op::All(after, most) => {
            let after = after.map(|(i, v)| set_pair(i, v));
            let after = after.as_ref().map(|(i, v)| (i, v));
            let pairs = set.all(tx, after, *most, isolation).await?;
            Ok(Answer::Pairs(pairs.iter().map(|(i, v)| (content(i), content(v))).collect()))
        }
        Op::AddCopies(i, v, n) => {
            let (i, v) = copies_pair(*i, *v);
            stock.add(tx, &i, &v, *n).await.map(written)
        }
        Op::RemoveCopies(i, v, n) => {
            let (i, v) = copies_pair(*i, *v);
            stock.remove(tx, &i, &v, *n).await.map(Answer::Copies)
        }
        Op::RemoveAllCopies(i) => stock.remove_all(tx, &label(*i)).await.map(written),
        Op::Count(i, v) => {
            let (i, v) = copies_pair(*i, *v);
            stock.count(tx, &i, &v, isolation).await.map(Answer::Copies)
        }
        Op::Counts(i, after, most) => {
            let after = after.map(|v| copies_pair(*i, v).1);
            let values = stock.get(tx, &label(*i), after.as_ref(), *most, isolation).await?;
            Ok(Answer::Counts(values.iter().map(|(value, n)| (content(value), *n)).collect()))
        }
        Op::AllCounts(after, most) => {
            let after = after.map(|(i, v)| copies_pair(i, v));
            let after = after.as_ref().map(|(i, v)| (i, v));
            let pairs = stock.all(tx, after, *most, isolation).await?;
            let count = |((i, v), n): &((Label, Label), u64)| (content(i), content(v), *n);
            Ok(Answer::PairCounts(pairs.iter().map(count).collect()))
        }
    }
}
