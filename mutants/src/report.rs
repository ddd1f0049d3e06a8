//! The report: a table of files, and the mutants that no run noticed.

use crate::{
    Arguments,
    compile::Mutant,
    score::{Equivalent, Scored},
};
use maud::{DOCTYPE, PreEscaped, html};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

/// How many survivors the terminal shows.
const SHOWN: usize = 40;
/// The runs that a usual sweep has.
const FEW: u64 = 30;

const STYLE: &str = "
    :root { color-scheme: light dark }
    body { font: 1rem/1.4 sans-serif; margin: 1rem auto; max-width: 70rem; padding: 0 1rem }
    table { border-collapse: collapse; display: block; overflow-x: auto }
    th, td { padding: 0.2rem 0.8rem; text-align: right }
    th:first-child, td:first-child { text-align: left }
    tr:last-child { font-weight: bold }
    code { overflow-wrap: anywhere }
    small { font-weight: normal }
";

/// What is reported.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    packages: &'a [String],
    faults: &'a str,
    seeds: u64,
    /// The mutants that compile, with those that were not begun.
    all: usize,
    mutants: &'a [Scored],
    equivalent: &'a [Equivalent],
}

#[derive(Default)]
struct Row {
    mutants: usize,
    unreached: usize,
    soon: usize,
    killed: usize,
    tested: usize,
    equivalent: usize,
}

impl<'a> Report<'a> {
    pub fn new(
        packages: &'a [String],
        arguments: &'a Arguments,
        mutants: &'a [Scored],
        equivalent: &'a [Equivalent],
        all: usize,
    ) -> Report<'a> {
        let (faults, seeds) = (arguments.faults.as_str(), arguments.seeds);
        Report { packages, faults, seeds, all, mutants, equivalent }
    }

    fn is_equivalent(&self, scored: &Scored) -> bool {
        self.equivalent.iter().any(|entry| entry.is(&scored.mutant))
    }

    /// The mutants that were not noticed and are not in the list.
    pub fn survivors(&self) -> Vec<&Scored> {
        let survives = |scored: &&Scored| {
            scored.killed.is_none() && scored.tested.is_none() && !self.is_equivalent(scored)
        };
        self.mutants.iter().filter(survives).collect()
    }

    fn row<'b>(&self, mutants: impl Iterator<Item = &'b Scored>) -> Row {
        let mut row = Row::default();
        for scored in mutants {
            row.mutants += 1;
            row.unreached += usize::from(!scored.reached);
            let is_equivalent = self.is_equivalent(scored);
            row.equivalent += usize::from(is_equivalent);
            row.tested += usize::from(scored.tested.is_some() && !is_equivalent);
            if let Some(kill) = &scored.killed {
                row.killed += 1;
                row.soon += usize::from(kill.runs <= FEW);
            }
        }
        row
    }

    /// The file of a mutant, with its package if there are several.
    fn file(&self, mutant: &Mutant) -> String {
        match self.packages {
            [_] => mutant.file.clone(),
            _ => format!("{}: {}", mutant.package, mutant.file),
        }
    }

    /// The rows of the table, with one for all.
    fn rows(&self) -> Vec<(String, Row)> {
        let mut of: BTreeMap<String, Vec<&Scored>> = BTreeMap::new();
        for scored in self.mutants {
            of.entry(self.file(&scored.mutant)).or_default().push(scored);
        }
        let mut rows: Vec<(String, Row)> =
            of.into_iter().map(|(file, mutants)| (file, self.row(mutants.into_iter()))).collect();
        rows.push(("all".into(), self.row(self.mutants.iter())));
        rows
    }

    /// What the terminal shows.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let rows = self.rows();
        let width = rows.iter().map(|(file, _)| file.len()).max().unwrap_or_default().max(4);
        let _ = writeln!(
            text,
            "{:width$}  mutants  not run  within {FEW}  within {}  by tests   share  equivalent",
            "file", self.seeds
        );
        for (file, row) in &rows {
            let share = share(row);
            let _ = writeln!(
                text,
                "{file:width$}  {:7}  {:7}  {:9}  {:10}  {:8}  {share:>6}  {:10}",
                row.mutants, row.unreached, row.soon, row.killed, row.tested, row.equivalent
            );
        }
        let survivors = self.survivors();
        if !survivors.is_empty() {
            let _ = writeln!(text, "\nNot noticed: {}", survivors.len());
        }
        for scored in survivors.iter().take(SHOWN) {
            let _ = writeln!(text, "{}", line(scored));
        }
        if survivors.len() > SHOWN {
            let _ = writeln!(text, "  {} more with --json or --html", survivors.len() - SHOWN);
        }
        if self.mutants.len() < self.all {
            let _ = writeln!(text, "{} of {} were begun within the budget", self.mutants.len(), self.all);
        }
        text
    }

    /// All of it.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).map(|text| text + "\n").unwrap_or_default()
    }

    /// A page: the table, and the survivors of each function.
    pub fn html(&self) -> String {
        let survivors = self.survivors();
        let mut functions: BTreeMap<(String, &str), Vec<&Scored>> = BTreeMap::new();
        for scored in &survivors {
            let of = (self.file(&scored.mutant), scored.mutant.function.as_str());
            functions.entry(of).or_default().push(scored);
        }
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { "Mutants of " (self.packages.join(", ")) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    h1 { "Mutants of " (self.packages.join(", ")) }
                    p { (self.faults) " faults, at most " (self.seeds) " runs of a mutant" }
                    table {
                        tr {
                            th { "file" } th { "mutants" } th { "not run" } th { "within " (FEW) }
                            th { "within " (self.seeds) } th { "by tests" } th { "share" } th { "equivalent" }
                        }
                        @for (file, row) in self.rows() {
                            tr {
                                td { (file) } td { (row.mutants) } td { (row.unreached) } td { (row.soon) }
                                td { (row.killed) } td { (row.tested) } td { (share(&row)) } td { (row.equivalent) }
                            }
                        }
                    }
                    h2 { (survivors.len()) " not noticed" }
                    @for ((file, function), scored) in functions {
                        h3 { (function) " " small { (file) } }
                        ul {
                            @for scored in scored {
                                li {
                                    "line " (scored.mutant.line) ", " (scored.mutant.operator)
                                    @if !scored.reached { ", never run" }
                                    br;
                                    code { (scored.mutant.original) }
                                    " → "
                                    @if scored.mutant.change.is_empty() { "nothing" }
                                    @else { code { (scored.mutant.change) } }
                                }
                            }
                        }
                    }
                }
            }
        };
        page.into_string()
    }
}

fn share(row: &Row) -> String {
    match row.mutants - row.equivalent {
        0 => "-".into(),
        left => format!("{:.1} %", 100.0 * (row.killed + row.tested) as f64 / left as f64),
    }
}

fn line(scored: &Scored) -> String {
    let mutant = &scored.mutant;
    let cut = |text: &str| match text.char_indices().nth(70) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    let change = if mutant.change.is_empty() { "nothing".into() } else { cut(&mutant.change) };
    let run = if scored.reached { String::new() } else { ", never run".to_owned() };
    format!(
        "  {}:{} {} ({}{run})\n      {} -> {change}",
        mutant.file,
        mutant.line,
        mutant.function,
        mutant.operator,
        cut(&mutant.original)
    )
}

/// How many changes of each operator compile.
pub fn operators(all: &[Mutant], left_out: &BTreeSet<u32>) -> String {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for mutant in all {
        let (compile, found) = counts.entry(&mutant.operator).or_default();
        *found += 1;
        *compile += usize::from(!left_out.contains(&mutant.number));
    }
    let mut text = String::new();
    for (operator, (compile, found)) in counts {
        let _ = writeln!(text, "{operator:20} {compile:6} of {found:6}");
    }
    text
}
