//! Streams of changes, of the header of 8.0. The cluster has none, and registers none, as one whose
//! configuration leaves them off: what asks for a stream is `client_invalid_operation` (2000). Whether a
//! stream exists is found out by whoever consumes it, so that a consumer can be resumed all the same
//! (`NativeCdc.cpp`).

use super::{
    database::FDBDatabase,
    errors::SUCCESS,
    future::{FDBFuture, borrow, code},
    memory::store,
    types::fdb_error_t,
    value::Value,
};
use shaketable_tx::Error;
use std::ffi::c_int;

/// A consumer: the position from which it was resumed, where it stays.
#[derive(Clone, Copy)]
pub struct FDBCdcConsumer {
    stream: u64,
    consumed: i64,
}

fn refused() -> *mut FDBFuture {
    FDBFuture::ready(Err(Error::CLIENT_INVALID_OPERATION))
}

/// Registers a stream: 2000.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_database_register_cdc_stream(
    _: *mut FDBDatabase,
    _name: *const u8,
    _name_length: c_int,
    _begin: *const u8,
    _begin_length: c_int,
    _end: *const u8,
    _end_length: c_int,
) -> *mut FDBFuture {
    refused()
}

/// Removes a stream, of which there is none: 2000 without a name, and nothing to do otherwise.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_database_remove_cdc_stream(
    _: *mut FDBDatabase,
    _name: *const u8,
    name_length: c_int,
) -> *mut FDBFuture {
    if name_length > 0 { FDBFuture::ready(Ok(Value::Done)) } else { refused() }
}

/// Lists the streams: none.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_database_list_cdc_streams(_: *mut FDBDatabase) -> *mut FDBFuture {
    FDBFuture::ready(Ok(Value::Streams))
}

/// A consumer of the stream with a name: 2000.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_database_create_cdc_consumer(
    _: *mut FDBDatabase,
    _name: *const u8,
    _name_length: c_int,
) -> *mut FDBFuture {
    refused()
}

/// A consumer that goes on from a position, whether or not there is such a stream.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_database_resume_cdc_consumer(
    _: *mut FDBDatabase,
    stream: u64,
    consumed: i64,
) -> *mut FDBFuture {
    FDBFuture::ready(Ok(Value::Consumer { stream, consumed }))
}

/// Destroys a consumer.
///
/// # Safety
///
/// `consumer` is a consumer that was not destroyed, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_cdc_consumer_destroy(consumer: *mut FDBCdcConsumer) {
    if !consumer.is_null() {
        // SAFETY: the handle came from `Box::into_raw`, and this is the one time that it is taken back.
        drop(unsafe { Box::from_raw(consumer) });
    }
}

/// What has changed since the position: 2000.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_cdc_consumer_consume(_: *mut FDBCdcConsumer) -> *mut FDBFuture {
    refused()
}

/// Lets go of what was consumed: 2000.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_cdc_consumer_acknowledge(_: *mut FDBCdcConsumer) -> *mut FDBFuture {
    refused()
}

/// The position of a consumer.
///
/// # Safety
///
/// `consumer` is a consumer that was not destroyed, and the other pointers are null or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_cdc_consumer_get_position(
    consumer: *mut FDBCdcConsumer,
    out_stream: *mut u64,
    out_consumed: *mut i64,
) -> fdb_error_t {
    // SAFETY: as the caller promises.
    let FDBCdcConsumer { stream, consumed } = unsafe { *consumer };
    // SAFETY: valid for writes, as the caller promises.
    unsafe { store(out_stream, stream) };
    // SAFETY: valid for writes, as the caller promises.
    unsafe { store(out_consumed, consumed) };
    SUCCESS
}

/// The consumer of a future. Each call returns a handle of its own, which the caller destroys.
///
/// # Safety
///
/// `f` is a future that was not destroyed, and `out` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_future_get_cdc_consumer(
    f: *mut FDBFuture,
    out: *mut *mut FDBCdcConsumer,
) -> fdb_error_t {
    // SAFETY: as the caller promises.
    code(unsafe { borrow(f) }.pick(|value| match value {
        Value::Consumer { stream, consumed } => {
            let consumer = FDBCdcConsumer { stream: *stream, consumed: *consumed };
            // SAFETY: as the caller promises.
            unsafe { store(out, Box::into_raw(Box::new(consumer))) };
            Some(())
        }
        _ => None,
    }))
}
