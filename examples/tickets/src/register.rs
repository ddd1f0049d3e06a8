//! The ranked register that the crate `foundationdb` ships, shaken: writers with ranks of their own read,
//! write and look.
//!
//! What must be true: the register never goes back, neither its ranks nor its value, and a write takes effect
//! exactly if its rank is high enough, and is told so. Within `run` the last is not true of the recipe alone:
//! a write that is repeated after an unknown result finds its own rank and is told that it was refused.
//! [`Register::write`] remembers its ranks; a planted bug does not. Nor does `run` repeat an error of the
//! recipe, unless it is turned into one that `run` understands: [`retried`] does so; the other planted bug
//! does not.

use foundationdb::{
    Database as Fdb, FdbBindingError, RetryableTransaction,
    recipes::ranked_register::{Rank, RankedRegister, RankedRegisterError},
    tuple::{Subspace, unpack},
};
use shaketable::{
    Misfit,
    foundationdb::{database, outcome},
    prelude::*,
};
use std::{ops::Range, sync::Arc};

planted_bugs! {
    ToldRefused = "told-refused", "a write is told that it was refused, and took effect", "the recipe within `run`: an unknown result";
    NotRetried = "not-retried", "a look fails with an error that `run` would repeat", "the recipe's error, as the crate's own tests turn it into that of `run`";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Register {
    writers: usize,
    planted: Option<Planted>,
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The rank of the last write, and its value.
    Read(u64, Option<Vec<u8>>),
    Written(bool),
    Looked(Option<Vec<u8>>),
}

/// The register as it is stored: the highest rank of a read and of a write, whether it has a value, the
/// value.
type Row = (u64, u64, bool, Vec<u8>);

/// What should be stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    pub(crate) read: u64,
    pub(crate) write: u64,
    pub(crate) value: Option<Vec<u8>>,
}

pub(crate) fn space() -> Subspace {
    Subspace::from("register")
}

pub(crate) fn state_key() -> Vec<u8> {
    space().pack(&("state",))
}

fn decoded(row: &[u8]) -> Result<Model, String> {
    let (read, write, has_value, value) = unpack::<Row>(row).map_err(|error| format!("{error:?}"))?;
    Ok(Model { read, write, value: has_value.then_some(value) })
}

/// What a transaction wrote to the register.
pub(crate) fn written(mutations: &[Mutation]) -> Result<Option<Model>, String> {
    let row = mutations.iter().rev().find_map(|mutation| match mutation {
        Mutation::Set(key, row) if key[..] == state_key() => Some(row),
        _ => None,
    });
    row.map(|row| decoded(row)).transpose()
}

pub(crate) async fn stored(tx: &Tx) -> tx::Result<Result<Model, String>> {
    let row = tx.get(&state_key(), Serializable).await?;
    Ok(row.map_or(Ok(Model::default()), |row| decoded(&row)))
}

/// The error of the recipe as the crate's own tests turn it into one of `run`.
fn hidden(error: RankedRegisterError) -> FdbBindingError {
    FdbBindingError::CustomError(error.to_string().into())
}

/// The error of the recipe as `run` understands it, so that it repeats what can be repeated.
pub(crate) fn retried(error: RankedRegisterError) -> FdbBindingError {
    match error {
        RankedRegisterError::Fdb(error) => error.into(),
        error => FdbBindingError::new_custom_error(Box::new(error)),
    }
}

pub(crate) async fn write_in(tx: &RetryableTransaction, rank: u64) -> Result<bool, FdbBindingError> {
    let value = rank.to_string();
    let written = RankedRegister::new(space()).write(tx, Rank::from(rank), value.as_bytes()).await;
    Ok(written.map_err(retried)?.is_committed())
}

/// Writes as the documentation of the recipe does.
async fn write_as_documented(db: &Fdb, rank: u64) -> Result<Answer, FdbBindingError> {
    db.run(|tx, _| async move { Ok(Answer::Written(write_in(&tx, rank).await?)) }).await
}

async fn look(
    db: &Fdb,
    turned: fn(RankedRegisterError) -> FdbBindingError,
) -> Result<Answer, FdbBindingError> {
    db.run(|tx, _| async move {
        RankedRegister::new(space()).value(&tx).await.map(Answer::Looked).map_err(turned)
    })
    .await
}

/// The ranked register of the crate `foundationdb`.
#[shaketable::workload(name = "register", session = Arc<Fdb>, answer = Answer, model = Model)]
impl Register {
    const OPERATIONS: Range<usize> = 10..30;

    /// Reads with a rank. Lower ranks can no longer write.
    #[write(weight = 2)]
    async fn read(&self, db: &mut Arc<Fdb>, #[draw(0..6u64)] rank: u64) -> Outcome<Answer> {
        let read = db.run(|tx, _| async move {
            let read = RankedRegister::new(space()).read(&tx, Rank::from(rank)).await.map_err(retried)?;
            Ok(Answer::Read(read.write_rank().as_u64(), read.into_value()))
        });
        outcome(read.await, |_| None)
    }

    /// Writes, and remembers the rank in the same transaction: whether it was written is known also after an
    /// unknown result.
    #[write(weight = 4)]
    async fn write(&self, db: &mut Arc<Fdb>, #[draw(0..6u64)] rank: u64) -> Outcome<Answer> {
        let written = db.run(|tx, _| async move {
            let mine = space().pack(&("written", rank));
            if tx.get(&mine, false).await?.is_some() {
                return Ok(Answer::Written(true));
            }
            let is_written = write_in(&tx, rank).await?;
            if is_written {
                tx.set(&mine, b"");
            }
            Ok(Answer::Written(is_written))
        });
        outcome(written.await, |_| None)
    }

    /// Looks at the value without a rank.
    #[read]
    async fn look(&self, db: &mut Arc<Fdb>) -> Outcome<Answer> {
        outcome(look(db, retried).await, |_| None)
    }

    /// Each call has a rank that no other call has, and that is mostly higher than those before.
    fn number(op: &mut RegisterOp, client: usize, number: usize) {
        if let RegisterOp::read { rank } | RegisterOp::write { rank } = op {
            *rank = 1 + 10 * (6 * number as u64 + *rank) + client as u64;
        }
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Register {
        Register { writers: rng.range(2..7) as usize, planted: bug.and_then(Planted::named) }
    }

    fn clients(&self) -> usize {
        self.writers
    }

    fn keys(&self) -> Vec<Bytes> {
        vec![state_key().into(), space().pack(&("written", 40)).into()]
    }

    async fn open(&self, db: &Db, _: usize) -> tx::Result<Arc<Fdb>> {
        Ok(database(db))
    }

    async fn apply_planted(&self, db: &mut Arc<Fdb>, op: &RegisterOp) -> Option<Outcome<Answer>> {
        let answer = match (self.planted?, op) {
            (Planted::ToldRefused, RegisterOp::write { rank }) => write_as_documented(db, *rank).await,
            (Planted::NotRetried, RegisterOp::look {}) => look(db, hidden).await,
            _ => return None,
        };
        Some(outcome(answer, |_| None))
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        let mut after = model.clone();
        let expected = match *step.op {
            RegisterOp::read { rank } => {
                after.read = model.read.max(rank);
                Answer::Read(model.write, model.value.clone())
            }
            RegisterOp::write { rank } => {
                let is_high = rank >= model.read && rank > model.write;
                if is_high {
                    (after.write, after.value) = (rank, Some(rank.to_string().into_bytes()));
                }
                Answer::Written(is_high)
            }
            RegisterOp::look {} => Answer::Looked(model.value.clone()),
        };
        if step.committed != (after != *model) {
            return Err(format!("wrote: {}; it should be {after:?}", step.committed).into());
        }
        *model = after;
        if let (Some(Answer::Read(rank, value)), true) = (step.answer, step.committed)
            && *rank > model.write
        {
            // It raised the rank of reads, was repeated after an unknown result, and read a later write.
            let is_a_write = *value == Some(rank.to_string().into_bytes());
            return is_a_write.then_some(()).ok_or(format!("returned {value:?} for rank {rank}").into());
        }
        match step.answer {
            Some(answer) if *answer != expected => {
                Err(format!("returned {answer:?}, should return {expected:?}").into())
            }
            _ => Ok(()),
        }
    }

    /// A register that was written has a value.
    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        Ok(stored(tx).await?.map_err(Misfit::from).and_then(|stored| {
            match (stored.write > 0) == stored.value.is_some() {
                true => Ok(()),
                false => Err(format!("{stored:?}").into()),
            }
        }))
    }

    async fn check(&self, db: &Db, model: &Model) -> tx::Result<Result<(), Misfit>> {
        let stored = db.run(|tx, _| async move { stored(&tx).await }).await;
        let stored = stored.map_err(|failed: tx::RunError<tx::Error>| failed.error)?;
        Ok(stored.map_err(Misfit::from).and_then(|stored| match stored == *model {
            true => Ok(()),
            false => Err(format!("{stored:?} is stored, and should be {model:?}").into()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_register_never_goes_back_and_every_write_is_told_what_became_of_it() {
        Shake::<Register>::new().check_determinism().assert();
    }

    #[test]
    fn what_does_not_hold_is_found() {
        for bug in BUGS {
            Shake::<Register>::new().bug(bug.name).assert_caught();
        }
    }
}
