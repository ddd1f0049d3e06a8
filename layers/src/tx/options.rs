//! Transaction and database options, with the numeric codes of FoundationDB 7.4.
//!
//! Only `Timeout`, `RetryLimit` and `MaxRetryDelay` (and the database defaults) outlive
//! `on_error`; every other option must be set again in each attempt (`fdb.options`,
//! `ReadYourWritesTransaction::resetRyow`).

/// An option of one transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TransactionOption {
    /// 10: skip the self-conflicting range, so that a retried commit may apply twice.
    CausalWriteRisky,
    /// 20: a read version that may miss commits acknowledged just before a failure.
    CausalReadRisky,
    /// 30: the next write adds no write conflict range.
    NextWriteNoWriteConflictRange,
    /// 51: reads ignore the transaction's own writes. Must precede any operation (2000 after one).
    ReadYourWritesDisable,
    /// 200: the highest priority, not throttled.
    PrioritySystemImmediate,
    /// 201: batch priority.
    PriorityBatch,
    /// 301: keys up to 0xffff may be read and written.
    AccessSystemKeys,
    /// 302: keys up to 0xffff may be read.
    ReadSystemKeys,
    /// 303: like system access, and 8 more bytes a key.
    RawAccess,
    /// 500: milliseconds from creation or reset over all retries; 0 disables. Outlives `on_error`.
    Timeout(i32),
    /// 501: how often `on_error` may retry; -1 is unlimited. Outlives `on_error`.
    RetryLimit(i32),
    /// 502: milliseconds, the largest backoff. Outlives `on_error`.
    MaxRetryDelay(i32),
    /// 503: bytes, at least 32, at most 10,000,000.
    SizeLimit(i32),
    /// 505: the client adds an idempotency id and resolves an unknown result by itself.
    AutomaticIdempotency,
    /// 600: snapshot reads see own writes again (counts against 601).
    SnapshotRywEnable,
    /// 601: snapshot reads ignore own writes.
    SnapshotRywDisable,
    /// 700: works although the database is locked.
    LockAware,
    /// 701: a call during the commit does not make the commit fail.
    UsedDuringCommitProtectionDisable,
    /// 702: reads work although the database is locked.
    ReadLockAware,
    /// 712: conflicting ranges can be read from special keys after 1020.
    ReportConflictingKeys,
    /// 713: special-key reads may cross modules or touch none.
    SpecialKeySpaceRelaxed,
    /// 714: special keys may be written.
    SpecialKeySpaceEnableWrites,
    /// 800: a throttling tag, at most 16 bytes.
    Tag(String),
    /// 801: a tag that the cluster may throttle on its own.
    AutoThrottleTag(String),
    /// 1100: reads of unreadable keys see the placeholder instead of failing with 1036.
    BypassUnreadable,
    /// 1101: the read version may come from a cache.
    UseGrvCache,
}

impl TransactionOption {
    /// FoundationDB's numeric code.
    pub const fn code(&self) -> i32 {
        use TransactionOption::*;
        match self {
            CausalWriteRisky => 10,
            CausalReadRisky => 20,
            NextWriteNoWriteConflictRange => 30,
            ReadYourWritesDisable => 51,
            PrioritySystemImmediate => 200,
            PriorityBatch => 201,
            AccessSystemKeys => 301,
            ReadSystemKeys => 302,
            RawAccess => 303,
            Timeout(_) => 500,
            RetryLimit(_) => 501,
            MaxRetryDelay(_) => 502,
            SizeLimit(_) => 503,
            AutomaticIdempotency => 505,
            SnapshotRywEnable => 600,
            SnapshotRywDisable => 601,
            LockAware => 700,
            UsedDuringCommitProtectionDisable => 701,
            ReadLockAware => 702,
            ReportConflictingKeys => 712,
            SpecialKeySpaceRelaxed => 713,
            SpecialKeySpaceEnableWrites => 714,
            Tag(_) => 800,
            AutoThrottleTag(_) => 801,
            BypassUnreadable => 1100,
            UseGrvCache => 1101,
        }
    }
}

/// An option of a database handle: a default for the transactions created from it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DatabaseOption {
    /// 10: how many key locations the client remembers.
    LocationCacheSize(i32),
    /// 20: how many watches may be outstanding (10,000 by default, at most 1,000,000).
    MaxWatches(i32),
    /// 26: snapshot reads see own writes (counts against 27).
    SnapshotRywEnable,
    /// 27: snapshot reads ignore own writes.
    SnapshotRywDisable,
    /// 500: default of [`TransactionOption::Timeout`], milliseconds.
    TransactionTimeout(i32),
    /// 501: default of [`TransactionOption::RetryLimit`].
    TransactionRetryLimit(i32),
    /// 502: default of [`TransactionOption::MaxRetryDelay`], milliseconds.
    TransactionMaxRetryDelay(i32),
    /// 503: default of [`TransactionOption::SizeLimit`], bytes.
    TransactionSizeLimit(i32),
    /// 504: default of [`TransactionOption::CausalReadRisky`].
    TransactionCausalReadRisky,
    /// 506: default of [`TransactionOption::AutomaticIdempotency`].
    TransactionAutomaticIdempotency,
    /// 700: default of [`TransactionOption::BypassUnreadable`].
    TransactionBypassUnreadable,
    /// 701: default of [`TransactionOption::UsedDuringCommitProtectionDisable`].
    TransactionUsedDuringCommitProtectionDisable,
    /// 702: default of [`TransactionOption::ReportConflictingKeys`].
    TransactionReportConflictingKeys,
}

impl DatabaseOption {
    /// FoundationDB's numeric code.
    pub const fn code(&self) -> i32 {
        use DatabaseOption::*;
        match self {
            LocationCacheSize(_) => 10,
            MaxWatches(_) => 20,
            SnapshotRywEnable => 26,
            SnapshotRywDisable => 27,
            TransactionTimeout(_) => 500,
            TransactionRetryLimit(_) => 501,
            TransactionMaxRetryDelay(_) => 502,
            TransactionSizeLimit(_) => 503,
            TransactionCausalReadRisky => 504,
            TransactionAutomaticIdempotency => 506,
            TransactionBypassUnreadable => 700,
            TransactionUsedDuringCommitProtectionDisable => 701,
            TransactionReportConflictingKeys => 702,
        }
    }
}
