//! A server on a port of its own, and programs that are connected to it.

use bytes::Bytes;
use shaketable_session::{
    Action, Call, ClusterName, Command, DatabaseId, Host, Reply, Session, TransactionId,
    address::Address,
    remote::Remote,
    report::Report,
    server::{ConnectionStats, Server},
    settings::{Environment, Settings},
};
use shaketable_sim::{faults::Profile, seed::Seed};
use shaketable_tx::{Error, Isolation, Result};
use std::{
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// A server and the thread of its cluster.
pub struct Served {
    pub server: Server,
    host: Arc<Host>,
    cluster: JoinHandle<Result<Option<Report>, String>>,
}

pub fn settings(seed: u64, faults: Profile) -> Settings {
    Environment { seed: Some(Seed(seed)), faults: Some(faults), ..Environment::default() }.settings(None)
}

/// A server at any free port of loopback.
pub fn serve(settings: Settings) -> Served {
    serve_at(&"127.0.0.1:0".parse().expect("an address"), settings)
}

pub fn serve_at(address: &Address, settings: Settings) -> Served {
    let host = Arc::new(Host::new().expect("a pipe"));
    let server = Server::start(address, host.clone()).expect("a free address");
    let served = host.clone();
    let cluster = thread::spawn(move || served.run(|| settings));
    Served { server, host, cluster }
}

impl Served {
    pub fn address(&self) -> Address {
        self.server.address().clone()
    }

    /// A program that is connected.
    pub fn program(&self) -> Program {
        Program::connect(self.address())
    }

    /// Ends the server, then its cluster.
    pub fn stop(self) -> (ConnectionStats, Option<Report>) {
        let connections = self.server.stop();
        self.host.stop();
        (connections, self.cluster.join().expect("it catches panics").expect("the cluster does not fail"))
    }
}

/// A program with a remote session and its network thread.
pub struct Program {
    pub remote: Arc<Remote>,
    pub database: DatabaseId,
    network: JoinHandle<()>,
    /// What the network thread says when the session ends by itself.
    said: Mutex<Receiver<String>>,
}

impl Program {
    pub fn connect(address: Address) -> Program {
        let remote = Arc::new(Remote::new(address));
        let running = remote.clone();
        let (sender, said) = channel();
        let network = thread::spawn(move || {
            running.run(|line| sender.send(line.to_owned()).expect("the program waits for this thread"));
        });
        let database = remote.open(&ClusterName::default());
        Program { remote, database, network, said: Mutex::new(said) }
    }

    pub fn begin(&self) -> TransactionId {
        let id = self.remote.next_transaction();
        self.remote.command(self.database, Command::Create(id));
        id
    }

    pub fn act(&self, id: TransactionId, action: Action) {
        self.remote.command(self.database, Command::Transaction(id, action));
    }

    /// Calls, and waits for the answer if it is wanted.
    pub fn call(&self, id: TransactionId, call: Call, is_wanted: bool) -> Receiver<Result<Reply>> {
        let (sender, answer) = channel();
        let completion = Box::new(move |reply| drop(sender.send(reply)));
        let call = self.remote.call(self.database, id, call, completion);
        if is_wanted {
            self.remote.want(call);
        }
        answer
    }

    pub fn ask(&self, id: TransactionId, call: Call) -> Result<Reply> {
        let answer = self.call(id, call, true);
        answer.recv_timeout(Duration::from_secs(60)).expect("each call is answered")
    }

    /// The value of a key, as a number; 0 if it has none.
    pub fn number(&self, id: TransactionId, key: &str) -> Result<i64> {
        let key = Bytes::copy_from_slice(key.as_bytes());
        match self.ask(id, Call::Get(key, Isolation::Serializable))? {
            Reply::Value(Some(value)) => Ok(i64::from_le_bytes(value[..].try_into().expect("eight bytes"))),
            Reply::Value(None) => Ok(0),
            other => panic!("no value: {other:?}"),
        }
    }

    pub fn set(&self, id: TransactionId, key: &str, number: i64) {
        let key = Bytes::copy_from_slice(key.as_bytes());
        self.act(id, Action::Set(key, Bytes::copy_from_slice(&number.to_le_bytes())));
    }

    /// Runs a transaction in a retry loop that takes an unknown result for a failure.
    pub fn transact<T>(&self, body: impl Fn(TransactionId) -> Result<T>) -> Result<T> {
        let id = self.begin();
        loop {
            let done = body(id).and_then(|value| self.ask(id, Call::Commit).map(|_| value));
            match done {
                Ok(value) => {
                    self.act(id, Action::Destroy);
                    return Ok(value);
                }
                Err(error) => self.ask(id, Call::OnError(error))?,
            };
        }
    }

    /// Sets a key in a transaction of its own.
    pub fn put(&self, key: &str, number: i64) -> Result<()> {
        self.transact(|tx| {
            self.set(tx, key, number);
            Ok(())
        })
    }

    /// Ends the program in an orderly way.
    pub fn stop(self) {
        self.remote.stop();
        self.network.join().expect("no panic");
        assert_eq!(self.said.into_inner().expect("no panic").recv().ok(), None, "it was stopped");
    }

    /// Waits until the session has ended by itself, and returns why.
    pub fn ended(self) -> String {
        let said = self.said.into_inner().expect("no panic");
        let said = said.recv_timeout(Duration::from_secs(60)).expect("it ends by itself");
        self.remote.stop();
        self.network.join().expect("no panic");
        said
    }
}

/// The error of everything that a program asks once its server is gone.
pub const GONE: Error = Error::TRANSACTION_TIMED_OUT;

#[expect(clippy::disallowed_methods, reason = "what time passes outside is the point")]
pub fn sleep(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds));
}

/// Whether this process runs one test alone, so that its memory is that of the test. If not, runs the test
/// so.
pub fn is_alone(test: &str) -> bool {
    const ALONE: &str = "SHAKETABLE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let this = std::env::current_exe().expect("this program has a path");
    let run =
        std::process::Command::new(this).args([test, "--exact", "--nocapture"]).env(ALONE, "1").output();
    let run = run.expect("it runs");
    let printed = String::from_utf8_lossy(&run.stdout);
    assert!(
        run.status.success() && printed.contains("1 passed"),
        "{printed}{}",
        String::from_utf8_lossy(&run.stderr)
    );
    false
}

/// The memory that this process uses now, in bytes.
pub fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says it");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("Linux says it");
    let kilobytes: u64 = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    kilobytes << 10
}
