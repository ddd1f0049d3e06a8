//! The command line program as a library.
//!
//! A program is the command with a list of workloads: [`main!`](crate::main) defines its `main` function. The
//! `shaketable` command is such a program; it adds its own subcommands with [`main_with`].
//! [`main_for_programs`] is the part of the command that runs programs in any language.
//!
//! The command does not judge runs. It selects the runs, distributes them over threads, adds up their results
//! and passes them to `shaketable_reports`. Each subcommand is one file, with its arguments. They share
//! [`choose`] (names and values from the user), [`pool`](crate::run::pool) (threads), [`progress`],
//! [`output`] (files and the terminal), [`cost`] and [`interrupt`].

mod advise;
mod against;
mod args;
pub mod backend;
pub mod bench;
mod beyond;
mod bugs;
mod caught;
mod child;
pub mod choose;
mod conclude;
mod cost;
mod explore;
mod failures;
#[cfg(test)]
mod fake;
mod files;
mod install;
pub mod interrupt;
mod list;
mod live;
mod merge;
mod mutant_runs;
mod new;
pub mod output;
mod program;
pub mod progress;
mod refusal;
mod regressions;
mod replay;
mod report;
mod resume;
mod run;
mod saved;
mod serve;
mod shrink;
mod sweep;
mod tally;
mod watch;
mod with;

use crate::plan::Undrawn;
pub use args::EXIT_CODES;
use clap::{CommandFactory, Parser, Subcommand};
pub use conclude::settle;
use program::PROGRAM;
pub use program::{Program, program};
pub use refusal::Refusal;
pub(crate) use refusal::refuse;
use shaketable_reports::Conclusion;
use std::{panic::UnwindSafe, process::ExitCode};

/// Defines the `main` function of a program that shakes these workloads, with the subcommands `run`,
/// `replay`, `regressions`, `bugs`, `list`, `bench` and `new`, on simulated clusters and, with the feature
/// `fdb`, on real ones.
///
/// ```text
/// shaketable::main!(Guarded<Sums>, Mounted<Accounts>);
/// ```
///
/// `examples/ledger` has such a `main`, which a test builds and runs.
///
/// Reports contain the commit from the environment variable `SHAKETABLE_COMMIT` of the build, if it is set.
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

/// Shakes FoundationDB layers on a simulated FoundationDB cluster, reproducibly from a seed.
///
/// Without a subcommand, every workload is run with a few seeds and standard faults, and the report is
/// written to target/shaketable/report.json and report.html.
#[derive(Debug, Parser)]
#[command(after_help = EXIT_CODES)]
pub struct Arguments<Extra: Subcommand> {
    #[command(subcommand)]
    command: Option<Command<Extra>>,
}

#[derive(Debug, Subcommand)]
enum Command<Extra: Subcommand> {
    /// Run workloads with many seeds and judge every run
    #[command(after_help = EXIT_CODES)]
    Run(run::RunArguments),
    /// Run workloads as `run` does, and serve a page that shows how it goes
    ///
    /// The page is for a browser on this machine: the address that is printed has a token, without which
    /// nobody gets anything. It shows the progress, the coverage points, the failures as they come and how
    /// far they are shrunk, and distributions. Output, files and exit code are those of `run`.
    #[command(after_help = EXIT_CODES)]
    Watch(watch::WatchArguments),
    /// Replay one seed, or the plan of a repro file
    #[command(after_help = EXIT_CODES)]
    Replay(replay::ReplayArguments),
    /// Cut a failing run down to what its failure needs
    #[command(after_help = EXIT_CODES)]
    Shrink(shrink::ShrinkArguments),
    /// Run the outcomes and the orders of a few operations
    #[command(after_help = EXIT_CODES)]
    Explore(explore::ExploreArguments),
    /// Compare traffic with FoundationDB's guidelines
    ///
    /// Runs workloads and prints what the guidelines of FoundationDB's documentation say about their keys,
    /// conflicts, sizes and reads. Advice is no verdict: the exit code is 0, unless the command is used
    /// wrongly or interrupted.
    Advise(advise::AdviseArguments),
    /// Run every planted bug until it is caught
    #[command(after_help = EXIT_CODES)]
    Bugs(bugs::BugsArguments),
    /// Work with the reports of earlier sweeps
    #[command(subcommand)]
    Report(ReportCommand),
    /// Keep plans that failed, which every sweep replays first
    #[command(subcommand)]
    Regressions(regressions::RegressionsCommand),
    /// Measure the speed of runs
    Bench(bench::BenchArguments),
    /// Create a crate with a layer, its workload and their tests
    New(new::NewArguments),
    /// Answer the questions of shaketable-mutants
    #[command(hide = true)]
    MutantRuns(mutant_runs::MutantRunsArguments),
    #[command(flatten)]
    ForPrograms(ForPrograms),
    #[command(flatten)]
    Extra(Extra),
}

/// The subcommands that need no workload.
#[derive(Debug, Subcommand)]
enum ForPrograms {
    /// List workloads, fault families or planted bugs
    List(list::ListArguments),
    /// Serve a simulated cluster to programs that use FoundationDB's C library
    ///
    /// Programs find the library of the package shaketable-driver in place of FoundationDB's, and the cluster
    /// through their cluster file or SHAKETABLE_SERVER. When it is ready it prints one line; at the end, the
    /// report of the run. Calls arrive in an order that the seed does not determine, unless one program alone
    /// calls from one thread.
    #[command(after_help = serve::EXIT_CODES)]
    Serve(serve::ServeArguments),
    /// Run a program that uses FoundationDB's C library on simulated clusters, a seed each
    ///
    /// The program finds the library of the package shaketable-driver in place of FoundationDB's. Its output
    /// is shown if it fails, with the report of the simulated cluster and the line that runs it again.
    #[command(after_help = with::EXIT_CODES)]
    With(with::WithArguments),
    /// Print the completions for a shell
    Completions(install::CompletionsArguments),
    /// Write the manual pages of this command
    Man(install::ManArguments),
}

/// Runs programs that use FoundationDB's C library on simulated clusters, reproducibly from a seed.
#[derive(Debug, Parser)]
struct ProgramArguments {
    #[command(subcommand)]
    command: ForPrograms,
}

#[derive(Clone, Debug, Subcommand)]
enum ReportCommand {
    /// Merge the reports of all shards of a sweep into the report of the whole sweep
    #[command(after_help = EXIT_CODES)]
    Merge(merge::MergeArguments),
    /// Add the failures of sweeps to a list with an entry for each workload, seed, faults and judge
    #[command(after_help = failures::HELP)]
    Failures(failures::FailuresArguments),
}

/// No additional subcommands.
#[derive(Debug, Subcommand)]
enum Nothing {}

/// Runs the command line with which the process was started.
pub fn main(program: Program) -> ExitCode {
    main_with::<Nothing>(program, |nothing| match nothing {})
}

/// Like [`main`](fn@main), for a program with additional subcommands, which `run_extra` runs.
pub fn main_with<Extra: Subcommand>(
    program: Program,
    run_extra: fn(Extra) -> Result<Conclusion, Refusal>,
) -> ExitCode {
    start(program, || {
        check_names()?;
        match parse(std::env::args_os()) {
            Ok(arguments) => dispatch(arguments, run_extra),
            Err(error) => args::handle(&error),
        }
    })
}

/// Like [`main`](fn@main), for a program that has no workloads, and of the subcommands those that need none.
pub fn main_for_programs(program: Program) -> ExitCode {
    start(program, || match parsed::<ProgramArguments, _>(std::env::args_os()) {
        Ok(ProgramArguments { command: asked }) => for_programs(asked, command::<ProgramArguments>()),
        Err(error) => args::handle(&error),
    })
}

/// Runs a program, and says why it ended if it was refused or has panicked.
fn start(program: Program, run: impl FnOnce() -> Result<Conclusion, Refusal> + UnwindSafe) -> ExitCode {
    let name = program.name;
    PROGRAM.get_or_init(|| program);
    // Runs catch their own panics. Any other panic is a bug in the command; the panic hook prints it.
    match std::panic::catch_unwind(run) {
        Ok(Ok(outcome)) => ExitCode::from(outcome.exit_code()),
        Ok(Err(refusal)) => {
            output::print_error(&format!("{name}: {refusal}"));
            ExitCode::from(refusal.exit_code())
        }
        Err(panic) => {
            let (said, conclusion) = match panic.downcast_ref::<Undrawn>() {
                Some(undrawn) => (undrawn.to_string(), Conclusion::Violated),
                None => ("this is a bug in the command itself".to_owned(), Conclusion::Harness),
            };
            output::print_error(&format!("{name}: {said}"));
            ExitCode::from(conclusion.exit_code())
        }
    }
}

/// Checks that the names of workloads are unique and differ from the place of the cluster's planted bugs.
fn check_names() -> Result<(), Refusal> {
    let mut names = vec![choose::CLUSTER];
    for entry in (program().workloads)() {
        if names.contains(&entry.name()) {
            refuse!("the workload name {:?} is used twice or reserved", entry.name());
        }
        names.push(entry.name());
    }
    Ok(())
}

/// The command line of this program.
fn command<Arguments: CommandFactory>() -> clap::Command {
    let Program { name, version, .. } = program();
    Arguments::command().name(*name).bin_name(*name).version(*version)
}

/// Parses a command line of this program.
///
/// # Errors
///
/// The errors of clap, which include help and version.
pub fn parse<Extra: Subcommand, Word: Into<std::ffi::OsString> + Clone>(
    line: impl IntoIterator<Item = Word>,
) -> Result<Arguments<Extra>, clap::Error> {
    parsed(line)
}

fn parsed<Arguments: Parser, Word: Into<std::ffi::OsString> + Clone>(
    line: impl IntoIterator<Item = Word>,
) -> Result<Arguments, clap::Error> {
    let mut command = command::<Arguments>();
    let mut matches = command.try_get_matches_from_mut(line)?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

fn dispatch<Extra: Subcommand>(
    arguments: Arguments<Extra>,
    run_extra: fn(Extra) -> Result<Conclusion, Refusal>,
) -> Result<Conclusion, Refusal> {
    match arguments.command {
        None => run::main_job(),
        Some(Command::Run(arguments)) => run::run(&arguments),
        Some(Command::Watch(arguments)) => watch::watch(&arguments),
        Some(Command::Replay(arguments)) => replay::replay(&arguments),
        Some(Command::Shrink(arguments)) => shrink::shrink(&arguments),
        Some(Command::Explore(arguments)) => explore::explore(&arguments),
        Some(Command::Advise(arguments)) => advise::advise(&arguments),
        Some(Command::Bugs(arguments)) => bugs::bugs(&arguments),
        Some(Command::Report(ReportCommand::Merge(arguments))) => merge::merge(&arguments),
        Some(Command::Report(ReportCommand::Failures(arguments))) => failures::failures(&arguments),
        Some(Command::Regressions(command)) => regressions::regressions(&command),
        Some(Command::Bench(arguments)) => bench::bench(&arguments),
        Some(Command::New(arguments)) => new::new(&arguments),
        Some(Command::MutantRuns(arguments)) => mutant_runs::mutant_runs(&arguments),
        Some(Command::ForPrograms(asked)) => for_programs(asked, command::<Arguments<Extra>>()),
        Some(Command::Extra(arguments)) => run_extra(arguments),
    }
}

fn for_programs(asked: ForPrograms, command: clap::Command) -> Result<Conclusion, Refusal> {
    match asked {
        ForPrograms::List(arguments) => list::list(&arguments),
        ForPrograms::Serve(arguments) => serve::serve(&arguments),
        ForPrograms::With(arguments) => with::with(&arguments),
        ForPrograms::Completions(arguments) => install::completions(&arguments, command),
        ForPrograms::Man(arguments) => install::man(&arguments, command),
    }
}
