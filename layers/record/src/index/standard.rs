//! The maintainers of this crate.

use super::{
    Registry,
    aggregate::{Aggregate, AggregateIndex},
    rank::RankIndex,
    value::ValueIndex,
    version::VersionIndex,
};
use crate::metadata::index_types;
use shaketable_tx::Transaction;

impl<T: Transaction> Registry<T> {
    /// The maintainers of this crate.
    pub fn standard() -> Registry<T> {
        let mut registry = Registry::default();
        registry.register(index_types::VALUE, ValueIndex);
        registry.register(index_types::RANK, RankIndex);
        registry.register(index_types::VERSION, VersionIndex);
        for aggregate in Aggregate::ALL {
            registry.register(aggregate.kind(), AggregateIndex(aggregate));
        }
        registry
    }
}
