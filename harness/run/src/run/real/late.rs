//! What FoundationDB's client does and the simulated one does not: replies are learned of late, because
//! threads are preempted, and its own fault injection ends calls with 4100.

use super::{
    log::SharedHistory,
    recorded::Recorded,
    site::Site,
    testbed::{Conditions, perform},
};
use crate::{
    describe::misfit::Misfit,
    describe::pass_on::pass_on,
    describe::workload::{Outcome, Step, Workload},
    judge::{Evidence, Truth, real_time},
    run::calm,
    run::plan::{Demands, Plan},
};
use bytes::Bytes;
use futures::{
    FutureExt,
    future::{BoxFuture, join},
};
use proptest::strategy::{BoxedStrategy, Just, Strategy};
use serde::{Deserialize, Serialize};
use shaketable_sim::{
    ids::ClientId,
    seed::{Seed, Stream},
};
use shaketable_tx::{
    ConflictRangeType, Database, DatabaseOption, Db, Env, Error,
    Isolation::{self, Serializable},
    KeySelector, MutationType, RangeBatch, RangeOption, Result, StreamingMode, Transaction,
    TransactionOption, Turns, Tx,
};
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    time::Duration,
};

/// How late the reply to a read is learned of.
const LATE: u64 = 20;

/// A database whose client learns of the replies to `get` late, as from FoundationDB's client: a reply that
/// is there stays there, also if its transaction is reset meanwhile.
#[derive(Clone)]
struct Preempted {
    db: Db,
    /// The number of the commit that ends with 4100 and does nothing, counted down; negative for none.
    failing: Arc<AtomicI32>,
}

impl Preempted {
    fn new(db: Db) -> Preempted {
        Preempted { db, failing: Arc::new(AtomicI32::new(-1)) }
    }
}

#[derive(Clone)]
struct Late<T> {
    inner: T,
    env: Env,
    failing: Arc<AtomicI32>,
}

impl Database for Preempted {
    type Transaction = Late<<Db as Database>::Transaction>;

    fn create_transaction(&self) -> Result<Self::Transaction> {
        let inner = self.db.create_transaction()?;
        Ok(Late { inner, env: self.db.env().clone(), failing: self.failing.clone() })
    }

    fn set_option(&self, option: DatabaseOption) -> Result<()> {
        self.db.set_option(option)
    }

    fn env(&self) -> &Env {
        self.db.env()
    }
}

impl<T: Transaction> Transaction for Late<T> {
    pass_on! { <T> inner: turns }

    fn with_turns(&self, turns: Turns) -> Self {
        Late { inner: self.inner.with_turns(turns), ..self.clone() }
    }

    fn get(
        &self,
        key: &[u8],
        isolation: Isolation,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<T> {
        let (read, late) = (self.inner.get(key, isolation), self.env.sleep(Duration::from_millis(LATE)));
        async move {
            let value = read.await;
            late.await;
            value
        }
    }

    fn get_key(
        &self,
        selector: &KeySelector,
        isolation: Isolation,
    ) -> impl Future<Output = Result<Bytes>> + Send + use<T> {
        self.inner.get_key(selector, isolation)
    }

    fn get_range(
        &self,
        range: &RangeOption,
        iteration: usize,
        isolation: Isolation,
    ) -> impl Future<Output = Result<RangeBatch>> + Send + use<T> {
        self.inner.get_range(range, iteration, isolation)
    }

    fn commit(&self) -> impl Future<Output = Result<()>> + Send + use<T> {
        let fails = self.failing.fetch_sub(1, Ordering::SeqCst) == 1;
        let commit = (!fails).then(|| self.inner.commit());
        async move {
            match commit {
                Some(commit) => commit.await,
                None => Err(Error::INTERNAL_ERROR),
            }
        }
    }

    pass_on! {
        <T> inner:
            set, clear, clear_range, atomic_op, add_conflict_range, watch, get_read_version, set_read_version,
            get_committed_version, get_versionstamp, get_approximate_size, get_estimated_range_size_bytes,
            get_range_split_points, get_addresses_for_key, get_tag_throttled_duration, get_total_cost, set_option,
            on_error, reset, cancel
    }
}

type Client = Recorded<Preempted>;

/// Performs `work` with two clients, and judges the order of what they recorded.
fn judged<F>(work: fn(Client, Client) -> F) -> std::result::Result<(), String>
where
    F: Future<Output = ()> + 'static,
{
    calm::simulate(move |db| async move {
        let site = Site::new("run/").expect("a prefix");
        let history = Arc::new(SharedHistory::default());
        let client = |id| {
            Recorded::new(Preempted::new(db.clone()), site.data(), site.log(), ClientId(id), history.clone())
        };
        work(client(0), client(1)).await;
        let (log, _) = site.read(&db).await.expect("a calm cluster answers");
        let history = history.history(&log);
        assert!(history.attempts.iter().flatten().filter(|attempt| attempt.fresh).count() >= 2);
        let truth = Truth::of(&history);
        let judgement = real_time::judge(&Evidence { history: &history, truth: &truth, replicas: &[] });
        judgement.map_err(|objection| objection.message)
    })
}

async fn pause(client: &Client, milliseconds: u64) {
    client.env().sleep(Duration::from_millis(milliseconds)).await;
}

async fn commit(client: &Client) {
    let done = client.run(|tx, _| async move {
        tx.set(b"a", b"");
        Ok::<_, Error>(())
    });
    done.await.expect("a commit");
}

/// The attempt after `end` has ended one whose read is answered then reads after the other client's commit.
async fn read_again(
    one: Client,
    two: Client,
    end: fn(<Client as Database>::Transaction) -> BoxFuture<'static, ()>,
) {
    let tx = one.create_transaction().expect("a transaction");
    let read = tx.get(b"a", Serializable);
    let next = async {
        pause(&one, LATE / 2).await;
        end(tx.clone()).await;
        pause(&one, LATE).await;
        commit(&two).await;
        pause(&one, 1).await;
        tx.get(b"b", Serializable).await.expect("a calm cluster answers");
    };
    let _ = join(read, next).await;
}

#[test]
fn a_reply_that_is_learned_of_after_a_reset_is_not_in_the_next_attempt() {
    assert_eq!(judged(|one, two| read_again(one, two, |tx| async move { tx.reset() }.boxed())), Ok(()));
}

#[test]
fn nor_one_that_is_learned_of_while_on_error_ends_the_attempt() {
    fn end(tx: <Client as Database>::Transaction) -> BoxFuture<'static, ()> {
        async move { tx.on_error(Error::NOT_COMMITTED).await.expect("it is retried") }.boxed()
    }
    assert_eq!(judged(|one, two| read_again(one, two, end)), Ok(()));
}

/// The next attempt then has the version that the read has requested while its attempt backed off.
#[test]
fn a_read_in_flight_at_on_error_requests_the_version_of_the_next_attempt() {
    let judgement = judged(|one, two| async move {
        let tx = one.create_transaction().expect("a transaction");
        tx.get_read_version().await.expect("a version");
        (0..60).step_by(2).for_each(|n| tx.set(format!("r{n:02}").as_bytes(), b""));
        let range = RangeOption { mode: StreamingMode::Exact, ..RangeOption::new("r", "s").limit(100) };
        let read = tx.get_range(&range, 1, Serializable);
        let next = async {
            let meanwhile = async {
                pause(&two, 3).await;
                commit(&two).await;
            };
            let (retried, ()) = join(tx.on_error(Error::TRANSACTION_TOO_OLD), meanwhile).await;
            retried.expect("it is retried");
            pause(&one, 1).await;
            tx.get(b"b", Serializable).await.expect("a calm cluster answers");
        };
        let _ = join(read, next).await;
        let _ = two.create_transaction().expect("a transaction").get(b"a", Serializable).await;
    });
    assert_eq!(judgement, Ok(()));
}

#[test]
fn a_version_that_a_commit_or_a_watch_has_requested_is_as_old_as_that() {
    let by_commit = judged(|one, two| async move {
        let tx = one.create_transaction().expect("a transaction");
        tx.set(b"c", b"");
        tx.commit().await.expect("a commit");
        commit(&two).await;
        pause(&one, 1).await;
        tx.get_read_version().await.expect("the version of the commit");
        let tx = one.create_transaction().expect("a transaction");
        tx.get(b"a", Serializable).await.expect("a calm cluster answers");
        tx.get(b"b", Serializable).await.expect("a calm cluster answers");
        let _ = two.create_transaction().expect("a transaction").get(b"a", Serializable).await;
    });
    assert_eq!(by_commit, Ok(()));
    let by_watch = judged(|one, two| async move {
        let tx = one.create_transaction().expect("a transaction");
        let _watch = tx.watch(b"w");
        pause(&one, 5).await;
        commit(&two).await;
        pause(&one, 1).await;
        tx.get(b"a", Serializable).await.expect("a calm cluster answers");
        let _ = two.create_transaction().expect("a transaction").get(b"a", Serializable).await;
    });
    assert_eq!(by_watch, Ok(()));
}

/// A workload whose setup takes two transactions, and that has no operations.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Two;

impl Workload for Two {
    type Op = ();
    type Answer = ();
    type Session = ();
    type Model = ();

    const NAME: &'static str = "two";
    const ABOUT: &'static str = "two keys";

    fn draw(_: &mut Stream, _: Option<&str>) -> Two {
        Two
    }

    fn clients(&self) -> usize {
        1
    }

    fn keys(&self) -> Vec<Bytes> {
        Vec::new()
    }

    fn operations(&self, _: usize) -> BoxedStrategy<Vec<()>> {
        Just(Vec::new()).boxed()
    }

    /// Refuses keys that are there.
    async fn setup(&self, db: &Db) -> Result<()> {
        for key in [b"a", b"b"] {
            let put = db.run(|tx, _| async move {
                match tx.get(key, Serializable).await? {
                    None => tx.set(key, b""),
                    Some(_) => return Err(Error::CLIENT_INVALID_OPERATION),
                }
                Ok(())
            });
            put.await.map_err(|e| e.error)?;
        }
        Ok(())
    }

    async fn open(&self, _: &Db, _: usize) -> Result<()> {
        Ok(())
    }

    async fn apply(&self, _: &mut (), _: &()) -> Outcome<()> {
        Outcome::Answered(())
    }

    fn model(&self) {}

    fn step(&self, _: &mut (), _: &Step<'_, Two>) -> std::result::Result<(), Misfit> {
        Ok(())
    }

    async fn audit(&self, _: &Tx) -> Result<std::result::Result<(), Misfit>> {
        Ok(Ok(()))
    }

    async fn check(&self, db: &Db, _: &()) -> Result<std::result::Result<(), Misfit>> {
        let all = &RangeOption::new(&b""[..], &b"\xff"[..]);
        let read = db.run(|tx, _| async move { tx.get_range_all(all.clone(), Serializable).await });
        let rows = read.await.map_err(|e| e.error)?;
        Ok(if rows.len() == 2 { Ok(()) } else { Err(format!("{} keys", rows.len()).into()) })
    }
}

#[test]
fn a_setup_that_the_injection_ends_begins_again() {
    // The first commit claims the prefix.
    for failing in 2..4 {
        let result = calm::simulate(move |db| async move {
            let db = Preempted { db, failing: Arc::new(AtomicI32::new(failing)) };
            let site = Site::new("run/").expect("a prefix");
            let plan = Plan::draw::<Two>(Seed(0), &Demands::default());
            let result =
                perform(&plan, &|| Ok(Db::new(db.clone())), &site, Conditions::new(false, &|| false)).await;
            assert!(db.failing.load(Ordering::SeqCst) <= 0, "it was injected");
            result.map(|result| result.findings)
        });
        assert_eq!(result.map_err(|error| error.to_string()), Ok(Vec::new()), "{failing}");
    }
}
