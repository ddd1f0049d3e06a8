//! The calls: each has a name and its own transaction, and is limited in time and memory.

use crate::allocations;
use futures::future::{Either, FutureExt, select};
use shaketable_sim::{
    client::{SimDatabase, SimTransaction},
    seed::Stream,
};
use shaketable_tx::{Database, RetryError, RunError, Transaction, once::Outcome, points};
use std::{
    fmt::{Debug, Display},
    future::Future,
    time::Duration,
};

/// The time limit of a call, in virtual time: some calls themselves wait for a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// The memory limit of a call. The stored data is at most a few hundred kilobytes; a scan of a vector returns
/// up to a million holes of 32 bytes each.
const MEMORY: isize = 64 << 20;

/// More pages than there are rows.
const PAGES: usize = 100;

/// The calls of one case.
pub struct Calls {
    pub db: SimDatabase,
    /// Whether transactions are committed, so that calls see the effects of earlier calls on the damaged
    /// data.
    commits: bool,
    /// The version at which the damaged data is stored.
    version: i64,
    draws: Stream,
}

impl Calls {
    pub fn new(db: SimDatabase, version: i64, mut draws: Stream) -> Calls {
        Calls { db, commits: draws.chance(0.3), version, draws }
    }

    /// Whether to make calls that take long.
    pub fn seldom(&mut self) -> bool {
        self.draws.chance(0.1)
    }

    /// Calls a function in its own transaction.
    pub async fn tx<A, E, F>(&mut self, name: &str, body: impl FnOnce(SimTransaction) -> F)
    where
        F: Future<Output = Result<A, E>>,
        A: Debug,
        E: RetryError + Debug + Display,
    {
        let tx = self.db.create_transaction().expect("a transaction");
        if !self.commits {
            tx.set_read_version(self.version);
        }
        let (ended, commits) = (body(tx.clone()), self.commits);
        let ended = async move {
            let answer = ended.await?;
            if commits {
                tx.commit().await?;
            }
            Ok(answer)
        };
        self.call::<A, E, _>(name, ended).await;
    }

    /// Calls a function that returns a page, and repeats it from the end of each page until there are no
    /// more.
    pub async fn pages<P, E>(
        &mut self,
        name: &str,
        page: impl AsyncFn(SimTransaction, Option<P>) -> Result<Option<P>, E>,
    ) where
        P: Debug + Clone,
        E: RetryError + Debug + Display,
    {
        let (db, version) = (self.db.clone(), self.version);
        let pages = async move {
            let mut last = None;
            for _ in 0..PAGES {
                let tx = db.create_transaction().expect("a transaction");
                tx.set_read_version(version);
                match page(tx, last.clone()).await? {
                    None => return Ok(()),
                    next => last = next,
                }
            }
            panic!("{PAGES} pages are not all, the last one ends at {last:?}")
        };
        self.call::<_, E, _>(name, pages).await;
    }

    /// Calls a function that runs its own transactions.
    pub async fn run<A, E, F>(&mut self, name: &str, body: F)
    where
        F: Future<Output = Result<A, RunError<E>>>,
        A: Debug,
        E: RetryError + Debug + Display,
    {
        self.call(name, async move { body.await.map_err(|e| e.error) }).await;
    }

    /// Calls a function of a session.
    pub async fn once<A, E, F>(&mut self, name: &str, body: F)
    where
        F: Future<Output = Outcome<A, E>>,
        A: Debug,
        E: RetryError + Debug + Display,
    {
        let ended = async move {
            match body.await {
                Outcome::Refused(e) => Err(e),
                outcome => Ok(outcome),
            }
        };
        self.call(name, ended.map(|ended: Result<_, E>| ended.map(|outcome| format!("{outcome:?}")))).await;
    }

    /// Calls a function, and fails unless it ends with a result or with the layer's own error. If effects are
    /// committed, some calls are omitted, so that each call is occasionally the first.
    pub async fn call<A, E, F>(&mut self, name: &str, body: F)
    where
        F: Future<Output = Result<A, E>>,
        A: Debug,
        E: RetryError + Debug + Display,
    {
        if self.commits && self.draws.chance(0.5) {
            return;
        }
        allocations::now(name);
        let before = allocations::watch();
        // On the heap: without optimization, a future is moved once for each function that it passes through.
        let ended = select(Box::pin(points::in_operation((0, 0), body)), self.db.env().sleep(PATIENCE)).await;
        match ended {
            // A result can be displayed, whatever it contains.
            Either::Left((Ok(answer), _)) => drop(format!("{answer:?}")),
            Either::Left((Err(error), _)) => {
                drop(format!("{error} {error:?}"));
                if let Some(error) = error.fdb() {
                    panic!("what is stored was asked of FoundationDB: {error}");
                }
            }
            Either::Right(_) => panic!("it does not end within {PATIENCE:?}"),
        }
        let took = allocations::peak() - before;
        assert!(took < MEMORY, "it took {took} bytes");
    }
}
