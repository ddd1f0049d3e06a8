//! `shaketable contract`: FoundationDB's promises to its clients, tested on a cluster.

use super::ContractArguments;
use shaketable::calm;
use shaketable::{
    command::{
        Refusal,
        backend::Backend,
        interrupt::Interrupt,
        output::{self, Target},
        program,
        progress::Progress,
        settle,
    },
    refuse,
};
use shaketable_fidelity::contract::{self, CaseResult};
use shaketable_reports::{Body, Conclusion, ContractCase, ContractReport, text};
use shaketable_sim::faults::Profile;

/// The prefix of the cases' keys on a simulated cluster.
const PREFIX: &[u8] = b"contract/";

/// Runs the cases, and prints and writes the report.
pub fn contract(arguments: &ContractArguments) -> Result<Conclusion, Refusal> {
    let json = Target::check_named(arguments.json.as_deref())?;
    let backend = Backend::open(&arguments.backend, Profile::Calm)?;
    let filter = arguments.filter.clone().unwrap_or_default();
    let (verdicts, interrupted) = match &backend {
        Backend::Simulated => {
            let filter = filter.clone();
            let verdicts = calm::simulate(move |db| {
                let filter = filter.clone();
                async move { contract::run_all(&db, PREFIX, &filter).await }
            });
            (verdicts, None)
        }
        Backend::Real(cluster) => {
            let promises = contract::cases().iter().filter(|case| case.name.contains(&filter)).count();
            let interrupt = Interrupt::listen()?;
            let mut progress =
                Progress::new(&[("promises", promises as u64)], ("promise", "promises"), "broken");
            let verdicts = cluster.below(async |db, prefix| {
                let go_on = |verdict: &CaseResult| {
                    progress.done(0, verdict.result.is_ok());
                    !interrupt.is_set()
                };
                contract::run_each(db, prefix, &filter, go_on).await
            });
            progress.end();
            let verdicts = verdicts?;
            let when = || format!("after {} of {promises} promises", verdicts.len());
            let interrupted = interrupt.is_set().then(|| interrupt.refusal(&when()));
            (verdicts, interrupted)
        }
    };
    if verdicts.is_empty() && interrupted.is_none() {
        refuse!(
            "no promise contains {filter:?} in its name: the sections are {}",
            contract::SECTIONS.join("/, ") + "/"
        );
    }
    let report = ContractReport { cases: verdicts.into_iter().map(case).collect() };
    let outcome = report.outcome();
    let printed = format!("commit {}\n\n{}", program().commit, text::contract(&report));
    let written = output::publish(&printed, json.as_ref(), Body::Contract(report));
    settle(outcome, written, interrupted)
}

fn case(verdict: CaseResult) -> ContractCase {
    ContractCase { name: verdict.name, promise: verdict.promise, broken: verdict.result.err() }
}
