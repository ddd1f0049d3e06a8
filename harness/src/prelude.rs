//! The names that a workload uses: the transaction contract, the kinds of workloads, and the way to run them.

pub use crate::{
    Bug, Guarded, Invariants, Outcome, Shake, Step, Workload,
    judges::waiting::Wait,
    planted_bugs, sessions,
    specimen::{At, Mounted, Specimen},
};
pub use bytes::Bytes;
pub use proptest::{
    collection::vec,
    prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof},
};
pub use serde::{Deserialize, Serialize};
pub use shaketable_sim::{
    faults::{Family, Profile},
    proto::{Mutation, Version},
    rt::MILLISECOND,
    seed::Stream,
};
pub use shaketable_tx::{
    self as tx, Database, Env,
    Isolation::{self, Serializable, Snapshot},
    MutationType, RangeOption, RetryError, Transaction,
    once::{self, Session, Slots},
    reachable, sometimes,
};
