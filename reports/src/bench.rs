//! Figures of a benchmark, each with the setup in which it was measured.

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
    /// The target value, if there is one.
    pub reach: Option<f64>,
    /// Whether the target is an upper rather than a lower bound.
    pub at_most: bool,
    /// The setup of the measurement: topology, clients, faults, seeds.
    pub profile: String,
}

impl Figure {
    /// Whether the figure meets its target; true if there is no target.
    pub fn is_reached(&self) -> bool {
        self.reach.is_none_or(|reach| if self.at_most { self.value <= reach } else { self.value >= reach })
    }
}

/// A benchmark. Its figures never determine a verdict, because machines differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchReport {
    /// Logical processors of the machine.
    pub processors: u64,
    /// The figures.
    pub figures: Vec<Figure>,
    /// The cost of the measurement.
    pub cost: Cost,
}
