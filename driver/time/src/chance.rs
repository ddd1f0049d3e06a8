//! Random numbers from the seed of the run, in place of the system's.
//!
//! Each thread has a stream of its own, so that what it draws does not depend on when others do. The key of a
//! stream is derived from the one of the thread that started it, and from how many that one had started
//! before; a child that is forked is named in the same way. A thread whose start is not seen here (one that a
//! program creates by a system call) is numbered when it draws first.
//!
//! The first thread's key is derived from the seed, from the words of the command line, and from how many
//! processes of the run with these words came before: each leaves a file in the folder that `with` names.
//! Otherwise two processes would draw the same identifiers.

use libc::{c_char, c_double, c_int, c_long, c_void, pid_t};
use std::{
    cell::Cell,
    ffi::CStr,
    fs::File,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// The golden ratio, as in SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// What is derived from a key, beside streams of threads.
const FORKED: u64 = 1 << 32;
const UNSEEN: u64 = 2 << 32;

/// How many processes with the same words may have a stream of their own.
const MOST_PROCESSES: u32 = 1 << 20;

thread_local! {
    /// The key of this thread's stream; 0 before it has one.
    static KEY: Cell<u64> = const { Cell::new(0) };
    /// How many words were drawn.
    static DRAWN: Cell<u64> = const { Cell::new(0) };
    /// How many threads and processes this thread has started.
    static STARTED: Cell<u64> = const { Cell::new(0) };
}

/// The key of a process that was forked; 0 in one that began with a program.
static OF_FORK: AtomicU64 = AtomicU64::new(0);

/// How many threads were not seen to start.
static UNSEEN_THREADS: AtomicU64 = AtomicU64::new(0);

/// The mixing function of SplitMix64.
fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A key that is derived from another one. It is not 0.
fn derived(key: u64, number: u64) -> u64 {
    mix(mix(key.wrapping_add(GOLDEN)) ^ number.wrapping_mul(GOLDEN)) | 1
}

fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name ends with a zero, and a value is a string until the environment is changed, which no
    // thread does while another reads it.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null() && *value != 0).then(|| CStr::from_ptr(value))
    }
}

/// The key of the process that began with a program, once it is known.
static OF_PROGRAM: OnceLock<Option<u64>> = OnceLock::new();

/// The key of the process; none if the environment does not ask for random numbers of the seed.
fn of_process() -> Option<u64> {
    let key = *OF_PROGRAM.get_or_init(|| {
        let folder = Path::new(std::ffi::OsStr::from_bytes(variable(c"SHAKETABLE_RANDOM")?.to_bytes()));
        let seed = variable(c"SHAKETABLE_SEED").and_then(|seed| seed.to_str().ok()?.parse().ok());
        let words = std::fs::read("/proc/self/cmdline").unwrap_or_default();
        let words = words.iter().fold(0, |all, byte| mix(all ^ u64::from(*byte)).wrapping_add(GOLDEN));
        let is_mine = |number: &u32| File::create_new(folder.join(format!("{words:016x}-{number}"))).is_ok();
        // If none can be had, another process must not draw the same.
        let number = (0..MOST_PROCESSES).take_while(|_| folder.is_dir()).find(is_mine);
        let number = number.unwrap_or_else(std::process::id);
        Some(derived(derived(seed.unwrap_or(0), words), number.into()))
    });
    match OF_FORK.load(Ordering::SeqCst) {
        0 => key,
        forked => key.map(|_| forked),
    }
}

/// The key of this thread; none if random numbers are the system's.
fn key() -> Option<u64> {
    let process = of_process()?;
    // A thread whose variables are gone is about to end: it still must not repeat what it has drawn.
    KEY.try_with(|key| {
        if key.get() == 0 {
            // SAFETY: the functions take nothing.
            let is_first = unsafe { libc::syscall(libc::SYS_gettid) as pid_t == libc::getpid() };
            let number = if is_first { 0 } else { UNSEEN + UNSEEN_THREADS.fetch_add(1, Ordering::SeqCst) };
            key.set(derived(process, number));
        }
        key.get()
    })
    .ok()
}

/// Whether random numbers are known to be those of the seed: so they are when the program begins.
pub fn is_on() -> bool {
    OF_PROGRAM.get().is_some_and(Option::is_some)
}

/// The key of a thread that this one is about to start; none if random numbers are the system's.
pub fn of_next_thread() -> Option<u64> {
    let key = key()?;
    let number = STARTED.get() + 1;
    STARTED.set(number);
    Some(derived(key, number))
}

/// Begins the stream of a thread, which its starter has derived.
pub fn begin(key: u64) {
    KEY.set(key);
}

/// Fills a buffer.
///
/// # Safety
///
/// There is room for so many bytes.
pub unsafe fn fill(buffer: *mut c_void, length: usize) {
    if length == 0 {
        return;
    }
    // SAFETY: as the caller promises; bytes need not be valid before they are written.
    let bytes = unsafe {
        buffer.cast::<u8>().write_bytes(0, length);
        std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length)
    };
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&word().to_le_bytes()[..chunk.len()]);
    }
}

fn word() -> u64 {
    let drawn = DRAWN.get() + 1;
    DRAWN.set(drawn);
    mix(KEY.get().wrapping_add(drawn.wrapping_mul(GOLDEN)))
}

/// Fills a buffer if random numbers are those of the seed; otherwise returns false.
///
/// # Safety
///
/// There is room for so many bytes.
pub unsafe fn filled(buffer: *mut c_void, length: usize) -> bool {
    let is_on = key().is_some();
    if is_on {
        // SAFETY: as the caller promises.
        unsafe { fill(buffer, length) };
    }
    is_on
}

/// A number; none if random numbers are the system's.
pub fn number() -> Option<u64> {
    key().map(|_| word())
}

extern "C" fn in_parent() {
    let _ = of_next_thread();
}

extern "C" fn in_child() {
    if let Some(key) = of_next_thread() {
        let key = derived(key, FORKED);
        OF_FORK.store(key, Ordering::SeqCst);
        KEY.set(key);
        DRAWN.set(0);
        STARTED.set(0);
    }
}

/// OpenSSL's table of functions that draw.
#[repr(C)]
struct Method {
    seed: extern "C" fn(*const c_void, c_int) -> c_int,
    bytes: extern "C" fn(*mut c_void, c_int) -> c_int,
    cleanup: extern "C" fn(),
    add: extern "C" fn(*const c_void, c_int, c_double) -> c_int,
    pseudorand: extern "C" fn(*mut c_void, c_int) -> c_int,
    status: extern "C" fn() -> c_int,
}

extern "C" fn seed(_: *const c_void, _: c_int) -> c_int {
    1
}

extern "C" fn add(_: *const c_void, _: c_int, _: c_double) -> c_int {
    1
}

extern "C" fn cleanup() {}

extern "C" fn status() -> c_int {
    1
}

extern "C" fn bytes(buffer: *mut c_void, length: c_int) -> c_int {
    // SAFETY: OpenSSL's callers have room for so many bytes. The functions are installed if it is on.
    c_int::from(unsafe { filled(buffer, usize::try_from(length).unwrap_or(0)) })
}

static METHOD: Method = Method { seed, bytes, cleanup, add, pseudorand: bytes, status };

/// Children that are forked have streams of their own. A program that has OpenSSL in itself, as Node has,
/// draws here: OpenSSL would mix the number of the process and addresses into what it draws.
extern "C" fn prepare() {
    if of_process().is_none() {
        return;
    }
    // SAFETY: the functions are there as long as the program runs.
    unsafe { libc::pthread_atfork(None, Some(in_parent), Some(in_child)) };
    // SAFETY: the name ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"RAND_set_rand_method".as_ptr()) };
    if !found.is_null() {
        type Set = unsafe extern "C" fn(*const Method) -> c_int;
        // SAFETY: OpenSSL's function of this name has this type, and the table has its form.
        unsafe { std::mem::transmute::<*mut c_void, Set>(found)(&METHOD) };
    }
}

/// Run when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static PREPARE: extern "C" fn() = prepare;

/// Whether a system call draws random numbers, as `getrandom` does.
///
/// # Safety
///
/// As for the system call.
pub unsafe fn of_system_call(number: c_long, buffer: c_long, length: c_long) -> Option<c_long> {
    // SAFETY: as the caller promises.
    let is_filled = number == libc::SYS_getrandom
        && buffer != 0
        && unsafe { filled(buffer as *mut c_void, usize::try_from(length).unwrap_or(0)) };
    is_filled.then_some(length)
}

/// Whether a path is that of a device of random numbers.
///
/// # Safety
///
/// It is null, or ends with a zero.
pub unsafe fn is_device(path: *const c_char) -> bool {
    // SAFETY: as the caller promises.
    !path.is_null() && [c"/dev/urandom", c"/dev/random"].contains(&unsafe { CStr::from_ptr(path) })
}
