//! A process with a process group of its own, which ends with its time or at an interrupt.

use super::cost;
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    fmt,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Command, ExitStatus, Stdio},
    sync::{
        Once,
        atomic::AtomicBool,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::Duration,
};

/// How long a run has to end by itself once it was asked to.
const GRACE: Duration = Duration::from_secs(3);

/// The interval at which interrupts are looked for.
const TICK: Duration = Duration::from_millis(50);

/// A signal that this process ignores is ignored by its children as well, unless it is handled here: a shell
/// without job control starts background jobs so. A child must be able to end at an interrupt.
fn handle_interrupts() -> std::io::Result<()> {
    static HANDLED: Once = Once::new();
    let mut done = Ok(());
    HANDLED.call_once(|| {
        let handled = std::sync::Arc::<AtomicBool>::default();
        done = signal_hook::flag::register(signal_hook::consts::SIGINT, handled).map(drop);
    });
    done
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By itself.
    Exited(ExitStatus),
    /// Its time was up.
    TimedOut(Duration),
}

impl Ending {
    /// Whether it ended by itself with the exit code 0.
    pub(super) fn is_success(self) -> bool {
        matches!(self, Ending::Exited(status) if status.success())
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::TimedOut(after) => write!(f, "did not end within {}", humantime::format_duration(*after)),
            Ending::Exited(status) => match (status.code(), status.signal()) {
                (Some(code), _) => write!(f, "ended with exit code {code}"),
                (None, Some(signal)) => write!(f, "was ended by signal {signal}"),
                (None, None) => write!(f, "ended with {status}"),
            },
        }
    }
}

/// A process that runs.
pub(super) struct Child {
    group: Pid,
    ended: Receiver<std::io::Result<ExitStatus>>,
}

impl Child {
    /// Starts a process, without standard input: it would read from a terminal that is not its own. It ends
    /// at an interrupt, also if this process ignores them.
    pub(super) fn start(mut command: Command) -> std::io::Result<Child> {
        handle_interrupts()?;
        let mut child = command.stdin(Stdio::null()).process_group(0).spawn()?;
        let group = Pid::from_child(&child);
        let (sender, ended) = channel();
        std::thread::spawn(move || sender.send(child.wait()));
        Ok(Child { group, ended })
    }

    /// Waits for its end; `None` if it was ended because it should be. Then, and when its time is up, it gets
    /// SIGINT, with which most programs end in order, and SIGKILL if it goes on.
    pub(super) fn wait(self, timeout: Option<Duration>, should_end: impl Fn() -> bool) -> Option<Ending> {
        let deadline = timeout.map(cost::deadline);
        loop {
            match self.ended.recv_timeout(TICK) {
                Ok(Ok(status)) => return Some(Ending::Exited(status)),
                // Its status is lost, for example because the parent ignores children: it has ended in an
                // unknown way.
                Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                    return Some(Ending::Exited(ExitStatus::from_raw(1 << 8)));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if should_end() {
                self.end();
                return None;
            }
            if let (Some(timeout), true) = (timeout, deadline.is_some_and(cost::is_past)) {
                self.end();
                return Some(Ending::TimedOut(timeout));
            }
        }
    }

    /// Ends the process and its group.
    fn end(&self) {
        let _ = kill_process_group(self.group, Signal::INT);
        let has_ended = self.ended.recv_timeout(GRACE).is_ok();
        let _ = kill_process_group(self.group, Signal::KILL);
        if !has_ended {
            let _ = self.ended.recv();
        }
    }
}
