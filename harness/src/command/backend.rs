//! The backend of runs: simulated clusters, or a real cluster.

use super::{Refusal, conclude::processors, program, refuse};
use crate::search::entry::{Entry, Kept};
use crate::{run::plan::Demands, run::runner::RunResult};
use clap::{Args, ValueEnum};
use shaketable_sim::{faults::Profile, seed::Seed};
use std::path::PathBuf;

/// The name of a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum BackendName {
    /// A simulated cluster for each run
    #[default]
    Sim,
    /// A real FoundationDB cluster
    Fdb,
}

/// The choice of the cluster.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "A real cluster")]
pub struct ClusterArguments {
    /// The cluster; fdb requires a build with --features fdb
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "sim|fdb")]
    pub backend: BackendName,
    /// The cluster file [default: $FDB_CLUSTER_FILE, ./fdb.cluster or /etc/foundationdb/fdb.cluster]
    #[arg(long, value_name = "FILE")]
    pub cluster_file: Option<PathBuf>,
}

/// The choice of the cluster, and of the keys on it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "A real cluster")]
pub struct BackendArguments {
    /// The choice of the cluster.
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// The prefix of all keys; no key may have it yet [default: shaketable-, a random number and /]
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,
    /// Keep the keys at the end
    #[arg(long)]
    pub keep: bool,
}

impl From<&ClusterArguments> for BackendArguments {
    fn from(cluster: &ClusterArguments) -> BackendArguments {
        BackendArguments { cluster: cluster.clone(), ..BackendArguments::default() }
    }
}

impl BackendArguments {
    /// The default number of threads. Runs on a real cluster mostly wait for it.
    pub fn jobs(&self) -> usize {
        match self.cluster.backend {
            BackendName::Sim => processors(),
            BackendName::Fdb => 4 * processors(),
        }
    }

    /// Whether a real cluster is selected. Options that require one are otherwise refused.
    pub fn is_real(&self) -> Result<bool, Refusal> {
        let real = self.cluster.backend == BackendName::Fdb;
        let given = [
            ("--cluster-file", self.cluster.cluster_file.is_some()),
            ("--prefix", self.prefix.is_some()),
            ("--keep", self.keep),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) if !real => refuse!("{option} requires --backend fdb"),
            _ => Ok(real),
        }
    }
}

/// The backend of runs.
pub enum Backend {
    /// A simulated cluster for each run.
    Simulated,
    /// One real cluster for all runs.
    Real(real::Cluster),
}

impl Backend {
    /// Opens the selected backend, and connects to a real cluster.
    pub fn open(arguments: &BackendArguments, profile: Profile) -> Result<Backend, Refusal> {
        if !arguments.is_real()? {
            return Ok(Backend::Simulated);
        }
        let Some(client) = program().client else {
            refuse!("this program was built without the FoundationDB client: build it with --features fdb")
        };
        real::Cluster::open(client, arguments, profile).map(Backend::Real)
    }

    /// Performs the plan of a seed. Returns `None` if `stop` ended it early.
    pub fn run(
        &self,
        entry: &dyn Entry,
        seed: Seed,
        demands: &Demands,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Option<RunResult> {
        match self {
            Backend::Simulated => Some(entry.run(seed, demands, false)),
            Backend::Real(cluster) => cluster.run(entry, seed, demands, false, stop),
        }
    }

    /// Like [`run`](Backend::run), and keeps the plan; the result has what happened, if `tell` is set.
    pub fn replay<'a>(
        &self,
        entry: &'a dyn Entry,
        seed: Seed,
        demands: &'a Demands,
        tell: bool,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Option<Kept<'a>> {
        match self {
            Backend::Simulated => Some(entry.run_kept(seed, demands, tell)),
            Backend::Real(cluster) => {
                let result = cluster.run(entry, seed, demands, tell, stop)?;
                let summary = self.summary(entry, seed, demands);
                Some(Kept { result, summary, plan: Box::new(move || entry.plan(seed, demands)) })
            }
        }
    }

    /// A summary of what of the plan of a seed is performed here, in a few lines.
    pub fn summary(&self, entry: &dyn Entry, seed: Seed, demands: &Demands) -> String {
        match self {
            Backend::Simulated => entry.summary(seed, demands, None),
            Backend::Real(cluster) => {
                entry.summary(seed, demands, Some(&cluster.site_of(entry, seed, demands)))
            }
        }
    }

    /// Whether the cluster was lost, so that no further run is possible.
    pub fn is_lost(&self) -> bool {
        match self {
            Backend::Simulated => false,
            Backend::Real(cluster) => cluster.is_lost(),
        }
    }

    /// The command line options that select this backend; empty for the default.
    pub fn options(&self) -> String {
        match self {
            Backend::Simulated => String::new(),
            Backend::Real(cluster) => cluster.options(),
        }
    }

    /// Whether this is the simulated backend, which has faults of servers and of the network.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Backend::Simulated)
    }
}

pub mod real {
    //! A real cluster, through FoundationDB's client.

    use crate::command::{Refusal, backend::BackendArguments, interrupt::Interrupt, output, refuse, report};
    use crate::search::entry::Entry;
    use crate::{
        judge::finding::{Finding, Kind},
        run::plan::Demands,
        run::real::{self, Conditions, RunError, Site},
        run::runner::RunResult,
    };
    use futures::{
        executor::block_on,
        future::{Either, select},
    };
    use shaketable_sim::{faults::Profile, seed::Seed};
    use shaketable_tx::{
        Database, Db, Error, Isolation, RangeOption, Transaction,
        real::{Buggify, Client, ClusterFile, Network, reach},
    };
    use std::{
        future::Future,
        path::{Path, PathBuf},
        pin::pin,
        sync::atomic::{AtomicBool, Ordering},
        time::Duration,
    };

    /// How long a cluster may take to reply to a connection check.
    const TIME_LIMIT: Duration = Duration::from_secs(10);
    /// The interval of connection checks during a long task.
    const HEARTBEAT: Duration = Duration::from_secs(20);
    /// How often a long task checks whether it should stop.
    const POLL_INTERVAL: Duration = Duration::from_millis(50);

    /// The longest prefix: workloads have keys of some thousand bytes.
    const LONGEST_PREFIX: usize = 1_000;

    /// A real cluster to which there is a connection.
    pub struct Cluster {
        file: ClusterFile,
        db: Db,
        site: Site,
        keep: bool,
        lost: AtomicBool,
        options: String,
        /// Dropped last, because this stops the client.
        network: Box<dyn Network>,
    }

    impl Cluster {
        /// Starts the client with the fault injection of the profile, and connects to the cluster.
        pub fn open(
            client: &dyn Client,
            arguments: &BackendArguments,
            profile: Profile,
        ) -> Result<Cluster, Refusal> {
            let path = cluster_file(arguments.cluster.cluster_file.as_deref());
            let file = ClusterFile::read(&path).map_err(|e| Refusal::Usage(e.to_string()))?;
            let network = client.start(buggify(profile)).map_err(|e| Refusal::Cluster(e.to_string()))?;
            let failed =
                |error: &dyn std::fmt::Display| Refusal::Cluster(format!("{}: {error}", path.display()));
            let db = network.open(&file).map_err(|e| failed(&e))?;
            block_on(reach(&db, &file, TIME_LIMIT)).map_err(|e| failed(&e))?;
            let random = format!("shaketable-{:08x}/", db.env().random_u64() as u32);
            let prefix = arguments.prefix.clone().unwrap_or(random);
            let Some(site) = Site::new(prefix.clone()).filter(|_| prefix.len() <= LONGEST_PREFIX) else {
                refuse!("{prefix:?} cannot be the prefix of keys: it has 1 to {LONGEST_PREFIX} bytes");
            };
            let options =
                format!(" --backend fdb --cluster-file {}", report::quoted(&path.display().to_string()));
            let (keep, lost) = (arguments.keep, AtomicBool::new(false));
            let cluster = Cluster { file, db, site, keep, lost, options, network };
            let site = &cluster.site;
            match cluster.monitored(None, site.first_key(&cluster.db))?.map_err(|e| failed(&e))? {
                None => Ok(cluster),
                Some(key) => {
                    let name = site.name();
                    let line = format!(
                        "the prefix {name} is not empty (it contains {key}): clear it, or choose another"
                    );
                    Err(Refusal::Usage(line))
                }
            }
        }

        /// Whether the cluster behind the client is shaketable's own, a served one.
        pub fn is_simulated(&self) -> bool {
            self.network.is_simulated()
        }

        /// Calls `work` with the prefix of its keys, which are cleared afterwards.
        pub fn below<T>(&self, work: impl AsyncFnOnce(&Db, &[u8]) -> T) -> Result<T, Refusal> {
            // If the cluster is lost, nothing can be cleared.
            let done = self.monitored(None, work(&self.db, &self.site.prefix()))?;
            if !self.keep {
                self.clear(&format!("the prefix {}", self.site.name()), self.site.clear(&self.db));
            }
            Ok(done)
        }

        /// Calls `work` with the whole user keyspace, which must be empty and is cleared afterwards.
        pub fn alone<T>(&self, work: impl AsyncFnOnce(&Db) -> T) -> Result<T, Refusal> {
            let interrupt = Interrupt::listen()?;
            let all = &RangeOption::new(&b""[..], &b"\xff"[..]).limit(1);
            let first = self
                .db
                .run(|tx, _| async move { tx.get_range_all(all.clone(), Isolation::Serializable).await });
            match self.monitored(Some(&interrupt), first)? {
                Ok(rows) if rows.is_empty() => {}
                Ok(_) => refuse!(
                    "recordings use the whole keyspace, and this cluster is not empty: choose another one"
                ),
                Err(e) => return Err(Refusal::Cluster(e.error.to_string())),
            }
            let done = self.monitored(Some(&interrupt), work(&self.db));
            if !matches!(done, Err(Refusal::Cluster(_))) {
                let cleared = self.db.run(|tx, _| async move {
                    tx.clear_range(b"", b"\xff");
                    Ok::<_, Error>(())
                });
                self.clear("the whole keyspace", async { cleared.await.map_err(|e| e.error) });
            }
            done
        }

        /// Waits for `work`, until the cluster no longer replies or the user interrupts it.
        fn monitored<T>(
            &self,
            interrupt: Option<&Interrupt>,
            work: impl Future<Output = T>,
        ) -> Result<T, Refusal> {
            let watch = async {
                loop {
                    for _ in 0..HEARTBEAT.as_millis() / POLL_INTERVAL.as_millis() {
                        self.db.env().sleep(POLL_INTERVAL).await;
                        if let Some(interrupt) = interrupt.filter(|interrupt| interrupt.is_set()) {
                            return interrupt.refusal("before the end");
                        }
                    }
                    if let Err(lost) = reach(&self.db, &self.file, TIME_LIMIT).await {
                        return Refusal::Cluster(format!("the cluster was lost: {lost}"));
                    }
                }
            };
            match block_on(select(pin!(work), pin!(watch))) {
                Either::Left((done, _)) => Ok(done),
                Either::Right((ended, _)) => Err(ended),
            }
        }

        /// Clears keys, or reports where they are left.
        fn clear(&self, place: &str, clear: impl Future<Output = Result<(), Error>>) {
            let why = match self.monitored(None, clear) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(refusal) => refusal.to_string(),
            };
            output::print_error(&format!(
                "{}: keys are left in {place}: {why}",
                crate::command::program().name
            ));
        }

        /// Whether the cluster answers. One error of the client's fault injection does not count.
        fn answers(&self) -> bool {
            (0..3).any(|_| block_on(reach(&self.db, &self.file, TIME_LIMIT)).is_ok())
        }

        pub(super) fn options(&self) -> String {
            self.options.clone()
        }

        pub(super) fn is_lost(&self) -> bool {
            self.lost.load(Ordering::Relaxed)
        }

        /// The place of a run.
        pub(super) fn site_of(&self, entry: &dyn Entry, seed: Seed, demands: &Demands) -> Site {
            let bug = demands.bug.as_ref().map_or(String::new(), |bug| format!("{bug}/"));
            self.site.below(&format!("{}/{bug}{}", entry.name(), seed.0))
        }

        pub(super) fn run(
            &self,
            entry: &dyn Entry,
            seed: Seed,
            demands: &Demands,
            tell: bool,
            stop: &(dyn Fn() -> bool + Sync),
        ) -> Option<RunResult> {
            let site = self.site_of(entry, seed, demands);
            let open = || self.network.open(&self.file);
            let conditions = Conditions { tell, ..Conditions::new(self.keep, stop) };
            let performed = entry.run_on(&open, &site, seed, demands, conditions);
            match real::run(performed) {
                Ok(result) => Some(result),
                Err(RunError::Interrupted) => None,
                Err(error) => {
                    // The client's own fault injection can end one run: the others go on if the cluster
                    // answers.
                    if !self.answers() {
                        self.lost.store(true, Ordering::Relaxed);
                    }
                    let finding = Finding::new(Kind::Lost, error.to_string());
                    Some(RunResult { findings: vec![finding], ..RunResult::default() })
                }
            }
        }
    }

    fn cluster_file(named: Option<&Path>) -> PathBuf {
        let local = || Some(PathBuf::from("fdb.cluster")).filter(|path| path.exists());
        named
            .map(Path::to_owned)
            .or_else(|| std::env::var_os("FDB_CLUSTER_FILE").map(PathBuf::from))
            .or_else(local)
            .unwrap_or_else(|| "/etc/foundationdb/fdb.cluster".into())
    }

    /// The fault injection of the C client. All of its sections are switched on, because the client draws
    /// them once per process, and every process must reach unknown results of both kinds.
    fn buggify(profile: Profile) -> Option<Buggify> {
        match profile {
            Profile::Calm => None,
            Profile::Standard => Some(Buggify { activated: 100, fired: 3 }),
            Profile::Storm => Some(Buggify { activated: 100, fired: 15 }),
        }
    }
}
