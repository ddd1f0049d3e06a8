//! The claim of a failure: which judge objects, and to what. Runs with the same claim count as the same
//! failure.

use super::form;
use crate::judge::finding::{Finding, Kind, deciding};
use std::collections::BTreeSet;

/// What a run failed with, without values that differ between runs of the same failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    kind: Kind,
    /// The name where it is declared: of an invariant, of a claim in code, the place of a panic, an error.
    name: String,
    /// The form of what is said about it.
    form: String,
    /// The form of the difference, if two sides are compared.
    difference: String,
    /// The kinds of the operations that the finding names.
    operations: BTreeSet<&'static str>,
}

impl Claim {
    /// The claim of the finding that decides a verdict; `None` if the run passed.
    pub fn of(findings: &[Finding]) -> Option<Claim> {
        deciding(findings).map(Claim::of_finding)
    }

    fn of_finding(finding: &Finding) -> Claim {
        let Finding { kind, said, witness, called, .. } = finding;
        let mut operations: BTreeSet<_> = called.iter().flatten().copied().collect();
        let difference = match (&witness.expected, &witness.found) {
            (Some(expected), Some(found)) => {
                let difference = form::difference(expected, found);
                // Of several calls with an answer each, the one whose answer differs.
                if let ([kinds], Some((at, of))) = (&called[..], difference.element)
                    && kinds.len() == of
                {
                    operations = BTreeSet::from([kinds[at]]);
                }
                difference.form
            }
            _ => String::new(),
        };
        Claim { kind: *kind, name: said.name.clone(), form: form::of_text(&said.why), difference, operations }
    }

    /// Whether the code of the layer or of the workload panicked.
    pub(super) fn is_panic(&self) -> bool {
        self.kind == Kind::Panic
    }

    /// Whether one of the findings of a run is this claim, and decides its verdict. It may name fewer kinds
    /// of operations.
    pub fn is_in(&self, findings: &[Finding]) -> bool {
        Claim::of(findings).is_some_and(|found| {
            found.operations.is_subset(&self.operations)
                && found.operations.is_empty() == self.operations.is_empty()
                && self == &Claim { operations: self.operations.clone(), ..found }
        })
    }

    /// The kinds of operations that the findings of a run which has this claim no longer name.
    pub(super) fn left_out(&self, findings: &[Finding]) -> Vec<&'static str> {
        let found = Claim::of(findings).map(|found| found.operations).unwrap_or_default();
        self.operations.difference(&found).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        describe::{erased::AnyValue, misfit::Misfit},
        judge::finding::Witness,
        judge::panics,
    };
    use serde::Serialize;
    use shaketable_sim::judges::Said;

    #[derive(Clone, Debug, Serialize)]
    enum Op {
        Get(&'static str),
        Pay { to: u32 },
        Pop,
        Push(u32),
    }
    use Op::{Get, Pay, Pop, Push};

    /// The claim of a finding whose message has more than what is said.
    fn claim(kind: Kind, misfit: Misfit) -> Option<Claim> {
        Claim::of(&[Finding::new(kind, format!("at version 17: {misfit}")).saying(misfit.said())])
    }

    /// A finding about an operation.
    fn about(kind: Kind, op: Op, misfit: Misfit) -> Vec<Finding> {
        about_all(kind, AnyValue::new(op), misfit)
    }

    fn about_all(kind: Kind, op: AnyValue, misfit: Misfit) -> Vec<Finding> {
        let message = format!("operation 7 of client 3 ({op:?}), which read at version 17: {misfit}");
        let mut witness = Witness::operation(0, 0);
        if let Some((expected, found)) = misfit.sides.clone() {
            (witness.expected, witness.found) = (Some(expected), Some(found));
        }
        let mut finding = Finding::new(kind, message).saying(misfit.said()).with(witness);
        finding.calls(&[vec![op]]);
        vec![finding]
    }

    #[test]
    fn a_claim_has_no_values() {
        assert_eq!(Claim::of(&[]), None);
        let audit = |why: &str| claim(Kind::Audit, why.into());
        assert_eq!(audit("the sum is 500, not 400"), audit("the sum is 7, not 8"));
        assert_ne!(audit("the sum is 500, not 400"), audit("the count is 500, not 400"));
        let stale = audit(r"the index has a stale entry \x02a\x00");
        assert_eq!(stale, audit(r"the index has a stale entry \x02b"));
        assert_ne!(stale, audit(r"the index lacks the entry \x02b"));
        assert_eq!(
            audit(r#"the entry "\x02a b" of no. 4 is stale"#),
            audit(r#"the entry "c" of no. 5 is stale"#)
        );
        let model = |op: Op, why: &str| Claim::of(&about(Kind::Model, op, why.into()));
        assert_eq!(model(Get("1"), "it has 5"), model(Get("\") 9"), "it has 6"));
        assert_ne!(model(Get("1"), "it has 5"), model(Pop, "it has 5"));
        assert_ne!(model(Get("1"), "it has 5"), model(Get("1"), "it lacks 5"));
        assert_ne!(claim(Kind::Model, "it".into()), claim(Kind::Check, "it".into()));
    }

    #[test]
    fn a_name_is_compared_as_it_is() {
        let named = |name: &str, why: &str| claim(Kind::Audit, Misfit::from(why).named(name));
        assert_eq!(named("the sum is 500", "it is 400"), named("the sum is 500", "it is 620"));
        for (one, other) in [
            ("state: few are counted", "state: nothing is lost"),
            ("account 1 is right", "account 2 is right"),
            ("\"a\" is right", "\"b\" is right"),
            ("[a]", "[b]"),
        ] {
            assert_ne!(named(one, "does not hold"), named(other, "does not hold"), "{one}");
        }
        let right = |why| named("the state is right", why);
        assert_eq!(right("RARE: 1 of 2 are left"), right("RARE: 3 of 7 are left"));
        assert_ne!(right("RARE: 1 of 2 are left"), right("EASY: 31 is more than 30"));
        let always = |name: &str| {
            let said = Said { name: name.to_owned(), why: "1 is not 2".to_owned() };
            Claim::of(&[Finding::new(Kind::Always, "1 is not 2").saying(said)])
        };
        assert_ne!(always("1 is not 2"), always("{} is not {}"));
    }

    #[test]
    fn the_deciding_finding_counts() {
        let found =
            |kinds: &[Kind]| -> Vec<Finding> { kinds.iter().map(|k| Finding::new(*k, "it")).collect() };
        let model = Claim::of(&found(&[Kind::Model])).expect("a finding");
        assert!(model.is_in(&found(&[Kind::Live, Kind::Model])));
        assert!(!model.is_in(&found(&[Kind::Model, Kind::Serializable])));
        assert!(!model.is_in(&[]));
    }

    #[test]
    fn a_difference_of_another_form_is_another_claim() {
        let differs = |ops: &[Op], expected: &str, found: &str| {
            let message = format!("answered {found} where the model answers {expected}");
            let misfit = Misfit::new(message, expected.to_owned(), found.to_owned());
            about_all(Kind::Model, AnyValue::new(ops.to_vec()), misfit)
        };
        let one = [Pay { to: 3 }];
        let refused = Claim::of(&differs(&one, "[Balance(100)]", "[Refused(\"poor\")]")).expect("a finding");
        assert!(refused.is_in(&differs(&one, "[Balance(7)]", "[Refused(\"blocked\")]")));
        assert!(!refused.is_in(&differs(&one, "[Balance(100)]", "[Balance(99)]")), "another bug");
        // Of several calls the one whose answer differs counts.
        let of = |ops: &[Op]| differs(ops, "[Got(1), Balance(1)]", "[Got(1), Refused(\"poor\")]");
        assert!(refused.is_in(&of(&[Get("a"), Pay { to: 3 }])) && !refused.is_in(&of(&[Pay { to: 3 }, Pop])));
        // What is said beside the two sides counts as well.
        let other = |message: &str| {
            let misfit = Misfit::new(message.to_owned(), "1".to_owned(), "2".to_owned());
            Claim::of(&about(Kind::Model, Pop, misfit))
        };
        assert_ne!(other("2 is too many for 1"), other("2 came before 1"));
    }

    #[test]
    fn fewer_kinds_of_operations_are_the_same_claim_and_told() {
        let of = |ops: &[Op]| about_all(Kind::Answer, AnyValue::new(ops.to_vec()), Misfit::from("it is odd"));
        let both = Claim::of(&of(&[Get("1"), Pay { to: 2 }])).expect("a finding");
        assert!(both.is_in(&of(&[Pay { to: 3 }])) && both.is_in(&of(&[Pay { to: 3 }, Get("2"), Get("3")])));
        assert!(!both.is_in(&of(&[Pay { to: 3 }, Pop])));
        assert_eq!(both.left_out(&of(&[Pay { to: 3 }])), ["Get"]);
        assert!(both.left_out(&of(&[Pay { to: 3 }, Get("2")])).is_empty());
    }

    #[test]
    fn a_panic_has_a_place_and_a_form() {
        let panic = |op: Op, panic: fn()| {
            let caught = || panics::caught(&*std::panic::catch_unwind(panic).expect_err("a panic"));
            let finding = Finding::panicked(Kind::Panic, "OP panicked: ", &panics::recorded(caught));
            let mut finding = finding.with(Witness::operation(0, 0));
            finding.calls(&[vec![AnyValue::new(op)]]);
            Claim::of(&[finding])
        };
        fn at(list: &[u8], index: usize) {
            assert!(index < list.len(), "index {index} of {}", list.len());
        }
        let index = panic(Pop, || at(&[1, 2, 3], 3));
        assert_eq!(index, panic(Pop, || at(&[1, 2], 9)));
        assert_ne!(index, panic(Push(1), || at(&[1, 2, 3], 3)));
        let elsewhere = panic(Pop, || panic!("index {} of {}", 3, 3));
        assert_ne!(index, elsewhere);
        assert_eq!(index.map(|claim| claim.form), elsewhere.map(|claim| claim.form));
    }
}
