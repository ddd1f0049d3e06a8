//! Reading results, as any type, and every byte of them.

use super::steps::Text;
use fdb_c::abi::{
    future::FDBFuture,
    results::*,
    types::{FDBKey, FDBKeyValue},
};
use std::{
    ffi::{CStr, c_int},
    ptr::{null, null_mut},
};

/// The type of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Nothing,
    Int64,
    UInt64,
    Double,
    Key,
    Value,
    Rows,
    Mapped,
    Keys,
    Strings,
    /// A type that no future has: a function by number.
    Absent(u8),
}

impl Kind {
    /// A type by number.
    pub fn numbered(which: u8) -> Kind {
        use Kind::*;
        match which % 16 {
            0 | 1 => Int64,
            2 => UInt64,
            3 => Double,
            4 | 5 => Key,
            6 | 7 => Value,
            8 | 9 => Rows,
            10 => Mapped,
            11 => Keys,
            12 => Strings,
            which => Absent(which),
        }
    }
}

/// A result that was read.
#[derive(Debug, Default)]
pub struct Found {
    /// Keys and values, in order.
    pub rows: Vec<(Vec<u8>, Vec<u8>)>,
    /// A value or a key.
    pub bytes: Option<Vec<u8>>,
}

/// Copies bytes that a result owns.
///
/// # Safety
///
/// Null, or readable for `length` bytes.
unsafe fn copy(start: *const u8, length: c_int) -> Vec<u8> {
    match usize::try_from(length).expect("a length is not negative") {
        0 => Vec::new(),
        // SAFETY: as the caller promises.
        length => unsafe { std::slice::from_raw_parts(start, length) }.to_vec(),
    }
}

/// The structures of an array that a result owns.
///
/// # Safety
///
/// `start` leads to `count` structures, maybe not aligned.
unsafe fn all<T: Copy>(start: *const T, count: c_int) -> Vec<T> {
    let count = usize::try_from(count).expect("a count is not negative");
    // SAFETY: as the caller promises.
    (0..count).map(|n| unsafe { start.add(n).read_unaligned() }).collect()
}

/// Reads rows.
///
/// # Safety
///
/// As for [`all`]; keys and values are readable.
unsafe fn rows(start: *const FDBKeyValue, count: c_int) -> Vec<(Vec<u8>, Vec<u8>)> {
    // SAFETY: as the caller promises.
    let all = unsafe { all(start, count) };
    // SAFETY: as the caller promises.
    all.iter()
        .map(|row| unsafe { (copy(row.key, row.key_length), copy(row.value, row.value_length)) })
        .collect()
}

/// Reads a future without taking the result: every pointer is null.
///
/// # Safety
///
/// `f` is a future that was not destroyed.
pub unsafe fn probe(f: *mut FDBFuture, kind: Kind) -> c_int {
    // SAFETY: as the caller promises; null pointers are allowed.
    unsafe {
        match kind {
            Kind::Nothing | Kind::Int64 => fdb_future_get_int64(f, null_mut()),
            Kind::UInt64 => fdb_future_get_uint64(f, null_mut()),
            Kind::Double => fdb_future_get_double(f, null_mut()),
            Kind::Key => fdb_future_get_key(f, null_mut(), null_mut()),
            Kind::Value => fdb_future_get_value(f, null_mut(), null_mut(), null_mut()),
            Kind::Rows => fdb_future_get_keyvalue_array(f, null_mut(), null_mut(), null_mut()),
            Kind::Mapped => fdb_future_get_mappedkeyvalue_array(f, null_mut(), null_mut(), null_mut()),
            Kind::Keys => fdb_future_get_key_array(f, null_mut(), null_mut()),
            Kind::Strings => fdb_future_get_string_array(f, null_mut(), null_mut()),
            Kind::Absent(13) => fdb_future_get_bool(f, null_mut()),
            Kind::Absent(14) => fdb_future_get_keyrange_array(f, null_mut(), null_mut()),
            Kind::Absent(15) => fdb_future_get_granule_summary_array(f, null_mut(), null_mut()),
            Kind::Absent(_) => fdb_future_readbg_get_descriptions(f, null_mut(), null_mut()),
        }
    }
}

/// Reads a future as a type, and every byte of the result.
///
/// # Safety
///
/// `f` is a future that was not destroyed, and no other thread releases its memory meanwhile.
pub unsafe fn read(f: *mut FDBFuture, kind: Kind) -> Result<Found, c_int> {
    let mut found = Found::default();
    let (mut start, mut length, mut flag) = (null(), 0, 0);
    let ok = |code| if code == 0 { Ok(()) } else { Err(code) };
    // SAFETY: the pointers are valid for writes; what is stored there belongs to the future, which is neither
    // destroyed nor released during this call.
    unsafe {
        match kind {
            Kind::Int64 => ok(fdb_future_get_int64(f, &mut 0))?,
            Kind::UInt64 => ok(fdb_future_get_uint64(f, &mut 0))?,
            Kind::Double => ok(fdb_future_get_double(f, &mut 0.0))?,
            Kind::Key => {
                ok(fdb_future_get_key(f, &mut start, &mut length))?;
                found.bytes = Some(copy(start, length));
            }
            Kind::Value => {
                ok(fdb_future_get_value(f, &mut flag, &mut start, &mut length))?;
                found.bytes = (flag != 0).then(|| copy(start, length));
            }
            Kind::Rows => {
                let mut start = null();
                ok(fdb_future_get_keyvalue_array(f, &mut start, &mut length, &mut flag))?;
                found.rows = rows(start, length);
            }
            Kind::Mapped => {
                let mut start = null();
                ok(fdb_future_get_mappedkeyvalue_array(f, &mut start, &mut length, &mut flag))?;
                for row in all(start, length) {
                    let inner = row.get_range;
                    let ends = [inner.begin.key, inner.end.key, row.value];
                    ends.iter().for_each(|key| drop(copy(key.key, key.key_length)));
                    rows(inner.data, inner.m_size);
                    found.rows.push((copy(row.key.key, row.key.key_length), Vec::new()));
                }
            }
            Kind::Keys => {
                let mut start: *const FDBKey = null();
                ok(fdb_future_get_key_array(f, &mut start, &mut length))?;
                let keys = all(start, length);
                found.rows = keys.iter().map(|key| (copy(key.key, key.key_length), Vec::new())).collect();
            }
            Kind::Strings => {
                let mut start = null();
                ok(fdb_future_get_string_array(f, &mut start, &mut length))?;
                all(start, length).into_iter().for_each(|text| drop(CStr::from_ptr(text).to_owned()));
            }
            Kind::Nothing | Kind::Absent(_) => ok(probe(f, kind))?,
        }
    }
    Ok(found)
}

impl Text {
    /// The bytes, as the library takes them.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Text::Null(_) => Vec::new(),
            Text::Bytes(bytes) => bytes.clone(),
            Text::Long(length) => vec![b'k'; *length],
        }
    }

    /// Calls with pointer and length.
    pub fn with<T>(&self, call: impl FnOnce(*const u8, c_int) -> T) -> T {
        match self {
            Text::Null(length) => call(null(), *length),
            text => {
                // On the heap, exactly as long as it says: a sanitizer sees a read beyond it.
                let bytes = text.bytes().into_boxed_slice();
                call(bytes.as_ptr(), c_int::try_from(bytes.len()).expect("it is short"))
            }
        }
    }
}
