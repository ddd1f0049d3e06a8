//! Makes the data of a report from the result of a run.

use super::{backend::Backend, choose};
use crate::{
    judge::finding::{self, deciding},
    run::plan::Demands,
    run::runner::RunResult,
};
use shaketable_reports::{FindingReport, RunReport, Verdict, run};
use std::{borrow::Cow, collections::BTreeMap};

/// The origin of a run.
pub(super) struct Origin<'a> {
    /// The name of the workload.
    pub workload: &'a str,
    /// The seed.
    pub seed: u64,
    /// The demands.
    pub demands: &'a Demands,
    /// The repro file that was replayed, if any.
    pub repro: Option<&'a str>,
    /// The command line options of the backend.
    pub backend: String,
    /// Whether that is the simulated one, which has virtual time and events.
    pub is_simulated: bool,
}

impl<'a> Origin<'a> {
    /// The origin of a run of a seed.
    pub(super) fn of(workload: &'a str, seed: u64, demands: &'a Demands, backend: &Backend) -> Origin<'a> {
        Origin {
            workload,
            seed,
            demands,
            repro: None,
            backend: backend.options(),
            is_simulated: backend.is_simulated(),
        }
    }

    /// The command line that replays the run.
    pub(super) fn replay_line(&self) -> String {
        if let Some(repro) = self.repro {
            return format!("{} replay {}", invocation(), quoted(repro));
        }
        let profile = choose::name_of(self.demands.profile);
        let mut line = format!("{} replay {} {} --faults {profile}", invocation(), self.workload, self.seed);
        let without: Vec<&str> = self.demands.without.iter().map(|f| f.name()).collect();
        if !without.is_empty() {
            line += &format!(" --without {}", without.join(","));
        }
        if !self.demands.scale.is_usual() {
            line += &format!(" --scale {}", self.demands.scale);
        }
        if let Some(bug) = choose::planted(self.demands) {
            line += &format!(" --bug {bug}");
        }
        if let Some(mutant) = self.demands.mutant {
            line += &format!(" --mutant {mutant}");
        }
        line + &self.backend
    }

    /// The report of the run. `drawn` is the summary of its plan.
    pub(super) fn report(&self, result: &RunResult, drawn: String) -> RunReport {
        RunReport {
            workload: self.workload.to_owned(),
            seed: self.seed,
            faults: choose::name_of(self.demands.profile).to_owned(),
            without: self.demands.without.iter().map(|f| f.name().to_owned()).collect(),
            scale: self.demands.scale,
            bug: choose::planted(self.demands).map(str::to_owned),
            repro: self.repro.map(str::to_owned),
            verdict: verdict(result),
            other_findings: other_findings(result),
            event_hash: self.is_simulated.then(|| hash(result)),
            events: result.events,
            virtual_ns: self.is_simulated.then_some(result.virtual_time),
            counters: result.counters,
            faults_delivered: result.faults.iter().map(|(f, n)| (f.name().to_owned(), *n)).collect(),
            configuration: drawn,
            replay: self.replay_line(),
            plan: None,
            shrunk: None,
            history: None,
            program: None,
        }
    }
}

/// The command that starts this program again, so that printed command lines work in the same shell.
pub(super) fn invocation() -> String {
    let name = std::env::args_os().next().unwrap_or_else(|| "shaketable".into());
    let file = std::env::current_exe().unwrap_or_default();
    let is_release = file.parent().is_some_and(|folder| folder.ends_with("release"));
    invocation_of(std::env::var_os("CARGO").is_some(), is_release, &name.to_string_lossy())
}

/// The command that starts a program again: cargo, or the name with which it was started.
fn invocation_of(by_cargo: bool, is_release: bool, name: &str) -> String {
    match (by_cargo, is_release) {
        (true, true) => "cargo run --release --".to_owned(),
        (true, false) => "cargo run --".to_owned(),
        (false, _) => quoted(name),
    }
}

/// Quotes a word for a shell, if necessary.
pub(super) fn quoted(word: &str) -> String {
    // Only NUL cannot be quoted, and no argument of a program contains it.
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), Cow::into_owned)
}

/// The event hash in hexadecimal.
pub(super) fn hash(result: &RunResult) -> String {
    format!("{:016x}", result.event_hash)
}

/// The verdict of a report. The most severe finding decides.
pub(super) fn verdict(result: &RunResult) -> Verdict {
    let first = deciding(&result.findings);
    let judge = first.map_or(String::new(), |f| f.kind.name().to_owned());
    let message = first.map_or(String::new(), |f| f.message.clone());
    match result.verdict() {
        finding::Verdict::Passed => Verdict::Passed,
        finding::Verdict::Violated => Verdict::Violated { judge, message },
        finding::Verdict::Stuck => Verdict::Stuck { message },
        finding::Verdict::Harness => Verdict::Harness { judge, message },
    }
}

/// The findings that do not decide the verdict.
fn other_findings(result: &RunResult) -> Vec<FindingReport> {
    let first = deciding(&result.findings);
    let others = result.findings.iter().filter(|f| !first.is_some_and(|first| std::ptr::eq(first, *f)));
    others.map(|f| FindingReport { judge: f.kind.name().to_owned(), message: f.message.clone() }).collect()
}

/// The points that were expected or passed, with how often they were passed and held.
pub(super) fn points(
    expected: &[&'static str],
    seen: &BTreeMap<String, (u64, u64)>,
) -> Vec<run::PointReport> {
    let mut names: Vec<&str> = expected.iter().copied().chain(seen.keys().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    let point = |name: &str| {
        let (passed, held) = seen.get(name).copied().unwrap_or_default();
        run::PointReport { name: name.to_owned(), passed, held }
    };
    names.into_iter().map(point).collect()
}

/// The names of the points that were never reached.
pub(super) fn unreached(points: &[run::PointReport]) -> Vec<String> {
    points.iter().filter(|point| !point.was_reached()).map(|point| point.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::finding::{Finding, Kind};
    use shaketable_sim::{
        config::ClusterBug,
        faults::{Family, Profile},
    };

    #[test]
    fn a_program_is_started_again_in_the_same_way() {
        assert_eq!(invocation_of(false, true, "shaketable"), "shaketable");
        assert_eq!(invocation_of(false, false, "target/my build/shaketable"), "'target/my build/shaketable'");
        assert_eq!(invocation_of(true, true, "target/release/shaketable"), "cargo run --release --");
        assert_eq!(invocation_of(true, false, "target/debug/shaketable"), "cargo run --");
    }

    #[test]
    fn a_replay_line_contains_all_demands() {
        let mut demands = Demands { profile: Profile::Storm, ..Demands::default() };
        let line = |demands: &Demands, repro| {
            let line =
                Origin { repro, ..Origin::of("queue", 17, demands, &Backend::Simulated) }.replay_line();
            line.strip_prefix(&invocation()).expect("the program first").trim_start().to_owned()
        };
        assert_eq!(line(&demands, None), "replay queue 17 --faults storm");
        demands.without = vec![Family::Kill, Family::OneRowBatches];
        demands.bug = Some("recipe".into());
        assert_eq!(
            line(&demands, None),
            "replay queue 17 --faults storm --without kill,one-row-batches --bug recipe"
        );
        demands = Demands { cluster_bug: Some(ClusterBug::LogAnswersEarly), ..Demands::default() };
        assert_eq!(line(&demands, None), "replay queue 17 --faults standard --bug log-answers-early");
        assert_eq!(line(&demands, Some("it's small.json")), r#"replay "it's small.json""#);
    }

    #[test]
    fn the_most_severe_finding_decides_and_the_others_follow() {
        let found = |kinds: &[Kind]| RunResult {
            findings: kinds.iter().map(|kind| Finding::new(*kind, format!("{kind} objects"))).collect(),
            ..RunResult::default()
        };
        let reported = |kinds: &[Kind]| {
            let result = found(kinds);
            let others: Vec<String> = other_findings(&result).into_iter().map(|other| other.judge).collect();
            (verdict(&result).judge().map(str::to_owned), others.join(" "))
        };
        let expected = |judge: Option<&str>, others: &str| (judge.map(str::to_owned), others.to_owned());
        assert_eq!(
            reported(&[Kind::Live, Kind::Durable, Kind::Model]),
            expected(Some("durable"), "live model")
        );
        assert_eq!(reported(&[Kind::Live, Kind::Model]), expected(Some("model"), "live"));
        assert_eq!(reported(&[Kind::Live]), expected(Some("live"), ""));
        assert_eq!(reported(&[]), expected(None, ""));
    }

    #[test]
    fn expected_points_are_listed_even_when_never_passed() {
        let points = points(
            &["b", "a"],
            &[("a", (3, 1)), ("c", (2, 0))].map(|(name, seen)| (name.to_owned(), seen)).into(),
        );
        let listed: Vec<_> = points.iter().map(|p| (p.name.as_str(), p.passed, p.was_reached())).collect();
        assert_eq!(listed, [("a", 3, true), ("b", 0, false), ("c", 2, false)]);
    }
}
