//! Range reads: the rows that they return, their order, and how the transaction's own writes are merged
//! into them.

use super::{
    Case, Ctx, Expectation,
    expect::{fails, holds, same, succeeds},
    world::{Serializable, Snapshot},
};
use bytes::Bytes;
use shaketable_tx::{
    Error, Isolation, KeySelector, MutationType, RangeOption, Result, StreamingMode, Transaction, Tx,
};

const SECTION: &str = "reads";

pub(super) fn cases() -> Vec<Case> {
    catalogue! {
        "range/half-open", half_open,
            "A range contains its begin and not its end.";
        "range/empty", empty,
            "A range without keys, or with equal bounds, is empty and has no more.";
        "range/inverted", inverted,
            "A range whose begin lies behind its end is empty, and no error.";
        "range/reverse", reverse,
            "A reverse range yields the same rows from the end.";
        "range/selectors", selectors,
            "Bounds given as selectors with offsets resolve like get_key.";
        "range/own-writes", own_writes,
            "A range merges own sets, clears and atomic operations into what is stored.";
        "range/own-writes-only", own_only,
            "A range may consist of own writes alone.";
        "range/own-clears", own_clears,
            "A range over an own clear is empty.";
        "range/compare-and-clear", compare_and_clear,
            "A key that an own compare_and_clear removes is not in the range.";
        "range/issued-before-write", issued_before,
            "A range read does not see own writes made after it was issued.";
        "range/system-begin", |c| system(c, b"\xff\x01", b"\xff\x02"),
            "A range that begins above \\xff is 2004.";
        "range/system-end", |c| system(c, b"a", b"\xff\x01"),
            "A range that ends above \\xff is 2004.";
        "range/end-at-ff", end_at_ff,
            "A range may end at \\xff.";
        "range/one-version", one_version,
            "All batches of a range are of one version.";
        "range/keys-that-are-prefixes", byte_order,
            "Keys are ordered as bytes, a prefix before what it begins.";
        "range/after-commit", after_commit,
            "A range read sees what was committed before its read version, and nothing later.";
    }
}

/// The keys that a range read returns, over all batches.
async fn keys(c: &Ctx, tx: &Tx, range: RangeOption) -> Result<Vec<Bytes>> {
    let rows = tx.get_range_all(range, Serializable).await?;
    Ok(rows.into_iter().map(|row| c.strip(&row.key)).collect())
}

fn list(keys: &[&'static str]) -> Vec<Bytes> {
    keys.iter().map(|key| Bytes::from(*key)).collect()
}

async fn half_open(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "b\0", "c", "d"]).await?;
    let tx = c.tx()?;
    same("[b, d)", keys(&c, &tx, c.range("b", "d")).await?, list(&["b", "b\0", "c"]))?;
    same("[b\\0, c\\0)", keys(&c, &tx, c.range("b\0", "c\0")).await?, list(&["b\0", "c"]))
}

async fn empty(c: Ctx) -> Expectation {
    c.put_all(&["a", "c"]).await?;
    let tx = c.tx()?;
    for (begin, end) in [("b", "c"), ("a", "a"), ("b", "b"), ("x", "y")] {
        let what = format!("[{begin}, {end})");
        same(&what, keys(&c, &tx, c.range(begin, end)).await?, vec![])?;
    }
    let none = tx.get_range(&c.range("a", "a"), 1, Serializable).await?;
    same("more of an empty range", none.more, false)
}

async fn inverted(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "c"]).await?;
    let tx = c.tx()?;
    for reverse in [false, true] {
        let batch = tx.get_range(&RangeOption { reverse, ..c.range("c", "a") }, 1, Serializable).await?;
        same("the rows", batch.rows, vec![])?;
        same("more", batch.more, false)?;
    }
    // The bases are in order, the resolved keys are not.
    let range = RangeOption::between(c.selector("a", false, 3), c.selector("b", false, 1));
    same("resolved begin behind resolved end", keys(&c, &tx, range).await?, vec![])
}

async fn reverse(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "c", "d"]).await?;
    let tx = c.tx()?;
    tx.set(&c.key("bb"), b"own");
    tx.clear(&c.key("c"));
    let backwards = keys(&c, &tx, c.range("a", "d").reversed()).await?;
    same("[a, d) reversed", backwards, list(&["bb", "b", "a"]))?;
    let two = keys(&c, &tx, c.range("a", "e").reversed().limit(2)).await?;
    same("the last two", two, list(&["d", "bb"]))
}

async fn selectors(c: Ctx) -> Expectation {
    let all = ["b", "d", "f", "h", "j"];
    c.put_all(&all).await?;
    let tx = c.tx()?;
    let resolve = |base: &str, or_equal: bool, offset: i32| {
        let before = all.iter().filter(|k| **k < base || (or_equal && **k == base)).count() as i32;
        before + offset - 1
    };
    for (begin, begin_or_equal, begin_offset) in
        [("d", false, 1), ("d", true, 1), ("e", false, 0), ("b", true, 2)]
    {
        for (end, end_or_equal, end_offset) in
            [("h", false, 1), ("h", true, 1), ("f", false, 2), ("g", true, 0), ("j", false, -1)]
        {
            let from = resolve(begin, begin_or_equal, begin_offset);
            let to = resolve(end, end_or_equal, end_offset);
            if !(0..5).contains(&from) || !(0..5).contains(&to) {
                continue;
            }
            let mut promised = list(all.get(from as usize..to as usize).unwrap_or(&[]));
            let range = RangeOption::between(
                c.selector(begin, begin_or_equal, begin_offset),
                c.selector(end, end_or_equal, end_offset),
            );
            let what = format!(
                "({begin}, {begin_or_equal}, {begin_offset}) to ({end}, {end_or_equal}, {end_offset})"
            );
            same(&what, keys(&c, &tx, range.clone()).await?, promised.clone())?;
            promised.reverse();
            same(&format!("{what} reversed"), keys(&c, &tx, range.reversed()).await?, promised)?;
        }
    }
    Ok(())
}

/// A transaction whose own writes affect every other of eight committed keys.
async fn mixed(c: &Ctx) -> Result<Tx> {
    c.put_all(&["a", "b", "c", "d", "e", "f"]).await?;
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"own");
    tx.clear(&c.key("b"));
    tx.set(&c.key("bb"), b"own");
    tx.atomic_op(&c.key("d"), b"!", MutationType::AppendIfFits);
    tx.clear_range(&c.key("e"), &c.key("f"));
    tx.atomic_op(&c.key("g"), b"g", MutationType::ByteMax);
    Ok(tx)
}

async fn own_writes(c: Ctx) -> Expectation {
    let tx = mixed(&c).await?;
    let promised: Vec<(Bytes, Bytes)> =
        [("a", "own"), ("bb", "own"), ("c", "c"), ("d", "d!"), ("f", "f"), ("g", "g")]
            .map(|(k, v)| (k.into(), v.into()))
            .to_vec();
    let modes =
        [StreamingMode::WantAll, StreamingMode::Small, StreamingMode::Iterator, StreamingMode::Serial];
    for isolation in [Snapshot, Serializable] {
        for mode in modes {
            for reverse in [false, true] {
                let range = RangeOption { reverse, ..c.everything().mode(mode) };
                let rows = tx.get_range_all(range, isolation).await?;
                let mut rows: Vec<_> = rows.into_iter().map(|row| (c.strip(&row.key), row.value)).collect();
                if reverse {
                    rows.reverse();
                }
                same(&format!("{isolation:?} {mode:?} reverse {reverse}"), rows, promised.clone())?;
            }
        }
    }
    tx.commit().await?;
    same("the rows committed", c.rows().await?, promised)
}

async fn own_only(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    for key in ["c", "a", "b"] {
        tx.set(&c.key(key), b"own");
    }
    same("the range", keys(&c, &tx, c.everything()).await?, list(&["a", "b", "c"]))?;
    same("its first two", keys(&c, &tx, c.everything().limit(2)).await?, list(&["a", "b"]))
}

async fn own_clears(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "c"]).await?;
    let tx = c.tx()?;
    tx.clear_range(&c.key(""), &c.key("z"));
    same("the range", keys(&c, &tx, c.everything()).await?, vec![])?;
    tx.set(&c.key("b"), b"own");
    same("the range after a set", keys(&c, &tx, c.everything()).await?, list(&["b"]))
}

async fn compare_and_clear(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "c"]).await?;
    let tx = c.tx()?;
    tx.atomic_op(&c.key("b"), b"b", MutationType::CompareAndClear);
    tx.atomic_op(&c.key("c"), b"other", MutationType::CompareAndClear);
    same("the range", keys(&c, &tx, c.everything()).await?, list(&["a", "c"]))?;
    same("its last two", keys(&c, &tx, c.everything().reversed().limit(2)).await?, list(&["c", "a"]))
}

async fn issued_before(c: Ctx) -> Expectation {
    c.put_all(&["a", "b"]).await?;
    let tx = c.tx()?;
    let everything = c.everything();
    let read = tx.get_range(&everything, 1, Serializable);
    tx.clear(&c.key("a"));
    tx.set(&c.key("c"), b"own");
    let seen: Vec<Bytes> = read.await?.rows.into_iter().map(|row| c.strip(&row.key)).collect();
    holds(list(&["a", "b"]).starts_with(&seen), || format!("only a and b, seen {seen:?}"))?;
    same("a range after the writes", keys(&c, &tx, c.everything()).await?, list(&["b", "c"]))
}

async fn system(c: Ctx, begin: &'static [u8], end: &'static [u8]) -> Expectation {
    let tx = c.tx()?;
    let read = tx.get_range(&RangeOption::new(begin, end), 1, Serializable).await;
    fails("the read", read, Error::KEY_OUTSIDE_LEGAL_RANGE)?;
    succeeds("a read after it", tx.get(&c.key("a"), Serializable).await).map(drop)
}

async fn end_at_ff(c: Ctx) -> Expectation {
    c.put("a", "1").await?;
    let tx = c.tx()?;
    let range =
        RangeOption::between(c.selector("", false, 1), KeySelector::first_greater_or_equal(&b"\xff"[..]));
    same("its first key", keys(&c, &tx, range.limit(1)).await?, list(&["a"]))
}

async fn one_version(c: Ctx) -> Expectation {
    let value = vec![7; 400];
    c.commit(|tx| (0..50_u8).for_each(|i| tx.set(&c.key([i]), &value))).await?;
    let tx = c.tx()?;
    let first = tx.get_range(&c.everything().mode(StreamingMode::Small), 1, Snapshot).await?;
    c.commit(|other| other.clear_range(&c.key(""), &c.end())).await?;
    let rest = tx.get_range_all(c.everything().mode(StreamingMode::Small), Snapshot).await?;
    holds(first.rows.len() < 50, || "a small batch is not 20,000 bytes".into())?;
    same("how many rows later batches hold", rest.len(), 50)
}

async fn byte_order(c: Ctx) -> Expectation {
    let sorted: [&[u8]; 8] = [b"", b"\0", b"\0\0", b"\0\xff", b"a", b"a\0", b"aa", b"\xff\xff"];
    c.commit(|tx| sorted.iter().rev().for_each(|key| tx.set(&c.key(key), b""))).await?;
    let tx = c.tx()?;
    let promised: Vec<Bytes> = sorted.iter().map(|key| Bytes::copy_from_slice(key)).collect();
    same("the keys", keys(&c, &tx, c.everything()).await?, promised)
}

async fn after_commit(c: Ctx) -> Expectation {
    c.put("a", "1").await?;
    let tx = c.tx()?;
    tx.get_read_version().await?;
    c.put("b", "later").await?;
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let rows = tx.get_range_all(c.everything(), isolation).await?;
        same("the rows", rows.len(), 1)?;
    }
    Ok(())
}
