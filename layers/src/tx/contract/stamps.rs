//! 5.7: versionstamped keys and values, `get_versionstamp`, and keys that cannot be read before
//! the commit has decided what they are.

use super::{
    Case, Ctx, Outcome,
    expect::{fails, fails_with, holds, same, succeeds},
    world::{Serializable, Snapshot, some},
};
use crate::tx::{
    Database, Error, KeySelector, MutationType::*, RangeOption, Result, Transaction, TransactionOption,
};
use bytes::Bytes;

const SECTION: &str = "5.7";

pub(super) fn cases<D: Database>() -> Vec<Case<D>> {
    let mut cases = vec![
        Case::new(
            SECTION,
            "stamp/format",
            "A stamp is the commit version and the order in its batch, both big-endian.",
            stamp_format,
        ),
        Case::new(
            SECTION,
            "stamp/rising",
            "Stamps of commits one after the other rise, and no two are alike.",
            stamps_rise,
        ),
        Case::new(
            SECTION,
            "stamp/read-only",
            "The stamp of a read-only transaction is 2021.",
            stamp_read_only,
        ),
        Case::new(SECTION, "stamp/failed-commit", "The stamp of a commit that failed is 2020.", stamp_failed),
        Case::new(
            SECTION,
            "stamp/after-commit",
            "A stamp that is asked for after the commit is 2017.",
            stamp_late,
        ),
        Case::new(SECTION, "stamp/reset", "A stamp whose transaction is reset fails.", stamp_reset),
        Case::new(
            SECTION,
            "stamp/plain-write",
            "A transaction without versionstamped writes has a stamp too.",
            stamp_plain,
        ),
        Case::new(
            SECTION,
            "key/offsets",
            "The stamp replaces ten bytes of the key at its offset; the four bytes of the offset go.",
            key_offsets,
        ),
        Case::new(SECTION, "key/value", "A versionstamped key holds the operand as its value.", key_value),
        Case::new(
            SECTION,
            "key/prefixed-by-user-order",
            "Keys of one transaction share the stamp and are told apart by what follows it.",
            key_user_order,
        ),
        Case::new(
            SECTION,
            "key/write-conflict",
            "A versionstamped key conflicts with those who read where it landed.",
            key_conflicts,
        ),
        Case::new(
            SECTION,
            "key/no-other-conflict",
            "It does not conflict with those who read what lies before that.",
            key_no_conflict,
        ),
        Case::new(
            SECTION,
            "key/over-existing",
            "It is a set: a key that is there already is overwritten by nobody else's stamp.",
            key_distinct,
        ),
        Case::new(
            SECTION,
            "value/offsets",
            "The stamp replaces ten bytes of the value at its offset; the four bytes of the offset go.",
            value_offsets,
        ),
        Case::new(
            SECTION,
            "value/replaces",
            "A versionstamped value replaces what is stored.",
            value_replaces,
        ),
        Case::new(
            SECTION,
            "unreadable/value",
            "A key with a versionstamped value is 1036 in get, get_key and get_range, snapshot or not.",
            unreadable_value,
        ),
        Case::new(SECTION, "unreadable/value-others", "Other keys stay readable.", unreadable_value_others),
        Case::new(
            SECTION,
            "unreadable/value-then-set",
            "A set over it leaves it unreadable.",
            value_then_set,
        ),
        Case::new(
            SECTION,
            "unreadable/value-then-clear",
            "A clear over it makes it readable, and absent.",
            value_then_clear,
        ),
        Case::new(
            SECTION,
            "unreadable/key",
            "Keys between the least and the greatest stamp are 1036 in get, snapshot or not.",
            unreadable_key,
        ),
        Case::new(
            SECTION,
            "unreadable/key-get_key",
            "A get_key that has to look into them is 1036.",
            unreadable_get_key,
        ),
        Case::new(
            SECTION,
            "unreadable/range",
            "A range that has to look into them is 1036, forwards and backwards.",
            unreadable_range,
        ),
        Case::new(
            SECTION,
            "unreadable/range-before",
            "A range that lies before them, or fills its limit before it reaches them, is fine.",
            range_before,
        ),
        Case::new(
            SECTION,
            "unreadable/range-behind",
            "A range that lies behind them, or fills its limit backwards, is fine.",
            range_behind,
        ),
        Case::new(
            SECTION,
            "unreadable/without-read-version",
            "Without a read version the least stamp is zero.",
            zero_without_version,
        ),
        Case::new(
            SECTION,
            "unreadable/with-read-version",
            "With a read version the least stamp is just above it: older stamps stay readable.",
            narrowed_by_version,
        ),
        Case::new(
            SECTION,
            "unreadable/fails-commit",
            "A read that failed with 1036 makes the commit fail with it.",
            fails_commit,
        ),
        Case::new(
            SECTION,
            "unreadable/no-read-no-fail",
            "Without such a read the commit succeeds.",
            stamp_plain_key,
        ),
        Case::new(SECTION, "unreadable/on_error", "1036 is not retryable.", on_error),
        Case::new(
            SECTION,
            "bypass/value",
            "With option 1100 get sees the operand with its placeholder.",
            bypass_value,
        ),
        Case::new(
            SECTION,
            "bypass/range",
            "With option 1100 a range that meets a stamped key is still 1036.",
            bypass_range,
        ),
        Case::new(
            SECTION,
            "size/key",
            "The four bytes of the offset count: a versionstamped key has at most 9,996 bytes.",
            key_size,
        ),
        Case::new(
            SECTION,
            "size/value",
            "The four bytes of the offset count toward the value's limit.",
            value_size,
        ),
    ];
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

/// What is wrong with a versionstamped parameter.
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

/// `before`, room for a stamp, `after`, and the offset of the room.
fn stamped(before: &[u8], after: &[u8]) -> Vec<u8> {
    let offset = u32::try_from(before.len()).unwrap_or(u32::MAX);
    [before, &[0; 10], after, &offset.to_le_bytes()].concat()
}

/// The bytes that [`stamped`] becomes.
fn filled(before: &[u8], stamp: [u8; 10], after: &[u8]) -> Bytes {
    [before, &stamp, after].concat().into()
}

async fn commit_stamp<D: Database>(tx: &D::Transaction) -> Result<[u8; 10]> {
    let stamp = tx.get_versionstamp();
    tx.commit().await?;
    stamp.await
}

async fn stamp_format<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.atomic_op(&c.key("a"), &stamped(b"", b""), SetVersionstampedValue);
    let stamp = commit_stamp::<D>(&tx).await?;
    same("the version", stamp[..8].to_vec(), tx.get_committed_version()?.to_be_bytes().to_vec())?;
    same("the stored stamp", c.value("a").await?, Some(Bytes::copy_from_slice(&stamp)))
}

async fn stamps_rise<D: Database>(c: Ctx<D>) -> Outcome {
    let mut last = [0; 10];
    for _ in 0..5 {
        let tx = c.tx()?;
        tx.set(&c.key("a"), b"1");
        let stamp = commit_stamp::<D>(&tx).await?;
        holds(stamp > last, || format!("a stamp above {last:?}, seen {stamp:?}"))?;
        last = stamp;
    }
    Ok(())
}

async fn stamp_read_only<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    let stamp = tx.get_versionstamp();
    tx.get(&c.key("a"), Serializable).await?;
    tx.commit().await?;
    fails("the stamp", stamp.await, Error::NO_COMMIT_VERSION)
}

async fn stamp_failed<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    c.put("a", "theirs").await?;
    c.touch(&tx)?;
    let stamp = tx.get_versionstamp();
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)?;
    fails("the stamp", stamp.await, Error::TRANSACTION_INVALID_VERSION)
}

async fn stamp_late<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    tx.commit().await?;
    fails("the stamp", tx.get_versionstamp().await, Error::USED_DURING_COMMIT)
}

async fn stamp_reset<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    let stamp = tx.get_versionstamp();
    tx.reset();
    let errors = [Error::TRANSACTION_CANCELLED, Error::TRANSACTION_INVALID_VERSION];
    fails_with("the stamp", stamp.await, &errors)
}

async fn stamp_plain<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    let stamp = commit_stamp::<D>(&tx).await?;
    same("the version", stamp[..8].to_vec(), tx.get_committed_version()?.to_be_bytes().to_vec())
}

async fn key_offsets<D: Database>(c: Ctx<D>) -> Outcome {
    for (before, after) in [("", ""), ("x", ""), ("", "y"), ("long before", "long after")] {
        let tx = c.tx()?;
        tx.atomic_op(&stamped(&c.key(before), after.as_bytes()), b"value", SetVersionstampedKey);
        let stamp = commit_stamp::<D>(&tx).await?;
        let promised = filled(before.as_bytes(), stamp, after.as_bytes());
        let rows = c.rows().await?;
        same("the rows", rows, vec![(promised, "value".into())])?;
        c.clear_all().await?;
    }
    Ok(())
}

async fn key_value<D: Database>(c: Ctx<D>) -> Outcome {
    for value in [b"".as_slice(), b"value", &[7; 1_000]] {
        let tx = c.tx()?;
        tx.atomic_op(&stamped(&c.key("a"), b""), value, SetVersionstampedKey);
        let stamp = commit_stamp::<D>(&tx).await?;
        let row = (filled(b"a", stamp, b""), Bytes::copy_from_slice(value));
        same("the rows", c.rows().await?, vec![row])?;
        c.clear_all().await?;
    }
    Ok(())
}

async fn key_user_order<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = c.tx()?;
    for order in [2_u16, 0, 1] {
        tx.atomic_op(&stamped(&c.key("a"), &order.to_be_bytes()), b"", SetVersionstampedKey);
    }
    let stamp = commit_stamp::<D>(&tx).await?;
    let promised = [0_u16, 1, 2].map(|order| (filled(b"a", stamp, &order.to_be_bytes()), Bytes::new()));
    same("the rows", c.rows().await?, promised.to_vec())
}

async fn key_conflicts<D: Database>(c: Ctx<D>) -> Outcome {
    let reader = c.tx()?;
    reader.get_range_all(c.range("a", "b"), Serializable).await?;
    let tx = c.tx()?;
    tx.atomic_op(&stamped(&c.key("a"), b""), b"", SetVersionstampedKey);
    tx.commit().await?;
    c.touch(&reader)?;
    fails("the reader's commit", reader.commit().await, Error::NOT_COMMITTED)
}

async fn key_no_conflict<D: Database>(c: Ctx<D>) -> Outcome {
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

/// The least stamp of a version.
fn stamp_at(version: i64) -> [u8; 10] {
    let mut stamp = [0; 10];
    stamp[..8].copy_from_slice(&version.to_be_bytes());
    stamp
}

async fn key_distinct<D: Database>(c: Ctx<D>) -> Outcome {
    let mut promised = Vec::new();
    for value in ["1", "2", "3"] {
        let tx = c.tx()?;
        tx.atomic_op(&stamped(&c.key("a"), b""), value.as_bytes(), SetVersionstampedKey);
        let stamp = commit_stamp::<D>(&tx).await?;
        promised.push((filled(b"a", stamp, b""), value.into()));
    }
    same("the rows", c.rows().await?, promised)
}

async fn value_offsets<D: Database>(c: Ctx<D>) -> Outcome {
    for (before, after) in [("", ""), ("x", ""), ("", "y"), ("long before", "long after")] {
        let tx = c.tx()?;
        let operand = stamped(before.as_bytes(), after.as_bytes());
        tx.atomic_op(&c.key("a"), &operand, SetVersionstampedValue);
        let stamp = commit_stamp::<D>(&tx).await?;
        let promised = filled(before.as_bytes(), stamp, after.as_bytes());
        same("the value", c.value("a").await?, Some(promised))?;
    }
    Ok(())
}

async fn value_replaces<D: Database>(c: Ctx<D>) -> Outcome {
    c.put("a", "a longer value than the stamp").await?;
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"own");
    tx.atomic_op(&c.key("a"), &stamped(b"", b""), SetVersionstampedValue);
    let stamp = commit_stamp::<D>(&tx).await?;
    same("the value", c.value("a").await?, Some(Bytes::copy_from_slice(&stamp)))
}

/// A transaction that has stamped the value of `b`, among `a`, `b` and `c`.
async fn with_value<D: Database>(c: &Ctx<D>) -> Result<D::Transaction> {
    c.put_all(&["a", "b", "c"]).await?;
    let tx = c.tx()?;
    tx.atomic_op(&c.key("b"), &stamped(b"", b""), SetVersionstampedValue);
    Ok(tx)
}

async fn unreadable_value<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = with_value(&c).await?;
    let unreadable = Error::ACCESSED_UNREADABLE;
    for isolation in [Serializable, Snapshot] {
        fails("get", tx.get(&c.key("b"), isolation).await, unreadable)?;
        fails("get_range", tx.get_range_all(c.everything(), isolation).await, unreadable)?;
        let reverse = c.everything().reversed();
        fails("get_range reversed", tx.get_range_all(reverse, isolation).await, unreadable)?;
        let selector = c.selector("a", true, 1);
        fails("get_key", tx.get_key(&selector, isolation).await, unreadable)?;
    }
    Ok(())
}

async fn unreadable_value_others<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = with_value(&c).await?;
    same("get of another key", tx.get(&c.key("a"), Serializable).await?, some("a"))?;
    let rows = tx.get_range_all(c.range("c", "z"), Serializable).await?;
    same("a range behind it", rows.len(), 1)?;
    let rows = tx.get_range_all(c.range("a", "b"), Serializable).await?;
    same("a range before it", rows.len(), 1)?;
    let selector = c.selector("c", false, 1);
    same("get_key behind it", tx.get_key(&selector, Serializable).await?, c.key("c"))
}

async fn value_then_set<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = with_value(&c).await?;
    tx.set(&c.key("b"), b"own");
    fails("get", tx.get(&c.key("b"), Serializable).await, Error::ACCESSED_UNREADABLE)
}

async fn value_then_clear<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = with_value(&c).await?;
    tx.clear(&c.key("b"));
    same("get", tx.get(&c.key("b"), Serializable).await?, None)?;
    tx.commit().await?;
    same("committed", c.value("b").await?, None)
}

/// A transaction that has written a stamped key under `m`, with `a` and `z` stored around it.
/// `versioned` fetches the read version first.
async fn with_key<D: Database>(c: &Ctx<D>, versioned: bool) -> Result<D::Transaction> {
    c.put_all(&["a", "b", "y", "z"]).await?;
    let tx = c.tx()?;
    if versioned {
        tx.get_read_version().await?;
    }
    tx.atomic_op(&stamped(&c.key("m"), b""), b"", SetVersionstampedKey);
    Ok(tx)
}

async fn unreadable_key<D: Database>(c: Ctx<D>) -> Outcome {
    for versioned in [false, true] {
        let version = c.tx()?.get_read_version().await?;
        let tx = with_key(&c, versioned).await?;
        for stamp in [stamp_at(version + 1_000_000_000), [0xff; 10]] {
            let key = c.key(filled(b"m", stamp, b""));
            for isolation in [Serializable, Snapshot] {
                fails("get", tx.get(&key, isolation).await, Error::ACCESSED_UNREADABLE)?;
            }
        }
        let behind = c.key(filled(b"m", [0xff; 10], b"\0"));
        same("get behind the greatest stamp", tx.get(&behind, Serializable).await?, None)?;
        same("get before the least", tx.get(&c.key("m"), Serializable).await?, None)?;
    }
    Ok(())
}

async fn unreadable_get_key<D: Database>(c: Ctx<D>) -> Outcome {
    for versioned in [false, true] {
        let tx = with_key(&c, versioned).await?;
        for selector in [c.selector("b", true, 1), c.selector("y", false, 0), c.selector("n", false, 0)] {
            let key = tx.get_key(&selector, Snapshot).await;
            fails(&format!("{selector:?}"), key, Error::ACCESSED_UNREADABLE)?;
        }
        let key = tx.get_key(&c.selector("a", true, 1), Snapshot).await?;
        same("get_key that stops before them", c.strip(&key), "b".into())?;
        let key = tx.get_key(&c.selector("z", false, 0), Snapshot).await?;
        same("get_key that stops behind them", c.strip(&key), "y".into())?;
    }
    Ok(())
}

async fn unreadable_range<D: Database>(c: Ctx<D>) -> Outcome {
    for versioned in [false, true] {
        let tx = with_key(&c, versioned).await?;
        for range in [c.everything(), c.range("m", "n"), c.everything().limit(3)] {
            for isolation in [Serializable, Snapshot] {
                let rows = tx.get_range_all(range.clone(), isolation).await;
                fails("a range", rows, Error::ACCESSED_UNREADABLE)?;
                let rows = tx.get_range_all(range.clone().reversed(), isolation).await;
                fails("a range reversed", rows, Error::ACCESSED_UNREADABLE)?;
            }
        }
    }
    Ok(())
}

async fn range_before<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = with_key(&c, true).await?;
    same("a range before", tx.get_range_all(c.range("a", "m"), Serializable).await?.len(), 2)?;
    let filled = tx.get_range_all(c.everything().limit(2), Serializable).await?;
    same("a limit filled before", filled.len(), 2)
}

async fn range_behind<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = with_key(&c, true).await?;
    same("a range behind", tx.get_range_all(c.range("n", "zz"), Serializable).await?.len(), 2)?;
    let filled = tx.get_range_all(c.everything().reversed().limit(2), Serializable).await?;
    same("a limit filled behind", filled.len(), 2)
}

async fn zero_without_version<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = with_key(&c, false).await?;
    let zero = c.key(filled(b"m", [0; 10], b""));
    fails("get of the zero stamp", tx.get(&zero, Serializable).await, Error::ACCESSED_UNREADABLE)
}

async fn narrowed_by_version<D: Database>(c: Ctx<D>) -> Outcome {
    let older = c.tx()?;
    older.atomic_op(&stamped(&c.key("m"), b""), b"older", SetVersionstampedKey);
    let stamp = commit_stamp::<D>(&older).await?;
    let tx = with_key(&c, true).await?;
    let version = tx.get_read_version().await?;
    let key = c.key(filled(b"m", stamp, b""));
    same("get of an older stamp", tx.get(&key, Serializable).await?, some("older"))?;
    let end = c.key(filled(b"m", stamp_at(version + 1), b""));
    let rows = tx.get_range_all(RangeOption::new(c.key("m"), end), Serializable).await?;
    same("a range of older stamps", rows.len(), 1)?;
    let least = c.key(filled(b"m", stamp_at(version + 1), b""));
    fails("get of the next version's", tx.get(&least, Serializable).await, Error::ACCESSED_UNREADABLE)
}

async fn fails_commit<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = with_value(&c).await?;
    fails("get", tx.get(&c.key("b"), Snapshot).await, Error::ACCESSED_UNREADABLE)?;
    fails("the commit", tx.commit().await, Error::ACCESSED_UNREADABLE)?;
    same("the value", c.value("b").await?, some("b"))
}

async fn stamp_plain_key<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = with_key(&c, false).await?;
    same("a read elsewhere", tx.get(&c.key("a"), Serializable).await?, some("a"))?;
    succeeds("the commit", tx.commit().await)?;
    same("how many rows", c.rows().await?.len(), 5)
}

async fn on_error<D: Database>(c: Ctx<D>) -> Outcome {
    let tx = with_value(&c).await?;
    fails("get", tx.get(&c.key("b"), Snapshot).await, Error::ACCESSED_UNREADABLE)?;
    let answer = tx.on_error(Error::ACCESSED_UNREADABLE).await;
    fails("on_error", answer, Error::ACCESSED_UNREADABLE)
}

async fn bypass_value<D: Database>(c: Ctx<D>) -> Outcome {
    c.put("b", "stored").await?;
    let tx = c.tx()?;
    tx.set_option(TransactionOption::BypassUnreadable)?;
    let operand = stamped(b"before", b"after");
    tx.atomic_op(&c.key("b"), &operand, SetVersionstampedValue);
    same("get", tx.get(&c.key("b"), Serializable).await?, Some(operand.into()))?;
    let stamp = commit_stamp::<D>(&tx).await?;
    same("committed", c.value("b").await?, Some(filled(b"before", stamp, b"after")))
}

async fn bypass_range<D: Database>(c: Ctx<D>) -> Outcome {
    c.put_all(&["a", "b", "c"]).await?;
    let tx = c.tx()?;
    tx.set_option(TransactionOption::BypassUnreadable)?;
    tx.atomic_op(&c.key("b"), &stamped(b"", b""), SetVersionstampedValue);
    let rows = tx.get_range_all(c.everything(), Serializable).await;
    fails("a range", rows, Error::ACCESSED_UNREADABLE)?;
    let key = tx.get_key(&KeySelector::first_greater_than(c.key("a")), Serializable).await;
    fails("get_key", key, Error::ACCESSED_UNREADABLE)
}

async fn key_size<D: Database>(c: Ctx<D>) -> Outcome {
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

async fn value_size<D: Database>(c: Ctx<D>) -> Outcome {
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

async fn bad_offset<D: Database>(c: Ctx<D>, bad: Bad, key: bool) -> Outcome {
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
