//! The options of the network: their codes and the values that they accept.

use super::versions::is_eight;
use shaketable_tx::{Error, Result};
use std::{ffi::c_int, net::IpAddr, ops::RangeInclusive};

/// The value that an option accepts.
enum Accepts {
    /// None.
    Nothing,
    /// Any, or none.
    Anything,
    /// Any value.
    Some,
    /// A value that is not empty.
    NotEmpty,
    /// Eight bytes, little-endian, within a range.
    Integer(RangeInclusive<i64>),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// `name=value`.
    Knob,
    /// An IPv4 or IPv6 address.
    Address,
    /// Letters, digits and underscores.
    Identifier,
}

/// What the option with this code accepts; `None` for an unknown code.
fn accepts(code: c_int) -> Option<Accepts> {
    Some(match code {
        // The local address and the cluster file are deprecated, and the log group may be absent.
        10 | 20 | 30 | 33 => Accepts::Anything,
        31 | 32 => Accepts::Integer(0..=i64::MAX),
        34 => Accepts::OneOf(&["xml", "json"]),
        35 => Accepts::OneOf(&["now", "realtime"]),
        36 => Accepts::Identifier,
        39 | 41..=43 | 45..=47 | 52..=54 => Accepts::Some,
        40 => Accepts::Knob,
        // FoundationDB ignores the values of these.
        38 | 48 | 49 | 55 | 72 | 80 | 81 => Accepts::Anything,
        50 | 51 | 82 | 83 => Accepts::Integer(0..=100),
        37 | 60 | 61 | 64 | 67..=71 => Accepts::Nothing,
        62 | 63 | 66 | 91 => Accepts::NotEmpty,
        65 => Accepts::Integer(1..=1024),
        84 if is_eight() => Accepts::Address,
        90 => Accepts::OneOf(&["none", "disabled", "logfile", "file", "log_file", "network_lossy"]),
        1000..=1002 => Accepts::Anything,
        _ => return None,
    })
}

/// Options that come too late once the network is set up.
const BEFORE_SETUP: &[c_int] = &[60, 61, 62, 63, 64, CLIENT_THREADS_PER_VERSION, 66];

const CLIENT_THREADS_PER_VERSION: c_int = 65;
const DISABLE_CLIENT_BYPASS: c_int = 72;
const SUPPORTED_CLIENT_VERSIONS: c_int = 1000;
const EXTERNAL_CLIENT: c_int = 1001;

/// Whether an option reaches the client: the others are kept by what chooses between several libraries, which
/// is there before the version of the API is selected.
pub fn is_of_the_client(code: c_int) -> bool {
    let is_kept = matches!(code, 37 | 60..=69 | DISABLE_CLIENT_BYPASS | 91 | SUPPORTED_CLIENT_VERSIONS);
    accepts(code).is_some() && !is_kept
}

/// Whether the client takes this for a mistake of its own, an assertion of
/// `MultiVersionApi::setNetworkOptionInternal`.
fn breaks_an_assertion(code: c_int, value: Option<&[u8]>, is_set_up: bool) -> bool {
    match code {
        DISABLE_CLIENT_BYPASS => is_set_up,
        SUPPORTED_CLIENT_VERSIONS => value.is_none() || !is_set_up,
        EXTERNAL_CLIENT => value.is_some() || is_set_up,
        _ => false,
    }
}

/// Checks an option: 2007 for an unknown code or one that comes too late, 2006 for a value that it does not
/// accept, and 4100 for an order that the client does not expect.
pub fn check(code: c_int, value: Option<&[u8]>, is_set_up: bool) -> Result<()> {
    let accepts = accepts(code).ok_or(Error::INVALID_OPTION)?;
    if breaks_an_assertion(code, value, is_set_up) {
        return Err(Error::INTERNAL_ERROR);
    }
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let is_accepted = match (accepts, value) {
        (Accepts::Anything, _) => true,
        (Accepts::Nothing, value) => value.is_none_or(<[u8]>::is_empty),
        (_, None) => false,
        (Accepts::Some, Some(_)) => true,
        (Accepts::NotEmpty, Some(value)) => !value.is_empty(),
        (Accepts::Integer(range), Some(value)) => {
            value.try_into().is_ok_and(|bytes| range.contains(&i64::from_le_bytes(bytes)))
        }
        (Accepts::OneOf(texts), Some(value)) => texts.iter().any(|text| text.as_bytes() == value),
        (Accepts::Knob, Some(value)) => value.contains(&b'='),
        (Accepts::Address, Some(value)) => {
            std::str::from_utf8(value).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
        }
        (Accepts::Identifier, Some(value)) => value.iter().all(is_word),
    };
    // The one number among them is looked at after the order.
    let is_given = is_accepted || code == CLIENT_THREADS_PER_VERSION && value.is_some_and(|v| !v.is_empty());
    if is_set_up && BEFORE_SETUP.contains(&code) && is_given {
        return Err(Error::INVALID_OPTION);
    }
    is_accepted.then_some(()).ok_or(Error::INVALID_OPTION_VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_values_are_checked() {
        assert_eq!(check(30, Some(b"/tmp"), false), Ok(()));
        assert_eq!(check(30, None, true), Ok(()));
        assert_eq!(check(31, Some(&10_i64.to_le_bytes()), false), Ok(()));
        assert_eq!(check(31, Some(&[1, 0, 0, 0]), false), Err(Error::INVALID_OPTION_VALUE));
        assert_eq!(check(82, Some(&101_i64.to_le_bytes()), false), Err(Error::INVALID_OPTION_VALUE));
        assert_eq!(check(34, Some(b"yaml"), false), Err(Error::INVALID_OPTION_VALUE));
        assert_eq!(check(62, Some(b""), false), Err(Error::INVALID_OPTION_VALUE));
        assert_eq!(check(60, None, false), Ok(()));
        assert_eq!(check(60, None, true), Err(Error::INVALID_OPTION));
        assert_eq!(check(60, Some(b"x"), true), Err(Error::INVALID_OPTION_VALUE));
        assert_eq!(check(65, Some(b"x"), true), Err(Error::INVALID_OPTION));
        assert_eq!(check(65, Some(b"x"), false), Err(Error::INVALID_OPTION_VALUE));
        for (code, value, is_set_up) in [(72, None, true), (1000, None, true), (1000, Some(&b"x"[..]), false)]
        {
            assert_eq!(check(code, value, is_set_up), Err(Error::INTERNAL_ERROR), "{code}");
        }
        for unknown in [0, 11, 44, 999, -1] {
            assert_eq!(check(unknown, None, false), Err(Error::INVALID_OPTION));
        }
    }
}
