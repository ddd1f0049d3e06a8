//! The sequential model: the items in their order, with their past for the calls that read at snapshot.

use super::{Batch, Digest, Item, LONGEST, MOST_KEY_BYTES, Name, Queue, Spot, digest, name};
use crate::shared::{self, item_id, prefix_before};
use foundationdb_tuple::{Bytes as TupleBytes, Versionstamp};
use imbl::OrdMap;
use shaketable::{models::timeline::Timeline, prelude::*, specimen::Content};
use shaketable_layers::queue::{Error, ItemId, Order};
use shaketable_tx::{KeyValue, limits};
use std::collections::BTreeSet;

/// The place of an item in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// By index and id.
    Index(i64, ItemId),
    /// By stamp, and by number within the transaction.
    Commit([u8; 10], usize),
}

/// The name of an item, if the name follows from its id, and its value.
type Named = (Option<Name>, Content);

/// The items in their order. A copy of the map is cheap.
type Items = OrdMap<Place, Named>;

pub(super) const UNSTAMPED: [u8; 10] = [0xff; 10];

/// The id of the item that exists from the beginning.
const FIRST: ItemId = ItemId([7; 16]);

/// The items, and what decides how they are enqueued.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    order: Order,
    prefix: Vec<u8>,
    items: Timeline<Items>,
}

impl Model {
    pub(super) fn enqueue(&mut self, batch: &Batch, at: &At) -> Result<Vec<Spot>, Error> {
        self.items.begin(at);
        let stamp = at.stamp.unwrap_or(UNSTAMPED);
        let mut spots = Vec::new();
        for (name, value) in batch.items() {
            limits::value_up_to(LONGEST, &self.prefix, &value)?;
            let (place, named, spot) = match self.order {
                Order::Index => {
                    let last = match self.items.snapshot().get_max() {
                        Some((Place::Index(index, _), _)) => *index,
                        _ => 0,
                    };
                    let index = last.checked_add(1).ok_or(Error::IndexesExhausted)?;
                    (Place::Index(index, item_id(name)), Some(name), Spot::Index(index))
                }
                Order::Commit => {
                    (Place::Commit(stamp, nth(self.items.now(), stamp)), None, Spot::Commit(Some(stamp)))
                }
            };
            let content = Content::from(&value);
            self.items.write(|items| drop(items.insert(place, (named, content.clone()))));
            spots.push(spot);
        }
        Ok(spots)
    }

    pub(super) fn enqueue_some(&mut self, batch: &Batch, at: &At) -> Result<Vec<Spot>, Error> {
        self.enqueue(batch, at)
    }

    pub(super) fn dequeue(&mut self, at: &At) -> Result<Option<Item>, Error> {
        let first = self.first(Serializable, at)?;
        if let Some((place, _)) = &first {
            self.items.write(|items| remove(items, *place));
        }
        Ok(first.map(item))
    }

    pub(super) fn peek(&mut self, isolation: Isolation, at: &At) -> Result<Option<Item>, Error> {
        Ok(self.first(isolation, at)?.map(item))
    }

    pub(super) fn is_empty(&mut self, isolation: Isolation, at: &At) -> Result<bool, Error> {
        Ok(self.first(isolation, at)?.is_none())
    }

    pub(super) fn len(&mut self, isolation: Isolation, at: &At) -> Result<usize, Error> {
        Ok(self.items(isolation, at)?.0)
    }

    pub(super) fn items(&mut self, isolation: Isolation, at: &At) -> Result<Digest, Error> {
        let all = self.all(isolation, at)?;
        shared::may_read_all(at, all.values().map(|(_, content)| content))?;
        Ok(digest(shown(all)))
    }

    pub(super) fn pages(&mut self, isolation: Isolation, _: usize, at: &At) -> Result<Digest, Error> {
        Ok(digest(shown(self.all(isolation, at)?)))
    }

    pub(super) fn deep(&self, beyond: usize) -> Result<(), Error> {
        Ok(limits::key_below(&prefix_before(MOST_KEY_BYTES, beyond), MOST_KEY_BYTES)?)
    }

    /// The items that a read sees.
    fn seen(&mut self, isolation: Isolation, at: &At) -> &Items {
        self.items.begin(at);
        self.items.seen(isolation == Snapshot)
    }

    /// The first item, which the transaction must not have appended itself.
    fn first(&mut self, isolation: Isolation, at: &At) -> Result<Option<(Place, Named)>, Error> {
        match self.seen(isolation, at).get_min() {
            Some((place, _)) if is_own(place, at) => Err(Error::OwnItemsUnreadable),
            first => Ok(first.map(|(place, item)| (*place, item.clone()))),
        }
    }

    /// All items, none of which the transaction may have appended itself.
    fn all(&mut self, isolation: Isolation, at: &At) -> Result<&Items, Error> {
        let seen = self.seen(isolation, at);
        match seen.keys().any(|place| is_own(place, at)) {
            true => Err(Error::OwnItemsUnreadable),
            false => Ok(seen),
        }
    }
}

impl Queue {
    /// The items that exist from the beginning.
    pub(super) fn first_items(&self) -> Items {
        let index = self.start.filter(|_| self.order == Order::Index);
        let item = |index| (Place::Index(index, FIRST), (None, Content::from(b"first")));
        index.map(item).into_iter().collect()
    }

    /// The model that holds these items.
    pub(super) fn holding(&self, items: Items) -> Model {
        Model { order: self.order, prefix: self.prefix.clone(), items: Timeline::new(items) }
    }

    /// Reads rows back, as a model.
    pub(super) fn read(&self, rows: &[KeyValue]) -> Result<Model, String> {
        let (mut items, mut ids) = (Items::new(), BTreeSet::new());
        for row in rows {
            let Some((place, id)) = self.place(&row.key, &items) else {
                return Err(format!("the key \"{}\" does not belong to an item", row.key.escape_ascii()));
            };
            if !ids.insert(id) {
                return Err(format!("two items have the id {id:?}"));
            }
            items.insert(place, (name(id), Content::from(&row.value)));
        }
        Ok(self.holding(items))
    }

    /// The place and the id of the item with this key, after those that are known already.
    fn place(&self, key: &[u8], known: &Items) -> Option<(Place, ItemId)> {
        match self.order {
            Order::Index => {
                let (index, id): (i64, TupleBytes<'_>) = self.space().unpack(key).ok()?;
                let id = ItemId((*id).try_into().ok()?);
                // That an id belongs to another attempt is not the point of the bug that draws a byte of
                // it; a second item with the same name is.
                let named = name(id).filter(|_| self.any_suffix).map(item_id);
                Some((Place::Index(index, named.unwrap_or(id)), id))
            }
            Order::Commit => {
                let (stamp, _, id): (Versionstamp, i64, TupleBytes<'_>) = self.space().unpack(key).ok()?;
                let stamp = stamp.transaction_version().try_into().ok()?;
                let id = ItemId((*id).try_into().ok()?);
                Some((Place::Commit(stamp, nth(known, stamp)), id))
            }
        }
    }
}

/// Whether the transaction at this place has appended the item itself: it has no key yet.
fn is_own(place: &Place, at: &At) -> bool {
    matches!(place, Place::Commit(stamp, _) if *stamp == at.stamp.unwrap_or(UNSTAMPED))
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
    match items.get_max() {
        Some((Place::Commit(last, nth), _)) if *last == stamp => nth + 1,
        _ => 0,
    }
}

/// An item of the model, as answers contain it.
fn item((place, (name, content)): (Place, Named)) -> Item {
    let spot = match place {
        Place::Index(index, _) => Spot::Index(index),
        Place::Commit(stamp, _) => Spot::Commit(Some(stamp)),
    };
    (spot, name, content)
}

fn shown(items: &Items) -> impl Iterator<Item = Item> {
    items.iter().map(|(place, named)| item((*place, named.clone())))
}
