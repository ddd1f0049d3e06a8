//! The sequential model: the items at their places, with their past for the calls that read at snapshot.

use super::{
    Answer, Op, Queue,
    client::{DEEP_BYTES, deep},
    operations::{LONGEST, digest},
    queue,
};
use crate::shared::{item_id, item_name, may_read_all};
use shaketable::{
    models::timeline::Timeline,
    specimen::{At, Content},
};
use shaketable_layers::{
    priority_queue::{End, Error, Place},
    queue::ItemId,
};
use shaketable_tx::limits;
use std::collections::BTreeMap;

/// The items, each at its place.
pub type Items = BTreeMap<Place, Content>;

/// The first item at an end.
pub(super) fn first(items: &Items, end: End) -> Option<(Place, Content)> {
    let priority = match end {
        End::Min => items.first_key_value()?.0.priority,
        End::Max => items.last_key_value()?.0.priority,
    };
    let (place, value) = items.iter().find(|(place, _)| place.priority == priority)?;
    Some((*place, value.clone()))
}

/// Inserts an item after all items of its priority that a snapshot shows.
pub(super) fn insert(
    model: &mut Timeline<Items>,
    id: ItemId,
    priority: i64,
    value: Content,
) -> Result<Place, Error> {
    let least = Place { priority, count: i64::MIN, id: ItemId([0; 16]) };
    let most = Place { priority, count: i64::MAX, id: ItemId([255; 16]) };
    let count = match model.snapshot().range(least..=most).next_back() {
        None => 0,
        Some((last, _)) => last.count.checked_add(1).ok_or(Error::CountsExhausted(priority))?,
    };
    let place = Place { priority, count, id };
    model.write(|items| drop(items.insert(place, value.clone())));
    Ok(place)
}

pub(super) fn change(model: &mut Timeline<Items>, place: Place, to: i64) -> Result<(), Error> {
    let value = model.now().get(&place).ok_or(Error::Gone(place))?.clone();
    if to != place.priority {
        insert(model, place.id, to, value)?;
        model.write(|items| drop(items.remove(&place)));
    }
    Ok(())
}

impl Queue {
    /// Performs one call on the model.
    pub(super) fn replayed(&self, model: &mut Timeline<Items>, op: &Op, at: &At) -> Result<Answer, Error> {
        model.begin(at);
        let item = |(at, value): (Place, Content)| (at.priority, item_name(at.id), value);
        if let Op::Len(snapshot) | Op::Items(snapshot) = op {
            may_read_all(at, model.seen(*snapshot).values())?;
        }
        if let Op::Change { .. } = op {
            may_read_all(at, model.snapshot().values())?;
        }
        Ok(match op {
            Op::Push(batch) => {
                let under = queue().subspace().subspace(&batch.priority);
                limits::value_up_to(LONGEST, under.bytes(), &batch.value())?;
                let value = Content::from(&batch.value());
                let push = |name| Ok(insert(model, item_id(name), batch.priority, value.clone())?.count);
                Answer::Pushed(batch.names().map(push).collect::<Result<_, Error>>()?)
            }
            Op::Pop(end, _) => {
                let first = first(model.now(), *end);
                if let Some((place, _)) = &first {
                    model.write(|items| drop(items.remove(place)));
                }
                Answer::First(first.map(item))
            }
            Op::Peek(end, snapshot) => Answer::First(first(model.seen(*snapshot), *end).map(item)),
            Op::IsEmpty(snapshot) => Answer::IsEmpty(model.seen(*snapshot).is_empty()),
            Op::Len(snapshot) => Answer::Len(model.seen(*snapshot).len()),
            Op::Change { nth, to, stale } => {
                let seen = model.snapshot();
                let Some(nth) = nth.checked_rem(seen.len()) else { return Ok(Answer::Changed(None)) };
                let Some(place) = seen.keys().nth(nth).copied() else { return Ok(Answer::Changed(None)) };
                change(model, place, *to)?;
                if *stale {
                    change(model, place, *to)?;
                }
                Answer::Changed(Some((item_name(place.id), place.priority)))
            }
            Op::Items(snapshot) | Op::Pages(snapshot, _) => {
                let items = model.seen(*snapshot).iter();
                digest(items.map(|(at, value)| (at.priority, item_name(at.id), value.clone())))
            }
            Op::Deep(beyond) => {
                limits::key_below(&deep(*beyond), DEEP_BYTES)?;
                Answer::Pushed(vec![0])
            }
        })
    }

    pub(super) fn first_items(&self) -> Items {
        let place = |count| Place { priority: self.priorities()[0], count, id: item_id((u16::MAX, 0, 0)) };
        self.start.map(|count| (place(count), Content::from(b"first"))).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A push's count follows from what its transaction read, not from what exists when it commits.
    #[test]
    fn counts_follow_from_the_read_version() {
        let at = |version: u8, read| At {
            stamp: Some([0, 0, 0, 0, 0, 0, 0, version, 0, 0]),
            read_version: Some(read),
            ..At::default()
        };
        let mut model = Timeline::new(Items::new());
        let mut push = |number, at: At| {
            model.begin(&at);
            insert(&mut model, item_id((0, number, 0)), 7, Content::of(0, 0)).unwrap().count
        };
        assert_eq!(push(1, at(10, 0)), 0);
        assert_eq!(push(2, at(10, 0)), 1);
        assert_eq!(push(3, at(20, 9)), 0);
        assert_eq!(push(4, at(30, 20)), 2);
        let max = first(model.now(), End::Max);
        assert_eq!(max.as_ref().map(|(place, _)| place.count), Some(0));
        assert_eq!(first(model.now(), End::Min), max);
    }
}
