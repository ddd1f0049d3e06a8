//! What depends on the version of the API that the program selected.

use super::selected::api_version;
use bytes::Bytes;
use shaketable_session::{Action, Call, Command, Reply};
use shaketable_tx::{Error, KEY_SIZE_LIMIT, RangeOption, Result, StreamingMode};
use std::{
    ffi::c_int,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

/// From this version on, snapshot reads see the transaction's own writes.
const SNAPSHOTS_SEE_WRITES: c_int = 300;
/// From this version on, a commit leaves its transaction to be reset.
const COMMIT_RESETS_NOT: c_int = 410;
/// From this version on, the offset of a versionstamp has four bytes, and values have one.
const LONG_OFFSETS: c_int = 520;
/// From this version on, an error that is not retryable leaves its transaction to be reset.
const ERROR_ENDS: c_int = 610;
/// From this version on, transactions write special keys, and a commit leaves its transaction as it is.
pub(super) const KEEPS_COMMITTED: c_int = 700;
/// From this version on, the cache of read versions belongs to the state that the databases of several client
/// libraries share.
const SHARED_CACHE: c_int = 720;
/// From this version on, the client is that of FoundationDB 8.0.
pub const EIGHT: c_int = 800;

/// The database option `SNAPSHOT_RYW_DISABLE`.
const SNAPSHOT_RYW_DISABLE: c_int = 27;
/// The operation `SET_VERSIONSTAMPED_KEY`.
const STAMPED_KEY: u32 = 14;
/// The operation `SET_VERSIONSTAMPED_VALUE`.
const STAMPED_VALUE: u32 = 15;
/// The transaction option `USE_GRV_CACHE`.
const USE_GRV_CACHE: c_int = 1101;
/// The transaction option `MAX_GRV_QUEUE_DELAY`.
const MAX_GRV_QUEUE_DELAY: c_int = 1103;
/// The database option `USE_CONFIG_DATABASE`.
const USE_CONFIG_DATABASE: c_int = 800;
/// The transaction option `TIMEOUT`.
const TIMEOUT: c_int = 500;
/// The transaction option `DURABILITY_DATACENTER`, which has no effect.
const NO_EFFECT: c_int = 110;
/// The bytes of a batch in the modes `SERIAL` and `WANT_ALL` of 8.0.
const SERIAL_BYTES: usize = 120_000;
/// An error that no client retries.
const NOT_RETRYABLE: Error = Error::from_code(4000);
/// A code that no option has: its error is that of a refused option, with the next call.
const NO_OPTION: c_int = 0;
/// A key that no transaction writes, and that is no special key.
const BEYOND: Bytes = Bytes::from_static(b"\xff\xff\xff");

/// Whether the databases have shared state: several client libraries may be loaded.
static HAS_SHARED_STATE: AtomicBool = AtomicBool::new(false);

/// A network option was set. `EXTERNAL_CLIENT_LIBRARY`, `EXTERNAL_CLIENT_DIRECTORY` and
/// `DISABLE_CLIENT_BYPASS` end the shortcut past the client that chooses between several libraries.
pub fn network_option_set(code: c_int) {
    if matches!(code, 62 | 63 | 72) {
        HAS_SHARED_STATE.store(true, SeqCst);
    }
}

fn is_special(key: &[u8]) -> bool {
    (&b"\xff\xff"[..]..&BEYOND).contains(&key)
}

fn with_zeros(bytes: &[u8], zeros: usize) -> Bytes {
    [bytes, &[0; 8][..zeros]].concat().into()
}

/// Whether the client is that of FoundationDB 8.0.
pub fn is_eight() -> bool {
    api_version() >= EIGHT
}

/// Whether transactions have an option that 7.4 does not have.
pub fn is_new_option(code: c_int) -> bool {
    code == MAX_GRV_QUEUE_DELAY && is_eight()
}

/// Whether databases have an option no more.
pub fn is_removed_option(code: c_int) -> bool {
    code == USE_CONFIG_DATABASE && is_eight()
}

/// Whether `on_error` and the predicates retry an error that 8.0 does not have any more.
pub fn is_retried_no_more(error: Error) -> bool {
    is_eight() && matches!(error, Error::PROXY_TAG_THROTTLED | Error::BLOB_GRANULE_REQUEST_FAILED)
}

/// Whether a key has more bytes than one of 8.0. System keys have the same limit in both.
fn is_long(key: &[u8], limit: usize) -> bool {
    key.len() > limit && key[0] != 0xff
}

/// A key of 8.0, where raw access adds nothing to the longest: one that is too long is so in 7.4 too.
fn whole(key: Bytes) -> Bytes {
    if is_long(&key, KEY_SIZE_LIMIT) { with_zeros(&key, 8) } else { key }
}

/// The end of a conflict range of 8.0, cut to one byte more than the longest key.
fn cut(key: Bytes) -> Bytes {
    if is_long(&key, KEY_SIZE_LIMIT + 1) { key.slice(..=KEY_SIZE_LIMIT) } else { key }
}

fn range_of_eight(mut range: RangeOption) -> RangeOption {
    if matches!(range.mode, StreamingMode::Serial | StreamingMode::WantAll) {
        range.mode = StreamingMode::Exact;
        range.target_bytes = match range.target_bytes {
            0 => SERIAL_BYTES,
            bytes => bytes.min(SERIAL_BYTES),
        };
    }
    range
}

fn action_of_eight(action: Action) -> Action {
    match action {
        Action::Set(key, value) => Action::Set(whole(key), value),
        Action::Clear(key) => Action::Clear(whole(key)),
        Action::AddConflictRange(begin, end, kind) => Action::AddConflictRange(cut(begin), cut(end), kind),
        Action::Atomic { key, operand, code } => Action::Atomic { key: whole(key), operand, code },
        // The cluster keeps no request back for as long as that. A timeout without a value has the error of
        // a value that is not accepted, with the next call.
        Action::SetOption { code: MAX_GRV_QUEUE_DELAY, value } => {
            let milliseconds =
                value.as_deref().and_then(|value| value.try_into().ok()).map(i64::from_le_bytes);
            let is_accepted = milliseconds.is_some_and(|n| (0..=i64::from(i32::MAX)).contains(&n));
            Action::SetOption { code: if is_accepted { NO_EFFECT } else { TIMEOUT }, value: None }
        }
        action => action,
    }
}

fn call_of_eight(call: Call) -> Call {
    match call {
        Call::Get(key, isolation) => Call::Get(whole(key), isolation),
        Call::Watch(key) => Call::Watch(whole(key)),
        Call::GetRange(range, iteration, isolation) => {
            Call::GetRange(range_of_eight(range), iteration, isolation)
        }
        Call::GetMappedRange(range, mapper, iteration, isolation) => {
            Call::GetMappedRange(range_of_eight(range), mapper, iteration, isolation)
        }
        Call::OnError(error) if is_retried_no_more(error) => Call::OnError(NOT_RETRYABLE),
        call => call,
    }
}

/// An answer in 8.0, whose proxies throttle no tags. `given` is the error that was passed to `on_error`, if
/// the call has another one.
fn answer_of_eight(answer: Result<Reply>, given: Option<Error>) -> Result<Reply> {
    match answer {
        Err(NOT_RETRYABLE) => Err(given.unwrap_or(NOT_RETRYABLE)),
        Err(Error::PROXY_TAG_THROTTLED) => Err(Error::TAG_THROTTLED),
        Ok(Reply::Time(_)) => Ok(Reply::Time(Duration::ZERO)),
        answer => answer,
    }
}

/// A call as the selected version makes it, and what that makes of its answer.
pub fn adapt(call: Call) -> (Call, impl FnOnce(Result<Reply>) -> Result<Reply> + Send + 'static) {
    let is_eight = is_eight();
    let given = match call {
        Call::OnError(error) if is_retried_no_more(error) => Some(error),
        _ => None,
    };
    let adapted = move |answer| if is_eight { answer_of_eight(answer, given) } else { answer };
    (if is_eight { call_of_eight(call) } else { call }, adapted)
}

/// What a database begins with.
pub fn first_option() -> Option<Command> {
    let option = Command::SetDatabaseOption { code: SNAPSHOT_RYW_DISABLE, value: None };
    (api_version() < SNAPSHOTS_SEE_WRITES).then_some(option)
}

/// Whether the end of a call resets its transaction: that of a commit, and that of a wait after an error
/// which is not retryable.
pub fn resets(call: &Call, is_failed: bool) -> bool {
    match call {
        Call::Commit => api_version() < COMMIT_RESETS_NOT,
        Call::OnError(_) => is_failed && api_version() < ERROR_ENDS,
        _ => false,
    }
}

/// An action as the selected version takes it.
pub fn translate(action: Action) -> Action {
    let before = |version| api_version() < version;
    match if is_eight() { action_of_eight(action) } else { action } {
        // Keys like any other that lie outside of the legal range.
        Action::Set(key, value) if is_special(&key) && before(KEEPS_COMMITTED) => Action::Set(BEYOND, value),
        Action::Clear(key) if is_special(&key) && before(KEEPS_COMMITTED) => Action::Clear(BEYOND),
        Action::ClearRange(begin, end)
            if is_special(&begin) && begin <= end && end <= BEYOND && before(KEEPS_COMMITTED) =>
        {
            Action::ClearRange(BEYOND, Bytes::from_static(b"\xff\xff\xff\0"))
        }
        Action::Atomic { key, operand, code: STAMPED_KEY } if before(LONG_OFFSETS) => {
            Action::Atomic { key: with_zeros(&key, 2), operand, code: STAMPED_KEY }
        }
        Action::Atomic { key, operand, code: STAMPED_VALUE } if before(LONG_OFFSETS) => {
            Action::Atomic { key, operand: with_zeros(&operand, 4), code: STAMPED_VALUE }
        }
        Action::SetOption { code: USE_GRV_CACHE, value }
            if value.as_ref().is_none_or(Bytes::is_empty)
                && !before(SHARED_CACHE)
                && !HAS_SHARED_STATE.load(SeqCst) =>
        {
            Action::SetOption { code: NO_OPTION, value: None }
        }
        action => action,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_keys_are_those_between_the_users_and_the_end() {
        assert!(is_special(b"\xff\xff") && is_special(b"\xff\xff/status/json"));
        assert!(!is_special(b"\xff\x02") && !is_special(b"\xff\xff\xff") && !is_special(b""));
    }
    #[test]
    fn no_tag_is_throttled_by_the_proxies_of_8_0() {
        let throttled = answer_of_eight(Err(Error::PROXY_TAG_THROTTLED), None);
        assert!(matches!(throttled, Err(Error::TAG_THROTTLED)));
        let given = answer_of_eight(Err(NOT_RETRYABLE), Some(Error::PROXY_TAG_THROTTLED));
        assert!(matches!(given, Err(Error::PROXY_TAG_THROTTLED)));
        let duration = answer_of_eight(Ok(Reply::Time(Duration::from_secs(5))), None);
        assert!(matches!(duration, Ok(Reply::Time(Duration::ZERO))));
        let other = answer_of_eight(Err(Error::NOT_COMMITTED), None);
        assert!(matches!(other, Err(Error::NOT_COMMITTED)));
    }
}
