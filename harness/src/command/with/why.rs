//! Why FoundationDB gives an error to a program, and where its documentation says so.

use shaketable_sim::faults::Family;
use shaketable_tx::Error;
use std::collections::BTreeMap;

/// Where FoundationDB's documentation is.
const DOCUMENTATION: &str = "https://apple.github.io/foundationdb/";

/// When an error is given and what it means for the transaction, and the page about it.
pub(super) fn why(error: Error) -> (&'static str, String) {
    let (meaning, page) = match error {
        Error::NOT_COMMITTED => (
            "Another transaction has changed what this one has read, or may have: the cluster may refuse more \
             than it must. Nothing was committed. A retry loop runs the transaction again.",
            "developer-guide.html#developer-guide-transaction-conflicts",
        ),
        Error::COMMIT_UNKNOWN_RESULT | Error::CLUSTER_VERSION_CHANGED | Error::TRANSACTION_TIMED_OUT => (
            "The client does not know the result of what it has sent: the answer was lost (1021), the client has \
             begun to use another connection to the cluster (1039), or the program's timeout has expired (1031). \
             If it was a commit, the transaction may be committed or not. A retry loop runs it again after 1021 \
             and 1039, so that what it does may be done twice, unless it finds out that it was done.",
            "developer-guide.html#developer-guide-unknown-results",
        ),
        Error::TRANSACTION_TOO_OLD => (
            "The servers keep the past for about five seconds, and may forget a version earlier, which a \
             simulated one does at times. A retry loop runs the transaction again, at a new version.",
            "developer-guide.html#developer-guide-long-transactions",
        ),
        Error::FUTURE_VERSION | Error::PROCESS_BEHIND => (
            "The server that has the key is behind the transaction's read version, and did not catch up in time. \
             A retry loop runs the transaction again.",
            "api-error-codes.html",
        ),
        Error::COMMIT_PROXY_MEMORY_LIMIT_EXCEEDED | Error::GRV_PROXY_MEMORY_LIMIT_EXCEEDED => (
            "A proxy has too many requests, and refuses this one. Nothing was committed. A retry loop runs the \
             transaction again.",
            "api-error-codes.html",
        ),
        Error::BATCH_TRANSACTION_THROTTLED
        | Error::TAG_THROTTLED
        | Error::PROXY_TAG_THROTTLED
        | Error::TRANSACTION_THROTTLED_HOT_SHARD
        | Error::TRANSACTION_REJECTED_RANGE_LOCKED => (
            "The cluster takes no such transactions at the moment, to protect a part of it that has too much to do \
             or is being moved. Nothing was committed. A retry loop runs the transaction again.",
            "api-error-codes.html",
        ),
        Error::DATABASE_LOCKED => (
            "An operator has locked the database, as one does to copy it. It ends with the lock.",
            "api-error-codes.html",
        ),
        Error::TRANSACTION_CANCELLED | Error::OPERATION_CANCELLED => (
            "The program has cancelled or destroyed the transaction, or has stopped the network.",
            "api-error-codes.html",
        ),
        _ => ("", "api-error-codes.html"),
    };
    (meaning, format!("{DOCUMENTATION}{page}"))
}

/// How often the simulation gave an error without another cause, of the faults that struck; `None` if none
/// gives it. A fault that gives one of several errors counts for none of them.
pub(super) fn injected(error: Error, struck: &BTreeMap<Family, u64>) -> Option<BTreeMap<String, u64>> {
    let mut families = Family::ALL.iter().filter(|family| family.error() == Some(error)).peekable();
    families.peek()?;
    let times =
        |family: &Family| Some((family.name().to_owned(), *struck.get(family).filter(|times| **times > 0)?));
    Some(families.filter_map(times).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_after_which_a_transaction_is_run_again_has_its_meaning() {
        for error in Error::ALL.iter().filter(|error| error.is_retryable()) {
            let (meaning, link) = why(*error);
            assert!(!meaning.is_empty() && link.starts_with(DOCUMENTATION), "{error}");
        }
    }

    #[test]
    fn injected_errors_are_counted_by_their_faults() {
        let struck = BTreeMap::from([
            (Family::UnknownCommitted, 2),
            (Family::UnknownNotCommitted, 1),
            (Family::SpuriousConflict, 0),
            (Family::Kill, 4),
        ]);
        let named = |faults: &[(&str, u64)]| {
            Some(faults.iter().map(|(fault, n)| ((*fault).to_owned(), *n)).collect())
        };
        let unknown = named(&[("unknown-committed", 2), ("unknown-not-committed", 1)]);
        assert_eq!(injected(Error::COMMIT_UNKNOWN_RESULT, &struck), unknown);
        assert_eq!(injected(Error::NOT_COMMITTED, &struck), named(&[]));
        assert_eq!(injected(Error::TRANSACTION_CANCELLED, &struck), None);
    }
}
