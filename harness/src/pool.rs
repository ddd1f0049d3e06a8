//! Work spread over threads: numbered pieces, begun in order, each done by one thread from its
//! beginning to its end.

use std::{
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

/// Stacks of the threads, bytes: deep futures are polled on them.
const STACK: usize = 16 << 20;

/// How often the caller hears that time has passed.
const TICK: Duration = Duration::from_millis(200);

/// What the caller hears.
pub enum News<T> {
    /// A piece is done.
    Done(u64, T),
    /// Some time has passed.
    Tick,
}

/// Does the pieces 0 to `pieces` - 1 on `jobs` threads, until `stop` says to begin no more. Returns
/// how many were done: always the first so many. The caller hears of them in the order in which
/// they end.
pub fn over<T: Send>(
    pieces: u64,
    jobs: usize,
    stop: impl Fn() -> bool + Sync,
    work: impl Fn(u64) -> T + Sync,
    mut hear: impl FnMut(News<T>),
) -> u64 {
    let next = AtomicU64::new(0);
    let (send, receive) = mpsc::channel();
    let threads = (jobs as u64).min(pieces);
    let mut done = 0;
    thread::scope(|scope| {
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
            thread::Builder::new()
                .name(format!("shake-{job}"))
                .stack_size(STACK)
                .spawn_scoped(scope, body)
                .expect("the system gives a thread");
        }
        drop(send);
        loop {
            match receive.recv_timeout(TICK) {
                Ok((piece, result)) => {
                    done += 1;
                    hear(News::Done(piece, result));
                }
                Err(RecvTimeoutError::Timeout) => hear(News::Tick),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn collect(pieces: u64, jobs: usize, stop: impl Fn() -> bool + Sync) -> (u64, BTreeSet<(u64, u64)>) {
        let mut heard = BTreeSet::new();
        let done = over(
            pieces,
            jobs,
            stop,
            |n| n * n,
            |news| {
                if let News::Done(n, square) = news {
                    assert!(heard.insert((n, square)), "piece {n} was done twice");
                }
            },
        );
        (done, heard)
    }

    #[test]
    fn every_piece_is_done_once_whatever_the_jobs() {
        for jobs in [1, 2, 7, 64] {
            let (done, heard) = collect(50, jobs, || false);
            assert_eq!(done, 50);
            assert_eq!(heard, (0..50).map(|n| (n, n * n)).collect());
        }
        assert_eq!(collect(0, 4, || false).0, 0);
    }

    #[test]
    fn what_was_done_before_a_stop_is_a_beginning_without_gaps() {
        let asked = AtomicU64::new(0);
        let (done, heard) = collect(1_000_000, 3, || asked.fetch_add(1, Ordering::Relaxed) > 40);
        assert!((1..1_000_000).contains(&done));
        assert_eq!(heard.into_iter().map(|(n, _)| n).collect::<Vec<_>>(), (0..done).collect::<Vec<_>>());
    }
}
