//! Atomic operations and versionstamp substitution, as pure functions.
//!
//! Shared by clients (reads of own writes), commit proxies (stamps), storage servers (application) and
//! judges. Semantics are those of `fdbclient/Atomic.h` at API version 740: `bit_and` and `min` are the second
//! versions, which store the operand if the value is absent.

use crate::proto::{KeyRange, Mutation, Version};
use bytes::Bytes;
use shaketable_tx::{Error, MutationType, Result, VALUE_SIZE_LIMIT, key_after};

/// The value after applying `op` with `operand` to `existing`; `None` is absent.
///
/// Little-endian operations zero-extend or truncate the existing value to the operand's length. The
/// versionstamped operations are plain sets once the stamp is substituted, and return the operand.
pub fn apply(op: MutationType, existing: Option<&Bytes>, operand: &Bytes) -> Option<Bytes> {
    use MutationType::*;
    let Some(old) = existing else {
        return match op {
            CompareAndClear => None,
            _ => Some(operand.clone()),
        };
    };
    Some(match op {
        Add => add(old, operand),
        BitAnd => zip(old, operand, |a, b| a & b),
        BitOr => zip(old, operand, |a, b| a | b),
        BitXor => zip(old, operand, |a, b| a ^ b),
        AppendIfFits => append(old, operand),
        Max if compare(old, operand).is_gt() => resized(old, operand.len()),
        Min if compare(old, operand).is_lt() => resized(old, operand.len()),
        ByteMin => old.min(operand).clone(),
        ByteMax => old.max(operand).clone(),
        CompareAndClear if old == operand => return None,
        CompareAndClear => old.clone(),
        Max | Min | SetVersionstampedKey | SetVersionstampedValue => operand.clone(),
    })
}

/// The byte of `value` at `i`, zero beyond its end.
fn byte(value: &[u8], i: usize) -> u8 {
    value.get(i).copied().unwrap_or(0)
}

fn add(old: &Bytes, operand: &Bytes) -> Bytes {
    if old.is_empty() {
        return operand.clone();
    }
    let mut carry = 0;
    let sum = operand.iter().enumerate().map(|(i, b)| {
        let sum = u16::from(byte(old, i)) + u16::from(*b) + carry;
        carry = sum >> 8;
        sum as u8
    });
    sum.collect()
}

fn zip(old: &[u8], operand: &[u8], f: impl Fn(u8, u8) -> u8) -> Bytes {
    operand.iter().enumerate().map(|(i, b)| f(byte(old, i), *b)).collect()
}

fn append(old: &Bytes, operand: &Bytes) -> Bytes {
    if old.is_empty() {
        operand.clone()
    } else if operand.is_empty() || old.len() + operand.len() > VALUE_SIZE_LIMIT {
        old.clone()
    } else {
        [&old[..], &operand[..]].concat().into()
    }
}

/// Compares as little-endian unsigned integers of the operand's length.
fn compare(old: &[u8], operand: &[u8]) -> std::cmp::Ordering {
    let digits = (0..operand.len()).rev();
    digits.map(|i| byte(old, i).cmp(&operand[i])).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
}

fn resized(old: &Bytes, len: usize) -> Bytes {
    if old.len() >= len {
        return old.slice(..len);
    }
    let mut value = old.to_vec();
    value.resize(len, 0);
    value.into()
}

/// The ten bytes of a versionstamp: commit version and position in the batch, both big-endian.
pub fn versionstamp(version: Version, batch_index: u16) -> [u8; 10] {
    let mut stamp = [0; 10];
    stamp[..8].copy_from_slice(&version.to_be_bytes());
    stamp[8..].copy_from_slice(&batch_index.to_be_bytes());
    stamp
}

/// The position of the stamp in `bytes`, whose last four bytes are its little-endian offset; `None` if the
/// stamp does not fit before them.
pub fn stamp_offset(bytes: &[u8]) -> Option<usize> {
    let (body, offset) = bytes.split_last_chunk::<4>()?;
    let at = usize::try_from(i32::from_le_bytes(*offset)).ok()?;
    (at + 10 <= body.len()).then_some(at)
}

/// `bytes` without the trailing offset and with the stamp inserted. Bytes without room for a stamp only lose
/// their offset; a client refuses to send those.
pub fn substitute(bytes: &Bytes, stamp: &[u8; 10]) -> Bytes {
    let body = bytes.len().saturating_sub(4);
    match stamp_offset(bytes) {
        Some(at) => [&bytes[..at], stamp, &bytes[at + 10..body]].concat().into(),
        None if bytes.len() < 4 => bytes.clone(),
        None => bytes.slice(..body),
    }
}

/// The mutation as it is logged: versionstamped operations become sets, others are unchanged.
pub fn stamped(mutation: &Mutation, stamp: &[u8; 10]) -> Mutation {
    match mutation {
        Mutation::Atomic(key, value, MutationType::SetVersionstampedKey) => {
            Mutation::Set(substitute(key, stamp), value.clone())
        }
        Mutation::Atomic(key, value, MutationType::SetVersionstampedValue) => {
            Mutation::Set(key.clone(), substitute(value, stamp))
        }
        other => other.clone(),
    }
}

/// The keys that a versionstamped key (with its trailing offset) may become: from the stamp after
/// `read_version`, or from zero if that is not known, to the largest, limited to `max_key`. Fails with 2000
/// if the offset leaves no room.
pub fn versionstamped_key_range(
    key: &Bytes,
    read_version: Option<Version>,
    max_key: &Bytes,
) -> Result<KeyRange> {
    stamp_offset(key).ok_or(Error::CLIENT_INVALID_OPERATION)?;
    let begin = substitute(key, &versionstamp(read_version.map_or(0, |v| v + 1), 0));
    let end = key_after(&substitute(key, &[0xff; 10]));
    Ok(KeyRange { begin, end: end.min(max_key.clone()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The meaning of the operations, computed with big integers of the operand's width.
    fn meaning(op: MutationType, existing: Option<&[u8]>, operand: &[u8]) -> Option<Vec<u8>> {
        use MutationType::*;
        let width = operand.len();
        let number =
            |b: &[u8]| b.iter().take(width).rev().fold(0u128, |n, byte| (n << 8) | u128::from(*byte));
        let wide = |n: u128| n.to_le_bytes()[..width].to_vec();
        let Some(old) = existing else {
            return (op != CompareAndClear).then(|| operand.to_vec());
        };
        let (a, b) = (number(old), number(operand));
        Some(match op {
            Add => wide(a.wrapping_add(b)),
            BitAnd => wide(a & b),
            BitOr => wide(a | b),
            BitXor => wide(a ^ b),
            Max => wide(a.max(b)),
            Min => wide(a.min(b)),
            AppendIfFits => [old, operand].concat(),
            ByteMin => old.min(operand).to_vec(),
            ByteMax => old.max(operand).to_vec(),
            CompareAndClear if old == operand => return None,
            CompareAndClear => old.to_vec(),
            SetVersionstampedKey | SetVersionstampedValue => operand.to_vec(),
        })
    }

    fn value() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 0..8)
    }

    proptest! {
        #[test]
        fn atomic_operations_compute_the_documented_results(
            op in prop::sample::select(MutationType::ALL),
            existing in prop::option::of(value()),
            operand in value(),
            equal in any::<bool>(),
        ) {
            let existing = if equal && existing.is_some() { Some(operand.clone()) } else { existing };
            let expected = meaning(op, existing.as_deref(), &operand);
            let got = apply(op, existing.map(Bytes::from).as_ref(), &operand.into());
            prop_assert_eq!(got.map(|b| b.to_vec()), expected);
        }

        #[test]
        fn a_stamp_replaces_ten_bytes(body in prop::collection::vec(any::<u8>(), 0..30), at in -2i32..30) {
            let bytes: Bytes = [&body[..], &at.to_le_bytes()].concat().into();
            let stamp = versionstamp(0x0102_0304_0506_0708, 0x090a);
            let mut expected = body.clone();
            let fits = at >= 0 && at as usize + 10 <= body.len();
            prop_assert_eq!(stamp_offset(&bytes), fits.then_some(at as usize));
            if fits {
                expected[at as usize..at as usize + 10].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
            }
            prop_assert_eq!(substitute(&bytes, &stamp).to_vec(), expected);
            let range = versionstamped_key_range(&bytes, None, &Bytes::from_static(b"\xff"));
            prop_assert_eq!(range.is_ok(), fits);
        }
    }

    #[test]
    fn an_append_that_does_not_fit_is_skipped() {
        let old = Bytes::from(vec![1; VALUE_SIZE_LIMIT - 1]);
        let appended =
            |n| apply(MutationType::AppendIfFits, Some(&old), &Bytes::from(vec![2; n])).map(|v| v.len());
        assert_eq!(appended(1), Some(VALUE_SIZE_LIMIT));
        assert_eq!(appended(2), Some(VALUE_SIZE_LIMIT - 1));
    }

    #[test]
    fn a_known_read_version_narrows_a_versionstamped_keys_range() {
        let key = Bytes::from_static(b"k0123456789\x01\0\0\0");
        let max = Bytes::from_static(b"\xff");
        let range = versionstamped_key_range(&key, Some(7), &max).unwrap();
        assert_eq!(&range.begin[..], b"k\0\0\0\0\0\0\0\x08\0\0");
        assert_eq!(&range.end[..], b"k\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0");
        assert_eq!(&versionstamped_key_range(&key, None, &max).unwrap().begin[..], b"k\0\0\0\0\0\0\0\0\0\0");
    }
}
