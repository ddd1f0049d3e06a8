//! Threads of the program that wait for one another, when the cluster lets them run one at a time.
//!
//! The C library decides which thread has a lock next by who is faster. Here, a thread that finds a lock, a
//! semaphore or a condition taken *parks* at its address. Whoever gives it back, or signals it, wakes those
//! that are parked there; each of them then waits for its turn, which the cluster gives when every thread of
//! the process sleeps, and only then tries again. So no two threads run beside each other between two calls,
//! and who has the lock next is the seed's to choose.
//!
//! The cluster's own thread parks as well, in callbacks, and has no turn to wait for. Threads that wait with
//! the C library's own functions, because they began before the cluster, are woken as ever.

use crate::{
    clock, cluster, real,
    wait::{Target, Wait},
};
use libc::{
    EAGAIN, EBUSY, EINTR, ETIMEDOUT, c_int, c_long, c_void, pthread_cond_t, pthread_mutex_t, pthread_t,
    sem_t, timespec,
};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU32, Ordering},
};

/// How long a thread waits in real time between two looks at the clock, if the cluster does not wake it,
/// nanoseconds.
const LOOK: u64 = 100_000_000;

/// A thread that is parked.
struct Parked {
    place: usize,
    is_woken: AtomicU32,
}

/// Those that are parked, in the order in which they began.
static PARKED: Mutex<Vec<Arc<Parked>>> = Mutex::new(Vec::new());

fn parked() -> MutexGuard<'static, Vec<Arc<Parked>>> {
    PARKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a thread that was parked went on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Woken {
    ByThread,
    InTime,
    BySignal,
}

impl Parked {
    /// Parks this thread: from now on, whoever wakes those at the place wakes it.
    fn at(place: usize) -> Arc<Parked> {
        let this = Arc::new(Parked { place, is_woken: AtomicU32::new(0) });
        parked().push(this.clone());
        this
    }

    fn is_woken(&self) -> bool {
        self.is_woken.load(Ordering::SeqCst) != 0
    }

    /// Blocks until it is woken, until a virtual time, or until a signal.
    fn block(self: &Arc<Parked>, until: Option<u64>) -> Woken {
        let woken = loop {
            if self.is_woken() {
                break Woken::ByThread;
            }
            let result = match until {
                Some(until) if clock::now() >= until => break Woken::InTime,
                Some(until) => self.block_until(until),
                None => futex(&self.is_woken, libc::FUTEX_WAIT, 0, None),
            };
            if result < 0 && real::errno() == EINTR && !self.is_woken() {
                break Woken::BySignal;
            }
        };
        let error = real::errno();
        parked().retain(|other| !Arc::ptr_eq(other, self));
        real::fail(error);
        // Nobody can wake it from now on. Who was woken must not say that it was not.
        if self.is_woken() { Woken::ByThread } else { woken }
    }

    fn block_until(&self, until: u64) -> c_long {
        let word = self.is_woken.as_ptr();
        match Wait::until(until, Target::Word(word, libc::FUTEX_PRIVATE_FLAG)) {
            Some(_wait) => {
                let look = clock::to_timespec(LOOK);
                futex(&self.is_woken, libc::FUTEX_WAIT, 0, Some(&look))
            }
            None => {
                let left = clock::left(until);
                let result = futex(&self.is_woken, libc::FUTEX_WAIT, 0, Some(&left));
                if result < 0 && real::errno() == ETIMEDOUT {
                    clock::reach(until);
                }
                result
            }
        }
    }
}

fn futex(word: &AtomicU32, operation: c_int, value: c_long, timeout: Option<&timespec>) -> c_long {
    let timeout = timeout.map_or(0, |timeout| std::ptr::from_ref(timeout) as c_long);
    let operation = c_long::from(operation | libc::FUTEX_PRIVATE_FLAG);
    // SAFETY: the word is there, and so is the timeout.
    unsafe { real::syscall(libc::SYS_futex, word.as_ptr() as c_long, operation, value, timeout, 0, 0) }
}

/// Wakes the first of those that are parked at a place, or all.
pub fn wake<T>(place: *mut T, all: bool) {
    if !cluster::are_turns_taken() {
        return;
    }
    let error = real::errno();
    let parked = parked();
    let mut here = parked.iter().filter(|parked| parked.place == place as usize && !parked.is_woken());
    let most = if all { usize::MAX } else { 1 };
    here.by_ref().take(most).for_each(|parked| {
        parked.is_woken.store(1, Ordering::SeqCst);
        futex(&parked.is_woken, libc::FUTEX_WAKE, 1, None);
    });
    drop(parked);
    real::fail(error);
}

/// Waits for something that can be had with `attempt`, which returns an error if it is not there, until a
/// virtual time. It is had in the turn of this thread.
///
/// `ends_at_signal` says whether a signal ends the wait, with `EINTR`.
pub fn wait<T>(
    place: *mut T,
    until: Option<u64>,
    ends_at_signal: bool,
    attempt: impl Fn() -> c_int,
) -> c_int {
    loop {
        let error = attempt();
        if !matches!(error, EBUSY | EAGAIN) {
            return error;
        }
        if until.is_some_and(|until| clock::now() >= until) {
            return ETIMEDOUT;
        }
        let parked = Parked::at(place as usize);
        // What was given back before this thread had parked woke nobody.
        let error = attempt();
        if !matches!(error, EBUSY | EAGAIN) {
            self::parked().retain(|other| !Arc::ptr_eq(other, &parked));
            return error;
        }
        let woken = parked.block(until);
        cluster::take_turn(false);
        if woken == Woken::BySignal && ends_at_signal {
            return EINTR;
        }
    }
}

/// Locks a mutex in turn.
///
/// # Safety
///
/// As for `pthread_mutex_lock`.
pub unsafe fn lock(mutex: *mut pthread_mutex_t) -> c_int {
    /// Where glibc keeps the kind of a mutex, and its owner: the numbers of words.
    const OWNER: usize = 2;
    const KIND: usize = 4;
    const CHECKED: c_int = libc::PTHREAD_MUTEX_ERRORCHECK;
    // SAFETY: as the caller promises, here and below.
    let error = unsafe { libc::pthread_mutex_trylock(mutex) };
    if error != EBUSY {
        return error;
    }
    // A mutex that knows its owner tells it so.
    // SAFETY: as above; a mutex has at least as many words.
    let word = |at: usize| unsafe { mutex.cast::<c_int>().add(at).read_volatile() };
    // SAFETY: the function takes nothing.
    let this = || unsafe { libc::gettid() };
    if word(KIND) & 3 == CHECKED && word(OWNER) == this() {
        // SAFETY: as above.
        return unsafe { real::pthread_mutex_lock(mutex) };
    }
    // SAFETY: as above.
    wait(mutex, None, false, || unsafe { libc::pthread_mutex_trylock(mutex) })
}

/// Waits for a condition in turn, until a virtual time. It may return 0 although nobody has signalled it, as
/// all such functions may.
///
/// # Safety
///
/// As for `pthread_cond_wait`.
pub unsafe fn condition(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: Option<u64>,
) -> c_int {
    let parked = Parked::at(condition as usize);
    // SAFETY: as the caller promises, here and below.
    let error = unsafe { pthread_mutex_unlock(mutex) };
    if error != 0 {
        self::parked().retain(|other| !Arc::ptr_eq(other, &parked));
        return error;
    }
    let woken = parked.block(until);
    cluster::take_turn(false);
    // SAFETY: as above.
    match unsafe { lock(mutex) } {
        0 if woken == Woken::InTime => ETIMEDOUT,
        error => error,
    }
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int {
    match cluster::are_turns_taken() {
        // SAFETY: as the caller promises.
        true => unsafe { lock(mutex) },
        // SAFETY: as the caller promises.
        false => unsafe { real::pthread_mutex_lock(mutex) },
    }
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: as the caller promises.
    let error = unsafe { real::pthread_mutex_unlock(mutex) };
    wake(mutex, false);
    error
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_wait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    match cluster::are_turns_taken() {
        // SAFETY: as the caller promises.
        true => unsafe { self::condition(condition, mutex, None) },
        // SAFETY: as the caller promises.
        false => unsafe { real::pthread_cond_wait(condition, mutex) },
    }
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_signal(condition: *mut pthread_cond_t) -> c_int {
    // SAFETY: as the caller promises.
    let error = unsafe { real::pthread_cond_signal(condition) };
    wake(condition, false);
    error
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_broadcast(condition: *mut pthread_cond_t) -> c_int {
    // SAFETY: as the caller promises.
    let error = unsafe { real::pthread_cond_broadcast(condition) };
    wake(condition, true);
    error
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_wait(semaphore: *mut sem_t) -> c_int {
    if !cluster::are_turns_taken() {
        // SAFETY: as the caller promises.
        return unsafe { real::sem_wait(semaphore) };
    }
    // SAFETY: as the caller promises.
    let attempt = || if unsafe { libc::sem_trywait(semaphore) } == 0 { 0 } else { real::errno() };
    match wait(semaphore, None, true, attempt) {
        0 => 0,
        error => real::fail(error),
    }
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_post(semaphore: *mut sem_t) -> c_int {
    // SAFETY: as the caller promises.
    let result = unsafe { real::sem_post(semaphore) };
    wake(semaphore, false);
    result
}

/// As in the C library.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int {
    // SAFETY: as the caller promises.
    let error = unsafe { real::pthread_join(thread, result) };
    cluster::take_turn(false);
    error
}
