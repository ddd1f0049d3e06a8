//! The guarantees of a commit, and the calls allowed around it.

use super::{
    Case, Ctx, Expectation,
    expect::{Broken, fails, holds, same, succeeds},
    world::{Serializable, Snapshot, some},
};
use futures::future::{join, join_all};
use shaketable_tx::{ConflictRangeType, Database, Error, MutationType, Transaction, TransactionOption, Tx};
use std::collections::BTreeSet;

const SECTION: &str = "commits";

pub(super) fn cases() -> Vec<Case> {
    catalogue! {
        "read-only/empty", empty,
            "A transaction that did nothing commits, at version -1.";
        "read-only/version", read_only,
            "A transaction that only read commits at version -1.";
        "read-only/conflict-range", read_range_only,
            "Read conflict ranges alone leave a transaction read-only.";
        "read-only/never-conflicts", read_only_no_conflict,
            "A read-only transaction commits although what it read has changed.";
        "read-only/stamp", read_only_stamp,
            "A read-only transaction has no versionstamp (2021).";
        "write-range-only", write_range_only,
            "A write conflict range alone makes a commit with a version that others conflict with.";
        "clear-only", clear_only,
            "Clearing an absent key is a write: the commit has a version.";
        "atomicity", atomicity,
            "All writes of a transaction become visible at one version.";
        "uncommitted-invisible", uncommitted,
            "Nobody sees a write before its commit.";
        "version/after-read-version", version_above_read,
            "A commit's version is above the transaction's read version.";
        "version/visible-next", version_visible,
            "A read version taken after a commit's answer is at or above its version.";
        "version/rising", versions_rise,
            "Commits one after the other have rising versions.";
        "version/pace", versions_pace,
            "Versions advance about a million a second.";
        "version/batch", batch_order,
            "Concurrent commits may share a version, never a versionstamp.";
        "size-limit/option", size_limit,
            "A transaction as large as its size_limit commits; one byte more is 2101.";
        "size-limit/read-ranges", |c| size_of_ranges(c, ConflictRangeType::Read),
            "Read conflict ranges count toward the size limit.";
        "size-limit/write-ranges", |c| size_of_ranges(c, ConflictRangeType::Write),
            "Write conflict ranges count toward the size limit.";
        "size-limit/default", size_default,
            "A transaction of more than 10,000,000 bytes is 2101.";
        "many-calls", many_calls,
            "250,000 calls of every kind in one transaction are no error by themselves.";
        "outstanding-reads", outstanding_reads,
            "Commit waits for the reads issued before it, whichever is awaited first, and their conflict ranges count.";
        "idempotency/plain", idempotency,
            "With automatic idempotency (505) an undisturbed commit works as ever.";
        "causal-write-risky/plain", causal_risky,
            "With causal_write_risky (10) an undisturbed commit works as ever.";
    }
}

async fn empty(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.commit().await?;
    same("the committed version", tx.get_committed_version()?, -1)
}

async fn read_only(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    tx.get_range(&c.everything(), 1, Serializable).await?;
    tx.commit().await?;
    same("the committed version", tx.get_committed_version()?, -1)
}

async fn read_range_only(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get_read_version().await?;
    tx.add_conflict_range(&c.key("a"), &c.key("b"), ConflictRangeType::Read)?;
    c.put("a", "theirs").await?;
    succeeds("the commit", tx.commit().await)?;
    same("the committed version", tx.get_committed_version()?, -1)
}

async fn read_only_no_conflict(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    c.put("a", "theirs").await?;
    match tx.commit().await {
        Err(Error::NOT_COMMITTED) => Err(Broken::new("a read-only transaction never conflicts, and it did")),
        other => succeeds("the commit", other),
    }
}

async fn read_only_stamp(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    let stamp = tx.get_versionstamp();
    tx.commit().await?;
    fails("the versionstamp", stamp.await, Error::NO_COMMIT_VERSION)
}

async fn write_range_only(c: Ctx) -> Expectation {
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

async fn clear_only(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.clear(&c.key("absent"));
    tx.commit().await?;
    let version = tx.get_committed_version()?;
    holds(version > 0, || format!("a commit version, seen {version}"))
}

async fn atomicity(c: Ctx) -> Expectation {
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

async fn uncommitted(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    tx.get_read_version().await?;
    same("another transaction's read", c.value("a").await?, None)?;
    tx.commit().await?;
    same("another transaction's read after the commit", c.value("a").await?, some("1"))
}

async fn version_above_read(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let read = tx.get_read_version().await?;
    tx.set(&c.key("a"), b"1");
    tx.commit().await?;
    let committed = tx.get_committed_version()?;
    holds(committed > read, || format!("commit version {committed} > read version {read}"))
}

async fn version_visible(c: Ctx) -> Expectation {
    for round in 0..5 {
        let committed = c.put("a", format!("{round}")).await?;
        let tx = c.tx()?;
        let read = tx.get_read_version().await?;
        holds(read >= committed, || format!("read version {read} >= acknowledged commit {committed}"))?;
        same("the read", tx.get(&c.key("a"), Serializable).await?, some(&format!("{round}")))?;
    }
    Ok(())
}

async fn versions_rise(c: Ctx) -> Expectation {
    let mut last = 0;
    for _ in 0..5 {
        let version = c.put("a", "1").await?;
        holds(version > last, || format!("a version above {last}, seen {version}"))?;
        last = version;
    }
    Ok(())
}

async fn versions_pace(c: Ctx) -> Expectation {
    let mut seen = Vec::new();
    // A recovery makes versions jump by the equivalent of a hundred seconds: one undisturbed second suffices.
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

async fn batch_order(c: Ctx) -> Expectation {
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

async fn size_limit(c: Ctx) -> Expectation {
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

async fn size_of_ranges(c: Ctx, kind: ConflictRangeType) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::SizeLimit(4_000))?;
    tx.set(&c.key("a"), b"small");
    for i in 0..200_u8 {
        let begin = c.key([b'r', i]);
        tx.add_conflict_range(&begin, &c.key([b'r', i, 1]), kind)?;
    }
    fails("the commit", tx.commit().await, Error::TRANSACTION_TOO_LARGE)
}

async fn size_default(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let value = vec![7; 100_000];
    for i in 0..101_u8 {
        tx.set(&c.key([b'a', i]), &value);
    }
    fails("the commit", tx.commit().await, Error::TRANSACTION_TOO_LARGE)
}

async fn outstanding_reads(c: Ctx) -> Expectation {
    for (key, is_read_first) in [("a", true), ("b", false)] {
        let tx = c.tx()?;
        tx.get_read_version().await?;
        c.put(key, "theirs").await?;
        tx.set(&c.key("c"), b"1");
        let read = tx.get(&c.key(key), Serializable);
        let commit = tx.commit();
        let (read, committed) = match is_read_first {
            true => join(read, commit).await,
            false => {
                let (committed, read) = join(commit, read).await;
                (read, committed)
            }
        };
        same("the read", read, Ok(None))?;
        fails("the commit", committed, Error::NOT_COMMITTED)?;
    }
    Ok(())
}

async fn idempotency(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::AutomaticIdempotency)?;
    plain(c, tx).await
}

async fn causal_risky(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::CausalWriteRisky)?;
    plain(c, tx).await
}

async fn plain(c: Ctx, tx: Tx) -> Expectation {
    tx.set(&c.key("a"), b"1");
    let stamp = tx.get_versionstamp();
    succeeds("the commit", tx.commit().await)?;
    let version = tx.get_committed_version()?;
    same("the stamp's version", stamp.await?[..8].to_vec(), version.to_be_bytes().to_vec())?;
    same("the value", c.value("a").await?, some("1"))
}

async fn many_calls(c: Ctx) -> Expectation {
    let keys: Vec<_> = (0..50).map(|n| c.key(format!("{n:02}"))).collect();
    let (tx, after) = (c.tx()?, c.key("z"));
    let stamped = [&c.key("s/")[..], &[0; 10], &(c.key("s/").len() as u32).to_le_bytes()].concat();
    for n in 0..c.many {
        let key = &keys[n as usize % keys.len()];
        match n / keys.len() as u32 % 10 {
            0 => tx.set(key, &n.to_le_bytes()),
            1 => tx.atomic_op(key, &n.to_le_bytes(), MutationType::Add),
            2 => drop(tx.get(key, Serializable).await?),
            3 => drop(tx.get(key, Snapshot).await?),
            4 => tx.clear(key),
            5 => tx.clear_range(key, &after),
            6 => tx.add_conflict_range(key, &after, ConflictRangeType::Write)?,
            7 => tx.add_conflict_key(key, ConflictRangeType::Read)?,
            8 => tx.atomic_op(&stamped, b"v", MutationType::SetVersionstampedKey),
            _ => drop(tx.get_approximate_size().await?),
        }
    }
    tx.set(&keys[0], b"last");
    match tx.commit().await {
        Ok(()) => same("the last value", c.value("00").await?, some("last")),
        // Its luck is no promise about calls: a busy cluster may refuse it, or leave it unknown.
        Err(e) if e.is_retryable() => {
            let value = c.value("00").await?;
            holds(value.is_none() || value == some("last"), || {
                format!("nothing or the last value: {value:?}")
            })
        }
        committed => succeeds("the commit", committed),
    }
}
