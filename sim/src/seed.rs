//! Randomness: one 64-bit seed, from which every consumer derives its own named ChaCha stream, so that an
//! additional draw in one place does not affect another.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::{cell::RefCell, fmt::Debug, ops::Range, sync::Arc};

/// The seed of a run. The same seed produces the same run, to the byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seed(pub u64);

impl Seed {
    /// The stream with this name. Streams with different names are independent; the same name always produces
    /// the same stream.
    pub fn stream(self, name: &str) -> Stream {
        let mut rng = ChaCha8Rng::seed_from_u64(self.0);
        rng.set_stream(fnv1a(name.as_bytes()));
        Stream { rng, later: None, has_turned: false }
    }

    /// The stream with this name for what a run leaves to chance: its numbers are those of
    /// [`stream`](Seed::stream), unless the run has [other chance](crate::chance).
    pub fn run_stream(self, name: &str) -> Stream {
        Stream { later: LATER.with_borrow(Clone::clone), ..self.stream(name) }
    }
}

/// The seed of a run's numbers from some moment on: its [other chance](crate::chance).
pub(crate) trait Later: Debug + Send + Sync {
    /// The seed, if the moment has come.
    fn seed(&self) -> Option<Seed>;
}

thread_local! {
    static LATER: RefCell<Option<Arc<dyn Later>>> = const { RefCell::new(None) };
}

/// Sets what the streams of this thread's run turn to.
pub(crate) fn set_later(later: Option<Arc<dyn Later>>) {
    LATER.set(later);
}

/// A named stream of random draws.
#[derive(Clone, Debug)]
pub struct Stream {
    rng: ChaCha8Rng,
    /// What its numbers turn to, if its run has other chance.
    later: Option<Arc<dyn Later>>,
    has_turned: bool,
}

impl Stream {
    /// A uniform 64-bit number.
    pub fn u64(&mut self) -> u64 {
        self.look();
        self.rng.next_u64()
    }

    /// Turns to other chance if its moment has come.
    fn look(&mut self) {
        // Ordinary runs have none: this is all that it costs them.
        if let Some(later) = &self.later
            && !self.has_turned
        {
            self.turn(&*later.clone());
        }
    }

    #[cold]
    fn turn(&mut self, later: &dyn Later) {
        if let Some(seed) = later.seed() {
            let name = self.rng.get_stream();
            self.rng = ChaCha8Rng::seed_from_u64(seed.0);
            self.rng.set_stream(name);
            self.has_turned = true;
        }
    }

    /// Whether its next number is that of another seed.
    pub(crate) fn has_turned(&mut self) -> bool {
        self.look();
        self.has_turned
    }

    /// How many 32-bit words of the stream were drawn.
    pub fn position(&self) -> u64 {
        // No run draws more.
        self.rng.get_word_pos() as u64
    }

    /// Continues at a [`position`](Stream::position).
    pub fn seek(&mut self, position: u64) {
        self.rng.set_word_pos(u128::from(position));
    }

    /// A uniform number below `n`; 0 if `n` is 0 or 1.
    pub fn below(&mut self, n: u64) -> u64 {
        // The bias of the multiplication is below 2^-40 for every n used here.
        ((u128::from(self.u64()) * u128::from(n)) >> 64) as u64
    }

    /// A uniform number in the half-open range; its start if the range is empty.
    pub fn range(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end.saturating_sub(range.start))
    }

    /// A uniform index of a collection of `len` items.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A uniform number in `[0, 1)`.
    pub fn f64(&mut self) -> f64 {
        (self.u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `p`. Draws nothing when `p` is 0 or less.
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && self.f64() < p
    }

    /// One of the items, uniformly. Panics if there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// Puts the items in a uniformly random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index(i + 1));
        }
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.look();
        self.rng.fill_bytes(bytes);
    }
}

/// FNV-1a: a fixed hash, so that a stream's name has the same meaning on every platform and in every version.
pub(crate) const fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_different_names_differ_and_repeat() {
        let draw = |name: &str| {
            let mut s = Seed(7).stream(name);
            [s.u64(), s.u64()]
        };
        assert_eq!(draw("faults"), draw("faults"));
        assert_ne!(draw("faults"), draw("network"));
        assert_ne!(Seed(8).stream("faults").u64(), Seed(7).stream("faults").u64());
    }

    #[test]
    fn draws_stay_in_range() {
        let mut s = Seed(1).stream("test");
        for n in 1..200 {
            assert!(s.below(n) < n);
            let x = s.range(n..2 * n);
            assert!((n..2 * n).contains(&x));
        }
        assert_eq!(s.range(5..5), 5);
        assert!(!s.chance(0.0));
        assert!(s.chance(1.0));
    }
}
