//! Mapped ranges, without data in the ranges that rows map to: those would lie outside of the case's
//! prefix.

use super::{
    Case, Ctx, Expectation,
    expect::{fails, holds, same, succeeds},
    world::{READ_CONFLICTS, Range, Serializable, Snapshot},
};
use bytes::Bytes;
use foundationdb_tuple::pack;
use shaketable_tx::{
    ConflictRangeType, Error, KeySelector, KeyValue, MappedBatch, RangeOption, Result, StreamingMode,
    Transaction, TransactionOption, Tx, strinc,
};

const SECTION: &str = "reads";

pub(super) fn cases() -> Vec<Case> {
    catalogue! {
        "mapped/rows", rows,
            "A mapped range answers each row, the range that its mapper makes of it, and what lies there.";
        "mapped/reverse", reverse,
            "It can be read in reverse, with a limit, as any range.";
        "mapped/conflicts", conflicts,
            "It conflicts on its own range and on those that its rows lead to.";
        "mapped/conflicts-limited", conflicts_limited,
            "When it ends early it conflicts up to just behind its last row.";
        "mapped/own-write", |c| own_write(c, "b"),
            "A row that the transaction has written is 2039.";
        "mapped/own-write-between", |c| own_write(c, "bb"),
            "So is anything written within the range, if only a cleared key.";
        "mapped/own-write-outside", own_write_outside,
            "What was written elsewhere does no harm, nor does a write conflict range.";
        "mapped/own-write-secondary", own_write_secondary,
            "What was written where a row leads to is 2039 as well.";
        "mapped/snapshot", snapshot,
            "A snapshot read, or one without read-your-writes, is 2108.";
        "mapped/single-keys", single_keys,
            "A mapper that does not end with {...} is 2108: the C API cannot answer it.";
        "mapped/inverted", inverted,
            "An inverted range has no rows, whatever else is wrong.";
        "mapped/illegal", illegal,
            "Keys beyond the legal ones are 2004, special keys 2000, a missing limit 2210.";
        "mapped/not-a-tuple", not_a_tuple,
            "A mapper that is no tuple is 2043, a key 2041, a value 2042.";
        "mapped/bad-mapper", bad_mapper,
            "An index that is none is 2030, {...} before the end 2032.";
        "mapped/errors-stay", errors_stay,
            "Its error does not make the commit fail.";
    }
}

/// Stores the rows `a`, `b` and `c`, whose values are tuples of the prefix and a number.
async fn stored(c: &Ctx) -> Result<()> {
    c.commit(|tx| {
        for (n, key) in ["a", "b", "c"].iter().enumerate() {
            tx.set(&c.key(key), &value(c, n));
        }
    })
    .await
    .map(drop)
}

fn value(c: &Ctx, n: usize) -> Vec<u8> {
    pack(&(&c.key("")[..], n))
}

/// A mapper to all keys that start with both elements of the value and a string.
fn mapper() -> Vec<u8> {
    pack(&("{V[0]}", "{V[1]}", "x", "{...}"))
}

/// The range that the row with number `n` maps to.
fn led_to(c: &Ctx, n: usize) -> Range {
    let begin = pack(&(&c.key("")[..], n, "x"));
    let end = strinc(&begin).unwrap_or_default();
    (begin.into(), end)
}

/// The whole range, in as many batches as needed: a batch may end at a shard boundary.
async fn read(c: &Ctx, tx: &Tx, mapper: &[u8]) -> Result<MappedBatch> {
    let mut range = c.range("", "z").mode(StreamingMode::WantAll);
    let mut all = MappedBatch::default();
    loop {
        let batch = tx.get_mapped_range(&range, mapper, 1, Serializable).await?;
        all.rows.extend(batch.rows);
        match all.rows.last().filter(|_| batch.more) {
            Some(last) => range.begin = KeySelector::first_greater_than(last.parent.key.clone()),
            None => return Ok(all),
        }
    }
}

/// The rows in short form: key, value and the range that it maps to, all of which are empty.
fn brief(batch: &MappedBatch) -> Vec<(KeyValue, Range)> {
    let empty = batch.rows.iter().filter(|row| row.rows.is_empty());
    empty.map(|row| (row.parent.clone(), (row.begin.clone(), row.end.clone()))).collect()
}

fn row(c: &Ctx, key: &str, n: usize) -> (KeyValue, Range) {
    (KeyValue::new(c.key(key), value(c, n)), led_to(c, n))
}

async fn rows(c: Ctx) -> Expectation {
    stored(&c).await?;
    let tx = c.tx()?;
    let batch = read(&c, &tx, &mapper()).await?;
    same("the rows", brief(&batch), vec![row(&c, "a", 0), row(&c, "b", 1), row(&c, "c", 2)])?;
    holds(batch.rows.len() == 3, || format!("3 rows; there are {}", batch.rows.len()))
}

async fn reverse(c: Ctx) -> Expectation {
    stored(&c).await?;
    let tx = c.tx()?;
    let range = c.range("", "z").mode(StreamingMode::Exact).limit(2).reversed();
    let batch = tx.get_mapped_range(&range, &mapper(), 1, Serializable).await?;
    same("the rows", brief(&batch), vec![row(&c, "c", 2), row(&c, "b", 1)])?;
    same("more", batch.more, true)
}

async fn conflict_ranges_are(c: &Ctx, tx: &Tx, primary: (&str, &str), led: &[usize]) -> Expectation {
    // The ranges that rows map to begin with the type code of a byte string, which sorts before any text
    // prefix.
    let mut promised: Vec<Range> = led.iter().map(|n| led_to(c, *n)).collect();
    promised
        .push((Bytes::copy_from_slice(primary.0.as_bytes()), Bytes::copy_from_slice(primary.1.as_bytes())));
    promised.sort();
    let mut seen = c.listed(tx, READ_CONFLICTS).await?;
    seen.sort();
    same("read conflict ranges", seen, promised)
}

async fn conflicts(c: Ctx) -> Expectation {
    stored(&c).await?;
    let tx = c.tx()?;
    read(&c, &tx, &mapper()).await?;
    conflict_ranges_are(&c, &tx, ("", "z"), &[0, 1, 2]).await?;
    c.put("bb", "theirs").await?;
    c.touch(&tx)?;
    fails("the commit", tx.commit().await, Error::NOT_COMMITTED)
}

async fn conflicts_limited(c: Ctx) -> Expectation {
    stored(&c).await?;
    let tx = c.tx()?;
    let range = c.range("", "z").mode(StreamingMode::Exact).limit(2);
    let batch = tx.get_mapped_range(&range, &mapper(), 1, Serializable).await?;
    same("more", batch.more, true)?;
    conflict_ranges_are(&c, &tx, ("", "b\0"), &[0, 1]).await
}

async fn own_write(c: Ctx, key: &str) -> Expectation {
    stored(&c).await?;
    let tx = c.tx()?;
    tx.clear(&c.key(key));
    fails("the read", read(&c, &tx, &mapper()).await, Error::GET_MAPPED_RANGE_READS_YOUR_WRITES)
}

async fn own_write_outside(c: Ctx) -> Expectation {
    stored(&c).await?;
    let tx = c.tx()?;
    tx.set(&c.key("z"), b"");
    tx.add_conflict_range(&c.key("a"), &c.key("c"), ConflictRangeType::Write)?;
    let batch = succeeds("the read", read(&c, &tx, &mapper()).await)?;
    same("rows", batch.rows.len(), 3)
}

async fn own_write_secondary(c: Ctx) -> Expectation {
    stored(&c).await?;
    let tx = c.tx()?;
    tx.clear(&[&led_to(&c, 1).0[..], b"key"].concat());
    fails("the read", read(&c, &tx, &mapper()).await, Error::GET_MAPPED_RANGE_READS_YOUR_WRITES)
}

async fn snapshot(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let read = tx.get_mapped_range(&c.everything(), &mapper(), 1, Snapshot).await;
    fails("a snapshot read", read, Error::UNSUPPORTED_OPERATION)?;
    let tx = c.tx()?;
    tx.set_option(TransactionOption::ReadYourWritesDisable)?;
    let read = tx.get_mapped_range(&c.everything(), &mapper(), 1, Serializable).await;
    fails("one without read-your-writes", read, Error::UNSUPPORTED_OPERATION)
}

async fn single_keys(c: Ctx) -> Expectation {
    stored(&c).await?;
    for mapper in [pack(&("{V[0]}",)), pack(&("x", "{K[0]}", 7)), Vec::new()] {
        let tx = c.tx()?;
        fails("the read", read(&c, &tx, &mapper).await, Error::UNSUPPORTED_OPERATION)?;
    }
    Ok(())
}

async fn inverted(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let batch = tx.get_mapped_range(&c.range("z", "a"), &mapper(), 1, Snapshot).await;
    same("the batch", succeeds("the read", batch)?, MappedBatch::default())
}

async fn illegal(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let read = async |begin: &[u8], end: &[u8], mode| {
        let range = RangeOption::new(begin.to_vec(), end.to_vec()).mode(mode);
        tx.get_mapped_range(&range, &mapper(), 1, Serializable).await
    };
    let beyond = read(&c.key(""), b"\xff\x02", StreamingMode::WantAll).await;
    fails("system keys", beyond, Error::KEY_OUTSIDE_LEGAL_RANGE)?;
    let special = read(b"\xff\xff/a", b"\xff\xff/b", StreamingMode::WantAll).await;
    fails("special keys", special, Error::CLIENT_INVALID_OPERATION)?;
    let unlimited = read(&c.key(""), &c.end(), StreamingMode::Exact).await;
    fails("exact mode without a limit", unlimited, Error::EXACT_MODE_WITHOUT_LIMITS)
}

async fn not_a_tuple(c: Ctx) -> Expectation {
    c.put("a", "text").await?;
    let ask = async |mapper: &[u8]| read(&c, &c.tx()?, mapper).await;
    fails("a mapper", ask(b"\x05").await, Error::MAPPER_NOT_TUPLE)?;
    fails("a key", ask(&pack(&("{K[0]}", "{...}"))).await, Error::KEY_NOT_TUPLE)?;
    fails("a value", ask(&pack(&("{V[0]}", "{...}"))).await, Error::VALUE_NOT_TUPLE)
}

async fn bad_mapper(c: Ctx) -> Expectation {
    stored(&c).await?;
    let ask = async |mapper: &[u8]| read(&c, &c.tx()?, mapper).await;
    for index in ["{V[2]}", "{V[-1]}", "{V[x]}"] {
        fails(index, ask(&pack(&(index, "{...}"))).await, Error::MAPPER_BAD_INDEX)?;
    }
    let early = ask(&pack(&("{...}", "x"))).await;
    fails("{...} before the end", early, Error::MAPPER_BAD_RANGE_DESCRIPTOR)
}

async fn errors_stay(c: Ctx) -> Expectation {
    stored(&c).await?;
    let tx = c.tx()?;
    tx.clear(&c.key("b"));
    fails("the read", read(&c, &tx, &mapper()).await, Error::GET_MAPPED_RANGE_READS_YOUR_WRITES)?;
    succeeds("the commit", tx.commit().await)?;
    same("rows", c.rows().await?.len(), 2)
}
