//! Futures: each owns its result until it is destroyed or its memory is released.
//!
//! A handle is a reference to a [`FDBFuture`] that its owner gives back with [`fdb_future_destroy`]; the
//! session has another one until the future is ready, so that a future may be destroyed at any time and from
//! any thread. A function that runs callbacks, or that wakes threads which may destroy the future, holds a
//! reference of its own ([`hold`]).
//!
//! A callback that is set before the future is ready is called on the network thread, otherwise on the
//! calling thread at once. If the future is cancelled or destroyed first, its callbacks are called all the
//! same, with `operation_cancelled`.

use super::{
    errors::{BLOCKED_FROM_NETWORK_THREAD, FUTURE_RELEASED, SUCCESS},
    fork,
    types::{fdb_bool_t, fdb_error_t},
    value::Value,
};
use parking_lot::{Condvar, Mutex};
use shaketable_session::{Call, CallId, DatabaseId, Reply, Session, TransactionId, spin::Spin, turns::Turn};
use shaketable_sim::rt;
use shaketable_tx::{Error, Result};
use std::{
    ffi::c_void,
    sync::{Arc, OnceLock},
};

/// A callback of a future.
pub type FDBCallback = Option<unsafe extern "C" fn(*mut FDBFuture, *mut c_void)>;
/// A result that is, or will be, there.
pub struct FDBFuture {
    state: Mutex<State>,
    ready: Condvar,
    /// The call whose answer it waits for.
    call: OnceLock<(Arc<dyn Session>, CallId)>,
}

struct State {
    result: Option<Result<Value>>,
    /// Reads of the result less releases, as FoundationDB counts them: the release that makes it 0 frees the
    /// result.
    readers: i32,
    callbacks: Vec<Callback>,
    is_wanted: bool,
    is_expected: bool,
}

/// A callback and its parameter.
struct Callback(unsafe extern "C" fn(*mut FDBFuture, *mut c_void), *mut c_void);

// SAFETY: the parameter is handed back to the function that it belongs to and to nothing else. Whoever sets a
// callback expects it on the network thread.
unsafe impl Send for Callback {}

impl FDBFuture {
    fn new(result: Option<Result<Value>>) -> Arc<FDBFuture> {
        let state = Mutex::new(State {
            result,
            readers: 0,
            callbacks: Vec::new(),
            is_wanted: false,
            is_expected: false,
        });
        Arc::new(FDBFuture { state, ready: Condvar::new(), call: OnceLock::new() })
    }

    /// A handle of a future that is ready.
    pub fn ready(result: Result<Value>) -> *mut FDBFuture {
        Arc::into_raw(Self::new(Some(result))).cast_mut()
    }

    /// A handle of a future with what `and` makes of the answer of a call.
    pub fn calling(
        session: Arc<dyn Session>,
        database: DatabaseId,
        transaction: TransactionId,
        call: Call,
        and: impl FnOnce(Result<Reply>) -> Result<Reply> + Send + 'static,
    ) -> *mut FDBFuture {
        let future = Self::new(None);
        let answered = future.clone();
        let completion = move |answer: Result<Reply>| {
            answered.complete(and(answer).map(Value::from));
        };
        let id = session.call(database, transaction, call, Box::new(completion));
        // Set once, here.
        let _ = future.call.set((session, id));
        Arc::into_raw(future).cast_mut()
    }

    fn complete(self: &Arc<Self>, result: Result<Value>) {
        let mut state = self.state.lock();
        if state.result.is_some() {
            return;
        }
        state.result = Some(result);
        let callbacks = std::mem::take(&mut state.callbacks);
        drop(state);
        self.ready.notify_all();
        for Callback(function, parameter) in callbacks {
            // SAFETY: function and parameter belong together, as the caller of `fdb_future_set_callback`
            // promised. The handle is valid during the call, because `self` is.
            unsafe { function(Arc::as_ptr(self).cast_mut(), parameter) };
        }
    }

    /// In a forked child, which has no network thread, ends the future with the error of such a process.
    fn check_fork(&self) {
        if fork::is_child()
            && let Some(mut state) = self.state.try_lock()
            && state.result.is_none()
        {
            state.result = fork::check().err().map(Err);
        }
    }

    /// Announces that something waits for the result.
    fn want(&self) {
        let is_new = {
            let mut state = self.state.lock();
            state.result.is_none() && !std::mem::replace(&mut state.is_wanted, true)
        };
        if let (true, Some((session, call))) = (is_new, self.call.get()) {
            session.want(*call);
        }
    }

    /// Announces that a callback waits for the result.
    fn expect(&self) {
        let is_new = {
            let mut state = self.state.lock();
            state.result.is_none() && !std::mem::replace(&mut state.is_expected, true)
        };
        if let (true, Some((session, call))) = (is_new, self.call.get()) {
            session.expect(*call);
        }
    }

    /// Waits until this thread may go on.
    fn wait_for_turn(&self, turn: Turn) {
        if let Some((session, _)) = self.call.get() {
            session.wait_for_turn(turn);
        }
    }

    fn is_ready(&self) -> bool {
        self.state.lock().result.is_some()
    }

    /// A handle of a future that is ready only once it is cancelled.
    pub fn never() -> *mut FDBFuture {
        Arc::into_raw(Self::new(None)).cast_mut()
    }

    fn cancel(self: &Arc<Self>) {
        if self.is_ready() {
            return;
        }
        match self.call.get() {
            Some((session, call)) => session.cancel(*call),
            None => self.complete(Err(Error::OPERATION_CANCELLED)),
        }
    }

    /// The error: 2015 if the future is not ready.
    fn outcome(&self) -> Result<()> {
        match &self.state.lock().result {
            None => Err(Error::FUTURE_NOT_SET),
            Some(Err(error)) => Err(*error),
            Some(Ok(_)) => Ok(()),
        }
    }

    /// Reads the result: 2015 if there is none yet, 2000 if it is of another type.
    pub fn pick<T>(&self, pick: impl FnOnce(&Value) -> Option<T>) -> Result<T> {
        let mut state = self.state.lock();
        let picked = match &state.result {
            None => Err(Error::FUTURE_NOT_SET),
            Some(Err(error)) => Err(*error),
            Some(Ok(value)) => pick(value).ok_or(Error::CLIENT_INVALID_OPERATION),
        };
        state.readers += i32::from(picked.is_ok());
        picked
    }

    /// Gives one read of the result back. What is freed reads as `future_released`.
    fn release(&self) {
        let mut state = self.state.lock();
        state.readers -= 1;
        if state.readers == 0
            && let Some(result @ Ok(_)) = &mut state.result
        {
            *result = Err(FUTURE_RELEASED);
        }
    }
}

/// The code of an outcome.
pub fn code(outcome: Result<()>) -> fdb_error_t {
    outcome.map_or_else(Error::code, |()| SUCCESS)
}

/// The future of a handle.
///
/// # Safety
///
/// `handle` comes from this library and was not destroyed, for as long as the reference is used.
pub unsafe fn borrow<'a>(handle: *mut FDBFuture) -> &'a FDBFuture {
    // SAFETY: as the caller promises: each handle is a reference of its owner's, given back with
    // `fdb_future_destroy`.
    let future = unsafe { &*handle };
    future.check_fork();
    future
}

/// Another reference to the future of a handle, for a function during which the owner's may end: it runs
/// callbacks, or wakes a thread, and either may destroy the future.
///
/// # Safety
///
/// `handle` is a future that was not destroyed.
unsafe fn hold(handle: *mut FDBFuture) -> Arc<FDBFuture> {
    // SAFETY: the handle is a reference that its owner holds, as the caller promises; this adds another one.
    let future = unsafe {
        Arc::increment_strong_count(handle.cast_const());
        Arc::from_raw(handle.cast_const())
    };
    future.check_fork();
    future
}

/// Ends the call of a future with `operation_cancelled`, unless it is ready.
///
/// # Safety
///
/// `f` is a future that was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_future_cancel(f: *mut FDBFuture) {
    // SAFETY: as the caller promises.
    unsafe { hold(f) }.cancel();
}

/// Gives one read of the result back. As many releases as reads free it, and later reads return
/// `future_released` (FoundationDB's `ThreadHelper.actor.h`).
///
/// # Safety
///
/// `f` is a future that was not destroyed. Pointers into a result that is freed must not be used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_future_release_memory(f: *mut FDBFuture) {
    // SAFETY: as the caller promises.
    unsafe { borrow(f) }.release();
}

/// Destroys a future, and cancels it if it is not ready.
///
/// # Safety
///
/// `f` is a future that was not destroyed. Neither it nor pointers into its result may be used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_future_destroy(f: *mut FDBFuture) {
    if f.is_null() {
        return;
    }
    // SAFETY: the handle came from `Arc::into_raw`, and this is the one time that its reference is taken
    // back.
    let future = unsafe { Arc::from_raw(f.cast_const()) };
    future.check_fork();
    future.cancel();
}

/// The waits of threads that block.
static SPIN: Spin = Spin::new();

/// Blocks until the future is ready. On the network thread, and within a simulation, it fails with 2026,
/// because it would never be.
///
/// # Safety
///
/// `f` is a future that was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_future_block_until_ready(f: *mut FDBFuture) -> fdb_error_t {
    // SAFETY: as the caller promises.
    let future = unsafe { hold(f) };
    if future.is_ready() {
        return SUCCESS;
    }
    if rt::is_simulating() || future.call.get().is_some_and(|(session, _)| session.is_here()) {
        return BLOCKED_FROM_NETWORK_THREAD;
    }
    future.want();
    if !SPIN.until(|| future.is_ready()) {
        let mut state = future.state.lock();
        while state.result.is_none() {
            future.ready.wait(&mut state);
        }
    }
    future.wait_for_turn(Turn::Next);
    SUCCESS
}

/// Whether the future is ready. A program that asks is one that waits: virtual time advances.
///
/// # Safety
///
/// `f` is a future that was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_future_is_ready(f: *mut FDBFuture) -> fdb_bool_t {
    // SAFETY: as the caller promises.
    let future = unsafe { hold(f) };
    future.want();
    if !future.is_ready() {
        future.wait_for_turn(Turn::AfterStep);
    }
    future.is_ready().into()
}

/// Calls `callback` once: now if the future is ready, otherwise on the network thread when it is.
///
/// # Safety
///
/// `f` is a future that was not destroyed, and `callback` may be called with `parameter` on the network
/// thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_future_set_callback(
    f: *mut FDBFuture,
    callback: FDBCallback,
    parameter: *mut c_void,
) -> fdb_error_t {
    let Some(function) = callback else { return Error::CLIENT_INVALID_OPERATION.code() };
    // SAFETY: as the caller promises.
    let future = unsafe { hold(f) };
    let mut state = future.state.lock();
    if state.result.is_none() {
        state.callbacks.push(Callback(function, parameter));
        drop(state);
        future.expect();
    } else {
        drop(state);
        // SAFETY: as the caller promises.
        unsafe { function(f, parameter) };
    }
    SUCCESS
}

/// The error of a future: 0 if it succeeded, 2015 if it is not ready.
///
/// # Safety
///
/// `f` is a future that was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_future_get_error(f: *mut FDBFuture) -> fdb_error_t {
    // SAFETY: as the caller promises.
    code(unsafe { borrow(f) }.outcome())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_session::{ClusterName, Command, Completion};
    use std::{
        ptr,
        sync::{
            Weak,
            atomic::{AtomicBool, AtomicPtr, Ordering},
        },
    };

    /// A session that ends its one call, and has the program destroy the future, as soon as something waits
    /// for it: as if other threads did so at the first instant at which they can.
    struct Hasty {
        this: Weak<Hasty>,
        completion: Mutex<Option<Completion>>,
        handle: AtomicPtr<FDBFuture>,
        /// Whether the future was still there when it was destroyed: it keeps its session.
        was_kept: Arc<AtomicBool>,
    }

    impl Hasty {
        fn hurry(&self) {
            let (this, kept) = (self.this.clone(), self.was_kept.clone());
            if let Some(completion) = self.completion.lock().take() {
                completion(Ok(Reply::Done));
            }
            let handle = self.handle.swap(ptr::null_mut(), Ordering::SeqCst);
            // SAFETY: it is destroyed here and nowhere else; the caller's function has a reference of its
            // own.
            unsafe { fdb_future_destroy(handle) };
            kept.store(this.strong_count() > 0, Ordering::SeqCst);
        }
    }

    impl Session for Hasty {
        fn open(&self, _: &ClusterName) -> DatabaseId {
            DatabaseId(0)
        }
        fn next_transaction(&self) -> TransactionId {
            TransactionId(0)
        }
        fn command(&self, _: DatabaseId, _: Command) {}
        fn call(&self, _: DatabaseId, _: TransactionId, _: Call, completion: Completion) -> CallId {
            *self.completion.lock() = Some(completion);
            CallId(0)
        }
        fn want(&self, _: CallId) {
            self.hurry();
        }
        fn cancel(&self, _: CallId) {
            self.hurry();
        }
        fn is_here(&self) -> bool {
            false
        }
    }

    type Function = fn(*mut FDBFuture);

    unsafe extern "C" fn ignore(_: *mut FDBFuture, _: *mut c_void) {}

    #[test]
    fn a_function_keeps_the_future_that_its_program_destroys_meanwhile() {
        let functions: [(&str, Function); 4] = [
            ("set_callback", |f| {
                // SAFETY: the future is valid when the function is called, here and below.
                let _ = unsafe { fdb_future_set_callback(f, Some(ignore), ptr::null_mut()) };
            }),
            ("block_until_ready", |f| {
                // SAFETY: as above.
                let _ = unsafe { fdb_future_block_until_ready(f) };
            }),
            ("is_ready", |f| {
                // SAFETY: as above.
                let _ = unsafe { fdb_future_is_ready(f) };
            }),
            // SAFETY: as above.
            ("cancel", |f| unsafe { fdb_future_cancel(f) }),
        ];
        for (name, function) in functions {
            let was_kept = Arc::new(AtomicBool::new(false));
            let kept = was_kept.clone();
            let session = Arc::new_cyclic(|this| Hasty {
                this: this.clone(),
                completion: Mutex::new(None),
                handle: AtomicPtr::default(),
                was_kept: kept,
            });
            let weak = session.this.clone();
            let future = FDBFuture::calling(
                session.clone(),
                DatabaseId(0),
                TransactionId(0),
                Call::Commit,
                |answer| answer,
            );
            session.handle.store(future, Ordering::SeqCst);
            drop(session);
            function(future);
            assert!(was_kept.load(Ordering::SeqCst), "{name} has used a future that was freed");
            assert_eq!(weak.strong_count(), 0, "{name} has lost a future");
        }
    }
}
