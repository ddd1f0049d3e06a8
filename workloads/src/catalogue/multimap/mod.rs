//! `multimap`: values are put under indexes, once each or counted, and taken away again.
//!
//! Each run has a set and a multiset. Indexes and values are drawn from families of labels that are easily
//! confused: a text and the longer one it begins, the integer 1 and the text "1" and the float 1.0, the
//! zeros, NaN, nothing and an empty text, long ones that fill several batches of a range read. Now and then
//! a value makes a key as long as keys may be or one byte longer, a label fits into no key, copies are added
//! by the billion, and more copies are to be removed than there are. Lists are read in pages of any size.

mod planted;

use crate::models::labels::{Family, Which, label};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use proptest::{option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    specimen::{self, At, Content, Specimen, UNRECORDED},
    workload::{Bug, Outcome},
};
use shaketable_layers::{
    label::Label,
    limits,
    multimap::{self, Error, Multiset},
    once::Session,
    tx::{
        self, Database, Env,
        Isolation::{self, Serializable},
        Transaction,
    },
};
use shaketable_sim::seed::Stream;
use std::collections::{BTreeMap, BTreeSet};

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "an addition is retried after an unknown result without an operation record", "the counter of the documentation's own example";
    OwnTransaction = "own-transaction", "an addition inside a transaction is given the database and commits by itself", "the older guide's add_class";
    FirstBatch = "first-batch", "the first batch of a range read is taken for all values", "a range that is longer than a batch";
    TextLabels = "text-labels", "labels are stored as text, so that 1 and \"1\" are one", "labels without their types";
    BarePrefix = "bare-prefix", "the values of an index are those of every key that its bytes begin", "a prefix without its end";
    EmptyIsNoElement = "empty-is-no-element", "whether a value is there is judged by the stored value, which is empty", "absent and empty taken for one";
    Latest = "latest", "an index holds the value that was added last, and no other", "a map taken for a multimap";
    ReadAddWrite = "read-add-write", "copies are added to a count read at snapshot, and the sum is stored", "an update that is lost";
    AddReads = "add-reads", "an addition reads the count serializably", "isolation gone too far";
    SnapshotRemove = "snapshot-remove", "whether there are copies to remove is read at snapshot", "a decision on a snapshot read";
    ZeroStays = "zero-stays", "the last copy leaves a count of zero behind", "a counter nobody clears";
    ZeroAppears = "zero-appears", "adding no copies makes a count of zero", "an atomic addition makes its key";
    CopiesCutOff = "copies-cut-off", "copies are added as a number of 16 bits", "a number that outgrows its field";
    PageRepeats = "page-repeats", "a page begins with the value after which it should begin", "a bound taken for an open one";
    PageSkips = "page-skips", "a page begins after all keys that begin with that of the value before", "a cursor that is a prefix";
    RemovesAll = "removes-all", "removing a copy removes all copies", "a multiset taken for a set";
    CountConflicts = "count-conflicts", "a count that is asked for at snapshot is read serializably", "an isolation that is not passed on";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Multimap {
    indexes: Family,
    values: Family,
    planted: Option<Planted>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Puts a value into the set of an index.
    Add(Which, Which),
    /// Takes one out.
    Remove(Which, Which),
    /// Empties the set of an index.
    RemoveAll(Which),
    /// Whether the set has a value.
    IsElement(Which, Which),
    /// Up to so many of the set of an index, after a value.
    Get(Which, Option<Which>, usize),
    /// Up to so many pairs of all sets, after one.
    All(Option<(Which, Which)>, usize),
    /// Adds copies to the multiset.
    AddCopies(Which, Which, u32),
    /// Takes copies out.
    RemoveCopies(Which, Which, u32),
    /// Empties the multiset of an index.
    RemoveAllCopies(Which),
    /// Counts the copies of a value.
    Count(Which, Which),
    /// Up to so many of the multiset of an index, after a value.
    Counts(Which, Option<Which>, usize),
    /// Up to so many pairs of all multisets, after one.
    AllCounts(Option<(Which, Which)>, usize),
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// Whether there is such an element.
    Is(bool),
    /// The values of a set.
    Values(Vec<Content>),
    /// How many copies there are, or are left.
    Copies(u64),
    /// The values of a multiset.
    Counts(Vec<(Content, u64)>),
    /// Indexes and their values.
    Pairs(Vec<(Content, Content)>),
    /// Indexes, their values, and how many copies there are.
    PairCounts(Vec<(Content, Content, u64)>),
}

/// What should be there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    set: BTreeSet<(Label, Label)>,
    copies: BTreeMap<(Label, Label), u64>,
}

pub(crate) fn set_space() -> Subspace {
    Subspace::from("enroll")
}

pub(crate) fn copies_space() -> Subspace {
    Subspace::from("stock")
}

/// A value that makes a key as long as a key may be, and one that makes it a byte longer.
const EDGES: [Which; 2] = [(u8::MAX, 0), (u8::MAX, 1)];

/// Two values of which the key of one begins that of the other, in all runs.
const NESTED: [Which; 2] = [(0, 0), (0, 2)];

/// An index and a value below a subspace.
pub(crate) fn pair(space: &Subspace, index: Which, value: Which) -> (Label, Label) {
    let index = label(index);
    match EDGES.iter().position(|edge| *edge == value) {
        Some(beyond) => {
            // A text takes two bytes beside its own.
            let bytes = tx::KEY_SIZE_LIMIT - space.bytes().len() - index.packed().len() - 2 + beyond;
            let value = "e".repeat(bytes).as_str().into();
            (index, value)
        }
        None => (index, label(value)),
    }
}

fn set_pair(index: Which, value: Which) -> (Label, Label) {
    pair(&set_space(), index, value)
}

fn copies_pair(index: Which, value: Which) -> (Label, Label) {
    pair(&copies_space(), index, value)
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

pub(crate) fn content(label: &Label) -> Content {
    Content::from(label.packed())
}

/// What a key says of its size.
fn fits(space: Subspace, index: &Label, value: &Label) -> Result<(), Error> {
    Ok(limits::key(&[space.bytes(), index.packed(), value.packed()].concat())?)
}

impl Specimen for Multimap {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "multimap";
    const ABOUT: &'static str = "values under indexes, as sets and counted";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "multimap: there are fewer copies than are to be removed",
            "multimap: the last copy takes its key along",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Multimap {
        Multimap {
            indexes: Family::draw(rng),
            values: Family::draw(rng),
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let under = |i: Label| [set_space(), copies_space()].map(|space| Bytes::from(space.pack(&(&i,))));
        self.indexes.all().into_iter().map(label).flat_map(under).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let index = || self.indexes.one();
        let edge = (0..2usize).prop_map(|beyond| EDGES[beyond]);
        let value = prop_oneof![30 => self.values.one(), 4 => select(&NESTED[..]), 1 => edge].boxed();
        let value = || value.clone();
        let pair = || (index(), value());
        let copies = || prop_oneof![12 => 0u32..4, 1 => select(&[255, 256, 65_536, u32::MAX][..])];
        let most = || prop_oneof![1 => 0..4usize, 1 => Just(usize::MAX)];
        prop_oneof![
            6 => pair().prop_map(|(i, v)| Op::Add(i, v)),
            3 => pair().prop_map(|(i, v)| Op::Remove(i, v)),
            1 => index().prop_map(Op::RemoveAll),
            2 => pair().prop_map(|(i, v)| Op::IsElement(i, v)),
            3 => (index(), option::of(value()), most()).prop_map(|(i, v, most)| Op::Get(i, v, most)),
            1 => (option::of(pair()), most()).prop_map(|(after, most)| Op::All(after, most)),
            6 => (pair(), copies()).prop_map(|((i, v), n)| Op::AddCopies(i, v, n)),
            5 => (pair(), copies()).prop_map(|((i, v), n)| Op::RemoveCopies(i, v, n)),
            1 => index().prop_map(Op::RemoveAllCopies),
            2 => pair().prop_map(|(i, v)| Op::Count(i, v)),
            3 => (index(), option::of(value()), most()).prop_map(|(i, v, most)| Op::Counts(i, v, most)),
            1 => (option::of(pair()), most()).prop_map(|(after, most)| Op::AllCounts(after, most)),
            1 => self.values.one().prop_map(|v| Op::Add(Family::oversize(), v)),
            1 => index().prop_map(|i| Op::AddCopies(i, Family::oversize(), 1)),
        ]
        .boxed()
    }

    fn is_look(op: &Op) -> bool {
        matches!(
            op,
            Op::IsElement(..)
                | Op::Get(..)
                | Op::All(..)
                | Op::Count(..)
                | Op::Counts(..)
                | Op::AllCounts(..)
        )
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(
            op,
            Op::Add(..) | Op::Remove(..) | Op::RemoveAll(_) | Op::AddCopies(..) | Op::RemoveAllCopies(_)
        )
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        Self::is_look(op) && self.planted.is_none_or(|planted| planted == Planted::CountConflicts)
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        _: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        match self.planted {
            Some(planted) => planted::perform(planted, tx, op, isolation).await,
            None => perform(tx, op, isolation).await,
        }
    }

    async fn divert<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        match self.planted {
            Some(Planted::OwnTransaction) => planted::own_transactions(session, ops).await,
            _ => None,
        }
    }

    fn model(&self) -> Model {
        Model::default()
    }

    fn replay(&self, model: &mut Model, op: &Op, _: &At) -> Result<Answer, Error> {
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

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Model, String>> {
        let set = multimap::Multimap::new(set_space()).all(tx, None, usize::MAX, Serializable).await;
        let copies = Multiset::new(copies_space()).all(tx, None, usize::MAX, Serializable).await;
        match (set, copies) {
            (Ok(set), Ok(copies)) => {
                Ok(Ok(Model { set: set.into_iter().collect(), copies: copies.into_iter().collect() }))
            }
            (Err(Error::Fdb(e)), _) | (_, Err(Error::Fdb(e))) => Err(e),
            (Err(e), _) | (_, Err(e)) => Ok(Err(e.to_string())),
        }
    }
}

/// Does a call right, a look at this isolation.
pub(crate) async fn perform<T: Transaction>(tx: &T, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
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
