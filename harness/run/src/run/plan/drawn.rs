//! Draws the operations of a run.

use crate::{
    describe::beside::{AnyTree, tree},
    describe::erased::{AnyValue, AnyWorkload},
    judge::panics,
};
use shaketable_sim::seed::Seed;
use std::{
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// The value trees of a client's operations.
pub(crate) enum Drawn {
    /// Of the whole list.
    List(AnyTree<Vec<AnyValue>>),
    /// Of each operation, drawn beside a model.
    Beside(Vec<AnyTree<AnyValue>>),
}

/// The probabilities with which what would be refused is drawn again. Some runs take what comes.
const AGAIN: [f64; 8] = [0.0, 0.9, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The probability that a run begins with a store that was filled, and with how many operations.
const FILLED: f64 = 0.1;
const FILLING: Range<u64> = 6..24;

/// Draws the operations of all clients beside the model, and gives their value trees to `kept`. Returns how
/// many of the first client's fill the store; `None` if this workload, or this run, does not draw them so.
fn beside(
    seed: Seed,
    configuration: &AnyWorkload,
    mut kept: impl FnMut(usize, AnyTree<AnyValue>),
) -> Option<usize> {
    let again = *seed.stream("again").pick(&AGAIN);
    if again == 0.0 {
        return None;
    }
    let length = configuration.length();
    let count = |client: usize| match &length {
        Some(length) => {
            seed.stream(&format!("count-{client}")).range(length.start as u64..length.end as u64) as usize
        }
        None => listed(seed, configuration, client).map_or(0, |tree| tree.current().len()),
    };
    let mut rng = seed.stream("filling");
    let filling = if rng.chance(FILLED) { rng.range(FILLING) as usize } else { 0 };
    // A model that panics is a finding of the run.
    let drawn = || {
        let counts = &count;
        catch_unwind(AssertUnwindSafe(|| configuration.drawn_beside(counts, filling, again, seed, &mut kept)))
    };
    panics::recorded(drawn).ok()??;
    Some(filling)
}

/// Draws the value trees of each client's operations: `None` for one whose strategy has filters and failed.
/// It has no operations in this seed.
pub(crate) fn trees(seed: Seed, configuration: &AnyWorkload) -> Vec<Option<Drawn>> {
    let clients = 0..configuration.clients();
    let mut trees: Vec<Vec<AnyTree<AnyValue>>> = clients.clone().map(|_| Vec::new()).collect();
    match beside(seed, configuration, |client, tree| trees[client].push(tree)) {
        Some(_) => trees.into_iter().map(|trees| Some(Drawn::Beside(trees))).collect(),
        None => clients.map(|client| listed(seed, configuration, client).map(Drawn::List)).collect(),
    }
}

/// Draws the value tree of a client's list without a model.
pub(crate) fn listed(
    seed: Seed,
    configuration: &AnyWorkload,
    client: usize,
) -> Option<AnyTree<Vec<AnyValue>>> {
    tree(seed, &format!("operations-{client}"), &configuration.operations(client))
}

/// Draws each client's operations, and how many of the first client's fill the store. Value trees are large,
/// and are not kept.
pub(crate) fn operations(seed: Seed, configuration: &AnyWorkload) -> (Vec<Vec<AnyValue>>, usize) {
    let clients = 0..configuration.clients();
    let mut operations: Vec<Vec<AnyValue>> = clients.clone().map(|_| Vec::new()).collect();
    if let Some(filling) = beside(seed, configuration, |client, tree| operations[client].push(tree.current()))
    {
        return (operations, filling);
    }
    let list = |client| listed(seed, configuration, client).map(|tree| tree.current()).unwrap_or_default();
    (clients.map(list).collect(), 0)
}
