//! The command as a process, for the tests that start it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// The command, started as if it were installed: by its name, and not by cargo.
pub fn shaketable(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shaketable"));
    #[cfg(unix)]
    std::os::unix::process::CommandExt::arg0(&mut command, "shaketable");
    command.args(arguments).stdin(Stdio::null());
    // What a terminal, cargo and a job of GitHub set, and the command reads.
    for name in ["COLUMNS", "CARGO", "CARGO_TARGET_DIR", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"] {
        command.env_remove(name);
    }
    command
}

/// Waits until a command listens for signals, which it does before its first run.
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods, reason = "another process, in the time of the wall")]
pub fn listens(child: &std::process::Child) {
    // The bits of SIGHUP, SIGINT and SIGTERM, which are signals 1, 2 and 15.
    const SIGNALS: u64 = 1 | 1 << 1 | 1 << 14;
    let caught = || {
        let status =
            fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it has not been waited for");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask");
        u64::from_str_radix(mask.trim(), 16).expect("hexadecimal")
    };
    while caught() & SIGNALS != SIGNALS {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Its output.
pub fn run(arguments: &[&str]) -> Output {
    shaketable(arguments).output().expect("the command starts")
}

/// Its exit code.
pub fn code(output: &Output) -> i32 {
    output.status.code().expect("it ended by itself")
}

/// What it printed.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// What it printed to stderr.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// An empty folder for the test.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

/// The names of the files of a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder");
    let mut names: Vec<_> =
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
