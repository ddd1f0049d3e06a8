//! The guidelines, with their sources, and the figures in them.

/// A guideline of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Guideline {
    /// What it says.
    pub(super) text: &'static str,
    /// The document and its section.
    pub(super) source: &'static str,
}

/// The rates of writes of a key, a second, from which and above which another data model is advised.
pub(super) const HOT: [f64; 2] = [10.0, 100.0];
/// The sizes of keys for the best performance, advised at most, and the limit, bytes.
pub(super) const KEY: [u64; 3] = [32, 1_000, 10_000];
/// The sizes of values advised at most, and the limit, bytes.
pub(super) const VALUE: [u64; 2] = [10_000, 100_000];
/// The sizes of transactions advised at most, and the limit, bytes.
pub(super) const TRANSACTION: [u64; 2] = [1_000_000, 10_000_000];
/// The longest transaction, nanoseconds.
pub(super) const DURATION: u64 = 5_000_000_000;
/// The size of individual reads that are better one read, bytes.
pub(super) const SMALL: u64 = 200;
/// The size of a range read that is to be restricted if it is much larger, bytes.
pub(super) const RANGE: u64 = 1_000;
/// The watches of a database connection that have not reported a change.
pub(super) const WATCHES: u64 = 10_000;

pub(super) const HOT_KEYS: Guideline = Guideline {
    text: "a key that is modified more than 10 to 100 times a second calls for another data model: several keys, \
           atomic operations, or a queue of changes",
    source: "FoundationDB documentation, Developer Guide, Minimizing conflicts",
};

pub(super) const UNREAD: Guideline = Guideline {
    text: "what nothing reads is judged by nothing: rows that are never removed, rows that are promised and missing, \
           or rows of another application",
    source: "this project, Workloads",
};

pub(super) const CONFLICTS: Guideline = Guideline {
    text: "frequent conflicts are inefficient: spread what is updated often over many keys, write without reading, or \
           read at snapshot what may change",
    source: "FoundationDB documentation, Developer Guide, Minimizing conflicts",
};

pub(super) const KEY_SIZE: Guideline = Guideline {
    text: "keys are best below 32 bytes, should be below 1 kB, and cannot exceed 10 kB",
    source: "FoundationDB documentation, Data Modeling, Key and value sizes",
};

pub(super) const VALUE_SIZE: Guideline = Guideline {
    text: "values should be below 10 kB, and cannot exceed 100 kB",
    source: "FoundationDB documentation, Data Modeling, Key and value sizes",
};

pub(super) const TRANSACTION_SIZE: Guideline = Guideline {
    text: "a transaction should affect less than 1 MB, and cannot affect more than 10 MB, of keys, values and ranges",
    source: "FoundationDB documentation, Known Limitations, Large transactions",
};

pub(super) const LONG: Guideline = Guideline {
    text: "a transaction cannot last longer than five seconds from its first read",
    source: "FoundationDB documentation, Known Limitations, Long running transactions",
};

pub(super) const SMALL_READS: Guideline = Guideline {
    text: "individual reads of values of less than 200 bytes together are better one value, or adjacent keys and one \
           range read",
    source: "FoundationDB documentation, Data Modeling, Key and value sizes",
};

pub(super) const ROUND_TRIPS: Guideline = Guideline {
    text: "reads that wait for one another add up their latencies: start as many as possible before waiting, which also \
           makes conflicts less likely",
    source: "FoundationDB documentation, Performance, Latency",
};

pub(super) const RANGE_SIZE: Guideline = Guideline {
    text: "a range read of much more than 1 kB should be restricted to the data that is needed",
    source: "FoundationDB documentation, Data Modeling, Key and value sizes",
};

pub(super) const GROWTH: Guideline = Guideline {
    text: "keys are structured so that a range read finds what is needed, not more of it as more is stored",
    source: "FoundationDB documentation, Data Modeling, Key and value sizes",
};

pub(super) const ROWS_FOR_ONE: Guideline = Guideline {
    text: "what is looked for is found by its key, or by that of an index entry, not by reading what is beside it",
    source: "FoundationDB documentation, Data Modeling, Indirection and indexes",
};

pub(super) const CONFLICT_RETRY: Guideline = Guideline {
    text: "a transaction that conflicted has no effect and can be retried: a retry loop does so until it commits",
    source: "FoundationDB documentation, Developer Guide, Conflict ranges and retries",
};

pub(super) const RARELY: Guideline = Guideline {
    text: "what is nearly always refused is hardly tested, and hardly of use: draw operations that can be done, or list \
           the kind as one that need not succeed",
    source: "this project, Workloads",
};

pub(super) const FINISH: Guideline = Guideline {
    text: "an operation ends soon while the cluster serves others; a workload can require it (`time_limit`)",
    source: "this project, Workloads",
};

pub(super) const OPEN: Guideline = Guideline {
    text: "a transaction that is open holds its version and its conflict ranges, and a watch one of the 10,000 of its \
           connection: end transactions with their operation, and drop or cancel watches that nobody waits for",
    source: "FoundationDB documentation, Developer Guide, Watches; Known Limitations, Long running transactions",
};

pub(super) const CALLERS: Guideline = Guideline {
    text: "who waits, waits for a watch or for an answer, and not for a fixed time",
    source: "FoundationDB documentation, Developer Guide, Watches",
};

pub(super) const NO_EFFECT: Guideline = Guideline {
    text: "an operation that says it was done, and left nothing but its record, has done what was asked only if nothing \
           was to be done",
    source: "this project, Workloads",
};

pub(super) const OFFSETS: Guideline = Guideline {
    text: "a key selector is resolved in a time proportional to its offset: page with limits, from the last key",
    source: "FoundationDB documentation, Known Limitations, Key selectors with large offsets are slow",
};

pub(super) const SNAPSHOT: Guideline = Guideline {
    text: "what a snapshot read saw may change until the commit: a conflict range for the keys on which the transaction \
           depends prevents that",
    source: "FoundationDB documentation, Developer Guide, Snapshot reads",
};

pub(super) const WATCH: Guideline = Guideline {
    text: "a database connection has at most 10,000 watches that have not reported a change, unless told otherwise; \
           those that are no longer needed should be cancelled",
    source: "FoundationDB documentation, Python API, Watches",
};
