//! Size estimates by sampling: a key is in the sample with a probability that grows with its size, and is
//! then counted with the expected size of all keys of its size.
//!
//! A hash of the key determines whether it is in the sample, so that replicas agree. Estimates of small
//! ranges are inaccurate, and mostly zero, as in FoundationDB.

use crate::trace::hash_bytes;

/// One key in this many is sampled, at the size of the overhead (`BYTE_SAMPLING_FACTOR`).
const FACTOR: f64 = 250.0;
/// The assumed size of a key in addition to its bytes (`BYTE_SAMPLING_OVERHEAD`).
const OVERHEAD: f64 = 100.0;

/// The size with which a row is counted in estimates: 0 if it is not in the sample.
pub fn sampled_size(key: &[u8], value: &[u8]) -> i64 {
    let size = (key.len() + value.len()) as f64;
    let probability = (size / (key.len() as f64 + OVERHEAD) / FACTOR).min(1.0);
    let hash = hash_bytes(0, key) >> 11;
    if (hash as f64) < probability * (1u64 << 53) as f64 { (size / probability) as i64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rows_are_estimated_within_a_tenth_and_few_mostly_as_zero() {
        let value = [0; 100];
        let estimate = |n: u32| (0..n).map(|i| sampled_size(&i.to_be_bytes(), &value)).sum::<i64>();
        let real = 200_000 * 104;
        assert!((estimate(200_000) - real).abs() < real / 10, "{} of {real}", estimate(200_000));
        assert!((0..100u32).filter(|i| sampled_size(&i.to_le_bytes(), &value) > 0).count() < 10);
        assert_eq!(sampled_size(b"large", &[0; 100_000]), 100_005);
    }
}
