//! The living handles of a thread, and what is checked of them.

use super::{
    read::{Kind, probe, read},
    steps::{Callback, Use},
};
use fdb_c::abi::{
    database::{FDBDatabase, FDBTenant, fdb_database_destroy, fdb_tenant_destroy},
    future::*,
    transaction::{FDBTransaction, fdb_transaction_destroy},
};
use std::{
    collections::BTreeMap,
    ffi::{c_int, c_void},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

/// What a transaction's own writes make of keys, as far as it is simple. `None`: not simple any more.
pub type Known = Option<BTreeMap<Vec<u8>, Option<Vec<u8>>>>;

/// A transaction.
pub struct Transaction {
    pub handle: *mut FDBTransaction,
    pub known: Known,
    /// Whether it belongs to both threads, so that neither destroys it.
    pub is_shared: bool,
}

/// A future, and what must be true of its result.
pub struct Future {
    handle: *mut FDBFuture,
    kind: Kind,
    /// Whether it ends without being cancelled.
    ends: bool,
    /// The value that a read must find.
    expected: Option<Option<Vec<u8>>>,
    /// How many rows there are at most, and whether they descend.
    order: Option<(usize, bool)>,
    callbacks: usize,
}

/// The state of a callback: how often it was called, and what it does with its future.
struct CallbackState {
    times: AtomicUsize,
    callback: Callback,
}

unsafe extern "C" fn tell(future: *mut FDBFuture, parameter: *mut c_void) {
    // SAFETY: the parameter is of an `Arc` that outlives the last possible call of this.
    let notified = unsafe { &*parameter.cast::<CallbackState>() };
    match notified.callback {
        Callback::Count => {}
        Callback::Look => {
            // SAFETY: the future of a callback is valid during the call.
            let (ready, error) = unsafe { (fdb_future_is_ready(future), fdb_future_get_error(future)) };
            assert!(ready == 1 && error != 2015, "a callback of a future that is not ready");
        }
        // SAFETY: this callback was given the future; nothing else uses it.
        Callback::Destroy => unsafe { fdb_future_destroy(future) },
    }
    notified.times.fetch_add(1, SeqCst);
}

/// The living handles.
#[derive(Default)]
pub struct Hands {
    pub databases: Vec<*mut FDBDatabase>,
    pub tenants: Vec<*mut FDBTenant>,
    pub transactions: Vec<Transaction>,
    pub futures: Vec<Future>,
    notified: Vec<Arc<CallbackState>>,
    /// How many handles were created.
    pub created: usize,
}

// SAFETY: handles may be used by any thread.
unsafe impl Send for Hands {}

/// Takes one of several, by number.
pub fn pick(length: usize, slot: u8) -> Option<usize> {
    (length > 0).then(|| usize::from(slot) % length)
}

impl Hands {
    /// Keeps a future.
    pub fn hold(&mut self, handle: *mut FDBFuture, kind: Kind, ends: bool) -> &mut Future {
        assert!(!handle.is_null(), "no future");
        self.created += 1;
        self.futures.push(Future { handle, kind, ends, expected: None, order: None, callbacks: 0 });
        let last = self.futures.len() - 1;
        &mut self.futures[last]
    }

    /// Keeps a transaction.
    pub fn hold_transaction(&mut self, handle: *mut FDBTransaction, known: Known, is_shared: bool) {
        assert!(!handle.is_null(), "no transaction");
        self.created += usize::from(!is_shared);
        self.transactions.push(Transaction { handle, known, is_shared });
    }

    /// Uses a future.
    pub fn using(&mut self, slot: u8, using: Use) {
        let Some(at) = pick(self.futures.len(), slot) else { return };
        let future = &mut self.futures[at];
        let handle = future.handle;
        // SAFETY: the future was not destroyed; it belongs to this thread.
        unsafe {
            match using {
                Use::Finish => future.finish(),
                Use::Read(which, true) => future.reads(Kind::numbered(which), |f, kind| probe(f, kind)),
                Use::Read(which, false) => {
                    future.reads(Kind::numbered(which), |f, kind| read(f, kind).err().unwrap_or(0));
                }
                Use::IsReady => assert!(matches!(fdb_future_is_ready(handle), 0 | 1)),
                Use::Error => future.check_error(fdb_future_get_error(handle)),
                Use::Callback(Callback::Destroy) if future.callbacks > 0 => {}
                Use::Callback(callback) => self.set(at, callback),
                Use::Cancel => {
                    fdb_future_cancel(handle);
                    future.ends = true;
                }
                Use::Release => {
                    fdb_future_release_memory(handle);
                    future.expected = None;
                }
                Use::Destroy => self.futures.swap_remove(at).destroy(),
            }
        }
    }

    fn set(&mut self, at: usize, callback: Callback) {
        let notified = Arc::new(CallbackState { times: AtomicUsize::new(0), callback });
        self.futures[at].callbacks += 1;
        let Future { handle, ends, .. } = self.futures[at];
        let is_taken = matches!(callback, Callback::Destroy);
        if is_taken {
            self.futures.swap_remove(at);
        }
        // SAFETY: the future was not destroyed, and `tell` takes this parameter, which outlives it in
        // `notified`.
        unsafe {
            if is_taken && !ends {
                fdb_future_cancel(handle);
            }
            let parameter = Arc::as_ptr(&notified).cast_mut().cast();
            assert_eq!(fdb_future_set_callback(handle, Some(tell), parameter), 0);
        }
        self.notified.push(notified);
    }

    /// Destroys every handle of this thread.
    pub fn destroy(&mut self) {
        self.futures.drain(..).for_each(Future::destroy);
        for transaction in self.transactions.drain(..).filter(|transaction| !transaction.is_shared) {
            // SAFETY: it is destroyed here and nowhere else.
            unsafe { fdb_transaction_destroy(transaction.handle) };
        }
        // SAFETY: as before.
        self.tenants.drain(..).for_each(|tenant| unsafe { fdb_tenant_destroy(tenant) });
        // SAFETY: as before.
        self.databases.drain(..).for_each(|database| unsafe { fdb_database_destroy(database) });
    }

    /// Waits until each callback was called. Returns how many there are.
    #[expect(clippy::disallowed_methods, reason = "the network thread is another one")]
    pub fn all_told(&self) -> usize {
        let is_notified = |notified: &Arc<CallbackState>| notified.times.load(SeqCst) > 0;
        for _ in 0..20_000 {
            if self.notified.iter().all(is_notified) {
                return self.notified.len();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!(
            "{} callbacks were not called",
            self.notified.iter().filter(|notified| !is_notified(notified)).count()
        );
    }

    /// Each callback was called once. To be asked after the network thread has done everything.
    pub fn none_told_twice(&self) {
        assert!(
            self.notified.iter().all(|notified| notified.times.load(SeqCst) == 1),
            "a callback was called twice"
        );
    }
}

impl Future {
    /// The value that it must have.
    pub fn expects(&mut self, value: Option<Option<Vec<u8>>>) {
        self.expected = value;
    }

    /// The order of its rows.
    pub fn ordered(&mut self, limit: c_int, reverse: bool) {
        let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0);
        self.order = Some((limit.unwrap_or(usize::MAX), reverse));
    }

    fn destroy(self) {
        // SAFETY: it is destroyed here and nowhere else.
        unsafe { fdb_future_destroy(self.handle) };
    }

    /// An error of the simulator itself is a failure.
    fn check_error(&self, code: c_int) {
        assert!(code != 4100, "the simulator has failed");
        assert!(code >= 0, "{code} is no error");
    }

    /// Reads it as some type: an answer is the future's, or a refusal.
    fn reads(&self, kind: Kind, read: impl FnOnce(*mut FDBFuture, Kind) -> c_int) {
        // SAFETY: the future was not destroyed.
        let before = unsafe { fdb_future_get_error(self.handle) };
        let code = read(self.handle, kind);
        if before != 2015 {
            let due = if before != 0 { before } else { if kind == self.kind { 0 } else { 2000 } };
            assert_eq!(code, due, "{:?} read as {kind:?}", self.kind);
        }
    }

    /// Waits for it, if it ends by itself, and compares the result with what is known.
    fn finish(&mut self) {
        // SAFETY: the future was not destroyed; it belongs to this thread.
        let code = unsafe {
            if self.ends {
                assert_eq!(fdb_future_block_until_ready(self.handle), 0);
            }
            fdb_future_get_error(self.handle)
        };
        self.check_error(code);
        assert!(!(self.ends && code == 2015), "it is ready");
        if code != 0 || self.kind == Kind::Nothing {
            return;
        }
        // SAFETY: as before.
        let found = unsafe { read(self.handle, self.kind) }.expect("there is a result");
        if let Some(expected) = &self.expected {
            assert_eq!(&found.bytes, expected, "a transaction reads its own writes");
        }
        if let Some((limit, reverse)) = self.order {
            assert!(found.rows.len() <= limit, "{} rows and a limit of {limit}", found.rows.len());
            let ordered = |pair: &[(Vec<u8>, Vec<u8>)]| match reverse {
                true => pair[0].0 > pair[1].0,
                false => pair[0].0 < pair[1].0,
            };
            assert!(found.rows.windows(2).all(ordered), "rows out of order: {:?}", found.rows);
        }
    }
}
