//! The sequential model: the items in their order, with their past for the calls that read at snapshot.

use super::{
    Answer, Item, Look, Name, Op, Queue, Spot,
    operations::{LONGEST, digest, name},
    planted,
};
use crate::{
    beside,
    shared::{self, item_id, prefix_before},
};
use foundationdb_tuple::{Bytes as TupleBytes, Versionstamp};
use shaketable::{
    models::timeline::Timeline,
    specimen::{At, Content},
};
use shaketable_layers::queue::{Error, ItemId, Order};
use shaketable_tx::{self as tx, Tx, limits};
use std::collections::{BTreeMap, BTreeSet};

/// The place of an item in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// By index and id.
    Index(i64, ItemId),
    /// By stamp, and by number within the transaction.
    Commit([u8; 10], usize),
}

/// The items in their order, each with its name if the name follows from its id.
pub type Items = BTreeMap<Place, (Option<Name>, Content)>;

pub(super) const UNSTAMPED: [u8; 10] = [0xff; 10];

/// The id of the item that exists from the beginning.
const FIRST: ItemId = ItemId([7; 16]);

/// The maximum length of a key below the queue's prefix.
pub(super) const MOST_KEY_BYTES: usize = 64;

impl Queue {
    /// Performs one call on the model.
    pub(super) fn replayed(&self, model: &mut Timeline<Items>, op: &Op, at: &At) -> Result<Answer, Error> {
        model.begin(at);
        let stamp = at.stamp.unwrap_or(UNSTAMPED);
        let is_own = |place: &Place| matches!(place, Place::Commit(s, _) if *s == stamp);
        let first = |items: &Items| match items.first_key_value() {
            Some((place, _)) if is_own(place) => Err(Error::OwnItemsUnreadable),
            first => Ok(first.map(|(place, item)| (*place, item.clone()))),
        };
        Ok(match op {
            Op::Enqueue(batch) => {
                let mut spots = Vec::new();
                for (name, value) in batch.items() {
                    limits::value_up_to(LONGEST, &self.prefix, &value)?;
                    let (place, spot) = match self.order {
                        Order::Index => {
                            let last = match model.snapshot().last_key_value() {
                                Some((Place::Index(index, _), _)) => *index,
                                _ => 0,
                            };
                            let index = last.checked_add(1).ok_or(Error::IndexesExhausted)?;
                            (Place::Index(index, item_id(name)), Spot::Index(index))
                        }
                        Order::Commit => {
                            (Place::Commit(stamp, nth(model.now(), stamp)), Spot::Commit(Some(stamp)))
                        }
                    };
                    let named = (self.order == Order::Index).then_some(name);
                    let content = Content::from(&value);
                    model.write(|items| drop(items.insert(place, (named, content.clone()))));
                    spots.push(spot);
                }
                Answer::Enqueued(spots)
            }
            Op::Dequeue => {
                let first = first(model.now())?;
                if let Some((place, _)) = &first {
                    model.write(|items| remove(items, *place));
                }
                Answer::First(first.map(item))
            }
            Op::Look(look, snapshot) => {
                let seen = model.seen(*snapshot);
                if matches!(look, Look::Len | Look::Items | Look::Pages(_)) && seen.keys().any(is_own) {
                    return Err(Error::OwnItemsUnreadable);
                }
                if matches!(look, Look::Len | Look::Items) {
                    shared::may_read_all(at, seen.values().map(|(_, content)| content))?;
                }
                match look {
                    Look::First => Answer::First(first(seen)?.map(item)),
                    Look::IsEmpty => Answer::IsEmpty(first(seen)?.is_none()),
                    Look::Len => Answer::Len(seen.len()),
                    Look::Items | Look::Pages(_) => {
                        digest(seen.iter().map(|(place, named)| item((*place, named.clone()))))
                    }
                }
            }
            Op::Deep(beyond) => {
                limits::key_below(&prefix_before(MOST_KEY_BYTES, *beyond), MOST_KEY_BYTES)?;
                Answer::Enqueued(Vec::new())
            }
        })
    }

    /// Reads everything that is stored, as a model. The inner error describes a broken invariant.
    pub(super) async fn read(&self, tx: &Tx) -> tx::Result<Result<Timeline<Items>, String>> {
        if let Err(why) = beside::check(tx, &beside::of(&self.prefix)).await? {
            return Ok(Err(why));
        }
        let rows = shared::rows(tx, &self.space()).await?;
        let mut items = Items::new();
        let mut ids = BTreeSet::new();
        for row in rows {
            let Some((place, id)) = self.place(&row.key, &items) else {
                return Ok(Err(format!("the key \"{}\" does not belong to an item", row.key.escape_ascii())));
            };
            if !ids.insert(id) {
                return Ok(Err(format!("two items have the id {id:?}")));
            }
            items.insert(place, (name(id), Content::from(&row.value)));
        }
        Ok(Ok(Timeline::new(items)))
    }

    /// The items that exist from the beginning.
    pub(super) fn first_items(&self) -> Items {
        let index = self.start.filter(|_| self.order == Order::Index);
        let item = |index| (Place::Index(index, FIRST), (None, Content::from(b"first")));
        index.map(item).into_iter().collect()
    }
}

impl Queue {
    /// The place and the id of the item with this key, after those that are known already.
    fn place(&self, key: &[u8], known: &Items) -> Option<(Place, ItemId)> {
        Some(match self.order {
            Order::Index => {
                let (index, id): (i64, TupleBytes<'_>) = self.space().unpack(key).ok()?;
                let id = ItemId((*id).try_into().ok()?);
                (Place::Index(index, planted::known(self.planted, id)), id)
            }
            Order::Commit => {
                let (stamp, _, id): (Versionstamp, i64, TupleBytes<'_>) = self.space().unpack(key).ok()?;
                let stamp = stamp.transaction_version().try_into().ok()?;
                let id = ItemId((*id).try_into().ok()?);
                (Place::Commit(stamp, nth(known, stamp)), id)
            }
        })
    }
}

/// Removes an item, and renumbers the later ones with the same stamp.
fn remove(items: &mut Items, place: Place) {
    items.remove(&place);
    let Place::Commit(stamp, nth) = place else { return };
    let same = items.range(place..=Place::Commit(stamp, usize::MAX)).map(|(place, _)| *place);
    for (nth, place) in (nth..).zip(same.collect::<Vec<_>>()) {
        if let Some(item) = items.remove(&place) {
            items.insert(Place::Commit(stamp, nth), item);
        }
    }
}

/// The number of the next item with this stamp, which must be the largest one.
fn nth(items: &Items, stamp: [u8; 10]) -> usize {
    match items.last_key_value() {
        Some((Place::Commit(last, nth), _)) if *last == stamp => nth + 1,
        _ => 0,
    }
}

/// An item of the model, as answers contain it.
fn item((place, (name, content)): (Place, (Option<Name>, Content))) -> Item {
    let spot = match place {
        Place::Index(index, _) => Spot::Index(index),
        Place::Commit(stamp, _) => Spot::Commit(Some(stamp)),
    };
    (spot, name, content)
}
