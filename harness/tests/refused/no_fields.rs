//! The configuration has no field that says how many clients there are, nor how many operations each has.

mod stock;

use shaketable::Misfit;
use stock::*;

/// A stock.
#[shaketable::workload(name = "stock", session = Db, answer = (), model = Model)]
impl Stock {
    #[write]
    async fn add(&self, db: &mut Db, #[draw(1..5u64)] many: u64) -> Outcome<()> {
        let _ = (db, many);
        Outcome::Answered(())
    }

    fn draw(_: &mut Stream, _: Option<&str>) -> Stock {
        Stock
    }

    fn keys(&self) -> Vec<Bytes> {
        Vec::new()
    }

    async fn open(&self, db: &Db, _: usize) -> tx::Result<Db> {
        Ok(db.clone())
    }

    async fn audit(&self, _: &Tx) -> tx::Result<Result<(), Misfit>> {
        Ok(Ok(()))
    }

    async fn check(&self, _: &Db, _: &Model) -> tx::Result<Result<(), Misfit>> {
        Ok(Ok(()))
    }

    fn step(&self, _: &mut Model, _: &Step<'_, Self>) -> Result<(), Misfit> {
        Ok(())
    }
}

fn main() {}
