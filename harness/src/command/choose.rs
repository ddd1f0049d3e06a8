//! Parses the names and values that users give: workloads, planted bugs, fault families, profiles, times,
//! shards. Unknown names are refused in one line, with the most similar name if there is one.

use super::{Refusal, program, refuse};
use crate::run::plan::Demands;
use crate::search::entry::Entry;
use shaketable_reports::Scale;
use shaketable_sim::{
    config::ClusterBug,
    faults::{Family, Profile},
};
use std::time::Duration;

/// The place name of the planted bugs of the simulated cluster.
pub const CLUSTER: &str = "cluster";

/// The minimum similarity of a name that is suggested.
const NEAR: f64 = 0.7;

/// ` (did you mean X?)`, or an empty string if no name is similar.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    known
        .into_iter()
        .map(|k| (strsim::jaro_winkler(&name.to_lowercase(), k), k))
        .filter(|(similarity, _)| *similarity >= NEAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(String::new(), |(_, k)| format!(" (did you mean {k}?)"))
}

/// The workloads with these names, in this order and without duplicates; all workloads if there are no names.
pub fn workloads(names: &[String]) -> Result<Vec<Box<dyn Entry>>, Refusal> {
    if names.is_empty() {
        return Ok((program().workloads)());
    }
    let mut chosen: Vec<Box<dyn Entry>> = Vec::new();
    for name in names {
        if chosen.iter().all(|e| e.name() != name) {
            chosen.push(workload(name)?);
        }
    }
    Ok(chosen)
}

/// The workload with this name.
pub fn workload(name: &str) -> Result<Box<dyn Entry>, Refusal> {
    let all = (program().workloads)();
    let near = did_you_mean(name, all.iter().map(|e| e.name()));
    match all.into_iter().find(|e| e.name() == name) {
        Some(entry) => Ok(entry),
        None => {
            let others = program().others.map(|line| format!("; more workloads: {line}")).unwrap_or_default();
            refuse!("unknown workload {name:?}{near}: see `{} list workloads`{others}", program().name)
        }
    }
}

/// Whether a place is among these places, which are workloads or the cluster. Every place is if there are no
/// names.
pub fn places(names: &[String]) -> Result<impl Fn(&str) -> bool, Refusal> {
    for name in names.iter().filter(|name| *name != CLUSTER) {
        workload(name)?;
    }
    Ok(|place: &str| names.is_empty() || names.iter().any(|name| name == place))
}

/// The fault families with these names, without duplicates and in the order of the list.
pub fn families(names: &[String]) -> Result<Vec<Family>, Refusal> {
    let mut chosen = Vec::new();
    for name in names {
        match Family::named(name) {
            Some(family) => chosen.push(family),
            None => {
                let near = did_you_mean(name, Family::ALL.iter().map(|f| f.name()));
                refuse!("unknown fault family {name:?}{near}: see `{} list faults`", program().name)
            }
        }
    }
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}

/// Switches on a planted bug of the workload or of the cluster.
pub fn plant(demands: &mut Demands, entry: &dyn Entry, name: &str) -> Result<(), Refusal> {
    if entry.bugs().iter().any(|b| b.name == name) {
        demands.bug = Some(name.to_owned());
    } else if let Some(bug) = ClusterBug::named(name) {
        demands.cluster_bug = Some(bug);
    } else {
        let known = entry.bugs().iter().map(|b| b.name).chain(ClusterBug::ALL.iter().map(|s| s.name()));
        let near = did_you_mean(name, known);
        refuse!("{} has no planted bug {name:?}{near}: see `{} list bugs`", entry.name(), program().name)
    }
    Ok(())
}

/// The name of the planted bug that the demands switch on.
pub fn planted(demands: &Demands) -> Option<&str> {
    demands.bug.as_deref().or(demands.cluster_bug.map(|bug| bug.name()))
}

/// The fault profile with this name.
pub fn profile(text: &str) -> Result<Profile, String> {
    match text {
        "calm" => Ok(Profile::Calm),
        "standard" => Ok(Profile::Standard),
        "storm" => Ok(Profile::Storm),
        other => Err(format!("must be calm, standard or storm{}", did_you_mean(other, PROFILES))),
    }
}

/// How many times as long as usual runs are.
pub fn scale(text: &str) -> Result<Scale, String> {
    text.parse::<u32>().map_err(|error| error.to_string())?.try_into()
}

const PROFILES: [&str; 3] = ["calm", "standard", "storm"];

/// The name of a fault profile.
pub fn name_of(profile: Profile) -> &'static str {
    match profile {
        Profile::Calm => PROFILES[0],
        Profile::Standard => PROFILES[1],
        Profile::Storm => PROFILES[2],
    }
}

/// A number of threads.
pub fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(n) if n <= 1024 => Ok(n),
        Ok(_) => Err("must be at most 1024".to_owned()),
        Err(_) => Err("must be a whole number".to_owned()),
    }
}

/// A whole number greater than zero.
pub fn at_least_one(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(n) => Ok(n),
        Err(_) => Err("must be a whole number".to_owned()),
    }
}

/// A time with a unit: `60s`, `5m`, `1h 30m`, `500ms`.
pub fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time.is_zero() => Err("must be greater than zero".to_owned()),
        Ok(time) => Ok(time),
        Err(_) => Err("must be a number with a unit, such as 60s, 5m or 1h 30m".to_owned()),
    }
}

/// A shard `I/N`, with I from 1 to N.
pub fn shard(text: &str) -> Result<(u64, u64), String> {
    let parsed = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parsed {
        Some((i, n)) if 1 <= i && i <= n => Ok((i, n)),
        Some(_) => Err("I must be from 1 to N".to_owned()),
        None => Err("must be two numbers, such as 1/4".to_owned()),
    }
}

/// A seed that is tried on a bug before the others.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct First {
    pub(super) place: String,
    pub(super) bug: String,
    pub(super) seed: u64,
}

impl First {
    /// `WORKLOAD/BUG=SEED`.
    pub(super) fn parse(text: &str) -> Result<First, String> {
        let parts = text.split_once('=').and_then(|(bug, seed)| Some((bug.split_once('/')?, seed)));
        let Some(((place, bug), seed)) = parts else {
            return Err(
                "must be a workload, a planted bug and a seed, such as queue/interleaved=2".to_owned()
            );
        };
        let seed = seed.parse().map_err(|_| "the seed must be a whole number".to_owned())?;
        Ok(First { place: place.to_owned(), bug: bug.to_owned(), seed })
    }

    /// Whether it is one of this bug.
    pub(super) fn is_of(&self, place: &str, bug: &str) -> bool {
        self.place == place && self.bug == bug
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1h 30m"), Ok(Duration::from_secs(5400)));
        for bad in ["", "s", "0", "90", "0s", "-5s", "5 parsecs", "1e400", "nan", "inf"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn shards_count_from_one() {
        assert_eq!(shard("1/1"), Ok((1, 1)));
        assert_eq!(shard("3/4"), Ok((3, 4)));
        for bad in ["", "0/4", "5/4", "1", "a/b", "1/0", "1/2/3"] {
            assert!(shard(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_first_seed_names_its_bug() {
        let first = First { place: "one".to_owned(), bug: "early".to_owned(), seed: 9 };
        assert_eq!(First::parse("one/early=9"), Ok(first));
        for bad in ["", "one", "one/early", "one=1", "one/early=", "one/early=x", "one/early=-1"] {
            assert!(First::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn jobs_are_at_least_one() {
        assert_eq!(jobs("2"), Ok(2));
        for bad in ["0", "-1", "x", "", "100000"] {
            assert!(jobs(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_most_similar_name_is_suggested_and_nonsense_gets_none() {
        let known = ["cycle", "api", "queue", "log", "index"];
        assert_eq!(did_you_mean("Cylce", known), " (did you mean cycle?)");
        assert_eq!(did_you_mean("quue", known), " (did you mean queue?)");
        assert_eq!(did_you_mean("zzz", known), "");
    }

    #[test]
    fn families_are_unique_and_in_order() {
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        assert_eq!(families(&names(&["loss", "kill", "loss"])), Ok(vec![Family::Kill, Family::Loss]));
        let refusal = families(&names(&["klog"])).expect_err("unknown").to_string();
        assert!(refusal.contains("did you mean clog?"), "{refusal}");
    }
}
