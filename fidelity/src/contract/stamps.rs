//! Versionstamped keys and values, and `get_versionstamp`.

use super::{
    Case, Ctx, Expectation,
    expect::{fails, holds, same, succeeds},
    world::Serializable,
};
use bytes::Bytes;
use futures::{FutureExt, StreamExt, TryFutureExt, poll, stream::FuturesUnordered};
use shaketable_tx::{Error, MutationType::*, RangeOption, Result, Transaction, Tx};

const SECTION: &str = "versionstamps";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = catalogue! {
        "stamp/format", stamp_format,
            "A stamp is the commit version and the order in its batch, both big-endian.";
        "stamp/rising", stamps_rise,
            "Stamps of commits one after the other rise, and no two are alike.";
        "stamp/read-only", stamp_read_only,
            "The stamp of a read-only transaction is 2021.";
        "stamp/failed-commit", stamp_failed,
            "The stamp of a commit that failed is 2020.";
        "stamp/after-commit", stamp_late,
            "A stamp that is asked for after the commit is 2017.";
        "stamp/reset", stamp_reset,
            "A stamp whose transaction is reset is 1100, also when on_error resets it.";
        "stamp/cancel", stamp_cancelled,
            "A stamp whose transaction is cancelled, or dropped, is 1025.";
        "stamp/before-commit", stamp_first,
            "The stamp is ready no later than the answer of its commit.";
        "stamp/plain-write", stamp_plain,
            "A transaction without versionstamped writes has a stamp too.";
        "key/offsets", key_offsets,
            "The stamp replaces ten bytes of the key at its offset; the four bytes of the offset go.";
        "key/value", key_value,
            "A versionstamped key holds the operand as its value.";
        "key/prefixed-by-user-order", key_user_order,
            "Keys of one transaction share the stamp and are told apart by what follows it.";
        "key/write-conflict", key_conflicts,
            "A versionstamped key conflicts with those who read where it landed.";
        "key/no-other-conflict", key_no_conflict,
            "It does not conflict with those who read what lies before that.";
        "key/over-existing", key_distinct,
            "It is a set: a key that is there already is overwritten by nobody else's stamp.";
        "value/offsets", value_offsets,
            "The stamp replaces ten bytes of the value at its offset; the four bytes of the offset go.";
        "value/replaces", value_replaces,
            "A versionstamped value replaces what is stored.";
        "size/key", key_size,
            "The four bytes of the offset count: a versionstamped key has at most 9,996 bytes.";
        "size/value", value_size,
            "The four bytes of the offset count toward the value's limit.";
    };
    for (topic, bad) in BAD_OFFSETS {
        for key in [true, false] {
            let kind = if key { "key" } else { "value" };
            let promise = format!("A versionstamped {kind} whose offset is {topic} is 2000.");
            cases.push(Case::new(SECTION, &format!("{kind}/{topic}"), promise, move |c| {
                bad_offset(c, *bad, key)
            }));
        }
    }
    cases
}

/// What is wrong with a versionstamped key or operand.
#[derive(Clone, Copy)]
enum Bad {
    Offset(i32),
    OneTooFar,
    TooShort,
}

const BAD_OFFSETS: &[(&str, Bad)] = &[
    ("past-the-end", Bad::Offset(65_535)),
    ("far-away", Bad::Offset(i32::MAX)),
    ("negative", Bad::Offset(-1)),
    ("one-too-far", Bad::OneTooFar),
    ("missing", Bad::TooShort),
];

/// `before`, ten bytes for the stamp, `after`, and the offset of the stamp.
pub(super) fn stamped(before: &[u8], after: &[u8]) -> Vec<u8> {
    let offset = u32::try_from(before.len()).unwrap_or(u32::MAX);
    [before, &[0; 10], after, &offset.to_le_bytes()].concat()
}

/// The bytes into which [`stamped`] is transformed by the commit.
pub(super) fn filled(before: &[u8], stamp: [u8; 10], after: &[u8]) -> Bytes {
    [before, &stamp, after].concat().into()
}

pub(super) async fn commit_stamp(tx: &Tx) -> Result<[u8; 10]> {
    let stamp = tx.get_versionstamp();
    tx.commit().await?;
    stamp.await
}

async fn stamp_format(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.atomic_op(&c.key("a"), &stamped(b"", b""), SetVersionstampedValue);
    let stamp = commit_stamp(&tx).await?;
    same("the version", stamp[..8].to_vec(), tx.get_committed_version()?.to_be_bytes().to_vec())?;
    same("the stored stamp", c.value("a").await?, Some(Bytes::copy_from_slice(&stamp)))
}

async fn stamps_rise(c: Ctx) -> Expectation {
    let mut last = [0; 10];
    for _ in 0..5 {
        let tx = c.tx()?;
        tx.set(&c.key("a"), b"1");
        let stamp = commit_stamp(&tx).await?;
        holds(stamp > last, || format!("a stamp above {last:?}, seen {stamp:?}"))?;
        last = stamp;
    }
    Ok(())
}

async fn stamp_first(c: Ctx) -> Expectation {
    for n in 0..20u8 {
        let tx = c.tx()?;
        tx.set(&c.key("a"), &[n]);
        let mut stamp = tx.get_versionstamp().map_ok(|_| "stamp").boxed();
        let mut commit = tx.commit().map_ok(|()| "commit").boxed();
        // Which of them answered first is known only if neither had answered when it was polled first.
        if poll!(&mut commit).is_ready() {
            same("a stamp after the answer of its commit", poll!(&mut stamp).is_ready(), true)?;
            continue;
        }
        if poll!(&mut stamp).is_ready() {
            commit.await?;
            continue;
        }
        // Each is polled when it is woken, in the order of their answers.
        let mut answers: FuturesUnordered<_> = [stamp, commit].into_iter().collect();
        let mut order = Vec::new();
        while let Some(answer) = answers.next().await {
            order.push(answer?);
        }
        same("the order of the answers", order, vec!["stamp", "commit"])?;
    }
    Ok(())
}

async fn stamp_read_only(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let stamp = tx.get_versionstamp();
    tx.get(&c.key("a"), Serializable).await?;
    tx.commit().await?;
    fails("the stamp", stamp.await, Error::NO_COMMIT_VERSION)
}

async fn stamp_failed(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    c.put("a", "theirs").await?;
    c.touch(&tx)?;
    let stamp = tx.get_versionstamp();
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)?;
    fails("the stamp", stamp.await, Error::TRANSACTION_INVALID_VERSION)
}

async fn stamp_late(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    tx.commit().await?;
    fails("the stamp", tx.get_versionstamp().await, Error::USED_DURING_COMMIT)
}

async fn stamp_reset(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    let stamp = tx.get_versionstamp();
    tx.reset();
    fails("the stamp", stamp.await, Error::BROKEN_PROMISE)?;
    tx.set(&c.key("a"), b"1");
    let stamp = tx.get_versionstamp();
    tx.on_error(Error::NOT_COMMITTED).await?;
    fails("the stamp", stamp.await, Error::BROKEN_PROMISE)
}

async fn stamp_cancelled(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    let stamp = tx.get_versionstamp();
    tx.cancel();
    fails("the stamp", stamp.await, Error::TRANSACTION_CANCELLED)?;
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    let stamp = tx.get_versionstamp();
    drop(tx);
    fails("the stamp", stamp.await, Error::TRANSACTION_CANCELLED)
}

async fn stamp_plain(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    let stamp = commit_stamp(&tx).await?;
    same("the version", stamp[..8].to_vec(), tx.get_committed_version()?.to_be_bytes().to_vec())
}

async fn key_offsets(c: Ctx) -> Expectation {
    for (before, after) in [("", ""), ("x", ""), ("", "y"), ("long before", "long after")] {
        let tx = c.tx()?;
        tx.atomic_op(&stamped(&c.key(before), after.as_bytes()), b"value", SetVersionstampedKey);
        let stamp = commit_stamp(&tx).await?;
        let promised = filled(before.as_bytes(), stamp, after.as_bytes());
        let rows = c.rows().await?;
        same("the rows", rows, vec![(promised, "value".into())])?;
        c.clear_all().await?;
    }
    Ok(())
}

async fn key_value(c: Ctx) -> Expectation {
    for value in [b"".as_slice(), b"value", &[7; 1_000]] {
        let tx = c.tx()?;
        tx.atomic_op(&stamped(&c.key("a"), b""), value, SetVersionstampedKey);
        let stamp = commit_stamp(&tx).await?;
        let row = (filled(b"a", stamp, b""), Bytes::copy_from_slice(value));
        same("the rows", c.rows().await?, vec![row])?;
        c.clear_all().await?;
    }
    Ok(())
}

async fn key_user_order(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    for order in [2_u16, 0, 1] {
        tx.atomic_op(&stamped(&c.key("a"), &order.to_be_bytes()), b"", SetVersionstampedKey);
    }
    let stamp = commit_stamp(&tx).await?;
    let promised = [0_u16, 1, 2].map(|order| (filled(b"a", stamp, &order.to_be_bytes()), Bytes::new()));
    same("the rows", c.rows().await?, promised.to_vec())
}

async fn key_conflicts(c: Ctx) -> Expectation {
    let reader = c.tx()?;
    reader.get_range_all(c.range("a", "b"), Serializable).await?;
    let tx = c.tx()?;
    tx.atomic_op(&stamped(&c.key("a"), b""), b"", SetVersionstampedKey);
    tx.commit().await?;
    c.touch(&reader)?;
    fails("the reader's commit", reader.commit().await, Error::NOT_COMMITTED)
}

async fn key_no_conflict(c: Ctx) -> Expectation {
    let reader = c.tx()?;
    let version = reader.get_read_version().await?;
    // Up to and including the stamps of the reader's own version.
    let end = c.key(filled(b"a", stamp_at(version + 1), b""));
    reader.get_range_all(RangeOption::new(c.key("a"), end), Serializable).await?;
    let tx = c.tx()?;
    tx.get_read_version().await?;
    tx.atomic_op(&stamped(&c.key("a"), b""), b"", SetVersionstampedKey);
    tx.commit().await?;
    c.touch(&reader)?;
    succeeds("the reader's commit", reader.commit().await)
}

/// The smallest stamp of a version.
pub(super) fn stamp_at(version: i64) -> [u8; 10] {
    let mut stamp = [0; 10];
    stamp[..8].copy_from_slice(&version.to_be_bytes());
    stamp
}

async fn key_distinct(c: Ctx) -> Expectation {
    let mut promised = Vec::new();
    for value in ["1", "2", "3"] {
        let tx = c.tx()?;
        tx.atomic_op(&stamped(&c.key("a"), b""), value.as_bytes(), SetVersionstampedKey);
        let stamp = commit_stamp(&tx).await?;
        promised.push((filled(b"a", stamp, b""), value.into()));
    }
    same("the rows", c.rows().await?, promised)
}

async fn value_offsets(c: Ctx) -> Expectation {
    for (before, after) in [("", ""), ("x", ""), ("", "y"), ("long before", "long after")] {
        let tx = c.tx()?;
        let operand = stamped(before.as_bytes(), after.as_bytes());
        tx.atomic_op(&c.key("a"), &operand, SetVersionstampedValue);
        let stamp = commit_stamp(&tx).await?;
        let promised = filled(before.as_bytes(), stamp, after.as_bytes());
        same("the value", c.value("a").await?, Some(promised))?;
    }
    Ok(())
}

async fn value_replaces(c: Ctx) -> Expectation {
    c.put("a", "a longer value than the stamp").await?;
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"own");
    tx.atomic_op(&c.key("a"), &stamped(b"", b""), SetVersionstampedValue);
    let stamp = commit_stamp(&tx).await?;
    same("the value", c.value("a").await?, Some(Bytes::copy_from_slice(&stamp)))
}

async fn key_size(c: Ctx) -> Expectation {
    let prefix = c.key("");
    for (length, fits) in [(10_000, true), (10_001, false)] {
        let tx = c.tx()?;
        let parameter = stamped(&prefix, &vec![b'x'; length - prefix.len() - 14]);
        tx.atomic_op(&parameter, b"", SetVersionstampedKey);
        let committed = tx.commit().await;
        if fits {
            succeeds(&format!("{length} bytes with the offset"), committed)?;
        } else {
            fails(&format!("{length} bytes with the offset"), committed, Error::KEY_TOO_LARGE)?;
        }
    }
    Ok(())
}

async fn value_size(c: Ctx) -> Expectation {
    for (length, fits) in [(100_000, true), (100_001, false)] {
        let tx = c.tx()?;
        let operand = stamped(b"", &vec![7; length - 14]);
        tx.atomic_op(&c.key("a"), &operand, SetVersionstampedValue);
        let committed = tx.commit().await;
        if fits {
            succeeds(&format!("{length} bytes with the offset"), committed)?;
        } else {
            fails(&format!("{length} bytes with the offset"), committed, Error::VALUE_TOO_LARGE)?;
        }
    }
    Ok(())
}

async fn bad_offset(c: Ctx, bad: Bad, key: bool) -> Expectation {
    let before = if key { c.key("") } else { Bytes::new() };
    let offset = match bad {
        Bad::Offset(offset) => offset.to_le_bytes(),
        Bad::OneTooFar => (before.len() as u32 + 1).to_le_bytes(),
        Bad::TooShort => [0; 4],
    };
    let whole = [&before, &[0; 10][..], &offset].concat();
    let parameter = if matches!(bad, Bad::TooShort) { &whole[..3] } else { &whole };
    let tx = c.tx()?;
    if key {
        tx.atomic_op(parameter, b"", SetVersionstampedKey);
    } else {
        tx.atomic_op(&c.key("a"), parameter, SetVersionstampedValue);
    }
    let read = tx.get(&c.key("b"), Serializable).await;
    fails("the next read", read, Error::CLIENT_INVALID_OPERATION)?;
    fails("the commit", tx.commit().await, Error::CLIENT_INVALID_OPERATION)
}
