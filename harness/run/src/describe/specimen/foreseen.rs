//! The calls of one transaction that would probably be done.

use super::{At, Specimen};
use crate::describe::{
    beside::{AnyTree, ListTree, Refusals, draw_until_done, happens},
    models::timeline::WINDOW,
};
use proptest::{
    strategy::{BoxedStrategy, Just, NewTree, Strategy, ValueTree},
    test_runner::TestRunner,
};
use std::{
    fmt::{self, Debug},
    ops::Range,
    rc::Rc,
    sync::Arc,
};

/// The place of a transaction in the order in which operations are drawn: as if each committed alone, and so
/// late after the one before that nobody can read what was before that one.
pub(super) fn place(order: u64) -> At<'static> {
    let version = (WINDOW + 1) * (order as i64 + 1);
    let mut stamp = [0; 10];
    stamp[..8].copy_from_slice(&version.to_be_bytes());
    At { stamp: Some(stamp), read_version: Some(version - 1), called: version - 1, refusal: None }
}

/// How a client's calls are drawn.
pub(super) struct Calls<S: Specimen> {
    pub(super) specimen: S,
    pub(super) call: BoxedStrategy<S::Op>,
    /// The number of calls in a transaction, and in one that fills the store.
    pub(super) count: Range<usize>,
    pub(super) many: Range<usize>,
    pub(super) client: usize,
}

/// The probability that a call is the one before it once more.
const TWICE: f64 = 0.06;

/// The strategy of the calls of a transaction, each drawn beside those before it.
#[derive(Clone)]
pub(super) struct Foreseen<S: Specimen> {
    pub(super) calls: Arc<Calls<S>>,
    pub(super) models: Vec<Arc<S::Model>>,
    pub(super) order: u64,
    pub(super) again: f64,
    pub(super) refusals: Rc<Refusals>,
    pub(super) filling: bool,
    /// The number of its first call among those of the client.
    pub(super) first: usize,
}

impl<S: Specimen> Debug for Foreseen<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreseen").field("specimen", &self.calls.specimen).finish_non_exhaustive()
    }
}

impl<S: Specimen> Strategy for Foreseen<S> {
    type Tree = ListTree<S::Op>;
    type Value = Vec<S::Op>;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let Calls { specimen, call, count, many, client } = &*self.calls;
        let count = if self.filling { many } else { count }.new_tree(runner)?.current();
        let (at, mut models) = (place(self.order), self.models.clone());
        let mut calls: Vec<AnyTree<S::Op>> = Vec::with_capacity(count);
        for number in self.first..self.first + count {
            let client = *client;
            let numbered = call.clone().prop_map(move |mut op| {
                S::number(&mut op, client, number);
                op
            });
            let again = (self.again, &*self.refusals);
            let is_wanted = |op: &S::Op| !(self.filling && S::is_read_only(op));
            let mut done = |op: &S::Op| {
                if S::is_read_only(op) {
                    return models.iter_mut().try_for_each(|model| {
                        specimen.replay(Arc::make_mut(model), op, &at)?;
                        Ok::<_, S::Error>(())
                    });
                }
                let replayed = |model: &Arc<S::Model>| {
                    let mut after = S::Model::clone(model);
                    specimen.replay(&mut after, op, &at)?;
                    Ok::<_, S::Error>(Arc::new(after))
                };
                models = models.iter().map(replayed).collect::<Result<_, _>>()?;
                Ok(())
            };
            let mut twice = calls.last().filter(|_| happens(runner.rng(), TWICE)).map(|last| last.current());
            if let Some(op) = &mut twice {
                S::number(op, client, number);
            }
            let call = match twice.filter(|op| done(op).is_ok()) {
                Some(op) => (Box::new(Just(op)) as AnyTree<S::Op>, true),
                None => draw_until_done(&numbered.boxed(), is_wanted, again, runner, done)?,
            };
            // What is full is filled.
            if self.filling && !call.1 && !calls.is_empty() {
                break;
            }
            calls.push(call.0);
        }
        Ok(ListTree::new(calls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::models::timeline::Timeline;

    #[test]
    fn a_timeline_keeps_no_past_of_what_is_drawn() {
        // Each state has a clone of it.
        let state = Arc::new(());
        let mut timeline = Timeline::new((state.clone(), 0));
        for order in 0..200 {
            timeline.begin(&place(order));
            timeline.write(|(_, number)| *number += 1);
        }
        assert_eq!(timeline.now().1, 200);
        assert!(Arc::strong_count(&state) < 6, "{} states", Arc::strong_count(&state) - 1);
    }
}
