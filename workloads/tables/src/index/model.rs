//! The sequential model: all records, with their past for the calls that read at snapshot.

use super::{
    Answer, Index, Key, Listed, Op, Span, Thing,
    operations::{listed, old_thing, old_user, region, told_thing, told_user},
    records::{covered, record_key, record_value, table},
};
use foundationdb_tuple::pack;
use shaketable::{
    models::timeline::Timeline,
    specimen::{At, Content},
};
use shaketable_layers::{
    id::Id,
    index::{Error, MAX_RECORD_BYTES, users::User},
};
use std::{collections::BTreeMap, fmt::Debug, ops::Bound};

/// The records, with their past.
pub type Model = Timeline<State>;

/// All records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub(super) users: BTreeMap<String, User>,
    pub(super) things: BTreeMap<Id, Thing>,
}

impl State {
    pub(super) fn set(&mut self, user: &User) {
        self.users.insert(user.id.clone(), user.clone());
    }

    fn users(&self, has: impl Fn(&User) -> bool) -> impl Iterator<Item = &User> {
        self.users.values().filter(move |user| has(user))
    }

    /// The things that have a key, in the order of the keys, then of the ids.
    fn keyed<K: Ord>(&self, key: impl Fn(&Thing) -> Option<K>) -> Vec<(K, &Thing)> {
        let mut keyed: Vec<_> = self.things.values().filter_map(|thing| Some((key(thing)?, thing))).collect();
        keyed.sort_by(|(a, one), (b, other)| (a, &one.id).cmp(&(b, &other.id)));
        keyed
    }

    fn between<K: Ord + Debug>(
        &self,
        key: impl Fn(&Thing) -> Option<K>,
        covers: impl Fn(&Thing) -> Content,
        (from, to): (Bound<&K>, Bound<&K>),
    ) -> Listed {
        let above = |key: &K| match from {
            Bound::Included(from) => key >= from,
            Bound::Excluded(from) => key > from,
            Bound::Unbounded => true,
        };
        let below = |key: &K| match to {
            Bound::Included(to) => key <= to,
            Bound::Excluded(to) => key < to,
            Bound::Unbounded => true,
        };
        let keyed = self.keyed(key).into_iter().filter(|(key, _)| above(key) && below(key));
        listed(keyed.map(|(key, thing)| (key, &thing.id, covers(thing))))
    }
}

impl Index {
    /// Performs one call on the model.
    pub(super) fn replayed(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
        model.begin(at);
        let now = model.now();
        Ok(match op {
            Op::SetUser(user) => {
                user_fits(user)?;
                let old = now.users.get(&user.id).cloned();
                model.write(|state| state.set(user));
                old_user(old)
            }
            Op::DeleteUser(id) => {
                let old = now.users.get(id).cloned();
                model.write(|state| drop(state.users.remove(id)));
                old_user(old)
            }
            Op::Swap(one, other) => {
                let users = now.users.get(one).cloned().zip(now.users.get(other).cloned());
                let Some((one, other)) = users else { return Ok(Answer::Swapped(false)) };
                model.write(|state| {
                    state.set(&User { zipcode: other.zipcode.clone(), ..one.clone() });
                    state.set(&User { zipcode: one.zipcode.clone(), ..other.clone() });
                });
                Answer::Swapped(true)
            }
            Op::GetUser(id) => old_user(now.users.get(id).cloned()),
            Op::InRegion(zip, covered) => {
                let found = now.users(|user| user.zipcode.as_ref() == Some(zip)).cloned();
                let (ids, named): (Vec<_>, Vec<_>) =
                    found.map(|user| (user.id.clone(), (user.id, user.name))).unzip();
                region(&ids, covered.then_some(&named[..]))
            }
            Op::InRegions(from, to) => {
                let mut found: Vec<_> =
                    now.users.values().filter_map(|user| Some((user.zipcode.as_ref()?, &user.id))).collect();
                found.retain(|(zip, _)| from <= *zip && *zip < to);
                found.sort();
                Answer::Found(vec![listed(found)])
            }
            Op::ByName(name) => {
                Answer::Found(vec![listed(now.users(|user| user.name == *name).map(|user| &user.id))])
            }
            Op::Users(snapshot) => {
                Answer::Found(vec![listed(model.seen(*snapshot).users.values().map(told_user))])
            }
            Op::Set(thing) => {
                thing_fits(thing)?;
                let old = now.things.get(&thing.id).cloned();
                model.write(|state| drop(state.things.insert(thing.id.clone(), thing.clone())));
                old_thing(old)
            }
            Op::Delete(id) => {
                let old = now.things.get(id).cloned();
                model.write(|state| drop(state.things.remove(id)));
                old_thing(old)
            }
            Op::Get(id, snapshot) => old_thing(model.seen(*snapshot).things.get(id).cloned()),
            Op::Things(snapshot) => {
                Answer::Found(vec![listed(model.seen(*snapshot).things.values().map(told_thing))])
            }
            Op::Find(key, snapshot) | Op::Pages(key, snapshot, _) => {
                let has = |thing: &Thing| match key {
                    Key::Tag(tag) => thing.tag.as_ref() == Some(tag),
                    Key::TagRank(tag, rank) => thing.tag.as_ref() == Some(tag) && thing.rank == *rank,
                    Key::Rank(rank) => thing.rank == *rank,
                };
                let covers = |thing: &Thing| match key {
                    Key::TagRank(..) => Content::from(&covered(thing)),
                    _ => nothing(thing),
                };
                let found: Vec<_> =
                    model.seen(*snapshot).things.values().filter(|thing| has(thing)).collect();
                Answer::Found(vec![
                    listed(found.iter().map(|thing| &thing.id)),
                    listed(found.iter().map(|thing| (&thing.id, covers(thing)))),
                ])
            }
            Op::Between(span, snapshot) => {
                let seen = model.seen(*snapshot);
                let tag_rank = |thing: &Thing| thing.tag.clone().map(|tag| (tag, thing.rank));
                let both = |thing: &Thing| Content::from(&covered(thing));
                Answer::Found(vec![match span {
                    Span::Tag(from, to) => {
                        seen.between(|thing| thing.tag.clone(), nothing, (from.as_ref(), to.as_ref()))
                    }
                    Span::TagRank(from, to) => seen.between(tag_rank, both, (from.as_ref(), to.as_ref())),
                    Span::Rank(from, to) => {
                        seen.between(|thing| Some(thing.rank), nothing, (from.as_ref(), to.as_ref()))
                    }
                }])
            }
            Op::Undeclared(_) => return Err(Error::UnknownIndex("body")),
        })
    }
}

/// Refuses what exceeds a limit, in the order in which the layer promises to check: the record, then its
/// indexes.
fn fits(
    key: usize,
    record: usize,
    entries: impl IntoIterator<Item = (&'static str, Option<(usize, usize)>)>,
) -> Result<(), Error> {
    let key_fits = |index, bytes| match bytes {
        0..=10_000 => Ok(()),
        _ => Err(Error::KeyTooLarge { index, bytes, limit: 10_000 }),
    };
    key_fits("records", key)?;
    if record > MAX_RECORD_BYTES {
        return Err(Error::RecordTooLarge { bytes: record, limit: MAX_RECORD_BYTES });
    }
    for (index, entry) in entries {
        let Some((key, bytes)) = entry else { continue };
        key_fits(index, key)?;
        if bytes > 100_000 {
            return Err(Error::CoveredTooLarge { index, bytes, limit: 100_000 });
        }
    }
    Ok(())
}

fn user_fits(user: &User) -> Result<(), Error> {
    let key = |index: &str, key: &String| table().pack(&("index", index, key, &user.id)).len();
    let zipcode = |index| user.zipcode.as_ref().map(|zip| key(index, zip));
    let record = pack(&user.id).len() + record_value(user).len();
    let entries = [
        ("zipcode", zipcode("zipcode").map(|key| (key, 0))),
        ("zipcode_name", zipcode("zipcode_name").map(|key| (key, user.name.len()))),
        ("name", Some((key("name", &user.name), 0))),
    ];
    fits(record_key(&user.id).len(), record, entries)
}

fn thing_fits(thing: &Thing) -> Result<(), Error> {
    let tagged = thing.tag.is_some().then(|| (0, covered(thing).len()));
    fits(0, thing.size(), [("tag_rank", tagged)])
}

fn nothing(_: &Thing) -> Content {
    Content::from(b"")
}
