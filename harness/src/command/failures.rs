//! `shaketable report failures`, and `run --failures`: adds failures to a list, which is replaced as a whole.

use super::{
    Refusal,
    output::{self, Target},
    refuse,
    saved::Saved,
};
use clap::Args;
use shaketable_reports::{Conclusion, FailureList, Sighting, SweepReport, text};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// The end of the help page.
pub(super) const HELP: &str = "\
An entry has the seed, the plan (shrunk, if it was), the judge and its finding, and when and with
which commit it was seen first and last. Of each workload, a report has the first ten failures in
full, and only these are added. The date is today's, or that of the environment variable
SOURCE_DATE_EPOCH.";

#[derive(Clone, Debug, Args)]
pub(super) struct FailuresArguments {
    /// The list, a JSON file, which is made if it does not exist
    #[arg(value_name = "FILE")]
    pub list: PathBuf,
    /// The JSON reports of sweeps
    #[arg(value_name = "REPORT", required = true)]
    pub reports: Vec<PathBuf>,
}

/// Adds the failures of the reports to the list. One report is held at a time.
pub(super) fn failures(arguments: &FailuresArguments) -> Result<Conclusion, Refusal> {
    let list = List::check(&arguments.list)?;
    list.grow(|grown| {
        for path in &arguments.reports {
            let saved = Saved::read(path)?;
            grown.add(&saved.report, None, &saved.commit);
        }
        Ok(())
    })?;
    Ok(Conclusion::Passed)
}

/// A list that can be read, or does not exist, and can be written.
pub(super) struct List {
    path: PathBuf,
    target: Target,
    date: String,
}

impl List {
    /// Checks the list.
    pub(super) fn check(path: &Path) -> Result<List, Refusal> {
        let target = match Target::check(path)? {
            target @ Target::File { special: false, .. } => target,
            _ => refuse!("{} is not a file in which a list of failures can be kept", path.display()),
        };
        read(path)?;
        Ok(List { path: path.to_owned(), target, date: date()? })
    }

    /// Adds the failures of one sweep, which continues another one or none.
    pub(super) fn add(
        &self,
        report: &SweepReport,
        before: Option<&SweepReport>,
        commit: &str,
    ) -> Result<(), Refusal> {
        self.grow(|grown| {
            grown.add(report, before, commit);
            Ok(())
        })
    }

    /// Writes the list with what is added to it, or nothing if a report cannot be read.
    fn grow(&self, add: impl FnOnce(&mut Grown) -> Result<(), Refusal>) -> Result<(), Refusal> {
        let _lock = Lock::take(&self.path)?;
        // It may have grown since it was checked.
        let mut grown = Grown { list: read(&self.path)?, date: &self.date, all: 0, new: 0 };
        add(&mut grown)?;
        self.target.write(&grown.list.render())?;
        let what = text::plural(grown.all, "failure", "failures");
        let (new, path) = (text::count(grown.new), self.path.display());
        output::print_error(&format!("{what}, {new} of them new, in {path}"));
        Ok(())
    }
}

/// A list to which failures are added.
struct Grown<'a> {
    list: FailureList,
    date: &'a str,
    all: u64,
    new: u64,
}

impl Grown<'_> {
    fn add(&mut self, report: &SweepReport, before: Option<&SweepReport>, commit: &str) {
        let seen = Sighting { commit: commit.to_owned(), date: self.date.to_owned() };
        let (all, new) = self.list.add(report, before, &seen);
        (self.all, self.new) = (self.all + all, self.new + new);
    }
}

/// The list in a file; an empty one if there is no file.
fn read(path: &Path) -> Result<FailureList, Refusal> {
    match fs::read_to_string(path) {
        Ok(text) => {
            FailureList::parse(&text).map_err(|error| Refusal::Usage(format!("{}: {error}", path.display())))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(FailureList::default()),
        Err(error) => refuse!("cannot read {}: {error}", path.display()),
    }
}

/// The right to replace a list, which one process has at a time.
struct Lock(PathBuf);

impl Lock {
    fn take(list: &Path) -> Result<Lock, Refusal> {
        let mut name = list.file_name().unwrap_or_default().to_owned();
        name.push(".lock");
        let path = list.with_file_name(name);
        match File::options().write(true).create_new(true).open(&path) {
            Ok(_) => Ok(Lock(path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => refuse!(
                "another process is writing {}; if none is, remove {}",
                list.display(),
                path.display()
            ),
            Err(error) => refuse!("cannot write {}: {error}", path.display()),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The date of the environment variable `SOURCE_DATE_EPOCH`, or else today's.
fn date() -> Result<String, Refusal> {
    let time = match std::env::var_os("SOURCE_DATE_EPOCH").filter(|value| !value.is_empty()) {
        None => Some(now()),
        Some(text) => {
            let seconds = text.to_str().and_then(|text| text.parse().ok());
            seconds.and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)))
        }
    };
    match time {
        // humantime panics beyond the year 9999.
        Some(time) if time < SystemTime::UNIX_EPOCH + LAST => {
            Ok(humantime::format_rfc3339_seconds(time).to_string())
        }
        _ => refuse!("SOURCE_DATE_EPOCH is not a number of seconds before the year 10000"),
    }
}

/// From 1970 to the year 10000.
const LAST: Duration = Duration::from_secs(253_402_300_800);

/// The date for the list, on which no run depends.
#[expect(clippy::disallowed_methods, reason = "the date on which a failure was seen")]
fn now() -> SystemTime {
    SystemTime::now()
}
