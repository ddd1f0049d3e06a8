//! Single reads, read-your-writes and key selectors.

use super::{
    Case, Ctx, Expectation,
    expect::{fails, holds, same, succeeds},
    world::{READ_CONFLICTS, Serializable, Snapshot, ranges, some},
};
use bytes::Bytes;
use futures::{TryStreamExt, future::join};
use shaketable_tx::{
    ConflictRangeType, Error, Isolation, KeySelector, KeyValue, MutationType, RangeOption, Result,
    StreamingMode, Transaction, TransactionOption, Tx, key_after,
};

const SECTION: &str = "reads";

pub(super) fn cases() -> Vec<Case> {
    catalogue! {
        "get/absent-empty-present", get,
            "get tells absent, empty and present values apart.";
        "get/own-writes", get_own,
            "get sees own sets, clears, range clears and atomic operations.";
        "get/order-of-writes", get_order,
            "The last own write of a key counts.";
        "get/issued-before-write", issued_before,
            "A read does not see own writes made after it was issued.";
        "get/issued-not-polled", issued_not_polled,
            "A read is issued when its method is called: a write before its first poll is not seen.";
        "get/system-key", get_system,
            "get of a key at or above \\xff without system access is 2004.";
        "get/over-long-key", get_long,
            "get of a key longer than any can be finds nothing, without an error or a conflict range.";
        "get/rereads", rereads,
            "A key read twice gives the same answer, whatever others commit.";
        "get_key/named-selectors", named_selectors,
            "The four named selectors resolve around a key that exists and around one that does not.";
        "get_key/offsets", |c| all_selectors(c, Own::Nothing),
            "A selector's offset moves by that many existing keys, in both directions.";
        "get_key/own-writes", |c| all_selectors(c, Own::Some),
            "Selectors count own sets and skip own clears.";
        "get_key/only-own-writes", |c| all_selectors(c, Own::All),
            "Selectors resolve among own writes alone.";
        "get_key/own-atomics", own_atomics,
            "Selectors count keys that an own atomic operation creates, and skip one that it clears.";
        "get_key/clamped-begin", clamped_begin,
            "A selector before the first key resolves to the empty key.";
        "get_key/clamped-end", clamped_end,
            "A selector behind the last key resolves to \\xff.";
        "get_key/system-key", get_key_system,
            "get_key with a base above \\xff is 2004; \\xff itself is allowed.";
        "get_key/snapshot", snapshot_key,
            "Snapshot get_key answers like a serializable one.";
        "ryw-disabled/get", unread_get,
            "With option 51 get ignores own writes.";
        "ryw-disabled/get_key", unread_key,
            "With option 51 get_key ignores own writes.";
        "ryw-disabled/get_range", unread_range,
            "With option 51 get_range ignores own writes.";
        "ryw-disabled/commit", unread_commit,
            "With option 51 writes are committed as ever.";
        "clear_range/half-open", clear_half_open,
            "clear_range clears its begin and not its end.";
        "clear_range/empty", clear_empty,
            "An empty clear_range clears nothing.";
        "clear_range/over-long-bounds", clear_long_bounds,
            "Bounds longer than any key are cut off; the range clears what lies between.";
        "clear/over-long-key", clear_long,
            "Clearing a key longer than any can be does nothing and is no error.";
        "clear/then-set", clear_then_set,
            "A key cleared and then set holds what was set.";
        "conflict-range/over-long-bounds", conflict_long_bounds,
            "Conflict ranges may have bounds longer than any key.";
        "stream/all-rows", stream,
            "The stream over a range yields every row once, in order.";
    }
}

async fn get(c: Ctx) -> Expectation {
    c.put("empty", "").await?;
    c.put("full", "x").await?;
    for isolation in [Serializable, Snapshot] {
        let tx = c.tx()?;
        same("absent", tx.get(&c.key("absent"), isolation).await?, None)?;
        same("empty", tx.get(&c.key("empty"), isolation).await?, some(""))?;
        same("present", tx.get(&c.key("full"), isolation).await?, some("x"))?;
    }
    Ok(())
}

async fn get_own(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "c", "d", "e"]).await?;
    for isolation in [Serializable, Snapshot] {
        let tx = c.tx()?;
        tx.set(&c.key("a"), b"own");
        tx.clear(&c.key("b"));
        tx.clear_range(&c.key("c"), &c.key("d"));
        tx.atomic_op(&c.key("d"), b"!", MutationType::AppendIfFits);
        tx.set(&c.key("new"), b"own");
        let get = async |key: &str| tx.get(&c.key(key), isolation).await;
        same("an own set", get("a").await?, some("own"))?;
        same("an own clear", get("b").await?, None)?;
        same("an own range clear", get("c").await?, None)?;
        same("an own atomic", get("d").await?, some("d!"))?;
        same("not written", get("e").await?, some("e"))?;
        same("an own insertion", get("new").await?, some("own"))?;
    }
    Ok(())
}

async fn get_order(c: Ctx) -> Expectation {
    let (tx, key) = (c.tx()?, c.key("a"));
    tx.set(&key, b"1");
    tx.set(&key, b"2");
    same("set, set", tx.get(&key, Serializable).await?, some("2"))?;
    tx.clear(&key);
    same("then clear", tx.get(&key, Serializable).await?, None)?;
    tx.set(&key, b"3");
    same("then set", tx.get(&key, Serializable).await?, some("3"))?;
    tx.clear_range(&c.key(""), &c.key("z"));
    same("then clear_range", tx.get(&key, Serializable).await?, None)?;
    tx.set(&key, b"4");
    tx.commit().await?;
    same("committed", c.rows().await?, vec![("a".into(), "4".into())])
}

async fn issued_before(c: Ctx) -> Expectation {
    c.put("a", "old").await?;
    let (tx, key) = (c.tx()?, c.key("a"));
    let read = tx.get(&key, Serializable);
    let write = async { tx.set(&key, b"new") };
    let (read, ()) = join(read, write).await;
    same("the read", read?, some("old"))?;
    same("a read after the write", tx.get(&key, Serializable).await?, some("new"))
}

async fn issued_not_polled(c: Ctx) -> Expectation {
    c.put("a", "old").await?;
    let (tx, key) = (c.tx()?, c.key("a"));
    let read = tx.get(&key, Serializable);
    tx.set(&key, b"new");
    same("the read", read.await?, some("old"))
}

async fn get_system(c: Ctx) -> Expectation {
    for key in [b"\xff".as_slice(), b"\xff/x", b"\xff\x00"] {
        let tx = c.tx()?;
        let read = tx.get(key, Serializable).await;
        fails("get", read, Error::KEY_OUTSIDE_LEGAL_RANGE)?;
        succeeds("a read after it", tx.get(&c.key("a"), Serializable).await)?;
    }
    Ok(())
}

async fn get_long(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    for length in [10_009, 40_000] {
        same("get", tx.get(&vec![b'x'; length], Serializable).await?, None)?;
    }
    c.reads_are(&tx, &[]).await
}

async fn rereads(c: Ctx) -> Expectation {
    c.put("a", "old").await?;
    let tx = c.tx()?;
    same("the first read", tx.get(&c.key("a"), Serializable).await?, some("old"))?;
    c.put("a", "new").await?;
    same("the second read", tx.get(&c.key("a"), Snapshot).await?, some("old"))?;
    let row = KeyValue::new(c.key("a"), "old");
    same("a range", tx.get_range_all(c.everything(), Snapshot).await?, vec![row])
}

async fn named_selectors(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "d", "e"]).await?;
    let tx = c.tx()?;
    let key = async |selector: KeySelector| -> Result<Bytes> {
        Ok(c.strip(&tx.get_key(&selector, Serializable).await?))
    };
    let (b, m) = (c.key("b"), c.key("c"));
    same("last_less_than(b)", key(KeySelector::last_less_than(b.clone())).await?, "a".into())?;
    same("last_less_or_equal(b)", key(KeySelector::last_less_or_equal(b.clone())).await?, "b".into())?;
    same(
        "first_greater_or_equal(b)",
        key(KeySelector::first_greater_or_equal(b.clone())).await?,
        "b".into(),
    )?;
    same("first_greater_than(b)", key(KeySelector::first_greater_than(b)).await?, "d".into())?;
    same("last_less_than(c)", key(KeySelector::last_less_than(m.clone())).await?, "b".into())?;
    same("last_less_or_equal(c)", key(KeySelector::last_less_or_equal(m.clone())).await?, "b".into())?;
    same(
        "first_greater_or_equal(c)",
        key(KeySelector::first_greater_or_equal(m.clone())).await?,
        "d".into(),
    )?;
    same("first_greater_than(c)", key(KeySelector::first_greater_than(m)).await?, "d".into())
}

/// Which of the keys that selectors count are the transaction's own uncommitted writes.
#[derive(Clone, Copy, PartialEq)]
enum Own {
    Nothing,
    Some,
    All,
}

/// Checks every selector around nine keys that resolves to one of them against a sorted list.
async fn all_selectors(c: Ctx, own: Own) -> Expectation {
    let keys = ["b", "d", "f", "h", "j", "l", "n", "p", "r"];
    let committed: &[&str] = match own {
        Own::Nothing => &keys,
        Own::Some => &["b", "c", "d", "h", "i", "l", "o", "p", "r"],
        Own::All => &[],
    };
    c.put_all(committed).await?;
    let tx = c.tx()?;
    if own != Own::Nothing {
        for key in keys.iter().filter(|key| !committed.contains(key)) {
            tx.set(&c.key(key), b"own");
        }
        tx.clear(&c.key("c"));
        tx.clear_range(&c.key("i"), &c.key("j"));
        tx.clear(&c.key("o"));
    }
    for isolation in [Snapshot, Serializable] {
        for base in ["f", "g", "h", "i", "j", "k", "l"] {
            for or_equal in [false, true] {
                for offset in -3..=4 {
                    selects(&c, &tx, &keys, base, or_equal, offset, isolation).await?;
                }
            }
        }
    }
    Ok(())
}

async fn selects(
    c: &Ctx,
    tx: &Tx,
    keys: &[&'static str],
    base: &str,
    or_equal: bool,
    offset: i32,
    isolation: Isolation,
) -> Expectation {
    let before = keys.iter().filter(|key| **key < base || (or_equal && **key == base)).count() as i32;
    let Some(promised) = usize::try_from(before + offset - 1).ok().and_then(|at| keys.get(at)) else {
        return Ok(());
    };
    let seen = tx.get_key(&c.selector(base, or_equal, offset), isolation).await?;
    same(&format!("({base}, {or_equal}, {offset}) {isolation:?}"), c.strip(&seen), Bytes::from(*promised))
}

async fn own_atomics(c: Ctx) -> Expectation {
    c.put_all(&["a", "c", "e"]).await?;
    let tx = c.tx()?;
    tx.atomic_op(&c.key("b"), b"\x01", MutationType::Add);
    tx.atomic_op(&c.key("c"), b"c", MutationType::CompareAndClear);
    tx.atomic_op(&c.key("d"), b"d", MutationType::CompareAndClear);
    let mut seen = Vec::new();
    for offset in 1..=3 {
        seen.push(c.strip(&tx.get_key(&c.selector("a", false, offset), Snapshot).await?));
    }
    same("the keys from a on", seen, vec!["a".into(), "b".into(), "e".into()])
}

async fn clamped_begin(c: Ctx) -> Expectation {
    c.put("a", "1").await?;
    let tx = c.tx()?;
    for (or_equal, offset) in [(false, 0), (false, -7), (true, -3)] {
        let key = tx.get_key(&KeySelector::new("", or_equal, offset), Snapshot).await?;
        same(&format!("(\"\", {or_equal}, {offset})"), key, Bytes::new())?;
    }
    Ok(())
}

async fn clamped_end(c: Ctx) -> Expectation {
    c.put("a", "1").await?;
    let tx = c.tx()?;
    for offset in [1, 2, 9] {
        let key = tx.get_key(&KeySelector::new(&b"\xff"[..], false, offset), Snapshot).await?;
        same(&format!("(\\xff, false, {offset})"), key, Bytes::from_static(b"\xff"))?;
    }
    Ok(())
}

async fn get_key_system(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let selector = KeySelector::first_greater_or_equal(&b"\xff\x01"[..]);
    let key = tx.get_key(&selector, Serializable).await;
    fails("a base above \\xff", key, Error::KEY_OUTSIDE_LEGAL_RANGE)?;
    let selector = KeySelector::first_greater_or_equal(&b"\xff"[..]);
    succeeds("a base of \\xff", tx.get_key(&selector, Snapshot).await).map(drop)
}

async fn snapshot_key(c: Ctx) -> Expectation {
    c.put_all(&["a", "b"]).await?;
    let tx = c.tx()?;
    tx.set(&c.key("c"), b"own");
    for (offset, promised) in [(1, "a"), (2, "b"), (3, "c")] {
        let key = tx.get_key(&c.selector("a", false, offset), Snapshot).await?;
        same("the key", c.strip(&key), promised.into())?;
    }
    same("read conflict ranges", c.listed(&tx, READ_CONFLICTS).await?, ranges(&[]))
}

/// A transaction with option 51 that has written over `a`, cleared `b` and inserted `c`.
async fn unread(c: &Ctx) -> Result<Tx> {
    c.put_all(&["a", "b", "d"]).await?;
    let tx = c.tx()?;
    tx.set_option(TransactionOption::ReadYourWritesDisable)?;
    tx.set(&c.key("a"), b"own");
    tx.clear(&c.key("b"));
    tx.set(&c.key("c"), b"own");
    Ok(tx)
}

async fn unread_get(c: Ctx) -> Expectation {
    let tx = unread(&c).await?;
    same("an own set", tx.get(&c.key("a"), Serializable).await?, some("a"))?;
    same("an own clear", tx.get(&c.key("b"), Snapshot).await?, some("b"))?;
    same("an own insertion", tx.get(&c.key("c"), Serializable).await?, None)
}

async fn unread_key(c: Ctx) -> Expectation {
    let tx = unread(&c).await?;
    let after = async |key| tx.get_key(&c.selector(key, true, 1), Serializable).await;
    same("the key after a", c.strip(&after("a").await?), "b".into())?;
    same("the key after b", c.strip(&after("b").await?), "d".into())
}

async fn unread_range(c: Ctx) -> Expectation {
    let tx = unread(&c).await?;
    let rows = tx.get_range_all(c.everything(), Serializable).await?;
    let promised = ["a", "b", "d"].map(|key| KeyValue::new(c.key(key), key)).to_vec();
    same("the rows", rows, promised)
}

async fn unread_commit(c: Ctx) -> Expectation {
    let tx = unread(&c).await?;
    tx.atomic_op(&c.key("d"), b"!", MutationType::AppendIfFits);
    tx.commit().await?;
    let promised = [("a", "own"), ("c", "own"), ("d", "d!")].map(|(k, v)| (k.into(), v.into()));
    same("the rows", c.rows().await?, promised.to_vec())
}

async fn clear_half_open(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "b\0", "c", "d"]).await?;
    c.commit(|tx| tx.clear_range(&c.key("b"), &c.key("d"))).await?;
    let keys: Vec<Bytes> = c.rows().await?.into_iter().map(|row| row.0).collect();
    same("the keys left", keys, vec!["a".into(), "d".into()])
}

async fn clear_empty(c: Ctx) -> Expectation {
    c.put("a", "1").await?;
    let tx = c.tx()?;
    tx.clear_range(&c.key("a"), &c.key("a"));
    same("the own read", tx.get(&c.key("a"), Snapshot).await?, some("1"))?;
    tx.commit().await?;
    same("the value", c.value("a").await?, some("1"))
}

async fn clear_long_bounds(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "c"]).await?;
    let tx = c.tx()?;
    tx.clear_range(&c.key([b'a'; 20_000]), &c.key([b'b'; 20_000]));
    same("an own read", tx.get(&c.key("b"), Snapshot).await?, None)?;
    succeeds("the commit", tx.commit().await)?;
    let keys: Vec<Bytes> = c.rows().await?.into_iter().map(|row| row.0).collect();
    same("the keys left", keys, vec!["a".into(), "c".into()])
}

async fn clear_long(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.clear(&vec![b'x'; 20_000]);
    c.writes_are(&tx, &[]).await?;
    succeeds("the commit", tx.commit().await)?;
    same("the committed version", tx.get_committed_version()?, -1)
}

async fn clear_then_set(c: Ctx) -> Expectation {
    c.put("a", "old").await?;
    let tx = c.tx()?;
    tx.clear_range(&c.key("a"), &c.key("c"));
    tx.set(&c.key("b"), b"new");
    tx.clear(&c.key("a"));
    tx.set(&c.key("a"), b"new");
    tx.commit().await?;
    let promised = vec![("a".into(), "new".into()), ("b".into(), "new".into())];
    same("the rows", c.rows().await?, promised)
}

async fn conflict_long_bounds(c: Ctx) -> Expectation {
    let reader = c.tx()?;
    reader.get_read_version().await?;
    let (begin, end) = (c.key([b'a'; 20_000]), c.key([b'b'; 20_000]));
    reader.add_conflict_range(&begin, &end, ConflictRangeType::Read)?;
    c.put("b", "theirs").await?;
    c.touch(&reader)?;
    fails("the commit", reader.commit().await, Error::NOT_COMMITTED)
}

async fn stream(c: Ctx) -> Expectation {
    let value = vec![7; 300];
    c.commit(|tx| (0..100_u8).for_each(|i| tx.set(&c.key([i]), &value))).await?;
    for mode in [StreamingMode::Iterator, StreamingMode::Small, StreamingMode::WantAll] {
        for reverse in [false, true] {
            let tx = c.tx()?;
            let range = RangeOption { reverse, ..c.everything().mode(mode) };
            let rows: Vec<KeyValue> = tx.get_ranges_keyvalues(range, Snapshot).try_collect().await?;
            let mut promised: Vec<Bytes> = (0..100_u8).map(|i| c.key([i])).collect();
            if reverse {
                promised.reverse();
            }
            let keys: Vec<Bytes> = rows.into_iter().map(|row| row.key).collect();
            same(&format!("{mode:?}, reverse {reverse}: the keys"), keys, promised)?;
        }
    }
    let tx = c.tx()?;
    let range = c.everything().mode(StreamingMode::Small).limit(7);
    let rows: Vec<KeyValue> = tx.get_ranges_keyvalues(range, Snapshot).try_collect().await?;
    holds(rows.len() == 7, || format!("a limit of 7 over several batches, seen {} rows", rows.len()))?;
    same("the last key", rows.last().map(|row| key_after(&row.key)), Some(key_after(&c.key([6]))))
}
