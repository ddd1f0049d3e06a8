//! What a failure is: which judge objects to what.

use crate::finding::{Finding, Kind, deciding};

/// What a run failed with, without the values that differ from run to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    kind: Kind,
    /// The name of the invariant or of the claim, if the judge has several.
    name: String,
}

impl Claim {
    /// The claim of the finding that decides a verdict; `None` if the run passed.
    pub fn of(findings: &[Finding]) -> Option<Claim> {
        deciding(findings).map(Claim::of_finding)
    }

    fn of_finding(finding: &Finding) -> Claim {
        let message = &finding.message;
        let name = match finding.kind {
            // "at version 12: NAME: what is wrong"
            Kind::Audit => {
                let said = message.strip_prefix("at version ").and_then(|rest| rest.split_once(": "));
                said.map_or(message.as_str(), |(_, rest)| rest).split(": ").next().unwrap_or_default()
            }
            Kind::Always => message,
            _ => "",
        };
        let name = name.chars().filter(|c| !c.is_ascii_digit()).collect();
        Claim { kind: finding.kind, name }
    }

    /// Whether the code of the layer or of the workload panicked.
    pub(super) fn is_panic(&self) -> bool {
        self.kind == Kind::Panic
    }

    /// Whether one of the findings of a run is this claim, and decides its verdict.
    pub fn is_in(&self, findings: &[Finding]) -> bool {
        Claim::of(findings).as_ref() == Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(kind: Kind, message: &str) -> Option<Claim> {
        Claim::of(&[Finding::new(kind, message)])
    }

    #[test]
    fn a_claim_has_no_values() {
        assert_eq!(Claim::of(&[]), None);
        let sum = claim(Kind::Audit, "at version 17: the sum is 500: it is 400");
        assert_eq!(sum, claim(Kind::Audit, "the sum is 500: it is 620"));
        assert_ne!(sum, claim(Kind::Audit, "at version 17: nobody is twice: 3 is"));
        assert_eq!(claim(Kind::Model, "operation 3: 1"), claim(Kind::Model, "operation 4: 2"));
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
}
