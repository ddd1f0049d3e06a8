//! One run of an exploration.

use super::outcome::Outcome;
use crate::run::plan::Sketch;
use shaketable_sim::{
    faults::{Request, Step},
    ids::ClientId,
};
use std::fmt;

/// The parts of an exploration: which kind of case is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The whole plan of a seed without faults, which shows what its operations read and write.
    Whole,
    /// A few operations without faults, which shows the requests that they make.
    Plain,
    /// One outcome of one commit, or one dropped operation.
    Outcome,
    /// One order of two operations.
    Order,
    /// Two outcomes.
    TwoOutcomes,
    /// One order of three operations.
    OrderOfThree,
}

impl Part {
    /// Every part, in the order in which they are run.
    pub const ALL: [Part; 6] =
        [Part::Whole, Part::Plain, Part::Outcome, Part::Order, Part::TwoOutcomes, Part::OrderOfThree];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Part::Whole => "whole",
            Part::Plain => "plain",
            Part::Outcome => "outcome",
            Part::Order => "order",
            Part::TwoOutcomes => "two-outcomes",
            Part::OrderOfThree => "order-of-three",
        }
    }
}

/// One run of an exploration.
#[derive(Clone, Debug)]
pub struct Case {
    /// The part.
    pub part: Part,
    /// The index of the subject.
    pub(super) subject: usize,
    /// The plan.
    pub(super) sketch: Sketch,
    /// The operations that are explored, by client and index in the whole plan: those that may have a fault,
    /// or those whose requests are put in an order, in the order of the first serial run.
    pub(super) explored: Vec<(usize, usize)>,
    /// The outcomes that are tried, in the order in which they happen.
    pub(super) outcomes: Vec<Outcome>,
    /// The requests of the explored operations in their order.
    pub(super) order: Vec<Step>,
    /// The requests of the operations that follow them, in their order.
    pub(super) after: Vec<Step>,
}

/// A request as text: `0 reads`, `1 commits`.
fn request(step: &Step) -> String {
    let does = match step.request {
        Request::ReadVersion => "reads",
        Request::Commit => "commits",
    };
    format!("{} {does}", step.client.0)
}

impl Case {
    /// A case of operations without faults.
    pub(super) fn plain(subject: usize, sketch: Sketch) -> Case {
        Case {
            part: Part::Plain,
            subject,
            sketch,
            explored: Vec::new(),
            outcomes: Vec::new(),
            order: Vec::new(),
            after: Vec::new(),
        }
    }

    /// Puts the requests of the explored operations in this order, followed by the requests of the operations
    /// after them.
    pub(super) fn set_order(&mut self, order: Vec<Step>) {
        let asked = order.iter().chain(&self.after);
        self.sketch.faults.order.extend(asked);
        self.order = order;
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |(client, index): &(usize, usize)| {
            let index = self.sketch.new_index(ClientId(*client as u16), *index as u32);
            format!("operation {index} of client {client}")
        };
        let said: Vec<String> = match self.part {
            Part::Whole => return f.write_str("nothing happens to the whole plan"),
            Part::Plain => return f.write_str("nothing happens"),
            Part::Outcome | Part::TwoOutcomes => {
                self.outcomes.iter().map(|outcome| outcome.shown(&self.sketch).to_string()).collect()
            }
            Part::Order | Part::OrderOfThree => {
                let names: Vec<String> = self.explored.iter().map(of).collect();
                let requests: Vec<String> = self.order.iter().map(request).collect();
                vec![format!("{} in the order: {}", names.join(" and "), requests.join(", "))]
            }
        };
        f.write_str(&said.join("; then "))
    }
}
