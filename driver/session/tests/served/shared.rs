//! What programs share, and what time does.

use super::support::{Program, serve, serve_at, settings, sleep};
use bytes::Bytes;
use shaketable_session::{Action, Call, Command, Reply, Session};
use shaketable_sim::faults::Profile;
use shaketable_tx::{Error, Isolation, KeySelector, RangeOption, StreamingMode};
use std::{thread, time::Duration};

#[test]
fn programs_see_the_writes_of_each_other_and_their_watches_fire() {
    let served = serve(settings(1, Profile::Calm));
    let (one, two) = (served.program(), served.program());
    one.put("k", 5).expect("it commits");
    assert_eq!(two.number(two.begin(), "k"), Ok(5));
    let waiting = two.begin();
    let watch = two.call(waiting, Call::Watch(Bytes::from_static(b"k")), true);
    assert_eq!(two.ask(waiting, Call::Commit), Ok(Reply::Committed(-1)));
    assert!(watch.recv_timeout(Duration::from_millis(200)).is_err(), "nothing has changed");
    one.put("k", 6).expect("it commits");
    assert_eq!(watch.recv_timeout(Duration::from_secs(60)), Ok(Ok(Reply::Done)));
    // A transaction of one conflicts with one of the other.
    let first = one.begin();
    assert_eq!(one.number(first, "k"), Ok(6));
    two.put("k", 7).expect("it commits");
    one.set(first, "other", 1);
    assert_eq!(one.ask(first, Call::Commit), Err(Error::NOT_COMMITTED));
    one.stop();
    two.stop();
    let (connections, report) = served.stop();
    assert_eq!((connections.served, connections.most, connections.now, connections.refused), (2, 2, 0, 0));
    let report = report.expect("there were clients");
    assert!(report.committed >= 4 && report.end.faults.is_empty(), "{report}");
}

#[test]
fn a_unix_socket_serves_too_and_is_removed_in_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cluster.socket");
    let address = format!("unix:{}", path.display()).parse().expect("an address");
    for _ in 0..2 {
        let served = serve_at(&address, settings(2, Profile::Calm));
        let program = served.program();
        program.put("k", 1).expect("it commits");
        let refused = shaketable_session::server::Server::start(
            &address,
            std::sync::Arc::new(shaketable_session::Host::new().expect("a pipe")),
        );
        assert!(refused.is_err(), "the address is in use");
        served.stop();
        assert_eq!(
            program.ended(),
            format!("the server at {address} has closed the connection: the server has ended")
        );
        assert!(!path.exists());
        // What a server leaves that was killed.
        drop(std::os::unix::net::UnixListener::bind(&path).expect("it is free"));
    }
}

/// Commands have no answer, and are sent all the same when they have to do with time.
#[test]
fn the_time_of_a_transaction_counts_while_its_program_sleeps() {
    let served = serve(settings(7, Profile::Calm));
    let program = served.program();
    let limit = |tx, milliseconds: i64| {
        let value = Some(Bytes::copy_from_slice(&milliseconds.to_le_bytes()));
        program.act(tx, Action::SetOption { code: 500, value });
    };
    let [late, short, lifted, long] = [(); 4].map(|()| program.begin());
    limit(short, 50);
    limit(lifted, 50);
    limit(lifted, 0);
    limit(long, 60_000);
    sleep(800);
    limit(late, 50);
    let commits = [late, short, lifted, long].map(|tx| program.ask(tx, Call::Commit));
    let (over, done) = (Err(Error::TRANSACTION_TIMED_OUT), Ok(Reply::Committed(-1)));
    assert_eq!(commits, [over.clone(), over, done.clone(), done]);
    program.stop();
    served.stop();
}

/// One program that blocks for its answers is alone with its seed, through a socket as well.
#[test]
fn a_seed_gives_one_run_to_a_single_program() {
    let run = || {
        let served = serve(settings(3, Profile::Standard));
        let program = served.program();
        for n in 0..30 {
            // Errors that cannot be retried are part of the run.
            let _ = program.transact(|tx| {
                let sum = program.number(tx, "sum")?;
                program.set(tx, "sum", sum + n);
                Ok(())
            });
        }
        program.stop();
        let report = served.stop().1.expect("it ran");
        (report.attempts, report.errors, report.end.hash)
    };
    let first = run();
    assert!(first.0 >= 30, "{first:?}");
    assert_eq!(run(), first);
}

#[test]
fn a_hundred_programs_at_once_lose_nothing() {
    const EACH: i64 = 10;
    let served = serve(settings(4, Profile::Calm));
    let programs: Vec<Program> = (0..100).map(|_| served.program()).collect();
    let add = |program: &Program| {
        for _ in 0..EACH {
            program
                .transact(|tx| {
                    let key = Bytes::from_static(b"sum");
                    let one = Bytes::copy_from_slice(&1_i64.to_le_bytes());
                    program.act(tx, Action::Atomic { key, operand: one, code: 2 });
                    Ok(())
                })
                .expect("a calm cluster commits");
        }
    };
    thread::scope(|scope| programs.iter().for_each(|program| drop(scope.spawn(|| add(program)))));
    assert_eq!(programs[7].number(programs[7].begin(), "sum"), Ok(100 * EACH));
    programs.into_iter().for_each(Program::stop);
    let (connections, _) = served.stop();
    assert_eq!((connections.served, connections.most, connections.refused), (100, 100, 0));
}

/// What is too long for a frame fails as what is too long for the cluster.
#[test]
fn large_texts_and_large_answers_are_errors_of_their_calls() {
    let served = serve(settings(6, Profile::Calm));
    let program = served.program();
    let huge = Bytes::from(vec![1; 50 << 20]);
    let key = Bytes::from_static(b"k");
    for (action, error) in [
        (Action::Set(huge.clone(), key.clone()), Error::KEY_TOO_LARGE),
        (Action::Set(key.clone(), huge.clone()), Error::VALUE_TOO_LARGE),
    ] {
        let tx = program.begin();
        program.act(tx, action);
        assert_eq!(program.ask(tx, Call::Commit), Err(error));
    }
    // 3,000 values of 100,000 bytes in one answer.
    for part in 0..40_u32 {
        program
            .transact(|tx| {
                for n in 0..75_u32 {
                    let key = (part * 75 + n).to_be_bytes();
                    program.act(tx, Action::Set(Bytes::copy_from_slice(&key), huge.slice(..100_000)));
                }
                Ok(())
            })
            .expect("it commits");
    }
    let all = |limit: usize| {
        let begin = KeySelector::first_greater_or_equal(Bytes::new());
        let end = KeySelector::first_greater_or_equal(Bytes::from_static(b"\xff"));
        let range = RangeOption::between(begin, end).limit(limit).mode(StreamingMode::Exact);
        program.ask(program.begin(), Call::GetRange(range, 1, Isolation::Snapshot))
    };
    assert!(matches!(all(1_000), Ok(Reply::Range(batch)) if batch.rows.len() == 1_000));
    assert_eq!(all(3_000), Err(Error::RANGE_LIMITS_INVALID));
    program.remote.command(program.database, Command::SetDatabaseOption { code: -1, value: Some(huge) });
    assert_eq!(program.ask(program.begin(), Call::GetReadVersion), Err(Error::INVALID_OPTION));
    served.stop();
}
