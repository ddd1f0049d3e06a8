//! `hierarchy`: parts of one nested value are inserted, replaced, removed and read by path.
//!
//! There are few names, and paths are short, so that edits meet: a leaf replaces an object, an object
//! replaces a leaf, lists shrink, the last member of an object is removed and its first one is inserted
//! again. One name continues another after a zero byte. Leaves are of every kind of JSON value, including the
//! integers that serve as markers elsewhere. A few values are too long for a key, or nested too deep.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
pub(super) mod planted;

use crate::models::json::{self, Assembly, Item, Json, Leaves, Shown};
use foundationdb_tuple::Subspace;
use serde_json::Value;
use shaketable::{Misfit, prelude::*, real::key_room};
use shaketable_layers::hierarchy::{self, Error, Step, from_json, from_tuples, to_tuples};
use shaketable_tx::{KEY_SIZE_LIMIT, always};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hierarchy {
    /// The number of different names of members.
    names: usize,
    /// The maximum length of a path, in steps.
    longest: usize,
}

/// A path, and what is written there.
type Change = (Vec<Step>, Item);

/// Parts of one nested value, written and read by path.
#[shaketable::workload(name = "hierarchy", model = Tree, planted, promises(turns, limits))]
impl Hierarchy {
    fn draw(rng: &mut Stream) -> Hierarchy {
        Hierarchy {
            names: rng.range(2..json::MOST_NAMES as u64 + 1) as usize,
            longest: rng.range(2..5) as usize,
        }
    }

    fn points() -> &'static [&'static str] {
        &[
            "hierarchy: a marker makes room",
            "hierarchy: an empty object gets members",
            "hierarchy: the last member goes",
            "hierarchy: the last element goes",
            "hierarchy: elements move up",
        ]
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        vec![space().pack(&("a", 1)), space().pack(&("b", 1)), space().pack(&(1,))]
    }

    fn subspaces(&self) -> [(Vec<u8>, Vec<u8>); 1] {
        [space().range()]
    }

    fn one_path(&self) -> BoxedStrategy<Vec<Step>> {
        json::path(self.names, self.longest).boxed()
    }

    fn item(&self) -> BoxedStrategy<Item> {
        json::value(self.names).prop_map(|value| Item::Value(Json(value))).boxed()
    }

    #[draws(path)]
    fn path(&self) -> BoxedStrategy<Vec<Step>> {
        prop_oneof![80 => self.one_path(), 1 => far()].boxed()
    }

    fn insertion(&self) -> BoxedStrategy<Change> {
        prop_oneof![
            // Whole objects, merged at the root.
            60 => (Just(Vec::new()), self.item()),
            60 => (self.one_path(), self.item()),
            1 => (far(), null()),
        ]
        .boxed()
    }

    fn replacement(&self) -> BoxedStrategy<Change> {
        let large = prop_oneof![
            select(vec![3_000, 9_900 - key_room(), 10_000]).prop_map(Item::Text),
            (hierarchy::MAX_DEPTH - 2..hierarchy::MAX_DEPTH + 2).prop_map(Item::Nested),
        ];
        prop_oneof![
            100 => (self.one_path(), self.item()),
            4 => (self.one_path(), large),
            1 => (far(), null()),
        ]
        .boxed()
    }

    #[write(weight = 121)]
    async fn insert(&self, tx: &Tx, #[draw(self.insertion())] change: &Change) -> Result<(), Error> {
        let (path, item) = change;
        match item {
            Item::Value(Json(value)) => layer().insert(tx, path, &from_json(&value.to_string())?).await,
            item => layer().insert(tx, path, &item.value()).await,
        }
    }

    #[write(weight = 105)]
    async fn replace(&self, tx: &Tx, #[draw(self.replacement())] change: &Change) -> Result<(), Error> {
        let (path, item) = change;
        layer().replace(tx, path, &item.value()).await
    }

    #[write(weight = 81)]
    async fn remove(&self, tx: &Tx, path: &[Step]) -> Result<bool, Error> {
        layer().remove(tx, path).await
    }

    #[read(weight = 61)]
    async fn get(&self, tx: &Tx, isolation: Isolation, path: &[Step]) -> Result<Option<Shown>, Error> {
        Ok(layer().get(tx, path, isolation).await?.as_ref().map(Shown::from))
    }

    /// Reads the tuples at a path, and converts them to a value.
    #[read(weight = 20)]
    async fn tuples(&self, tx: &Tx, isolation: Isolation, path: &[Step]) -> Result<Option<Shown>, Error> {
        let tuples = layer().tuples(tx, path, isolation).await?;
        let value = from_tuples(&tuples)?;
        if let Some(value) = &value {
            let again = to_tuples(value)?;
            always!(
                again.len() == tuples.len(),
                "{tuples:?} are converted to a value whose tuples are {again:?}"
            );
        }
        Ok(value.as_ref().map(Shown::from))
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Result<Tree, Misfit>> {
        let tuples = match layer().tuples(tx, &[], Serializable).await {
            Ok(tuples) => tuples,
            Err(Error::Fdb(e)) => return Err(e),
            Err(e) => return Ok(Err(e.to_string().into())),
        };
        let mut assembly = Assembly::default();
        let added = tuples.iter().try_for_each(|tuple| assembly.add(tuple));
        let root = added.and_then(|()| assembly.finish()).map_err(Misfit::from);
        Ok(root.map(|root| Tree(root.map(Json))))
    }
}

/// The model: the value, if there is one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree(Option<Json>);

impl Tree {
    fn insert(&mut self, (path, item): &Change) -> Result<(), Error> {
        let item = item.value();
        json::fits(space().bytes(), Leaves::Key, path, &item)?;
        self.change(path, |old| json::merged(old, &item))
    }

    fn replace(&mut self, (path, item): &Change) -> Result<(), Error> {
        let item = item.value();
        json::fits(space().bytes(), Leaves::Key, path, &item)?;
        self.change(path, |_| item)
    }

    fn remove(&mut self, path: &[Step]) -> Result<bool, Error> {
        json::reaches(space().bytes(), path)?;
        let mut root = self.0.take().map(|Json(root)| root);
        let removed = json::remove(&mut root, path);
        self.0 = root.map(Json);
        Ok(removed)
    }

    fn get(&self, path: &[Step]) -> Result<Option<Shown>, Error> {
        json::reaches(space().bytes(), path)?;
        Ok(self.0.as_ref().and_then(|Json(root)| json::get(root, path)).map(Shown::from))
    }

    fn tuples(&self, path: &[Step]) -> Result<Option<Shown>, Error> {
        self.get(path)
    }

    /// Changes the value at a path.
    fn change(&mut self, path: &[Step], change: impl FnOnce(Option<Value>) -> Value) -> Result<(), Error> {
        let root = self.0.take().map(|Json(root)| root);
        self.0 = Some(Json(json::change(root, path, change)?));
        Ok(())
    }
}

fn space() -> Subspace {
    Subspace::from("hierarchy")
}

fn layer() -> hierarchy::Hierarchy {
    hierarchy::Hierarchy::new(space())
}

/// A path too long for a key, and some whose leaf, if it is null, is just as long as a key may be, or too
/// long by a byte.
fn far() -> impl Strategy<Value = Vec<Step>> {
    let room = KEY_SIZE_LIMIT - space().pack(&"").len();
    let far = select(vec![room + 2, room - key_room(), room - key_room() - 1, room - key_room() - 2]);
    far.prop_map(|length| vec![Step::from("x".repeat(length).as_str())])
}

fn null() -> impl Strategy<Value = Item> {
    Just(Item::Value(Json(Value::Null)))
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Hierarchy>>()
}
