//! Sequences of C calls in any order, from one thread and from two: no crash, every callback once, and a
//! transaction reads its own writes. A sequence that fails is shrunk.
//!
//! Sequences run in processes of their own, because a process has one network: one process for the sequences
//! of a seed and, if one of them fails or crashes, one for each attempt to shrink it. `SHAKETABLE_FUZZ_CASES`
//! says how many sequences a seed has. What failed is printed as JSON; `SHAKETABLE_FUZZ_AGAIN` names a file
//! with it and performs it.

mod asks;
mod hands;
mod perform;
mod read;
mod steps;

use super::process::PROCESS;
use fdb_c::abi::{
    future::{fdb_future_block_until_ready, fdb_future_destroy},
    transaction::{fdb_transaction_destroy, fdb_transaction_get_read_version},
};
use hands::Hands;
use perform::begin;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::{
    fs::File,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};
use steps::{Case, Step, case};

/// Performs the steps of a thread with a transaction and a database that both threads share.
fn perform(steps: &[Step], shared: usize) -> Hands {
    let mut hands = Hands::default();
    hands.databases.push(PROCESS.database());
    hands.hold_transaction(shared as *mut _, None, true);
    for step in steps {
        hands.perform(step);
    }
    // The database is never destroyed.
    hands.databases.remove(0);
    hands.destroy();
    hands
}

/// Everything that the network thread was given before is done.
fn settle() {
    let tx = begin(PROCESS.database());
    // SAFETY: transaction and future are destroyed here and nowhere else.
    unsafe {
        let version = fdb_transaction_get_read_version(tx);
        assert_eq!(fdb_future_block_until_ready(version), 0);
        fdb_future_destroy(version);
        fdb_transaction_destroy(tx);
    }
}

/// What cases did: calls, handles, callbacks.
#[derive(Default)]
struct Done {
    calls: AtomicUsize,
    handles: AtomicUsize,
    callbacks: AtomicUsize,
}

fn run(case: &Case, done: &Done) {
    let shared = begin(PROCESS.database()) as usize;
    let all = match case.second.is_empty() {
        true => vec![perform(&case.first, shared)],
        false => thread::scope(|scope| {
            let second = scope.spawn(|| perform(&case.second, shared));
            let first = perform(&case.first, shared);
            vec![first, second.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))]
        }),
    };
    // SAFETY: both threads have ended; it is destroyed here and nowhere else.
    unsafe { fdb_transaction_destroy(shared as *mut _) };
    let callbacks: usize = all.iter().map(Hands::all_told).sum();
    settle();
    all.iter().for_each(Hands::none_told_twice);
    done.calls.fetch_add(case.first.len() + case.second.len(), Relaxed);
    done.handles.fetch_add(all.iter().map(|hands| hands.created).sum::<usize>() + 1, Relaxed);
    done.callbacks.fetch_add(callbacks, Relaxed);
}

/// Sequences of a seed.
const CASES: u32 = 150;
/// How long a process may take, with this many sequences in each second, and for one.
const SECONDS: u32 = 60;
const PER_SECOND: u32 = 10;
const SECONDS_ALONE: u32 = 5;
/// The file that tells the number of the sequence which is being performed, from 0.
const PROGRESS: &str = "SHAKETABLE_FUZZ_PROGRESS";
/// The file of one sequence to perform.
const AGAIN: &str = "SHAKETABLE_FUZZ_AGAIN";
/// This test, by its name.
const NAME: &str = "fuzz::calls_in_any_order_do_no_harm";

fn cases() -> u32 {
    std::env::var("SHAKETABLE_FUZZ_CASES").map_or(CASES, |n| n.parse().expect("it is a number"))
}

fn runner(seed: u8, max_shrink_iters: u32) -> TestRunner {
    let config = Config { cases: cases(), max_shrink_iters, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]))
}

/// Performs the sequences of a seed in this process.
#[expect(clippy::print_stdout, reason = "the process that waits for it reads this")]
fn perform_all(progress: &Path) {
    let seed = std::env::var("SHAKETABLE_SEED").expect("there is a seed").parse().expect("it is a number");
    let (done, number) = (Done::default(), AtomicUsize::new(0));
    let ran = runner(seed, 0).run(&case(), |case| {
        std::fs::write(progress, number.fetch_add(1, Relaxed).to_string()).expect("it can be written");
        catch_unwind(AssertUnwindSafe(|| run(&case, &done))).map_err(|_| TestCaseError::fail("it panicked"))
    });
    assert!(ran.is_ok(), "a sequence failed");
    let Done { calls, handles, callbacks } = done;
    let (calls, handles, callbacks) = (calls.into_inner(), handles.into_inner(), callbacks.into_inner());
    let cases = number.into_inner();
    assert!(calls > cases * 20 && callbacks > cases, "{calls} calls, {callbacks} callbacks");
    println!("{cases} sequences: {calls} calls, {handles} handles, {callbacks} callbacks");
}

/// Performs sequences in another process: what it printed, or how it ended and what it said.
#[expect(clippy::disallowed_methods, reason = "the other process lives by the wall clock")]
fn elsewhere(seed: u8, faults: &str, variable: &str, path: &Path) -> Result<String, String> {
    let output = path.with_extension("output");
    let file = File::create(&output).expect("it can be written");
    let mut process = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", NAME, "--nocapture"])
        .env("SHAKETABLE_SEED", seed.to_string())
        .env("SHAKETABLE_FAULTS", faults)
        .env(variable, path)
        .stdout(file.try_clone().expect("it is open"))
        .stderr(file)
        .spawn()
        .expect("it runs again");
    let limit = if variable == AGAIN { SECONDS_ALONE } else { SECONDS + cases() / PER_SECOND };
    let mut status = None;
    for _ in 0..limit * 100 {
        status = process.try_wait().expect("it can be asked");
        if status.is_some() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let printed = || String::from_utf8_lossy(&std::fs::read(&output).expect("it was written")).into_owned();
    match status {
        Some(status) if status.success() => Ok(printed()),
        Some(status) => Err(format!("{status}\n{}", printed())),
        None => {
            process.kill().and_then(|()| process.wait()).expect("it can be ended");
            Err(format!("it does not end within {limit} seconds\n{}", printed()))
        }
    }
}

/// Shrinks the sequence of a seed with this number.
fn shrink(seed: u8, faults: &str, number: usize, file: &Path) -> String {
    let (before, said) = (AtomicUsize::new(0), Mutex::new(String::new()));
    let ran = runner(seed, 300).run(&case(), |case| {
        if before.fetch_add(1, Relaxed) < number {
            return Ok(());
        }
        std::fs::write(file, serde_json::to_vec(&case).expect("it is JSON")).expect("it can be written");
        elsewhere(seed, faults, AGAIN, file).map(drop).map_err(|error| {
            *said.lock().expect("no panic") = error;
            TestCaseError::fail("it fails alone")
        })
    });
    match ran {
        Err(TestError::Fail(_, case)) => {
            let json = serde_json::to_string(&case).expect("it is JSON");
            format!("alone and shrunk, {json}\n{}", said.into_inner().expect("no panic"))
        }
        _ => "not if it is performed alone".to_owned(),
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "figures of a test")]
fn calls_in_any_order_do_no_harm() {
    if let Some(file) = std::env::var_os(AGAIN) {
        let json = std::fs::read(file).expect("there is a sequence");
        return run(&serde_json::from_slice(&json).expect("it is one"), &Done::default());
    }
    if let Some(progress) = std::env::var_os(PROGRESS) {
        return perform_all(Path::new(&progress));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let progress = folder.path().join("progress");
    for (seed, faults) in [(1, "calm"), (2, "standard"), (3, "storm"), (4, "storm")] {
        match elsewhere(seed, faults, PROGRESS, &progress) {
            Ok(printed) => {
                let done =
                    printed.lines().find(|line| line.contains("sequences: ")).expect("it says what it did");
                println!("seed {seed}, {faults}: {done}");
            }
            Err(error) => {
                let number = std::fs::read_to_string(&progress).expect("it was written");
                let number = number.parse().expect("it is a number");
                let shrunk = shrink(seed, faults, number, &folder.path().join("case"));
                panic!("seed {seed}, {faults}, sequence {number} fails: {error}\n{shrunk}");
            }
        }
    }
}
