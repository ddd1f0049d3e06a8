//! What the record workloads share: the layout of a record store and its rows.
//!
//! Nothing here uses the layer to read a store: the judges of the workloads are independent of it.

pub(super) mod columns;
pub(super) mod layout;
pub(super) mod rows;
