//! Regressions: repro files of plans that once failed, each with what it broke, in a folder for each
//! workload.
//!
//! A regression is a repro file with one more field, `regression`, which neither replaying nor shrinking
//! reads. `run` and [`Shake`](crate::search::shake::Shake) replay the regressions of their workloads before
//! their seeds.

use crate::{
    judge::finding::Verdict,
    run::plan::{self, PlanError},
    run::runner::RunResult,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;
use shaketable_reports::{Regression, Size};
use shaketable_sim::faults::{Decision, Family, FaultPlan};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The folder with a folder for each workload, relative to that of the package.
pub const FOLDER: &str = "tests/regressions";

/// The field of a repro file that says what its plan once broke.
const FIELD: &str = "regression";

/// The maximum length of what a judge found in a regression, characters.
const MESSAGE: usize = 160;

/// The repro files of a folder, and what else there is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The regular files whose names end with `.json`, in the order of their names.
    pub regressions: Vec<PathBuf>,
    /// What is neither such a file nor hidden (its name begins with a dot), a FIFO with such a name too.
    pub foreign: Vec<PathBuf>,
}

/// The files in the folder of a workload.
///
/// # Errors
///
/// If the folder cannot be read.
pub fn files(folder: &Path) -> io::Result<Files> {
    let mut files = Files::default();
    for path in entries(folder)? {
        let is_plan = path.extension().is_some_and(|extension| extension == "json") && path.is_file();
        if is_plan { &mut files.regressions } else { &mut files.foreign }.push(path);
    }
    Ok(files)
}

/// Why a file is no repro file of any version, if it is none: it was cut or overwritten, or is somebody
/// else's.
pub fn damage(path: &Path) -> Option<String> {
    match fs::read_to_string(path) {
        Ok(text) => match plan::workload_of(&text) {
            Err(error @ PlanError::Incomplete(_)) => Some(error.to_string()),
            _ => None,
        },
        Err(error) => Some(error.to_string()),
    }
}

/// The paths in a folder that are not hidden, in the order of their names.
#[doc(hidden)]
pub fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// A repro file of any workload, without the types of its operations.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The text of the file.
    pub repro: String,
    /// The workload's name.
    pub workload: String,
    /// What the plan once broke, if the file says so.
    pub regression: Option<Regression>,
    /// How large it is.
    pub size: Size,
    /// Whether a bug is planted in it.
    pub is_planted: bool,
    faults: FaultPlan,
}

/// What is read of a plan.
#[derive(Deserialize)]
struct Shape {
    #[serde(default)]
    regression: Option<Regression>,
    demands: plan::Demands,
    operations: Vec<Vec<IgnoredAny>>,
    faults: FaultPlan,
}

impl Kept {
    /// Reads a repro file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is not a plan of this version.
    pub fn read(path: &Path) -> Result<Kept, PlanError> {
        Kept::parse(fs::read_to_string(path).map_err(|error| PlanError::Incomplete(error.to_string()))?)
    }

    /// Reads the text of a repro file.
    ///
    /// # Errors
    ///
    /// If it is not a plan of this version.
    pub fn parse(repro: String) -> Result<Kept, PlanError> {
        let workload = plan::workload_of(&repro)?;
        let shape: Shape =
            serde_json::from_str(&repro).map_err(|error| PlanError::Incomplete(error.to_string()))?;
        let faults = &shape.faults;
        let size = Size {
            operations: shape.operations.iter().map(|list| list.len() as u64).sum(),
            clients: shape.operations.iter().filter(|list| !list.is_empty()).count() as u64,
            faults: (faults.strikes.len() + faults.decisions.len() + faults.deaths.len()) as u64,
        };
        let is_planted = shape.demands.bug.is_some() || shape.demands.cluster_bug.is_some();
        let Shape { regression, faults, .. } = shape;
        Ok(Kept { repro, workload, regression, size, is_planted, faults })
    }

    /// The text of the file with what the plan broke.
    pub fn with(&self, regression: &Regression) -> String {
        let mut plan = self.plan();
        if let (Value::Object(fields), Ok(head)) = (&mut plan, serde_json::to_value(regression)) {
            fields.insert(FIELD.to_owned(), head);
        }
        format!("{plan:#}\n")
    }

    /// The plan without what it broke: equal plans give equal runs.
    pub fn plan(&self) -> Value {
        let mut plan: Value = serde_json::from_str(&self.repro).unwrap_or_default();
        if let Value::Object(fields) = &mut plan {
            fields.remove(FIELD);
        }
        plan
    }

    /// A short text that differs from that of other plans, eight hexadecimal digits.
    pub fn short_hash(&self) -> String {
        let hash = shaketable_sim::trace::hash_bytes(0, self.plan().to_string().as_bytes());
        format!("{:08x}", hash >> 32)
    }

    /// The faults of the plan that did not happen in a run of it.
    pub fn unmet(&self, result: &RunResult) -> Vec<String> {
        let place = |d: &Decision| (d.client, d.operation, d.family, d.opportunity);
        let was_met = |decision: &Decision| result.decisions.iter().any(|met| place(met) == place(decision));
        let decision = |d: &Decision| match d.operation {
            Some(operation) => {
                format!("{} in operation {operation} of client {}", d.family.name(), d.client.0)
            }
            None => format!("{} before the operations of client {}", d.family.name(), d.client.0),
        };
        let mut unmet: Vec<String> =
            self.faults.decisions.iter().filter(|decision| !was_met(decision)).map(decision).collect();
        let deaths = self.faults.deaths.iter().map(|_| Family::ClientDeath);
        let mut families: Vec<Family> =
            self.faults.strikes.iter().map(|strike| strike.family).chain(deaths).collect();
        families.sort_unstable();
        families.dedup();
        families.retain(|family| result.faults.get(family).is_none_or(|delivered| *delivered == 0));
        unmet.extend(families.into_iter().map(|family| family.name().to_owned()));
        unmet
    }
}

/// What a judge found, as the one line that a regression keeps.
pub fn shortened(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MESSAGE) {
        Some((end, _)) => format!("{}..", line[..end].trim_end()),
        None => line,
    }
}

/// What became of a regression.
#[derive(Debug)]
pub enum Outcome {
    /// No judge objected. The faults of the plan that no longer happened are named.
    Passed(Vec<String>),
    /// A judge objected.
    Failed(Box<RunResult>),
}

/// Replays a regression of a workload.
///
/// # Errors
///
/// If the file cannot be read, or is not a plan that this program can replay.
pub fn replay(
    path: &Path,
    run: impl FnOnce(&str) -> Result<RunResult, PlanError>,
) -> Result<(Kept, Outcome), PlanError> {
    let kept = Kept::read(path)?;
    let result = run(&kept.repro)?;
    let outcome = match result.verdict() {
        Verdict::Passed => Outcome::Passed(kept.unmet(&result)),
        _ => Outcome::Failed(Box::new(result)),
    };
    Ok((kept, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use shaketable_sim::ids::ClientId;

    fn plan() -> Value {
        json!({
            "schema": plan::SCHEMA,
            "workload": "queue",
            "demands": {"profile": "standard"},
            "operations": [["Dequeue"], [], ["Enqueue", {"Look": 3}]],
            "faults": {
                "strikes": [],
                "rates": {},
                "decisions": [{"client": 2, "operation": 1, "family": "unknown-committed", "opportunity": 0}],
                "deaths": [{
                    "step": {"client": 0, "operation": 0, "request": "commit", "index": 0},
                    "after": true,
                }],
            },
        })
    }

    fn kept(plan: &Value) -> Kept {
        Kept::parse(plan.to_string()).expect("a plan")
    }

    #[test]
    fn a_file_says_what_its_plan_broke() {
        let bare = kept(&plan());
        let size = Size { operations: 3, clients: 2, faults: 2 };
        assert_eq!((bare.workload.as_str(), bare.size, &bare.regression), ("queue", size, &None));
        let regression =
            Regression { judge: Some("model".into()), message: "no".into(), ..Regression::default() };
        let written = Kept::parse(bare.with(&regression)).expect("a plan");
        assert_eq!(written.regression, Some(regression));
        assert_eq!((written.plan(), written.short_hash()), (bare.plan(), bare.short_hash()));
        let mut other = plan();
        other["operations"][0] = json!([]);
        assert_ne!(kept(&other).short_hash(), bare.short_hash());
    }

    #[test]
    fn faults_that_did_not_happen_are_named() {
        let kept = kept(&plan());
        let names = ["unknown-committed in operation 1 of client 2", "client-death"];
        assert_eq!(kept.unmet(&RunResult::default()), names);
        let met = Decision {
            client: ClientId(2),
            operation: Some(1),
            family: Family::UnknownCommitted,
            opportunity: 0,
            draws: vec![7],
        };
        let mut result = RunResult { decisions: vec![met], ..RunResult::default() };
        assert_eq!(kept.unmet(&result), names[1..]);
        result.faults.insert(Family::ClientDeath, 1);
        assert!(kept.unmet(&result).is_empty());
    }

    #[test]
    fn what_is_no_plan_is_refused() {
        let refused = |text: &str| Kept::parse(text.to_owned()).expect_err("refused");
        assert!(matches!(refused("{\"schema\": 3, \"wor"), PlanError::Incomplete(_)));
        assert!(matches!(refused("[]"), PlanError::Incomplete(_)));
        assert_eq!(refused("{\"schema\": 1, \"workload\": \"queue\"}"), PlanError::Schema { found: 1 });
        assert!(matches!(refused("{\"schema\": 3, \"workload\": \"queue\"}"), PlanError::Incomplete(_)));
    }

    #[test]
    fn a_message_becomes_a_short_line() {
        assert_eq!(shortened("one\n\n  two"), "one two");
        let long = shortened(&"ä".repeat(500));
        assert_eq!(long.chars().count(), MESSAGE + 2);
    }
}
