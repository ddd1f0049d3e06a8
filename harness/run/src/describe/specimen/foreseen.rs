//! The calls of one transaction that would probably be done.

use super::{At, Specimen};
use crate::describe::beside::{AnyTree, ListTree, Refusals, draw_until_done};
use proptest::{
    strategy::{BoxedStrategy, NewTree, Strategy, ValueTree},
    test_runner::TestRunner,
};
use std::{
    fmt::{self, Debug},
    ops::Range,
    rc::Rc,
    sync::Arc,
};

/// The place of a transaction in the order in which operations are drawn: as if each committed alone, a
/// thousand versions after the one before.
pub(super) fn place(order: u64) -> At<'static> {
    let version = 1_000 * (order as i64 + 1_000);
    let mut stamp = [0; 10];
    stamp[..8].copy_from_slice(&version.to_be_bytes());
    At { stamp: Some(stamp), read_version: Some(version - 1), called: version - 1, refusal: None }
}

/// The strategy of the calls of a transaction, each drawn beside those before it.
#[derive(Clone)]
pub(super) struct Foreseen<S: Specimen> {
    pub(super) specimen: S,
    pub(super) call: BoxedStrategy<S::Op>,
    pub(super) count: Range<usize>,
    pub(super) models: Arc<Vec<S::Model>>,
    pub(super) order: u64,
    pub(super) again: f64,
    pub(super) refusals: Rc<Refusals>,
    pub(super) client: usize,
    /// The number of its first call among those of the client.
    pub(super) first: usize,
}

impl<S: Specimen> Debug for Foreseen<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Foreseen").field("specimen", &self.specimen).finish_non_exhaustive()
    }
}

impl<S: Specimen> Strategy for Foreseen<S> {
    type Tree = ListTree<S::Op>;
    type Value = Vec<S::Op>;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let count = self.count.new_tree(runner)?.current();
        let (at, mut models) = (place(self.order), self.models.to_vec());
        let mut calls: Vec<AnyTree<S::Op>> = Vec::with_capacity(count);
        for number in self.first..self.first + count {
            let client = self.client;
            let numbered = self.call.clone().prop_map(move |mut op| {
                S::number(&mut op, client, number);
                op
            });
            let again = (self.again, &*self.refusals);
            let call = draw_until_done(&numbered.boxed(), again, runner, |op| {
                if S::is_read_only(op) {
                    return models.iter_mut().try_for_each(|model| {
                        self.specimen.replay(model, op, &at)?;
                        Ok::<_, S::Error>(())
                    });
                }
                let replayed = |model: &S::Model| {
                    let mut after = model.clone();
                    self.specimen.replay(&mut after, op, &at)?;
                    Ok::<_, S::Error>(after)
                };
                models = models.iter().map(replayed).collect::<Result<_, _>>()?;
                Ok(())
            })?;
            calls.push(call);
        }
        Ok(ListTree::new(calls))
    }
}
