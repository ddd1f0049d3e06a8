//! The fault state of a run.

use super::{
    decision::{Decision, Occurrence, Places, Script},
    families::Family,
    order::{Order, Requests},
    strikes::FaultPlan,
};
use crate::{
    chance::{self, Other},
    ids::{ClientId, NodeId},
    seed::{Seed, Stream},
};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// The fault state of a run: switch, rates, decisions, draws and counters.
pub struct Faults {
    on: AtomicBool,
    /// How often they were switched off: what began before has ended.
    ends: AtomicU64,
    seed: Seed,
    rates: Vec<f64>,
    script: Script,
    streams: Vec<Mutex<Stream>>,
    delivered: Vec<AtomicU64>,
    places: Mutex<Places>,
    recorded: Mutex<Vec<Decision>>,
    pub(super) order: Order,
    other: Option<Arc<Other>>,
}

impl Faults {
    /// The faults of a plan, apart from its strikes, switched off.
    pub fn new(seed: Seed, plan: &FaultPlan) -> Faults {
        Self::recording(seed, plan, false)
    }

    /// Like [`new`](Faults::new); the [requests](Faults::requests) are recorded for any plan if `requests` is
    /// true.
    pub fn recording(seed: Seed, plan: &FaultPlan, requests: bool) -> Faults {
        Faults {
            on: AtomicBool::new(false),
            ends: AtomicU64::new(0),
            seed,
            rates: Family::ALL.iter().map(|f| plan.rates.get(f).copied().unwrap_or(0.0)).collect(),
            script: Script::new(&plan.decisions),
            streams: Family::ALL.iter().map(|f| Mutex::new(seed.run_stream(f.name()))).collect(),
            delivered: Family::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            places: Mutex::default(),
            recorded: Mutex::default(),
            order: Order::new(plan, requests),
            other: chance::other(),
        }
    }

    /// The rates from now on, if the run has other chance and its moment has come: decisions and the order of
    /// the plan are void then.
    pub(super) fn other_rates(&self) -> Option<&BTreeMap<Family, f64>> {
        self.other.as_ref().filter(|other| other.has_begun()).map(|other| &other.chance.rates)
    }

    /// Whether other faults than those of the plan may come.
    pub fn has_other_chance(&self) -> bool {
        self.other.is_some()
    }

    /// The client on this machine leaves for good at its next commit, before or after it.
    pub(crate) fn leaves(&self, node: NodeId, after: bool) {
        self.order.leaves(node, after);
    }

    /// Whether the client on this machine is still to leave.
    pub(crate) fn is_leaving(&self, node: NodeId) -> bool {
        self.order.is_leaving(node)
    }

    /// The client on this machine leaves now, if it is still to leave.
    pub(crate) fn leaves_now(&self, node: NodeId) {
        self.order.leaves_now(node);
    }

    /// Switches all faults on or off.
    pub fn switch(&self, on: bool) {
        if self.on.swap(on, Ordering::Relaxed) && !on {
            self.ends.fetch_add(1, Ordering::Relaxed);
        }
        self.order.wake();
    }

    /// Whether faults are on.
    pub fn are_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Says of the faults that begin now, whenever it is asked, whether they still last: faults have not been
    /// switched off since, and so have not been ended.
    pub(super) fn since_now(&self) -> impl Fn(&Faults) -> bool + Send + use<> {
        let begun = self.ends.load(Ordering::Relaxed);
        move |faults| faults.are_on() && faults.ends.load(Ordering::Relaxed) == begun
    }

    /// A client begins an operation: its opportunities count from 0.
    pub fn begin_operation(&self, client: ClientId, operation: u32) {
        self.places.lock().begin(client, operation);
    }

    /// A client's operation has ended, or was dropped.
    pub fn end_operation(&self, client: ClientId, operation: u32) {
        self.order.end(client, operation);
    }

    /// The requests of operations so far, and how far they were made in the order of the plan.
    pub fn requests(&self) -> Requests {
        self.order.requests()
    }

    /// Whether the family occurs at this opportunity of a client; if so, counts it.
    pub fn occurs(&self, client: ClientId, family: Family) -> Option<Occurrence> {
        let occurrence = self.chosen(client, family)?;
        self.count(family);
        Some(occurrence)
    }

    /// Whether the family is to occur at this opportunity of a client: because the plan has decided so, or by
    /// its rate.
    pub(super) fn chosen(&self, client: ClientId, family: Family) -> Option<Occurrence> {
        let other = self.other_rates();
        let rate = match other {
            None => self.rates[family as usize],
            Some(rates) => rates.get(&family).copied().unwrap_or(0.0),
        };
        if !self.are_on() || (rate <= 0.0 && !self.script.has(family)) {
            return None;
        }
        let opportunity = self.places.lock().opportunity(client, family);
        let script = self.script.draws(opportunity).filter(|_| other.is_none());
        if script.is_none() && (self.is_spent(family) || !self.streams[family as usize].lock().chance(rate)) {
            return None;
        }
        let (client, operation, family, opportunity) = opportunity;
        let mut recorded = self.recorded.lock();
        recorded.push(Decision { client, operation, family, opportunity, draws: Vec::new() });
        let script = script.map(|draws| draws.clone().into_iter());
        Some(Occurrence { family, index: recorded.len() - 1, script })
    }

    /// Whether the family has reached its maximum for a run.
    fn is_spent(&self, family: Family) -> bool {
        self.delivered[family as usize].load(Ordering::Relaxed) >= family.max_occurrences()
    }

    /// A draw for a fault, from the family's own stream.
    pub fn draw<T>(&self, of: &mut Occurrence, draw: impl FnOnce(&mut Stream) -> T) -> T {
        let record = |position| self.recorded.lock()[of.index].draws.push(position);
        match &mut of.script {
            Some(script) => {
                let position = script.next().unwrap_or(0);
                record(position);
                let mut stream = self.seed.stream(of.family.name());
                stream.seek(position);
                draw(&mut stream)
            }
            None => {
                let mut stream = self.streams[of.family as usize].lock();
                record(stream.position());
                draw(&mut stream)
            }
        }
    }

    /// The decisions of all faults that were chosen, in order.
    pub fn decisions(&self) -> Vec<Decision> {
        self.recorded.lock().clone()
    }

    /// Counts a fault of the family as delivered.
    pub fn count(&self, family: Family) {
        self.delivered[family as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The number of delivered faults of each family, without families that have none.
    pub fn delivered(&self) -> BTreeMap<Family, u64> {
        Family::ALL
            .iter()
            .map(|f| (*f, self.delivered[*f as usize].load(Ordering::Relaxed)))
            .filter(|(_, n)| *n > 0)
            .collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A plan with one rate.
    pub(in crate::faults) fn rated(family: Family, rate: f64) -> FaultPlan {
        FaultPlan { rates: BTreeMap::from([(family, rate)]), ..FaultPlan::default() }
    }

    #[test]
    fn a_family_strikes_only_while_faults_are_on_and_is_counted() {
        let faults = Faults::new(Seed(1), &rated(Family::TooOld, 1.0));
        assert!(faults.occurs(ClientId(0), Family::TooOld).is_none());
        faults.switch(true);
        assert!(faults.occurs(ClientId(0), Family::TooOld).is_some());
        assert!(faults.occurs(ClientId(0), Family::FutureVersion).is_none());
        assert_eq!(faults.delivered(), BTreeMap::from([(Family::TooOld, 1)]));
    }
}
