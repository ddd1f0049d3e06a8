//! Transactions of random calls and their answers as plain data, and how they are drawn.

use super::{
    Api,
    layout::{KEYS, REACH},
};
use bytes::Bytes;
use proptest::{collection::vec, prelude::*, strategy::Union};
use serde::{Deserialize, Serialize};
use shaketable_tx::{ConflictRangeType, Isolation, MutationType, StreamingMode, TransactionOption};

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Op {
    /// Whether its reads see its own writes.
    pub read_your_writes: bool,
    /// Whether its snapshot reads see its own writes.
    pub snapshot_ryw: bool,
    /// How its handle is used before.
    pub before: Before,
    /// Its options, in the order in which they are set.
    pub options: Vec<Choice>,
    /// The calls, in order.
    pub calls: Vec<Call>,
    /// A key to watch for a short time afterwards, if the transaction writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Spot>,
    /// How a watch is woken afterwards, if the transaction writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<Wake>,
}

/// How a client wakes a watch of its own: it must fire, or fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wake {
    /// The write.
    pub by: Waker,
    /// Whether it is made before the watch is armed; otherwise so much later, in milliseconds.
    pub after: Option<u16>,
}

/// A write that wakes a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Waker {
    /// A set.
    Set,
    /// A clear of the key.
    Clear,
    /// A clear of a range around it.
    ClearRange,
    /// An atomic operation with this operand.
    Atomic(MutationType, u8),
    /// A versionstamped value.
    Stamp,
}

/// Each write changes the value 1, also if it is made twice.
const WAKERS: [Waker; 14] = [
    Waker::Set,
    Waker::Clear,
    Waker::ClearRange,
    Waker::Stamp,
    Waker::Atomic(MutationType::Add, 1),
    Waker::Atomic(MutationType::BitAnd, 0),
    Waker::Atomic(MutationType::BitOr, 2),
    Waker::Atomic(MutationType::AppendIfFits, 1),
    Waker::Atomic(MutationType::Max, 9),
    Waker::Atomic(MutationType::Min, 0),
    Waker::Atomic(MutationType::ByteMin, 0),
    Waker::Atomic(MutationType::ByteMax, 9),
    Waker::Atomic(MutationType::CompareAndClear, 1),
    Waker::ClearRange,
];

impl Op {
    /// Whether it writes nothing, so that it commits at its read version.
    pub(super) fn reads_only(&self) -> bool {
        self.calls.iter().all(|call| {
            matches!(
                call,
                Call::Get(..)
                    | Call::GetKey(..)
                    | Call::GetRange(..)
                    | Call::GetStamped(..)
                    | Call::Ask(_)
                    | Call::Pause(_)
            ) || matches!(call, Call::Conflict(_, _, ConflictRangeType::Read))
        })
    }
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// Reads a key.
    Get(Spot, Isolation),
    /// Resolves a selector, always serializably because it may leave the region.
    GetKey(Selector),
    /// Reads a range.
    GetRange(Range, Isolation),
    /// Reads all versionstamped keys of the client's own region, or of the shared one.
    GetStamped(bool, Isolation),
    /// Sets a key.
    Set(Spot, Data),
    /// Clears a key.
    Clear(Spot),
    /// Clears from a key to another key of its region; does nothing if the two are in reverse order.
    ClearRange(Spot, u8),
    /// Clears all versionstamped keys of the client's own region, or of the shared one.
    ClearStamped(bool),
    /// Applies an atomic operation that is not versionstamped.
    Atomic(MutationType, Spot, Data),
    /// Sets a versionstamped key in the client's own region, or in the shared one. The first byte of the
    /// value follows the stamp in the key.
    StampKey(bool, Data),
    /// Sets a versionstamped value, with the stamp in the middle of some bytes.
    StampValue(Spot, Data),
    /// Adds a conflict range from a key to another key of its region, or of one key if they are the same;
    /// does nothing if the two are in reverse order.
    Conflict(Spot, u8, ConflictRangeType),
    /// Sets a key without a write conflict range, and adds the conflict range separately.
    SetByHand(Spot, Data),
    /// Requests information that only bounds are known of: see [`Asked`].
    Ask(Asked),
    /// Waits, in milliseconds, in the first attempt.
    Pause(u16),
}

/// A key, by region and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spot {
    /// Whether it is in the client's own region; otherwise it is in the shared one.
    pub own: bool,
    /// Which of the region's keys.
    pub n: u8,
}

/// A selector: its base, `or_equal` and its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selector(pub Spot, pub bool, pub i32);

/// A value: some bytes, and how often they are repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data(pub Vec<u8>, pub u16);

impl Data {
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.repeat(self.1.into())
    }
}

/// A range read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// Where it begins.
    pub begin: Selector,
    /// Where it ends.
    pub end: Selector,
    /// The maximum number of rows; 0 is unlimited.
    pub limit: u8,
    /// Whether it reads in descending order.
    pub reverse: bool,
    /// The streaming mode.
    pub mode: StreamingMode,
    /// Whether it reads one batch only, instead of all rows.
    pub one_batch: bool,
}

/// Information about a transaction and about the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Asked {
    /// The read version: the version at which its reads are judged.
    ReadVersion,
    /// Its size so far, which is at least the size of the keys and values that it has written.
    Size,
    /// An estimate of the bytes stored in the whole keyspace, which is not negative.
    StoredBytes,
    /// Points that split the whole keyspace into pieces: both ends, and ascending keys between them.
    SplitPoints,
}

/// How a transaction's handle is used before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Before {
    /// Not at all.
    #[default]
    Nothing,
    /// It reads and writes, and is then reset.
    Reset,
    /// It reads and writes, and is then cancelled and reset.
    Cancel,
    /// Another transaction reads and writes, and is then dropped.
    Drop,
    /// Another transaction gets the read version for it.
    Lend,
}

/// An option of a transaction. Only the last three have a visible effect: they end the transaction early.
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
    /// The maximum backoff, in milliseconds.
    MaxDelay(u16),
    /// A size limit that no transaction of the workload exceeds.
    LargestSize,
    /// Snapshot reads are set to ignore the transaction's own writes, and then to see them again.
    SnapshotRywTwice,
    /// The maximum number of retries.
    RetryLimit(u8),
    /// A timeout, in milliseconds.
    Timeout(u16),
    /// A size limit in bytes, which some transactions exceed.
    Size(u16),
}

impl Choice {
    pub(super) fn options(self) -> Vec<TransactionOption> {
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

/// What one call returned.
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
    /// Rows, and whether there may be more after this batch.
    Rows(Vec<(Bytes, Bytes)>, bool),
    /// Refused with error 1036, because the range contains a versionstamped write of the transaction.
    Unreadable,
}

/// What an operation returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What each call returned, in the attempt that committed.
    pub seen: Vec<Seen>,
    /// The versionstamp, if the attempt that committed received it.
    pub stamp: Option<[u8; 10]>,
}

/// The information that is requested.
const ASKED: [Asked; 4] = [Asked::ReadVersion, Asked::Size, Asked::StoredBytes, Asked::SplitPoints];

/// The options without a visible effect.
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

/// The pauses within transactions, milliseconds. The longest exceeds a transaction's life.
const PAUSES: [u16; 5] = [1, 5, 20, 300, 5_500];

/// How many pauses of a second or more a client makes: with many of them it would be stuck after the faults.
const LONG_PAUSES: usize = 4;

/// Makes all long pauses but the first ones short.
fn with_few_long_pauses(mut operations: Vec<Op>) -> Vec<Op> {
    let calls = operations.iter_mut().flat_map(|op| &mut op.calls);
    let pauses = calls.filter_map(|call| match call {
        Call::Pause(milliseconds) if *milliseconds >= 1_000 => Some(milliseconds),
        _ => None,
    });
    pauses.skip(LONG_PAUSES).for_each(|milliseconds| *milliseconds = 300);
    operations
}

/// The atomic operations that are not versionstamped.
fn plain_operations() -> Vec<MutationType> {
    let is_stamped = |m: &MutationType| {
        matches!(m, MutationType::SetVersionstampedKey | MutationType::SetVersionstampedValue)
    };
    MutationType::ALL.iter().copied().filter(|m| !is_stamped(m)).collect()
}

impl Api {
    /// Draws the operations of a client.
    pub(super) fn drawn(&self) -> BoxedStrategy<Vec<Op>> {
        let calls = vec((self.call(), self.again()), 1..self.calls + 1);
        let calls = calls.prop_map(|calls| {
            let each = calls.into_iter().flat_map(|(call, again)| {
                let again = match (&call, again) {
                    (Call::Atomic(op, spot, _), Some((other, data))) => {
                        Some(Call::Atomic(other.unwrap_or(*op), *spot, data))
                    }
                    _ => None,
                };
                std::iter::once(call).chain(again)
            });
            each.collect::<Vec<_>>()
        });
        let (keys, shared) = (self.keys, self.shared);
        let spot = (0..100u32, 0..keys).prop_map(move |(p, n)| Spot { own: p >= shared, n });
        let watch = prop::option::weighted(0.15, spot);
        let after = prop::sample::select(&[0, 3, 50, 300, 2_000, 6_000][..]);
        let after = prop_oneof![1 => Just(None), 2 => after.prop_map(Some)];
        let wake = (prop::sample::select(&WAKERS[..]), after).prop_map(|(by, after)| Wake { by, after });
        let wake = prop_oneof![
            7 => Just(None),
            if self.wakes { 3 } else { 0 } => wake.prop_map(Some),
        ];
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
        let op = (ryw, before, vec(choice, 0..3), calls, (watch, wake));
        let op = op.prop_map(|((read_your_writes, snapshot_ryw), before, options, calls, (watch, wake))| {
            Op { read_your_writes, snapshot_ryw, before, options, calls, watch, wake }
        });
        vec(op, self.operations.clone()).prop_map(with_few_long_pauses).boxed()
    }
}

impl Api {
    /// Whether an atomic operation is followed by another one on its key: the same one, or this one.
    fn again(&self) -> BoxedStrategy<Option<(Option<MutationType>, Data)>> {
        let other = prop::option::weighted(0.3, prop::sample::select(plain_operations()));
        prop::option::weighted(0.4, (other, self.data())).boxed()
    }

    /// Some bytes. Half of them are so few that values and operands are often equal.
    fn data(&self) -> BoxedStrategy<Data> {
        let few = vec(0..2u8, 0..3).prop_map(|bytes| Data(bytes, 1));
        let repeat = prop_oneof![3 => Just(1u16), 1 => 1..self.repeat + 1];
        let any = (vec(any::<u8>(), 0..9), repeat).prop_map(|(bytes, repeat)| Data(bytes, repeat));
        prop_oneof![few, any].boxed()
    }

    fn call(&self) -> BoxedStrategy<Call> {
        use proptest::prelude::any;
        let shared = self.shared;
        let spot = || (0..100u32, 0..self.keys).prop_map(move |(p, n)| Spot { own: p >= shared, n });
        let region = || (0..100u32).prop_map(move |p| p >= shared);
        let selector = || (spot(), any::<bool>(), -REACH..=REACH).prop_map(|(s, e, o)| Selector(s, e, o));
        let plain = || spot().prop_map(|s| Selector(s, false, 1));
        let bound = || prop_oneof![2 => plain(), 1 => selector()];
        let isolation = || prop_oneof![3 => Just(Isolation::Serializable), 1 => Just(Isolation::Snapshot)];
        let data = || self.data();
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
                (prop::sample::select(plain_operations()), spot(), data())
                    .prop_map(|(m, s, d)| Call::Atomic(m, s, d))
                    .boxed(),
            ),
            (w[9], (region(), data()).prop_map(|(own, d)| Call::StampKey(own, d)).boxed()),
            (w[10], (spot(), data()).prop_map(|(s, d)| Call::StampValue(s, d)).boxed()),
            (w[11], (spot(), 0..KEYS, kind).prop_map(|(b, e, k)| Call::Conflict(b, e, k)).boxed()),
            (w[12], (spot(), data()).prop_map(|(s, d)| Call::SetByHand(s, d)).boxed()),
            (w[13], prop::sample::select(&ASKED[..]).prop_map(Call::Ask).boxed()),
            (w[14], prop::sample::select(PAUSES.to_vec()).prop_map(Call::Pause).boxed()),
        ];
        kinds.retain(|(weight, _)| *weight > 0);
        Union::new_weighted(kinds).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_workloads_shared::drawn;

    #[test]
    fn calls_of_every_kind_are_drawn_and_survive_being_saved() {
        let mut kinds = std::collections::BTreeSet::new();
        for seed in 0..100 {
            let (_, operations) = drawn::<Api>(seed);
            for call in operations.iter().flatten().flat_map(|op| &op.calls) {
                let text = serde_json::to_string(call).unwrap();
                assert_eq!(serde_json::from_str::<Call>(&text).unwrap(), *call);
                kinds.insert(text.split('"').nth(1).unwrap().to_owned());
            }
        }
        assert_eq!(kinds.len(), 15, "{kinds:?}");
    }
}
