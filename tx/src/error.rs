//! FoundationDB error codes and the predicates that decide what a retry loop may do.
//!
//! Codes and names are those of `flow/error_definitions.h`; the retry predicates are those of
//! `fdb_error_predicate` in `bindings/c/fdb_c.cpp` (release 7.4).

use serde::{Deserialize, Serialize};
use std::fmt;

/// An error as a FoundationDB client reports it: only a numeric code.
///
/// The code determines everything that a caller can do about the error; see the predicates.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Error(i32);

/// The result of a call of the transaction contract.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! codes {
    ($($(#[$doc:meta])* $konst:ident = $code:literal, $name:literal;)*) => {
        impl Error {
            $($(#[$doc])* pub const $konst: Error = Error($code);)*

            /// Every error with a constant in this module, in the order of their codes.
            pub const ALL: &'static [Error] = &[$(Error($code)),*];

            /// FoundationDB's name of the code, or `unknown_error` for a code not listed.
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $($code => $name,)*
                    _ => "unknown_error",
                }
            }
        }
    };
}

codes! {
    /// The storage server no longer keeps the read version, or it is older than the resolver's window.
    TRANSACTION_TOO_OLD = 1007, "transaction_too_old";
    /// The storage server did not reach the read version in time.
    FUTURE_VERSION = 1009, "future_version";
    /// The transaction conflicts with another that committed after its read version.
    NOT_COMMITTED = 1020, "not_committed";
    /// The result of the commit is unknown to the client, but already final.
    COMMIT_UNKNOWN_RESULT = 1021, "commit_unknown_result";
    /// The result of the commit is unknown and can no longer be determined.
    COMMIT_UNKNOWN_RESULT_FATAL = 1022, "commit_unknown_result_fatal";
    /// The transaction was cancelled, or reset while an operation was under way.
    TRANSACTION_CANCELLED = 1025, "transaction_cancelled";
    /// The timeout has expired. If it expired during a commit, the result is unknown.
    TRANSACTION_TIMED_OUT = 1031, "transaction_timed_out";
    /// More watches are outstanding than the `max_watches` option allows.
    TOO_MANY_WATCHES = 1032, "too_many_watches";
    /// Watches require read-your-writes.
    WATCHES_DISABLED = 1034, "watches_disabled";
    /// The key may receive a versionstamp of this transaction at commit.
    ACCESSED_UNREADABLE = 1036, "accessed_unreadable";
    /// The storage server has fallen behind.
    PROCESS_BEHIND = 1037, "process_behind";
    /// An operator has locked the database.
    DATABASE_LOCKED = 1038, "database_locked";
    /// The cluster's protocol version changed. If it changed during a commit, the result is unknown.
    CLUSTER_VERSION_CHANGED = 1039, "cluster_version_changed";
    /// A commit proxy has no memory left for the request.
    COMMIT_PROXY_MEMORY_LIMIT_EXCEEDED = 1042, "commit_proxy_memory_limit_exceeded";
    /// Batch-priority transactions are being throttled.
    BATCH_TRANSACTION_THROTTLED = 1051, "batch_transaction_throttled";
    /// A GRV proxy has no memory left for the request.
    GRV_PROXY_MEMORY_LIMIT_EXCEEDED = 1078, "grv_proxy_memory_limit_exceeded";
    /// A blob granule request failed.
    BLOB_GRANULE_REQUEST_FAILED = 1079, "blob_granule_request_failed";
    /// The result can never arrive, for example a versionstamp whose transaction was reset.
    BROKEN_PROMISE = 1100, "broken_promise";
    /// The operation was dropped. If it was dropped during a commit, the result is unknown.
    OPERATION_CANCELLED = 1101, "operation_cancelled";
    /// A tag of the transaction is throttled.
    TAG_THROTTLED = 1213, "tag_throttled";
    /// A tag of the transaction is throttled by a proxy.
    PROXY_TAG_THROTTLED = 1223, "proxy_tag_throttled";
    /// The transaction writes a shard that is too hot (7.4 and later).
    TRANSACTION_THROTTLED_HOT_SHARD = 1235, "transaction_throttled_hot_shard";
    /// The transaction writes a range that is locked (7.4 and later).
    TRANSACTION_REJECTED_RANGE_LOCKED = 1242, "transaction_rejected_range_locked";
    /// An internal error of the client or the cluster.
    INTERNAL_ERROR = 4100, "internal_error";
    /// The call is not allowed in the transaction's current state.
    CLIENT_INVALID_OPERATION = 2000, "client_invalid_operation";
    /// The key is outside the range that the transaction may access.
    KEY_OUTSIDE_LEGAL_RANGE = 2004, "key_outside_legal_range";
    /// A range's begin is greater than its end.
    INVERTED_RANGE = 2005, "inverted_range";
    /// The value of an option is invalid.
    INVALID_OPTION_VALUE = 2006, "invalid_option_value";
    /// The option does not exist or cannot be set now.
    INVALID_OPTION = 2007, "invalid_option";
    /// The read version was already set.
    READ_VERSION_ALREADY_SET = 2010, "read_version_already_set";
    /// The version is invalid for a transaction.
    VERSION_INVALID = 2011, "version_invalid";
    /// The limits of a range read are invalid.
    RANGE_LIMITS_INVALID = 2012, "range_limits_invalid";
    /// A future was read before it was set.
    FUTURE_NOT_SET = 2015, "future_not_set";
    /// Another call was made while the transaction was committing.
    USED_DURING_COMMIT = 2017, "used_during_commit";
    /// The atomic operation does not exist.
    INVALID_MUTATION_TYPE = 2018, "invalid_mutation_type";
    /// The transaction has no usable version.
    TRANSACTION_INVALID_VERSION = 2020, "transaction_invalid_version";
    /// A read-only transaction has no commit version.
    NO_COMMIT_VERSION = 2021, "no_commit_version";
    /// The transaction may not write.
    TRANSACTION_READ_ONLY = 2023, "transaction_read_only";
    /// A mapper refers to an element that the key or value does not have.
    MAPPER_BAD_INDEX = 2030, "mapper_bad_index";
    /// A mapper's `{...}` is not its last element.
    MAPPER_BAD_RANGE_DESCRIPTOR = 2032, "mapper_bad_range_decriptor";
    /// A mapped range includes keys that the transaction has written.
    GET_MAPPED_RANGE_READS_YOUR_WRITES = 2039, "get_mapped_range_reads_your_writes";
    /// A mapper refers to an element of a key that is not a tuple.
    KEY_NOT_TUPLE = 2041, "key_not_tuple";
    /// A mapper refers to an element of a value that is not a tuple.
    VALUE_NOT_TUPLE = 2042, "value_not_tuple";
    /// A mapper is not a tuple.
    MAPPER_NOT_TUPLE = 2043, "mapper_not_tuple";
    /// The transaction exceeds its size limit.
    TRANSACTION_TOO_LARGE = 2101, "transaction_too_large";
    /// A key exceeds 10,000 bytes (30,000 for system keys).
    KEY_TOO_LARGE = 2102, "key_too_large";
    /// A value exceeds 100,000 bytes.
    VALUE_TOO_LARGE = 2103, "value_too_large";
    /// The operation is not supported.
    UNSUPPORTED_OPERATION = 2108, "unsupported_operation";
    /// A read of special keys crosses a module.
    SPECIAL_KEYS_CROSS_MODULE_READ = 2112, "special_keys_cross_module_read";
    /// A read of special keys touches no module.
    SPECIAL_KEYS_NO_MODULE_FOUND = 2113, "special_keys_no_module_found";
    /// Writes to special keys require the option that enables them.
    SPECIAL_KEYS_WRITE_DISABLED = 2114, "special_keys_write_disabled";
    /// No module accepts writes to these special keys.
    SPECIAL_KEYS_NO_WRITE_MODULE_FOUND = 2115, "special_keys_no_write_module_found";
    /// A write to special keys crosses modules.
    SPECIAL_KEYS_CROSS_MODULE_CLEAR = 2116, "special_keys_cross_module_clear";
    /// A special-keys call failed; the error message key holds the reason.
    SPECIAL_KEYS_API_FAILURE = 2117, "special_keys_api_failure";
    /// Exact mode requires a limit.
    EXACT_MODE_WITHOUT_LIMITS = 2210, "exact_mode_without_limits";
}

impl Error {
    /// The error with FoundationDB's numeric code `code`. Zero is not an error and must not be passed.
    pub const fn from_code(code: i32) -> Error {
        Error(code)
    }

    /// FoundationDB's numeric code.
    pub const fn code(self) -> i32 {
        self.0
    }

    /// True if [`Transaction::on_error`](super::Transaction::on_error) would retry: the union of the next two
    /// predicates.
    pub const fn is_retryable(self) -> bool {
        self.is_maybe_committed() || self.is_retryable_not_committed()
    }

    /// True if the transaction may have committed although the commit failed with this error, and the error
    /// is nevertheless retryable (1021 and 1039).
    pub const fn is_maybe_committed(self) -> bool {
        matches!(self, Self::COMMIT_UNKNOWN_RESULT | Self::CLUSTER_VERSION_CHANGED)
    }

    /// True if the transaction certainly did not commit and a retry may succeed.
    pub const fn is_retryable_not_committed(self) -> bool {
        matches!(
            self,
            Self::TRANSACTION_TOO_OLD
                | Self::FUTURE_VERSION
                | Self::NOT_COMMITTED
                | Self::PROCESS_BEHIND
                | Self::DATABASE_LOCKED
                | Self::COMMIT_PROXY_MEMORY_LIMIT_EXCEEDED
                | Self::BATCH_TRANSACTION_THROTTLED
                | Self::GRV_PROXY_MEMORY_LIMIT_EXCEEDED
                | Self::TAG_THROTTLED
                | Self::PROXY_TAG_THROTTLED
                | Self::TRANSACTION_THROTTLED_HOT_SHARD
                | Self::TRANSACTION_REJECTED_RANGE_LOCKED
        )
    }

    /// True if a commit that failed with this error certainly did not happen and never will: the errors that
    /// reject a transaction before it is sent, and those by which the cluster reports that it rejected it.
    pub const fn means_not_committed(self) -> bool {
        self.is_retryable_not_committed()
            || matches!(
                self,
                Self::ACCESSED_UNREADABLE
                    | Self::CLIENT_INVALID_OPERATION
                    | Self::KEY_OUTSIDE_LEGAL_RANGE
                    | Self::INVERTED_RANGE
                    | Self::INVALID_OPTION_VALUE
                    | Self::INVALID_OPTION
                    | Self::RANGE_LIMITS_INVALID
                    | Self::INVALID_MUTATION_TYPE
                    | Self::TRANSACTION_READ_ONLY
                    | Self::TRANSACTION_TOO_LARGE
                    | Self::KEY_TOO_LARGE
                    | Self::VALUE_TOO_LARGE
                    | Self::SPECIAL_KEYS_CROSS_MODULE_READ
                    | Self::SPECIAL_KEYS_NO_MODULE_FOUND
                    | Self::SPECIAL_KEYS_WRITE_DISABLED
                    | Self::SPECIAL_KEYS_NO_WRITE_MODULE_FOUND
                    | Self::SPECIAL_KEYS_CROSS_MODULE_CLEAR
                    | Self::SPECIAL_KEYS_API_FAILURE
                    | Self::EXACT_MODE_WITHOUT_LIMITS
            )
    }

    /// True if a commit that failed with this error may have happened, whether or not the error is retryable:
    /// every error that does not [mean the contrary](Error::means_not_committed), including codes without a
    /// name in this module. Besides 1021 and 1039 these are the timeout, the cancelled and the dropped
    /// transaction, the fatal unknown result, and 2017, where a clone of the transaction was used during the
    /// commit. After any of these except 1021 the commit may even take effect *later*.
    ///
    /// Only applicable to the error of a commit; the error of a read carries no information about a commit.
    pub const fn leaves_commit_unknown(self) -> bool {
        !self.means_not_committed()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicates_agree_with_the_c_client() {
        let maybe: Vec<i32> =
            Error::ALL.iter().filter(|e| e.is_maybe_committed()).map(|e| e.code()).collect();
        assert_eq!(maybe, [1021, 1039]);
        let not: Vec<i32> =
            Error::ALL.iter().filter(|e| e.is_retryable_not_committed()).map(|e| e.code()).collect();
        assert_eq!(not, [1007, 1009, 1020, 1037, 1038, 1042, 1051, 1078, 1213, 1223, 1235, 1242]);
        for e in Error::ALL {
            assert_eq!(e.is_retryable(), maybe.contains(&e.code()) || not.contains(&e.code()), "{e}");
            assert_ne!(e.name(), "unknown_error");
        }
    }

    #[test]
    fn a_commit_is_unknown_unless_its_error_is_known_to_refuse_it() {
        let unknown: Vec<i32> =
            Error::ALL.iter().filter(|e| e.leaves_commit_unknown()).map(|e| e.code()).collect();
        let expected = [
            1021, 1022, 1025, 1031, 1032, 1034, 1039, 1079, 1100, 1101, 4100, 2010, 2011, 2015, 2017, 2020,
            2021, 2030, 2032, 2039, 2041, 2042, 2043, 2108,
        ];
        assert_eq!(unknown, expected);
        for unlisted in [1000, 1500, 1510, 2200, 4000] {
            assert!(Error::from_code(unlisted).leaves_commit_unknown(), "{unlisted}");
        }
        for e in Error::ALL {
            assert!(!(e.is_maybe_committed() && e.means_not_committed()), "{e}");
        }
    }
}
