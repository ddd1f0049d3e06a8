//! `bulk`: a job builds an index over rows while writers change them; a space is built beside the one that is
//! read, and then swapped in.
//!
//! Workers perform a few batches and stop, or die in the middle of a batch, and another worker continues. The
//! index has counts, which reveal a row that was processed twice, and entries, which reveal a row that was
//! left out. Writers maintain the index for the rows that the job has passed: at every version the index
//! covers exactly the rows before the job's cursor.
//!
//! Builders write a space in batches and publish it, or abandon it. Every version that readers can see is
//! complete and of one builder. Each builder keeps a timer beside its last claim, which reveals a build that
//! was given up although its builder was active, also after a recovery, in which versions jump. Some builds
//! are begun, written, observed, published or given up, and cleared in one transaction.

#[cfg(test)]
mod bounds;
mod client;
mod composed;
#[cfg(test)]
mod documents;
mod layout;
mod model;
mod operations;
mod planted;
mod stored;

pub use client::Client;
pub use model::Model;
pub use operations::{Act, ActAnswer, Answer, Looks, Op};

use crate::shared::{check_ended, session_keys};
use bytes::Bytes;
use client::looks;
use foundationdb_tuple::pack;
use layout::{counts, job, job_key, rows, work, workspace, workspace_space};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit, sessions,
    specimen::Recorded,
    workload::{Bug, Outcome, Step, Workload},
};
use shaketable_layers::bulk::Limits;
use shaketable_sim::{proto::Mutation, seed::Stream};
use shaketable_tx::{
    self as tx, Database, Db, Isolation::Serializable, RangeOption, Transaction, Tx, once::Session,
};
use std::{
    ops::{Range, RangeInclusive},
    time::Duration,
};
use stored::stored;

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bulk {
    clients: usize,
    operations: Range<usize>,
    /// The maximum number of rows; most of them exist from the beginning.
    rows: i64,
    /// The number of different values.
    values: i64,
    /// The number of rows in a batch of the job.
    batch: usize,
    /// The approximate number of bytes that a batch may send.
    bytes: i64,
    /// The number of rows in a build, and how many of them are written or read in one transaction.
    build: (i64, usize),
    /// The number of rows that are cleared in one transaction; none means one.
    cleared: usize,
    /// The silence of a builder after which its build is given up, in milliseconds.
    silence: u64,
    /// The number of builds that are observed in one transaction; none means one.
    page: usize,
    /// The pause of builders, and of readers that need several transactions, between two transactions, in
    /// milliseconds.
    pause: u64,
    /// The weights of operations about the job, and about the workspace.
    mix: [u32; 2],
    /// The timeout that clients set on their database, in milliseconds.
    timeout: Option<i32>,
    planted: Option<Planted>,
}

impl Bulk {
    fn limits(&self) -> Limits {
        Limits { rows: self.batch, bytes: self.bytes, time: Duration::from_secs(1) }
    }

    /// The rows of a build, in batches.
    fn batches(&self) -> Vec<Vec<i64>> {
        let rows: Vec<i64> = (0..self.build.0).collect();
        rows.chunks(self.build.1).map(<[i64]>::to_vec).collect()
    }

    /// The silence of a builder after which its build is given up.
    fn silence(&self) -> Duration {
        Duration::from_millis(self.silence)
    }
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Bulk>()
}

impl Workload for Bulk {
    type Op = Op;
    type Answer = Answer;
    type Session = Client;
    type Model = Model;

    const NAME: &'static str = "bulk";
    const ABOUT: &'static str = "an index built in batches beside writers; a space built anew and swapped";

    /// What a worker does consists of many transactions.
    fn effects(&self, op: &Op) -> RangeInclusive<usize> {
        match op {
            Op::Put(..) | Op::Remove(_) | Op::Together(_) | Op::AtOnce(..) => 0..=1,
            _ => 0..=usize::MAX,
        }
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "bulk: a batch leaves rows for the next one",
            "bulk: a reader notices that its build is no longer current",
            "bulk: a build is outdated before it is published",
            "bulk: a builder at work is left alone",
            "bulk: a retired build is cleared in several batches",
        ]
    }

    /// Writes outside of the current build are not visible to readers.
    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        let space = workspace_space();
        let unseen = [1, 2, 3, 4].map(|part| space.subspace(&(part,)));
        !sessions::is_fence(mutations) && !sessions::is_below(&unseen, mutations)
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Bulk {
        let (rows, most) = (rng.range(4..40) as i64, rng.range(8..24) as usize);
        let build = (rng.range(2..20) as i64, rng.range(1..4) as usize);
        let silence = *rng.pick(&[0, 40, 80, 160, 600, 2_000, 2_000, 2_000]);
        // It gives a recovery time to come between two claims.
        let long = (silence / 2).min(2_000 * build.1 as u64 / build.0 as u64);
        Bulk {
            clients: rng.range(2..7) as usize,
            operations: most / 2..most,
            rows,
            values: rng.range(1..4) as i64,
            batch: rng.range(1..8) as usize,
            bytes: *rng.pick(&[300, 1_000, 100_000]),
            build,
            silence,
            cleared: rng.range(0..4) as usize,
            page: rng.range(0..4) as usize,
            pause: *rng.pick(&[0, 3, 15, 60, long, long]),
            mix: *rng.pick(&[[1, 1], [3, 1], [1, 3]]),
            timeout: sessions::draw_timeout(rng),
            planted: bug.and_then(Planted::named),
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        let sources = (0..self.rows).step_by(5).map(|row| rows().pack(&(row,)).into());
        let index = (0..self.values).map(|value| counts().pack(&(value,)).into());
        session_keys(self.clients)
            .chain(sources)
            .chain(index)
            .chain([job_key().into(), workspace_space().pack(&(1,)).into()])
            .collect()
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Op>> {
        self.drawn(client)
    }

    fn length(&mut self) -> Option<&mut Range<usize>> {
        Some(&mut self.operations)
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        let filled = db.run(|tx, _| async move {
            for (row, value) in self.model().rows {
                tx.set(&rows().pack(&(row,)), &pack(&(value,)));
            }
            Ok(())
        });
        filled.await.map_err(|e| e.error)
    }

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Client> {
        Ok(Client { session: sessions::open(db, client, self.timeout).await?, base: None })
    }

    async fn apply_planted(&self, client: &mut Client, op: &Op) -> Option<Outcome<Answer>> {
        planted::apply(self.planted?, self, client, op).await
    }

    async fn apply(&self, client: &mut Client, op: &Op) -> Outcome<Answer> {
        self.perform(client, op).await
    }

    async fn resolve_dropped(&self, client: &mut Client) {
        sessions::resolve_dropped(&mut client.session, self.timeout).await;
    }

    async fn resolve(&self, client: &mut Client, op: &Op, error: tx::Error) -> Outcome<Answer> {
        let base = client.base;
        let ask = async |session: &mut Session<Db>, pending| {
            let answer = match op {
                Op::Put(..) | Op::Remove(_) => session.resolve(pending).await?.map(Answer::Before),
                Op::Again => session.resolve(pending).await?.map(Answer::Again),
                Op::Together(_) => {
                    session.resolve(pending).await?.map(|Recorded(answers)| Answer::Together(answers))
                }
                Op::AtOnce(..) => session.resolve(pending).await?.map(looks),
                _ => session.resolve(pending).await?.map(|()| Answer::Published(base)),
            };
            Ok(answer.map(Outcome::Answered))
        };
        sessions::resolve_unknown(&mut client.session, self.timeout, error, ask).await
    }

    fn model(&self) -> Model {
        // Two rows of three exist.
        let rows = (0..self.rows).filter(|row| row % 3 != 2).map(|row| (row, row % self.values));
        Model { rows: rows.collect(), ..Model::default() }
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        self.follow(model, step)
    }

    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        Ok(stored(tx, self.build.0).await?.map(drop).map_err(Misfit::from))
    }

    /// Runs the job to its end, and clears everything that is not current.
    async fn check(&self, db: &Db, model: &Model) -> tx::Result<Result<(), Misfit>> {
        let workspace = &workspace();
        let cleared = async {
            job().run(db, &self.limits(), work).await?;
            workspace.discard_unchanged(db, Duration::ZERO, 1).await?;
            workspace.clear_all_retired(db, self.cleared).await
        };
        if let Err(e) = cleared.await {
            return check_ended(&e.error);
        }
        let build = self.build.0;
        let stored = db.run(|tx, _| async move { stored(&tx, build).await }).await.map_err(|e| e.error)?;
        let left = db.run(|tx, _| async move {
            let range = RangeOption::from(workspace_space().range());
            Ok::<_, tx::Error>(tx.get_range_all(range, Serializable).await?.len() as i64)
        });
        let left = left.await.map_err(|e| e.error)?;
        let remain = if model.tag.is_some() { build + 1 } else { 0 };
        Ok(stored.map_err(Misfit::from).and_then(|stored| {
            match (stored.rows == model.rows && stored.tag == model.tag, left == remain) {
                (true, true) => Ok(()),
                (true, false) => {
                    Err(format!("{left} keys are left in the workspace, there should be {remain}").into())
                }
                (false, _) => Err(format!("the database holds {stored:?}, should hold {model:?}").into()),
            }
        }))
    }
}
