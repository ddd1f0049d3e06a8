//! The sequential model: the rows, the progress of the job, and the current build.

use super::{
    Act, ActAnswer, Answer, Bulk, BulkOp, Looks,
    composed::BEYOND,
    layout::{job_key, rows},
};
use foundationdb_tuple::{Bytes as TupleBytes, unpack};
use shaketable::{Misfit, workload::Step};
use shaketable_sim::proto::Mutation;
use shaketable_tx as tx;
use std::collections::{BTreeMap, BTreeSet};

/// The sequential model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    pub(super) rows: BTreeMap<i64, i64>,
    /// The job's progress as it is stored: the number of rows that are done, whether all are done, and the
    /// cursor.
    pub(super) progress: Option<(u64, bool, Vec<u8>)>,
    /// The tag of the current build.
    pub(super) tag: Option<u32>,
    /// The operations that have taken effect; none may take effect again.
    pub(super) done: BTreeSet<(usize, usize)>,
}

impl Model {
    fn progress(&self) -> (u64, bool, Vec<u8>) {
        self.progress.clone().unwrap_or_else(|| (0, false, rows().range().0))
    }

    /// Performs a batch of up to this many rows.
    fn go_on(&mut self, most: usize) {
        let (mut done, mut finished, mut cursor) = self.progress();
        if finished {
            return;
        }
        let keys = self.rows.keys().map(|row| rows().pack(&(*row,)));
        let mut left = keys.filter(|key| *key >= cursor).collect::<Vec<_>>().into_iter();
        let mut batch = 0;
        while batch < most {
            let Some(key) = left.next() else {
                (finished, cursor) = (true, rows().range().1);
                break;
            };
            (done, batch, cursor) = (done + 1, batch + 1, tx::key_after(&key).to_vec());
        }
        self.progress = Some((done, finished, cursor));
    }

    fn act(&mut self, act: &Act) -> ActAnswer {
        match *act {
            Act::Put(row, Some(new)) => ActAnswer::Before(self.rows.insert(row, new)),
            Act::Put(row, None) => ActAnswer::Before(self.rows.remove(&row)),
            Act::Passed(row) => {
                let (_, finished, cursor) = self.progress();
                ActAnswer::Passed(finished || rows().pack(&(row,)) < cursor)
            }
            Act::AtCursor => ActAnswer::Passed(self.progress().1),
            Act::Step(_) | Act::StepOnce(_) => {
                self.go_on(if let Act::Step(most) = *act { most.max(1) } else { 1 });
                self.progress_answer()
            }
            Act::Progress => self.progress_answer(),
        }
    }

    fn progress_answer(&self) -> ActAnswer {
        let (rows, finished, cursor) = self.progress();
        ActAnswer::Progress(rows, finished, cursor)
    }
}

impl Bulk {
    /// Performs one operation on the model, at its place in the history, and checks what it returned.
    pub(super) fn follow(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        if matches!(step.op, BulkOp::work { .. } | BulkOp::finish {} | BulkOp::fail { .. }) {
            return if step.committed { self.went_on(model, step.mutations) } else { Ok(()) };
        }
        if !step.committed {
            return looked(model, step);
        }
        if !model.done.insert((step.client, step.index)) {
            return Err("took effect a second time".into());
        }
        let expected = match step.op {
            BulkOp::put { row, value } => Answer::Before(model.rows.insert(*row, *value)),
            BulkOp::remove { row } => Answer::Before(model.rows.remove(row)),
            BulkOp::again {} => {
                let finished = model.progress.as_ref().is_some_and(|(_, finished, _)| *finished);
                if finished {
                    model.progress = None;
                }
                Answer::Again(finished)
            }
            BulkOp::build { tag } => Answer::Published(model.tag.replace(*tag)),
            BulkOp::together { acts } => Answer::Together(acts.iter().map(|act| model.act(act)).collect()),
            BulkOp::at_once { tag, publishes } => {
                let before = model.tag;
                if *publishes {
                    model.tag = Some(*tag);
                }
                Answer::AtOnce(Looks {
                    tags: [before, before, model.tag],
                    under_way: [false, true, true, false],
                    claim_seen: true,
                    ended: [true; 2],
                    pinned: [false, *publishes],
                    observed: [true; 2],
                    cleared: true,
                })
            }
            _ => return Err("committed a visible change".into()),
        };
        match step.answer {
            Some(answer) if *answer != expected => {
                Err(format!("returned {answer:?}, the model returns {expected:?}").into())
            }
            _ => Ok(()),
        }
    }
}

impl Bulk {
    /// Applies a batch of the job, which has processed the rows between the old and the new cursor.
    fn went_on(&self, model: &mut Model, mutations: &[Mutation]) -> Result<(), Misfit> {
        let key = job_key();
        let stored = mutations.iter().find_map(|mutation| match mutation {
            Mutation::Set(of, value) if of[..] == key[..] => Some(value),
            _ => None,
        });
        let stored = stored.ok_or("a batch did not write its progress")?;
        let (rows, finished, cursor): (u64, bool, TupleBytes<'_>) =
            unpack(stored).map_err(|_| "a progress that cannot be read".to_owned())?;
        let mut expected = model.clone();
        if expected.progress().1 {
            return Err("went on with a job that has finished".into());
        }
        let batch = rows.saturating_sub(expected.progress().0);
        let most = if finished { usize::MAX } else { batch as usize };
        expected.go_on(most);
        let found = (rows, finished, cursor.to_vec());
        if expected.progress() != found || batch > self.batch as u64 || (batch == 0 && !finished) {
            return Err(format!(
                "a batch of up to {} rows led to {found:?}, it should lead to {:?}",
                self.batch,
                expected.progress()
            )
            .into());
        }
        *model = expected;
        Ok(())
    }
}

/// Checks an operation without an effect: what it returned must fit the current state of the model.
fn looked(model: &Model, step: &Step<'_, Bulk>) -> Result<(), Misfit> {
    let Some(answer) = step.answer else { return Ok(()) };
    let fits = match (step.op, answer) {
        (BulkOp::build { .. }, Answer::Outdated | Answer::GivenUp) => true,
        (BulkOp::leave { .. } | BulkOp::leave_shared { .. }, Answer::Done | Answer::GivenUp) => true,
        (BulkOp::stale {} | BulkOp::clear_late {}, Answer::Done | Answer::GivenUp) => true,
        (BulkOp::sweep {} | BulkOp::clear {}, Answer::Done) | (BulkOp::pages {}, Answer::Swapped) => true,
        (BulkOp::read {} | BulkOp::pages {}, Answer::Tag(tag)) => model.tag == *tag,
        (BulkOp::beyond {}, Answer::Beyond(refused)) => refused[..] == BEYOND,
        _ => return Err(format!("returned {answer:?}, but nothing was committed").into()),
    };
    match fits {
        true => Ok(()),
        false => Err(format!("returned {answer:?}, but the current build is {:?}", model.tag).into()),
    }
}
