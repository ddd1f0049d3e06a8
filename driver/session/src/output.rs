//! Where the library writes what is for people.

use crate::settings::ReportTo;
use std::io::Write;

/// Writes one line to standard error: the C interface has no place for it.
pub fn complain(line: &str) {
    // In one piece, so that lines of the program do not come between.
    let _ = std::io::stderr().write_all(format!("shaketable: {line}\n").as_bytes());
}

/// Writes a report. A file that cannot be written is reported in its place.
pub fn write(to: &ReportTo, report: &str) {
    match to {
        ReportTo::StandardError => {
            let _ = std::io::stderr().write_all(report.as_bytes());
        }
        ReportTo::File(path) => {
            if let Err(error) = std::fs::write(path, report) {
                complain(&format!("cannot write the report to {}: {error}", path.display()));
            }
        }
    }
}
