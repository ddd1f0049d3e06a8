//! The workload: the shop's functions on the databases of the clients, every answer compared with a model.

use crate::shop::{self, SoldOut};
use foundationdb::{Database as Fdb, FdbBindingError, tuple::unpack};
use shaketable::{
    Misfit,
    foundationdb::{database, outcome},
    prelude::*,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

planted_bugs! {
    BoughtTwice = "bought-twice", "an order does not look for its seat before it takes one", "the retry loop of the crate `foundationdb`";
    NothingToGive = "nothing-to-give", "the answer says which seat was given back", "the same";
    FirstBatch = "first-batch", "the seats are counted in the first batch of their range", "a call of `get_range` taken for the whole range";
    NumberedByStatic = "numbered-by-static", "orders are numbered by a counter in a static, which survives the run", "a process-wide counter: two runs of a seed differ";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sale {
    seats: u32,
    clients: usize,
    planted: Option<Planted>,
}

/// What the shop answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Seat(u32),
    SoldOut,
    GivenBack,
    GivenBackSeat(Option<u32>),
    Count(usize),
    TooLate,
}

/// The seats on sale, and the seat of each order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    free: BTreeSet<u32>,
    orders: BTreeMap<u64, u32>,
}

/// How long a client waits for a count.
const PATIENCE: Duration = Duration::from_secs(2);

fn refused(error: &FdbBindingError) -> Option<Answer> {
    match error {
        FdbBindingError::CustomError(error) if error.is::<SoldOut>() => Some(Answer::SoldOut),
        _ => None,
    }
}

impl Sale {
    /// Reads the stored seats. The inner error says what contradicts itself.
    async fn read(&self, tx: &Tx) -> tx::Result<Result<Model, String>> {
        let rows = tx.get_range_all(RangeOption::from(shop::space().range()), Serializable).await?;
        let (mut stored, mut sold) = (Model::default(), BTreeMap::new());
        for row in rows {
            let value = || unpack::<u64>(&row.value).map_err(|_| format!("{row:?}"));
            match shop::space().unpack::<(String, u64)>(&row.key) {
                Ok((kind, seat)) if kind == "free" => drop(stored.free.insert(seat as u32)),
                Ok((kind, order)) if kind == "order" => match value() {
                    Ok(seat) => drop(stored.orders.insert(order, seat as u32)),
                    Err(row) => return Ok(Err(row)),
                },
                Ok((kind, seat)) if kind == "sold" => match value() {
                    Ok(order) => drop(sold.insert(order, seat as u32)),
                    Err(row) => return Ok(Err(row)),
                },
                _ => return Ok(Err(format!("{row:?}"))),
            }
        }
        let seats = stored.free.len() + sold.len();
        Ok(match (sold == stored.orders, seats == self.seats as usize) {
            (true, true) => Ok(stored),
            (false, _) => Err(format!("sold are {sold:?}, and ordered {:?}", stored.orders)),
            (true, false) => Err(format!("there are {seats} seats in place of {}", self.seats)),
        })
    }
}

/// Seats bought and given back by functions of the crate `foundationdb`.
#[shaketable::workload(name = "sale", session = Arc<Fdb>, answer = Answer, model = Model)]
impl Sale {
    /// Buys a seat for an order.
    #[write(weight = 4)]
    async fn buy(&self, db: &mut Arc<Fdb>, #[draw(Just(0))] order: u64) -> Outcome<Answer> {
        outcome(shop::buy(db, order).await.map(Answer::Seat), refused)
    }

    /// Gives the seat of an order back.
    #[write(weight = 3)]
    async fn give_back(&self, db: &mut Arc<Fdb>, #[draw(1..10u64)] order: u64) -> Outcome<Answer> {
        outcome(shop::give_back(db, order).await.map(|()| Answer::GivenBack), refused)
    }

    /// Counts the seats on sale.
    #[read]
    async fn count(&self, db: &mut Arc<Fdb>) -> Outcome<Answer> {
        let counted = shop::count_within(db, PATIENCE).await;
        outcome(counted.map(|count| count.map_or(Answer::TooLate, Answer::Count)), refused)
    }

    /// Each purchase is an order of its own; what is given back is one of the latest orders.
    fn operations(&self, client: usize) -> BoxedStrategy<Vec<SaleOp>> {
        let first = 1_000 * client as u64;
        let numbered = move |mut ops: Vec<SaleOp>| {
            let mut next = first;
            for op in &mut ops {
                match op {
                    SaleOp::buy { order } => (*order, next) = (next, next + 1),
                    SaleOp::give_back { order } => *order = next.saturating_sub(*order).max(first),
                    SaleOp::count {} => {}
                }
            }
            ops
        };
        vec(self.operation(client), 8..30).prop_map(numbered).boxed()
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Sale {
        let planted = bug.and_then(Planted::named);
        Sale { seats: rng.range(1..20) as u32, clients: rng.range(2..7) as usize, planted }
    }

    fn keys(&self) -> Vec<Bytes> {
        (0..self.seats).map(|seat| shop::free(seat).into()).collect()
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        let opened = shop::open(&database(db), self.seats).await;
        opened.map_err(|e| tx::Error::from_code(e.get_fdb_error().map_or(4100, |e| e.code())))
    }

    async fn open(&self, db: &Db, _: usize) -> tx::Result<Arc<Fdb>> {
        Ok(database(db))
    }

    async fn apply_planted(&self, db: &mut Arc<Fdb>, op: &SaleOp) -> Option<Outcome<Answer>> {
        let answer = match (self.planted?, op) {
            (Planted::BoughtTwice, SaleOp::buy { order }) => {
                shop::buy_as_written_first(db, *order).await.map(Answer::Seat)
            }
            (Planted::NothingToGive, SaleOp::give_back { order }) => {
                shop::take_back(db, *order).await.map(Answer::GivenBackSeat)
            }
            (Planted::NumberedByStatic, SaleOp::buy { .. }) => {
                shop::buy(db, shop::next_order()).await.map(Answer::Seat)
            }
            (Planted::FirstBatch, SaleOp::count {}) => shop::count_first_batch(db).await.map(Answer::Count),
            _ => return None,
        };
        Some(outcome(answer, refused))
    }

    fn model(&self) -> Model {
        Model { free: (0..self.seats).collect(), orders: BTreeMap::new() }
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        let expected = match (step.op, step.committed) {
            (SaleOp::buy { order }, committed) => match (model.orders.get(order), committed) {
                (Some(seat), false) => Answer::Seat(*seat),
                (Some(seat), true) => return Err(format!("bought another seat, and has {seat}").into()),
                (None, true) => {
                    let seat = model.free.pop_first().ok_or("bought a seat, and none was free")?;
                    model.orders.insert(*order, seat);
                    Answer::Seat(seat)
                }
                (None, false) if model.free.is_empty() => Answer::SoldOut,
                (None, false) => return Err("bought nothing, and a seat was free".to_owned().into()),
            },
            (SaleOp::give_back { order }, committed) => {
                let seat = committed.then(|| model.orders.remove(order)).flatten();
                if committed != seat.is_some() || model.orders.contains_key(order) {
                    return Err("did not give the seat of its order back".to_owned().into());
                }
                model.free.extend(seat);
                match self.planted {
                    Some(Planted::NothingToGive) => Answer::GivenBackSeat(seat),
                    _ => Answer::GivenBack,
                }
            }
            (SaleOp::count {}, _) if step.answer == Some(&Answer::TooLate) => Answer::TooLate,
            (SaleOp::count {}, _) => Answer::Count(model.free.len()),
        };
        match step.answer {
            Some(answer) if *answer != expected => {
                Err(format!("returned {answer:?}, should return {expected:?}").into())
            }
            _ => Ok(()),
        }
    }

    /// Each seat is either free or sold to one order.
    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        Ok(self.read(tx).await?.map(|_| ()).map_err(Misfit::from))
    }

    async fn check(&self, db: &Db, model: &Model) -> tx::Result<Result<(), Misfit>> {
        let stored = db.run(|tx, _| async move { self.read(&tx).await }).await;
        let stored = stored.map_err(|failed: tx::RunError<tx::Error>| failed.error)?;
        Ok(stored.map_err(Misfit::from).and_then(|stored| match stored == *model {
            true => Ok(()),
            false => Err(format!("{stored:?} is stored, and should be {model:?}").into()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_order_has_one_seat() {
        Shake::<Sale>::new().check_determinism().assert();
    }

    #[test]
    fn planted_bugs_are_caught() {
        for bug in BUGS {
            Shake::<Sale>::new().bug(bug.name).assert_caught();
        }
    }
}
