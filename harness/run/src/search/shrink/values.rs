//! Simplifies the values in a client's operations with the value trees of their strategy.

use proptest::strategy::ValueTree;
use shaketable_sim::trace::hash_bytes;
use std::fmt::{self, Debug};

/// The value tree of a client's list of operations, some of which remain.
///
/// A list's tree first removes elements, one after another from the first one on, and then simplifies each of
/// the remaining ones. It is already decided which elements remain, so the removals are only replayed.
pub(super) struct Values<Op> {
    tree: Box<dyn ValueTree<Value = Vec<Op>>>,
    /// The index that each element of the current list has in the whole list.
    present: Vec<usize>,
    /// The element that the tree takes away next, while it does.
    next: usize,
    /// The current list.
    current: Vec<Op>,
    /// The hash of each of its elements.
    hashes: Vec<u64>,
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

impl<Op: Debug + Clone> Values<Op> {
    /// The values of a tree. `None` if its list is another one.
    pub(super) fn new(tree: Box<dyn ValueTree<Value = Vec<Op>>>, whole: &[Op]) -> Option<Values<Op>> {
        let current = tree.current();
        let hashes = current.iter().map(hash).collect();
        let present = (0..current.len()).collect();
        let values = || Values { present, next: 0, current: current.clone(), hashes, tree };
        same(&current, whole).then(values)
    }

    /// The value of an operation, by its index in the whole list.
    pub(super) fn of(&self, index: usize) -> Option<&Op> {
        let at = self.present.iter().position(|present| *present == index)?;
        self.current.get(at)
    }

    /// The hash of the value of an operation, by its index in the whole list.
    pub(super) fn hash_of(&self, index: usize) -> u64 {
        let at = self.present.iter().position(|present| *present == index);
        at.and_then(|at| self.hashes.get(at)).copied().unwrap_or_default()
    }

    /// Makes a value of the remaining operations simpler. Returns whether there was one.
    pub(super) fn simplify(&mut self, remaining: &[usize]) -> bool {
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

    /// Undoes the last simplification, or makes it smaller. Returns whether there was one.
    pub(super) fn complicate(&mut self) -> bool {
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
        let mut values = Values::new(Box::new(tree), &whole).expect("its own list");
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
        assert!(Values::new(Box::new(tree), &[1, 2]).is_none());
    }
}
