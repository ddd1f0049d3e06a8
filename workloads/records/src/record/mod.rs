//! `record`: records of two types in one store of the Record Layer, with indexes of all kinds.
//!
//! Clients save, insert, update and delete records whose primary keys they share: a record replaces one of
//! the other type, unless primary keys begin with the type. Records are deleted one by one, by the first
//! columns of their primary keys, and all at once; a few are so large that they take several rows. They are
//! loaded, and listed by their primary keys and by each index, in pages of any size, and aggregates of
//! several groups are evaluated. Indexes are disabled, and the store is opened with later meta-data, which
//! removes one index and adds another. The keys of unique indexes have nulls, and some nulls are compared and
//! others not.
//!
//! Several calls are done in one transaction, some in one record context, others each in its own, and with an
//! operation record. At every version each index must be the projection of the records, computed here from
//! plain records; the unique indexes must be unique; the header and the states of indexes must be what they
//! should be; and there must be no other row. The version of a record must be the versionstamp of its last
//! write.

mod client;
mod custom;
mod faulty;
mod indexes;
mod layout;
mod model;
mod operations;
mod plain;
mod planted;
mod ranked;
mod refusals;
mod scans;
mod schema;
mod stored;

pub use model::{Kept, Model, State};
pub use operations::{Answer, Check, End, Listed, Op, Paging, Span, Target, Told};
pub use plain::{Body, Of, Part, Place, Record};
pub use schema::{Mistake, Schema};

use crate::{beside, record_shared::layout::part, shared};
use bytes::Bytes;
use client::{Stores, perform, perform_all};
use futures::FutureExt;
use indexes::{Definition, definitions};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    specimen::{self, At, Recorded, Specimen, join},
    workload::{Bug, Outcome},
};
use shaketable_record::{
    error::Error,
    store::{RecordContext, RecordStore, describe_key, describe_value},
};
use shaketable_sim::seed::Stream;
use shaketable_tx::{
    self as tx, Database, Db, Env, Isolation, Transaction, Tx,
    once::{self, Session},
};
use std::{fmt::Debug, future::Future, ops::Range};

/// How a context ends within a transaction that somebody else commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It gives its entries to the transaction.
    Flush,
    /// It is closed.
    Close,
    /// It is dropped.
    Drop,
}

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Records {
    schema: Schema,
    /// The version of the application, in the store's header.
    user: Option<i32>,
    /// Whether some open the store without a version of the application.
    forgets: bool,
    /// Whether there is a store from the beginning.
    created: bool,
    /// How many shelves, numbers on them and skus are used.
    shelves: usize,
    ids: usize,
    skus: usize,
    /// Whether some records take several rows.
    large: bool,
    /// Whether indexes are disabled, and whether the store is opened with later meta-data.
    disables: bool,
    upgrades: bool,
    /// Whether all records are often deleted at once.
    wipes: bool,
    /// Whether records are saved as messages with a descriptor.
    dynamic: bool,
    /// Whether the calls of a transaction are done in one context, and whether each of them opens the store
    /// again there.
    shares: bool,
    reopens: bool,
    /// Whether a transaction that opens the store for each of its calls does so before the first of them.
    opens_first: bool,
    ending: Ending,
    /// The weight of inserts among saves.
    inserts: u32,
    /// The weights of saves, deletions, looks and scans.
    mix: [u32; 4],
    planted: Option<Planted>,
}

impl Records {
    fn definitions(&self) -> Vec<Definition> {
        definitions(&self.schema)
    }

    /// The keys of rows beside the store.
    fn beside(&self) -> Vec<Vec<u8>> {
        // The first one is in the subspace, where a new store refuses to be created.
        beside::of(layout::store().bytes()).split_off(1)
    }

    /// Whether the calls of a transaction need one context: the versions that another context has given
    /// cannot be read.
    fn shares(&self, ops: &[Op]) -> bool {
        self.shares || self.schema.versions && ops.len() > 1
    }
}

/// Whether the calls of a transaction are done side by side: each is one call of the layer, or each opens the
/// store as its first one.
fn joins(env: &Env, ops: &[Op]) -> bool {
    let is_one = |op: &Op| !matches!(op, Op::Scan(_) | Op::ScanIndex(..) | Op::States | Op::Upgrade);
    ops.len() > 1 && ops.iter().all(is_one) && env.random_u64().is_multiple_of(2)
}

/// Performs the calls of a transaction in one context.
#[allow(clippy::manual_async_fn, reason = "a plain async fn is not seen to be Send (rust-lang/rust#100013)")]
fn together<'a>(
    config: &'a Records,
    stores: &'a Stores,
    tx: Tx,
    env: &'a Env,
    ops: &'a [Op],
) -> impl Future<Output = Result<Vec<Answer>, Error>> + Send + 'a {
    async move {
        let context = RecordContext::within(tx.clone());
        let answers = perform_all(config, stores, &context, env, ops).await;
        answers.and_then(|answers| config.end(context).map(|()| answers))
    }
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Records>>()
}

impl Specimen for Records {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "record";
    const ABOUT: &'static str = "records of two types in one store: every index is the projection of the records, and unique ones are unique";
    const CHECKS_LIMITS: bool = true;

    /// A save changes fifteen indexes: fewer transactions take as long as those of other workloads.
    const TRANSACTIONS: Range<u64> = 8..30;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "record: a record is split over several rows",
            "record: a record of another type is replaced",
            "record: a store is opened with later meta-data",
            "record: a unique index refuses a key",
            "record: the entry of an incomplete version is taken back",
            "record: the rows of the old record are not all overwritten",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Records {
        let typed = rng.chance(0.3);
        let versions = rng.chance(0.5);
        let mut drawn = Records {
            schema: Schema {
                typed,
                prefix: rng.range(0..if typed { 3 } else { 2 }) as usize,
                versions,
                splits: rng.chance(0.9),
                indexed: rng.chance(0.9),
                mistake: None,
            },
            user: *rng.pick(&[None, Some(0), Some(300)]),
            forgets: false,
            created: rng.chance(0.8),
            shelves: rng.range(1..5) as usize,
            ids: rng.range(1..5) as usize,
            skus: rng.range(1..6) as usize,
            large: rng.chance(0.3),
            disables: rng.chance(0.2),
            upgrades: rng.chance(0.3),
            wipes: rng.chance(0.2),
            dynamic: rng.chance(0.5),
            shares: rng.chance(0.5),
            reopens: rng.chance(0.5),
            opens_first: rng.chance(0.5),
            ending: *rng.pick(&[Ending::Flush, Ending::Close, Ending::Drop]),
            inserts: *rng.pick(&[1, 3, 30]),
            mix: [rng.range(2..8), rng.range(1..4), rng.range(1..5), rng.range(1..5)].map(|w| w as u32),
            planted: None,
        };
        // Who creates a store gives it its version.
        drawn.forgets = rng.chance(0.5) && drawn.created && drawn.user.is_some();
        if let Some(planted) = bug.and_then(Planted::named) {
            drawn = drawn.plant(planted);
        }
        // Nothing is disabled, removed or added then.
        drawn.disables &= drawn.schema.indexed;
        drawn.upgrades &= drawn.schema.indexed;
        drawn
    }

    fn keys(&self) -> Vec<Bytes> {
        let parts = [part::RECORDS, part::INDEXES].map(|number| layout::part_of(number).into_bytes());
        let indexes = self.definitions().into_iter().map(|index| layout::index(index.number).into_bytes());
        parts.into_iter().chain(indexes).map(Bytes::from).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        self.drawn()
    }

    /// Not so, because opening the store may write its header.
    fn refuses_cleanly(_: &Op, _: &Error) -> bool {
        false
    }

    fn is_read_only(op: &Op) -> bool {
        op.is_read_only()
    }

    fn describe_key(&self, key: &[u8]) -> Option<String> {
        describe_key(&layout::store(), &self.schema.meta_data()[1], key)
    }

    fn describe_value(&self, key: &[u8], value: &[u8]) -> Option<String> {
        describe_value(&layout::store(), &self.schema.meta_data()[1], key, value)
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        beside::plant(db, &self.beside()).await?;
        if !self.created {
            return Ok(());
        }
        let [first, _] = &self.stores();
        let created = db.run(|tx, _| async move { first.create(&RecordContext::within(tx)).await.map(drop) });
        created.await.map_err(|e| match e.error {
            Error::Fdb(error) => error,
            _ => tx::Error::INTERNAL_ERROR,
        })
    }

    async fn perform(&self, tx: &Tx, env: &Env, op: &Op, _: Isolation) -> Result<Answer, Error> {
        let stores = self.stores();
        // Each opens a store first: it is made of several calls.
        let tx = tx.writing().await;
        let mut answers = together(self, &stores, tx, env, std::slice::from_ref(op)).await?;
        Ok(answers.swap_remove(0))
    }

    async fn apply(
        &self,
        _: Option<&str>,
        session: &mut Session<Db>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        if let Some(planted) = self.planted
            && let Some(outcome) = planted::apply(planted, self, session, ops).await
        {
            return Some(outcome);
        }
        if !self.shares(ops) {
            return None;
        }
        let (db, stores) = (session.database().clone(), &self.stores());
        let env = db.env();
        if ops.iter().all(Op::is_read_only) {
            let run = db.run(|tx, _| async move { together(self, stores, tx, env, ops).await });
            return Some(specimen::ran(run.await));
        }
        // A look that comes first does not create the store, which a session's run on the store does.
        if self.reopens || ops.contains(&Op::Upgrade) || ops[0].is_read_only() {
            let run =
                session.apply(|tx| async move { together(self, stores, tx, env, ops).await.map(Recorded) });
            return Some(specimen::told(run.await));
        }
        let [first, later] = stores;
        let body = |store: RecordStore<Tx>| async move {
            let answers = match joins(env, ops) {
                true => join(ops.iter().map(|op| perform(self, &store, env, op).boxed()).collect()).await,
                false => shared::in_order(ops, |op| Box::pin(perform(self, &store, env, op))).await,
            };
            answers.map(Recorded)
        };
        Some(specimen::told(match first.run(session, body).await {
            once::Outcome::Refused(Error::StaleMetaData { .. }) => later.run(session, body).await,
            outcome => outcome,
        }))
    }

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
    }

    fn model(&self) -> Model {
        Model::new(State { created: self.created, ..State::default() })
    }

    fn replay(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
        self.replayed(model, op, at)
    }

    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Model, Misfit>> {
        Ok(self.read(tx).await?.map_err(Misfit::from))
    }
}
