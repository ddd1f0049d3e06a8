//! What faults turn at machines while these run: how slow a disk is, how far a server lags, how
//! long versions live, whether the database is locked.
//!
//! Everything here is plain numbers that roles read where they need them and faults set; nothing
//! is set unless a fault is striking.

use crate::{net::NodeId, proto::Version, rt::Nanos};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
};

/// What faults turn in the cluster as a whole, and where each machine's own knobs are.
#[derive(Debug, Default)]
pub struct Tunables {
    window: AtomicI64,
    locked: AtomicBool,
    machines: Mutex<Vec<Arc<MachineTunables>>>,
}

/// What faults turn at one machine. A role takes its handle once, when it starts.
#[derive(Debug, Default)]
pub struct MachineTunables {
    read_delay: AtomicU64,
    apply_lag: AtomicU64,
    sync_delay: AtomicU64,
}

impl Tunables {
    /// Nothing turned; versions live for `window`.
    pub fn new(window: Version) -> Tunables {
        let tunables = Tunables::default();
        tunables.set_window(window);
        tunables
    }

    /// How many versions back reads and conflict detection reach at present.
    pub fn window(&self) -> Version {
        self.window.load(Ordering::Relaxed)
    }

    /// Sets how many versions back reads and conflict detection reach.
    pub fn set_window(&self, window: Version) {
        self.window.store(window, Ordering::Relaxed);
    }

    /// Whether the database is locked: only lock-aware transactions get a read version or commit.
    pub fn locked(&self) -> bool {
        self.locked.load(Ordering::Relaxed)
    }

    /// Locks or unlocks the database.
    pub fn set_locked(&self, locked: bool) {
        self.locked.store(locked, Ordering::Relaxed);
    }

    /// The knobs of one machine.
    pub fn machine(&self, node: NodeId) -> Arc<MachineTunables> {
        let mut machines = self.machines.lock();
        while machines.len() <= node.0 as usize {
            machines.push(Arc::default());
        }
        machines[node.0 as usize].clone()
    }

    /// Turns every machine's knobs back and unlocks the database; the window becomes `window`.
    pub fn heal(&self, window: Version) {
        self.set_window(window);
        self.set_locked(false);
        for machine in self.machines.lock().iter() {
            machine.set_read_delay(0);
            machine.set_apply_lag(0);
            machine.set_sync_delay(0);
        }
    }
}

macro_rules! knobs {
    ($($(#[$doc:meta])* $name:ident, $set:ident;)*) => {
        impl MachineTunables {
            $(
                $(#[$doc])*
                pub fn $name(&self) -> Nanos {
                    self.$name.load(Ordering::Relaxed)
                }

                #[doc = concat!("Sets [`", stringify!($name), "`](Self::", stringify!($name), ").")]
                pub fn $set(&self, nanos: Nanos) {
                    self.$name.store(nanos, Ordering::Relaxed);
                }
            )*
        }
    };
}

knobs! {
    /// By how much a storage server's reads take longer, nanoseconds.
    read_delay, set_read_delay;
    /// For how much longer a storage server holds entries back before it applies them, nanoseconds.
    apply_lag, set_apply_lag;
    /// By how much a log's syncs take longer, nanoseconds.
    sync_delay, set_sync_delay;
}
