//! The two recipes together, as the documentation of the ranked register composes them: a process that is
//! elected reads the register and writes it, in the transaction that elects it, and its ballot is the rank.
//! Some leaders write later, with the ballot that they were told.
//!
//! What must be true, whatever the clocks show: a leader's read and write take effect, and a process that
//! does not lead any more changes nothing. That holds as long as nobody resigns. The planted bug is none of
//! ours: it lets the processes resign.

use crate::{
    election::{self, Election, Process},
    register::{self, retried, write_in},
};
use foundationdb::recipes::{
    leader_election::{ElectionResult, LeaderElection},
    ranked_register::{Rank, RankedRegister},
};
use shaketable::{Misfit, foundationdb::outcome, prelude::*};
use std::{
    collections::BTreeMap,
    ops::{Range, RangeInclusive},
};

planted_bugs! {
    FencedOut = "fenced-out", "leaders resign: the register refuses those who lead next", "the recipe: `resign_leadership` clears the ballot";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fenced {
    election: Election,
    planted: Option<Planted>,
}

/// What a process is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Leads { ballot: u64, read: Option<Vec<u8>>, written: bool },
    Follows { value: Option<Vec<u8>> },
    Written { rank: u64, written: bool },
    Resigned,
}

/// A process, and the ballot of its last cycle as a leader.
pub struct Session {
    process: Process,
    ballot: u64,
}

/// What should be stored.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Who leads, and its ballot.
    leader: Option<(usize, u64)>,
    register: register::Model,
    /// What is wrong with the answers of cycles, by client and number: a cycle that was repeated after an
    /// unknown result is told about its last transaction.
    wrong: BTreeMap<(usize, usize), String>,
}

/// The ranked register of the crate `foundationdb`, written by elected leaders.
#[shaketable::workload(name = "fenced", session = Session, answer = Answer, model = Model)]
impl Fenced {
    const OPERATIONS: Range<usize> = 10..30;

    /// Runs the election cycle of the documentation. A leader reads the register, and may write it.
    #[write(weight = 4)]
    async fn cycle(&self, session: &mut Session, #[draw(any::<bool>())] writes: bool) -> Outcome<Answer> {
        let Process { db, name, priority, env } = &session.process;
        let cycle = db.run(|tx, _| async move {
            let (election, register) =
                (LeaderElection::new(election::space()), RankedRegister::new(register::space()));
            match election.run_election_cycle(&tx, name, *priority, env.now()).await? {
                ElectionResult::Leader(state) => {
                    let ballot = state.ballot;
                    let read = register.read(&tx, Rank::from(ballot)).await.map_err(retried)?.into_value();
                    let written = writes && write_in(&tx, ballot).await?;
                    Ok(Answer::Leads { ballot, read, written })
                }
                ElectionResult::Follower(_) => {
                    Ok(Answer::Follows { value: register.value(&tx).await.map_err(retried)? })
                }
            }
        });
        let answer = cycle.await;
        if let Ok(Answer::Leads { ballot, .. }) = answer {
            session.ballot = ballot;
        }
        outcome(answer, |_| None)
    }

    /// Writes with the ballot of the last cycle that this process led in.
    #[write(weight = 2)]
    async fn write(&self, session: &mut Session) -> Outcome<Answer> {
        let rank = session.ballot;
        let written = session.process.db.run(|tx, _| async move { write_in(&tx, rank).await }).await;
        outcome(written.map(|written| Answer::Written { rank, written }), |_| None)
    }

    /// Resigns, whether the process leads or not.
    #[write(weight = u32::from(self.planted == Some(Planted::FencedOut)))]
    async fn resign(&self, session: &mut Session) -> Outcome<Answer> {
        session.ballot = 0;
        self.election.resign(&mut session.process).await.map(|_| Answer::Resigned)
    }

    /// A cycle that is repeated after an unknown result has a second ballot.
    fn effects(&self, _: &FencedOp) -> RangeInclusive<usize> {
        0..=usize::MAX
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Fenced {
        Fenced { election: Election::draw(rng, None), planted: bug.and_then(Planted::named) }
    }

    fn clients(&self) -> usize {
        self.election.clients()
    }

    fn keys(&self) -> Vec<Bytes> {
        [self.election.keys(), vec![register::state_key().into()]].concat()
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        self.election.setup(db).await
    }

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Session> {
        Ok(Session { process: self.election.open(db, client).await?, ballot: 0 })
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        let (elected, stored) = (election::written(step.mutations)?, register::written(step.mutations)?);
        let mut after = model.register.clone();
        let value = |rank: u64| Some(rank.to_string().into_bytes());
        let expected = match (step.op, elected) {
            (FencedOp::cycle { writes }, Some(Some((ballot, ..)))) => {
                model.leader = Some((step.client, ballot));
                after.read = ballot;
                if *writes {
                    (after.write, after.value) = (ballot, value(ballot));
                }
                if stored.as_ref() != Some(&after) {
                    let before = &model.register;
                    return Err(format!("leads with ballot {ballot}, and has no effect on {before:?}").into());
                }
                Answer::Leads { ballot, read: model.register.value.clone(), written: *writes }
            }
            (FencedOp::cycle { .. }, _) => Answer::Follows { value: after.value.clone() },
            (FencedOp::write {}, _) => match (&stored, step.answer) {
                (Some(row), answer) => {
                    let rank = row.write;
                    if model.leader != Some((step.client, rank)) {
                        let leader = model.leader;
                        return Err(format!("wrote with ballot {rank}, where {leader:?} leads").into());
                    }
                    (after.write, after.value) = (rank, value(rank));
                    match answer {
                        // The register's own finding: a repeated write is told that it was refused.
                        Some(Answer::Written { written: false, .. }) => {
                            Answer::Written { rank, written: false }
                        }
                        _ => Answer::Written { rank, written: true },
                    }
                }
                (None, Some(Answer::Written { rank, .. })) => {
                    let written = *rank >= after.read && *rank > after.write;
                    Answer::Written { rank: *rank, written }
                }
                (None, _) => return Ok(()),
            },
            (FencedOp::resign {}, elected) => {
                if elected == Some(None) {
                    model.leader = None;
                }
                Answer::Resigned
            }
        };
        if stored.is_some_and(|stored| stored != after) {
            return Err(format!("wrote the register, which should be {after:?}").into());
        }
        let wrong = step.answer.filter(|answer| **answer != expected).map(|answer| {
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
        model.register = after;
        Ok(())
    }

    /// Who writes has read before, with the same ballot.
    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        Ok(register::stored(tx).await?.map_err(Misfit::from).and_then(|stored| {
            match stored.write <= stored.read {
                true => Ok(()),
                false => Err(format!("{stored:?}").into()),
            }
        }))
    }

    async fn check(&self, db: &Db, model: &Model) -> tx::Result<Result<(), Misfit>> {
        let stored = db.run(|tx, _| async move { register::stored(&tx).await }).await;
        let stored = stored.map_err(|failed: tx::RunError<tx::Error>| failed.error)?;
        Ok(match (model.wrong.values().next(), stored) {
            (Some(wrong), _) => Err(wrong.clone().into()),
            (None, Err(error)) => Err(error.into()),
            (None, Ok(stored)) if stored == model.register => Ok(()),
            (None, Ok(stored)) => {
                Err(format!("{stored:?} is stored, and should be {:?}", model.register).into())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaders_write_the_register_and_others_do_not_while_nobody_resigns() {
        Shake::<Fenced>::new().check_determinism().assert();
    }

    #[test]
    fn a_leader_whose_write_is_refused_is_found() {
        Shake::<Fenced>::new().bug("fenced-out").assert_caught();
    }
}
