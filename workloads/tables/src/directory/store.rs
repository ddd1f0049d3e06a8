//! What the allocator of the root has given before the run, to directories that are gone: later windows are
//! larger, and their prefixes are longer.

use serde::{Deserialize, Serialize};
use shaketable_layers::directory::Allocator;
use shaketable_sim::seed::Stream;
use std::ops::Range;

/// The state of the allocator at the beginning.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Store {
    /// The start of its window.
    pub(super) start: i64,
    /// The size of its window.
    size: i64,
    /// Whether all candidates that the chance 0 draws are taken, so that the first free one is allocated.
    pub(super) exhausted: bool,
}

impl Store {
    /// How many prefixes remain in a window that has been used.
    const REMAINING: i64 = 8;
    /// How many candidates are drawn at most before the first free one is searched for.
    const DRAWS: usize = 100;

    pub(super) fn draw(rng: &mut Stream) -> Store {
        let (start, size, exhausted) = match rng.below(24) {
            0 => (192, 64, false),
            1 | 2 => (256, 1_024, false),
            3 => (256, 1_024, true),
            4 | 5 => (65_792, 8_192, false),
            _ => (0, 64, false),
        };
        Store { start, size, exhausted }
    }

    /// The candidates that a manual prefix is made of.
    pub(super) fn drawn_from(&self) -> Range<i64> {
        self.start..self.start + 64
    }

    /// The candidates that may be drawn in a run: those of three windows, or of all small ones.
    pub(super) fn candidates(&self) -> Range<i64> {
        self.start..self.start + 3 * self.size.max(700)
    }

    /// The rows of the allocator.
    pub(super) fn rows(&self, allocator: &Allocator) -> Vec<(Vec<u8>, Vec<u8>)> {
        let count = (self.size / 2 - Self::REMAINING).to_le_bytes().to_vec();
        let counter = (self.start > 0).then(|| (allocator.counter(self.start), count));
        let marks = if self.exhausted { draws(self.size).take(Self::DRAWS).collect() } else { Vec::new() };
        let marks = marks.into_iter().map(|draw| (allocator.mark(self.start + draw), Vec::new()));
        counter.into_iter().chain(marks).collect()
    }
}

/// The numbers below `size` that the layer draws by the chance 0: a splitmix64 sequence.
fn draws(size: i64) -> impl Iterator<Item = i64> {
    (1u64..).map(move |n| {
        let mut mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * size as u128) >> 64) as i64
    })
}
