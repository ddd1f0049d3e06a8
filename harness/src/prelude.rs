//! The names that a workload uses: the transaction contract, the kinds of workloads, and the way to run them.

#[doc(inline)]
pub use crate::{
    describe::invariants::Guarded,
    describe::invariants::Invariants,
    describe::sessions,
    describe::specimen::{At, Mounted, Specimen},
    describe::waiting::Wait,
    describe::workload::Bug,
    describe::workload::Outcome,
    describe::workload::Staleness,
    describe::workload::Step,
    describe::workload::Workload,
    planted_bugs,
    search::foreign::Foreign,
    search::shake::Shake,
};
pub use bytes::Bytes;
pub use proptest::{
    collection::vec,
    prelude::{BoxedStrategy, Just, Strategy, any, prop, prop_oneof},
    sample::select,
};
pub use serde::{Deserialize, Serialize};
pub use shaketable_sim::{
    faults::{Family, Profile},
    proto::{Mutation, Version},
    rt::MILLISECOND,
    seed::Stream,
};
pub use shaketable_tx::{
    self as tx, Database, Db, Env,
    Isolation::{self, Serializable, Snapshot},
    MutationType, RangeOption, RetryError, Transaction, Tx,
    once::{self, Session, Slots},
    reachable, sometimes,
};
