//! 5.2: what a commit promises, and what may be called around it.

use super::{
    Case, Ctx, Outcome,
    expect::{Broken, fails, fails_with, holds, same, succeeds},
    world::{Serializable, Snapshot, some},
};
use crate::tx::{ConflictRangeType, Database, Error, MutationType, Transaction, TransactionOption};
use futures::future::{join, join_all};
use std::{collections::BTreeSet, future::Future, pin::pin, task::Poll};

const SECTION: &str = "5.2";

pub(super) fn cases<D: Database>() -> Vec<Case<D>> {
    let mut cases = vec![
        Case::new(
            SECTION,
            "read-only/empty",
            "A transaction that did nothing commits, at version -1.",
            empty,
        ),
        Case::new(
            SECTION,
            "read-only/version",
            "A transaction that only read commits at version -1.",
            read_only,
        ),
        Case::new(
            SECTION,
            "read-only/conflict-range",
            "Read conflict ranges alone leave a transaction read-only.",
            read_range_only,
        ),
        Case::new(
            SECTION,
            "read-only/never-conflicts",
            "A read-only transaction commits although what it read has changed.",
            read_only_no_conflict,
        ),
        Case::new(
            SECTION,
            "read-only/stamp",
            "A read-only transaction has no versionstamp (2021).",
            read_only_stamp,
        ),
        Case::new(
            SECTION,
            "write-range-only",
            "A write conflict range alone makes a commit with a version that others conflict with.",
            write_range_only,
        ),
        Case::new(
            SECTION,
            "clear-only",
            "Clearing an absent key is a write: the commit has a version.",
            clear_only,
        ),
        Case::new(
            SECTION,
            "atomicity",
            "All writes of a transaction become visible at one version.",
            atomicity,
        ),
        Case::new(SECTION, "uncommitted-invisible", "Nobody sees a write before its commit.", uncommitted),
        Case::new(
            SECTION,
            "version/after-read-version",
            "A commit's version is above the transaction's read version.",
            version_above_read,
        ),
        Case::new(
            SECTION,
            "version/visible-next",
            "A read version taken after a commit's answer is at or above its version.",
            version_visible,
        ),
        Case::new(
            SECTION,
            "version/rising",
            "Commits one after the other have rising versions.",
            versions_rise,
        ),
        Case::new(SECTION, "version/pace", "Versions advance about a million a second.", versions_pace),
        Case::new(
            SECTION,
            "version/batch",
            "Concurrent commits may share a version, never a versionstamp.",
            batch_order,
        ),
        Case::new(
            SECTION,
            "size-limit/option",
            "A transaction as large as its size_limit commits; one byte more is 2101.",
            size_limit,
        ),
        Case::new(
            SECTION,
            "size-limit/read-ranges",
            "Read conflict ranges count toward the size limit.",
            |c| size_of_ranges(c, ConflictRangeType::Read),
        ),
        Case::new(
            SECTION,
            "size-limit/write-ranges",
            "Write conflict ranges count toward the size limit.",
            |c| size_of_ranges(c, ConflictRangeType::Write),
        ),
        Case::new(
            SECTION,
            "size-limit/default",
            "A transaction of more than 10,000,000 bytes is 2101.",
            size_default,
        ),
        Case::new(
            SECTION,
            "outstanding-reads",
            "Commit waits for outstanding reads, and their conflict ranges count.",
            outstanding_reads,
        ),
        Case::new(
            SECTION,
            "during/get",
            "A read while a commit is under way is 2017, and the commit fails with it.",
            during_get,
        ),
        Case::new(
            SECTION,
            "during/set",
            "A write while a commit is under way makes the commit fail with 2017.",
            during_set,
        ),
        Case::new(
            SECTION,
            "during/unprotected",
            "With option 701 a read during a commit is 2017 and the commit succeeds.",
            during_unprotected,
        ),
        Case::new(SECTION, "after/commit", "A second commit without a reset is 2017.", commit_twice),
        Case::new(SECTION, "after/get", "Every call after a commit is 2017.", use_after_commit),
        Case::new(
            SECTION,
            "after/set",
            "After a write that follows a commit everything is 2017.",
            set_after_commit,
        ),
        Case::new(
            SECTION,
            "after/read-only",
            "A read-only commit must be followed by a reset as well.",
            use_after_read_only,
        ),
        Case::new(
            SECTION,
            "after/reset",
            "After a reset a committed transaction is as new.",
            reset_after_commit,
        ),
        Case::new(
            SECTION,
            "cancel/before",
            "A cancelled transaction answers 1025 and writes nothing.",
            cancel,
        ),
        Case::new(
            SECTION,
            "cancel/reset",
            "A reset makes a cancelled transaction usable again, without its writes.",
            cancel_reset,
        ),
        Case::new(
            SECTION,
            "cancel/read",
            "A read under way when its transaction is cancelled ends, with 1025 if it had not been answered.",
            cancel_read,
        ),
        Case::new(
            SECTION,
            "cancel/during-commit",
            "A commit under way when its transaction is cancelled ends, with 1025 if it had not been answered.",
            cancel_during_commit,
        ),
        Case::new(
            SECTION,
            "reset/read",
            "A read under way when its transaction is reset ends, with 1025 if it had not been answered.",
            reset_read,
        ),
        Case::new(SECTION, "reset/discards", "reset forgets writes and conflict ranges.", reset_discards),
        Case::new(SECTION, "clones", "Clones of a handle are the same transaction.", clones),
        Case::new(
            SECTION,
            "idempotency/plain",
            "With automatic idempotency (505) an undisturbed commit works as ever.",
            idempotency,
        ),
        Case::new(
            SECTION,
            "causal-write-risky/plain",
            "With causal_write_risky (10) an undisturbed commit works as ever.",
            causal_risky,
        ),
        Case::new(
            SECTION,
            "deferred/conflict-inverted",
            "An inverted conflict range is 2005 at the call and spoils nothing.",
            conflict_inverted,
        ),
        Case::new(
            SECTION,
            "deferred/conflict-system",
            "A conflict range beyond \\xff is 2004.",
            conflict_system,
        ),
        Case::new(
            SECTION,
            "deferred/sticky",
            "A deferred error stays until the transaction is reset.",
            deferred_sticky,
        ),
        Case::new(
            SECTION,
            "deferred/writes-nothing",
            "A transaction with a deferred error commits none of its writes.",
            deferred_writes_nothing,
        ),
    ];
    for (topic, call) in SURFACES {
        let promise = format!("A deferred error is the answer of {topic}.");
        cases.push(Case::new(SECTION, &format!("deferred/in-{topic}"), promise, move |c| surfaces(c, *call)));
    }
    for (topic, error, call) in DEFERRED {
        let promise = format!("{topic} is {error}, at the next call that answers and at the commit.");
        cases.push(Case::new(SECTION, &format!("deferred/{topic}"), promise, move |c| {
            deferred(c, *error, *call)
        }));
    }
    cases
}

async fn empty<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.commit().await?;
    same("the committed version", tx.get_committed_version()?, -1)
}

async fn read_only<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    tx.get_range(&c.everything(), 1, Serializable).await?;
    tx.commit().await?;
    same("the committed version", tx.get_committed_version()?, -1)
}

async fn read_range_only<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.get_read_version().await?;
    tx.add_conflict_range(&c.key("a"), &c.key("b"), ConflictRangeType::Read)?;
    c.put("a", "theirs").await?;
    succeeds("the commit", tx.commit().await)?;
    same("the committed version", tx.get_committed_version()?, -1)
}

async fn read_only_no_conflict<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    c.put("a", "theirs").await?;
    match tx.commit().await {
        Err(Error::NOT_COMMITTED) => Err(Broken::new("a read-only transaction never conflicts, and it did")),
        other => succeeds("the commit", other),
    }
}

async fn read_only_stamp<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    let stamp = tx.get_versionstamp();
    tx.commit().await?;
    fails("the versionstamp", stamp.await, Error::NO_COMMIT_VERSION)
}

async fn write_range_only<D: Database>(c: Ctx<D>) -> Outcome {
    let reader = c.tx()?;
    reader.get(&c.key("a"), Serializable).await?;
    let tx = c.tx()?;
    tx.add_conflict_key(&c.key("a"), ConflictRangeType::Write)?;
    tx.commit().await?;
    let version = tx.get_committed_version()?;
    holds(version > 0, || format!("a commit version, seen {version}"))?;
    c.touch(&reader)?;
    fails("the commit of one who read that key", reader.commit().await, Error::NOT_COMMITTED)
}

async fn clear_only<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.clear(&c.key("absent"));
    tx.commit().await?;
    let version = tx.get_committed_version()?;
    holds(version > 0, || format!("a commit version, seen {version}"))
}

async fn atomicity<D: Database>(c: Ctx<D>) -> Outcome {
    let keys = ["a", "b", "c", "d"];
    for round in 0..5_u8 {
        let write = async {
            let tx = c.tx()?;
            for key in keys {
                tx.set(&c.key(key), &[round]);
            }
            tx.commit().await
        };
        let read = async {
            let tx = c.tx()?;
            let mut seen = BTreeSet::new();
            for key in keys {
                seen.insert(tx.get(&c.key(key), Snapshot).await?);
            }
            Ok::<_, Error>(seen)
        };
        let (written, seen) = join(write, read).await;
        written?;
        let seen = seen?;
        holds(seen.len() == 1, || format!("one round's values at one version, seen {seen:?}"))?;
    }
    Ok(())
}

async fn uncommitted<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    tx.get_read_version().await?;
    same("another transaction's read", c.value("a").await?, None)?;
    tx.commit().await?;
    same("another transaction's read after the commit", c.value("a").await?, some("1"))
}

async fn version_above_read<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    let read = tx.get_read_version().await?;
    tx.set(&c.key("a"), b"1");
    tx.commit().await?;
    let committed = tx.get_committed_version()?;
    holds(committed > read, || format!("commit version {committed} > read version {read}"))
}

async fn version_visible<D: Database>(c: Ctx<D>) -> Outcome {
    for round in 0..5 {
        let committed = c.put("a", format!("{round}")).await?;
        let tx = c.tx()?;
        let read = tx.get_read_version().await?;
        holds(read >= committed, || format!("read version {read} >= acknowledged commit {committed}"))?;
        same("the read", tx.get(&c.key("a"), Serializable).await?, some(&format!("{round}")))?;
    }
    Ok(())
}

async fn versions_rise<D: Database>(c: Ctx<D>) -> Outcome {
    let mut last = 0;
    for _ in 0..5 {
        let version = c.put("a", "1").await?;
        holds(version > last, || format!("a version above {last}, seen {version}"))?;
        last = version;
    }
    Ok(())
}

async fn versions_pace<D: Database>(c: Ctx<D>) -> Outcome {
    let mut seen = Vec::new();
    // A recovery makes versions jump by a hundred seconds' worth: one undisturbed second suffices.
    for _ in 0..3 {
        let (begin, first) = (c.db.env().now(), c.put("a", "1").await?);
        c.pause(1_000).await;
        let versions = c.put("a", "2").await? - first;
        let took = c.db.env().now() - begin;
        let pace = versions as f64 / took.as_secs_f64();
        if (300_000.0..3_000_000.0).contains(&pace) {
            return Ok(());
        }
        seen.push(pace as i64);
    }
    Err(Broken::new(format!("promised about 1,000,000 versions a second, seen {seen:?}")))
}

async fn batch_order<D: Database>(c: Ctx<D>) -> Outcome {
    let one = |number: u8| {
        let c = &c;
        async move {
            let tx = c.tx()?;
            tx.set(&c.key([number]), b"1");
            let stamp = tx.get_versionstamp();
            tx.commit().await?;
            Ok::<_, Error>((stamp.await?, tx.get_committed_version()?))
        }
    };
    let mut stamps = BTreeSet::new();
    for result in join_all((0..16).map(one)).await {
        let (stamp, version) = result?;
        same("the stamp's version", &stamp[..8], &version.to_be_bytes()[..])?;
        let order = u16::from_be_bytes([stamp[8], stamp[9]]);
        holds(order < 32_768, || format!("a batch order below 32,768, seen {order}"))?;
        holds(stamps.insert(stamp), || format!("every stamp once, seen {stamp:?} twice"))?;
    }
    Ok(())
}

async fn size_limit<D: Database>(c: Ctx<D>) -> Outcome {
    let attempt = |less: i64| {
        let c = &c;
        async move {
            let tx = c.tx()?;
            tx.set(&c.key("a"), &[7; 500]);
            let size = tx.get_approximate_size().await?;
            tx.set_option(TransactionOption::SizeLimit((size - less) as i32))?;
            tx.commit().await
        }
    };
    succeeds("a commit as large as its limit", attempt(0).await)?;
    fails("a commit one byte larger", attempt(1).await, Error::TRANSACTION_TOO_LARGE)
}

async fn size_of_ranges<D: Database>(c: Ctx<D>, kind: ConflictRangeType) -> Outcome {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::SizeLimit(4_000))?;
    tx.set(&c.key("a"), b"small");
    for i in 0..200_u8 {
        let begin = c.key([b'r', i]);
        tx.add_conflict_range(&begin, &c.key([b'r', i, 1]), kind)?;
    }
    fails("the commit", tx.commit().await, Error::TRANSACTION_TOO_LARGE)
}

async fn size_default<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    let value = vec![7; 100_000];
    for i in 0..101_u8 {
        tx.set(&c.key([b'a', i]), &value);
    }
    fails("the commit", tx.commit().await, Error::TRANSACTION_TOO_LARGE)
}

async fn outstanding_reads<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.get_read_version().await?;
    c.put("a", "theirs").await?;
    tx.set(&c.key("b"), b"1");
    let key = c.key("a");
    let read = tx.get(&key, Serializable);
    let (read, committed) = join(read, tx.commit()).await;
    same("the read", read, Ok(None))?;
    fails("the commit", committed, Error::NOT_COMMITTED)
}

/// Begins a commit of one write, runs `call` before it can have ended, and awaits both.
async fn meanwhile<D: Database, T>(
    c: &Ctx<D>,
    tx: &D::Transaction,
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

async fn during_get<D: Database>(c: Ctx<D>) -> Outcome {
    let (tx, key) = (c.tx()?, c.key("a"));
    let (read, committed) = meanwhile(&c, &tx, async { tx.get(&key, Serializable).await }).await?;
    fails("a read during the commit", read, Error::USED_DURING_COMMIT)?;
    fails("the commit", committed, Error::USED_DURING_COMMIT)
}

async fn during_set<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    let ((), committed) = meanwhile(&c, &tx, async { tx.set(&c.key("b"), b"2") }).await?;
    fails("the commit", committed, Error::USED_DURING_COMMIT)?;
    same("the write during the commit", c.value("b").await?, None)
}

async fn during_unprotected<D: Database>(c: Ctx<D>) -> Outcome {
    let (tx, key) = (c.tx()?, c.key("a"));
    tx.set_option(TransactionOption::UsedDuringCommitProtectionDisable)?;
    let (read, committed) = meanwhile(&c, &tx, async { tx.get(&key, Serializable).await }).await?;
    fails("a read during the commit", read, Error::USED_DURING_COMMIT)?;
    succeeds("the commit", committed)?;
    same("the value", c.value("a").await?, some("1"))
}

async fn commit_twice<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    tx.commit().await?;
    fails("the second commit", tx.commit().await, Error::USED_DURING_COMMIT)
}

async fn use_after_commit<D: Database>(c: Ctx<D>) -> Outcome {
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

async fn set_after_commit<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    tx.commit().await?;
    tx.set(&c.key("b"), b"1");
    fails("a read", tx.get(&c.key("a"), Serializable).await, Error::USED_DURING_COMMIT)?;
    same("the write after the commit", c.value("b").await?, None)
}

async fn use_after_read_only<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    tx.commit().await?;
    fails("a read", tx.get(&c.key("a"), Serializable).await, Error::USED_DURING_COMMIT)?;
    fails("a commit", tx.commit().await, Error::USED_DURING_COMMIT)
}

async fn reset_after_commit<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    tx.commit().await?;
    tx.reset();
    same("the read after reset", tx.get(&c.key("a"), Serializable).await?, some("1"))?;
    tx.commit().await?;
    same("the committed version of the second use", tx.get_committed_version()?, -1)
}

async fn cancel<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    tx.cancel();
    let cancelled = Error::TRANSACTION_CANCELLED;
    fails("a read", tx.get(&c.key("a"), Serializable).await, cancelled)?;
    fails("the read version", tx.get_read_version().await, cancelled)?;
    fails("the commit", tx.commit().await, cancelled)?;
    same("the value", c.value("a").await?, None)
}

async fn cancel_reset<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    tx.cancel();
    tx.reset();
    same("the read after reset", tx.get(&c.key("a"), Serializable).await?, None)?;
    tx.commit().await?;
    same("the value", c.value("a").await?, None)
}

async fn cancel_read<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    ends_with_1025(&c, &tx, |tx| tx.cancel()).await
}

async fn reset_read<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    ends_with_1025(&c, &tx, |tx| tx.reset()).await
}

async fn ends_with_1025<D: Database>(
    c: &Ctx<D>,
    tx: &D::Transaction,
    stop: impl Fn(&D::Transaction) + Send,
) -> Outcome {
    let key = c.key("a");
    let mut read = pin!(tx.get(&key, Serializable));
    let early = futures::poll!(&mut read);
    stop(tx);
    match early {
        Poll::Ready(answer) => same("the read", answer?, None),
        Poll::Pending => fails("the read", read.await, Error::TRANSACTION_CANCELLED),
    }
}

async fn cancel_during_commit<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    let ((), committed) = meanwhile(&c, &tx, async { tx.cancel() }).await?;
    fails("the commit", committed, Error::TRANSACTION_CANCELLED)?;
    // The write may land, now or later: only the handle's state is promised.
    let read = tx.get(&c.key("a"), Serializable).await;
    fails_with("a read after it", read, &[Error::USED_DURING_COMMIT, Error::TRANSACTION_CANCELLED])?;
    tx.reset();
    succeeds("a read after reset", tx.get(&c.key("b"), Serializable).await).map(drop)
}

async fn reset_discards<D: Database>(c: Ctx<D>) -> Outcome {
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

async fn clones<D: Database>(c: Ctx<D>) -> Outcome {
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

async fn idempotency<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::AutomaticIdempotency)?;
    plain(c, tx).await
}

async fn causal_risky<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::CausalWriteRisky)?;
    plain(c, tx).await
}

async fn plain<D: Database>(c: Ctx<D>, tx: D::Transaction) -> Outcome {
    tx.set(&c.key("a"), b"1");
    let stamp = tx.get_versionstamp();
    succeeds("the commit", tx.commit().await)?;
    let version = tx.get_committed_version()?;
    same("the stamp's version", stamp.await?[..8].to_vec(), version.to_be_bytes().to_vec())?;
    same("the value", c.value("a").await?, some("1"))
}

async fn conflict_inverted<D: Database>(c: Ctx<D>) -> Outcome {
    for kind in [ConflictRangeType::Read, ConflictRangeType::Write] {
        let tx = c.tx()?;
        fails("the call", tx.add_conflict_range(&c.key("b"), &c.key("a"), kind), Error::INVERTED_RANGE)?;
        tx.set(&c.key("a"), b"1");
        succeeds("the commit", tx.commit().await)?;
    }
    Ok(())
}

async fn conflict_system<D: Database>(c: Ctx<D>) -> Outcome {
    for kind in [ConflictRangeType::Read, ConflictRangeType::Write] {
        let tx = c.tx()?;
        let seen = match tx.add_conflict_range(&c.key("a"), b"\xff\xff", kind) {
            Ok(()) => tx.commit().await,
            refused => refused,
        };
        fails("the call or the commit", seen, Error::KEY_OUTSIDE_LEGAL_RANGE)?;
    }
    Ok(())
}

async fn deferred_sticky<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.clear_range(&c.key("b"), &c.key("a"));
    for what in ["the first read", "the second read"] {
        fails(what, tx.get(&c.key("a"), Serializable).await, Error::INVERTED_RANGE)?;
    }
    fails("the commit", tx.commit().await, Error::INVERTED_RANGE)?;
    tx.reset();
    succeeds("a read after reset", tx.get(&c.key("a"), Serializable).await)?;
    succeeds("the commit after reset", tx.commit().await)
}

async fn deferred_writes_nothing<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"before");
    tx.set(&c.key("big"), &[0; 100_001]);
    tx.set(&c.key("b"), b"after");
    fails("the commit", tx.commit().await, Error::VALUE_TOO_LARGE)?;
    same("the rows", c.rows().await?, vec![])
}

/// The calls that answer, each of which must answer with an error left behind by a void call.
#[derive(Clone, Copy)]
enum Call {
    Get,
    GetKey,
    GetRange,
    ReadVersion,
    ApproximateSize,
    Watch,
    Commit,
}

const SURFACES: &[(&str, Call)] = &[
    ("get", Call::Get),
    ("get_key", Call::GetKey),
    ("get_range", Call::GetRange),
    ("get_read_version", Call::ReadVersion),
    ("get_approximate_size", Call::ApproximateSize),
    ("watch", Call::Watch),
    ("commit", Call::Commit),
];

async fn surfaces<D: Database>(c: Ctx<D>, call: Call) -> Outcome {
    let tx = c.tx()?;
    tx.clear_range(&c.key("b"), &c.key("a"));
    let answer = match call {
        Call::Get => tx.get(&c.key("a"), Snapshot).await.map(drop),
        Call::GetKey => tx.get_key(&c.selector("a", false, 1), Snapshot).await.map(drop),
        Call::GetRange => tx.get_range(&c.everything(), 1, Snapshot).await.map(drop),
        Call::ReadVersion => tx.get_read_version().await.map(drop),
        Call::ApproximateSize => tx.get_approximate_size().await.map(drop),
        Call::Watch => tx.watch(&c.key("a")).await,
        Call::Commit => tx.commit().await,
    };
    fails("the answer", answer, Error::INVERTED_RANGE)
}

/// A void call that is wrong.
#[derive(Clone, Copy)]
enum Wrong {
    SystemSet,
    SystemClear,
    SystemClearRange,
    SystemAtomic,
    LongKey,
    LongValue,
    LongAtomicKey,
    LongOperand,
    InvertedClear,
    UnknownMutation,
}

const DEFERRED: &[(&str, Error, Wrong)] = &[
    ("set-system", Error::KEY_OUTSIDE_LEGAL_RANGE, Wrong::SystemSet),
    ("clear-system", Error::KEY_OUTSIDE_LEGAL_RANGE, Wrong::SystemClear),
    ("clear-range-system", Error::KEY_OUTSIDE_LEGAL_RANGE, Wrong::SystemClearRange),
    ("atomic-system", Error::KEY_OUTSIDE_LEGAL_RANGE, Wrong::SystemAtomic),
    ("set-long-key", Error::KEY_TOO_LARGE, Wrong::LongKey),
    ("set-long-value", Error::VALUE_TOO_LARGE, Wrong::LongValue),
    ("atomic-long-key", Error::KEY_TOO_LARGE, Wrong::LongAtomicKey),
    ("atomic-long-operand", Error::VALUE_TOO_LARGE, Wrong::LongOperand),
    ("clear-range-inverted", Error::INVERTED_RANGE, Wrong::InvertedClear),
    ("unknown-mutation", Error::INVALID_MUTATION_TYPE, Wrong::UnknownMutation),
];

async fn deferred<D: Database>(c: Ctx<D>, error: Error, wrong: Wrong) -> Outcome {
    let tx = c.tx()?;
    let (key, long) = (c.key("a"), [0; 10_001]);
    match wrong {
        Wrong::SystemSet => tx.set(b"\xff/shaketable", b""),
        Wrong::SystemClear => tx.clear(b"\xff/shaketable"),
        Wrong::SystemClearRange => tx.clear_range(&key, b"\xff/shaketable"),
        Wrong::SystemAtomic => tx.atomic_op(b"\xff/shaketable", b"\x01", MutationType::Add),
        Wrong::LongKey => tx.set(&long, b""),
        Wrong::LongValue => tx.set(&key, &[0; 100_001]),
        Wrong::LongAtomicKey => tx.atomic_op(&long, b"\x01", MutationType::Add),
        Wrong::LongOperand => tx.atomic_op(&key, &[0; 100_001], MutationType::Add),
        Wrong::InvertedClear => tx.clear_range(&c.key("b"), &key),
        Wrong::UnknownMutation => {
            for code in [3, 10, 11, 99] {
                // Refused at the call, or deferred as the C client does.
                if let Err(e) = c.tx()?.atomic_op_code(&key, b"\x01", code) {
                    fails::<()>("the call", Err(e), error)?;
                    continue;
                }
                let tx = c.tx()?;
                tx.atomic_op_code(&key, b"\x01", code)?;
                fails("the next read", tx.get(&key, Serializable).await, error)?;
                fails("the commit", tx.commit().await, error)?;
            }
            return Ok(());
        }
    }
    fails("the next read", tx.get(&c.key("b"), Serializable).await, error)?;
    fails("the commit", tx.commit().await, error)
}
