//! Reports as annotations of GitHub: lines that a workflow prints, and that are shown with the commit.

use crate::{
    document::Body,
    regressions::Replayed,
    sweep::{Ending, SweepReport},
    text,
};

/// GitHub shows this many annotations of a step, and drops the others.
const SHOWN: usize = 10;

/// The lines for what failed, at most ten; empty if nothing did, and for reports other than those of sweeps
/// and of planted bugs.
pub fn render(body: &Body) -> String {
    let mut errors = match body {
        Body::Sweep(sweep) => of_sweep(sweep),
        Body::Bugs(bugs) => {
            let missed = bugs.bugs.iter().filter(|bug| text::bugs::state(bug, bugs) == "MISSED");
            let error = |bug: &crate::BugReport| {
                let runs = text::plural(bug.runs, "seed", "seeds");
                let wrong = bug.wrong_judge.as_ref().map_or(String::new(), |wrong| format!("\n{wrong}"));
                (format!("{}: missed {}", bug.place, bug.bug), format!("not caught in {runs}{wrong}"))
            };
            missed.map(error).collect()
        }
        Body::Watch(_)
        | Body::Replay(_)
        | Body::Explore(_)
        | Body::Advice(_)
        | Body::Regressions(_)
        | Body::Bench(_)
        | Body::Conformance(_)
        | Body::Contract(_) => Vec::new(),
    };
    if errors.len() > SHOWN {
        let more = errors.len() - (SHOWN - 1);
        errors.truncate(SHOWN - 1);
        errors.push((format!("{more} more"), "The report has all of them.".to_owned()));
    }
    errors.into_iter().map(|(title, message)| error(&title, &message)).collect()
}

/// The regressions that failed again, the first failure of each workload, what else it lacked, and then its
/// further failures, so that none of the workloads is left out before another has two lines.
fn of_sweep(sweep: &SweepReport) -> Vec<(String, String)> {
    let mut errors = Vec::new();
    let failure = |run: &crate::RunReport| {
        let found = run.verdict.message().unwrap_or_default();
        (text::run::headline(run), format!("{found}\nreplay with\n{}", run.replay))
    };
    let again = |one: &crate::RegressionReport| match &one.replayed {
        Replayed::Failed { run } => {
            let found = run.verdict.message().unwrap_or_default();
            Some((text::regressions::headline(one), format!("{found}\nreplay with\n{}", run.replay)))
        }
        Replayed::Unreadable { why, fails: true } => {
            Some((format!("REGRESSION {}", one.file), format!("It cannot be replayed: {why}")))
        }
        Replayed::Passed { .. } | Replayed::Unreadable { .. } => None,
    };
    errors.extend(sweep.regressions().into_iter().filter_map(again));
    errors.extend(sweep.workloads.iter().filter_map(|w| w.failures.first()).map(failure));
    for w in &sweep.workloads {
        let lines = w.shortfall();
        if !lines.is_empty() {
            errors.push((format!("VACUOUS {}", w.workload), lines.join("\n")));
        }
    }
    errors.extend(sweep.workloads.iter().flat_map(|w| w.failures.iter().skip(1)).map(failure));
    if let Ending::Interrupted | Ending::Lost | Ending::Unwritable = sweep.ending {
        errors.insert(0, ("ended early".to_owned(), text::sweep::ending(sweep.ending).trim_end().to_owned()));
    }
    errors
}

/// One line. Characters that end it or its properties are escaped as GitHub's runner expects.
fn error(title: &str, message: &str) -> String {
    let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let title = data(title).replace(':', "%3A").replace(',', "%2C");
    format!("::error title={title}::{}\n", data(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_is_one_line() {
        assert_eq!(
            error("queue, seed 3: model", "100 % wrong:\nitem 4\r\n"),
            "::error title=queue%2C seed 3%3A model::100 %25 wrong:%0Aitem 4%0D%0A\n"
        );
    }
}
