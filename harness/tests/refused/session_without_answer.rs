//! Operations of a session return one type of answers.

mod stock;

use stock::*;

/// A stock.
#[shaketable::workload(name = "stock", session = Db, model = Model)]
impl Stock {
    #[write]
    async fn add(&self, db: &mut Db, #[draw(1..5u64)] many: u64) -> Outcome<()> {
        Outcome::Answered(())
    }
}

fn main() {}
