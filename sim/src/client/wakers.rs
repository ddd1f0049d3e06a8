//! Tasks that wait for an event that concerns all of them.

use std::task::{Context, Waker};

/// Wakers in numbered places, so that a task that no longer waits can be removed.
#[derive(Debug, Default)]
pub struct Wakers {
    places: Vec<Option<Waker>>,
    free: Vec<usize>,
}

impl Wakers {
    /// Registers the task at `place`, or at a new place, and returns the place.
    pub fn register(&mut self, place: Option<usize>, cx: &Context<'_>) -> usize {
        if let Some(place) = place {
            match &mut self.places[place] {
                Some(waker) => waker.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            return place;
        }
        if let Some(place) = self.free.pop() {
            self.places[place] = Some(cx.waker().clone());
            return place;
        }
        self.places.push(Some(cx.waker().clone()));
        self.places.len() - 1
    }

    /// Removes the task at `place`.
    pub fn forget(&mut self, place: usize) {
        self.places[place] = None;
        self.free.push(place);
    }

    /// The wakers of all waiting tasks, in the order of their places. The places stay reserved.
    #[must_use = "wakers are woken outside of locks"]
    pub fn take(&mut self) -> Vec<Waker> {
        self.places.iter_mut().filter_map(Option::take).collect()
    }
}
