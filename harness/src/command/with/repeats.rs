//! Whether the seed that fails repeats: it is run once more, and both runs are compared, by the calls in the
//! journals of their processes, by their reports, which have a hash of all events, and by what they printed.
//!
//! Reports and journals are compared in the order of the processes' numbers.

use super::{Run, Shake, Shaken, check_time, lossy, process_of};
use crate::command::interrupt::Interrupt;
use shaketable_session::compare::difference;
use std::{fs, path::PathBuf};

/// The page that says what makes a run differ.
const DETERMINISM: &str = "docs/src/determinism.md";

/// How much is shown of a line that was printed, characters.
const SHOWN: usize = 120;

/// Runs the seed that failed once more, and says whether it repeats. The failure stands if this is
/// interrupted or cannot be done.
pub(super) fn check(shake: &Shake<'_>, shaken: &mut Shaken, interrupt: &Interrupt) {
    let Some((seed, first)) = &shaken.failed else { return };
    shaken.repeats = match shake.run_seed(*seed, true, &|| interrupt.is_set()) {
        Ok(Some(second)) => told(shake, first, &second),
        Ok(None) => "not known: the second run was interrupted".to_owned(),
        Err(refusal) => format!("not known: {refusal}"),
    };
}

/// What two runs of a seed have shown.
fn told(shake: &Shake<'_>, first: &Run, second: &Run) -> String {
    let is_same_end = first.ending == second.ending && first.accused() == second.accused();
    // Reports have no values, and journals have no times.
    let times = (first.reports != second.reports).then(|| "no call, but the times of some".to_owned());
    let calls = first_call(first, second).or(times);
    let printed = first_line(first, second).filter(|_| !shake.arguments.show_output);
    let answer = match (is_same_end, &calls, &printed) {
        (true, None, None) if shake.arguments.show_output => return "yes, call for call".to_owned(),
        (true, None, None) => return "yes, to the byte".to_owned(),
        (true, None, Some(_)) => "yes, call for call".to_owned(),
        (true, Some(_), _) => "yes, though not call for call".to_owned(),
        (false, ..) => format!("no: the second run {}", second.ending),
    };
    // The calls are what decides how a run ends; what is printed has addresses and durations in it.
    let advice = match is_same_end && calls.is_none() {
        true => String::new(),
        false => format!("\n  {}", advice(shake)),
    };
    let differs = calls.or(printed).unwrap_or_else(|| "only how it ends".to_owned());
    format!("{answer}\n  what differs first: {differs}{advice}")
}

/// What may make a seed repeat.
fn advice(shake: &Shake<'_>) -> String {
    let arguments = shake.arguments;
    let can_see_time = || check_time(&shake.library, arguments.command.first()).is_ok();
    let add: Vec<_> = [
        ("--one-at-a-time", !arguments.one_at_a_time && cfg!(target_os = "linux")),
        ("--time", !arguments.time && can_see_time()),
    ]
    .into_iter()
    .filter_map(|(option, helps)| helps.then_some(option))
    .collect();
    match (add.is_empty(), arguments.own_randomness) {
        (false, _) => format!("to make seeds repeat, add {}, and look for one again", add.join(" and ")),
        (true, true) => "to make seeds repeat, leave out --own-randomness, and look for one again".to_owned(),
        (true, false) => format!("what a seed does not choose is in {DETERMINISM}"),
    }
}

/// The first call that differs; `None` if those of all processes are equal.
fn first_call(first: &Run, second: &Run) -> Option<String> {
    let (ours, theirs) = (journals(first), journals(second));
    if ours.len() != theirs.len() {
        return Some(format!("{} processes used the cluster, and then {}", ours.len(), theirs.len()));
    }
    let all = ours.len();
    ours.iter().zip(&theirs).enumerate().find_map(|(number, (ours, theirs))| {
        let compared = fs::read(ours).and_then(|ours| difference(ours, fs::read(theirs)?));
        let what = compared.unwrap_or_else(|error| Some(format!("a journal cannot be read: {error}")))?;
        Some(match all {
            1 => what,
            _ => format!("process {} of {all}, {what}", number + 1),
        })
    })
}

/// The journals of a run, in the order of the numbers of their processes.
fn journals(run: &Run) -> Vec<PathBuf> {
    let mut journals: Vec<_> = run.journals().collect();
    journals.sort_by_key(|path| process_of(path));
    journals
}

/// The first line that was printed in one run only; `None` if both printed the same.
fn first_line(first: &Run, second: &Run) -> Option<String> {
    if first.printed == second.printed {
        return None;
    }
    let (ours, theirs) = (lossy(&first.printed), lossy(&second.printed));
    let (mut ours, mut theirs) = (ours.lines(), theirs.lines());
    let shown = |line: Option<&str>| match line {
        None => "nothing more".to_owned(),
        Some(line) => format!("\"{}\"", line.chars().take(SHOWN).collect::<String>()),
    };
    for number in 1_u64.. {
        let (one, other) = (ours.next(), theirs.next());
        if one != other {
            return Some(format!(
                "line {number} of what it printed is {} and then {}",
                shown(one),
                shown(other)
            ));
        }
        if one.is_none() {
            break;
        }
    }
    Some("what it printed differs in bytes that are not shown".to_owned())
}
