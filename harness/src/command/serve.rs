//! `shaketable serve`: a simulated cluster for several programs, until a signal ends it.

use super::{
    Refusal, choose,
    files::check_apart,
    interrupt::Interrupt,
    output::{self, Target},
    refuse,
};
use crate::search::seeds;
use clap::Args;
use shaketable_reports::Conclusion;
use shaketable_session::{
    Host,
    address::{Address, server_of},
    remote::is_served,
    report::{ACCUSED, Report},
    server::Server,
    settings::{Environment, Settings},
    snapshot::{self, Rows},
    topology::Topology,
};
use shaketable_sim::{faults::Profile, seed::Seed};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

/// The exit codes, for the end of the help page.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0  it served until Ctrl-C, SIGTERM or SIGHUP
  2  bad usage, an address in use, a file that cannot be written (one line on stderr)
  3  the simulated cluster failed, or its judges object to what it did";

#[derive(Clone, Debug, Args)]
pub(super) struct ServeArguments {
    /// The seed of the cluster
    #[arg(long, value_name = "SEED", allow_negative_numbers = true, value_parser = seeds::seed)]
    #[arg(default_value_t = 0)]
    pub seed: u64,
    /// The fault profile: calm, standard or storm [default: calm, as in a process of its own]
    #[arg(long, value_name = "PROFILE", value_parser = choose::profile)]
    pub faults: Option<Profile>,
    /// Switch a fault family off; may be repeated (see `list faults`)
    #[arg(long, value_name = "FAMILY", value_delimiter = ',')]
    pub without: Vec<String>,
    /// How much of its history the cluster keeps before it is judged, megabytes
    #[arg(long, value_name = "MEGABYTES", value_parser = clap::value_parser!(u32).range(1..=1_000_000), default_value_t = 1_000)]
    pub memory: u32,
    /// Numbers of machines and copies that are not drawn: storage_servers=5,replicas=3
    #[arg(long, value_name = "NAME=N,..", value_parser = Topology::parse)]
    pub topology: Option<Topology>,
    /// Where to listen: HOST:PORT, where port 0 is any that is free, or unix:PATH
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: Address,
    /// Listen at an address that other machines can reach: whoever connects can use the cluster
    #[arg(long)]
    pub public: bool,
    /// Write a cluster file that names the server; it is removed in the end
    #[arg(long, value_name = "FILE")]
    pub cluster_file: Option<PathBuf>,
    /// Write the report to a file; - for standard output, as without it
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Begin with the data of this snapshot
    #[arg(long, value_name = "FILE")]
    pub restore: Option<PathBuf>,
    /// Write a snapshot of the data in the end: what `--restore` reads; - for standard output
    #[arg(long, value_name = "FILE")]
    pub snapshot: Option<PathBuf>,
}

/// How often the command looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);

/// How long the cluster's thread may stand still: then it hangs, and nothing ends it.
const LONGEST_HANG: Duration = Duration::from_secs(60);

/// The same, once a signal has asked for the end.
const LONGEST_END: Duration = Duration::from_secs(5);

/// The thread of the cluster.
type Cluster = JoinHandle<Result<Option<Report>, String>>;

/// Serves until a signal, and prints the report of the run.
pub(super) fn serve(arguments: &ServeArguments) -> Result<Conclusion, Refusal> {
    let settings = settings(arguments)?;
    let written = [
        ("--cluster-file", &arguments.cluster_file),
        ("--report", &arguments.report),
        ("--snapshot", &arguments.snapshot),
    ];
    let written = written.iter().filter_map(|(option, path)| Some((*option, path.as_deref()?)));
    check_apart(&written.collect::<Vec<_>>())?;
    let report = Target::check_named(arguments.report.as_deref())?;
    let cluster_file = Target::check_named(arguments.cluster_file.as_deref())?;
    let snapshot = Target::check_named(arguments.snapshot.as_deref())?;
    arguments.cluster_file.iter().try_for_each(|file| is_free(file))?;
    let interrupt = Interrupt::listen()?;
    let (host, server) = open(arguments)?;
    let served = announce(arguments, &settings, server.address(), cluster_file.as_ref())
        .and_then(|()| simulate(&host, &settings))
        .inspect(|cluster| wait(&host, cluster, LONGEST_HANG, || interrupt.is_set()));
    // Also if it did not serve: a Unix socket is removed.
    arguments.cluster_file.iter().for_each(|file| remove(file, server.address()));
    let connections = server.stop();
    host.stop();
    let served = served?;
    wait(&host, &served, LONGEST_END, || false);
    let ended = ended(served)?;
    let text = match &ended {
        Some(ended) => format!("{ended}{connections}"),
        None => format!("nobody used the cluster\n{connections}"),
    };
    report.map_or_else(|| output::print(&text), |file| file.write(&text))?;
    if let Some(objection) = ended.iter().flat_map(|ended| &ended.objections).next() {
        // Its data are not to be relied on either.
        return Err(Refusal::Cluster(format!("{ACCUSED}{objection}")));
    }
    let rows = ended.as_ref().map_or(&*settings.restored, |ended| &ended.rows);
    snapshot.map_or(Ok(()), |file| file.write(&snapshot::write(rows)))?;
    Ok(Conclusion::Passed)
}

fn settings(arguments: &ServeArguments) -> Result<Settings, Refusal> {
    let environment = Environment {
        seed: Some(Seed(arguments.seed)),
        faults: arguments.faults,
        without: choose::families(&arguments.without)?,
        memory: Some(arguments.memory as usize),
        topology: arguments.topology.clone().unwrap_or_default(),
        ..Environment::default()
    };
    Ok(Settings {
        restored: Arc::new(arguments.restore.as_deref().map(restored).transpose()?.unwrap_or_default()),
        keeps_rows: arguments.snapshot.is_some(),
        ..environment.settings(None)
    })
}

/// The rows of a snapshot.
fn restored(file: &Path) -> Result<Rows, Refusal> {
    let shown = file.display();
    let text = match fs::read(file) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => refuse!("cannot read {shown}: {error}"),
    };
    snapshot::read(&text).map_err(|why| Refusal::Usage(format!("{shown}: {why}")))
}

/// A file that a server has not written is not replaced, nor that of a server that runs.
fn is_free(file: &Path) -> Result<(), Refusal> {
    let (text, shown) = (content(file), file.display());
    match server_of(&text) {
        Ok(Some(server)) if is_served(&server) => {
            refuse!("{shown} names the server at {server}, which runs: it is not replaced")
        }
        Ok(None) if !text.trim().is_empty() => {
            refuse!("{shown} exists, and names no server: it is not replaced")
        }
        _ => Ok(()),
    }
}

/// Removes the cluster file, unless it is another server's by now: programs would look for this one.
fn remove(file: &Path, address: &Address) {
    if content(file) == address.reachable().cluster_file() {
        // If it cannot be removed, the next server replaces it.
        let _ = fs::remove_file(file);
    }
}

/// What a file has; nothing if it is a device, or not there.
fn content(file: &Path) -> String {
    let bytes = file.is_file().then(|| fs::read(file)).and_then(Result::ok).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Listens.
fn open(arguments: &ServeArguments) -> Result<(Arc<Host>, Server), Refusal> {
    let address = &arguments.listen;
    match address.is_public() {
        Ok(true) if !arguments.public => {
            refuse!(
                "other machines can reach {address}, and nobody is asked who they are: --public allows it"
            )
        }
        Ok(_) => {}
        Err(error) => refuse!("cannot listen at {address}: {error}"),
    }
    let opened = Host::new().and_then(|host| {
        let host = Arc::new(host);
        Server::start(address, host.clone()).map(|server| (host, server))
    });
    match opened {
        Ok(opened) => Ok(opened),
        Err(error) => refuse!("cannot listen at {address}: {error}"),
    }
}

/// Starts the thread of the cluster.
fn simulate(host: &Arc<Host>, settings: &Settings) -> Result<Cluster, Refusal> {
    let (host, settings) = (host.clone(), settings.clone());
    let cluster = thread::Builder::new().name("cluster".to_owned());
    match cluster.spawn(move || host.run(|| settings)) {
        Ok(cluster) => Ok(cluster),
        Err(error) => refuse!("cannot start a thread: {error}"),
    }
}

/// Says where the server is, in a file and in a line.
fn announce(
    arguments: &ServeArguments,
    settings: &Settings,
    address: &Address,
    file: Option<&Target>,
) -> Result<(), Refusal> {
    if let Some(file) = file {
        file.write(&address.reachable().cluster_file())?;
    }
    output::print(&ready(arguments, settings, address))
}

/// Waits until `is_over`, until the cluster ends, or until its thread has stood still for `longest`.
fn wait(host: &Host, cluster: &Cluster, longest: Duration, is_over: impl Fn() -> bool) {
    while !is_over() && !cluster.is_finished() && host.heartbeat().stalled_for() < longest {
        thread::park_timeout(GLANCE);
    }
}

/// The line that says that programs can connect, and how.
fn ready(arguments: &ServeArguments, settings: &Settings, address: &Address) -> String {
    let (seed, faults) = (settings.seed.0, choose::name_of(settings.faults));
    let file = arguments.cluster_file.as_ref().filter(|file| file.as_os_str() != "-");
    let file = file.map(|file| format!(" or FDB_CLUSTER_FILE={}", file.display())).unwrap_or_default();
    let address = address.reachable();
    format!("serving seed {seed}, {faults} faults: set SHAKETABLE_SERVER={address}{file}\n")
}

/// The report of the run; `None` if nobody used the cluster.
fn ended(cluster: Cluster) -> Result<Option<Report>, Refusal> {
    if !cluster.is_finished() {
        // The end of the process ends its thread.
        return Err(Refusal::Cluster("the simulated cluster hangs: there is no report".to_owned()));
    }
    match cluster.join() {
        Ok(Ok(report)) => Ok(report),
        Ok(Err(panic)) => Err(Refusal::Cluster(format!("the simulated cluster failed: {panic}"))),
        // The host catches the panics of the cluster.
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_session::{Call, ClusterName, Command, Session, topology::Topology};

    /// An answer that its receiver never takes: the thread of the cluster does not go on.
    #[test]
    fn a_cluster_that_hangs_is_given_up() {
        let host = Arc::new(Host::new().expect("a pipe"));
        let settings = Environment::default().settings(None);
        let cluster = simulate(&host, &settings).unwrap_or_else(|_| panic!("there are threads"));
        let (release, hangs) = std::sync::mpsc::channel::<()>();
        let (database, tx) = (host.open(&ClusterName::default()), host.next_transaction());
        host.command(database, Command::Create(tx));
        let completion = Box::new(move |_| assert!(hangs.recv().is_err()));
        host.want(host.call(database, tx, Call::GetReadVersion, completion));
        wait(&host, &cluster, Duration::from_millis(200), || false);
        host.stop();
        wait(&host, &cluster, Duration::from_millis(200), || false);
        let refused = ended(cluster).expect_err("it hangs");
        let said = "the simulated cluster hangs: there is no report".to_owned();
        assert_eq!(refused, Refusal::Cluster(said));
        drop(release);
        // One that waits does not hang.
        let host = Arc::new(Host::new().expect("a pipe"));
        let cluster = simulate(&host, &settings).unwrap_or_else(|_| panic!("there are threads"));
        let ticks = std::cell::Cell::new(0);
        wait(&host, &cluster, Duration::from_millis(100), || ticks.replace(ticks.get() + 1) == 10);
        assert_eq!(ticks.get(), 11);
        host.stop();
        cluster.join().expect("no panic").expect("no failure");
    }

    #[test]
    fn a_cluster_file_of_somebody_else_is_neither_replaced_nor_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("fdb.cluster");
        let address: Address = "127.0.0.1:4500".parse().expect("an address");
        for (text, is_ours) in [
            ("", true),
            ("shaketable:serve@127.0.0.1:1\n", true),
            ("docker:docker@127.0.0.1:4500\n", false),
            ("shaketable:7@127.0.0.1:4500\n", false),
            ("notes", false),
        ] {
            fs::write(&file, text).expect("written");
            assert_eq!(is_free(&file).is_ok(), is_ours, "{text}");
            remove(&file, &address);
            assert!(file.exists(), "{text}");
        }
        fs::write(&file, address.cluster_file()).expect("written");
        remove(&file, &address);
        assert!(!file.exists() && is_free(&file).is_ok());
    }

    #[test]
    fn what_is_asked_for_is_served() {
        let arguments = ServeArguments {
            seed: 7,
            faults: None,
            without: Vec::new(),
            memory: 7,
            topology: Some(Topology::parse("storage_servers=5,replicas=3").expect("a topology")),
            listen: "127.0.0.1:0".parse().expect("an address"),
            public: false,
            cluster_file: None,
            report: None,
            restore: None,
            snapshot: None,
        };
        let settings = settings(&arguments).unwrap_or_else(|_| panic!("nothing is wrong with it"));
        assert_eq!((settings.seed, settings.memory), (Seed(7), 7_000_000));
        let library = Environment::default().settings(None);
        assert_eq!((settings.faults, settings.without), (library.faults, library.without));
        assert_eq!(settings.topology.to_string(), "storage_servers=5,replicas=3");
    }
}
