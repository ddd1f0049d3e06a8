//! The calls: each named, with its own transaction, and bounded in time and memory.

use crate::allocations;
use futures::future::{Either, FutureExt, select};
use shaketable_layers::{
    once::Outcome,
    points,
    tx::{Database, RetryError, RunError, Transaction},
};
use shaketable_sim::{
    client::{SimDatabase, SimTransaction},
    seed::Stream,
};
use std::{
    fmt::{Debug, Display},
    future::Future,
    time::Duration,
};

/// So long a call may take, in virtual time: some of them wait for a second by themselves.
const PATIENCE: Duration = Duration::from_secs(60);

/// So much memory a call may take. What is stored is a few hundred kilobytes at most; a scan of a vector returns
/// up to a million holes, 32 bytes each.
const MEMORY: isize = 64 << 20;

/// More pages than there are rows.
const PAGES: usize = 100;

/// The calls of one case.
pub struct Calls {
    pub db: SimDatabase,
    /// Whether transactions are committed, so that calls meet what earlier ones have made of the damage.
    commits: bool,
    /// The version at which the damage is there.
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

    /// Calls a function in a transaction of its own.
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

    /// Calls a function that returns a page, and again from where that ends, until there is none.
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

    /// Calls a function that makes transactions of its own.
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

    /// Calls a function, and fails unless it ends with an answer or with the layer's own error. Where what calls do
    /// stays, some are left out, so that each comes first now and then.
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
        // On the heap: without optimization a future is moved once for each function it passes.
        let ended = select(Box::pin(points::in_operation(body)), self.db.env().sleep(PATIENCE)).await;
        match ended {
            // What is answered can be shown, whatever it holds.
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
