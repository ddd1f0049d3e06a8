//! `shaketable conformance check`: recorded answers of a real cluster, replayed on the simulated one.

use super::{
    COMMIT, Refusal,
    args::CheckArguments,
    output::{self, Target},
    run::{settle, tell_written},
};
use shaketable_reports::{Body, Outcome, text};
use shaketable_workloads::conformance::{self, CheckError};

/// Replays the recordings of a folder, prints and writes.
pub fn check(arguments: &CheckArguments) -> Result<Outcome, Refusal> {
    let json = Target::check_named(arguments.json.as_deref())?;
    let report = match conformance::check(&arguments.folder) {
        Ok(report) => report,
        Err(CheckError::Failed(error)) => {
            output::complain(&format!("shaketable: the simulated cluster failed between cases: {error}"));
            return Ok(Outcome::Harness);
        }
        Err(error) => return Err(Refusal(error.to_string())),
    };
    let outcome = report.outcome();
    let printed = format!("commit {COMMIT}\n\n{}", text::conformance(&report));
    let written = json.map_or(Ok(()), |json| json.write_report(Body::Conformance(report)));
    if let (Ok(()), Some(path)) = (&written, arguments.json.as_deref()) {
        tell_written(path);
    }
    output::print(&printed);
    settle(outcome, written)
}
