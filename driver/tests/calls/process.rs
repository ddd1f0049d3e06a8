//! The network of this process, and its first database.

use fdb_c::abi::{
    database::{FDBDatabase, fdb_create_database},
    network::{fdb_run_network, fdb_select_api_version_impl, fdb_setup_network},
};
use std::{
    ptr,
    sync::LazyLock,
    thread::{self, ThreadId},
};

/// The database of this process, and its network thread.
pub struct Process {
    database: usize,
    /// The network thread.
    pub network: ThreadId,
}

impl Process {
    /// The database, which is never destroyed.
    pub fn database(&self) -> *mut FDBDatabase {
        self.database as *mut FDBDatabase
    }
}

/// What the tests of this process share.
pub static PROCESS: LazyLock<Process> = LazyLock::new(|| {
    assert_eq!(fdb_select_api_version_impl(740, 740), 0);
    assert_eq!(fdb_setup_network(), 0);
    let network = thread::spawn(|| fdb_run_network()).thread().id();
    let mut database: *mut FDBDatabase = ptr::null_mut();
    // SAFETY: the pointer is valid for a write.
    assert_eq!(unsafe { fdb_create_database(ptr::null(), &mut database) }, 0);
    Process { database: database as usize, network }
});
