//! The workload: jobs are posted, taken and finished; every answer is compared with a model, and every wait
//! with the moment at which what it waited for was there.
//!
//! In some runs clients post to any mailbox, and several work at each. In others two clients hand jobs to and
//! fro: only the partner's job wakes a client there, so that no later post hides a wake-up that was lost.

use crate::{
    layer::{self, Refusal},
    planted,
};
use foundationdb_tuple::Versionstamp;
use shaketable::{Misfit, prelude::*};
use shaketable_tx::once::Packed;
use std::{collections::VecDeque, time::Duration};

planted_bugs! {
    LostWakeUp = "lost-wake-up", "a worker sets its watch in another transaction than the one that has found nothing", "a watch set after the read that it guards";
    BlindRetry = "blind-retry", "a post is done again after an unknown result, without a record", "the retry loop of every binding";
    ClaimAtSnapshot = "claim-at-snapshot", "a claim reads the first job at snapshot", "a dropped conflict range";
    DeskForgotten = "desk-forgotten", "a worker that comes back claims another job before it looks on its desk", "a crash between two transactions";
    NoLastLook = "no-last-look", "a worker whose patience has run out does not look once more", "a timeout taken for an answer";
}

/// Longer than faults can delay an answer, milliseconds: an answer that takes this long missed its wake-up.
const LONG: u64 = 12_000;

/// How many waits of a client last that long: few, because a client whose partner has ended waits in vain.
const LONG_TAKES: usize = 3;

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mail {
    mailboxes: u32,
    clients: usize,
    /// Two clients hand jobs to and fro.
    to_and_fro: bool,
    planted: Option<Planted>,
}

/// What an operation returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Posted,
    Took(Option<u64>),
    Finished(u64),
    /// The layer refused it, in these words.
    Refused(String),
}

/// What one client holds: it works at one mailbox, under its own number.
pub struct Worker {
    pub session: Session<Db>,
    pub mailbox: u32,
    pub number: u32,
}

/// What is stored: each mailbox's jobs in order, and what lies on each worker's desk.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    mailboxes: Vec<VecDeque<u64>>,
    desks: Vec<Option<u64>>,
}

/// The model: what should be stored, and since which version each mailbox's first job has been the first.
#[derive(Clone, Debug)]
pub struct Model {
    stored: Stored,
    first_since: Vec<Version>,
}

impl Mail {
    fn mailbox(&self, client: usize) -> usize {
        client % self.mailboxes as usize
    }

    /// Reads all that is stored.
    async fn read(&self, tx: &Tx) -> Result<Stored, Refusal> {
        let mut stored = Stored { mailboxes: Vec::new(), desks: Vec::new() };
        for mailbox in 0..self.mailboxes {
            let jobs = layer::jobs(mailbox);
            let rows = tx.get_range_all(RangeOption::from(jobs.range()), Serializable).await?;
            let job = |row: &tx::KeyValue| jobs.unpack::<(Versionstamp, u64)>(&row.key).map(|(_, job)| job);
            let jobs: Result<_, _> = rows.iter().map(job).collect();
            stored.mailboxes.push(jobs.map_err(|_| Refusal::Foreign)?);
        }
        for worker in 0..self.clients as u32 {
            stored.desks.push(layer::on_desk(tx, worker, Serializable).await?);
        }
        Ok(stored)
    }
}

/// What a failed read means to a judge: FoundationDB's error, or something that should not be there.
fn read_failed<A>(error: Refusal) -> tx::Result<Result<A, Misfit>> {
    error.fdb().map_or_else(|| Ok(Err(error.to_string().into())), Err)
}

/// What an exactly-once operation returned, for the judges.
pub fn outcome_of<A>(
    outcome: once::Outcome<A, Refusal>,
    answer: impl FnOnce(A) -> Answer,
) -> Outcome<Answer> {
    match outcome {
        once::Outcome::Applied(returned) => Outcome::Answered(answer(returned)),
        once::Outcome::Refused(why) => match why.fdb() {
            None => Outcome::Answered(Answer::Refused(why.to_string())),
            Some(error) => Outcome::Failed(error),
        },
        once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
    }
}

/// What a take returned.
pub fn took(job: Option<Packed<u64>>) -> Answer {
    Answer::Took(job.map(|Packed(job)| job))
}

/// Jobs handed over through mailboxes, each once, to workers who wait.
#[shaketable::workload(name = "mail", session = Worker, answer = Answer, model = Model)]
impl Mail {
    /// Posts this job. It writes without reading.
    #[write(weight = 3, blind)]
    async fn post(
        &self,
        worker: &mut Worker,
        #[draw(0..self.mailboxes)] mailbox: u32,
        #[draw(Just(0))] job: u64,
    ) -> Outcome<Answer> {
        let posted = worker.session.apply(|tx| async move {
            layer::post(&tx, mailbox, job);
            Ok(())
        });
        outcome_of(posted.await, |()| Answer::Posted)
    }

    /// Takes a job from the client's mailbox, and waits for it this long, milliseconds.
    #[write(weight = 3)]
    async fn take(
        &self,
        Worker { session, mailbox, number }: &mut Worker,
        #[draw(prop_oneof![Just(0), Just(20), Just(200)])] patience: u64,
    ) -> Outcome<Answer> {
        let patience = Duration::from_millis(patience);
        outcome_of(layer::take_within(session, *mailbox, *number, patience).await, took)
    }

    /// Finishes what the client has taken.
    #[write(weight = 2)]
    async fn finish(&self, worker: &mut Worker) -> Outcome<Answer> {
        let number = worker.number;
        let finished = worker.session.apply(|tx| async move { layer::finish(&tx, number).await });
        outcome_of(finished.await, |Packed(job)| Answer::Finished(job))
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Mail {
        let planted = bug.and_then(Planted::named);
        match rng.chance(0.5) {
            true => Mail { mailboxes: 2, clients: 2, to_and_fro: true, planted },
            false => Mail {
                mailboxes: rng.range(1..4) as u32,
                clients: rng.range(2..7) as usize,
                to_and_fro: false,
                planted,
            },
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let mailboxes = (0..self.mailboxes).map(layer::bell);
        mailboxes.chain((0..self.clients as u32).map(layer::desk)).map(Bytes::from).collect()
    }

    /// Operations as they come; or rounds in which two clients hand jobs to and fro.
    fn operations(&self, client: usize) -> BoxedStrategy<Vec<MailOp>> {
        let to_and_fro = self.to_and_fro;
        let drawn = if to_and_fro {
            let post = |mailbox| MailOp::post { mailbox, job: 0 };
            // A drawn number of further calls, so that a job often arrives when the other client is about to
            // wait.
            let round = (0..4usize).prop_map(move |further| {
                let mut round = vec![MailOp::take { patience: 100 }, post(1 - client as u32)];
                round.extend(vec![MailOp::finish {}; 1 + further]);
                round
            });
            let begin = (client == 0).then(|| post(1));
            let rounds = vec(round, 3..8);
            rounds.prop_map(move |rounds| begin.iter().cloned().chain(rounds.concat()).collect()).boxed()
        } else {
            vec(self.operation(client), 10..30).boxed()
        };
        let named = move |mut ops: Vec<MailOp>| {
            let mut takes = 0;
            for (number, op) in ops.iter_mut().enumerate() {
                match op {
                    MailOp::post { job, .. } => *job = 1_000 * client as u64 + number as u64,
                    MailOp::take { patience } if to_and_fro && takes < LONG_TAKES => {
                        *patience = LONG;
                        takes += 1;
                    }
                    _ => {}
                }
            }
            ops
        };
        drawn.prop_map(named).boxed()
    }

    /// A claim that comes too late writes the session's record alone.
    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        mutations.chunks(1).any(|mutation| sessions::is_below(&[layer::space()], mutation))
    }

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Worker> {
        let session = sessions::open(db, client, None).await?;
        Ok(Worker { session, mailbox: self.mailbox(client) as u32, number: client as u32 })
    }

    /// After an operation whose future was dropped the session begins no other one before it was asked what
    /// became of that one.
    async fn resolve_dropped(&self, worker: &mut Worker) {
        sessions::resolve_dropped(&mut worker.session, None).await;
    }

    async fn apply_planted(&self, worker: &mut Worker, op: &MailOp) -> Option<Outcome<Answer>> {
        planted::apply_planted(self.planted?, worker, op).await
    }

    async fn resolve(&self, worker: &mut Worker, op: &MailOp, error: tx::Error) -> Outcome<Answer> {
        sessions::resolve_unknown(&mut worker.session, None, error, async |session, pending| {
            Ok(match op {
                MailOp::post { .. } => session.resolve(pending).await?.map(|()| Answer::Posted),
                MailOp::take { .. } => session.resolve(pending).await?.map(took),
                MailOp::finish {} => session.resolve(pending).await?.map(|Packed(job)| Answer::Finished(job)),
            }
            .map(Outcome::Answered))
        })
        .await
    }

    fn model(&self) -> Model {
        let mailboxes = vec![VecDeque::new(); self.mailboxes as usize];
        let stored = Stored { mailboxes, desks: vec![None; self.clients] };
        Model { stored, first_since: vec![0; self.mailboxes as usize] }
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        let now = step.stamp.map_or(0, |[version @ .., _, _]| Version::from_be_bytes(version));
        let (at, Stored { mailboxes, desks }) = (self.mailbox(step.client), &mut model.stored);
        let mut wait = None;
        let expected = match (step.op, step.committed) {
            (MailOp::post { mailbox, job }, true) => {
                let mailbox = *mailbox as usize;
                if mailboxes[mailbox].is_empty() {
                    model.first_since[mailbox] = now;
                }
                mailboxes[mailbox].push_back(*job);
                Answer::Posted
            }
            (MailOp::post { .. }, false) => return Err("nothing was committed".to_owned().into()),
            (MailOp::take { .. }, true) if desks[step.client].is_some() => {
                return Err(format!("claimed a job, and has {:?}", desks[step.client]).into());
            }
            (MailOp::take { patience }, true) => {
                let job = mailboxes[at].pop_front().ok_or("claimed a job of an empty mailbox")?;
                desks[step.client] = Some(job);
                let since = std::mem::replace(&mut model.first_since[at], now);
                wait = Some(Wait { patience: patience * MILLISECOND, found: Some(since) });
                Answer::Took(Some(job))
            }
            (MailOp::take { .. }, false) if desks[step.client].is_some() => Answer::Took(desks[step.client]),
            (MailOp::take { patience }, false) => {
                if let Some(job) = mailboxes[at].front() {
                    return Err(format!("took nothing, and job {job} is there").into());
                }
                wait = Some(Wait { patience: patience * MILLISECOND, found: None });
                Answer::Took(None)
            }
            (MailOp::finish {}, _) => match (desks[step.client], step.committed) {
                (Some(job), true) => {
                    desks[step.client] = None;
                    Answer::Finished(job)
                }
                (Some(job), false) => return Err(format!("finished nothing, and has job {job}").into()),
                (None, true) => return Err("finished a job, and has none".to_owned().into()),
                (None, false) => Answer::Refused(Refusal::NoJob.to_string()),
            },
        };
        match (step.answer, wait) {
            (Some(answer), _) if *answer != expected => {
                Err(format!("returned {answer:?}, should return {expected:?}").into())
            }
            (Some(_), Some(wait)) => step.waited(wait),
            _ => Ok(()),
        }
    }

    /// No job is in two places.
    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        let stored = match self.read(tx).await {
            Ok(stored) => stored,
            Err(error) => return read_failed(error),
        };
        let mut jobs: Vec<u64> = stored.mailboxes.into_iter().flatten().collect();
        jobs.extend(stored.desks.into_iter().flatten());
        jobs.sort_unstable();
        Ok(match jobs.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("job {} is in two places", pair[0]).into()),
            None => Ok(()),
        })
    }

    async fn check(&self, db: &Db, model: &Model) -> tx::Result<Result<(), Misfit>> {
        let stored = match db.run(|tx, _| async move { self.read(&tx).await }).await {
            Ok(stored) => stored,
            Err(failed) => return read_failed(failed.error),
        };
        Ok(match stored == model.stored {
            true => Ok(()),
            false => Err(format!("{stored:?} is stored, and should be {:?}", model.stored).into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_is_handed_over_once() {
        Shake::<Mail>::new().assert();
    }

    #[test]
    fn without_faults_no_wait_is_late() {
        Shake::<Mail>::new().faults(Profile::Calm).assert();
    }

    #[test]
    fn planted_bugs_are_caught() {
        for bug in BUGS {
            Shake::<Mail>::new().bug(bug.name).assert_caught();
        }
    }
}
