//! Turns: the calls of layers that run side by side in one transaction take effect one after the other.
//!
//! A layer's call reads, decides and then writes, with awaits in between. Two such calls whose futures are
//! joined would both decide before either has written. Each therefore waits for its turn, in the order in
//! which the calls were first polled. Calls that only read share a turn.

use std::{fmt, sync::Arc};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// The turns of one transaction. Every handle of a transaction has them; a clone refers to the same ones.
#[derive(Clone, Default)]
pub struct Turns {
    /// First come, first served.
    queue: Arc<RwLock<()>>,
    held: Option<Held>,
}

/// The turn that a handle is part of. It ends when the last such handle is dropped.
#[derive(Clone)]
enum Held {
    Shared { _guard: Arc<OwnedRwLockReadGuard<()>> },
    Alone { _guard: Arc<OwnedRwLockWriteGuard<()>> },
}

impl Turns {
    /// Waits for a turn that is shared with other readers; `None` for a handle that is already part of a turn.
    pub(super) async fn shared(&self) -> Option<Turns> {
        if self.held.is_some() {
            return None;
        }
        let guard = Arc::new(self.queue.clone().read_owned().await);
        Some(Turns { queue: self.queue.clone(), held: Some(Held::Shared { _guard: guard }) })
    }

    /// Waits for a turn alone; `None` for a handle that is already part of a turn.
    pub(super) async fn alone(&self) -> Option<Turns> {
        if let Some(held) = &self.held {
            debug_assert!(matches!(held, Held::Alone { .. }), "a call that only reads does not write");
            return None;
        }
        let guard = Arc::new(self.queue.clone().write_owned().await);
        Some(Turns { queue: self.queue.clone(), held: Some(Held::Alone { _guard: guard }) })
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
    use futures::{FutureExt, executor::block_on};

    #[test]
    fn turns_follow_each_other_in_the_order_of_the_calls() {
        let turns = Turns::default();
        let first = block_on(turns.alone()).unwrap();
        let (mut second, mut third) = (Box::pin(turns.shared()), Box::pin(turns.alone()));
        let (mut fourth, mut fifth) = (Box::pin(turns.shared()), Box::pin(turns.shared()));
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        assert!(fourth.as_mut().now_or_never().is_none());
        assert!(fifth.as_mut().now_or_never().is_none());
        drop(first);
        assert!(fourth.as_mut().now_or_never().is_none(), "a reader passes a writer that came before it");
        assert!(third.as_mut().now_or_never().is_none());
        let second = second.as_mut().now_or_never().unwrap().unwrap();
        assert!(third.as_mut().now_or_never().is_none());
        drop(second);
        drop(third.as_mut().now_or_never().unwrap());
        drop(third);
        let both = [fourth.as_mut().now_or_never(), fifth.as_mut().now_or_never()];
        assert!(both.iter().all(|turn| matches!(turn, Some(Some(_)))), "readers share a turn");
    }

    #[test]
    fn a_call_within_a_turn_does_not_wait_for_its_end() {
        let alone = block_on(Turns::default().alone()).unwrap();
        assert!(block_on(alone.alone()).is_none() && block_on(alone.clone().shared()).is_none());
        let shared = block_on(Turns::default().shared()).unwrap();
        assert!(block_on(shared.shared()).is_none());
    }

    #[test]
    fn a_call_that_is_dropped_gives_its_turn_to_the_next() {
        let turns = Turns::default();
        let first = block_on(turns.alone()).unwrap();
        let inside = first.clone();
        let (mut dropped, mut next) = (Box::pin(turns.alone()), Box::pin(turns.alone()));
        assert!(dropped.as_mut().now_or_never().is_none() && next.as_mut().now_or_never().is_none());
        drop(dropped);
        drop(first);
        assert!(next.as_mut().now_or_never().is_none(), "the turn ends with the last handle");
        drop(inside);
        assert!(next.now_or_never().is_some());
    }
}
