//! Reports as text for a terminal: tables, a verdict, and, for a failure, the line that replays it at the
//! end. Plain characters without colours, so that a log has the same content.

mod advice;
mod bench;
pub(crate) mod bugs;
mod chain;
mod conformance;
mod contract;
mod explore;
pub(crate) mod regressions;
pub(crate) mod run;
mod story;
pub(crate) mod sweep;
mod table;

pub use self::{
    advice::{advice, shown as shown_advice},
    bench::bench,
    bugs::bugs,
    conformance::conformance,
    contract::contract,
    explore::explore,
    regressions::regressions,
    run::{Details, failure, replay},
    story::{story, transcript},
    sweep::sweep,
    table::{Align, Table},
};

pub(crate) use chain::chains;
pub(crate) use story::brief;

use std::borrow::Cow;
use textwrap::{Options, WordSeparator, WordSplitter};

/// The default width of a terminal in columns.
pub const COLUMNS: usize = 80;

/// A number with thousands separators.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `n` items as text: `1 run`, `2,000 runs`.
pub fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// Nanoseconds as seconds, with a meaningful number of digits.
pub fn seconds(ns: u64) -> String {
    let s = ns as f64 / 1e9;
    match s {
        s if s >= 1000.0 => count(s.round() as u64),
        s if s >= 10.0 => format!("{s:.1}"),
        s if s >= 0.1 => format!("{s:.2}"),
        s => format!("{s:.4}"),
    }
}

/// A measured value, with a meaningful number of digits.
fn figure(value: f64) -> String {
    match value {
        v if v >= 1000.0 => count(v.round() as u64),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v == v.trunc() => format!("{v}"),
        v => format!("{v:.2}"),
    }
}

/// The faults that were requested: `standard`, `storm without clog and loss`.
pub(crate) fn faults(profile: &str, without: &[String]) -> String {
    match without {
        [] => profile.to_owned(),
        [one] => format!("{profile} without {one}"),
        [most @ .., last] => format!("{profile} without {} and {last}", most.join(", ")),
    }
}

/// Fills lines of at most `width` characters where the words allow it, each prefixed with `by`.
pub fn fill(text: &str, width: usize, by: &str) -> String {
    indent(&lines(text, width).join("\n"), by)
}

/// Splits text into lines of at most `width` characters where the words allow it; at least one line.
fn lines(text: &str, width: usize) -> Vec<String> {
    let options = Options::new(width)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::wrap(text.trim(), options).into_iter().map(Cow::into_owned).collect()
}

/// The first characters of a text.
pub(crate) fn cut(text: &str, characters: usize) -> &str {
    match text.get(..characters) {
        // Most texts are short, or have no character of several bytes: nothing is to be counted.
        None if text.len() <= characters => text,
        Some(start) if start.is_ascii() => start,
        _ => text.char_indices().nth(characters).map_or(text, |(at, _)| &text[..at]),
    }
}

/// The first characters of a text, and an ellipsis for the rest.
pub(crate) fn shortened(text: &str, characters: usize) -> String {
    let shown = cut(text, characters);
    if shown.len() < text.len() { format!("{shown}…") } else { shown.to_owned() }
}

/// Prefixes every line of `text` with `by`, except for empty ones.
fn indent(text: &str, by: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{by}{line}\n") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("grün", 3), "grü");
        assert_eq!(cut("grün", 9), "grün");
        assert_eq!((shortened("grün", 3), shortened("grün", 4)), ("grü…".to_owned(), "grün".to_owned()));
        assert_eq!((cut("grün", 2), cut("grün", 4), cut("grün", 5)), ("gr", "grün", "grün"));
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            ["0", "999", "1,000", "12,345,678"],
            [0, 999, 1000, 12_345_678].map(count).map(|s| s).as_slice()
        );
        assert_eq!(plural(1, "run", "runs"), "1 run");
        assert_eq!(plural(2000, "run", "runs"), "2,000 runs");
        assert_eq!(seconds(1_234_567), "0.0012");
        assert_eq!(seconds(1_234_567_890), "1.23");
        assert_eq!(seconds(61_000_000_000), "61.0");
        assert_eq!(seconds(4_000_000_000_000), "4,000");
        assert_eq!(figure(20.0), "20.0");
        assert_eq!(figure(0.0), "0");
        assert_eq!(figure(7.128), "7.13");
        assert_eq!(figure(21_456.7), "21,457");
    }

    #[test]
    fn words_are_wrapped_into_lines() {
        assert_eq!(fill("one two  three four", 9, "  "), "  one two\n  three\n  four\n");
        assert_eq!(fill("unbreakable", 4, ""), "unbreakable\n");
    }

    #[test]
    fn faults_switched_off_are_listed() {
        let without = |n: usize| ["clog", "loss", "kill"].map(str::to_owned)[..n].to_vec();
        assert_eq!(faults("calm", &without(0)), "calm");
        assert_eq!(faults("storm", &without(1)), "storm without clog");
        assert_eq!(faults("storm", &without(3)), "storm without clog, loss and kill");
    }
}
