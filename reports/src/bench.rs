//! Figures of a benchmark, each with what it was measured on.

use crate::sweep::Cost;
use serde::{Deserialize, Serialize};

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// The value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// The value to reach, if there is one.
    pub reach: Option<f64>,
    /// Whether the value is to be at most, and not at least, what is to be reached.
    pub at_most: bool,
    /// What it was measured on: topology, clients, faults, seeds.
    pub profile: String,
}

impl Figure {
    /// Whether the figure reaches what it should; true when there is nothing to reach.
    pub fn is_reached(&self) -> bool {
        self.reach.is_none_or(|reach| if self.at_most { self.value <= reach } else { self.value >= reach })
    }
}

/// A benchmark. Its figures are never a verdict: machines differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchReport {
    /// Logical processors of the machine.
    pub processors: u64,
    /// The figures.
    pub figures: Vec<Figure>,
    /// What measuring cost.
    pub cost: Cost,
}
