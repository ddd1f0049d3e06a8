//! Output to the terminal, which may be closed early, and to files, which are written completely or not at
//! all.

use super::{Refusal, cost, files::Files, program, refuse};
use shaketable_reports::{
    Body, Document, SCHEMA, SweepReport, WorkloadAdvice, annotations, html, json, junit, markdown,
};
use std::{
    borrow::Cow,
    fs::{self, File},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};
use tempfile::NamedTempFile;

/// The text without control characters that a terminal would obey: reports, plans and layers of others may
/// contain them. They are shown as their escapes. Colors stay.
fn harmless(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    for (at, c) in text.char_indices() {
        match c {
            '\u{1b}' if is_color(&text[at + 1..]) => shown.push(c),
            c if obeyed(c) => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Whether what follows an escape character only sets a color: `[1;31m`.
fn is_color(text: &str) -> bool {
    let rest =
        text.strip_prefix('[').map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
    rest.is_some_and(|rest| rest.starts_with('m'))
}

/// Prints to stdout, where it is not JSON or another form for programs. It is not an error if the reader is
/// gone (`| head`).
pub fn print(text: &str) -> Result<(), Refusal> {
    print_raw(&harmless(text))
}

/// Prints what is read by programs.
pub(super) fn print_raw(text: &str) -> Result<(), Refusal> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => refuse!("cannot print: {error}"),
        _ => Ok(()),
    }
}

/// Prints a line to stderr.
pub fn print_error(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", harmless(line));
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

/// Where the report of a sweep goes in addition to the terminal.
#[derive(Default)]
pub struct Outputs {
    /// What keeps other processes from writing to the same files meanwhile.
    _claims: Vec<NamedTempFile>,
    json: Option<Target>,
    junit: Option<Target>,
    html: Option<Target>,
    /// The advice on the page's workloads.
    pub advice: Vec<WorkloadAdvice>,
    /// The file to which a job of GitHub appends its summary in Markdown.
    summary: Option<PathBuf>,
    /// Whether the output is read by GitHub's runner, which makes annotations of lines that begin with `::`.
    annotates: bool,
    /// Whether something else is printed to stdout, so that the text goes to stderr.
    pub(super) keeps_stdout: bool,
}

impl Outputs {
    /// Checks that the files can be written, without creating them, and asks the environment whether this is
    /// a job of GitHub.
    pub fn check(files: Files<'_>) -> Result<Outputs, Refusal> {
        let [json, junit, html] = [files.json, files.junit, files.html].map(Target::check_named);
        let (json, junit, html) = (json?, junit?, html?);
        files.check_apart()?;
        let claims = [&json, &junit, &html].into_iter().flatten().filter_map(Target::claim);
        let claims = claims.collect::<Result<_, _>>()?;
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Ok(Outputs {
            _claims: claims,
            json,
            junit,
            html,
            advice: Vec::new(),
            summary: set("GITHUB_STEP_SUMMARY").map(PathBuf::from),
            annotates: set("GITHUB_ACTIONS").is_some_and(|value| value == "true"),
            keeps_stdout: false,
        })
    }

    /// Prints the report, and writes all its forms. If one of them cannot be written, the others still are,
    /// and the first error is returned.
    pub fn publish(&self, text: &str, commit: &str, body: Body) -> Result<(), Refusal> {
        let document = Document { advice: self.advice.clone(), ..document(commit, body) };
        let mut written = Ok(());
        if let Some(json) = &self.json {
            written = written.and(json.write_noted("report", &json::render(&document)));
        }
        if let Some(junit) = &self.junit {
            let content = junit::render(&document).map_err(|error| Refusal::Usage(format!("JUnit: {error}")));
            let content = content.map(Option::unwrap_or_default);
            let one = content.and_then(|content| junit.write_noted("JUnit report", &content));
            written = written.and(one);
        }
        if let (Some(html), Some(page)) = (&self.html, html::render(&document)) {
            written = written.and(html.write_noted("HTML report", &page));
        }
        if let (Some(path), Some(summary)) = (&self.summary, markdown::render(&document)) {
            written = written.and(append(path, &format!("{summary}\n")));
        }
        let mut text = text.to_owned();
        if self.annotates {
            text += &annotations::render(&document.body);
        }
        if self.keeps_stdout || self.targets().any(|target| matches!(target, Target::Stdout)) {
            print_error(text.trim_end());
            return written;
        }
        written.and(print(&text))
    }

    /// Writes the JSON of a sweep that goes on, if it goes to a file: what is left if the process is killed.
    fn save(&self, so_far: impl FnOnce() -> SweepReport) -> Result<(), Refusal> {
        match &self.json {
            Some(json @ Target::File { special: false, .. }) => json.write_report(Body::Sweep(so_far())),
            _ => Ok(()),
        }
    }

    /// Whether there is an HTML page among them.
    pub fn has_page(&self) -> bool {
        self.html.is_some()
    }

    /// Whether every file can still be written.
    fn check_again(&self) -> Result<(), Refusal> {
        self.targets().try_for_each(Target::check_again)
    }

    fn targets(&self) -> impl Iterator<Item = &Target> {
        [&self.json, &self.junit, &self.html].into_iter().flatten()
    }
}

/// The interval at which [`Watch`] looks at the files, nanoseconds.
const LOOK_EVERY: u64 = 1_000_000_000;

/// The interval at which a sweep that goes on is saved, nanoseconds.
pub(super) const SAVE_EVERY: u64 = 60_000_000_000;

/// Watches whether the files of a report can still be written while its sweep goes on, and saves what there
/// is, so that a sweep of hours does not end with nothing.
pub struct Watch<'a> {
    outputs: &'a Outputs,
    next: u64,
    save_every: u64,
    next_save: u64,
    failed: &'a AtomicBool,
}

impl<'a> Watch<'a> {
    /// Starts to watch. `failed` is set once a file cannot be written.
    pub fn start(outputs: &'a Outputs, failed: &'a AtomicBool) -> Watch<'a> {
        let next = cost::wall() + LOOK_EVERY;
        Watch { outputs, next, save_every: 0, next_save: 0, failed }
    }

    /// Lets [`tick_saving`](Watch::tick_saving) save every so many nanoseconds.
    pub(super) fn saving_every(self, save_every: u64) -> Watch<'a> {
        Watch { save_every, next_save: cost::wall() + save_every, ..self }
    }

    /// Looks at the files, and saves the sweep so far, if enough time has passed since each.
    pub fn tick_saving(&mut self, so_far: impl FnOnce() -> SweepReport) {
        self.tick();
        if cost::wall() >= self.next_save {
            let saved = self.outputs.save(so_far);
            // A sweep of so many workloads that saving it takes long is not slowed down by that.
            self.next_save = cost::wall() + self.save_every;
            self.failed.fetch_or(saved.is_err(), Ordering::Relaxed);
        }
    }

    /// Looks at the files, if enough time has passed.
    pub fn tick(&mut self) {
        let now = cost::wall();
        if now >= self.next {
            self.next = now + LOOK_EVERY;
            if self.outputs.check_again().is_err() {
                self.failed.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// The error of a sweep that ended because its report could not be written any more.
pub fn unwritable() -> Refusal {
    Refusal::Usage("the report could not be written during the sweep, which ended it".to_owned())
}

/// Appends to a file. If the text cannot be written as a whole, the file keeps its content.
fn append(path: &Path, text: &str) -> Result<(), Refusal> {
    let appended = File::options().append(true).create(true).open(path).and_then(|mut file| {
        let end = file.seek(SeekFrom::End(0))?;
        file.write_all(text.as_bytes()).inspect_err(|_| drop(file.set_len(end)))
    });
    match appended {
        Ok(()) => Ok(()),
        Err(error) => refuse!("cannot write {}: {error}", path.display()),
    }
}

/// A report with its identification. The commit is that from which the program that ran it was built.
pub(super) fn document(commit: &str, body: Body) -> Document {
    let version = program().version.to_owned();
    Document { schema: SCHEMA, version, commit: commit.to_owned(), advice: Vec::new(), body }
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

    /// Keeps other processes from claiming the file, as long as what is returned lives. Nothing for devices
    /// and pipes. What writers left that were killed is removed.
    fn claim(&self) -> Option<Result<NamedTempFile, Refusal>> {
        let Target::File { named, path, special: false } = self else { return None };
        let refused =
            |error: &io::Error| Refusal::Usage(format!("cannot write {}: {}", path.display(), reason(error)));
        Some(match drafts(path).any(|draft| !remove_left(&draft)) {
            true => Err(Refusal::Usage(format!("another process writes {}", named.display()))),
            false => draft(path).map_err(|error| refused(&error)),
        })
    }

    /// Writes the whole file, or leaves the existing file unchanged.
    pub fn write(&self, text: &str) -> Result<(), Refusal> {
        let (path, special) = match self {
            Target::Stdout => return print_raw(text),
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
        self.write(&json::render(&document(program().commit, body)))
    }

    /// Writes the whole file, and then prints its name.
    fn write_noted(&self, what: &str, text: &str) -> Result<(), Refusal> {
        self.write(text)?;
        if let Target::File { named, .. } = self {
            print_error(&format!("{what} in {}", named.display()));
        }
        Ok(())
    }

    /// Checks again that a file can be written. Devices and pipes are not opened: that can wait for a reader.
    fn check_again(&self) -> Result<(), Refusal> {
        match self {
            Target::File { named, special: false, .. } => Target::check(named).map(drop),
            _ => Ok(()),
        }
    }
}

/// The system's error. The crate tempfile appends the path of the temporary file, which is left out here.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at path ").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

/// The folder of a file; the current one if the path has none.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The random part and the end of the name of a draft.
const RANDOM: usize = 6;
const DRAFT: &str = ".tmp";

/// A temporary file in the folder of `path`, so that renaming it to `path` is one step. It is removed when
/// dropped, and locked as long as this process lives.
fn draft(path: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    // The permissions of a file that `File::create` makes.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.prefix(path.file_name().unwrap_or_default()).suffix(DRAFT).rand_bytes(RANDOM);
    loop {
        let draft = builder.tempfile_in(folder_of(path))?;
        // Some file systems have no locks.
        let _ = draft.as_file().lock();
        // Another process may have taken it for one that was left, before it was locked.
        if draft.path().exists() {
            return Ok(draft);
        }
    }
}

/// The drafts of a file that are there.
fn drafts(path: &Path) -> impl Iterator<Item = PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_draft = move |file: &str| {
        let random = file.strip_prefix(&*name).and_then(|rest| rest.strip_suffix(DRAFT));
        random.is_some_and(|random| random.len() == RANDOM && random.chars().all(char::is_alphanumeric))
    };
    let files = fs::read_dir(folder_of(path)).into_iter().flatten().flatten();
    files.filter(move |file| is_draft(&file.file_name().to_string_lossy())).map(|file| file.path())
}

/// Removes a draft whose process was killed. Whether it is gone: the draft of a process that lives is locked.
fn remove_left(draft: &Path) -> bool {
    match File::options().write(true).open(draft) {
        Ok(file) => match file.try_lock() {
            Err(fs::TryLockError::WouldBlock) => false,
            // Without locks nobody knows, and it stays.
            Err(fs::TryLockError::Error(_)) => true,
            Ok(()) => {
                let _ = fs::remove_file(draft);
                true
            }
        },
        Err(_) => true,
    }
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
    fn a_terminal_gets_nothing_that_it_would_obey() {
        assert_eq!(harmless("a\tb\n\u{e9}\n"), "a\tb\n\u{e9}\n");
        assert_eq!(harmless("\u{1b}]0;owned\u{7}\r\u{9b}2J"), r"\u{1b}]0;owned\u{7}\r\u{9b}2J");
        assert_eq!(harmless("\u{1b}[1;31mred\u{1b}[0m\u{1b}[2J"), "\u{1b}[1;31mred\u{1b}[0m\\u{1b}[2J");
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
    fn two_reports_are_not_written_to_one_file() {
        let folder = folder("two");
        let check = |json: &Path, html: &Path| {
            Outputs::check(Files { json: Some(json), html: Some(html), ..Files::default() }).is_ok()
        };
        assert!(check(&folder.join("a"), &folder.join("b")));
        assert!(!check(&folder.join("a"), &folder.join("a")));
        assert!(!check(&folder.join("a"), &folder.join(".").join("a")), "neither exists");
        assert!(!check(Path::new("-"), Path::new("-")));
        assert!(cfg!(not(unix)) || check(Path::new("/dev/null"), Path::new("/dev/null")));
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn two_processes_do_not_write_one_file_and_what_a_killed_one_left_is_removed() {
        let folder = folder("claimed");
        let path = folder.join("report.json");
        let claim = || Target::check(&path).expect("writable").claim().expect("a file");
        // What a process leaves that is killed while it writes, and what is another file's, or nobody's.
        for left in ["report.jsonA1b2C3.tmp", "report.jsonlA1b2C3.tmp", "report.json-1b2C3.tmp", "a.tmp"] {
            fs::write(folder.join(left), "half").expect("written");
        }
        let held = claim().expect("nobody else writes");
        assert!(!folder.join("report.jsonA1b2C3.tmp").exists());
        assert_eq!(names(&folder).len(), 4, "{:?}", names(&folder));
        let refused = claim().expect_err("it is claimed").to_string();
        assert!(refused.contains("another process writes") && refused.contains("report.json"), "{refused}");
        Target::check(&path).expect("writable").write("whole").expect("written");
        drop(held);
        claim().expect("free again");
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_summary_is_appended_or_left_as_it_was() {
        let folder = folder("summary");
        let path = folder.join("summary.md");
        append(&path, "one\n").expect("created");
        append(&path, "two\n").expect("appended");
        assert_eq!(fs::read_to_string(&path).expect("readable"), "one\ntwo\n");
        assert!(append(&folder, "three\n").is_err());
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
