//! Counters of one key and of several.

use crate::{Layer, calls::Calls, space, written};
use shaketable_layers::counter::{Counter, Part, SplitCounter};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::Isolation::{Serializable, Snapshot};

pub struct Counters {
    one: Counter,
    split: SplitCounter,
}

impl Layer for Counters {
    const NAME: &'static str = "counter";

    fn new() -> Counters {
        Counters {
            one: Counter::new(space().subspace(&"one")),
            split: SplitCounter::new(space().subspace(&"split"), 3),
        }
    }

    async fn write(&self, db: &SimDatabase) {
        written(db, |tx| async move {
            self.one.set(&tx, 7).await?;
            for part in 0..3 {
                self.split.add(&tx, Part(part), 5).await?;
            }
            self.one.add(&tx, -3).await
        })
        .await
    }

    async fn call(&self, calls: &mut Calls) {
        let Counters { one, split } = self;
        let part = Part(1);
        for by in [1, -1, i64::MAX, i64::MIN] {
            calls.tx("Counter::add", |tx| async move { one.add(&tx, by).await }).await;
            calls
                .tx("Counter::add_within", |tx| async move { one.add_within(&tx, by, 0, i64::MAX).await })
                .await;
            calls.tx("SplitCounter::add", |tx| async move { split.add(&tx, part, by).await }).await;
            let within = |tx| async move { split.add_within(&tx, part, by, i64::MIN, i64::MAX).await };
            calls.tx("SplitCounter::add_within", within).await;
            calls.tx("Counter::get", |tx| async move { one.get(&tx, Snapshot).await }).await;
            calls.tx("SplitCounter::get", |tx| async move { split.get(&tx, Serializable).await }).await;
        }
        calls.tx("Counter::set", |tx| async move { one.set(&tx, i64::MIN).await }).await;
        calls.tx("SplitCounter::set", |tx| async move { split.set(&tx, i64::MAX).await }).await;
    }
}
