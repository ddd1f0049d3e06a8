//! An operation of a session is no single transaction.

mod stock;

use stock::*;

/// A stock.
#[shaketable::workload(name = "stock", session = Db, answer = (), model = Model)]
impl Stock {
    #[write(composed)]
    async fn add(&self, db: &mut Db, #[draw(1..5u64)] many: u64) -> Outcome<()> {
        Outcome::Answered(())
    }

    #[read]
    async fn count(&self, db: &mut Db, isolation: Isolation) -> Outcome<()> {
        Outcome::Answered(())
    }

    #[write]
    async fn take(&self) -> Outcome<()> {
        Outcome::Answered(())
    }

    #[write]
    async fn audit(&self, db: &mut Db) -> Outcome<()> {
        Outcome::Answered(())
    }
}

fn main() {}
