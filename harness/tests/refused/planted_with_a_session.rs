//! What is planted in operations of a session, `apply_planted` does.

mod stock;

use stock::*;

/// A stock.
#[shaketable::workload(name = "stock", session = Db, answer = (), model = Model, planted)]
impl Stock {
    #[write]
    async fn add(&self, db: &mut Db, #[draw(1..5u64)] many: u64) -> Outcome<()> {
        Outcome::Answered(())
    }
}

fn main() {}
