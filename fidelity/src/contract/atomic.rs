//! Atomic operations: each one over absent, shorter, equal, longer and empty values.

use super::{
    Case, Ctx, Expectation,
    expect::{fails, same, succeeds},
    world::{Serializable, Snapshot, some},
};
use bytes::Bytes;
use shaketable_tx::{Error, MutationType, MutationType::*, Transaction};

const SECTION: &str = "atomic";

type Value = Option<&'static [u8]>;

/// Operation, topic, stored value, operand, resulting value.
type Row = (MutationType, &'static str, Value, &'static [u8], Value);

const ROWS: &[Row] = &[
    (Add, "absent", None, b"\x05", Some(b"\x05")),
    (Add, "sum", Some(b"\x01\x02"), b"\x03\x04", Some(b"\x04\x06")),
    (Add, "carry", Some(b"\xff\x00"), b"\x01\x00", Some(b"\x00\x01")),
    (Add, "wraps", Some(b"\xff\xff"), b"\x01\x00", Some(b"\x00\x00")),
    (Add, "negative", Some(b"\x05\x00"), b"\xfe\xff", Some(b"\x03\x00")),
    (Add, "shorter-value", Some(b"\xff"), b"\x01\x00\x07", Some(b"\x00\x01\x07")),
    (Add, "longer-value", Some(b"\x01\x02\x03"), b"\x01", Some(b"\x02")),
    (Add, "empty-value", Some(b""), b"\x05", Some(b"\x05")),
    (Add, "empty-operand", Some(b"\x05"), b"", Some(b"")),
    (Add, "empty-operand-absent", None, b"", Some(b"")),
    (BitAnd, "absent", None, b"\x05", Some(b"\x05")),
    (BitAnd, "bits", Some(b"\x0f\xf0"), b"\x3c\x3c", Some(b"\x0c\x30")),
    (BitAnd, "shorter-value", Some(b"\xff"), b"\xff\xff", Some(b"\xff\x00")),
    (BitAnd, "longer-value", Some(b"\xff\xff"), b"\x0f", Some(b"\x0f")),
    (BitAnd, "empty-value", Some(b""), b"\xff", Some(b"\x00")),
    (BitAnd, "empty-operand", Some(b"\x05"), b"", Some(b"")),
    (BitOr, "absent", None, b"\x05", Some(b"\x05")),
    (BitOr, "bits", Some(b"\x0f"), b"\x30", Some(b"\x3f")),
    (BitOr, "shorter-value", Some(b"\x01"), b"\x02\x02", Some(b"\x03\x02")),
    (BitOr, "longer-value", Some(b"\x01\xff"), b"\x02", Some(b"\x03")),
    (BitOr, "empty-value", Some(b""), b"\x02", Some(b"\x02")),
    (BitOr, "empty-operand", Some(b"\x05"), b"", Some(b"")),
    (BitXor, "absent", None, b"\x05", Some(b"\x05")),
    (BitXor, "bits", Some(b"\x0f"), b"\x35", Some(b"\x3a")),
    (BitXor, "shorter-value", Some(b"\x01"), b"\x03\x02", Some(b"\x02\x02")),
    (BitXor, "longer-value", Some(b"\x01\xff"), b"\x03", Some(b"\x02")),
    (BitXor, "empty-value", Some(b""), b"\x02", Some(b"\x02")),
    (BitXor, "empty-operand", Some(b"\x05"), b"", Some(b"")),
    (AppendIfFits, "absent", None, b"cd", Some(b"cd")),
    (AppendIfFits, "appended", Some(b"ab"), b"cd", Some(b"abcd")),
    (AppendIfFits, "empty-value", Some(b""), b"cd", Some(b"cd")),
    (AppendIfFits, "empty-operand", Some(b"ab"), b"", Some(b"ab")),
    (AppendIfFits, "empty-operand-absent", None, b"", Some(b"")),
    (AppendIfFits, "fits", Some(&[7; 99_999]), b"\x07", Some(&[7; 100_000])),
    (AppendIfFits, "does-not-fit", Some(&[7; 99_999]), b"\x07\x07", Some(&[7; 99_999])),
    (Max, "absent", None, b"\x05", Some(b"\x05")),
    (Max, "value", Some(b"\x05"), b"\x03", Some(b"\x05")),
    (Max, "operand", Some(b"\x03"), b"\x05", Some(b"\x05")),
    (Max, "little-endian", Some(b"\xff\x00"), b"\x00\x01", Some(b"\x00\x01")),
    (Max, "unsigned", Some(b"\xff"), b"\x01", Some(b"\xff")),
    (Max, "shorter-value-wins", Some(b"\xff"), b"\x01\x00", Some(b"\xff\x00")),
    (Max, "shorter-value-loses", Some(b"\xff"), b"\x00\x01", Some(b"\x00\x01")),
    (Max, "longer-value-wins", Some(b"\x05\x01"), b"\x02", Some(b"\x05")),
    (Max, "longer-value-loses", Some(b"\x01\x01"), b"\x02", Some(b"\x02")),
    (Max, "empty-value", Some(b""), b"\x00", Some(b"\x00")),
    (Max, "empty-operand", Some(b"\x05"), b"", Some(b"")),
    (Min, "absent", None, b"\x05", Some(b"\x05")),
    (Min, "value", Some(b"\x03"), b"\x05", Some(b"\x03")),
    (Min, "operand", Some(b"\x05"), b"\x03", Some(b"\x03")),
    (Min, "little-endian", Some(b"\xff\x00"), b"\x00\x01", Some(b"\xff\x00")),
    (Min, "shorter-value-wins", Some(b"\xff"), b"\x00\x01", Some(b"\xff\x00")),
    (Min, "shorter-value-loses", Some(b"\xff"), b"\x01\x00", Some(b"\x01\x00")),
    (Min, "longer-value-wins", Some(b"\x05\x01"), b"\x07", Some(b"\x05")),
    (Min, "longer-value-loses", Some(b"\x05\x00"), b"\x03", Some(b"\x03")),
    (Min, "empty-value", Some(b""), b"\x01", Some(b"\x00")),
    (Min, "empty-operand", Some(b"\x05"), b"", Some(b"")),
    (ByteMin, "absent", None, b"b", Some(b"b")),
    (ByteMin, "value", Some(b"a"), b"b", Some(b"a")),
    (ByteMin, "operand", Some(b"b"), b"a", Some(b"a")),
    (ByteMin, "prefix", Some(b"ab"), b"a", Some(b"a")),
    (ByteMin, "empty-value", Some(b""), b"a", Some(b"")),
    (ByteMin, "empty-operand", Some(b"a"), b"", Some(b"")),
    (ByteMax, "absent", None, b"b", Some(b"b")),
    (ByteMax, "value", Some(b"b"), b"a", Some(b"b")),
    (ByteMax, "operand", Some(b"a"), b"b", Some(b"b")),
    (ByteMax, "prefix", Some(b"ab"), b"a", Some(b"ab")),
    (ByteMax, "empty-value", Some(b""), b"a", Some(b"a")),
    (ByteMax, "empty-operand", Some(b"a"), b"", Some(b"a")),
    (CompareAndClear, "absent", None, b"a", None),
    (CompareAndClear, "equal", Some(b"a"), b"a", None),
    (CompareAndClear, "different", Some(b"a"), b"b", Some(b"a")),
    (CompareAndClear, "prefix", Some(b"ab"), b"a", Some(b"ab")),
    (CompareAndClear, "empty-value", Some(b""), b"", None),
    (CompareAndClear, "empty-operand", Some(b"a"), b"", Some(b"a")),
    (CompareAndClear, "empty-operand-absent", None, b"", None),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = catalogue! {
        "stacked", stacked,
            "Atomic operations on one key apply in the order they were made.";
        "compared-twice", compared_twice,
            "Two compare_and_clear with operands of one length are two.";
        "after-set", after_set,
            "An atomic operation after an own set combines with what was set.";
        "after-clear", after_clear,
            "An atomic operation after an own clear finds an absent value.";
        "before-set", before_set,
            "A set after an atomic operation replaces its result.";
        "before-clear", before_clear,
            "A clear after an atomic operation removes its result.";
        "at-commit-version", at_commit_version,
            "An atomic operation applies to the value at its commit, not at its read version.";
        "no-read-conflict", no_read_conflict,
            "An atomic operation on its own does not conflict with another's write of the key.";
        "read-conflicts", read_conflicts,
            "A read after an atomic operation does.";
        "range-clear-and-atomic", in_cleared_range,
            "In a range cleared by the same transaction every atomic operation finds absent values.";
        "order-among-keys", several_keys,
            "Mutations of several keys in one transaction do not touch each other.";
    };
    for row in ROWS {
        let (op, topic, ..) = row;
        let name = format!("{op:?}/{topic}").to_lowercase();
        let promise =
            format!("{op:?} ({topic}): {} with {} gives {}.", text(row.2), text(Some(row.3)), text(row.4));
        cases.push(Case::new(SECTION, &name, promise, move |c| operates(c, row)));
    }
    cases
}

fn text(value: Value) -> String {
    match value {
        None => "absent".into(),
        Some(value) if value.len() > 16 => format!("{} bytes", value.len()),
        Some(value) => format!("\"{}\"", value.escape_ascii()),
    }
}

fn owned(value: Value) -> Option<Bytes> {
    value.map(Bytes::from_static)
}

/// Tests one row in four ways: over a stored value and over the transaction's own write, read before and
/// after the commit.
async fn operates(c: Ctx, row: &Row) -> Expectation {
    let (op, _, stored, operand, promised) = *row;
    let key = c.key("a");
    c.commit(|tx| {
        if let Some(value) = stored {
            tx.set(&key, value);
        }
    })
    .await?;
    let tx = c.tx()?;
    tx.atomic_op(&key, operand, op);
    same("read in the transaction", tx.get(&key, Serializable).await?, owned(promised))?;
    same("read again", tx.get(&key, Snapshot).await?, owned(promised))?;
    let rows = tx.get_range_all(c.everything(), Snapshot).await?;
    same("in a range", rows.into_iter().next().map(|row| row.value), owned(promised))?;
    tx.commit().await?;
    same("committed", c.value("a").await?, owned(promised))?;

    let tx = c.tx()?;
    match stored {
        Some(value) => tx.set(&key, value),
        None => tx.clear(&key),
    }
    tx.atomic_op(&key, operand, op);
    same("over an own write", tx.get(&key, Serializable).await?, owned(promised))?;
    tx.commit().await?;
    same("over an own write, committed", c.value("a").await?, owned(promised))
}

async fn stacked(c: Ctx) -> Expectation {
    c.put("a", b"\x01\x00").await?;
    let (tx, key) = (c.tx()?, c.key("a"));
    tx.atomic_op(&key, b"\x02\x00", Add);
    tx.atomic_op(&key, b"\x04\x00", BitOr);
    tx.atomic_op(&key, b"\x01\x00", Add);
    tx.atomic_op(&key, b"!", AppendIfFits);
    let promised = Some(Bytes::from_static(b"\x08\x00!"));
    same("in the transaction", tx.get(&key, Serializable).await?, promised.clone())?;
    tx.commit().await?;
    same("committed", c.value("a").await?, promised)
}

async fn compared_twice(c: Ctx) -> Expectation {
    for value in ["x", "y"] {
        c.put("k", value).await?;
        let (tx, key) = (c.tx()?, c.key("k"));
        tx.atomic_op(&key, b"x", CompareAndClear);
        tx.atomic_op(&key, b"y", CompareAndClear);
        same("the own read", tx.get(&key, Snapshot).await?, None)?;
        succeeds("the commit", tx.commit().await)?;
        same("the value", c.value("k").await?, None)?;
    }
    Ok(())
}

async fn after_set(c: Ctx) -> Expectation {
    c.put("a", "stored").await?;
    let (tx, key) = (c.tx()?, c.key("a"));
    tx.set(&key, b"own");
    tx.atomic_op(&key, b"!", AppendIfFits);
    same("in the transaction", tx.get(&key, Serializable).await?, some("own!"))?;
    tx.commit().await?;
    same("committed", c.value("a").await?, some("own!"))
}

async fn after_clear(c: Ctx) -> Expectation {
    c.put("a", "stored").await?;
    let (tx, key) = (c.tx()?, c.key("a"));
    tx.clear(&key);
    tx.atomic_op(&key, b"!", AppendIfFits);
    same("in the transaction", tx.get(&key, Serializable).await?, some("!"))?;
    tx.commit().await?;
    same("committed", c.value("a").await?, some("!"))
}

async fn before_set(c: Ctx) -> Expectation {
    c.put("a", "stored").await?;
    let (tx, key) = (c.tx()?, c.key("a"));
    tx.atomic_op(&key, b"!", AppendIfFits);
    tx.set(&key, b"own");
    same("in the transaction", tx.get(&key, Serializable).await?, some("own"))?;
    tx.commit().await?;
    same("committed", c.value("a").await?, some("own"))
}

async fn before_clear(c: Ctx) -> Expectation {
    c.put("a", "stored").await?;
    let (tx, key) = (c.tx()?, c.key("a"));
    tx.atomic_op(&key, b"!", AppendIfFits);
    tx.clear(&key);
    same("in the transaction", tx.get(&key, Serializable).await?, None)?;
    tx.commit().await?;
    same("committed", c.value("a").await?, None)
}

async fn at_commit_version(c: Ctx) -> Expectation {
    c.put("a", "old").await?;
    let tx = c.tx()?;
    tx.get_read_version().await?;
    tx.atomic_op(&c.key("a"), b"!", AppendIfFits);
    c.put("a", "new").await?;
    succeeds("the commit", tx.commit().await)?;
    same("the value", c.value("a").await?, some("new!"))
}

async fn no_read_conflict(c: Ctx) -> Expectation {
    for op in [Add, BitAnd, BitOr, BitXor, AppendIfFits, Max, Min, ByteMin, ByteMax, CompareAndClear] {
        let tx = c.tx()?;
        tx.get_read_version().await?;
        tx.atomic_op(&c.key("a"), b"x", op);
        c.put("a", "theirs").await?;
        succeeds(&format!("the commit of {op:?}"), tx.commit().await)?;
    }
    Ok(())
}

async fn read_conflicts(c: Ctx) -> Expectation {
    let (tx, key) = (c.tx()?, c.key("a"));
    tx.atomic_op(&key, b"\x01", Add);
    tx.get(&key, Serializable).await?;
    c.put("a", "theirs").await?;
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)
}

async fn in_cleared_range(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "c"]).await?;
    let tx = c.tx()?;
    tx.clear_range(&c.key(""), &c.key("z"));
    tx.atomic_op(&c.key("a"), b"\x01", Add);
    tx.atomic_op(&c.key("b"), b"b", CompareAndClear);
    tx.atomic_op(&c.key("c"), b"zz", ByteMin);
    let promised = vec![("a".into(), "\x01".into()), ("c".into(), "zz".into())];
    let rows = tx.get_range_all(c.everything(), Serializable).await?;
    let seen: Vec<(Bytes, Bytes)> = rows.into_iter().map(|row| (c.strip(&row.key), row.value)).collect();
    same("in the transaction", seen, promised.clone())?;
    tx.commit().await?;
    same("committed", c.rows().await?, promised)
}

async fn several_keys(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    for (i, key) in ["a", "a\0", "b"].iter().enumerate() {
        for _ in 0..=i {
            tx.atomic_op(&c.key(key), b"\x01", Add);
        }
    }
    tx.commit().await?;
    let promised = [("a", "\x01"), ("a\0", "\x02"), ("b", "\x03")].map(|(k, v)| (k.into(), v.into()));
    same("the rows", c.rows().await?, promised.to_vec())
}
