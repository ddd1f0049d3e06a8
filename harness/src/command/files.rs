//! The files that a command line names, which must be different ones.

use super::{Refusal, output::folder_of, refuse};
use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

/// The files that the command line names for a report.
#[derive(Clone, Copy, Default)]
pub struct Files<'a> {
    /// `--json`
    pub json: Option<&'a Path>,
    /// `--junit`
    pub junit: Option<&'a Path>,
    /// `--html`
    pub html: Option<&'a Path>,
    /// `--output`, a repro file, which is written by itself
    pub plan: Option<&'a Path>,
    /// `--failures`, the list of failures, which is read and replaced
    pub failures: Option<&'a Path>,
}

impl Files<'_> {
    /// The files that are named, each with its option.
    fn named(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let all = [
            ("--json", self.json),
            ("--junit", self.junit),
            ("--html", self.html),
            ("--output", self.plan),
            ("--failures", self.failures),
        ];
        all.into_iter().filter_map(|(option, path)| Some((option, path?)))
    }

    /// The option whose output goes to standard output, if there is one.
    pub(super) fn on_stdout(&self) -> Option<&'static str> {
        self.named().find(|(_, path)| *path == Path::new("-")).map(|(option, _)| option)
    }

    /// Refuses two outputs to the same file, or to standard output.
    pub fn check_apart(&self) -> Result<(), Refusal> {
        check_apart(&self.named().collect::<Vec<_>>())
    }
}

/// Refuses two of these options that name the same file, or both standard output.
pub(super) fn check_apart(named: &[(&str, &Path)]) -> Result<(), Refusal> {
    for (n, (option, path)) in named.iter().enumerate() {
        for (other, other_path) in &named[..n] {
            match *path == Path::new("-") {
                true if path == other_path => {
                    refuse!("only one of {other} and {option} can be -, standard output")
                }
                false if is_same(path, other_path) => refuse!("{other} and {option} are the same file"),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whether two paths are the same file, which may not exist yet. Devices and pipes can be written twice.
fn is_same(a: &Path, b: &Path) -> bool {
    let is_special = |path: &Path| fs::metadata(path).is_ok_and(|found| !found.is_file());
    let resolved = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (a, b) = (resolved(a), resolved(b));
    place(&a) == place(&b) && !is_special(&a)
}

/// The folder of a file that may not exist yet, with links resolved, and the name of the file.
fn place(path: &Path) -> (PathBuf, Option<&OsStr>) {
    let folder = folder_of(path);
    (fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned()), path.file_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_output_has_a_file_of_its_own() {
        let folder = std::env::temp_dir();
        let [a, b] = ["shaketable-a", "shaketable-b"].map(|name| folder.join(name));
        let again = folder.join(".").join("shaketable-a");
        let apart = |files: Files<'_>| files.check_apart().map_err(|refusal| refusal.to_string());
        let files = Files { json: Some(&a), html: Some(&b), ..Files::default() };
        assert_eq!(apart(files), Ok(()));
        let same = |one: &str, other: &str| Err(format!("{one} and {other} are the same file"));
        assert_eq!(apart(Files { junit: Some(&again), ..files }), same("--json", "--junit"));
        assert_eq!(apart(Files { plan: Some(&b), ..files }), same("--html", "--output"));
        let stdout = Path::new("-");
        let both = Files { json: Some(stdout), html: Some(stdout), ..Files::default() };
        assert_eq!(apart(both), Err("only one of --json and --html can be -, standard output".to_owned()));
        assert_eq!(apart(Files { json: Some(&a), ..both }), Ok(()));
        assert_eq!(
            (both.on_stdout(), Files { json: Some(&a), ..both }.on_stdout()),
            (Some("--json"), Some("--html"))
        );
        assert_eq!(Files { json: Some(&a), ..Files::default() }.on_stdout(), None);
    }
}
