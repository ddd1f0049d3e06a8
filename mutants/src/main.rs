//! `shaketable-mutants`: how good a workload is at noticing bugs that nobody has thought of.
//!
//! The source of a crate is changed at each place where a small change compiles; all changes are in one
//! program, which switches one of them on for a run. A workload that does not notice a change, in hundreds of
//! runs, does not look at what the changed code is for, or the code is not needed.
//!
//! [`points`] finds the places, [`rewrite`] writes them, [`package`] compiles the crate from its changed
//! copy, [`compile`] leaves out what does not compile, [`score`] runs the rest, and [`tests`] what is left
//! then; [`kept`] is what the next call need not find out again.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints")]
#![allow(clippy::disallowed_methods, reason = "it waits for processes by the wall clock")]

mod compile;
mod kept;
mod package;
mod points;
mod report;
mod rewrite;
mod score;
mod tests;

use clap::Parser;
use compile::{Mutant, Source};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use package::{Package, Workspace};
use report::Report;
use score::{Equivalent, Noticed, Runs, Scored};
use serde::de::DeserializeOwned;
use std::{
    collections::BTreeSet,
    fmt, fs,
    io::IsTerminal,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Mutex,
    time::{Duration, Instant},
};
use tests::Tests;

/// Change a crate in hundreds of small ways, in one build, and count which of them its workloads notice
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXIT_CODES)]
struct Arguments {
    /// The package that is changed; may be repeated [default: that of this folder]
    #[arg(long, short, value_name = "PACKAGE")]
    package: Vec<String>,
    /// The package whose program shakes it [default: the same, or the first]
    #[arg(long, value_name = "PACKAGE")]
    program: Option<String>,
    /// Change only this file, or this function in it; may be repeated [default: what the manifest
    /// lists in package.metadata.shaketable.mutants, or all]
    #[arg(long, value_name = "FILE[:FUNCTION]")]
    only: Vec<String>,
    /// The workloads that shake it [default: all of the program]
    #[arg(value_name = "WORKLOAD")]
    workloads: Vec<String>,
    /// Tests that are run with each mutant that no run noticed: all of a package, those of its library (lib),
    /// or one file of them; may be repeated
    #[arg(long, value_name = "PACKAGE[:TEST]")]
    tests: Vec<String>,
    /// The seeds of each workload from 0, and the most runs of a mutant
    #[arg(long, value_name = "N", default_value_t = 300)]
    seeds: u64,
    /// The fault profile: calm, standard or storm
    #[arg(long, value_name = "PROFILE", default_value = "standard", value_parser = ["calm", "standard", "storm"])]
    faults: String,
    /// Begin no further mutant after so many minutes
    #[arg(long, value_name = "MINUTES")]
    budget: Option<u64>,
    /// The processes at once [default: one per processor]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Only every Nth mutant, from the Ith; I starts at 1
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<(usize, usize)>,
    /// The list of mutants that no run can notice, each with its reason [default: mutants.json in the
    /// package]
    #[arg(long, value_name = "FILE")]
    equivalent: Option<PathBuf>,
    /// Only those mutants that a run noticed in this report of --json: each must be noticed again, by the
    /// same workload
    #[arg(long, value_name = "FILE")]
    noticed: Option<PathBuf>,
    /// Count the changes that compile, by operator, and run nothing; --json has them all
    #[arg(long)]
    list: bool,
    /// Write the report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report as an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  every mutant was noticed, or is in the list
  1  a mutant was not noticed, or one of the list was, or one is not there any more
  2  bad usage, a crate that does not compile, a program that does not answer (one line on stderr)";

/// Why there is no result: one line.
#[derive(Debug)]
pub struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parts {
        Some((i, n)) if 1 <= i && i <= n => Ok((i, n)),
        _ => Err("must be I/N with 1 <= I <= N".into()),
    }
}

fn main() -> ExitCode {
    if let Some(code) = package::compiler() {
        return code;
    }
    match mutants(&Arguments::parse()) {
        Ok(code) => code,
        Err(refusal) => {
            eprintln!("shaketable-mutants: {refusal}");
            ExitCode::from(2)
        }
    }
}

fn mutants(arguments: &Arguments) -> Result<ExitCode, Refusal> {
    let workspace = Workspace::read()?;
    let here = || workspace.here.clone().map(|here| vec![here]);
    let names = Some(arguments.package.clone()).filter(|names| !names.is_empty()).or_else(here);
    let names = names.ok_or_else(|| Refusal("this folder is that of no package: use --package".into()))?;
    let packages = workspace.packages(&names)?;
    let of = workspace.package(arguments.program.as_ref().unwrap_or(&names[0]))?;
    let program = of.program()?;
    for file in [&arguments.json, &arguments.html].into_iter().flatten() {
        // Known before hours of runs.
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if file.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
            return Err(Refusal(format!("{}: no file can be written there", file.display())));
        }
    }
    let list = read_list(arguments.equivalent.as_deref(), &packages)?;
    let noticed: Option<Noticed> = arguments.noticed.as_deref().map(read_json).transpose()?;
    let target = workspace.target.join("mutants");
    let is_wanted_in = |package: &str, file: &str, function: &str| {
        let files = packages.iter().find(|own| own.name == package).map(|own| &own.files);
        let only = if arguments.only.is_empty() { files.unwrap_or(&arguments.only) } else { &arguments.only };
        is_wanted(only, Path::new(file.strip_prefix("src/").unwrap_or(file)), function)
    };
    let mut sources = Vec::new();
    for package in &packages {
        let copy = target.join("source").join(&package.name);
        let first = sources.last().map_or(1, Source::end);
        sources.push(Source::read(package, &copy, first, |mutant| {
            is_wanted_in(&mutant.package, &mutant.file, &mutant.function)
                && noticed.as_ref().is_none_or(|noticed| noticed.of(mutant).is_some())
        })?);
    }
    let all_of = |left_out: &BTreeSet<u32>| -> Vec<Mutant> {
        sources.iter().flat_map(|source| source.mutants(left_out)).collect()
    };
    if all_of(&BTreeSet::new()).is_empty() {
        return Err(Refusal(format!("nothing of {} is to be changed", names.join(", "))));
    }

    let mut left_out = BTreeSet::new();
    for (source, package) in sources.iter().zip(&packages) {
        let told = |left, all| eprintln!("{}: {left} of {all} changes", package.name);
        left_out.extend(source.check(&sources, &target, told)?);
    }
    if arguments.list {
        print!("{}", report::operators(&all_of(&BTreeSet::new()), &left_out));
        let unrun = |mutant| Scored { mutant, reached: false, runs: 0, killed: None, tested: None };
        let all: Vec<Scored> = all_of(&left_out).into_iter().map(unrun).collect();
        save(arguments.json.as_deref(), &Report::new(&names, arguments, &all, &list, all.len()).json())?;
        return Ok(ExitCode::SUCCESS);
    }
    let built = compile::build(&sources, &target, of, program)?;
    let mut tests = Vec::new();
    for named in &arguments.tests {
        let (package, test) = named.split_once(':').map_or((&**named, None), |(p, test)| (p, Some(test)));
        tests.extend(compile::build_tests(&sources, &target, workspace.package(package)?, test)?);
    }
    let compiled = all_of(&left_out);
    let mut all = compiled.clone();
    if let Some((i, n)) = arguments.shard {
        let mut place = 0;
        all.retain(|_| {
            place += 1;
            (place - 1) % n == i - 1
        });
    }

    let begun = Instant::now();
    let jobs = arguments.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let end = arguments.budget.map(|minutes| begun + Duration::from_secs(60 * minutes));
    let results = kept::results_of(&built, &target.join("results").join(format!("{}-{program}", names[0])))?;
    let (faults, seeds) = (arguments.faults.as_str(), arguments.seeds);
    let copied = results.join(kept::PROGRAM);
    let runs = Runs { program: &copied, faults, seeds, jobs, end, results: &results };
    let mut workloads = runs.workloads()?;
    if let Some(unknown) = arguments.workloads.iter().find(|name| !workloads.contains(name)) {
        return Err(Refusal(format!("{program} has no workload {unknown:?}")));
    }
    if !arguments.workloads.is_empty() {
        workloads.retain(|name| arguments.workloads.contains(name));
    }
    let reached = match &noticed {
        Some(noticed) => noticed.reached(&all, &workloads, seeds),
        None => {
            // Without a budget: what is not reached would seem never to be.
            let without_end = Runs { end: None, ..runs };
            let progress = Progress::new("runs without a mutant", workloads.len() as u64 * seeds);
            let reached = without_end.reached(&workloads, || progress.one())?;
            progress.end();
            reached
        }
    };
    let progress = Progress::new("mutants", all.len() as u64);
    let mut scored = runs.score(&all, &workloads, &reached, |_| progress.one())?;
    progress.end();
    if !tests.is_empty() {
        let tests = Tests::new(tests)?;
        let left = scored.iter().filter(|scored| scored.killed.is_none()).count();
        let progress = Progress::new("mutants in tests", left as u64);
        tests.run(&runs, &mut scored, || progress.one())?;
        progress.end();
    }

    // Those that the budget left out, but not those that the report does not have.
    let unbegun = all.len() - scored.len();
    if noticed.is_some() {
        score::without_others(&mut scored);
    }
    let wrong = match noticed {
        Some(_) => Vec::new(),
        None => score::wrong(&list, &compiled, &scored, is_wanted_in),
    };
    let gone = noticed.as_ref().map(|noticed| noticed.gone(&compiled)).unwrap_or_default();
    let report = Report::new(&names, arguments, &scored, &list, scored.len() + unbegun);
    print!("{}", report.text());
    for mutant in &gone {
        println!(
            "noticed once, and not there any more: {} {} {}",
            mutant.file, mutant.function, mutant.original
        );
    }
    for (entry, kill) in &wrong {
        let why = match kill {
            Some(kill) => format!("is noticed by {} with seed {}", kill.workload, kill.seed),
            None => "is not there".to_owned(),
        };
        println!(
            "in the list of equivalents, but {why}: {} {} {}",
            entry.file, entry.function, entry.original
        );
    }
    save(arguments.json.as_deref(), &report.json())?;
    save(arguments.html.as_deref(), &report.html())?;
    let all_noticed = report.survivors().is_empty() && wrong.is_empty() && gone.is_empty();
    Ok(ExitCode::from(u8::from(!all_noticed)))
}

fn save(file: Option<&Path>, text: &str) -> Result<(), Refusal> {
    match file {
        Some(file) => fs::write(file, text).map_err(|e| Refusal(format!("{}: {e}", file.display()))),
        None => Ok(()),
    }
}

/// Whether a place is in one of the files or functions that are wanted; all are if there are none.
fn is_wanted(only: &[String], file: &Path, function: &str) -> bool {
    only.is_empty()
        || only.iter().any(|wanted| {
            let (path, named) = match wanted.split_once(':') {
                Some((path, named)) => (path, Some(named)),
                None => (wanted.as_str(), None),
            };
            let path = path.strip_prefix("src/").unwrap_or(path);
            (file.starts_with(path) || file.ends_with(path))
                && named.is_none_or(|named| function == named || function.ends_with(&format!("::{named}")))
        })
}

fn read_list(named: Option<&Path>, packages: &[&Package]) -> Result<Vec<Equivalent>, Refusal> {
    let mut list = Vec::new();
    for package in packages {
        let usual = package.folder.join("mutants.json");
        let file = match (named, packages) {
            (Some(file), [_]) => file,
            (Some(_), _) => return Err(Refusal("--equivalent is for one package".into())),
            (None, _) if usual.exists() => &usual,
            (None, _) => continue,
        };
        let mut own: Vec<Equivalent> = read_json(file)?;
        own.iter_mut().for_each(|entry| entry.package.clone_from(&package.name));
        list.extend(own);
    }
    Ok(list)
}

fn read_json<T: DeserializeOwned>(file: &Path) -> Result<T, Refusal> {
    serde_json::from_str(&package::read(file)?).map_err(|e| Refusal(format!("{}: {e}", file.display())))
}

/// How far the work is: a bar on a terminal, and elsewhere a line now and then.
struct Progress {
    what: &'static str,
    bar: ProgressBar,
    told: Mutex<Instant>,
}

impl Progress {
    /// How long nothing is told where there is no terminal.
    const SILENT: Duration = Duration::from_secs(60);

    fn new(what: &'static str, length: u64) -> Progress {
        let bar = match std::io::stderr().is_terminal() {
            true => ProgressBar::new(length).with_message(what),
            false => ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden()),
        };
        let bar = match ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        Progress { what, bar, told: Mutex::new(Instant::now()) }
    }

    /// One more is done.
    fn one(&self) {
        self.bar.inc(1);
        let Ok(mut told) = self.told.lock() else { return };
        if self.bar.is_hidden() && told.elapsed() >= Self::SILENT {
            *told = Instant::now();
            eprintln!("{} of {} {}", self.bar.position(), self.bar.length().unwrap_or_default(), self.what);
        }
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}
