//! `shaketable regressions`, and the regressions that a sweep replays before its seeds.

mod add;
mod check;
mod list;
mod swept;
#[cfg(test)]
mod tests;

use super::{
    Refusal,
    args::EXIT_CODES,
    backend::Backend,
    choose, output, program, refuse,
    report::{Origin, verdict},
};
use crate::{
    run::pool::{self, Update},
    run::regressions::{self, FOLDER, Kept, Outcome},
    run::runner::RunResult,
    search::entry::Entry,
};
use clap::Subcommand;
use shaketable_reports::{Conclusion, Regression, RegressionReport, Replayed, text::plural};
use std::{
    io,
    path::{Path, PathBuf},
};
pub(super) use swept::Regressions;

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RegressionsCommand {
    /// Add plans that fail: repro files, the failures of a report, or a seed, which is shrunk first
    Add(add::RegressionsAddArguments),
    /// List the regressions: how large they are, and what they broke
    List(list::RegressionsListArguments),
    /// Replay the regressions
    #[command(after_help = EXIT_CODES)]
    Check(check::RegressionsCheckArguments),
}

/// Runs the subcommand.
pub(super) fn regressions(command: &RegressionsCommand) -> Result<Conclusion, Refusal> {
    match command {
        RegressionsCommand::Add(arguments) => add::add(arguments),
        RegressionsCommand::List(arguments) => list::list(arguments),
        RegressionsCommand::Check(arguments) => check::check(arguments),
    }
}

/// A folder with a folder of regressions for each workload.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder that the user named, which must exist, or else the usual one, if it exists.
    pub(super) fn choose(named: Option<&Path>) -> Result<Option<Folder>, Refusal> {
        let path = named.unwrap_or(Path::new(FOLDER)).to_owned();
        match std::fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => Ok(None),
            Err(error) => refuse!("cannot read {}: {error}", path.display()),
            Ok(found) if !found.is_dir() => refuse!("{} is not a folder", path.display()),
            Ok(_) => Ok(Some(Folder { path })),
        }
    }

    /// The folder, as the user named it.
    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// The files of each of these workloads, in the order of their names. Whatever else is there is named on
    /// stderr.
    pub(super) fn files(&self, entries: &[Box<dyn Entry>]) -> Result<Vec<Vec<PathBuf>>, Refusal> {
        let unreadable = |path: &Path, error: io::Error| {
            Refusal::Usage(format!("cannot read {}: {error}", path.display()))
        };
        let known = (program().workloads)();
        let belongs = |path: &PathBuf| {
            let mut names = known.iter().chain(entries).map(|entry| entry.name());
            path.is_dir() && names.any(|name| path.file_name() == Some(name.as_ref()))
        };
        let mut foreign = regressions::entries(&self.path).map_err(|error| unreadable(&self.path, error))?;
        // Of the workloads that were not selected, nothing is read.
        foreign.retain(|path| !belongs(path));
        name_foreign(&foreign, "it is not in the folder of a workload");
        let mut files = Vec::new();
        for entry in entries {
            let path = self.path.join(entry.name());
            if !path.is_dir() {
                files.push(Vec::new());
                continue;
            }
            let found = regressions::files(&path).map_err(|error| unreadable(&path, error))?;
            name_foreign(&found.foreign, "it is not a regular .json file");
            files.push(found.regressions);
        }
        Ok(files)
    }
}

/// Refuses files that are damaged: one that cannot be replayed because something has changed since is told,
/// but one that nobody can read any more has lost what it was kept for.
fn refuse_damaged(files: &[Vec<PathBuf>]) -> Result<(), Refusal> {
    let mut damaged =
        files.iter().flatten().filter_map(|path| regressions::damage(path).map(|why| (path.display(), why)));
    let Some((path, why)) = damaged.next() else { return Ok(()) };
    let more = match damaged.count() as u64 {
        0 => String::new(),
        more => format!("; so {} {}", if more == 1 { "is" } else { "are" }, plural(more, "other", "others")),
    };
    refuse!("the regression {path} is damaged: {why}{more}")
}

/// Says what else is in a folder of regressions.
fn name_foreign(paths: &[PathBuf], why: &str) {
    for path in paths {
        output::print_error(&format!("{} is not a regression: {why}", path.display()));
    }
}

/// Replays the files of each workload, on several threads, and starts no further one once `stop` returns
/// true. The reports are in the order of the files.
pub(super) fn replay(
    entries: &[Box<dyn Entry>],
    files: &[Vec<PathBuf>],
    strict: bool,
    jobs: usize,
    stop: impl Fn() -> bool + Sync,
) -> Vec<Vec<RegressionReport>> {
    let all: Vec<(usize, &PathBuf)> =
        files.iter().enumerate().flat_map(|(at, files)| files.iter().map(move |file| (at, file))).collect();
    let mut done: Vec<Option<RegressionReport>> = all.iter().map(|_| None).collect();
    pool::run(
        all.len() as u64,
        jobs,
        stop,
        |piece| {
            let (at, file) = all[piece as usize];
            one(entries[at].as_ref(), file, strict)
        },
        |update| {
            if let Update::Done(piece, report) = update {
                done[piece as usize] = Some(report);
            }
        },
    );
    let mut reports: Vec<Vec<RegressionReport>> = entries.iter().map(|_| Vec::new()).collect();
    for ((at, _), report) in all.iter().zip(done) {
        reports[*at].extend(report);
    }
    reports
}

/// Replays one file of a workload.
fn one(entry: &dyn Entry, file: &Path, strict: bool) -> RegressionReport {
    let shown = file.display().to_string();
    let replayed = regressions::replay(file, |repro| entry.replay(repro, false));
    let (regression, replayed) = match replayed {
        Ok((kept, Outcome::Passed(unmet))) => (kept.regression, Replayed::Passed { unmet }),
        Ok((kept, Outcome::Failed(result))) => {
            let run = Box::new(failed(entry, &kept, &shown, &result));
            (kept.regression, Replayed::Failed { run })
        }
        Err(error) => {
            let why = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
            // A plan whose operations no longer decode still says what it broke.
            let once = Kept::read(file).ok().and_then(|kept| kept.regression);
            (once, Replayed::Unreadable { why, fails: strict })
        }
    };
    RegressionReport { file: shown, regression, replayed }
}

/// The report of a regression that failed again.
fn failed(entry: &dyn Entry, kept: &Kept, shown: &str, result: &RunResult) -> shaketable_reports::RunReport {
    let head = entry.head(&kept.repro).ok();
    let (seed, demands, summary) =
        head.map_or_else(Default::default, |head| (head.seed, head.demands, head.summary));
    let origin =
        Origin { repro: Some(shown), ..Origin::of(entry.name(), seed, &demands, &Backend::Simulated) };
    origin.report(result, summary)
}

/// What a plan broke in a run, as its file keeps it.
fn broke(result: &RunResult, note: Option<&str>) -> Regression {
    let verdict = verdict(result);
    Regression {
        judge: verdict.judge().map(str::to_owned),
        message: regressions::shortened(verdict.message().unwrap_or_default()),
        version: program().version.to_owned(),
        commit: program().commit.to_owned(),
        note: note.map(str::to_owned),
    }
}

/// The workloads with these names, or all, and their regressions.
type Selected = (Option<Folder>, Vec<Box<dyn Entry>>, Vec<Vec<PathBuf>>);

fn select(folder: Option<&Path>, workloads: &[String]) -> Result<Selected, Refusal> {
    let entries = choose::workloads(workloads)?;
    let folder = Folder::choose(folder)?;
    let files = match &folder {
        Some(folder) => folder.files(&entries)?,
        None => entries.iter().map(|_| Vec::new()).collect(),
    };
    Ok((folder, entries, files))
}
