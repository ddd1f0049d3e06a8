//! What remains of a plan, without the types of its operations.

use serde_json::Value;
use shaketable_reports::Schedule;
use shaketable_reports::Size;
use shaketable_sim::{
    config::ClusterConfig,
    faults::{Death, Decision, FaultPlan, Step, Strike},
    ids::ClientId,
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
    /// The workload's configuration, if it is not the one of the whole plan.
    pub configuration: Option<Reduced>,
}

/// A simpler configuration of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduced {
    /// The configuration as JSON.
    pub value: Value,
    /// Its clients: their numbers in the whole plan, ascending. Clients without an operation may be missing.
    pub clients: Vec<usize>,
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

    /// What remains with only some of the operations.
    pub fn only(&self, keeps: impl Fn(usize, usize) -> bool) -> Sketch {
        let mut gone = self.operations();
        gone.retain(
            |element| matches!(element, Element::Operation(client, index) if !keeps(*client, *index)),
        );
        self.without(&gone)
    }

    /// The same with each decision at the first opportunity of its operation: a later one may not come
    /// without the others.
    pub fn with_first_opportunities(&self) -> Sketch {
        let mut first = self.clone();
        let mut seen = Vec::new();
        first.faults.decisions.retain_mut(|decision| {
            decision.opportunity = 0;
            let is_new = !seen.contains(&(decision.client, decision.operation, decision.family));
            seen.push((decision.client, decision.operation, decision.family));
            is_new
        });
        first
    }

    /// The clients that remain: their numbers in the whole plan, ascending.
    pub fn clients(&self) -> Vec<usize> {
        let all = || (0..self.operations.len()).collect();
        self.configuration.as_ref().map_or_else(all, |reduced| reduced.clients.clone())
    }

    /// As many of these clients as a configuration has: all that have an operation, and the first of the
    /// others. `None` if it has too few or more.
    pub fn fewer_clients(&self, count: usize) -> Option<Vec<usize>> {
        let mut clients = self.clients();
        let too_many = clients.len().checked_sub(count)?;
        let idle = clients.iter().rev().copied().filter(|client| self.operations[*client].is_empty());
        let gone: Vec<usize> = idle.take(too_many).collect();
        clients.retain(|client| !gone.contains(client));
        (clients.len() == count).then_some(clients)
    }

    /// How many operations of the first client still fill the store, if so many of the whole plan do.
    pub fn filling(&self, whole: usize) -> usize {
        match self.clients().first() {
            Some(0) => self.operations[0].iter().filter(|index| **index < whole).count(),
            _ => 0,
        }
    }

    /// The faults with the numbers that the remaining clients and operations have in a plan of their own.
    pub fn renumbered(&self) -> FaultPlan {
        let mut faults = self.faults.clone();
        faults.decisions.retain(|decision| self.new_client(decision.client).is_some());
        for decision in &mut faults.decisions {
            decision.operation =
                decision.operation.map(|operation| self.new_index(decision.client, operation));
            decision.client = self.new_client(decision.client).unwrap_or(decision.client);
        }
        let steps = faults.deaths.iter_mut().map(|death| &mut death.step).chain(&mut faults.order);
        steps.for_each(|step| {
            step.operation = self.new_index(step.client, step.operation);
            step.client = self.new_client(step.client).unwrap_or(step.client);
        });
        faults
    }

    /// The number of a client among the remaining ones. What is no client of the plan, such as the auditor,
    /// keeps its own.
    fn new_client(&self, client: ClientId) -> Option<ClientId> {
        let number = usize::from(client.0);
        if number >= self.operations.len() {
            return Some(client);
        }
        self.clients().iter().position(|kept| *kept == number).map(|at| ClientId(at as u16))
    }

    /// A step of a run of what remains, with the numbers of the whole plan. `None` if its operation is not
    /// there.
    pub fn original(&self, step: Step) -> Option<Step> {
        let (client, operation) =
            self.original_operation(usize::from(step.client.0), step.operation as usize)?;
        Some(Step { client: ClientId(client as u16), operation: operation as u32, ..step })
    }

    /// An operation of a run of what remains, with the numbers of the whole plan. `None` if it is not there.
    pub fn original_operation(&self, client: usize, operation: usize) -> Option<(usize, usize)> {
        let client = *self.clients().get(client)?;
        Some((client, *self.operations[client].get(operation)?))
    }

    /// The index that an operation has in a plan of the remaining ones.
    pub fn new_index(&self, client: ClientId, operation: u32) -> u32 {
        let kept = self.operations.get(usize::from(client.0));
        let at = kept.and_then(|kept| kept.iter().position(|kept| *kept == operation as usize));
        at.map_or(operation, |at| at as u32)
    }

    /// What decides in which order things happen.
    pub fn what_decides(&self) -> Schedule {
        let is_even =
            self.cluster.clone().durations().iter().all(|duration| duration.end - duration.start == 1);
        match (is_even && self.pause == 0, self.faults.order.is_empty()) {
            (true, true) => Schedule::Even,
            (true, false) => Schedule::Ordered,
            (false, _) => Schedule::Drawn,
        }
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
        let sketch = Sketch { operations, faults, cluster, pause: 0, schedule: 0, configuration: None };
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
    #[test]
    fn clients_without_an_operation_go_and_the_others_are_renumbered() {
        let decision = |client, operation| Decision {
            client: ClientId(client),
            operation,
            family: Family::UnknownCommitted,
            opportunity: 0,
            draws: Vec::new(),
        };
        // Client 1 is idle; 9 is no client of the plan.
        let decisions = vec![decision(1, None), decision(2, Some(7)), decision(9, Some(3))];
        let faults = FaultPlan { decisions, order: vec![step(2, 7)], ..FaultPlan::default() };
        let cluster = ClusterConfig::smallest();
        let operations = vec![vec![1], Vec::new(), vec![4, 7]];
        let whole = Sketch { operations, faults, cluster, pause: 0, schedule: 0, configuration: None };
        assert_eq!(whole.fewer_clients(3), Some(vec![0, 1, 2]));
        assert_eq!((whole.filling(1), whole.filling(2), whole.filling(9)), (0, 1, 1));
        let without_first = Some(Reduced { value: Value::Null, clients: vec![2] });
        assert_eq!(Sketch { configuration: without_first, ..whole.clone() }.filling(9), 0);
        assert_eq!(whole.fewer_clients(1), None, "two have operations");
        assert_eq!(whole.fewer_clients(4), None);
        let clients = whole.fewer_clients(2).expect("one is idle");
        assert_eq!(clients, [0, 2]);
        let fewer = Sketch { configuration: Some(Reduced { value: Value::Null, clients }), ..whole };
        let renumbered = fewer.renumbered();
        assert_eq!(renumbered.decisions, [decision(1, Some(1)), decision(9, Some(3))]);
        assert_eq!(renumbered.order, [step(1, 1)]);
        assert_eq!(fewer.original(step(1, 1)), Some(step(2, 7)));
        assert_eq!((fewer.original(step(1, 2)), fewer.original(step(2, 0))), (None, None));
    }
}
