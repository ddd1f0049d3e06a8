//! The planted bugs. Each changes a line or two of how a transaction is performed, so that the code which performs
//! transactions asks for them where they apply.

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
