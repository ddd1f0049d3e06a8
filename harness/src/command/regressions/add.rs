//! `shaketable regressions add`: keeps plans that failed.

use super::{FOLDER, broke};
use crate::{
    command::{
        Refusal,
        args::{REPLAYS, Shaking},
        choose,
        interrupt::Interrupt,
        output::{self, Target},
        refuse,
        shrink::Limits,
    },
    judge::finding::Verdict,
    run::{
        plan::{Demands, PlanError},
        regressions::{self, Kept},
    },
    search::{entry::Entry, seeds},
};
use clap::Args;
use shaketable_reports::{
    Body, Conclusion, Regression, RunReport, json,
    text::{COLUMNS, fill},
};
use shaketable_sim::seed::Seed;
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

#[derive(Clone, Debug, Args)]
pub(crate) struct RegressionsAddArguments {
    /// Repro files and JSON reports of sweeps, or a workload and a seed
    #[arg(value_name = "FILE|REPORT|WORKLOAD SEED", required = true)]
    pub what: Vec<String>,
    #[command(flatten)]
    pub shaking: Shaking,
    /// Switch on a planted bug (see `list bugs`); only with a workload and a seed
    #[arg(long, value_name = "NAME")]
    pub bug: Option<String>,
    /// Also add plans of files that have a planted bug, and so fail in every sweep
    #[arg(long)]
    pub planted: bool,
    /// Also add plans that pass, because what they once broke is mended
    #[arg(long)]
    pub passing: bool,
    /// Do not shrink the plan of a seed
    #[arg(long)]
    pub no_shrink: bool,
    /// End shrinking with the smallest plan so far after this CPU time: 60s, 5m
    #[arg(long, value_name = "TIME", value_parser = choose::duration, default_value = "10s")]
    pub shrink_budget: Duration,
    /// A note that is kept with the plans
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// The folder with a folder for each workload [default: tests/regressions]
    #[arg(long, value_name = "DIR")]
    pub regressions: Option<PathBuf>,
}

/// A plan that is to be added.
struct Candidate {
    /// Where it comes from, for messages.
    shown: String,
    entry: Box<dyn Entry>,
    repro: String,
    /// What it broke, if its source says so.
    known: Option<Regression>,
    /// Whether it is shrunk first.
    shrinks: bool,
}

/// A plan and the text of its file.
struct Plan {
    shown: String,
    kept: Kept,
    regression: Regression,
}

/// Checks the plans, and then writes all of them or none.
pub(super) fn add(arguments: &RegressionsAddArguments) -> Result<Conclusion, Refusal> {
    let candidates = candidates(arguments)?;
    let interrupt = Interrupt::listen()?;
    let plans = candidates
        .into_iter()
        .map(|candidate| plan(candidate, arguments, &interrupt))
        .collect::<Result<Vec<_>, _>>()?;
    let folder = arguments.regressions.clone().unwrap_or_else(|| PathBuf::from(FOLDER));
    let (mut new, mut printed) = (Vec::<(PathBuf, Plan)>::new(), String::new());
    for plan in plans {
        let place = folder.join(&plan.kept.workload);
        let added = new.iter().find(|(_, other)| other.kept.plan() == plan.kept.plan());
        let same = match added {
            Some((path, _)) => Some(path.clone()),
            None => same(&place, &plan.kept)?,
        };
        match same {
            Some(path) => {
                let line = format!("{}: the plan is already in {}", plan.shown, path.display());
                printed += &fill(&line, COLUMNS, "");
            }
            None => {
                let path = free(&place, &plan, &new);
                new.push((path, plan));
            }
        }
    }
    write(&folder, &new)?;
    for (path, plan) in &new {
        printed += &format!("{} ({})\n", path.display(), plan.kept.size);
        printed += &fill(&plan.regression.what(), COLUMNS - 2, "  ");
    }
    output::print(&printed)?;
    Ok(Conclusion::Passed)
}

/// The plans that the arguments name.
fn candidates(arguments: &RegressionsAddArguments) -> Result<Vec<Candidate>, Refusal> {
    let shrinks = !arguments.no_shrink;
    if let [workload, seed] = &arguments.what[..]
        && !workload.contains(['/', '.'])
        && let Ok(number) = seeds::seed(seed)
    {
        let entry = choose::workload(workload)?;
        let mut demands = arguments.shaking.demands([entry.as_ref()])?;
        if let Some(bug) = &arguments.bug {
            choose::plant(&mut demands, entry.as_ref(), bug)?;
        }
        let repro = entry.plan(Seed(number), &demands);
        let shown = format!("{workload} {number}");
        return Ok(vec![Candidate { shown, entry, repro, known: None, shrinks }]);
    }
    if arguments.shaking.is_given() || arguments.bug.is_some() {
        refuse!("--faults, --without, --scale and --bug require a workload and a seed: files determine them");
    }
    let mut all = Vec::new();
    for path in &arguments.what {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(_) if !path.contains(['/', '.']) => {
                choose::workload(path)?;
                refuse!("to add a plan of the workload {path}, one seed is required")
            }
            Err(error) => refuse!("cannot read {path}: {error}"),
        };
        if is_report(&text) {
            all.extend(of_report(path, &text, shrinks)?);
        } else {
            let refused = |error: PlanError| Refusal::Usage(format!("{path}: {error}"));
            let kept = Kept::parse(text).map_err(refused)?;
            let entry = workload(path, &kept.workload)?;
            // Also what it says about what broke must be readable, as it is when it is replayed.
            entry.head(&kept.repro).map_err(refused)?;
            let Kept { repro, regression, .. } = kept;
            all.push(Candidate { shown: path.clone(), entry, repro, known: regression, shrinks: false });
        }
    }
    Ok(all)
}

/// Whether a text is the beginning of a report, and not of a repro file.
fn is_report(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok_and(|value| value.get("report").is_some())
}

fn workload(shown: &str, name: &str) -> Result<Box<dyn Entry>, Refusal> {
    choose::workload(name).map_err(|refusal| Refusal::Usage(format!("{shown}: {refusal}")))
}

/// The failures of a saved report that were kept in full.
fn of_report(path: &str, text: &str, shrinks: bool) -> Result<Vec<Candidate>, Refusal> {
    let document = json::parse(text).map_err(|error| Refusal::Usage(format!("{path}: {error}")))?;
    let runs: Vec<&RunReport> = match &document.body {
        Body::Sweep(sweep) => sweep.failures().collect(),
        Body::Replay(run) => run.verdict.judge().map(|_| &**run).into_iter().collect(),
        _ => refuse!("{path} is neither the report of a sweep nor of a replay"),
    };
    if runs.is_empty() {
        refuse!("{path} has no failures");
    }
    let candidate = |run: &&RunReport| {
        let shown = format!("{path}: {} {}", run.workload, run.seed);
        let entry = workload(&shown, &run.workload)?;
        let (repro, shrinks) = match (&run.shrunk, &run.plan, &run.repro) {
            (Some(shrunk), ..) => (shrunk.plan.to_string(), false),
            (None, Some(plan), _) => (plan.to_string(), shrinks),
            (None, None, Some(file)) => refuse!("{shown} is the run of {file}: add that file"),
            (None, None, None) => (entry.plan(Seed(run.seed), &demands(run, entry.as_ref())?), shrinks),
        };
        let known = Regression {
            judge: run.verdict.judge().map(str::to_owned),
            message: regressions::shortened(run.verdict.message().unwrap_or_default()),
            version: document.version.clone(),
            commit: document.commit.clone(),
            note: None,
        };
        Ok(Candidate { shown, entry, repro, known: Some(known), shrinks })
    };
    runs.iter().map(candidate).collect()
}

/// The demands with which the plan of a run was drawn.
fn demands(run: &RunReport, entry: &dyn Entry) -> Result<Demands, Refusal> {
    let profile = choose::profile(&run.faults).map_err(Refusal::Usage)?;
    let (without, scale) = (choose::families(&run.without)?, run.scale);
    let mut demands = Demands { profile, without, scale, ..Demands::default() };
    if let Some(bug) = &run.bug {
        choose::plant(&mut demands, entry, bug)?;
    }
    Ok(demands)
}

/// Runs a plan, shrinks it if it is to be shrunk, and notes what it breaks.
fn plan(
    candidate: Candidate,
    arguments: &RegressionsAddArguments,
    interrupt: &Interrupt,
) -> Result<Plan, Refusal> {
    let Candidate { shown, entry, repro, known, shrinks } = candidate;
    let refused = |error: PlanError| Refusal::Usage(format!("{shown}: {error}"));
    let mut kept = Kept::parse(repro).map_err(refused)?;
    if kept.is_planted && !arguments.planted && arguments.bug.is_none() {
        refuse!("{shown} has a planted bug, and would fail in every sweep (--planted adds it)");
    }
    let run = |kept: &Kept| entry.replay(&kept.plan().to_string(), false).map_err(refused);
    let mut result = run(&kept)?;
    let passes = result.verdict() == Verdict::Passed;
    if passes && !arguments.passing {
        refuse!("{shown} passes: there is nothing to keep (--passing keeps a plan whose cause is mended)");
    }
    if shrinks && !passes {
        output::print_error(&format!("shrinking {shown}"));
        let limits = Limits::new(REPLAYS, arguments.shrink_budget, interrupt);
        let shrunk = entry.shrink(&kept.repro, &mut |so_far| limits.allow(so_far.replays));
        if let Some(shrunk) = shrunk.map_err(refused)? {
            kept = Kept::parse(shrunk.repro).map_err(refused)?;
            result = run(&kept)?;
        }
    }
    if interrupt.is_set() {
        return Err(interrupt.refusal("before anything was added"));
    }
    let note = arguments.note.as_deref();
    let regression = match known {
        Some(known) if passes => Regression { note: note.map(str::to_owned).or(known.note), ..known },
        _ => broke(&result, note),
    };
    Ok(Plan { shown, kept, regression })
}

/// The file in a folder that has the same plan, whatever it says that the plan broke.
fn same(place: &Path, kept: &Kept) -> Result<Option<PathBuf>, Refusal> {
    let files = match regressions::files(place) {
        Ok(files) => files.regressions,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => refuse!("cannot read {}: {error}", place.display()),
    };
    let plan = kept.plan();
    let is_same = |path: &PathBuf| Kept::read(path).is_ok_and(|other| other.plan() == plan);
    Ok(files.into_iter().find(is_same))
}

/// The path of a plan's file, which neither exists nor is that of another new plan.
fn free(place: &Path, plan: &Plan, new: &[(PathBuf, Plan)]) -> PathBuf {
    let judge = plan.regression.judge.as_deref().unwrap_or("passed");
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name = format!("{}-{}", judge.chars().map(plain).collect::<String>(), plan.kept.short_hash());
    let mut path = place.join(format!("{name}.json"));
    let mut number = 2;
    while path.exists() || new.iter().any(|(taken, _)| *taken == path) {
        path = place.join(format!("{name}-{number}.json"));
        number += 1;
    }
    path
}

/// Writes all files, or none.
fn write(folder: &Path, new: &[(PathBuf, Plan)]) -> Result<(), Refusal> {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    let written = new.iter().try_for_each(|(path, plan)| {
        let place = path.parent().unwrap_or(folder);
        let missing = place.ancestors().filter(|at| !at.as_os_str().is_empty() && !at.exists());
        folders.extend(missing.map(Path::to_owned));
        if let Err(error) = fs::create_dir_all(place) {
            refuse!("cannot write {}: {error}", place.display());
        }
        files.push(path);
        Target::check(path)?.write(&plan.kept.with(&plan.regression))
    });
    if written.is_err() {
        files.into_iter().for_each(|file| drop(fs::remove_file(file)));
        // Inner folders come after the ones around them. One that is not empty stays.
        folders.sort();
        folders.into_iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    }
    written
}
