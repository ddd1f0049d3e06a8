//! Why something does not fit the model of a workload: a sentence, and what a finding shows beside it.

use shaketable_sim::{judges::Said, proto::Version};
use std::fmt;

/// Why an answer, an invariant or the final database does not fit the model of a workload: a sentence, and,
/// if the workload names them, the invariant, both sides of the comparison, or the operation that does not
/// fit.
///
/// Two runs fail alike if the names are equal, and the sentences are but for numbers, quoted text, and what
/// is in brackets. Shrinking takes away from a run what its failure does not need, and keeps to this.
///
/// A sentence alone becomes one with `?` or `into`:
///
/// ```
/// use shaketable::Misfit;
///
/// fn compare(found: u32, expected: u32) -> Result<(), Misfit> {
///     if found > 1_000 {
///         return Err("the counter has overflowed".into());
///     }
///     if found == expected {
///         return Ok(());
///     }
///     let message = format!("read {found} where the model has {expected}");
///     Err(Misfit::new(message, expected.to_string(), found.to_string()))
/// }
///
/// assert_eq!(compare(1, 2).unwrap_err().to_string(), "read 1 where the model has 2");
/// let named = Misfit::from("it is 400").named("the sum is 500");
/// assert_eq!(named.to_string(), "the sum is 500: it is 400");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The name of the invariant.
    name: Option<Box<str>>,
    message: Box<str>,
    /// What the model expects, and what was found instead.
    pub(crate) sides: Option<(String, String)>,
    /// The operation, if the sentence names it: its client, and its index.
    pub(crate) operation: Option<(usize, usize)>,
    /// What contradicts the answer.
    pub(crate) cause: Cause,
}

/// What contradicts an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// What the operation read, or should have read.
    Reads,
    /// What committed at a version: it had made the answer possible.
    Commit(Version),
    /// Nothing but its time.
    Time,
}

impl Misfit {
    /// What does not fit, in a sentence, and the two sides of the comparison.
    pub fn new(message: String, expected: String, found: String) -> Misfit {
        Misfit { sides: Some((expected, found)), ..message.into() }
    }

    /// An operation that does not fit: its client, its index in the client's list, and a sentence that names
    /// it.
    pub fn of_operation(client: usize, index: usize, message: String) -> Misfit {
        Misfit { operation: Some((client, index)), ..message.into() }
    }

    /// The invariant that is broken: its name is told before the sentence.
    #[must_use]
    pub fn named(self, invariant: impl Into<String>) -> Misfit {
        Misfit { name: Some(invariant.into().into_boxed_str()), ..self }
    }

    /// What it says, as data.
    pub(crate) fn said(&self) -> Said {
        let sides = self.sides.iter().flat_map(|(expected, found)| [expected, found]);
        let sides = sides.filter(|side| !side.is_empty());
        let why = sides.fold(self.message.to_string(), |why, side| why.replace(side.as_str(), "_"));
        Said { name: self.name.as_deref().unwrap_or_default().to_owned(), why }
    }

    pub(crate) fn because_of(self, cause: Cause) -> Misfit {
        Misfit { cause, ..self }
    }
}

impl From<String> for Misfit {
    fn from(message: String) -> Misfit {
        Misfit {
            name: None,
            message: message.into_boxed_str(),
            sides: None,
            operation: None,
            cause: Cause::Reads,
        }
    }
}

impl From<&str> for Misfit {
    fn from(message: &str) -> Misfit {
        message.to_owned().into()
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}
