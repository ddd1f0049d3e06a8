//! Writes the library's messages, reports and event logs: to standard error or to files.

use crate::{report::Report, settings::ReportTo};
use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// Writes one line to standard error. The C interface has no function that could return it.
pub fn complain(line: &str) {
    // One write, so that output of the program does not split the line.
    let _ = std::io::stderr().write_all(format!("shaketable: {line}\n").as_bytes());
}

/// Writes a report. If that fails, standard error says why.
pub fn write(to: &ReportTo, report: &str) {
    match to {
        ReportTo::StandardError => {
            let _ = std::io::stderr().write_all(report.as_bytes());
        }
        ReportTo::File(path) => {
            keep("report", path, |file| file.write_all(report.as_bytes()));
        }
    }
}

/// Writes the events of a run, one in a line. A line with its name is before those of a further cluster.
pub fn write_events(path: &Path, report: &Report) {
    keep("events", path, |file| {
        report.clusters().try_for_each(|(name, report)| {
            if let Some(name) = name {
                writeln!(file, "cluster {}", name.0.escape_debug())?;
            }
            report.end.events.iter().try_for_each(|event| writeln!(file, "{event}"))
        })
    });
}

/// Writes a file. If that fails, standard error says why.
fn keep(what: &str, path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
    let path = file(what, path);
    let written = File::create(&path).map(BufWriter::new).and_then(|mut file| {
        write(&mut file)?;
        file.flush()
    });
    if let Err(error) = written {
        complain(&format!("cannot write the {what} to {}: {error}", path.display()));
    }
}

/// The file that this process writes: `path` itself, or one named after the process if `path` is a folder.
pub fn file(what: &str, path: &Path) -> PathBuf {
    match path.is_dir() {
        true => path.join(format!("{what}-{}.txt", std::process::id())),
        false => path.to_owned(),
    }
}
