//! The syntax of seeds, which is the same on the command line, in `SHAKETABLE_SEEDS` and in printed lines.

use shaketable_sim::seed::Seed;
use std::ops::Range;

/// Parses a seed: decimal, or hexadecimal with the prefix `0x`. The error is a sentence fragment for a
/// message.
pub fn seed(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "a seed is a whole number from 0 to 2^64 - 1".to_owned())
}

/// Parses a range of seeds: `100` and `..100` are the seeds 0 to 99, `5..10` are the seeds 5 to 9. An empty
/// range is an error. The error is a sentence fragment for a message.
pub fn range(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = match text.split_once("..") {
        Some(("", to)) => ("0", to),
        Some(bounds) => bounds,
        None => ("0", text),
    };
    let range = seed(from)?..seed(to)?;
    if range.is_empty() { Err("the range is empty".to_owned()) } else { Ok(range) }
}

/// Parses the text for [`fresh`]. A blank text is refused: it is what an unset variable of a script gives,
/// and sweeps with equal texts have the same seeds. The error is a sentence fragment for a message.
pub fn fresh_text(text: &str) -> Result<String, String> {
    match text {
        text if text.trim().is_empty() => Err("the text is empty".to_owned()),
        text if text.contains(char::is_control) => Err("the text has a control character".to_owned()),
        text => Ok(text.to_owned()),
    }
}

/// Seeds that belong to a text: `range`, counted from a number below 2^63 that is drawn from the text.
/// Returns `None` if the range goes beyond the last seed.
///
/// Two texts have a seed in common with a probability of about the number of their seeds divided by 2^63.
pub fn fresh(text: &str, range: &Range<u64>) -> Option<Range<u64>> {
    let from = Seed(0).stream(&format!("fresh seeds from {text}")).u64() >> 1;
    Some(from.checked_add(range.start)?..from.checked_add(range.end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_seeds_of_their_own() {
        assert_eq!(fresh("2026-11-23", &(0..200)), Some(FRESH..FRESH + 200), "a text keeps its seeds");
        assert_eq!(fresh("2026-11-23", &(5..10)), Some(FRESH + 5..FRESH + 10));
        // A century of nights, and a number of runs.
        let nights = (0..36_500).map(|night| format!("night {night}"));
        let texts = nights.chain((0..36_500).map(|number| number.to_string()));
        let mut ranges: Vec<Range<u64>> =
            texts.map(|text| fresh(&text, &(0..1_000_000)).expect("below the last seed")).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start));
        assert_eq!(fresh("2026-11-23", &(0..u64::MAX)), None);
    }

    /// The first seed of a date, which must not move: the line that names it is in old reports.
    const FRESH: u64 = 6_924_786_885_068_501_391;

    #[test]
    fn a_text_that_a_script_left_empty_is_refused() {
        assert_eq!(fresh_text("run 17"), Ok("run 17".to_owned()));
        for bad in ["", "  ", "two\nlines"] {
            assert!(fresh_text(bad).is_err(), "{bad:?}");
        }
    }

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
