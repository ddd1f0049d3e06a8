//! The text of a file in which each place asks which of its alternatives is on.
//!
//! Lines stay where they are, so that a panic, an error and a story name the line of the source.

use crate::points::{Form, Point};
use std::{collections::BTreeSet, fmt::Write, ops::Range};

/// A file's text, and where each mutant is in it.
#[derive(Debug, Default)]
pub struct Rewritten {
    /// The text.
    pub text: String,
    /// The bytes that belong to a mutant.
    pub mutants: Vec<(u32, Range<usize>)>,
    /// The bytes of each place, with the mutants that are there.
    pub places: Vec<(Vec<u32>, Range<usize>)>,
}

/// Rewrites a file. The alternatives of its places are numbered from `first`; those in `left_out` are not
/// there. `switch` is the path of the module with the switch.
pub fn rewrite(
    source: &str,
    points: &[Point],
    first: u32,
    left_out: &BTreeSet<u32>,
    switch: &str,
) -> Rewritten {
    let mut numbered = Vec::new();
    let mut next = first;
    for point in points {
        numbered.push((point, next));
        next += point.alternatives.len() as u32;
    }
    let mut writer = Writer { source, points: &numbered, left_out, switch, out: Rewritten::default() };
    writer.range(0..source.len(), 0..numbered.len());
    writer.out
}

struct Writer<'a> {
    source: &'a str,
    points: &'a [(&'a Point, u32)],
    left_out: &'a BTreeSet<u32>,
    switch: &'a str,
    out: Rewritten,
}

/// A text without line breaks: those of a changed copy would move the lines after it. A text in quotes may
/// lose its own, which changes a message at most.
fn in_one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

impl Writer<'_> {
    /// Writes a range of the source, with these places in it.
    fn range(&mut self, range: Range<usize>, places: Range<usize>) {
        let (mut at, mut place) = (range.start, places.start);
        while place < places.end {
            let (point, number) = self.points[place];
            let inside = place + 1..self.end_of(place, places.end);
            self.out.text.push_str(&self.source[at..point.range.start]);
            self.point(point, number, inside.clone());
            (at, place) = (point.range.end, inside.end);
        }
        self.out.text.push_str(&self.source[at..range.end]);
    }

    /// The first place that is not within this one.
    fn end_of(&self, place: usize, end: usize) -> usize {
        let outer = &self.points[place].0.range;
        (place + 1..end).find(|i| self.points[*i].0.range.start >= outer.end).unwrap_or(end)
    }

    fn point(&mut self, point: &Point, number: u32, inside: Range<usize>) {
        let numbers = number..number + point.alternatives.len() as u32;
        let kept: Vec<u32> = numbers.filter(|n| !self.left_out.contains(n)).collect();
        let begin = self.out.text.len();
        if kept.is_empty() {
            self.range(point.range.clone(), inside);
            return;
        }
        let switch = self.switch;
        match point.form {
            Form::Expression | Form::Arm | Form::Statements => {
                let (open, close) = match point.form {
                    Form::Expression => ("(", ")"),
                    Form::Arm => ("{ ", " }"),
                    _ => ("", ""),
                };
                self.out.text.push_str(open);
                self.alternatives(point, number, &kept);
                self.out.text.push_str(" else { ");
                self.range(point.range.clone(), inside);
                self.out.text.push_str(" }");
                self.out.text.push_str(close);
            }
            Form::Insertion => {
                for n in &kept {
                    let from = self.out.text.len();
                    let text = &point.alternatives[(n - number) as usize].text;
                    // A loop's last expression has no semicolon.
                    let (before, text) = text.strip_prefix(';').map_or(("", &**text), |text| (";", text));
                    let _ = write!(self.out.text, "{before} if {switch}::on({n}) {{ {text} }} ");
                    self.out.mutants.push((*n, from..self.out.text.len()));
                }
            }
            Form::Ends => {
                self.out.text.push_str(switch);
                self.out.text.push_str("::ends(");
                self.range(point.range.clone(), inside);
                let of = |place: u32| if kept.contains(&(number + place)) { number + place } else { 0 };
                let _ = write!(self.out.text, ", {}, {})", of(0), of(1));
                for n in &kept {
                    self.out.mutants.push((*n, begin..begin));
                }
            }
        }
        self.out.places.push((kept, begin..self.out.text.len()));
    }

    fn alternatives(&mut self, point: &Point, number: u32, kept: &[u32]) {
        let switch = self.switch;
        for (i, n) in kept.iter().enumerate() {
            if i > 0 {
                self.out.text.push_str(" else ");
            }
            let from = self.out.text.len();
            let text = in_one_line(&point.alternatives[(n - number) as usize].text);
            let _ = write!(self.out.text, "if {switch}::on({n}) {{ {text} }}");
            self.out.mutants.push((*n, from..self.out.text.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points;

    fn rewritten(source: &str, left_out: &[u32]) -> Rewritten {
        let points = points::of(source).unwrap();
        rewrite(source, &points, 1, &left_out.iter().copied().collect(), "m")
    }

    const SOURCE: &str = "
        fn first(n: u32) -> u32 {
            if n < 3 { tx.set(n); }
            for item in items { sum += item }
            match n {
                0 => { one() }
                _ => two(),
            }
        }
        const LIMIT: u32 = 3;
        #[cfg(test)]
        mod tests { fn other() { call(); } }
    ";

    #[test]
    fn a_rewritten_file_is_rust_and_keeps_its_lines() {
        let all = rewritten(SOURCE, &[]);
        let file = syn::parse_file(&all.text);
        assert!(file.is_ok(), "{:?} in {}", file.err(), all.text);
        assert_eq!(all.text.lines().count(), SOURCE.lines().count());
        for (line, old) in all.text.lines().zip(SOURCE.lines()) {
            let begins = old.split_whitespace().next().unwrap_or_default();
            assert!(line.contains(begins), "{line} was {old}");
        }
        assert!(all.text.contains("const LIMIT: u32 = 3;") && all.text.contains("fn other() { call(); }"));
    }

    #[test]
    fn what_is_left_out_is_as_it_was() {
        let count = rewritten(SOURCE, &[]).mutants.len() as u32;
        assert!(count > 10, "{count}");
        assert_eq!(rewritten(SOURCE, &(1..=count).collect::<Vec<_>>()).text, SOURCE);
        for kept in 1..=count {
            let others: Vec<u32> = (1..=count).filter(|n| *n != kept).collect();
            let one = rewritten(SOURCE, &others);
            assert!(syn::parse_file(&one.text).is_ok(), "{}", one.text);
            assert_eq!(one.mutants.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [kept]);
        }
    }

    #[test]
    fn what_changes_nothing_is_left_alone() {
        let operators = |source: &str| -> Vec<&str> {
            let points = points::of(source).unwrap();
            points.iter().flat_map(|point| &point.alternatives).map(|change| change.operator).collect()
        };
        for (source, changes) in [
            ("fn f() { let list = Vec::with_capacity(n + 1); tx.set_option(option)?; }", false),
            ("fn f() { let list = g(n + 1); tx.check(option)?; }", true),
        ] {
            let found = operators(source);
            assert_eq!(
                ["arithmetic", "error ignored"].map(|one| found.contains(&one)),
                [changes; 2],
                "{found:?}"
            );
        }
    }
}
