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
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use planted::{BUGS, Planted};
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shaketable::{
    Misfit,
    real::key_room,
    specimen::{At, Specimen},
    weakened::Span,
    workload::Bug,
};
use shaketable_layers::hierarchy::{self, Error, Step, from_json, from_tuples, to_tuples};
use shaketable_sim::seed::Stream;
use shaketable_tx::{
    self as tx, Env,
    Isolation::{self, Serializable},
    Tx, always,
};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hierarchy {
    /// The number of different names of members.
    names: usize,
    /// The maximum length of a path, in steps.
    longest: usize,
    planted: Option<Planted>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Inserts an item at a path.
    Insert(Vec<Step>, Item),
    /// Replaces the value at a path.
    Replace(Vec<Step>, Item),
    /// Removes the value at a path.
    Remove(Vec<Step>),
    /// Reads the value at a path.
    Get(Vec<Step>),
    /// Reads the tuples at a path, and converts them to a value.
    Tuples(Vec<Step>),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Written.
    Written,
    /// Whether there was a value to remove.
    Removed(bool),
    /// The value found.
    Read(Option<Shown>),
}

fn space() -> Subspace {
    Subspace::from("hierarchy")
}

fn layer() -> hierarchy::Hierarchy {
    hierarchy::Hierarchy::new(space())
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Hierarchy>>()
}

impl Hierarchy {
    /// Performs a call correctly.
    async fn right(&self, tx: &Tx, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        let hierarchy = layer();
        Ok(match op {
            Op::Insert(path, Item::Value(Json(value))) => {
                hierarchy.insert(tx, path, &from_json(&value.to_string())?).await?;
                Answer::Written
            }
            Op::Insert(path, item) => {
                hierarchy.insert(tx, path, &item.value()).await?;
                Answer::Written
            }
            Op::Replace(path, item) => {
                hierarchy.replace(tx, path, &item.value()).await?;
                Answer::Written
            }
            Op::Remove(path) => Answer::Removed(hierarchy.remove(tx, path).await?),
            Op::Get(path) => {
                Answer::Read(hierarchy.get(tx, path, isolation).await?.as_ref().map(Shown::from))
            }
            Op::Tuples(path) => {
                let tuples = hierarchy.tuples(tx, path, isolation).await?;
                let value = from_tuples(&tuples)?;
                if let Some(value) = &value {
                    let again = to_tuples(value)?;
                    always!(
                        again.len() == tuples.len(),
                        "{tuples:?} are converted to a value whose tuples are {again:?}"
                    );
                }
                Answer::Read(value.as_ref().map(Shown::from))
            }
        })
    }
}

impl Specimen for Hierarchy {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Option<Json>;

    const NAME: &'static str = "hierarchy";
    const ABOUT: &'static str = "parts of one nested value, written and read by path";
    const CHECKS_LIMITS: bool = true;

    fn bugs() -> &'static [Bug] {
        BUGS
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

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Hierarchy {
        Hierarchy {
            names: rng.range(2..json::MOST_NAMES as u64 + 1) as usize,
            longest: rng.range(2..5) as usize,
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let tuples = ["a", "b"].map(|name| space().pack(&(name, 1)).into());
        tuples.into_iter().chain([space().pack(&(1,)).into()]).collect()
    }

    fn subspaces(&self) -> Vec<Span> {
        vec![space().range()]
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let path = || json::path(self.names, self.longest);
        let item = || json::value(self.names).prop_map(|value| Item::Value(Json(value)));
        let large = prop_oneof![
            select(vec![3_000, 9_900 - key_room(), 10_000]).prop_map(Item::Text),
            (hierarchy::MAX_DEPTH - 2..hierarchy::MAX_DEPTH + 2).prop_map(Item::Nested),
        ];
        // A path too long for a key, and some whose leaf is just as long as a key may be, or too long by a
        // byte.
        let room = tx::KEY_SIZE_LIMIT - space().pack(&"").len();
        let far = select(vec![room + 2, room - key_room(), room - key_room() - 1, room - key_room() - 2]);
        let far = far.prop_map(|length| vec![Step::from("x".repeat(length).as_str())]).boxed();
        let null = || Item::Value(Json(Value::Null));
        prop_oneof![
            // Whole objects, merged at the root.
            60 => item().prop_map(|item| Op::Insert(Vec::new(), item)),
            60 => (path(), item()).prop_map(|(path, item)| Op::Insert(path, item)),
            100 => (path(), item()).prop_map(|(path, item)| Op::Replace(path, item)),
            80 => path().prop_map(Op::Remove),
            60 => path().prop_map(Op::Get),
            20 => path().prop_map(Op::Tuples),
            4 => (path(), large).prop_map(|(path, item)| Op::Replace(path, item)),
            1 => far.clone().prop_map(Op::Remove),
            1 => far.clone().prop_map(Op::Get),
            1 => far.clone().prop_map(move |far| Op::Insert(far, null())),
            1 => far.prop_map(move |far| Op::Replace(far, null())),
        ]
        .boxed()
    }

    fn is_read_only(op: &Op) -> bool {
        matches!(op, Op::Get(_) | Op::Tuples(_))
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        Self::is_read_only(op) && self.planted.is_none_or(|planted| planted == Planted::TuplesConflict)
    }

    async fn perform(&self, tx: &Tx, _: &Env, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        match self.planted {
            Some(planted) => planted::perform(planted, self, tx, op, isolation).await,
            None => self.right(tx, op, isolation).await,
        }
    }

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
    }

    fn model(&self) -> Self::Model {
        None
    }

    fn replay(&self, model: &mut Self::Model, op: &Op, _: &At) -> Result<Answer, Error> {
        let (space, mut root) = (space(), model.take().map(|Json(value)| value));
        let answer = match op {
            Op::Insert(path, item) => {
                let item = item.value();
                json::fits(space.bytes(), Leaves::Key, path, &item)?;
                root = Some(json::change(root, path, |old| json::merged(old, &item))?);
                Answer::Written
            }
            Op::Replace(path, item) => {
                let item = item.value();
                json::fits(space.bytes(), Leaves::Key, path, &item)?;
                root = Some(json::change(root, path, |_| item)?);
                Answer::Written
            }
            Op::Remove(path) => {
                json::reaches(space.bytes(), path)?;
                Answer::Removed(json::remove(&mut root, path))
            }
            Op::Get(path) | Op::Tuples(path) => {
                json::reaches(space.bytes(), path)?;
                Answer::Read(root.as_ref().and_then(|root| json::get(root, path)).map(Shown::from))
            }
        };
        *model = root.map(Json);
        Ok(answer)
    }

    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Self::Model, Misfit>> {
        let tuples = match layer().tuples(tx, &[], Serializable).await {
            Ok(tuples) => tuples,
            Err(Error::Fdb(e)) => return Err(e),
            Err(e) => return Ok(Err(e.to_string().into())),
        };
        let mut assembly = Assembly::default();
        let added = tuples.iter().try_for_each(|tuple| assembly.add(tuple));
        Ok(added.and_then(|()| assembly.finish()).map(|value| value.map(Json)).map_err(Misfit::from))
    }
}
