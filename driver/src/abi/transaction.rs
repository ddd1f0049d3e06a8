//! Transactions: each call is copied and handed to the session, in the order of the calls.

use super::{
    errors::{SUCCESS, from_program},
    fork,
    future::FDBFuture,
    memory::{copy, copy_option, store},
    restart::Restart,
    types::{fdb_bool_t, fdb_error_t},
    versions::{adapt, is_new_option, resets, translate},
};
use shaketable_session::{Action, Call, Command, DatabaseId, Reply, Session, TransactionId};
use shaketable_tx::{ConflictRangeType, Error, Isolation, KeySelector, Result, TransactionOption};
use std::{
    ffi::c_int,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

/// The commit version before a commit and of a read-only transaction.
const NO_VERSION: i64 = -1;

/// A transaction.
pub struct FDBTransaction {
    pub(super) session: Arc<dyn Session>,
    pub(super) database: DatabaseId,
    pub(super) id: TransactionId,
    /// What its commit has changed, in old versions of the API.
    pub(super) restart: Arc<Restart>,
    /// The version of the last commit.
    committed: Arc<AtomicI64>,
    /// The error of every call, for a transaction that the cluster does not have.
    refused: Option<Error>,
}

impl FDBTransaction {
    /// A handle of a new transaction. With an error, every call returns it.
    pub fn create(
        session: Arc<dyn Session>,
        database: DatabaseId,
        refused: Option<Error>,
    ) -> *mut FDBTransaction {
        let id = session.next_transaction();
        if refused.is_none() {
            session.command(database, Command::Create(id));
        }
        let committed = Arc::new(AtomicI64::new(NO_VERSION));
        let restart = Arc::default();
        Box::into_raw(Box::new(FDBTransaction { session, database, id, restart, committed, refused }))
    }

    fn act(&self, action: Action) {
        if self.refused.is_none() && !fork::is_child() {
            self.renew();
            self.session.command(self.database, Command::Transaction(self.id, translate(action)));
        }
    }

    /// A future with the answer of a call.
    pub fn call(&self, call: Call) -> *mut FDBFuture {
        self.call_and(call, |answer| answer)
    }

    /// A future with what `and` makes of the answer of a call.
    pub fn call_and(
        &self,
        call: Call,
        and: impl FnOnce(Result<Reply>) -> Result<Reply> + Send + 'static,
    ) -> *mut FDBFuture {
        match self.refused.or_else(|| fork::check().err()) {
            Some(error) => FDBFuture::ready(Err(error)),
            None => {
                let (call, adapted) = adapt(call);
                let called = self.called(&call);
                let seen = self.reset_after(&call, move |answer| and(adapted(answer)));
                FDBFuture::calling(self.session.clone(), self.database, called, call, seen)
            }
        }
    }
}

impl FDBTransaction {
    /// What takes the answer of a call, and resets the transaction after it where the version of the API says
    /// so.
    fn reset_after(
        &self,
        call: &Call,
        and: impl FnOnce(Result<Reply>) -> Result<Reply> + Send + 'static,
    ) -> impl FnOnce(Result<Reply>) -> Result<Reply> + Send + 'static {
        let (on_success, on_failure) = (resets(call, false), resets(call, true));
        let (session, database, id) = (self.session.clone(), self.database, self.id);
        move |answer| {
            let answer = and(answer);
            if if answer.is_ok() { on_success } else { on_failure } {
                session.command(database, Command::Transaction(id, Action::Reset));
            }
            answer
        }
    }
}

/// The transaction of a handle.
///
/// # Safety
///
/// `handle` comes from this library and was not destroyed, for as long as the reference is used.
pub unsafe fn borrow<'a>(handle: *mut FDBTransaction) -> &'a FDBTransaction {
    // SAFETY: the handle came from `Box::into_raw` and was not taken back, as the caller promises. References
    // are shared only, and a transaction may be used by several threads.
    unsafe { &*handle }
}

/// The isolation of a read.
pub fn isolation(snapshot: fdb_bool_t) -> Isolation {
    if snapshot != 0 { Isolation::Snapshot } else { Isolation::Serializable }
}

/// Destroys a transaction. Futures that are not ready end with 1025, except for watches of a commit.
///
/// # Safety
///
/// `tr` is a transaction that was not destroyed, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_transaction_destroy(tr: *mut FDBTransaction) {
    if !tr.is_null() {
        // SAFETY: the handle came from `Box::into_raw`, and this is the one time that it is taken back.
        let transaction = unsafe { Box::from_raw(tr) };
        transaction.act(Action::Destroy);
    }
}

/// Defines functions that do something to a transaction and return nothing.
macro_rules! actions {
    ($($(#[doc = $doc:literal])+ $name:ident($($argument:ident: $type:ty),*) => $action:expr;)*) => {
        $(
            $(#[doc = $doc])+
            ///
            /// # Safety
            ///
            /// `tr` is a transaction that was not destroyed, and each pointer is null or readable for the
            /// length that follows it.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(tr: *mut FDBTransaction, $($argument: $type),*) {
                // SAFETY: as the caller promises.
                let (transaction, action) = unsafe { (borrow(tr), $action) };
                transaction.act(action);
            }
        )*
    };
}

actions! {
    /// Cancels what is outstanding with 1025. Only a reset makes the transaction usable again.
    fdb_transaction_cancel() => Action::Cancel;
    /// Sets the read version.
    fdb_transaction_set_read_version(version: i64) => Action::SetReadVersion(version);
    /// Sets a key.
    fdb_transaction_set(key: *const u8, key_length: c_int, value: *const u8, value_length: c_int) =>
        Action::Set(copy(key, key_length), copy(value, value_length));
    /// Clears a key.
    fdb_transaction_clear(key: *const u8, key_length: c_int) => Action::Clear(copy(key, key_length));
    /// Clears a range.
    fdb_transaction_clear_range(begin: *const u8, begin_length: c_int, end: *const u8, end_length: c_int) =>
        Action::ClearRange(copy(begin, begin_length), copy(end, end_length));
    /// Applies an atomic operation. The next call fails with 2018 if the code is unknown.
    fdb_transaction_atomic_op(
        key: *const u8, key_length: c_int, operand: *const u8, operand_length: c_int, operation: c_int
    ) => Action::Atomic {
        key: copy(key, key_length),
        operand: copy(operand, operand_length),
        code: operation.cast_unsigned(),
    };
}

/// Resets a transaction.
///
/// # Safety
///
/// `tr` is a transaction that was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_transaction_reset(tr: *mut FDBTransaction) {
    // SAFETY: as the caller promises.
    let transaction = unsafe { borrow(tr) };
    transaction.committed.store(NO_VERSION, Ordering::SeqCst);
    transaction.act(Action::Reset);
}

/// Sets an option: 2007 for an unknown code. Other errors are those of the next call, as for the C client.
///
/// # Safety
///
/// `tr` is a transaction that was not destroyed, and `value` is null or readable for `value_length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_transaction_set_option(
    tr: *mut FDBTransaction,
    option: c_int,
    value: *const u8,
    value_length: c_int,
) -> fdb_error_t {
    if !TransactionOption::CODES.contains(&option) && !is_new_option(option) {
        return Error::INVALID_OPTION.code();
    }
    // SAFETY: as the caller promises.
    let (transaction, value) = unsafe { (borrow(tr), copy_option(value, value_length)) };
    transaction.act(Action::SetOption { code: option, value });
    SUCCESS
}

/// Adds a conflict range, read (0) or write (1): 2005 for an inverted range, 2000 for another type.
///
/// # Safety
///
/// `tr` is a transaction that was not destroyed, and the keys are null or readable for their lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_transaction_add_conflict_range(
    tr: *mut FDBTransaction,
    begin: *const u8,
    begin_length: c_int,
    end: *const u8,
    end_length: c_int,
    kind: c_int,
) -> fdb_error_t {
    // SAFETY: as the caller promises.
    let (transaction, begin, end) = unsafe { (borrow(tr), copy(begin, begin_length), copy(end, end_length)) };
    if begin > end {
        return Error::INVERTED_RANGE.code();
    }
    let kind = match kind {
        0 => ConflictRangeType::Read,
        1 => ConflictRangeType::Write,
        _ => return Error::CLIENT_INVALID_OPERATION.code(),
    };
    transaction.act(Action::AddConflictRange(begin, end, kind));
    SUCCESS
}

/// The version of the last commit; -1 before it and for a read-only transaction.
///
/// # Safety
///
/// `tr` is a transaction that was not destroyed, and `out_version` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_transaction_get_committed_version(
    tr: *mut FDBTransaction,
    out_version: *mut i64,
) -> fdb_error_t {
    // SAFETY: as the caller promises.
    let transaction = unsafe { borrow(tr) };
    if let Some(error) = transaction.refused {
        return error.code();
    }
    // SAFETY: as the caller promises.
    unsafe { store(out_version, transaction.committed.load(Ordering::SeqCst)) };
    SUCCESS
}

/// Commits.
///
/// # Safety
///
/// `tr` is a transaction that was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_transaction_commit(tr: *mut FDBTransaction) -> *mut FDBFuture {
    // SAFETY: as the caller promises.
    let transaction = unsafe { borrow(tr) };
    let (committed, restart) = (transaction.committed.clone(), transaction.restart.clone());
    let life = restart.life();
    transaction.call_and(Call::Commit, move |answer| {
        restart.commit_ended(life);
        if let Ok(Reply::Committed(version)) = answer {
            committed.store(version, Ordering::SeqCst);
        }
        answer
    })
}

/// Waits and resets the transaction if the error is retryable; fails with it otherwise, with 4000 for what is
/// no error code.
///
/// # Safety
///
/// `tr` is a transaction that was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_transaction_on_error(
    tr: *mut FDBTransaction,
    error: fdb_error_t,
) -> *mut FDBFuture {
    // SAFETY: as the caller promises.
    let transaction = unsafe { borrow(tr) };
    transaction.committed.store(NO_VERSION, Ordering::SeqCst);
    transaction.call(Call::OnError(from_program(error)))
}

/// Defines functions that return a future.
macro_rules! calls {
    ($($(#[doc = $doc:literal])+ $name:ident($($argument:ident: $type:ty),*) => $call:expr;)*) => {
        $(
            $(#[doc = $doc])+
            ///
            /// # Safety
            ///
            /// `tr` is a transaction that was not destroyed, and each pointer is null or readable for the
            /// length that follows it.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(tr: *mut FDBTransaction, $($argument: $type),*) -> *mut FDBFuture {
                // SAFETY: as the caller promises.
                let (transaction, call) = unsafe { (borrow(tr), $call) };
                transaction.call(call)
            }
        )*
    };
}

calls! {
    /// The read version.
    fdb_transaction_get_read_version() => Call::GetReadVersion;
    /// The value of a key.
    fdb_transaction_get(key: *const u8, key_length: c_int, snapshot: fdb_bool_t) =>
        Call::Get(copy(key, key_length), isolation(snapshot));
    /// The key that a selector resolves to.
    fdb_transaction_get_key(
        key: *const u8, key_length: c_int, or_equal: fdb_bool_t, offset: c_int, snapshot: fdb_bool_t
    ) => Call::GetKey(KeySelector::new(copy(key, key_length), or_equal != 0, offset), isolation(snapshot));
    /// The addresses of the servers that hold a key.
    fdb_transaction_get_addresses_for_key(key: *const u8, key_length: c_int) =>
        Call::GetAddresses(copy(key, key_length));
    /// A watch: ready when the value of the key differs from what the transaction saw, after its commit.
    fdb_transaction_watch(key: *const u8, key_length: c_int) => Call::Watch(copy(key, key_length));
    /// The versionstamp of the commit; to be requested before it.
    fdb_transaction_get_versionstamp() => Call::GetVersionstamp;
    /// The size of the commit.
    fdb_transaction_get_approximate_size() => Call::GetApproximateSize;
    /// How long throttling has delayed the transaction, in seconds.
    fdb_transaction_get_tag_throttled_duration() => Call::GetTagThrottledDuration;
    /// The cost of the transaction.
    fdb_transaction_get_total_cost() => Call::GetTotalCost;
}
