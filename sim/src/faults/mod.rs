//! Faults: events that affect machines, and events that FoundationDB's contract allows at any time.
//!
//! A seed draws a [`FaultPlan`]: plain data, which can be printed, saved, edited and reduced. It contains
//! timed [`Strike`]s for events that affect machines, and a rate for each family of events that the contract
//! allows. It can also contain [`Decision`]s, which are such events at one opportunity each, an order in
//! which requests are made, and clients that die at a commit ([`Step`], [`Death`]). Every family documents
//! what FoundationDB promises under it and what limits it; no family may destroy the last copy of data. While
//! [`Faults`] is off (setup, heal, check), no fault occurs.

mod client_death;
mod clock_skew;
mod clog;
mod contract;
mod decision;
mod departure;
pub mod draws;
mod driver;
mod dropped_operation;
mod family;
mod kill;
mod lagging_storage;
mod latency;
mod locked;
mod loss;
mod move_shard;
mod order;
mod partition;
mod pause;
mod plan;
mod reboot;
mod short_lifetime;
mod slow_log_sync;
mod slow_storage;
mod swizzle;
mod victims;
mod window_edge;

pub use decision::{Decision, Occurrence};
pub use driver::{begin, heal};
pub use dropped_operation::Cut;
pub use family::{Dosage, FaultFamily};
pub(crate) use order::Turn;
pub use order::{COMEBACK, Death, LONGEST_HOLD, Request, Requests, Step};
pub use victims::Struck;

use crate::{
    chance::{self, Other},
    ids::{ClientId, NodeId},
    rt::Nanos,
    seed::{Seed, Stream},
};
use decision::{Places, Script};
use order::Order;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

macro_rules! families {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal,)*) => {
        /// A family of faults.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Family { $($(#[doc = $doc])+ $name,)* }

        impl Family {
            /// Every family.
            pub const ALL: &'static [Family] = &[$(Family::$name),*];

            /// The name with which it is switched off.
            pub const fn name(self) -> &'static str {
                match self { $(Family::$name => $text),* }
            }

            /// A description of one or two lines.
            pub fn about(self) -> &'static str {
                match self { $(Family::$name => concat!($($doc),+).trim_ascii()),* }
            }
        }
    };
}

families! {
    /// A machine is killed and comes back.
    Kill = "kill",
    /// Every machine of the cluster restarts at once.
    Reboot = "reboot",
    /// A machine stops for a while.
    Pause = "pause",
    /// A client dies during an operation, and is followed by another incarnation.
    ClientDeath = "client-death",
    /// An operation's future is dropped, and its client continues.
    DroppedOperation = "dropped-operation",
    /// Messages between two machines are delayed, in one direction or both.
    Clog = "clog",
    /// Some machines cannot reach the others.
    Partition = "partition",
    /// Many links are clogged one after another and unclogged in a different order.
    Swizzle = "swizzle",
    /// A link loses messages.
    Loss = "loss",
    /// A link becomes slow.
    Latency = "latency",
    /// A storage server replies slowly.
    SlowStorage = "slow-storage",
    /// A storage server applies entries late.
    LaggingStorage = "lagging-storage",
    /// A log takes long to make entries durable.
    SlowLogSync = "slow-log-sync",
    /// A machine's clock is inaccurate.
    ClockSkew = "clock-skew",
    /// A shard moves to another team.
    MoveShard = "move-shard",
    /// 1021 although the commit happened.
    UnknownCommitted = "unknown-committed",
    /// 1021 and the commit did not happen.
    UnknownNotCommitted = "unknown-not-committed",
    /// 1022, whether the commit happened or not.
    UnknownFatal = "unknown-fatal",
    /// 1031 and the commit happens later.
    LateLanding = "late-landing",
    /// A commit is sent when its read version is about to leave the window.
    WindowEdge = "window-edge",
    /// 1020 without a conflict.
    SpuriousConflict = "spurious-conflict",
    /// 1007 at a fresh version.
    TooOld = "too-old",
    /// A causally risky read version is up to a second old.
    RiskyRead = "risky-read",
    /// 1009 at a version that exists.
    FutureVersion = "future-version",
    /// 1037.
    ProcessBehind = "process-behind",
    /// 1039, before, during or after a commit.
    ClusterVersionChanged = "cluster-version-changed",
    /// 1042.
    ProxyMemory = "proxy-memory",
    /// 1078.
    GrvMemory = "grv-memory",
    /// 1051, 1213, 1223 or 1235.
    Throttled = "throttled",
    /// 1242.
    RangeLocked = "range-locked",
    /// 1038 for a while.
    Locked = "locked",
    /// Range reads return one row per batch.
    OneRowBatches = "one-row-batches",
    /// A watch fires before anything changed.
    EarlyWatch = "early-watch",
    /// A watch fires late.
    LateWatch = "late-watch",
    /// A watch fires with an error.
    SpuriousWatch = "spurious-watch",
    /// Read versions live for a fraction of five seconds.
    ShortLifetime = "short-lifetime",
    /// A client dies for good: nobody takes up its session.
    Departure = "departure",
}

impl Family {
    /// The family with this name.
    pub fn named(name: &str) -> Option<Family> {
        Self::ALL.iter().copied().find(|f| f.name() == name)
    }
}

/// The families with their own files: those with timed strikes, one that is applied by the runners of
/// clients, and one that is limited to a few per run.
const WITH_OWN_FILE: &[&dyn FaultFamily] = &[
    &kill::Kill,
    &reboot::Reboot,
    &pause::Pause,
    &client_death::ClientDeath,
    &dropped_operation::DroppedOperation,
    &clog::Clog,
    &partition::Partition,
    &swizzle::Swizzle,
    &loss::Loss,
    &latency::Latency,
    &slow_storage::SlowStorage,
    &lagging_storage::LaggingStorage,
    &slow_log_sync::SlowLogSync,
    &clock_skew::ClockSkew,
    &move_shard::MoveShard,
    &locked::Locked,
    &short_lifetime::ShortLifetime,
    &window_edge::WindowEdge,
    &departure::Departure,
];

/// Every family, starting with those that have their own files.
pub fn catalogue() -> impl Iterator<Item = &'static dyn FaultFamily> {
    WITH_OWN_FILE.iter().chain(contract::ALL).copied()
}

/// The intensity of the faults in a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// No faults; only drawn latencies and topology.
    Calm,
    /// A compressed version of a bad week.
    #[default]
    Standard,
    /// Much more of everything, as far as liveness allows.
    Storm,
}

/// One timed fault. The family defines the meaning of the numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Strike {
    /// The start, nanoseconds after the beginning of the act `hurt`.
    pub at: Nanos,
    /// The family.
    pub family: Family,
    /// The victim, modulo the number of candidates.
    pub target: u32,
    /// The second victim, modulo the number of candidates.
    pub other: u32,
    /// The duration, nanoseconds.
    pub duration: Nanos,
    /// The amount.
    pub amount: f64,
}

/// The faults of a run.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct FaultPlan {
    /// Timed faults, in ascending order.
    pub strikes: Vec<Strike>,
    /// For each family of events that the contract allows, the probability at each opportunity.
    pub rates: BTreeMap<Family, f64>,
    /// Events that the contract allows, each at one opportunity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// Requests that are made one after another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<Step>,
    /// Clients that die at a commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deaths: Vec<Death>,
}

impl FaultPlan {
    /// Whether the plan is valid. A drawn plan always is; an edited one may not be. The error is a sentence
    /// fragment.
    pub fn check(&self) -> Result<(), String> {
        let dosage = |family: Family| catalogue().find(|f| f.family() == family).map(|f| f.dosage());
        for (family, rate) in &self.rates {
            if !matches!(dosage(*family), Some(Dosage::Rate(_))) {
                return Err(format!("{} has strikes, and no rate", family.name()));
            }
            if !(0.0..=1.0).contains(rate) {
                return Err(format!("the rate of {} is not between 0 and 1", family.name()));
            }
        }
        for decision in &self.decisions {
            if !matches!(dosage(decision.family), Some(Dosage::Rate(_))) {
                return Err(format!("{} has strikes, and no decisions", decision.family.name()));
            }
        }
        order::check(&self.order, &self.deaths)?;
        for strike in &self.strikes {
            if !matches!(dosage(strike.family), Some(Dosage::Timed { .. })) {
                return Err(format!("{} has a rate, and no strikes", strike.family.name()));
            }
            if !strike.amount.is_finite() {
                return Err(format!("a strike of {} has no amount", strike.family.name()));
            }
        }
        match self.strikes.is_sorted_by_key(|strike| strike.at) {
            true => Ok(()),
            false => Err("strikes do not ascend".to_owned()),
        }
    }

    /// Whether clients die at requests of theirs.
    fn kills_at_requests(&self) -> bool {
        !self.deaths.is_empty() || self.strikes.iter().any(|strike| strike.family == Family::Departure)
    }

    /// The families that occur in the plan.
    pub fn families(&self) -> impl Iterator<Item = Family> {
        let decided = self.decisions.iter().map(|decision| decision.family);
        let deaths = self.deaths.iter().map(|_| Family::ClientDeath);
        let struck = self.strikes.iter().map(|strike| strike.family);
        self.rates.keys().copied().chain(struck).chain(decided).chain(deaths)
    }
}

/// The fault state of a run: switch, rates, decisions, draws and counters.
pub struct Faults {
    on: AtomicBool,
    /// How often they were switched off: what began before has ended.
    ends: AtomicU64,
    seed: Seed,
    rates: Vec<f64>,
    script: Script,
    /// The maximum number of times that each family may occur by its rate.
    max_occurrences: Vec<u64>,
    streams: Vec<Mutex<Stream>>,
    delivered: Vec<AtomicU64>,
    places: Mutex<Places>,
    recorded: Mutex<Vec<Decision>>,
    order: Order,
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
        let mut max_occurrences = vec![u64::MAX; Family::ALL.len()];
        catalogue().for_each(|family| max_occurrences[family.family() as usize] = family.max_occurrences());
        Faults {
            on: AtomicBool::new(false),
            ends: AtomicU64::new(0),
            seed,
            max_occurrences,
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
    fn other_rates(&self) -> Option<&BTreeMap<Family, f64>> {
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
    fn since_now(&self) -> impl Fn(&Faults) -> bool + Send + use<> {
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
    fn chosen(&self, client: ClientId, family: Family) -> Option<Occurrence> {
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
        self.delivered[family as usize].load(Ordering::Relaxed) >= self.max_occurrences[family as usize]
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
mod tests {
    use super::*;

    /// A plan with one rate.
    pub(super) fn rated(family: Family, rate: f64) -> FaultPlan {
        FaultPlan { rates: BTreeMap::from([(family, rate)]), ..FaultPlan::default() }
    }

    #[test]
    fn names_are_unique_and_agree_with_serde() {
        for family in Family::ALL {
            assert_eq!(Family::named(family.name()), Some(*family));
        }
    }

    #[test]
    fn every_family_is_in_the_catalogue_and_documented() {
        let mut listed: Vec<Family> = catalogue().map(FaultFamily::family).collect();
        listed.sort();
        assert_eq!(listed, Family::ALL);
        for family in catalogue() {
            assert!(family.promise().ends_with('.') && family.budget().ends_with('.'));
        }
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

    #[test]
    fn a_plan_that_is_drawn_can_be_delivered_and_others_are_refused() {
        for seed in 0..200 {
            let plan = FaultPlan::draw(Seed(seed), Profile::Storm, crate::rt::SECOND, &[]);
            assert_eq!(plan.check(), Ok(()));
        }
        let strike = |family, at| Strike { at, family, target: 0, other: 0, duration: 1, amount: 1.0 };
        let struck = |strikes| FaultPlan { strikes, ..FaultPlan::default() };
        for refused in [
            rated(Family::TooOld, 1.5),
            rated(Family::TooOld, -0.1),
            rated(Family::TooOld, f64::NAN),
            rated(Family::Kill, 0.5),
            struck(vec![strike(Family::TooOld, 5)]),
            struck(vec![strike(Family::Kill, 5), strike(Family::Kill, 4)]),
            struck(vec![Strike { amount: f64::INFINITY, ..strike(Family::Kill, 5) }]),
        ] {
            assert!(refused.check().is_err(), "{refused:?}");
        }
    }
}
