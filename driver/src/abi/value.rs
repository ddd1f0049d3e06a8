//! Results in the form in which C reads them: arrays of pointers into memory that lives as long as they do.

use super::types::{
    FDBGetRangeReqAndResult, FDBKey, FDBKeySelector, FDBKeyValue, FDBMappedKeyValue, fdb_bool_t,
};
use bytes::Bytes;
use shaketable_session::Reply;
use shaketable_tx::{KeyValue, MappedBatch, MappedRow, RangeBatch};
use std::ffi::{CString, c_char, c_int, c_void};

/// The result of a future.
pub enum Value {
    /// Nothing.
    Done,
    /// A handle of a version of the API that returned them through futures. It is its reader's to destroy.
    Handle(Handle),
    /// A consumer of a stream of changes. Each of its readers has a handle of its own.
    Consumer {
        /// The stream.
        stream: u64,
        /// The position from which it was resumed.
        consumed: i64,
    },
    /// Streams of changes: none.
    Streams,
    /// A number.
    Int64(i64),
    /// A protocol version.
    UInt64(u64),
    /// Seconds.
    Double(f64),
    /// A key, a versionstamp or a status.
    Key(Bytes),
    /// A value, if there is one.
    Value(Option<Bytes>),
    /// Rows.
    Rows(Rows),
    /// Rows of a mapped range.
    Mapped(Mapped),
    /// Keys.
    Keys(Array<FDBKey, Vec<Bytes>>),
    /// Texts.
    Strings(Array<*const c_char, Vec<CString>>),
}

/// A handle in a future.
#[derive(Clone, Copy)]
pub enum Handle {
    /// A cluster.
    Cluster(*mut c_void),
    /// A database.
    Database(*mut c_void),
}

// SAFETY: the pointer is only handed to the program, whose handles may be used by any thread.
unsafe impl Send for Handle {}

/// An array of structures that point into `owner`.
pub struct Array<T, O> {
    /// The structures.
    raw: Box<[T]>,
    /// What they point into: never read, changed or moved out until it is dropped with them.
    _owner: O,
}

// SAFETY: the pointers in `raw` lead into the heap memory of `_owner`, which is immutable and, by the bound,
// may be dropped on any thread. Moving the array does not move that memory.
unsafe impl<T, O: Send> Send for Array<T, O> {}

impl<T, O> Array<T, O> {
    /// The first structure. Valid until the array is dropped.
    pub fn start(&self) -> *const T {
        self.raw.as_ptr()
    }

    /// The number of structures.
    pub fn length(&self) -> c_int {
        length(self.raw.len())
    }
}

/// A batch of a range.
pub struct Rows {
    /// Its rows.
    pub rows: Array<FDBKeyValue, Vec<KeyValue>>,
    /// Whether rows may remain.
    pub more: fdb_bool_t,
}

/// The rows that a row maps to.
type Inner = Array<FDBKeyValue, Vec<KeyValue>>;

/// A batch of a mapped range.
pub struct Mapped {
    /// Its rows.
    pub rows: Array<FDBMappedKeyValue, Vec<(KeyValue, Bytes, Bytes, Inner)>>,
    /// Whether rows may remain.
    pub more: fdb_bool_t,
}

/// A length as C counts. No result is as long as 2 GiB.
pub fn length(length: usize) -> c_int {
    c_int::try_from(length).unwrap_or(c_int::MAX)
}

fn key(bytes: &Bytes) -> FDBKey {
    FDBKey { key: bytes.as_ptr(), key_length: length(bytes.len()) }
}

fn row(row: &KeyValue) -> FDBKeyValue {
    FDBKeyValue {
        key: row.key.as_ptr(),
        key_length: length(row.key.len()),
        value: row.value.as_ptr(),
        value_length: length(row.value.len()),
    }
}

fn rows(owner: Vec<KeyValue>) -> Inner {
    Array { raw: owner.iter().map(row).collect(), _owner: owner }
}

fn keys(owner: Vec<Bytes>) -> Array<FDBKey, Vec<Bytes>> {
    Array { raw: owner.iter().map(key).collect(), _owner: owner }
}

fn strings(texts: Vec<String>) -> Array<*const c_char, Vec<CString>> {
    // Addresses have no zero byte.
    let owner: Vec<CString> = texts.into_iter().filter_map(|text| CString::new(text).ok()).collect();
    Array { raw: owner.iter().map(|text| text.as_ptr()).collect(), _owner: owner }
}

fn mapped(batch: MappedBatch) -> Mapped {
    let own = |MappedRow { parent, begin, end, rows: inner }| (parent, begin, end, rows(inner));
    let owner: Vec<_> = batch.rows.into_iter().map(own).collect();
    let selector = |at: &Bytes| FDBKeySelector { key: key(at), or_equal: 0, offset: 1 };
    let row = |(parent, begin, end, inner): &(KeyValue, Bytes, Bytes, Inner)| FDBMappedKeyValue {
        key: key(&parent.key),
        value: key(&parent.value),
        get_range: FDBGetRangeReqAndResult {
            begin: selector(begin),
            end: selector(end),
            data: inner.start(),
            m_size: inner.length(),
            m_capacity: inner.length(),
        },
        buffer: [0; 32],
    };
    Mapped { rows: Array { raw: owner.iter().map(row).collect(), _owner: owner }, more: batch.more.into() }
}

impl From<Reply> for Value {
    fn from(reply: Reply) -> Value {
        match reply {
            Reply::Done | Reply::Committed(_) => Value::Done,
            Reply::Number(number) => Value::Int64(number),
            Reply::Time(time) => Value::Double(time.as_secs_f64()),
            Reply::Key(key) => Value::Key(key),
            Reply::Value(value) => Value::Value(value),
            Reply::Range(RangeBatch { rows: all, more }) => {
                Value::Rows(Rows { rows: rows(all), more: more.into() })
            }
            Reply::Mapped(batch) => Value::Mapped(mapped(batch)),
            Reply::Keys(all) => Value::Keys(keys(all)),
            Reply::Addresses(all) => Value::Strings(strings(all)),
        }
    }
}
