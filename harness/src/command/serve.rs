//! `shaketable serve`: a simulated cluster for several programs, until a signal ends it.

use super::{
    Refusal,
    args::ServeArguments,
    choose,
    interrupt::Interrupt,
    output::{self, Target},
    refuse,
};
use shaketable_reports::Conclusion;
use shaketable_session::{
    Host,
    address::Address,
    report::{ACCUSED, Report},
    server::{Server, Visitors},
    settings::{Environment, Settings},
};
use shaketable_sim::seed::Seed;
use std::{
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

/// The exit codes, for the end of the help page.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  it served until Ctrl-C, SIGTERM or SIGHUP
  2  bad usage, an address in use, a file that cannot be written (one line on stderr)
  3  the simulated cluster failed, or its judges object to what it did";

/// How often the command looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(50);

/// The thread of the cluster.
type Cluster = JoinHandle<Result<Option<Report>, String>>;

/// Serves until a signal, and prints the report of the run.
pub fn serve(arguments: &ServeArguments) -> Result<Conclusion, Refusal> {
    let settings = settings(arguments)?;
    let report = Target::check_named(arguments.report.as_deref())?;
    let cluster_file = Target::check_named(arguments.cluster_file.as_deref())?;
    let interrupt = Interrupt::listen()?;
    let (host, server) = open(arguments)?;
    let served = announce(arguments, &settings, server.address(), cluster_file.as_ref())
        .and_then(|()| simulate(&host, &settings))
        .inspect(|cluster| wait(&interrupt, cluster));
    // Also if it did not serve: a Unix socket is removed.
    let visitors = server.stop();
    host.stop();
    let (text, objection) = ended(served?, &visitors)?;
    report.map_or_else(|| output::print(&text), |file| file.write(&text))?;
    match objection {
        None => Ok(Conclusion::Passed),
        Some(objection) => Err(Refusal::Cluster(format!("{ACCUSED}{objection}"))),
    }
}

fn settings(arguments: &ServeArguments) -> Result<Settings, Refusal> {
    let environment = Environment {
        seed: Some(Seed(arguments.seed)),
        faults: Some(arguments.shaking.faults.unwrap_or_default()),
        without: choose::families(&arguments.shaking.without)?,
        topology: arguments.topology.clone().unwrap_or_default(),
        ..Environment::default()
    };
    Ok(environment.settings(None))
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

/// Waits for a signal, or for a cluster that ends by itself.
fn wait(interrupt: &Interrupt, cluster: &Cluster) {
    while !interrupt.is_set() && !cluster.is_finished() {
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

/// What is printed in the end, and the first objection of the cluster's judges.
fn ended(cluster: Cluster, visitors: &Visitors) -> Result<(String, Option<String>), Refusal> {
    match cluster.join() {
        Ok(Ok(Some(report))) => Ok((format!("{report}{visitors}"), report.objections.into_iter().next())),
        Ok(Ok(None)) => Ok((format!("nobody used the cluster\n{visitors}"), None)),
        Ok(Err(panic)) => Err(Refusal::Cluster(format!("the simulated cluster failed: {panic}"))),
        // The host catches the panics of the cluster.
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::args::Shaking;
    use shaketable_session::topology::Topology;

    #[test]
    fn what_is_asked_for_is_served() {
        let arguments = ServeArguments {
            seed: 7,
            shaking: Shaking::default(),
            topology: Some(Topology::parse("storage_servers=5,replicas=3").expect("a topology")),
            listen: "127.0.0.1:0".parse().expect("an address"),
            public: false,
            cluster_file: None,
            report: None,
        };
        let settings = settings(&arguments).unwrap_or_else(|_| panic!("nothing is wrong with it"));
        assert_eq!(settings.seed, Seed(7));
        assert_eq!(settings.topology.to_string(), "storage_servers=5,replicas=3");
    }
}
