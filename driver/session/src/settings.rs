//! What determines a cluster: from the environment and from the cluster file.
//!
//! | variable | meaning |
//! |---|---|
//! | `SHAKETABLE_SEED` | the seed, a number; 0 unless given, or what the cluster file says |
//! | `SHAKETABLE_FAULTS` | `calm`, `standard` or `storm`; `calm` unless given |
//! | `SHAKETABLE_WITHOUT` | fault families to leave out, separated by commas |
//! | `SHAKETABLE_CLUSTER` | numbers of machines and copies that are not drawn: `storage_servers=5,replicas=3`; also `logs`, `grv_proxies`, `commit_proxies`, `resolvers` and `spares` |
//! | `SHAKETABLE_BUG` | a planted bug of the cluster, which its judges find (`shaketable list bugs cluster`) |
//! | `SHAKETABLE_EVENTS` | a file for the events of the cluster, one in a line, as `shaketable replay --trace=cluster` prints them |
//! | `SHAKETABLE_REPORT` | a file for the report of the run, or `-` for standard error; in a folder that exists, each process writes its own file, as it does with events |
//! | `SHAKETABLE_JOURNAL` | a file for the [journal](crate::journal) of the run, or a folder as above |
//! | `SHAKETABLE_MEMORY` | how much of its history a cluster keeps before it is judged, megabytes; 1,000 unless given |
//! | `SHAKETABLE_ONE_AT_A_TIME` | `1` lets the threads of the program run [one at a time](crate::turns) |
//! | `SHAKETABLE_TIME` | `1` shows the program virtual time, if the library of the package `shaketable-time` is preloaded into it |
//! | `SHAKETABLE_SERVER` | the [address](crate::address) of a server whose cluster is used instead of one of the process; `none` if cluster files that name one are not to be followed |
//!
//! A cluster file, or a connection string, whose description is `shaketable` has the seed as its id:
//! `shaketable:7@127.0.0.1:1`. With the id `serve` it names a server: `shaketable:serve@127.0.0.1:4500`. What
//! determines the cluster is then the server's, which also has the report. The environment takes precedence
//! over it. Every other cluster file stands for the simulated cluster as well, with what the environment
//! says, whether it exists or not: a program that is used to its file need not have another one, and nothing
//! is ever sent to the addresses in it. Files with different names are those of different clusters
//! ([`ClusterName`]).

use crate::{ClusterName, address::Address, output, snapshot::Rows, topology::Topology};
use shaketable_sim::{
    config::ClusterBug,
    faults::{Family, Profile},
    seed::Seed,
};
use std::{cell::RefCell, path::PathBuf, sync::Arc};

/// How much of the history is kept unless the environment says otherwise, megabytes.
const MEMORY: usize = 1_000;

/// The number of letters by which a name may differ from that of a variable to be taken for it.
const MOST_MISSPELT: usize = 2;

/// The variable that a test with `Shake` reads, which may use the library as well.
const OF_TESTS: &str = "SHAKETABLE_SEEDS";

/// Where the report of a run goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportTo {
    /// Standard error.
    StandardError,
    /// A file, which is replaced, or a folder for the files of several processes.
    File(PathBuf),
}

/// What determines a cluster and its faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The seed.
    pub seed: Seed,
    /// The fault profile.
    pub faults: Profile,
    /// Fault families that are left out.
    pub without: Vec<Family>,
    /// What is fixed of the cluster.
    pub topology: Topology,
    /// A planted bug of the cluster.
    pub bug: Option<ClusterBug>,
    /// Whether the report has the events of the run.
    pub keeps_events: bool,
    /// The file of the journal.
    pub journal: Option<PathBuf>,
    /// How much of the history is kept before it is judged and forgotten, bytes.
    pub memory: usize,
    /// Whether the threads of the program run one at a time.
    pub one_at_a_time: bool,
    /// Whether the program sees virtual time.
    pub time: bool,
    /// The data with which the cluster begins.
    pub restored: Arc<Rows>,
    /// Whether the report has the data with which the cluster ends.
    pub keeps_rows: bool,
    /// Whether the whole history of the run is kept for who tells it, with its events.
    pub keeps_history: bool,
}

impl Settings {
    /// The variables that repeat a run.
    pub fn again(&self) -> String {
        let mut line =
            format!("SHAKETABLE_SEED={} SHAKETABLE_FAULTS={}", self.seed.0, profile_name(self.faults));
        if !self.without.is_empty() {
            let names: Vec<_> = self.without.iter().map(|family| family.name()).collect();
            line += &format!(" SHAKETABLE_WITHOUT={}", names.join(","));
        }
        if !self.topology.is_free() {
            line += &format!(" SHAKETABLE_CLUSTER={}", self.topology);
        }
        if let Some(bug) = self.bug {
            line += &format!(" SHAKETABLE_BUG={}", bug.name());
        }
        if self.one_at_a_time {
            line += " SHAKETABLE_ONE_AT_A_TIME=1";
        }
        if self.time {
            line += " SHAKETABLE_TIME=1";
        }
        line
    }
}

/// What the environment says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The seed.
    pub seed: Option<Seed>,
    /// The fault profile.
    pub faults: Option<Profile>,
    /// Fault families that are left out.
    pub without: Vec<Family>,
    /// What is fixed of the cluster.
    pub topology: Topology,
    /// A planted bug of the cluster.
    pub bug: Option<ClusterBug>,
    /// Where the events go.
    pub events: Option<PathBuf>,
    /// Where the report goes.
    pub report: Option<ReportTo>,
    /// Where the journal goes.
    pub journal: Option<PathBuf>,
    /// How much of the history is kept, megabytes.
    pub memory: Option<usize>,
    /// Whether the threads of the program run one at a time.
    pub one_at_a_time: bool,
    /// Whether the program sees virtual time.
    pub time: bool,
    /// The server to use.
    pub server: Option<Address>,
    /// Whether the cluster is one of the process, whatever a cluster file says.
    pub is_own: bool,
}

impl Environment {
    /// Reads the variables with `read`. The error is one line about a value that is not understood.
    pub fn read(read: impl Fn(&str) -> Option<String>) -> Result<Environment, String> {
        let set = |name: &str| read(name).filter(|value| !value.is_empty());
        let mut environment = Environment::default();
        if let Some(text) = set("SHAKETABLE_SEED") {
            let seed = text.parse().map_err(|_| format!("SHAKETABLE_SEED is not a number: {text}"))?;
            environment.seed = Some(Seed(seed));
        }
        if let Some(text) = set("SHAKETABLE_FAULTS") {
            environment.faults =
                Some(profile(&text).ok_or_else(|| {
                    format!("SHAKETABLE_FAULTS is none of calm, standard and storm: {text}")
                })?);
        }
        for name in set("SHAKETABLE_WITHOUT").iter().flat_map(|text| text.split(',')) {
            let family = Family::named(name.trim())
                .ok_or_else(|| format!("SHAKETABLE_WITHOUT names no fault family: {}", name.trim()))?;
            environment.without.push(family);
        }
        if let Some(text) = set("SHAKETABLE_CLUSTER") {
            environment.topology =
                Topology::parse(&text).map_err(|error| format!("SHAKETABLE_CLUSTER: {error}"))?;
        }
        if let Some(name) = set("SHAKETABLE_BUG") {
            let bug = ClusterBug::named(&name);
            environment.bug = Some(
                bug.ok_or_else(|| format!("SHAKETABLE_BUG names no planted bug of the cluster: {name}"))?,
            );
        }
        environment.events = set("SHAKETABLE_EVENTS").map(PathBuf::from);
        environment.report = set("SHAKETABLE_REPORT").map(|to| match to.as_str() {
            "-" => ReportTo::StandardError,
            path => ReportTo::File(path.into()),
        });
        if let Some(text) = set("SHAKETABLE_MEMORY") {
            let megabytes = text.parse().ok().filter(|megabytes| (1..=1_000_000).contains(megabytes));
            environment.memory = Some(megabytes.ok_or_else(|| {
                format!("SHAKETABLE_MEMORY is not a number of megabytes from 1 to 1000000: {text}")
            })?);
        }
        let is_set = |name: &str| match set(name).as_deref() {
            None => Ok(false),
            Some("1") => Ok(true),
            Some(text) => Err(format!("{name} is not 1: {text}")),
        };
        environment.one_at_a_time = is_set("SHAKETABLE_ONE_AT_A_TIME")?;
        environment.time = is_set("SHAKETABLE_TIME")?;
        environment.journal = set("SHAKETABLE_JOURNAL").map(PathBuf::from);
        environment.is_own = set("SHAKETABLE_SERVER").is_some_and(|text| text == "none");
        if let Some(text) = set("SHAKETABLE_SERVER").filter(|text| text != "none") {
            let server = text.parse().map_err(|wrong| format!("SHAKETABLE_SERVER: {wrong}: {text}"))?;
            environment.server = Some(server);
        }
        Ok(environment)
    }

    /// One line about a variable that nobody reads, and whose name is nearly that of one that is read: a run
    /// without the faults that were meant would pass for another reason.
    pub fn misspelt(mut names: Vec<String>) -> Option<String> {
        let known = RefCell::new(Vec::new());
        let _ = Environment::read(|name| {
            known.borrow_mut().push(name.to_owned());
            None
        });
        let known = known.into_inner();
        names.retain(|name| !known.contains(name) && name != OF_TESTS);
        names.sort();
        names.into_iter().find_map(|name| {
            let distance = |known: &&String| strsim::levenshtein(known, &name.to_uppercase());
            let meant = known.iter().min_by_key(distance).filter(|known| distance(known) <= MOST_MISSPELT)?;
            Some(format!("{name} is not a variable that this library reads; {meant} is"))
        })
    }

    /// The settings of a cluster whose cluster file names `seed`, if it names one.
    pub fn settings(&self, seed: Option<Seed>) -> Settings {
        Settings {
            seed: self.seed.or(seed).unwrap_or(Seed(0)),
            faults: self.faults.unwrap_or(Profile::Calm),
            without: self.without.clone(),
            topology: self.topology.clone(),
            bug: self.bug,
            keeps_events: self.events.is_some(),
            memory: self.memory.unwrap_or(MEMORY) * 1_000_000,
            one_at_a_time: self.one_at_a_time,
            time: self.time,
            journal: self.journal.as_deref().map(|path| output::file("journal", path)),
            restored: Arc::default(),
            keeps_rows: false,
            keeps_history: false,
        }
    }
}

fn profile(name: &str) -> Option<Profile> {
    match name {
        "calm" => Some(Profile::Calm),
        "standard" => Some(Profile::Standard),
        "storm" => Some(Profile::Storm),
        _ => None,
    }
}

/// The name of a profile, as in the environment.
pub fn profile_name(profile: Profile) -> &'static str {
    match profile {
        Profile::Calm => "calm",
        Profile::Standard => "standard",
        Profile::Storm => "storm",
    }
}

/// A connection string describes the simulated cluster, but its id is not a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotASeed;

/// The connection string in the text of a cluster file: the first line that is no comment.
pub fn connection_of(cluster_file: &str) -> &str {
    let mut lines = cluster_file.lines().map(str::trim);
    lines.find(|line| !line.is_empty() && !line.starts_with('#')).unwrap_or_default()
}

/// The seed in the text of a cluster file; `None` if the file describes another cluster.
pub fn seed_of(cluster_file: &str) -> Result<Option<Seed>, NotASeed> {
    let Some(("shaketable", rest)) = connection_of(cluster_file).split_once(':') else { return Ok(None) };
    let (id, _) = rest.split_once('@').ok_or(NotASeed)?;
    id.parse().map(|seed| Some(Seed(seed))).map_err(|_| NotASeed)
}

/// The name of the cluster that the text of a cluster file describes: none if it describes none, or a server.
pub fn name_of(cluster_file: &str) -> ClusterName {
    let connection = connection_of(cluster_file);
    // Without an address it is refused by a client, and names nothing.
    let named = connection.split_once('@').filter(|(_, addresses)| !addresses.is_empty());
    let name = named.map_or("", |(name, _)| name);
    let is_name =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let is_named = name.split_once(':').is_some_and(|(description, id)| is_name(description) && is_name(id));
    ClusterName(if is_named && name != "shaketable:serve" { name.to_owned() } else { String::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Environment, String> {
        let find = |name: &str| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_owned());
        Environment::read(find)
    }

    #[test]
    fn a_variable_that_is_misspelt_is_named() {
        let of =
            |names: &[&str]| Environment::misspelt(names.iter().map(|name| (*name).to_owned()).collect());
        for (name, meant) in [
            ("SHAKETABLE_FAULT", "SHAKETABLE_FAULTS"),
            ("SHAKETABLE_SEDE", "SHAKETABLE_SEED"),
            ("SHAKTABLE_SEED", "SHAKETABLE_SEED"),
            ("shaketable_seed", "SHAKETABLE_SEED"),
            ("SHAKETABLE_ONE_AT_TIME", "SHAKETABLE_ONE_AT_A_TIME"),
        ] {
            let said = format!("{name} is not a variable that this library reads; {meant} is");
            assert_eq!(of(&["PATH", "SHAKETABLE_TIME", name]), Some(said));
        }
        assert_eq!(of(&["PATH", "SHAKETABLE_SEED", "SHAKETABLE_SEEDS", "SHAKETABLE_BROWSER", "SEED"]), None);
    }

    #[test]
    fn the_environment_takes_precedence_over_the_cluster_file() {
        let empty = read(&[("SHAKETABLE_SEED", "")]).expect("nothing is said");
        assert_eq!(empty, Environment::default());
        assert_eq!(empty.settings(None).seed, Seed(0));
        assert_eq!(empty.settings(Some(Seed(7))).seed, Seed(7));
        let said = read(&[
            ("SHAKETABLE_SEED", "12"),
            ("SHAKETABLE_FAULTS", "storm"),
            ("SHAKETABLE_WITHOUT", "kill, loss"),
            ("SHAKETABLE_REPORT", "-"),
            ("SHAKETABLE_SERVER", "unix:/tmp/socket"),
            ("SHAKETABLE_CLUSTER", "logs=2,replicas=1"),
            ("SHAKETABLE_ONE_AT_A_TIME", "1"),
            ("SHAKETABLE_TIME", "1"),
            ("SHAKETABLE_EVENTS", "events.txt"),
        ])
        .expect("it is understood");
        let settings = said.settings(Some(Seed(7)));
        assert_eq!((settings.seed, settings.faults), (Seed(12), Profile::Storm));
        assert_eq!(settings.without, [Family::Kill, Family::Loss]);
        assert_eq!(said.report, Some(ReportTo::StandardError));
        assert_eq!(said.server, Some(Address::Unix("/tmp/socket".into())));
        assert_eq!((said.events, settings.keeps_events), (Some("events.txt".into()), true));
        assert_eq!(
            settings.again(),
            "SHAKETABLE_SEED=12 SHAKETABLE_FAULTS=storm SHAKETABLE_WITHOUT=kill,loss SHAKETABLE_CLUSTER=replicas=1,logs=2 SHAKETABLE_ONE_AT_A_TIME=1 SHAKETABLE_TIME=1"
        );
    }

    #[test]
    fn what_is_not_understood_is_refused_in_one_line() {
        for (name, value) in [
            ("SHAKETABLE_SEED", "x"),
            ("SHAKETABLE_FAULTS", "wild"),
            ("SHAKETABLE_WITHOUT", "kill,wild"),
            ("SHAKETABLE_SERVER", "nowhere"),
            ("SHAKETABLE_CLUSTER", "logs=none"),
            ("SHAKETABLE_BUG", "none"),
            ("SHAKETABLE_MEMORY", "0"),
            ("SHAKETABLE_ONE_AT_A_TIME", "yes"),
            ("SHAKETABLE_TIME", "yes"),
        ] {
            let refused = read(&[(name, value)]).expect_err("it is wrong");
            assert!(refused.starts_with(name) && !refused.contains('\n'), "{refused}");
        }
    }

    #[test]
    fn a_cluster_file_of_ours_has_the_seed_as_its_id() {
        assert_eq!(seed_of("shaketable:7@127.0.0.1:4500"), Ok(Some(Seed(7))));
        assert_eq!(seed_of("# by hand\n\nshaketable:7@127.0.0.1:4500\n"), Ok(Some(Seed(7))));
        assert_eq!(seed_of("docker:docker@127.0.0.1:4500"), Ok(None));
        assert_eq!(seed_of(""), Ok(None));
        assert_eq!(seed_of("shaketable:seven@127.0.0.1:4500"), Err(NotASeed));
        assert_eq!(seed_of("shaketable:7"), Err(NotASeed));
    }

    #[test]
    fn a_cluster_file_has_the_name_of_its_cluster() {
        for (text, name) in [
            ("docker:docker@127.0.0.1:4500", "docker:docker"),
            ("# by hand\n\n dr_2:B7@10.0.0.1:4500,10.0.0.2:4500\n", "dr_2:B7"),
            ("shaketable:7@127.0.0.1:1", "shaketable:7"),
            ("shaketable:serve@127.0.0.1:1", ""),
            ("", ""),
            ("docker:docker", ""),
            ("docker@127.0.0.1:4500", ""),
            ("abc:def@", ""),
            ("a b:c@127.0.0.1:4500", ""),
            (":@127.0.0.1:4500", ""),
        ] {
            assert_eq!(name_of(text).0, name, "{text:?}");
        }
    }
}
