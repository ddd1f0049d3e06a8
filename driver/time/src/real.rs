//! The functions of the C library that those of this library replace, for the program and for themselves.

use libc::{
    FILE, c_char, c_int, c_long, c_uint, c_void, clockid_t, epoll_event, fd_set, nfds_t, pollfd,
    pthread_attr_t, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, pthread_t, sem_t, sigset_t, size_t,
    ssize_t, time_t, timespec, timeval, useconds_t,
};
use std::{
    ffi::CStr,
    sync::atomic::{AtomicPtr, Ordering},
};

/// What a thread begins with. It may end with `pthread_exit`, which unwinds.
pub type Begin = extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// The next function of this name after that of this library.
fn find(found: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let known = found.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the name ends with a zero.
    let function = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if function.is_null() {
        // The program has called a function that its C library does not have.
        std::process::abort();
    }
    found.store(function, Ordering::Relaxed);
    function
}

macro_rules! real {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        /// That of the C library.
        ///
        /// # Safety
        ///
        /// As there.
        pub unsafe fn $name($($argument: $type),*) -> $result {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            let function = find(&FOUND, NAME);
            // SAFETY: it is the function of this name, which has this type.
            let function: unsafe extern "C" fn($($type),*) -> $result = unsafe { std::mem::transmute(function) };
            // SAFETY: as the caller promises.
            unsafe { function($($argument),*) }
        }
    )*};
}

real! {
    clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int;
    gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int;
    time(time: *mut time_t) -> time_t;
    nanosleep(length: *const timespec, left: *mut timespec) -> c_int;
    clock_nanosleep(clock: clockid_t, flags: c_int, time: *const timespec, left: *mut timespec) -> c_int;
    usleep(micros: useconds_t) -> c_int;
    sleep(seconds: c_uint) -> c_uint;
    poll(files: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int;
    ppoll(files: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int;
    select(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *mut timeval) -> c_int;
    pselect(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set, timeout: *const timespec,
        mask: *const sigset_t) -> c_int;
    epoll_pwait(epoll: c_int, events: *mut epoll_event, most: c_int, timeout: c_int, mask: *const sigset_t) -> c_int;
    pthread_cond_timedwait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec) -> c_int;
    pthread_cond_clockwait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t,
        until: *const timespec) -> c_int;
    sem_timedwait(semaphore: *mut sem_t, until: *const timespec) -> c_int;
    sem_clockwait(semaphore: *mut sem_t, clock: clockid_t, until: *const timespec) -> c_int;
    pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, until: *const timespec) -> c_int;
    pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, clock: clockid_t, until: *const timespec) -> c_int;
    pthread_rwlock_timedrdlock(lock: *mut pthread_rwlock_t, until: *const timespec) -> c_int;
    pthread_rwlock_timedwrlock(lock: *mut pthread_rwlock_t, until: *const timespec) -> c_int;
    pthread_rwlock_clockrdlock(lock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec) -> c_int;
    pthread_rwlock_clockwrlock(lock: *mut pthread_rwlock_t, clock: clockid_t, until: *const timespec) -> c_int;
    getrandom(buffer: *mut c_void, length: size_t, flags: c_uint) -> ssize_t;
    getentropy(buffer: *mut c_void, length: size_t) -> c_int;
    arc4random() -> u32;
    arc4random_buf(buffer: *mut c_void, length: size_t) -> ();
    arc4random_uniform(bound: u32) -> u32;
    read(file: c_int, buffer: *mut c_void, length: size_t) -> ssize_t;
    __read_chk(file: c_int, buffer: *mut c_void, length: size_t, room: size_t) -> ssize_t;
    fopen(path: *const c_char, mode: *const c_char) -> *mut FILE;
    fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE;
    fclose(stream: *mut FILE) -> c_int;
    fread(buffer: *mut c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t;
    fread_unlocked(buffer: *mut c_void, size: size_t, count: size_t, stream: *mut FILE) -> size_t;
    __fread_chk(buffer: *mut c_void, room: size_t, size: size_t, count: size_t, stream: *mut FILE) -> size_t;
    fgetc(stream: *mut FILE) -> c_int;
    getc(stream: *mut FILE) -> c_int;
    pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int;
    pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int;
    pthread_cond_wait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t) -> c_int;
    pthread_cond_signal(condition: *mut pthread_cond_t) -> c_int;
    pthread_cond_broadcast(condition: *mut pthread_cond_t) -> c_int;
    sem_wait(semaphore: *mut sem_t) -> c_int;
    sem_post(semaphore: *mut sem_t) -> c_int;
    pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int;
    pthread_create(thread: *mut pthread_t, attributes: *const pthread_attr_t, function: Begin,
        argument: *mut c_void) -> c_int;
    syscall(number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long) -> c_long;
}

/// The error of the last function of this thread that set one.
pub fn errno() -> c_int {
    // SAFETY: it is the thread's own.
    unsafe { *libc::__errno_location() }
}

/// Sets the error, and returns what says so.
pub fn fail(error: c_int) -> c_int {
    // SAFETY: it is the thread's own.
    unsafe { *libc::__errno_location() = error };
    -1
}
