//! The key schema of counters.
//!
//! ```text
//! single   (counter)          =  value     i64, little-endian, as atomic addition requires
//! split    (counter, part)    =  value     the counter is the sum of its parts
//! ```

use super::Error;
use crate::tx::{Env, KeyValue};
use foundationdb_tuple::Subspace;
use serde::{Deserialize, Serialize};

/// The part of a split counter that a change is applied to. Draw it before a retry loop: any part is correct,
/// but a part drawn anew in each attempt cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part(pub u64);

impl Part {
    /// Draws a part, all with the same probability.
    pub fn draw(env: &Env) -> Part {
        Part(env.random_u64())
    }
}

/// The key of a part out of `parts`.
pub(super) fn part(subspace: &Subspace, part: Part, parts: u32) -> Vec<u8> {
    subspace.pack(&((part.0 % u64::from(parts.max(1))) as i64,))
}

/// Decodes a value written by atomic additions.
pub(super) fn value(key: &[u8], value: &[u8]) -> Result<i64, Error> {
    value.try_into().map(i64::from_le_bytes).map_err(|_| Error::foreign(key))
}

/// The sum of the parts, regardless of their number.
pub(super) fn sum(subspace: &Subspace, rows: &[KeyValue]) -> Result<i64, Error> {
    let mut sum = 0;
    for row in rows {
        let (_,): (i64,) = subspace.unpack(&row.key).map_err(|_| Error::foreign(&row.key))?;
        sum += i128::from(value(&row.key, &row.value)?);
    }
    i64::try_from(sum).map_err(|_| Error::Overflow(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(space: &Subspace, n: u64, value: i64) -> KeyValue {
        KeyValue::new(part(space, Part(n), 1_000), value.to_le_bytes().to_vec())
    }

    #[test]
    fn parts_are_summed_and_an_overflow_is_an_error() {
        let space = Subspace::from("hits");
        assert_eq!(sum(&space, &[]), Ok(0));
        assert_eq!(sum(&space, &[row(&space, 0, 300), row(&space, 999, -1)]), Ok(299));
        let large = [row(&space, 0, i64::MAX), row(&space, 1, 1)];
        assert_eq!(sum(&space, &large), Err(Error::Overflow(i128::from(i64::MAX) + 1)));
        let back = [&large[..], &[row(&space, 2, -1)]].concat();
        assert_eq!(sum(&space, &back), Ok(i64::MAX));
    }

    #[test]
    fn any_number_names_a_part() {
        let space = Subspace::from("hits");
        assert_eq!(part(&space, Part(u64::MAX), 4), space.pack(&(3i64,)));
        assert_eq!(part(&space, Part(17), 0), space.pack(&(0i64,)));
    }

    #[test]
    fn what_a_counter_does_not_write_is_foreign() {
        let space = Subspace::from("hits");
        for foreign in
            [KeyValue::new(space.pack(&("x",)), vec![0; 8]), KeyValue::new(space.pack(&(1,)), vec![0; 4])]
        {
            assert_eq!(sum(&space, std::slice::from_ref(&foreign)), Err(Error::Foreign(foreign.key)));
        }
        for byte in [0x05, 0x01, 0x1d, 0xff] {
            let foreign = KeyValue::new([space.bytes(), &[byte; 9_900]].concat(), vec![0; 8]);
            assert_eq!(sum(&space, std::slice::from_ref(&foreign)), Err(Error::Foreign(foreign.key)));
        }
        let bytes = || proptest::collection::vec(0u8..0x40, 0..20);
        proptest::proptest!(|(tail in bytes(), bytes in bytes())| {
            let row = KeyValue::new([space.bytes(), &tail].concat(), bytes);
            if let Err(e) = sum(&space, std::slice::from_ref(&row)) {
                assert_eq!(e, Error::Foreign(row.key));
            }
        });
    }
}
