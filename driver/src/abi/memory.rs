//! What crosses the boundary as pointers: bytes that are copied at the call, and handles.

use bytes::Bytes;
use std::ffi::c_int;

/// Copies bytes that the caller owns. No bytes for a null pointer or a length that is not positive.
///
/// # Safety
///
/// If `length` is positive and `start` is not null, `length` bytes from `start` on must be readable.
pub unsafe fn copy(start: *const u8, length: c_int) -> Bytes {
    match usize::try_from(length) {
        // SAFETY: readable for `length` bytes, as the caller promises, and only during this call.
        Ok(length) if length > 0 && !start.is_null() => unsafe {
            Bytes::copy_from_slice(std::slice::from_raw_parts(start, length))
        },
        _ => Bytes::new(),
    }
}

/// Copies the value of an option; `None` for a null pointer.
///
/// # Safety
///
/// As for [`copy`].
pub unsafe fn copy_option(start: *const u8, length: c_int) -> Option<Bytes> {
    // SAFETY: as the caller promises.
    (!start.is_null()).then(|| unsafe { copy(start, length) })
}

/// Stores a result where the caller wants it; nowhere if the pointer is null.
///
/// # Safety
///
/// `to` must be null or valid for a write.
pub unsafe fn store<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: valid for a write, as the caller promises; it may be unaligned in a packed structure of the
        // caller.
        unsafe { to.write_unaligned(value) };
    }
}
