//! `counter`: single and split counters are added to, taken from within bounds, set and read.
//!
//! Two counters of each kind, so that clients meet. Clients differ in the number of parts they use. Numbers
//! are small, or on both sides of where a byte ends, or so large that a key wraps around and a sum of parts
//! does not fit; bounds are close, so that changes are refused.

use crate::{
    sabotage::counter as sabotage,
    specimen::{self, At, Specimen, UNRECORDED},
    workload::{Bug, Outcome},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable_layers::{
    counter::{self, Error, Part, SplitCounter},
    once::Session,
    tx::{
        self, Database, Env,
        Isolation::{Serializable, Snapshot},
        RangeOption, Transaction,
    },
};
use shaketable_sim::seed::Stream;
use std::collections::BTreeMap;

flaws! {
    Unrecorded = UNRECORDED, "an addition is retried after an unknown result without an operation record", "the documentation's own counter";
    ReadAddWrite = "read-add-write", "the sum is computed by the client from a snapshot read and stored", "an update that is lost";
    AddReads = "add-reads", "an addition reads the counter serializably", "isolation gone too far";
    SnapshotDecision = "snapshot-decision", "whether the bounds hold is read at snapshot", "a decision on a snapshot read";
    DecisionBefore = "decision-before", "whether the bounds hold is read in a transaction before", "a check apart from its act";
    OnePartDecides = "one-part-decides", "a change within bounds looks at the part it goes to", "a split counter decided upon in part";
    TornSum = "torn-sum", "the parts are read one transaction each", "a sum over several versions";
    KnownParts = "known-parts", "setting a counter clears only the parts that this client knows", "a counter reset where shards are known by number";
    BigEndian = "big-endian", "operands and values are big-endian", "an atomic addition is little-endian";
    ShortOperand = "short-operand", "an addition has an operand of four bytes, to which it cuts the value", "an atomic addition takes the operand's length";
    UnsignedParts = "unsigned-parts", "parts are read as unsigned numbers", "a counter that nobody thought negative";
}

/// One counter: which, and whether it is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Which {
    pub(crate) split: bool,
    number: u8,
    /// In how many parts the caller changes it.
    pub(crate) parts: u32,
}

impl Which {
    pub(crate) fn space(self) -> Subspace {
        Subspace::from(if self.split { "split" } else { "single" }).subspace(&i64::from(self.number))
    }

    /// The part that this number names.
    pub(crate) fn part(self, part: Part) -> u64 {
        if self.split { part.0 % u64::from(self.parts) } else { 0 }
    }

    /// The key that a change goes to.
    pub(crate) fn key(self, part: Part) -> Vec<u8> {
        match self.split {
            true => self.space().pack(&(self.part(part) as i64,)),
            false => self.space().into_bytes(),
        }
    }

    pub(crate) fn single(self) -> counter::Counter {
        counter::Counter::new(self.space())
    }

    pub(crate) fn split(self) -> SplitCounter {
        SplitCounter::new(self.space(), self.parts)
    }
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Counter {
    /// The numbers of parts that clients of even and of odd number use.
    parts: [u32; 2],
    /// The largest number that is added.
    largest: i64,
    /// How close the bounds are.
    bound: i64,
    flaw: Option<Flaw>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Adds.
    Add(Which, Part, i64),
    /// Adds, unless that leaves the bounds.
    Within(Which, Part, i64, i64, i64),
    /// Makes the counter say this.
    Set(Which, i64),
    /// Reads it; at snapshot, if asked to and alone.
    Get(Which, bool),
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// What the counter says.
    Value(i64),
}

/// The parts of each counter.
pub type Model = BTreeMap<(bool, u8), BTreeMap<u64, i64>>;

fn value(model: &Model, which: Which) -> Result<i64, Error> {
    let parts = model.get(&(which.split, which.number)).into_iter().flatten();
    let sum = parts.map(|(_, value)| i128::from(*value)).sum();
    i64::try_from(sum).map_err(|_| Error::Overflow(sum))
}

fn add(model: &mut Model, which: Which, part: Part, by: i64) {
    let parts = model.entry((which.split, which.number)).or_default();
    let value = parts.entry(which.part(part)).or_default();
    *value = value.wrapping_add(by);
}

impl Specimen for Counter {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "counter";
    const ABOUT: &'static str = "single and split counters, blind additions and bounded ones";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &["counter: a counter has several parts", "counter: a change would leave the bounds"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Counter {
        let flaw = bug.and_then(Flaw::named);
        let mut parts = [(); 2].map(|()| *rng.pick(&[1, 2, 4, 300]));
        if flaw == Some(Flaw::KnownParts) {
            parts = [2, 4];
        }
        Counter {
            parts,
            largest: *rng.pick(&[3, 300, 70_000, i64::MAX / 2]),
            bound: *rng.pick(&[0, 2, 500]),
            flaw,
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let which = |split| move |number| Which { split, number, parts: 4 };
        let all = (0..2).map(which(true)).chain((0..2).map(which(false)));
        all.flat_map(|which| [which.key(Part(0)), which.key(Part(2))]).map(Bytes::from).collect()
    }

    fn operation(&self, client: usize) -> BoxedStrategy<Op> {
        let (parts, largest, bound) = (self.parts[client % 2], self.largest, self.bound);
        let which =
            move || (any::<bool>(), 0..2u8).prop_map(move |(split, number)| Which { split, number, parts });
        let part = || (0..1_000u64).prop_map(Part);
        let change = move || prop_oneof![3 => -2..3i64, 2 => -largest..=largest, 1 => Just(largest)];
        prop_oneof![
            8 => (which(), part(), change()).prop_map(|(which, part, by)| Op::Add(which, part, by)),
            6 => (which(), part(), -3..3i64).prop_map(move |(which, part, by)| {
                Op::Within(which, part, by, -bound, bound)
            }),
            1 => (which(), select(vec![0, 1, -1, 255])).prop_map(|(which, value)| Op::Set(which, value)),
            4 => (which(), any::<bool>()).prop_map(|(which, snapshot)| Op::Get(which, snapshot)),
        ]
        .boxed()
    }

    fn is_look(op: &Op) -> bool {
        matches!(op, Op::Get(..))
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Add(..) | Op::Set(..))
    }

    async fn perform<T: Transaction>(&self, tx: &T, _: &Env, op: &Op) -> Result<Answer, Error> {
        match self.flaw {
            Some(flaw) => sabotage::perform(flaw, tx, op).await,
            None => perform(tx, op).await,
        }
    }

    async fn divert<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        match (self.flaw, ops) {
            (Some(Flaw::DecisionBefore), [op @ Op::Within(..)]) => {
                sabotage::decided_before(session, op).await
            }
            (Some(Flaw::TornSum), [Op::Get(which, _)]) if which.split => {
                Some(sabotage::torn_sum(session, *which).await)
            }
            // Exact at its version, which is that of the whole transaction only if nothing else is in it.
            (_, &[Op::Get(which, true)]) => {
                let db = session.database();
                let value = db.run(|tx, _| async move { get(&tx, which, Snapshot).await }).await;
                Some(specimen::ran(value.map(|value| vec![Answer::Value(value)])))
            }
            _ => None,
        }
    }

    fn model(&self) -> Model {
        Model::new()
    }

    fn replay(&self, model: &mut Model, op: &Op, _: &At) -> Result<Answer, Error> {
        Ok(match op {
            Op::Add(which, part, by) => {
                add(model, *which, *part, *by);
                Answer::Written
            }
            Op::Within(which, part, by, least, most) => {
                let (value, by, least, most) = (value(model, *which)?, *by, *least, *most);
                let after = value.checked_add(by).filter(|after| *after >= least && *after <= most);
                let after = after.ok_or(Error::OutOfBounds { value, by, least, most })?;
                add(model, *which, *part, by);
                Answer::Value(after)
            }
            Op::Set(which, value) => {
                model.insert((which.split, which.number), BTreeMap::from([(0, *value)]));
                Answer::Written
            }
            Op::Get(which, _) => Answer::Value(value(model, *which)?),
        })
    }

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Model, String>> {
        let mut model = Model::new();
        for (split, name) in [(true, "split"), (false, "single")] {
            for row in tx.get_range_all(RangeOption::from(Subspace::from(name).range()), Serializable).await?
            {
                let parts: Vec<i64> = Subspace::from(name).unpack(&row.key).unwrap_or_default();
                let (number, part) = match (split, &parts[..]) {
                    (true, [number, part]) => (*number as u8, *part as u64),
                    (false, [number]) => (*number as u8, 0),
                    _ => return Ok(Err(format!("no counter's key: {}", row.key.escape_ascii()))),
                };
                let Ok(value) = <[u8; 8]>::try_from(&row.value[..]) else {
                    return Ok(Err(format!("no counter's value: {}", row.value.escape_ascii())));
                };
                model.entry((split, number)).or_default().insert(part, i64::from_le_bytes(value));
            }
        }
        Ok(Ok(model))
    }
}

/// Does a call right.
pub(crate) async fn perform<T: Transaction>(tx: &T, op: &Op) -> Result<Answer, Error> {
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
        Op::Get(which, _) => get(tx, which, Serializable).await.map(Answer::Value),
    }
}

pub(crate) async fn get<T: Transaction>(
    tx: &T,
    which: Which,
    isolation: tx::Isolation,
) -> Result<i64, Error> {
    match which.split {
        true => which.split().get(tx, isolation).await,
        false => which.single().get(tx, isolation).await,
    }
}
