//! A list of operations in an order of its own is numbered where it is drawn.

mod stock;

use stock::*;

/// A stock.
#[shaketable::workload(name = "stock", session = Db, answer = (), model = Model)]
impl Stock {
    #[write]
    async fn add(&self, db: &mut Db, #[draw(1..5u64)] many: u64) -> Outcome<()> {
        Outcome::Answered(())
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<StockOp>> {
        vec(self.operation(client), 1..3).boxed()
    }

    fn number(_: &mut StockOp, _: usize, _: usize) {}
}

fn main() {}
