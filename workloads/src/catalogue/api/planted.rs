//! Planted bugs. Each of them changes a line or two of how a transaction is performed; the code that performs
//! transactions therefore checks for them where they apply.

shaketable::planted_bugs! {
    CapturedAnswers = "captured-answers", "answers are collected in a list outside of the retry loop", "a closure with side effects";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole range", "a range that is longer than a batch";
    OwnWritesUnseen = "own-writes-unseen", "read-your-writes is disabled although calls depend on each other", "a transaction that cannot see itself";
    OptionSetOnce = "option-set-once", "a transaction option is set in the first attempt only", "options do not outlive on_error";
    SnapshotReads = "snapshot-reads", "every read is a snapshot read", "foundationdb-rs examples/class-scheduling.rs";
    ResetForgotten = "reset-forgotten", "the writes of an earlier use of the transaction are committed with it", "a handle that is used again without a reset";
    SnapshotOwnWrites = "snapshot-own-writes", "snapshot reads see the transaction's own writes although that is disabled", "an option that is set once and lost by a reset";
    UncheckedWrites = "unchecked-writes", "writes add no write conflict range", "an option that is meant for one write";
    StampAtEnd = "stamp-at-end", "a versionstamp is placed after the value, wherever it belongs", "an offset that is taken for the length";
    NoOpRecord = "no-op-record", "writes are retried after an unknown result without an operation record", "the atomic counter of the API documentation";
}
