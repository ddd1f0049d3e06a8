//! The types of `fdb_c.h`, with their layout.

#![allow(non_camel_case_types, reason = "the names of the header")]

use std::ffi::{c_char, c_int, c_void};

/// An error code; 0 is success.
pub type fdb_error_t = c_int;
/// 0 is false.
pub type fdb_bool_t = c_int;

/// A function that is called when the network thread ends.
pub type CompletionHook = Option<unsafe extern "C" fn(*mut c_void)>;

/// A key. It belongs to the future that it comes from.
#[repr(C, packed(4))]
#[derive(Clone, Copy)]
pub struct FDBKey {
    /// The first byte.
    pub key: *const u8,
    /// The number of bytes.
    pub key_length: c_int,
}

/// A key and its value. Both belong to the future that they come from.
#[repr(C, packed(4))]
#[derive(Clone, Copy)]
pub struct FDBKeyValue {
    /// The first byte of the key.
    pub key: *const u8,
    /// Its length.
    pub key_length: c_int,
    /// The first byte of the value.
    pub value: *const u8,
    /// Its length.
    pub value_length: c_int,
}

/// A key selector.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FDBKeySelector {
    /// The base key.
    pub key: FDBKey,
    /// Whether the base key counts as before.
    pub or_equal: fdb_bool_t,
    /// The number of keys to move.
    pub offset: c_int,
}

/// A range that a row of a mapped range maps to, and its rows.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FDBGetRangeReqAndResult {
    /// Where it begins.
    pub begin: FDBKeySelector,
    /// Where it ends.
    pub end: FDBKeySelector,
    /// Its rows.
    pub data: *const FDBKeyValue,
    /// How many there are.
    pub m_size: c_int,
    /// How many there is room for.
    pub m_capacity: c_int,
}

/// A row of a mapped range.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FDBMappedKeyValue {
    /// The key.
    pub key: FDBKey,
    /// The value.
    pub value: FDBKey,
    /// What it maps to.
    pub get_range: FDBGetRangeReqAndResult,
    /// Room that the C client uses for itself.
    pub buffer: [u8; 32],
}

/// A range of keys.
#[repr(C, packed(4))]
#[derive(Clone, Copy)]
pub struct FDBKeyRange {
    /// The first byte of the begin.
    pub begin_key: *const u8,
    /// Its length.
    pub begin_key_length: c_int,
    /// The first byte of the end.
    pub end_key: *const u8,
    /// Its length.
    pub end_key_length: c_int,
}

/// How a program reads the files of blob granules.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FDBReadBlobGranuleContext {
    /// A parameter of the functions.
    pub user_context: *mut c_void,
    /// Begins to load a part of a file.
    pub start_load: Option<unsafe extern "C" fn(*const c_char, c_int, i64, i64, i64, *mut c_void) -> i64>,
    /// Returns what was loaded.
    pub get_load: Option<unsafe extern "C" fn(i64, *mut c_void) -> *mut u8>,
    /// Frees what was loaded.
    pub free_load: Option<unsafe extern "C" fn(i64, *mut c_void)>,
    /// Whether files are not read.
    pub debug_no_materialize: fdb_bool_t,
    /// How many granules are loaded at once.
    pub granule_parallelism: c_int,
}

const _: () = {
    // As the header documents them for a 64-bit machine.
    assert!(cfg!(not(target_pointer_width = "64")) || size_of::<FDBKey>() == 12);
    assert!(cfg!(not(target_pointer_width = "64")) || size_of::<FDBKeyValue>() == 24);
    assert!(cfg!(not(target_pointer_width = "64")) || size_of::<FDBKeyRange>() == 24);
    assert!(cfg!(not(target_pointer_width = "64")) || size_of::<FDBKeySelector>() == 20);
    assert!(cfg!(not(target_pointer_width = "64")) || size_of::<FDBGetRangeReqAndResult>() == 56);
    assert!(cfg!(not(target_pointer_width = "64")) || size_of::<FDBMappedKeyValue>() == 112);
};
