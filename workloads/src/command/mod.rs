//! The `shaketable` command: the command of the crate [`shaketable`] with the workloads of the catalogue, the
//! comparison of a client with a real cluster, and a benchmark of the simulated cluster.

mod bench;
mod conformance;
mod contract;

use crate::catalogue::catalogue;
use clap::{Args, Subcommand};
use shaketable::{
    command::{EXIT_CODES, Program, Refusal, backend, choose, main_with},
    seeds,
};
use shaketable_reports::Conclusion;
use shaketable_tx::real::Client;
use std::{path::PathBuf, process::ExitCode};

/// Runs the command line with which the process was started. `commit` is the commit that it was built from.
pub fn main(commit: &'static str) -> ExitCode {
    main_with(program(commit), run_extra)
}

/// Like [`main`](fn@main), with a client for real clusters that is not this build's own.
pub fn main_on(commit: &'static str, client: &'static dyn Client) -> ExitCode {
    main_with(Program { client: Some(client), ..program(commit) }, run_extra)
}

fn program(commit: &'static str) -> Program {
    Program {
        figures: bench::figures,
        tests_cluster: true,
        ..Program::new("shaketable", env!("CARGO_PKG_VERSION"), commit, catalogue)
    }
}

fn run_extra(command: ExtraCommand) -> Result<Conclusion, Refusal> {
    match command {
        ExtraCommand::Conformance(Conformance::Check(arguments)) => conformance::check(&arguments),
        ExtraCommand::Conformance(Conformance::Record(arguments)) => conformance::record(&arguments),
        ExtraCommand::Contract(arguments) => contract::contract(&arguments),
    }
}

/// The additional subcommands of this program.
#[derive(Debug, Subcommand)]
enum ExtraCommand {
    /// Compare a client with recordings of a real one, or record its results
    #[command(subcommand)]
    Conformance(Conformance),
    /// Test FoundationDB's promises to its clients, one by one
    #[command(after_help = EXIT_CODES)]
    Contract(ContractArguments),
}

#[derive(Debug, Subcommand)]
enum Conformance {
    /// Replay every recording of a folder and print what differs
    #[command(after_help = EXIT_CODES)]
    Check(CheckArguments),
    /// Draw scripts of transactions and record their results
    #[command(after_help = EXIT_CODES)]
    Record(RecordArguments),
}

#[derive(Clone, Debug, Args)]
struct CheckArguments {
    /// The folder: scripts with their results that end in .jsonl, and special-keys.txt
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Write the report as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    cluster: backend::ClusterArguments,
}

#[derive(Clone, Debug, Args)]
struct RecordArguments {
    /// The folder for the recordings, which must not contain any yet
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The seed from which the scripts are drawn
    #[arg(long, value_name = "SEED", default_value = "0", value_parser = seeds::seed)]
    seed: u64,
    /// The number of scripts of each kind
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = choose::at_least_one)]
    cases: u64,
    #[command(flatten)]
    cluster: backend::ClusterArguments,
}

#[derive(Clone, Debug, Args)]
struct ContractArguments {
    /// Only promises whose names contain this, such as watches/ (a section) or deferred
    #[arg(value_name = "PART")]
    filter: Option<String>,
    /// Write the report as JSON; - for standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    backend: backend::BackendArguments,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::Path};

    /// The arguments of the command in a line of a shell. The package that writes a new crate is another
    /// command.
    fn arguments(line: &str) -> Option<&str> {
        let line = line.split('#').next()?.trim();
        match line.strip_prefix("cargo run ") {
            Some(line) if line.starts_with("-p shaketable-new ") => None,
            Some(line) => line.split_once("-- ").map(|(_, arguments)| arguments),
            None => line.strip_prefix("shaketable "),
        }
    }

    #[test]
    fn the_commands_of_the_readme_and_the_book_are_commands() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let book = fs::read_dir(root.join("docs/src")).expect("the book");
        let pages = book.map(|entry| entry.expect("an entry").path()).chain([root.join("README.md")]);
        let pages = pages.filter(|file| file.extension().is_some_and(|extension| extension == "md"));
        let mut commands = 0;
        for page in pages {
            let text = fs::read_to_string(&page).expect("a page");
            for block in text.split("```").skip(1).step_by(2) {
                let (language, block) = block.split_once('\n').expect("a block of lines");
                let lines = block.lines().filter_map(|line| match language {
                    "sh" => Some(line),
                    // With what it prints.
                    "text" => line.strip_prefix("$ "),
                    _ => None,
                });
                for command in lines.filter_map(arguments) {
                    let words = std::iter::once("shaketable").chain(command.split_whitespace());
                    let parsed = shaketable::command::parse::<ExtraCommand, _>(words);
                    assert!(parsed.is_ok(), "{}: {command}", page.display());
                    commands += 1;
                }
            }
        }
        assert!(commands > 60, "{commands} commands");
    }
}
