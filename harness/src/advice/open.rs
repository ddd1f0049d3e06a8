//! What operations leave open: transactions that they neither commit nor cancel nor drop, and watches.

use super::{
    entry,
    guidelines::OPEN,
    traffic::{Observed, Traffic, named},
    units::share,
};
use shaketable_reports::{AdviceEntry, Severity, text::count};
use std::{collections::BTreeMap, ops::AddAssign};

/// The operations of a kind after which more was open than before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OfKind {
    /// Transactions.
    transactions: u64,
    /// Watches.
    watches: u64,
    /// The most watches that were open after one.
    most: u64,
}

impl AddAssign<&OfKind> for OfKind {
    fn add_assign(&mut self, other: &OfKind) {
        self.transactions += other.transactions;
        self.watches += other.watches;
        self.most = self.most.max(other.most);
    }
}

/// What the operations of a run or of several left open.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LeftOpen(BTreeMap<String, OfKind>);

impl LeftOpen {
    pub(super) fn observe(&mut self, run: &Observed<'_>) {
        for ((client, operation), open) in &run.history.open {
            let Some(done) = run.done((client.0, *operation)) else { continue };
            let before = operation.checked_sub(1).and_then(|last| run.history.open.get(&(*client, last)));
            let before = before.copied().unwrap_or_default();
            let left = OfKind {
                transactions: u64::from(open.transactions > before.transactions),
                watches: u64::from(open.watches > before.watches),
                most: open.watches,
            };
            if left.transactions + left.watches > 0 {
                *self.0.entry(named(done).to_owned()).or_default() += &left;
            }
        }
    }

    pub(super) fn merge(&mut self, other: &LeftOpen) {
        for (kind, left) in &other.0 {
            *self.0.entry(kind.clone()).or_default() += left;
        }
    }

    pub(super) fn advise(&self, traffic: &Traffic) -> Vec<AdviceEntry> {
        let of_kind = |(kind, left): (&String, &OfKind)| {
            let operations = traffic.totals(kind).operations;
            let of = |n: u64, what: &str| {
                let measured = format!(
                    "{kind} leaves {what} open at its end, in {} of its operations ({})",
                    share(n, operations),
                    count(n)
                );
                let number = (n as f64, "operations");
                (n > 0).then(|| entry("left open", Severity::Look, Some(kind), measured, number, OPEN))
            };
            let watches = format!("a watch (and then {} at most)", count(left.most));
            [of(left.transactions, "a transaction"), of(left.watches, &watches)]
        };
        self.0.iter().flat_map(of_kind).flatten().collect()
    }
}
