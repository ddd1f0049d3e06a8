//! Assertions that return an outcome instead of panicking: each failure states what was promised and what was
//! seen.

use shaketable_tx::{Error, Result};
use std::{any::Any, fmt};

/// The outcome of a case.
pub type Expectation = std::result::Result<(), Broken>;

/// Why a case did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    why: String,
    inconclusive: bool,
}

impl Broken {
    /// A broken promise.
    pub(super) fn new(why: impl Into<String>) -> Broken {
        Broken { why: why.into(), inconclusive: false }
    }

    /// A panic during a case: it comes from the backend, since cases do not panic.
    pub(super) fn from_panic(panic: &(dyn Any + Send)) -> Broken {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("of no text");
        Broken::new(format!("panicked: {text}"))
    }

    /// Whether this is a retryable error where success was promised, from which nothing follows about the
    /// promise itself.
    pub fn is_inconclusive(&self) -> bool {
        self.inconclusive
    }

    fn from_error(what: &str, error: Error) -> Broken {
        Broken { why: format!("{what}{error}"), inconclusive: error.is_retryable() }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl From<Error> for Broken {
    fn from(error: Error) -> Broken {
        Broken::from_error("success was promised, and the answer was ", error)
    }
}

/// `seen` must equal what was `promised`.
pub(super) fn same<T: PartialEq + fmt::Debug>(what: &str, seen: T, promised: T) -> Expectation {
    if seen == promised {
        return Ok(());
    }
    Err(Broken::new(format!("{what}: promised {}, seen {}", brief(&promised), brief(&seen))))
}

/// `condition` must hold; `what` describes it, including the figures.
pub(super) fn holds(condition: bool, what: impl FnOnce() -> String) -> Expectation {
    if condition { Ok(()) } else { Err(Broken::new(format!("promised, and not so: {}", what()))) }
}

/// `result` must be this error.
pub(super) fn fails<T: fmt::Debug>(what: &str, result: Result<T>, promised: Error) -> Expectation {
    fails_with(what, result, &[promised])
}

/// `result` must be one of these errors.
pub(super) fn fails_with<T: fmt::Debug>(what: &str, result: Result<T>, promised: &[Error]) -> Expectation {
    match result {
        Err(e) if promised.contains(&e) => Ok(()),
        Err(e) => Err(Broken::from_error(&format!("{what}: promised {promised:?}, seen "), e)),
        Ok(value) => {
            Err(Broken::new(format!("{what}: promised {promised:?}, seen success with {}", brief(&value))))
        }
    }
}

/// `result` must be a success; `what` identifies the call in the failure.
pub(super) fn succeeds<T>(what: &str, result: Result<T>) -> std::result::Result<T, Broken> {
    result.map_err(|e| Broken::from_error(&format!("{what}: promised success, seen "), e))
}

/// Shortens the text: values may have 100,000 bytes.
fn brief(value: &impl fmt::Debug) -> String {
    let text = format!("{value:?}");
    match text.char_indices().nth(600) {
        Some((end, _)) => format!("{}.. ({} characters)", &text[..end], text.len()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unexpected_retryable_error_is_inconclusive() {
        assert!(Broken::from(Error::NOT_COMMITTED).is_inconclusive());
        assert!(!Broken::from(Error::KEY_TOO_LARGE).is_inconclusive());
        assert!(!same("x", 1, 2).unwrap_err().is_inconclusive());
        let asked = fails::<()>("x", Err(Error::NOT_COMMITTED), Error::NOT_COMMITTED);
        assert_eq!(asked, Ok(()));
        assert!(fails("x", Ok(1), Error::NOT_COMMITTED).is_err());
        assert!(
            fails::<()>("x", Err(Error::COMMIT_UNKNOWN_RESULT), Error::NOT_COMMITTED)
                .unwrap_err()
                .is_inconclusive()
        );
    }

    #[test]
    fn long_values_are_cut_in_prose() {
        let why = same("x", vec![7_u8; 5_000], vec![]).unwrap_err().to_string();
        assert!(why.len() < 800, "{}", why.len());
    }
}
