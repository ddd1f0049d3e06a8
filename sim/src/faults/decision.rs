//! Decisions: faults of the families with a rate, each at one opportunity of one operation.
//!
//! A run records the decision of every fault that its rates gave. A plan can carry decisions beside rates or
//! in place of them: the run of a plan with the decisions of a run, and without rates, is that run again. A
//! decision names its opportunity by client, operation and family, so that it keeps its meaning when other
//! operations are removed from the plan.

use super::families::Family;
use crate::ids::ClientId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A fault at one opportunity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The client that has the opportunity.
    pub client: ClientId,
    /// The client's latest operation by then; `None` before its first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<u32>,
    /// The family, which has a rate.
    pub family: Family,
    /// How many opportunities of the family the operation had before this one.
    pub opportunity: u32,
    /// Where the numbers that were drawn for the fault, such as a delay, begin in the family's stream. If
    /// there are fewer than are drawn, the others begin at 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub draws: Vec<u64>,
}

/// An opportunity of a family.
type Opportunity = (ClientId, Option<u32>, Family, u32);

/// The decisions of a plan, by their opportunities.
pub(super) struct Script {
    decisions: BTreeMap<Opportunity, Vec<u64>>,
    families: [bool; Family::ALL.len()],
}

impl Script {
    pub(super) fn new(decisions: &[Decision]) -> Script {
        let mut families = [false; Family::ALL.len()];
        decisions.iter().for_each(|decision| families[decision.family as usize] = true);
        let opportunity = |d: &Decision| (d.client, d.operation, d.family, d.opportunity);
        let decisions = decisions.iter().map(|d| (opportunity(d), d.draws.clone())).collect();
        Script { decisions, families }
    }

    /// Whether it has decisions of a family.
    pub(super) fn has(&self, family: Family) -> bool {
        self.families[family as usize]
    }

    /// Where the numbers of the fault at an opportunity begin, if there is to be one.
    pub(super) fn draws(&self, opportunity: Opportunity) -> Option<&Vec<u64>> {
        self.decisions.get(&opportunity)
    }
}

/// The position of a client: its operation, and the number of opportunities that each family has had in it.
struct ClientPosition {
    operation: Option<u32>,
    opportunities: [u32; Family::ALL.len()],
}

/// Where all clients are.
#[derive(Default)]
pub(super) struct Places(BTreeMap<ClientId, ClientPosition>);

impl Places {
    fn of(&mut self, client: ClientId) -> &mut ClientPosition {
        let start = || ClientPosition { operation: None, opportunities: [0; Family::ALL.len()] };
        self.0.entry(client).or_insert_with(start)
    }

    /// The client begins an operation.
    pub(super) fn begin(&mut self, client: ClientId, operation: u32) {
        *self.of(client) =
            ClientPosition { operation: Some(operation), opportunities: [0; Family::ALL.len()] };
    }

    /// Counts an opportunity, and names it.
    pub(super) fn opportunity(&mut self, client: ClientId, family: Family) -> Opportunity {
        let place = self.of(client);
        let count = &mut place.opportunities[family as usize];
        *count += 1;
        (client, place.operation, family, *count - 1)
    }
}

/// A fault that occurs: what is drawn for it is recorded with its decision.
#[derive(Debug)]
pub struct Occurrence {
    pub(super) family: Family,
    /// The index of its decision among the recorded ones.
    pub(super) index: usize,
    /// Where its numbers begin, if the plan decided on it; in the order in which they are drawn.
    pub(super) script: Option<std::vec::IntoIter<u64>>,
}
