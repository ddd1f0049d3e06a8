//! Futures and callbacks.

use super::process::PROCESS;
use fdb_c::abi::{
    database::fdb_database_create_transaction,
    future::{
        FDBFuture, fdb_future_block_until_ready, fdb_future_cancel, fdb_future_destroy, fdb_future_get_error,
        fdb_future_is_ready, fdb_future_release_memory, fdb_future_set_callback,
    },
    results::{fdb_future_get_int64, fdb_future_get_value},
    transaction::{
        FDBTransaction, fdb_transaction_destroy, fdb_transaction_get, fdb_transaction_get_read_version,
        fdb_transaction_set, fdb_transaction_watch,
    },
};
use std::{
    ffi::{c_int, c_void},
    ptr,
    sync::mpsc::{Receiver, Sender, channel},
    thread::{self, ThreadId},
};

/// A transaction that is destroyed with this.
struct Open(*mut FDBTransaction);

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: it is destroyed here and nowhere else.
        unsafe { fdb_transaction_destroy(self.0) }
    }
}

fn begin() -> Open {
    let mut transaction = ptr::null_mut();
    // SAFETY: the database is never destroyed, and the pointer is valid for a write.
    assert_eq!(unsafe { fdb_database_create_transaction(PROCESS.database(), &mut transaction) }, 0);
    Open(transaction)
}

fn get(tx: &Open, key: &[u8]) -> *mut FDBFuture {
    // SAFETY: the transaction is open, and the key is readable.
    unsafe { fdb_transaction_get(tx.0, key.as_ptr(), key.len() as c_int, 0) }
}

fn watch(tx: &Open, key: &[u8]) -> *mut FDBFuture {
    // SAFETY: the transaction is open, and the key is readable.
    unsafe { fdb_transaction_watch(tx.0, key.as_ptr(), key.len() as c_int) }
}

/// What a callback saw: its thread and the error of its future.
type Seen = (ThreadId, c_int);

/// Sends what it sees, and frees the sender.
unsafe extern "C" fn tell(future: *mut FDBFuture, parameter: *mut c_void) {
    // SAFETY: `told` has made the parameter with `Box::into_raw`, for one call.
    let sender = unsafe { Box::from_raw(parameter.cast::<Sender<Seen>>()) };
    // SAFETY: the future of a callback is valid during the call.
    let error = unsafe { fdb_future_get_error(future) };
    sender.send((thread::current().id(), error)).expect("it is waited for");
}

/// Sets a callback that tells what it sees.
fn told(future: *mut FDBFuture) -> Receiver<Seen> {
    let (sender, seen) = channel::<Seen>();
    let parameter = Box::into_raw(Box::new(sender)).cast();
    // SAFETY: the future was not destroyed, and `tell` takes this parameter.
    assert_eq!(unsafe { fdb_future_set_callback(future, Some(tell), parameter) }, 0);
    seen
}

#[test]
fn a_callback_is_called_on_the_network_thread_or_at_once_on_the_callers() {
    let tx = begin();
    let future = get(&tx, b"a");
    assert_eq!(told(future).recv(), Ok((PROCESS.network, 0)));
    assert_eq!(told(future).try_recv(), Ok((thread::current().id(), 0)), "it is ready");
    // SAFETY: it is destroyed here and nowhere else.
    unsafe { fdb_future_destroy(future) };
}

#[test]
fn each_callback_is_called_once_whatever_ends_its_future() {
    let tx = begin();
    for is_cancelled_first in [true, false] {
        let future = watch(&tx, b"b");
        let seen = [told(future), told(future), told(future)];
        if is_cancelled_first {
            // SAFETY: the future was not destroyed.
            unsafe { fdb_future_cancel(future) };
        }
        // SAFETY: it is destroyed here and nowhere else.
        unsafe { fdb_future_destroy(future) };
        for seen in seen {
            assert_eq!(seen.recv(), Ok((PROCESS.network, 1101)));
            assert!(seen.recv().is_err(), "its sender was freed by the one call");
        }
    }
}

#[test]
fn many_threads_wait_for_one_future() {
    let tx = begin();
    // SAFETY: the transaction is open.
    let future = unsafe { fdb_transaction_get_read_version(tx.0) } as usize;
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            thread::spawn(move || {
                let (future, mut version) = (future as *mut FDBFuture, 0);
                // SAFETY: the future is destroyed after these threads have ended.
                assert_eq!(unsafe { fdb_future_block_until_ready(future) }, 0);
                // SAFETY: as before, and the pointer is valid for a write.
                assert_eq!(unsafe { fdb_future_get_int64(future, &mut version) }, 0);
                version
            })
        })
        .collect();
    let mut versions: Vec<_> = waiting.into_iter().map(|thread| thread.join().expect("it ends")).collect();
    versions.dedup();
    assert!(matches!(versions[..], [version] if version > 0), "{versions:?}");
    // SAFETY: it is destroyed here and nowhere else.
    unsafe { fdb_future_destroy(future as *mut FDBFuture) };
}

#[test]
fn a_result_is_there_until_its_memory_is_released() {
    let tx = begin();
    // SAFETY: the transaction is open, and key and value are readable.
    unsafe { fdb_transaction_set(tx.0, b"c".as_ptr(), 1, b"value".as_ptr(), 5) };
    let future = get(&tx, b"c");
    let (mut present, mut value, mut length) = (0, ptr::null(), 0);
    // SAFETY: the future was not destroyed.
    assert_eq!(unsafe { fdb_future_block_until_ready(future) }, 0);
    // SAFETY: as before.
    assert_eq!(unsafe { fdb_future_is_ready(future) }, 1);
    drop(tx);
    // SAFETY: as before, and the pointers are valid for writes.
    assert_eq!(unsafe { fdb_future_get_value(future, &mut present, &mut value, &mut length) }, 0);
    // SAFETY: the future owns these bytes until its memory is released.
    assert_eq!(unsafe { std::slice::from_raw_parts(value, length as usize) }, b"value");
    // SAFETY: the bytes are not used any more.
    unsafe { fdb_future_release_memory(future) };
    // SAFETY: the future was not destroyed.
    assert_eq!(unsafe { fdb_future_get_error(future) }, 1102);
    // SAFETY: it is destroyed here and nowhere else.
    unsafe { fdb_future_destroy(future) };
}
