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
pub use operations::{Act, ActAnswer, Answer, Looks};

use crate::shared::{Timer, check_ended, in_turns, session_keys, turned};
use bytes::Bytes;
use client::{alive, applied, done, looks, or_refused, refused, worked};
use foundationdb_tuple::pack;
use futures::FutureExt;
use layout::{build_id, counts, entries, job, job_key, rest, rows, workspace, workspace_space};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit, isolation, sessions,
    specimen::Recorded,
    workload::{Bug, Outcome, Step},
};
use shaketable_layers::bulk::{BuildId, Error, Limits, Progress};
use shaketable_sim::{proto::Mutation, seed::Stream};
use shaketable_tx::{
    self as tx, Database, Db,
    Isolation::Serializable,
    RangeOption, Transaction, Tx,
    once::{Session, converging},
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

/// An index built in batches beside writers; a space built anew and swapped.
#[shaketable::workload(name = "bulk", session = Client, answer = Answer, model = Model)]
impl Bulk {
    /// Sets a row.
    #[write(weight = 6 * self.mix[0])]
    async fn put(
        &self,
        client: &mut Client,
        #[draw(0..self.rows)] row: i64,
        #[draw(0..self.values)] value: i64,
    ) -> Outcome<Answer> {
        let put = client.session.apply(|tx| async move { layout::put(&tx, &job(), row, Some(value)).await });
        applied(put.await, Answer::Before)
    }

    /// Removes a row.
    #[write(weight = 3 * self.mix[0])]
    async fn remove(&self, client: &mut Client, #[draw(0..self.rows)] row: i64) -> Outcome<Answer> {
        let put = client.session.apply(|tx| async move { layout::put(&tx, &job(), row, None).await });
        applied(put.await, Answer::Before)
    }

    /// Performs this many batches of the job.
    #[write(weight = 5 * self.mix[0])]
    async fn work(&self, client: &mut Client, #[draw(1..5usize)] batches: usize) -> Outcome<Answer> {
        for _ in 0..batches {
            match job().advance(client.db(), &self.limits(), layout::work).await {
                Ok(Progress { finished: true, .. }) => break,
                Ok(_) => {}
                Err(e) => return worked(e),
            }
        }
        Outcome::Answered(Answer::Done)
    }

    /// Runs the job to its end.
    #[write(weight = self.mix[0])]
    async fn finish(&self, client: &mut Client) -> Outcome<Answer> {
        match job().run(client.db(), &self.limits(), layout::work).await {
            Ok(Progress { finished: true, .. }) => Outcome::Answered(Answer::Done),
            Ok(progress) => Outcome::Violated(format!("the job has ended at {progress:?}")),
            Err(e) => worked(e),
        }
    }

    /// Performs a batch whose work fails: because no row fits into a transaction if true, otherwise with an
    /// error of its own.
    #[write(weight = self.mix[0])]
    async fn fail(&self, client: &mut Client, #[draw(any::<bool>())] too_large: bool) -> Outcome<Answer> {
        self.fail_batch(client.db(), too_large).await
    }

    /// If the job has finished, drops the index and starts the job again.
    #[write(weight = 2 * self.mix[0])]
    async fn again(&self, client: &mut Client) -> Outcome<Answer> {
        let again = client.session.apply(|tx| async move {
            let finished = job().progress(&turned(&tx), Serializable).await?.finished;
            if finished {
                for space in [counts(), entries()] {
                    let (begin, end) = space.range();
                    tx.clear_range(&begin, &end);
                }
                job().forget(&turned(&tx)).await?;
            }
            Ok::<_, Error>(finished)
        });
        applied(again.await, Answer::Again)
    }

    /// Makes a build with this tag, and publishes it.
    #[write(weight = 5 * self.mix[1])]
    async fn build(&self, client: &mut Client, #[draw(Just(0))] tag: u32) -> Outcome<Answer> {
        let mut timer = Timer::new(client.db(), self.silence());
        let published = match self.make(client.db(), tag, usize::MAX, &mut timer).await {
            Ok(base) => {
                client.base = base;
                let (workspace, build) = (&workspace(), build_id(tag));
                let publish = |tx| async move { workspace.publish(&turned(&tx), build).await };
                applied(client.session.apply(publish).await, |()| Answer::Published(base))
            }
            Err(e) => refused(e.error),
        };
        alive(published, &mut timer)
    }

    /// Makes this many batches of a build with this tag, and abandons it.
    #[write(weight = self.mix[1])]
    async fn leave(
        &self,
        client: &mut Client,
        #[draw(Just(0))] tag: u32,
        #[draw(0..4usize)] most: usize,
    ) -> Outcome<Answer> {
        let mut timer = Timer::new(client.db(), self.silence());
        let left = self.make(client.db(), tag, most, &mut timer).await;
        alive(done(left), &mut timer)
    }

    /// Makes this many batches of the build that all clients share, and abandons it.
    #[write(weight = 5 * self.mix[1])]
    async fn leave_shared(&self, client: &mut Client, #[draw(0..4usize)] most: usize) -> Outcome<Answer> {
        or_refused(self.revive(client.db(), most).await)
    }

    /// Begins, writes and publishes a build with this tag in one transaction, observing it after each step;
    /// or gives it up instead of publishing it.
    #[write(weight = self.mix[1])]
    async fn at_once(
        &self,
        client: &mut Client,
        #[draw(Just(0))] tag: u32,
        #[draw(any::<bool>())] publishes: bool,
    ) -> Outcome<Answer> {
        let build = if publishes { build_id(tag) } else { BuildId::draw(client.db().env()) };
        let made = client.session.apply(|tx| async move {
            composed::at_once(&tx, self, (build, tag), publishes).await.map(|looks| Recorded(vec![looks]))
        });
        applied(made.await, looks)
    }

    /// Performs several calls about the job in one transaction.
    #[write(weight = 3 * self.mix[0])]
    async fn together(&self, client: &mut Client, #[draw(self.acts())] acts: &[Act]) -> Outcome<Answer> {
        let (db, job) = (&client.db().clone(), &job());
        let interleaved = self.planted == Some(Planted::Interleaved);
        let together = client.session.apply(|tx| async move {
            let perform = |n: usize, tx| {
                async move {
                    match (self.planted, acts[n]) {
                        (
                            Some(planted @ (Planted::LookBehindWrites | Planted::ProgressConflicts)),
                            Act::Progress,
                        ) => planted::look(planted, db, &tx).await,
                        (_, act) => composed::perform(&tx, db.env(), job, act).await,
                    }
                }
                .boxed()
            };
            in_turns(db.env(), &tx, acts.len(), interleaved, perform).await.map(Recorded)
        });
        applied(together.await, |Recorded(answers)| Answer::Together(answers))
    }

    /// Passes keys outside of every range, and names at the limit and one byte beyond it.
    #[read]
    async fn beyond(&self, client: &mut Client) -> Outcome<Answer> {
        let beyond = client.db().run(|tx, _| async move { composed::beyond(&tx).await });
        or_refused(beyond.await.map(|looks| Outcome::Answered(Answer::Beyond(looks))))
    }

    /// Gives up silent builds, and clears them.
    #[write(weight = 6 * self.mix[1])]
    async fn sweep(&self, client: &mut Client) -> Outcome<Answer> {
        match workspace().discard_unchanged(client.db(), self.silence(), self.page).await {
            Ok(_) => done(workspace().clear_all_retired(client.db(), self.cleared).await),
            Err(e) => refused(e.error),
        }
    }

    /// Clears a batch of a retired build.
    #[write(weight = 2 * self.mix[1])]
    async fn clear(&self, client: &mut Client) -> Outcome<Answer> {
        let (workspace, most) = (&workspace(), self.cleared);
        let clear = |tx| async move { workspace.clear_retired(&turned(&tx), most).await };
        match converging(client.db(), clear).await {
            Ok(cleared) if cleared.rows > most.max(1) => {
                Outcome::Violated(format!("{cleared:?}, of up to {most} rows"))
            }
            cleared => done(cleared),
        }
    }

    /// Observes the disputed build, clears it, begins it again, and gives it up if it is as it was observed.
    #[write(weight = 2 * self.mix[1])]
    async fn stale(&self, client: &mut Client) -> Outcome<Answer> {
        or_refused(self.discard_stale(client.db()).await)
    }

    /// Clears a batch of a retired build in a transaction that commits only after the disputed build has
    /// begun again.
    #[write(weight = 2 * self.mix[1])]
    async fn clear_late(&self, client: &mut Client) -> Outcome<Answer> {
        or_refused(self.clear_and_begin(client.db()).await)
    }

    /// Reads the current build in one transaction.
    #[read(weight = self.mix[1])]
    async fn read(&self, client: &mut Client) -> Outcome<Answer> {
        let workspace = &workspace();
        let read = client.db().run(|tx, _| async move {
            let read = |tx, isolation| async move { workspace.current(&turned(&tx), isolation).await };
            Ok::<_, Error>(match isolation::at_both_levels(&tx, &"the current build", read).await? {
                Some((_, space)) => self.tagged(&space, &rest(&tx, &space, None, None).await?),
                None => Outcome::Answered(Answer::Tag(None)),
            })
        });
        or_refused(read.await)
    }

    /// Reads the current build in batches, each of which verifies that the build is still current.
    #[read(weight = 4 * self.mix[1])]
    async fn pages(&self, client: &mut Client) -> Outcome<Answer> {
        or_refused(self.read_pages(client.db()).await)
    }

    fn number(op: &mut BulkOp, client: usize, number: usize) {
        if let BulkOp::build { tag } | BulkOp::leave { tag, .. } | BulkOp::at_once { tag, .. } = op {
            *tag = (client << 16 | (number & 0xffff)) as u32;
        }
    }

    /// What a worker does consists of many transactions.
    fn effects(&self, op: &BulkOp) -> RangeInclusive<usize> {
        match op {
            BulkOp::put { .. } | BulkOp::remove { .. } | BulkOp::together { .. } | BulkOp::at_once { .. } => {
                0..=1
            }
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

    fn keys(&self) -> Vec<Bytes> {
        let sources = (0..self.rows).step_by(5).map(|row| rows().pack(&(row,)).into());
        let index = (0..self.values).map(|value| counts().pack(&(value,)).into());
        session_keys(self.clients)
            .chain(sources)
            .chain(index)
            .chain([job_key().into(), workspace_space().pack(&(1,)).into()])
            .collect()
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

    async fn apply_planted(&self, client: &mut Client, op: &BulkOp) -> Option<Outcome<Answer>> {
        planted::apply(self, client, op).await
    }

    async fn resolve_dropped(&self, client: &mut Client) {
        sessions::resolve_dropped(&mut client.session, self.timeout).await;
    }

    async fn resolve(&self, client: &mut Client, op: &BulkOp, error: tx::Error) -> Outcome<Answer> {
        let base = client.base;
        let ask = async |session: &mut Session<Db>, pending| {
            let answer = match op {
                BulkOp::put { .. } | BulkOp::remove { .. } => {
                    session.resolve(pending).await?.map(Answer::Before)
                }
                BulkOp::again {} => session.resolve(pending).await?.map(Answer::Again),
                BulkOp::together { .. } => {
                    session.resolve(pending).await?.map(|Recorded(answers)| Answer::Together(answers))
                }
                BulkOp::at_once { .. } => session.resolve(pending).await?.map(looks),
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
            job().run(db, &self.limits(), layout::work).await?;
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
