//! The recipe for electing a leader that the crate `foundationdb` ships, shaken: processes run election
//! cycles, with clocks that deviate, and die.
//!
//! What must be true: at each version there is at most one leader; who is told to be the leader has written
//! that at this version, was allowed to, and has a higher ballot than every leader before. That holds as long
//! as nobody resigns. The planted bugs are none of ours: they let the processes resign, or compare leases by
//! one clock.

use foundationdb::{
    Database as Fdb, FdbBindingError,
    recipes::leader_election::{ElectionConfig, ElectionResult, LeaderElection},
    tuple::{Subspace, unpack},
};
use shaketable::{
    Misfit,
    foundationdb::{database, outcome},
    prelude::*,
};
use std::{
    collections::BTreeMap,
    ops::{Range, RangeInclusive},
    sync::Arc,
    time::Duration,
};

planted_bugs! {
    BallotForgotten = "ballot-forgotten", "leaders resign: the next ballot is 1 again, below those that fence", "the recipe: `resign_leadership` clears the ballot";
    ResignDenied = "resign-denied", "leaders resign: one is told that it was no leader, and was", "the recipe within `run`: an unknown result";
    TwoByTime = "two-by-time", "a lease lasts as long as the clock of its leader says, not that of another", "the recipe: clocks that deviate";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Election {
    processes: usize,
    /// Milliseconds.
    lease: u64,
    preempts: bool,
    planted: Option<Planted>,
}

/// What a process is told: ballots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Leads(u64),
    Follows(Option<u64>),
    Resigned(bool),
}

/// A process.
pub struct Process {
    pub(crate) db: Arc<Fdb>,
    pub(crate) name: String,
    pub(crate) priority: i32,
    pub(crate) env: Env,
}

/// A leader as it is stored: its ballot, its name, its priority, the end of its lease, its stamp.
pub(crate) type Row = (u64, String, i32, u64, Vec<u8>);

/// What should be stored.
#[derive(Clone, Debug, Default)]
pub struct Model {
    leader: Option<Row>,
    /// When the leader called the operation that made it one, nanoseconds, if it was told that it is one.
    since: Option<u64>,
    highest: u64,
    /// What is wrong with the answers of operations, by client and number: an operation that was repeated
    /// after an unknown result is told about its last transaction.
    wrong: BTreeMap<(usize, usize), String>,
}

pub(crate) fn space() -> Subspace {
    Subspace::from("election")
}

fn leader_key() -> Vec<u8> {
    space().pack(&("leader",))
}

fn name(client: usize) -> String {
    format!("process-{client}")
}

/// What a transaction wrote to the leader's key: `None` for nothing, `Some(None)` if it cleared it.
pub(crate) fn written(mutations: &[Mutation]) -> Result<Option<Option<Row>>, String> {
    let mut last = None;
    for mutation in mutations {
        match mutation {
            Mutation::Set(key, value) if key[..] == leader_key() => {
                last = Some(Some(unpack(value).map_err(|error| format!("{error:?}"))?));
            }
            Mutation::ClearRange(range) if range.begin[..] == leader_key() => last = Some(None),
            _ => {}
        }
    }
    Ok(last)
}

impl Election {
    /// Whether the planted bug lets the processes resign.
    fn resigns(&self) -> bool {
        matches!(self.planted, Some(Planted::BallotForgotten | Planted::ResignDenied))
    }

    fn lease(&self) -> u64 {
        self.lease * MILLISECOND
    }

    fn config(&self) -> ElectionConfig {
        let lease = Duration::from_millis(self.lease);
        ElectionConfig { allow_preemption: self.preempts, ..ElectionConfig::with_lease_duration(lease) }
    }

    /// Process `client` has written that it is the leader.
    fn claim(&self, model: &mut Model, row: Row, step: &Step<'_, Self>) -> Result<Answer, String> {
        let (ballot, leader, priority, ends, _) = &row;
        if *leader != name(step.client) {
            return Err(format!("wrote that {leader} is the leader"));
        }
        if let Some((_, before, its_priority, its_end, _)) = &model.leader
            && before != leader
        {
            let is_preempted = self.preempts && priority > its_priority;
            if ends - self.lease() < *its_end && !is_preempted {
                return Err(format!("took the place of {before}, whose lease lasts"));
            }
            if self.planted == Some(Planted::TwoByTime)
                && model.since.is_some_and(|since| step.returned < since + self.lease())
                && !is_preempted
            {
                return Err(format!("leads while the lease of {before} lasts"));
            }
        }
        if *ballot <= model.highest && self.planted != Some(Planted::ResignDenied) {
            return Err(format!("leads with ballot {ballot}, after {}", model.highest));
        }
        let is_told = matches!(step.answer, Some(Answer::Leads(_)));
        (model.highest, model.since) = (*ballot, is_told.then_some(step.called));
        let answer = Answer::Leads(*ballot);
        model.leader = Some(row);
        Ok(answer)
    }
}

/// The error of the database in an error of the crate.
fn error(error: FdbBindingError) -> tx::Error {
    error.get_fdb_error().map_or(tx::Error::INTERNAL_ERROR, |error| tx::Error::from_code(error.code()))
}

/// The leader election of the crate `foundationdb`.
#[shaketable::workload(name = "election", session = Process, answer = Answer, model = Model)]
impl Election {
    const OPERATIONS: Range<usize> = 10..30;

    /// Runs an election cycle.
    #[write(weight = 3)]
    async fn cycle(&self, process: &mut Process) -> Outcome<Answer> {
        let Process { db, name, priority, env } = &*process;
        let answer = db.run(|tx, _| async move {
            let election = LeaderElection::new(space());
            Ok(match election.run_election_cycle(&tx, name, *priority, env.now()).await? {
                ElectionResult::Leader(state) => Answer::Leads(state.ballot),
                ElectionResult::Follower(leader) => Answer::Follows(leader.map(|state| state.ballot)),
            })
        });
        outcome(answer.await, |_| None)
    }

    /// Resigns, whether the process leads or not.
    #[write(weight = u32::from(self.resigns()))]
    pub(crate) async fn resign(&self, process: &mut Process) -> Outcome<Answer> {
        let Process { db, name, .. } = &*process;
        let resigned = db
            .run(|tx, _| async move { Ok(LeaderElection::new(space()).resign_leadership(&tx, name).await?) });
        outcome(resigned.await.map(Answer::Resigned), |_| None)
    }

    /// A cycle that is repeated after an unknown result has a second ballot.
    fn effects(&self, _: &ElectionOp) -> RangeInclusive<usize> {
        0..=usize::MAX
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Election {
        let planted = bug.and_then(Planted::named);
        Election {
            processes: rng.range(2..6) as usize,
            lease: rng.range(20..600),
            preempts: rng.chance(0.5),
            planted,
        }
    }

    fn clients(&self) -> usize {
        self.processes
    }

    fn keys(&self) -> Vec<Bytes> {
        vec![leader_key().into(), space().pack(&("candidates", name(1))).into()]
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        let (db, config) = (database(db), self.config());
        let initialized = db.run(|tx, _| {
            let config = config.clone();
            async move { Ok(LeaderElection::new(space()).initialize_with_config(&tx, config).await?) }
        });
        initialized.await.map_err(error)
    }

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Process> {
        let (db, env, priority) = (database(db), db.env().clone(), client as i32 % 3);
        let process = Process { db, name: name(client), priority, env };
        let (name, env) = (&process.name, &process.env);
        let registered = process.db.run(|tx, _| async move {
            let election = LeaderElection::new(space());
            Ok(election.register_candidate(&tx, name, priority, env.now()).await?)
        });
        registered.await.map_err(error)?;
        Ok(process)
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        let leads = |row: &Row| row.1 == name(step.client);
        let expected = match (step.op, written(step.mutations)?) {
            (ElectionOp::cycle {}, Some(Some(row))) => self.claim(model, row, step)?,
            (ElectionOp::cycle {}, Some(None)) => return Err("cleared the leader".to_owned().into()),
            (ElectionOp::cycle {}, None) => match &model.leader {
                Some(row) if !leads(row) => Answer::Follows(Some(row.0)),
                _ => return Err("did not claim what was free".to_owned().into()),
            },
            (ElectionOp::resign {}, written) => {
                let was_leader = model.leader.as_ref().is_some_and(leads);
                if was_leader != (written == Some(None)) {
                    return Err("resigned without being the leader, or did not".to_owned().into());
                }
                if was_leader {
                    model.leader = None;
                }
                Answer::Resigned(was_leader)
            }
        };
        let is_asked =
            !matches!((step.op, self.planted), (ElectionOp::resign {}, Some(Planted::BallotForgotten)));
        let wrong = step.answer.filter(|answer| is_asked && **answer != expected).map(|answer| {
            let (client, index) = (step.client, step.index);
            format!("operation {index} of client {client} was told {answer:?}, should be told {expected:?}")
        });
        match wrong {
            // Where it only read: it may have read at another place.
            Some(wrong) if !step.committed => return Err(wrong.into()),
            None if !step.committed => {}
            Some(wrong) => drop(model.wrong.insert((step.client, step.index), wrong)),
            None => drop(model.wrong.remove(&(step.client, step.index))),
        }
        Ok(())
    }

    /// The stored leader can be read.
    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        let stored = tx.get(&leader_key(), Serializable).await?;
        let row = stored.map(|stored| unpack::<Row>(&stored)).transpose();
        Ok(row.map(|_| ()).map_err(|error| format!("the leader: {error:?}").into()))
    }

    async fn check(&self, db: &Db, model: &Model) -> tx::Result<Result<(), Misfit>> {
        let read = db.run(|tx, _| async move { tx.get(&leader_key(), Serializable).await }).await;
        let stored = read.map_err(|failed: tx::RunError<tx::Error>| failed.error)?;
        let stored = stored.and_then(|stored| unpack::<Row>(&stored).ok());
        Ok(match (model.wrong.values().next(), stored == model.leader) {
            (Some(wrong), _) => Err(wrong.clone().into()),
            (None, true) => Ok(()),
            (None, false) => Err(format!("{stored:?} is stored, and should be {:?}", model.leader).into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_one_leader_and_ballots_rise_while_nobody_resigns() {
        Shake::<Election>::new().check_determinism().assert();
    }

    #[test]
    fn what_does_not_hold_is_found() {
        for bug in BUGS {
            Shake::<Election>::new().bug(bug.name).assert_caught();
        }
    }
}
