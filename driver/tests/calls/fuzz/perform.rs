//! Performs sequences of calls.

use super::{
    hands::{Hands, Known, Transaction, pick},
    read::Kind,
    steps::{Act, Ask, Batch, Selector, Slot, Step, Text},
};
use fdb_c::abi::{
    database::*, future::FDBFuture, network::fdb_network_set_option, ranges::*, transaction::*,
    types::FDBReadBlobGranuleContext, unsupported::*,
};
use std::{
    collections::BTreeMap,
    ffi::{CString, c_int},
    ptr::{null, null_mut},
};

impl Hands {
    /// Performs a step.
    pub fn perform(&mut self, step: &Step) {
        match step {
            Step::Open(string) => self.open(string.as_deref()),
            Step::Close(slot) => {
                // The first is shared.
                if let Some(at) = pick(self.databases.len().saturating_sub(1), *slot) {
                    // SAFETY: it is destroyed here and nowhere else.
                    unsafe { fdb_database_destroy(self.databases.swap_remove(at + 1)) };
                }
            }
            Step::DatabaseOption(slot, code, value) => {
                if let Some(db) = self.database(*slot, 1) {
                    // SAFETY: the database was not destroyed, and the value is readable.
                    value.with(|v, n| unsafe { fdb_database_set_option(db, *code, v, n) });
                }
            }
            Step::AskDatabase(slot, which, a, b, n) => {
                if let Some(db) = self.database(*slot, 0) {
                    let (future, kind, ends) = ask_database(db, *which, a, b, *n);
                    self.hold(future, kind, ends);
                }
            }
            Step::OpenTenant(slot, name) => {
                let Some(db) = self.database(*slot, 0) else { return };
                let mut tenant = null_mut();
                // SAFETY: the database was not destroyed, and the pointer is valid for a write.
                let code = name.with(|v, n| unsafe { fdb_database_open_tenant(db, v, n, &mut tenant) });
                assert_eq!(code, 0);
                self.created += 1;
                self.tenants.push(tenant);
            }
            Step::CloseTenant(slot) => {
                if let Some(at) = pick(self.tenants.len(), *slot) {
                    // SAFETY: it is destroyed here and nowhere else.
                    unsafe { fdb_tenant_destroy(self.tenants.swap_remove(at)) };
                }
            }
            Step::AskTenant(slot, which, a, b, n) => {
                if let Some(at) = pick(self.tenants.len(), *slot) {
                    let future = ask_tenant(self.tenants[at], *which, a, b, *n);
                    self.hold(future, Kind::Nothing, true);
                }
            }
            Step::BeginInTenant(slot) => {
                let Some(at) = pick(self.tenants.len(), *slot) else { return };
                let mut tx = null_mut();
                // SAFETY: the tenant was not destroyed, and the pointer is valid for a write.
                assert_eq!(unsafe { fdb_tenant_create_transaction(self.tenants[at], &mut tx) }, 0);
                self.hold_transaction(tx, None, false);
            }
            Step::Begin(slot) => {
                if let Some(db) = self.database(*slot, 0) {
                    self.hold_transaction(begin(db), Some(BTreeMap::new()), false);
                }
            }
            Step::End(slot) => {
                let Some(at) = pick(self.transactions.len(), *slot) else { return };
                if !self.transactions[at].is_shared {
                    // SAFETY: it is destroyed here and nowhere else.
                    unsafe { fdb_transaction_destroy(self.transactions.swap_remove(at).handle) };
                }
            }
            Step::Act(slot, act) => {
                if let Some(at) = pick(self.transactions.len(), *slot) {
                    perform_act(&mut self.transactions[at], act);
                }
            }
            Step::Ask(slot, ask) => {
                if let Some(at) = pick(self.transactions.len(), *slot) {
                    self.ask(at, ask);
                }
            }
            Step::Future(slot, using) => self.using(*slot, *using),
            Step::BlobResult(slot, which, text) => {
                if let Some(at) = pick(self.transactions.len(), *slot) {
                    blob_result(&self.transactions[at], *which, text);
                }
            }
            Step::NetworkOption(code, value) => {
                // SAFETY: the value is readable.
                value.with(|v, n| unsafe { fdb_network_set_option(*code, v, n) });
            }
        }
    }

    /// A database, of those after the first `from`.
    fn database(&self, slot: Slot, from: usize) -> Option<*mut FDBDatabase> {
        let at = pick(self.databases.len().saturating_sub(from), slot)?;
        Some(self.databases[at + from])
    }

    fn open(&mut self, string: Option<&str>) {
        let string = string.map(|string| CString::new(string).expect("no zero byte"));
        let mut db = null_mut();
        // SAFETY: the text ends with a zero byte, and the pointer is valid for a write.
        let code = unsafe {
            match &string {
                Some(string) => fdb_create_database_from_connection_string(string.as_ptr(), &mut db),
                None => fdb_create_database(null(), &mut db),
            }
        };
        assert!(matches!(code, 0 | 2104), "{code}");
        if code == 0 {
            self.created += 1;
            self.databases.push(db);
            fdb_database_get_main_thread_busyness(db);
        }
    }

    fn ask(&mut self, at: usize, ask: &Ask) {
        let transaction = &mut self.transactions[at];
        let tr = transaction.handle;
        let mut expected = None;
        match ask {
            Ask::Get(key, _) => {
                expected = transaction.known.as_ref().and_then(|known| known.get(&key.bytes()).cloned());
            }
            // They end what is known.
            Ask::Commit | Ask::OnError(_) => transaction.known = None,
            _ => {}
        }
        let (future, kind, ends) = call(tr, ask);
        let future = self.hold(future, kind, ends);
        future.expects(expected);
        if let Ask::Range(_, _, batch) = ask {
            future.ordered(batch.limit, batch.reverse != 0);
        }
    }
}

/// A transaction of a database that was not destroyed.
pub fn begin(db: *mut FDBDatabase) -> *mut FDBTransaction {
    let mut tx = null_mut();
    // SAFETY: as the caller promises, and the pointer is valid for a write.
    assert_eq!(unsafe { fdb_database_create_transaction(db, &mut tx) }, 0);
    tx
}

fn perform_act(transaction: &mut Transaction, act: &Act) {
    let tr = transaction.handle;
    learn(&mut transaction.known, act);
    // SAFETY: the transaction was not destroyed, and all bytes are readable.
    unsafe {
        match act {
            Act::Set(key, value) => {
                key.with(|k, n| value.with(|v, m| fdb_transaction_set(tr, k, n, v, m)));
            }
            Act::Clear(key) => key.with(|k, n| fdb_transaction_clear(tr, k, n)),
            Act::ClearRange(begin, end) => {
                begin.with(|b, n| end.with(|e, m| fdb_transaction_clear_range(tr, b, n, e, m)));
            }
            Act::Atomic(key, operand, code) => {
                key.with(|k, n| operand.with(|o, m| fdb_transaction_atomic_op(tr, k, n, o, m, *code)));
            }
            Act::ConflictRange(begin, end, kind) => {
                let add = |b, n| end.with(|e, m| fdb_transaction_add_conflict_range(tr, b, n, e, m, *kind));
                assert!(matches!(begin.with(add), 0 | 2000 | 2005));
            }
            Act::Option(code, value) => {
                let set = value.with(|v, n| fdb_transaction_set_option(tr, *code, v, n));
                assert!(matches!(set, 0 | 2006 | 2007), "{set}");
            }
            Act::ReadVersion(version) => fdb_transaction_set_read_version(tr, *version),
            Act::CommittedVersion => {
                assert!(matches!(fdb_transaction_get_committed_version(tr, &mut 0), 0 | 2136));
                fdb_transaction_get_committed_version(tr, null_mut());
            }
            Act::Reset => fdb_transaction_reset(tr),
            Act::Cancel => fdb_transaction_cancel(tr),
        }
    }
}

/// What an act tells about keys that the transaction reads later.
fn learn(known: &mut Known, act: &Act) {
    let Some(keys) = known else { return };
    match act {
        Act::Set(key, value) => drop(keys.insert(key.bytes(), Some(value.bytes()))),
        Act::Clear(key) => drop(keys.insert(key.bytes(), None)),
        Act::ClearRange(begin, end) => {
            let (begin, end) = (begin.bytes(), end.bytes());
            keys.iter_mut()
                .filter(|(key, _)| **key >= begin && **key < end)
                .for_each(|(_, value)| *value = None);
        }
        Act::Atomic(key, ..) => drop(keys.remove(&key.bytes())),
        Act::Reset => keys.clear(),
        Act::Option(..) | Act::Cancel => *known = None,
        Act::ConflictRange(..) | Act::ReadVersion(_) | Act::CommittedVersion => {}
    }
}

fn call(tr: *mut FDBTransaction, ask: &Ask) -> (*mut FDBFuture, Kind, bool) {
    // SAFETY: the transaction was not destroyed, and all bytes are readable.
    let (future, kind) = unsafe {
        match ask {
            Ask::Get(key, snapshot) => {
                (key.with(|k, n| fdb_transaction_get(tr, k, n, *snapshot)), Kind::Value)
            }
            Ask::GetKey(Selector { key, or_equal, offset }, snapshot) => {
                (key.with(|k, n| fdb_transaction_get_key(tr, k, n, *or_equal, *offset, *snapshot)), Kind::Key)
            }
            Ask::Range(begin, end, batch) => (range(tr, begin, end, None, batch), Kind::Rows),
            Ask::Mapped(begin, end, mapper, batch) => {
                (range(tr, begin, end, Some(mapper), batch), Kind::Mapped)
            }
            Ask::ReadVersion => (fdb_transaction_get_read_version(tr), Kind::Int64),
            Ask::Commit => (fdb_transaction_commit(tr), Kind::Nothing),
            Ask::OnError(code) => (fdb_transaction_on_error(tr, *code), Kind::Nothing),
            Ask::Watch(key) => (key.with(|k, n| fdb_transaction_watch(tr, k, n)), Kind::Nothing),
            Ask::Versionstamp => (fdb_transaction_get_versionstamp(tr), Kind::Key),
            Ask::ApproximateSize => (fdb_transaction_get_approximate_size(tr), Kind::Int64),
            Ask::EstimatedSize(begin, end) => {
                let ask =
                    |b, n| end.with(|e, m| fdb_transaction_get_estimated_range_size_bytes(tr, b, n, e, m));
                (begin.with(ask), Kind::Int64)
            }
            Ask::SplitPoints(begin, end, size) => {
                let ask =
                    |b, n| end.with(|e, m| fdb_transaction_get_range_split_points(tr, b, n, e, m, *size));
                (begin.with(ask), Kind::Keys)
            }
            Ask::Addresses(key) => {
                (key.with(|k, n| fdb_transaction_get_addresses_for_key(tr, k, n)), Kind::Strings)
            }
            Ask::ThrottledDuration => (fdb_transaction_get_tag_throttled_duration(tr), Kind::Double),
            Ask::TotalCost => (fdb_transaction_get_total_cost(tr), Kind::Int64),
            Ask::Blob(which, a, b, size) => (blob(tr, *which, a, b, *size), Kind::Nothing),
        }
    };
    (future, kind, !matches!(ask, Ask::Watch(_) | Ask::Versionstamp))
}

fn range(
    tr: *mut FDBTransaction,
    begin: &Selector,
    end: &Selector,
    mapper: Option<&Text>,
    batch: &Batch,
) -> *mut FDBFuture {
    let Batch { limit, target_bytes, mode, iteration, snapshot, reverse } = *batch;
    let (or, offset, end_or, end_offset) = (begin.or_equal, begin.offset, end.or_equal, end.offset);
    begin.key.with(|b, n| {
        end.key.with(|e, m| match mapper {
            // SAFETY: the transaction was not destroyed, and all bytes are readable.
            None => unsafe {
                fdb_transaction_get_range(
                    tr,
                    b,
                    n,
                    or,
                    offset,
                    e,
                    m,
                    end_or,
                    end_offset,
                    limit,
                    target_bytes,
                    mode,
                    iteration,
                    snapshot,
                    reverse,
                )
            },
            Some(mapper) => mapper.with(|p, l| {
                // SAFETY: as before.
                unsafe {
                    fdb_transaction_get_mapped_range(
                        tr,
                        b,
                        n,
                        or,
                        offset,
                        e,
                        m,
                        end_or,
                        end_offset,
                        p,
                        l,
                        limit,
                        target_bytes,
                        mode,
                        iteration,
                        snapshot,
                        reverse,
                    )
                }
            }),
        })
    })
}

fn blob(tr: *mut FDBTransaction, which: u8, a: &Text, b: &Text, size: i64) -> *mut FDBFuture {
    a.with(|a, n| {
        b.with(|b, m| match which % 3 {
            0 => fdb_transaction_get_blob_granule_ranges(tr, a, n, b, m, 3),
            1 => fdb_transaction_summarize_blob_granules(tr, a, n, b, m, size, 3),
            _ => fdb_transaction_read_blob_granules_description(tr, a, n, b, m, 0, size, null_mut()),
        })
    })
}

fn blob_result(transaction: &Transaction, which: u8, text: &Text) {
    let nothing = FDBReadBlobGranuleContext {
        user_context: null_mut(),
        start_load: None,
        get_load: None,
        free_load: None,
        debug_no_materialize: 0,
        granule_parallelism: 0,
    };
    let tr = transaction.handle;
    let result = text.with(|t, n| match which % 3 {
        0 => fdb_transaction_read_blob_granules(tr, t, n, t, n, 0, 0, nothing),
        1 => fdb_readbg_parse_snapshot_file(t, n, null(), null()),
        _ => fdb_readbg_parse_delta_file(t, n, null(), null()),
    });
    // SAFETY: the result was not destroyed; it is, here and nowhere else.
    unsafe {
        assert_eq!(fdb_result_get_keyvalue_array(result, null_mut(), null_mut(), null_mut()), 2108);
        assert_eq!(fdb_result_get_bg_mutations_array(result, null_mut(), null_mut()), 2108);
        fdb_result_destroy(result);
    }
}

fn ask_database(
    db: *mut FDBDatabase,
    which: u8,
    a: &Text,
    b: &Text,
    size: i64,
) -> (*mut FDBFuture, Kind, bool) {
    let one = size as c_int;
    let future = a.with(|a, n| {
        b.with(|b, m| match which % 13 {
            0 => fdb_database_get_server_protocol(db, 0x0FDB_00B0_7400_0000),
            1 => fdb_database_get_server_protocol(db, size.cast_unsigned()),
            2 => fdb_database_get_client_status(db),
            3 => fdb_database_reboot_worker(db, a, n, 1, one),
            4 => fdb_database_force_recovery_with_data_loss(db, a, n),
            5 => fdb_database_create_snapshot(db, a, n, b, m),
            6 => fdb_database_purge_blob_granules(db, a, n, b, m, size, 1),
            7 => fdb_database_wait_purge_granules_complete(db, a, n),
            8 => fdb_database_blobbify_range(db, a, n, b, m),
            9 => fdb_database_unblobbify_range(db, a, n, b, m),
            10 => fdb_database_list_blobbified_ranges(db, a, n, b, m, one),
            11 => fdb_database_verify_blob_range(db, a, n, b, m, size),
            _ => fdb_database_flush_blob_range(db, a, n, b, m, 0, size),
        })
    });
    match which % 13 {
        0 => (future, Kind::UInt64, false),
        1 => (future, Kind::UInt64, size.cast_unsigned() != 0x0FDB_00B0_7400_0000),
        2 => (future, Kind::Key, true),
        _ => (future, Kind::Nothing, true),
    }
}

fn ask_tenant(tenant: *mut FDBTenant, which: u8, a: &Text, b: &Text, size: i64) -> *mut FDBFuture {
    a.with(|a, n| {
        b.with(|b, m| match which % 9 {
            0 => fdb_tenant_get_id(tenant),
            1 => fdb_tenant_purge_blob_granules(tenant, a, n, b, m, size, 0),
            2 => fdb_tenant_wait_purge_granules_complete(tenant, a, n),
            3 => fdb_tenant_blobbify_range(tenant, a, n, b, m),
            4 => fdb_tenant_blobbify_range_blocking(tenant, a, n, b, m),
            5 => fdb_tenant_unblobbify_range(tenant, a, n, b, m),
            6 => fdb_tenant_list_blobbified_ranges(tenant, a, n, b, m, size as c_int),
            7 => fdb_tenant_verify_blob_range(tenant, a, n, b, m, size),
            _ => fdb_tenant_flush_blob_range(tenant, a, n, b, m, 1, size),
        })
    })
}
