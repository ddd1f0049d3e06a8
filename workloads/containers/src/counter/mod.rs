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
use foundationdb_tuple::Subspace;
use shaketable::{models::timeline::Timeline, prelude::*, strategies};
use shaketable_layers::counter::{self, Error, Part, SplitCounter};
use shaketable_tx::KeyValue;
use std::collections::BTreeMap;

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
}

/// Single and split counters, blind additions and bounded ones.
#[shaketable::workload(name = "counter", model = Counters, planted, promises(turns, limits))]
impl Counter {
    fn draw(rng: &mut Stream, bug: Option<&str>) -> Counter {
        let mut parts = [(); 2].map(|()| *rng.pick(&[0, 1, 2, 4, 255, 256, 300, u32::MAX]));
        if matches!(bug, Some("known-parts" | "torn-sum")) {
            parts = [2, 4];
        }
        let largest = *rng.pick(&[3, 127, 128, 256, 300, 70_000, i64::MAX / 2, i64::MAX / 2 + 1]);
        Counter {
            parts,
            largest,
            bound: *rng.pick(&[0, 2, 500]),
            drawn: bug.is_none() && largest < 1 << 32 && rng.chance(0.3),
        }
    }

    fn points() -> &'static [&'static str] {
        &["counter: a counter has several parts", "counter: a change would leave the bounds"]
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        all().flat_map(|which| [which.key(Part(0)), which.key(Part(2))]).collect()
    }

    fn is_conflict_free(&self, op: &CounterOp) -> bool {
        matches!(op, CounterOp::add { .. } | CounterOp::set { .. } | CounterOp::get { snapshot: true, .. })
    }

    /// A counter, as this client uses it.
    #[draws(which)]
    fn which(&self, client: usize) -> BoxedStrategy<Which> {
        let parts = self.parts[client % 2];
        (any::<bool>(), 0..2u8).prop_map(move |(split, number)| Which { split, number, parts }).boxed()
    }

    #[draws(part)]
    fn part() -> impl Strategy<Value = Part> {
        prop_oneof![20 => 0..1_000u64, 1 => Just(u64::MAX)].prop_map(Part)
    }

    /// Whether sums may overflow.
    fn is_large(&self) -> bool {
        self.largest > 1 << 32
    }

    fn extreme(&self) -> BoxedStrategy<i64> {
        if self.is_large() { strategies::integers() } else { (-1..2i64).boxed() }
    }

    fn change(&self) -> BoxedStrategy<i64> {
        let largest = self.largest;
        prop_oneof![6 => -2..3i64, 4 => -largest..=largest, 2 => Just(largest), 1 => self.extreme()].boxed()
    }

    fn small_change(&self) -> BoxedStrategy<i64> {
        prop_oneof![8 => -3..3i64, if self.is_large() { 3 } else { 1 } => self.extreme()].boxed()
    }

    #[draws(bounds)]
    fn bounds(&self) -> BoxedStrategy<(i64, i64)> {
        prop_oneof![
            8 => Just((-self.bound, self.bound)),
            if self.is_large() { 6 } else { 1 } => Just((i64::MIN, i64::MAX)),
            1 => Just((self.bound, -self.bound)),
        ]
        .boxed()
    }

    /// The part that a change is applied to.
    fn chosen(&self, env: &Env, part: Part) -> Part {
        if self.drawn { Part::draw(env) } else { part }
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        beside::plant(db, &beside()).await
    }

    #[write(weight = 8, at)]
    async fn add(
        &self,
        tx: &Tx,
        env: &Env,
        which: Which,
        part: Part,
        #[draw(self.change())] by: i64,
    ) -> Result<(), Error> {
        which.add(tx, self.chosen(env, part), by).await
    }

    /// Adds, unless the result would be out of bounds.
    #[write(weight = 6, at)]
    async fn add_within(
        &self,
        tx: &Tx,
        env: &Env,
        which: Which,
        part: Part,
        #[draw(self.small_change())] by: i64,
        bounds: (i64, i64),
    ) -> Result<i64, Error> {
        which.add_within(tx, self.chosen(env, part), by, bounds).await
    }

    #[write(at)]
    async fn set(
        &self,
        tx: &Tx,
        which: Which,
        #[draw(prop_oneof![4 => select(vec![0, 1, -1, 255]), 1 => self.extreme()])] value: i64,
    ) -> Result<(), Error> {
        which.set(tx, value).await
    }

    /// Reads a counter, at snapshot if true. The model knows what a snapshot read sees.
    #[read(weight = 4, at)]
    async fn get(&self, tx: &Tx, which: Which, #[draw(any::<bool>())] snapshot: bool) -> Result<i64, Error> {
        which.get(tx, isolation(snapshot)).await
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Result<Counters, String>> {
        if let Err(why) = beside::check(tx, &beside()).await? {
            return Ok(Err(why));
        }
        let mut rows = Vec::new();
        for which in all() {
            let of = match which.split {
                true => shared::rows(tx, &which.space()).await?,
                false => {
                    let key = which.space().into_bytes();
                    let value = tx.get(&key, Serializable).await?;
                    value.map(|value| KeyValue::new(key, value)).into_iter().collect()
                }
            };
            rows.extend(of.into_iter().map(|row| (which, row)));
        }
        Ok(self.read(&rows))
    }

    /// Reads rows back by the key schema, as a model.
    fn read(&self, rows: &[(Which, KeyValue)]) -> Result<Counters, String> {
        let mut all = Parts::new();
        for (which, row) in rows {
            let part = match which.split {
                true => which.space().unpack::<(i64,)>(&row.key).map(|(part,)| part as u64),
                false => Ok(0),
            };
            let part = part.map_err(|_| format!("{} is not the key of a counter", row.key.escape_ascii()))?;
            let value = row.value[..].try_into().map(i64::from_le_bytes);
            let value =
                value.map_err(|_| format!("{} is not the value of a counter", row.value.escape_ascii()))?;
            let parts = all.entry((which.split, which.number)).or_default();
            *parts.entry(if self.drawn { 0 } else { part }).or_default() += value;
        }
        Ok(Counters { drawn: self.drawn, parts: Timeline::new(all) })
    }

    fn model(&self) -> Counters {
        Counters { drawn: self.drawn, parts: Timeline::new(Parts::new()) }
    }
}

/// The parts of each counter.
type Parts = BTreeMap<(bool, u8), BTreeMap<u64, i64>>;

/// The model: the counters, with their past.
#[derive(Clone, Debug, PartialEq)]
pub struct Counters {
    /// Whether each counter is kept in one part.
    drawn: bool,
    parts: Timeline<Parts>,
}

impl Counters {
    fn add(&mut self, which: Which, part: Part, by: i64, at: &At) -> Result<(), Error> {
        self.parts.begin(at);
        let part = if self.drawn { 0 } else { which.part(part) };
        self.parts.write(|all| {
            let value = all.entry((which.split, which.number)).or_default().entry(part).or_default();
            *value = value.wrapping_add(by);
        });
        Ok(())
    }

    fn add_within(
        &mut self,
        which: Which,
        part: Part,
        by: i64,
        (least, most): (i64, i64),
        at: &At,
    ) -> Result<i64, Error> {
        let value = self.get(which, false, at)?;
        let after = value.checked_add(by).filter(|after| *after >= least && *after <= most);
        let after = after.ok_or(Error::OutOfBounds { value, by, least, most })?;
        self.add(which, part, by, at)?;
        Ok(after)
    }

    fn set(&mut self, which: Which, value: i64, at: &At) -> Result<(), Error> {
        self.parts.begin(at);
        self.parts.write(|all| drop(all.insert((which.split, which.number), BTreeMap::from([(0, value)]))));
        Ok(())
    }

    fn get(&mut self, which: Which, snapshot: bool, at: &At) -> Result<i64, Error> {
        self.parts.begin(at);
        sum(self
            .parts
            .seen(snapshot)
            .get(&(which.split, which.number))
            .into_iter()
            .flatten()
            .map(|(_, n)| *n))
    }
}

/// The sum of parts, if it fits.
fn sum(parts: impl IntoIterator<Item = impl Into<i128>>) -> Result<i64, Error> {
    let sum = parts.into_iter().map(Into::into).sum();
    i64::try_from(sum).map_err(|_| Error::Overflow(sum))
}

/// A counter: its number, and whether it is split.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
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

    fn one(self) -> counter::Counter {
        counter::Counter::new(self.space())
    }

    fn several(self) -> SplitCounter {
        SplitCounter::new(self.space(), self.parts)
    }

    async fn add(self, tx: &Tx, part: Part, by: i64) -> Result<(), Error> {
        match self.split {
            true => self.several().add(tx, part, by).await,
            false => self.one().add(tx, by).await,
        }
    }

    async fn add_within(self, tx: &Tx, part: Part, by: i64, (least, most): (i64, i64)) -> Result<i64, Error> {
        match self.split {
            true => self.several().add_within(tx, part, by, least, most).await,
            false => self.one().add_within(tx, by, least, most).await,
        }
    }

    async fn set(self, tx: &Tx, value: i64) -> Result<(), Error> {
        match self.split {
            true => self.several().set(tx, value).await,
            false => self.one().set(tx, value).await,
        }
    }

    async fn get(self, tx: &Tx, isolation: Isolation) -> Result<i64, Error> {
        match self.split {
            true => self.several().get(tx, isolation).await,
            false => self.one().get(tx, isolation).await,
        }
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

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Counter>>()
}
