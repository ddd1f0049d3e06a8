//! Keys that cannot be read before the commit has determined their content.

use super::{
    Case, Ctx, Expectation,
    expect::{fails, same, succeeds},
    stamps::{commit_stamp, filled, stamp_at, stamped},
    world::{Serializable, Snapshot, some},
};
use shaketable_tx::{
    Error, KeySelector, MutationType::*, RangeOption, Result, Transaction, TransactionOption, Tx,
};

const SECTION: &str = "versionstamps";

pub(super) fn cases() -> Vec<Case> {
    catalogue! {
        "unreadable/value", unreadable_value,
            "A key with a versionstamped value is 1036 in get, get_key and get_range, snapshot or not.";
        "unreadable/value-others", unreadable_value_others,
            "Other keys stay readable.";
        "unreadable/value-then-set", value_then_set,
            "A set over it leaves it unreadable.";
        "unreadable/value-then-clear", value_then_clear,
            "A clear over it makes it readable, and absent.";
        "unreadable/key", unreadable_key,
            "Keys between the least and the greatest stamp are 1036 in get, snapshot or not.";
        "unreadable/key-get_key", unreadable_get_key,
            "A get_key that has to look into them is 1036.";
        "unreadable/range", unreadable_range,
            "A range that has to look into them is 1036, forwards and backwards.";
        "unreadable/range-before", range_before,
            "A range that lies before them, or fills its limit before it reaches them, is fine.";
        "unreadable/range-behind", range_behind,
            "A range that lies behind them, or fills its limit backwards, is fine.";
        "unreadable/without-read-version", zero_without_version,
            "Without a read version the least stamp is zero.";
        "unreadable/with-read-version", narrowed_by_version,
            "With a read version the least stamp is just above it: older stamps stay readable.";
        "unreadable/fails-commit", fails_commit,
            "A read that failed with 1036 makes the commit fail with it.";
        "unreadable/no-read-no-fail", stamp_plain_key,
            "Without such a read the commit succeeds.";
        "unreadable/on_error", on_error,
            "1036 is not retryable.";
        "bypass/value", bypass_value,
            "With option 1100 get sees the operand with its placeholder.";
        "bypass/range", bypass_range,
            "With option 1100 a range that meets a stamped key is still 1036.";
    }
}

/// A transaction that has written a versionstamped value to `b`, among `a`, `b` and `c`.
async fn with_value(c: &Ctx) -> Result<Tx> {
    c.put_all(&["a", "b", "c"]).await?;
    let tx = c.tx()?;
    tx.atomic_op(&c.key("b"), &stamped(b"", b""), SetVersionstampedValue);
    Ok(tx)
}

async fn unreadable_value(c: Ctx) -> Expectation {
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

async fn unreadable_value_others(c: Ctx) -> Expectation {
    let tx = with_value(&c).await?;
    same("get of another key", tx.get(&c.key("a"), Serializable).await?, some("a"))?;
    let rows = tx.get_range_all(c.range("c", "z"), Serializable).await?;
    same("a range behind it", rows.len(), 1)?;
    let rows = tx.get_range_all(c.range("a", "b"), Serializable).await?;
    same("a range before it", rows.len(), 1)?;
    let selector = c.selector("c", false, 1);
    same("get_key behind it", tx.get_key(&selector, Serializable).await?, c.key("c"))
}

async fn value_then_set(c: Ctx) -> Expectation {
    let tx = with_value(&c).await?;
    tx.set(&c.key("b"), b"own");
    fails("get", tx.get(&c.key("b"), Serializable).await, Error::ACCESSED_UNREADABLE)
}

async fn value_then_clear(c: Ctx) -> Expectation {
    let tx = with_value(&c).await?;
    tx.clear(&c.key("b"));
    same("get", tx.get(&c.key("b"), Serializable).await?, None)?;
    tx.commit().await?;
    same("committed", c.value("b").await?, None)
}

/// A transaction that has written a versionstamped key under `m`, with `a` and `z` stored around it.
/// `versioned` fetches the read version first.
async fn with_key(c: &Ctx, versioned: bool) -> Result<Tx> {
    c.put_all(&["a", "b", "y", "z"]).await?;
    let tx = c.tx()?;
    if versioned {
        tx.get_read_version().await?;
    }
    tx.atomic_op(&stamped(&c.key("m"), b""), b"", SetVersionstampedKey);
    Ok(tx)
}

async fn unreadable_key(c: Ctx) -> Expectation {
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

async fn unreadable_get_key(c: Ctx) -> Expectation {
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

async fn unreadable_range(c: Ctx) -> Expectation {
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

async fn range_before(c: Ctx) -> Expectation {
    let tx = with_key(&c, true).await?;
    same("a range before", tx.get_range_all(c.range("a", "m"), Serializable).await?.len(), 2)?;
    let filled = tx.get_range_all(c.everything().limit(2), Serializable).await?;
    same("a limit filled before", filled.len(), 2)
}

async fn range_behind(c: Ctx) -> Expectation {
    let tx = with_key(&c, true).await?;
    same("a range behind", tx.get_range_all(c.range("n", "zz"), Serializable).await?.len(), 2)?;
    let filled = tx.get_range_all(c.everything().reversed().limit(2), Serializable).await?;
    same("a limit filled behind", filled.len(), 2)
}

async fn zero_without_version(c: Ctx) -> Expectation {
    let tx = with_key(&c, false).await?;
    let zero = c.key(filled(b"m", [0; 10], b""));
    fails("get of the zero stamp", tx.get(&zero, Serializable).await, Error::ACCESSED_UNREADABLE)
}

async fn narrowed_by_version(c: Ctx) -> Expectation {
    let older = c.tx()?;
    older.atomic_op(&stamped(&c.key("m"), b""), b"older", SetVersionstampedKey);
    let stamp = commit_stamp(&older).await?;
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

async fn fails_commit(c: Ctx) -> Expectation {
    let tx = with_value(&c).await?;
    fails("get", tx.get(&c.key("b"), Snapshot).await, Error::ACCESSED_UNREADABLE)?;
    fails("the commit", tx.commit().await, Error::ACCESSED_UNREADABLE)?;
    same("the value", c.value("b").await?, some("b"))
}

async fn stamp_plain_key(c: Ctx) -> Expectation {
    let tx = with_key(&c, false).await?;
    same("a read elsewhere", tx.get(&c.key("a"), Serializable).await?, some("a"))?;
    succeeds("the commit", tx.commit().await)?;
    same("how many rows", c.rows().await?.len(), 5)
}

async fn on_error(c: Ctx) -> Expectation {
    let tx = with_value(&c).await?;
    fails("get", tx.get(&c.key("b"), Snapshot).await, Error::ACCESSED_UNREADABLE)?;
    let answer = tx.on_error(Error::ACCESSED_UNREADABLE).await;
    fails("on_error", answer, Error::ACCESSED_UNREADABLE)
}

async fn bypass_value(c: Ctx) -> Expectation {
    c.put("b", "stored").await?;
    let tx = c.tx()?;
    tx.set_option(TransactionOption::BypassUnreadable)?;
    let operand = stamped(b"before", b"after");
    tx.atomic_op(&c.key("b"), &operand, SetVersionstampedValue);
    same("get", tx.get(&c.key("b"), Serializable).await?, Some(operand.into()))?;
    let stamp = commit_stamp(&tx).await?;
    same("committed", c.value("b").await?, Some(filled(b"before", stamp, b"after")))
}

async fn bypass_range(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "c"]).await?;
    let tx = c.tx()?;
    tx.set_option(TransactionOption::BypassUnreadable)?;
    tx.atomic_op(&c.key("b"), &stamped(b"", b""), SetVersionstampedValue);
    let rows = tx.get_range_all(c.everything(), Serializable).await;
    fails("a range", rows, Error::ACCESSED_UNREADABLE)?;
    let key = tx.get_key(&KeySelector::first_greater_than(c.key("a")), Serializable).await;
    fails("get_key", key, Error::ACCESSED_UNREADABLE)
}
