//! What the record workloads share: the layout of a record store, its rows, and faulty maintainers of
//! indexes.
//!
//! Nothing here uses the layer to read a store: the judges of the workloads are independent of it.

pub(super) mod columns;
pub(super) mod faulty;
pub(super) mod layout;
pub(super) mod rows;
