//! What a family of faults is, and how a seed doses it.

use super::{Family, Profile, Strike};
use crate::{
    rt::{MILLISECOND, Nanos},
    seed::Stream,
    world::World,
};
use std::{ops::Range, sync::Arc};

/// A family of faults: its promise, its budget, how it is drawn and what it does.
pub trait FaultFamily: Sync {
    /// Which one.
    fn family(&self) -> Family;

    /// What FoundationDB promises while it strikes.
    fn promise(&self) -> &'static str;

    /// What bounds it, so that the promise stays owed.
    fn budget(&self) -> &'static str;

    /// How it is dosed.
    fn dosage(&self) -> Dosage;

    /// How often it strikes in a run at most.
    fn most(&self) -> u64 {
        u64::MAX
    }

    /// Does it. Answers whether it changed anything; only then it is counted. A family with a rate
    /// is asked at each occasion instead and has nothing to do here.
    fn strike(&self, world: &Arc<World>, strike: &Strike) -> bool {
        let _ = (world, strike);
        false
    }

    /// Ends what [`strike`](FaultFamily::strike) began, once its duration has passed.
    fn end(&self, world: &Arc<World>, strike: &Strike) {
        let _ = (world, strike);
    }
}

/// How a family is dosed at weight 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Dosage {
    /// The probability at each occasion.
    Rate(f64),
    /// Timed strikes.
    Timed {
        /// How many in a run.
        strikes: Range<u64>,
        /// How long each lasts, milliseconds.
        lasts: Range<u64>,
        /// The family's own amount.
        amount: Range<f64>,
    },
}

/// No rate may exceed this, whatever its weight: transactions must be able to finish.
const HIGHEST_RATE: f64 = 0.15;

impl Dosage {
    /// The rate that a weight makes of this, 0 for a timed family.
    pub(super) fn rate(&self, weight: f64) -> f64 {
        match self {
            Dosage::Rate(rate) => (rate * weight).min(HIGHEST_RATE),
            Dosage::Timed { .. } => 0.0,
        }
    }

    /// The strikes that a weight makes of this in an act of length `hurt`.
    pub(super) fn strikes(
        &self,
        family: Family,
        rng: &mut Stream,
        profile: Profile,
        hurt: Nanos,
    ) -> Vec<Strike> {
        let Dosage::Timed { strikes, lasts, amount } = self else { return Vec::new() };
        let times = if profile == Profile::Storm { 2 } else { 1 };
        (0..rng.range(strikes.clone()) * times)
            .map(|_| Strike {
                at: rng.below(hurt),
                family,
                target: rng.u64() as u32,
                other: rng.u64() as u32,
                duration: rng.range(lasts.clone()) * MILLISECOND,
                amount: amount.start + rng.f64() * (amount.end - amount.start),
            })
            .collect()
    }
}
