//! Which keys a read or a write conflicts on. Each extent is checked twice: by the special keys that
//! list it, and by whether writes (or reads) of another transaction at keys inside and outside of it
//! conflict.

use super::{
    Broken, Case, Ctx, Expectation,
    expect::{fails, succeeds},
};
use shaketable_tx::{
    ConflictRangeType::{self, Read, Write},
    Error, Isolation, MutationType, RangeOption, Result, StreamingMode, Transaction, TransactionOption, Tx,
};

const SECTION: &str = "reads";

/// The keys stored before each test: every other letter.
const STORED: &[&str] = &["a", "c", "e", "g", "i"];

/// Keys written (or read) by another transaction: the letters, the keys directly after some of them, and keys
/// between them.
const PROBES: &[&str] =
    &["", "a", "a\0", "b", "bb", "c", "c\0", "d", "d\0", "e", "e\0", "f", "g", "g\0", "h", "i", "i\0", "z"];

/// One step of a transaction.
#[derive(Clone, Copy, Debug)]
enum Step {
    Get(&'static str),
    GetSnapshot(&'static str),
    GetLong,
    GetKey(&'static str, bool, i32),
    GetKeySnapshot(&'static str, bool, i32),
    /// All batches of `[begin, end)`.
    Range(&'static str, &'static str),
    RangeSnapshot(&'static str, &'static str),
    /// `[begin, end)` with this limit, reversed if so. Batches may end at shard boundaries, which splits the
    /// conflict range but does not change the keys that it covers.
    Limited(&'static str, &'static str, usize, bool),
    /// All rows between two selectors, with this limit (0 for none), reversed if so.
    Between((&'static str, bool, i32), (&'static str, bool, i32), usize, bool),
    AddRead(&'static str, &'static str),
    AddWrite(&'static str, &'static str),
    Set(&'static str),
    Clear(&'static str),
    ClearRange(&'static str, &'static str),
    Atomic(&'static str),
    CompareAndClear(&'static str),
    StampedValue(&'static str),
    Option(fn() -> TransactionOption),
}

/// The steps of a transaction, and the ranges that it then conflicts on.
struct Extent {
    topic: &'static str,
    promise: &'static str,
    steps: &'static [Step],
    covers: &'static [(&'static str, &'static str)],
}

macro_rules! extents {
    ($($topic:literal: $promise:literal, $steps:expr => $covers:expr;)*) => {
        &[$(Extent { topic: $topic, promise: $promise, steps: &$steps, covers: &$covers }),*]
    };
}

use Step::*;

const RYW_OFF: Step = Option(|| TransactionOption::ReadYourWritesDisable);
const NEXT_WRITE: Step = Option(|| TransactionOption::NextWriteNoWriteConflictRange);
const SNAPSHOT_RYW_OFF: Step = Option(|| TransactionOption::SnapshotRywDisable);

const READS: &[Extent] = extents! {
    "get":
        "get conflicts on its key alone.",
        [Get("c")] => [("c", "c\0")];
    "get-absent":
        "get of an absent key conflicts on that key.",
        [Get("d")] => [("d", "d\0")];
    "get-snapshot":
        "A snapshot get conflicts on nothing.",
        [GetSnapshot("c")] => [];
    "get-over-long":
        "get of a key longer than any conflicts on nothing.",
        [GetLong] => [];
    "get-twice":
        "Reading twice is reading once.",
        [Get("c"), Get("c")] => [("c", "c\0")];
    "get-own-set":
        "get of a key this transaction has set conflicts on nothing.",
        [Set("c"), Get("c")] => [];
    "get-own-clear":
        "get of a key this transaction has cleared conflicts on nothing.",
        [Clear("c"), Get("c")] => [];
    "get-own-range-clear":
        "get inside a range this transaction has cleared conflicts on nothing.",
        [ClearRange("b", "f"), Get("c")] => [];
    "get-own-atomic":
        "get after an own atomic operation conflicts: the answer depends on what is stored.",
        [Atomic("c"), Get("c")] => [("c", "c\0")];
    "get-own-compare-and-clear":
        "So it does after compare_and_clear.",
        [CompareAndClear("c"), Get("c")] => [("c", "c\0")];
    "get-own-set-atomic":
        "get after an own set and an atomic operation conflicts on nothing.",
        [Set("c"), Atomic("c"), Get("c")] => [];
    "get-own-clear-atomic":
        "get after an own clear and an atomic operation conflicts on nothing.",
        [Clear("c"), Atomic("c"), Get("c")] => [];
    "get-own-atomic-set":
        "get after an own atomic operation and a set conflicts on nothing.",
        [Atomic("c"), Set("c"), Get("c")] => [];
    "get-before-set":
        "A read before the own write keeps its conflict range.",
        [Get("c"), Set("c")] => [("c", "c\0")];
    "get-own-write-conflict-range":
        "A write conflict range alone writes nothing: reads in it conflict.",
        [AddWrite("b", "d"), Get("c")] => [("c", "c\0")];
    "get-own-unconflicting-set":
        "A set without a write conflict range still hides the stored value.",
        [NEXT_WRITE, Set("c"), Get("c")] => [];
    "range":
        "A range read to its end conflicts on all of it.",
        [Range("b", "f")] => [("b", "f")];
    "range-empty":
        "So does one that finds nothing.",
        [Range("d", "d\0")] => [("d", "d\0")];
    "range-inverted":
        "An inverted range conflicts on nothing.",
        [Limited("f", "b", 5, false)] => [];
    "range-snapshot":
        "A snapshot range read conflicts on nothing.",
        [RangeSnapshot("a", "z")] => [];
    "range-limited":
        "A batch that ends early conflicts up to just behind its last row.",
        [Limited("a", "z", 2, false)] => [("a", "c\0")];
    "range-limited-exact":
        "A limit that is reached at the last row conflicts up to just behind it.",
        [Limited("b", "f", 2, false)] => [("b", "e\0")];
    "range-limited-beyond":
        "A limit that is not reached conflicts on the whole range.",
        [Limited("b", "f", 9, false)] => [("b", "f")];
    "range-reverse-limited":
        "A reverse batch that ends early conflicts from its smallest row to the end.",
        [Limited("a", "z", 2, true)] => [("g", "z")];
    "range-reverse-beyond":
        "A reverse batch that reaches the begin conflicts on the whole range.",
        [Limited("b", "f", 9, true)] => [("b", "f")];
    "range-own-set":
        "A range skips keys this transaction has set.",
        [Set("c"), Set("d"), Range("b", "f")] => [("b", "c"), ("c\0", "d"), ("d\0", "f")];
    "range-own-clear":
        "A range skips what this transaction has cleared.",
        [ClearRange("c", "e"), Range("b", "f")] => [("b", "c"), ("e", "f")];
    "range-own-atomic":
        "A range does not skip keys with own atomic operations.",
        [Atomic("c"), Range("b", "f")] => [("b", "f")];
    "range-all-own":
        "A range that is all own clears conflicts on nothing.",
        [ClearRange("b", "f"), Range("b", "f")] => [];
    "range-limited-own":
        "Own rows end a batch early like stored ones.",
        [Set("b"), Limited("a", "z", 2, false)] => [("a", "b")];
    "range-before-set":
        "A range read before the own write keeps its conflict range.",
        [Range("b", "f"), Set("c")] => [("b", "f")];
    "range-begin-before":
        "A begin selector of offset 0 conflicts from the row it found.",
        [Between(("e", false, 0), ("g", false, 1), 0, false)] => [("c", "g")];
    "range-begin-at-or-before":
        "So does one that is or_equal.",
        [Between(("d", true, 0), ("f", false, 1), 0, false)] => [("c", "f")];
    "range-end-beyond":
        "An end selector beyond the first key conflicts to just behind the last row.",
        [Between(("a", false, 1), ("c", false, 2), 0, false)] => [("a", "c\0")];
    "range-end-before":
        "An end selector of offset 0 conflicts up to its base.",
        [Between(("a", false, 1), ("f", false, 0), 0, false)] => [("a", "f")];
    "range-begin-offset-limited":
        "With an offset begin a batch conflicts from the selector's base.",
        [Between(("a", false, 2), ("z", false, 1), 1, false)] => [("a", "c\0")];
    "range-begin-offset-reverse":
        "So does a reverse batch that ends early, since the begin moves with what is there.",
        [Between(("a", false, 2), ("h", false, 1), 1, true)] => [("a", "h")];
    "get_key-at":
        "get_key at a key that exists conflicts on that key.",
        [GetKey("c", false, 1)] => [("c", "c\0")];
    "get_key-at-or-after":
        "get_key from a gap conflicts from its base to just behind the key it found.",
        [GetKey("d", false, 1)] => [("d", "e\0")];
    "get_key-after":
        "first_greater_than conflicts from just behind its base.",
        [GetKey("c", true, 1)] => [("c\0", "e\0")];
    "get_key-two-on":
        "An offset of 2 conflicts over both keys.",
        [GetKey("c", false, 2)] => [("c", "e\0")];
    "get_key-before":
        "last_less_than conflicts from the key it found up to its base.",
        [GetKey("e", false, 0)] => [("c", "e")];
    "get_key-at-or-before":
        "last_less_or_equal conflicts from the key it found to just behind its base.",
        [GetKey("d", true, 0)] => [("c", "d\0")];
    "get_key-at-itself":
        "last_less_or_equal of a key that exists conflicts on that key.",
        [GetKey("c", true, 0)] => [("c", "c\0")];
    "get_key-two-back":
        "An offset of -1 conflicts from the second key back.",
        [GetKey("f", false, -1)] => [("c", "f")];
    "get_key-snapshot":
        "A snapshot get_key conflicts on nothing.",
        [GetKeySnapshot("d", false, 1)] => [];
    "get_key-own-set":
        "get_key that finds an own set conflicts on what lies before it.",
        [Set("d"), GetKey("c", true, 1)] => [("c\0", "d")];
    "get_key-own-clear":
        "get_key that passes an own clear conflicts on what lies around it.",
        [Clear("e"), GetKey("d", false, 1)] => [("d", "e"), ("e\0", "g\0")];
    "add-range":
        "A read conflict range that is added covers its range.",
        [AddRead("b", "f")] => [("b", "f")];
    "add-empty":
        "An empty one covers nothing.",
        [AddRead("c", "c")] => [];
    "add-own-set":
        "One that is added over an own set skips it.",
        [Set("c"), AddRead("b", "f")] => [("b", "c"), ("c\0", "f")];
    "add-own-clear":
        "One that is added over an own clear skips it.",
        [ClearRange("c", "e"), AddRead("b", "f")] => [("b", "c"), ("e", "f")];
    "add-own-atomic":
        "One that is added over an own atomic operation covers it.",
        [Atomic("c"), AddRead("b", "f")] => [("b", "f")];
    "add-before-set":
        "One that was added before an own write stays.",
        [AddRead("b", "f"), Set("c")] => [("b", "f")];
    "joined":
        "Ranges that touch are one.",
        [Get("c"), AddRead("c\0", "e"), Get("e")] => [("c", "e\0")];
    "apart":
        "Ranges that do not touch stay apart.",
        [Get("a"), Get("c")] => [("a", "a\0"), ("c", "c\0")];
    "snapshot-ryw-off":
        "With 601 snapshot reads still conflict on nothing, and serializable ones as ever.",
        [SNAPSHOT_RYW_OFF, Set("c"), GetSnapshot("c"), Get("c"), Get("e")] => [("e", "e\0")];
    "ryw-off-get":
        "With option 51 get conflicts on its key.",
        [RYW_OFF, Get("c")] => [("c", "c\0")];
    "ryw-off-own-set":
        "With option 51 own writes hide nothing: reads of them conflict.",
        [RYW_OFF, Set("c"), Get("c")] => [("c", "c\0")];
    "ryw-off-range":
        "With option 51 a range conflicts on all of it.",
        [RYW_OFF, Range("b", "f")] => [("b", "f")];
    "ryw-off-range-own":
        "With option 51 a range does not skip own writes.",
        [RYW_OFF, Set("c"), Range("b", "f")] => [("b", "f")];
    "ryw-off-limited":
        "With option 51 a batch that ends early conflicts up to just behind its last row.",
        [RYW_OFF, Limited("a", "z", 2, false)] => [("a", "c\0")];
    "ryw-off-reverse-limited":
        "With option 51 a reverse batch that ends early conflicts from its smallest row.",
        [RYW_OFF, Limited("a", "z", 2, true)] => [("g", "z")];
    "ryw-off-get_key":
        "With option 51 get_key conflicts from its base to just behind the key it found.",
        [RYW_OFF, GetKey("d", false, 1)] => [("d", "e\0")];
    "ryw-off-get_key-before":
        "With option 51 last_less_than conflicts from the key it found up to its base.",
        [RYW_OFF, GetKey("e", false, 0)] => [("c", "e")];
    "ryw-off-add":
        "With option 51 a read conflict range covers own writes too.",
        [RYW_OFF, Set("c"), AddRead("b", "f")] => [("b", "f")];
    "ryw-off-snapshot":
        "With option 51 a snapshot read conflicts on nothing.",
        [RYW_OFF, GetSnapshot("c"), RangeSnapshot("a", "z")] => [];
};

const WRITES: &[Extent] = extents! {
    "set":
        "set conflicts on its key.",
        [Set("c")] => [("c", "c\0")];
    "clear":
        "clear conflicts on its key, present or not.",
        [Clear("d")] => [("d", "d\0")];
    "clear-range":
        "clear_range conflicts on its range.",
        [ClearRange("b", "f")] => [("b", "f")];
    "clear-range-empty":
        "An empty one conflicts on nothing.",
        [ClearRange("c", "c")] => [];
    "atomic":
        "An atomic operation conflicts on its key.",
        [Atomic("c")] => [("c", "c\0")];
    "versionstamped-value":
        "A versionstamped value conflicts on its key.",
        [StampedValue("c")] => [("c", "c\0")];
    "add-range":
        "A write conflict range that is added covers its range.",
        [AddWrite("b", "f")] => [("b", "f")];
    "add-over-set":
        "It is never skipped, whatever was written.",
        [Set("c"), AddWrite("b", "f")] => [("b", "f")];
    "several":
        "Writes apart conflict apart, and touching ones together.",
        [Set("a"), ClearRange("c", "d"), Set("d"), Clear("g")] => [("a", "a\0"), ("c", "d\0"), ("g", "g\0")];
    "reads":
        "Reads conflict with no reader.",
        [Get("c"), Range("e", "g"), AddRead("h", "i")] => [];
    "next-write-set":
        "Option 30 suppresses the next set's conflict range.",
        [NEXT_WRITE, Set("c"), Set("e")] => [("e", "e\0")];
    "next-write-clear":
        "Option 30 suppresses the next clear's conflict range.",
        [NEXT_WRITE, Clear("c"), Clear("e")] => [("e", "e\0")];
    "next-write-clear-range":
        "Option 30 suppresses the next clear_range's conflict range.",
        [NEXT_WRITE, ClearRange("b", "d"), Set("e")] => [("e", "e\0")];
    "next-write-atomic":
        "Option 30 suppresses the next atomic operation's conflict range.",
        [NEXT_WRITE, Atomic("c"), Atomic("e")] => [("e", "e\0")];
    "next-write-add":
        "Option 30 does not touch a write conflict range that is added, and outlasts it.",
        [NEXT_WRITE, AddWrite("a", "b"), Set("c"), Set("e")] => [("a", "b"), ("e", "e\0")];
    "next-write-again":
        "A write without a conflict range does not take an earlier one's away.",
        [Set("c"), NEXT_WRITE, Set("c")] => [("c", "c\0")];
    "ryw-off":
        "With option 51 writes conflict as ever.",
        [RYW_OFF, Set("a"), ClearRange("c", "e")] => [("a", "a\0"), ("c", "e")];
};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for extent in READS {
        let topic = format!("read-extent/{}", extent.topic);
        cases.push(Case::new(SECTION, &topic, extent.promise, move |c| reads_conflict(c, extent)));
        let promise = format!("{} The special keys list exactly that.", extent.promise);
        let topic = format!("{topic}/listed");
        cases.push(Case::new(SECTION, &topic, promise, move |c| listed_as(c, extent, Read)));
    }
    for extent in WRITES {
        let topic = format!("write-extent/{}", extent.topic);
        cases.push(Case::new(SECTION, &topic, extent.promise, move |c| writes_conflict(c, extent)));
        let promise = format!("{} The special keys list exactly that.", extent.promise);
        let topic = format!("{topic}/listed");
        cases.push(Case::new(SECTION, &topic, promise, move |c| listed_as(c, extent, Write)));
    }
    cases
}

impl Extent {
    /// Whether a write (or read) of `probe` by another transaction must conflict.
    fn covers(&self, probe: &str) -> bool {
        self.covers.iter().any(|(begin, end)| (*begin..*end).contains(&probe))
    }
}

/// Stores the data that the extents assume.
async fn store(c: &Ctx) -> Result<i64> {
    c.commit(|tx| {
        tx.clear_range(&c.key(""), &c.end());
        for key in STORED {
            tx.set(&c.key(key), key.as_bytes());
        }
    })
    .await
}

/// A transaction that has performed the extent's steps.
async fn taken(c: &Ctx, extent: &Extent) -> Result<Tx> {
    let tx = c.tx()?;
    tx.get_read_version().await?;
    for step in extent.steps {
        take(c, &tx, *step).await?;
    }
    Ok(tx)
}

async fn take(c: &Ctx, tx: &Tx, step: Step) -> Result<()> {
    let (serializable, snapshot) = (Isolation::Serializable, Isolation::Snapshot);
    match step {
        Get(key) => tx.get(&c.key(key), serializable).await.map(drop),
        GetSnapshot(key) => tx.get(&c.key(key), snapshot).await.map(drop),
        GetLong => tx.get(&c.key([b'c'; 20_000]), serializable).await.map(drop),
        GetKey(key, or_equal, offset) => {
            tx.get_key(&c.selector(key, or_equal, offset), serializable).await.map(drop)
        }
        GetKeySnapshot(key, or_equal, offset) => {
            tx.get_key(&c.selector(key, or_equal, offset), snapshot).await.map(drop)
        }
        Range(begin, end) => tx.get_range_all(c.range(begin, end), serializable).await.map(drop),
        RangeSnapshot(begin, end) => tx.get_range_all(c.range(begin, end), snapshot).await.map(drop),
        Limited(begin, end, limit, reverse) => {
            let range = c.range(begin, end).limit(limit).mode(StreamingMode::WantAll);
            tx.get_range_all(RangeOption { reverse, ..range }, serializable).await.map(drop)
        }
        Between((key, or_equal, offset), (end, end_or_equal, end_offset), limit, reverse) => {
            let begin = c.selector(key, or_equal, offset);
            let range = RangeOption::between(begin, c.selector(end, end_or_equal, end_offset));
            let range = range.limit(limit).mode(StreamingMode::WantAll);
            tx.get_range_all(RangeOption { reverse, ..range }, serializable).await.map(drop)
        }
        AddRead(begin, end) => tx.add_conflict_range(&c.key(begin), &c.key(end), Read),
        AddWrite(begin, end) => tx.add_conflict_range(&c.key(begin), &c.key(end), Write),
        Set(key) => {
            tx.set(&c.key(key), b"own");
            Ok(())
        }
        Clear(key) => {
            tx.clear(&c.key(key));
            Ok(())
        }
        ClearRange(begin, end) => {
            tx.clear_range(&c.key(begin), &c.key(end));
            Ok(())
        }
        Atomic(key) => {
            tx.atomic_op(&c.key(key), b"\x01", MutationType::Add);
            Ok(())
        }
        CompareAndClear(key) => {
            tx.atomic_op(&c.key(key), b"other", MutationType::CompareAndClear);
            Ok(())
        }
        StampedValue(key) => {
            tx.atomic_op(&c.key(key), &[0; 14], MutationType::SetVersionstampedValue);
            Ok(())
        }
        Option(option) => tx.set_option(option()),
    }
}

async fn listed_as(c: Ctx, extent: &Extent, kind: ConflictRangeType) -> Expectation {
    store(&c).await?;
    let tx = taken(&c, extent).await?;
    match kind {
        Read => c.reads_are(&tx, extent.covers).await,
        Write => c.writes_are(&tx, extent.covers).await,
    }
}

async fn reads_conflict(c: Ctx, extent: &Extent) -> Expectation {
    for probe in PROBES {
        store(&c).await?;
        let tx = taken(&c, extent).await?;
        c.put(probe, "theirs").await?;
        c.touch(&tx)?;
        judge("a write of", probe, tx.commit().await, extent.covers(probe))?;
    }
    Ok(())
}

async fn writes_conflict(c: Ctx, extent: &Extent) -> Expectation {
    for probe in PROBES {
        store(&c).await?;
        let reader = c.tx()?;
        reader.get(&c.key(probe), Isolation::Serializable).await?;
        taken(&c, extent).await?.commit().await?;
        c.touch(&reader)?;
        judge("a read of", probe, reader.commit().await, extent.covers(probe))?;
    }
    Ok(())
}

fn judge(what: &str, probe: &str, committed: Result<()>, conflicts: bool) -> Expectation {
    let what = format!("{what} {probe:?} by somebody else, the commit");
    match committed {
        // An unexpected conflict breaks the promise; it is not merely a reason to try again.
        Err(Error::NOT_COMMITTED) if !conflicts => {
            Err(Broken::new(format!("{what}: promised success, seen a conflict")))
        }
        committed if conflicts => fails(&what, committed, Error::NOT_COMMITTED),
        committed => succeeds(&what, committed),
    }
}
