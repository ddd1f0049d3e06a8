//! What a sequence of calls is made of, and how it is drawn.
//!
//! Handles are named by numbers, which are taken modulo the number of living handles of the type: a freed
//! handle, or one of another type, cannot be named.

use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use std::ffi::c_int;

/// A living handle.
pub type Slot = u8;

/// Bytes as C passes them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Text {
    /// A null pointer with a length.
    Null(c_int),
    /// Readable bytes.
    Bytes(Vec<u8>),
    /// As many times the letter `k`: around the limits of keys and values.
    Long(usize),
}

/// A key selector.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Selector {
    pub key: Text,
    pub or_equal: c_int,
    pub offset: c_int,
}

/// What a range read has besides its selectors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Batch {
    pub limit: c_int,
    pub target_bytes: c_int,
    pub mode: c_int,
    pub iteration: c_int,
    pub snapshot: c_int,
    pub reverse: c_int,
}

/// A call on a transaction that returns nothing, or a code.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Act {
    Set(Text, Text),
    Clear(Text),
    ClearRange(Text, Text),
    Atomic(Text, Text, c_int),
    ConflictRange(Text, Text, c_int),
    Option(c_int, Text),
    ReadVersion(i64),
    CommittedVersion,
    Reset,
    Cancel,
}

/// A call on a transaction that returns a future.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Ask {
    Get(Text, c_int),
    GetKey(Selector, c_int),
    Range(Selector, Selector, Batch),
    Mapped(Selector, Selector, Text, Batch),
    ReadVersion,
    Commit,
    OnError(c_int),
    Watch(Text),
    Versionstamp,
    ApproximateSize,
    EstimatedSize(Text, Text),
    SplitPoints(Text, Text, i64),
    Addresses(Text),
    ThrottledDuration,
    TotalCost,
    /// A function of blob granules, by number.
    Blob(u8, Text, Text, i64),
}

/// What a callback does.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Callback {
    /// Counts.
    Count,
    /// Counts and looks at the future.
    Look,
    /// Counts and destroys the future, if no other callback is set.
    Destroy,
}

/// A call on a future.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Use {
    /// Waits if it ends by itself, and reads the result as what it is.
    Finish,
    /// Reads the result as some type; the pointers are null if so wanted.
    Read(u8, bool),
    IsReady,
    Error,
    Callback(Callback),
    Cancel,
    Release,
    Destroy,
}

/// One call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Step {
    /// Opens a database, from a connection string if there is one.
    Open(Option<String>),
    Close(Slot),
    DatabaseOption(Slot, c_int, Text),
    /// A function of a database that returns a future, by number.
    AskDatabase(Slot, u8, Text, Text, i64),
    OpenTenant(Slot, Text),
    CloseTenant(Slot),
    /// A function of a tenant that returns a future, by number.
    AskTenant(Slot, u8, Text, Text, i64),
    BeginInTenant(Slot),
    Begin(Slot),
    End(Slot),
    Act(Slot, Act),
    Ask(Slot, Ask),
    Future(Slot, Use),
    /// A function that returns a result, by number.
    BlobResult(Slot, u8, Text),
    NetworkOption(c_int, Text),
}

/// Two threads that share a transaction and a database; the second may have nothing to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    pub first: Vec<Step>,
    pub second: Vec<Step>,
}

fn text() -> impl Strategy<Value = Text> {
    let short = vec(prop_oneof![4 => b'a'..b'e', 1 => any::<u8>()], 0..4);
    prop_oneof![
        12 => short.clone().prop_map(Text::Bytes),
        1 => (-2..3_i32).prop_map(Text::Null),
        1 => short.clone().prop_map(|key| Text::Bytes([b"\xff\x02/", &key[..]].concat())),
        1 => prop_oneof![
            Just(&b"\xff\xff/transaction/read_conflict_range/"[..]),
            Just(&b"\xff\xff/transaction/write_conflict_range0"[..]),
            Just(&b"\xff\xff/status/json"[..]),
            Just(&b"\xff\xff/metrics/"[..]),
            Just(&b"\xff\xff\xff"[..]),
        ].prop_map(|key| Text::Bytes(key.to_vec())),
        1 => prop_oneof![9_990..10_010_usize, 99_995..100_010_usize].prop_map(Text::Long),
        // An offset at the end, as for versionstamps.
        1 => (short, 0..8_u8).prop_map(|(key, at)| {
            Text::Bytes([&key[..], &[b'.'; 10], &[at, 0, 0, 0]].concat())
        }),
    ]
}

/// A number at and beyond the limits of what a parameter takes.
fn number(usual: std::ops::Range<c_int>) -> impl Strategy<Value = c_int> {
    prop_oneof![20 => usual, 1 => Just(c_int::MIN), 1 => Just(c_int::MAX), 1 => any::<c_int>()]
}

fn size() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0..2_000_i64, 1 => Just(-1), 1 => Just(i64::MAX), 1 => any::<i64>()]
}

/// The value of an option: of the right length, or not.
fn value() -> impl Strategy<Value = Text> {
    prop_oneof![
        3 => (-1..40_i64).prop_map(|n| Text::Bytes(n.to_le_bytes().to_vec())),
        1 => any::<i64>().prop_map(|n| Text::Bytes(n.to_le_bytes().to_vec())),
        2 => Just(Text::Null(0)),
        2 => text(),
    ]
}

fn selector() -> impl Strategy<Value = Selector> {
    (text(), 0..3_i32, number(-3..4)).prop_map(|(key, or_equal, offset)| Selector { key, or_equal, offset })
}

fn batch() -> impl Strategy<Value = Batch> {
    (number(-2..5), number(-2..300), number(-3..6), number(-1..12), 0..2_i32, 0..2_i32).prop_map(
        |(limit, target_bytes, mode, iteration, snapshot, reverse)| Batch {
            limit,
            target_bytes,
            mode,
            iteration,
            snapshot,
            reverse,
        },
    )
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        10 => (text(), text()).prop_map(|(key, value)| Act::Set(key, value)),
        3 => text().prop_map(Act::Clear),
        3 => (text(), text()).prop_map(|(begin, end)| Act::ClearRange(begin, end)),
        5 => (text(), text(), number(0..25)).prop_map(|(key, operand, code)| Act::Atomic(key, operand, code)),
        2 => (text(), text(), number(0..3)).prop_map(|(begin, end, kind)| Act::ConflictRange(begin, end, kind)),
        2 => (option(), value()).prop_map(|(code, value)| Act::Option(code, value)),
        1 => size().prop_map(Act::ReadVersion),
        1 => Just(Act::CommittedVersion),
        2 => Just(Act::Reset),
        1 => Just(Act::Cancel),
    ]
}

/// Codes of transaction options, with others between them.
fn option() -> impl Strategy<Value = c_int> {
    prop_oneof![4 => number(0..60), 4 => 300..310_i32, 3 => 400..410_i32, 3 => 500..510_i32, 5 => 600..1200_i32]
}

fn error() -> impl Strategy<Value = c_int> {
    prop_oneof![
        6 => prop_oneof![Just(1007), Just(1009), Just(1020), Just(1021), Just(1037), Just(1038), Just(1213)],
        2 => number(-2..3000),
    ]
}

fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![
        12 => (text(), 0..2_i32).prop_map(|(key, snapshot)| Ask::Get(key, snapshot)),
        4 => (selector(), 0..2_i32).prop_map(|(selector, snapshot)| Ask::GetKey(selector, snapshot)),
        8 => (selector(), selector(), batch()).prop_map(|(begin, end, batch)| Ask::Range(begin, end, batch)),
        2 => (selector(), selector(), mapper(), batch())
            .prop_map(|(begin, end, mapper, batch)| Ask::Mapped(begin, end, mapper, batch)),
        2 => Just(Ask::ReadVersion),
        5 => Just(Ask::Commit),
        3 => error().prop_map(Ask::OnError),
        3 => text().prop_map(Ask::Watch),
        2 => Just(Ask::Versionstamp),
        1 => Just(Ask::ApproximateSize),
        1 => (text(), text()).prop_map(|(begin, end)| Ask::EstimatedSize(begin, end)),
        1 => (text(), text(), size()).prop_map(|(begin, end, size)| Ask::SplitPoints(begin, end, size)),
        1 => text().prop_map(Ask::Addresses),
        1 => Just(Ask::ThrottledDuration),
        1 => Just(Ask::TotalCost),
        1 => (any::<u8>(), text(), text(), size()).prop_map(|(which, a, b, n)| Ask::Blob(which, a, b, n)),
    ]
}

/// A mapper: the tuple ("a", "{K[0]}", "{...}"), or anything.
fn mapper() -> impl Strategy<Value = Text> {
    prop_oneof![Just(Text::Bytes(b"\x02a\0\x02{K[0]}\0\x02{...}\0".to_vec())), text()]
}

fn using() -> impl Strategy<Value = Use> {
    let callback =
        prop_oneof![3 => Just(Callback::Count), 2 => Just(Callback::Look), 1 => Just(Callback::Destroy)];
    prop_oneof![
        12 => Just(Use::Finish),
        4 => (any::<u8>(), prop::bool::weighted(0.2)).prop_map(|(which, null)| Use::Read(which, null)),
        1 => Just(Use::IsReady),
        1 => Just(Use::Error),
        5 => callback.prop_map(Use::Callback),
        2 => Just(Use::Cancel),
        2 => Just(Use::Release),
        3 => Just(Use::Destroy),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let slot = any::<Slot>;
    let string = prop_oneof![
        4 => Just(None),
        1 => Just(Some("a:b@127.0.0.1:4500".to_owned())),
        1 => Just(Some("shaketable:x@127.0.0.1:1".to_owned())),
        1 => Just(Some(String::new())),
    ];
    let question = || (any::<Slot>(), any::<u8>(), text(), text(), size());
    prop_oneof![
        1 => string.prop_map(Step::Open),
        1 => slot().prop_map(Step::Close),
        1 => (slot(), number(0..720), value()).prop_map(|(db, code, value)| Step::DatabaseOption(db, code, value)),
        2 => question().prop_map(|(db, which, a, b, n)| Step::AskDatabase(db, which, a, b, n)),
        1 => (slot(), text()).prop_map(|(db, name)| Step::OpenTenant(db, name)),
        1 => slot().prop_map(Step::CloseTenant),
        1 => question().prop_map(|(tenant, which, a, b, n)| Step::AskTenant(tenant, which, a, b, n)),
        1 => slot().prop_map(Step::BeginInTenant),
        3 => slot().prop_map(Step::Begin),
        2 => slot().prop_map(Step::End),
        20 => (slot(), act()).prop_map(|(tx, act)| Step::Act(tx, act)),
        25 => (slot(), ask()).prop_map(|(tx, ask)| Step::Ask(tx, ask)),
        30 => (slot(), using()).prop_map(|(future, using)| Step::Future(future, using)),
        1 => (slot(), any::<u8>(), text()).prop_map(|(tx, which, text)| Step::BlobResult(tx, which, text)),
        1 => (number(0..150), value()).prop_map(|(code, value)| Step::NetworkOption(code, value)),
    ]
}

/// Sequences of one thread, and of two.
pub fn case() -> impl Strategy<Value = Case> {
    let second = prop_oneof![Just(Vec::new()), vec(step(), 1..60)];
    (vec(step(), 1..120), second).prop_map(|(first, second)| Case { first, second })
}
