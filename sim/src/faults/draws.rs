//! The numbers that are drawn for faults, each by one function, so that a decision can be made for a wanted
//! number.

use super::families::Family;
use crate::{
    rt::{MILLISECOND, Nanos, SECOND},
    seed::{Seed, Stream},
};

/// The delay of an unknown result, nanoseconds: often long enough that other clients act between it and the
/// retry.
pub fn result_delay(chance: &mut Stream) -> Nanos {
    match chance.chance(0.5) {
        true => chance.below(300 * MILLISECOND),
        false => 0,
    }
}

/// Whether a commit with an unknown result is sent.
pub fn is_sent(chance: &mut Stream) -> bool {
    chance.chance(0.6)
}

/// The delay of a commit that lands late, nanoseconds: up to the `window` of its read version.
pub fn landing_delay(chance: &mut Stream, window: Nanos) -> Nanos {
    chance.below(window.clamp(1, 5 * SECOND))
}

/// The point at which an operation's future is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// After this many polls, at least one, if it is still pending.
    Polls(u64),
    /// After this much time, nanoseconds.
    After(Nanos),
}

/// Where an operation is dropped: from the start of a round trip to long waits, each order of magnitude
/// equally likely.
pub fn cut(chance: &mut Stream) -> Cut {
    const MICROSECOND: Nanos = 1_000;
    match chance.chance(0.6) {
        true => {
            let most = 2 << chance.below(6);
            Cut::Polls(1 + chance.below(most))
        }
        false => {
            let least = (50 * MICROSECOND) << chance.below(13);
            Cut::After(least + chance.below(least))
        }
    }
}

/// The positions of a family's stream that are looked at.
const POSITIONS: u64 = 100_000;

/// A position in the family's stream of a seed from which on a wanted number is drawn, for a
/// [`Decision`](super::Decision). `None` if it is too rare.
pub fn position(seed: Seed, family: Family, is_wanted: impl Fn(&mut Stream) -> bool) -> Option<u64> {
    let mut stream = seed.stream(family.name());
    (0..POSITIONS).find(|position| {
        stream.seek(*position);
        is_wanted(&mut stream)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wanted_number_is_drawn_from_its_position_on() {
        for seed in [Seed(1), Seed(2)] {
            for polls in 1..=64 {
                let family = Family::DroppedOperation;
                let at = position(seed, family, |chance| cut(chance) == Cut::Polls(polls));
                let mut stream = seed.stream(family.name());
                stream.seek(at.expect("it is drawn"));
                assert_eq!(cut(&mut stream), Cut::Polls(polls));
            }
            assert_eq!(position(seed, Family::LateLanding, |chance| landing_delay(chance, 5) > 5), None);
        }
    }
}
