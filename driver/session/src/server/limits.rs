//! What a connection may do at most. FoundationDB's limits are far below, or there are none.

/// Connections at once. As many others may be silent: of more that have not greeted, the oldest are closed.
pub const CONNECTIONS: usize = 1_000;

/// Databases of a connection that are open at once.
pub const DATABASES: usize = 1_000;

/// Transactions of a connection that exist at once.
pub const TRANSACTIONS: usize = 100_000;

/// Calls of a connection whose answers are outstanding.
pub const CALLS: usize = 100_000;

/// Commands and calls of a transaction between two resets.
pub const STEPS: u32 = 500_000;

/// Bytes of keys and values that the transactions of a connection write between two resets.
pub const WRITES: usize = 256 << 20;

/// Bytes that the answers of a connection may have that are to come, and those that it has not read: further
/// reads wait.
pub const ANSWERS: usize = 64 << 20;

/// Bytes of answers that a program has not read. Until it does, its requests wait.
pub const UNREAD: usize = 32 << 20;
