//! The rows of a ranked set, computed from its elements: which elements have a row at which level, and the
//! counts there.

use crate::record_shared::{
    columns::{Col, packed},
    rows::Rows,
};
use foundationdb_tuple::{Bytes, Subspace};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::LazyLock};

/// How the ranked sets of an index are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Kept {
    /// Whether records with equal scores count separately.
    pub(super) counts: bool,
    /// The number of levels.
    pub(super) levels: u32,
    /// Whether the hash of elements is a cyclic redundancy check.
    pub(super) crc: bool,
}

impl Kept {
    /// The highest level at which an element has a row: four more bits of its hash are zero at each.
    fn highest(self, element: &[u8]) -> u32 {
        hash(self.crc, element).trailing_zeros() / 4
    }

    /// The rows of the set with these elements, each with how often it counts.
    pub(super) fn rows(self, space: &Subspace, elements: &BTreeMap<Vec<u8>, i64>) -> Rows {
        let mut rows = Rows::new();
        let highest: Vec<_> = elements.keys().map(|element| self.highest(element)).collect();
        for level in 0..self.levels {
            let mut count = (Vec::new(), 0i64);
            for ((element, times), highest) in elements.iter().zip(&highest) {
                if level <= *highest {
                    let (before, count) = std::mem::replace(&mut count, (element.clone(), 0));
                    rows.insert(key(space, level, &before), count.to_le_bytes().to_vec());
                }
                count.1 += times;
            }
            rows.insert(key(space, level, &count.0), count.1.to_le_bytes().to_vec());
        }
        rows
    }
}

/// The key of an element's row.
pub(super) fn key(space: &Subspace, level: u32, element: &[u8]) -> Vec<u8> {
    space.pack(&(level, Bytes::from(element)))
}

/// `Arrays.hashCode` of Java, or the cyclic redundancy check of IEEE 802.3, bit by bit.
fn hash(crc: bool, element: &[u8]) -> u32 {
    if !crc {
        return element
            .iter()
            .fold(1i32, |hash, byte| hash.wrapping_mul(31).wrapping_add((*byte as i8).into()))
            as u32;
    }
    let mut register = u32::MAX;
    for byte in element {
        for bit in 0..8 {
            let is_odd = (register ^ (u32::from(*byte) >> bit)) & 1 == 1;
            register = (register >> 1) ^ if is_odd { 0xedb8_8320 } else { 0 };
        }
    }
    !register
}

/// The scores near zero that have a row at this level.
pub(super) fn high(crc: bool, level: u32) -> &'static [i64] {
    type Scores = [[Vec<i64>; 2]; 2];
    static HIGH: LazyLock<Scores> = LazyLock::new(|| {
        [false, true].map(|crc| {
            let kept = Kept { counts: false, levels: 3, crc };
            let has_row = |level, score: &i64| kept.highest(&packed(&[Col::Int(*score)])) >= level;
            [1, 2].map(|level| (-3_000..3_000).filter(|score| has_row(level, score)).collect())
        })
    });
    &HIGH[usize::from(crc)][usize::from(level > 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_hashed_as_in_java() {
        assert_eq!((hash(false, b""), hash(false, b"\xff"), hash(false, b"abc")), (1, 30, 126_145));
        assert_eq!(hash(true, b"123456789"), 0xcbf4_3926);
        assert!(high(false, 1).len() > 100 && high(true, 2).len() > 5);
    }

    #[test]
    fn each_level_has_all_counts() {
        let kept = Kept { counts: true, levels: 3, crc: false };
        let is_no_higher = |score: &&i64| !high(false, 2).contains(score);
        let high = *high(false, 1).iter().find(is_no_higher).expect("few scores have rows at two levels");
        let elements = [high - 1, high, high + 1].map(|score| (packed(&[Col::Int(score)]), 2));
        let rows = kept.rows(&Subspace::from("s"), &BTreeMap::from(elements.clone()));
        let at = |level, element: &[u8]| {
            rows.get(&key(&Subspace::from("s"), level, element))
                .map(|count| i64::from_le_bytes(count[..].try_into().unwrap()))
        };
        assert_eq!((at(0, b""), at(0, &elements[0].0), at(0, &elements[2].0)), (Some(0), Some(2), Some(2)));
        assert_eq!((at(1, b""), at(1, &elements[1].0), at(1, &elements[0].0)), (Some(2), Some(4), None));
        assert_eq!((at(2, b""), rows.len()), (Some(6), 7));
    }
}
