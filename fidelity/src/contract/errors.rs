//! Which errors a retry loop may retry, and what `on_error` does for each.

use super::{
    Case, Ctx, Expectation,
    expect::{fails, holds, same, succeeds},
    world::{Serializable, some},
};
use futures::future::join3;
use shaketable_tx::{Database, Error, RangeOption, StreamingMode, Transaction, TransactionOption, Tx};
use std::time::Duration;

const SECTION: &str = "errors";

/// Codes without a constant in [`Error`] that a client must return like any other.
const UNNAMED: [i32; 3] = [1000, 1004, 1500];

/// What `on_error` does with an error.
#[derive(Clone, Copy, PartialEq)]
enum Answer {
    /// Waits and resets.
    Retries,
    /// Returns this error.
    Gives(Error),
    /// Either: it depends on the client's configuration.
    Either,
}

fn answer(error: Error) -> Answer {
    match error {
        // The plain client returns it; the multi-version client, which is used with several libraries,
        // retries.
        Error::CLUSTER_VERSION_CHANGED => Answer::Either,
        // Depends on a knob of the client.
        Error::TRANSACTION_REJECTED_RANGE_LOCKED => Answer::Either,
        // Not in the predicate, but retried nevertheless.
        Error::BLOB_GRANULE_REQUEST_FAILED => Answer::Retries,
        e if e.is_retryable() => Answer::Retries,
        // The client takes it for the end of its own transaction (`ReadYourWrites.actor.cpp`).
        Error::BROKEN_PROMISE => Answer::Gives(Error::TRANSACTION_CANCELLED),
        e => Answer::Gives(e),
    }
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = catalogue! {
        "predicates", predicates,
            "Retryable, maybe committed and certainly not committed are the C client's sets of codes.";
        "on_error/success", on_success,
            "No error passed to on_error is client_invalid_operation (2000).";
        "on_error/failed-cancels", failed_cancels,
            "After a failed on_error everything answers 1025 until a reset.";
        "on_error/cancelled", on_cancelled,
            "on_error on a cancelled transaction answers 1025, whatever the error.";
        "on_error/discards-writes", discards_writes,
            "A successful on_error forgets the attempt's writes.";
        "on_error/discards-reads", discards_reads,
            "A successful on_error forgets the attempt's read conflict ranges.";
        "on_error/new-read-version", new_read_version,
            "The attempt after on_error reads at a new version.";
        "on_error/read-in-flight", read_in_flight,
            "A read of several steps that is in flight at on_error may get the next attempt a read version from \
             before the end of the backoff: it has what was acknowledged before on_error, and conflicts with \
             what it has not.";
        "on_error/after-conflict", after_conflict,
            "After a real conflict on_error makes the same handle commit.";
        "on_error/deferred-error", clears_deferred,
            "on_error clears an error that a void call left behind.";
        "retry-limit/counts", limit_counts,
            "retry_limit counts calls of on_error; at the limit the given error comes back.";
        "retry-limit/any-error", limit_any_error,
            "Every retryable error counts against the limit.";
        "retry-limit/zero", limit_zero,
            "A retry_limit of 0 refuses the first retry.";
        "retry-limit/unlimited", limit_unlimited,
            "A retry_limit of -1 lifts a limit.";
        "retry-limit/reset", limit_reset,
            "reset drops the limit and the count.";
        "backoff/grows", backoff_grows,
            "The backoff doubles from attempt to attempt and survives on_error.";
        "backoff/first-is-short", backoff_reset,
            "The first backoff is below 0.01 s, and reset returns to it.";
        "backoff/max-retry-delay", backoff_capped,
            "No backoff exceeds max_retry_delay.";
        "backoff/too-old", |c| fixed_delay(c, Error::TRANSACTION_TOO_OLD),
            "After 1007 the delay is a fixed 0.01 s, however many retries there were.";
        "backoff/future-version", |c| fixed_delay(c, Error::FUTURE_VERSION),
            "After 1009 the delay is a fixed 0.01 s.";
        "timeout/on_error", after_timeout,
            "After the timeout on_error answers 1031, whatever the error.";
    };
    let unnamed = UNNAMED.iter().map(|code| Error::from_code(*code));
    for error in Error::ALL.iter().copied().chain(unnamed) {
        let promise = match answer(error) {
            Answer::Retries => format!("on_error retries {error}."),
            Answer::Gives(given) if given == error => {
                format!("on_error gives {error} back and leaves the transaction cancelled.")
            }
            Answer::Gives(given) => {
                format!("on_error answers {error} with {given} and leaves the transaction cancelled.")
            }
            Answer::Either => format!("on_error retries {error} or gives it back."),
        };
        let topic = format!("on_error/{}", error.code());
        cases.push(Case::new(SECTION, &topic, promise, move |c| on_error(c, error)));
    }
    cases
}

async fn predicates(_: Ctx) -> Expectation {
    let codes = |is: fn(Error) -> bool| -> Vec<i32> {
        Error::ALL.iter().filter(|e| is(**e)).map(|e| e.code()).collect()
    };
    let not = vec![1007, 1009, 1020, 1037, 1038, 1042, 1051, 1078, 1213, 1223, 1235, 1242];
    same("maybe committed", codes(Error::is_maybe_committed), vec![1021, 1039])?;
    same("retryable, not committed", codes(Error::is_retryable_not_committed), not.clone())?;
    let mut either = [not, vec![1021, 1039]].concat();
    either.sort_unstable();
    same("retryable", codes(Error::is_retryable), either)?;
    let unknown = codes(Error::leaves_commit_unknown);
    for code in [1021, 1022, 1025, 1031, 1039, 1101, 2017] {
        holds(unknown.contains(&code), || format!("{code} leaves the commit's outcome unknown"))?;
    }
    for code in UNNAMED {
        let error = Error::from_code(code);
        holds(!error.is_retryable(), || format!("{error} is not retryable"))?;
        holds(error.leaves_commit_unknown(), || format!("{error} leaves the commit's outcome unknown"))?;
    }
    Ok(())
}

async fn on_error(c: Ctx, error: Error) -> Expectation {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"lost");
    let seen = tx.on_error(error).await;
    let retried = match (answer(error), seen) {
        (Answer::Retries | Answer::Either, Ok(())) => true,
        (Answer::Gives(given), Err(e)) if e == given => false,
        (Answer::Either, Err(e)) if e == error => false,
        (Answer::Retries, seen) => return same("on_error", seen, Ok(())),
        (Answer::Gives(given), seen) => return same("on_error", seen, Err(given)),
        (Answer::Either, seen) => return same("on_error", seen, Err(error)),
    };
    if retried {
        same("the write before on_error", tx.get(&c.key("a"), Serializable).await?, None)?;
        tx.commit().await?;
    } else {
        let read = tx.get(&c.key("a"), Serializable).await;
        fails("a read after the failed on_error", read, Error::TRANSACTION_CANCELLED)?;
        fails("a commit after it", tx.commit().await, Error::TRANSACTION_CANCELLED)?;
    }
    same("the write before on_error, afterwards", c.value("a").await?, None)
}

async fn on_success(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"lost");
    fails("on_error(0)", tx.on_error(Error::from_code(0)).await, Error::CLIENT_INVALID_OPERATION)?;
    let read = tx.get(&c.key("a"), Serializable).await;
    fails("a read after it", read, Error::TRANSACTION_CANCELLED)
}

async fn failed_cancels(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let refused = tx.on_error(Error::CLIENT_INVALID_OPERATION).await;
    fails("on_error(2000)", refused, Error::CLIENT_INVALID_OPERATION)?;
    let cancelled = Error::TRANSACTION_CANCELLED;
    fails("get", tx.get(&c.key("a"), Serializable).await, cancelled)?;
    fails("get_read_version", tx.get_read_version().await, cancelled)?;
    fails("on_error(1020)", tx.on_error(Error::NOT_COMMITTED).await, cancelled)?;
    fails("commit", tx.commit().await, cancelled)?;
    tx.reset();
    tx.set(&c.key("a"), b"1");
    succeeds("commit after reset", tx.commit().await)?;
    same("the value written after reset", c.value("a").await?, some("1"))
}

async fn on_cancelled(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.cancel();
    let answer = tx.on_error(Error::NOT_COMMITTED).await;
    fails("on_error(1020)", answer, Error::TRANSACTION_CANCELLED)
}

async fn discards_writes(c: Ctx) -> Expectation {
    c.put_all(&["a", "b"]).await?;
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"changed");
    tx.clear_range(&c.key("b"), &c.key("c"));
    tx.on_error(Error::NOT_COMMITTED).await?;
    c.writes_are(&tx, &[]).await?;
    tx.set(&c.key("d"), b"d");
    tx.commit().await?;
    let row = |k: &'static str| (k.into(), k.into());
    same("the rows", c.rows().await?, vec![row("a"), row("b"), row("d")])
}

async fn discards_reads(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    tx.on_error(Error::NOT_COMMITTED).await?;
    c.reads_are(&tx, &[]).await?;
    tx.get_read_version().await?;
    c.put("a", "other").await?;
    c.touch(&tx)?;
    succeeds("a commit that no longer read the key", tx.commit().await)
}

async fn new_read_version(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let before = tx.get_read_version().await?;
    let committed = c.put("a", "new").await?;
    tx.on_error(Error::NOT_COMMITTED).await?;
    let after = tx.get_read_version().await?;
    holds(before < committed && committed <= after, || {
        format!("first read version {before} < commit {committed} <= second read version {after}")
    })?;
    same("the read", tx.get(&c.key("a"), Serializable).await?, some("new"))
}

async fn read_in_flight(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    for n in (0..60).step_by(2) {
        tx.set(&c.key(format!("r{n:02}")), b"own");
    }
    tx.get_read_version().await?;
    let range = RangeOption { mode: StreamingMode::Exact, ..c.range("r", "s").limit(100) };
    let before = c.put("a", "before").await?;
    let read = tx.get_range(&range, 1, Serializable);
    let (_, retried, meanwhile) =
        join3(read, tx.on_error(Error::TRANSACTION_TOO_OLD), c.put("a", "meanwhile")).await;
    retried?;
    let (meanwhile, next) = (meanwhile?, tx.get_read_version().await?);
    holds(before <= next, || format!("commit {before} before on_error <= next read version {next}"))?;
    let seen = if next < meanwhile { "before" } else { "meanwhile" };
    same("the read", tx.get(&c.key("a"), Serializable).await?, some(seen))?;
    tx.set(&c.key("b"), b"1");
    match tx.commit().await {
        Err(Error::NOT_COMMITTED) if next < meanwhile => Ok(()),
        committed => {
            succeeds("the commit", committed)?;
            holds(next >= meanwhile, || format!("commit {meanwhile} conflicts with read version {next}"))
        }
    }
}

async fn after_conflict(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    c.put("a", "theirs").await?;
    tx.set(&c.key("b"), b"1");
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)?;
    tx.on_error(Error::NOT_COMMITTED).await?;
    same("the second attempt's read", tx.get(&c.key("a"), Serializable).await?, some("theirs"))?;
    tx.set(&c.key("b"), b"2");
    tx.commit().await?;
    same("the value", c.value("b").await?, some("2"))
}

async fn clears_deferred(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.clear_range(&c.key("b"), &c.key("a"));
    fails("the read", tx.get(&c.key("a"), Serializable).await, Error::INVERTED_RANGE)?;
    tx.on_error(Error::NOT_COMMITTED).await?;
    tx.set(&c.key("a"), b"1");
    succeeds("the commit after on_error", tx.commit().await)
}

async fn limit_counts(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::RetryLimit(2))?;
    succeeds("the first retry", tx.on_error(Error::NOT_COMMITTED).await)?;
    succeeds("the second retry", tx.on_error(Error::NOT_COMMITTED).await)?;
    fails("the third", tx.on_error(Error::NOT_COMMITTED).await, Error::NOT_COMMITTED)?;
    fails("a read after it", tx.get(&c.key("a"), Serializable).await, Error::TRANSACTION_CANCELLED)
}

async fn limit_any_error(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::RetryLimit(3))?;
    for error in [Error::TRANSACTION_TOO_OLD, Error::COMMIT_UNKNOWN_RESULT, Error::PROCESS_BEHIND] {
        succeeds("a retry below the limit", tx.on_error(error).await)?;
    }
    fails("one more", tx.on_error(Error::FUTURE_VERSION).await, Error::FUTURE_VERSION)
}

async fn limit_zero(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::RetryLimit(0))?;
    fails("the first retry", tx.on_error(Error::NOT_COMMITTED).await, Error::NOT_COMMITTED)
}

async fn limit_unlimited(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::RetryLimit(0))?;
    tx.set_option(TransactionOption::RetryLimit(-1))?;
    for _ in 0..5 {
        succeeds("a retry", tx.on_error(Error::NOT_COMMITTED).await)?;
    }
    Ok(())
}

async fn limit_reset(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::RetryLimit(1))?;
    succeeds("the retry", tx.on_error(Error::NOT_COMMITTED).await)?;
    tx.reset();
    for _ in 0..3 {
        succeeds("a retry after reset", tx.on_error(Error::NOT_COMMITTED).await)?;
    }
    Ok(())
}

/// How long `times` calls of `on_error` with this error take together.
async fn retries(c: &Ctx, tx: &Tx, error: Error, times: u32) -> std::result::Result<Duration, super::Broken> {
    let begin = c.db.env().now();
    for _ in 0..times {
        tx.on_error(error).await?;
    }
    Ok(c.db.env().now() - begin)
}

/// Sixteen backoffs are uniform below 0.01, 0.02, .. 0.64 s, and then nine times below 1 s. The probability
/// that they sum to less than 0.3 s is below 1e-10; without growth they cannot exceed 0.16 s by more than the
/// duration of the calls themselves.
const GROWN: u32 = 16;

async fn backoff_grows(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let took = retries(&c, &tx, Error::NOT_COMMITTED, GROWN).await?;
    holds(took >= Duration::from_millis(300), || format!("{GROWN} backoffs grow; they took {took:?}"))
}

async fn backoff_reset(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    retries(&c, &tx, Error::NOT_COMMITTED, GROWN).await?;
    let mut took = Duration::ZERO;
    for _ in 0..12 {
        tx.reset();
        took += retries(&c, &tx, Error::NOT_COMMITTED, 1).await?;
    }
    // The probability that twelve delays uniform below 1 s sum to less than this is below 1e-11.
    holds(took <= Duration::from_millis(500), || {
        format!("12 first backoffs of less than 0.01 s each; they took {took:?}")
    })
}

async fn backoff_capped(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::MaxRetryDelay(5))?;
    let took = retries(&c, &tx, Error::NOT_COMMITTED, 2 * GROWN).await?;
    holds(took <= Duration::from_millis(1_000), || {
        format!("{} backoffs of at most 0.005 s each; they took {took:?}", 2 * GROWN)
    })
}

async fn fixed_delay(c: Ctx, error: Error) -> Expectation {
    let tx = c.tx()?;
    let took = retries(&c, &tx, error, GROWN).await?;
    let (least, most) = (Duration::from_millis(9 * GROWN as u64), Duration::from_millis(1_000));
    holds(least <= took && took <= most, || format!("{GROWN} delays of 0.01 s each; they took {took:?}"))
}

async fn after_timeout(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::Timeout(50))?;
    c.pause(200).await;
    let answer = tx.on_error(Error::NOT_COMMITTED).await;
    fails("on_error(1020)", answer, Error::TRANSACTION_TIMED_OUT)
}
