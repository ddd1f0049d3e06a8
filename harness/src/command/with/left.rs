//! Processes that a run leaves behind: workers that outlive their parent, daemons with a process group of
//! their own. They are found by their environment, which names the folder of the run (on Linux; elsewhere
//! only the process group ends).

use super::super::cost;
use rustix::process::{Pid, Signal, kill_process};
use std::{fs, path::Path, time::Duration};

/// How long they have to end by themselves.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long they have to end once they were asked to, and again when they are killed.
const GRACE: Duration = Duration::from_secs(3);

/// The interval at which they are looked for.
const TICK: Duration = Duration::from_millis(20);

/// Ends the processes of a run whose folder is `mark`, once the command has ended: they may end by themselves
/// unless all should end, are asked to, and are killed. Returns the names of those that did not end by
/// themselves, in order.
pub(super) fn end(mark: &Path, should_end: impl Fn() -> bool) -> Vec<String> {
    let mark = mark.as_os_str().as_encoded_bytes();
    if gone(mark, PATIENCE, || !should_end()) {
        return Vec::new();
    }
    let mut names: Vec<String> = marked(mark).into_iter().map(name).collect();
    names.sort();
    signal(mark, Signal::INT);
    if !gone(mark, GRACE, || true) {
        // One that starts others meanwhile is met again.
        gone(mark, GRACE, || {
            signal(mark, Signal::KILL);
            true
        });
    }
    names
}

/// Waits until there are none. Gives up after `timeout`, or when `should_continue` says so.
fn gone(mark: &[u8], timeout: Duration, should_continue: impl Fn() -> bool) -> bool {
    let deadline = cost::deadline(timeout);
    loop {
        if marked(mark).is_empty() {
            return true;
        }
        if cost::is_past(deadline) || !should_continue() {
            return false;
        }
        std::thread::park_timeout(TICK);
    }
}

fn signal(mark: &[u8], signal: Signal) {
    for pid in marked(mark) {
        // It may have ended meanwhile.
        let _ = kill_process(pid, signal);
    }
}

/// The living processes whose environment has the mark. That of a dead one is empty.
fn marked(mark: &[u8]) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    let is_marked = |pid: &Pid| {
        let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
        environment.windows(mark.len()).any(|part| part == mark)
    };
    pids.filter(is_marked).collect()
}

fn name(pid: Pid) -> String {
    let name = fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).unwrap_or_default();
    format!("{} ({})", name.trim(), pid.as_raw_nonzero())
}
