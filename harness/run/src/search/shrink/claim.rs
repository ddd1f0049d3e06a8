//! The claim of a failure: which judge objects, and to what. Runs with the same claim count as the same
//! failure.

use super::form;
use crate::judge::finding::{Called, Finding, Kind, deciding};
use std::collections::BTreeSet;

/// What a run failed with, without values that differ between runs of the same failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    kind: Kind,
    /// The name of the invariant or of the claim, the form of what was expected and found, or the place of a
    /// panic and its words.
    name: String,
    /// The kinds of the operations that the finding names.
    operations: BTreeSet<&'static str>,
}

impl Claim {
    /// The claim of the finding that decides a verdict; `None` if the run passed.
    pub fn of(findings: &[Finding]) -> Option<Claim> {
        deciding(findings).map(Claim::of_finding)
    }

    fn of_finding(finding: &Finding) -> Claim {
        let Finding { witness, called, .. } = finding;
        let shown = called.iter().map(|operation| format!("({})", operation.shown));
        let message = shown.fold(finding.message.clone(), |message, shown| message.replace(&shown, ""));
        let mut operations: BTreeSet<_> = called.iter().flat_map(|op| op.kinds.iter().copied()).collect();
        let name = match (finding.kind, &witness.expected, &witness.found) {
            (Kind::Audit, ..) => words(invariant(&message)),
            (Kind::Model | Kind::Check, Some(expected), Some(found)) => {
                let difference = form::difference(expected, found);
                // Of several calls with an answer each, the one whose answer differs.
                if let ([Called { kinds, .. }], Some((at, of))) = (&called[..], difference.element)
                    && kinds.len() == of
                {
                    operations = BTreeSet::from([kinds[at]]);
                }
                difference.form
            }
            (Kind::Panic, ..) => format!("{} {}", words(&message), place(&message)),
            (Kind::Always | Kind::Model | Kind::Check | Kind::Answer, ..) => words(&message),
            // How many clients wait, and how many transactions met no error, is of no interest.
            (Kind::Live, ..) => words(message.split("; ").next().unwrap_or_default()),
            (Kind::Unexplained, ..) => words(message.split(", but ").next().unwrap_or_default()),
            _ => String::new(),
        };
        Claim { kind: finding.kind, name, operations }
    }

    /// Whether the code of the layer or of the workload panicked.
    pub(super) fn is_panic(&self) -> bool {
        self.kind == Kind::Panic
    }

    /// Whether one of the findings of a run is this claim, and decides its verdict. It may name fewer kinds
    /// of operations.
    pub fn is_in(&self, findings: &[Finding]) -> bool {
        Claim::of(findings).is_some_and(|found| {
            (found.kind, &found.name) == (self.kind, &self.name)
                && found.operations.is_subset(&self.operations)
                && found.operations.is_empty() == self.operations.is_empty()
        })
    }
}

/// The place of a panic at the end of its message: `src/queue.rs:17`.
fn place(message: &str) -> &str {
    message.rsplit_once('(').and_then(|(_, place)| place.strip_suffix(')')).unwrap_or_default()
}

/// The name of the invariant in the message of an audit: "at version 12: NAME: what is wrong", or "from
/// version 12, written by attempt 3: NAME".
fn invariant(message: &str) -> &str {
    let said = ["at version ", "from version "].iter().find_map(|begin| message.strip_prefix(begin));
    let broken = said.and_then(|rest| rest.split_once(": ")).map_or(message, |(_, broken)| broken);
    broken.split(": ").next().unwrap_or_default()
}

/// The words of a text, without what is quoted, and without numbers and keys.
fn words(text: &str) -> String {
    let unquoted: String = text.split('"').step_by(2).collect();
    let is_word = |word: &&str| {
        let bare = word.trim_end_matches([',', ';', '.']);
        !bare.is_empty() && bare.chars().all(|c| c.is_alphabetic() || c == '-' || c == '\'')
    };
    unquoted.split_whitespace().filter(is_word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::erased::AnyValue;
    use crate::judge::finding::Witness;
    use serde::Serialize;

    #[derive(Clone, Debug, Serialize)]
    enum Op {
        Get(&'static str),
        Pay { to: u32 },
        Pop,
        Push(u32),
    }
    use Op::{Get, Pay, Pop, Push};

    fn claim(kind: Kind, message: &str) -> Option<Claim> {
        Claim::of(&[Finding::new(kind, message)])
    }

    /// A finding about an operation, which its message shows where it has `OP`.
    fn about(kind: Kind, op: AnyValue, message: &str) -> Vec<Finding> {
        let message = message.replace("OP", &format!("operation 7 of client 3 ({op:?})"));
        let mut finding = Finding::new(kind, message).with(Witness::operation(0, 0));
        finding.calls(&[vec![op]]);
        vec![finding]
    }

    #[test]
    fn a_claim_has_no_values() {
        assert_eq!(Claim::of(&[]), None);
        let sum = claim(Kind::Audit, "at version 17: the sum is 500: it is 400");
        assert_eq!(sum, claim(Kind::Audit, "the sum is 500: it is 620"));
        assert_eq!(sum, claim(Kind::Audit, "from version 17, written by attempt 3: the sum is 500: it is 4"));
        assert_ne!(sum, claim(Kind::Audit, "at version 17: nobody is twice: 3 is"));
        let stale = claim(Kind::Audit, r"at version 17: the index has a stale entry \x02a\x00 b");
        assert_ne!(stale, claim(Kind::Audit, r"at version 17: the index lacks the entry \x02a\x00 b"));
        let stale = claim(Kind::Audit, r#"at version 17: the entry "\x02a b" of no. 4 is stale"#);
        assert_eq!(stale, claim(Kind::Audit, r#"the entry "c" of no. 5 is stale"#));
        let model = |op: Op, why: &str| {
            Claim::of(&about(Kind::Model, AnyValue::new(op), &format!("OP, which read at version 17: {why}")))
        };
        assert_eq!(model(Get("1"), "it has 5"), model(Get("\") 9"), "it has 6"));
        assert_ne!(model(Get("1"), "it has 5"), model(Pop, "it has 5"));
        assert_ne!(model(Get("1"), "it has 5"), model(Get("1"), "it lacks 5"));
        assert_ne!(claim(Kind::Model, "it"), claim(Kind::Check, "it"));
        assert_ne!(claim(Kind::Always, "a"), claim(Kind::Always, "b"));
    }

    #[test]
    fn the_deciding_finding_counts() {
        let model = claim(Kind::Model, "it").expect("a finding");
        let found =
            |kinds: &[Kind]| -> Vec<Finding> { kinds.iter().map(|k| Finding::new(*k, "it")).collect() };
        assert!(model.is_in(&found(&[Kind::Live, Kind::Model])));
        assert!(!model.is_in(&found(&[Kind::Model, Kind::Serializable])));
        assert!(!model.is_in(&[]));
    }

    #[test]
    fn a_difference_of_another_form_is_another_claim() {
        let differs = |ops: &[Op], expected: &str, found: &str| {
            let mut findings = about(Kind::Model, AnyValue::new(ops.to_vec()), "OP: it differs");
            let witness = &mut findings[0].witness;
            (witness.expected, witness.found) = (Some(expected.to_owned()), Some(found.to_owned()));
            findings
        };
        let one = [Pay { to: 3 }];
        let refused = Claim::of(&differs(&one, "[Balance(100)]", "[Refused(\"poor\")]")).expect("a finding");
        assert!(refused.is_in(&differs(&one, "[Balance(7)]", "[Refused(\"blocked\")]")));
        assert!(!refused.is_in(&differs(&one, "[Balance(100)]", "[Balance(99)]")), "another bug");
        // Of several calls the one whose answer differs counts.
        let of = |ops: &[Op]| differs(ops, "[Got(1), Balance(1)]", "[Got(1), Refused(\"poor\")]");
        assert!(refused.is_in(&of(&[Get("a"), Pay { to: 3 }])) && !refused.is_in(&of(&[Pay { to: 3 }, Pop])));
    }

    #[test]
    fn fewer_kinds_of_operations_are_the_same_claim() {
        let of = |ops: &[Op]| about(Kind::Answer, AnyValue::new(ops.to_vec()), "OP: it is odd");
        let both = Claim::of(&of(&[Get("1"), Pay { to: 2 }])).expect("a finding");
        assert!(both.is_in(&of(&[Pay { to: 3 }])) && both.is_in(&of(&[Pay { to: 3 }, Get("2"), Get("3")])));
        assert!(!both.is_in(&of(&[Pay { to: 3 }, Pop])));
    }

    #[test]
    fn a_panic_has_a_place_and_words() {
        let panic = |op: Op, what: &str| {
            Claim::of(&about(Kind::Panic, AnyValue::new(op), &format!("OP panicked: {what}")))
        };
        let index = panic(Pop, "index 3 of 3 (src/a.rs:7)");
        assert_eq!(index, panic(Pop, "index 9 of 2 (src/a.rs:7)"));
        assert_ne!(index, panic(Pop, "index 3 of 3 (src/a.rs:9)"));
        assert_ne!(index, panic(Pop, "no index 3 of 3 (src/a.rs:7)"));
        assert_ne!(index, panic(Push(1), "index 3 of 3 (src/a.rs:7)"));
    }
}
