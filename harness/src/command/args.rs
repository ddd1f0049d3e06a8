//! What the arguments of several subcommands share.

use super::{Refusal, choose, files::Files, output, refuse};
use crate::{
    run::plan::Demands,
    search::{entry::Entry, seeds},
};
use clap::{Args, error::ErrorKind};
use shaketable_reports::{Conclusion, Scale};
use shaketable_sim::faults::Profile;
use std::{path::PathBuf, time::Duration};

/// The runs after which a search ends, unless told otherwise.
pub(super) const REPLAYS: u64 = 1_000;

/// The exit codes, for the end of a help page.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  every invariant held, and the sweep was not vacuous
  1  a layer or its workload is wrong, a run was stuck, or a planted bug was missed
  2  bad usage, configuration or input file (one line on stderr, nothing written)
  3  the harness failed: its own judges, a simulator that does not repeat, a recording that is
     not reproduced, a real cluster that does not reply; do not rely on its other verdicts
  4  the sweep was vacuous: nothing was violated, but too little happened
  130, 143, 129
     interrupted (Ctrl-C, SIGTERM, SIGHUP); the completed part is reported";

/// The faults of a run.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Faults {
    /// The fault profile: calm, standard or storm [default: standard]
    #[arg(id = "faults", long = "faults", value_name = "PROFILE", value_parser = choose::profile)]
    pub profile: Option<Profile>,
    /// Switch a fault family off; may be repeated (see `list faults`)
    #[arg(long, value_name = "FAMILY", value_delimiter = ',')]
    pub without: Vec<String>,
}

impl Faults {
    /// The demands on each run.
    pub(super) fn demands(&self) -> Result<Demands, Refusal> {
        let without = choose::families(&self.without)?;
        Ok(Demands { profile: self.profile.unwrap_or_default(), without, ..Demands::default() })
    }
}

/// The run that a subcommand is about.
#[derive(Clone, Debug, Args)]
pub(super) struct Subject {
    /// The workload, or a repro file
    #[arg(value_name = "WORKLOAD|REPRO-FILE")]
    pub what: String,
    /// The seed; not for a repro file
    #[arg(value_name = "SEED", allow_negative_numbers = true, value_parser = seeds::seed)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub shaking: Shaking,
    /// Switch on a planted bug (see `list bugs`)
    #[arg(long, value_name = "NAME")]
    pub bug: Option<String>,
}

impl Subject {
    /// The workload of a seed, and the demands on its run.
    pub(super) fn workload(&self) -> Result<(Box<dyn Entry>, Demands), Refusal> {
        let entry = choose::workload(&self.what)?;
        let mut demands = self.shaking.demands([entry.as_ref()])?;
        if let Some(bug) = &self.bug {
            choose::plant(&mut demands, entry.as_ref(), bug)?;
        }
        Ok((entry, demands))
    }
}

/// The options of a run of a workload in addition to its seed.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Shaking {
    #[command(flatten)]
    pub faults: Faults,
    /// Make each run N times as long, up to 100: N times the operations, and N times the time in which
    /// faults strike [default: 1]
    #[arg(long, value_name = "N", value_parser = choose::scale)]
    pub scale: Option<Scale>,
    /// Switch on this mutant of a program that shaketable-mutants has built
    #[arg(long, value_name = "N", hide = true)]
    pub mutant: Option<u32>,
}

impl Shaking {
    /// The demands on each run of these workloads.
    pub(super) fn demands<'a>(
        &self,
        entries: impl IntoIterator<Item = &'a dyn Entry>,
    ) -> Result<Demands, Refusal> {
        let scale = self.scale.unwrap_or_default();
        if let Some(entry) = entries.into_iter().find(|entry| !scale.is_usual() && !entry.grows()) {
            refuse!("{} has no longer runs, because it has no Workload::length: omit --scale", entry.name());
        }
        Ok(Demands { scale, mutant: self.mutant, ..self.faults.demands()? })
    }

    /// Whether it says anything that a repro file determines.
    pub(super) fn is_given(&self) -> bool {
        self.faults.profile.is_some()
            || !self.faults.without.is_empty()
            || self.scale.is_some()
            || self.mutant.is_some()
    }
}

/// The time after which nothing more begins.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Budget {
    /// Start no further seed after this time: 60s, 5m, 1h 30m
    #[arg(long, value_name = "TIME", value_parser = choose::duration)]
    pub budget: Option<Duration>,
}

/// The files of a report that is written in several forms.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Written {
    /// Write the report as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as JUnit XML: a workload is a suite, a failing seed or a planted bug a test case; -
    /// for standard output
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the report as an HTML page; - for standard output
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl Written {
    /// The files that are named.
    pub(super) fn files(&self) -> Files<'_> {
        let [json, junit, html] = [&self.json, &self.junit, &self.html].map(Option::as_deref);
        Files { json, junit, html, ..Files::default() }
    }
}

/// Handles a clap error: help and version are printed, and everything else is refused in one line.
pub(super) fn handle(error: &clap::Error) -> Result<Conclusion, Refusal> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output::print(&error.render().to_string())?;
            Ok(Conclusion::Passed)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Refusal::Usage("a subcommand is missing: see --help".to_owned()))
        }
        _ => Err(Refusal::Usage(one_line(&error.render().to_string()))),
    }
}

/// The part of clap's message that describes what is wrong, with its hints in brackets.
fn one_line(message: &str) -> String {
    let mut parts: Vec<&str> = message
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty())
        .collect();
    if parts.is_empty() {
        return "bad usage".to_owned();
    }
    let first = parts.remove(0);
    let mut line = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    for part in parts {
        let part = part.strip_prefix("tip: ").unwrap_or(part);
        line.push(' ');
        match part.starts_with('[') {
            true => line.push_str(part),
            false => line.push_str(&format!("[{part}]")),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        command::{Arguments, Nothing, fake::fake, parse},
        judge::finding::Verdict,
    };
    use clap::CommandFactory;

    #[test]
    fn only_a_workload_with_a_length_has_longer_runs() {
        let [sound, broken] = ["sound", "broken"].map(|name| fake(name, |_, _| Verdict::Passed));
        let three = Scale::try_from(3).expect("a scale");
        let demands = |scale, entry: &dyn Entry| Shaking { scale, ..Shaking::default() }.demands([entry]);
        assert_eq!(demands(Some(three), sound.as_ref()).expect("it grows").scale, three);
        assert_eq!(demands(None, broken.as_ref()).expect("it is as long as ever").scale, Scale::USUAL);
        let refusal = demands(Some(three), broken.as_ref()).expect_err("it does not grow").to_string();
        assert!(refusal.starts_with("broken has no longer runs"), "{refusal}");
        // A repro file or a report may say anything.
        for (text, is_scale) in [("0", false), ("1", true), ("100", true), ("101", false)] {
            assert_eq!(serde_json::from_str::<Scale>(text).is_ok(), is_scale, "{text}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::<Nothing>::command().debug_assert();
    }

    #[test]
    fn a_refusal_is_one_line() {
        for line in [
            &["shaketable", "shake"][..],
            &["shaketable", "run", "--seed", "3"],
            &["shaketable", "run", "--seeds", "x"],
            &["shaketable", "run", "--jobs"],
            &["shaketable", "replay"],
            &["shaketable", "list", "judges"],
            &["shaketable", "bench", "--rounds", "2"],
        ] {
            let error = parse::<Nothing, _>(line.iter().copied()).expect_err("bad usage");
            let refusal = handle(&error).expect_err("refused").to_string();
            assert_eq!(refusal.lines().count(), 1, "{refusal}");
            assert!(!refusal.contains("Usage"), "{refusal}");
        }
    }
}
