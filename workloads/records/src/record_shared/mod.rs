//! What the record workloads share: the layout of a record store, its rows, faulty maintainers of indexes,
//! and the beginning of meta-data.
//!
//! Nothing here uses the layer to read a store: the judges of the workloads are independent of it.

pub(super) mod columns;
pub(super) mod faulty;
pub(super) mod layout;
pub(super) mod meta_data;
pub(super) mod rows;
