//! The delays of `on_error`, and the errors for which it retries.

use crate::rt::{MILLISECOND, Nanos, SECOND};
use shaketable_tx::Error;

/// The first backoff (`DEFAULT_BACKOFF`), and the fixed delay after 1007 and 1009.
pub const FIRST: Nanos = 10 * MILLISECOND;
/// The maximum backoff when the cluster lacks resources (`RESOURCE_CONSTRAINED_MAX_BACKOFF`).
const CONSTRAINED_MAX: Nanos = 30 * SECOND;

/// A blob granule request failed: the only error that is retried although no predicate includes it.
const BLOB_GRANULE_REQUEST_FAILED: Error = Error::BLOB_GRANULE_REQUEST_FAILED;

/// The delay before a retry after `error`, and the backoff for the next one; `None` if the error is not
/// retryable. `draw` is uniform in `[0, 1)`.
pub fn delay(error: Error, backoff: Nanos, max: Nanos, draw: impl FnOnce() -> f64) -> Option<(Nanos, Nanos)> {
    match error {
        Error::TRANSACTION_TOO_OLD | Error::FUTURE_VERSION => Some((FIRST.min(max), backoff)),
        // The multi-version client retries this error itself, without a delay.
        Error::CLUSTER_VERSION_CHANGED => None,
        _ if error.is_retryable() || error == BLOB_GRANULE_REQUEST_FAILED => {
            let limit = match error {
                Error::COMMIT_PROXY_MEMORY_LIMIT_EXCEEDED
                | Error::GRV_PROXY_MEMORY_LIMIT_EXCEEDED
                | Error::TRANSACTION_THROTTLED_HOT_SHARD
                | Error::TRANSACTION_REJECTED_RANGE_LOCKED => CONSTRAINED_MAX,
                _ => max,
            };
            Some(((backoff as f64 * draw()) as Nanos, (backoff * 2).min(limit)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backoff_doubles_up_to_its_limit() {
        let mut backoff = FIRST;
        let mut delays = Vec::new();
        for _ in 0..9 {
            let (wait, next) = delay(Error::NOT_COMMITTED, backoff, SECOND, || 1.0).unwrap();
            delays.push(wait / MILLISECOND);
            backoff = next;
        }
        assert_eq!(delays, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        let constrained = delay(Error::COMMIT_PROXY_MEMORY_LIMIT_EXCEEDED, backoff, SECOND, || 0.5);
        assert_eq!(constrained, Some((SECOND / 2, 2 * SECOND)));
    }

    #[test]
    fn an_old_version_waits_a_fixed_short_time() {
        assert_eq!(delay(Error::TRANSACTION_TOO_OLD, SECOND, SECOND, || 0.3), Some((FIRST, SECOND)));
        assert_eq!(delay(Error::FUTURE_VERSION, SECOND, MILLISECOND, || 0.3), Some((MILLISECOND, SECOND)));
    }

    #[test]
    fn errors_are_retried_according_to_the_predicates_with_two_exceptions() {
        for error in Error::ALL {
            let retried = delay(*error, FIRST, SECOND, || 0.5).is_some();
            let expected = match error.code() {
                1039 => false,
                1079 => true,
                _ => error.is_retryable(),
            };
            assert_eq!(retried, expected, "{error}");
        }
    }
}
