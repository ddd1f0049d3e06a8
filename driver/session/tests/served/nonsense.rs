//! What no client of ours sends: the server refuses it in one line, and goes on to serve the others.

use super::{
    deaths::Doomed,
    support::{GONE, is_alone, memory, serve, settings},
};
use bytes::Bytes;
use shaketable_session::{
    Action, Call, CallId, ClusterName, Command, DatabaseId, Reply, Session, TransactionId,
    protocol::{LONGEST_REQUEST, Request, Response, VERSION, decode, encode},
    server::limits,
};
use shaketable_sim::{
    faults::Profile,
    seed::{Seed, Stream},
};
use shaketable_tx::{Error, Isolation, KeySelector, RangeOption, StreamingMode};
use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

fn greeting(version: u16) -> Vec<u8> {
    [&b"shaketable"[..], &version.to_le_bytes(), &u32::MAX.to_le_bytes()].concat()
}

fn frame(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("it is short").to_le_bytes();
    [&length[..], body].concat()
}

fn request(request: &Request) -> Vec<u8> {
    frame(&encode(request).expect("an encoding"))
}

/// Sends bytes, and then nothing. Returns the reason that the server gives, if it gives one.
fn send(address: &str, bytes: &[u8]) -> Option<String> {
    let mut stream = TcpStream::connect(address).expect("a server");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("it is not zero");
    // It may be refused before the end.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    // A connection that was reset has said nothing more.
    let _ = stream.read_to_end(&mut answer);
    let mut rest = answer.get(16..)?;
    while let Some((head, body)) = rest.split_first_chunk::<4>() {
        let (body, after) = body.split_at_checked(u32::from_le_bytes(*head) as usize)?;
        match decode(body).expect("the server sends answers") {
            Response::Refused(line) => return Some(line),
            Response::Answer(..) => rest = after,
        }
    }
    None
}

/// The requests of an ordinary program.
fn ordinary() -> Vec<Request> {
    let (db, tx, key) = (DatabaseId(0), TransactionId(1), Bytes::from_static(b"key"));
    let range = RangeOption::new("a", "z").limit(5).mode(StreamingMode::Iterator);
    let act = |action| Request::Command(db, Command::Transaction(tx, action));
    let call = |id, call| Request::Call(CallId(id), db, tx, call);
    let snapshot = Isolation::Snapshot;
    vec![
        Request::Open(db, ClusterName::default()),
        Request::Command(db, Command::Create(tx)),
        act(Action::SetOption { code: 500, value: Some(Bytes::copy_from_slice(&1_000_i64.to_le_bytes())) }),
        act(Action::Set(key.clone(), key.clone())),
        act(Action::Atomic { key: key.clone(), operand: key.clone(), code: 2 }),
        act(Action::ClearRange(key.clone(), Bytes::from_static(b"kez"))),
        act(Action::AddConflictRange(key.clone(), key.clone(), shaketable_tx::ConflictRangeType::Read)),
        call(1, Call::Get(key.clone(), Isolation::Serializable)),
        call(2, Call::GetKey(KeySelector::first_greater_than(key.clone()), snapshot)),
        call(3, Call::GetRange(range.clone(), 1, snapshot)),
        call(4, Call::GetMappedRange(range, key.clone(), 1, snapshot)),
        call(5, Call::GetEstimatedRangeSize(key.clone(), key.clone())),
        call(6, Call::GetRangeSplitPoints(key.clone(), Bytes::from_static(b"z"), 100)),
        call(7, Call::GetAddresses(key.clone())),
        call(8, Call::Watch(key)),
        call(9, Call::Commit),
        Request::Want(CallId(9)),
        call(10, Call::OnError(Error::NOT_COMMITTED)),
        Request::Want(CallId(10)),
        act(Action::SetReadVersion(5)),
        Request::Cancel(CallId(8)),
        act(Action::Destroy),
    ]
}

/// A connection that goes wrong somewhere.
fn garbled(chance: &mut Stream) -> Vec<u8> {
    let frames: Vec<Vec<u8>> = ordinary().iter().map(request).collect();
    let mut bytes = [&greeting(VERSION)[..], &frames.concat()].concat();
    let byte = |chance: &mut Stream| chance.below(256) as u8;
    match chance.below(8) {
        // A greeting that is torn, garbled or of another version.
        0 => bytes.truncate(chance.below(16) as usize),
        1 => bytes[chance.below(10) as usize] ^= 1 + chance.below(255) as u8,
        2 => bytes[10 + chance.below(2) as usize] ^= 1 + chance.below(255) as u8,
        // A frame that is torn.
        3 => bytes.truncate(16 + chance.below(bytes.len() as u64 - 16) as usize),
        // A frame that is longer than allowed, or than what follows.
        4 => {
            let claimed = chance.u64() as u32 | 1 << chance.below(32);
            bytes.splice(
                16..,
                [&claimed.to_le_bytes()[..], &vec![7; chance.below(200_000) as usize]].concat(),
            );
        }
        // Bytes that are no frames.
        5 => (16..bytes.len()).for_each(|at| bytes[at] = byte(chance)),
        // Some bytes of some bodies are others: often requests that nobody means.
        6 | 7 => {
            bytes.truncate(16);
            for frame in frames {
                let mut frame = frame;
                if chance.chance(0.3) {
                    let at = 4 + chance.below(frame.len() as u64 - 4) as usize;
                    frame[at] = byte(chance);
                }
                bytes.extend(frame);
            }
        }
        _ => unreachable!("there are eight"),
    }
    bytes
}

#[test]
fn ten_thousand_connections_of_nonsense_do_not_disturb_the_others() {
    const THREADS: u64 = 8;
    if !is_alone("served::nonsense::ten_thousand_connections_of_nonsense_do_not_disturb_the_others") {
        return;
    }
    let served = serve(settings(1, Profile::Calm));
    let address = served.address().to_string();
    let (good, is_over) = (served.program(), AtomicBool::new(false));
    good.put("good", 0).expect("it is calm");
    let before = memory();
    let transactions = thread::scope(|scope| {
        let working = scope.spawn(|| {
            let mut done = 0;
            while !is_over.load(Ordering::SeqCst) {
                done += 1;
                let add = |tx| good.number(tx, "good").map(|n| good.set(tx, "good", n + 1));
                good.transact(add).expect("it is calm");
            }
            done
        });
        let bad: Vec<_> = (0..THREADS)
            .map(|thread| {
                let address = &address;
                scope.spawn(move || {
                    let mut chance = Seed(thread).stream("nonsense");
                    (0..10_000 / THREADS).filter_map(|_| send(address, &garbled(&mut chance))).count()
                })
            })
            .collect();
        let refused: usize = bad.into_iter().map(|bad| bad.join().expect("no panic")).sum();
        is_over.store(true, Ordering::SeqCst);
        assert!(refused > 4_000, "{refused} heard why");
        working.join().expect("no panic")
    });
    let grown = memory().saturating_sub(before);
    assert!(grown < 128 << 20, "{grown} bytes more");
    assert!(transactions > 100, "{transactions}");
    assert_eq!(good.number(good.begin(), "good"), Ok(transactions));
    good.stop();
    let (connections, report) = served.stop();
    assert!(
        connections.refused > 4_000 && connections.reasons.len() == 5 && connections.now == 0,
        "{connections}"
    );
    let report = report.expect("it ran");
    assert!(report.attempts as i64 > transactions, "some nonsense is performed: {report}");
}

#[test]
fn each_kind_of_nonsense_has_its_line() {
    let served = serve(settings(2, Profile::Calm));
    let address = served.address().to_string();
    let hello = greeting(VERSION);
    let after = |bytes: &[Vec<u8>]| [&hello[..], &bytes.concat()].concat();
    let (db, tx) = (DatabaseId(0), TransactionId(1));
    let open = request(&Request::Open(db, ClusterName::default()));
    let create = request(&Request::Command(db, Command::Create(tx)));
    let get = |id| request(&Request::Call(CallId(id), db, tx, Call::GetReadVersion));
    let range = |range: RangeOption, iteration| {
        let call = Call::GetRange(range, iteration, Isolation::Snapshot);
        after(&[open.clone(), create.clone(), request(&Request::Call(CallId(1), db, tx, call))])
    };
    let many = |count: usize, body: &dyn Fn(u64) -> Request| {
        after(&[vec![open.clone()], (0..=count as u64).map(|n| request(&body(n))).collect()].concat())
    };
    let clear = Request::Command(db, Command::Transaction(tx, Action::Clear(Bytes::new())));
    let (key, large) = (Bytes::from_static(b"k"), Bytes::from(vec![7; 1_000_000]));
    let limits = "limits of a range beyond those of the C interface";
    let cases = [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "what is sent is not shaketable's protocol"),
        (greeting(7), "the server speaks version 4 of the protocol, and the client version 7"),
        (after(&[frame(&[])]), "a frame that is no request"),
        (after(&[frame(&[9])]), "a frame that is no request"),
        (after(&[frame(&[0, 0, 0, 0])]), "a frame that is no request"),
        (
            after(&[(LONGEST_REQUEST + 1).to_le_bytes().to_vec()]),
            "a frame of 16777217 bytes, and at most 16777216 are accepted",
        ),
        (after(std::slice::from_ref(&create)), "database 0 is not open"),
        (after(&[open.clone(), open.clone()]), "database 0 was opened twice"),
        (after(&[open.clone(), create.clone(), create.clone()]), "transaction 1 was created twice"),
        (after(&[open.clone(), create.clone(), get(5), get(5)]), "two calls with the number 5"),
        (range(RangeOption::new("a", "b").limit(1 << 31), 1), limits),
        (range(RangeOption { target_bytes: 1 << 31, ..RangeOption::new("a", "b") }, 1), limits),
        (range(RangeOption::new("a", "b"), 0), limits),
        (
            many(16, &|n| Request::Open(DatabaseId(n as u16 + 1), ClusterName(format!("name:{n}")))),
            "more than 16 clusters, or a name that is too long",
        ),
        (
            after(&[request(&Request::Open(db, ClusterName("n".repeat(201))))]),
            "more than 16 clusters, or a name that is too long",
        ),
        (
            many(limits::DATABASES, &|n| Request::Open(DatabaseId(n as u16 + 1), ClusterName::default())),
            "more than 1000 databases",
        ),
        (
            many(limits::TRANSACTIONS, &|n| Request::Command(db, Command::Create(TransactionId(n)))),
            "more than 100000 transactions at once",
        ),
        (
            many(limits::CALLS, &|n| Request::Call(CallId(n), db, tx, Call::GetReadVersion)),
            "more than 100000 calls without an answer",
        ),
        (
            many(limits::STEPS as usize + 1, &|n| match n {
                0 => Request::Command(db, Command::Create(tx)),
                _ => clear.clone(),
            }),
            "a transaction with more than 500000 calls",
        ),
        (
            many(limits::WRITES / 1_000_000 + 2, &|n| match n {
                0 => Request::Command(db, Command::Create(tx)),
                _ => Request::Command(db, Command::Transaction(tx, Action::Set(key.clone(), large.clone()))),
            }),
            "more than 268435456 bytes in transactions at once",
        ),
    ];
    for (bytes, line) in cases {
        assert_eq!(send(&address, &bytes).as_deref(), Some(line));
    }
    let good = served.program();
    assert_eq!(good.number(good.begin(), "k"), Ok(0));
    served.stop();
}

#[test]
fn one_connection_more_than_the_limit_is_refused() {
    let served = serve(settings(3, Profile::Calm));
    let address = served.address().to_string();
    let mut others = Vec::new();
    for _ in 0..limits::CONNECTIONS {
        let mut stream = TcpStream::connect(&address).expect("a server");
        stream.write_all(&greeting(VERSION)).expect("it listens");
        stream.read_exact(&mut [0; 16]).expect("it greets");
        others.push(stream);
    }
    let refused = send(&address, &greeting(VERSION));
    assert_eq!(refused.as_deref(), Some("there are 1000 connections already"));
    others.pop();
    while served.server.connections().now >= limits::CONNECTIONS {
        super::support::sleep(5);
    }
    let good = served.program();
    assert_eq!(good.number(good.begin(), "k"), Ok(0));
    served.stop();
}

/// Whoever connects and says nothing takes no place from those who do.
#[test]
fn silent_connections_shut_nobody_out() {
    let served = serve(settings(3, Profile::Calm));
    let address = served.address().to_string();
    let silent: Vec<_> =
        (0..=limits::CONNECTIONS + 20).map(|_| TcpStream::connect(&address).expect("a server")).collect();
    let good = served.program();
    assert_eq!(good.number(good.begin(), "k"), Ok(0));
    // The oldest have been shown out.
    let mut oldest = &silent[0];
    oldest.set_read_timeout(Some(Duration::from_secs(4))).expect("it is not zero");
    assert!(
        !matches!(oldest.read(&mut [0; 64]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    );
    good.stop();
    served.stop();
}

/// A database that was closed makes room, once its transactions are gone.
#[test]
fn closed_databases_make_room_for_others() {
    let served = serve(settings(3, Profile::Calm));
    let program = served.program();
    let remote = &program.remote;
    let old = remote.open(&ClusterName::default());
    let tx = remote.next_transaction();
    remote.command(old, Command::Create(tx));
    remote.command(old, Command::Close);
    for _ in 0..limits::DATABASES + 500 {
        let database = remote.open(&ClusterName::default());
        remote.command(database, Command::Close);
    }
    let (sender, answer) = std::sync::mpsc::channel();
    let completion = Box::new(move |reply| drop(sender.send(reply)));
    remote.want(remote.call(old, tx, Call::GetReadVersion, completion));
    assert!(matches!(answer.recv(), Ok(Ok(Reply::Number(1..)))), "its transactions remain usable");
    assert_eq!(program.number(program.begin(), "k"), Ok(0));
    program.stop();
    served.stop();
}

/// Calls of transactions that do not exist fail. A program may destroy a transaction in one thread and use it
/// in another.
#[test]
fn a_transaction_that_does_not_exist_is_an_error_of_its_calls() {
    let served = serve(settings(4, Profile::Calm));
    let program = served.program();
    let tx = program.begin();
    program.act(tx, Action::Destroy);
    assert_eq!(program.ask(tx, Call::GetReadVersion), Err(Error::TRANSACTION_CANCELLED));
    assert_eq!(program.ask(TransactionId(77), Call::Commit), Err(Error::TRANSACTION_CANCELLED));
    program.remote.command(DatabaseId(3), Command::Create(tx));
    assert_eq!(program.ask(program.begin(), Call::GetReadVersion), Err(GONE));
    assert!(program.ended().ends_with("has closed the connection: database 3 is not open"));
    served.stop();
}

/// A program that reads no answers is not sent more and more of them; others are not held up.
#[test]
fn a_program_that_does_not_read_waits_alone() {
    if !is_alone("served::nonsense::a_program_that_does_not_read_waits_alone") {
        return;
    }
    let served = serve(settings(5, Profile::Calm));
    let good = served.program();
    let value = Bytes::from(vec![1; 100_000]);
    let key = Bytes::from_static(b"large");
    let set = |tx| {
        good.act(tx, Action::Set(key.clone(), value.clone()));
        Ok(())
    };
    good.transact(set).expect("it is calm");
    let mut lazy = Doomed::connect(&good);
    let (db, tx) = (DatabaseId(0), TransactionId(1));
    lazy.send(&Request::Command(db, Command::Create(tx)));
    let before = memory();
    let asking = thread::spawn(move || {
        for id in 0..20_000 {
            lazy.send(&Request::Call(CallId(id), db, tx, Call::Get(key.clone(), Isolation::Snapshot)));
            lazy.send(&Request::Want(CallId(id)));
        }
        lazy
    });
    for _ in 0..200 {
        assert_eq!(
            good.ask(good.begin(), Call::GetReadVersion).map(|reply| matches!(reply, Reply::Number(1..))),
            Ok(true)
        );
        super::support::sleep(5);
    }
    // Two gigabytes, if nothing held it up.
    let grown = memory().saturating_sub(before);
    assert!(grown < 512 << 20, "{grown} bytes more");
    good.stop();
    served.stop();
    // What it still sends fails, since nobody listens.
    drop(asking);
}

/// Requests that can be sent and mean nothing, performed: numbers beyond reason, keys that are none, codes
/// that nothing has, calls in any order. The cluster must not fail.
#[test]
fn requests_that_nobody_means_do_not_end_the_cluster() {
    let served = serve(settings(6, Profile::Calm));
    let good = served.program();
    let mut chance = Seed(6).stream("requests");
    let (mut performed, mut calls) = (0, 100);
    for _ in 0..300 {
        let mut strange = Doomed::connect(&good);
        strange.send(&Request::Command(DatabaseId(0), Command::Create(TransactionId(1))));
        for request in ordinary().iter().skip(2).filter(|request| !matches!(request, Request::Want(_))) {
            let mut body = encode(request).expect("an encoding");
            for _ in 0..chance.below(4) {
                // What follows the numbers of request, call, database and transaction.
                let at = (3 + chance.below(body.len() as u64) as usize).min(body.len() - 1);
                body[at] =
                    if chance.chance(0.5) { 255 - chance.below(3) as u8 } else { chance.below(256) as u8 };
            }
            let Some(mut request) = decode::<Request>(&body) else { continue };
            if let Request::Call(id, ..) = &mut request {
                calls += 1;
                *id = CallId(calls);
            }
            performed += 1;
            if !strange.try_send(&request) {
                break;
            }
            if matches!(request, Request::Call(..)) && !strange.try_send(&Request::Want(CallId(calls))) {
                break;
            }
        }
        good.transact(|tx| good.number(tx, "k").map(|n| good.set(tx, "k", n + 1))).expect("it is calm");
        super::support::sleep(2);
    }
    assert!(performed > 2_000, "{performed}");
    assert_eq!(good.number(good.begin(), "k").map(|n| n >= 1), Ok(true));
    let report = served.stop().1.expect("it ran");
    // The 300 of the good program, and some that strange ones began before they went.
    assert!(report.attempts > 310, "{report}");
}
