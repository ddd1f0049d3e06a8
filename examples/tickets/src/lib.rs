//! Functions that are written against the crate `foundationdb`, and the workloads that shake them: a shop of this crate,
//! and two recipes that `foundationdb` ships.

pub mod election;
pub mod register;
pub mod sale;
pub mod shop;
