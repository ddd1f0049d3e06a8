//! The command: arguments in, a report out, and an exit code.
//!
//! A program is a list of workloads with the command around them: [`main!`](crate::main) writes its `main`. The
//! `shaketable` command is one such program, and [`main_with`] is how it adds subcommands of its own.
//!
//! Nothing here decides what is right or wrong in a run: judges do. The command chooses what to
//! run, spreads it over threads, adds it up and hands it to `shaketable_reports`. Each subcommand
//! is one file; what they share is [`choose`] (names and values given by a person), [`pool`](crate::pool)
//! (threads), [`progress`], [`output`] (files and the terminal), [`cost`] and [`interrupt`].

mod args;
pub mod backend;
pub mod bench;
mod bugs;
pub mod choose;
mod cost;
#[cfg(test)]
mod fake;
pub mod interrupt;
mod list;
mod new;
pub mod output;
mod progress;
mod replay;
mod report;
mod resume;
mod run;

use crate::entry::Entry;
pub use args::EXIT_CODES;
use args::{Arguments, Command};
use clap::{CommandFactory, FromArgMatches, Subcommand};
pub use run::settle;
use shaketable_reports::{Conclusion, Figure};
use std::{fmt, process::ExitCode, sync::OnceLock};

/// A program that shakes: what it is called, and what it shakes.
pub struct Program {
    /// What it is called in messages and in its help.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The commit that it was built from, for reports to name.
    pub commit: &'static str,
    /// Its workloads, in the order of its lists.
    pub workloads: fn() -> Vec<Box<dyn Entry>>,
    /// What its benchmark measures beside how fast its workloads run, which are the figures given.
    pub figures: fn(Vec<Figure>, &interrupt::Interrupt) -> Result<Vec<Figure>, Refusal>,
    /// Whether `bugs`, when nothing is named, also runs the planted bugs of the simulated cluster. One workload alone
    /// seldom reaches all of them.
    pub tests_cluster: bool,
}

impl Program {
    /// A program that measures its workloads alone.
    pub fn new(
        name: &'static str,
        version: &'static str,
        commit: &'static str,
        workloads: fn() -> Vec<Box<dyn Entry>>,
    ) -> Program {
        Program { name, version, commit, workloads, figures: |figures, _| Ok(figures), tests_cluster: false }
    }
}

static PROGRAM: OnceLock<Program> = OnceLock::new();

/// The program that this process is.
pub fn program() -> &'static Program {
    PROGRAM.get_or_init(|| Program::new("shaketable", env!("CARGO_PKG_VERSION"), "unknown", Vec::new))
}

/// Why a command has nothing to say: one line on stderr.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
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
            Refusal::Cluster(_) => Conclusion::Harness.exit_code(),
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

/// Returns a [`Refusal::Usage`](crate::command::Refusal::Usage) with a formatted line.
#[macro_export]
macro_rules! refuse {
    ($($message:tt)+) => {
        return Err($crate::command::Refusal::Usage(format!($($message)+)))
    };
}
use crate::refuse;

/// Writes the `main` of a program that shakes these workloads: `run`, `replay`, `bugs`, `list`, `bench` and `new`, on
/// simulated clusters and, with the feature `fdb`, on real ones.
///
/// ```text
/// shaketable::main!(Guarded<Sums>, Mounted<Accounts>);
/// ```
///
/// `examples/ledger` has this `main`, which a test builds and runs.
///
/// Reports name the commit in the environment variable `SHAKETABLE_COMMIT` of the build, if it is set.
#[macro_export]
macro_rules! main {
    ($($workload:ty),+ $(,)?) => {
        fn main() -> std::process::ExitCode {
            $crate::command::main($crate::command::Program::new(
                env!("CARGO_PKG_NAME"),
                env!("CARGO_PKG_VERSION"),
                option_env!("SHAKETABLE_COMMIT").unwrap_or("unknown"),
                || vec![$($crate::entry::entry::<$workload>()),+],
            ))
        }
    };
}

/// Subcommands that there are not.
#[derive(Debug, Subcommand)]
enum Nothing {}

/// Runs the command line that the process was started with.
pub fn main(program: Program) -> ExitCode {
    main_with::<Nothing>(program, |nothing| match nothing {})
}

/// The same for a program with further subcommands, and what does them.
pub fn main_with<Further: Subcommand>(
    program: Program,
    further: fn(Further) -> Result<Conclusion, Refusal>,
) -> ExitCode {
    let name = program.name;
    PROGRAM.get_or_init(|| program);
    let refused = |refusal: Refusal| {
        output::complain(&format!("{name}: {refusal}"));
        ExitCode::from(refusal.exit_code())
    };
    if let Err(refusal) = check_names() {
        return refused(refusal);
    }
    // Runs catch their own panics; any other is a bug in the command, told by the panic's hook.
    let done = std::panic::catch_unwind(|| match parse(std::env::args_os()) {
        Ok(arguments) => dispatch(arguments, further),
        Err(error) => args::answer(&error),
    });
    match done {
        Ok(Ok(outcome)) => ExitCode::from(outcome.exit_code()),
        Ok(Err(refusal)) => refused(refusal),
        Err(_) => {
            output::complain(&format!("{name}: this is a bug in the command itself"));
            ExitCode::from(Conclusion::Harness.exit_code())
        }
    }
}

/// Each workload is named once, and none as the place of the cluster's own planted bugs.
fn check_names() -> Result<(), Refusal> {
    let mut names = vec![choose::CLUSTER];
    for entry in (program().workloads)() {
        if names.contains(&entry.name()) {
            refuse!("two workloads are called {:?}, or one as the cluster is", entry.name());
        }
        names.push(entry.name());
    }
    Ok(())
}

/// Reads a command line of this program.
///
/// # Errors
///
/// Those of clap, among them help and version.
pub fn parse<Further: Subcommand, Word: Into<std::ffi::OsString> + Clone>(
    line: impl IntoIterator<Item = Word>,
) -> Result<Arguments<Further>, clap::Error> {
    let Program { name, version, .. } = program();
    let mut command = Arguments::<Further>::command().name(*name).bin_name(*name).version(*version);
    let mut matches = command.try_get_matches_from_mut(line)?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

fn dispatch<Further: Subcommand>(
    arguments: Arguments<Further>,
    further: fn(Further) -> Result<Conclusion, Refusal>,
) -> Result<Conclusion, Refusal> {
    match arguments.command {
        None => run::main_job(),
        Some(Command::Run(arguments)) => run::run(&arguments),
        Some(Command::Replay(arguments)) => replay::replay(&arguments),
        Some(Command::Bugs(arguments)) => bugs::bugs(&arguments),
        Some(Command::List(arguments)) => list::list(&arguments),
        Some(Command::Bench(arguments)) => bench::bench(&arguments),
        Some(Command::New(arguments)) => new::new(&arguments),
        Some(Command::Further(arguments)) => further(arguments),
    }
}
