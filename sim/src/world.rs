//! The state shared by all machines of a run: clock, network, trace, history, faults and configuration.

use crate::{
    config::{ClusterBug, ClusterConfig},
    database_lock::DatabaseLock,
    faults::{FaultPlan, Faults},
    history::History,
    ids::{Endpoint, NodeId},
    net::Net,
    rt::{self, Clock, Machine, Nanos, SECOND},
    seed::Seed,
    shards::{Shard, ShardMap},
    storage::StorageDisk,
    trace::{Kind, Trace},
    tunables::Tunables,
};
use parking_lot::Mutex;
use std::{collections::BTreeMap, future::Future, sync::Arc};

/// The class of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The controller.
    Controller,
    /// A worker that a recovery can recruit as sequencer, proxy or resolver.
    Stateless,
    /// A transaction log, with a disk.
    Log,
    /// A storage server, with a disk.
    Storage,
    /// A client.
    Client,
    /// The auditor of a run: a client that never leaves.
    Auditor,
    /// A client that is not affected by faults: it sets up and checks.
    Observer,
}

/// Everything that the machines of one run share.
pub struct World {
    /// The run's seed.
    pub seed: Seed,
    /// Virtual time.
    pub clock: Clock,
    /// The network.
    pub net: Net,
    /// The event stream.
    pub trace: Arc<Trace>,
    /// The recorded history.
    pub history: Mutex<History>,
    /// Faults.
    pub faults: Faults,
    /// The cluster's configuration.
    pub config: ClusterConfig,
    /// The parameters that faults change at machines during the run.
    pub tunables: Tunables,
    /// Which storage servers hold which shards.
    pub shards: Mutex<ShardMap>,
    /// Whether a commit has locked the database.
    pub lock: DatabaseLock,
    machines: Mutex<Vec<MachineState>>,
    /// Background tasks of the supervisor, such as those that apply faults: they end with the world.
    tasks: Mutex<Vec<rt::Task>>,
    addresses: Mutex<BTreeMap<NodeId, Endpoint>>,
    roles: Mutex<BTreeMap<NodeId, Vec<&'static str>>>,
    disks: Mutex<Vec<Arc<StorageDisk>>>,
}

struct MachineState {
    node: NodeId,
    class: Class,
    name: String,
    machine: Machine,
    incarnation: u64,
    up: bool,
    /// Whether it is down for good.
    has_left: bool,
    clock: LocalClock,
    /// What the clock of this incarnation counts from.
    origin: Nanos,
}

/// The latest origin of a clock. A process counts from the start of its host, or of itself.
const LATEST_ORIGIN: Nanos = 100 * 3_600 * SECOND;

/// The factor by which a clock that must be set back runs slower than virtual time.
const SLOWDOWN: Nanos = 4;

/// A machine's own clock: it deviates by its skew, and never runs backwards. A clock that is ahead of its
/// target runs slowly until it reaches it; one that is late jumps forward.
#[derive(Clone, Copy, Debug, Default)]
struct LocalClock {
    /// The target deviation from virtual time (negative if late), nanoseconds.
    skew: i64,
    /// The virtual time at which the skew was set, and the clock's value at that time.
    set_at: Nanos,
    shown: Nanos,
}

impl LocalClock {
    /// The clock's value at the virtual time `now`, which must not be before the skew was set.
    fn shows(&self, now: Nanos) -> Nanos {
        let slowly = self.shown + now.saturating_sub(self.set_at) / SLOWDOWN;
        slowly.max(now.saturating_add_signed(self.skew))
    }

    fn set_skew(&mut self, now: Nanos, skew: i64) {
        *self = LocalClock { skew, set_at: now, shown: self.shows(now) };
    }
}

impl World {
    /// Creates the world of a run, with its network pump running. Must be called within [`rt::simulate`].
    pub fn new(seed: Seed, config: ClusterConfig, plan: &FaultPlan, keep_trace: bool) -> Arc<World> {
        let clock = Clock::current();
        let trace = Arc::new(Trace::new(keep_trace));
        let net = Net::new(clock.clone(), trace.clone(), config.net.clone(), seed.run_stream("network"));
        rt::spawn(net.clone().pump());
        Arc::new(World {
            seed,
            clock,
            net,
            trace,
            history: Mutex::new(History::default()),
            faults: Faults::recording(seed, plan, keep_trace),
            tunables: Tunables::new(config.window),
            shards: Mutex::new(ShardMap::new(&config)),
            lock: DatabaseLock::default(),
            config,
            machines: Mutex::new(Vec::new()),
            tasks: Mutex::new(Vec::new()),
            addresses: Mutex::new(BTreeMap::new()),
            roles: Mutex::new(BTreeMap::new()),
            disks: Mutex::default(),
        })
    }

    /// Whether the cluster has this planted bug.
    pub fn has(&self, bug: ClusterBug) -> bool {
        self.config.cluster_bug == Some(bug)
    }

    /// Adds an event of machine `node` to the stream.
    pub fn event(&self, node: NodeId, kind: Kind, a: u64, b: u64) {
        self.trace.event(self.clock.now(), node, kind, a, b);
    }

    /// Builds a machine that runs `main`, which starts again after each restart.
    pub fn add_machine<F>(
        self: &Arc<Self>,
        class: Class,
        name: &str,
        main: impl Fn(Arc<World>, NodeId) -> F + Send + Sync + 'static,
    ) -> NodeId
    where
        F: Future + 'static,
    {
        let node = self.net.add_node();
        let world = self.clone();
        let machine = Machine::start(name, move || main(world.clone(), node));
        self.machines.lock().push(MachineState {
            node,
            class,
            name: name.to_owned(),
            machine,
            incarnation: 0,
            up: true,
            has_left: false,
            clock: LocalClock::default(),
            origin: self.origin(node, 0),
        });
        self.event(node, Kind::Start, 0, 0);
        node
    }

    /// What the clock of an incarnation counts from: two incarnations have nothing in common, so that a time
    /// which one of them stores means nothing to another.
    fn origin(&self, node: NodeId, incarnation: u64) -> Nanos {
        self.seed.run_stream(&format!("origin-{}-{incarnation}", node.0)).below(LATEST_ORIGIN)
    }

    /// Builds a machine like [`World::add_machine`], with a well-known endpoint that it opens at each start.
    /// Returns that endpoint.
    pub fn add_machine_with_endpoint<F>(
        self: &Arc<Self>,
        class: Class,
        name: &str,
        main: impl Fn(Arc<World>, Endpoint) -> F + Send + Sync + 'static,
    ) -> Endpoint
    where
        F: Future + 'static,
    {
        let home = Arc::new(std::sync::OnceLock::new());
        let known = home.clone();
        let node = self.add_machine(class, name, move |world, node| {
            let home = *known.get_or_init(|| world.net.reserve(node));
            main(world, home)
        });
        let home = *home.get_or_init(|| self.net.reserve(node));
        self.publish(home);
        home
    }

    /// The machines of a class, by number.
    pub fn machines(&self, class: Class) -> Vec<NodeId> {
        self.machines.lock().iter().filter(|m| m.class == class).map(|m| m.node).collect()
    }

    /// A machine's name.
    pub fn name(&self, node: NodeId) -> String {
        self.with(node, |m| m.name.clone()).unwrap_or_else(|| "supervisor".to_owned())
    }

    fn with<T>(&self, node: NodeId, f: impl FnOnce(&mut MachineState) -> T) -> Option<T> {
        self.machines.lock().iter_mut().find(|m| m.node == node).map(f)
    }

    /// Kills a machine: its tasks and memory are lost, its disk remains. Does nothing if it is down.
    pub fn kill(&self, node: NodeId) {
        let killed = self.with(node, |m| std::mem::replace(&mut m.up, false).then(|| m.machine.clone()));
        if let Some(Some(machine)) = killed {
            self.event(node, Kind::Kill, 0, 0);
            self.net.set_up(node, false);
            machine.kill();
        }
    }

    /// Kills a machine, which never starts again.
    pub fn retire(&self, node: NodeId) {
        self.kill(node);
        self.with(node, |m| m.has_left = true);
    }

    /// Whether a machine is down for good.
    pub fn has_left(&self, node: NodeId) -> bool {
        self.with(node, |m| m.has_left).unwrap_or(false)
    }

    /// Starts a machine that is down. Does nothing if it is up, or down for good.
    pub fn start(&self, node: NodeId) {
        let started = self.with(node, |m| {
            (!m.up && !m.has_left).then(|| {
                m.up = true;
                m.incarnation += 1;
                m.origin = self.origin(node, m.incarnation);
                (m.machine.clone(), m.incarnation)
            })
        });
        if let Some(Some((machine, incarnation))) = started {
            self.event(node, Kind::Start, incarnation, 0);
            self.net.set_up(node, true);
            machine.restart();
        }
    }

    /// Stops a machine's tasks in their current state; its messages wait.
    pub fn pause(&self, node: NodeId) {
        if let Some(machine) = self.with(node, |m| m.machine.clone()) {
            self.event(node, Kind::Pause, 0, 0);
            self.net.set_paused(node, true);
            machine.pause();
        }
    }

    /// Resumes a paused machine.
    pub fn resume(&self, node: NodeId) {
        if let Some(machine) = self.with(node, |m| m.machine.clone()) {
            self.event(node, Kind::Resume, 0, 0);
            self.net.set_paused(node, false);
            machine.resume();
        }
    }

    /// Drops the machines, which must have been killed: their closures refer to the world.
    pub fn forget_machines(&self) {
        let machines = std::mem::take(&mut *self.machines.lock());
        drop(machines);
    }

    /// Runs a task on the supervisor until it ends or the world does.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.tasks.lock().push(rt::spawn_task(task));
    }

    /// Ends the tasks started by [`spawn`](World::spawn), which refer to the world.
    pub fn end_tasks(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        drop(tasks);
    }

    /// Every machine's number, in order.
    pub fn nodes(&self) -> Vec<NodeId> {
        self.machines.lock().iter().map(|m| m.node).collect()
    }

    /// Publishes an inbox under its machine's well-known address.
    pub fn publish(&self, endpoint: Endpoint) {
        self.addresses.lock().insert(endpoint.node, endpoint);
    }

    /// The inbox at a machine's well-known address: the one published last.
    pub fn address(&self, node: NodeId) -> Option<Endpoint> {
        self.addresses.lock().get(&node).copied()
    }

    /// Adds the disk of the next storage server.
    pub fn has_disk(&self, disk: Arc<StorageDisk>) {
        self.disks.lock().push(disk);
    }

    /// The shards, each with the bytes that its first server estimates.
    pub fn shard_sizes(&self) -> Vec<(Shard, i64)> {
        let (map, disks) = (self.shards.lock(), self.disks.lock());
        let size = |shard: &Shard| {
            let disk = shard.team.first().and_then(|server| disks.get(usize::from(*server)));
            (shard.clone(), disk.map_or(0, |disk| disk.bytes(&shard.range)))
        };
        map.shards().iter().map(size).collect()
    }

    /// Notes the roles that a worker's machine has, by FoundationDB's names.
    pub fn has_roles(&self, node: NodeId, roles: Vec<&'static str>) {
        self.roles.lock().insert(node, roles);
    }

    /// The machines that belong to the cluster, each with its class and its roles.
    pub fn processes(&self) -> Vec<(NodeId, Class, Vec<&'static str>)> {
        let roles = self.roles.lock();
        let recruited = |node| roles.get(&node).cloned().unwrap_or_default();
        let machines = self.machines.lock();
        let of_cluster =
            machines.iter().filter(|m| !matches!(m.class, Class::Client | Class::Auditor | Class::Observer));
        let process = |m: &MachineState| match m.class {
            Class::Controller => (m.node, m.class, vec!["coordinator", "cluster_controller"]),
            Class::Storage => (m.node, m.class, vec!["storage"]),
            _ => (m.node, m.class, recruited(m.node)),
        };
        of_cluster.map(process).collect()
    }

    /// Whether the machine is up.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.net.is_up(node)
    }

    /// Sets the deviation of a machine's clock, nanoseconds: the clock jumps forward to the new value, or
    /// runs slowly until it reaches it.
    pub fn set_skew(&self, node: NodeId, skew: i64) {
        let now = self.clock.now();
        self.with(node, |m| m.clock.set_skew(now, skew));
    }

    /// The value of a machine's own clock. It never runs backwards in an incarnation.
    pub fn local_time(&self, node: NodeId) -> Nanos {
        let now = self.clock.now();
        self.with(node, |m| m.origin + m.clock.shows(now)).unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_clock_jumps_forward_and_runs_slowly_but_never_backwards() {
        let mut clock = LocalClock::default();
        assert_eq!(clock.shows(3 * SECOND), 3 * SECOND);
        clock.set_skew(3 * SECOND, 60 * SECOND as i64);
        assert_eq!(clock.shows(3 * SECOND), 63 * SECOND, "ahead at once");
        clock.set_skew(5 * SECOND, 0);
        assert_eq!(clock.shows(5 * SECOND), 65 * SECOND);
        assert_eq!(clock.shows(9 * SECOND), 66 * SECOND, "slow while it is ahead");
        assert_eq!(clock.shows(200 * SECOND), 200 * SECOND, "right in the end");
        clock.set_skew(200 * SECOND, -(60 * SECOND as i64));
        assert_eq!(clock.shows(240 * SECOND), 210 * SECOND, "slow while it is to fall behind");
        assert_eq!(clock.shows(1_000 * SECOND), 940 * SECOND, "and then as far behind as was said");
        clock.set_skew(1_000 * SECOND, 0);
        assert_eq!(clock.shows(1_000 * SECOND), 1_000 * SECOND);
    }

    #[test]
    fn no_sequence_of_skews_turns_a_clock_back() {
        let mut chance = Seed(11).stream("skews");
        let (mut clock, mut now, mut before) = (LocalClock::default(), 0, 0);
        for _ in 0..2_000 {
            now += chance.below(2 * SECOND);
            if chance.chance(0.3) {
                clock.set_skew(now, chance.below(120 * SECOND) as i64 - 60 * SECOND as i64);
            }
            let shown = clock.shows(now);
            assert!(shown >= before, "{before} was shown, and then {shown}");
            before = shown;
        }
    }
}
