//! Turns: the calls of layers that run side by side in one transaction take effect one after the other.
//!
//! A layer's call reads, decides and then writes, with awaits in between. Two such calls whose futures are
//! joined would both decide before either has written. Each therefore waits for its turn, in the order in
//! which the calls were first polled. Calls that only read share a turn.

use std::{fmt, iter, sync::Arc};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// The turns of one transaction, or of the calls within a turn. Every handle of a transaction has them;
/// clones refer to the same ones.
#[derive(Clone, Default)]
pub struct Turns {
    /// First come, first served.
    queue: Arc<RwLock<()>>,
    /// The turn that the handle is part of. It ends when the last such handle is dropped.
    within: Option<Arc<Turn>>,
}

enum Guard {
    Shared { _held: OwnedRwLockReadGuard<()> },
    Alone { _held: OwnedRwLockWriteGuard<()> },
}

struct Turn {
    guard: Guard,
    within: Option<Arc<Turn>>,
}

impl Turns {
    /// Waits for a turn that is shared with other readers. Returns the turns of the calls within it.
    pub(super) async fn shared(&self) -> Turns {
        let guard = Guard::Shared { _held: self.queue.clone().read_owned().await };
        self.below(guard)
    }

    /// Waits for a turn alone. Returns the turns of the calls within it.
    pub(super) async fn alone(&self) -> Turns {
        let reads = self.within.as_ref().is_some_and(|turn| matches!(turn.guard, Guard::Shared { .. }));
        debug_assert!(!reads, "a call that only reads makes one that writes");
        let guard = Guard::Alone { _held: self.queue.clone().write_owned().await };
        self.below(guard)
    }

    /// Whether a handle with these is part of a turn that was taken below `outer`; with `alone`, of one that
    /// is not shared.
    pub(super) fn are_taken(&self, outer: &Turns, alone: bool) -> bool {
        let is_outer =
            |turn: &&Arc<Turn>| outer.within.as_ref().is_some_and(|outer| Arc::ptr_eq(turn, outer));
        let is_enough = |turn: &Arc<Turn>| !alone || matches!(turn.guard, Guard::Alone { .. });
        let turns = iter::successors(self.within.as_ref(), |turn| turn.within.as_ref());
        turns.take_while(|turn| !is_outer(turn)).any(is_enough)
    }

    fn below(&self, guard: Guard) -> Turns {
        let within = Some(Arc::new(Turn { guard, within: self.within.clone() }));
        Turns { queue: Arc::default(), within }
    }
}

impl fmt::Debug for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Turns")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn turns_follow_each_other_in_the_order_of_the_calls() {
        let turns = Turns::default();
        let first = turns.alone().now_or_never().unwrap();
        let (mut second, mut third) = (Box::pin(turns.shared()), Box::pin(turns.alone()));
        let (mut fourth, mut fifth) = (Box::pin(turns.shared()), Box::pin(turns.shared()));
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        assert!(fourth.as_mut().now_or_never().is_none());
        assert!(fifth.as_mut().now_or_never().is_none());
        drop(first);
        assert!(fourth.as_mut().now_or_never().is_none(), "a reader passes a writer that came before it");
        assert!(third.as_mut().now_or_never().is_none());
        let second = second.as_mut().now_or_never().unwrap();
        assert!(third.as_mut().now_or_never().is_none());
        drop(second);
        drop(third.as_mut().now_or_never().unwrap());
        let both = [fourth.as_mut().now_or_never(), fifth.as_mut().now_or_never()];
        assert!(both.iter().all(Option::is_some), "readers share a turn");
    }

    #[test]
    fn calls_within_a_turn_wait_for_each_other_and_not_for_its_end() {
        let turns = Turns::default();
        let outer = turns.alone().now_or_never().unwrap();
        let first = outer.clone().alone().now_or_never().unwrap();
        assert!(outer.shared().now_or_never().is_none());
        assert!(first.alone().now_or_never().is_some());
        drop(outer);
        assert!(turns.shared().now_or_never().is_none(), "the turn ends with the last handle");
        drop(first);
        assert!(turns.shared().now_or_never().is_some());
    }

    #[test]
    fn a_handle_knows_whether_it_is_part_of_a_turn() {
        let turns = Turns::default();
        let below =
            |outer: &Turns, turns: &Turns| (turns.are_taken(outer, false), turns.are_taken(outer, true));
        let taken = |turns: &Turns| below(&Turns::default(), turns);
        assert_eq!(taken(&turns), (false, false));
        let shared = turns.shared().now_or_never().unwrap();
        assert_eq!(taken(&shared), (true, false));
        drop(shared);
        let alone = turns.alone().now_or_never().unwrap();
        assert_eq!(taken(&alone), (true, true));
        let within = alone.shared().now_or_never().unwrap();
        assert_eq!(taken(&within), (true, true));
        assert_eq!(below(&alone, &within), (true, false));
        assert_eq!(below(&within, &within), (false, false));
    }

    #[test]
    fn a_call_that_is_dropped_gives_its_turn_to_the_next() {
        let turns = Turns::default();
        let first = turns.alone().now_or_never().unwrap();
        let (mut dropped, mut next) = (Box::pin(turns.alone()), Box::pin(turns.alone()));
        assert!(dropped.as_mut().now_or_never().is_none() && next.as_mut().now_or_never().is_none());
        drop(dropped);
        assert!(next.as_mut().now_or_never().is_none());
        drop(first);
        assert!(next.now_or_never().is_some());
    }
}
