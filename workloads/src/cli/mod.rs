//! The `shaketable` command: arguments in, a report out, and an exit code.
//!
//! Nothing here decides what is right or wrong in a run: judges do. The command chooses what to
//! run, spreads it over threads, adds it up and hands it to `shaketable_reports`. Each subcommand
//! is one file; what they share is [`choose`] (names and values given by a person), [`pool`]
//! (threads), [`progress`], [`output`] (files and the terminal), [`cost`] and [`interrupt`].

mod args;
mod backend;
mod bench;
mod bugs;
mod choose;
mod conformance;
mod contract;
mod cost;
#[cfg(test)]
mod fake;
mod interrupt;
mod list;
mod output;
mod pool;
mod progress;
mod replay;
mod report;
mod resume;
mod run;

use args::{Arguments, Command, Conformance};
use clap::Parser;
use shaketable_reports::Outcome;
use std::{fmt, process::ExitCode};

/// The commit that the program was built from.
const COMMIT: &str = env!("SHAKETABLE_COMMIT");

/// Why a command has nothing to say: one line on stderr.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// Bad usage, configuration or input.
    Usage(String),
    /// A cluster that does not answer, or not any more.
    Cluster(String),
    /// Somebody asked it to end: what it exits with, and how far it came.
    Interrupted(u8, String),
}

impl Refusal {
    fn exit_code(&self) -> u8 {
        match self {
            Refusal::Usage(_) => 2,
            Refusal::Cluster(_) => Outcome::Harness.exit_code(),
            Refusal::Interrupted(code, _) => *code,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Refusal::Usage(line) | Refusal::Cluster(line) | Refusal::Interrupted(_, line)) = self;
        // Whatever a message quotes (a file name, a parser's words), it stays one line.
        f.write_str(&line.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// Refuses with a formatted line.
macro_rules! refuse {
    ($($message:tt)+) => {
        return Err($crate::cli::Refusal::Usage(format!($($message)+)))
    };
}
use refuse;

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    // Runs catch their own panics; any other is a defect of the command, told by the panic's hook.
    let done = std::panic::catch_unwind(|| match Arguments::try_parse() {
        Ok(arguments) => dispatch(arguments),
        Err(error) => args::answer(&error),
    });
    match done {
        Ok(Ok(outcome)) => ExitCode::from(outcome.exit_code()),
        Ok(Err(refusal)) => {
            output::complain(&format!("shaketable: {refusal}"));
            ExitCode::from(refusal.exit_code())
        }
        Err(_) => {
            output::complain("shaketable: this is a defect of shaketable itself");
            ExitCode::from(Outcome::Harness.exit_code())
        }
    }
}

fn dispatch(arguments: Arguments) -> Result<Outcome, Refusal> {
    match arguments.command {
        None => run::main_job(),
        Some(Command::Run(arguments)) => run::run(&arguments),
        Some(Command::Replay(arguments)) => replay::replay(&arguments),
        Some(Command::Bugs(arguments)) => bugs::bugs(&arguments),
        Some(Command::List(arguments)) => list::list(&arguments),
        Some(Command::Bench(arguments)) => bench::bench(&arguments),
        Some(Command::Conformance(Conformance::Check(arguments))) => conformance::check(&arguments),
        Some(Command::Conformance(Conformance::Record(arguments))) => conformance::record(&arguments),
        Some(Command::Contract(arguments)) => contract::contract(&arguments),
    }
}
