//! Figures of a benchmark, each with the setup in which it was measured.

use crate::sweep::Cost;
use serde::{Deserialize, Serialize};
use std::ops::Range;

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
    /// The comparison with another program, in place of figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// The cost of the measurement.
    pub cost: Cost,
}

/// Speeds of this program and of another one, measured alternately.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The other program.
    pub program: String,
    /// The commit that it was built from.
    pub commit: String,
    /// The seeds of each measurement.
    pub seeds: Range<u64>,
    /// The number of measurements of each workload with each program.
    pub rounds: u64,
    /// The workloads, in their order.
    pub workloads: Vec<Compared>,
    /// The workloads that both programs have, together.
    pub all: Option<Ratio>,
}

/// A workload of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Its name.
    pub workload: String,
    /// How fast the programs are; `None` if the other one does not have the workload.
    pub ratio: Option<Ratio>,
}

/// The speed of this program in relation to another one's: more than 1 if it is faster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Seeds per core minute of this program, the median.
    pub ours: f64,
    /// Seeds per core minute of the other one, the median.
    pub theirs: f64,
    /// The median of the ratios of the pairs of measurements.
    pub median: f64,
    /// The lowest of these.
    pub lowest: f64,
    /// The highest of these.
    pub highest: f64,
}

impl Ratio {
    /// Of pairs of speeds, of this program and of the other one; at least one pair.
    pub fn of(pairs: &[[f64; 2]]) -> Ratio {
        let sorted = |value: fn(&[f64; 2]) -> f64| {
            let mut values: Vec<f64> = pairs.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let median = |sorted: &[f64]| {
            let middle = sorted.len() / 2;
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
        };
        let ratios = sorted(|[ours, theirs]| ours / theirs);
        Ratio {
            ours: median(&sorted(|pair| pair[0])),
            theirs: median(&sorted(|pair| pair[1])),
            median: median(&ratios),
            lowest: ratios[0],
            highest: ratios[ratios.len() - 1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_that_of_neighbours() {
        // The machine became four times as slow meanwhile.
        let ratio = Ratio::of(&[[100.0, 50.0], [75.0, 25.0], [30.0, 12.0]]);
        assert_eq!(ratio, Ratio { ours: 75.0, theirs: 25.0, median: 2.5, lowest: 2.0, highest: 3.0 });
        let ratio = Ratio::of(&[[100.0, 50.0], [75.0, 25.0], [30.0, 12.0], [10.0, 10.0]]);
        assert_eq!(ratio, Ratio { ours: 52.5, theirs: 18.5, median: 2.25, lowest: 1.0, highest: 3.0 });
    }
}
