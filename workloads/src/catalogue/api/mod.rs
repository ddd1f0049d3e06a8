//! `api`: random calls of the transaction API by several clients, compared with an in-memory model.
//!
//! Each operation is one transaction of random calls: point reads, selectors, ranges in every mode and
//! direction, sets, clears, every atomic operation, versionstamped keys and values, and conflict ranges. Some
//! transactions disable read-your-writes. Some calls use a region of the client's own, others a region that
//! all clients share. Some handles are used for something else and reset first. Transactions have options
//! that must not change what their calls return, and some options that end a transaction early. What the
//! reads of a transaction return must be what the model returns when the committed operations are replayed in
//! commit order.
//!
//! Snapshot reads are restricted to the client's own region, which no other client writes; there they have
//! exactly one correct result too. Every transaction that writes has an operation record, so that it takes
//! effect once, and no attempt of an earlier operation commits after a later operation.

mod client;
mod layout;
mod model;
mod operations;
mod planted;

pub use client::Client;
pub use model::Model;
pub use operations::{
    Answer, Asked, Before, Call, Choice, Data, Op, Range, Seen, Selector, Spot, Wake, Waker,
};

use bytes::Bytes;
use client::{wake, watch};
use layout::{KEYS, Layout};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    models::keyspace::Space,
    sessions,
    workload::{Bug, Outcome, Step, Workload},
};
use shaketable_sim::{config::ClusterBug, proto::Mutation, seed::Stream};
use shaketable_tx::{Database, Db, Error, Isolation, KeySelector, Result, Transaction, Tx, once::Session};
use std::{ops::Range as Numbers, sync::Arc};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Api {
    clients: u8,
    operations: Numbers<usize>,
    /// The maximum number of calls in a transaction.
    calls: usize,
    /// The weight of each kind of call, in the order of [`Call`]; in some seeds kinds are left out.
    weights: [u32; 15],
    /// The probability that a call uses the shared region, in percent.
    shared: u32,
    /// How many of the numbered keys calls use. If they are few, clients often meet.
    keys: u8,
    /// How often the bytes of a value are repeated at most. Large values divide ranges into several batches.
    repeat: u16,
    /// Whether some transactions have limits that end them early.
    limited: bool,
    /// The timeout that clients set on their database, in milliseconds.
    timeout: Option<i32>,
    /// Whether clients wake watches of their own.
    wakes: bool,
    /// Whether a client requests a causally risky read version beside that of each transaction: a proxy may
    /// have both in one batch.
    risky_beside: bool,
    planted: Option<Planted>,
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Api>()
}

impl Workload for Api {
    type Op = Op;
    type Answer = Answer;
    type Session = Client;
    type Model = Model;

    const NAME: &'static str = "api";
    const ABOUT: &'static str = "random transactions answer as an in-memory model does";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn cluster_bugs() -> &'static [ClusterBug] {
        use ClusterBug::*;
        &[
            ResolverForgetsStep,
            ResolverNarrowsWrites,
            ResolverSplitsRanges,
            ResolverForgetsEarly,
            ResolverForgetsEnd,
            ProxyAsksOneResolver,
            ProxyLeavesStampedKeys,
            ProxyCutsTransactions,
            StorageAtomicsWakeNobody,
            StorageClearsWakeNobody,
            StorageSetsWakeNobody,
            StorageWatchMissesPast,
            StorageKeepsWatches,
            StorageFetchesLess,
            StorageReadsLatest,
            StorageReadsEarly,
            StorageMissesBorder,
            StorageClearsLess,
            ClientDeniesCommit,
            ClientReadsCleared,
            ClientForgetsEqual,
            ClientMergesComparisons,
            ProxySkipsChecks,
        ]
    }

    /// What a client does to its watches is no effect.
    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        let wakes = |mutation: &Mutation| match mutation {
            Mutation::Set(key, _) | Mutation::Atomic(key, ..) => key.starts_with(layout::WOKEN),
            Mutation::ClearRange(range) => range.begin.starts_with(layout::WOKEN),
        };
        !sessions::is_fence(mutations) && !mutations.iter().all(wakes)
    }

    fn points() -> &'static [&'static str] {
        &["api: a watch fires"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Api {
        // Reads and sets always occur. In each seed some of the other kinds are left out, and some are
        // frequent.
        let mut weights = [8, 2, 6, 1, 6, 2, 2, 1, 4, 1, 1, 2, 1, 1, 1];
        for kind in [1, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14] {
            weights[kind] *= *rng.pick(&[0, 1, 1, 3]);
        }
        let most = rng.range(8..32) as usize;
        Api {
            clients: rng.range(1..7) as u8,
            operations: most / 2..most,
            calls: *rng.pick(&[2, 4, 6, 9, 9, 40]),
            weights,
            shared: *rng.pick(&[20, 50, 90]),
            keys: *rng.pick(&[2, 5, KEYS]),
            repeat: *rng.pick(&[1, 20, 300]),
            limited: rng.chance(0.2),
            timeout: sessions::draw_timeout(rng),
            wakes: rng.chance(0.5),
            risky_beside: rng.chance(0.5),
            planted: bug.and_then(Planted::named),
        }
    }

    fn clients(&self) -> usize {
        self.clients.into()
    }

    fn keys(&self) -> Vec<Bytes> {
        // Borders often divide what all clients use.
        let layout = Layout::new(self.clients());
        let shared = layout.regions[0].iter().cloned();
        let own = layout.regions[1..].iter().flatten().step_by(3).take(usize::from(KEYS)).cloned();
        shared.chain(own).collect()
    }

    fn operations(&self, _: usize) -> BoxedStrategy<Vec<Op>> {
        self.drawn()
    }

    fn length(&mut self) -> Option<&mut Numbers<usize>> {
        Some(&mut self.operations)
    }

    async fn setup(&self, db: &Db) -> Result<()> {
        let initial = &Layout::initial();
        let filled = db.run(|tx, _| async move {
            initial.iter().for_each(|(key, value)| tx.set(key, value));
            Ok::<_, Error>(())
        });
        filled.await.map_err(|e| e.error)
    }

    async fn open(&self, db: &Db, client: usize) -> Result<Client> {
        let session = sessions::open(db, client, self.timeout).await?;
        let layout = Arc::new(Layout::new(self.clients()));
        Ok(Client { session, client, layout, attempts: Arc::default() })
    }

    async fn apply(&self, client: &mut Client, op: &Op) -> Outcome<Answer> {
        let outcome = self.transact(client, op).await;
        // Not after a transaction that only reads: its place in the history is where one of its transactions
        // read.
        if let (Outcome::Answered(_), Some(at), false) = (&outcome, op.watch, op.reads_only()) {
            let key = client.layout.key(client.client, at).clone();
            watch(client.session.database(), &key).await;
        }
        if let (Outcome::Answered(_), Some(how), false) = (&outcome, op.wake, op.reads_only())
            && !wake(client.session.database(), client.client, how).await
        {
            return Outcome::Violated(format!("a watch that {how:?} must have woken waits"));
        }
        outcome
    }

    async fn resolve_dropped(&self, client: &mut Client) {
        sessions::resolve_dropped(&mut client.session, self.timeout).await;
    }

    async fn resolve(&self, client: &mut Client, _: &Op, error: Error) -> Outcome<Answer> {
        let Client { session, attempts, .. } = client;
        let ask = async |session: &mut Session<Db>, pending| {
            let fate = session.resolve::<u64>(pending).await?;
            Ok(fate.map(|n| self.answer(&mut attempts.lock(), n)))
        };
        sessions::resolve_unknown(session, self.timeout, error, ask).await
    }

    fn model(&self) -> Model {
        Model { space: Layout::initial(), layout: Layout::new(self.clients()) }
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        Ok(self.follow(model, step)?)
    }

    async fn audit(&self, tx: &Tx) -> Result<Result<(), Misfit>> {
        // The only invariant that holds at every version: the margins are unchanged.
        let first = tx.get_key(&KeySelector::first_greater_or_equal("api/"), Isolation::Snapshot).await?;
        let last = tx.get_key(&KeySelector::last_less_than("api0"), Isolation::Snapshot).await?;
        let margins = first == "api/!0" && last == "api/~7";
        Ok(if margins {
            Ok(())
        } else {
            Err(format!("the keyspace begins at {first:?} and ends at {last:?}").into())
        })
    }

    async fn check(&self, db: &Db, Model { space, .. }: &Model) -> Result<Result<(), Misfit>> {
        let read =
            db.run(|tx, _| async move { tx.get_range_all(Layout::whole(), Isolation::Serializable).await });
        let found: Space = read.await.map_err(|e| e.error)?.into_iter().map(|r| (r.key, r.value)).collect();
        let differs = found.keys().chain(space.keys()).find(|key| found.get(*key) != space.get(*key));
        Ok(match differs {
            Some(key) => Err(format!(
                "{key:?} has the value {:?}, the committed operations leave {:?}",
                found.get(key),
                space.get(key)
            )
            .into()),
            None => Ok(()),
        })
    }
}
