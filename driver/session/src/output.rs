//! Where the library writes what is for people.

use crate::settings::ReportTo;
use shaketable_sim::trace::Event;
use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

/// Writes one line to standard error: the C interface has no place for it.
pub fn complain(line: &str) {
    // In one piece, so that lines of the program do not come between.
    let _ = std::io::stderr().write_all(format!("shaketable: {line}\n").as_bytes());
}

/// Writes a report. One that cannot be written is reported in its place.
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

/// Writes the events of a run, one in a line.
pub fn write_events(path: &Path, events: &[Event]) {
    keep("events", path, |file| events.iter().try_for_each(|event| writeln!(file, "{event}")));
}

/// Writes a file, or reports that it cannot be written.
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

/// The file of this process: in a folder, each process that writes there has its own.
pub fn file(what: &str, path: &Path) -> PathBuf {
    match path.is_dir() {
        true => path.join(format!("{what}-{}.txt", std::process::id())),
        false => path.to_owned(),
    }
}
