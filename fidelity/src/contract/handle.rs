//! What may be called during a commit and after it, and what cancel and reset do.

use super::{
    Broken, Case, Ctx, Expectation,
    expect::{fails, fails_with, same, succeeds},
    world::{Serializable, some},
};
use shaketable_tx::{Error, Transaction, TransactionOption, Tx};
use std::{future::Future, pin::pin, task::Poll};

const SECTION: &str = "commits";

pub(super) fn cases() -> Vec<Case> {
    catalogue! {
        "during/get", during_get,
            "A read while a commit is under way is 2017, and the commit fails with it.";
        "during/set", during_set,
            "A write while a commit is under way makes the commit fail with 2017.";
        "during/unprotected", during_unprotected,
            "With option 701 a read during a commit is 2017 and the commit succeeds.";
        "during/protection-returns", protection_returns,
            "Option 701 must be set again in each attempt.";
        "after/commit", commit_twice,
            "A second commit without a reset is 2017.";
        "after/get", use_after_commit,
            "Every call after a commit is 2017.";
        "after/set", set_after_commit,
            "After a write that follows a commit everything is 2017.";
        "after/read-only", use_after_read_only,
            "A read-only commit must be followed by a reset as well.";
        "after/reset", reset_after_commit,
            "After a reset a committed transaction is as new.";
        "cancel/before", cancel,
            "A cancelled transaction answers 1025 and writes nothing.";
        "cancel/reset", cancel_reset,
            "A reset makes a cancelled transaction usable again, without its writes.";
        "cancel/read", cancel_read,
            "A read under way when its transaction is cancelled ends, with 1025 if it had not been answered.";
        "cancel/during-commit", cancel_during_commit,
            "A commit under way when its transaction is cancelled ends with 1025; it may land all the same.";
        "reset/read", reset_read,
            "A read under way when its transaction is reset ends, with 1025 if it had not been answered.";
        "reset/discards", reset_discards,
            "reset forgets writes and conflict ranges.";
        "clones", clones,
            "Clones of a handle are the same transaction.";
    }
}

/// Starts a commit of one write, runs `call` before the commit can have finished, and awaits both.
async fn meanwhile<T>(
    c: &Ctx,
    tx: &Tx,
    call: impl Future<Output = T> + Send,
) -> Result<(T, Result<(), Error>), Broken> {
    tx.set(&c.key("a"), b"1");
    let mut commit = pin!(tx.commit());
    if let Poll::Ready(early) = futures::poll!(&mut commit) {
        return Err(Broken::new(format!("a commit takes a round trip, and ended at once with {early:?}")));
    }
    let answer = call.await;
    Ok((answer, commit.await))
}

async fn during_get(c: Ctx) -> Expectation {
    let (tx, key) = (c.tx()?, c.key("a"));
    let (read, committed) = meanwhile(&c, &tx, async { tx.get(&key, Serializable).await }).await?;
    fails("a read during the commit", read, Error::USED_DURING_COMMIT)?;
    fails("the commit", committed, Error::USED_DURING_COMMIT)
}

async fn during_set(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let ((), committed) = meanwhile(&c, &tx, async { tx.set(&c.key("b"), b"2") }).await?;
    fails("the commit", committed, Error::USED_DURING_COMMIT)?;
    same("the write during the commit", c.value("b").await?, None)
}

async fn during_unprotected(c: Ctx) -> Expectation {
    let (tx, key) = (c.tx()?, c.key("a"));
    tx.set_option(TransactionOption::UsedDuringCommitProtectionDisable)?;
    let (read, committed) = meanwhile(&c, &tx, async { tx.get(&key, Serializable).await }).await?;
    fails("a read during the commit", read, Error::USED_DURING_COMMIT)?;
    succeeds("the commit", committed)?;
    same("the value", c.value("a").await?, some("1"))
}

async fn protection_returns(c: Ctx) -> Expectation {
    let (tx, key) = (c.tx()?, c.key("a"));
    tx.set_option(TransactionOption::UsedDuringCommitProtectionDisable)?;
    tx.on_error(Error::NOT_COMMITTED).await?;
    let (read, committed) = meanwhile(&c, &tx, async { tx.get(&key, Serializable).await }).await?;
    fails("a read during the commit", read, Error::USED_DURING_COMMIT)?;
    fails("the commit", committed, Error::USED_DURING_COMMIT)
}

async fn commit_twice(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    tx.commit().await?;
    fails("the second commit", tx.commit().await, Error::USED_DURING_COMMIT)
}

async fn use_after_commit(c: Ctx) -> Expectation {
    let used = Error::USED_DURING_COMMIT;
    let committed = || async {
        let tx = c.tx()?;
        tx.set(&c.key("a"), b"1");
        tx.commit().await?;
        Ok::<_, Error>(tx)
    };
    let selector = c.selector("a", false, 1);
    fails("get", committed().await?.get(&c.key("a"), Serializable).await, used)?;
    fails("get_key", committed().await?.get_key(&selector, Serializable).await, used)?;
    fails("get_range", committed().await?.get_range(&c.everything(), 1, Serializable).await, used)?;
    fails("watch", committed().await?.watch(&c.key("a")).await, used)?;
    fails("get_versionstamp", committed().await?.get_versionstamp().await, used)
}

async fn set_after_commit(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    tx.commit().await?;
    tx.set(&c.key("b"), b"1");
    fails("a read", tx.get(&c.key("a"), Serializable).await, Error::USED_DURING_COMMIT)?;
    same("the write after the commit", c.value("b").await?, None)
}

async fn use_after_read_only(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    tx.commit().await?;
    fails("a read", tx.get(&c.key("a"), Serializable).await, Error::USED_DURING_COMMIT)?;
    fails("a commit", tx.commit().await, Error::USED_DURING_COMMIT)
}

async fn reset_after_commit(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    tx.commit().await?;
    tx.reset();
    same("the read after reset", tx.get(&c.key("a"), Serializable).await?, some("1"))?;
    tx.commit().await?;
    same("the committed version of the second use", tx.get_committed_version()?, -1)
}

async fn cancel(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    tx.cancel();
    let cancelled = Error::TRANSACTION_CANCELLED;
    fails("a read", tx.get(&c.key("a"), Serializable).await, cancelled)?;
    fails("the read version", tx.get_read_version().await, cancelled)?;
    fails("the commit", tx.commit().await, cancelled)?;
    same("the value", c.value("a").await?, None)
}

async fn cancel_reset(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    tx.cancel();
    tx.reset();
    same("the read after reset", tx.get(&c.key("a"), Serializable).await?, None)?;
    tx.commit().await?;
    same("the value", c.value("a").await?, None)
}

async fn cancel_read(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    ends_with_1025(&c, &tx, |tx| tx.cancel()).await
}

async fn reset_read(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    ends_with_1025(&c, &tx, |tx| tx.reset()).await
}

async fn ends_with_1025(c: &Ctx, tx: &Tx, stop: impl Fn(&Tx) + Send) -> Expectation {
    let key = c.key("a");
    let mut read = pin!(tx.get(&key, Serializable));
    let early = futures::poll!(&mut read);
    stop(tx);
    match early {
        Poll::Ready(answer) => same("the read", answer?, None),
        Poll::Pending => fails("the read", read.await, Error::TRANSACTION_CANCELLED),
    }
}

async fn cancel_during_commit(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let ((), committed) = meanwhile(&c, &tx, async { tx.cancel() }).await?;
    fails("the commit", committed, Error::TRANSACTION_CANCELLED)?;
    // The write may commit, now or later: only the handle's state is promised.
    let read = tx.get(&c.key("a"), Serializable).await;
    fails_with("a read after it", read, &[Error::USED_DURING_COMMIT, Error::TRANSACTION_CANCELLED])?;
    tx.reset();
    succeeds("a read after reset", tx.get(&c.key("b"), Serializable).await).map(drop)
}

async fn reset_discards(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    tx.set(&c.key("b"), b"1");
    tx.reset();
    c.reads_are(&tx, &[]).await?;
    c.writes_are(&tx, &[]).await?;
    c.put("a", "theirs").await?;
    same("the read after reset", tx.get(&c.key("b"), Serializable).await?, None)?;
    c.touch(&tx)?;
    tx.commit().await?;
    same("the write before reset", c.value("b").await?, None)
}

async fn clones(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let other = tx.clone();
    tx.set(&c.key("a"), b"1");
    same("a clone's read", other.get(&c.key("a"), Serializable).await?, some("1"))?;
    other.set(&c.key("b"), b"2");
    tx.commit().await?;
    same("the committed version", other.get_committed_version()?, tx.get_committed_version()?)?;
    same("the clone's write", c.value("b").await?, some("2"))?;
    fails("the clone's commit", other.commit().await, Error::USED_DURING_COMMIT)
}
