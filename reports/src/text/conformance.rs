//! The text of a comparison with recordings: a table, the cases that cannot be equal, and every difference.

use super::{
    count, plural,
    table::{Align, Table},
};
use crate::{conformance::ConformanceReport, run::Conclusion};
use std::fmt::Write;

/// Renders the comparison as text.
pub fn conformance(report: &ConformanceReport) -> String {
    use Align::{Left, Right};
    let mut out = String::new();
    for file in &report.files {
        for d in &file.differences {
            let step = d.step.map_or(String::new(), |n| format!(" step {n}"));
            let _ = writeln!(out, "{}{step}: {}", d.case, d.what);
            let _ = writeln!(out, "  recorded  {}\n  answered  {}", d.expected, d.actual);
        }
        for i in &file.impossible {
            let _ = writeln!(out, "{} cannot agree: {}", i.case, i.reason);
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    let mut table = Table::new(&[
        ("file", Left),
        ("cases", Right),
        ("equal", Right),
        ("impossible", Right),
        ("different", Right),
    ]);
    let mut totals = [0u64; 4];
    for f in &report.files {
        let cells = [f.cases, f.equal, f.impossible.len() as u64, f.differences.len() as u64];
        totals.iter_mut().zip(cells).for_each(|(total, cell)| *total += cell);
        table.row([f.file.clone()].into_iter().chain(cells.map(count)).collect());
    }
    if report.files.len() > 1 {
        table.row(["all".to_owned()].into_iter().chain(totals.map(count)).collect());
    }
    let _ = writeln!(out, "{}", table.render());
    let cases = plural(totals[0], "case", "cases");
    let _ = match report.outcome() {
        Conclusion::Vacuous => writeln!(out, "VACUOUS: there were no cases."),
        Conclusion::Passed => writeln!(out, "PASSED: {cases} answered as the real cluster did."),
        _ => writeln!(out, "HARNESS FAULT: of {cases}, {} answered differently.", count(totals[3])),
    };
    out
}
