//! Which transactions conflict, and which read versions are usable.

use super::{
    Broken, Case, Ctx, Expectation,
    expect::{fails, fails_with, holds, same, succeeds},
    world::{Serializable, Snapshot, some},
};
use futures::future::{join, join_all};
use shaketable_tx::{
    ConflictRangeType, Error, Isolation, MutationType, Result, Transaction, TransactionOption, Tx,
};
use std::fmt::Debug;

const SECTION: &str = "conflicts";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = catalogue! {
        "conflict/read-then-written", |c| read_then(c, Serializable, false),
            "A commit fails with 1020 when a key it read was written after its read version.";
        "conflict/same-value", same_value,
            "Writing the value that is already there conflicts like any write.";
        "conflict/written-before-read-version", written_before,
            "Writes committed before the read version do not conflict.";
        "conflict/written-long-before", written_long_before,
            "A write from before the window does not conflict, whatever was written next to it since.";
        "conflict/other-keys", other_keys,
            "Writes of keys that were not read do not conflict.";
        "conflict/blind-writes", blind_writes,
            "Two blind writes of one key both commit; the later one stays.";
        "conflict/snapshot-read", |c| read_then(c, Snapshot, true),
            "A snapshot read does not conflict.";
        "conflict/phantom", phantom,
            "An insertion into a range that was read, and was empty there, conflicts.";
        "conflict/added-range", added_range,
            "A read conflict range conflicts as a read would.";
        "conflict/aborted-writer", aborted_writer,
            "The writes of a transaction that failed conflict with nobody.";
        "conflict/lost-update", lost_update,
            "Of transactions that increment one key at once, none loses another's increment.";
        "conflict/write-skew", |c| write_skew(c, Serializable),
            "Two transactions that read what the other writes do not both commit.";
        "conflict/write-skew-snapshot", |c| write_skew(c, Snapshot),
            "With snapshot reads they both commit.";
        "conflict/atomic-writers", atomic_writers,
            "Concurrent atomic operations on one key do not conflict, and all count.";
        "version/lazy", lazy,
            "The read version is fetched at the first need, not at creation.";
        "version/stable", stable,
            "A transaction's read version never changes, and its reads are of one version.";
        "version/set", set_version,
            "Reads at a version that was set see the database as of then.";
        "version/set-conflicts", set_version_conflicts,
            "A version that was set is what conflicts are judged from.";
        "version/set-twice", set_twice,
            "Setting the read version twice is 2010.";
        "version/set-after-get", set_after_get,
            "Setting the read version after it was fetched is 2010.";
        "version/invalid", invalid_version,
            "A read version of 0 or below is 2011.";
        "version/future", future_version,
            "A read far ahead of the database gives up with 1009.";
        "too-old/read", too_old_read,
            "A read at a version that storage no longer keeps is 1007.";
        "too-old/cached-read", too_old_cached,
            "A read that the client has cached succeeds although its version is too old.";
        "too-old/commit", too_old_commit,
            "A commit with read conflict ranges at a version beyond the window is 1007.";
        "too-old/blind-write", too_old_blind,
            "A blind write at such a version is 1007 as well: it reads its own private key.";
        "too-old/no-read-ranges", too_old_risky,
            "Without any read conflict range (causal_write_risky) no version is too old to commit at.";
        "too-old/retry", too_old_retry,
            "After 1007 on_error makes the transaction succeed at a new version.";
    };
    for (topic, write) in WRITES {
        let promise = format!("A read conflicts with a later {topic} of its key.");
        cases.push(Case::new(SECTION, &format!("conflict/with-{topic}"), promise, move |c| {
            conflicts_with(c, *write)
        }));
    }
    cases
}

async fn read_then(c: Ctx, isolation: Isolation, commits: bool) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("a"), isolation).await?;
    c.put("a", "theirs").await?;
    tx.set(&c.key("b"), b"1");
    let committed = tx.commit().await;
    if commits {
        succeeds("the commit", committed)?;
        return same("its write", c.value("b").await?, some("1"));
    }
    fails("the commit", committed, Error::NOT_COMMITTED)?;
    same("its write", c.value("b").await?, None)
}

async fn same_value(c: Ctx) -> Expectation {
    c.put("a", "1").await?;
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    c.put("a", "1").await?;
    c.touch(&tx)?;
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)
}

async fn written_before(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    c.put("a", "before").await?;
    same("the read", tx.get(&c.key("a"), Serializable).await?, some("before"))?;
    tx.set(&c.key("a"), b"mine");
    succeeds("the commit", tx.commit().await)
}

async fn written_long_before(c: Ctx) -> Expectation {
    c.put("b", "old").await?;
    c.pause(4_000).await;
    let tx = c.tx()?;
    tx.get_read_version().await?;
    let (a, b) = (c.key("a"), c.key("b"));
    c.commit(|tx| tx.clear_range(&a, &b)).await?;
    c.pause(1_500).await;
    c.put("z", "what is old leaves the window").await?;
    same("the read", tx.get(&b, Serializable).await?, some("old"))?;
    tx.set(&c.key("c"), b"1");
    succeeds("the commit", tx.commit().await)
}

async fn other_keys(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "c"]).await?;
    let tx = c.tx()?;
    tx.get(&c.key("b"), Serializable).await?;
    c.put_all(&["a", "b\0", "c"]).await?;
    c.touch(&tx)?;
    succeeds("the commit", tx.commit().await)
}

async fn blind_writes(c: Ctx) -> Expectation {
    let (first, second) = (c.tx()?, c.tx()?);
    first.get_read_version().await?;
    second.get_read_version().await?;
    first.set(&c.key("a"), b"first");
    second.set(&c.key("a"), b"second");
    first.commit().await?;
    succeeds("the second commit", second.commit().await)?;
    same("the value", c.value("a").await?, some("second"))
}

async fn phantom(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let rows = tx.get_range_all(c.range("a", "c"), Serializable).await?;
    same("the range", rows, vec![])?;
    c.put("b", "phantom").await?;
    c.touch(&tx)?;
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)
}

async fn added_range(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("b"), Snapshot).await?;
    tx.add_conflict_key(&c.key("b"), ConflictRangeType::Read)?;
    c.put("b", "theirs").await?;
    c.touch(&tx)?;
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)
}

async fn aborted_writer(c: Ctx) -> Expectation {
    let (aborted, tx) = (c.tx()?, c.tx()?);
    aborted.get(&c.key("a"), Serializable).await?;
    tx.get(&c.key("b"), Serializable).await?;
    c.put("a", "theirs").await?;
    aborted.set(&c.key("b"), b"never");
    fails("the first commit", aborted.commit().await, Error::NOT_COMMITTED)?;
    c.touch(&tx)?;
    succeeds("the commit of one who read what the first wrote", tx.commit().await)
}

async fn lost_update(c: Ctx) -> Expectation {
    let increment = || async {
        let (tx, key) = (c.tx()?, c.key("a"));
        let count = tx.get(&key, Serializable).await?.map_or(0, |v| v.first().copied().unwrap_or(0));
        tx.set(&key, &[count + 1]);
        tx.commit().await
    };
    let results = join_all((0..5).map(|_| increment())).await;
    let mut committed = 0_u8;
    for result in results {
        match result {
            Ok(()) => committed += 1,
            Err(Error::NOT_COMMITTED) => {}
            Err(e) => return Err(e.into()),
        }
    }
    holds(committed >= 1, || "one of five incrementing transactions commits".into())?;
    same("the count", c.value("a").await?, Some(vec![committed].into()))
}

async fn write_skew(c: Ctx, isolation: Isolation) -> Expectation {
    c.put_all(&["a", "b"]).await?;
    let (one, two) = (c.tx()?, c.tx()?);
    one.get(&c.key("a"), isolation).await?;
    two.get(&c.key("b"), isolation).await?;
    one.set(&c.key("b"), b"1");
    two.set(&c.key("a"), b"2");
    let (first, second) = join(one.commit(), two.commit()).await;
    let mut committed = 0;
    for result in [first, second] {
        match result {
            Ok(()) => committed += 1,
            Err(Error::NOT_COMMITTED) => {}
            Err(e) => return Err(e.into()),
        }
    }
    match isolation {
        Snapshot => same("how many commit", committed, 2),
        // Each resolver decides independently: both may fail, but both must not commit.
        Serializable => holds(committed <= 1, || "at most one of the two commits, both did".into()),
    }
}

async fn atomic_writers(c: Ctx) -> Expectation {
    let add = || async {
        let tx = c.tx()?;
        tx.get_read_version().await?;
        tx.atomic_op(&c.key("a"), &1_u64.to_le_bytes(), MutationType::Add);
        tx.commit().await
    };
    for result in join_all((0..8).map(|_| add())).await {
        succeeds("a commit", result)?;
    }
    same("the sum", c.value("a").await?, Some(8_u64.to_le_bytes().to_vec().into()))
}

/// A way to write a key.
#[derive(Clone, Copy)]
enum Write {
    Set,
    Clear,
    ClearRange,
    ClearOfAbsent,
    Atomic,
    Stamped,
    ConflictRange,
}

const WRITES: &[(&str, Write)] = &[
    ("set", Write::Set),
    ("clear", Write::Clear),
    ("clear-range", Write::ClearRange),
    ("clear-of-absent", Write::ClearOfAbsent),
    ("atomic", Write::Atomic),
    ("versionstamped-value", Write::Stamped),
    ("write-conflict-range", Write::ConflictRange),
];

async fn conflicts_with(c: Ctx, write: Write) -> Expectation {
    c.put("a", "old").await?;
    let tx = c.tx()?;
    let read = if matches!(write, Write::ClearOfAbsent) { "b" } else { "a" };
    tx.get(&c.key(read), Serializable).await?;
    let key = c.key("a");
    c.commit(|other| match write {
        Write::Set => other.set(&key, b"new"),
        Write::Clear => other.clear(&key),
        Write::ClearRange => other.clear_range(&c.key(""), &c.key("z")),
        Write::ClearOfAbsent => other.clear(&c.key("b")),
        Write::Atomic => other.atomic_op(&key, b"\x01", MutationType::Add),
        Write::Stamped => other.atomic_op(&key, &[0; 14], MutationType::SetVersionstampedValue),
        Write::ConflictRange => {
            // Cannot fail: the bounds are in order and below \xff.
            let _ = other.add_conflict_key(&key, ConflictRangeType::Write);
        }
    })
    .await?;
    c.touch(&tx)?;
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)
}

async fn lazy(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let committed = c.put("a", "later").await?;
    same("the read", tx.get(&c.key("a"), Serializable).await?, some("later"))?;
    let version = tx.get_read_version().await?;
    holds(version >= committed, || format!("read version {version} >= earlier commit {committed}"))
}

async fn stable(c: Ctx) -> Expectation {
    c.put_all(&["a", "b"]).await?;
    let tx = c.tx()?;
    let version = tx.get_read_version().await?;
    same("the first read", tx.get(&c.key("a"), Snapshot).await?, some("a"))?;
    c.put("a", "new").await?;
    c.put("b", "new").await?;
    same("the first key again", tx.get(&c.key("a"), Snapshot).await?, some("a"))?;
    same("the second key", tx.get(&c.key("b"), Snapshot).await?, some("b"))?;
    let rows = tx.get_range_all(c.everything(), Snapshot).await?;
    let values: Vec<_> = rows.into_iter().map(|row| row.value).collect();
    same("the range", values, vec!["a".into(), "b".into()])?;
    same("the read version", tx.get_read_version().await?, version)
}

async fn set_version(c: Ctx) -> Expectation {
    c.put("a", "old").await?;
    let version = c.tx()?.get_read_version().await?;
    c.put("a", "new").await?;
    let tx = c.tx()?;
    tx.set_read_version(version);
    same("the read", tx.get(&c.key("a"), Serializable).await?, some("old"))?;
    same("the read version", tx.get_read_version().await?, version)
}

async fn set_version_conflicts(c: Ctx) -> Expectation {
    let version = c.tx()?.get_read_version().await?;
    c.put("a", "theirs").await?;
    let tx = c.tx()?;
    tx.set_read_version(version);
    tx.add_conflict_key(&c.key("a"), ConflictRangeType::Read)?;
    c.touch(&tx)?;
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)
}

async fn set_twice(c: Ctx) -> Expectation {
    let version = c.tx()?.get_read_version().await?;
    let tx = c.tx()?;
    tx.set_read_version(version);
    tx.set_read_version(version);
    let read = tx.get(&c.key("a"), Serializable).await;
    fails("the next read", read, Error::READ_VERSION_ALREADY_SET)
}

async fn set_after_get(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let version = tx.get_read_version().await?;
    tx.set_read_version(version);
    let read = tx.get(&c.key("a"), Serializable).await;
    fails("the next read", read, Error::READ_VERSION_ALREADY_SET)
}

async fn invalid_version(c: Ctx) -> Expectation {
    for version in [0, -1] {
        let tx = c.tx()?;
        tx.set_read_version(version);
        fails("the next read", tx.get(&c.key("a"), Serializable).await, Error::VERSION_INVALID)?;
    }
    Ok(())
}

async fn future_version(c: Ctx) -> Expectation {
    let version = c.tx()?.get_read_version().await?;
    let tx = c.tx()?;
    tx.set_read_version(version + 600_000_000);
    let read = tx.get(&c.key("a"), Serializable).await;
    fails_with("the read", read, &[Error::FUTURE_VERSION, Error::PROCESS_BEHIND])
}

/// The number of seconds a version may take to become too old before the promise counts as broken. The window
/// is five seconds of versions; servers may keep more, but not for long.
const FORGETTING: u32 = 60;

/// Waits until `version` is too old to read at, and writes meanwhile so that versions advance.
async fn outlive(c: &Ctx, version: i64) -> Expectation {
    for _ in 0..FORGETTING {
        c.pause(1_000).await;
        c.put("tick", "").await?;
        let tx = c.tx()?;
        tx.set_read_version(version);
        match tx.get(&c.key("a"), Snapshot).await {
            Err(Error::TRANSACTION_TOO_OLD) => return Ok(()),
            Err(e) if !e.is_retryable() => return Err(e.into()),
            _ => {}
        }
    }
    Err(Broken::new(format!("a version {FORGETTING} s old is too old to read at, and could be read at")))
}

/// `read` must fail with 1007, as soon as every replica has left `version` behind: that which is asked may be
/// behind the one that `outlive` has asked. What was read at a version that is still kept is read again by
/// another transaction, which remembers nothing.
async fn is_too_old<T: Debug, F: Future<Output = Result<T>>>(
    c: &Ctx,
    tx: &mut Tx,
    version: i64,
    what: &str,
    read: impl Fn(Tx) -> F,
) -> Expectation {
    for _ in 0..FORGETTING {
        let answer = read(tx.clone()).await;
        if answer.is_err() {
            return fails(what, answer, Error::TRANSACTION_TOO_OLD);
        }
        outlive(c, version).await?;
        *tx = c.tx()?;
        tx.set_read_version(version);
    }
    fails(what, read(tx.clone()).await, Error::TRANSACTION_TOO_OLD)
}

async fn too_old_read(c: Ctx) -> Expectation {
    let tx = &mut c.tx()?;
    let version = tx.get_read_version().await?;
    outlive(&c, version).await?;
    let (key, range, selector) = (&c.key("a"), &c.everything(), &c.selector("a", false, 1));
    is_too_old(&c, tx, version, "get", |tx| async move { tx.get(key, Serializable).await }).await?;
    is_too_old(&c, tx, version, "get_range", |tx| async move { tx.get_range(range, 1, Snapshot).await })
        .await?;
    is_too_old(&c, tx, version, "get_key", |tx| async move { tx.get_key(selector, Snapshot).await }).await
}

async fn too_old_cached(c: Ctx) -> Expectation {
    c.put("a", "cached").await?;
    let tx = c.tx()?;
    same("the first read", tx.get(&c.key("a"), Snapshot).await?, some("cached"))?;
    let version = tx.get_read_version().await?;
    outlive(&c, version).await?;
    same("the second read", tx.get(&c.key("a"), Snapshot).await, Ok(some("cached")))?;
    tx.set(&c.key("b"), b"mine");
    same("a read of an own write", tx.get(&c.key("b"), Snapshot).await, Ok(some("mine")))
}

async fn too_old_commit(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("b"), Serializable).await?;
    let version = tx.get_read_version().await?;
    outlive(&c, version).await?;
    tx.set(&c.key("c"), b"1");
    fails("the commit", tx.commit().await, Error::TRANSACTION_TOO_OLD)
}

async fn too_old_blind(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let version = tx.get_read_version().await?;
    outlive(&c, version).await?;
    tx.set(&c.key("c"), b"1");
    fails("the commit", tx.commit().await, Error::TRANSACTION_TOO_OLD)
}

async fn too_old_risky(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::CausalWriteRisky)?;
    let version = tx.get_read_version().await?;
    outlive(&c, version).await?;
    tx.set(&c.key("c"), b"1");
    succeeds("the commit", tx.commit().await)?;
    same("the value", c.value("c").await?, some("1"))
}

async fn too_old_retry(c: Ctx) -> Expectation {
    let tx = &mut c.tx()?;
    let version = tx.get_read_version().await?;
    outlive(&c, version).await?;
    let key = &c.key("a");
    is_too_old(&c, tx, version, "the read", |tx| async move { tx.get(key, Serializable).await }).await?;
    tx.on_error(Error::TRANSACTION_TOO_OLD).await?;
    succeeds("the read in the next attempt", tx.get(&c.key("a"), Serializable).await)?;
    tx.set(&c.key("a"), b"1");
    succeeds("its commit", tx.commit().await)
}
