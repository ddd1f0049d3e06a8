//! Servers that are not there, that go away, that are others, and programs that end.

use super::support::{GONE, Program, serve, settings};
use bytes::Bytes;
use shaketable_session::{Call, Reply, Session, address::Address, protocol::VERSION};
use shaketable_sim::faults::Profile;
use shaketable_tx::Error;
use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
    time::Duration,
};

/// A listener at a port of its own.
fn listen() -> (TcpListener, Address) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has one").to_string().parse().expect("an address");
    (listener, address)
}

#[test]
fn without_a_server_every_call_ends_with_an_error_that_ends_retry_loops() {
    let (listener, address) = listen();
    drop(listener);
    let program = Program::connect(address.clone());
    let done = program.transact(|tx| program.number(tx, "k"));
    assert_eq!(done, Err(GONE));
    assert!(!GONE.is_retryable() && GONE.leaves_commit_unknown());
    // Later calls do not wait.
    assert_eq!(program.put("k", 1), Err(GONE));
    let said = program.ended();
    assert!(said.starts_with(&format!("no server at {address}: ")) && !said.contains('\n'), "{said}");
}

#[test]
fn a_server_may_start_after_its_programs() {
    let (listener, address) = listen();
    drop(listener);
    let program = Program::connect(address.clone());
    let answer = program.call(program.begin(), Call::GetReadVersion, true);
    assert!(answer.recv_timeout(Duration::from_millis(300)).is_err(), "nobody is there");
    let served = super::support::serve_at(&address, settings(1, Profile::Calm));
    assert!(matches!(answer.recv_timeout(Duration::from_secs(5)), Ok(Ok(Reply::Number(1..)))));
    program.stop();
    served.stop();
}

#[test]
fn calls_end_when_the_server_does() {
    let served = serve(settings(2, Profile::Calm));
    let program = served.program();
    let tx = program.begin();
    let watch = program.call(tx, Call::Watch(Bytes::from_static(b"k")), true);
    assert_eq!(program.ask(tx, Call::Commit), Ok(Reply::Committed(-1)));
    let (connections, _) = served.stop();
    assert_eq!((connections.now, connections.refused), (0, 0));
    assert_eq!(watch.recv_timeout(Duration::from_secs(5)), Ok(Err(GONE)));
    assert_eq!(program.ask(tx, Call::GetReadVersion), Err(GONE));
    assert_eq!(program.ask(tx, Call::OnError(Error::NOT_COMMITTED)), Err(GONE));
    assert!(program.ended().ends_with("has closed the connection: the server has ended"));
}

/// A server that was killed says nothing: the socket is closed, in the middle of an answer if it comes so.
#[test]
fn a_server_that_vanishes_or_is_another_is_one_line() {
    let greeting = |version: u16, longest: u32| {
        [b"SHAKETABLE".to_vec(), version.to_le_bytes().to_vec(), longest.to_le_bytes().to_vec()].concat()
    };
    let good = greeting(VERSION, u32::MAX);
    let cases = [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "is no server of shaketable"),
        (b"shaketable\x01\0\xff\xff\xff\xff".to_vec(), "is no server of shaketable"),
        (Vec::new(), "the connection ended before a greeting"),
        (greeting(1, u32::MAX), "speaks version 1 of the protocol, and this library version 4"),
        (greeting(VERSION, 100), "accepts requests of 100 bytes only"),
        (good.clone(), "is gone: the connection ended"),
        ([&good[..], &[9, 0]].concat(), "is gone: the connection ended within a frame"),
        ([&good[..], &[2, 0, 0, 0, 255, 255]].concat(), "sends what is no answer"),
        ([&good[..], &[255; 4]].concat(), "a frame of 4294967295 bytes, and at most 134217728 are accepted"),
    ];
    for (sent, said) in cases {
        let (listener, address) = listen();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.read_exact(&mut [0; 16]).expect("it greets");
            stream.write_all(&sent).expect("it reads");
        });
        let program = Program::connect(address);
        assert_eq!(program.ask(program.begin(), Call::GetReadVersion), Err(GONE), "{said}");
        server.join().expect("no panic");
        let line = program.ended();
        assert!(line.contains(said) && !line.contains('\n'), "{line} instead of {said}");
    }
}

#[test]
fn a_program_that_stops_has_its_calls_cancelled() {
    let served = serve(settings(3, Profile::Calm));
    let program = served.program();
    let watch = program.call(program.begin(), Call::Watch(Bytes::from_static(b"k")), false);
    assert!(program.ask(program.begin(), Call::GetReadVersion).is_ok());
    let remote = program.remote.clone();
    let (database, tx) = (program.database, program.begin());
    program.stop();
    assert_eq!(watch.recv(), Ok(Err(Error::OPERATION_CANCELLED)));
    let (sender, answer) = std::sync::mpsc::channel();
    remote.call(database, tx, Call::GetReadVersion, Box::new(move |reply| drop(sender.send(reply))));
    assert_eq!(answer.recv(), Ok(Err(Error::OPERATION_CANCELLED)));
    served.stop();
    // Also while it looks for a server.
    let (listener, address) = listen();
    drop(listener);
    let program = Program::connect(address);
    let answer = program.call(program.begin(), Call::GetReadVersion, true);
    program.stop();
    assert_eq!(answer.recv(), Ok(Err(Error::OPERATION_CANCELLED)));
}

#[test]
fn a_call_is_cancelled_and_one_that_was_answered_is_not() {
    let served = serve(settings(4, Profile::Calm));
    let program = served.program();
    let (sender, answer) = std::sync::mpsc::channel();
    let tx = program.begin();
    let completion = Box::new(move |reply| drop(sender.send(reply)));
    let watch = program.remote.call(program.database, tx, Call::Watch(Bytes::from_static(b"k")), completion);
    assert_eq!(program.ask(tx, Call::Commit), Ok(Reply::Committed(-1)));
    program.remote.cancel(watch);
    assert_eq!(answer.recv_timeout(Duration::from_secs(5)), Ok(Err(Error::OPERATION_CANCELLED)));
    program.remote.cancel(watch);
    program.remote.want(watch);
    assert!(program.ask(program.begin(), Call::GetReadVersion).is_ok());
    program.stop();
    served.stop();
}
