//! Programs in C that share the cluster of a server: named by the cluster file or by a variable, killed, left
//! alone.

use super::build::Program;
use shaketable_session::{
    Call, ClusterName, Command, Host, Reply, Session,
    address::Address,
    remote::Remote,
    report::Report,
    server::{ConnectionStats, Server},
    settings::Environment,
};
use shaketable_sim::{faults::Profile, seed::Seed};
use shaketable_tx::{Isolation, KeySelector, RangeOption, StreamingMode};
use std::{
    collections::BTreeMap,
    io::Read,
    net::TcpListener,
    process::{Child, Stdio},
    sync::{Arc, mpsc::channel},
    thread::{self, JoinHandle},
    time::Duration,
};
use tempfile::TempDir;

/// A server in this process, and the cluster file of its programs.
struct Served {
    server: Server,
    host: Arc<Host>,
    cluster: JoinHandle<Result<Option<Report>, String>>,
    folder: TempDir,
}

impl Served {
    fn start(seed: u64, faults: Profile) -> Served {
        let environment =
            Environment { seed: Some(Seed(seed)), faults: Some(faults), ..Environment::default() };
        let host = Arc::new(Host::new().expect("a pipe"));
        let address: Address = "127.0.0.1:0".parse().expect("an address");
        let server = Server::start(&address, host.clone()).expect("a free port");
        let served = host.clone();
        let cluster = thread::spawn(move || served.run(|| environment.settings(None)));
        let folder = tempfile::tempdir().expect("a folder");
        let served = Served { server, host, cluster, folder };
        std::fs::write(served.file(), served.server.address().cluster_file()).expect("it can be written");
        served
    }

    fn file(&self) -> String {
        self.folder.path().join("fdb.cluster").to_str().expect("the path is text").to_owned()
    }

    fn stop(self) -> (ConnectionStats, Report) {
        let connections = self.server.stop();
        self.host.stop();
        let report = self.cluster.join().expect("it catches panics").expect("the cluster does not fail");
        (connections, report.expect("it ran"))
    }
}

#[expect(clippy::disallowed_methods, reason = "programs take real time")]
fn sleep(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds));
}

/// How many lines a program has printed before it was killed.
fn killed(mut child: Child) -> usize {
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    let mut printed = String::new();
    child.stdout.take().expect("it is piped").read_to_string(&mut printed).expect("it prints text");
    // The last line may be torn.
    printed.matches('\n').count()
}

#[test]
fn one_program_gets_from_a_server_what_the_seed_gives_it_alone() {
    let program = Program::compile("transfers");
    for seed in [1, 2] {
        let variables = [("SHAKETABLE_SEED", seed.to_string()), ("SHAKETABLE_FAULTS", "standard".to_owned())];
        let alone =
            program.run::<&str>(&[], &variables.each_ref().map(|(name, value)| (*name, value.as_str())));
        let served = Served::start(seed, Profile::Standard);
        assert_eq!(program.run(&[served.file()], &[]), alone);
        served.stop();
        let served = Served::start(seed, Profile::Standard);
        let address = served.server.address().to_string();
        assert_eq!(program.run::<&str>(&[], &[("SHAKETABLE_SERVER", &address)]), alone);
        let (connections, _) = served.stop();
        assert_eq!((connections.served, connections.now), (1, 0));
    }
}

/// The count of the items and their keys, read in one transaction.
fn items(server: &Address) -> (usize, Vec<String>) {
    let remote = Arc::new(Remote::new(server.clone()));
    let running = remote.clone();
    let network = thread::spawn(move || running.run(|reason| panic!("{reason}")));
    let database = remote.open(&ClusterName::default());
    let tx = remote.next_transaction();
    remote.command(database, Command::Create(tx));
    let ask = |call| {
        let (sender, answer) = channel();
        let completion = Box::new(move |reply| drop(sender.send(reply)));
        remote.want(remote.call(database, tx, call, completion));
        answer.recv().expect("each call is answered")
    };
    let range = RangeOption::new("item/", "item0").mode(StreamingMode::WantAll);
    let (count, keys) = loop {
        let count = ask(Call::Get("count".into(), Isolation::Serializable));
        let mut keys = Vec::new();
        let mut rest = Some(range.clone());
        let mut failed = count.clone().err();
        while let (Some(range), None) = (rest.take(), failed) {
            match ask(Call::GetRange(range.clone(), 1, Isolation::Serializable)) {
                Ok(Reply::Range(batch)) => {
                    keys.extend(batch.rows.iter().map(|row| row.key.clone()));
                    let last = keys.last().filter(|_| batch.more).cloned();
                    rest = last
                        .map(|last| RangeOption { begin: KeySelector::first_greater_than(last), ..range });
                }
                other => failed = other.err(),
            }
        }
        match failed {
            None => break (count, keys),
            Some(error) => assert_eq!(ask(Call::OnError(error)), Ok(Reply::Done)),
        }
    };
    remote.stop();
    network.join().expect("nothing is lost");
    let Ok(Reply::Value(Some(count))) = count else { panic!("no count: {count:?}") };
    let count = u64::from_le_bytes(count[..].try_into().expect("eight bytes"));
    let keys = keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect();
    (usize::try_from(count).expect("it is small"), keys)
}

/// Whatever the moment at which a program is killed: each item was counted once, and no acknowledged one is
/// lost.
#[test]
fn killed_programs_leave_a_correct_cluster() {
    let program = Program::compile("worker");
    let served = Served::start(7, Profile::Standard);
    let file = served.file();
    let mut acknowledged = BTreeMap::new();
    for round in 0..10_u64 {
        let names: Vec<_> = (0..4).map(|n| format!("{round}-{n}")).collect();
        let children: Vec<_> = names
            .iter()
            .map(|name| {
                program.command(&[&file, name], &[]).stdout(Stdio::piped()).spawn().expect("it starts")
            })
            .collect();
        for (name, child) in names.into_iter().zip(children) {
            sleep(20 + 17 * round % 50);
            acknowledged.insert(name, killed(child));
        }
    }
    while served.server.connections().now > 0 {
        sleep(5);
    }
    let (count, items) = items(served.server.address());
    let mut there: BTreeMap<&str, usize> = BTreeMap::new();
    items.iter().for_each(|key| *there.entry(key.split('/').nth(1).expect("a name")).or_default() += 1);
    assert_eq!(there.values().sum::<usize>(), count, "each item was counted once");
    for (name, acknowledged) in &acknowledged {
        let there = there.get(name.as_str()).copied().unwrap_or(0);
        assert!((*acknowledged..=acknowledged + 1).contains(&there), "{name}: {there} of {acknowledged}");
    }
    let sum: usize = acknowledged.values().sum();
    assert!(sum > 40, "{sum} items");
    let (connections, report) = served.stop();
    assert!((20..=41).contains(&connections.served) && connections.refused == 0, "{connections}");
    assert!(!report.end.faults.is_empty() && report.attempts > sum, "{report}");
}

/// A worker whose server goes away, or was never there, ends with one line and an error that ends its retry
/// loop.
#[test]
fn without_a_server_a_program_ends_with_one_line() {
    let program = Program::compile("worker");
    let ended = |child: Child| {
        let output = child.wait_with_output().expect("it ends");
        (output.status.code(), String::from_utf8(output.stderr).expect("it prints text"))
    };
    let start = |file: &str| {
        let mut command = program.command(&[file, "a"], &[]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let served = Served::start(1, Profile::Calm);
    let address = served.server.address().to_string();
    let mut child = start(&served.file());
    let mut first = [0; 2];
    child.stdout.as_mut().expect("it is piped").read_exact(&mut first).expect("it adds an item");
    assert_eq!(&first, b"0\n");
    served.stop();
    let (code, errors) = ended(child);
    let said = format!("shaketable: the server at {address} has closed the connection: the server has ended");
    let lines: Vec<_> = errors.lines().collect();
    assert_eq!((code, lines[0]), (Some(3), said.as_str()), "{errors}");
    assert!(lines.len() == 2 && lines[1].ends_with(": transaction_timed_out (1031)"), "{errors}");

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("fdb.cluster");
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("it has one");
    std::fs::write(&file, format!("shaketable:serve@{free}")).expect("it can be written");
    let (code, errors) = ended(start(file.to_str().expect("the path is text")));
    let lines: Vec<_> = errors.lines().collect();
    assert!(lines[0].starts_with(&format!("shaketable: no server at {free}: ")), "{errors}");
    assert_eq!((code, lines[1..].to_vec()), (Some(3), vec!["item 0: transaction_timed_out (1031)"]));
}

#[test]
fn an_address_that_is_wrong_is_an_error_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("fdb.cluster");
    let program = Program::compile("worker");
    for (connection, why) in [
        ("shaketable:serve@nowhere", "after serve@ comes the address of a server, HOST:PORT or unix:PATH"),
        ("shaketable:x7@127.0.0.1:1", "after shaketable: comes a seed or serve, an @ and an address"),
    ] {
        std::fs::write(&file, connection).expect("it can be written");
        let output = program.output(&[file.to_str().expect("the path is text"), "a"], &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        let said = format!("shaketable: the cluster file has \"{connection}\": {why}\n");
        assert!(errors.starts_with(&said) && errors.contains("is 2104 and not 0"), "{errors}");
        assert!(!output.status.success());
    }
    let output = program.output(&["", "a"], &[("SHAKETABLE_SERVER", "nowhere")]);
    let errors = String::from_utf8_lossy(&output.stderr);
    let said = "shaketable: SHAKETABLE_SERVER: an address is HOST:PORT or unix:PATH: nowhere\n";
    assert!(!output.status.success() && errors.starts_with(said), "{errors}");
}

#[test]
fn settings_that_have_no_effect_are_named() {
    let served = Served::start(1, Profile::Calm);
    let output = Program::compile("worker").output(&[&served.file(), "a", "2"], &[("SHAKETABLE_SEED", "5")]);
    // The file is found as FoundationDB finds it.
    let by_variable =
        Program::compile("worker").output(&["", "b", "1"], &[("FDB_CLUSTER_FILE", &served.file())]);
    assert_eq!((by_variable.status.code(), served.server.connections().served), (Some(0), 2));
    let said = format!(
        "shaketable: the server at {} has its own settings: those here have no effect\n",
        served.server.address()
    );
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr)), (Some(0), said.into()));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n1\n");
    served.stop();
}
