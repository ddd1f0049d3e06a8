//! What is rare and what is blind is said once.

mod stock;

use stock::*;

/// A stock.
#[shaketable::workload(name = "stock", session = Db, answer = (), model = Model)]
impl Stock {
    #[write(blind, rare)]
    async fn add(&self, db: &mut Db, #[draw(1..5u64)] many: u64) -> Outcome<()> {
        Outcome::Answered(())
    }

    fn is_conflict_free(&self, _: &StockOp) -> bool {
        true
    }

    fn rare_kinds() -> &'static [&'static str] {
        &["add"]
    }
}

fn main() {}
