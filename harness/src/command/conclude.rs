//! How commands end, and what several of them have in common.

use super::{Refusal, output, program, refuse};
use shaketable_reports::Conclusion;
use std::path::PathBuf;

/// The folder of what is written without being named: `shaketable` in cargo's target folder.
pub(super) fn folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").filter(|folder| !folder.is_empty());
    target.map_or(PathBuf::from("target"), PathBuf::from).join("shaketable")
}

/// Makes that folder.
pub(super) fn make_folder() -> Result<PathBuf, Refusal> {
    let folder = folder();
    match std::fs::create_dir_all(&folder) {
        Ok(()) => Ok(folder),
        Err(error) => refuse!("cannot write {}: {error}", folder.display()),
    }
}

/// How a command ends. An interrupt takes precedence over the outcome; a failure takes precedence over a
/// report that could not be written, which is then only printed as an error.
pub fn settle(
    outcome: Conclusion,
    written: Result<(), Refusal>,
    interrupted: Option<Refusal>,
) -> Result<Conclusion, Refusal> {
    let ended = match interrupted {
        Some(refusal) => Err(refusal),
        None => Ok(outcome),
    };
    match (ended, written) {
        (Ok(Conclusion::Passed | Conclusion::Vacuous), Err(refusal)) => Err(refusal),
        (ended, Err(refusal)) => {
            output::print_error(&format!("{}: {refusal}", program().name));
            ended
        }
        (ended, Ok(())) => ended,
    }
}

/// The number of logical processors of the machine.
pub(super) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_outweighs_a_report_that_could_not_be_written() {
        let refused = || Err(Refusal::Usage("disk full".into()));
        assert_eq!(settle(Conclusion::Passed, refused(), None), Err(Refusal::Usage("disk full".into())));
        assert_eq!(settle(Conclusion::Vacuous, refused(), None), Err(Refusal::Usage("disk full".into())));
        assert_eq!(settle(Conclusion::Violated, refused(), None), Ok(Conclusion::Violated));
        assert_eq!(settle(Conclusion::Passed, Ok(()), None), Ok(Conclusion::Passed));
        let interrupted = || Refusal::Interrupted(130, "interrupted".into());
        for (outcome, written) in [(Conclusion::Violated, Ok(())), (Conclusion::Passed, refused())] {
            assert_eq!(settle(outcome, written, Some(interrupted())), Err(interrupted()));
        }
    }
}
