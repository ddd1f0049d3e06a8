//! A thread that waits for a virtual time, and perhaps for something else too.

use crate::{clock, cluster, real};
use libc::{c_int, c_long, c_void, pollfd, pthread_cond_t, sigset_t};
use std::{
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    ptr::{null, null_mut},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// How long the cluster's thread waits for one that is to notice that its time has come, nanoseconds.
const LONGEST: u64 = clock::SECOND;

/// How often it looks meanwhile.
const GLANCE: u64 = 20_000;

/// How a thread is woken.
pub enum Target {
    /// It waits for a file of its own too.
    File(OwnedFd),
    /// It waits for this condition. When its time has come it does so, because virtual time advances only
    /// while the threads of the process sleep; if the cluster cannot see that, it looks itself, now and then.
    Condition(*mut pthread_cond_t),
    /// The same for a futex, and whether it is one of this process alone.
    Word(*const u32, c_int),
    /// It looks itself, all the time. The cluster's thread waits until it has.
    Looks,
}

impl Target {
    /// A new file; none if the process has too many.
    pub fn file() -> Option<Target> {
        // SAFETY: the function takes numbers.
        let file = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        // SAFETY: it is new, and nobody else's.
        (file >= 0).then(|| Target::File(unsafe { OwnedFd::from_raw_fd(file) }))
    }

    /// Whether the thread may wait for its turn first: it holds no lock.
    fn is_in_turn(&self) -> bool {
        matches!(self, Target::File(_))
    }
}

struct Waiter {
    until: u64,
    target: Target,
    is_woken: AtomicBool,
    is_waiting: Mutex<bool>,
}

// SAFETY: a pointer is used only while a thread waits for what it points to.
unsafe impl Send for Waiter {}
// SAFETY: as above; the other parts may be shared.
unsafe impl Sync for Waiter {}

impl Waiter {
    fn is_waiting(&self) -> std::sync::MutexGuard<'_, bool> {
        self.is_waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        self.is_woken.store(true, Ordering::SeqCst);
        match &self.target {
            Target::File(file) => {
                // SAFETY: the bytes are there. A file that is full wakes the thread as well.
                unsafe { libc::write(file.as_raw_fd(), (&raw const ONE).cast(), size_of_val(&ONE)) };
            }
            Target::Condition(condition) => self.unless_it_has_returned(|| {
                // SAFETY: a thread waits for it, and cannot return meanwhile.
                unsafe { libc::pthread_cond_broadcast(*condition) };
            }),
            Target::Word(word, private) => self.unless_it_has_returned(|| {
                let wake = c_long::from(libc::FUTEX_WAKE | private);
                // SAFETY: as above.
                unsafe { real::syscall(libc::SYS_futex, *word as c_long, wake, c_int::MAX.into(), 0, 0, 0) };
            }),
            Target::Looks if clock::now() >= self.until => self.wait_until_it_looks(),
            Target::Looks => {}
        }
    }

    fn unless_it_has_returned(&self, wake: impl FnOnce()) {
        let is_waiting = self.is_waiting();
        if *is_waiting {
            wake();
        }
    }

    fn wait_until_it_looks(&self) {
        for _ in 0..LONGEST / GLANCE {
            if !*self.is_waiting() {
                return;
            }
            // SAFETY: it waits for nothing but the timeout, which is there.
            unsafe { real::ppoll(null_mut(), 0, &clock::to_timespec(GLANCE), null()) };
        }
    }
}

/// What a file of events is given.
static ONE: u64 = 1;

extern "C" fn wake(waiter: *mut c_void) {
    // SAFETY: it is the reference that was given away for this one call.
    unsafe { Arc::from_raw(waiter.cast::<Waiter>()) }.wake();
}

/// A wait in progress.
pub struct Wait {
    waiter: Arc<Waiter>,
    number: u64,
}

impl Wait {
    /// Begins to wait for a virtual time; none if there is no cluster that has a time.
    pub fn until(until: u64, target: Target) -> Option<Wait> {
        let in_turn = target.is_in_turn();
        let (is_woken, is_waiting) = (AtomicBool::new(false), Mutex::new(true));
        let waiter = Arc::new(Waiter { until, target, is_woken, is_waiting });
        let given = Arc::into_raw(waiter.clone()).cast_mut().cast();
        match cluster::wait(clock::of_cluster(until), in_turn, given, wake) {
            Some(number) => Some(Wait { waiter, number }),
            None => {
                // SAFETY: nobody has taken the reference.
                drop(unsafe { Arc::from_raw(given.cast::<Waiter>()) });
                None
            }
        }
    }

    /// Whether it is over. That is before its time if the cluster has ended.
    pub fn is_over(&self) -> bool {
        self.waiter.is_woken.load(Ordering::SeqCst)
    }

    /// Blocks until it is over or one of the files has something, as `ppoll` does.
    pub fn block(&self, files: &[pollfd], mask: *const sigset_t) -> c_int {
        let own = match &self.waiter.target {
            Target::File(file) => file.as_raw_fd(),
            // It is never asked to.
            _ => -1,
        };
        let mut all = files.to_vec();
        all.push(pollfd { fd: own, events: libc::POLLIN, revents: 0 });
        // SAFETY: these are as many, and the mask is as the caller of `ppoll` promised.
        unsafe { real::ppoll(all.as_mut_ptr(), all.len() as _, null(), mask) }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let error = real::errno();
        *self.waiter.is_waiting() = false;
        if !self.is_over() {
            cluster::cancel(self.number);
        }
        real::fail(error);
    }
}
