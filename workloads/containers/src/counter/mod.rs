//! `counter`: single and split counters are changed, changed within bounds, set and read.
//!
//! There are two counters of each kind, so that clients meet; the prefix of one begins with the prefix of the
//! other. Clients use different numbers of parts. Numbers are small, or on both sides of where another byte
//! is needed, or so large that a key wraps around and the sum of the parts overflows. Bounds are narrow, so
//! that changes are refused. In some seeds parts are drawn by the layer; then numbers are small and only the
//! sum is compared.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
mod planted;

use crate::{
    beside,
    shared::{self, isolation},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use planted::{BUGS, Planted};
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    models::timeline::Timeline,
    specimen::{self, At, Specimen},
    strategies,
    workload::{Bug, Outcome},
};
use shaketable_layers::counter::{self, Error, Part, SplitCounter};
use shaketable_sim::seed::Stream;
use shaketable_tx::{
    self as tx, Db, Env,
    Isolation::{self, Serializable},
    Transaction, Tx,
    once::Session,
};
use std::collections::BTreeMap;

/// A counter: its number, and whether it is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Which {
    split: bool,
    number: u8,
    /// The number of parts in which the caller changes it.
    parts: u32,
}

impl Which {
    fn space(self) -> Subspace {
        Subspace::from(match (self.split, self.number) {
            (true, 0) => "split",
            (true, _) => "split\0",
            (false, 0) => "single",
            (false, _) => "single\0",
        })
    }

    /// The part with this number.
    fn part(self, part: Part) -> u64 {
        if self.split { part.0 % u64::from(self.parts.max(1)) } else { 0 }
    }

    /// The key that a change writes.
    fn key(self, part: Part) -> Vec<u8> {
        match self.split {
            true => self.space().pack(&(self.part(part) as i64,)),
            false => self.space().into_bytes(),
        }
    }

    fn single(self) -> counter::Counter {
        counter::Counter::new(self.space())
    }

    fn split(self) -> SplitCounter {
        SplitCounter::new(self.space(), self.parts)
    }
}

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Counter {
    /// The numbers of parts that clients with even and with odd numbers use.
    parts: [u32; 2],
    /// The largest number that is added.
    largest: i64,
    /// The distance of the bounds from zero.
    bound: i64,
    /// Whether parts are drawn by the layer. The model then keeps each counter in one part.
    drawn: bool,
    planted: Option<Planted>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Adds.
    Add(Which, Part, i64),
    /// Adds, unless the result would be out of bounds.
    Within(Which, Part, i64, i64, i64),
    /// Sets the counter to this value.
    Set(Which, i64),
    /// Reads the counter, at snapshot if true.
    Get(Which, bool),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// The value of the counter.
    Value(i64),
}

/// The parts of each counter.
pub type Counters = BTreeMap<(bool, u8), BTreeMap<u64, i64>>;

/// The counters, with their past.
pub type Model = Timeline<Counters>;

fn value(model: &Counters, which: Which) -> Result<i64, Error> {
    let parts = model.get(&(which.split, which.number)).into_iter().flatten();
    let sum = parts.map(|(_, value)| i128::from(*value)).sum();
    i64::try_from(sum).map_err(|_| Error::Overflow(sum))
}

fn add(model: &mut Counters, which: Which, part: u64, by: i64) {
    let parts = model.entry((which.split, which.number)).or_default();
    let value = parts.entry(part).or_default();
    *value = value.wrapping_add(by);
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Counter>>()
}

impl Specimen for Counter {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "counter";
    const ABOUT: &'static str = "single and split counters, blind additions and bounded ones";
    const CHECKS_LIMITS: bool = true;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &["counter: a counter has several parts", "counter: a change would leave the bounds"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Counter {
        let planted = bug.and_then(Planted::named);
        let mut parts = [(); 2].map(|()| *rng.pick(&[0, 1, 2, 4, 255, 256, 300, u32::MAX]));
        if matches!(planted, Some(Planted::KnownParts | Planted::TornSum)) {
            parts = [2, 4];
        }
        let largest = *rng.pick(&[3, 127, 128, 256, 300, 70_000, i64::MAX / 2, i64::MAX / 2 + 1]);
        Counter {
            parts,
            largest,
            bound: *rng.pick(&[0, 2, 500]),
            drawn: planted.is_none() && largest < 1 << 32 && rng.chance(0.3),
            planted,
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        all().flat_map(|which| [which.key(Part(0)), which.key(Part(2))]).map(Bytes::from).collect()
    }

    fn operation(&self, client: usize) -> BoxedStrategy<Op> {
        let (parts, largest, bound) = (self.parts[client % 2], self.largest, self.bound);
        let which =
            move || (any::<bool>(), 0..2u8).prop_map(move |(split, number)| Which { split, number, parts });
        let part = || prop_oneof![20 => 0..1_000u64, 1 => Just(u64::MAX)].prop_map(Part);
        let large = largest > 1 << 32;
        let extreme = move || if large { strategies::integers() } else { (-1..2i64).boxed() };
        let change =
            move || prop_oneof![6 => -2..3i64, 4 => -largest..=largest, 2 => Just(largest), 1 => extreme()];
        let bounds = move || {
            prop_oneof![
                8 => Just((-bound, bound)),
                if large { 6 } else { 1 } => Just((i64::MIN, i64::MAX)),
                1 => Just((bound, -bound)),
            ]
        };
        let within =
            (which(), part(), prop_oneof![8 => -3..3i64, if large { 3 } else { 1 } => extreme()], bounds());
        prop_oneof![
            8 => (which(), part(), change()).prop_map(|(which, part, by)| Op::Add(which, part, by)),
            6 => within.prop_map(|(which, part, by, (least, most))| Op::Within(which, part, by, least, most)),
            1 => (which(), prop_oneof![4 => select(vec![0, 1, -1, 255]), 1 => extreme()])
                .prop_map(|(which, value)| Op::Set(which, value)),
            4 => (which(), any::<bool>()).prop_map(|(which, snapshot)| Op::Get(which, snapshot)),
        ]
        .boxed()
    }

    fn is_read_only(op: &Op) -> bool {
        matches!(op, Op::Get(..))
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Add(..) | Op::Set(..) | Op::Get(_, true))
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        beside::plant(db, &beside()).await
    }

    async fn perform(&self, tx: &Tx, env: &Env, op: &Op, _: Isolation) -> Result<Answer, Error> {
        match (self.planted, op) {
            (Some(planted), op) => planted::perform(planted, tx, op).await,
            (None, Op::Add(which, _, by)) if self.drawn => {
                perform(tx, &Op::Add(*which, Part::draw(env), *by)).await
            }
            (None, Op::Within(which, _, by, least, most)) if self.drawn => {
                perform(tx, &Op::Within(*which, Part::draw(env), *by, *least, *most)).await
            }
            (None, op) => perform(tx, op).await,
        }
    }

    async fn apply_planted(
        &self,
        session: &mut Session<Db>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        match (self.planted, ops) {
            (Some(Planted::DecisionBefore), [op @ Op::Within(which, part, by, ..)]) => {
                Some(planted::decided_before(session, op, &Op::Add(*which, *part, *by)).await)
            }
            (Some(Planted::TornSum), [Op::Get(which, _)]) if which.split => {
                Some(planted::torn_sum(session, *which).await)
            }
            _ => None,
        }
    }

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
    }

    fn model(&self) -> Model {
        Timeline::new(Counters::new())
    }

    fn replay(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
        model.begin(at);
        let to = |which: Which, part| if self.drawn { 0 } else { which.part(part) };
        Ok(match *op {
            Op::Add(which, part, by) => {
                model.write(|counters| add(counters, which, to(which, part), by));
                Answer::Written
            }
            Op::Within(which, part, by, least, most) => {
                let value = value(model.now(), which)?;
                let after = value.checked_add(by).filter(|after| *after >= least && *after <= most);
                let after = after.ok_or(Error::OutOfBounds { value, by, least, most })?;
                model.write(|counters| add(counters, which, to(which, part), by));
                Answer::Value(after)
            }
            Op::Set(which, value) => {
                let parts = BTreeMap::from([(0, value)]);
                model.write(|counters| drop(counters.insert((which.split, which.number), parts.clone())));
                Answer::Written
            }
            Op::Get(which, snapshot) => Answer::Value(value(model.seen(snapshot), which)?),
        })
    }

    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Model, Misfit>> {
        if let Err(why) = beside::check(tx, &beside()).await? {
            return Ok(Err(why.into()));
        }
        let mut counters = Counters::new();
        for which in all() {
            let rows = match which.split {
                true => shared::rows(tx, &which.space()).await?,
                false => {
                    let key = which.space().into_bytes();
                    let value = tx.get(&key, Serializable).await?;
                    value.map(|value| tx::KeyValue::new(key, value)).into_iter().collect()
                }
            };
            for row in rows {
                let part = match which.split {
                    true => which.space().unpack::<(i64,)>(&row.key).ok().map(|(part,)| part as u64),
                    false => Some(0),
                };
                let Some(part) = part else {
                    return Ok(Err(format!("{} is not the key of a counter", row.key.escape_ascii()).into()));
                };
                let Ok(value) = <[u8; 8]>::try_from(&row.value[..]) else {
                    return Ok(Err(
                        format!("{} is not the value of a counter", row.value.escape_ascii()).into()
                    ));
                };
                let part = if self.drawn { 0 } else { part };
                let parts = counters.entry((which.split, which.number)).or_default();
                *parts.entry(part).or_default() += i64::from_le_bytes(value);
            }
        }
        Ok(Ok(Timeline::new(counters)))
    }
}

/// All counters.
fn all() -> impl Iterator<Item = Which> {
    let which = |split| move |number| Which { split, number, parts: 4 };
    (0..2).map(which(true)).chain((0..2).map(which(false)))
}

/// The keys of the rows beside the counters. For a single counter these are keys that would be below its own
/// key.
fn beside() -> Vec<Vec<u8>> {
    let below = |prefix: &[u8]| [&b"\0"[..], b"\x15\0", b"\xff"].map(|tail| [prefix, tail].concat()).to_vec();
    let of = |which: Which| match which.split {
        true => beside::of(which.space().bytes()),
        false => below(which.space().bytes()),
    };
    all().flat_map(of).collect()
}

/// Performs a call correctly.
async fn perform(tx: &Tx, op: &Op) -> Result<Answer, Error> {
    let written = |()| Answer::Written;
    match *op {
        Op::Add(which, part, by) if which.split => which.split().add(tx, part, by).await.map(written),
        Op::Add(which, _, by) => which.single().add(tx, by).await.map(written),
        Op::Within(which, part, by, least, most) if which.split => {
            which.split().add_within(tx, part, by, least, most).await.map(Answer::Value)
        }
        Op::Within(which, _, by, least, most) => {
            which.single().add_within(tx, by, least, most).await.map(Answer::Value)
        }
        Op::Set(which, value) if which.split => which.split().set(tx, value).await.map(written),
        Op::Set(which, value) => which.single().set(tx, value).await.map(written),
        Op::Get(which, snapshot) => get(tx, which, isolation(snapshot)).await.map(Answer::Value),
    }
}

async fn get(tx: &Tx, which: Which, isolation: tx::Isolation) -> Result<i64, Error> {
    match which.split {
        true => which.split().get(tx, isolation).await,
        false => which.single().get(tx, isolation).await,
    }
}
