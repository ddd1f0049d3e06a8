//! Threads of a real client are preempted: replies are learned of late. The recorded order must hold all the same.

use super::{
    recorded::{Recorded, SharedHistory},
    site::Site,
};
use crate::{
    calm,
    judges::{Evidence, Truth, real_time},
    pass_on::pass_on,
};
use bytes::Bytes;
use futures::{
    FutureExt,
    future::{BoxFuture, join},
};
use shaketable_layers::tx::{
    ConflictRangeType, Database, DatabaseOption, Env, Error,
    Isolation::{self, Serializable},
    KeySelector, MutationType, RangeBatch, RangeOption, Result, Transaction, TransactionOption, Turns,
};
use shaketable_sim::{client::SimDatabase, history::ClientId};
use std::{future::Future, sync::Arc, time::Duration};

/// How late the reply to a read is learned of.
const LATE: u64 = 20;

/// A database whose client learns of the replies to `get` late, as from FoundationDB's client: a reply that is there stays
/// there, also if its transaction is reset meanwhile.
#[derive(Clone)]
struct Preempted(SimDatabase);

#[derive(Clone)]
struct Late<T> {
    inner: T,
    env: Env,
}

impl Database for Preempted {
    type Transaction = Late<<SimDatabase as Database>::Transaction>;

    fn create_transaction(&self) -> Result<Self::Transaction> {
        Ok(Late { inner: self.0.create_transaction()?, env: self.0.env().clone() })
    }

    fn set_option(&self, option: DatabaseOption) -> Result<()> {
        self.0.set_option(option)
    }

    fn env(&self) -> &Env {
        self.0.env()
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

    pass_on! {
        <T> inner:
            set, clear, clear_range, atomic_op, add_conflict_range, watch, get_read_version, set_read_version,
            get_committed_version, get_versionstamp, get_approximate_size, get_estimated_range_size_bytes,
            get_range_split_points, get_addresses_for_key, get_tag_throttled_duration, get_total_cost, set_option,
            commit, on_error, reset, cancel
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
        let client =
            |id| Recorded::new(Preempted(db.clone()), site.data(), site.log(), ClientId(id), history.clone());
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
