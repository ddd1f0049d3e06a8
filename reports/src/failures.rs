//! The list of failures: what sweeps found, over weeks. An entry for each workload, seed, faults and judge
//! has the plan, and when it was seen first and last.

use crate::{
    run::{RunReport, Scale},
    sweep::SweepReport,
    text::shortened,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the list's schema.
pub const SCHEMA: u32 = 1;

/// The maximum length of what a judge found, characters.
const MESSAGE: usize = 200;

/// A sighting of a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// The commit of the program.
    pub commit: String,
    /// The date in UTC, as RFC 3339 has it: `2026-11-23T17:00:00Z`.
    pub date: String,
}

/// One failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureEntry {
    /// The workload's name.
    pub workload: String,
    /// The seed.
    pub seed: u64,
    /// The fault profile.
    pub faults: String,
    /// Fault families that were switched off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// How many times as long as usual the run was.
    #[serde(default, skip_serializing_if = "Scale::is_usual")]
    pub scale: Scale,
    /// The planted bug that was switched on, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bug: Option<String>,
    /// The judge that objected.
    pub judge: String,
    /// What it found last, in one line.
    pub message: String,
    /// The command line that replayed the run last.
    pub replay: String,
    /// How many reports had it.
    pub count: u64,
    /// When it was seen first.
    pub first: Sighting,
    /// When it was seen last.
    pub last: Sighting,
    /// Whether the plan is what remained of the run when it was shrunk.
    #[serde(default)]
    pub is_shrunk: bool,
    /// The plan, as a repro file has it, if a report had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Value>,
}

impl FailureEntry {
    fn new(run: &RunReport, judge: &str, seen: &Sighting) -> FailureEntry {
        FailureEntry {
            workload: run.workload.clone(),
            seed: run.seed,
            faults: run.faults.clone(),
            without: run.without.clone(),
            scale: run.scale,
            bug: run.bug.clone(),
            judge: judge.to_owned(),
            message: String::new(),
            replay: String::new(),
            count: 0,
            first: seen.clone(),
            last: seen.clone(),
            is_shrunk: false,
            plan: None,
        }
    }

    /// What distinguishes entries.
    fn key(&self) -> (&str, u64, &str, &[String], Scale, Option<&str>, &str) {
        let bug = self.bug.as_deref();
        (&self.workload, self.seed, &self.faults, &self.without, self.scale, bug, &self.judge)
    }

    /// Notes a sighting. A shrunk plan is not replaced by one that is not.
    fn seen(&mut self, run: &RunReport, seen: &Sighting) {
        let message = run.verdict.message().unwrap_or_default();
        let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
        self.message = shortened(&line, MESSAGE);
        self.replay.clone_from(&run.replay);
        self.count = self.count.saturating_add(1);
        if seen.date >= self.last.date {
            self.last = seen.clone();
        }
        if seen.date < self.first.date {
            self.first = seen.clone();
        }
        match (&run.shrunk, &run.plan) {
            (Some(shrunk), _) => (self.is_shrunk, self.plan) = (true, Some(shrunk.plan.clone())),
            (None, Some(plan)) if !self.is_shrunk => self.plan = Some(plan.clone()),
            _ => {}
        }
    }
}

/// The list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureList {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The failures, by workload, seed, faults and judge.
    pub failures: Vec<FailureEntry>,
}

impl Default for FailureList {
    fn default() -> Self {
        FailureList { schema: SCHEMA, failures: Vec::new() }
    }
}

impl FailureList {
    /// Parses a list. The error is one line.
    ///
    /// # Errors
    ///
    /// If the text is not a list of this version.
    pub fn parse(text: &str) -> Result<FailureList, String> {
        #[derive(Deserialize)]
        struct Head {
            schema: u32,
        }
        let head: Head =
            serde_json::from_str(text).map_err(|error| format!("not a list of failures: {error}"))?;
        if head.schema != SCHEMA {
            let found = head.schema;
            return Err(format!("list of failures of schema {found}, this program reads schema {SCHEMA}"));
        }
        serde_json::from_str(text).map_err(|error| format!("not a list of failures: {error}"))
    }

    /// The list as indented JSON, ending with a line feed.
    pub fn render(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("plain data with text keys");
        text.push('\n');
        text
    }

    /// Adds the failures of a sweep that were kept in full. Returns how many were there, and how many of them
    /// are new. A failure that was seen before in the same sweep, which this one continues, is not counted
    /// once more.
    pub fn add(&mut self, sweep: &SweepReport, before: Option<&SweepReport>, seen: &Sighting) -> (u64, u64) {
        let was_seen = |run: &RunReport| {
            let is_it = |other: &RunReport| (&other.workload, other.seed) == (&run.workload, run.seed);
            before.is_some_and(|before| before.failures().any(is_it))
        };
        let (mut all, mut new) = (0, 0);
        for run in sweep.failures() {
            let Some(judge) = run.verdict.judge() else { continue };
            let entry = FailureEntry::new(run, judge, seen);
            all += 1;
            let at = self.failures.partition_point(|other| other.key() < entry.key());
            let is_listed = self.failures.get(at).is_some_and(|other| other.key() == entry.key());
            if !is_listed {
                self.failures.insert(at, entry);
                new += 1;
            }
            let count = self.failures[at].count;
            self.failures[at].seen(run, seen);
            if is_listed && was_seen(run) {
                self.failures[at].count = count;
            }
        }
        (all, new)
    }
}
