//! Programs that die: what they leave in the cluster.

use super::support::{Program, serve, settings, sleep};
use bytes::Bytes;
use shaketable_session::{
    Action, Call, CallId, ClusterName, Command, DatabaseId, Reply, TransactionId,
    protocol::{Request, encode, greeting::Greeting},
};
use shaketable_sim::faults::{Family, Profile};
use shaketable_tx::Error;
use std::{
    io::{Read, Write},
    net::TcpStream,
};

const KEY: Bytes = Bytes::from_static(b"k");

/// A program of which only the socket is left: it sends requests and reads no answer.
pub struct Doomed(TcpStream);

impl Doomed {
    pub fn connect(program: &Program) -> Doomed {
        let mut stream = TcpStream::connect(program.remote.address().to_string()).expect("a server");
        let Greeting { version, longest, .. } = Greeting::CLIENT;
        let greeting = [&b"shaketable"[..], &version.to_le_bytes(), &longest.to_le_bytes()].concat();
        stream.write_all(&greeting).expect("it listens");
        stream.read_exact(&mut [0; 16]).expect("it greets");
        let mut doomed = Doomed(stream);
        doomed.send(&Request::Open(DatabaseId(0), ClusterName::default()));
        doomed
    }

    pub fn send(&mut self, request: &Request) {
        assert!(self.try_send(request), "it listens");
    }

    /// Sends a request, unless the server has closed the connection.
    pub fn try_send(&mut self, request: &Request) -> bool {
        let body = encode(request).expect("an encoding");
        let length = u32::try_from(body.len()).expect("it is short").to_le_bytes();
        self.0.write_all(&[&length[..], &body].concat()).is_ok()
    }

    /// Begins a transaction that adds 1 to the key, and commits it.
    fn add(&mut self, number: u64, is_wanted: bool) {
        let (db, tx) = (DatabaseId(0), TransactionId(number));
        let operand = Bytes::copy_from_slice(&1_i64.to_le_bytes());
        self.send(&Request::Command(db, Command::Create(tx)));
        let add = Action::Atomic { key: KEY, operand, code: 2 };
        self.send(&Request::Command(db, Command::Transaction(tx, add)));
        self.send(&Request::Call(CallId(number), db, tx, Call::Commit));
        if is_wanted {
            self.send(&Request::Want(CallId(number)));
        }
    }
}

/// Waits until nobody but `left` programs are connected.
fn wait_for_deaths(served: &super::support::Served, left: usize) {
    while served.server.connections().now > left {
        sleep(5);
    }
}

#[test]
fn what_was_not_committed_is_gone_and_a_commit_that_was_sent_is_there_once_or_not() {
    let served = serve(settings(1, Profile::Standard));
    let witness = served.program();
    let count = || {
        loop {
            match witness.transact(|tx| witness.number(tx, "k")) {
                Ok(count) => return count,
                // The contract allows errors that cannot be retried.
                Err(error) => assert!(!error.is_retryable(), "{error}"),
            }
        }
    };
    // What the commit of a program takes that lives, about, in milliseconds.
    let commit = loop {
        let (before, mut living) = (count(), Doomed::connect(&witness));
        living.add(1, true);
        let is_there = |_: &u64| {
            sleep(1);
            count() > before
        };
        if let Some(waits) = (0..500).find(is_there) {
            break 2 * (waits + 1);
        }
    };
    wait_for_deaths(&served, 1);
    let first = count();
    let mut before = first;
    for round in 0..60_u64 {
        let mut doomed = Doomed::connect(&witness);
        if round % 3 == 0 {
            // Written and not committed.
            let (db, tx) = (DatabaseId(0), TransactionId(1));
            doomed.send(&Request::Command(db, Command::Create(tx)));
            doomed.send(&Request::Command(db, Command::Transaction(tx, Action::Set(KEY, KEY))));
            doomed.send(&Request::Call(CallId(1), db, tx, Call::GetReadVersion));
            doomed.send(&Request::Want(CallId(1)));
            sleep(round % 5);
        } else {
            doomed.add(1, true);
            // From nothing to half as long again as a commit takes.
            sleep(round % 4 * commit / 2);
        }
        drop(doomed);
        wait_for_deaths(&served, 1);
        // A commit that is under way may land later. What was written and not committed is no number.
        let after = count();
        assert!(after >= before, "round {round}: {after} after {before}");
        before = after;
    }
    let landed = before - first;
    assert!((1..=40).contains(&landed), "each of 40 commits is there once or not: {landed}");
    witness.stop();
    let (connections, report) = served.stop();
    assert!(connections.served > 61 && connections.refused == 0, "{connections:?}");
    let report = report.expect("it ran");
    assert!(report.end.faults.contains_key(&Family::ClientDeath), "{report}");
}

#[test]
fn a_client_that_dies_in_a_commit_is_counted_and_one_that_ends_is_not() {
    let served = serve(settings(2, Profile::Calm));
    let witness = served.program();
    witness.transact(|tx| witness.number(tx, "k")).expect("it is calm");
    served.program().stop();
    let tx = witness.begin();
    let watch = witness.call(tx, Call::Watch(KEY), false);
    // Nobody waits: time stands still, and the commit is under way for ever.
    let mut doomed = Doomed::connect(&witness);
    doomed.add(1, false);
    // Its requests have arrived before those of a later program.
    let later = served.program();
    later.transact(|tx| later.number(tx, "other")).expect("it is calm");
    doomed.add(2, false);
    sleep(50);
    drop(doomed);
    wait_for_deaths(&served, 2);
    drop(watch);
    later.stop();
    witness.stop();
    let report = served.stop().1.expect("it ran");
    assert_eq!(report.end.faults.get(&Family::ClientDeath), Some(&1), "{report}");
}

#[test]
fn the_dead_want_nothing_any_more() {
    let served = serve(settings(3, Profile::Calm));
    let witness = served.program();
    // Versions are microseconds of virtual time.
    let version = || {
        let tx = witness.begin();
        witness.set(tx, "clock", 0);
        match witness.ask(tx, Call::Commit) {
            Ok(Reply::Committed(version)) => version,
            other => panic!("no version: {other:?}"),
        }
    };
    let mut doomed = Doomed::connect(&witness);
    let (db, tx) = (DatabaseId(0), TransactionId(1));
    doomed.send(&Request::Command(db, Command::Create(tx)));
    doomed.send(&Request::Call(CallId(1), db, tx, Call::Watch(KEY)));
    doomed.send(&Request::Want(CallId(1)));
    doomed.send(&Request::Call(CallId(2), db, tx, Call::Commit));
    doomed.send(&Request::Want(CallId(2)));
    sleep(50);
    let first = version();
    sleep(300);
    let second = version();
    assert!(second - first > 250_000, "time keeps pace while a watch is wanted: {}", second - first);
    drop(doomed);
    wait_for_deaths(&served, 1);
    let first = version();
    sleep(300);
    let second = version();
    assert!(second - first < 100_000, "time stands still: {}", second - first);
    served.stop();
}

/// A machine is used again, so that a server that lives long does not collect machines.
#[test]
fn the_dead_make_room_for_others() {
    let served = serve(settings(4, Profile::Calm));
    for round in 0..300_i64 {
        let program = served.program();
        program
            .transact(|tx| {
                assert_eq!(program.number(tx, "k"), Ok(round));
                program.set(tx, "k", round + 1);
                Ok(())
            })
            .expect("it is calm");
        assert!(program.database.0 == 0);
        program.stop();
        wait_for_deaths(&served, 0);
    }
    let (connections, _) = served.stop();
    assert_eq!((connections.served, connections.most), (300, 1));
}

/// A rest from faults starts every machine, also that of somebody who died.
#[test]
fn the_dead_make_room_after_a_rest() {
    let served = serve(settings(6, Profile::Standard));
    let (witness, program) = (served.program(), served.program());
    for connected in [&witness, &program] {
        connected.put("k", 1).expect("it is retried");
    }
    program.stop();
    wait_for_deaths(&served, 1);
    let retried = witness.begin();
    // Backoff soon takes half a second each time: ten minutes, of which most have rests.
    for _ in 0..1_200 {
        witness.ask(retried, Call::OnError(Error::NOT_COMMITTED)).expect("it can be retried");
    }
    let next = served.program();
    next.put("k", 2).expect("it is retried");
    served.stop();
}

/// A transaction of somebody who died conflicts as any other; what it had locked, it had not: there are no
/// locks.
#[test]
fn the_dead_do_not_stand_in_the_way() {
    let served = serve(settings(5, Profile::Calm));
    let witness = served.program();
    let tx = witness.begin();
    assert_eq!(witness.number(tx, "k"), Ok(0));
    let mut doomed = Doomed::connect(&witness);
    doomed.add(1, true);
    // Wanted, so that it is done by the time that the witness has an answer.
    while witness.transact(|tx| witness.number(tx, "k")) != Ok(1) {}
    drop(doomed);
    wait_for_deaths(&served, 1);
    witness.set(tx, "k", 7);
    assert_eq!(witness.ask(tx, Call::Commit), Err(Error::NOT_COMMITTED));
    served.stop();
}
