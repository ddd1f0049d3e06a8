//! The text of a benchmark: a table of figures, each with its setup, or of ratios.

use super::{
    figure, indent, plural, seconds,
    table::{Align, Table},
};
use crate::bench::{BenchReport, Comparison, Figure, Ratio};
use Align::{Left, Right};
use std::fmt::Write;

/// The figures as text.
pub fn bench(report: &BenchReport, commit: &str) -> String {
    let mut out = format!("{}, commit {commit}\n\n", plural(report.processors, "processor", "processors"));
    out.push_str(&match &report.comparison {
        Some(comparison) => compared(comparison),
        None => figures(&report.figures),
    });
    let _ = writeln!(
        out,
        "\n{} CPU seconds, {} s on the wall.",
        seconds(report.cost.cpu_ns),
        seconds(report.cost.wall_ns)
    );
    out
}

fn figures(figures: &[Figure]) -> String {
    let mut table =
        Table::new(&[("figure", Left), ("value", Right), ("unit", Left), ("reach", Right), ("", Left)]);
    for f in figures {
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
    let mut out = table.render();
    out.push_str("\nmeasured on\n");
    let measured: Vec<_> = figures.iter().filter(|f| !f.profile.is_empty()).collect();
    for same in measured.chunk_by(|a, b| a.profile == b.profile) {
        let more = match same.len() - 1 {
            0 => String::new(),
            more => format!(" (and the {} after it)", plural(more as u64, "figure", "figures")),
        };
        let _ = write!(out, "  {}{more}:\n{}", same[0].name, indent(&same[0].profile, "    "));
    }
    out
}

fn compared(comparison: &Comparison) -> String {
    let Comparison { program, commit, seeds, rounds, workloads, all } = comparison;
    let mut table = Table::new(&[
        ("workload", Left),
        ("this program\nper core min", Right),
        ("the other\nper core min", Right),
        ("\nratio", Right),
        ("\nlowest", Right),
        ("\nhighest", Right),
    ]);
    let rows = workloads.iter().map(|w| (w.workload.as_str(), w.ratio.as_ref()));
    for (name, ratio) in rows.chain(all.iter().map(|all| ("all", Some(all)))) {
        let mut cells = vec![name.to_owned()];
        cells.extend(match ratio {
            Some(Ratio { ours, theirs, median, lowest, highest }) => {
                let ratios = [median, lowest, highest].map(|ratio| format!("{ratio:.3}"));
                [figure(*ours), figure(*theirs)].into_iter().chain(ratios).collect()
            }
            None => ["", "missing", "", "", ""].map(str::to_owned).to_vec(),
        });
        table.row(cells);
    }
    format!(
        "against {program}, commit {commit}\n\n{}\nratio: how much faster this program is, the median of {}\n\
         measured on: seeds {}..{} of each workload, standard faults, one thread; the programs take turns\n",
        table.render(),
        plural(*rounds, "pair", "pairs"),
        seeds.start,
        seeds.end
    )
}
