//! Where the library writes what is for people.

use crate::settings::ReportTo;
use std::{
    io::Write,
    path::{Path, PathBuf},
};

/// Writes one line to standard error: the C interface has no place for it.
pub fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "shaketable: {line}");
}

/// Writes a report. One that cannot be written is reported in its place.
pub fn write(to: &ReportTo, report: &str) {
    match to {
        ReportTo::StandardError => {
            let _ = std::io::stderr().write_all(report.as_bytes());
        }
        ReportTo::File(path) => {
            let path = &file(path);
            if let Err(error) = std::fs::write(path, report) {
                complain(&format!("cannot write the report to {}: {error}", path.display()));
            }
        }
    }
}

/// The file of this process: in a folder, each process that writes there has its own.
fn file(path: &Path) -> PathBuf {
    match path.is_dir() {
        true => path.join(format!("report-{}.txt", std::process::id())),
        false => path.to_owned(),
    }
}
