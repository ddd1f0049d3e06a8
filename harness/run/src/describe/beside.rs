//! Operations that are drawn beside a model, so that most of them are done.
//!
//! A list that is drawn blindly has many calls that are refused: to create what is there, to read what is
//! not. So the operations of all clients are drawn in turns, and each is done on the model at once. What
//! would be refused is drawn again, with a probability that each seed draws for itself. What is refused for a
//! reason that this run has not met yet may stay: a refusal must be the right one, and change nothing.

use proptest::{
    prelude::Rng,
    strategy::{BoxedStrategy, Strategy, ValueTree},
    test_runner::{Config, Reason, RngAlgorithm, TestRng, TestRunner},
};
use shaketable_sim::seed::Seed;
use std::{
    cell::RefCell,
    collections::BTreeSet,
    fmt::{self, Debug},
    hash::{DefaultHasher, Hash, Hasher},
    mem,
    rc::Rc,
    sync::Arc,
};

/// What was drawn before an operation.
#[derive(Debug)]
pub struct Beside<'a, M, Op> {
    /// What is stored if all of it is done, and nothing else: now, and as much earlier as clients may be
    /// late.
    pub models: &'a [Arc<M>],
    /// The client's operations before this one.
    pub earlier: &'a [Op],
    /// How many operations of all clients there are before this one.
    pub order: u64,
    /// The probability that what would be refused is drawn again.
    pub again: f64,
    /// Whether it is one of those that fill the store before all others: such an operation should write, and
    /// as much as one can.
    pub filling: bool,
    /// The refusals that were drawn.
    pub refusals: &'a Rc<Refusals>,
}

/// What makes the strategy of a client's next operation.
pub type OneBeside<'w, M, Op> = Box<dyn Fn(&Beside<'_, M, Op>) -> BoxedStrategy<Op> + 'w>;

/// The refusals that were drawn for a run: kinds of calls, and why each is refused.
#[derive(Debug, Default)]
pub struct Refusals(RefCell<BTreeSet<u64>>);

impl Refusals {
    /// The probability that a refusal that is new in this run stays.
    const STAYS: f64 = 0.4;

    /// Whether a call that is refused stays, by the variants of the call and of the refusal.
    fn stays<T, E>(&self, call: &T, refusal: &E, rng: &mut TestRng) -> bool {
        let mut kind = DefaultHasher::new();
        (mem::discriminant(call), mem::discriminant(refusal)).hash(&mut kind);
        let kind = kind.finish();
        !self.0.borrow().contains(&kind) && happens(rng, Self::STAYS) && self.0.borrow_mut().insert(kind)
    }
}

/// Whether something of this probability happens.
pub(crate) fn happens(rng: &mut TestRng, probability: f64) -> bool {
    f64::from(rng.next_u32()) < probability * f64::from(u32::MAX)
}

/// How many turns clients may be late, and at most.
pub(crate) const LATE: [usize; 2] = [1, 4];

/// A value tree of any strategy.
pub type AnyTree<T> = Box<dyn ValueTree<Value = T>>;

/// Draws the value tree of a strategy from the seed's ChaCha stream with this name. Only a strategy with
/// filters can fail.
pub(crate) fn tree<T: Debug>(seed: Seed, name: &str, strategy: &BoxedStrategy<T>) -> Option<AnyTree<T>> {
    let mut key = [0; 32];
    seed.stream(name).fill(&mut key);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &key);
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
    strategy.new_tree(&mut runner).ok()
}

/// How often a call is drawn until one is found that would be done.
const TRIES: usize = 24;
/// How often only one of the kind that was drawn first will do: kinds stay as frequent as the strategy has
/// them.
const OF_ITS_KIND: usize = 16;

/// Draws a call that is wanted, and draws it again while `done` says that it would be refused. Enumerations
/// are drawn again mostly with the variant that was drawn first. If none would be done, it is the first one.
/// Returns as well whether it would be done.
pub(crate) fn draw_until_done<T: Debug, E>(
    strategy: &BoxedStrategy<T>,
    is_wanted: impl Fn(&T) -> bool,
    (again, refusals): (f64, &Refusals),
    runner: &mut TestRunner,
    mut done: impl FnMut(&T) -> Result<(), E>,
) -> Result<(AnyTree<T>, bool), Reason> {
    let mut first = strategy.new_tree(runner)?;
    for _ in 1..TRIES {
        if is_wanted(&first.current()) {
            break;
        }
        first = strategy.new_tree(runner)?;
    }
    let value = first.current();
    let Err(refusal) = done(&value) else { return Ok((first, true)) };
    if happens(runner.rng(), again) && !refusals.stays(&value, &refusal, runner.rng()) {
        let kind = mem::discriminant(&value);
        for tries in 1..TRIES {
            let tree = strategy.new_tree(runner)?;
            let value = tree.current();
            let may_be = tries >= OF_ITS_KIND || mem::discriminant(&value) == kind;
            if may_be && is_wanted(&value) && done(&value).is_ok() {
                return Ok((tree, true));
            }
        }
    }
    Ok((first, false))
}

/// The value tree of a list whose elements have trees of their own. It takes elements away from the first one
/// on, while at least one remains, and then makes each of the others simpler.
pub(crate) struct ListTree<T> {
    elements: Vec<AnyTree<T>>,
    present: Vec<bool>,
    next: Next,
    last: Option<Next>,
}

/// What is made simpler.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// An element is taken away.
    Without(usize),
    /// An element is replaced by a simpler one.
    Simpler(usize),
}

impl<T> ListTree<T> {
    /// The list of these elements.
    pub(crate) fn new(elements: Vec<AnyTree<T>>) -> ListTree<T> {
        ListTree { present: vec![true; elements.len()], elements, next: Next::Without(0), last: None }
    }
}

impl<T> fmt::Debug for ListTree<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListTree").field("present", &self.present).finish_non_exhaustive()
    }
}

impl<T: Debug> ValueTree for ListTree<T> {
    type Value = Vec<T>;

    fn current(&self) -> Vec<T> {
        let present = self.elements.iter().zip(&self.present).filter(|(_, is_present)| **is_present);
        present.map(|(element, _)| element.current()).collect()
    }

    fn simplify(&mut self) -> bool {
        if let Next::Without(at) = self.next {
            if at < self.elements.len() && self.present.iter().filter(|present| **present).count() > 1 {
                self.present[at] = false;
                self.last = Some(self.next);
                self.next = Next::Without(at + 1);
                return true;
            }
            self.next = Next::Simpler(0);
        }
        while let Next::Simpler(at) = self.next {
            if at >= self.elements.len() {
                break;
            }
            if self.present[at] && self.elements[at].simplify() {
                self.last = Some(self.next);
                return true;
            }
            self.next = Next::Simpler(at + 1);
        }
        false
    }

    fn complicate(&mut self) -> bool {
        match self.last {
            Some(Next::Without(at)) => {
                self.present[at] = true;
                self.last = None;
                true
            }
            Some(Next::Simpler(at)) => {
                let changed = self.elements[at].complicate();
                if !changed {
                    self.last = None;
                }
                changed
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The simplest list with which a condition holds.
    fn simplest(holds: impl Fn(&[u32]) -> bool) -> Vec<u32> {
        let mut runner = TestRunner::deterministic();
        let element = |_| Box::new((50u32..1_000).new_tree(&mut runner).expect("a number")) as AnyTree<u32>;
        let mut tree = ListTree::new((0..9).map(element).collect());
        let mut changed = tree.simplify();
        while changed {
            changed = if holds(&tree.current()) { tree.simplify() } else { tree.complicate() };
        }
        tree.current()
    }

    #[test]
    fn a_list_becomes_as_short_and_simple_as_the_failure_allows() {
        assert_eq!(simplest(|_| true), [50]);
        assert_eq!(simplest(|list| list.len() >= 3), [50, 50, 50]);
        assert_eq!(simplest(|list| list.iter().sum::<u32>() >= 700).iter().sum::<u32>(), 700);
    }

    #[test]
    fn what_would_be_refused_is_drawn_again_and_stays_of_its_kind() {
        let strategy = prop_oneof![(0..10u32).prop_map(Some), Just(None)].boxed();
        let mut runner = TestRunner::deterministic();
        let mut drawn = |again| -> Vec<Option<u32>> {
            let refusals = Refusals::default();
            let done = |value: &Option<u32>| match value {
                Some(0..9) => Err(()),
                _ => Ok(()),
            };
            let mut one = || {
                draw_until_done(&strategy, |_| true, (again, &refusals), &mut runner, done).expect("a value")
            };
            (0..200).map(|_| one().0.current()).collect()
        };
        let count = |list: &[Option<u32>], wanted: fn(&Option<u32>) -> bool| {
            list.iter().filter(|value| wanted(value)).count()
        };
        let refused = |value: &Option<u32>| value.is_some_and(|n| n != 9);
        assert!(count(&drawn(0.0), refused) > 60);
        let knowing = drawn(1.0);
        // One may stay, because it is the first of its kind; and some are not found in time.
        assert!(count(&knowing, refused) < 8, "{knowing:?}");
        assert!(count(&knowing, |value| *value == Some(9)) > 30, "{knowing:?}");
    }
}
