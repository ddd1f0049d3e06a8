//! The syntax of seeds, which is the same on the command line, in `SHAKETABLE_SEEDS` and in printed lines.

use std::ops::Range;

/// Parses a seed: decimal, or hexadecimal with the prefix `0x`. The error is a sentence fragment for a message.
pub fn seed(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "a seed is a whole number from 0 to 2^64 - 1".to_owned())
}

/// Parses a range of seeds: `100` and `..100` are the seeds 0 to 99, `5..10` are the seeds 5 to 9. An empty range
/// is an error. The error is a sentence fragment for a message.
pub fn range(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = match text.split_once("..") {
        Some(("", to)) => ("0", to),
        Some(bounds) => bounds,
        None => ("0", text),
    };
    let range = seed(from)?..seed(to)?;
    if range.is_empty() { Err("the range is empty".to_owned()) } else { Ok(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_count_or_a_range() {
        assert_eq!(range("10"), Ok(0..10));
        assert_eq!(range("..10"), Ok(0..10));
        assert_eq!(range("5..8"), Ok(5..8));
        assert_eq!(range("0x10..0xff"), Ok(16..255));
        for bad in
            ["", "0", "x", "8..5", "5..5", "..0", "..", "5..", "-1", "1..2..3", "1.5", "18446744073709551616"]
        {
            assert!(range(bad).is_err(), "{bad}");
        }
    }
}
