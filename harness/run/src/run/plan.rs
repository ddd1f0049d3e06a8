//! The plan of a run as plain data, which is drawn from a seed, printed, saved as a repro file, edited and
//! replayed.

use crate::{
    describe::erased::{AnyValue, AnyWorkload},
    describe::strict::{Json, plain},
    describe::workload::Workload,
    judge::panics,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shaketable_reports::{Regression, Scale};
use shaketable_sim::{
    config::{ClusterBug, ClusterConfig},
    faults::{Family, FaultPlan, Profile, Strike},
    rt::{MILLISECOND, Nanos},
    seed::Seed,
};
use std::{
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

mod drawn;
mod sketch;

pub use crate::describe::strict::{PlanError, SCHEMA};
pub(crate) use drawn::{Drawn, listed, trees};
pub(crate) use sketch::Element;
pub use sketch::{Reduced, Sketch};

/// What a sweep requires of each of its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Demands {
    /// The fault profile.
    pub profile: Profile,
    /// The fault families that are switched off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<Family>,
    /// The planted bug of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bug: Option<String>,
    /// The planted bug of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_bug: Option<ClusterBug>,
    /// The mutant of a program that `shaketable-mutants` has built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutant: Option<u32>,
    /// How many times as long as usual the run is: its operations, and the time in which faults strike.
    #[serde(default, skip_serializing_if = "Scale::is_usual")]
    pub scale: Scale,
}

/// Everything that determines a run.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The workload's name.
    pub workload: String,
    /// The seed from which the plan was drawn, and from which the run draws its own random choices, unless it
    /// has another schedule.
    pub seed: u64,
    /// The demands with which it was drawn.
    pub demands: Demands,
    /// The workload with its configuration.
    pub configuration: AnyWorkload,
    /// The operations of each client.
    pub operations: Vec<Vec<AnyValue>>,
    /// The mean pause between two operations of a client, nanoseconds.
    pub pause: Nanos,
    /// The maximum duration of the act *hurt*, nanoseconds.
    pub hurt: Nanos,
    /// The cluster.
    pub cluster: ClusterConfig,
    /// The faults.
    pub faults: FaultPlan,
    /// How many operations of the first client fill the store, before the others begin and faults strike.
    #[serde(skip_serializing_if = "is_zero")]
    pub filling: usize,
    /// How many consecutive clients are tasks of one process each ([`Workload::TASKS`]); 1 if each has a
    /// process of its own.
    #[serde(skip_serializing_if = "is_one")]
    pub tasks: usize,
    /// The seed of delays and of the order of what happens at once, if it is not `seed`: another schedule of
    /// the same plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<u64>,
}

/// The payload of a panic: the workload's own part of drawing a plan has panicked. In words: which workload,
/// with which seed, and why.
#[derive(Debug)]
pub struct Undrawn(String);

impl fmt::Display for Undrawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Plan {
    /// The seed from which the run draws its own random choices.
    pub fn run_seed(&self) -> Seed {
        Seed(self.schedule.unwrap_or(self.seed))
    }

    /// Draws the plan of a seed. If the workload's configuration or strategies panic, it panics with
    /// [`Undrawn`].
    // Never inlined: profiles know this phase of a run by it (`scripts/profile`).
    #[inline(never)]
    pub fn draw<W: Workload>(seed: Seed, demands: &Demands) -> Plan {
        let drawn = || catch_unwind(AssertUnwindSafe(|| Self::drawn::<W>(seed, demands)));
        panics::recorded(drawn).unwrap_or_else(|panic| {
            let why = panics::caught(&*panic);
            resume_unwind(Box::new(Undrawn(format!(
                "{} cannot be drawn with seed {}: {why}",
                W::NAME,
                seed.0
            ))))
        })
    }

    fn drawn<W: Workload>(seed: Seed, demands: &Demands) -> Plan {
        let mut configuration = W::draw(&mut seed.stream("workload"), demands.bug.as_deref());
        let times = u32::from(demands.scale) as usize;
        if let Some(length) = configuration.length().filter(|length| times > 1 && length.start < length.end) {
            *length = length.start * times..(length.end - 1) * times + 1;
        }
        Self::around(configuration, seed, demands)
    }

    /// Draws the plan of a seed for a given configuration.
    pub fn around<W: Workload>(configuration: W, seed: Seed, demands: &Demands) -> Plan {
        Self::around_any(AnyWorkload::new(configuration), seed, demands)
    }

    /// The operations of each client with their types; `None` if they are those of another workload.
    pub fn operations_of<W: Workload>(&self) -> Option<Vec<Vec<W::Op>>> {
        let list = |list: &Vec<AnyValue>| list.iter().map(|op| op.get().cloned()).collect();
        self.operations.iter().map(list).collect()
    }

    fn around_any(configuration: AnyWorkload, seed: Seed, demands: &Demands) -> Plan {
        let mut rng = seed.stream("plan");
        let (operations, filling) = drawn::operations(seed, &configuration);
        let usual_hurt = rng.range(500..4_000) * MILLISECOND;
        let hurt = usual_hurt * Nanos::from(u32::from(demands.scale));
        let lengths = operations.iter().enumerate().map(|(client, list)| match client {
            0 => list.len() - filling,
            _ => list.len(),
        });
        let longest = lengths.max().unwrap_or(0) as u64;
        // In some runs clients do not pause, so that they collide. In the others their operations are spread
        // over the whole act, so that every fault strikes during an operation.
        let pause = if rng.chance(0.5) { 0 } else { hurt / longest.max(1) };
        let mut cluster = ClusterConfig::draw(seed, &configuration.keys());
        cluster.cluster_bug = demands.cluster_bug;
        let faults = faults(seed, usual_hurt, demands);
        let mut rng = seed.stream("tasks");
        let tasks = if configuration.has_tasks() && rng.chance(0.5) { rng.range(2..5) as usize } else { 1 };
        Plan {
            schema: SCHEMA,
            workload: configuration.name().to_owned(),
            seed: seed.0,
            demands: demands.clone(),
            configuration,
            operations,
            filling,
            pause,
            hurt,
            cluster,
            faults,
            tasks,
            schedule: None,
        }
    }
}

fn is_one(number: &usize) -> bool {
    *number == 1
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn one() -> usize {
    1
}

/// The faults of a run: those of its seed, and in each further part of a longer run the strikes of another
/// one.
fn faults(seed: Seed, usual_hurt: Nanos, demands: &Demands) -> FaultPlan {
    let draw = |seed| FaultPlan::draw(seed, demands.profile, usual_hurt, &demands.without);
    let mut faults = draw(seed);
    for part in 1..u32::from(demands.scale) {
        let strikes = draw(Seed(seed.stream(&format!("part-{part}")).u64())).strikes;
        let later = Nanos::from(part) * usual_hurt;
        faults.strikes.extend(strikes.into_iter().map(|strike| Strike { at: later + strike.at, ..strike }));
    }
    faults
}

impl Demands {
    /// The profile of the faults, and the families without which a run is performed.
    #[doc(hidden)]
    pub fn faults(&self) -> (Profile, &[Family]) {
        (self.profile, &self.without)
    }
}

/// The header of a repro file of any workload.
#[derive(Deserialize)]
struct Header {
    schema: u64,
    workload: String,
}

/// The workload of a repro file.
pub fn workload_of(repro: &str) -> Result<String, PlanError> {
    let header: Header = serde_json::from_str(repro).map_err(|e| PlanError::Incomplete(e.to_string()))?;
    if header.schema != u64::from(SCHEMA) {
        return Err(PlanError::Schema { found: header.schema });
    }
    Ok(header.workload)
}

/// A repro file. What is the workload's own is read by the workload.
#[derive(Deserialize)]
struct File {
    schema: u32,
    workload: String,
    seed: u64,
    demands: Demands,
    configuration: Json,
    operations: Vec<Vec<Json>>,
    #[serde(default)]
    filling: usize,
    pause: Nanos,
    hurt: Nanos,
    cluster: ClusterConfig,
    faults: FaultPlan,
    #[serde(default = "one")]
    tasks: usize,
    schedule: Option<u64>,
    /// What the plan once broke, which its run does not depend on.
    #[serde(default, rename = "regression")]
    _regression: Regression,
}

impl File {
    /// Reads a file. Refuses a field that no plan has.
    fn read(repro: &str) -> Result<File, PlanError> {
        let incomplete = |e: serde_json::Error| PlanError::Incomplete(e.to_string());
        let mut unknown = None;
        let mut json = serde_json::Deserializer::from_str(repro);
        let note =
            |path: serde_ignored::Path<'_>| unknown = unknown.take().or_else(|| Some(path.to_string()));
        let read = serde_ignored::deserialize(&mut json, note).map_err(incomplete)?;
        json.end().map_err(incomplete)?;
        unknown.map_or(Ok(read), |field| Err(PlanError::Unknown(field)))
    }
}

impl Plan {
    /// The plan as a repro file.
    pub fn to_json(&self) -> String {
        // Plain data with text keys only: serializing it cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The plan of a repro file.
    pub fn from_json<W: Workload>(repro: &str) -> Result<Plan, PlanError> {
        Self::read(repro, W::NAME, AnyWorkload::read::<W>)
    }

    fn read(
        repro: &str,
        wanted: &'static str,
        configuration: fn(&Value) -> Result<AnyWorkload, PlanError>,
    ) -> Result<Plan, PlanError> {
        let found = workload_of(repro)?;
        if found != wanted {
            return Err(PlanError::Workload { found, wanted });
        }
        let file = File::read(repro)?;
        let configuration = configuration(&file.configuration.0)?;
        let operation = |client: usize, index: usize, op: &Json| {
            configuration.operation(&format!("operations.{client}.{index}"), &op.0)
        };
        let list = |(client, list): (usize, &Vec<Json>)| {
            list.iter().enumerate().map(|(index, op)| operation(client, index, op)).collect()
        };
        let operations = file.operations.iter().enumerate().map(list).collect::<Result<_, _>>()?;
        let plan = Plan {
            schema: file.schema,
            workload: file.workload,
            seed: file.seed,
            demands: file.demands,
            configuration,
            operations,
            filling: file.filling,
            pause: file.pause,
            hurt: file.hurt,
            cluster: file.cluster,
            faults: file.faults,
            tasks: file.tasks,
            schedule: file.schedule,
        };
        plan.check().map(|()| plan).map_err(PlanError::Impossible)
    }

    /// Checks that the plan can be run and agrees with its demands.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.cluster.check()?;
        self.faults.check()?;
        let (clients, wanted) = (self.operations.len(), self.configuration.clients());
        if clients != wanted {
            return Err(format!(
                "there are operations of {clients} clients, and the configuration has {wanted}"
            ));
        }
        if self.tasks == 0 || (self.tasks > 1 && !self.configuration.has_tasks()) {
            return Err(format!("{} clients in a process, and the workload cannot have them", self.tasks));
        }
        if self.operations.iter().all(Vec::is_empty) {
            return Err("no client has an operation".to_owned());
        }
        let demands = &self.demands;
        if let Some(bug) = &demands.bug
            && self.configuration.bugs().iter().all(|known| known.name != *bug)
        {
            return Err(format!("{} has no planted bug {bug:?}", self.workload));
        }
        self.check_planted()?;
        if demands.cluster_bug != self.cluster.cluster_bug {
            return Err("the demands and the cluster have different planted bugs".to_owned());
        }
        if demands.profile == Profile::Calm && self.faults != FaultPlan::default() {
            return Err("the demands require a calm run, and the plan has faults".to_owned());
        }
        match self.faults.families().find(|family| demands.without.contains(family)) {
            Some(family) => {
                Err(format!("the demands switch {} off, and the plan has such faults", family.name()))
            }
            None => Ok(()),
        }
    }

    /// Checks that the configuration has the planted bug that the demands name, and no other.
    fn check_planted(&self) -> Result<(), String> {
        let configuration = leaves(&self.configuration);
        let has = |(path, mark): (&String, &Value)| configuration.get(path) == Some(mark);
        let drawn = |seed, bug| leaves(&self.configuration.redrawn(&mut Seed(seed).stream("workload"), bug));
        let without: Vec<Leaves> = (0..4).map(|seed| drawn(seed, None)).collect();
        for bug in self.configuration.bugs() {
            let mut marks = drawn(0, Some(bug.name));
            marks.retain(|path, mark| without[0].get(path) != Some(mark));
            let is_named = self.demands.bug.as_deref() == Some(bug.name);
            if !is_named && !marks.iter().any(has) {
                continue;
            }
            // A change that is due to the bug alone has the same value in every seed.
            for (seed, without) in without.iter().enumerate() {
                let with = drawn(seed as u64, Some(bug.name));
                marks.retain(|path, mark| with.get(path) == Some(mark) && without.get(path) != Some(mark));
            }
            if !marks.is_empty() && marks.iter().all(has) != is_named {
                let name = bug.name;
                return Err(match is_named {
                    true => format!(
                        "the demands name the planted bug {name}, and the configuration does not have it"
                    ),
                    false => format!(
                        "the configuration has the planted bug {name}, and the demands do not name it"
                    ),
                });
            }
        }
        Ok(())
    }

    /// What a sketch leaves of the plan; `value` gives the operation of a client by its numbers in this plan.
    pub(crate) fn cut(&self, sketch: &Sketch, value: impl Fn(usize, usize) -> AnyValue) -> Plan {
        let configuration =
            sketch.configuration.as_ref().and_then(|reduced| self.configuration.reconfigured(&reduced.value));
        let list =
            |client: usize| sketch.operations[client].iter().map(|index| value(client, *index)).collect();
        Plan {
            configuration: configuration.unwrap_or_else(|| self.configuration.clone()),
            operations: sketch.clients().into_iter().map(list).collect(),
            filling: sketch.filling(self.filling),
            faults: sketch.renumbered(),
            cluster: sketch.cluster.clone(),
            pause: sketch.pause,
            schedule: (sketch.schedule != self.seed).then_some(sketch.schedule),
            ..self.clone()
        }
    }

    /// A summary of the plan, in a few lines: what of it is performed on a simulated cluster, or on a real
    /// one.
    pub fn summary(&self, on_real: bool) -> String {
        let operations = self.operations.iter().map(Vec::len).sum();
        let tasks = match self.tasks {
            1 => String::new(),
            tasks => format!("tasks of a process {tasks}\n"),
        };
        let filling = match self.filling {
            0 => String::new(),
            filling => format!("operations that fill the store {filling}\n"),
        };
        let mut delivered = self.faults.clone();
        if on_real {
            let is_of_clients = |s: &Strike| matches!(s.family, Family::ClientDeath | Family::Departure);
            let strikes = delivered.strikes.into_iter().filter(is_of_clients).collect();
            delivered = FaultPlan { strikes, ..FaultPlan::default() };
        }
        tasks
            + &filling
            + &summary(
                (self.operations.len(), operations),
                (self.pause, self.hurt),
                (!on_real).then_some(&self.cluster),
                &delivered,
                &self.configuration,
            )
    }
}

fn summary(
    (clients, operations): (usize, usize),
    (pause, hurt): (Nanos, Nanos),
    cluster: Option<&ClusterConfig>,
    faults: &FaultPlan,
    configuration: &dyn fmt::Debug,
) -> String {
    let mut text = format!(
        "clients {}, operations {operations}, pause {:.1} ms, hurt at most {:.1} s\n",
        clients,
        pause as f64 / MILLISECOND as f64,
        hurt as f64 / 1e9,
    );
    if let Some(c) = cluster {
        text += &format!(
            "cluster: {} logs, {} storage servers, {} copies, {} shards, {} GRV proxies, {} commit proxies, \
             {} resolvers\n",
            c.logs,
            c.storage_servers,
            c.replicas,
            c.shard_boundaries.len() + 1,
            c.grv_proxies,
            c.commit_proxies,
            c.resolvers,
        );
    }
    let rates: Vec<String> =
        faults.rates.iter().map(|(f, p)| format!("{} {:.2} %", f.name(), p * 100.0)).collect();
    if !rates.is_empty() {
        text += &format!("rates: {}\n", rates.join(", "));
    }
    let strikes: Vec<String> =
        faults.strikes.iter().map(|s| format!("{} at {:.3} s", s.family.name(), s.at as f64 / 1e9)).collect();
    if !strikes.is_empty() {
        text += &format!("strikes: {}\n", strikes.join(", "));
    }
    let deaths: Vec<String> = faults
        .deaths
        .iter()
        .map(|death| {
            let when = if death.after { "after" } else { "before" };
            let step = death.step;
            format!("client {} {when} commit {} of operation {}", step.client.0, step.index, step.operation)
        })
        .collect();
    if !deaths.is_empty() {
        text += &format!("deaths: {}\n", deaths.join(", "));
    }
    if !faults.order.is_empty() {
        text += &format!("requests in an order: {}\n", faults.order.len());
    }
    text += &format!("workload: {configuration:?}\n");
    text
}

/// The leaves of a JSON value, by path.
type Leaves = BTreeMap<String, Value>;

fn leaves(value: &dyn erased_serde::Serialize) -> Leaves {
    fn walk(value: Value, path: &str, into: &mut Leaves) {
        match value {
            Value::Object(fields) => {
                fields.into_iter().for_each(|(name, field)| walk(field, &format!("{path}/{name}"), into));
            }
            Value::Array(items) => {
                items.into_iter().enumerate().for_each(|(i, item)| walk(item, &format!("{path}/{i}"), into));
            }
            leaf => drop(into.insert(path.to_owned(), leaf)),
        }
    }
    let mut into = Leaves::new();
    walk(plain(value), "", &mut into);
    into
}
