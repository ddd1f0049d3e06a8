//! What a context knows of a store that was opened in it.

use crate::index::states::States;

/// What all stores in one subspace have in common that are open in one context.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    /// The version of the meta-data with which it was opened last.
    pub meta_data: i32,
    /// The states of the indexes that are not readable, by name, as the transaction sees them.
    pub states: States,
}
