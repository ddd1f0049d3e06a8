//! The four acts on a cluster as it is: *setup*, *work*, *wait* (what may still land) and *check*.

use super::{
    Site,
    recorded::{Recorded, Witness},
    site::ClaimError,
};
use crate::{
    judges::{self, Finding, Replica},
    plan::Plan,
    runner::{
        AUDITOR, Audits, CHECKER, Job, Operation, Progress, RunResult, SETTER, Stage, audit, count, judge,
        live, words,
    },
    workload::{Outcome, Workload},
};
use bytes::Bytes;
use futures::{
    FutureExt, StreamExt,
    future::{Either, select},
    stream::FuturesUnordered,
};
use parking_lot::Mutex;
use shaketable_layers::tx::{Database, Error, Transaction};
use shaketable_sim::{
    faults::{Family, Strike},
    history::ClientId,
    proto::KeyRange,
    rt::{MILLISECOND, Nanos},
    seed::Seed,
    trace::Kind,
};
use std::{
    fmt::Display,
    future::Future,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// What a run on a real cluster may take, and leaves.
#[derive(Clone, Copy)]
pub struct Conditions<'a> {
    /// How long the cluster may take to answer the run itself: to claim, to set up, to read the log, to clear.
    pub patience: Duration,
    /// How long clients may go on after the plan's time, before they are stuck.
    pub bound: Duration,
    /// After which time no commit can land any more whose client has left it.
    pub landing: Duration,
    /// Whether the keys stay when the run has ended.
    pub keep: bool,
    /// Whether it is to end now.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Conditions<'a> {
    /// What suits a cluster that forgets old read versions after five seconds.
    pub fn new(keep: bool, stop: &'a (dyn Fn() -> bool + Sync)) -> Conditions<'a> {
        Conditions {
            patience: Duration::from_secs(30),
            bound: Duration::from_nanos(judges::live::BOUND),
            landing: Duration::from_secs(6),
            keep,
            stop,
        }
    }
}

/// Why a run says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// Its prefix is somebody else's.
    #[error("the prefix {prefix} is not empty: it holds {key}")]
    NotEmpty {
        /// The prefix, escaped.
        prefix: String,
        /// The first key there, escaped.
        key: String,
    },
    /// The cluster does not answer any more.
    #[error(
        "the cluster was lost while {doing}: {why}; {unknown} operations are unknown, and keys may be left below {prefix}"
    )]
    Lost {
        /// What the run wanted of it.
        doing: &'static str,
        /// What it said, or that it said nothing.
        why: String,
        /// How many operations have no known outcome.
        unknown: usize,
        /// The run's prefix, escaped.
        prefix: String,
    },
    /// It was told to end.
    #[error("interrupted")]
    Interrupted,
}

/// How often a run looks whether it is to end, nanoseconds.
const LOOK: Nanos = 50 * MILLISECOND;

/// A task of this process.
struct Task<D: Database>(Recorded<D>);

impl<D: Database> Stage for Task<D> {
    type Database = Recorded<D>;

    fn database(&self) -> &Recorded<D> {
        &self.0
    }

    fn now(&self) -> Nanos {
        self.0.env().now().as_nanos() as Nanos
    }

    fn sleep(&self, duration: Nanos) -> impl Future<Output = ()> {
        self.0.env().sleep(Duration::from_nanos(duration))
    }

    fn set_operation(&self, operation: Option<u32>) {
        self.0.set_operation(operation);
    }

    fn event(&self, _: Kind, _: u64, _: u64) {}
}

/// Performs a plan below `site`, which must be empty and is cleared at the end whatever happens. Each client
/// works on a database that `open` has opened for it, with options of its own. Of the plan's faults the
/// deaths of clients are delivered; the others, and the plan's cluster, are not looked at.
pub async fn perform<W: Workload, D: Database>(
    plan: &Plan<W>,
    open: &(dyn Fn() -> Result<D, Error> + Sync),
    site: &Site,
    conditions: Conditions<'_>,
) -> Result<RunResult, RunError> {
    let lost = |error: Error| RunError::Lost {
        doing: "opening its database",
        why: error.to_string(),
        unknown: 0,
        prefix: site.name(),
    };
    let db = &open().map_err(lost)?;
    let (witness, deaths) = (Arc::default(), AtomicU64::new(0));
    let run = Run { plan, open, db, site, conditions, witness, progress: progress(plan), deaths };
    match run.answer("claiming its prefix", site.claim(db)).await? {
        Ok(()) => {}
        Err(ClaimError::NotEmpty { prefix, key }) => return Err(RunError::NotEmpty { prefix, key }),
        Err(ClaimError::Fdb(error)) => return Err(run.lost("claiming its prefix", error)),
    }
    // On the heap, as the acts are: their futures are large, and a thread's stack need not be.
    let result = Box::pin(run.acts()).await;
    if conditions.keep {
        return result;
    }
    let cleared = run.bounded("clearing its prefix", site.clear(db)).await;
    result.and_then(|result| cleared.map(|()| result))
}

fn progress<W: Workload>(plan: &Plan<W>) -> Vec<Arc<Mutex<Progress<W>>>> {
    let stream = |client| Seed(plan.seed).stream(&format!("pace-{client}"));
    (0..plan.operations.len()).map(|client| Arc::new(Mutex::new(Progress::new(stream(client))))).collect()
}

/// How the clients' act ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Done,
    Late,
    Stopped,
}

struct Run<'a, W: Workload, D> {
    plan: &'a Plan<W>,
    open: &'a (dyn Fn() -> Result<D, Error> + Sync),
    /// The run's own.
    db: &'a D,
    site: &'a Site,
    conditions: Conditions<'a>,
    witness: Arc<Witness>,
    progress: Vec<Arc<Mutex<Progress<W>>>>,
    deaths: AtomicU64,
}

impl<W: Workload, D: Database> Run<'_, W, D> {
    fn client(&self, id: ClientId) -> Result<Task<D>, RunError> {
        let db = (self.open)().map_err(|error| self.lost("opening a client's database", error))?;
        Ok(Task(Recorded::new(db, self.site.data(), self.site.log(), id, self.witness.clone())))
    }

    fn now(&self) -> Nanos {
        self.db.env().now().as_nanos() as Nanos
    }

    fn lost(&self, doing: &'static str, why: impl Display) -> RunError {
        let unknown = |p: &Arc<Mutex<Progress<W>>>| {
            let operations = &p.lock().operations;
            operations.iter().filter(|op| matches!(op.outcome, None | Some(Outcome::Unknown(_)))).count()
        };
        RunError::Lost {
            doing,
            why: why.to_string(),
            unknown: self.progress.iter().map(unknown).sum(),
            prefix: self.site.name(),
        }
    }

    /// The answer, unless it takes longer than patience lasts.
    async fn answer<T>(&self, doing: &'static str, work: impl Future<Output = T>) -> Result<T, RunError> {
        let patience = self.conditions.patience;
        match select(pin!(work), self.db.env().sleep(patience)).await {
            Either::Left((answer, _)) => Ok(answer),
            Either::Right(_) => Err(self.lost(doing, format!("no answer within {} s", patience.as_secs()))),
        }
    }

    /// The answer, where an error is the cluster's.
    async fn bounded<T>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, RunError> {
        self.answer(doing, work).await?.map_err(|error| self.lost(doing, error))
    }

    async fn acts(&self) -> Result<RunResult, RunError> {
        let mut findings = Vec::new();
        let began = self.now();
        let setter = self.client(SETTER)?;
        let set_up = Box::pin(self.plan.configuration.setup(setter.database()));
        let set_up = AssertUnwindSafe(set_up).catch_unwind();
        match self.answer("setting up", set_up).await? {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(self.lost("setting up", error)),
            Err(panic) => {
                findings.push(Finding::layer("panic", format!("in setup: {}", words(&*panic))));
            }
        }
        drop(setter);
        let sound_from = self.witness.latest_commit();

        let audits = Arc::new(Mutex::new(Audits::default()));
        let ended = Box::pin(self.work(&audits)).await?;
        if self.witness.awaits_landing() {
            self.db.env().sleep(self.conditions.landing).await;
        }
        if ended == Ended::Stopped {
            return Err(RunError::Interrupted);
        }

        if ended == Ended::Late {
            // Of a cluster that is lost nobody can say that its clients are stuck.
            let alive = self.db.run(|tx, _| async move { tx.get_read_version().await });
            self.bounded("waiting for its clients", alive.map(|read| read.map_err(|e| e.error))).await?;
        }
        let (log, rows) = self.bounded("reading its log", self.site.read(self.db)).await?;
        let operations: Vec<Vec<Operation<W::Answer>>> =
            self.progress.iter().map(|p| p.lock().operations.clone()).collect();
        findings.extend(self.progress.iter().flat_map(|p| p.lock().findings.clone()));
        if ended == Ended::Late {
            let lengths: Vec<usize> = self.plan.operations.iter().map(Vec::len).collect();
            let waits = judges::live::judge(&operations, &lengths, self.now());
            let why = waits.err().unwrap_or_else(|| "a client has not ended".to_owned());
            findings.push(Finding::layer("live", why));
        }
        let range = KeyRange::new(Bytes::new(), Bytes::from_static(b"\xff"));
        let replicas = [Replica { server: "the cluster".to_owned(), range, rows }];
        let mut evaluated = audits.lock().evaluated;
        findings.extend(audits.lock().broken.take().map(|why| Finding::layer("audit", why)));
        let history = self.witness.history(&log);
        let model =
            judge(self.plan, &history, &operations, &replicas, sound_from, &mut evaluated, &mut findings);
        if let (Some(model), false) = (model, findings.iter().any(|f| f.harness || f.judge == "live")) {
            let checker = self.client(CHECKER)?;
            let check = Box::pin(self.plan.configuration.check(checker.database(), &model));
            match self.answer("checking", AssertUnwindSafe(check).catch_unwind()).await? {
                Ok(Ok(Ok(()))) => {}
                Ok(Ok(Err(why))) => findings.push(Finding::layer("check", why)),
                Ok(Err(error)) => return Err(self.lost("checking", error)),
                Err(panic) => {
                    let message = format!("in the final check: {}", words(&*panic));
                    findings.push(Finding::layer("panic", message));
                }
            }
        }
        let mut counters = count(&history, &operations, evaluated);
        let deaths = self.deaths.load(Ordering::Relaxed);
        counters.faults.extend((deaths > 0).then_some((Family::ClientDeath, deaths)));
        Ok(RunResult { findings, counters, virtual_time: self.now() - began, ..RunResult::default() })
    }

    /// All clients at once, and the auditor among them, until the last has done its list. Whoever is under
    /// way at the end is dropped.
    async fn work(&self, audits: &Arc<Mutex<Audits>>) -> Result<Ended, RunError> {
        let began = self.now();
        let start = |(client, progress)| self.start(client, progress, began);
        let mut clients: FuturesUnordered<_> = self.progress.iter().enumerate().map(start).collect();
        let done = async {
            while let Some(ended) = clients.next().await {
                ended?;
            }
            Ok(Ended::Done)
        };
        let auditor = Box::pin(audit(self.client(AUDITOR)?, self.plan.configuration.clone(), audits.clone()));
        let auditor = async {
            auditor.await;
            // A broken invariant ends the auditor, not the clients.
            std::future::pending::<Result<Ended, RunError>>().await
        };
        let watch = async {
            let ends = began + self.plan.hurt + self.conditions.bound.as_nanos() as Nanos;
            loop {
                self.db.env().sleep(Duration::from_nanos(LOOK)).await;
                if (self.conditions.stop)() {
                    return Ok(Ended::Stopped);
                }
                if self.now() >= ends {
                    return Ok(Ended::Late);
                }
            }
        };
        let (auditor, watch) = (pin!(auditor), pin!(watch));
        let watched = select(auditor, watch).map(|ended| ended.factor_first().0);
        select(pin!(done), watched).await.factor_first().0
    }

    /// One client after the other, as the plan's deaths have it: what a dead one had under way is nobody's.
    async fn start(
        &self,
        client: usize,
        progress: &Arc<Mutex<Progress<W>>>,
        began: Nanos,
    ) -> Result<(), RunError> {
        let job = Arc::new(Job {
            workload: self.plan.configuration.clone(),
            client,
            operations: self.plan.operations[client].clone(),
            pause: self.plan.pause,
            progress: progress.clone(),
        });
        let life = || Ok::<_, RunError>(Box::pin(live(self.client(ClientId(client as u16))?, job.clone())));
        let sleep_until =
            |at: Nanos| self.db.env().sleep(Duration::from_nanos((began + at).saturating_sub(self.now())));
        let clients = self.plan.operations.len();
        let is_its_own =
            |s: &&Strike| s.family == Family::ClientDeath && s.target as usize % clients == client;
        for death in self.plan.faults.strikes.iter().filter(is_its_own) {
            match select(life()?, sleep_until(death.at)).await {
                Either::Left(_) => return Ok(()),
                Either::Right((_, dying)) => drop(dying),
            }
            self.deaths.fetch_add(1, Ordering::Relaxed);
            sleep_until(death.at + death.duration).await;
        }
        life()?.await;
        Ok(())
    }
}

/// Performs a plan on this thread, with the claims of layers and workloads.
#[cfg(feature = "fdb-client")]
pub fn run<W: Workload, D: Database>(
    plan: &Plan<W>,
    open: &(dyn Fn() -> Result<D, Error> + Sync),
    site: &Site,
    conditions: Conditions<'_>,
) -> Result<RunResult, RunError> {
    crate::runner::heard(|| futures::executor::block_on(perform(plan, open, site, conditions)))
}
