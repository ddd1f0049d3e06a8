//! Names and predicates of error codes.

use super::{
    types::{fdb_bool_t, fdb_error_t},
    versions::{is_eight, is_retried_no_more},
};
use shaketable_tx::Error;
use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, c_char, c_int},
    sync::LazyLock,
};

/// Success.
pub const SUCCESS: fdb_error_t = 0;
/// `network_not_setup`
pub const NETWORK_NOT_SETUP: fdb_error_t = 2008;
/// `network_already_setup`
pub const NETWORK_ALREADY_SETUP: fdb_error_t = 2009;
/// `environment_variable_network_option_failed`
pub const ENVIRONMENT_FAILED: fdb_error_t = 2022;
/// `network_cannot_be_restarted`
pub const NETWORK_CANNOT_BE_RESTARTED: fdb_error_t = 2025;
/// `blocked_from_network_thread`
pub const BLOCKED_FROM_NETWORK_THREAD: fdb_error_t = 2026;
/// `api_version_already_set`
pub const API_VERSION_ALREADY_SET: fdb_error_t = 2201;
/// `api_version_invalid`
pub const API_VERSION_INVALID: fdb_error_t = 2202;
/// `api_version_not_supported`
pub const API_VERSION_NOT_SUPPORTED: fdb_error_t = 2203;
/// `platform_error`
pub const PLATFORM_ERROR: fdb_error_t = 1500;

/// `future_released`
pub const FUTURE_RELEASED: Error = Error::from_code(1102);
/// `connection_string_invalid`
pub const CONNECTION_STRING_INVALID: Error = Error::from_code(2104);
/// `tenant_not_found`
pub const TENANT_NOT_FOUND: Error = Error::from_code(2131);
/// `snap_path_not_whitelisted`
pub const SNAP_PATH_NOT_WHITELISTED: Error = Error::from_code(2505);
/// `snap_invalid_uid_string`
pub const SNAP_INVALID_UID_STRING: Error = Error::from_code(2509);

/// What a program passes as an error: `unknown_error` (4000) for what is no code.
pub fn from_program(code: fdb_error_t) -> Error {
    Error::from_code(if (0..=30_000).contains(&code) { code } else { 4000 })
}

/// The codes of FoundationDB: each with its name in 7.4 and, where that differs, in 8.0; `-` for none.
const NAMES: &str = include_str!("errors.txt");

static TABLE: LazyLock<BTreeMap<c_int, [CString; 2]>> = LazyLock::new(|| {
    let names = |line: &str| {
        let mut words = line.split(' ');
        let code = words.next()?.parse().ok()?;
        let old = words.next()?;
        let name = |word| CString::new(if word == "-" { "UNKNOWN_ERROR" } else { word }).ok();
        Some((code, [name(old)?, name(words.next().unwrap_or(old))?]))
    };
    NAMES.lines().filter_map(names).collect()
});

/// The name of a code, for the client of 8.0 or of 7.4.
fn name(code: c_int, is_eight: bool) -> &'static CStr {
    TABLE.get(&code).map_or(c"UNKNOWN_ERROR", |names| &names[usize::from(is_eight)])
}

/// The name of an error code, such as `not_committed`; never null.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_get_error(code: fdb_error_t) -> *const c_char {
    name(code, is_eight()).as_ptr()
}

/// Whether a code satisfies a predicate: 50000 retryable, 50001 maybe committed, 50002 retryable and not
/// committed.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_error_predicate(predicate: c_int, code: fdb_error_t) -> fdb_bool_t {
    let error = Error::from_code(code);
    if is_retried_no_more(error) {
        return 0;
    }
    let holds = match predicate {
        50_000 => error.is_retryable(),
        50_001 => error.is_maybe_committed(),
        50_002 => error.is_retryable_not_committed(),
        _ => false,
    };
    holds.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_name_and_those_of_the_contract_agree() {
        assert_eq!(TABLE.len(), NAMES.lines().count());
        for error in Error::ALL {
            assert_eq!(name(error.code(), false).to_str(), Ok(error.name()));
        }
        assert_eq!([name(1, false), name(1, true)], [c"end_of_stream"; 2]);
        assert_eq!(name(31_000, false), c"UNKNOWN_ERROR");
        assert_eq!(
            [name(1251, false), name(1251, true)],
            [c"UNKNOWN_ERROR", c"transaction_grv_queue_rejected"]
        );
        assert_eq!([name(2131, false), name(2131, true)], [c"tenant_not_found", c"UNKNOWN_ERROR"]);
    }
}
