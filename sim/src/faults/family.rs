//! Families of faults, and how a seed determines their dosage.

use super::{Family, Profile, Strike, victims::Struck};
use crate::{
    rt::{MILLISECOND, Nanos},
    seed::Stream,
    world::World,
};
use std::{ops::Range, sync::Arc};

/// A family of faults: its promise, its budget, how it is drawn and its effect.
pub trait FaultFamily: Sync {
    /// The family's identifier.
    fn family(&self) -> Family;

    /// What FoundationDB promises during the fault.
    fn promise(&self) -> &'static str;

    /// What limits the fault, so that the promise can still be kept.
    fn budget(&self) -> &'static str;

    /// The dosage of the family.
    fn dosage(&self) -> Dosage;

    /// Applies the fault. Returns whether it changed anything; only then is it counted. A family with a rate
    /// is evaluated at each opportunity instead and does nothing here.
    fn strike(&self, world: &Arc<World>, strike: &Struck) -> bool {
        let _ = (world, strike);
        false
    }

    /// Ends the effect of [`strike`](FaultFamily::strike) after its duration.
    fn end(&self, world: &Arc<World>, strike: &Struck) {
        let _ = (world, strike);
    }
}

/// The dosage of a family at weight 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Dosage {
    /// The probability at each opportunity.
    Rate(f64),
    /// Timed strikes.
    Timed {
        /// The number in a run.
        strikes: Range<u64>,
        /// The duration of each, milliseconds.
        lasts: Range<u64>,
        /// A family-specific amount.
        amount: Range<f64>,
    },
}

/// The maximum of any rate, regardless of its weight: transactions must be able to finish.
const HIGHEST_RATE: f64 = 0.15;

impl Dosage {
    /// The rate at this weight; 0 for a timed family.
    pub(super) fn rate(&self, weight: f64) -> f64 {
        match self {
            Dosage::Rate(rate) => (rate * weight).min(HIGHEST_RATE),
            Dosage::Timed { .. } => 0.0,
        }
    }

    /// The strikes at this weight in an act of length `hurt`.
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
