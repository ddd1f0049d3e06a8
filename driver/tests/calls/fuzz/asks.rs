//! The calls that return futures and results.

use super::{
    hands::Transaction,
    read::Kind,
    steps::{Ask, Batch, Selector, Text},
};
use fdb_c::abi::{
    database::*, future::FDBFuture, ranges::*, transaction::*, types::FDBReadBlobGranuleContext,
    unsupported::*,
};
use std::{
    ffi::c_int,
    ptr::{null, null_mut},
};

/// Makes a call on a transaction: its future, the type of its result, and whether it ends by itself.
pub fn call(tr: *mut FDBTransaction, ask: &Ask) -> (*mut FDBFuture, Kind, bool) {
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

/// Makes a call that returns a result: an error.
pub fn blob_result(transaction: &Transaction, which: u8, text: &Text) {
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

/// Makes a call on a database: as [`call`].
pub fn ask_database(
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
            // SAFETY: the database was not destroyed, and the text is readable during the call.
            4 => unsafe { fdb_database_force_recovery_with_data_loss(db, a, n) },
            // SAFETY: the texts are readable during the call.
            5 => unsafe { fdb_database_create_snapshot(db, a, n, b, m) },
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

/// Makes a call on a tenant: its future has an error.
pub fn ask_tenant(tenant: *mut FDBTenant, which: u8, a: &Text, b: &Text, size: i64) -> *mut FDBFuture {
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
