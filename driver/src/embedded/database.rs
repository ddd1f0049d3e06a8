//! Databases of the crate `foundationdb`.

use super::pointer;
use foundationdb::Database;
use shaketable_sim::client::SimDatabase;

/// The database of a client as the crate `foundationdb` has it.
pub fn database(db: &SimDatabase) -> Database {
    // SAFETY: the pointer was just made by the library that the crate calls, and nothing else uses or
    // destroys it.
    unsafe { Database::new_from_pointer(pointer(db).cast()) }
}
