//! Events that FoundationDB's contract allows at any time, with or without a cause visible to clients.
//!
//! These families have a rate: at each opportunity (a commit, a read, a read version, a watch) the client, a
//! proxy or a storage server checks whether the fault occurs. They never violate the contract: an unknown
//! result is final before it is reported, and an error that means "not committed" is correct.

use super::{Dosage, Family, FaultFamily};

struct Allowed {
    family: Family,
    rate: f64,
    promise: &'static str,
}

impl FaultFamily for Allowed {
    fn family(&self) -> Family {
        self.family
    }
    fn promise(&self) -> &'static str {
        self.promise
    }
    fn budget(&self) -> &'static str {
        "A rate of at most 15 % at each opportunity; ends with the act."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Rate(self.rate)
    }
}

macro_rules! allowed {
    ($($family:ident, $rate:literal, $promise:literal;)*) => {
        /// The families with a rate.
        pub(super) const ALL: &[&dyn FaultFamily] =
            &[$(&Allowed { family: Family::$family, rate: $rate, promise: $promise }),*];
    };
}

allowed! {
    UnknownCommitted, 0.015,
        "The outcome is final when commit_unknown_result is reported, and the next read version is later.";
    UnknownNotCommitted, 0.015,
        "The outcome is final when commit_unknown_result is reported: the transaction never commits.";
    UnknownFatal, 0.004,
        "commit_unknown_result_fatal may be returned for a commit that happened or for one that never does; it is not \
         retryable.";
    LateLanding, 0.006,
        "After transaction_timed_out a commit may happen until its read version leaves the window.";
    SpuriousConflict, 0.02,
        "not_committed may be returned without a conflict, and means that nothing was committed.";
    TooOld, 0.004,
        "transaction_too_old may be returned by any read or commit; nothing was committed.";
    RiskyRead, 0.1,
        "A causally risky read version was committed, but may miss commits acknowledged since.";
    FutureVersion, 0.003,
        "future_version may be returned by any read while a storage server lags.";
    ProcessBehind, 0.003,
        "process_behind may be returned by any read while a storage server lags.";
    ClusterVersionChanged, 0.004,
        "cluster_version_changed may be returned before, during or after a commit, which then may still happen.";
    ProxyMemory, 0.006,
        "A commit proxy may reject a commit; nothing was committed.";
    GrvMemory, 0.004,
        "A GRV proxy may reject a read version request.";
    Throttled, 0.004,
        "The cluster may throttle a transaction, one of its tags or a hot shard; nothing was committed.";
    RangeLocked, 0.004,
        "A commit that writes to a locked range is rejected; nothing was committed.";
    OneRowBatches, 0.05,
        "A batch of a range read may have only one row and report that more remain.";
    EarlyWatch, 0.05,
        "A watch may fire although nothing changed.";
    LateWatch, 0.05,
        "A watch may fire long after the change.";
    SpuriousWatch, 0.03,
        "A watch may fail with a retryable error.";
}
