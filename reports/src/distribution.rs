//! A distribution of measured numbers, as a histogram that can be saved, read and merged without a loss.
//!
//! A histogram has 16 buckets for each doubling, so that a number is known to within 7 percent, and numbers
//! below 32 are exact. The merged histogram of some shards has the same buckets as that of all numbers
//! together.

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::fmt::Write;

/// The number of decimal digits of a number that are kept.
const DIGITS: u8 = 1;

/// A distribution of whole numbers.
///
/// It is saved as one text: the lowest number of each bucket with the number of recorded numbers in it, as in
/// `1:12 2:3 5:1`.
#[derive(Clone, Debug)]
pub struct Distribution(Histogram<u64>);

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution(Histogram::new(DIGITS).expect("a possible number of digits"))
    }
}

/// Part of a distribution: the numbers from `first` to `last`, and how many were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The lowest number.
    pub first: u64,
    /// The highest number.
    pub last: u64,
    /// How many numbers were recorded.
    pub count: u64,
}

impl Distribution {
    /// Records a number.
    pub fn record(&mut self, number: u64) {
        self.record_n(number, 1);
    }

    /// Records a number several times.
    pub fn record_n(&mut self, number: u64, count: u64) {
        // The histogram grows as it needs to: only a machine with small addresses has no place for some
        // numbers.
        if self.0.record_n(number, count).is_err() {
            self.0.saturating_record_n(number, count);
        }
    }

    /// Adds the numbers of another distribution.
    pub fn add(&mut self, other: &Distribution) {
        other.buckets().for_each(|bucket| self.record_n(bucket.first, bucket.count));
    }

    /// How many numbers were recorded.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number that `percent` percent of the recorded numbers do not exceed; 0 if nothing was recorded.
    pub fn percentile(&self, percent: f64) -> u64 {
        self.0.value_at_percentile(percent)
    }

    /// The largest number of the last bucket; 0 if nothing was recorded.
    pub fn max(&self) -> u64 {
        self.buckets().last().map_or(0, |bucket| bucket.last)
    }

    /// The mean of the recorded numbers; 0 if nothing was recorded.
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// The buckets in which something was recorded, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        self.0.iter_recorded().map(|value| Bucket {
            first: self.0.lowest_equivalent(value.value_iterated_to()),
            last: self.0.highest_equivalent(value.value_iterated_to()),
            count: value.count_at_value(),
        })
    }
}

impl PartialEq for Distribution {
    fn eq(&self, other: &Distribution) -> bool {
        self.buckets().eq(other.buckets())
    }
}

impl FromIterator<u64> for Distribution {
    fn from_iter<T: IntoIterator<Item = u64>>(numbers: T) -> Distribution {
        let mut distribution = Distribution::default();
        numbers.into_iter().for_each(|number| distribution.record(number));
        distribution
    }
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.buckets().fold(String::new(), |mut text, bucket| {
            let gap = if text.is_empty() { "" } else { " " };
            let _ = write!(text, "{gap}{}:{}", bucket.first, bucket.count);
            text
        });
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Distribution, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut distribution = Distribution::default();
        for bucket in text.split_whitespace() {
            let numbers =
                bucket.split_once(':').and_then(|(n, count)| Some((n.parse().ok()?, count.parse().ok()?)));
            let Some((number, count @ 1..)) = numbers else {
                return Err(D::Error::custom(format!("{bucket:?} is not a bucket of a distribution")));
            };
            distribution.record_n(number, count);
        }
        Ok(distribution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> Vec<u64> {
        // The squares of a linear congruential sequence: small and large numbers.
        let mut state = 17_u64;
        std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 44) * (state >> 44)) >> (state % 30)
        })
        .take(5_000)
        .chain([0, 1, u64::MAX])
        .collect()
    }

    #[test]
    fn shards_merged_in_any_order_equal_the_whole() {
        let numbers = numbers();
        let whole: Distribution = numbers.iter().copied().collect();
        let mut merged = Distribution::default();
        for shard in [5, 0, 7, 2, 1, 6, 3, 4] {
            merged.add(&numbers.iter().copied().skip(shard).step_by(8).collect());
        }
        assert_eq!(merged, whole);
        assert_eq!((merged.count(), merged.max()), (numbers.len() as u64, whole.max()));
        merged.record(77);
        assert_ne!(merged, whole);
    }

    #[test]
    fn what_is_saved_is_read_again() {
        for distribution in [Distribution::default(), numbers().into_iter().collect()] {
            let saved = serde_json::to_string(&distribution).expect("text");
            let read: Distribution = serde_json::from_str(&saved).expect("read");
            assert_eq!(read, distribution);
            assert_eq!(serde_json::to_string(&read).expect("text"), saved);
        }
        let few: Distribution = [1, 5, 1, 2, 40].into_iter().collect();
        assert_eq!(serde_json::to_string(&few).expect("text"), r#""1:2 2:1 5:1 40:1""#);
        for torn in ["1", "1:x", "1:2,3:4", ":", "-1:2", "1:0"] {
            assert!(serde_json::from_value::<Distribution>(torn.into()).is_err(), "{torn}");
        }
    }

    #[test]
    fn small_numbers_are_exact_and_large_ones_nearly() {
        let small: Distribution = (0..=31).collect();
        assert!(small.buckets().all(|bucket| bucket.first == bucket.last));
        assert_eq!((small.percentile(50.0), small.max(), small.mean()), (15, 31, 15.5));
        let large: Distribution = (1..=10_000).collect();
        assert!(large.percentile(50.0).abs_diff(5_000) < 350, "{}", large.percentile(50.0));
        assert!(large.buckets().count() < 170);
        assert_eq!(Distribution::default().percentile(99.0), 0);
    }
}
