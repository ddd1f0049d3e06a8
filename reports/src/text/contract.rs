//! The text of a contract report: every broken promise, a table of sections, and a verdict.

use super::{
    count, plural,
    table::{Align, Table},
};
use crate::{contract::ContractReport, run::Conclusion};
use std::fmt::Write;

/// Renders the report as text.
pub fn contract(report: &ContractReport) -> String {
    use Align::{Left, Right};
    let mut out = String::new();
    for case in &report.cases {
        if let Some(broken) = &case.broken {
            let _ = writeln!(out, "{}: {}\n  {broken}\n", case.name, case.promise);
        }
    }
    let mut table = Table::new(&[("section", Left), ("promises", Right), ("kept", Right), ("broken", Right)]);
    let mut row = |name: &str, of: &dyn Fn(&str) -> bool| {
        let cases = || report.cases.iter().filter(|case| of(case.section()));
        let broken = cases().filter(|case| case.broken.is_some()).count() as u64;
        let all = cases().count() as u64;
        table.row(vec![name.to_owned(), count(all), count(all - broken), count(broken)]);
        (all, broken)
    };
    let mut sections: Vec<&str> = report.cases.iter().map(|case| case.section()).collect();
    sections.dedup();
    for section in &sections {
        row(section, &|of| of == *section);
    }
    let (all, broken) = row("all", &|_| true);
    let _ = writeln!(out, "{}", table.render());
    let promises = plural(all, "promise", "promises");
    let _ = match report.outcome() {
        Conclusion::Vacuous => writeln!(out, "VACUOUS: no promise was tested."),
        Conclusion::Passed => writeln!(out, "PASSED: {promises} kept."),
        _ => writeln!(out, "BACKEND FAULT: of {promises}, {} broken.", count(broken)),
    };
    out
}
