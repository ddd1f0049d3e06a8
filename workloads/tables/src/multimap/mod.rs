//! `multimap`: values are added under indexes, once each or counted, and removed.
//!
//! Each run has a set and a multiset. Indexes and values are drawn from families of labels that are easily
//! confused: a text and a longer text that begins with it; the integer 1, the text "1" and the float 1.0; the
//! zeros; NaN; nil and the empty text; long labels that fill several batches of a range read. A few values
//! make a key as long as a key may be, or one byte longer, and a few labels fit into no key. Copies are added
//! by the billion, and sometimes more copies are removed than there are. Lists are read in pages of any size.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
mod planted;

use crate::{
    models::labels::{Family, Which, label, unpacks},
    shared::page_sizes,
};
use foundationdb_tuple::Subspace;
use proptest::option;
use shaketable::{prelude::*, real::key_room, specimen::Content};
use shaketable_layers::{
    label::Label,
    multimap::{Error, Multimap as Layer, Multiset},
};
use shaketable_tx::{KEY_SIZE_LIMIT, limits};
use std::collections::{BTreeMap, BTreeSet};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Multimap {
    indexes: Family,
    values: Family,
}

/// An index and a value, as plain data.
type Pair = (Which, Which);

/// Values under indexes, as sets and counted.
#[shaketable::workload(name = "multimap", model = Pairs, planted, promises(turns, limits))]
impl Multimap {
    fn draw(rng: &mut Stream) -> Multimap {
        Multimap { indexes: Family::draw(rng), values: Family::draw(rng) }
    }

    fn points() -> &'static [&'static str] {
        &[
            "multimap: there are fewer copies than are to be removed",
            "multimap: the last copy takes its key along",
        ]
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let under = |i: Label| [set_space(), copies_space()].map(|space| space.pack(&(&i,)));
        self.indexes.all().into_iter().map(label).flat_map(under).collect()
    }

    #[draws(i)]
    fn index(&self) -> BoxedStrategy<Which> {
        self.indexes.one()
    }

    fn value(&self) -> BoxedStrategy<Which> {
        prop_oneof![30 => self.values.one(), 4 => select(&NESTED[..]), 1 => select(&EDGES[..])].boxed()
    }

    #[draws(pair)]
    fn pair(&self) -> BoxedStrategy<Pair> {
        (self.index(), self.value()).boxed()
    }

    /// The value before a page.
    #[draws(after)]
    fn after(&self) -> BoxedStrategy<Option<Which>> {
        option::of(self.value()).boxed()
    }

    #[draws(after_pair)]
    fn after_pair(&self) -> BoxedStrategy<Option<Pair>> {
        option::of(self.pair()).boxed()
    }

    #[draws(copies)]
    fn copies() -> impl Strategy<Value = u32> {
        let many = vec![127, 128, 255, 256, 65_535, 65_536, i32::MAX as u32, u32::MAX];
        prop_oneof![12 => 0u32..4, 1 => select(many)]
    }

    #[draws(most)]
    fn most() -> impl Strategy<Value = usize> {
        prop_oneof![1 => Just(0), 4 => page_sizes(), 3 => Just(usize::MAX)]
    }

    #[write(weight = 7, blind)]
    async fn add(
        &self,
        tx: &Tx,
        #[draw(prop_oneof![6 => self.pair(), 1 => (Just(Family::oversize()), self.values.one())])] pair: Pair,
    ) -> Result<(), Error> {
        let (index, value) = set_pair(pair);
        set().add(tx, &index, &value).await
    }

    #[write(weight = 3, blind)]
    async fn remove(&self, tx: &Tx, pair: Pair) -> Result<(), Error> {
        let (index, value) = set_pair(pair);
        set().remove(tx, &index, &value).await
    }

    #[write(blind)]
    async fn remove_all(&self, tx: &Tx, i: Which) -> Result<(), Error> {
        set().remove_all(tx, &label(i)).await
    }

    #[read(weight = 2)]
    async fn is_element(&self, tx: &Tx, isolation: Isolation, pair: Pair) -> Result<bool, Error> {
        let (index, value) = set_pair(pair);
        set().is_element(tx, &index, &value, isolation).await
    }

    #[read(weight = 3)]
    async fn get(
        &self,
        tx: &Tx,
        isolation: Isolation,
        i: Which,
        after: Option<Which>,
        most: usize,
    ) -> Result<Vec<Content>, Error> {
        let after = after.map(|v| set_pair((i, v)).1);
        let values = set().get(tx, &label(i), after.as_ref(), most, isolation).await?;
        Ok(values.iter().map(content).collect())
    }

    #[read]
    async fn all(
        &self,
        tx: &Tx,
        isolation: Isolation,
        after_pair: Option<Pair>,
        most: usize,
    ) -> Result<Vec<(Content, Content)>, Error> {
        let after = after_pair.map(set_pair);
        let pairs = set().all(tx, after.as_ref().map(|(i, v)| (i, v)), most, isolation).await?;
        Ok(pairs.iter().map(|(i, v)| (content(i), content(v))).collect())
    }

    #[write(weight = 7, blind)]
    async fn add_copies(
        &self,
        tx: &Tx,
        #[draw(prop_oneof![6 => self.pair(), 1 => (self.index(), Just(Family::oversize()))])] pair: Pair,
        copies: u32,
    ) -> Result<(), Error> {
        let (index, value) = copies_pair(pair);
        stock().add(tx, &index, &value, copies).await
    }

    #[write(weight = 5)]
    async fn remove_copies(&self, tx: &Tx, pair: Pair, copies: u32) -> Result<u64, Error> {
        let (index, value) = copies_pair(pair);
        stock().remove(tx, &index, &value, copies).await
    }

    #[write(blind)]
    async fn remove_all_copies(&self, tx: &Tx, i: Which) -> Result<(), Error> {
        stock().remove_all(tx, &label(i)).await
    }

    #[read(weight = 2)]
    async fn count(&self, tx: &Tx, isolation: Isolation, pair: Pair) -> Result<u64, Error> {
        let (index, value) = copies_pair(pair);
        stock().count(tx, &index, &value, isolation).await
    }

    #[read(weight = 3)]
    async fn counts(
        &self,
        tx: &Tx,
        isolation: Isolation,
        i: Which,
        after: Option<Which>,
        most: usize,
    ) -> Result<Vec<(Content, u64)>, Error> {
        let after = after.map(|v| copies_pair((i, v)).1);
        let values = stock().get(tx, &label(i), after.as_ref(), most, isolation).await?;
        Ok(values.iter().map(|(value, copies)| (content(value), *copies)).collect())
    }

    #[read]
    async fn all_counts(
        &self,
        tx: &Tx,
        isolation: Isolation,
        after_pair: Option<Pair>,
        most: usize,
    ) -> Result<Vec<(Content, Content, u64)>, Error> {
        let after = after_pair.map(copies_pair);
        let pairs = stock().all(tx, after.as_ref().map(|(i, v)| (i, v)), most, isolation).await?;
        Ok(pairs.iter().map(|((i, v), copies)| (content(i), content(v), *copies)).collect())
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> Result<Pairs, Error> {
        let set = set().all(tx, None, usize::MAX, Serializable).await?;
        let copies = stock().all(tx, None, usize::MAX, Serializable).await?;
        Ok(Pairs { set: set.into_iter().collect(), copies: copies.into_iter().collect() })
    }
}

/// The model: a set and a multiset of pairs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairs {
    set: BTreeSet<(Label, Label)>,
    copies: BTreeMap<(Label, Label), u64>,
}

impl Pairs {
    fn add(&mut self, pair: Pair) -> Result<(), Error> {
        let pair = set_pair(pair);
        fits(set_space(), &pair)?;
        self.set.insert(pair);
        Ok(())
    }

    fn remove(&mut self, pair: Pair) -> Result<(), Error> {
        self.set.remove(&set_pair(pair));
        Ok(())
    }

    fn remove_all(&mut self, i: Which) -> Result<(), Error> {
        let index = label(i);
        self.set.retain(|(of, _)| *of != index);
        Ok(())
    }

    fn is_element(&self, pair: Pair) -> Result<bool, Error> {
        Ok(self.set.contains(&set_pair(pair)))
    }

    fn get(&self, i: Which, after: Option<Which>, most: usize) -> Result<Vec<Content>, Error> {
        let after = after.map(|v| set_pair((i, v)));
        let values = page(self.set.iter(), |pair| pair, Some(label(i)), after, most);
        Ok(values.into_iter().map(|(_, value)| content(value)).collect())
    }

    fn all(&self, after_pair: Option<Pair>, most: usize) -> Result<Vec<(Content, Content)>, Error> {
        let pairs = page(self.set.iter(), |pair| pair, None, after_pair.map(set_pair), most);
        Ok(pairs.into_iter().map(|(i, v)| (content(i), content(v))).collect())
    }

    fn add_copies(&mut self, pair: Pair, copies: u32) -> Result<(), Error> {
        let pair = copies_pair(pair);
        fits(copies_space(), &pair)?;
        if copies > 0 {
            *self.copies.entry(pair).or_default() += u64::from(copies);
        }
        Ok(())
    }

    fn remove_copies(&mut self, pair: Pair, copies: u32) -> Result<u64, Error> {
        let have = self.count(pair)?;
        let left = have.checked_sub(copies.into()).ok_or(Error::TooFew { have, asked: copies })?;
        match left {
            0 => self.copies.remove(&copies_pair(pair)),
            _ => self.copies.insert(copies_pair(pair), left),
        };
        Ok(left)
    }

    fn remove_all_copies(&mut self, i: Which) -> Result<(), Error> {
        let index = label(i);
        self.copies.retain(|(of, _), _| *of != index);
        Ok(())
    }

    fn count(&self, pair: Pair) -> Result<u64, Error> {
        Ok(self.copies.get(&copies_pair(pair)).copied().unwrap_or(0))
    }

    fn counts(&self, i: Which, after: Option<Which>, most: usize) -> Result<Vec<(Content, u64)>, Error> {
        let after = after.map(|v| copies_pair((i, v)));
        let values = page(self.copies.iter(), |(pair, _)| pair, Some(label(i)), after, most);
        Ok(values.into_iter().map(|((_, value), copies)| (content(value), *copies)).collect())
    }

    fn all_counts(
        &self,
        after_pair: Option<Pair>,
        most: usize,
    ) -> Result<Vec<(Content, Content, u64)>, Error> {
        let pairs = page(self.copies.iter(), |(pair, _)| pair, None, after_pair.map(copies_pair), most);
        Ok(pairs.into_iter().map(|((i, v), copies)| (content(i), content(v), *copies)).collect())
    }
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
fn fits(space: Subspace, (index, value): &(Label, Label)) -> Result<(), Error> {
    limits::key(&[space.bytes(), index.packed(), value.packed()].concat())?;
    Ok([index, value].into_iter().try_for_each(unpacks)?)
}

/// A value that gives a key the maximum size, and one that gives it one byte more.
const EDGES: [Which; 2] = [(u8::MAX, 0), (u8::MAX, 1)];

/// Two values, used in all runs, of which the key of one begins with the key of the other.
const NESTED: [Which; 2] = [(0, 0), (0, 2)];

/// An index and a value, for a key below this subspace.
fn labels(space: &Subspace, (i, v): Pair) -> (Label, Label) {
    let index = label(i);
    match EDGES.iter().position(|edge| *edge == v) {
        Some(beyond) => {
            // A text takes two bytes in addition to its own.
            let room = if beyond > 0 { 0 } else { key_room() };
            let others = space.bytes().len() + index.packed().len() + 2;
            let value = "e".repeat(KEY_SIZE_LIMIT - others - room + beyond).as_str().into();
            (index, value)
        }
        None => (index, label(v)),
    }
}

fn set_space() -> Subspace {
    Subspace::from("enroll")
}

fn copies_space() -> Subspace {
    Subspace::from("stock")
}

fn set() -> Layer {
    Layer::new(set_space())
}

fn stock() -> Multiset {
    Multiset::new(copies_space())
}

fn set_pair(pair: Pair) -> (Label, Label) {
    labels(&set_space(), pair)
}

fn copies_pair(pair: Pair) -> (Label, Label) {
    labels(&copies_space(), pair)
}

fn content(label: &Label) -> Content {
    Content::from(label.packed())
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Multimap>>()
}
