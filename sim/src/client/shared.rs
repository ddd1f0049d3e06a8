//! The state that all transactions of a client share.

use super::{connection::Connection, special_keys::HealthCache, write_map::WriteMap};
use crate::{
    config::ClusterBug,
    endings::Ending,
    history::{Open, Origin},
    ids::ClientId,
    rt::Nanos,
};
use parking_lot::Mutex;
use shaketable_tx::TransactionOption;
use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

/// What the transactions that a client creates belong to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Label {
    /// The operation.
    pub operation: Option<u32>,
    /// Where in a program they come from.
    pub origin: Option<Origin>,
    /// Whether the client only prepares for it.
    pub prepares: bool,
}

impl Label {
    /// The label of the next life of a transaction with this label, which begins while the client has this
    /// other one.
    pub fn renewed(self, now: Label) -> Label {
        Label { prepares: self.prepares && now.prepares, ..self }
    }
}

/// The state shared by all transactions of a client.
pub struct Client {
    /// Its connection.
    pub connection: Arc<Connection>,
    /// Its number in the history.
    pub id: ClientId,
    /// What it does now.
    pub label: Arc<Mutex<Label>>,
    /// Defaults of its transactions.
    pub defaults: Mutex<Defaults>,
    /// The number of outstanding watches.
    pub watches: AtomicI64,
    /// The number of attempts that have a number and have not ended.
    pub attempts: AtomicI64,
    /// An empty write map, shared by new transactions.
    pub empty_writes: Arc<WriteMap>,
    /// The number of lives of its transactions.
    pub lives: AtomicU64,
    /// What it knows about the health of the cluster.
    pub health: Mutex<HealthCache>,
}

impl Client {
    pub(super) fn new(connection: Arc<Connection>, id: ClientId, label: Arc<Mutex<Label>>) -> Arc<Client> {
        Arc::new(Client {
            connection,
            id,
            label,
            defaults: Mutex::new(Defaults { options: Vec::new(), snapshot_ryw: 1, max_watches: 10_000 }),
            watches: AtomicI64::new(0),
            attempts: AtomicI64::new(0),
            empty_writes: Arc::default(),
            lives: AtomicU64::new(0),
            health: Mutex::default(),
        })
    }

    /// Whether the cluster has this planted bug.
    pub fn has(&self, bug: ClusterBug) -> bool {
        self.connection.world.has(bug)
    }

    /// Virtual time.
    pub fn now(&self) -> Nanos {
        self.connection.world.clock.now()
    }

    /// Notes what is open when an operation has ended.
    pub(super) fn left_open(&self, operation: u32) {
        let open = |count: &AtomicI64| count.load(Ordering::Relaxed).max(0) as u64;
        let open = Open { transactions: open(&self.attempts), watches: open(&self.watches) };
        if open != Open::default() {
            self.connection.world.history.lock().open.insert((self.id, operation), open);
        }
    }

    /// Notes how a call ended for the operation that made its transaction, and for the one that goes on.
    pub fn note_ending(&self, operation: Option<u32>, ending: Ending) {
        let of = [operation, self.label.lock().operation];
        if of != [None, None] {
            self.connection.world.history.lock().note_ending(self.id, of, ending);
        }
    }
}

/// Defaults of a client's transactions.
pub struct Defaults {
    /// The options with which each of them starts.
    pub options: Vec<TransactionOption>,
    /// Their snapshot counter.
    pub snapshot_ryw: i32,
    /// The maximum number of outstanding watches.
    pub max_watches: i64,
}
