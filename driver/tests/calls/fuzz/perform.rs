//! Performs sequences of calls.

use super::{
    asks::{ask_database, ask_tenant, blob_result, call},
    hands::{Hands, Known, Transaction, pick},
    read::Kind,
    steps::{Act, Ask, Slot, Step},
};
use fdb_c::abi::{database::*, network::fdb_network_set_option, transaction::*};
use std::{
    collections::BTreeMap,
    ffi::CString,
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
            // SAFETY: the database was just created.
            let busyness = unsafe { fdb_database_get_main_thread_busyness(db) };
            assert!((0.0..=1.0).contains(&busyness), "{busyness}");
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
                assert!(matches!(fdb_transaction_get_committed_version(tr, &mut 0), 0 | 2131));
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
