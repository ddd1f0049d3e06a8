//! What a workload is, how a run of it goes and is judged, and what takes many runs: the lower rooms of the
//! crate `shaketable`.
//!
//! This is internal, and changes without notice: people use `shaketable`, which has what they need of this
//! under the same names. The two are one library in two crates, because the compiler needs memory by the
//! crate: as one they needed more than anything else that is compiled for a crate with layers of its own.
// What is public can be named from outside.
#![warn(unreachable_pub)]

pub mod describe;
pub mod judge;
pub mod run;
pub mod search;

#[cfg(any(feature = "embedded", feature = "fdb-client"))]
pub use describe::foundationdb;
pub use describe::{
    beside, erased,
    invariants::{self, Guarded, Invariants},
    isolation,
    misfit::Misfit,
    models, sessions, specimen, strategies, waiting, weakened,
    workload::{self, Bug, Outcome, Staleness, Step, Workload},
};
pub use judge::{finding, panics};
pub use run::{allocations, calm, plan, real, regressions, runner};
pub use search::{
    determinism, entry, explore,
    foreign::{self, Foreign},
    seeds,
    shake::{self, Shake},
    shrink, when,
};

/// What this crate's macros name.
#[doc(hidden)]
pub mod __private {
    pub use crate::describe::{
        sessions::set_up,
        specimen::table::{Alone, Ended, Stored, drawn, general, list, outcome},
        weakened::{Flaw, everything, flawed},
    };
    pub use bytes::Bytes;
    pub use proptest::strategy::{BoxedStrategy, Just, Strategy};
    pub use serde;
    pub use shaketable_sim::{proto::Mutation, seed::Stream};
    pub use shaketable_tx::{self as tx, Database, Db, Env, Isolation, RunError, Tx};
}
