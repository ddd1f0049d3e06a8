//! Versionstamp offsets that must not be passed to the C client.
//!
//! The client adds the ten bytes of a versionstamp to the offset without an overflow check: an offset within
//! ten of 2^31 - 1 ends the process. Such an offset lies outside every key and value, and the client rejects
//! a negative offset for the same reason with the same error (2000).

use shaketable_tx::MutationType;
use std::borrow::Cow;

const STAMP: i32 = 10;

/// The key and the operand of an atomic operation, made safe for the C client: an offset that would overflow
/// is replaced by one that the client rejects.
pub(super) fn sanitized<'a>(key: &'a [u8], operand: &'a [u8], code: u32) -> (Cow<'a, [u8]>, Cow<'a, [u8]>) {
    match MutationType::from_code(code) {
        Some(MutationType::SetVersionstampedKey) => (parameter(key), operand.into()),
        Some(MutationType::SetVersionstampedValue) => (key.into(), parameter(operand)),
        _ => (key.into(), operand.into()),
    }
}

fn parameter(bytes: &[u8]) -> Cow<'_, [u8]> {
    match bytes.split_last_chunk() {
        Some((bytes, offset)) if i32::from_le_bytes(*offset) > i32::MAX - STAMP => {
            [bytes, &(-1i32).to_le_bytes()].concat().into()
        }
        _ => bytes.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_that_the_client_cannot_add_to_becomes_one_that_it_refuses() {
        let with = |offset: i32| [&b"key"[..], &[0; 10], &offset.to_le_bytes()].concat();
        let [stamped_key, stamped_value] =
            [MutationType::SetVersionstampedKey, MutationType::SetVersionstampedValue]
                .map(MutationType::code);
        let refused = with(-1);
        for offset in [i32::MAX, i32::MAX - 1, i32::MAX - 9] {
            let far = with(offset);
            assert_eq!(sanitized(&far, &far, stamped_key), ((&refused[..]).into(), (&far[..]).into()));
            assert_eq!(sanitized(&far, &far, stamped_value), ((&far[..]).into(), (&refused[..]).into()));
            assert_eq!(
                sanitized(&far, &far, MutationType::Add.code()),
                ((&far[..]).into(), (&far[..]).into())
            );
        }
        for offset in [i32::MAX - 10, 65_535, 3, 0, -1, i32::MIN] {
            let near = with(offset);
            assert_eq!(sanitized(&near, b"", stamped_key).0, near);
        }
        assert_eq!(*sanitized(b"abc", b"", stamped_key).0, *b"abc");
    }
}
