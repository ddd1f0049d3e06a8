//! `shaketable watch`: a sweep with a page that shows how it goes.
//!
//! The page is served to this machine alone, to who has the token of its address. It is made when it is asked
//! for, from what the sweep knows anyway ([`live`](super::live)): the sweep does what that of `run` does,
//! whether anybody looks or not.

mod request;
mod server;

use super::{
    Refusal, cost,
    interrupt::Interrupt,
    live::Live,
    output, program, refuse,
    run::{Prepared, RunArguments},
    sweep::Sweep,
};
use clap::Args;
use request::Wanted;
use server::Server;
use shaketable_reports::{Body, Conclusion, Document, SweepReport, html, json};
use std::{
    io,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

#[derive(Clone, Debug, Args)]
pub(super) struct WatchArguments {
    #[command(flatten)]
    pub run: RunArguments,
    /// The port of the page on 127.0.0.1 [default: any that is free]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Serve the last state of the page until Ctrl-C; otherwise the command ends with the sweep
    #[arg(long)]
    pub stay: bool,
    /// Print the data of the page to standard output, as one line of JSON whenever something has
    /// changed, at most one a second; the text goes to standard error
    #[arg(long)]
    pub json_lines: bool,
}

/// Somebody who has asked within this time looks at the page: it asks every second.
const LOOKS: Duration = Duration::from_secs(3);

/// The interval of the lines of JSON.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// How often the command looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);

/// Performs the sweep with its page, and prints and writes the report.
pub(super) fn watch(arguments: &WatchArguments) -> Result<Conclusion, Refusal> {
    if let Some(option) = arguments.run.files().on_stdout().filter(|_| arguments.json_lines) {
        refuse!("{option} and --json-lines cannot both use standard output");
    }
    let mut prepared = Prepared::new(&arguments.run)?;
    prepared.sweep.outputs.keeps_stdout = arguments.json_lines;
    let port = arguments.port.unwrap_or(0);
    let server = match Server::listen(port) {
        Ok(server) => server,
        Err(error) => refuse!("cannot listen on port {port} of 127.0.0.1: {error}"),
    };
    // Standard output has what that of `run` has.
    output::print_error(&format!("watch at {}", server.address()));
    let refused = |error: io::Error| Refusal::Usage(format!("cannot serve the page: {error}"));
    let interrupt = prepared.interrupt.clone();
    let watched =
        Watched { sweep: &prepared.sweep, live: Live::new(&prepared.sweep), looks: Looks::default() };
    let (report, last) = server
        .during(|wanted| watched.content(wanted), || watched.perform(arguments, &interrupt))
        .map_err(refused)?;
    let interrupted = interrupt.is_set();
    let ended = prepared.conclude(report);
    if arguments.stay && !interrupted {
        output::print_error("the sweep has ended, and its page stays: Ctrl-C ends it");
        let stay = || {
            while !interrupt.is_set() {
                thread::park_timeout(GLANCE);
            }
        };
        server.during(|wanted| content(&last, wanted), stay).map_err(refused)?;
    }
    ended
}

/// A sweep that is watched.
struct Watched<'a> {
    sweep: &'a Sweep,
    live: Live,
    looks: Looks,
}

/// Who has looked.
#[derive(Default)]
struct Looks {
    /// When the page or its data was asked for, as [`cost::wall`] has it; 0 for never.
    last: AtomicU64,
    /// Whether the sweep has ended.
    is_over: AtomicBool,
    /// Whether somebody has seen that.
    is_seen: AtomicBool,
}

impl Watched<'_> {
    /// What is asked for.
    fn content(&self, wanted: Wanted) -> String {
        let is_over = self.looks.is_over.load(Ordering::SeqCst);
        let content = content(&self.document(), wanted);
        self.looks.last.store(cost::wall(), Ordering::SeqCst);
        self.looks.is_seen.fetch_or(is_over, Ordering::SeqCst);
        content
    }

    /// The sweep at the moment.
    fn document(&self) -> Document {
        output::document(program().commit, Body::Watch(self.live.now(self.sweep)))
    }

    /// Performs the sweep. Returns its report, and what the page says in the end.
    fn perform(&self, arguments: &WatchArguments, interrupt: &Interrupt) -> (SweepReport, Document) {
        let perform = || self.sweep.watched(interrupt, &self.live, |_, _| {});
        let report = if arguments.json_lines { self.with_lines(perform) } else { perform() };
        self.looks.is_over.store(true, Ordering::SeqCst);
        let last = self.document();
        if arguments.json_lines {
            print_line(&last);
        }
        if !arguments.stay {
            self.looks.wait();
        }
        (report, last)
    }

    /// Prints a line of JSON when something has changed, at most one a second, while `work` works.
    fn with_lines<T>(&self, work: impl FnOnce() -> T) -> T {
        struct End<'a>(&'a AtomicBool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let lines = scope.spawn(|| {
                let mut printed = None;
                while !is_over.load(Ordering::SeqCst) {
                    let changes = self.live.changes();
                    if printed != Some(changes) {
                        print_line(&self.document());
                        printed = Some(changes);
                    }
                    thread::park_timeout(LINE_EVERY);
                }
            });
            let end = End(&is_over);
            let done = work();
            drop(end);
            lines.thread().unpark();
            done
        })
    }
}

impl Looks {
    /// Waits until somebody who looks has seen the end.
    fn wait(&self) {
        let ended = cost::wall();
        let looks = u64::try_from(LOOKS.as_nanos()).unwrap_or(u64::MAX);
        let last = self.last.load(Ordering::SeqCst);
        if last == 0 || ended.saturating_sub(last) > looks {
            return;
        }
        while !self.is_seen.load(Ordering::SeqCst) && cost::wall() < ended + looks {
            thread::park_timeout(GLANCE);
        }
    }
}

/// The page of a sweep, or its data.
fn content(document: &Document, wanted: Wanted) -> String {
    match wanted {
        Wanted::Page => html::render(document).unwrap_or_default(),
        Wanted::Data => json::line(document),
    }
}

fn print_line(document: &Document) {
    // Whoever reads the lines may be gone.
    let _ = output::print_raw(&json::line(document));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{command::fake::fake, judge::finding::Verdict};

    #[test]
    fn the_end_waits_for_who_looks() {
        let looks = Looks::default();
        let began = cost::wall();
        looks.wait();
        assert!(cost::wall() - began < LOOKS.as_nanos() as u64, "nobody looks");
        looks.last.store(cost::wall(), Ordering::SeqCst);
        looks.wait();
        assert!(cost::wall() - began >= LOOKS.as_nanos() as u64, "somebody looked, who has not seen the end");
        looks.last.store(began.saturating_sub(LOOKS.as_nanos() as u64), Ordering::SeqCst);
        let again = cost::wall();
        looks.wait();
        assert!(cost::wall() - again < LOOKS.as_nanos() as u64, "nobody looks any more");
    }

    #[test]
    fn who_asks_after_the_end_has_seen_it() {
        let sweep = Sweep::plain(vec![fake("sound", |_, _| Verdict::Passed)], 0..3);
        let watched = Watched { sweep: &sweep, live: Live::new(&sweep), looks: Looks::default() };
        let is_seen = || watched.looks.is_seen.load(Ordering::SeqCst);
        let data = watched.content(Wanted::Data);
        assert!(data.contains(r#""stage":"regressions""#) && !is_seen(), "{data}");
        assert!(watched.looks.last.load(Ordering::SeqCst) > 0);
        watched.looks.is_over.store(true, Ordering::SeqCst);
        let page = watched.content(Wanted::Page);
        assert!(page.starts_with("<!DOCTYPE html>") && is_seen());
        assert_eq!(json::parse(&data).map(|document| document.version), Ok(program().version.to_owned()));
    }
}
