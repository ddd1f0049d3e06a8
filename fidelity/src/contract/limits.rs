//! The sizes of the batches of a range read, and the meaning of `more`.

use super::{
    Case, Ctx, Expectation,
    expect::{fails, holds, same},
    world::Snapshot,
};
use StreamingMode::*;
use bytes::Bytes;
use shaketable_tx::{Error, RangeBatch, RangeOption, Result, StreamingMode, Transaction, Tx};

const SECTION: &str = "reads";

/// The target sizes of the first batches of iterator mode, in bytes, by iteration.
const PROGRESSION: [usize; 9] = [4_096, 6_144, 9_216, 13_824, 20_736, 31_104, 46_656, 69_984, 80_000];

/// The target sizes of the modes without an iteration, in bytes.
const MODES: &[(&str, StreamingMode, usize)] = &[
    ("small", Small, 256),
    ("medium", Medium, 1_000),
    ("large", Large, 4_096),
    ("serial", Serial, 80_000),
    ("want-all", WantAll, 80_000),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = catalogue! {
        "limit/rows", limit_rows,
            "A limit bounds the rows over all batches, from either end.";
        "limit/zero", limit_zero,
            "A limit of 0 is none.";
        "limit/beyond", limit_beyond,
            "A limit above the number of rows changes nothing.";
        "limit/own-writes", limit_own,
            "Own writes count toward the limit, own clears do not.";
        "more/limit-reached", more_at_limit,
            "A batch that reaches its limit says that there may be more.";
        "more/range-ended", more_at_end,
            "A batch that ends its range says that there is no more.";
        "more/own-writes", more_own,
            "A batch of own writes that reaches its limit says that there may be more.";
        "exact/without-limit", exact_without,
            "Exact mode without a limit is 2210.";
        "exact/zero", exact_zero,
            "Exact mode with a limit of 0, which is none, is 2210.";
        "exact/limit", exact_limit,
            "Exact mode returns its limit's rows.";
        "exact/target-bytes", exact_bytes,
            "Exact mode is content with a target of bytes.";
        "iterator/iteration-zero", iteration_zero,
            "Iterator mode counts iterations from 1; 0 is 2000.";
        "iterator/grows", iterator_grows,
            "Batches of iterator mode grow with the iteration, up to its target.";
        "target-bytes", target_bytes,
            "A batch stops at the target of bytes, when that is below the mode's.";
        "large-rows", large_rows,
            "A row larger than the target makes a batch of its own.";
    };
    for (topic, mode, target) in MODES {
        let promise = format!(
            "A batch of {topic} mode stops once it holds {target} bytes, and batches add up to the range."
        );
        cases.push(Case::new(SECTION, &format!("mode/{topic}"), promise, move |c| {
            mode_bytes(c, *mode, *target)
        }));
    }
    cases
}

const ROWS: usize = 1_200;

/// Rows with values of 100 bytes each, at least 120,000 bytes in total.
async fn fill(c: &Ctx) -> Result<()> {
    c.commit(|tx| {
        for i in 0..ROWS {
            tx.set(&c.key(format!("{i:04}")), &[7; 100]);
        }
    })
    .await
    .map(drop)
}

/// The bytes of a batch without its last row: the size at which it continued.
fn before_last(batch: &RangeBatch) -> usize {
    let rows = batch.rows.split_last().map_or(&[][..], |(_, rows)| rows);
    rows.iter().map(|row| row.key.len() + row.value.len()).sum()
}

fn stops_at(what: &str, batch: &RangeBatch, target: usize) -> Expectation {
    let held = before_last(batch);
    holds(held < target, || format!("{what}: a batch goes on only below {target} bytes; it held {held}"))?;
    holds(batch.more, || format!("{what}: there is more"))
}

async fn mode_bytes(c: Ctx, mode: StreamingMode, target: usize) -> Expectation {
    fill(&c).await?;
    for reverse in [false, true] {
        let tx = c.tx()?;
        let range = RangeOption { reverse, ..c.everything().mode(mode) };
        stops_at("stored rows", &tx.get_range(&range, 1, Snapshot).await?, target)?;
        stops_at("the hundredth iteration", &tx.get_range(&range, 100, Snapshot).await?, target)?;
        tx.set(&c.key("0003"), b"own");
        stops_at("with an own write", &tx.get_range(&range, 1, Snapshot).await?, target)?;
        let rows = tx.get_range_all(range, Snapshot).await?;
        let mut seen: Vec<Bytes> = rows.into_iter().map(|row| c.strip(&row.key)).collect();
        if reverse {
            seen.reverse();
        }
        let promised: Vec<Bytes> = (0..ROWS).map(|i| format!("{i:04}").into()).collect();
        same("the keys of all batches", seen, promised)?;
    }
    Ok(())
}

async fn iterator_grows(c: Ctx) -> Expectation {
    fill(&c).await?;
    let tx = c.tx()?;
    for (iteration, target) in (1..).zip(PROGRESSION) {
        let batch = tx.get_range(&c.everything(), iteration, Snapshot).await?;
        stops_at(&format!("iteration {iteration}"), &batch, target)?;
    }
    let rows = tx.get_range_all(c.everything(), Snapshot).await?;
    same("how many rows all batches hold", rows.len(), ROWS)
}

async fn target_bytes(c: Ctx) -> Expectation {
    fill(&c).await?;
    let tx = c.tx()?;
    for mode in [WantAll, Serial, Large, Iterator] {
        let range = RangeOption { target_bytes: 500, ..c.everything().mode(mode) };
        stops_at(&format!("{mode:?}"), &tx.get_range(&range, 1, Snapshot).await?, 500)?;
    }
    let range = RangeOption { target_bytes: 5_000, ..c.everything().mode(Small) };
    stops_at("a target above the mode's", &tx.get_range(&range, 1, Snapshot).await?, 256)?;
    let rows = tx.get_range_all(RangeOption { target_bytes: 2_000, ..c.everything() }, Snapshot).await?;
    same("how many rows all batches hold", rows.len(), ROWS)
}

async fn large_rows(c: Ctx) -> Expectation {
    c.commit(|tx| (0..5_u8).for_each(|i| tx.set(&c.key([i]), &[7; 90_000]))).await?;
    let tx = c.tx()?;
    for mode in [Small, Iterator, WantAll] {
        let batch = tx.get_range(&c.everything().mode(mode), 1, Snapshot).await?;
        holds(batch.rows.len() <= 1 && batch.more, || {
            format!("{mode:?}: at most one of five rows of 90,000 bytes, and more; seen {}", batch.rows.len())
        })?;
        let rows = tx.get_range_all(c.everything().mode(mode), Snapshot).await?;
        same("how many rows all batches hold", rows.len(), 5)?;
    }
    Ok(())
}

async fn keys(c: &Ctx, range: RangeOption) -> Result<Vec<Bytes>> {
    let rows = c.tx()?.get_range_all(range, Snapshot).await?;
    Ok(rows.into_iter().map(|row| c.strip(&row.key)).collect())
}

fn list(keys: &[&'static str]) -> Vec<Bytes> {
    keys.iter().map(|key| Bytes::from(*key)).collect()
}

async fn limit_rows(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "c", "d"]).await?;
    for mode in [Iterator, WantAll, Small, Exact, Serial] {
        let range = c.everything().mode(mode);
        same("the first three", keys(&c, range.clone().limit(3)).await?, list(&["a", "b", "c"]))?;
        same("the last three", keys(&c, range.limit(3).reversed()).await?, list(&["d", "c", "b"]))?;
    }
    Ok(())
}

async fn limit_zero(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "c"]).await?;
    same("a limit of 0", keys(&c, c.everything().limit(0)).await?, list(&["a", "b", "c"]))
}

async fn limit_beyond(c: Ctx) -> Expectation {
    c.put_all(&["a", "b"]).await?;
    for mode in [Iterator, WantAll, Exact] {
        same("a limit of 9", keys(&c, c.everything().limit(9).mode(mode)).await?, list(&["a", "b"]))?;
    }
    Ok(())
}

async fn limit_own(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "d", "e"]).await?;
    let tx = c.tx()?;
    tx.clear(&c.key("a"));
    tx.set(&c.key("c"), b"own");
    let forward = tx.get_range_all(c.everything().limit(3), Snapshot).await?;
    let seen: Vec<Bytes> = forward.into_iter().map(|row| c.strip(&row.key)).collect();
    same("the first three", seen, list(&["b", "c", "d"]))
}

/// The number of rows in the batches of a range, up to the batch that reaches `rows` rows or reports that
/// there are no more, and whether there are more.
async fn batches(tx: &Tx, mut range: RangeOption, rows: usize) -> Result<(usize, bool)> {
    let mut seen = 0;
    loop {
        range.limit = range.limit.map(|limit| limit.min(rows - seen));
        let batch = tx.get_range(&range, 1, Snapshot).await?;
        seen += batch.rows.len();
        if !batch.more || seen >= rows {
            return Ok((seen, batch.more));
        }
        if let Some(last) = batch.rows.last() {
            range.begin = shaketable_tx::KeySelector::first_greater_than(last.key.clone());
        }
    }
}

async fn more_at_limit(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "c", "d"]).await?;
    let tx = c.tx()?;
    for limit in 1..=3 {
        let seen = batches(&tx, c.everything().limit(limit), limit).await?;
        same(&format!("rows and more at a limit of {limit}"), seen, (limit, true))?;
    }
    Ok(())
}

async fn more_at_end(c: Ctx) -> Expectation {
    c.put_all(&["a", "b", "c"]).await?;
    let tx = c.tx()?;
    same("rows and more", batches(&tx, c.everything(), 99).await?, (3, false))?;
    let nine = c.everything().limit(9);
    same("rows and more at a limit of 9", batches(&tx, nine, 9).await?, (3, false))
}

async fn more_own(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    for key in ["a", "b", "c"] {
        tx.set(&c.key(key), b"own");
    }
    same("rows and more", batches(&tx, c.everything().limit(2), 2).await?, (2, true))
}

async fn exact_without(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let read = tx.get_range(&c.everything().mode(Exact), 1, Snapshot).await;
    fails("the read", read, Error::EXACT_MODE_WITHOUT_LIMITS)
}

async fn exact_zero(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let read = tx.get_range(&c.everything().mode(Exact).limit(0), 1, Snapshot).await;
    fails("the read", read, Error::EXACT_MODE_WITHOUT_LIMITS)
}

async fn exact_limit(c: Ctx) -> Expectation {
    fill(&c).await?;
    let tx = c.tx()?;
    let rows = tx.get_range_all(c.everything().mode(Exact).limit(50), Snapshot).await?;
    same("how many rows", rows.len(), 50)
}

async fn exact_bytes(c: Ctx) -> Expectation {
    fill(&c).await?;
    let tx = c.tx()?;
    let range = RangeOption { target_bytes: 1_000, ..c.everything().mode(Exact) };
    stops_at("exact", &tx.get_range(&range, 1, Snapshot).await?, 1_000)
}

async fn iteration_zero(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    let read = tx.get_range(&c.everything(), 0, Snapshot).await;
    fails("the read", read, Error::CLIENT_INVALID_OPERATION)
}
