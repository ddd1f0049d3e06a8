//! The run that caught a planted bug, and what remains of it when it is shrunk.

use super::{
    args::REPLAYS,
    cost,
    interrupt::Interrupt,
    report::{self, Origin},
    shrink::{BUDGET, Limits},
};
use crate::{
    run::plan::Demands,
    run::runner::RunResult,
    search::entry::Entry,
    search::shrink::{self, Claim},
};
use shaketable_reports::{Catch, Shrunk};
use shaketable_sim::seed::Seed;

/// The run that caught a bug.
pub(super) fn catch(origin: &Origin<'_>, result: &RunResult) -> Catch {
    let verdict = report::verdict(result);
    Catch {
        workload: origin.workload.to_owned(),
        seed: origin.seed,
        judge: verdict.judge().unwrap_or_default().to_owned(),
        message: verdict.message().unwrap_or_default().to_owned(),
        event_hash: report::hash(result),
        replay: origin.replay_line(),
        shrunk: None,
    }
}

/// Shrinks the run that caught a bug, and runs what remains again from its repro file.
pub(super) fn shrunk(
    entries: &[Box<dyn Entry>],
    demands: &Demands,
    catch: &Catch,
    interrupt: &Interrupt,
) -> Option<Shrunk> {
    let entry = entries.iter().find(|entry| entry.name() == catch.workload)?;
    let plan = entry.plan(Seed(catch.seed), demands);
    let before = cost::thread_cpu();
    let limits = Limits::new(REPLAYS, BUDGET, interrupt);
    let shrunk = entry.shrink(&plan, &mut |so_far| limits.allow(so_far.replays)).ok()??;
    let cpu_ns = cost::thread_cpu() - before;
    Some(Shrunk {
        operations: shrunk.after.operations,
        clients: shrunk.after.clients,
        faults: shrunk.after.faults,
        replays: shrunk.replays,
        cpu_ns,
        is_minimal: shrunk.is_minimal,
        left_out: shrunk.left_out.clone(),
        schedule: shrunk.schedule,
        families: shrunk.result.faults.keys().map(|family| family.name().to_owned()).collect(),
        difference: difference(entry.as_ref(), catch, &shrunk),
    })
}

/// How the run of a repro file differs from the one that was found, and from the one that was shrunk.
fn difference(entry: &dyn Entry, catch: &Catch, shrunk: &shrink::Shrunk) -> Option<String> {
    let again = match entry.replay(&shrunk.repro, false) {
        Ok(again) => again,
        Err(error) => return Some(format!("its repro file is refused: {error}")),
    };
    let verdict = report::verdict(&again);
    let judge = verdict.judge().unwrap_or("no judge");
    if judge != catch.judge {
        return Some(format!("{judge} objects, and {} did", catch.judge));
    }
    if Claim::of(&again.findings) != Claim::of(&shrunk.result.findings) {
        return Some(format!("{judge} objects to another claim"));
    }
    let [hash, found] = [report::hash(&again), report::hash(&shrunk.result)];
    (hash != found).then(|| format!("its event hash is {hash}, and was {found}"))
}
