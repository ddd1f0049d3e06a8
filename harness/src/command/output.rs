//! Output to the terminal, which may be closed early, and to files, which are written completely or not at all.

use super::{Refusal, program, refuse};
use shaketable_reports::{Body, Document, SCHEMA, json};
use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

/// Prints to stdout. It is not an error if the reader is gone (`| head`).
pub fn print(text: &str) -> Result<(), Refusal> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => refuse!("cannot print: {error}"),
        _ => Ok(()),
    }
}

/// Prints a line to stderr.
pub fn print_error(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Writes a report as JSON, if `json` is set, and prints it as text: to stderr if the JSON goes to stdout.
pub fn publish(text: &str, json: Option<&Target>, body: Body) -> Result<(), Refusal> {
    let written = json.map_or(Ok(()), |json| json.write_report(body));
    match json {
        Some(Target::Stdout) => print_error(text.trim_end()),
        Some(Target::File { named, .. }) => {
            if written.is_ok() {
                print_error(&format!("report in {}\n", named.display()));
            }
            return written.and(print(text));
        }
        None => return print(text),
    }
    written
}

/// The destination of a report or a plan. It is checked at the beginning and written at the end.
pub enum Target {
    /// Standard output, which is selected by `-`.
    Stdout,
    /// A file.
    File {
        /// The path that the user gave.
        named: PathBuf,
        /// The path of the file itself, with links resolved.
        path: PathBuf,
        /// Whether it is a device or a pipe, which is written and not replaced.
        special: bool,
    },
}

impl Target {
    /// Checks that the file can be written, without creating it. `-` is stdout.
    pub fn check(named: &Path) -> Result<Target, Refusal> {
        if named == Path::new("-") {
            return Ok(Target::Stdout);
        }
        if named.file_name().is_none() {
            refuse!("cannot write {:?}: it is not the name of a file", named);
        }
        // Links are resolved, so that the target of a link is replaced and not the link.
        let path = fs::canonicalize(named).unwrap_or_else(|_| named.to_owned());
        let special = match fs::metadata(&path) {
            Ok(found) if found.is_dir() => refuse!("cannot write {}: it is a directory", path.display()),
            Ok(found) => !found.is_file(),
            Err(_) => false,
        };
        let probe =
            if special { File::options().write(true).open(&path).map(drop) } else { draft(&path).map(drop) };
        match probe {
            Ok(()) => Ok(Target::File { named: named.to_owned(), path, special }),
            Err(error) => refuse!("cannot write {}: {}", path.display(), reason(&error)),
        }
    }

    /// Checks the file, if there is one.
    pub fn check_named(path: Option<&Path>) -> Result<Option<Target>, Refusal> {
        path.map(Target::check).transpose()
    }

    /// Writes the whole file, or leaves the existing file unchanged.
    pub fn write(&self, text: &str) -> Result<(), Refusal> {
        let (path, special) = match self {
            Target::Stdout => return print(text),
            Target::File { path, special, .. } => (path, *special),
        };
        let written = if special {
            File::options().write(true).open(path).and_then(|mut file| file.write_all(text.as_bytes()))
        } else {
            draft(path).and_then(|mut draft| {
                draft.write_all(text.as_bytes())?;
                draft.as_file().sync_all()?;
                draft.persist(path).map(drop).map_err(|failed| failed.error)
            })
        };
        match written {
            Ok(()) => Ok(()),
            Err(error) => refuse!("cannot write {}: {}", path.display(), reason(&error)),
        }
    }

    /// Writes a report as JSON.
    fn write_report(&self, body: Body) -> Result<(), Refusal> {
        let (version, commit) = (program().version.to_owned(), program().commit.to_owned());
        self.write(&json::render(&Document { schema: SCHEMA, version, commit, body }))
    }
}

/// The system's error. The crate tempfile appends the path of the temporary file, which is left out here.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at path ").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

/// A temporary file in the folder of `path`, so that renaming it to `path` is one step. It is removed when dropped.
fn draft(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut draft = tempfile::Builder::new();
    // The permissions of a file that `File::create` makes.
    #[cfg(unix)]
    draft.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    draft.prefix(path.file_name().unwrap_or_default()).suffix(".tmp").tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("shaketable-output-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder for the test");
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("the folder");
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn checking_creates_no_file_and_writing_creates_one() {
        let folder = folder("plain");
        let target = Target::check(&folder.join("report.json")).expect("writable");
        assert!(names(&folder).is_empty());
        target.write("one").expect("written");
        target.write("two").expect("written again");
        assert_eq!(names(&folder), ["report.json"]);
        assert_eq!(fs::read_to_string(folder.join("report.json")).expect("readable"), "two");
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_folder_and_a_missing_folder_are_refused() {
        let folder = folder("refused");
        assert!(Target::check(&folder).is_err());
        assert!(Target::check(&folder.join("missing").join("report.json")).is_err());
        assert!(Target::check(Path::new("")).is_err());
        fs::remove_dir_all(folder).expect("removed");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error_and_is_not_replaced() {
        let target = Target::check(Path::new("/dev/full")).expect("it can be opened");
        assert!(target.write("text").is_err());
        assert!(!fs::metadata("/dev/full").expect("still there").is_file());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = folder("link");
        fs::write(folder.join("real"), "old").expect("written");
        std::os::unix::fs::symlink(folder.join("real"), folder.join("link")).expect("linked");
        Target::check(&folder.join("link")).expect("writable").write("new").expect("written");
        assert!(fs::symlink_metadata(folder.join("link")).expect("there").is_symlink());
        assert_eq!(fs::read_to_string(folder.join("real")).expect("readable"), "new");
        fs::remove_dir_all(folder).expect("removed");
    }
}
