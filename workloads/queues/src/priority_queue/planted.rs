//! Planted bugs: a priority queue implemented or used wrongly.

use super::{Batch, Digest, Item, LONGEST, Name, Queue, key, queue, shown};
use crate::shared::{self, item_id, item_name, one_call, seen_before};
use shaketable::{prelude::*, specimen::Answer};
use shaketable_layers::priority_queue::{self as layer, End, Error};
use shaketable_tx::RunError;

#[shaketable::planted]
#[flaw(
    first_batch,
    items,
    FirstBatch,
    "the first batch of a range read is taken for the whole queue",
    "a range that is longer than a batch"
)]
#[flaw(
    peek_at_snapshot,
    peek,
    AtSnapshot,
    "a look at the first item before a write is performed at snapshot",
    "a snapshot read in a composed look-up"
)]
impl Queue {
    /// The random part of the key is drawn in the transaction function, and nothing is recorded.
    #[bug(push | push_some, "the recipe's push")]
    async fn push_as_printed(&self, db: &Db, batch: &Batch) -> Result<Vec<i64>, RunError<Error>> {
        let env = db.env();
        db.run(|tx, _| async move {
            let tx = one_call(&tx, false).await;
            let mut counts = Vec::new();
            for name in batch.names() {
                let mut id = item_id(name);
                id.0[15] = env.random_u64() as u8;
                counts.push(queue().push(&tx, id, batch.priority, &batch.value()).await?.count);
            }
            Ok(counts)
        })
        .await
    }

    /// Pop_max takes the last item of the highest priority, which was pushed last.
    #[bug(pop, "the recipe's pop(max=True)")]
    async fn pop_max_as_printed(&self, tx: &Tx, end: End, named: bool) -> Result<Option<Item>, Error> {
        if end == End::Min {
            return self.pop(tx, end, named).await;
        }
        let last = queue().items(tx, Serializable).await?.pop();
        last.iter().for_each(|last| tx.clear(&key(&last.place)));
        Ok(last.as_ref().map(shown))
    }

    /// The item is read in one transaction and removed in another.
    #[bug(pop, "a peek that is acted upon later")]
    async fn peek_then_pop(&self, session: &mut Session<Db>, end: End) -> Outcome<Answer<Option<Item>>> {
        let look = |tx| async move { queue().peek(&tx, end, Serializable).await };
        let act = |tx: Tx, first: Option<layer::Item>| async move {
            first.iter().for_each(|first| tx.clear(&key(&first.place)));
            Ok(vec![first.as_ref().map(shown)])
        };
        seen_before(session, look, act).await
    }

    /// A priority is encoded as the eight bytes of its two's complement, which sorts -1 above all.
    #[bug(push | push_some, "an encoding made by hand")]
    async fn unsigned_priority(&self, tx: &Tx, batch: &Batch) -> Result<Vec<i64>, Error> {
        if batch.length > LONGEST {
            return self.push(tx, batch).await;
        }
        self.push_some(tx, &Batch { priority: self.unsigned(batch.priority), ..*batch }).await
    }

    #[bug(pop, part_of = "unsigned-priority")]
    async fn unsigned_popped(&self, tx: &Tx, end: End, named: bool) -> Result<Option<Item>, Error> {
        Ok(self.pop(tx, end, named).await?.map(|item| self.decoded(item)))
    }

    #[bug(peek, part_of = "unsigned-priority")]
    async fn unsigned_peeked(&self, tx: &Tx, end: End, at_snapshot: bool) -> Result<Option<Item>, Error> {
        Ok(self.peek(tx, end, at_snapshot).await?.map(|item| self.decoded(item)))
    }

    #[bug(change, part_of = "unsigned-priority")]
    async fn unsigned_changed(&self, tx: &Tx, nth: u16, to: i64) -> Result<Option<(Name, i64)>, Error> {
        let changed = self.change(tx, nth, self.unsigned(to)).await?;
        Ok(changed.map(|(name, before)| (name, self.unsigned(before))))
    }

    #[bug(change_again, part_of = "unsigned-priority")]
    async fn unsigned_again(&self, tx: &Tx, nth: u16, to: i64) -> Result<Option<(Name, i64)>, Error> {
        let changed = self.change_again(tx, nth, self.unsigned(to)).await?;
        Ok(changed.map(|(name, before)| (name, self.unsigned(before))))
    }

    #[bug(items | pages, part_of = "unsigned-priority")]
    async fn unsigned_items(&self, tx: &Tx, isolation: Isolation) -> Result<Digest, Error> {
        let items = queue().items(tx, isolation).await?;
        Ok(shared::digest(items.iter().map(shown).map(|item| self.decoded(item))))
    }

    /// A change removes the item in one transaction and pushes it again in another.
    #[bug(change, "an operation cut in two")]
    async fn change_in_two(
        &self,
        session: &mut Session<Db>,
        nth: u16,
        to: i64,
    ) -> Outcome<Answer<Option<(Name, i64)>>> {
        let take = |tx: Tx| async move {
            let items = queue().items(&tx, Serializable).await?;
            let taken = usize::from(nth).checked_rem(items.len()).map(|nth| items[nth].clone());
            taken.iter().for_each(|item| tx.clear(&key(&item.place)));
            Ok::<_, Error>(taken)
        };
        let push = |tx, taken: Option<layer::Item>| async move {
            let Some(layer::Item { place, value }) = taken else { return Ok(vec![None]) };
            queue().push(&tx, place.id, to, &value).await?;
            Ok(vec![Some((item_name(place.id), place.priority))])
        };
        seen_before(session, take, push).await
    }

    /// An empty value is popped as if there were no item.
    #[bug(pop, "absent and empty treated alike")]
    async fn empty_is_nothing(&self, tx: &Tx, end: End) -> Result<Option<Item>, Error> {
        let first = queue().pop(tx, end).await?;
        Ok(first.as_ref().filter(|item| !item.value.is_empty()).map(shown))
    }

    /// The queue's range includes all keys with its prefix.
    #[bug(len, "prefix confusion")]
    async fn wide_range(&self, tx: &Tx, isolation: Isolation) -> Result<usize, Error> {
        let (begin, mut end) = queue().subspace().range();
        end.push(0xff);
        Ok(tx.get_range_all(RangeOption::from((begin, end)), isolation).await?.len())
    }

    /// Where a priority is sorted if its two's complement is taken for an unsigned number.
    fn unsigned(&self, priority: i64) -> i64 {
        priority ^ self.flipped
    }

    /// An item whose priority is stored like that.
    fn decoded(&self, (priority, name, value): Item) -> Item {
        (self.unsigned(priority), name, value)
    }
}
