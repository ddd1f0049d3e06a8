//! An operation's future is dropped while its client is alive, as a request timeout or a `select!` does, and
//! the client continues with its session.
//!
//! A family with a rate: before each operation, the runner of the clients checks whether the operation is to
//! be cut, and where, and counts the cut if the operation had not ended by then.

use super::{
    draws::{self, Cut},
    families::Family,
    family::{Dosage, FaultFamily},
    state::Faults,
};
use crate::ids::ClientId;

/// The family.
pub struct DroppedOperation;

impl FaultFamily for DroppedOperation {
    fn family(&self) -> Family {
        Family::DroppedOperation
    }
    fn promise(&self) -> &'static str {
        "A commit in flight may have happened, or may happen until its read version leaves the window; its result is \
         not reported, and the client's next operation may begin before that."
    }
    fn budget(&self) -> &'static str {
        "At most 15 % of the operations, none after the act; only requests that the client library has sent outlive \
         an operation's future."
    }
    fn dosage(&self) -> Dosage {
        Dosage::Rate(0.03)
    }
}

impl Faults {
    /// Whether the client's next operation is to be cut, and where. Not counted, since the operation may end
    /// before.
    pub fn cut(&self, client: ClientId) -> Option<Cut> {
        let mut occurrence = self.chosen(client, Family::DroppedOperation)?;
        Some(self.draw(&mut occurrence, draws::cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const MICROSECOND: Nanos = 1_000;
    use crate::{
        faults::{FaultPlan, state::tests::rated},
        rt::Nanos,
        seed::Seed,
    };

    #[test]
    fn operations_are_cut_while_faults_are_on_and_at_the_rate_that_was_drawn() {
        let faults = Faults::new(Seed(1), &rated(Family::DroppedOperation, 0.1));
        assert_eq!(faults.cut(ClientId(0)), None);
        faults.switch(true);
        let cuts: Vec<Cut> = (0..2_000).filter_map(|_| faults.cut(ClientId(0))).collect();
        assert!((100..300).contains(&cuts.len()), "{}", cuts.len());
        assert!(cuts.contains(&Cut::Polls(1)) && !cuts.contains(&Cut::Polls(0)));
        assert!(cuts.iter().any(|cut| matches!(cut, Cut::After(time) if *time > 100_000 * MICROSECOND)));
        assert!(faults.delivered().is_empty());
        let none = Faults::new(Seed(1), &FaultPlan::default());
        none.switch(true);
        assert_eq!(none.cut(ClientId(0)), None);
    }
}
