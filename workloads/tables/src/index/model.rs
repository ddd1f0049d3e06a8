//! The sequential model: all records, with their past for the calls that read at snapshot.

use super::{
    records::{Thing, covered, record_key, record_value, table},
    shown::{Listed, ShownThing, ShownUser, listed, region, shown_thing, shown_user},
    values::{Ends, Key, Span},
};
use foundationdb_tuple::pack;
use imbl::OrdMap;
use shaketable::{
    models::timeline::Timeline,
    prelude::{At, Isolation, Snapshot},
    specimen::Content,
};
use shaketable_layers::{
    id::Id,
    index::{Error, MAX_RECORD_BYTES, users::User},
};
use std::{fmt::Debug, ops::RangeBounds};

/// The records, with their past.
#[derive(Clone, Debug, PartialEq)]
pub struct Model(Timeline<State>);

/// All records. Copies are cheap.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    pub(super) users: OrdMap<String, User>,
    pub(super) things: OrdMap<Id, Thing>,
}

impl State {
    pub(super) fn set(&mut self, user: &User) {
        self.users.insert(user.id.clone(), user.clone());
    }

    fn users(&self, has: impl Fn(&User) -> bool) -> impl Iterator<Item = &User> {
        self.users.values().filter(move |user| has(user))
    }

    /// The things that have a key in a range, in the order of the keys, then of the ids.
    fn between<K: Ord + Debug>(
        &self,
        key: impl Fn(&Thing) -> Option<K>,
        covers: impl Fn(&Thing) -> Content,
        range: &Ends<K>,
    ) -> Listed {
        let mut keyed: Vec<_> = self.things.values().filter_map(|thing| Some((key(thing)?, thing))).collect();
        keyed.retain(|(key, _)| range.contains(key));
        keyed.sort_by(|(a, one), (b, other)| (a, &one.id).cmp(&(b, &other.id)));
        listed(keyed.into_iter().map(|(key, thing)| (key, &thing.id, covers(thing))))
    }
}

impl Model {
    pub(super) fn new(state: State) -> Model {
        Model(Timeline::new(state))
    }

    /// The records that a read sees.
    fn seen(&mut self, isolation: Isolation, at: &At) -> &State {
        self.0.begin(at);
        self.0.seen(isolation == Snapshot)
    }

    /// The records that a serializable read sees.
    fn now(&mut self, at: &At) -> &State {
        self.0.begin(at);
        self.0.now()
    }

    pub(super) fn set_user(&mut self, user: &User, at: &At) -> Result<Option<ShownUser>, Error> {
        user_fits(user)?;
        let old = self.get_user(&user.id, at);
        self.0.write(|state| state.set(user));
        old
    }

    pub(super) fn delete_user(&mut self, user_id: &str, at: &At) -> Result<Option<ShownUser>, Error> {
        let old = self.get_user(user_id, at);
        self.0.write(|state| drop(state.users.remove(user_id)));
        old
    }

    pub(super) fn swap(&mut self, one: &str, other: &str, at: &At) -> Result<bool, Error> {
        let users = &self.now(at).users;
        let both = users.get(one).cloned().zip(users.get(other).cloned());
        let Some((one, other)) = both else { return Ok(false) };
        self.0.write(|state| {
            state.set(&User { zipcode: other.zipcode.clone(), ..one.clone() });
            state.set(&User { zipcode: one.zipcode.clone(), ..other.clone() });
        });
        Ok(true)
    }

    pub(super) fn get_user(&mut self, user_id: &str, at: &At) -> Result<Option<ShownUser>, Error> {
        Ok(self.now(at).users.get(user_id).map(shown_user))
    }

    pub(super) fn in_region(&mut self, zip: &str, covered: bool, at: &At) -> Result<Vec<Listed>, Error> {
        let found = self.now(at).users(|user| user.zipcode.as_deref() == Some(zip)).cloned();
        let (ids, named): (Vec<_>, Vec<_>) =
            found.map(|user| (user.id.clone(), (user.id, user.name))).unzip();
        Ok(region(&ids, covered.then_some(&named[..])))
    }

    pub(super) fn in_regions(&mut self, from: &str, to: &str, at: &At) -> Result<Listed, Error> {
        let users = self.now(at).users.values();
        let mut found: Vec<_> = users.filter_map(|user| Some((user.zipcode.as_deref()?, &user.id))).collect();
        found.retain(|(zip, _)| from <= *zip && *zip < to);
        found.sort();
        Ok(listed(found))
    }

    pub(super) fn by_name(&mut self, name: &str, at: &At) -> Result<Listed, Error> {
        Ok(listed(self.now(at).users(|user| user.name == name).map(|user| &user.id)))
    }

    pub(super) fn all_users(&mut self, isolation: Isolation, at: &At) -> Result<Listed, Error> {
        Ok(listed(self.seen(isolation, at).users.values().map(shown_user)))
    }

    pub(super) fn set(&mut self, thing: &Thing, at: &At) -> Result<Option<ShownThing>, Error> {
        thing_fits(thing)?;
        let old = self.now(at).things.get(&thing.id).map(shown_thing);
        self.0.write(|state| drop(state.things.insert(thing.id.clone(), thing.clone())));
        Ok(old)
    }

    pub(super) fn delete(&mut self, id: &Id, at: &At) -> Result<Option<ShownThing>, Error> {
        let old = self.now(at).things.get(id).map(shown_thing);
        self.0.write(|state| drop(state.things.remove(id)));
        Ok(old)
    }

    pub(super) fn get(
        &mut self,
        isolation: Isolation,
        id: &Id,
        at: &At,
    ) -> Result<Option<ShownThing>, Error> {
        Ok(self.seen(isolation, at).things.get(id).map(shown_thing))
    }

    pub(super) fn find(&mut self, isolation: Isolation, key: &Key, at: &At) -> Result<[Listed; 2], Error> {
        let has = |thing: &&Thing| match key {
            Key::Tag(tag) => thing.tag.as_ref() == Some(tag),
            Key::TagRank(tag, rank) => thing.tag.as_ref() == Some(tag) && thing.rank == *rank,
            Key::Rank(rank) => thing.rank == *rank,
        };
        let covers = |thing: &Thing| match key {
            Key::TagRank(..) => twice(thing),
            _ => nothing(thing),
        };
        let found: Vec<_> = self.seen(isolation, at).things.values().filter(has).collect();
        Ok([
            listed(found.iter().map(|thing| &thing.id)),
            listed(found.iter().map(|thing| (&thing.id, covers(thing)))),
        ])
    }

    pub(super) fn pages(
        &mut self,
        isolation: Isolation,
        key: &Key,
        _: usize,
        at: &At,
    ) -> Result<[Listed; 2], Error> {
        self.find(isolation, key, at)
    }

    pub(super) fn all_things(&mut self, isolation: Isolation, at: &At) -> Result<Listed, Error> {
        Ok(listed(self.seen(isolation, at).things.values().map(shown_thing)))
    }

    pub(super) fn between(&mut self, isolation: Isolation, span: Span, at: &At) -> Result<Listed, Error> {
        let seen = self.seen(isolation, at);
        Ok(match span {
            Span::Tag(ends) => seen.between(|thing| thing.tag.clone(), nothing, &ends),
            Span::TagRank(ends) => seen.between(|thing| Some((thing.tag.clone()?, thing.rank)), twice, &ends),
            Span::Rank(ends) => seen.between(|thing| Some(thing.rank), nothing, &ends),
        })
    }

    pub(super) fn undeclared(&self, _: bool) -> Result<Listed, Error> {
        Err(Error::UnknownIndex("body"))
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

fn twice(thing: &Thing) -> Content {
    Content::from(&covered(thing))
}
