//! Simplifies the values in a client's operations with the value trees of their strategy.

use crate::describe::beside::AnyTree;
use shaketable_sim::trace::hash_bytes;
use std::fmt::{self, Debug};

/// The value trees of a client's operations, some of which remain.
pub(super) enum Values<Op> {
    /// Of the whole list.
    Whole(Whole<Op>),
    /// Of each operation.
    Each(Each<Op>),
}

impl<Op: Debug + Clone> Values<Op> {
    /// The values of a list's tree. `None` if its list is another one.
    pub(super) fn whole(tree: AnyTree<Vec<Op>>, list: &[Op]) -> Option<Values<Op>> {
        Whole::new(tree, list).map(Values::Whole)
    }

    /// The values of each operation's tree. `None` if their list is another one.
    pub(super) fn each(trees: Vec<AnyTree<Op>>, list: &[Op]) -> Option<Values<Op>> {
        let current: Vec<Op> = trees.iter().map(|tree| tree.current()).collect();
        same(&current, list).then_some(Values::Each(Each { trees, current, at: 0 }))
    }

    /// The value of an operation, by its index in the whole list.
    pub(super) fn of(&self, index: usize) -> Option<&Op> {
        match self {
            Values::Whole(values) => values.of(index),
            Values::Each(values) => values.current.get(index),
        }
    }

    /// The hash of the value of an operation, by its index in the whole list.
    pub(super) fn hash_of(&self, index: usize) -> u64 {
        match self {
            Values::Whole(values) => values.hash_of(index),
            Values::Each(values) => values.current.get(index).map_or(0, hash),
        }
    }

    /// Makes a value of the remaining operations simpler. Returns whether there was one.
    pub(super) fn simplify(&mut self, remaining: &[usize]) -> bool {
        match self {
            Values::Whole(values) => values.simplify(remaining),
            Values::Each(values) => values.simplify(remaining),
        }
    }

    /// Undoes the last simplification, or makes it smaller. Returns whether there was one.
    pub(super) fn complicate(&mut self) -> bool {
        match self {
            Values::Whole(values) => values.complicate(),
            Values::Each(values) => values.complicate(),
        }
    }
}

/// The value tree of a list.
///
/// A list's tree first removes elements, one after another from the first one on, and then simplifies each of
/// the remaining ones. It is already decided which elements remain, so the removals are only replayed.
pub(super) struct Whole<Op> {
    tree: AnyTree<Vec<Op>>,
    /// The index that each element of the current list has in the whole list.
    present: Vec<usize>,
    /// The element that the tree takes away next, while it does.
    next: usize,
    /// The current list.
    current: Vec<Op>,
    /// The hash of each of its elements.
    hashes: Vec<u64>,
}

/// The value trees of a client's operations, each of its own.
pub(super) struct Each<Op> {
    trees: Vec<AnyTree<Op>>,
    current: Vec<Op>,
    /// The operation that is made simpler.
    at: usize,
}

impl<Op: Debug + Clone> Each<Op> {
    fn simplify(&mut self, remaining: &[usize]) -> bool {
        while self.at < self.trees.len() {
            if remaining.contains(&self.at) && self.trees[self.at].simplify() {
                self.current[self.at] = self.trees[self.at].current();
                return true;
            }
            self.at += 1;
        }
        false
    }

    fn complicate(&mut self) -> bool {
        let Some(tree) = self.trees.get_mut(self.at) else { return false };
        let changed = tree.complicate();
        self.current[self.at] = tree.current();
        changed
    }
}

/// The hash of a value.
fn hash(value: &impl Debug) -> u64 {
    struct Hash(u64);
    impl fmt::Write for Hash {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 = hash_bytes(self.0, text.as_bytes());
            Ok(())
        }
    }
    let mut hash = Hash(0);
    // Writing to it cannot fail.
    let _ = fmt::write(&mut hash, format_args!("{value:?}"));
    hash.0
}

fn same<Op: Debug>(a: &[Op], b: &[Op]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| format!("{a:?}") == format!("{b:?}"))
}

impl<Op: Debug + Clone> Whole<Op> {
    fn new(tree: AnyTree<Vec<Op>>, whole: &[Op]) -> Option<Whole<Op>> {
        let current = tree.current();
        let hashes = current.iter().map(hash).collect();
        let present = (0..current.len()).collect();
        let values = || Whole { present, next: 0, current: current.clone(), hashes, tree };
        same(&current, whole).then(values)
    }

    fn of(&self, index: usize) -> Option<&Op> {
        let at = self.present.iter().position(|present| *present == index)?;
        self.current.get(at)
    }

    fn hash_of(&self, index: usize) -> u64 {
        let at = self.present.iter().position(|present| *present == index);
        at.and_then(|at| self.hashes.get(at)).copied().unwrap_or_default()
    }

    fn simplify(&mut self, remaining: &[usize]) -> bool {
        while self.tree.simplify() {
            let new = self.tree.current();
            if new.len() + 1 == self.current.len() {
                if !self.follow(new, remaining) {
                    return false;
                }
            } else if new.len() == self.current.len() {
                let hashes: Vec<u64> = new.iter().map(hash).collect();
                let changes = |at: usize| hashes[at] != self.hashes[at];
                let matters = (0..new.len()).any(|at| changes(at) && remaining.contains(&self.present[at]));
                (self.current, self.hashes) = (new, hashes);
                if matters {
                    return true;
                }
            } else {
                // Not the tree of a list.
                return false;
            }
        }
        false
    }

    /// The tree has removed one element. It must be the next one, and is put back if it is to remain. Returns
    /// whether it was the next one.
    fn follow(&mut self, new: Vec<Op>, remaining: &[usize]) -> bool {
        let element = self.next;
        self.next += 1;
        let Some(at) = self.present.iter().position(|present| *present == element) else { return false };
        let mut expected = self.current.clone();
        expected.remove(at);
        if !same(&expected, &new) {
            return false;
        }
        if remaining.contains(&element) {
            return self.tree.complicate() && same(&self.tree.current(), &self.current);
        }
        self.present.remove(at);
        self.hashes.remove(at);
        self.current = new;
        true
    }

    fn complicate(&mut self) -> bool {
        let changed = self.tree.complicate();
        let new = self.tree.current();
        if new.len() == self.current.len() {
            self.hashes = new.iter().map(hash).collect();
            self.current = new;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{
        collection::vec,
        strategy::{Strategy, ValueTree},
        test_runner::TestRunner,
    };

    /// The simplest values with which a condition holds.
    fn simplest(least: usize, remaining: &[usize], holds: impl Fn(&[&u32]) -> bool) -> Vec<u32> {
        let mut runner = TestRunner::deterministic();
        let tree = vec(50u32..1_000, least..20)
            .prop_map(|list| list.into_iter().map(|n| n * 2).collect::<Vec<_>>())
            .new_tree(&mut runner)
            .expect("a list");
        let whole = tree.current();
        let mut values = Values::whole(Box::new(tree), &whole).expect("its own list");
        let mut changed = values.simplify(remaining);
        while changed {
            let now: Vec<&u32> =
                remaining.iter().map(|index| values.of(*index).expect("it remains")).collect();
            changed = if holds(&now) { values.simplify(remaining) } else { values.complicate() };
        }
        remaining.iter().map(|index| *values.of(*index).expect("it remains")).collect()
    }

    #[test]
    fn values_become_as_simple_as_their_strategy_and_the_failure_allow() {
        for least in [3, 10] {
            assert_eq!(simplest(least, &[0, 2], |_| true), [100, 100]);
            assert_eq!(simplest(least, &[1, 2], |now| *now[1] >= 300), [100, 300]);
        }
    }

    #[test]
    fn another_list_is_noticed() {
        let mut runner = TestRunner::deterministic();
        let tree = vec(0u32..1_000, 5..9).new_tree(&mut runner).expect("a list");
        assert!(Values::whole(Box::new(tree), &[1, 2]).is_none());
    }

    #[test]
    fn operations_with_trees_of_their_own_become_simple_as_well() {
        let mut runner = TestRunner::deterministic();
        let one = |_| Box::new((50u32..1_000).new_tree(&mut runner).expect("a number")) as AnyTree<u32>;
        let trees: Vec<AnyTree<u32>> = (0..4).map(one).collect();
        let whole: Vec<u32> = trees.iter().map(|tree| tree.current()).collect();
        let mut values = Values::each(trees, &whole).expect("their own list");
        let mut changed = values.simplify(&[1, 3]);
        while changed {
            let holds = values.of(3).is_some_and(|value| *value >= 120);
            changed = if holds { values.simplify(&[1, 3]) } else { values.complicate() };
        }
        let now: Vec<u32> = (0..4).filter_map(|index| values.of(index).copied()).collect();
        assert_eq!(now, [whole[0], 50, whole[2], 120.min(whole[3])]);
    }
}
