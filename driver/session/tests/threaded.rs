//! Sessions with a cluster on another thread: virtual time, the end, and a simulator that fails.

use bytes::Bytes;
use shaketable_session::{
    Action, Call, ClusterName, Command, DatabaseId, Host, Reply, Session, TransactionId,
    report::Report,
    settings::{Environment, Settings},
};
use shaketable_sim::{config::ClusterBug, faults::Profile, seed::Seed};
use shaketable_tx::{Error, Isolation, RangeOption, Result};
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::Ordering,
        mpsc::{Receiver, channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// A test's turn. A session asks whether the threads of this process rest: those of another test must not
/// count.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A session, its thread and a database.
struct Open {
    host: Arc<Host>,
    thread: JoinHandle<Result<Option<Report>, String>>,
    database: DatabaseId,
}

fn open() -> Open {
    open_with(Environment::default().settings(None))
}

fn open_with(settings: Settings) -> Open {
    let host = Arc::new(Host::new().expect("a pipe"));
    let served = host.clone();
    let thread = thread::spawn(move || served.run(|| settings));
    let database = host.open(&ClusterName::default());
    Open { host, thread, database }
}

impl Open {
    fn begin(&self) -> TransactionId {
        let id = self.host.next_transaction();
        self.host.command(self.database, Command::Create(id));
        id
    }

    fn act(&self, id: TransactionId, action: Action) {
        self.host.command(self.database, Command::Transaction(id, action));
    }

    /// Calls, and waits for the answer if it is wanted.
    fn call(&self, id: TransactionId, call: Call, is_wanted: bool) -> Receiver<Result<Reply>> {
        let (sender, answer) = channel();
        let completion = Box::new(move |reply| sender.send(reply).expect("it is waited for"));
        let call = self.host.call(self.database, id, call, completion);
        if is_wanted {
            self.host.want(call);
        }
        answer
    }

    fn ask(&self, id: TransactionId, call: Call) -> Result<Reply> {
        self.call(id, call, true).recv().expect("each call is answered")
    }

    /// The version of a commit: versions are microseconds of virtual time.
    fn version(&self) -> i64 {
        let tx = self.begin();
        self.act(tx, Action::Clear(Bytes::from_static(b"clock")));
        match self.ask(tx, Call::Commit) {
            Ok(Reply::Committed(version)) => version,
            other => panic!("no version: {other:?}"),
        }
    }

    fn stop(self) -> Result<Option<Report>, String> {
        self.host.stop();
        self.thread.join().expect("it catches panics")
    }
}

#[expect(clippy::disallowed_methods, reason = "what time passes outside is the point")]
fn sleep_briefly() {
    thread::sleep(Duration::from_micros(10));
}

#[expect(clippy::disallowed_methods, reason = "what time passes outside is the point")]
fn sleep(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds));
}

#[test]
fn time_stands_still_while_nothing_waits_and_keeps_pace_while_a_watch_does() {
    let _turn = turn();
    let open = open();
    let first = open.version();
    sleep(300);
    let second = open.version();
    assert!((1..100_000).contains(&(second - first)), "{}", second - first);
    let tx = open.begin();
    let watch = open.call(tx, Call::Watch(Bytes::from_static(b"k")), true);
    assert_eq!(open.ask(tx, Call::Commit), Ok(Reply::Committed(-1)));
    let before = open.version();
    sleep(300);
    let passed = open.version() - before;
    assert!((250_000..5_000_000).contains(&passed), "{passed}");
    let writer = open.begin();
    open.act(writer, Action::Set(Bytes::from_static(b"k"), Bytes::from_static(b"v")));
    assert!(matches!(open.ask(writer, Call::Commit), Ok(Reply::Committed(1..))));
    assert_eq!(watch.recv(), Ok(Ok(Reply::Done)));
    assert!(matches!(open.stop(), Ok(Some(_))));
}

/// A thread looks, another one writes, and the first one writes by what it had seen. A replay knows the
/// threads.
#[test]
fn the_report_says_which_thread_decided_by_what_was_no_longer_true() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal");
    let open = open_with(Settings { journal: Some(path.clone()), ..Environment::default().settings(None) });
    let key = || Bytes::from_static(b"k");
    let set = |value: &'static [u8]| {
        let tx = open.begin();
        open.act(tx, Action::Set(key(), Bytes::from_static(value)));
        assert!(matches!(open.ask(tx, Call::Commit), Ok(Reply::Committed(1..))));
    };
    set(b"1");
    let look = open.begin();
    assert!(matches!(open.ask(look, Call::Get(key(), Isolation::Serializable)), Ok(Reply::Value(Some(_)))));
    thread::scope(|scope| scope.spawn(|| set(b"2")).join()).expect("it commits");
    set(b"3");
    let report = open.stop().expect("no panic").expect("something was asked").to_string();
    for said in [
        "\n  attempt 3 of thread 0 set \"k\" = \"3\" at ",
        "\n    attempt 1 of thread 0 had read \"1\" at ",
        "; then attempt 2 of thread 1 set it = \"2\" at ",
    ] {
        assert!(report.contains(said), "{said}: {report}");
    }
    let journal = std::fs::read(path).expect("there is a journal");
    assert_eq!(Host::replay(journal).expect("a pipe"), Some(report));
}

/// Between the two watches nothing waits, and there is no step.
#[test]
fn a_watch_that_is_given_up_for_another_is_performed_again() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal");
    let open = open_with(Settings { journal: Some(path.clone()), ..Environment::default().settings(None) });
    let watch = |key: &'static [u8]| {
        let tx = open.begin();
        let watch = Call::Watch(Bytes::from_static(key));
        let call = open.host.call(open.database, tx, watch, Box::new(drop));
        assert_eq!(open.ask(tx, Call::Commit), Ok(Reply::Committed(-1)));
        call
    };
    let (first, second) = (watch(b"first"), watch(b"second"));
    open.host.want(first);
    sleep(20);
    open.host.cancel(first);
    sleep(20);
    open.host.want(second);
    sleep(20);
    open.version();
    let report = open.stop().expect("the simulator does not fail").expect("it ran").to_string();
    let journal = std::fs::read(path).expect("there is a journal");
    assert_eq!(Host::replay(journal).expect("a pipe"), Some(report));
}

/// As a binding does that asks whether an answer is there, and then sets a callback for it.
#[test]
fn a_callback_that_is_set_while_the_answer_is_on_its_way_changes_nothing() {
    let _turn = turn();
    let run = |spins: u32| {
        let open = open();
        open.version();
        let tx = open.begin();
        let (sender, answer) = channel();
        let completion = Box::new(move |reply| sender.send(reply).expect("it is waited for"));
        open.act(tx, Action::Clear(Bytes::from_static(b"k")));
        let call = open.host.call(open.database, tx, Call::Commit, completion);
        open.host.want(call);
        for _ in 0..spins {
            std::hint::spin_loop();
        }
        open.host.expect(call);
        answer.recv().expect("each call is answered").expect("the cluster is calm");
        open.version();
        open.stop().expect("the simulator does not fail").expect("it ran").to_string()
    };
    let at_once = run(0);
    for spins in 1..40 {
        assert_eq!(run(spins * 200), at_once, "after {spins} times 200 turns");
    }
}

/// A collector of garbage destroys transactions whenever it likes.
#[test]
fn when_a_transaction_is_destroyed_changes_nothing() {
    let _turn = turn();
    let reports: Vec<_> = (0..6_u64)
        .map(|late| {
            let standard = Environment {
                seed: Some(Seed(7)),
                faults: Some(Profile::Standard),
                ..Environment::default()
            };
            let open = open_with(standard.settings(None));
            for n in 0..60_u64 {
                let old = open.begin();
                let _ = open.ask(old, Call::GetReadVersion);
                let tx = open.begin();
                open.act(tx, Action::Set(Bytes::from_static(b"k"), Bytes::copy_from_slice(&n.to_le_bytes())));
                let commit = open.call(tx, Call::Commit, true);
                // While virtual time goes on, if it is not answered already.
                (0..(n * 7 + late * 11) % 50).for_each(|_| sleep_briefly());
                open.act(old, Action::Destroy);
                let committed = commit.recv().expect("each call is answered");
                assert!(!matches!(committed, Ok(Reply::Committed(..=0))));
            }
            open.stop().expect("the simulator does not fail").expect("it ran").to_string()
        })
        .collect();
    reports.iter().for_each(|report| assert_eq!(*report, reports[0]));
}

#[test]
fn a_call_that_nothing_waits_for_is_made_in_its_order_all_the_same() {
    let _turn = turn();
    let open = open();
    let writer = open.begin();
    open.act(writer, Action::Set(Bytes::from_static(b"k"), Bytes::from_static(b"v")));
    let committed = open.call(writer, Call::Commit, false);
    sleep(50);
    assert!(committed.try_recv().is_err(), "nothing waits, so that no time passes");
    while committed.try_recv().is_err() {
        open.version();
    }
    let key = Call::Get(Bytes::from_static(b"k"), shaketable_tx::Isolation::Serializable);
    assert_eq!(open.ask(open.begin(), key), Ok(Reply::Value(Some(Bytes::from_static(b"v")))));
    assert!(matches!(open.stop(), Ok(Some(_))));
}

#[test]
fn the_end_answers_what_is_outstanding_and_what_comes_later() {
    let _turn = turn();
    let open = open();
    let tx = open.begin();
    let watch = open.call(tx, Call::Watch(Bytes::from_static(b"k")), false);
    open.version();
    let host = open.host.clone();
    let (database, cancelled) = (open.database, Ok(Err(Error::OPERATION_CANCELLED)));
    assert!(matches!(open.stop(), Ok(Some(_))));
    assert_eq!(watch.recv(), cancelled);
    let (sender, answer) = channel();
    host.call(database, tx, Call::GetReadVersion, Box::new(move |reply| drop(sender.send(reply))));
    assert_eq!(answer.recv(), cancelled);
}

#[test]
fn a_session_without_messages_has_no_cluster() {
    let _turn = turn();
    let host = Host::new().expect("a pipe");
    host.stop();
    assert_eq!(host.run(|| Environment::default().settings(None)), Ok(None));
}

#[test]
fn many_commands_at_once_are_no_endless_loop() {
    let _turn = turn();
    let open = open();
    for (commands, keys) in [(1_200_000, 1), (250_000, 50_000_u32)] {
        let tx = open.begin();
        for n in 0..commands {
            open.act(tx, Action::Clear(Bytes::copy_from_slice(&(n % keys).to_be_bytes())));
        }
        assert!(matches!(open.ask(tx, Call::Commit), Ok(Reply::Committed(1..))));
    }
    assert!(matches!(open.stop(), Ok(Some(report)) if report.objections.is_empty()));
}

/// The real client sends the versionstamp first.
#[test]
fn a_versionstamp_is_answered_before_its_commit() {
    let _turn = turn();
    let open = open();
    let (told, order) = channel();
    for n in 0..200_u32 {
        let tx = open.begin();
        open.act(tx, Action::Set(Bytes::from_static(b"k"), Bytes::copy_from_slice(&n.to_be_bytes())));
        for (name, call) in [("stamp", Call::GetVersionstamp), ("commit", Call::Commit)] {
            let told = told.clone();
            let completion =
                Box::new(move |reply: Result<Reply>| told.send((name, reply.is_ok())).expect("waits"));
            let call = open.host.call(open.database, tx, call, completion);
            open.host.want(call);
        }
        let answers = [order.recv().expect("an answer"), order.recv().expect("an answer")];
        assert_eq!(answers, [("stamp", true), ("commit", true)], "{n}");
    }
    assert!(matches!(open.stop(), Ok(Some(report)) if report.objections.is_empty()));
}

/// All databases of a process read what one of them has committed, also from the cache of read versions.
#[test]
fn a_commit_waits_for_the_reads_that_were_called_before_it() {
    let _turn = turn();
    let open = open();
    for n in 0..100 {
        let (key, value) = (Bytes::from(format!("key {n}")), Bytes::from_static(b"v"));
        let (reader, writer) = (open.begin(), open.begin());
        assert!(matches!(open.ask(reader, Call::GetReadVersion), Ok(Reply::Number(_))));
        open.act(writer, Action::Set(key.clone(), value.clone()));
        assert!(matches!(open.ask(writer, Call::Commit), Ok(Reply::Committed(1..))));
        open.act(reader, Action::Set(Bytes::from_static(b"other"), value));
        let read = open.call(reader, Call::Get(key, Isolation::Serializable), false);
        assert_eq!(open.ask(reader, Call::Commit), Err(Error::NOT_COMMITTED), "{n}");
        assert_eq!(read.recv(), Ok(Ok(Reply::Value(None))), "{n}");
    }
    assert!(matches!(open.stop(), Ok(Some(_))));
}

#[test]
fn databases_of_a_process_share_the_cached_read_version() {
    let _turn = turn();
    let mut open = open();
    let (one, two) = (open.database, open.host.open(&ClusterName::default()));
    for n in 0..50_u32 {
        let value = Bytes::copy_from_slice(&n.to_be_bytes());
        open.database = one;
        let tx = open.begin();
        open.act(tx, Action::Set(Bytes::from_static(b"k"), value.clone()));
        assert!(matches!(open.ask(tx, Call::Commit), Ok(Reply::Committed(1..))));
        open.database = two;
        let tx = open.begin();
        open.act(tx, Action::SetOption { code: 1101, value: None });
        let read = open.ask(tx, Call::Get(Bytes::from_static(b"k"), Isolation::Snapshot));
        assert_eq!(read, Ok(Reply::Value(Some(value))), "{n}");
    }
    assert!(matches!(open.stop(), Ok(Some(report)) if report.objections.is_empty()));
}

/// The first name is that of the first cluster, and so is none. What is accused is the cluster that was used.
#[test]
fn another_name_is_another_cluster_with_judges_of_its_own() {
    let _turn = turn();
    let name = |text: &str| ClusterName(text.to_owned());
    for (names, place) in [(["", "a:1"], 0), (["a:1", ""], 0), (["a:1", "b:2"], 1)] {
        let environment = Environment { bug: Some(ClusterBug::StaleReadVersion), ..Environment::default() };
        let mut open = open_with(environment.settings(None));
        let [first, used] = names.map(|text| open.host.open(&name(text)));
        open.database = used;
        let tx = open.begin();
        for n in 0..200_i64 {
            let read = open.ask(tx, Call::Get(Bytes::from_static(b"k"), Isolation::Snapshot));
            assert!(read.is_ok(), "{n}");
            open.act(tx, Action::Set(Bytes::from_static(b"k"), Bytes::copy_from_slice(&n.to_le_bytes())));
            assert!(matches!(open.ask(tx, Call::Commit), Ok(Reply::Committed(1..))));
            open.act(tx, Action::Reset);
        }
        open.database = first;
        let tx = open.begin();
        let read = open.ask(tx, Call::Get(Bytes::from_static(b"k"), Isolation::Serializable));
        assert_eq!(matches!(read, Ok(Reply::Value(Some(_)))), place == 0, "{names:?}");
        let report = open.stop().expect("the simulator does not fail").expect("it ran");
        let accused: Vec<_> = report.clusters().map(|(_, report)| report.objections.is_empty()).collect();
        assert_eq!(accused.iter().position(|is_clean| !is_clean), Some(place), "{names:?}: {report}");
    }
}

#[test]
fn a_recovery_is_waited_for_whatever_the_faults_and_the_defaults_of_the_database() {
    let _turn = turn();
    for seed in 1..=4 {
        let storm =
            Environment { seed: Some(Seed(seed)), faults: Some(Profile::Storm), ..Environment::default() };
        let open = open_with(storm.settings(None));
        // A timeout of a millisecond, and no retries.
        for (code, value) in [(500, 1_i64), (501, 0)] {
            let value = Some(Bytes::copy_from_slice(&value.to_le_bytes()));
            open.host.command(open.database, Command::SetDatabaseOption { code, value });
        }
        for _ in 0..25 {
            let tx = open.begin();
            assert_eq!(open.ask(tx, Call::Recover), Ok(Reply::Done), "seed {seed}");
        }
        assert!(matches!(open.stop(), Ok(Some(report)) if report.objections.is_empty()));
    }
}

/// The report of a run of increments in turn, whose history may be this large.
fn counted(bug: Option<ClusterBug>, faults: Profile, increments: usize, memory: usize) -> Report {
    let environment =
        Environment { seed: Some(Seed(2)), faults: Some(faults), bug, ..Environment::default() };
    let open = open_with(Settings { memory, ..environment.settings(None) });
    let tx = open.begin();
    for n in 0..increments {
        let key = Bytes::from(format!("key{}", n % 50));
        let read = open.ask(tx, Call::Get(key.clone(), Isolation::Serializable));
        open.act(tx, Action::Set(key, Bytes::from(n.to_string())));
        let done = read.and_then(|_| open.ask(tx, Call::Commit));
        if !matches!(done, Err(error) if open.ask(tx, Call::OnError(error)).is_ok()) {
            open.act(tx, Action::Reset);
        }
    }
    let report = open.stop().expect("the simulator does not fail").expect("it ran");
    Report { settings: environment.settings(None), ..report }
}

/// Whether the history is judged as a whole or in parts, the verdict and the report are the same.
#[test]
fn a_history_that_is_judged_in_parts_gives_the_same_report() {
    let _turn = turn();
    let whole = counted(None, Profile::Standard, 8_000, usize::MAX);
    assert_eq!(counted(None, Profile::Standard, 8_000, 4_000_000), whole);
    assert_eq!((whole.objections.len(), whole.late), (0, 0), "{whole}");
    for bug in [ClusterBug::StaleReadVersion, ClusterBug::StorageSkipsVersion, ClusterBug::LogAnswersEarly] {
        let whole = counted(Some(bug), Profile::Standard, 8_000, usize::MAX);
        assert!(!whole.objections.is_empty(), "{}", bug.name());
        assert_eq!(counted(Some(bug), Profile::Standard, 8_000, 4_000_000), whole);
    }
}

/// If there is too little room to wait until everything is final, what is not judged is counted.
#[test]
fn what_ends_after_its_history_was_forgotten_is_counted() {
    let _turn = turn();
    let report = counted(None, Profile::Storm, 1_500, 100_000);
    assert_eq!(report.objections, [""; 0]);
    let open = open_with(Settings { memory: 100_000, ..Environment::default().settings(None) });
    let slow = open.begin();
    let read = Call::Get(Bytes::from_static(b"k"), Isolation::Serializable);
    assert_eq!(open.ask(slow, read), Ok(Reply::Value(None)));
    (0..1_500).for_each(|_| assert!(open.version() > 0));
    open.act(slow, Action::Reset);
    open.version();
    let report = open.stop().expect("the simulator does not fail").expect("it ran");
    assert_eq!(report.late, 1, "{report}");
    assert!(report.to_string().contains("\nnot judged in full: 1 that ended after"), "{report}");
}

/// A row of a transaction that is long.
fn row(number: usize) -> Bytes {
    Bytes::from(format!("row {number:03}"))
}

/// Lets virtual time pass, as a program that waits for something else does.
fn pause(open: &Open, nanoseconds: u64) {
    if nanoseconds == 0 {
        return;
    }
    let (sender, woken) = channel::<()>();
    let until = open.host.now().load(Ordering::SeqCst) + nanoseconds;
    open.host.sleep(until, false, || Box::new(sender)).expect("the cluster runs");
    woken.recv().expect_err("a sleeper is woken by its drop");
}

/// Reads the rows in one transaction, one to three with a call, with a pause after each.
fn read_rows(open: &Open, tx: TransactionId, rows: usize, between: u64) -> Result<()> {
    let mut read = 0;
    while read < rows {
        let rest = RangeOption::new(row(read), row(rows)).limit(1 + read % 3);
        match open.ask(tx, Call::GetRange(rest, 1, Isolation::Serializable))? {
            Reply::Range(batch) => read += batch.rows.len(),
            other => panic!("no rows: {other:?}"),
        }
        pause(open, between);
    }
    open.ask(tx, Call::Commit).map(drop)
}

/// How many seconds a program takes that writes rows in one transaction and reads them in another.
fn seconds_of_rows(seed: u64, rows: usize, between: u64, most: u64) -> u64 {
    let storm =
        Environment { seed: Some(Seed(seed)), faults: Some(Profile::Storm), ..Environment::default() };
    let open = open_with(storm.settings(None));
    let shown = open.host.now();
    let now = || shown.load(Ordering::SeqCst) / 1_000_000_000;
    let retried = |body: &dyn Fn(TransactionId) -> Result<()>| {
        let tx = open.begin();
        while let Err(error) = body(tx)
            && now() <= most
        {
            open.ask(tx, Call::OnError(error)).expect("it can be retried");
        }
    };
    retried(&|tx| {
        (0..rows).for_each(|number| open.act(tx, Action::Set(row(number), Bytes::from_static(b"v"))));
        open.ask(tx, Call::Commit).map(drop)
    });
    retried(&|tx| read_rows(&open, tx, rows, between));
    let ended = now();
    assert!(matches!(open.stop(), Ok(Some(report)) if report.objections.is_empty()));
    ended
}

/// Hundreds of calls, each of which may end with an error by the rates of a storm, hardly ever all succeed.
#[test]
fn a_transaction_of_hundreds_of_reads_comes_through_a_storm() {
    let _turn = turn();
    for seed in 0..50 {
        let seconds = seconds_of_rows(seed, 700, 0, 200);
        assert!(seconds <= 200, "seed {seed} takes {seconds} s");
    }
}

/// A read version lives for five seconds. A transaction that takes nearly all of them has to begin in time.
#[test]
fn a_transaction_that_takes_seconds_comes_through_a_storm() {
    const MILLISECOND: u64 = 1_000_000;
    let _turn = turn();
    for seed in 0..10 {
        let seconds = seconds_of_rows(seed, 140, 46 * MILLISECOND, 260);
        assert!(seconds <= 260, "seed {seed} takes {seconds} s");
    }
}
