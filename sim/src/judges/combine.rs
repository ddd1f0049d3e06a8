//! Atomic operations as FoundationDB documents them, written apart from those of the simulated cluster: its
//! judges must not share its mistakes.

use bytes::Bytes;
use shaketable_tx::MutationType;

/// The value after an atomic operation; `None` if the key is then absent.
pub fn combine(op: MutationType, existing: Option<&Bytes>, operand: &Bytes) -> Option<Bytes> {
    use MutationType::*;
    let Some(existing) = existing else {
        return if op == CompareAndClear { None } else { Some(operand.clone()) };
    };
    // Zero-extended or truncated to the operand's length, as the arithmetic operations require.
    let fitted = || (0..operand.len()).map(|i| existing.get(i).copied().unwrap_or(0));
    let bitwise = |f: fn(u8, u8) -> u8| Some(fitted().zip(operand.iter()).map(|(a, b)| f(a, *b)).collect());
    let larger = |wanted: bool| {
        let old: Bytes = fitted().collect();
        let old_is_larger = old.iter().rev().gt(operand.iter().rev());
        Some(if old_is_larger == wanted { old } else { operand.clone() })
    };
    match op {
        Add => {
            let mut carry = 0;
            let sum = fitted().zip(operand.iter()).map(|(a, b)| {
                let sum = u16::from(a) + u16::from(*b) + carry;
                carry = sum >> 8;
                sum as u8
            });
            Some(sum.collect())
        }
        BitAnd => bitwise(|a, b| a & b),
        BitOr => bitwise(|a, b| a | b),
        BitXor => bitwise(|a, b| a ^ b),
        AppendIfFits if existing.len() + operand.len() > 100_000 => Some(existing.clone()),
        AppendIfFits => Some([&existing[..], &operand[..]].concat().into()),
        Max => larger(true),
        Min => larger(false),
        ByteMin => Some(existing.min(operand).clone()),
        ByteMax => Some(existing.max(operand).clone()),
        CompareAndClear if existing == operand => None,
        CompareAndClear => Some(existing.clone()),
        SetVersionstampedKey | SetVersionstampedValue => Some(operand.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MutationType::*;

    fn b(s: &'static [u8]) -> Bytes {
        Bytes::from_static(s)
    }

    #[test]
    fn atomic_operations_follow_the_table() {
        let run = |op, old: Option<&'static [u8]>, new: &'static [u8]| {
            combine(op, old.map(b).as_ref(), &b(new)).map(|v| v.to_vec())
        };
        assert_eq!(run(Add, None, b"\x05"), Some(vec![5]));
        assert_eq!(run(Add, Some(b"\xff\x01"), b"\x01\x00"), Some(vec![0, 2]));
        assert_eq!(run(Add, Some(b"\xff"), b"\x02"), Some(vec![1]));
        assert_eq!(run(Add, Some(b"\x01\x02\x03"), b"\x01"), Some(vec![2]));
        assert_eq!(run(Add, Some(b"\x01"), b"\x01\x00\x00"), Some(vec![2, 0, 0]));
        assert_eq!(run(Add, Some(b"\x01"), b""), Some(vec![]));
        assert_eq!(run(BitAnd, Some(b"\x0f"), b"\xff\xff"), Some(vec![0x0f, 0]));
        assert_eq!(run(BitOr, Some(b"\x0f\x01"), b"\xf0"), Some(vec![0xff]));
        assert_eq!(run(BitXor, Some(b"\x0f"), b"\xff\x01"), Some(vec![0xf0, 1]));
        assert_eq!(run(AppendIfFits, Some(b"ab"), b"c"), Some(b"abc".to_vec()));
        // Little-endian: 0x0100 is larger than 0x00ff, although its first byte is smaller.
        assert_eq!(run(Max, Some(b"\x00\x01"), b"\xff\x00"), Some(vec![0, 1]));
        assert_eq!(run(Min, Some(b"\x00\x01"), b"\xff\x00"), Some(vec![0xff, 0]));
        assert_eq!(run(Max, Some(b"\x09\x09"), b"\x05"), Some(vec![9]));
        assert_eq!(run(Min, Some(b"\x09"), b"\x05\x00"), Some(vec![5, 0]));
        assert_eq!(run(Min, None, b"\x05"), Some(vec![5]));
        assert_eq!(run(ByteMin, Some(b"ab"), b"b"), Some(b"ab".to_vec()));
        assert_eq!(run(ByteMax, Some(b"ab"), b"b"), Some(b"b".to_vec()));
        assert_eq!(run(CompareAndClear, Some(b"x"), b"x"), None);
        assert_eq!(run(CompareAndClear, Some(b"y"), b"x"), Some(b"y".to_vec()));
        assert_eq!(run(CompareAndClear, None, b"x"), None);
    }

    #[test]
    fn append_beyond_the_value_limit_is_skipped() {
        let old = Bytes::from(vec![1; 99_999]);
        assert_eq!(combine(AppendIfFits, Some(&old), &b(b"x")).unwrap().len(), 100_000);
        assert_eq!(combine(AppendIfFits, Some(&old), &b(b"xy")), Some(old.clone()));
    }
}
