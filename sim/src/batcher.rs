//! Gathering requests into batches, as GRV and commit proxies do.

use crate::rt::Nanos;

/// Requests that are waiting to be processed together.
#[derive(Debug)]
pub struct Batcher<R> {
    interval: Nanos,
    most: usize,
    requests: Vec<R>,
    due: Nanos,
    last: Nanos,
}

impl<R> Batcher<R> {
    /// Collects at most `most` requests for `interval` nanoseconds, or for a quarter of that if no batch was
    /// sent recently.
    pub fn new(interval: Nanos, most: usize) -> Batcher<R> {
        Batcher { interval, most: most.max(1), requests: Vec::new(), due: 0, last: 0 }
    }

    /// Adds a request received at `now`.
    pub fn add(&mut self, now: Nanos, request: R) {
        if self.requests.is_empty() {
            self.due = (now + self.interval / 4).max(self.last + self.interval);
        }
        self.requests.push(request);
        if self.requests.len() >= self.most {
            self.due = now;
        }
    }

    /// When the requests should be sent, if there are any.
    pub fn due(&self) -> Option<Nanos> {
        (!self.requests.is_empty()).then_some(self.due)
    }

    /// Takes as many requests as fit; the others are due immediately.
    pub fn take(&mut self) -> Vec<R> {
        self.last = self.due;
        let rest = self.requests.split_off(self.most.min(self.requests.len()));
        std::mem::replace(&mut self.requests, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_due_soon_after_a_pause_and_an_interval_apart_otherwise() {
        let mut batcher = Batcher::new(400, 100);
        assert_eq!(batcher.due(), None);
        batcher.add(10_000, 'a');
        batcher.add(10_050, 'b');
        assert_eq!(batcher.due(), Some(10_100));
        assert_eq!(batcher.take(), ['a', 'b']);
        batcher.add(10_150, 'c');
        assert_eq!(batcher.due(), Some(10_500));
        assert_eq!(batcher.take(), ['c']);
        assert_eq!(batcher.due(), None);
    }

    #[test]
    fn a_full_batch_is_due_at_once_and_so_is_the_rest() {
        let mut batcher = Batcher::new(400, 3);
        (0..5).for_each(|i| batcher.add(10_000 + i, i));
        assert_eq!(batcher.due(), Some(10_004));
        assert_eq!(batcher.take(), [0, 1, 2]);
        assert_eq!(batcher.due(), Some(10_004));
        assert_eq!(batcher.take(), [3, 4]);
        assert_eq!(batcher.due(), None);
    }
}
