//! Functions that draw random numbers, or read them from a device.

use crate::{chance, real};
use libc::{EIO, FILE, c_char, c_int, c_uint, c_void, size_t, ssize_t};
use std::{
    mem::MaybeUninit,
    ptr::null_mut,
    sync::atomic::{AtomicPtr, Ordering},
};

/// The most that `getentropy` gives at once, bytes.
const MOST_ENTROPY: usize = 256;

/// The numbers of the devices of random numbers.
const DEVICES: [(c_uint, c_uint); 2] = [(1, 8), (1, 9)];

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut c_void, length: size_t, flags: c_uint) -> ssize_t {
    // SAFETY: as the caller promises, here and below.
    match !buffer.is_null() && unsafe { chance::filled(buffer, length) } {
        true => length as ssize_t,
        // SAFETY: as above.
        false => unsafe { real::getrandom(buffer, length, flags) },
    }
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getentropy(buffer: *mut c_void, length: size_t) -> c_int {
    if length > MOST_ENTROPY {
        return real::fail(EIO);
    }
    // SAFETY: as the caller promises, here and below.
    match unsafe { chance::filled(buffer, length) } {
        true => 0,
        // SAFETY: as above.
        false => unsafe { real::getentropy(buffer, length) },
    }
}

/// As in the C library.
///
/// # Safety
///
/// It has none to promise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arc4random() -> u32 {
    // SAFETY: it takes nothing.
    chance::number().map_or_else(|| unsafe { real::arc4random() }, |number| number as u32)
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arc4random_buf(buffer: *mut c_void, length: size_t) {
    // SAFETY: as the caller promises, here and below.
    if !unsafe { chance::filled(buffer, length) } {
        // SAFETY: as above.
        unsafe { real::arc4random_buf(buffer, length) };
    }
}

/// As in the C library.
///
/// # Safety
///
/// It has none to promise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arc4random_uniform(bound: u32) -> u32 {
    match chance::number() {
        // The part of a long number that is below the bound: none is likelier by more than 2^-32.
        Some(number) => ((u128::from(number) * u128::from(bound)) >> 64) as u32,
        // SAFETY: it takes any number.
        None => unsafe { real::arc4random_uniform(bound) },
    }
}

/// Whether a file is a device of random numbers, and these are those of the seed.
fn is_random(file: c_int) -> bool {
    if !chance::is_on() {
        return false;
    }
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: there is room for what is known of the file.
    if unsafe { libc::fstat(file, status.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: it has been written.
    let status = unsafe { status.assume_init() };
    status.st_mode & libc::S_IFMT == libc::S_IFCHR
        && DEVICES.contains(&(libc::major(status.st_rdev), libc::minor(status.st_rdev)))
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(file: c_int, buffer: *mut c_void, length: size_t) -> ssize_t {
    let error = real::errno();
    // SAFETY: as the caller promises, here and below.
    if is_random(file) && unsafe { chance::filled(buffer, length) } {
        return length as ssize_t;
    }
    real::fail(error);
    // SAFETY: as above.
    unsafe { real::read(file, buffer, length) }
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __read_chk(
    file: c_int,
    buffer: *mut c_void,
    length: size_t,
    room: size_t,
) -> ssize_t {
    match length > room {
        // It ends the program.
        // SAFETY: as the caller promises, here and below.
        true => unsafe { real::__read_chk(file, buffer, length, room) },
        // SAFETY: as above.
        false => unsafe { read(file, buffer, length) },
    }
}

/// The devices that are open as streams of the C library, which reads them by itself.
static STREAMS: [AtomicPtr<FILE>; 64] = [const { AtomicPtr::new(null_mut()) }; 64];

/// Replaces one of them; `false` if it is not there.
fn replace(old: *mut FILE, new: *mut FILE) -> bool {
    let is_replaced = |stream: &AtomicPtr<FILE>| {
        stream.load(Ordering::SeqCst) == old
            && stream.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    };
    STREAMS.iter().any(is_replaced)
}

fn is_random_stream(stream: *mut FILE) -> bool {
    !stream.is_null() && STREAMS.iter().any(|known| known.load(Ordering::SeqCst) == stream)
}

/// Remembers a stream that was opened if its path is that of a device.
///
/// # Safety
///
/// The path is null, or ends with a zero.
unsafe fn opened(path: *const c_char, stream: *mut FILE) -> *mut FILE {
    // SAFETY: as the caller promises.
    if !stream.is_null() && unsafe { chance::is_device(path) } && chance::is_on() {
        // Of more than there is room for, the system's numbers are read.
        replace(null_mut(), stream);
    }
    stream
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: as the caller promises.
    unsafe { opened(path, real::fopen(path, mode)) }
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: as the caller promises.
    unsafe { opened(path, real::fopen64(path, mode)) }
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fclose(stream: *mut FILE) -> c_int {
    // Before it is closed: another one may then have its address.
    if !stream.is_null() {
        replace(stream, null_mut());
    }
    // SAFETY: as the caller promises.
    unsafe { real::fclose(stream) }
}

/// Functions that read elements of a stream.
macro_rules! reads {
    ($($name:ident($($room:ident)?);)*) => {$(
        /// As in the C library.
        ///
        /// # Safety
        ///
        /// As for the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            buffer: *mut c_void,
            $($room: size_t,)?
            size: size_t,
            count: size_t,
            stream: *mut FILE,
        ) -> size_t {
            // SAFETY: as the caller promises, here and below.
            if is_random_stream(stream) && unsafe { chance::filled(buffer, size.saturating_mul(count)) } {
                return count;
            }
            // SAFETY: as above.
            unsafe { real::$name(buffer, $($room,)? size, count, stream) }
        }
    )*};
}

reads! {
    fread();
    fread_unlocked();
    __fread_chk(room);
}

/// Functions that read a byte of a stream.
macro_rules! bytes {
    ($($name:ident)*) => {$(
        /// As in the C library.
        ///
        /// # Safety
        ///
        /// As for the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(stream: *mut FILE) -> c_int {
            match is_random_stream(stream).then(chance::number).flatten() {
                Some(number) => number as u8 as c_int,
                // SAFETY: as the caller promises.
                None => unsafe { real::$name(stream) },
            }
        }
    )*};
}

bytes! { fgetc getc }
