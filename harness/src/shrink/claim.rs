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
            Kind::Audit => words(invariant(message)),
            Kind::Always => words(message),
            _ => String::new(),
        };
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

/// The name of the invariant in the message of an audit: "at version 12: NAME: what is wrong", or "from version 12, written by
/// attempt 3: NAME".
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

    fn claim(kind: Kind, message: &str) -> Option<Claim> {
        Claim::of(&[Finding::new(kind, message)])
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
