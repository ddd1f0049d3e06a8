//! What remains of a plan, without the types of its operations.

use super::Size;
use shaketable_sim::{
    config::ClusterConfig,
    faults::{Decision, FaultPlan, Strike},
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
}

impl Sketch {
    /// The operations, the last first.
    pub fn operations(&self) -> Vec<Element> {
        let of = |(client, kept): (usize, &Vec<usize>)| -> Vec<Element> {
            kept.iter().map(|index| Element::Operation(client, *index)).collect()
        };
        self.operations.iter().enumerate().flat_map(of).rev().collect()
    }

    /// The faults, decisions first.
    pub fn faults(&self) -> Vec<Element> {
        let decisions = self.faults.decisions.iter().cloned().map(Element::Decision);
        decisions.chain(self.faults.strikes.iter().cloned().map(Element::Strike)).collect()
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
                }
                Element::Strike(strike) => {
                    if let Some(at) = left.faults.strikes.iter().position(|kept| kept == strike) {
                        left.faults.strikes.remove(at);
                    }
                }
                Element::Decision(decision) => left.faults.decisions.retain(|kept| kept != decision),
            }
        }
        left
    }

    /// The faults with the indices that the remaining operations have in a plan of their own.
    pub fn renumbered(&self) -> FaultPlan {
        let mut faults = self.faults.clone();
        for decision in &mut faults.decisions {
            let Some(kept) = self.operations.get(usize::from(decision.client.0)) else { continue };
            if let Some(operation) = &mut decision.operation
                && let Some(index) = kept.iter().position(|kept| *kept == *operation as usize)
            {
                *operation = index as u32;
            }
        }
        faults
    }

    /// How large it is.
    pub fn size(&self) -> Size {
        Size {
            operations: self.operations.iter().map(Vec::len).sum(),
            clients: self.operations.iter().filter(|kept| !kept.is_empty()).count(),
            faults: self.faults.strikes.len() + self.faults.decisions.len(),
        }
    }
}
