//! Distributes work over threads: numbered pieces, started in order, each done entirely by one thread.

use super::allocations;
use rustix::time::{ClockId, clock_gettime};
use std::{
    cell::Cell,
    panic::resume_unwind,
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

/// The stack size of the threads, bytes: deeply nested futures are polled on them.
const STACK: usize = 16 << 20;

/// The interval of [`Update::Tick`].
const TICK: Duration = Duration::from_millis(200);

/// A progress report to the caller.
pub enum Update<T> {
    /// A piece is done: its number and its result.
    Done(u64, T),
    /// Some time has passed.
    Tick,
}

/// Does the pieces 0 to `pieces` - 1 on `jobs` threads, and starts no further piece once `stop` returns true.
/// Returns the number of pieces done, which are always the first ones. `update` is called with the results in
/// the order in which the pieces end.
pub fn run<T: Send>(
    pieces: u64,
    jobs: usize,
    stop: impl Fn() -> bool + Sync,
    work: impl Fn(u64) -> T + Sync,
    mut update: impl FnMut(Update<T>),
) -> u64 {
    let next = AtomicU64::new(0);
    let (send, receive) = mpsc::channel();
    let threads = (jobs as u64).min(pieces);
    let mut done = 0;
    thread::scope(|scope| {
        let mut started = Vec::new();
        for job in 0..threads {
            let (send, next, stop, work) = (send.clone(), &next, &stop, &work);
            let body = move || {
                while !stop() {
                    let piece = next.fetch_add(1, Ordering::Relaxed);
                    if piece >= pieces || send.send((piece, work(piece))).is_err() {
                        break;
                    }
                }
            };
            let builder = thread::Builder::new().name(format!("shake-{job}")).stack_size(STACK);
            started.push(builder.spawn_scoped(scope, body).expect("the system can start a thread"));
        }
        drop(send);
        loop {
            match receive.recv_timeout(TICK) {
                Ok((piece, result)) => {
                    done += 1;
                    update(Update::Done(piece, result));
                }
                Err(RecvTimeoutError::Timeout) => update(Update::Tick),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        for thread in started {
            // A panic goes on with its payload.
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
    done
}

/// Does a run's work on a thread of its own. A layer may use values of its thread, such as random numbers and
/// the keys of hash maps: none is left from the run before, so that a run is the same alone and in a sweep.
pub(crate) fn alone<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    apart("run".to_owned(), STACK, work)
}

/// Like [`alone`], on a thread with this name, which a stack overflow is reported with, and with a stack of
/// this many bytes.
pub(crate) fn apart<T: Send>(name: String, stack: usize, work: impl FnOnce() -> T + Send) -> T {
    let done = thread::scope(|scope| {
        let builder = thread::Builder::new().name(name).stack_size(stack);
        let counted = || (work(), cpu(), allocations());
        builder.spawn_scoped(scope, counted).expect("the system can start a thread").join()
    });
    let (done, spent, allocated) = done.unwrap_or_else(|panic| resume_unwind(panic));
    ALONE.set(ALONE.get() + spent);
    ALLOCATED_ALONE.set(ALLOCATED_ALONE.get() + allocated);
    done
}

thread_local! {
    /// The CPU time of the threads whose work this one has waited for, nanoseconds.
    static ALONE: Cell<u64> = const { Cell::new(0) };
    /// Their requests for memory.
    static ALLOCATED_ALONE: Cell<u64> = const { Cell::new(0) };
}

/// CPU time of this thread, and of the runs that it has done [`alone`], nanoseconds. Must not be called
/// inside of a run, where madsim replaces the clocks.
pub fn cpu() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime) + ALONE.get()
}

/// The requests for memory of this thread, and of the runs that it has done [`alone`]; 0 in a program whose
/// allocator does not count them.
pub fn allocations() -> u64 {
    allocations::of_thread() + ALLOCATED_ALONE.get()
}

/// What a clock shows, nanoseconds.
pub fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_time_of_runs_is_that_of_the_thread_that_waits_for_them() {
        const BUSY: u64 = 5_000_000;
        let before = cpu();
        let spent = alone(|| {
            // In a run of a run, as a shrinker's.
            alone(|| while nanoseconds(ClockId::ThreadCPUTime) < BUSY {});
            cpu()
        });
        assert!(spent >= BUSY, "{spent}");
        assert!(cpu() - before >= spent, "{before} {spent} {}", cpu());
    }

    fn collect(pieces: u64, jobs: usize, stop: impl Fn() -> bool + Sync) -> (u64, BTreeSet<(u64, u64)>) {
        let mut results = BTreeSet::new();
        let done = run(
            pieces,
            jobs,
            stop,
            |n| n * n,
            |update| {
                if let Update::Done(n, square) = update {
                    assert!(results.insert((n, square)), "piece {n} was done twice");
                }
            },
        );
        (done, results)
    }

    #[test]
    fn every_piece_is_done_once_with_any_number_of_jobs() {
        for jobs in [1, 2, 7, 64] {
            let (done, results) = collect(50, jobs, || false);
            assert_eq!(done, 50);
            assert_eq!(results, (0..50).map(|n| (n, n * n)).collect());
        }
        assert_eq!(collect(0, 4, || false).0, 0);
    }

    #[test]
    fn the_pieces_done_before_a_stop_are_the_first_ones_without_gaps() {
        let checks = AtomicU64::new(0);
        let (done, results) = collect(1_000_000, 3, || checks.fetch_add(1, Ordering::Relaxed) > 40);
        assert!((1..1_000_000).contains(&done));
        assert_eq!(results.into_iter().map(|(n, _)| n).collect::<Vec<_>>(), (0..done).collect::<Vec<_>>());
    }
}
