//! Databases and tenants.

use super::{
    errors::{
        CONNECTION_STRING_INVALID, NETWORK_NOT_SETUP, SNAP_INVALID_UID_STRING, SNAP_PATH_NOT_WHITELISTED,
        SUCCESS, TENANT_NOT_FOUND,
    },
    fork,
    future::{FDBFuture, code},
    memory::{copy, copy_option, store},
    network::Network,
    selected::demand,
    transaction::FDBTransaction,
    types::fdb_error_t,
    value::Value,
    versions::{EIGHT, first_option, is_eight, is_removed_option},
};

use crate::embedded::Clients;
use bytes::Bytes;
use shaketable_session::{
    Action, Call, Command, DatabaseId, Session,
    address::server_of,
    output,
    settings::{connection_of, name_of, seed_of},
};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::{DatabaseOption, Error, Result};
use std::{
    ffi::{CStr, OsStr, c_char, c_int},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    ptr::NonNull,
    sync::Arc,
};

/// The protocol of FoundationDB 7.4 and of 8.0. Client and cluster have the same.
fn protocol() -> u64 {
    if is_eight() { 0x0FDB_00B0_8000_0000 } else { 0x0FDB_00B0_7400_0000 }
}

/// A database: a client of the simulated cluster.
pub struct FDBDatabase {
    /// Its clients within simulations.
    embedded: Clients,
    /// The session of the process, if it was created outside of a simulation.
    threaded: Option<(Arc<dyn Session>, DatabaseId)>,
}

impl FDBDatabase {
    /// A new handle of a client within a simulation.
    pub fn of(db: SimDatabase) -> NonNull<FDBDatabase> {
        let database = FDBDatabase { embedded: Clients::only(db), threaded: None };
        NonNull::from(Box::leak(Box::new(database)))
    }

    /// The session in which transactions are created now, and its database: that of the client that is
    /// running, or that of the process.
    fn session(&self) -> Result<(Arc<dyn Session>, DatabaseId)> {
        let embedded = self.embedded.session().map(|session| (session, DatabaseId(0)));
        if embedded.is_none() {
            fork::check()?;
        }
        embedded.or_else(|| self.threaded.clone()).ok_or(Error::from_code(NETWORK_NOT_SETUP))
    }

    fn set_option(&self, option: Command) {
        self.embedded.set_option(&option);
        if let Some((session, id)) = self.threaded.as_ref().filter(|_| !fork::is_child()) {
            session.command(*id, option);
        }
    }
}

/// A tenant: the cluster has none, so that its transactions fail with `tenant_not_found`.
pub struct FDBTenant {
    session: Arc<dyn Session>,
    id: DatabaseId,
}

/// How much of a connection string is shown at most, characters.
const SHOWN: usize = 100;

/// Creates a database whose cluster file has this text. It has no meaning to a client within a simulation.
fn create(cluster_file: &str) -> Result<*mut FDBDatabase> {
    let threaded = match SimDatabase::current() {
        Some(_) => None,
        None => Some(open_threaded(cluster_file)?),
    };
    let database = FDBDatabase { embedded: Clients::default(), threaded };
    if let Some(option) = first_option() {
        database.set_option(option);
    }
    Ok(Box::into_raw(Box::new(database)))
}

fn open_threaded(cluster_file: &str) -> Result<(Arc<dyn Session>, DatabaseId)> {
    let network = Network::get()?;
    let refuse = |why: &str| {
        let connection: String = connection_of(cluster_file).chars().take(SHOWN).collect();
        output::complain(&format!("the cluster file has {connection:?}: {why}"));
        CONNECTION_STRING_INVALID
    };
    let server = server_of(cluster_file)
        .map_err(|_| refuse("after serve@ comes the address of a server, HOST:PORT or unix:PATH"))?;
    if server.is_none()
        && let Some(seed) = seed_of(cluster_file)
            .map_err(|_| refuse("after shaketable: comes a seed or serve, an @ and an address"))?
    {
        network.name_seed(seed);
    }
    let cluster = name_of(cluster_file);
    let session = network.session(server, &cluster)?;
    let id = session.open(&cluster);
    Ok((session, id))
}

/// The cluster file of a program that names none, as FoundationDB finds it.
fn default_cluster_file() -> PathBuf {
    let named = std::env::var_os("FDB_CLUSTER_FILE").filter(|path| !path.is_empty()).map(PathBuf::from);
    let here = || Some(PathBuf::from("fdb.cluster")).filter(|path| path.exists());
    named.or_else(here).unwrap_or_else(|| PathBuf::from("/etc/foundationdb/fdb.cluster"))
}

/// Stores a new handle, or returns the error.
///
/// # Safety
///
/// `out` is null or valid for a write.
unsafe fn hand_out<T>(out: *mut *mut T, created: Result<*mut T>) -> fdb_error_t {
    // SAFETY: as the caller promises.
    code(created.map(|handle| unsafe { store(out, handle) }))
}

/// The bytes of a text.
///
/// # Safety
///
/// `text` is null or ends with a zero byte.
unsafe fn text<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: it ends with a zero byte, as the caller promises, and is used during the call only.
    if text.is_null() { &[] } else { unsafe { CStr::from_ptr(text) }.to_bytes() }
}

/// Creates a database. Without a path the cluster file is that of `FDB_CLUSTER_FILE`, `./fdb.cluster` or
/// `/etc/foundationdb/fdb.cluster`. It need not exist; see [`shaketable_session::settings`].
///
/// # Safety
///
/// `cluster_file_path` is null or ends with a zero byte, and `out_database` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_create_database(
    cluster_file_path: *const c_char,
    out_database: *mut *mut FDBDatabase,
) -> fdb_error_t {
    // SAFETY: as the caller promises.
    let path = OsStr::from_bytes(unsafe { text(cluster_file_path) });
    let path = if path.is_empty() { default_cluster_file() } else { path.into() };
    let cluster_file = std::fs::read_to_string(path).unwrap_or_default();
    // SAFETY: as the caller promises.
    unsafe { hand_out(out_database, create(&cluster_file)) }
}

/// Creates a database from the text of a cluster file.
///
/// # Safety
///
/// `connection_string` is null or ends with a zero byte, and `out_database` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_create_database_from_connection_string(
    connection_string: *const c_char,
    out_database: *mut *mut FDBDatabase,
) -> fdb_error_t {
    // SAFETY: as the caller promises.
    let string = String::from_utf8_lossy(unsafe { text(connection_string) });
    // SAFETY: as the caller promises.
    unsafe { hand_out(out_database, create(&string)) }
}

/// Destroys a database. Its transactions remain usable.
///
/// # Safety
///
/// `d` is a database that was not destroyed, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_database_destroy(d: *mut FDBDatabase) {
    if !d.is_null() {
        // SAFETY: the handle came from `Box::into_raw`, and this is the one time that it is taken back.
        let database = unsafe { Box::from_raw(d) };
        if let Some((session, id)) = &database.threaded {
            session.command(*id, Command::Close);
        }
    }
}

/// Sets an option: 2007 for an unknown code. A value that the option does not accept makes later calls fail
/// with 2006.
///
/// # Safety
///
/// `d` is a database that was not destroyed, and `value` is null or readable for `value_length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_database_set_option(
    d: *mut FDBDatabase,
    option: c_int,
    value: *const u8,
    value_length: c_int,
) -> fdb_error_t {
    if !DatabaseOption::CODES.contains(&option) || is_removed_option(option) {
        return Error::INVALID_OPTION.code();
    }
    // SAFETY: as the caller promises.
    let (database, value) = unsafe { (&*d, copy_option(value, value_length)) };
    database.set_option(Command::SetDatabaseOption { code: option, value });
    SUCCESS
}

/// Creates a transaction.
///
/// # Safety
///
/// `d` is a database that was not destroyed, and `out_transaction` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_database_create_transaction(
    d: *mut FDBDatabase,
    out_transaction: *mut *mut FDBTransaction,
) -> fdb_error_t {
    // SAFETY: as the caller promises.
    let database = unsafe { &*d };
    let created = database.session().map(|(session, id)| FDBTransaction::create(session, id, None));
    // SAFETY: as the caller promises.
    unsafe { hand_out(out_transaction, created) }
}

/// Opens a tenant. The cluster has none: what is done with it fails with `tenant_not_found` (2131).
///
/// # Safety
///
/// `d` is a database that was not destroyed, and `out_tenant` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_database_open_tenant(
    d: *mut FDBDatabase,
    _tenant_name: *const u8,
    _tenant_name_length: c_int,
    out_tenant: *mut *mut FDBTenant,
) -> fdb_error_t {
    demand("fdb_database_open_tenant", EIGHT);
    // SAFETY: as the caller promises.
    let database = unsafe { &*d };
    let opened = database.session().map(|(session, id)| Box::into_raw(Box::new(FDBTenant { session, id })));
    // SAFETY: as the caller promises.
    unsafe { hand_out(out_tenant, opened) }
}

/// Creates a transaction of a tenant: its calls fail with `tenant_not_found` (2131).
///
/// # Safety
///
/// `tenant` is a tenant that was not destroyed, and `out_transaction` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_tenant_create_transaction(
    tenant: *mut FDBTenant,
    out_transaction: *mut *mut FDBTransaction,
) -> fdb_error_t {
    demand("fdb_tenant_create_transaction", EIGHT);
    // SAFETY: as the caller promises.
    let tenant = unsafe { &*tenant };
    let transaction = FDBTransaction::create(tenant.session.clone(), tenant.id, Some(TENANT_NOT_FOUND));
    // SAFETY: as the caller promises.
    unsafe { hand_out(out_transaction, Ok(transaction)) }
}

/// The number of a tenant: `tenant_not_found` (2131).
#[unsafe(no_mangle)]
pub extern "C" fn fdb_tenant_get_id(_tenant: *mut FDBTenant) -> *mut FDBFuture {
    demand("fdb_tenant_get_id", EIGHT);
    FDBFuture::ready(Err(TENANT_NOT_FOUND))
}

/// Destroys a tenant.
///
/// # Safety
///
/// `tenant` is a tenant that was not destroyed, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_tenant_destroy(tenant: *mut FDBTenant) {
    demand("fdb_tenant_destroy", EIGHT);
    if !tenant.is_null() {
        // SAFETY: the handle came from `Box::into_raw`, and this is the one time that it is taken back.
        drop(unsafe { Box::from_raw(tenant) });
    }
}

/// The share of its time that the network thread is busy, from 0 to 1, measured each second that it is asked
/// for. Within a simulation, and if the cluster is that of a server, 0.
///
/// # Safety
///
/// `database` is a database that was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_database_get_main_thread_busyness(database: *mut FDBDatabase) -> f64 {
    // SAFETY: as the caller promises.
    let is_threaded = unsafe { &*database }.threaded.is_some();
    Network::get().ok().filter(|_| is_threaded).map_or(0.0, Network::busyness)
}

/// The protocol of the cluster, that of FoundationDB 7.4, or of 8.0 from version 800 on. It never changes: a
/// call that expects this one is not ready until it is cancelled.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_database_get_server_protocol(
    _database: *mut FDBDatabase,
    expected_version: u64,
) -> *mut FDBFuture {
    match protocol() {
        protocol if protocol == expected_version => FDBFuture::never(),
        protocol => FDBFuture::ready(Ok(Value::UInt64(protocol))),
    }
}

/// The status of the client, as JSON: it is healthy.
#[unsafe(no_mangle)]
pub extern "C" fn fdb_database_get_client_status(_database: *mut FDBDatabase) -> *mut FDBFuture {
    let status = Bytes::from_static(br#"{"Healthy":true,"InitializationState":"created"}"#);
    FDBFuture::ready(Ok(Value::Key(status)))
}

/// Waits until the cluster commits, which is all that FoundationDB does as long as it can: this cluster
/// recovers by itself, and loses no data in doing so. The data center has no meaning.
///
/// # Safety
///
/// `d` is a database that was not destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_database_force_recovery_with_data_loss(
    d: *mut FDBDatabase,
    _dcid: *const u8,
    _dcid_length: c_int,
) -> *mut FDBFuture {
    // SAFETY: as the caller promises.
    let (session, database) = match unsafe { &*d }.session() {
        Ok(session) => session,
        Err(error) => return FDBFuture::ready(Err(error)),
    };
    let id = session.next_transaction();
    session.command(database, Command::Create(id));
    let ends = session.clone();
    let end = move |answer| {
        ends.command(database, Command::Transaction(id, Action::Destroy));
        answer
    };
    FDBFuture::calling(session, database, id, Call::Recover, end)
}

/// Takes a snapshot of the disks with a program that the servers run. An id that is not 32 hexadecimal digits
/// is refused with 2509, every other call with 2505: the servers of the cluster run no program, as those of a
/// cluster whose configuration names none.
///
/// # Safety
///
/// `uid` is null or readable for `uid_length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdb_database_create_snapshot(
    _database: *mut FDBDatabase,
    uid: *const u8,
    uid_length: c_int,
    _snap_command: *const u8,
    _snap_command_length: c_int,
) -> *mut FDBFuture {
    // SAFETY: as the caller promises.
    let uid = unsafe { copy(uid, uid_length) };
    let is_id = uid.len() == 32 && uid.iter().all(u8::is_ascii_hexdigit);
    FDBFuture::ready(Err(if is_id { SNAP_PATH_NOT_WHITELISTED } else { SNAP_INVALID_UID_STRING }))
}
