//! Which cluster runs go to: simulated ones, or a real one.

use super::{Refusal, refuse, run::processors};
use crate::entry::Entry;
use crate::{plan::Demands, runner::RunResult};
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

/// Which cluster.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "A real cluster")]
pub struct ClusterArguments {
    /// Where to run; fdb needs a build with --features fdb
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "sim|fdb")]
    pub backend: BackendName,
    /// Its cluster file [default: $FDB_CLUSTER_FILE, ./fdb.cluster or /etc/foundationdb/fdb.cluster]
    #[arg(long, value_name = "FILE")]
    pub cluster_file: Option<PathBuf>,
}

/// Which cluster, and where on it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "A real cluster")]
pub struct BackendArguments {
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// The keys below which to work, which must be empty [default: shaketable-, a random number and /]
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,
    /// Leave the keys there
    #[arg(long)]
    pub keep: bool,
}

impl From<&ClusterArguments> for BackendArguments {
    fn from(cluster: &ClusterArguments) -> BackendArguments {
        BackendArguments { cluster: cluster.clone(), ..BackendArguments::default() }
    }
}

impl BackendArguments {
    /// How many threads, if nobody says: on a real cluster runs mostly wait for it.
    pub fn jobs(&self) -> usize {
        match self.cluster.backend {
            BackendName::Sim => processors(),
            BackendName::Fdb => 4 * processors(),
        }
    }

    /// Whether a real cluster is asked for; what makes no sense without one is refused.
    pub fn is_real(&self) -> Result<bool, Refusal> {
        let real = self.cluster.backend == BackendName::Fdb;
        let given = [
            ("--cluster-file", self.cluster.cluster_file.is_some()),
            ("--prefix", self.prefix.is_some()),
            ("--keep", self.keep),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) if !real => refuse!("{option} is for --backend fdb"),
            _ => Ok(real),
        }
    }
}

/// What performs runs.
pub enum Backend {
    /// A simulated cluster for each.
    Simulated,
    /// A real cluster for all.
    #[cfg(feature = "fdb-client")]
    Real(real::Cluster),
}

impl Backend {
    /// What was asked for, with its cluster reached.
    pub fn open(arguments: &BackendArguments, profile: Profile) -> Result<Backend, Refusal> {
        if !arguments.is_real()? {
            return Ok(Backend::Simulated);
        }
        #[cfg(feature = "fdb-client")]
        return real::Cluster::open(arguments, profile).map(Backend::Real);
        #[cfg(not(feature = "fdb-client"))]
        {
            let _ = profile;
            refuse!("this program was built without the FoundationDB client: build it with --features fdb")
        }
    }

    /// Performs the plan of a seed; `None` if it was told to end before its end.
    pub fn run(
        &self,
        entry: &dyn Entry,
        seed: Seed,
        demands: &Demands,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Option<RunResult> {
        let _ = stop;
        match self {
            Backend::Simulated => Some(entry.run(seed, demands, false)),
            #[cfg(feature = "fdb-client")]
            Backend::Real(cluster) => cluster.run(entry, seed, demands, stop),
        }
    }

    /// Whether nothing can be run any more.
    pub fn is_lost(&self) -> bool {
        match self {
            Backend::Simulated => false,
            #[cfg(feature = "fdb-client")]
            Backend::Real(cluster) => cluster.is_lost(),
        }
    }

    /// Its options, for a command line that asks for the same; empty for the default.
    pub fn options(&self) -> String {
        match self {
            Backend::Simulated => String::new(),
            #[cfg(feature = "fdb-client")]
            Backend::Real(cluster) => cluster.options(),
        }
    }

    /// Whether faults of servers and of the network can be had.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Backend::Simulated)
    }
}

#[cfg(feature = "fdb-client")]
pub mod real {
    //! A real cluster, through FoundationDB's client.

    use super::BackendArguments;
    #[cfg(feature = "contract")]
    use crate::command::progress::Progress;
    use crate::command::{Refusal, interrupt::Interrupt, output, refuse, report};
    use crate::entry::Entry;
    use crate::{
        finding::{Finding, Kind},
        plan::Demands,
        real::{Conditions, RunError, Site},
        runner::RunResult,
    };
    use futures::{
        executor::block_on,
        future::{Either, select},
    };
    #[cfg(feature = "contract")]
    use shaketable_layers::tx::contract;
    use shaketable_layers::{
        fdb::{Buggify, ClusterFile, FdbDatabase, Network},
        tx::{Database, Error, Isolation, RangeOption, Transaction},
    };
    use shaketable_sim::{faults::Profile, seed::Seed};
    use std::{
        future::Future,
        path::{Path, PathBuf},
        pin::pin,
        sync::atomic::{AtomicBool, Ordering},
        time::Duration,
    };

    /// How long a cluster may take to answer for the first time.
    const PATIENCE: Duration = Duration::from_secs(10);
    /// How often a cluster must show that it is there, while long work is done on it.
    const HEARTBEAT: Duration = Duration::from_secs(20);
    /// How often long work looks whether it is to end.
    const LOOK: Duration = Duration::from_millis(50);

    /// A cluster that has answered.
    pub struct Cluster {
        file: ClusterFile,
        db: FdbDatabase,
        site: Site,
        keep: bool,
        lost: AtomicBool,
        options: String,
        /// Dropped last: it stops the client.
        network: Network,
    }

    impl Cluster {
        /// Starts the client, with the faults of its own that the profile has, and reaches the cluster.
        pub fn open(arguments: &BackendArguments, profile: Profile) -> Result<Cluster, Refusal> {
            let path = cluster_file(arguments.cluster.cluster_file.as_deref());
            let file = ClusterFile::read(&path).map_err(|e| Refusal::Usage(e.to_string()))?;
            let network = Network::start(buggify(profile)).map_err(|e| Refusal::Cluster(e.to_string()))?;
            let failed =
                |error: &dyn std::fmt::Display| Refusal::Cluster(format!("{}: {error}", path.display()));
            let db = FdbDatabase::open(&network, &file).map_err(|e| failed(&e))?;
            block_on(db.reach(&file, PATIENCE)).map_err(|e| failed(&e))?;
            let random = format!("shaketable-{:08x}/", db.env().random_u64() as u32);
            let prefix = arguments.prefix.clone().unwrap_or(random);
            let Some(site) = Site::new(prefix.clone()) else {
                refuse!("{prefix:?} is no prefix of keys");
            };
            let options =
                format!(" --backend fdb --cluster-file {}", report::quoted(&path.display().to_string()));
            let (keep, lost) = (arguments.keep, AtomicBool::new(false));
            let cluster = Cluster { file, db, site, keep, lost, options, network };
            let site = &cluster.site;
            match cluster.attended(None, site.first_key(&cluster.db))?.map_err(|e| failed(&e))? {
                None => Ok(cluster),
                Some(key) => {
                    let name = site.name();
                    let line = format!(
                        "the prefix {name} is not empty (it holds {key}): clear it, or choose another"
                    );
                    Err(Refusal::Usage(line))
                }
            }
        }

        /// The promises of the contract whose names contain `filter`, tested below the prefix, and whether somebody
        /// has asked to end before the last.
        #[cfg(feature = "contract")]
        pub fn contract(
            &self,
            filter: &str,
        ) -> Result<(Vec<contract::CaseResult>, Option<Refusal>), Refusal> {
            let promises =
                contract::cases::<FdbDatabase>().iter().filter(|c| c.name.contains(filter)).count();
            let interrupt = Interrupt::listen()?;
            let mut progress =
                Progress::new(&[("promises", promises as u64)], ("promise", "promises"), "broken");
            let prefix = self.site.prefix();
            let run = contract::run_each(&self.db, &prefix, filter, |verdict| {
                progress.done(0, verdict.result.is_ok());
                !interrupt.is_set()
            });
            let verdicts = self.attended(None, run);
            progress.end();
            let verdicts = verdicts?;
            let interrupted = interrupt
                .is_set()
                .then(|| interrupt.refusal(&format!("after {} of {promises} promises", verdicts.len())));
            if !self.keep {
                self.tidy(&self.site.name(), self.site.clear(&self.db));
            }
            Ok((verdicts, interrupted))
        }

        /// Does `work` with the whole user keyspace, which must be empty and is cleared afterwards.
        pub fn alone<T>(&self, work: impl AsyncFnOnce(&FdbDatabase) -> T) -> Result<T, Refusal> {
            let interrupt = Interrupt::listen()?;
            let all = &RangeOption::new(&b""[..], &b"\xff"[..]).limit(1);
            let first = self
                .db
                .run(|tx, _| async move { tx.get_range_all(all.clone(), Isolation::Serializable).await });
            match self.attended(Some(&interrupt), first)? {
                Ok(rows) if rows.is_empty() => {}
                Ok(_) => refuse!(
                    "recordings need the whole keyspace, and this cluster holds keys: use one that is empty"
                ),
                Err(e) => return Err(Refusal::Cluster(e.error.to_string())),
            }
            let done = self.attended(Some(&interrupt), work(&self.db));
            if !matches!(done, Err(Refusal::Cluster(_))) {
                let cleared = self.db.run(|tx, _| async move {
                    tx.clear_range(b"", b"\xff");
                    Ok::<_, Error>(())
                });
                self.tidy("the whole keyspace", async { cleared.await.map_err(|e| e.error) });
            }
            done
        }

        /// Does `work` for as long as the cluster answers and nobody stops it.
        fn attended<T>(
            &self,
            interrupt: Option<&Interrupt>,
            work: impl Future<Output = T>,
        ) -> Result<T, Refusal> {
            let watch = async {
                loop {
                    for _ in 0..HEARTBEAT.as_millis() / LOOK.as_millis() {
                        self.db.env().sleep(LOOK).await;
                        if let Some(interrupt) = interrupt.filter(|interrupt| interrupt.is_set()) {
                            return interrupt.refusal("before it had ended");
                        }
                    }
                    if let Err(lost) = self.db.reach(&self.file, PATIENCE).await {
                        return Refusal::Cluster(format!("the cluster was lost: {lost}"));
                    }
                }
            };
            match block_on(select(pin!(work), pin!(watch))) {
                Either::Left((done, _)) => Ok(done),
                Either::Right((ended, _)) => Err(ended),
            }
        }

        /// Clears keys, or says where they are left.
        fn tidy(&self, place: &str, clear: impl Future<Output = Result<(), Error>>) {
            let why = match self.attended(None, clear) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(refusal) => refusal.to_string(),
            };
            output::complain(&format!(
                "{}: keys are left below {place}: {why}",
                crate::command::program().name
            ));
        }

        pub(super) fn options(&self) -> String {
            self.options.clone()
        }

        pub(super) fn is_lost(&self) -> bool {
            self.lost.load(Ordering::Relaxed)
        }

        pub(super) fn run(
            &self,
            entry: &dyn Entry,
            seed: Seed,
            demands: &Demands,
            stop: &(dyn Fn() -> bool + Sync),
        ) -> Option<RunResult> {
            let bug = demands.bug.as_ref().map_or(String::new(), |bug| format!("{bug}/"));
            let site = self.site.below(&format!("{}/{bug}{}", entry.name(), seed.0));
            let open = || FdbDatabase::open(&self.network, &self.file);
            match entry.run_on(&open, &site, seed, demands, Conditions::new(self.keep, stop)) {
                Ok(result) => Some(result),
                Err(RunError::Interrupted) => None,
                Err(error) => {
                    self.lost.store(true, Ordering::Relaxed);
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

    /// The client's own faults: how much of it is switched on, and how often that fires. All of it is: the
    /// client draws once for the whole process, and a process is to meet unknown results of both kinds.
    fn buggify(profile: Profile) -> Option<Buggify> {
        match profile {
            Profile::Calm => None,
            Profile::Standard => Some(Buggify { activated: 100, fired: 3 }),
            Profile::Storm => Some(Buggify { activated: 100, fired: 15 }),
        }
    }
}
