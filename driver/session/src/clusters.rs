//! The clusters of a run: the first, and one for each further name that a cluster file has.
//!
//! They run in one simulation, with one virtual clock, so that a program that copies from one to another
//! repeats from its seed. Each has a network, faults and judges of its own. What is drawn for a further
//! cluster comes from the seed of the run and from its name, whatever the order in which they are opened.

use crate::{
    ClusterName, fault_windows,
    report::{End, Recording, Report},
    settings::Settings,
    snapshot,
    verdict::Verdict,
};
use parking_lot::Mutex;
use shaketable_sim::{
    client::ReadVersions,
    cluster::Cluster,
    config::ClusterConfig,
    faults::FaultPlan,
    rt::{Clock, Task},
    seed::Seed,
    world::World,
};
use std::{collections::BTreeMap, sync::Arc};

/// How many clusters a run has at most.
pub const MOST: usize = 16;

/// The longest name of a cluster, bytes.
pub const LONGEST_NAME: usize = 200;

/// The cached read versions of a process, by the place of the cluster.
pub type ProcessVersions = Arc<Mutex<BTreeMap<usize, ReadVersions>>>;

/// A cluster, and what determines and judges it.
pub struct Running {
    name: ClusterName,
    settings: Settings,
    verdict: Verdict,
    cluster: Cluster,
    fault_windows: Option<Task>,
}

/// The clusters of a run, in the order in which the program opened them.
pub struct Clusters(Vec<Running>);

/// The world of a cluster, and the faults of its first window.
fn world(settings: &Settings) -> (Arc<World>, FaultPlan) {
    let plan = fault_windows::plan(settings);
    let mut config = ClusterConfig::draw(settings.seed, &[]);
    settings.topology.apply(&mut config);
    config.cluster_bug = settings.bug;
    let world = World::new(settings.seed, config, &plan, settings.keeps_events || settings.keeps_history);
    world.history.lock().forgets_unsent = !settings.keeps_history;
    (world, plan)
}

impl Running {
    fn new(name: ClusterName, settings: Settings, cluster: Cluster, plan: FaultPlan) -> Running {
        let fault_windows = fault_windows::begin(cluster.world(), settings.clone(), plan);
        Running { name, verdict: Verdict::new(settings.memory), settings, cluster, fault_windows }
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Its world.
    pub fn world(&self) -> &Arc<World> {
        self.cluster.world()
    }

    /// Judges the cluster, and ends it.
    async fn end(self, end: End) -> (Report, Recording) {
        drop(self.fault_windows);
        let world = self.cluster.world().clone();
        let (tally, objections) = self.verdict.end(&world, &self.cluster).await;
        let mut report = Report::of(&self.settings, &world.history.lock(), end, tally, objections);
        if self.settings.keeps_rows {
            report.rows = snapshot::rows(&self.cluster);
        }
        let recording = Recording::take(&world, &report.end);
        self.cluster.shutdown().await;
        (report, recording)
    }
}

impl Clusters {
    /// Starts the first cluster, and restores its data.
    pub async fn start(settings: &Settings) -> Clusters {
        let (world, plan) = world(settings);
        let cluster = Cluster::start(world.clone()).await;
        if !settings.restored.is_empty() {
            snapshot::restore(&world, cluster.controller(), settings.restored.clone()).await;
        }
        Clusters(vec![Running::new(ClusterName::default(), settings.clone(), cluster, plan)])
    }

    /// The place of the cluster with this name. A further cluster begins with its first database, and
    /// recovers while its clients wait.
    pub fn place(&mut self, name: &ClusterName) -> usize {
        let first = &mut self.0[0].name;
        if first.0.is_empty() {
            *first = name.clone();
        }
        let known = self.0.iter().position(|running| running.name == *name);
        let known = known.or_else(|| name.0.is_empty().then_some(0));
        known.unwrap_or_else(|| {
            self.0.push(self.further(name));
            self.0.len() - 1
        })
    }

    fn further(&self, name: &ClusterName) -> Running {
        let settings = &self.0[0].settings;
        let seed = Seed(settings.seed.stream(&format!("cluster {}", name.0)).u64());
        let settings = Settings { seed, restored: Arc::default(), keeps_rows: false, ..settings.clone() };
        let (world, plan) = world(&settings);
        Running::new(name.clone(), settings, Cluster::build(world), plan)
    }

    /// The cluster at a place.
    pub fn at(&self, place: usize) -> &Running {
        &self.0[place]
    }

    /// The virtual clock, which they share.
    pub fn clock(&self) -> &Clock {
        &self.0[0].world().clock
    }

    /// Judges and forgets what has become final, where the history is large.
    pub fn keep_up(&mut self) {
        for running in &mut self.0 {
            running.verdict.keep_up(running.cluster.world());
        }
    }

    /// How each is now.
    pub fn ends(&self, is_quiescence_unknown: bool) -> Vec<End> {
        self.0.iter().map(|running| End::of(running.world(), is_quiescence_unknown)).collect()
    }

    /// Judges and ends all. The recording is that of the first.
    pub async fn end(self, ends: Vec<End>) -> (Report, Recording) {
        let mut running = self.0.into_iter().zip(ends);
        let Some((first, end)) = running.next() else { unreachable!("a run has a first cluster") };
        let (mut report, recording) = first.end(end).await;
        for (further, end) in running {
            let name = further.name.clone();
            report.further.push((name, further.end(end).await.0));
        }
        (report, recording)
    }
}
