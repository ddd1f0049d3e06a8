//! Size limits, the approximate size, estimated range sizes and split points.

use super::{
    Case, Ctx, Expectation,
    expect::{fails, fails_with, holds, same, succeeds},
    world::{Serializable, Snapshot},
};
use bytes::Bytes;
use shaketable_tx::{
    ConflictRangeType::{Read, Write},
    Error, MutationType, RangeOption, Result, Transaction, TransactionOption, Tx,
};

const SECTION: &str = "sizes";

/// The bytes that a 64-bit FoundationDB client counts for a mutation in addition to its key and value.
const MUTATION: usize = 44;
/// The bytes that it counts for a conflict range in addition to its two keys.
const RANGE: usize = 24;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = catalogue! {
        "limit/key", key_limit,
            "A key has at most 10,000 bytes; longer ones are 2102.";
        "limit/value", value_limit,
            "A value has at most 100,000 bytes; longer ones are 2103.";
        "limit/raw-access", raw_access,
            "With raw access (303) keys have 8 bytes more.";
        "approximate-size/new", size_of_new,
            "The approximate size of a new transaction is 0.";
        "approximate-size/reset", size_of_reset,
            "reset and on_error return it to 0.";
        "approximate-size/sum", size_sum,
            "It only grows, by what each call adds.";
        "estimated-size/empty", estimate_empty,
            "The estimate of an empty range is small, and no error.";
        "estimated-size/large", estimate_large,
            "The estimate of some megabytes is roughly right.";
        "estimated-size/own-writes", estimate_own,
            "The estimate ignores own writes.";
        "estimated-size/inverted", estimate_inverted,
            "The estimate of an inverted range is 2005.";
        "total-cost/reads", cost_of_reads,
            "A read of a storage server costs pages of 4,096 bytes, one that needs none nothing.";
        "total-cost/writes", cost_of_writes,
            "A write costs four times as much, once the commit takes it, a clear one page.";
        "total-cost/direct-writes", cost_of_direct_writes,
            "Without read-your-writes (51) a write costs at once, and nothing more at the commit.";
        "total-cost/reset", cost_of_reset,
            "reset and on_error return the cost to 0.";
        "tag-throttled-duration", throttled_duration,
            "A transaction without tags was never held back because of one.";
        "addresses/key", addresses,
            "The addresses of a key are those of the servers that hold it, with ports.";
        "addresses/beyond", addresses_beyond,
            "A key beyond all has no address.";
        "split-points/ends", split_ends,
            "Split points begin with the range's begin, end with its end, and rise.";
        "split-points/pieces", split_pieces,
            "Some megabytes are split into several pieces.";
        "split-points/inverted", split_inverted,
            "Split points of an inverted range are 2005.";
        "split-points/system", split_system,
            "Split points beyond \\xff are 2004.";
    };
    for (topic, step, size) in SIZES {
        let promise = format!("{topic} adds what it costs to send to the approximate size.");
        cases.push(Case::new(SECTION, &format!("approximate-size/{topic}"), promise, move |c| {
            sized(c, *step, *size)
        }));
    }
    cases
}

async fn key_limit(c: Ctx) -> Expectation {
    let filler = |length: usize| vec![b'k'; length - c.key("").len()];
    let tx = c.tx()?;
    let longest = c.key(filler(10_000));
    tx.set(&longest, b"1");
    same("an own read", tx.get(&longest, Serializable).await?, Some("1".into()))?;
    succeeds("the commit", tx.commit().await)?;
    same("the stored keys", c.rows().await?.len(), 1)?;
    let tx = c.tx()?;
    tx.set(&c.key(filler(10_001)), b"1");
    fails("the commit of one byte more", tx.commit().await, Error::KEY_TOO_LARGE)
}

async fn value_limit(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let longest = vec![7; 100_000];
    tx.set(&c.key("a"), &longest);
    succeeds("the commit", tx.commit().await)?;
    same("the value", c.value("a").await?, Some(longest.into()))?;
    let tx = c.tx()?;
    tx.set(&c.key("a"), &[7; 100_001]);
    fails("the commit of one byte more", tx.commit().await, Error::VALUE_TOO_LARGE)
}

async fn raw_access(c: Ctx) -> Expectation {
    for (length, fits) in [(10_008, true), (10_009, false)] {
        let tx = c.tx()?;
        tx.set_option(TransactionOption::RawAccess)?;
        tx.set(&c.key(vec![b'k'; length - c.key("").len()]), b"1");
        // Reading shows whether the write was accepted; no commit is needed.
        let read = tx.get(&c.key("a"), Serializable).await;
        if fits {
            succeeds("a read after the write", read)?;
        } else {
            fails("a read after the write", read, Error::KEY_TOO_LARGE)?;
        }
    }
    Ok(())
}

/// One call that adds to the approximate size.
#[derive(Clone, Copy)]
enum Step {
    Set,
    SetWithoutRange,
    Clear,
    ClearRange,
    Atomic,
    AddRead,
    AddWrite,
    Get,
    GetTwice,
    GetSnapshot,
    GetOwn,
    Range,
}

/// A step, and its size as a function of the length of the key `a`, which is that of `b` too.
type Size = (&'static str, Step, fn(usize) -> usize);

const SIZES: &[Size] = &[
    ("set", Step::Set, |k| set(k, 5)),
    ("set-without-conflict-range", Step::SetWithoutRange, |k| k + 5 + MUTATION),
    ("clear", Step::Clear, |k| 2 * (2 * k + 1 + RANGE)),
    ("clear_range", Step::ClearRange, |k| 2 * 2 * k + MUTATION + RANGE),
    ("atomic_op", Step::Atomic, |k| set(k, 8)),
    ("add_read_conflict_range", Step::AddRead, |k| 2 * k + RANGE),
    ("add_write_conflict_range", Step::AddWrite, |k| 2 * k + RANGE),
    ("get", Step::Get, |k| 2 * k + 1 + RANGE),
    ("get-twice", Step::GetTwice, |k| 2 * (2 * k + 1 + RANGE)),
    ("get-snapshot", Step::GetSnapshot, |_| 0),
    ("get-own-write", Step::GetOwn, |k| set(k, 5)),
    ("get_range", Step::Range, |k| 2 * k + RANGE),
];

/// The size of a set with a key and a value of these lengths.
fn set(key: usize, value: usize) -> usize {
    key + value + MUTATION + 2 * key + 1 + RANGE
}

async fn take(c: &Ctx, tx: &Tx, step: Step) -> Result<()> {
    let (a, b) = (c.key("a"), c.key("b"));
    match step {
        Step::Set => tx.set(&a, b"value"),
        Step::SetWithoutRange => {
            tx.set_option(TransactionOption::NextWriteNoWriteConflictRange)?;
            tx.set(&a, b"value");
        }
        Step::Clear => tx.clear(&a),
        Step::ClearRange => tx.clear_range(&a, &b),
        Step::Atomic => tx.atomic_op(&a, &[1; 8], MutationType::Add),
        Step::AddRead => tx.add_conflict_range(&a, &b, Read)?,
        Step::AddWrite => tx.add_conflict_range(&a, &b, Write)?,
        Step::Get => drop(tx.get(&a, Serializable).await?),
        Step::GetTwice => {
            tx.get(&a, Serializable).await?;
            tx.get(&a, Serializable).await?;
        }
        Step::GetSnapshot => drop(tx.get(&a, Snapshot).await?),
        Step::GetOwn => {
            tx.set(&a, b"value");
            tx.get(&a, Serializable).await?;
        }
        Step::Range => drop(tx.get_range(&RangeOption::new(a, b), 1, Serializable).await?),
    }
    Ok(())
}

async fn sized(c: Ctx, step: Step, size: fn(usize) -> usize) -> Expectation {
    let tx = c.tx()?;
    take(&c, &tx, step).await?;
    let promised = size(c.key("a").len()) as i64;
    same("the approximate size", tx.get_approximate_size().await?, promised)
}

async fn size_of_new(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    same("the size", tx.get_approximate_size().await?, 0)?;
    tx.get_read_version().await?;
    same("the size with a read version", tx.get_approximate_size().await?, 0)
}

async fn size_of_reset(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    tx.reset();
    same("the size after reset", tx.get_approximate_size().await?, 0)?;
    tx.set(&c.key("a"), b"1");
    tx.on_error(Error::NOT_COMMITTED).await?;
    same("the size after on_error", tx.get_approximate_size().await?, 0)
}

async fn size_sum(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let length = c.key("a").len();
    let mut promised = 0;
    for value in [0, 10, 1_000] {
        tx.set(&c.key("a"), &vec![7; value]);
        promised += set(length, value) as i64;
        same("the size after another set of one key", tx.get_approximate_size().await?, promised)?;
    }
    tx.clear(&c.key("a"));
    holds(tx.get_approximate_size().await? > promised, || "a clear adds to the size".into())
}

/// Stores about four megabytes under the prefix.
async fn fill(c: &Ctx) -> Result<()> {
    let value = vec![7; 50_000];
    for part in 0..8_u8 {
        c.commit(|tx| (0..10).for_each(|i| tx.set(&c.key([part, i]), &value))).await?;
    }
    Ok(())
}

async fn estimate_empty(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let bytes = tx.get_estimated_range_size_bytes(&c.key("a"), &c.key("b")).await?;
    holds((0..1_000_000).contains(&bytes), || format!("a small estimate of nothing, seen {bytes}"))
}

async fn estimate_large(c: Ctx) -> Expectation {
    fill(&c).await?;
    let tx = c.tx()?;
    let bytes = tx.get_estimated_range_size_bytes(&c.key(""), &c.end()).await?;
    holds((1_500_000..12_000_000).contains(&bytes), || {
        format!("an estimate of 4,000,000 bytes within a factor of three, seen {bytes}")
    })
}

async fn estimate_own(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let before = tx.get_estimated_range_size_bytes(&c.key(""), &c.end()).await?;
    for i in 0..50_u8 {
        tx.set(&c.key([i]), &[7; 100_000]);
    }
    let after = tx.get_estimated_range_size_bytes(&c.key(""), &c.end()).await?;
    holds(after - before < 1_000_000, || {
        format!("5,000,000 own bytes do not count; the estimate went from {before} to {after}")
    })
}

async fn estimate_inverted(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let bytes = tx.get_estimated_range_size_bytes(&c.key("b"), &c.key("a")).await;
    fails("the estimate", bytes, Error::INVERTED_RANGE)
}

/// Split points must start and end with the bounds of the range, and be in ascending order.
fn well_formed(c_begin: &Bytes, c_end: &Bytes, points: &[Bytes]) -> Expectation {
    same("the first point", points.first(), Some(c_begin))?;
    same("the last point", points.last(), Some(c_end))?;
    holds(points.windows(2).all(|pair| pair[0] < pair[1]), || format!("rising points, seen {points:?}"))
}

async fn split_ends(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "c"]).await?;
    let tx = c.tx()?;
    let (begin, end) = (c.key("a"), c.key("c"));
    let points = tx.get_range_split_points(&begin, &end, 100_000_000).await?;
    well_formed(&begin, &end, &points)
}

async fn split_pieces(c: Ctx) -> Expectation {
    fill(&c).await?;
    let tx = c.tx()?;
    let (begin, end) = (c.key(""), c.end());
    let points = tx.get_range_split_points(&begin, &end, 500_000).await?;
    well_formed(&begin, &end, &points)?;
    holds((3..60).contains(&points.len()), || {
        format!("4,000,000 bytes in pieces of about 500,000, seen {} points", points.len())
    })
}

async fn split_inverted(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let points = tx.get_range_split_points(&c.key("b"), &c.key("a"), 1_000).await;
    fails("the split points", points, Error::INVERTED_RANGE)
}

async fn split_system(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let points = tx.get_range_split_points(&c.key("a"), b"\xff\x01", 1_000).await;
    fails_with("the split points", points, &[Error::KEY_OUTSIDE_LEGAL_RANGE])
}

const PAGE: i64 = 4_096;

async fn cost_of_reads(c: Ctx) -> Expectation {
    c.put("large", vec![0; 5_000]).await?;
    let tx = c.tx()?;
    same("at first", tx.get_total_cost().await?, 0)?;
    tx.get_read_version().await?;
    tx.get(&c.key("a"), Serializable).await?;
    same("after a read", tx.get_total_cost().await?, PAGE)?;
    tx.get(&c.key("a"), Serializable).await?;
    same("after the same again", tx.get_total_cost().await?, PAGE)?;
    tx.get(&c.key("large"), Snapshot).await?;
    same("after a value of two pages", tx.get_total_cost().await?, 3 * PAGE)?;
    tx.set(&c.key("own"), b"1");
    tx.get(&c.key("own"), Serializable).await?;
    same("after an own write and its read", tx.get_total_cost().await?, 3 * PAGE)
}

async fn cost_of_writes(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"1");
    tx.set(&c.key("large"), &[0; 5_000]);
    tx.atomic_op(&c.key("sum"), &[0; 5_000], MutationType::Add);
    tx.clear_range(&c.key("x"), &c.key("z"));
    same("before the commit", tx.get_total_cost().await?, 0)?;
    tx.commit().await?;
    // A set of one page, a set of two pages, an operation whose operand does not count, and the clear.
    same("after it", tx.get_total_cost().await?, (4 + 8 + 4 + 1) * PAGE)
}

async fn cost_of_direct_writes(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set_option(TransactionOption::ReadYourWritesDisable)?;
    tx.set(&c.key("a"), b"1");
    same("after a set", tx.get_total_cost().await?, 4 * PAGE)?;
    tx.clear(&c.key("b"));
    same("after a clear", tx.get_total_cost().await?, 5 * PAGE)?;
    tx.commit().await?;
    same("after the commit", tx.get_total_cost().await?, 5 * PAGE)
}

async fn cost_of_reset(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    tx.reset();
    same("after reset", tx.get_total_cost().await?, 0)?;
    tx.get(&c.key("a"), Serializable).await?;
    tx.on_error(Error::NOT_COMMITTED).await?;
    same("after on_error", tx.get_total_cost().await?, 0)
}

async fn throttled_duration(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.get(&c.key("a"), Serializable).await?;
    same("the duration", tx.get_tag_throttled_duration().await?, std::time::Duration::ZERO)
}

async fn addresses(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let addresses = tx.get_addresses_for_key(&c.key("a")).await?;
    holds(!addresses.is_empty(), || "at least one address".into())?;
    let whole = |a: &String| {
        a.rsplit_once(':').is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    holds(addresses.iter().all(whole), || format!("IP:port; {addresses:?}"))?;
    c.reads_are(&tx, &[]).await
}

async fn addresses_beyond(c: Ctx) -> Expectation {
    let addresses = c.tx()?.get_addresses_for_key(b"\xff\xff").await?;
    same("addresses", addresses, Vec::new())
}
