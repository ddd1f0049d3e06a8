//! Draws the operations of a run.

use crate::{
    describe::beside::{AnyTree, tree},
    describe::erased::{AnyValue, AnyWorkload},
    judge::panics,
};
use shaketable_sim::seed::Seed;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The value trees of a client's operations.
pub(crate) enum Drawn {
    /// Of the whole list.
    List(AnyTree<Vec<AnyValue>>),
    /// Of each operation, drawn beside a model.
    Beside(Vec<AnyTree<AnyValue>>),
}

impl Drawn {
    /// The operations.
    pub(crate) fn current(&self) -> Vec<AnyValue> {
        match self {
            Drawn::List(tree) => tree.current(),
            Drawn::Beside(trees) => trees.iter().map(|tree| tree.current()).collect(),
        }
    }
}

/// The probabilities with which what would be refused is drawn again. Some runs take what comes.
const AGAIN: [f64; 8] = [0.0, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// Draws the value trees of each client's operations: `None` for a client whose strategy has filters and
/// failed. It has no operations in this seed.
pub(crate) fn trees(seed: Seed, configuration: &AnyWorkload) -> Vec<Option<Drawn>> {
    let lists: Vec<_> =
        (0..configuration.clients()).map(|client| listed(seed, configuration, client)).collect();
    let again = *seed.stream("again").pick(&AGAIN);
    if again > 0.0 {
        let counts: Vec<usize> =
            lists.iter().map(|tree| tree.as_ref().map_or(0, |tree| tree.current().len())).collect();
        // A model that panics is a finding of the run.
        let drawn = || catch_unwind(AssertUnwindSafe(|| configuration.drawn_beside(&counts, again, seed)));
        if let Ok(Some(trees)) = panics::recorded(drawn) {
            return trees.into_iter().map(|trees| Some(Drawn::Beside(trees))).collect();
        }
    }
    lists.into_iter().map(|tree| tree.map(Drawn::List)).collect()
}

/// Draws the value tree of a client's list without a model.
pub(crate) fn listed(
    seed: Seed,
    configuration: &AnyWorkload,
    client: usize,
) -> Option<AnyTree<Vec<AnyValue>>> {
    tree(seed, &format!("operations-{client}"), &configuration.operations(client))
}

/// Draws each client's operations.
pub(crate) fn operations(seed: Seed, configuration: &AnyWorkload) -> Vec<Vec<AnyValue>> {
    let current = |drawn: Option<Drawn>| drawn.map(|drawn| drawn.current()).unwrap_or_default();
    trees(seed, configuration).into_iter().map(current).collect()
}
