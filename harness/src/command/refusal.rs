//! Why a command ended without its result.

use shaketable_reports::Conclusion;
use std::fmt;

/// Why a command ended without its result: one line on stderr.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Bad usage, configuration or input.
    Usage(String),
    /// A cluster that does not reply.
    Cluster(String),
    /// The command was interrupted: its exit code, and how far it came.
    Interrupted(u8, String),
}

impl Refusal {
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Refusal::Usage(_) => 2,
            Refusal::Cluster(_) => Conclusion::Harness.exit_code(),
            Refusal::Interrupted(code, _) => *code,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Refusal::Usage(line) | Refusal::Cluster(line) | Refusal::Interrupted(_, line)) = self;
        // A message is one line, also if it quotes text with line breaks, such as a file name or a parser
        // error.
        f.write_str(&line.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// Returns a [`Refusal::Usage`](crate::command::Refusal::Usage) with a formatted line.
#[macro_export]
macro_rules! refuse {
    ($($message:tt)+) => {
        return Err($crate::command::Refusal::Usage(format!($($message)+)))
    };
}
pub(crate) use refuse;
