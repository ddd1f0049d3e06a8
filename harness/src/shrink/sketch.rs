//! What remains of a plan, without the types of its operations.

use super::Size;
use shaketable_sim::{
    config::ClusterConfig,
    faults::{Death, Decision, FaultPlan, Step, Strike},
    history::ClientId,
    rt::Nanos,
};

/// What remains of a plan. Operations have the indices that they have in the whole plan, also in decisions.
#[derive(Clone, Debug, PartialEq)]
pub struct Sketch {
    /// The remaining operations of each client, in ascending order.
    pub operations: Vec<Vec<usize>>,
    /// The remaining faults.
    pub faults: FaultPlan,
    /// The cluster.
    pub cluster: ClusterConfig,
    /// The mean pause between two operations of a client, nanoseconds.
    pub pause: Nanos,
    /// The seed of delays and of the order of what happens at once.
    pub schedule: u64,
}

/// One thing that can be taken away.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    /// An operation of a client.
    Operation(usize, usize),
    /// A timed fault.
    Strike(Strike),
    /// A fault at an opportunity.
    Decision(Decision),
    /// The death of a client at a commit.
    Death(Death),
    /// A request in the order.
    Step(Step),
}

impl Sketch {
    /// The operations, the last first.
    pub fn operations(&self) -> Vec<Element> {
        let of = |(client, kept): (usize, &Vec<usize>)| -> Vec<Element> {
            kept.iter().map(|index| Element::Operation(client, *index)).collect()
        };
        self.operations.iter().enumerate().flat_map(of).rev().collect()
    }

    /// The faults and the steps of the order, decisions first.
    pub fn faults(&self) -> Vec<Element> {
        let decisions = self.faults.decisions.iter().cloned().map(Element::Decision);
        let strikes = self.faults.strikes.iter().cloned().map(Element::Strike);
        let deaths = self.faults.deaths.iter().copied().map(Element::Death);
        decisions
            .chain(deaths)
            .chain(strikes)
            .chain(self.faults.order.iter().copied().map(Element::Step))
            .collect()
    }

    /// What remains without these elements. Decisions of operations that are not there any more go with them.
    pub fn without(&self, elements: &[Element]) -> Sketch {
        let mut left = self.clone();
        for element in elements {
            match element {
                Element::Operation(client, index) => {
                    left.operations[*client].retain(|kept| kept != index);
                    let gone = (ClientId(*client as u16), Some(*index as u32));
                    left.faults.decisions.retain(|decision| (decision.client, decision.operation) != gone);
                    left.faults.order.retain(|step| (step.client, Some(step.operation)) != gone);
                    left.faults
                        .deaths
                        .retain(|death| (death.step.client, Some(death.step.operation)) != gone);
                }
                Element::Strike(strike) => {
                    if let Some(at) = left.faults.strikes.iter().position(|kept| kept == strike) {
                        left.faults.strikes.remove(at);
                    }
                }
                Element::Decision(decision) => left.faults.decisions.retain(|kept| kept != decision),
                Element::Death(death) => left.faults.deaths.retain(|kept| kept != death),
                Element::Step(step) => left.faults.order.retain(|kept| kept != step),
            }
        }
        left
    }

    /// The faults with the indices that the remaining operations have in a plan of their own.
    pub fn renumbered(&self) -> FaultPlan {
        let mut faults = self.faults.clone();
        for decision in &mut faults.decisions {
            decision.operation =
                decision.operation.map(|operation| self.new_index(decision.client, operation));
        }
        let steps = faults.deaths.iter_mut().map(|death| &mut death.step).chain(&mut faults.order);
        steps.for_each(|step| step.operation = self.new_index(step.client, step.operation));
        faults
    }

    /// The index that an operation has in a plan of the remaining ones.
    pub fn new_index(&self, client: ClientId, operation: u32) -> u32 {
        let kept = self.operations.get(usize::from(client.0));
        let at = kept.and_then(|kept| kept.iter().position(|kept| *kept == operation as usize));
        at.map_or(operation, |at| at as u32)
    }

    /// How large it is.
    pub fn size(&self) -> Size {
        Size {
            operations: self.operations.iter().map(|kept| kept.len() as u64).sum(),
            clients: self.operations.iter().filter(|kept| !kept.is_empty()).count() as u64,
            faults: (self.faults.strikes.len() + self.faults.decisions.len() + self.faults.deaths.len())
                as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_sim::faults::{Family, Request};

    fn step(client: u16, operation: u32) -> Step {
        Step { client: ClientId(client), operation, request: Request::Commit, index: 0 }
    }

    #[test]
    fn what_names_an_operation_is_renumbered_and_goes_with_it() {
        let decision = Decision {
            client: ClientId(1),
            operation: Some(5),
            family: Family::UnknownCommitted,
            opportunity: 0,
            draws: Vec::new(),
        };
        let faults = FaultPlan {
            decisions: vec![decision.clone()],
            order: vec![step(1, 5), step(0, 2)],
            deaths: vec![Death { step: step(1, 4), after: true }],
            ..FaultPlan::default()
        };
        let cluster = ClusterConfig::smallest();
        let operations = vec![vec![2], vec![1, 4, 5]];
        let sketch = Sketch { operations, faults, cluster, pause: 0, schedule: 0 };
        let renumbered = sketch.renumbered();
        assert_eq!(renumbered.decisions, [Decision { operation: Some(2), ..decision }]);
        assert_eq!(renumbered.order, [step(1, 2), step(0, 0)]);
        assert_eq!(renumbered.deaths, [Death { step: step(1, 1), after: true }]);
        assert_eq!(sketch.size().faults, 2);
        let left = sketch.without(&[Element::Operation(1, 5)]).renumbered();
        assert_eq!((left.decisions.len(), left.order.len()), (0, 1));
        assert_eq!(left.order, [step(0, 0)]);
        assert_eq!(left.deaths, renumbered.deaths);
        assert_eq!(sketch.without(&sketch.faults()).faults, FaultPlan::default());
    }
}
