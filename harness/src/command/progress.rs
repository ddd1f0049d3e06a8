//! Progress on stderr: bars on a terminal, elsewhere a line every so often.

use super::{cost, output};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use shaketable_reports::text::{count, plural};
use std::io::{IsTerminal, stderr};

/// Between two lines where there is no terminal, nanoseconds.
const LINE_EVERY: u64 = 10_000_000_000;
/// Between two drawings of the bars, nanoseconds.
const DRAW_EVERY: u64 = 100_000_000;

/// How far some named pieces of work are.
pub struct Progress {
    parts: Vec<Part>,
    what: (&'static str, &'static str),
    bad: &'static str,
    bars: Option<MultiProgress>,
    begun: u64,
    told: u64,
}

struct Part {
    total: u64,
    done: u64,
    bad: u64,
    bar: ProgressBar,
}

impl Progress {
    /// Nothing done of these parts, each with its name and its size in `what` (one, many); `bad`
    /// says what a piece is that did not go well.
    pub fn new(parts: &[(&str, u64)], what: (&'static str, &'static str), bad: &'static str) -> Progress {
        // A terminal that says it is dumb cannot move its cursor.
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
            Part { total: *total, done: 0, bad: 0, bar }
        };
        let parts = parts.iter().map(part).collect();
        let now = cost::wall();
        let progress = Progress { parts, what, bad, bars, begun: now, told: now };
        if progress.bars.is_none() {
            output::complain(&progress.line(0));
        }
        progress
    }

    /// A piece of part number `part` is done.
    pub fn done(&mut self, part: usize, well: bool) {
        let part = &mut self.parts[part];
        part.done += 1;
        part.bad += u64::from(!well);
        self.tick();
    }

    /// So much of part number `part` was done before, some of it not well.
    pub fn was_done(&mut self, part: usize, done: u64, bad: u64) {
        let part = &mut self.parts[part];
        (part.done, part.bad) = (done, bad);
        part.bar.set_position(done);
    }

    /// Time has passed.
    pub fn tick(&mut self) {
        let now = cost::wall();
        let every = if self.bars.is_some() { DRAW_EVERY } else { LINE_EVERY };
        if now - self.told < every {
            return;
        }
        self.told = now;
        if self.bars.is_none() {
            output::complain(&self.line(now - self.begun));
        }
        for part in &self.parts {
            part.bar.set_position(part.done);
            if part.bad > 0 {
                part.bar.set_message(format!("{} {}, ", count(part.bad), self.bad));
            }
        }
    }

    fn line(&self, elapsed: u64) -> String {
        let sum = |f: fn(&Part) -> u64| self.parts.iter().map(f).fold(0, u64::saturating_add);
        format!(
            "{} of {}, {} {}, {:.0} s",
            count(sum(|p| p.done)),
            plural(sum(|p| p.total), self.what.0, self.what.1),
            count(sum(|p| p.bad)),
            self.bad,
            elapsed as f64 / 1e9
        )
    }

    /// Takes the bars away, so that the report stands alone.
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
    }
}
