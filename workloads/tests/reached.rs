//! Every public function of every layer is called by an operation of a workload, under faults.
//!
//! The public functions are read from the sources, so that a new one cannot be missed: inherent functions of
//! the types that a layer exports, and free functions that it exports. Each starts with `crate::called!()`,
//! which records that an operation (rather than a setup, an audit or a check) called it; a sweep under
//! standard faults must then call all of them.

mod surface;

use shaketable::entry::Entry;
use shaketable::plan::Demands;
use shaketable_sim::seed::Seed;
use shaketable_workloads::catalogue::catalogue;
use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
};
use surface::{Function, functions, missing};

/// The workloads whose names differ from those of their layers. The ring of `cycle` has no layer.
const LAYER_OF: [(&str, &str); 3] = [("session", "once"), ("upload", "blob"), ("cycle", "")];

/// The maximum number of seeds of a workload until every function of its layer has been called.
const SEEDS: u64 = 60;

/// Public functions that no operation can call, each with the reason. Paths are as in [`Function::path`].
const EXCEPTIONS: &[(&str, &str)] = &[
    ("directory::Directories::content", "returns the location of the layer"),
    ("leased_queue::LeasedQueue::subspace", "returns the location of the layer"),
    ("priority_queue::PriorityQueue::subspace", "returns the location of the layer"),
    ("queue::Queue::subspace", "returns the location of the layer"),
    ("leased_queue::LeasedQueue::row", "decodes a row that the caller has read: only models need it"),
    ("staged_queue::Request::stamp", "only models need it, to compare it with the transaction's"),
    (
        "directory::Allocator::allocate",
        "a create uses the same candidates, and keeps the remaining ones for its next attempt",
    ),
];

/// Whether a function need not be called.
fn is_exempt(path: &str) -> bool {
    EXCEPTIONS.iter().any(|(name, _)| *name == path)
}

/// Runs a workload until every function of its layer has been called.
fn shake(entry: &dyn Entry, functions: &BTreeSet<Function>) {
    let layer =
        LAYER_OF.iter().find(|(name, _)| *name == entry.name()).map_or(entry.name(), |(_, layer)| layer);
    let own: BTreeSet<Function> =
        functions.iter().filter(|f| f.layer == layer && !is_exempt(&f.path)).cloned().collect();
    for seed in (0..SEEDS).take_while(|_| !missing(&own).is_empty()) {
        // Whether the run passes is the subject of other tests.
        entry.run(Seed(seed), &Demands::default(), false);
    }
}

#[test]
fn every_public_function_notes_that_it_is_called() {
    let silent: Vec<String> =
        functions().into_iter().filter(|f| !f.noted && !is_exempt(&f.path)).map(|f| f.path).collect();
    assert!(silent.is_empty(), "these do not open with `crate::called!();`: {silent:#?}");
}

#[test]
fn every_public_function_is_called_by_an_operation_under_faults() {
    let (functions, catalogue, next) = (functions(), catalogue(), AtomicUsize::new(0));
    assert!(functions.len() > 200, "only {} public functions were found", functions.len());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(entry) = catalogue.get(next.fetch_add(1, Ordering::Relaxed)) {
                    shake(entry.as_ref(), &functions);
                }
            });
        }
    });
    let missing = missing(&functions);
    let gaps: Vec<_> = missing.iter().filter(|path| !is_exempt(path)).collect();
    assert!(gaps.is_empty(), "no operation of any workload calls these: {gaps:#?}");
    let exempt = EXCEPTIONS.iter().map(|(path, _)| path);
    let idle: Vec<_> = exempt.filter(|path| !missing.contains(**path)).collect();
    assert!(idle.is_empty(), "these are called, or do not exist, and need no exception: {idle:#?}");
}
