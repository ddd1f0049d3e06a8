//! `api`: random calls of the transaction API, several clients, against an in-memory model.
//!
//! Each operation is one transaction of random calls: point reads, selectors, ranges in every mode
//! and direction, sets, clears, every atomic operation, versionstamped keys and values, conflict
//! ranges; with and without read-your-writes; some in a region of the client's own, some in one that
//! all share; some after the same handle was used for something else and reset. Transactions carry options
//! that must not change what they answer, and some that end them early. What its reads answered must be what the model answers when the committed operations
//! are replayed in commit order.
//!
//! Snapshot reads are confined to the client's own region, which nobody else writes: there they have
//! one right answer too. Every transaction that writes carries an operation record, so that it takes
//! effect once and no attempt of an earlier operation lands behind a later one.

use bytes::Bytes;
use futures::{
    FutureExt,
    future::{BoxFuture, Either, select},
};
use parking_lot::Mutex;
use proptest::{collection::vec, prelude::*, strategy::Union};
use serde::{Deserialize, Serialize};
use shaketable::{
    models::keyspace::{Space, View, Write, apply as make_permanent},
    sessions,
    workload::{Bug, Outcome, Step, Workload},
};
use shaketable_layers::{
    once::{self, Check, Landing, Session},
    sometimes,
    tx::{
        ConflictRangeType, Database, Error, Isolation, KeySelector, KeyValue, MutationType, RangeOption,
        Result, RetryError, StreamingMode, Transaction, TransactionOption, key_after,
    },
};
use shaketable_sim::seed::Stream;
use std::{ops::Range as Numbers, sync::Arc, time::Duration};

shaketable::planted_bugs! {
    CapturedAnswers = "captured-answers", "answers are gathered in a list outside the retry loop", "a closure with side effects";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole", "a range that is longer than a batch";
    OwnWritesUnseen = "own-writes-unseen", "read-your-writes is disabled where calls build on each other", "a transaction that cannot see itself";
    OptionSetOnce = "option-set-once", "a transaction option is set in the first attempt only", "options do not outlive on_error";
    SnapshotReads = "snapshot-reads", "every read is a snapshot read", "foundationdb-rs examples/class-scheduling.rs";
    ResetForgotten = "reset-forgotten", "what a transaction was used for before is committed with it", "a handle that is used again without a reset";
    SnapshotOwnWrites = "snapshot-own-writes", "snapshot reads see own writes although they are told not to", "an option that is set once and lost by a reset";
    UncheckedWrites = "unchecked-writes", "writes add no write conflict range", "an option that is meant for one write";
    StampAtEnd = "stamp-at-end", "a versionstamp is put behind the value, wherever it belongs", "an offset that is taken for the length";
    NoOpRecord = "no-op-record", "writes are retried after an unknown result without an operation record", "the atomic counter of the API documentation";
}

/// What is asked.
const ASKED: [Asked; 4] = [Asked::ReadVersion, Asked::Size, Asked::StoredBytes, Asked::SplitPoints];

/// Options that must not show.
const HARMLESS: [Choice; 9] = [
    Choice::Batch,
    Choice::Immediate,
    Choice::Tag,
    Choice::Report,
    Choice::UsedDuringCommit,
    Choice::Idempotent,
    Choice::MaxDelay(20),
    Choice::LargestSize,
    Choice::SnapshotRywTwice,
];

/// Keys of a region that calls name by number.
const KEYS: u8 = 16;
/// Keys at either end of the whole keyspace that nobody writes, so that no selector leaves it.
const MARGIN: usize = 8;
/// The furthest a selector moves.
const REACH: i32 = MARGIN as i32 - 2;

/// A key by region and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spot {
    /// In the client's own region, or in the shared one.
    pub own: bool,
    /// Which of the region's keys.
    pub n: u8,
}

/// A selector by its base, `or_equal` and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selector(pub Spot, pub bool, pub i32);

/// A value: some bytes, repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data(pub Vec<u8>, pub u16);

/// A range read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// Where it begins.
    pub begin: Selector,
    /// Where it ends.
    pub end: Selector,
    /// At most so many rows; 0 is unlimited.
    pub limit: u8,
    /// Descending.
    pub reverse: bool,
    /// The streaming mode.
    pub mode: StreamingMode,
    /// One batch only, instead of all there are.
    pub one_batch: bool,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// Reads a key.
    Get(Spot, Isolation),
    /// Resolves a selector, serializably: it may leave the region.
    GetKey(Selector),
    /// Reads a range.
    GetRange(Range, Isolation),
    /// Reads all versionstamped keys of the own or the shared region.
    GetStamped(bool, Isolation),
    /// Sets a key.
    Set(Spot, Data),
    /// Clears a key.
    Clear(Spot),
    /// Clears from a key to another of its region; nothing when they are inverted.
    ClearRange(Spot, u8),
    /// Clears all versionstamped keys of the own or the shared region.
    ClearStamped(bool),
    /// An atomic operation that is not a versionstamped one.
    Atomic(MutationType, Spot, Data),
    /// A versionstamped key, in the own or the shared region; the first byte of the value comes behind the stamp.
    StampKey(bool, Data),
    /// A versionstamped value amidst some bytes.
    StampValue(Spot, Data),
    /// A conflict range from a key to another of its region, or of a key alone if they are the same; nothing
    /// when they are inverted.
    Conflict(Spot, u8, ConflictRangeType),
    /// Sets a key without its write conflict range, which is added by hand.
    SetByHand(Spot, Data),
    /// Asks what nobody can know better: see [`Asked`].
    Ask(Asked),
}

/// What a transaction is asked of itself, and of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Asked {
    /// Its read version: that at which its reads are judged.
    ReadVersion,
    /// Its size so far: not less than the keys and values that it has written.
    Size,
    /// An estimate of the bytes stored in the whole keyspace: not negative.
    StoredBytes,
    /// Points that split the whole keyspace in pieces: its ends, and in between what rises.
    SplitPoints,
}

/// What is done with a transaction's handle before it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Before {
    /// Nothing.
    #[default]
    Nothing,
    /// It reads and writes, and is reset.
    Reset,
    /// It reads and writes, is cancelled and reset.
    Cancel,
    /// Another transaction reads and writes, and is dropped.
    Drop,
    /// Another transaction fetches the read version for it.
    Lend,
}

/// An option of a transaction. Only the last three show: they end it early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Choice {
    /// Batch priority.
    Batch,
    /// System priority.
    Immediate,
    /// A throttling tag.
    Tag,
    /// Conflicting keys are reported.
    Report,
    /// Calls during the commit are allowed.
    UsedDuringCommit,
    /// The client resolves unknown results by itself.
    Idempotent,
    /// The largest backoff, milliseconds.
    MaxDelay(u16),
    /// A size that nothing here exceeds.
    LargestSize,
    /// Snapshot reads ignore own writes, and see them again.
    SnapshotRywTwice,
    /// How often it is retried.
    RetryLimit(u8),
    /// Milliseconds.
    Timeout(u16),
    /// Bytes: some transactions exceed it.
    Size(u16),
}

impl Choice {
    fn options(self) -> Vec<TransactionOption> {
        use TransactionOption as To;
        match self {
            Choice::Batch => vec![To::PriorityBatch],
            Choice::Immediate => vec![To::PrioritySystemImmediate],
            Choice::Tag => vec![To::Tag("api".into()), To::AutoThrottleTag("0123456789abcdef".into())],
            Choice::Report => vec![To::ReportConflictingKeys],
            Choice::UsedDuringCommit => vec![To::UsedDuringCommitProtectionDisable],
            Choice::Idempotent => vec![To::AutomaticIdempotency],
            Choice::MaxDelay(ms) => vec![To::MaxRetryDelay(ms.into())],
            Choice::LargestSize => vec![To::SizeLimit(10_000_000)],
            Choice::SnapshotRywTwice => vec![To::SnapshotRywDisable, To::SnapshotRywEnable],
            Choice::RetryLimit(limit) => vec![To::RetryLimit(limit.into())],
            Choice::Timeout(ms) => vec![To::Timeout(ms.into())],
            Choice::Size(bytes) => vec![To::SizeLimit(bytes.into())],
        }
    }
}

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Op {
    /// Whether its reads see its own writes.
    pub read_your_writes: bool,
    /// Whether its snapshot reads see its own writes.
    pub snapshot_ryw: bool,
    /// What is done with its handle before.
    pub before: Before,
    /// Its options, in this order.
    pub options: Vec<Choice>,
    /// The calls, in their order.
    pub calls: Vec<Call>,
    /// A key to watch for a moment afterwards, if the transaction writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Spot>,
}

impl Op {
    /// Whether it writes nothing, so that it commits at its read version.
    fn reads_only(&self) -> bool {
        self.calls.iter().all(|call| {
            matches!(
                call,
                Call::Get(..) | Call::GetKey(..) | Call::GetRange(..) | Call::GetStamped(..) | Call::Ask(_)
            ) || matches!(call, Call::Conflict(_, _, ConflictRangeType::Read))
        })
    }
}

/// What one call answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Seen {
    /// Nothing, as for a write.
    Nothing,
    /// A value.
    Value(Option<Bytes>),
    /// A resolved key.
    Key(Bytes),
    /// A version or a size.
    Number(i64),
    /// Keys.
    Keys(Vec<Bytes>),
    /// Rows, and whether there may be more (one batch), or all of them.
    Rows(Vec<(Bytes, Bytes)>, bool),
    /// Refused with 1036: a versionstamp stands in the way.
    Unreadable,
}

/// The names of all keys, made once.
///
/// ```text
/// api/!0 .. api/!7        untouched, so that selectors find a key
/// api/00/00 .. /15        the shared region, and api/00/s<versionstamp>
/// api/01/00 .. /15        the first client's region, and so on
/// api/~0 .. api/~7        untouched
/// ```
#[derive(Clone, Debug)]
struct Layout {
    regions: Vec<Vec<Bytes>>,
}

impl Layout {
    /// The keys for so many clients, at most 99.
    fn new(clients: usize) -> Layout {
        let key = |region, n| Bytes::from(format!("api/{region:02}/{n:02}"));
        Layout { regions: (0..=clients).map(|r| (0..KEYS).map(|n| key(r, n)).collect()).collect() }
    }

    /// What the database holds before the first operation.
    fn initial() -> Space {
        let margin = |c: char| (0..MARGIN).map(move |i| (Bytes::from(format!("api/{c}{i}")), Bytes::new()));
        margin('!').chain(margin('~')).collect()
    }

    /// The whole keyspace of the workload.
    fn whole() -> RangeOption {
        RangeOption::new("api/", "api0")
    }

    fn region(client: usize, own: bool) -> usize {
        if own { client + 1 } else { 0 }
    }

    fn key(&self, client: usize, spot: Spot) -> &Bytes {
        &self.regions[Layout::region(client, spot.own)][usize::from(spot.n % KEYS)]
    }

    fn selector(&self, client: usize, Selector(spot, or_equal, offset): Selector) -> KeySelector {
        KeySelector::new(self.key(client, spot).clone(), or_equal, offset.clamp(-REACH, REACH))
    }

    /// At snapshot a range stays in the client's own region.
    fn range(&self, client: usize, range: Range, isolation: Isolation) -> RangeOption {
        let bound = |Selector(spot, or_equal, offset)| match isolation {
            Isolation::Serializable => self.selector(client, Selector(spot, or_equal, offset)),
            Isolation::Snapshot => self.selector(client, Selector(Spot { own: true, n: spot.n }, false, 1)),
        };
        let mut option = RangeOption::between(bound(range.begin), bound(range.end)).mode(range.mode);
        option.limit = (range.limit > 0).then_some(range.limit.into());
        option.reverse = range.reverse;
        // Exact needs a limit.
        if range.mode == StreamingMode::Exact && range.limit == 0 {
            option.limit = Some(usize::from(KEYS));
        }
        option
    }

    fn stamped(&self, client: usize, own: bool) -> (Bytes, Bytes) {
        let region = Layout::region(client, own);
        (format!("api/{region:02}/s").into(), format!("api/{region:02}/t").into())
    }

    /// The key a point read reads: at snapshot one of the client's own.
    fn point(&self, client: usize, spot: Spot, isolation: Isolation) -> &Bytes {
        self.key(client, Spot { own: spot.own || isolation == Isolation::Snapshot, n: spot.n })
    }

    fn span(&self, client: usize, begin: Spot, end: u8) -> Option<(&Bytes, &Bytes)> {
        let (begin, end) = (self.key(client, begin), self.key(client, Spot { own: begin.own, n: end }));
        (begin <= end).then_some((begin, end))
    }

    /// The write that a call is, if it is one.
    fn write(&self, client: usize, call: &Call) -> Option<Write> {
        Some(match call {
            Call::Set(at, data) | Call::SetByHand(at, data) => {
                Write::Set(self.key(client, *at).clone(), data.bytes().into())
            }
            Call::Clear(at) => {
                let key = self.key(client, *at);
                Write::Clear(key.clone(), key_after(key))
            }
            Call::ClearRange(begin, end) => {
                let (begin, end) = self.span(client, *begin, *end)?;
                Write::Clear(begin.clone(), end.clone())
            }
            Call::ClearStamped(own) => {
                let (begin, end) = self.stamped(client, *own);
                Write::Clear(begin, end)
            }
            Call::Atomic(op, at, data) => {
                Write::Atomic(*op, self.key(client, *at).clone(), data.bytes().into())
            }
            Call::StampKey(own, data) => {
                let mut key = self.stamped(client, *own).0.to_vec();
                let offset = key.len() as u32;
                key.extend_from_slice(&[0; 10]);
                key.extend(data.0.first());
                key.extend_from_slice(&offset.to_le_bytes());
                Write::Atomic(MutationType::SetVersionstampedKey, key.into(), data.bytes().into())
            }
            Call::StampValue(at, data) => {
                let mut value = data.bytes();
                let offset = value.len() / 2;
                value.splice(offset..offset, [0; 10]);
                value.extend_from_slice(&(offset as u32).to_le_bytes());
                Write::Atomic(
                    MutationType::SetVersionstampedValue,
                    self.key(client, *at).clone(),
                    value.into(),
                )
            }
            _ => return None,
        })
    }
}

impl Data {
    fn bytes(&self) -> Vec<u8> {
        self.0.repeat(self.1.into())
    }
}

/// Runs the calls in a transaction; what each answered.
async fn run_calls<T: Transaction>(
    tx: &T,
    layout: &Layout,
    client: usize,
    op: &Op,
    planted: Option<Planted>,
) -> Result<Vec<Seen>> {
    let mut seen = Vec::with_capacity(op.calls.len());
    let as_read =
        |isolation| if planted == Some(Planted::SnapshotReads) { Isolation::Snapshot } else { isolation };
    for call in &op.calls {
        let answer = match call {
            Call::Get(at, isolation) => {
                tx.get(layout.point(client, *at, *isolation), as_read(*isolation)).await.map(Seen::Value)
            }
            Call::GetKey(selector) => {
                let selector = layout.selector(client, *selector);
                tx.get_key(&selector, as_read(Isolation::Serializable)).await.map(Seen::Key)
            }
            Call::GetRange(range, isolation) => {
                let option = layout.range(client, *range, *isolation);
                if range.one_batch || planted == Some(Planted::FirstBatch) {
                    let batch = tx.get_range(&option, 1, as_read(*isolation)).await;
                    batch.map(|batch| rows(batch.rows, batch.more && range.one_batch))
                } else {
                    tx.get_range_all(option, as_read(*isolation)).await.map(|all| rows(all, false))
                }
            }
            Call::GetStamped(own, isolation) => {
                let (begin, end) = layout.stamped(client, *own || *isolation == Isolation::Snapshot);
                let range = RangeOption::new(begin, end);
                tx.get_range_all(range, as_read(*isolation)).await.map(|all| rows(all, false))
            }
            Call::Conflict(begin, end, kind) => {
                match layout.span(client, *begin, *end) {
                    Some((begin, end)) if begin == end => tx.add_conflict_key(begin, *kind)?,
                    Some((begin, end)) => tx.add_conflict_range(begin, end, *kind)?,
                    None => {}
                }
                Ok(Seen::Nothing)
            }
            Call::Ask(Asked::ReadVersion) => tx.get_read_version().await.map(Seen::Number),
            Call::Ask(Asked::Size) => tx.get_approximate_size().await.map(Seen::Number),
            Call::Ask(Asked::StoredBytes) => {
                tx.get_estimated_range_size_bytes(b"api/", b"api0").await.map(Seen::Number)
            }
            Call::Ask(Asked::SplitPoints) => {
                tx.get_range_split_points(b"api/", b"api0", 500).await.map(Seen::Keys)
            }
            write => {
                if matches!(write, Call::SetByHand(..)) || planted == Some(Planted::UncheckedWrites) {
                    tx.set_option(TransactionOption::NextWriteNoWriteConflictRange)?;
                }
                let end_stamped = match write {
                    Call::StampValue(at, data) if planted == Some(Planted::StampAtEnd) => {
                        Some((at, data.bytes()))
                    }
                    _ => None,
                };
                if let Some((at, mut value)) = end_stamped {
                    let offset = value.len() as u32;
                    value.extend([0; 10].into_iter().chain(offset.to_le_bytes()));
                    tx.atomic_op(layout.key(client, *at), &value, MutationType::SetVersionstampedValue);
                    seen.push(Seen::Nothing);
                    continue;
                }
                match layout.write(client, write) {
                    Some(Write::Set(key, value)) => tx.set(&key, &value),
                    Some(Write::Clear(begin, end)) => tx.clear_range(&begin, &end),
                    Some(Write::Atomic(op, key, operand)) => tx.atomic_op(&key, &operand, op),
                    None => {}
                }
                if let Call::SetByHand(at, _) = write {
                    tx.add_conflict_key(layout.key(client, *at), ConflictRangeType::Write)?;
                }
                Ok(Seen::Nothing)
            }
        };
        seen.push(match answer {
            Err(Error::ACCESSED_UNREADABLE) => Seen::Unreadable,
            other => other?,
        });
    }
    Ok(seen)
}

fn rows(rows: Vec<KeyValue>, more: bool) -> Seen {
    Seen::Rows(rows.into_iter().map(|row| (row.key, row.value)).collect(), more)
}

/// Makes a transaction ready for its calls: uses it for something else before, and sets its options.
async fn prepare<D: Database>(
    db: &D,
    tx: &D::Transaction,
    shared: &Bytes,
    op: &Op,
    attempt: u32,
    planted: Option<Planted>,
) -> Result<()> {
    let waste = |tx: D::Transaction| async move {
        tx.get(shared, Isolation::Serializable).await?;
        tx.set(shared, b"wasted");
        Ok::<_, Error>(())
    };
    match op.before {
        Before::Nothing => {}
        Before::Reset | Before::Cancel => {
            waste(tx.clone()).await?;
            if op.before == Before::Cancel {
                tx.cancel();
            }
            if planted != Some(Planted::ResetForgotten) || op.before == Before::Cancel {
                tx.reset();
            }
        }
        Before::Drop => waste(db.create_transaction()?).await?,
        Before::Lend => {
            let lender = db.create_transaction()?;
            tx.set_read_version(lender.get_read_version().await?);
        }
    }
    let disable = !op.read_your_writes && (planted != Some(Planted::OptionSetOnce) || attempt == 0);
    // It would come too late behind a use that was not reset.
    let used = planted == Some(Planted::ResetForgotten) && op.before == Before::Reset;
    if (disable || planted == Some(Planted::OwnWritesUnseen)) && !used {
        tx.set_option(TransactionOption::ReadYourWritesDisable)?;
    }
    if !op.snapshot_ryw && planted != Some(Planted::SnapshotOwnWrites) {
        tx.set_option(TransactionOption::SnapshotRywDisable)?;
    }
    for option in op.options.iter().flat_map(|choice| choice.options()) {
        tx.set_option(option)?;
    }
    Ok(())
}

/// Replays an operation over `space`: its writes, and the first call whose answer is not the model's.
fn replay(
    space: &Space,
    layout: &Layout,
    client: usize,
    op: &Op,
    seen: Option<&[Seen]>,
    read_version: Option<i64>,
) -> (Vec<Write>, Result<(), String>) {
    let mut view = View::new(space, op.read_your_writes).snapshots(op.snapshot_ryw);
    let mut verdict = Ok(());
    if let Some(seen) = seen
        && seen.len() != op.calls.len()
    {
        verdict = Err(format!("{} calls gave {} answers", op.calls.len(), seen.len()));
    }
    for (i, call) in op.calls.iter().enumerate() {
        let answer = seen.and_then(|seen| seen.get(i)).filter(|_| verdict.is_ok());
        if let Some(answer) = answer
            && let Err(expected) = agrees(&view, layout, client, call, answer, read_version)
        {
            verdict =
                Err(format!("call {i}, {call:?}, answered {answer:?} where the model answers {expected}"));
        }
        if let Some(write) = layout.write(client, call) {
            view.write(write);
        }
    }
    (view.into_writes(), verdict)
}

/// Whether the model agrees with an answer; what it says instead if not.
fn agrees(
    view: &View,
    layout: &Layout,
    client: usize,
    call: &Call,
    seen: &Seen,
    read_version: Option<i64>,
) -> Result<(), String> {
    if let Call::Ask(asked) = call {
        return agrees_on(view, *asked, seen, read_version);
    }
    let snapshot;
    let view = match call {
        Call::Get(_, Isolation::Snapshot)
        | Call::GetRange(_, Isolation::Snapshot)
        | Call::GetStamped(_, Isolation::Snapshot) => {
            snapshot = view.at_snapshot();
            &snapshot
        }
        _ => view,
    };
    let all = |range: &RangeOption| -> Vec<(Bytes, Bytes)> {
        view.get_range(range).into_iter().map(|row| (row.key, row.value)).collect()
    };
    let expected = match call {
        Call::Get(at, isolation) => {
            let key = layout.point(client, *at, *isolation);
            if view.must_not_read(key) { Seen::Unreadable } else { Seen::Value(view.get(key)) }
        }
        Call::GetKey(selector) => {
            // Even the plain selector of a get_key is resolved; that of a range only bounds it.
            let mut selector = layout.selector(client, *selector);
            let expected = view.get_key(&selector);
            selector.or_equal = true;
            if !view.resolves_surely(&selector) {
                return Ok(());
            }
            Seen::Key(expected)
        }
        Call::GetRange(range, isolation) => {
            let option = layout.range(client, *range, *isolation);
            if !view.resolves_surely(&option.begin) || !view.resolves_surely(&option.end) {
                return Ok(());
            }
            let expected = all(&layout.range(client, *range, *isolation));
            if let Seen::Rows(rows, true) = seen
                && range.one_batch
                && expected.starts_with(rows)
            {
                return Ok(());
            }
            Seen::Rows(expected, false)
        }
        Call::GetStamped(own, isolation) => {
            let (begin, end) = layout.stamped(client, *own || *isolation == Isolation::Snapshot);
            Seen::Rows(all(&RangeOption::new(begin, end)), false)
        }
        _ => Seen::Nothing,
    };
    // Where exactly an unreadable range ends is not modelled, but without a stamp there is none.
    let excused = *seen == Seen::Unreadable && view.may_be_unreadable() && expected != Seen::Nothing;
    if *seen == expected || excused { Ok(()) } else { Err(format!("{expected:?}")) }
}

/// Whether what a transaction was asked of itself can be so.
fn agrees_on(view: &View, asked: Asked, seen: &Seen, read_version: Option<i64>) -> Result<(), String> {
    let is_possible = match (asked, seen) {
        (Asked::ReadVersion, Seen::Number(version)) => read_version.is_none_or(|read| read == *version),
        (Asked::Size, Seen::Number(bytes)) => *bytes >= view.written() as i64,
        (Asked::StoredBytes, Seen::Number(bytes)) => *bytes >= 0,
        (Asked::SplitPoints, Seen::Keys(keys)) => {
            let ends = (keys.first().map(|key| &key[..]), keys.last().map(|key| &key[..]));
            ends == (Some(b"api/"), Some(b"api0")) && keys.is_sorted_by(|a, b| a < b)
        }
        _ => false,
    };
    match is_possible {
        true => Ok(()),
        false => {
            Err(format!("that the read version is {read_version:?}, and {} bytes written", view.written()))
        }
    }
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Api {
    clients: u8,
    operations: Numbers<usize>,
    /// At most so many calls a transaction.
    calls: usize,
    /// How likely each kind of call is, in the order of [`Call`]; some seeds leave kinds out.
    weights: [u32; 14],
    /// How likely a call is about the shared region, of 100.
    shared: u32,
    /// How many of the numbered keys calls are about: few are hot.
    keys: u8,
    /// At most how often a value's bytes are repeated: large values make ranges come in batches.
    repeat: u16,
    /// Whether some transactions have limits that end them early.
    limited: bool,
    /// The timeout that clients set on their database, milliseconds.
    timeout: Option<i32>,
    planted: Option<Planted>,
}

/// What an operation answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What each call answered, in the attempt that committed.
    pub seen: Vec<Seen>,
    /// The versionstamp that attempt was told, if it was.
    pub stamp: Option<[u8; 10]>,
}

/// An attempt: what its calls answered, and its versionstamp once it has committed.
type Try = (Vec<Seen>, BoxFuture<'static, Result<[u8; 10]>>);

/// What a client holds.
pub struct Client<D: Database> {
    session: Session<D>,
    client: usize,
    layout: Arc<Layout>,
    /// What each attempt of the last operation saw; the operation record says which one counts.
    attempts: Arc<Mutex<Vec<Try>>>,
}

/// The model, and the names of the keys.
pub struct Model {
    space: Space,
    layout: Layout,
}

impl Api {
    fn call(&self) -> BoxedStrategy<Call> {
        use proptest::prelude::any;
        let shared = self.shared;
        let spot = || (0..100u32, 0..self.keys).prop_map(move |(p, n)| Spot { own: p >= shared, n });
        let region = || (0..100u32).prop_map(move |p| p >= shared);
        let selector = || (spot(), any::<bool>(), -REACH..=REACH).prop_map(|(s, e, o)| Selector(s, e, o));
        let plain = || spot().prop_map(|s| Selector(s, false, 1));
        let bound = || prop_oneof![2 => plain(), 1 => selector()];
        let isolation = || prop_oneof![3 => Just(Isolation::Serializable), 1 => Just(Isolation::Snapshot)];
        let repeat = self.repeat;
        let data = || {
            let repeat = prop_oneof![3 => Just(1u16), 1 => 1..repeat + 1];
            (vec(any::<u8>(), 0..9), repeat).prop_map(|(bytes, repeat)| Data(bytes, repeat))
        };
        let mode = prop::sample::select(vec![
            StreamingMode::WantAll,
            StreamingMode::Iterator,
            StreamingMode::Exact,
            StreamingMode::Small,
            StreamingMode::Medium,
            StreamingMode::Large,
            StreamingMode::Serial,
        ]);
        let limit = prop_oneof![Just(0u8), 1..20u8];
        let range = (bound(), bound(), limit, any::<bool>(), mode, prop::bool::weighted(0.3)).prop_map(
            |(begin, end, limit, reverse, mode, one_batch)| Range {
                begin,
                end,
                limit,
                reverse,
                mode,
                one_batch,
            },
        );
        let plain_ops: Vec<MutationType> = MutationType::ALL
            .iter()
            .copied()
            .filter(|m| {
                !matches!(m, MutationType::SetVersionstampedKey | MutationType::SetVersionstampedValue)
            })
            .collect();
        let kind = prop_oneof![Just(ConflictRangeType::Read), Just(ConflictRangeType::Write)];
        let w = self.weights;
        let mut kinds: Vec<(u32, BoxedStrategy<Call>)> = vec![
            (w[0], (spot(), isolation()).prop_map(|(s, i)| Call::Get(s, i)).boxed()),
            (w[1], selector().prop_map(Call::GetKey).boxed()),
            (w[2], (range, isolation()).prop_map(|(r, i)| Call::GetRange(r, i)).boxed()),
            (w[3], (region(), isolation()).prop_map(|(own, i)| Call::GetStamped(own, i)).boxed()),
            (w[4], (spot(), data()).prop_map(|(s, d)| Call::Set(s, d)).boxed()),
            (w[5], spot().prop_map(Call::Clear).boxed()),
            (w[6], (spot(), 0..KEYS).prop_map(|(b, e)| Call::ClearRange(b, e)).boxed()),
            (w[7], region().prop_map(Call::ClearStamped).boxed()),
            (
                w[8],
                (prop::sample::select(plain_ops), spot(), data())
                    .prop_map(|(m, s, d)| Call::Atomic(m, s, d))
                    .boxed(),
            ),
            (w[9], (region(), data()).prop_map(|(own, d)| Call::StampKey(own, d)).boxed()),
            (w[10], (spot(), data()).prop_map(|(s, d)| Call::StampValue(s, d)).boxed()),
            (w[11], (spot(), 0..KEYS, kind).prop_map(|(b, e, k)| Call::Conflict(b, e, k)).boxed()),
            (w[12], (spot(), data()).prop_map(|(s, d)| Call::SetByHand(s, d)).boxed()),
            (w[13], prop::sample::select(&ASKED[..]).prop_map(Call::Ask).boxed()),
        ];
        kinds.retain(|(weight, _)| *weight > 0);
        Union::new_weighted(kinds).boxed()
    }
}

impl Api {
    /// The operation's transaction, exactly once if it writes.
    async fn transact<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Outcome<Answer> {
        let Client { session, client, layout, attempts } = client;
        attempts.lock().clear();
        let (client, layout, attempts, planted) = (*client, &**layout, &**attempts, self.planted);
        let db = session.database().clone();
        // The calls, with the answers kept apart for each attempt: the number of this one.
        let calls = |tx: D::Transaction| async move {
            let seen = run_calls(&tx, layout, client, op, planted).await?;
            let mut attempts = attempts.lock();
            attempts.push((seen, tx.get_versionstamp()));
            Ok::<u64, Error>(attempts.len() as u64 - 1)
        };
        let shared = layout.key(client, Spot { own: false, n: 0 });
        let (calls, handle) = (&calls, &db);
        if op.reads_only() || planted == Some(Planted::NoOpRecord) {
            let ran = db.run(|tx, attempt| async move {
                prepare(handle, &tx, shared, op, attempt.number, planted).await?;
                calls(tx).await
            });
            return match ran.await {
                Ok(n) => self.answer(&mut attempts.lock(), n),
                Err(e) if e.maybe_committed && !op.reads_only() => Outcome::Unknown(e.error),
                Err(e) => Outcome::GaveUp(e.error),
            };
        }
        let id = match session.begin().await {
            Ok(id) => id,
            Err(e) => return e.fdb().map_or_else(|| Outcome::Violated(e.to_string()), Outcome::GaveUp),
        };
        let slots = &session.slots().clone();
        let ran = db.run(|tx, attempt| async move {
            prepare(handle, &tx, shared, op, attempt.number, planted).await?;
            match once::check(&tx, slots, id).await? {
                Check::Done(n) => Ok(Landing::ready(n)),
                Check::New(permit) => once::record(&tx, permit, calls(tx.clone()).await?),
            }
        });
        let ran = ran.await;
        match session.conclude(id, ran).await {
            once::Outcome::Applied(n) => self.answer(&mut attempts.lock(), n),
            once::Outcome::Refused(e) => {
                e.fdb().map_or_else(|| Outcome::Violated(e.to_string()), Outcome::GaveUp)
            }
            once::Outcome::Unknown(_) => Outcome::Unknown(Error::COMMIT_UNKNOWN_RESULT),
        }
    }
}

/// How long a key is watched, at most.
const WATCHED: Duration = Duration::from_millis(30);

/// Watches a key for a moment. A watch may fire for nothing, late, or fail; it must not hang a client
/// that does not wait for it, nor disturb what comes after.
async fn watch<D: Database>(db: &D, key: &Bytes) {
    let armed = db.run(|tx, _| async move { Ok::<_, Error>(tx.watch(key)) }).await;
    if let Ok(changed) = armed {
        let fired = matches!(select(changed, db.env().sleep(WATCHED)).await, Either::Left((Ok(()), _)));
        sometimes!(fired, "api: a watch fires");
    }
}

impl Workload for Api {
    type Op = Op;
    type Answer = Answer;
    type Session<D: Database> = Client<D>;
    type Model = Model;

    const NAME: &'static str = "api";
    const ABOUT: &'static str = "random transactions answer as an in-memory model does";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &["api: a watch fires"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Api {
        // Reads and sets are always there; every other kind is left out of some seeds, common in others.
        let mut weights = [8, 2, 6, 1, 6, 2, 1, 1, 4, 1, 1, 1, 1, 1];
        for kind in [1, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13] {
            weights[kind] *= *rng.pick(&[0, 1, 1, 3]);
        }
        let most = rng.range(8..32) as usize;
        Api {
            clients: rng.range(1..7) as u8,
            operations: most / 2..most,
            calls: rng.range(2..10) as usize,
            weights,
            shared: *rng.pick(&[20, 50, 90]),
            keys: *rng.pick(&[2, 5, KEYS]),
            repeat: *rng.pick(&[1, 20, 300]),
            limited: rng.chance(0.2),
            timeout: sessions::draw_timeout(rng),
            planted: bug.and_then(Planted::named),
        }
    }

    fn clients(&self) -> usize {
        self.clients.into()
    }

    fn keys(&self) -> Vec<Bytes> {
        Layout::new(self.clients()).regions.into_iter().flatten().step_by(4).collect()
    }

    fn operations(&self, _: usize) -> BoxedStrategy<Vec<Op>> {
        let calls = vec(self.call(), 1..self.calls + 1);
        let (keys, shared) = (self.keys, self.shared);
        let spot = (0..100u32, 0..keys).prop_map(move |(p, n)| Spot { own: p >= shared, n });
        let watch = prop::option::weighted(0.15, spot);
        use Before::{Cancel, Drop, Lend, Reset};
        let before = prop_oneof![
            12 => Just(Before::Nothing),
            3 => prop::sample::select(&[Reset, Cancel, Drop, Lend][..]),
        ];
        let limits = prop_oneof![
            (0..4u8).prop_map(Choice::RetryLimit),
            prop::sample::select(&[10, 50, 1_000][..]).prop_map(Choice::Timeout),
            prop::sample::select(&[32, 200, 2_000][..]).prop_map(Choice::Size),
        ];
        let choice = prop_oneof![
            20 => prop::sample::select(&HARMLESS[..]),
            if self.limited { 6 } else { 0 } => limits,
        ];
        let ryw = (prop::bool::weighted(0.85), prop::bool::weighted(0.85));
        let op = (ryw, before, vec(choice, 0..3), calls, watch);
        let op = op.prop_map(|((read_your_writes, snapshot_ryw), before, options, calls, watch)| Op {
            read_your_writes,
            snapshot_ryw,
            before,
            options,
            calls,
            watch,
        });
        vec(op, self.operations.clone()).boxed()
    }

    async fn setup<D: Database>(&self, db: &D) -> Result<()> {
        let initial = &Layout::initial();
        let filled = db.run(|tx, _| async move {
            initial.iter().for_each(|(key, value)| tx.set(key, value));
            Ok::<_, Error>(())
        });
        filled.await.map_err(|e| e.error)
    }

    async fn open<D: Database>(&self, db: &D, client: usize) -> Result<Client<D>> {
        let session = sessions::open(db, client, self.timeout).await?;
        let layout = Arc::new(Layout::new(self.clients()));
        Ok(Client { session, client, layout, attempts: Arc::default() })
    }

    async fn apply<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Outcome<Answer> {
        let outcome = self.transact(client, op).await;
        // Not after a transaction that only reads: its place is where one of its transactions read.
        if let (Outcome::Answered(_), Some(at), false) = (&outcome, op.watch, op.reads_only()) {
            let key = client.layout.key(client.client, at).clone();
            watch(client.session.database(), &key).await;
        }
        outcome
    }

    async fn recall<D: Database>(&self, client: &mut Client<D>) {
        sessions::read_dropped(&mut client.session, self.timeout).await;
    }

    async fn resolve<D: Database>(&self, client: &mut Client<D>, _: &Op, error: Error) -> Outcome<Answer> {
        let Client { session, attempts, .. } = client;
        let ask = async |session: &mut Session<D>, pending| {
            let fate = session.resolve::<u64>(pending).await?;
            Ok(fate.map(|n| self.answer(&mut attempts.lock(), n)))
        };
        sessions::settle(session, self.timeout, error, ask).await
    }

    fn model(&self) -> Model {
        Model { space: Layout::initial(), layout: Layout::new(self.clients()) }
    }

    fn step(&self, Model { space, layout }: &mut Model, step: &Step<'_, Self>) -> Result<(), String> {
        let seen = step.answer.map(|answer| answer.seen.as_slice());
        let (writes, verdict) = replay(space, layout, step.client, step.op, seen, step.read_version);
        if let Some(stamp) = &step.stamp {
            make_permanent(space, &writes, stamp);
        }
        verdict?;
        match step.answer.and_then(|answer| answer.stamp) {
            told @ Some(_) if told != step.stamp => {
                Err(format!("was told the versionstamp {told:?}, but has {:?}", step.stamp))
            }
            _ => Ok(()),
        }
    }

    async fn audit<D: Database>(&self, tx: &D::Transaction) -> Result<Result<(), String>> {
        // The only thing true at every version: nobody has touched the margins.
        let first = tx.get_key(&KeySelector::first_greater_or_equal("api/"), Isolation::Snapshot).await?;
        let last = tx.get_key(&KeySelector::last_less_than("api0"), Isolation::Snapshot).await?;
        let margins = first == "api/!0" && last == "api/~7";
        Ok(if margins {
            Ok(())
        } else {
            Err(format!("the keyspace begins at {first:?} and ends at {last:?}"))
        })
    }

    async fn check<D: Database>(&self, db: &D, Model { space, .. }: &Model) -> Result<Result<(), String>> {
        let read =
            db.run(|tx, _| async move { tx.get_range_all(Layout::whole(), Isolation::Serializable).await });
        let found: Space = read.await.map_err(|e| e.error)?.into_iter().map(|r| (r.key, r.value)).collect();
        let differs = found.keys().chain(space.keys()).find(|key| found.get(*key) != space.get(*key));
        Ok(match differs {
            Some(key) => Err(format!(
                "{key:?} holds {:?}; the committed operations leave {:?}",
                found.get(key),
                space.get(key)
            )),
            None => Ok(()),
        })
    }
}

impl Api {
    /// The answer of the attempt that counts.
    fn answer(&self, attempts: &mut [Try], committed: u64) -> Outcome<Answer> {
        let all = (self.planted == Some(Planted::CapturedAnswers))
            .then(|| attempts.iter().flat_map(|t| t.0.clone()).collect());
        let Some((seen, stamp)) = attempts.get_mut(committed as usize) else {
            return Outcome::Violated(format!("attempt {committed} is recorded, but was never made"));
        };
        // There at once if this attempt was told that it committed, and else never.
        let stamp = stamp.now_or_never().and_then(Result::ok);
        Outcome::Answered(Answer { seen: all.unwrap_or_else(|| std::mem::take(seen)), stamp })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable::plan::{Demands, Plan};
    use shaketable_sim::seed::Seed;

    fn own(n: u8) -> Spot {
        Spot { own: true, n }
    }

    fn data(bytes: &[u8]) -> Data {
        Data(bytes.to_vec(), 1)
    }

    /// A transaction of no calls.
    fn plain() -> Op {
        Op {
            read_your_writes: true,
            snapshot_ryw: true,
            before: Before::Nothing,
            options: Vec::new(),
            calls: Vec::new(),
            watch: None,
        }
    }

    #[test]
    fn snapshots_see_own_writes_only_if_they_shall() {
        let calls = vec![Call::Set(own(1), data(b"x")), Call::Get(own(1), Isolation::Snapshot)];
        let seen = |value: Option<&'static str>| [Seen::Nothing, Seen::Value(value.map(Bytes::from))];
        let op = Op { calls, ..plain() };
        assert_eq!(verdict(&op, &seen(Some("x"))), Ok(()));
        assert!(verdict(&op, &seen(None)).is_err());
        let op = Op { snapshot_ryw: false, ..op };
        assert_eq!(verdict(&op, &seen(None)), Ok(()));
        assert!(verdict(&op, &seen(Some("x"))).is_err());
    }

    #[test]
    fn what_a_transaction_says_of_itself_is_judged() {
        let key = |bytes: &'static [u8]| Bytes::from_static(bytes);
        for (asked, right, wrong) in [
            (Asked::ReadVersion, Seen::Number(7), Seen::Number(8)),
            (Asked::Size, Seen::Number(12), Seen::Number(9)),
            (Asked::StoredBytes, Seen::Number(0), Seen::Number(-1)),
            (
                Asked::SplitPoints,
                Seen::Keys(vec![key(b"api/"), key(b"api/01"), key(b"api0")]),
                Seen::Keys(vec![key(b"api/"), key(b"api/01")]),
            ),
        ] {
            let op = Op { calls: vec![Call::Set(own(1), data(b"xy")), Call::Ask(asked)], ..plain() };
            assert_eq!(verdict(&op, &[Seen::Nothing, right]), Ok(()), "{asked:?}");
            assert!(verdict(&op, &[Seen::Nothing, wrong]).is_err(), "{asked:?}");
        }
    }

    fn verdict(op: &Op, seen: &[Seen]) -> Result<(), String> {
        replay(&Layout::initial(), &Layout::new(2), 1, op, Some(seen), Some(7)).1
    }

    #[test]
    fn plans_are_drawn_and_survive_being_saved() {
        let mut kinds = std::collections::BTreeSet::new();
        for seed in 0..100 {
            let plan: Plan<Api> = Plan::draw(Seed(seed), &Demands::default());
            for call in plan.operations.iter().flatten().flat_map(|op| &op.calls) {
                let text = serde_json::to_string(call).unwrap();
                assert_eq!(serde_json::from_str::<Call>(&text).unwrap(), *call);
                kinds.insert(text.split('"').nth(1).unwrap().to_owned());
            }
        }
        assert_eq!(kinds.len(), 14, "{kinds:?}");
    }

    #[test]
    fn no_selector_leaves_the_margins() {
        let layout = Layout::new(9);
        let space = Layout::initial();
        let view = View::new(&space, true);
        for n in 0..KEYS {
            for (or_equal, offset) in [(false, -REACH), (true, -REACH), (false, REACH), (true, REACH)] {
                for (client, own) in [(0, false), (8, true)] {
                    let key =
                        view.get_key(&layout.selector(client, Selector(Spot { own, n }, or_equal, offset)));
                    assert!(space.contains_key(&key), "{key:?}");
                }
            }
        }
    }

    #[test]
    fn wrong_answers_are_told_from_right_ones() {
        use Isolation::Serializable;
        let op = Op {
            calls: vec![
                Call::Set(own(1), data(b"x")),
                Call::Get(own(1), Serializable),
                Call::StampValue(own(2), data(b"")),
                Call::Get(own(2), Serializable),
                Call::GetKey(Selector(own(0), false, 1)),
            ],
            ..plain()
        };
        let key = Bytes::from("api/02/01");
        let right = [
            Seen::Nothing,
            Seen::Value(Some(Bytes::from("x"))),
            Seen::Nothing,
            Seen::Unreadable,
            Seen::Key(key.clone()),
        ];
        assert_eq!(verdict(&op, &right), Ok(()));
        let mut unreadable_walk = right.clone();
        unreadable_walk[4] = Seen::Unreadable;
        assert_eq!(verdict(&op, &unreadable_walk), Ok(()));
        for (i, wrong) in [
            (1, Seen::Value(None)),
            (1, Seen::Unreadable),
            (3, Seen::Value(None)),
            (4, Seen::Key(Bytes::from("api/02/02"))),
            (0, Seen::Unreadable),
        ] {
            let mut seen = right.clone();
            seen[i] = wrong;
            assert!(verdict(&op, &seen).is_err_and(|why| why.contains(&format!("call {i}"))), "{i}");
        }
        assert!(verdict(&op, &right[..4]).is_err());
        let blind = Op { read_your_writes: false, ..op };
        assert!(verdict(&blind, &right).is_err());
    }

    #[test]
    fn one_batch_may_be_short_but_not_wrong() {
        let range = Range {
            begin: Selector(own(0), false, 1),
            end: Selector(own(9), false, 1),
            limit: 0,
            reverse: true,
            mode: StreamingMode::Small,
            one_batch: true,
        };
        let calls = vec![
            Call::Set(own(1), data(b"1")),
            Call::Set(own(2), data(b"2")),
            Call::GetRange(range, Isolation::Snapshot),
        ];
        let op = Op { calls, ..plain() };
        let row = |n: u8| (Bytes::from(format!("api/02/0{n}")), Bytes::from(n.to_string()));
        let verdict = |rows, more| verdict(&op, &[Seen::Nothing, Seen::Nothing, Seen::Rows(rows, more)]);
        assert_eq!(verdict(vec![row(2), row(1)], false), Ok(()));
        assert_eq!(verdict(vec![row(2)], true), Ok(()));
        assert_eq!(verdict(vec![], true), Ok(()));
        assert!(verdict(vec![row(2)], false).is_err());
        assert!(verdict(vec![row(1)], true).is_err());
    }
}
