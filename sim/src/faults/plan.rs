//! Drawing a run's faults from its seed, and checking those of a plan that was edited.

use super::{
    catalogue::catalogue,
    families::Family,
    family::Dosage,
    order,
    strikes::{FaultPlan, Profile},
};
use crate::{rt::Nanos, seed::Seed};

impl FaultPlan {
    /// The faults of a seed in an act of length `hurt`: a subset of the families, each with its own weight.
    /// Some seeds of the standard profile are calm.
    pub fn draw(seed: Seed, profile: Profile, hurt: Nanos, without: &[Family]) -> FaultPlan {
        let mut plan = FaultPlan::default();
        let (on, calm, strength) = match profile {
            Profile::Calm => return plan,
            Profile::Standard => (0.4, 0.1, 1.0),
            Profile::Storm => (0.8, 0.0, 2.5),
        };
        if seed.stream("faults").chance(calm) {
            return plan;
        }
        for family in catalogue() {
            let name = family.family();
            // A separate stream for each family: omitting one does not change the others.
            let mut rng = seed.stream(&format!("plan-{}", name.name()));
            let weight = strength * 4f64.powf(2.0 * rng.f64() - 1.0);
            if !rng.chance(on) || without.contains(&name) {
                continue;
            }
            let dosage = family.dosage();
            let rate = dosage.rate(weight);
            if rate > 0.0 {
                plan.rates.insert(name, rate);
            }
            plan.strikes.extend(dosage.strikes(name, &mut rng, profile, hurt));
        }
        plan.strikes.sort_by_key(|s| (s.at, s.family));
        plan
    }

    /// Whether the plan is valid. A drawn plan always is; an edited one may not be. The error is a sentence
    /// fragment.
    pub fn check(&self) -> Result<(), String> {
        let dosage = |family: Family| catalogue().find(|f| f.family() == family).map(|f| f.dosage());
        for (family, rate) in &self.rates {
            if !matches!(dosage(*family), Some(Dosage::Rate(_))) {
                return Err(format!("{} has strikes, and no rate", family.name()));
            }
            if !(0.0..=1.0).contains(rate) {
                return Err(format!("the rate of {} is not between 0 and 1", family.name()));
            }
        }
        for decision in &self.decisions {
            if !matches!(dosage(decision.family), Some(Dosage::Rate(_))) {
                return Err(format!("{} has strikes, and no decisions", decision.family.name()));
            }
        }
        order::check(&self.order, &self.deaths)?;
        for strike in &self.strikes {
            if !matches!(dosage(strike.family), Some(Dosage::Timed { .. })) {
                return Err(format!("{} has a rate, and no strikes", strike.family.name()));
            }
            if !strike.amount.is_finite() {
                return Err(format!("a strike of {} has no amount", strike.family.name()));
            }
        }
        match self.strikes.is_sorted_by_key(|strike| strike.at) {
            true => Ok(()),
            false => Err("strikes do not ascend".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{state::tests::rated, strikes::Strike},
        *,
    };
    use crate::rt::SECOND;

    #[test]
    fn a_plan_depends_on_its_seed_and_survives_serialization() {
        let draw = |seed| FaultPlan::draw(Seed(seed), Profile::Storm, 3 * SECOND, &[]);
        assert_eq!(draw(4), draw(4));
        assert_ne!(draw(4), draw(5));
        for seed in 0..50 {
            let plan = draw(seed);
            assert!(plan.strikes.is_sorted_by_key(|s| s.at));
            let saved = serde_json::to_string(&plan).expect("plain data");
            assert_eq!(serde_json::from_str::<FaultPlan>(&saved).expect("what was saved"), plan);
        }
    }

    #[test]
    fn excluding_a_family_does_not_change_the_others() {
        for seed in 0..50 {
            let whole = FaultPlan::draw(Seed(seed), Profile::Standard, 3 * SECOND, &[]);
            let without = FaultPlan::draw(Seed(seed), Profile::Standard, 3 * SECOND, &[Family::Kill]);
            let others = whole.strikes.iter().filter(|s| s.family != Family::Kill);
            assert!(others.eq(without.strikes.iter()));
            assert_eq!(whole.rates, without.rates);
        }
    }

    #[test]
    fn calm_plans_have_no_faults_and_every_family_is_drawn_by_some_seed() {
        assert_eq!(FaultPlan::draw(Seed(1), Profile::Calm, SECOND, &[]), FaultPlan::default());
        let plans: Vec<_> =
            (0..60).map(|s| FaultPlan::draw(Seed(s), Profile::Standard, 3 * SECOND, &[])).collect();
        for family in Family::ALL {
            let drawn =
                |p: &FaultPlan| p.rates.contains_key(family) || p.strikes.iter().any(|s| s.family == *family);
            assert!(plans.iter().any(drawn), "{} is never drawn", family.name());
        }
        assert!(plans.iter().any(|p| *p == FaultPlan::default()), "some seeds are calm");
    }

    #[test]
    fn a_plan_that_is_drawn_can_be_delivered_and_others_are_refused() {
        for seed in 0..200 {
            let plan = FaultPlan::draw(Seed(seed), Profile::Storm, SECOND, &[]);
            assert_eq!(plan.check(), Ok(()));
        }
        let strike = |family, at| Strike { at, family, target: 0, other: 0, duration: 1, amount: 1.0 };
        let struck = |strikes| FaultPlan { strikes, ..FaultPlan::default() };
        for refused in [
            rated(Family::TooOld, 1.5),
            rated(Family::TooOld, -0.1),
            rated(Family::TooOld, f64::NAN),
            rated(Family::Kill, 0.5),
            struck(vec![strike(Family::TooOld, 5)]),
            struck(vec![strike(Family::Kill, 5), strike(Family::Kill, 4)]),
            struck(vec![Strike { amount: f64::INFINITY, ..strike(Family::Kill, 5) }]),
        ] {
            assert!(refused.check().is_err(), "{refused:?}");
        }
    }
}
