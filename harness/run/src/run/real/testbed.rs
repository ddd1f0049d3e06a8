//! A real cluster as the testbed of a run: all keys have one prefix, and the clients are tasks of this
//! process.

use super::{Open, Site, log::SharedHistory, recorded::Recorded, site::ClaimError};
use crate::{
    describe::erased::AnyValue,
    describe::workload::{Operation, Outcome},
    judge::finding::is_of_call,
    judge::panics,
    judge::{self, Replica},
    run::plan::Plan,
    run::runner::{
        self, AUDITOR, Act, Client, Host, Job, Participants, RunResult, SETTER, Testbed, audit, run_client,
    },
};
use bytes::Bytes;
use futures::{
    FutureExt, StreamExt,
    future::{Either, LocalBoxFuture, pending, select},
    stream::FuturesUnordered,
};
use parking_lot::Mutex;
use shaketable_sim::{
    faults::{Family, FaultPlan, Strike},
    history::History,
    ids::ClientId,
    proto::{KeyRange, Version},
    rt::{MILLISECOND, Nanos},
    trace::Kind,
};
use shaketable_tx::{Database, Db, Error, Transaction};
use std::{
    collections::BTreeMap,
    convert::Infallible,
    fmt::Display,
    future::Future,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The time limits of a run on a real cluster, whether it keeps its keys, and whether it tells what happened.
#[derive(Clone, Copy)]
pub struct Conditions<'a> {
    /// How long the cluster may take for each step of the run itself: claiming the prefix, the setup, reading
    /// the log, the final check, clearing the prefix.
    pub patience: Duration,
    /// How long clients may take after the act *hurt* before they count as stuck.
    pub bound: Duration,
    /// How long a commit may still take effect after its client stopped waiting for it.
    pub landing: Duration,
    /// Whether the keys are kept after the run.
    pub keep: bool,
    /// Whether the result has what happened in the run.
    pub tell: bool,
    /// Returns true once the run should stop.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Conditions<'a> {
    /// The time limits for a cluster that keeps read versions for five seconds.
    pub fn new(keep: bool, stop: &'a (dyn Fn() -> bool + Sync)) -> Conditions<'a> {
        Conditions {
            patience: Duration::from_secs(30),
            bound: Duration::from_nanos(judge::live::BOUND),
            landing: Duration::from_secs(6),
            keep,
            tell: false,
            stop,
        }
    }
}

/// Why a run has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// Its prefix is in use.
    #[error("the prefix {prefix} is not empty: it contains {key}")]
    NotEmpty {
        /// The prefix, escaped.
        prefix: String,
        /// The first key with the prefix, escaped.
        key: String,
    },
    /// The cluster failed or did not reply in time.
    #[error(
        "the cluster was lost while {doing}: {why}; {unknown} operations have an unknown outcome, and keys with the \
         prefix {prefix} may be left"
    )]
    Lost {
        /// What the run was doing.
        doing: &'static str,
        /// The error, or that there was no reply.
        why: String,
        /// The number of operations with an unknown outcome.
        unknown: usize,
        /// The run's prefix, escaped.
        prefix: String,
    },
    /// It was interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// How often a run checks whether it should stop, nanoseconds.
const POLL_INTERVAL: Nanos = 50 * MILLISECOND;

/// How often something of the run itself is tried that ends with 4100 (`internal_error`). The fault injection
/// of FoundationDB's client ends calls so, and no retry loop repeats them.
const TRIES: u32 = 20;

/// Tries `work` again if it ends with 4100.
async fn again<T>(mut work: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 1..TRIES {
        match work().await {
            Err(Error::INTERNAL_ERROR) => {}
            done => return done,
        }
    }
    work().await
}

/// A task of this process as the host of a client.
struct Task {
    db: Recorded<Db>,
    /// The same database without its type.
    any: Db,
}

impl Host for Task {
    fn database(&self) -> &Db {
        &self.any
    }

    fn now(&self) -> Nanos {
        self.db.now()
    }

    fn sleep(&self, duration: Nanos) -> impl Future<Output = ()> {
        self.db.env().sleep(Duration::from_nanos(duration))
    }

    fn set_operation(&self, operation: Option<u32>) {
        self.db.set_operation(operation);
    }

    fn prepared(&self) {
        self.db.prepared();
    }

    fn event(&self, _: Kind, _: u64, _: u64) {}
}

/// Performs a plan with the prefix of `site`, which must be empty. It is cleared at the end, also after a
/// failure, unless `conditions.keep` is set. Each client has its own database, opened with `open`, whose
/// options are not shared. Of the plan's faults, only the deaths of clients are delivered, for good or not;
/// the others and the plan's cluster are ignored.
pub async fn perform(
    plan: &Plan,
    open: Open<'_>,
    site: &Site,
    conditions: Conditions<'_>,
) -> Result<RunResult, RunError> {
    let _below = site.shortens_keys();
    let lost = |error: Error| RunError::Lost {
        doing: "opening its database",
        why: error.to_string(),
        unknown: 0,
        prefix: site.name(),
    };
    let db = &open().map_err(lost)?;
    let access = Arc::new(Access {
        open,
        db,
        site,
        conditions,
        history: Arc::new(SharedHistory::from(db.env().now())),
        clients: Mutex::default(),
        deaths: AtomicU64::new(0),
        departures: AtomicU64::new(0),
    });
    match access.within_time_limit("claiming its prefix", site.claim(db)).await? {
        Ok(()) => {}
        Err(ClaimError::NotEmpty { prefix, key }) => return Err(RunError::NotEmpty { prefix, key }),
        Err(ClaimError::Fdb(error)) => return Err(access.lost("claiming its prefix", error)),
    }
    let testbed = Real {
        faults: &plan.faults,
        access: access.clone(),
        work: Mutex::default(),
        history: OnceLock::new(),
    };
    // Boxed, like the clients: these futures are large, and the stack of the thread may be small.
    let result = Box::pin(runner::perform(plan, testbed)).await;
    if conditions.keep {
        return result;
    }
    let cleared = access.finished("clearing its prefix", again(async || site.clear(db).await)).await;
    result.and_then(|result| cleared.map(|()| result))
}

/// The access of a run to the cluster.
struct Access<'a> {
    open: Open<'a>,
    /// The database of the run itself.
    db: &'a Db,
    site: &'a Site,
    conditions: Conditions<'a>,
    history: Arc<SharedHistory>,
    /// The clients, once they have been started.
    clients: Mutex<Vec<Arc<Client>>>,
    deaths: AtomicU64,
    departures: AtomicU64,
}

impl Access<'_> {
    fn task(&self, id: ClientId) -> Result<Task, RunError> {
        let db = (self.open)().map_err(|error| self.lost("opening a client's database", error))?;
        let db = Recorded::new(db, self.site.data(), self.site.log(), id, self.history.clone());
        Ok(Task { any: Db::new(db.clone()), db })
    }

    /// The time since the run began.
    fn now(&self) -> Nanos {
        self.history.since_began(self.db.env())
    }

    async fn sleep(&self, duration: Nanos) {
        self.db.env().sleep(Duration::from_nanos(duration)).await;
    }

    fn lost(&self, doing: &'static str, why: impl Display) -> RunError {
        let unknown = |client: &Arc<Client>| {
            let operations = &client.progress.lock().operations;
            operations.iter().filter(|op| matches!(op.outcome, None | Some(Outcome::Unknown(_)))).count()
        };
        RunError::Lost {
            doing,
            why: why.to_string(),
            unknown: self.clients.lock().iter().map(unknown).sum(),
            prefix: self.site.name(),
        }
    }

    /// Waits for a step of the run itself, up to its time limit.
    async fn within_time_limit<T>(
        &self,
        doing: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, RunError> {
        let limit = self.conditions.patience;
        match select(pin!(work), self.db.env().sleep(limit)).await {
            Either::Left((done, _)) => Ok(done),
            Either::Right(_) => Err(self.lost(doing, format!("no reply within {} s", limit.as_secs()))),
        }
    }

    /// Waits for a step of the run itself, up to its time limit. An error means that the cluster is lost.
    async fn finished<T>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, RunError> {
        self.within_time_limit(doing, work).await?.map_err(|error| self.lost(doing, error))
    }

    /// Waits until no commit can take effect any more.
    async fn await_landing(&self) {
        if self.history.commits_may_land() {
            self.db.env().sleep(self.conditions.landing).await;
        }
    }

    /// Runs a client, and restarts it after each of its deaths, which drop everything that it has in
    /// progress.
    async fn run_client(self: Arc<Self>, client: Arc<Client>, deaths: Vec<Strike>) -> Result<(), RunError> {
        let began = self.now();
        let id = ClientId(client.number as u16);
        let life = || Ok::<_, RunError>(Box::pin(run_client(self.task(id)?, client.clone())));
        let sleep_until =
            |at: Nanos| self.db.env().sleep(Duration::from_nanos((began + at).saturating_sub(self.now())));
        for death in deaths {
            match select(life()?, sleep_until(death.at)).await {
                Either::Left(_) => return Ok(()),
                Either::Right((_, dying)) => drop(dying),
            }
            if death.family == Family::Departure {
                self.departures.fetch_add(1, Ordering::Relaxed);
                client.leave(self.now());
                return Ok(());
            }
            self.deaths.fetch_add(1, Ordering::Relaxed);
            sleep_until(death.at + death.duration).await;
        }
        life()?.await;
        Ok(())
    }
}

/// Which clients leave for good, and when: never the last of them.
fn leaving(faults: &FaultPlan, clients: usize) -> BTreeMap<usize, Nanos> {
    let mut left: Vec<usize> = (0..clients).collect();
    let mut leaving = BTreeMap::new();
    for strike in faults.strikes.iter().filter(|strike| strike.family == Family::Departure) {
        if left.len() > 1 {
            leaving.insert(left.remove(strike.target as usize % left.len()), strike.at);
        }
    }
    leaving
}

/// Clears all keys of the workload.
async fn clear(db: &Db) -> Result<(), Error> {
    let cleared = db.run(|tx, _| async move {
        tx.clear_range(b"", b"\xff");
        Ok::<_, Error>(())
    });
    cleared.await.map_err(|e| e.error)
}

/// The tasks of a run.
struct Work<'a> {
    /// The clients that are not done.
    clients: FuturesUnordered<LocalBoxFuture<'a, Result<(), RunError>>>,
    /// The auditor, whose future never completes.
    auditor: LocalBoxFuture<'a, Infallible>,
}

struct Real<'a> {
    faults: &'a FaultPlan,
    access: Arc<Access<'a>>,
    work: Mutex<Option<Work<'a>>>,
    /// The history, once the log has been read.
    history: OnceLock<History>,
}

impl<'a> Testbed for Real<'a> {
    type Lost = RunError;

    fn now(&self) -> Nanos {
        self.access.now()
    }

    fn begin(&self, _: Act) {}

    async fn undisturbed<T, F>(
        &self,
        client: ClientId,
        doing: &'static str,
        job: impl Fn(Db) -> F + Send + Sync + 'static,
    ) -> Result<Job<T>, RunError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + 'static,
    {
        let Task { any: db, .. } = self.access.task(client)?;
        let mut is_repeated = false;
        let job = again(async || {
            if std::mem::replace(&mut is_repeated, true) && client == SETTER {
                clear(&db).await?;
            }
            Box::pin(job(db.clone())).await
        });
        let job = AssertUnwindSafe(job).catch_unwind();
        match self.access.within_time_limit(doing, job).await? {
            Ok(Ok(done)) => Ok(Job::Done(done)),
            // The cluster has answered: what it was asked is wrong.
            Ok(Err(error)) if is_of_call(error) => Ok(Job::Failed(error)),
            Ok(Err(error)) => Err(self.access.lost(doing, error)),
            Err(panic) => Ok(Job::Panicked(panics::caught(&*panic))),
        }
    }

    fn latest_commit(&self) -> Version {
        self.access.history.latest_commit()
    }

    fn start(&self, participants: &Participants) -> Result<(), RunError> {
        self.access.clients.lock().clone_from(&participants.clients);
        let count = participants.clients.len();
        let clients = FuturesUnordered::new();
        let leaving = leaving(self.faults, count);
        for client in &participants.clients {
            let is_its_own = |s: &&Strike| match s.family {
                Family::ClientDeath => s.target as usize % count == client.number,
                Family::Departure => leaving.get(&client.number) == Some(&s.at),
                _ => false,
            };
            let deaths = self.faults.strikes.iter().filter(is_its_own).cloned().collect();
            clients.push(self.access.clone().run_client(client.clone(), deaths).boxed_local());
        }
        let auditor = self.access.task(AUDITOR)?;
        let Participants { workload, scale, audits, .. } = participants;
        let auditor = audit(auditor, workload.clone(), *scale, audits.clone());
        // A broken invariant ends the auditor, not the clients.
        let auditor = auditor.then(|()| pending::<Infallible>()).boxed_local();
        *self.work.lock() = Some(Work { clients, auditor });
        Ok(())
    }

    async fn fill(&self, participants: &Participants, duration: Nanos) -> Result<(), RunError> {
        let begun = self.now();
        while !participants.are_filled() && self.now() < begun + duration {
            self.wait(participants, POLL_INTERVAL).await?;
        }
        Ok(())
    }

    async fn wait(&self, _: &Participants, duration: Nanos) -> Result<(), RunError> {
        let ends = self.now() + duration;
        let Some(mut work) = self.work.lock().take() else { return Ok(()) };
        while !work.clients.is_empty() && self.now() < ends {
            if (self.access.conditions.stop)() {
                drop(work);
                self.access.await_landing().await;
                return Err(RunError::Interrupted);
            }
            let pause = pin!(self.access.sleep(POLL_INTERVAL));
            let others = select(&mut work.auditor, pause);
            if let Either::Left((Some(ended), _)) = select(work.clients.next(), others).await {
                ended?;
            }
        }
        *self.work.lock() = Some(work);
        Ok(())
    }

    fn bound(&self) -> Nanos {
        self.access.conditions.bound.as_nanos() as Nanos
    }

    async fn quiesce(&self, late: bool) -> Result<(), RunError> {
        *self.work.lock() = None;
        self.access.await_landing().await;
        if late {
            // If the cluster is lost, the clients are not to blame.
            let db = self.access.db;
            let alive = again(async || {
                let read = db.run(|tx, _| async move { tx.get_read_version().await }).await;
                read.map_err(|e| e.error)
            });
            self.access.finished("waiting for its clients", alive).await?;
        }
        Ok(())
    }

    async fn final_state(&self) -> Result<Result<Vec<Replica>, String>, RunError> {
        let read = again(async || self.access.site.read(self.access.db).await);
        let (log, rows) = self.access.finished("reading its log", read).await?;
        self.history.get_or_init(|| self.access.history.history(&log));
        let range = KeyRange::new(Bytes::new(), Bytes::from_static(b"\xff"));
        Ok(Ok(vec![Replica { server: "the cluster".to_owned(), range, rows }]))
    }

    fn history<T>(&self, read: impl FnOnce(&History) -> T) -> T {
        read(self.history.get_or_init(History::default))
    }

    async fn close(
        self,
        plan: &Plan,
        operations: &[Vec<Operation<AnyValue>>],
        _: &[Replica],
        mut result: RunResult,
    ) -> RunResult {
        let deaths = self.access.deaths.load(Ordering::Relaxed);
        let departures = self.access.departures.load(Ordering::Relaxed);
        let struck = [(Family::ClientDeath, deaths), (Family::Departure, departures)];
        result.faults.extend(struck.into_iter().filter(|(_, times)| *times > 0));
        result.counters.faults = deaths + departures;
        if self.access.conditions.tell {
            let ended = self.now();
            let history = self.history(|history| {
                let machine = |_| String::new();
                let recorded = runner::Recorded { history, events: &[], ended, machine: &machine };
                runner::with_witness(plan, operations, &recorded, &result.findings)
            });
            result.history = Some(Box::new(history));
        }
        result
    }
}

/// Ends a run of [`perform`] on this thread, and records the claims of layers and workloads.
pub fn run(performed: impl Future<Output = Result<RunResult, RunError>>) -> Result<RunResult, RunError> {
    crate::run::runner::supervised(|| futures::executor::block_on(performed))
}
