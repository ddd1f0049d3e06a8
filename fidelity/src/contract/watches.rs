//! Watches. A watch may be late, and may miss a change that is reverted. Cases wait for a bounded time
//! for a watch that must fire, and require a watch to fire for a reverted change only if there was ample time
//! to notice the change.
//!
//! Each kind of change is tested in three ways: directly after the commit, while the watch's future is being
//! polled, and before it is polled for the first time.

use super::{
    Broken, Case, Ctx, Expectation,
    expect::{fails, holds, same, succeeds},
    stamps::stamped,
    world::Serializable,
};
use futures::future::{BoxFuture, Either, select};
use shaketable_tx::{
    Database, DatabaseOption, Error, MutationType, Result, Transaction, TransactionOption, Tx,
};
use std::time::Duration;

const SECTION: &str = "watches";

/// The delay after which a watch counts as lost.
const LATE: Duration = Duration::from_secs(60);

type Watch = BoxFuture<'static, Result<()>>;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = single_cases();
    for (name, change, before) in CHANGES {
        let about = match before {
            Some(_) => change.about(),
            None => "is set for the first time",
        };
        let mut add = |group: &str, promise: String, when| {
            let topic = format!("{group}/{name}");
            cases.push(Case::new(SECTION, &topic, promise, move |c| fires(c, *before, *change, when)));
        };
        add("fires", format!("A watch fires when its key {about}."), When::AtOnce);
        add("polled", format!("A watch that is waited for fires when its key {about}."), When::Polled);
        add(
            "unpolled",
            format!("A watch whose future nobody polls notices that its key {about}, though that is undone."),
            When::Unpolled,
        );
    }
    cases
}

fn single_cases() -> Vec<Case> {
    catalogue! {
        "fires/changed-before-commit", changed_before_commit,
            "A watch whose key was changed between its read and its commit fires.";
        "fires/several", several,
            "Every watch on a key fires.";
        "fires/after-reset", after_reset,
            "Once its transaction has committed a watch outlives the reset and the end of the handle.";
        "quiet/unchanged", unchanged,
            "A watch does not fire while nothing changes.";
        "quiet/same-value", same_value,
            "A write of the value that is there does not fire it.";
        "quiet/clear-of-absent", clear_of_absent,
            "A clear of an absent key does not fire it.";
        "quiet/other-key", other_key,
            "A write of another key does not fire it.";
        "quiet/own-earlier-write", own_earlier,
            "The transaction's own earlier write does not fire it.";
        "own/earlier-write-is-compared", own_compared,
            "After an own write the watch compares with what was written.";
        "own/later-write", own_later,
            "An own later write that changes the value fires it at once, before the commit.";
        "own/later-same-value", own_later_same,
            "An own later write of the same value does not.";
        "own/later-clear", own_later_clear,
            "An own later clear fires it.";
        "conflict/listed", listed,
            "watch adds its key to the read conflict ranges.";
        "conflict/real", conflicts,
            "A transaction that watches a key conflicts when it was written.";
        "fails/commit", commit_error,
            "The error of the commit is the watch's.";
        "fails/reset", reset,
            "A reset before the commit is 1025 for the watch.";
        "fails/cancel", cancelled,
            "A cancel is 1025 for a watch that still reads its key; a later one is silent until the reset.";
        "fails/cancel-dropped", cancelled_dropped,
            "So it is until the end of the last handle.";
        "fails/timeout", timed_out,
            "A timeout leaves a watch that has read its key silent until the reset.";
        "fails/on_error", on_error,
            "on_error before the commit is 1025 for the watch.";
        "fails/dropped", dropped,
            "The end of the last handle before the commit is 1025 for the watch.";
        "fails/ryw-off", ryw_off,
            "With option 51 a watch is 1034.";
        "fails/long-key", |c| refused(c, &[b'x'; 10_001], Error::KEY_TOO_LARGE),
            "A watch on a key longer than 10,000 bytes is 2102.";
        "fails/system-key", |c| refused(c, b"\xff/shaketable", Error::KEY_OUTSIDE_LEGAL_RANGE),
            "A watch on a key at or above \\xff is 2004.";
        "fails/too-many", too_many,
            "One watch more than max_watches is 1032.";
        "read-only", read_only,
            "A transaction that only watches is read-only: its commit never fails.";
    }
}

/// The result of the watch; broken if there is none within [`LATE`].
async fn answer(c: &Ctx, watch: Watch) -> std::result::Result<Result<()>, Broken> {
    match select(watch, c.db.env().sleep(LATE)).await {
        Either::Left((answer, _)) => Ok(answer),
        Either::Right(_) => Err(Broken::new(format!("the watch answers; it had not within {LATE:?}"))),
    }
}

async fn must_fire(c: &Ctx, watch: Watch) -> Expectation {
    succeeds("the watch", answer(c, watch).await?)
}

/// The watch must not complete within the next third of a second.
async fn must_be_quiet(c: &Ctx, watch: &mut Watch) -> Expectation {
    match select(watch, c.db.env().sleep(Duration::from_millis(300))).await {
        Either::Left((Ok(()), _)) => Err(Broken::new("the watch does not fire, and it did")),
        Either::Left((Err(e), _)) => Err(e.into()),
        Either::Right(_) => Ok(()),
    }
}

/// A committed watch on `a`.
async fn armed(c: &Ctx) -> Result<Watch> {
    let tx = c.tx()?;
    let watch = tx.watch(&c.key("a"));
    tx.commit().await?;
    Ok(watch)
}

/// A change that another transaction makes to a watched key.
#[derive(Clone, Copy)]
enum Change {
    Set(&'static str),
    Clear,
    ClearRange,
    Atomic(MutationType, &'static str),
    Stamp,
}

impl Change {
    fn about(self) -> &'static str {
        match self {
            Change::Set(_) => "is set to another value",
            Change::Clear => "is cleared",
            Change::ClearRange => "is inside a range that is cleared",
            Change::Atomic(..) => "is changed by an atomic operation",
            Change::Stamp => "gets a versionstamped value",
        }
    }

    fn make<T: Transaction>(self, tx: &T, key: &[u8], range: (&[u8], &[u8])) {
        match self {
            Change::Set(value) => tx.set(key, value.as_bytes()),
            Change::Clear => tx.clear(key),
            Change::ClearRange => tx.clear_range(range.0, range.1),
            Change::Atomic(op, operand) => tx.atomic_op(key, operand.as_bytes(), op),
            Change::Stamp => tx.atomic_op(key, &stamped(b"", b""), MutationType::SetVersionstampedValue),
        }
    }
}

/// Each kind of change, with the value of the key before it.
const CHANGES: &[(&str, Change, Option<&str>)] = &[
    ("set", Change::Set("new"), Some("old")),
    ("insert", Change::Set("new"), None),
    ("empty-insert", Change::Set(""), None),
    ("clear", Change::Clear, Some("old")),
    ("range-clear", Change::ClearRange, Some("old")),
    ("atomic", Change::Atomic(MutationType::AppendIfFits, "!"), Some("old")),
    ("atomic-insert", Change::Atomic(MutationType::Add, "\x01"), None),
    ("atomic-clear", Change::Atomic(MutationType::CompareAndClear, "old"), Some("old")),
    ("versionstamp", Change::Stamp, Some("old")),
];

/// When the change is made.
#[derive(Clone, Copy, PartialEq)]
enum When {
    /// Directly after the commit.
    AtOnce,
    /// While the future is being polled.
    Polled,
    /// After the cluster has had time to notice the watch; reverted before the first poll.
    Unpolled,
}

async fn fires(c: Ctx, before: Option<&str>, change: Change, when: When) -> Expectation {
    if let Some(value) = before {
        c.put("a", value).await?;
    }
    let mut watch = armed(&c).await?;
    match when {
        When::AtOnce => {}
        When::Polled => must_be_quiet(&c, &mut watch).await?,
        When::Unpolled => c.pause(300).await,
    }
    c.commit(|tx| change.make(tx, &c.key("a"), (&c.key(""), &c.key("z")))).await?;
    if when == When::Unpolled {
        c.pause(1_000).await;
        match before {
            Some(value) => c.put("a", value).await?,
            None => c.commit(|tx| tx.clear(&c.key("a"))).await?,
        };
        c.pause(300).await;
    }
    must_fire(&c, watch).await
}

async fn changed_before_commit(c: Ctx) -> Expectation {
    c.put("a", "old").await?;
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    let watch = tx.watch(&c.key("a"));
    c.put("a", "new").await?;
    tx.commit().await?;
    must_fire(&c, watch).await
}

async fn several(c: Ctx) -> Expectation {
    c.put("a", "old").await?;
    let tx = c.tx()?;
    let (first, second) = (tx.watch(&c.key("a")), tx.watch(&c.key("a")));
    tx.commit().await?;
    let third = armed(&c).await?;
    c.put("a", "new").await?;
    for watch in [first, second, third] {
        must_fire(&c, watch).await?;
    }
    Ok(())
}

async fn after_reset(c: Ctx) -> Expectation {
    c.put("a", "old").await?;
    let tx = c.tx()?;
    let mut watch = tx.watch(&c.key("a"));
    tx.commit().await?;
    tx.reset();
    must_be_quiet(&c, &mut watch).await?;
    drop(tx);
    must_be_quiet(&c, &mut watch).await?;
    c.put("a", "new").await?;
    must_fire(&c, watch).await
}

async fn unchanged(c: Ctx) -> Expectation {
    c.put("a", "old").await?;
    must_be_quiet(&c, &mut armed(&c).await?).await
}

async fn same_value(c: Ctx) -> Expectation {
    c.put("a", "old").await?;
    let mut watch = armed(&c).await?;
    c.put("a", "old").await?;
    must_be_quiet(&c, &mut watch).await?;
    c.put("a", "new").await?;
    must_fire(&c, watch).await
}

async fn clear_of_absent(c: Ctx) -> Expectation {
    let mut watch = armed(&c).await?;
    c.commit(|tx| tx.clear(&c.key("a"))).await?;
    must_be_quiet(&c, &mut watch).await
}

async fn other_key(c: Ctx) -> Expectation {
    let mut watch = armed(&c).await?;
    c.put("a\0", "new").await?;
    must_be_quiet(&c, &mut watch).await
}

async fn own_earlier(c: Ctx) -> Expectation {
    c.put("a", "old").await?;
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"own");
    let mut watch = tx.watch(&c.key("a"));
    tx.commit().await?;
    must_be_quiet(&c, &mut watch).await
}

async fn own_compared(c: Ctx) -> Expectation {
    c.put("a", "old").await?;
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"own");
    let watch = tx.watch(&c.key("a"));
    tx.commit().await?;
    c.put("a", "old").await?;
    must_fire(&c, watch).await
}

async fn own_later(c: Ctx) -> Expectation {
    c.put("a", "old").await?;
    let tx = c.tx()?;
    let watch = tx.watch(&c.key("a"));
    tx.set(&c.key("a"), b"own");
    must_fire(&c, watch).await?;
    succeeds("the commit", tx.commit().await)
}

async fn own_later_same(c: Ctx) -> Expectation {
    c.put("a", "old").await?;
    let tx = c.tx()?;
    let mut watch = tx.watch(&c.key("a"));
    tx.set(&c.key("a"), b"old");
    must_be_quiet(&c, &mut watch).await?;
    tx.commit().await?;
    must_be_quiet(&c, &mut watch).await
}

async fn own_later_clear(c: Ctx) -> Expectation {
    c.put("a", "old").await?;
    let tx = c.tx()?;
    let watch = tx.watch(&c.key("a"));
    tx.clear_range(&c.key(""), &c.key("b"));
    must_fire(&c, watch).await
}

async fn listed(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let watch = tx.watch(&c.key("a"));
    c.reads_are(&tx, &[("a", "a\0")]).await?;
    tx.commit().await?;
    same("the committed version", tx.get_committed_version()?, -1)?;
    c.put("a", "new").await?;
    must_fire(&c, watch).await
}

async fn conflicts(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get_read_version().await?;
    let watch = tx.watch(&c.key("a"));
    c.put("a", "theirs").await?;
    c.touch(&tx)?;
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)?;
    fails("the watch", answer(&c, watch).await?, Error::NOT_COMMITTED)
}

async fn commit_error(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("b"), Serializable).await?;
    let watch = tx.watch(&c.key("a"));
    c.put("b", "theirs").await?;
    c.touch(&tx)?;
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)?;
    fails("the watch", answer(&c, watch).await?, Error::NOT_COMMITTED)
}

/// A transaction and a watch of it that has read its key.
async fn set(c: &Ctx) -> std::result::Result<(Tx, Watch), Broken> {
    let tx = c.tx()?;
    let mut watch = tx.watch(&c.key("a"));
    must_be_quiet(c, &mut watch).await?;
    Ok((tx, watch))
}

async fn reset(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let watch = tx.watch(&c.key("a"));
    tx.reset();
    fails("the watch", answer(&c, watch).await?, Error::TRANSACTION_CANCELLED)?;
    let (tx, watch) = set(&c).await?;
    tx.reset();
    fails("the watch", answer(&c, watch).await?, Error::TRANSACTION_CANCELLED)
}

async fn cancelled(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let watch = tx.watch(&c.key("a"));
    tx.cancel();
    fails("the watch", answer(&c, watch).await?, Error::TRANSACTION_CANCELLED)?;
    let (tx, mut watch) = set(&c).await?;
    tx.cancel();
    must_be_quiet(&c, &mut watch).await?;
    fails("the commit", tx.commit().await, Error::TRANSACTION_CANCELLED)?;
    must_be_quiet(&c, &mut watch).await?;
    tx.reset();
    fails("the watch", answer(&c, watch).await?, Error::TRANSACTION_CANCELLED)
}

async fn cancelled_dropped(c: Ctx) -> Expectation {
    let (tx, mut watch) = set(&c).await?;
    tx.cancel();
    must_be_quiet(&c, &mut watch).await?;
    drop(tx);
    fails("the watch", answer(&c, watch).await?, Error::TRANSACTION_CANCELLED)
}

async fn timed_out(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::Timeout(250))?;
    let mut watch = tx.watch(&c.key("a"));
    must_be_quiet(&c, &mut watch).await?;
    fails("a read", tx.get(&c.key("b"), Serializable).await, Error::TRANSACTION_TIMED_OUT)?;
    must_be_quiet(&c, &mut watch).await?;
    tx.reset();
    fails("the watch", answer(&c, watch).await?, Error::TRANSACTION_CANCELLED)
}

async fn on_error(c: Ctx) -> Expectation {
    let (tx, watch) = set(&c).await?;
    tx.on_error(Error::NOT_COMMITTED).await?;
    fails("the watch", answer(&c, watch).await?, Error::TRANSACTION_CANCELLED)
}

async fn dropped(c: Ctx) -> Expectation {
    let (tx, watch) = set(&c).await?;
    drop(tx);
    fails("the watch", answer(&c, watch).await?, Error::TRANSACTION_CANCELLED)
}

async fn ryw_off(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::ReadYourWritesDisable)?;
    let watch = tx.watch(&c.key("a"));
    succeeds("the commit", tx.commit().await)?;
    fails("the watch", answer(&c, watch).await?, Error::WATCHES_DISABLED)
}

async fn refused(c: Ctx, key: &'static [u8], error: Error) -> Expectation {
    let tx = c.tx()?;
    let watch = tx.watch(key);
    fails("the watch", answer(&c, watch).await?, error)?;
    succeeds("a read after it", tx.get(&c.key("a"), Serializable).await).map(drop)
}

async fn too_many(c: Ctx) -> Expectation {
    let outcome = one_at_most(&c).await;
    c.db.set_option(DatabaseOption::MaxWatches(10_000))?;
    outcome?;
    must_be_quiet(&c, &mut armed(&c).await?).await
}

async fn one_at_most(c: &Ctx) -> Expectation {
    let refused = async || fails("one more", answer(c, armed(c).await?).await?, Error::TOO_MANY_WATCHES);
    c.db.set_option(DatabaseOption::MaxWatches(0))?;
    refused().await?;
    c.db.set_option(DatabaseOption::MaxWatches(1))?;
    let mut watch = armed(c).await?;
    must_be_quiet(c, &mut watch).await?;
    refused().await?;
    // A watch that is no longer awaited does not count, nor does one that has fired.
    drop(watch);
    c.pause(100).await;
    let watch = armed(c).await?;
    c.put("a", "new").await?;
    must_fire(c, watch).await?;
    let (tx, dropped) = set(c).await?;
    refused().await?;
    tx.reset();
    fails("the watch", answer(c, dropped).await?, Error::TRANSACTION_CANCELLED)?;
    must_be_quiet(c, &mut armed(c).await?).await
}

async fn read_only(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get_read_version().await?;
    let watch = tx.watch(&c.key("a"));
    c.put("a", "new").await?;
    succeeds("the commit", tx.commit().await)?;
    same("the committed version", tx.get_committed_version()?, -1)?;
    holds(answer(&c, watch).await?.is_ok(), || "the watch fires: the value is another by now".into())
}
