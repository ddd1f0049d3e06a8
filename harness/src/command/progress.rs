//! Progress on stderr: bars on a terminal, and otherwise a line every ten seconds.

use super::{cost, output};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use shaketable_reports::text::{count, plural};
use std::io::{IsTerminal, stderr};

/// The interval between two lines without a terminal, nanoseconds.
const LINE_EVERY: u64 = 10_000_000_000;
/// The interval between two updates of the bars, nanoseconds.
const DRAW_EVERY: u64 = 100_000_000;

/// The progress of some named parts of the work.
pub struct Progress {
    parts: Vec<BarState>,
    what: (&'static str, &'static str),
    failed: &'static str,
    bars: Option<MultiProgress>,
    started: u64,
    last_update: u64,
}

struct BarState {
    total: u64,
    done: u64,
    failed: u64,
    bar: ProgressBar,
}

impl Progress {
    /// Starts with nothing done. Each part has a name and a size. `what` is the unit of the sizes (singular
    /// and plural), and `failed` is the word for pieces that failed; none if it is empty, because they do
    /// not.
    pub fn new(parts: &[(&str, u64)], what: (&'static str, &'static str), failed: &'static str) -> Progress {
        // A dumb terminal cannot move its cursor.
        let draws = stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let bars = draws.then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr()));
        let width = parts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let style = ProgressStyle::with_template("{prefix} {bar:32} {human_pos}/{human_len} {msg}{eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let part = |(name, total): &(&str, u64)| {
            let bar = match &bars {
                Some(bars) => bars.add(ProgressBar::new(*total)),
                None => ProgressBar::hidden(),
            };
            bar.set_style(style.clone());
            bar.set_prefix(format!("{name:width$}"));
            bar.tick();
            BarState { total: *total, done: 0, failed: 0, bar }
        };
        let parts = parts.iter().map(part).collect();
        let now = cost::wall();
        Progress { parts, what, failed, bars, started: now, last_update: now }
    }

    /// Adds a piece of part number `part` that is done.
    pub fn done(&mut self, part: usize, passed: bool) {
        let part = &mut self.parts[part];
        part.done += 1;
        part.failed += u64::from(!passed);
        self.tick();
    }

    /// Sets how much of part number `part` was done by an earlier sweep, and how much of that failed.
    pub fn resume(&mut self, part: usize, done: u64, failed: u64) {
        let part = &mut self.parts[part];
        (part.done, part.failed) = (done, failed);
        part.bar.set_position(done);
    }

    /// Prints the progress, if enough time has passed.
    pub fn tick(&mut self) {
        let now = cost::wall();
        let every = if self.bars.is_some() { DRAW_EVERY } else { LINE_EVERY };
        if now - self.last_update < every {
            return;
        }
        self.last_update = now;
        if self.bars.is_none() {
            output::print_error(&self.line(now - self.started));
        }
        for part in &self.parts {
            part.bar.set_position(part.done);
            if part.failed > 0 {
                part.bar.set_message(format!("{} {}, ", count(part.failed), self.failed));
            }
        }
    }

    fn line(&self, elapsed: u64) -> String {
        let sum = |f: fn(&BarState) -> u64| self.parts.iter().map(f).fold(0, u64::saturating_add);
        let failed = match self.failed {
            "" => String::new(),
            word => format!(" {} {word},", count(sum(|p| p.failed))),
        };
        format!(
            "{} of {},{failed} {:.0} s",
            count(sum(|p| p.done)),
            plural(sum(|p| p.total), self.what.0, self.what.1),
            elapsed as f64 / 1e9
        )
    }

    /// Removes the bars, so that only the report remains.
    pub fn end(self) {
        self.parts.iter().for_each(|p| p.bar.finish_and_clear());
        if let Some(bars) = self.bars {
            let _ = bars.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_sums_the_parts() {
        let mut progress = Progress::new(&[("cycle", 1000), ("queue", 1000)], ("run", "runs"), "failed");
        progress.done(0, true);
        progress.done(1, false);
        assert_eq!(progress.line(12_000_000_000), "2 of 2,000 runs, 1 failed, 12 s");
        progress.end();
        let progress = Progress::new(&[("queue", 1000)], ("run", "runs"), "");
        assert_eq!(progress.line(12_000_000_000), "0 of 1,000 runs, 12 s");
        progress.end();
    }
}
