//! The text of a benchmark: a table of figures, each with its setup.

use super::{
    figure, indent, plural, seconds,
    table::{Align, Table},
};
use crate::bench::BenchReport;
use std::fmt::Write;

/// The figures as text.
pub fn bench(report: &BenchReport, commit: &str) -> String {
    use Align::{Left, Right};
    let mut out = format!("{}, commit {commit}\n\n", plural(report.processors, "processor", "processors"));
    let mut table =
        Table::new(&[("figure", Left), ("value", Right), ("unit", Left), ("reach", Right), ("", Left)]);
    for f in &report.figures {
        let reach = f
            .reach
            .map_or(String::new(), |r| format!("{} {}", if f.at_most { "<=" } else { ">=" }, figure(r)));
        let state = match f.reach {
            None => "",
            Some(_) if f.is_reached() => "reached",
            Some(_) => "below",
        };
        let state = if state == "below" && f.at_most { "above" } else { state };
        table.row(vec![f.name.clone(), figure(f.value), f.unit.clone(), reach, state.to_owned()]);
    }
    out.push_str(&table.render());
    out.push_str("\nmeasured on\n");
    for f in report.figures.iter().filter(|f| !f.profile.is_empty()) {
        let _ = write!(out, "  {}:\n{}", f.name, indent(&f.profile, "    "));
    }
    let _ = writeln!(
        out,
        "\n{} CPU seconds, {} s on the wall.",
        seconds(report.cost.cpu_ns),
        seconds(report.cost.wall_ns)
    );
    out
}
