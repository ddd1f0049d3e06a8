//! Runs of several seeds at a time, which show what they would show one after the other.
//!
//! Seeds are begun in their order. Once one fails no other is begun, those after it are ended, and those
//! before it go on: the first one that fails is the one that is reported. Only the runs up to it count.

use super::{Run, Shake, Shaken};
use crate::{
    command::{Refusal, interrupt::Interrupt, progress::Progress},
    run::pool::{self, Update},
};
use shaketable_reports::text::plural;
use std::{
    collections::BTreeMap,
    num::NonZero,
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
};

/// How a run came out: `None` if it was ended before its end.
type Ran = Result<Option<Run>, Refusal>;

/// Whether no run after this one counts.
fn is_last(ran: &Ran) -> bool {
    !ran.as_ref().is_ok_and(|run| run.as_ref().is_some_and(|run| !run.is_failed()))
}

/// Runs the command with each seed, until it fails.
pub(super) fn run(
    shake: &Shake<'_>,
    seeds: &Range<u64>,
    interrupt: &Interrupt,
    mut progress: Option<Progress>,
    shaken: &mut Shaken,
) -> Result<(), Refusal> {
    let count = seeds.end - seeds.start;
    // The first run that failed or was refused, so far.
    let last = AtomicU64::new(u64::MAX);
    let is_over = || interrupt.is_set() || last.load(Ordering::Relaxed) != u64::MAX;
    let work = |number: u64| {
        let should_end = || interrupt.is_set() || last.load(Ordering::Relaxed) < number;
        let ran = shake.run_seed(seeds.start + number, !shake.arguments.show_output, &should_end);
        if is_last(&ran) && !should_end() {
            last.fetch_min(number, Ordering::Relaxed);
        }
        ran
    };
    let mut ended = BTreeMap::new();
    let mut end = None;
    pool::run(count, shake.arguments.jobs.map_or(1, NonZero::get), is_over, work, |update| match update {
        Update::Tick => progress.iter_mut().for_each(Progress::tick),
        Update::Done(number, ran) => {
            if let Ok(Some(run)) = &ran {
                progress.iter_mut().for_each(|progress| progress.done(0, !run.is_failed()));
            }
            ended.insert(number, ran);
            while let (None, Some(ran)) = (&end, ended.remove(&shaken.runs)) {
                match ran {
                    Ok(Some(run)) if !run.is_failed() => drop(shaken.add(run)),
                    ran => end = Some(ran),
                }
            }
        }
    });
    progress.into_iter().for_each(Progress::end);
    match end {
        Some(Ok(Some(run))) => {
            let seed = seeds.start + shaken.runs;
            shaken.failed = Some((seed, shaken.add(run)));
            Ok(())
        }
        Some(Err(refusal)) => Err(refusal),
        None if shaken.runs == count => Ok(()),
        Some(Ok(None)) | None => {
            Err(interrupt.refusal(&format!("after {} of {}", shaken.runs, plural(count, "run", "runs"))))
        }
    }
}
