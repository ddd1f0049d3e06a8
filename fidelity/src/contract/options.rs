//! The effects of options, and which of them remain set after `on_error`.

use super::{
    Case, Ctx, Expectation,
    expect::{fails, fails_with, holds, same, succeeds},
    world::{CONFLICTING_KEYS, READ_CONFLICTS, Serializable, Snapshot, ranges, some},
};
use TransactionOption::*;
use bytes::Bytes;
use shaketable_tx::{
    Database, DatabaseOption, Error, MutationType, Result, Transaction, TransactionOption, Tx,
};
use std::{future::Future, time::Duration};

const SECTION: &str = "options";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = catalogue! {
        "timeout/read", timeout_read,
            "After the timeout a read is 1031.";
        "timeout/commit", timeout_commit,
            "After the timeout a commit is 1031, and writes nothing if it had not begun.";
        "timeout/over-retries", timeout_over_retries,
            "The timeout counts from the creation, over all retries.";
        "timeout/zero", timeout_zero,
            "A timeout of 0 disables it.";
        "timeout/latest-counts", timeout_latest,
            "The timeout that was set last is the one that counts.";
        "timeout/over", timeout_over,
            "A timeout that is over stays so until the reset, whatever is set then.";
        "timeout/reset", timeout_reset,
            "reset drops the timeout, and makes one that has passed usable again.";
        "persistent/retry-limit", persistent_retry_limit,
            "retry_limit outlives on_error.";
        "persistent/max-retry-delay", persistent_max_delay,
            "max_retry_delay outlives on_error.";
        "lost/read-your-writes-disable", lost_ryw,
            "Option 51 must be set again in each attempt.";
        "lost/snapshot-ryw-disable", lost_snapshot_ryw,
            "Option 601 must be set again in each attempt.";
        "lost/next-write", lost_next_write,
            "Option 30 must be set again in each attempt.";
        "lost/access-system-keys", |c| lost_system(c, AccessSystemKeys),
            "Option 301 must be set again in each attempt.";
        "lost/read-system-keys", |c| lost_system(c, ReadSystemKeys),
            "Option 302 must be set again in each attempt.";
        "lost/size-limit", lost_size_limit,
            "Option 503 must be set again in each attempt.";
        "lost/report-conflicting-keys", lost_report,
            "Option 712 must be set again in each attempt.";
        "lost/special-relaxed", lost_relaxed,
            "Option 713 must be set again in each attempt.";
        "lost/special-writes", lost_special_writes,
            "Option 714 must be set again in each attempt.";
        "lost/bypass-unreadable", lost_bypass,
            "Option 1100 must be set again in each attempt.";
        "lost/reset", lost_by_reset,
            "reset drops every option.";
        "tags/sixth", sixth_tag,
            "A sixth tag is 2109.";
        "ryw-disable/after-read", |c| late_ryw(c, false),
            "Option 51 after a read is 2000.";
        "ryw-disable/after-write", |c| late_ryw(c, true),
            "Option 51 after a write is 2000.";
        "snapshot-ryw/default", snapshot_default,
            "Snapshot reads see own writes by default.";
        "snapshot-ryw/disable", snapshot_disable,
            "With 601 snapshot reads ignore own writes, and serializable reads see them.";
        "snapshot-ryw/counter", snapshot_counter,
            "600 and 601 count: as many enables as disables restore it.";
        "snapshot-ryw/surplus", snapshot_surplus,
            "An enable more than disables is not lost: one disable then only balances it.";
        "next-write/one-only", next_write,
            "Option 30 suppresses the write conflict range of the next write only.";
        "next-write/no-conflict", next_write_no_conflict,
            "A write whose conflict range is suppressed does not conflict with readers.";
        "system-keys/read", system_read,
            "With 302 system keys can be read and not written.";
        "system-keys/access", system_access,
            "With 301 system keys can be read.";
        "database/timeout", db_timeout,
            "The handle's default timeout holds for new transactions, and after their reset.";
        "database/retry-limit", db_retry_limit,
            "The handle's default retry limit holds for new transactions.";
        "database/size-limit", db_size_limit,
            "The handle's default size limit holds for new transactions, in every attempt.";
        "database/max-retry-delay", db_max_delay,
            "The handle's default max_retry_delay holds for new transactions.";
        "database/snapshot-ryw", db_snapshot_ryw,
            "The handle's options 26 and 27 set where the counter of 600 and 601 begins.";
        "database/overridden", db_overridden,
            "A transaction's own option wins over the handle's default.";
        "database/raw", db_raw,
            "A handle's options can be set by code and bytes, and are refused like a transaction's.";
        "database/machine", db_machine,
            "A handle that was told its machine and data centre reads as ever.";
        "raw/option", raw_option,
            "An option set by its code and bytes does what it does.";
        "identifier/another", other_identifier,
            "Another identifier (403) than was set before is 2000, the same is not.";
        "idempotency-id/commit", idempotency_id,
            "A transaction with an idempotency id of its own commits, and its stamp is right.";
        "grv-cache/own-commits", grv_cache,
            "A cached read version (1101) is not older than the client's own commits; it may be refused with 2007.";
        "grv-cache/skipped", grv_cache_skipped,
            "With 1102 as well as 1101 the read version is a fresh one.";
    };
    for ((topic, code, value), errors) in REFUSED_RAW {
        let promise = format!("Option {code} with the bytes {value:?} is refused with {errors:?}.");
        cases.push(Case::new(SECTION, &format!("refused/raw/{topic}"), promise, move |c| {
            refused_raw(c, *code, *value, errors)
        }));
    }
    for (topic, code, value) in HARMLESS_RAW {
        let promise = format!("With {topic} ({code}) an undisturbed transaction reads and commits as ever.");
        cases.push(Case::new(SECTION, &format!("harmless/raw/{topic}"), promise, move |c| {
            harmless(c, move |tx: &Tx| tx.set_option_raw(*code, *value))
        }));
    }
    for (topic, option, errors) in REFUSED {
        let promise = format!("{topic} is refused with {errors:?}.");
        cases.push(Case::new(SECTION, &format!("refused/{topic}"), promise, move |c| {
            refused(c, option.clone(), errors)
        }));
    }
    for (topic, option) in HARMLESS {
        let promise = format!("With {topic} an undisturbed transaction reads and commits as ever.");
        cases.push(Case::new(SECTION, &format!("harmless/{topic}"), promise, move |c| {
            harmless(c, |tx: &Tx| tx.set_option(option.clone()))
        }));
    }
    cases
}

const REFUSED: &[(&str, TransactionOption, &[Error])] = &[
    ("timeout-negative", Timeout(-1), &[Error::INVALID_OPTION_VALUE]),
    ("retry-limit-below-minus-one", RetryLimit(-2), &[Error::INVALID_OPTION_VALUE]),
    ("max-retry-delay-negative", MaxRetryDelay(-1), &[Error::INVALID_OPTION_VALUE]),
    ("size-limit-31", SizeLimit(31), &[Error::INVALID_OPTION_VALUE]),
    ("size-limit-above-default", SizeLimit(10_000_001), &[Error::INVALID_OPTION_VALUE]),
];

const HARMLESS: &[(&str, TransactionOption)] = &[
    ("causal-read-risky", CausalReadRisky),
    ("priority-batch", PriorityBatch),
    ("priority-system-immediate", PrioritySystemImmediate),
    ("lock-aware", LockAware),
    ("raw-access", RawAccess),
    ("report-conflicting-keys", ReportConflictingKeys),
    ("size-limit-10000000", SizeLimit(10_000_000)),
    ("max-retry-delay-0", MaxRetryDelay(0)),
];

const EIGHT: &[u8] = &[0; 8];
const LONG: &[u8] = &[b'x'; 256];

/// An option: its name in this file, its code and its value.
type Raw = (&'static str, i32, Option<&'static [u8]>);

/// Options that are rejected, with the possible errors.
const REFUSED_RAW: &[(Raw, &[Error])] = &[
    (("no-such-option", 12, None), &[Error::INVALID_OPTION]),
    (("value-too-many", 10, Some(b"x")), &[Error::INVALID_OPTION_VALUE]),
    (("value-missing", 501, None), &[Error::INVALID_OPTION_VALUE]),
    (("integer-of-four-bytes", 501, Some(&[0; 4])), &[Error::INVALID_OPTION_VALUE]),
    (("timeout-beyond-32-bits", 500, Some(&[0, 0, 0, 0, 1, 0, 0, 0])), &[Error::INVALID_OPTION_VALUE]),
    (("log-transaction-without-identifier", 404, None), &[Error::CLIENT_INVALID_OPERATION]),
    (("identifier-empty", 403, Some(b"")), &[Error::INVALID_OPTION_VALUE]),
    (("identifier-of-101-bytes", 403, Some(LONG.split_at(101).0)), &[Error::INVALID_OPTION_VALUE]),
    (("logging-enable-missing", 402, None), &[Error::INVALID_OPTION_VALUE]),
    (("logged-field-length-0", 405, Some(EIGHT)), &[Error::INVALID_OPTION_VALUE]),
    (("idempotency-id-of-15-bytes", 504, Some(LONG.split_at(15).0)), &[Error::INVALID_OPTION]),
    (("idempotency-id-of-256-bytes", 504, Some(LONG)), &[Error::INVALID_OPTION]),
    (("span-parent-of-32-bytes", 900, Some(LONG.split_at(32).0)), &[Error::INVALID_OPTION_VALUE]),
    (("tag-missing", 800, None), &[Error::INVALID_OPTION_VALUE]),
    (("tag-of-256-bytes", 800, Some(LONG)), &[Error::from_code(2110)]),
];

/// Options without an effect that an undisturbed transaction can observe.
const HARMLESS_RAW: &[Raw] = &[
    ("an-empty-value-that-is-none", 10, Some(b"")),
    ("include-port-in-address", 23, None),
    ("debug-retry-logging", 401, None),
    ("transaction-logging-enable", 402, Some(b"contract")),
    ("debug-transaction-identifier", 403, Some(LONG.split_at(100).0)),
    ("logged-field-length", 405, Some(&[0xff; 8])),
    ("server-request-tracing", 406, None),
    ("idempotency-id", 504, Some(LONG.split_at(16).0)),
    ("read-server-side-cache-enable", 507, None),
    ("read-server-side-cache-disable", 508, None),
    ("read-priority-normal", 509, None),
    ("read-priority-low", 510, None),
    ("read-priority-high", 511, None),
    ("tag", 800, Some(b"contract")),
    ("tag-of-255-bytes", 800, Some(LONG.split_at(255).0)),
    ("skip-grv-cache", 1102, None),
];

/// A transaction has at most five tags.
async fn sixth_tag(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    for tag in ["1", "2", "3", "4", "5"] {
        succeeds("a tag", set_then_read(&c, &tx, TransactionOption::Tag(tag.into())).await)?;
    }
    let sixth = set_then_read(&c, &tx, TransactionOption::Tag("6".into())).await;
    fails("the sixth tag", sixth, Error::from_code(2109))
}

/// How an option was rejected: by the call or, as the C client defers it, by the next read.
async fn set_then_read(c: &Ctx, tx: &Tx, option: TransactionOption) -> Result<()> {
    tx.set_option(option)?;
    tx.get(&c.key("a"), Serializable).await.map(drop)
}

async fn refused(c: Ctx, option: TransactionOption, errors: &[Error]) -> Expectation {
    let tx = c.tx()?;
    fails_with("the option or the next read", set_then_read(&c, &tx, option).await, errors)
}

async fn refused_raw(c: Ctx, code: i32, value: Option<&'static [u8]>, errors: &[Error]) -> Expectation {
    let tx = c.tx()?;
    let set = match tx.set_option_raw(code, value) {
        Ok(()) => tx.get(&c.key("a"), Serializable).await.map(drop),
        refused => refused,
    };
    fails_with("the option or the next read", set, errors)
}

async fn harmless(c: Ctx, set: impl Fn(&Tx) -> Result<()> + Send + Sync) -> Expectation {
    c.put("a", "1").await?;
    let tx = c.tx()?;
    succeeds("the option", set(&tx))?;
    same("the read", tx.get(&c.key("a"), Serializable).await?, some("1"))?;
    tx.set(&c.key("b"), b"2");
    succeeds("the commit", tx.commit().await)?;
    same("the value", c.value("b").await?, some("2"))
}

async fn timeout_read(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(Timeout(50))?;
    c.pause(200).await;
    fails("get", tx.get(&c.key("a"), Serializable).await, Error::TRANSACTION_TIMED_OUT)?;
    fails("get_read_version", tx.get_read_version().await, Error::TRANSACTION_TIMED_OUT)?;
    let range = tx.get_range(&c.everything(), 1, Snapshot).await;
    fails("get_range", range, Error::TRANSACTION_TIMED_OUT)
}

async fn timeout_commit(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(Timeout(50))?;
    tx.set(&c.key("a"), b"1");
    c.pause(200).await;
    fails("the commit", tx.commit().await, Error::TRANSACTION_TIMED_OUT)?;
    same("the value", c.value("a").await?, None)
}

async fn timeout_over_retries(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(Timeout(1_000))?;
    let begin = c.db.env().now();
    loop {
        c.pause(100).await;
        let answer = tx.on_error(Error::TRANSACTION_TOO_OLD).await;
        let took = c.db.env().now() - begin;
        match answer {
            Ok(()) => holds(took < Duration::from_secs(5), || format!("no retry succeeds after {took:?}"))?,
            answer => {
                holds(took >= Duration::from_millis(900), || {
                    format!("no timeout before 1 s; after {took:?}")
                })?;
                return fails("on_error", answer, Error::TRANSACTION_TIMED_OUT);
            }
        }
    }
}

async fn timeout_zero(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(Timeout(300))?;
    tx.set_option(Timeout(0))?;
    c.pause(600).await;
    succeeds("a read", tx.get(&c.key("a"), Serializable).await).map(drop)
}

async fn timeout_latest(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(Timeout(300))?;
    tx.set_option(Timeout(30_000))?;
    c.pause(600).await;
    succeeds("a read", tx.get(&c.key("a"), Serializable).await)?;
    tx.set_option(Timeout(100))?;
    let read = tx.get(&c.key("a"), Serializable).await;
    fails("a read after a timeout that has already passed", read, Error::TRANSACTION_TIMED_OUT)
}

async fn timeout_over(c: Ctx) -> Expectation {
    for later in [0, 30_000] {
        let tx = c.tx()?;
        tx.set(&c.key("a"), b"1");
        tx.set_option(Timeout(50))?;
        c.pause(200).await;
        tx.set_option(Timeout(later))?;
        let read = tx.get(&c.key("a"), Serializable).await;
        fails(&format!("a read after the timeout, then {later} ms"), read, Error::TRANSACTION_TIMED_OUT)?;
        fails("the commit", tx.commit().await, Error::TRANSACTION_TIMED_OUT)?;
    }
    same("the value", c.value("a").await?, None)
}

async fn timeout_reset(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(Timeout(50))?;
    c.pause(200).await;
    tx.reset();
    succeeds("a read after reset", tx.get(&c.key("a"), Serializable).await)?;
    c.pause(200).await;
    succeeds("a later read", tx.get(&c.key("b"), Serializable).await).map(drop)
}

async fn persistent_retry_limit(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(RetryLimit(1))?;
    succeeds("the retry", tx.on_error(Error::NOT_COMMITTED).await)?;
    tx.get(&c.key("a"), Serializable).await?;
    fails("one more", tx.on_error(Error::NOT_COMMITTED).await, Error::NOT_COMMITTED)
}

/// How long 32 retries take whose backoffs are mostly about half a second each.
async fn long_backoff(c: &Ctx, tx: &Tx) -> Result<Duration> {
    let begin = c.db.env().now();
    for _ in 0..32 {
        tx.on_error(Error::NOT_COMMITTED).await?;
    }
    Ok(c.db.env().now() - begin)
}

async fn persistent_max_delay(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(MaxRetryDelay(2))?;
    let took = long_backoff(&c, &tx).await?;
    holds(took < Duration::from_secs(1), || format!("32 backoffs of at most 0.002 s; they took {took:?}"))
}

/// A transaction that set `option` and was then retried.
async fn retried(c: &Ctx, option: TransactionOption) -> Result<Tx> {
    let tx = c.tx()?;
    tx.set_option(option)?;
    tx.on_error(Error::NOT_COMMITTED).await?;
    Ok(tx)
}

async fn lost_ryw(c: Ctx) -> Expectation {
    let tx = retried(&c, ReadYourWritesDisable).await?;
    tx.set(&c.key("a"), b"1");
    same("a read of an own write", tx.get(&c.key("a"), Serializable).await?, some("1"))
}

async fn lost_snapshot_ryw(c: Ctx) -> Expectation {
    let tx = retried(&c, SnapshotRywDisable).await?;
    tx.set(&c.key("a"), b"1");
    same("a snapshot read of an own write", tx.get(&c.key("a"), Snapshot).await?, some("1"))
}

async fn lost_next_write(c: Ctx) -> Expectation {
    let tx = retried(&c, NextWriteNoWriteConflictRange).await?;
    tx.set(&c.key("a"), b"1");
    c.writes_are(&tx, &[("a", "a\0")]).await
}

async fn lost_system(c: Ctx, option: TransactionOption) -> Expectation {
    let tx = retried(&c, option).await?;
    let read = tx.get(b"\xff/shaketable", Snapshot).await;
    fails("a read of a system key", read, Error::KEY_OUTSIDE_LEGAL_RANGE)
}

async fn lost_size_limit(c: Ctx) -> Expectation {
    let tx = retried(&c, SizeLimit(100)).await?;
    tx.set(&c.key("a"), &[0; 500]);
    succeeds("the commit", tx.commit().await)
}

async fn lost_report(c: Ctx) -> Expectation {
    let tx = retried(&c, ReportConflictingKeys).await?;
    tx.get(&c.key("a"), Serializable).await?;
    c.put("a", "theirs").await?;
    c.touch(&tx)?;
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)?;
    same("conflicting keys", c.listed(&tx, CONFLICTING_KEYS).await?, ranges(&[]))
}

async fn lost_relaxed(c: Ctx) -> Expectation {
    let tx = retried(&c, SpecialKeySpaceRelaxed).await?;
    let read = tx.get(b"\xff\xff/no/such/module", Snapshot).await;
    fails("a read of no module", read, Error::SPECIAL_KEYS_NO_MODULE_FOUND)
}

async fn lost_special_writes(c: Ctx) -> Expectation {
    let tx = retried(&c, SpecialKeySpaceEnableWrites).await?;
    tx.clear(&[READ_CONFLICTS, b"a"].concat());
    let read = tx.get(&c.key("a"), Snapshot).await;
    fails("a read after a write of special keys", read, Error::SPECIAL_KEYS_WRITE_DISABLED)
}

async fn lost_bypass(c: Ctx) -> Expectation {
    let tx = retried(&c, BypassUnreadable).await?;
    tx.atomic_op(&c.key("a"), &[0; 14], MutationType::SetVersionstampedValue);
    let read = tx.get(&c.key("a"), Serializable).await;
    fails("a read of the stamped value", read, Error::ACCESSED_UNREADABLE)
}

async fn lost_by_reset(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(ReadYourWritesDisable)?;
    tx.set_option(AccessSystemKeys)?;
    tx.set_option(SizeLimit(100))?;
    tx.reset();
    tx.set(&c.key("a"), &[b'1'; 500]);
    let own = tx.get(&c.key("a"), Serializable).await?;
    holds(own.is_some(), || "a read sees an own write after reset".into())?;
    let system = tx.get(b"\xff/shaketable", Snapshot).await;
    fails("a read of a system key", system, Error::KEY_OUTSIDE_LEGAL_RANGE)?;
    succeeds("the commit", tx.commit().await)
}

async fn late_ryw(c: Ctx, write: bool) -> Expectation {
    let tx = c.tx()?;
    if write {
        tx.set(&c.key("a"), b"1");
    } else {
        tx.get(&c.key("a"), Serializable).await?;
    }
    let seen = set_then_read(&c, &tx, ReadYourWritesDisable).await;
    fails("the option or the next read", seen, Error::CLIENT_INVALID_OPERATION)
}

/// Whether snapshot and serializable reads see the transaction's own write over `old`.
async fn own_write(c: &Ctx, options: &[TransactionOption]) -> Result<(bool, bool)> {
    c.put("a", "old").await?;
    let tx = c.tx()?;
    for option in options {
        tx.set_option(option.clone())?;
    }
    tx.set(&c.key("a"), b"own");
    let mut sees = [false; 2];
    for (sees, isolation) in sees.iter_mut().zip([Snapshot, Serializable]) {
        *sees = tx.get(&c.key("a"), isolation).await? == some("own");
        let rows = tx.get_range_all(c.everything(), isolation).await?;
        let key = tx.get_key(&c.selector("a", false, 1), isolation).await?;
        *sees &= rows.iter().any(|row| row.value == "own") && key == c.key("a");
    }
    Ok((sees[0], sees[1]))
}

async fn snapshot_default(c: Ctx) -> Expectation {
    same("snapshot and serializable reads see it", own_write(&c, &[]).await?, (true, true))
}

async fn snapshot_disable(c: Ctx) -> Expectation {
    let seen = own_write(&c, &[SnapshotRywDisable]).await?;
    same("snapshot and serializable reads see it", seen, (false, true))
}

async fn snapshot_counter(c: Ctx) -> Expectation {
    let two = [SnapshotRywDisable, SnapshotRywDisable, SnapshotRywEnable];
    same("two disables, one enable", own_write(&c, &two).await?, (false, true))?;
    let all = [two.as_slice(), &[SnapshotRywEnable]].concat();
    same("two disables, two enables", own_write(&c, &all).await?, (true, true))
}

async fn snapshot_surplus(c: Ctx) -> Expectation {
    let one = [SnapshotRywEnable, SnapshotRywDisable];
    same("an enable, a disable", own_write(&c, &one).await?, (true, true))?;
    let more = [one.as_slice(), &[SnapshotRywDisable]].concat();
    same("an enable, two disables", own_write(&c, &more).await?, (false, true))
}

async fn next_write(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(NextWriteNoWriteConflictRange)?;
    tx.set(&c.key("a"), b"1");
    tx.set(&c.key("b"), b"1");
    c.writes_are(&tx, &[("b", "b\0")]).await?;
    tx.commit().await?;
    same("the write without a conflict range", c.value("a").await?, some("1"))
}

async fn next_write_no_conflict(c: Ctx) -> Expectation {
    let reader = c.tx()?;
    reader.get(&c.key("a"), Serializable).await?;
    let tx = c.tx()?;
    tx.set_option(NextWriteNoWriteConflictRange)?;
    tx.clear_range(&c.key(""), &c.key("b"));
    tx.commit().await?;
    c.touch(&reader)?;
    succeeds("the reader's commit", reader.commit().await)
}

async fn system_read(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(ReadSystemKeys)?;
    same("a system key that is absent", tx.get(b"\xff/shaketable/absent", Snapshot).await?, None)?;
    tx.set(b"\xff/shaketable", b"");
    let read = tx.get(&c.key("a"), Snapshot).await;
    fails("after a write of a system key", read, Error::KEY_OUTSIDE_LEGAL_RANGE)
}

async fn system_access(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(AccessSystemKeys)?;
    same("a system key that is absent", tx.get(b"\xff/shaketable/absent", Snapshot).await?, None)
}

/// Runs `case` with a changed default of the handle, and restores it regardless of the outcome.
async fn with_default(
    c: &Ctx,
    set: DatabaseOption,
    restore: DatabaseOption,
    case: impl Future<Output = Expectation> + Send,
) -> Expectation {
    c.db.set_option(set)?;
    let outcome = case.await;
    c.db.set_option(restore)?;
    outcome
}

async fn db_timeout(c: Ctx) -> Expectation {
    let earlier = c.tx()?;
    let case = async {
        let tx = c.tx()?;
        for what in ["a read of a new transaction", "a read after its reset"] {
            c.pause(400).await;
            let read = tx.get(&c.key("a"), Serializable).await;
            fails(what, read, Error::TRANSACTION_TIMED_OUT)?;
            tx.reset();
        }
        succeeds("a read of an earlier transaction", earlier.get(&c.key("a"), Serializable).await).map(drop)
    };
    let (set, restore) = (DatabaseOption::TransactionTimeout(100), DatabaseOption::TransactionTimeout(0));
    with_default(&c, set, restore, case).await
}

async fn db_retry_limit(c: Ctx) -> Expectation {
    let case = async {
        let tx = c.tx()?;
        succeeds("the retry", tx.on_error(Error::NOT_COMMITTED).await)?;
        fails("one more", tx.on_error(Error::NOT_COMMITTED).await, Error::NOT_COMMITTED)
    };
    let set = DatabaseOption::TransactionRetryLimit(1);
    with_default(&c, set, DatabaseOption::TransactionRetryLimit(-1), case).await
}

async fn db_size_limit(c: Ctx) -> Expectation {
    let case = async {
        let tx = c.tx()?;
        for attempt in ["the first attempt's commit", "the second attempt's commit"] {
            tx.set(&c.key("a"), &[0; 500]);
            fails(attempt, tx.commit().await, Error::TRANSACTION_TOO_LARGE)?;
            tx.on_error(Error::NOT_COMMITTED).await?;
        }
        Ok(())
    };
    let set = DatabaseOption::TransactionSizeLimit(300);
    with_default(&c, set, DatabaseOption::TransactionSizeLimit(10_000_000), case).await
}

async fn db_max_delay(c: Ctx) -> Expectation {
    let case = async {
        let took = long_backoff(&c, &c.tx()?).await?;
        holds(took < Duration::from_secs(1), || format!("32 backoffs of at most 0.002 s; they took {took:?}"))
    };
    let set = DatabaseOption::TransactionMaxRetryDelay(2);
    with_default(&c, set, DatabaseOption::TransactionMaxRetryDelay(1_000), case).await
}

async fn db_snapshot_ryw(c: Ctx) -> Expectation {
    let case = async {
        same("a new transaction", own_write(&c, &[]).await?, (false, true))?;
        same("one that enables it", own_write(&c, &[SnapshotRywEnable]).await?, (true, true))
    };
    let (set, restore) = (DatabaseOption::SnapshotRywDisable, DatabaseOption::SnapshotRywEnable);
    with_default(&c, set, restore, case).await
}

async fn db_overridden(c: Ctx) -> Expectation {
    let case = async {
        let tx = c.tx()?;
        tx.set_option(RetryLimit(3))?;
        for _ in 0..3 {
            succeeds("a retry", tx.on_error(Error::NOT_COMMITTED).await)?;
        }
        fails("one more", tx.on_error(Error::NOT_COMMITTED).await, Error::NOT_COMMITTED)
    };
    let set = DatabaseOption::TransactionRetryLimit(0);
    with_default(&c, set, DatabaseOption::TransactionRetryLimit(-1), case).await
}

async fn db_raw(c: Ctx) -> Expectation {
    let case = async {
        let tx = c.tx()?;
        succeeds("the retry", tx.on_error(Error::NOT_COMMITTED).await)?;
        fails("one more", tx.on_error(Error::NOT_COMMITTED).await, Error::NOT_COMMITTED)
    };
    c.db.set_option_raw(501, Some(&1_i64.to_le_bytes()))?;
    let outcome = case.await;
    c.db.set_option_raw(501, Some(&(-1_i64).to_le_bytes()))?;
    outcome?;
    fails("an option that there is not", c.db.set_option_raw(11, None), Error::INVALID_OPTION)
}

async fn db_machine(c: Ctx) -> Expectation {
    c.put("a", "1").await?;
    c.db.set_option(DatabaseOption::MachineId(Some("abc".into())))?;
    c.db.set_option(DatabaseOption::DatacenterId(Some("contract".into())))?;
    let value = c.value("a").await;
    c.db.set_option(DatabaseOption::MachineId(None))?;
    c.db.set_option(DatabaseOption::DatacenterId(None))?;
    same("the value", value?, some("1"))
}

async fn raw_option(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    succeeds("the option", tx.set_option_raw(503, Some(&100_i64.to_le_bytes())))?;
    tx.set(&c.key("a"), &[0; 500]);
    fails("the commit", tx.commit().await, Error::TRANSACTION_TOO_LARGE)?;
    let tx = c.tx()?;
    succeeds("the option", tx.set_option_raw(51, None))?;
    tx.set(&c.key("a"), b"own");
    same("a read of an own write", tx.get(&c.key("a"), Serializable).await?, None)
}

async fn other_identifier(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let identifier = |name: &str| DebugTransactionIdentifier(name.to_owned());
    for _ in 0..2 {
        succeeds("an identifier", set_then_read(&c, &tx, identifier("one")).await)?;
    }
    succeeds("logging", set_then_read(&c, &tx, LogTransaction).await)?;
    let other = set_then_read(&c, &tx, identifier("other")).await;
    fails("another", other, Error::CLIENT_INVALID_OPERATION)
}

async fn idempotency_id(c: Ctx) -> Expectation {
    let id = Bytes::copy_from_slice(&c.db.env().random_bytes::<20>());
    let tx = c.tx()?;
    tx.set_option(IdempotencyId(id))?;
    tx.atomic_op(&c.key("a"), &[0; 14], MutationType::SetVersionstampedValue);
    let stamp = tx.get_versionstamp();
    tx.commit().await?;
    let stamp = Bytes::copy_from_slice(&stamp.await?);
    same("the value", c.value("a").await?, Some(stamp))
}

/// A transaction whose read version may come from the cache, if the client has one.
async fn cached(c: &Ctx) -> Result<Option<Tx>> {
    let tx = c.tx()?;
    let asked = match tx.set_option(UseGrvCache) {
        Ok(()) => tx.get_approximate_size().await.map(drop),
        refused => refused,
    };
    match asked {
        Err(Error::INVALID_OPTION) => Ok(None),
        Err(e) => Err(e),
        Ok(()) => Ok(Some(tx)),
    }
}

async fn grv_cache(c: Ctx) -> Expectation {
    for value in ["1", "2", "3", "4", "5"] {
        // The cache, if there is one, holds this version now.
        c.tx()?.get_read_version().await?;
        let committed = c.put("a", value).await?;
        let Some(tx) = cached(&c).await? else { return Ok(()) };
        let version = tx.get_read_version().await?;
        holds(version >= committed, || format!("{version} is not before {committed}"))?;
        same("the value", tx.get(&c.key("a"), Serializable).await?, some(value))?;
    }
    Ok(())
}

async fn grv_cache_skipped(c: Ctx) -> Expectation {
    let committed = c.put("a", "1").await?;
    let Some(tx) = cached(&c).await? else { return Ok(()) };
    tx.set_option(SkipGrvCache)?;
    let version = tx.get_read_version().await?;
    holds(version >= committed, || format!("{version} is not before {committed}"))
}
