//! The sequential model: all entries, and how many of them are trimmed.

use super::{
    Answer, Item, Log, Op,
    client::is_turn_of,
    operations::{TURN, item, value},
    space,
};
use shaketable::{specimen::At, waiting::Wait};
use shaketable_layers::log::Error;
use shaketable_sim::rt::MILLISECOND;
use shaketable_tx::{VALUE_SIZE_LIMIT, limits};

/// All entries that were ever appended, and how many of them are trimmed. Entries of a transaction that has
/// not committed have a stamp of zeros.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub(super) all: Vec<Item>,
    pub(super) trimmed: usize,
}

impl Model {
    fn live(&self) -> &[Item] {
        &self.all[self.trimmed..]
    }

    /// The last entry, unless the transaction at this place has appended entries itself.
    fn last(&self, at: &At) -> Result<Option<&Item>, Error> {
        match self.readable(at) {
            (_, true) => Err(Error::OwnEntriesUnreadable),
            _ => Ok(self.live().last()),
        }
    }

    /// The number of entries that the transaction at this place can read, and whether entries of its own
    /// follow, which it cannot read.
    fn readable(&self, at: &At) -> (usize, bool) {
        let stamp = at.stamp.unwrap_or_default();
        let own = self.all.iter().rev().take_while(|item| item.stamp == stamp).count();
        (self.live().len() - own, own > 0)
    }

    /// Up to `limit` entries, after the first `skip`.
    fn page(&self, skip: usize, limit: usize, at: &At) -> Result<&[Item], Error> {
        let (readable, own) = self.readable(at);
        let behind = &self.live()[skip.min(readable)..readable];
        match behind.len() < limit && own {
            true => Err(Error::OwnEntriesUnreadable),
            false => Ok(&behind[..behind.len().min(limit)]),
        }
    }
}

impl PartialEq for Model {
    fn eq(&self, other: &Model) -> bool {
        self.live() == other.live()
    }
}

impl Log {
    /// Performs one call on the model.
    pub(super) fn replayed(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
        Ok(match op {
            Op::Append(name, byte, length) => {
                let value = value(*name, *byte, *length);
                limits::value_up_to(VALUE_SIZE_LIMIT, space().bytes(), &value)?;
                model.all.push(item(at.stamp.unwrap_or_default(), &value));
                Answer::Written
            }
            Op::Page(skip, limit) => {
                let skipped = model.page(0, *skip, at)?;
                let behind = skipped.last().map(|item| item.name);
                Answer::Behind(behind, model.page(skipped.len(), *limit, at)?.to_vec())
            }
            Op::Follow(count, ..) => Answer::First(model.page(0, *count, at)?.to_vec()),
            Op::Idle(..) => Answer::First(Vec::new()),
            Op::Last => Answer::Last(model.last(at)?.cloned()),
            Op::Succeed(name) => {
                let last = model.last(at)?.cloned();
                model.all.push(item(at.stamp.unwrap_or_default(), &value(*name, TURN.0, TURN.1)));
                Answer::Last(last)
            }
            Op::Turn(name, _) => {
                let is_turn = is_turn_of(name.0, model.last(at)?.map(|last| last.name));
                if is_turn {
                    model.all.push(item(at.stamp.unwrap_or_default(), &value(*name, TURN.0, TURN.1)));
                }
                Answer::Turn(is_turn)
            }
            Op::Trim(entries) => {
                let trimmed = model.page(0, *entries, at)?.len();
                model.trimmed += trimmed;
                Answer::Trimmed(trimmed)
            }
        })
    }

    /// What a call waited for, given what it returned.
    pub(super) fn waited(&self, model: &Model, op: &Op, answer: &Answer, at: &At) -> Option<Wait> {
        let version = |item: &Item| item.stamp[..8].try_into().map_or(0, i64::from_be_bytes);
        let wait = |patience, found| Some(Wait { patience: patience * MILLISECOND, found });
        match (op, answer) {
            (Op::Follow(count, _, patience), Answer::First(items)) => {
                wait(*patience, items.get(count.wrapping_sub(1)).map(version))
            }
            (Op::Idle(1.., patience), _) => wait(*patience, None),
            (Op::Turn(_, patience), Answer::Turn(true)) => {
                // The last entry is its own.
                let awaited = model.live().iter().rev().nth(1)?;
                wait(*patience, Some(version(awaited)))
            }
            // An earlier entry of the client, whose outcome it does not know, may commit while it waits, and
            // end its turn.
            (Op::Turn(name, patience), Answer::Turn(false)) if at.stamp.is_none() => {
                let last = model.live().last();
                match last.is_some_and(|last| last.name.0 == name.0 && version(last) > at.called) {
                    true => None,
                    false => wait(*patience, None),
                }
            }
            _ => None,
        }
    }
}
