//! The content of a slot, by its documented layout.

use super::{
    Answer, Known,
    operations::{RecordedAnswer, applied_answer},
};
use bytes::Bytes;
use shaketable_tx::once::{self, OpId};

/// The content of a slot, by its documented layout.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Slot {
    pub(super) epoch: u64,
    pub(super) answered: (u64, u64),
    pub(super) applied: Option<Bytes>,
}

impl Slot {
    pub(super) fn of(value: &Bytes) -> Result<Slot, String> {
        let word =
            |at: usize| -> Option<u64> { Some(u64::from_be_bytes(value.get(at..at + 8)?.try_into().ok()?)) };
        let read = || Some((word(1)?, word(9)?, word(17)?, *value.get(25)?));
        match read() {
            Some((epoch, incarnation, number, verdict)) if value[0] == 1 && verdict < 2 => Ok(Slot {
                epoch,
                answered: (incarnation, number),
                applied: (verdict == 1).then(|| value.slice(26..)),
            }),
            _ => Err(format!("not a slot: \"{}\"", value.escape_ascii())),
        }
    }

    fn fate(&self) -> Result<Known, String> {
        match &self.applied {
            None => Ok(Known::NotApplied),
            Some(answer) => {
                match <RecordedAnswer as once::Answer>::decode(answer.clone()).map(applied_answer) {
                    Some(Answer::Applied(value, stamp)) => Ok(Known::Applied(value, stamp)),
                    _ => Err(format!("not an answer: \"{}\"", answer.escape_ascii())),
                }
            }
        }
    }

    /// The last operation, and its fate.
    pub(super) fn last(&self, client: u64) -> Result<Option<(OpId, Known)>, String> {
        let (epoch, seq) = self.answered;
        Ok(if seq > 0 { Some((OpId { client, epoch, seq }, self.fate()?)) } else { None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable::sessions::slots;

    #[test]
    fn a_slot_is_read_as_it_is_documented() {
        let mut value = vec![1];
        [7u64, 6, 300].iter().for_each(|word| value.extend_from_slice(&word.to_be_bytes()));
        let ruled_out = [&value[..], &[0]].concat();
        let slot = Slot { epoch: 7, answered: (6, 300), applied: None };
        assert_eq!(Slot::of(&ruled_out.into()), Ok(slot.clone()));
        assert_eq!(slot.last(3), Ok(Some((OpId { client: 3, epoch: 6, seq: 300 }, Known::NotApplied))));
        let applied = [&value[..], &[1], b"x"].concat();
        assert_eq!(Slot::of(&applied.into()).map(|slot| slot.applied), Ok(Some(Bytes::from_static(b"x"))));
        assert!(Slot::of(&Bytes::from_static(b"\x01")).is_err());
        assert!(slots().is_fence(&slots().key(1), &[&value[..], &[0]].concat()));
    }
}
