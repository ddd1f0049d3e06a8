//! Parameters that faults change at running machines: how slow a disk is, how far a server lags, how long
//! versions live, whether the database is locked.
//!
//! All parameters are plain numbers that roles read where they need them and faults set; they have their
//! default values unless a fault is active.

use crate::{ids::NodeId, proto::Version, rt::Nanos};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
};

/// The parameters of the cluster as a whole, and those of each machine.
#[derive(Debug, Default)]
pub struct Tunables {
    window: AtomicI64,
    locked: AtomicBool,
    machines: Mutex<Vec<Arc<MachineTunables>>>,
}

/// The parameters of one machine. A role gets its handle once, when it starts.
#[derive(Debug, Default)]
pub struct MachineTunables {
    read_delay: AtomicU64,
    apply_lag: AtomicU64,
    sync_delay: AtomicU64,
}

impl Tunables {
    /// Default values; versions live for `window`.
    pub fn new(window: Version) -> Tunables {
        let tunables = Tunables::default();
        tunables.set_window(window);
        tunables
    }

    /// The current window of reads and conflict detection, in versions.
    pub fn window(&self) -> Version {
        self.window.load(Ordering::Relaxed)
    }

    /// Sets the window of reads and conflict detection, in versions.
    pub fn set_window(&self, window: Version) {
        self.window.store(window, Ordering::Relaxed);
    }

    /// Whether the database is locked: only lock-aware transactions get a read version or can commit.
    pub fn locked(&self) -> bool {
        self.locked.load(Ordering::Relaxed)
    }

    /// Locks or unlocks the database.
    pub fn set_locked(&self, locked: bool) {
        self.locked.store(locked, Ordering::Relaxed);
    }

    /// The parameters of one machine.
    pub fn machine(&self, node: NodeId) -> Arc<MachineTunables> {
        let mut machines = self.machines.lock();
        while machines.len() <= node.0 as usize {
            machines.push(Arc::default());
        }
        machines[node.0 as usize].clone()
    }

    /// Resets all machines' parameters and unlocks the database; the window becomes `window`.
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
    /// Additional duration of a storage server's reads, nanoseconds.
    read_delay, set_read_delay;
    /// Additional time for which a storage server delays entries before it applies them, nanoseconds.
    apply_lag, set_apply_lag;
    /// Additional duration of a log's syncs, nanoseconds.
    sync_delay, set_sync_delay;
}
