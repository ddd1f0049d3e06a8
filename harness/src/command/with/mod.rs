//! `shaketable with`: runs a program that uses FoundationDB's C library once per seed, on a simulated
//! cluster.
//!
//! The program finds the library of the package `shaketable-driver` in place of FoundationDB's, with a seed
//! and faults in its environment. What it prints is shown for the run that fails. Each process of a run that
//! uses the library leaves a report: the reports of the failing run are printed. A process that ends without
//! one (`_exit`, a crash, a signal, every program in Go) leaves a journal of its calls, which is performed
//! again here: its cluster is judged all the same. The journal is there from the moment in which a process
//! opens its first database, and so tells whether a run used a simulated cluster at all, however soon the
//! process ends.

mod clock;
mod headline;
mod history;
mod jobs;
mod left;
mod page;
mod printed;
mod repeats;
mod why;

use super::{
    Refusal,
    args::Faults,
    child::{Child, Ending},
    choose,
    conclude::settle,
    files::Files,
    interrupt::Interrupt,
    output::{self, Outputs},
    program,
    progress::Progress,
    refuse,
    report::{invocation, quoted},
};
use crate::search::seeds;
use clap::Args;
use printed::Printed;
use shaketable_reports::{
    Conclusion,
    text::{count, plural},
};
use shaketable_session::{
    Host,
    journal::NOT_WHOLE,
    report::{self, Totals},
};
use shaketable_sim::faults::{Family, Profile};
use std::{
    ffi::OsString,
    fmt::Write,
    fs,
    num::NonZero,
    ops::Range,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tempfile::TempDir;

/// The variables of a report's line that options of `with` stand for.
const SET_BY_OPTIONS: [&str; 5] = [
    "SHAKETABLE_SEED=",
    "SHAKETABLE_FAULTS=",
    "SHAKETABLE_WITHOUT=",
    "SHAKETABLE_ONE_AT_A_TIME=",
    "SHAKETABLE_TIME=",
];

/// The exit codes, for the end of the help page.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0  the command succeeded with every seed
  1  the command failed with a seed: its exit code was not 0, a signal ended it, or it took
     longer than --timeout
  2  bad usage, no library, or a command that cannot be started (one line on stderr)
  3  the simulated cluster failed, or broke FoundationDB's promises, as its
     judges found, or a part of a run was not judged (a process left no report,
     and its journal is not whole); do not rely on what else the run shows
  4  the runs prove nothing: none used the simulated cluster (the command does
     not load the library, or opens no database), none committed a write, or
     none met a fault, unless --faults is calm
  130, 143, 129
     interrupted (Ctrl-C, SIGTERM, SIGHUP); the command is ended as well";

#[derive(Clone, Debug, Args)]
pub(super) struct WithArguments {
    /// The number of seeds from 0, or a range that excludes B [default: 50]
    #[arg(long, value_name = "N|A..B", allow_negative_numbers = true, value_parser = seeds::range)]
    pub seeds: Option<Range<u64>>,
    #[command(flatten)]
    pub faults: Faults,
    /// The folder of libfdb_c.so [default: that of this program, or lib beside it]
    #[arg(long, value_name = "DIR")]
    pub library: Option<PathBuf>,
    /// A run fails if it takes longer than this: 60s, 5m
    #[arg(long, value_name = "TIME", value_parser = choose::duration)]
    pub timeout: Option<Duration>,
    /// Let the threads of a program run one at a time between their calls, in an order that the seed
    /// chooses, so that a seed repeats the run of most programs with several threads
    #[arg(long)]
    pub one_at_a_time: bool,
    /// Show the program virtual time in place of the clock, and random numbers of the seed, so that sleeping
    /// takes no time and a seed repeats what it sees; needs libshaketable_time.so beside libfdb_c.so
    #[arg(long)]
    pub time: bool,
    /// With --time, leave the program the system's random numbers
    #[arg(long, requires = "time")]
    pub own_randomness: bool,
    /// The number of runs at a time, of a program that needs no port and no file for itself [default: 1]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZero<usize>>,
    /// Write a page about the failing run, as HTML, for who maintains the program
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Let every run write to the terminal, instead of showing the output of the one that fails
    #[arg(long, conflicts_with = "jobs")]
    pub show_output: bool,
    /// The program and its arguments; it has no standard input
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub command: Vec<OsString>,
}

/// The seeds unless the command line names others.
const SEEDS: Range<u64> = 0..50;

/// How much is shown of the end of what a run printed, bytes.
const SHOWN: usize = 1 << 20;

/// The file name of the library, and the variable with the folders in which programs look for it.
const LIBRARY: (&str, &str) = if cfg!(target_os = "macos") {
    ("libfdb_c.dylib", "DYLD_LIBRARY_PATH")
} else {
    ("libfdb_c.so", "LD_LIBRARY_PATH")
};

/// The file name of the library that shows a program virtual time.
const TIME: &str = "libshaketable_time.so";

/// The variable with the folder in which the processes of a run take numbers, for random numbers of the seed.
const RANDOM: &str = "SHAKETABLE_RANDOM";

/// The variable with the number of threads on which Node waits for files and draws random numbers.
const POOL: &str = "UV_THREADPOOL_SIZE";

/// How the names of journals begin, before the number of the process.
const JOURNAL: &str = "journal-";

/// The variable with the libraries that are loaded first.
const PRELOAD: &str = "LD_PRELOAD";

/// Runs the command with each seed until it fails, and prints what the failing run shows.
pub(super) fn with(arguments: &WithArguments) -> Result<Conclusion, Refusal> {
    let outputs = Outputs::check(Files { html: arguments.html.as_deref(), ..Files::default() })?;
    let shake = Shake::of(arguments)?;
    let interrupt = Interrupt::listen()?;
    let mut shaken = shake.run(&interrupt)?;
    repeats::check(&shake, &mut shaken, &interrupt);
    let text = shake.text(&shaken);
    let failed = shaken.failed.as_ref().filter(|_| outputs.has_page());
    let written = match failed.map(|(seed, run)| page::body(&shake, *seed, run)) {
        Some(Some(body)) => outputs.publish(&text, program().commit, body),
        Some(None) => output::print(&format!("{text}\nno HTML report: the run left no journal\n")),
        None => output::print(&text),
    };
    settle(shaken.conclusion(), written, None)
}

/// What is run, and how.
struct Shake<'a> {
    arguments: &'a WithArguments,
    faults: Profile,
    without: Vec<Family>,
    /// The folder of the library.
    library: PathBuf,
}

/// The run of one seed.
struct Run {
    ending: Ending,
    /// The end of what it printed.
    printed: Vec<u8>,
    /// The reports of its processes.
    reports: Vec<String>,
    /// Whether one of its processes opened a database.
    used: bool,
    /// The processes that outlived the command, and did not end by themselves.
    left: Vec<String>,
    /// The folder with what it left.
    folder: TempDir,
}

/// What the runs showed.
#[derive(Default)]
struct Shaken {
    /// The number of runs.
    runs: u64,
    /// The runs that used a simulated cluster.
    used: u64,
    /// What the runs add up to.
    totals: Totals,
    /// Whether the profile has faults.
    has_faults: bool,
    /// The processes that the first run left which left any.
    left: Vec<String>,
    /// The first seed whose run failed.
    failed: Option<(u64, Run)>,
    /// If one failed: whether it fails again.
    repeats: String,
}

impl Run {
    /// The journals of its processes.
    fn journals(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("reports")).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(JOURNAL))
            .map(|entry| entry.path())
    }

    /// The journal of the process that asked most.
    fn longest_journal(&self) -> Option<Vec<u8>> {
        let length = |path: &PathBuf| fs::metadata(path).map_or(0, |data| data.len());
        fs::read(self.journals().max_by_key(|path| (length(path), path.clone()))?).ok()
    }

    /// The first line of a report that accuses the simulated cluster.
    fn accused(&self) -> Option<&str> {
        self.reports.iter().find_map(|text| report::accused(text))
    }

    /// The first line of a report that says that a part of the run was not judged.
    fn unjudged(&self) -> Option<&str> {
        self.reports.iter().find_map(|text| not_whole(text))
    }

    /// The variables of its environment, as its reports have them, that no option of `with` sets.
    fn inherited(&self) -> impl Iterator<Item = &str> {
        let again = self
            .reports
            .iter()
            .find_map(|text| text.lines().find_map(|line| line.strip_prefix(report::AGAIN)));
        let settings = again.unwrap_or_default().split(' ').filter(|word| word.contains('='));
        settings.filter(|setting| !SET_BY_OPTIONS.iter().any(|name| setting.starts_with(name)))
    }

    fn is_failed(&self) -> bool {
        !self.ending.is_success() || self.accused().or(self.unjudged()).is_some()
    }
}

impl Shaken {
    /// Counts a run.
    fn add(&mut self, mut run: Run) -> Run {
        self.runs += 1;
        self.used += u64::from(run.used);
        run.reports.iter().for_each(|report| self.totals.add(report));
        if self.left.is_empty() {
            self.left = std::mem::take(&mut run.left);
        }
        run
    }

    fn conclusion(&self) -> Conclusion {
        match &self.failed {
            Some((_, run)) if run.accused().is_some() || run.ending.is_success() => Conclusion::Harness,
            Some(_) => Conclusion::Violated,
            None if self.used == 0 || self.lacks().is_some() => Conclusion::Vacuous,
            None => Conclusion::Passed,
        }
    }

    /// What did not happen in any run, without which they prove nothing.
    fn lacks(&self) -> Option<&'static str> {
        match &self.totals {
            totals if totals.wrote + totals.unknown_committed == 0 => Some("committed a write"),
            totals if self.has_faults && totals.faults == 0 => Some("met a fault"),
            _ => None,
        }
    }
}

impl Shake<'_> {
    fn of(arguments: &WithArguments) -> Result<Shake<'_>, Refusal> {
        let demands = arguments.faults.demands()?;
        let program = std::env::current_exe().ok();
        let library = library(arguments.library.as_deref(), program.as_deref().and_then(Path::parent))?;
        if arguments.time {
            check_time(&library, arguments.command.first())?;
        }
        Ok(Shake { arguments, faults: demands.profile, without: demands.without, library })
    }

    fn name(&self) -> String {
        let program = self.arguments.command.first().map(Path::new).and_then(Path::file_name);
        program.unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Runs the command with each seed, until it fails.
    fn run(&self, interrupt: &Interrupt) -> Result<Shaken, Refusal> {
        let seeds = self.arguments.seeds.clone().unwrap_or(SEEDS);
        let mut shaken = Shaken { has_faults: self.faults != Profile::Calm, ..Shaken::default() };
        let shows = self.arguments.show_output;
        let progress = (!shows)
            .then(|| Progress::new(&[(&self.name(), seeds.end - seeds.start)], ("run", "runs"), "failed"));
        jobs::run(self, &seeds, interrupt, progress, &mut shaken)?;
        Ok(shaken)
    }

    /// Runs the command with a seed; `None` if it was ended because it should be. What it prints is kept if
    /// `is_kept`.
    fn run_seed(
        &self,
        seed: u64,
        is_kept: bool,
        should_end: &dyn Fn() -> bool,
    ) -> Result<Option<Run>, Refusal> {
        let folder = tempfile::tempdir()
            .map_err(|error| Refusal::Usage(format!("cannot create a temporary folder: {error}")))?;
        let unreadable = |error| Refusal::Usage(format!("cannot keep what the command prints: {error}"));
        let [reports, random] = ["reports", "random"].map(|name| folder.path().join(name));
        fs::create_dir(&reports).and_then(|()| fs::create_dir(&random)).map_err(unreadable)?;
        let mut command = self.command(seed, &reports, &random);
        let printed = is_kept.then(|| Printed::by(&mut command)).transpose().map_err(unreadable)?;
        let child = Child::start(command)
            .map_err(|error| Refusal::Usage(format!("cannot start {}: {error}", self.name_of_command())))?;
        let ending = child.wait(self.arguments.timeout, should_end);
        let left = left::end(&reports, should_end);
        let Some(ending) = ending.filter(|_| !should_end()) else { return Ok(None) };
        let printed = printed.map(Printed::end).unwrap_or_default();
        let used = fs::read_dir(&reports).is_ok_and(|mut files| files.next().is_some());
        Ok(Some(Run { ending, printed, reports: collect(&reports), used, left, folder }))
    }

    fn name_of_command(&self) -> String {
        self.arguments.command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn command(&self, seed: u64, reports: &Path, random: &Path) -> Command {
        let empty = OsString::new();
        let (program, arguments) = self.arguments.command.split_first().unwrap_or((&empty, &[]));
        let (_, variable) = LIBRARY;
        let mut folders = vec![self.library.clone()];
        folders.extend(std::env::var_os(variable).iter().flat_map(std::env::split_paths));
        let mut command = Command::new(program);
        command
            .args(arguments)
            // Folders that came from this variable can be joined again, and the library's has no separator.
            .env(variable, std::env::join_paths(folders).unwrap_or_else(|_| self.library.clone().into()))
            .env("SHAKETABLE_SEED", seed.to_string())
            .env("SHAKETABLE_FAULTS", choose::name_of(self.faults))
            .env("SHAKETABLE_WITHOUT", self.names_without())
            .env("SHAKETABLE_ONE_AT_A_TIME", if self.arguments.one_at_a_time { "1" } else { "" })
            .env("SHAKETABLE_TIME", if self.arguments.time { "1" } else { "" })
            .env("SHAKETABLE_REPORT", reports)
            .env("SHAKETABLE_JOURNAL", reports)
            // A cluster file that a server has left is not followed.
            .env("SHAKETABLE_SERVER", "none");
        if self.arguments.time {
            command.env(PRELOAD, self.preloaded());
        }
        match self.arguments.time && !self.arguments.own_randomness {
            true => command.env(RANDOM, random),
            false => command.env_remove(RANDOM),
        };
        if self.arguments.one_at_a_time && std::env::var_os(POOL).is_none() {
            command.env(POOL, "1");
        }
        command
    }

    /// The library that shows virtual time, and what is preloaded already.
    fn preloaded(&self) -> OsString {
        let mut all = self.library.join(TIME).into_os_string();
        if let Some(others) = std::env::var_os(PRELOAD) {
            all.push(":");
            all.push(others);
        }
        all
    }

    fn names_without(&self) -> String {
        let names: Vec<_> = self.without.iter().map(|family| family.name()).collect();
        names.join(",")
    }

    /// What the user sees of the runs.
    fn text(&self, shaken: &Shaken) -> String {
        let runs = plural(shaken.runs, "run", "runs");
        let faults = choose::name_of(self.faults);
        let left = match shaken.left.len() {
            0 => String::new(),
            _ => format!("ended, because they outlived {}: {}\n", self.name(), shaken.left.join(", ")),
        };
        let Some((seed, run)) = &shaken.failed else {
            return left
                + &match shaken.used {
                    0 => format!(
                        "{runs} passed, and none used the simulated cluster: {} does not load {}, or opens \
                         no database\n",
                        self.name(),
                        LIBRARY.0
                    ),
                    _ => {
                        let lacks =
                            shaken.lacks().map(|what| format!(", and none {what}")).unwrap_or_default();
                        format!("{runs} passed with {faults} faults{lacks}\n{}", happened(&shaken.totals))
                    }
                };
        };
        let mut text = String::from_utf8_lossy(&run.printed).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text += &left;
        let _ = writeln!(text, "\nseed {seed}: {} {}", self.name(), run.ending);
        let printed = String::from_utf8_lossy(&run.printed);
        // The last line needs no repetition.
        if let Some(line) = headline::of(&printed).filter(|line| line != headline::last(&printed)) {
            let _ = writeln!(text, "{line}");
        }
        if let Some(line) = run.accused().or(run.unjudged()) {
            let _ = writeln!(text, "{line}");
        }
        for report in &run.reports {
            text.push('\n');
            // What is at the end says how to repeat the run.
            for line in report.trim_end().lines().filter(|line| !line.starts_with(report::AGAIN)) {
                let _ = writeln!(text, "{line}");
            }
        }
        if run.reports.is_empty() {
            let why =
                if run.used { "it was ended too early" } else { "it did not use the simulated cluster" };
            let _ = writeln!(text, "no report: {why}");
        }
        let _ = writeln!(text, "\nrepeats: {}", shaken.repeats);
        let _ = writeln!(text, "replay: {}", self.replay_line(*seed, run));
        text
    }

    /// The command line that runs the seed of a run again.
    fn replay_line(&self, seed: u64, run: &Run) -> String {
        let mut line = String::new();
        for setting in run.inherited() {
            let _ = write!(line, "{setting} ");
        }
        // The seed is in a range that excludes its end, so that there is a next one.
        let _ = write!(line, "{} with --seeds {seed}..{}", invocation(), seed + 1);
        let _ = write!(line, " --faults {}", choose::name_of(self.faults));
        if !self.without.is_empty() {
            let _ = write!(line, " --without {}", self.names_without());
        }
        if self.arguments.one_at_a_time {
            line += " --one-at-a-time";
        }
        if self.arguments.time {
            line += " --time";
        }
        if self.arguments.own_randomness {
            line += " --own-randomness";
        }
        if let Some(folder) = &self.arguments.library {
            let _ = write!(line, " --library {}", quoted(&folder.to_string_lossy()));
        }
        if let Some(timeout) = self.arguments.timeout {
            let _ = write!(line, " --timeout {}", quoted(&humantime::format_duration(timeout).to_string()));
        }
        line += " --";
        for word in &self.arguments.command {
            let _ = write!(line, " {}", quoted(&word.to_string_lossy()));
        }
        line
    }
}

/// The folder of the library: the one that is named; that of this program, as cargo builds both; or `lib`
/// beside it, as both are installed.
fn library(named: Option<&Path>, beside: Option<&Path>) -> Result<PathBuf, Refusal> {
    let folder = named.or(beside).unwrap_or(Path::new("."));
    let (file, _) = LIBRARY;
    let mut folders = vec![folder.to_owned()];
    if named.is_none() {
        folders.push(folder.join("../lib"));
    }
    let there = folders.iter().find(|folder| folder.join(file).is_file());
    match there.and_then(|folder| fs::canonicalize(folder).ok()) {
        Some(folder) if folder.as_os_str().to_string_lossy().contains(':') => {
            refuse!("the folder of {file} must not have a colon in its name: {}", folder.display())
        }
        Some(folder) => Ok(folder),
        None if named.is_some() => refuse!("there is no {file} in {}", folder.display()),
        None => refuse!(
            "there is no {file} beside this program, in {}: build the package shaketable-driver, or name its \
             folder with --library",
            folder.display()
        ),
    }
}

/// Refuses virtual time if its library is not there, or would have no effect on the program.
fn check_time(library: &Path, program: Option<&OsString>) -> Result<(), Refusal> {
    if !cfg!(target_os = "linux") {
        refuse!("--time needs Linux");
    }
    if !library.join(TIME).is_file() {
        refuse!("there is no {TIME} in {}: build the package shaketable-time for --time", library.display());
    }
    if library.to_string_lossy().contains(char::is_whitespace) {
        refuse!("the folder of {TIME} must not have a space in its name: {}", library.display());
    }
    if let Some((program, why)) =
        program.and_then(|name| clock::blindness(Path::new(name)).map(|why| (name, why)))
    {
        refuse!("--time has no effect on {}: {why}", program.to_string_lossy());
    }
    Ok(())
}

/// The number of the process whose file this is, and its name.
fn process_of(path: &Path) -> (Option<u32>, String) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let number = path.file_stem().and_then(|stem| stem.to_str()?.rsplit('-').next()?.parse().ok());
    (number, name)
}

/// The reports in a folder, in the order of the numbers of their processes. A journal without a report is
/// performed again.
fn collect(folder: &Path) -> Vec<String> {
    let mut files: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort_by_key(|path| process_of(path));
    let report = |path: &PathBuf| match process_of(path).1.strip_prefix(JOURNAL) {
        None => fs::read(path).ok().map(|text| lossy(&text)),
        Some(process) if files.contains(&path.with_file_name(format!("report-{process}"))) => None,
        Some(_) => replayed(path),
    };
    files.iter().filter_map(report).collect()
}

/// What happened in runs that passed, so that it is seen whether they could have failed.
fn happened(totals: &Totals) -> String {
    let Totals { attempts, committed, wrote, conflicts, unknown, unknown_committed, faults } = totals;
    format!(
        "{} of transactions: {} committed, {} of them wrote; {}, {} ({} committed), {}\n",
        plural(*attempts, "attempt", "attempts"),
        count(*committed),
        count(*wrote),
        plural(*conflicts, "conflict", "conflicts"),
        plural(*unknown, "unknown result", "unknown results"),
        count(*unknown_committed),
        plural(*faults, "fault", "faults"),
    )
}

/// The line of a report that says that its journal is not whole.
fn not_whole(report: &str) -> Option<&str> {
    report.lines().find(|line| line.starts_with(NOT_WHOLE))
}

/// The report of a process that has left only its journal.
fn replayed(journal: &Path) -> Option<String> {
    let what = "of a process that ended without a report";
    Some(match fs::read(journal).and_then(Host::replay) {
        Ok(text) => format!("{what}; its calls were performed again:\n{}", text?),
        Err(error) => format!("{what}:\n{NOT_WHOLE}{error}"),
    })
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests;
