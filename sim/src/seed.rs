//! Randomness: one 64-bit seed, from which every consumer derives its own named ChaCha stream, so that an
//! additional draw in one place does not affect another.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::ops::Range;

/// The seed of a run. The same seed produces the same run, to the byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seed(pub u64);

impl Seed {
    /// The stream with this name. Streams with different names are independent; the same name always produces
    /// the same stream.
    pub fn stream(self, name: &str) -> Stream {
        let mut rng = ChaCha8Rng::seed_from_u64(self.0);
        rng.set_stream(fnv1a(name.as_bytes()));
        Stream(rng)
    }
}

/// A named stream of random draws.
#[derive(Clone, Debug)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// A uniform 64-bit number.
    pub fn u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// How many 32-bit words of the stream were drawn.
    pub fn position(&self) -> u64 {
        // No run draws more.
        self.0.get_word_pos() as u64
    }

    /// Continues at a [`position`](Stream::position).
    pub fn seek(&mut self, position: u64) {
        self.0.set_word_pos(u128::from(position));
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
        self.0.fill_bytes(bytes);
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
