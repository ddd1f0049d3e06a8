//! The sequential model: a set and a multiset of pairs.

use super::{
    Answer, Multimap, Op,
    operations::{content, copies_pair, copies_space, set_pair, set_space},
};
use crate::models::labels::{label, unpacks};
use foundationdb_tuple::Subspace;
use shaketable_layers::{label::Label, multimap::Error};
use shaketable_tx::limits;
use std::collections::{BTreeMap, BTreeSet};

/// The expected content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    pub(super) set: BTreeSet<(Label, Label)>,
    pub(super) copies: BTreeMap<(Label, Label), u64>,
}

/// The pairs of a page.
fn page<'a, K: 'a>(
    rows: impl Iterator<Item = K>,
    of: impl Fn(&K) -> &'a (Label, Label),
    index: Option<Label>,
    after: Option<(Label, Label)>,
    most: usize,
) -> Vec<K> {
    rows.filter(|row| index.as_ref().is_none_or(|index| of(row).0 == *index))
        .filter(|row| after.as_ref().is_none_or(|after| of(row) > after))
        .take(most.max(1))
        .collect()
}

/// Refuses a pair whose key is too long, or that could not be read back.
fn fits(space: Subspace, index: &Label, value: &Label) -> Result<(), Error> {
    limits::key(&[space.bytes(), index.packed(), value.packed()].concat())?;
    Ok([index, value].into_iter().try_for_each(unpacks)?)
}

impl Multimap {
    /// Performs one call on the model.
    pub(super) fn replayed(&self, model: &mut Model, op: &Op) -> Result<Answer, Error> {
        Ok(match op {
            Op::Add(i, v) => {
                let pair = set_pair(*i, *v);
                fits(set_space(), &pair.0, &pair.1)?;
                model.set.insert(pair);
                Answer::Written
            }
            Op::Remove(i, v) => {
                model.set.remove(&set_pair(*i, *v));
                Answer::Written
            }
            Op::RemoveAll(i) => {
                let index = label(*i);
                model.set.retain(|(of, _)| *of != index);
                Answer::Written
            }
            Op::IsElement(i, v) => Answer::Is(model.set.contains(&set_pair(*i, *v))),
            Op::Get(i, after, most) => {
                let after = after.map(|v| set_pair(*i, v));
                let values = page(model.set.iter(), |pair| pair, Some(label(*i)), after, *most);
                Answer::Values(values.into_iter().map(|(_, value)| content(value)).collect())
            }
            Op::All(after, most) => {
                let after = after.map(|(i, v)| set_pair(i, v));
                let pairs = page(model.set.iter(), |pair| pair, None, after, *most);
                Answer::Pairs(pairs.into_iter().map(|(i, v)| (content(i), content(v))).collect())
            }
            Op::AddCopies(i, v, copies) => {
                let pair = copies_pair(*i, *v);
                fits(copies_space(), &pair.0, &pair.1)?;
                if *copies > 0 {
                    *model.copies.entry(pair).or_default() += u64::from(*copies);
                }
                Answer::Written
            }
            Op::RemoveCopies(i, v, asked) => {
                let pair = copies_pair(*i, *v);
                let have = model.copies.get(&pair).copied().unwrap_or(0);
                let left = have.checked_sub((*asked).into()).ok_or(Error::TooFew { have, asked: *asked })?;
                match left {
                    0 => drop(model.copies.remove(&pair)),
                    _ => drop(model.copies.insert(pair, left)),
                }
                Answer::Copies(left)
            }
            Op::RemoveAllCopies(i) => {
                let index = label(*i);
                model.copies.retain(|(of, _), _| *of != index);
                Answer::Written
            }
            Op::Count(i, v) => Answer::Copies(model.copies.get(&copies_pair(*i, *v)).copied().unwrap_or(0)),
            Op::Counts(i, after, most) => {
                let after = after.map(|v| copies_pair(*i, v));
                let values = page(model.copies.iter(), |(pair, _)| pair, Some(label(*i)), after, *most);
                let count = |((_, value), copies): (&(Label, Label), &u64)| (content(value), *copies);
                Answer::Counts(values.into_iter().map(count).collect())
            }
            Op::AllCounts(after, most) => {
                let after = after.map(|(i, v)| copies_pair(i, v));
                let pairs = page(model.copies.iter(), |(pair, _)| pair, None, after, *most);
                let count = |((i, v), copies): (&(Label, Label), &u64)| (content(i), content(v), *copies);
                Answer::PairCounts(pairs.into_iter().map(count).collect())
            }
        })
    }
}
