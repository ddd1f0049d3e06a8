//! The sequential model: the blobs. An upload becomes visible in the transaction that ends it.

use super::{Answer, Life, Upload, UploadOp, Wish};
use crate::blob::{self, Blob, BlobOp, Stored, writable};
use shaketable::{
    Misfit,
    specimen::{At, Content, Specimen},
    workload::Step,
};
use shaketable_layers::blob::{Error, Expect, Generation};

impl Upload {
    /// Performs one operation on the model, at its place in the history, and checks what it returned.
    pub(super) fn follow(&self, model: &mut blob::Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        let at = At {
            stamp: step.stamp,
            read_version: step.read_version,
            called: step.known_at_call(),
            ..At::default()
        };
        let stored = |name: usize| model.blobs.get(self.name(name));
        let fits = match (step.op, step.answer) {
            (_, None) if !step.committed => return Ok(()),
            (
                UploadOp::leave { .. }
                | UploadOp::crowd { .. }
                | UploadOp::collect {}
                | UploadOp::too_many { .. },
                Some(Answer::Unseen),
            ) => !step.committed,
            (
                UploadOp::leave { .. } | UploadOp::upload { .. } | UploadOp::in_steps { .. },
                Some(Answer::Collected),
            ) => !step.committed,
            (UploadOp::pages { name, .. }, Some(Answer::Content(read))) => {
                let now = |blob: &Stored| (blob.generation, Content::from(&blob.bytes));
                !step.committed && stored(*name).map(now) == *read
            }
            (UploadOp::pages { name, .. }, Some(Answer::Changed(from, to))) => {
                let now = stored(*name).map(|blob| blob.generation);
                !step.committed && now == *to && now != Some(*from)
            }
            (
                UploadOp::leave { .. }
                | UploadOp::crowd { .. }
                | UploadOp::collect {}
                | UploadOp::too_many { .. }
                | UploadOp::pages { .. },
                _,
            ) => false,
            (op @ (UploadOp::upload { .. } | UploadOp::in_steps { .. } | UploadOp::calls { .. }), answer) => {
                return self.seen(model, op, answer, &at, step.committed);
            }
        };
        match fits {
            true => Ok(()),
            false => Err(format!(
                "returned {:?}, but the blobs are {:?}{}",
                step.answer,
                model.blobs,
                if step.committed { ", and committed a visible change" } else { "" }
            )
            .into()),
        }
    }

    /// Performs the visible part of an operation on the model.
    fn replay(
        &self,
        model: &mut blob::Model,
        op: &UploadOp,
        at: &At,
        expect: Expect,
    ) -> Result<Answer, Error> {
        let blob = self.blob();
        let call = |model: &mut blob::Model, calls: &[BlobOp]| {
            calls.iter().map(|call| blob.replay(model, call, at)).collect::<Result<Vec<_>, _>>()
        };
        let (name, data, before, behind) = match op {
            UploadOp::calls { calls } => return Ok(Answer::Calls(call(model, calls)?)),
            UploadOp::in_steps { life: life @ Life { name, calls: [before, behind], .. } } => {
                (*name, self.content(life), &before[..], &behind[..])
            }
            UploadOp::upload { name, data, .. } => (*name, data.bytes(), &[][..], &[][..]),
            _ => return Ok(Answer::Unseen),
        };
        let name = self.name(name);
        writable(name)?;
        let before = call(model, before)?;
        let found = model.blobs.get(name).map(|blob| blob.generation);
        if !meets(expect, found) {
            return Err(Error::Changed { expected: expect, found });
        }
        let generation = model.change(name, at, |bytes| {
            *bytes = data;
            Ok(())
        })?;
        Ok(Answer::Uploaded(expect, before, generation, call(model, behind)?))
    }
}

impl Upload {
    /// Checks an operation with a visible transaction, or one that reads blobs.
    fn seen(
        &self,
        model: &mut blob::Model,
        op: &UploadOp,
        answer: Option<&Answer>,
        at: &At,
        committed: bool,
    ) -> Result<(), Misfit> {
        let (wish, read_only) = match op {
            UploadOp::upload { wish, .. } | UploadOp::in_steps { life: Life { wish, .. } } => (*wish, false),
            UploadOp::calls { calls } => (Wish::Anything, calls.iter().all(Blob::is_read_only)),
            _ => (Wish::Anything, true),
        };
        let expect = match (answer, wish) {
            (Some(Answer::Uploaded(expect, ..) | Answer::Refused(expect, _)), Wish::AsSeen) => *expect,
            (_, Wish::Absent) => Expect::Absent,
            _ => Expect::Anything,
        };
        let mut after = model.clone();
        let replayed = self.replay(&mut after, op, at, expect);
        let is_refused = replayed.is_err();
        let expected = replayed.unwrap_or_else(|e| Answer::Refused(expect, e.to_string()));
        match answer {
            Some(answer) if *answer != expected => {
                Err(format!("returned {answer:?}, the model returns {expected:?}").into())
            }
            _ if committed && is_refused => Err(format!("committed, the model returns {expected:?}").into()),
            _ if committed && read_only => Err("committed a write".to_owned().into()),
            _ if is_refused => Ok(()),
            // An operation that changes nothing commits nothing visible.
            _ if !committed && after != *model => {
                Err("returned, but nothing was committed".to_owned().into())
            }
            _ => {
                *model = after;
                Ok(())
            }
        }
    }
}

/// Whether a blob with this generation meets the expectation.
fn meets(expected: Expect, now: Option<Generation>) -> bool {
    match expected {
        Expect::Anything => true,
        Expect::Absent => now.is_none(),
        Expect::Generation(generation) => now == Some(generation),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_met_or_not() {
        let generation = Generation { version: 1, step: 0 };
        let now = Some(generation);
        assert!(meets(Expect::Anything, now) && meets(Expect::Anything, None));
        assert!(meets(Expect::Absent, None) && !meets(Expect::Absent, now));
        assert!(meets(Expect::Generation(generation), now));
        assert!(!meets(Expect::Generation(generation), None));
    }
}
