//! Planted bugs.
use super::{Answer, Op, RecordBuild};
use shaketable::workload::Outcome;
use shaketable_layers::{once::Session, tx::Database};

shaketable::planted_bugs! {
    A = "a", "x", "y";
}
pub async fn apply<D: Database>(
    planted: Planted,
    workload: &RecordBuild,
    session: &mut Session<D>,
    op: &Op,
) -> Option<Outcome<Answer>> {
    None
}
