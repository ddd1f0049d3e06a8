//! The workloads that come with the `shaketable` command, one file each.

use shaketable_layers::once::Slots;
use shaketable_sim::{proto::Mutation, seed::Stream};

/// Whether a transaction of these mutations only made sure that an operation is without effect.
pub(crate) fn is_fence(slots: &Slots, mutations: &[Mutation]) -> bool {
    matches!(mutations, [Mutation::Set(key, value)] if slots.is_fence(key, value))
}

/// The timeout that a seed's clients set on their database, milliseconds: in some seeds none, in others
/// one so short that it strikes in the middle of commits.
pub(crate) fn draw_timeout(rng: &mut Stream) -> Option<i32> {
    rng.chance(0.5).then(|| *rng.pick(&[10, 20, 40, 80, 200, 1_000]))
}

/// Declares a workload's planted bugs: an enum for its code to ask about, and `BUGS` for the command.
macro_rules! flaws {
    ($($flaw:ident = $name:expr, $about:literal, $source:literal;)+) => {
        /// A planted bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Flaw { $(#[doc = $about] $flaw),+ }

        const BUGS: &[$crate::workload::Bug] =
            &[$($crate::workload::Bug { name: $name, about: $about, source: $source }),+];

        impl Flaw {
            /// The bug of this name.
            fn named(name: &str) -> Option<Flaw> {
                [$(($name, Flaw::$flaw)),+].into_iter().find(|(known, _)| *known == name).map(|(_, flaw)| flaw)
            }
        }
    };
}

pub mod api;
pub mod array;
pub mod cycle;
pub mod index;
pub mod queue;
pub mod signup;
