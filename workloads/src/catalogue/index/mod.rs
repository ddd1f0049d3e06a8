//! `index`: records that move in their indexes, found by key and by range of keys.
//!
//! Two tables beside each other: the users of the simple index recipe, found by zip code and by name, and
//! things whose ids and tags are bytes, text and numbers, with an index over two elements and one that covers
//! more than the record holds. Ids and keys are few, so that clients meet, and easily confused. Every call
//! composes with others in one transaction; single writes are recorded in the layer's own answers. At every
//! version each index is the projection of the records, reckoned here anew from the key schema: an entry for
//! every record that has a key in it, and none besides.

mod planted;

use crate::beside;
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, Subspace, pack, unpack};
use proptest::{option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    models::timeline::Timeline,
    specimen::{self, At, Content, Recorded, Specimen, UNRECORDED},
    strategies,
    workload::{Bug, Outcome},
};
use shaketable_layers::{
    id::Id,
    index::{
        self as layer, Error, MAX_RECORD_BYTES, Old, Record, Table, covers_nothing,
        users::{User, Users},
    },
    once::{self, Fate, OpId, Session},
    tx::{
        self, Database, Env,
        Isolation::{self, Serializable, Snapshot},
        RangeOption, Transaction,
    },
};
use shaketable_sim::{seed::Stream, trace::hash_bytes};
use std::{collections::BTreeMap, fmt::Debug, ops::Bound};

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a write is retried after an unknown result without an operation record", "a blind write done twice";
    AsPrinted = "as-printed", "the zip code is part of the user's key, and old index entries stay", "the recipe's set_user";
    OldAtSnapshot = "old-at-snapshot", "the record to be replaced is read at snapshot", "a read without isolation";
    DeleteForgets = "delete-forgets", "deleting a user leaves the zip code's entries", "an index forgotten on delete";
    DeleteByMemory = "delete-by-memory", "deleting a user removes the entries of what the client saw before, not of what is stored", "an index forgotten on delete";
    NameForgotten = "name-forgotten", "the index of names is maintained for new users, not for renamed ones", "an index forgotten on one path";
    CoveredStale = "covered-stale", "a new name does not reach the covering index unless the zip code changes", "an index forgotten on one path, covering";
    CoveredOfOld = "covered-of-old", "a user who moves takes the old name along in the covering index", "a covered part taken from the wrong record";
    NullIndexed = "null-indexed", "an unknown zip code is indexed when set and not when removed", "unset values, decided twice";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole lookup", "a range that is longer than a batch";
    TwoTransactions = "two-transactions", "index entries are written in a transaction of their own", "a database handed where a transaction belongs";
    KeptOld = "kept-old", "the old record read in the first attempt is kept for the retries", "state that survives a retry";
    AnswerOfRetry = "answer-of-retry", "a retry answers with what it replaced itself", "the answer of the last attempt";
    TimeoutIsRefusal = "timeout-is-refusal", "an unknown outcome is reported as a failure", "a timeout reported as a failure";
    LookupThenGet = "lookup-then-get", "a lookup reads entries and records in two transactions", "an answer used in another transaction, its general form";
    LookupApart = "lookup-apart", "a lookup is done in a transaction of its own, before the writes it was called after", "a look-up that does not compose";
    FindAtSnapshot = "find-at-snapshot", "lookups before a write are done at snapshot", "a snapshot read in a composed look-up";
    TruncatedKey = "truncated-key", "a name is indexed under its first hundred bytes", "an index entry under a truncated key";
    NulUnescaped = "nul-unescaped", "a zip code goes into the index between its type and a NUL, whatever it holds", "an escape left out";
    PrefixLookup = "prefix-lookup", "a lookup by name finds all names that begin so", "prefix confusion";
    BetweenIncludes = "between-includes", "a range of zip codes includes its end", "a bound off by one";
    BetweenExcludes = "between-excludes", "a range without its start leaves out what goes on with a NUL", "the key after a key, where its entries are meant";
    StartsAlike = "starts-alike", "a zip code that begins as the new one does is taken for the same, and its entries stay", "a stale entry on one path";
    SwapForgets = "swap-forgets", "exchanging zip codes does not maintain the covering index", "a stale entry on one path";
    TypeLost = "type-lost", "a tag of bytes is looked up as text", "equal under one encoding, different under another";
    LimitBeyond = "limit-beyond", "a record one byte beyond the limit is stored", "a limit off by one";
    CoveredUnchecked = "covered-unchecked", "what an index covers is cut to what fits", "a limit that is ignored";
}

/// So many records are read at a time.
const PAGE: usize = 3;

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Index {
    /// How many users, zip codes and names are used.
    users: usize,
    zipcodes: usize,
    names: usize,
    /// Names begin with so many equal bytes.
    padding: usize,
    /// How many further users are there from the beginning, all with one zip code.
    crowd: u16,
    /// From where on and how many ids and tags are used.
    ids: (usize, usize),
    /// How often an operation writes, and how often it looks; the same for things.
    mix: [u32; 4],
    pub(crate) planted: Option<Planted>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Stores a user.
    SetUser(User),
    /// Removes a user.
    DeleteUser(String),
    /// Exchanges the zip codes of two users, if both are there.
    Swap(String, String),
    /// Reads a user.
    GetUser(String),
    /// Finds the users with a zip code, by the index and by the covering one.
    InRegion(String),
    /// Finds the users with a zip code from the first on, before the second.
    InRegions(String, String),
    /// Finds the users with a name.
    ByName(String),
    /// Lists the users; at snapshot if asked to.
    Users(bool),
    /// Stores a thing.
    Set(Thing),
    /// Removes a thing.
    Delete(Id),
    /// Reads a thing; at snapshot if asked to.
    Get(Id, bool),
    /// Finds the things with a key, the second time with what is covered; at snapshot if asked to.
    Find(Key, bool),
    /// Finds the things with a key, a few at a time.
    Pages(Key, bool),
    /// Lists the things, a few at a time; at snapshot if asked to.
    Things(bool),
    /// Finds the things with a key in a range; at snapshot if asked to.
    Between(Span, bool),
    /// Looks into an index that is not declared.
    Undeclared(bool),
}

/// A key of an index over things.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Key {
    /// In `tag`.
    Tag(Id),
    /// In `tag_rank`.
    TagRank(Id, i64),
    /// In `rank`.
    Rank(i64),
}

/// A range of keys of an index over things.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Span {
    /// In `tag`.
    Tag(Bound<Id>, Bound<Id>),
    /// In `tag_rank`.
    TagRank(Bound<(Id, i64)>, Bound<(Id, i64)>),
    /// In `rank`.
    Rank(Bound<i64>, Bound<i64>),
}

/// A record with keys of several types.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thing {
    id: Id,
    tag: Option<Id>,
    rank: i64,
    body: Bytes,
}

impl Record for Thing {
    type Id = Id;

    const INDEXES: &'static [layer::Index<Thing>] = &[
        layer::Index { name: "tag", key: |thing| thing.tag.as_ref().map(pack), covers: covers_nothing },
        layer::Index { name: "tag_rank", key: tag_rank, covers: covered },
        layer::Index { name: "rank", key: |thing| Some(pack(&thing.rank)), covers: covers_nothing },
    ];

    fn id(&self) -> &Id {
        &self.id
    }

    fn encode(&self) -> Vec<u8> {
        pack(&(&self.tag, self.rank, TupleBytes::from(&self.body[..])))
    }

    fn decode(id: Id, bytes: &[u8]) -> Option<Thing> {
        let (tag, rank, body): (_, _, TupleBytes<'_>) = unpack(bytes).ok()?;
        Some(Thing { id, tag, rank, body: Bytes::copy_from_slice(&body) })
    }
}

fn tag_rank(thing: &Thing) -> Option<Vec<u8>> {
    thing.tag.as_ref().map(|tag| pack(&(tag, thing.rank)))
}

/// Twice the body, so that there are records that fit while what is covered of them does not.
pub(crate) fn covered(thing: &Thing) -> Vec<u8> {
    thing.body.repeat(2)
}

impl Thing {
    /// The size that the limit of records is about.
    pub(crate) fn size(&self) -> usize {
        pack(&self.id).len() + self.encode().len()
    }

    /// With a body that makes it this large; it has no NUL, which would take two bytes.
    fn sized(mut self, bytes: usize) -> Thing {
        self.body = Bytes::new();
        self.body = vec![b'b'; bytes - self.size()].into();
        self
    }
}

/// What a call answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Stored or deleted; this user was there before. Or this user is there.
    User(Option<ToldUser>),
    /// Whether both users were there.
    Swapped(bool),
    /// Stored or deleted; this thing was there before. Or this thing is there.
    Thing(Option<ToldThing>),
    /// These were found.
    Found(Vec<Listed>),
}

/// A user as answers tell it: id, name, zip code.
pub type ToldUser = (String, Content, Option<String>);

/// A thing as answers tell it: id, tag, rank, body.
pub type ToldThing = (Id, Option<Id>, i64, Content);

/// A list as answers tell it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    count: usize,
    digest: u64,
    start: Vec<String>,
}

/// A list, whatever its length, in an answer that a session can record.
pub(crate) fn listed<I: Debug>(items: impl IntoIterator<Item = I>) -> Listed {
    let mut list = Listed { count: 0, digest: 0, start: Vec::new() };
    for item in items {
        let item = format!("{item:?}");
        list.count += 1;
        list.digest = hash_bytes(list.digest, item.as_bytes());
        if list.start.len() < 5 {
            list.start.push(item);
        }
    }
    list
}

/// Index entries: keys with what they cover.
pub(crate) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// All records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    users: BTreeMap<String, User>,
    things: BTreeMap<Id, Thing>,
}

/// The records, with their past.
pub type Model = Timeline<State>;

pub(crate) fn table() -> Subspace {
    Subspace::from("users")
}

/// The other table's prefix goes on where the first one's ends.
fn other_table() -> Subspace {
    Subspace::from("users\0")
}

pub(crate) fn users() -> Users {
    Users::new(&table())
}

pub(crate) fn things() -> Table<Thing> {
    Table::new(&other_table())
}

/// The entries of a user over all indexes, by the key schema.
pub(crate) fn entries(user: &User) -> Entries {
    let entry = |index: &str, key: &str| table().pack(&("index", index, key, &user.id));
    let by_name = [(entry("name", &user.name), Vec::new())];
    let by_zipcode = user.zipcode.iter().flat_map(|zipcode| {
        [
            (entry("zipcode", zipcode), Vec::new()),
            (entry("zipcode_name", zipcode), user.name.clone().into_bytes()),
        ]
    });
    by_zipcode.chain(by_name).collect()
}

/// The entries of a thing over all indexes, by the key schema.
pub(crate) fn entries_of_thing(thing: &Thing) -> Entries {
    let by_rank = [(other_table().pack(&("index", "rank", thing.rank, &thing.id)), Vec::new())];
    let by_tag = thing.tag.iter().flat_map(|tag| {
        [
            (other_table().pack(&("index", "tag", tag, &thing.id)), Vec::new()),
            (other_table().pack(&("index", "tag_rank", tag, thing.rank, &thing.id)), covered(thing)),
        ]
    });
    by_tag.chain(by_rank).collect()
}

pub(crate) fn record_key(id: &str) -> Vec<u8> {
    table().pack(&("records", id))
}

/// Where a thing is stored, by the key schema.
pub(crate) fn thing_key(id: &Id) -> Vec<u8> {
    other_table().pack(&("records", id))
}

/// A stored user's value, by the key schema.
pub(crate) fn record_value(user: &User) -> Vec<u8> {
    pack(&(&user.name, &user.zipcode))
}

pub(crate) fn told_user(user: &User) -> ToldUser {
    (user.id.clone(), Content::from(&user.name), user.zipcode.clone())
}

fn told_thing(thing: &Thing) -> ToldThing {
    (thing.id.clone(), thing.tag.clone(), thing.rank, Content::from(&thing.body))
}

pub(crate) fn old_user(old: Option<User>) -> Answer {
    Answer::User(old.as_ref().map(told_user))
}

fn old_thing(old: Option<Thing>) -> Answer {
    Answer::Thing(old.as_ref().map(told_thing))
}

fn isolation(snapshot: bool) -> Isolation {
    if snapshot { Snapshot } else { Serializable }
}

/// What the covering index knows of users, as an answer tells it.
pub(crate) fn region(ids: &[String], named: &[(String, String)]) -> Answer {
    Answer::Found(vec![listed(ids), listed(named.iter().map(|(id, name)| (id, Content::from(name))))])
}

/// One call, done right.
pub(crate) async fn right<T: Transaction>(tx: &T, op: &Op) -> Result<Answer, Error> {
    let (users, things) = (users(), things());
    Ok(match op {
        Op::SetUser(user) => old_user(users.set_user(tx, user).await?),
        Op::DeleteUser(id) => old_user(users.delete_user(tx, id).await?),
        Op::Swap(one, other) => {
            let one = users.get_user(tx, one).await?;
            let other = users.get_user(tx, other).await?;
            let (Some(one), Some(other)) = (one, other) else { return Ok(Answer::Swapped(false)) };
            users.set_user(tx, &User { zipcode: other.zipcode.clone(), ..one.clone() }).await?;
            users.set_user(tx, &User { zipcode: one.zipcode, ..other }).await?;
            Answer::Swapped(true)
        }
        Op::GetUser(id) => old_user(users.get_user(tx, id).await?),
        Op::InRegion(zip) => {
            let ids = users.get_user_ids_in_region(tx, zip).await?;
            region(&ids, &users.get_users_in_region(tx, zip).await?)
        }
        Op::InRegions(from, to) => {
            Answer::Found(vec![listed(users.get_user_ids_in_regions(tx, from, to).await?)])
        }
        Op::ByName(name) => Answer::Found(vec![listed(users.get_user_ids_by_name(tx, name).await?)]),
        Op::Users(snapshot) => {
            let all = users.table().records(tx, isolation(*snapshot)).await?;
            Answer::Found(vec![listed(all.iter().map(told_user))])
        }
        Op::Set(thing) => old_thing(things.set(tx, thing).await?),
        Op::Delete(id) => old_thing(things.delete(tx, id).await?),
        Op::Get(id, snapshot) => old_thing(things.get(tx, id, isolation(*snapshot)).await?),
        Op::Find(key, snapshot) => {
            let isolation = isolation(*snapshot);
            let (ids, covered) = match key {
                Key::Tag(tag) => (
                    things.find(tx, "tag", tag, isolation).await?,
                    things.find_covered(tx, "tag", tag, isolation).await?,
                ),
                Key::TagRank(tag, rank) => (
                    things.find(tx, "tag_rank", &(tag, *rank), isolation).await?,
                    things.find_covered(tx, "tag_rank", &(tag, *rank), isolation).await?,
                ),
                Key::Rank(rank) => (
                    things.find(tx, "rank", rank, isolation).await?,
                    things.find_covered(tx, "rank", rank, isolation).await?,
                ),
            };
            let covered = covered.iter().map(|(id, bytes)| (id, Content::from(bytes)));
            Answer::Found(vec![listed(&ids), listed(covered)])
        }
        Op::Pages(key, snapshot) => {
            let (mut found, isolation): (Vec<(Id, Bytes)>, _) = (Vec::new(), isolation(*snapshot));
            loop {
                let after = found.last().map(|(id, _)| id);
                let page = match key {
                    Key::Tag(tag) => things.find_page(tx, "tag", tag, after, PAGE, isolation).await?,
                    Key::TagRank(tag, rank) => {
                        things.find_page(tx, "tag_rank", &(tag, *rank), after, PAGE, isolation).await?
                    }
                    Key::Rank(rank) => things.find_page(tx, "rank", rank, after, PAGE, isolation).await?,
                };
                let ends = page.len() < PAGE;
                found.extend(page);
                if ends {
                    break;
                }
            }
            Answer::Found(vec![
                listed(found.iter().map(|(id, _)| id)),
                listed(found.iter().map(|(id, bytes)| (id, Content::from(bytes)))),
            ])
        }
        Op::Things(snapshot) => {
            let mut all: Vec<Thing> = Vec::new();
            loop {
                let after = all.last().map(|thing| &thing.id);
                let page = things.records_page(tx, after, PAGE, isolation(*snapshot)).await?;
                let ends = page.len() < PAGE;
                all.extend(page);
                if ends {
                    break Answer::Found(vec![listed(all.iter().map(told_thing))]);
                }
            }
        }
        Op::Between(span, snapshot) => {
            let isolation = isolation(*snapshot);
            Answer::Found(vec![match span {
                Span::Tag(from, to) => {
                    let range = (from.clone(), to.clone());
                    listed_span(things.find_between::<_, Id>(tx, "tag", range, isolation).await?)
                }
                Span::TagRank(from, to) => {
                    let range = (from.clone(), to.clone());
                    listed_span(things.find_between::<_, (Id, i64)>(tx, "tag_rank", range, isolation).await?)
                }
                Span::Rank(from, to) => {
                    let range = (*from, *to);
                    listed_span(things.find_between::<_, i64>(tx, "rank", range, isolation).await?)
                }
            }])
        }
        Op::Undeclared(true) => Answer::Found(vec![listed(things.find(tx, "body", &1, Serializable).await?)]),
        Op::Undeclared(false) => {
            Answer::Found(vec![listed_span(things.find_between(tx, "body", 1..2, Serializable).await?)])
        }
    })
}

fn listed_span<K: Debug>(found: Vec<(K, Id, Bytes)>) -> Listed {
    listed(found.into_iter().map(|(key, id, covered)| (key, id, Content::from(&covered))))
}

/// Refuses what has no room, in the order in which the layer promises to look: the record, then its indexes.
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
    let tagged = thing.tag.is_some().then_some((0, 2 * thing.body.len()));
    fits(0, thing.size(), [("tag_rank", tagged)])
}

impl State {
    fn set(&mut self, user: &User) {
        self.users.insert(user.id.clone(), user.clone());
    }

    fn users(&self, has: impl Fn(&User) -> bool) -> impl Iterator<Item = &User> {
        self.users.values().filter(move |user| has(user))
    }

    /// The things that have a key, in the order of keys, then of ids.
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

fn nothing(_: &Thing) -> Content {
    Content::from(b"")
}

/// The ids and tags that are drawn: equal as text, prefixes of each other, empty, extreme.
fn id_pool() -> Vec<Id> {
    let bytes = |bytes: &'static [u8]| Id::Bytes(Bytes::from_static(bytes));
    vec![
        bytes(b""),
        "".into(),
        0.into(),
        bytes(b"1"),
        "1".into(),
        1.into(),
        bytes(b"a"),
        "a".into(),
        bytes(b"a\0"),
        "a\0".into(),
        bytes(b"a\0\xff"),
        "a\0b".into(),
        bytes(b"\xff"),
        bytes(b"\0"),
        (-1).into(),
        256.into(),
        i64::MIN.into(),
        i64::MAX.into(),
    ]
}

impl Index {
    fn id_window(&self) -> Vec<Id> {
        let (from, count) = self.ids;
        id_pool().into_iter().cycle().skip(from).take(count).collect()
    }

    fn zipcodes(&self) -> &'static [&'static str] {
        &strategies::CONFUSED_TEXT[..self.zipcodes]
    }

    fn names(&self) -> Vec<String> {
        let pad = "x".repeat(self.padding);
        strategies::CONFUSED_TEXT[..self.names].iter().map(|text| format!("{pad}{text}")).collect()
    }

    /// Where the rows beside the indexes and the records are.
    fn beside(&self) -> Vec<Vec<u8>> {
        let part = |table: Subspace, part: &str| beside::of(table.subspace(&part).bytes());
        let index = |table: Subspace, name: &str| beside::of(table.subspace(&("index", name)).bytes());
        [
            part(table(), "records"),
            index(table(), "zipcode"),
            index(table(), "name"),
            part(other_table(), "records"),
            index(other_table(), "tag"),
            index(other_table(), "rank"),
        ]
        .concat()
    }

    fn first_state(&self) -> State {
        let mut state = State::default();
        for n in 0..self.crowd {
            let zipcode = Some(self.zipcodes()[0].into());
            state.set(&User { id: format!("user-{n}"), name: self.names().swap_remove(0), zipcode });
        }
        state
    }

    /// Whether single writes are recorded in the layer's own answers.
    fn records_alone(&self, ops: &[Op]) -> bool {
        let writes = matches!(ops, [Op::SetUser(_) | Op::DeleteUser(_) | Op::Set(_) | Op::Delete(_)]);
        self.planted.is_none() && writes
    }
}

fn bound<K: Clone + Debug + 'static>(key: BoxedStrategy<K>) -> BoxedStrategy<Bound<K>> {
    prop_oneof![
        3 => key.clone().prop_map(Bound::Included),
        3 => key.prop_map(Bound::Excluded),
        1 => Just(Bound::Unbounded),
    ]
    .boxed()
}

impl Op {
    /// The same look at snapshot; `None` for what is none, or is at snapshot already.
    fn at_snapshot(&self) -> Option<Op> {
        Some(match self.clone() {
            Op::Users(false) => Op::Users(true),
            Op::Get(id, false) => Op::Get(id, true),
            Op::Find(key, false) => Op::Find(key, true),
            Op::Pages(key, false) => Op::Pages(key, true),
            Op::Things(false) => Op::Things(true),
            Op::Between(span, false) => Op::Between(span, true),
            _ => return None,
        })
    }
}

impl Specimen for Index {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "index";
    const ABOUT: &'static str =
        "records found by key and by range: every index is the projection of the records";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &["index: a record moves to another key of an index", "index: a covered part changes under its key"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Index {
        let planted = bug.and_then(Planted::named);
        let most = strategies::CONFUSED_TEXT.len() as u64 + 1;
        // The recipe's own layout begins without users.
        let crowds: &[u16] = if planted == Some(Planted::AsPrinted) { &[0] } else { &[0, 0, 0, 150] };
        Index {
            users: rng.range(2..most) as usize,
            zipcodes: rng.range(1..most) as usize,
            names: rng.range(1..most) as usize,
            padding: *rng.pick(&[0, 0, 100, 1_500]),
            crowd: *rng.pick(crowds),
            ids: (rng.range(0..18) as usize, rng.range(2..10) as usize),
            mix: [rng.range(2..10), rng.range(2..6), rng.range(1..8), rng.range(1..6)].map(|w| w as u32),
            planted,
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let texts = strategies::CONFUSED_TEXT.iter().take(self.users);
        let records = texts.clone().map(|id| record_key(id));
        let names = self.names();
        let users = texts.enumerate().map(|(n, id)| User {
            id: (*id).into(),
            name: names[n % names.len()].clone(),
            zipcode: Some(self.zipcodes()[n % self.zipcodes].into()),
        });
        let entries = users.flat_map(|user| entries(&user).into_keys());
        let things = self.id_window().into_iter().map(|id| thing_key(&id));
        records.chain(entries).chain(things).map(Bytes::from).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let text = |of: &[&'static str]| select(of.to_vec()).prop_map(str::to_owned).boxed();
        let user = text(&strategies::CONFUSED_TEXT[..self.users]);
        let zip = text(self.zipcodes());
        let name = select(self.names()).boxed();
        // One that fits and is long, and one that does not fit.
        let long = select(vec![9_800, 10_000]).prop_map(|length| "x".repeat(length));
        let any_name = prop_oneof![60 => name.clone(), 1 => long];
        let any_zip =
            prop_oneof![60 => option::weighted(0.8, zip.clone()), 1 => Just(Some("9".repeat(10_000)))];
        let set_user = (user.clone(), any_name, any_zip);
        let id = select(self.id_window()).boxed();
        let tag = id.clone();
        let rank = strategies::integers();
        let drawn = (id.clone(), option::weighted(0.8, tag.clone()), rank.clone(), 0..200usize, 0..40u8);
        let thing = drawn.prop_map(|(id, tag, rank, length, odd)| {
            let thing = Thing { id, tag, rank, body: vec![length as u8; length].into() };
            // At each of the two limits, and one beyond.
            match odd {
                0 => Thing { tag: None, ..thing }.sized(MAX_RECORD_BYTES),
                1 => Thing { tag: None, ..thing }.sized(MAX_RECORD_BYTES + 1),
                2 => Thing { body: vec![b'b'; 50_000].into(), ..thing },
                3 => Thing { body: vec![b'b'; 50_001].into(), ..thing },
                _ => thing,
            }
        });
        let tag_rank = (tag.clone(), rank.clone()).boxed();
        let key = prop_oneof![
            tag.clone().prop_map(Key::Tag),
            tag_rank.clone().prop_map(|(tag, rank)| Key::TagRank(tag, rank)),
            rank.clone().prop_map(Key::Rank),
        ];
        let span = prop_oneof![
            (bound(tag.clone()), bound(tag)).prop_map(|(from, to)| Span::Tag(from, to)),
            (bound(tag_rank.clone()), bound(tag_rank)).prop_map(|(from, to)| Span::TagRank(from, to)),
            (bound(rank.clone()), bound(rank)).prop_map(|(from, to)| Span::Rank(from, to)),
        ];
        let snapshot = any::<bool>;
        let [write, look, store, find] = self.mix;
        prop_oneof![
            8 * write => set_user.prop_map(|(id, name, zipcode)| Op::SetUser(User { id, name, zipcode })),
            3 * write => user.clone().prop_map(Op::DeleteUser),
            2 * write => (user.clone(), user.clone()).prop_map(|(a, b)| Op::Swap(a, b)),
            3 * look => user.prop_map(Op::GetUser),
            3 * look => zip.clone().prop_map(Op::InRegion),
            2 * look => (zip.clone(), zip).prop_map(|(from, to)| Op::InRegions(from, to)),
            2 * look => name.prop_map(Op::ByName),
            look => snapshot().prop_map(Op::Users),
            8 * store => thing.prop_map(Op::Set),
            3 * store => id.clone().prop_map(Op::Delete),
            find => (id, snapshot()).prop_map(|(id, snapshot)| Op::Get(id, snapshot)),
            2 * find => (key.clone(), snapshot()).prop_map(|(key, snapshot)| Op::Find(key, snapshot)),
            find => (key, snapshot()).prop_map(|(key, snapshot)| Op::Pages(key, snapshot)),
            find => snapshot().prop_map(Op::Things),
            3 * find => (span, snapshot()).prop_map(|(span, snapshot)| Op::Between(span, snapshot)),
            1 => snapshot().prop_map(Op::Undeclared),
        ]
        .boxed()
    }

    fn is_look(op: &Op) -> bool {
        !matches!(op, Op::SetUser(_) | Op::DeleteUser(_) | Op::Swap(..) | Op::Set(_) | Op::Delete(_))
    }

    /// Snapshot looks read without a conflict range; writes of different records do not conflict either, but
    /// here clients write the same ones.
    fn is_conflict_free(&self, op: &Op) -> bool {
        use Op::*;
        matches!(
            op,
            Users(true) | Get(_, true) | Find(_, true) | Pages(_, true) | Things(true) | Between(_, true)
        )
    }

    async fn setup<D: Database>(&self, db: &D) -> tx::Result<()> {
        beside::plant(db, &self.beside()).await?;
        let crowd = &self.first_state();
        let stored = db.run(|tx, _| async move {
            for user in crowd.users.values() {
                tx.set(&record_key(&user.id), &record_value(user));
                entries(user).iter().for_each(|(key, value)| tx.set(key, value));
            }
            Ok::<_, tx::Error>(())
        });
        stored.await.map_err(|e| e.error)
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        self.planted.is_none() && op.at_snapshot().is_some()
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        _: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        if let Some(planted) = self.planted
            && let Some(answer) = planted::perform(planted, tx, op).await
        {
            return answer;
        }
        match op.at_snapshot() {
            Some(op) if isolation == Snapshot => right(tx, &op).await,
            _ => right(tx, op).await,
        }
    }

    async fn divert<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        if let Some(planted) = self.planted {
            return planted::divert(planted, session, ops).await;
        }
        if !self.records_alone(ops) {
            return None;
        }
        let (users, things) = (&users(), &things());
        let answer = match &ops[0] {
            Op::SetUser(user) => {
                let run = session.apply(|tx| async move { Ok(users.set_user(&tx, user).await?.map(Old)) });
                run.await.map(replaced_user)
            }
            Op::DeleteUser(id) => {
                let run = session.apply(|tx| async move { Ok(users.delete_user(&tx, id).await?.map(Old)) });
                run.await.map(replaced_user)
            }
            Op::Set(thing) => {
                let run = session.apply(|tx| async move { Ok(things.set(&tx, thing).await?.map(Old)) });
                run.await.map(replaced_thing)
            }
            Op::Delete(id) => {
                let run = session.apply(|tx| async move { Ok(things.delete(&tx, id).await?.map(Old)) });
                run.await.map(replaced_thing)
            }
            _ => return None,
        };
        Some(specimen::told::<_, Error>(answer.map(|answer| Recorded(vec![answer]))))
    }

    async fn resolve<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
        pending: OpId,
    ) -> Result<Fate<Vec<Answer>>, once::Error> {
        Ok(match ops {
            [Op::SetUser(_) | Op::DeleteUser(_)] if self.records_alone(ops) => {
                session.resolve(pending).await?.map(|old| vec![replaced_user(old)])
            }
            [Op::Set(_) | Op::Delete(_)] if self.records_alone(ops) => {
                session.resolve(pending).await?.map(|old| vec![replaced_thing(old)])
            }
            _ => session.resolve(pending).await?.map(|Recorded(answers)| answers),
        })
    }

    fn model(&self) -> Model {
        Timeline::new(self.first_state())
    }

    fn replay(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
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
            Op::InRegion(zip) => {
                let found = now.users(|user| user.zipcode.as_ref() == Some(zip)).cloned();
                let (ids, named): (Vec<_>, Vec<_>) =
                    found.map(|user| (user.id.clone(), (user.id, user.name))).unzip();
                region(&ids, &named)
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
            Op::Find(key, snapshot) | Op::Pages(key, snapshot) => {
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

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Model, String>> {
        let beside = self.beside();
        if let Err(why) = beside::check(tx, &beside).await? {
            return Ok(Err(why));
        }
        let mut rows = Entries::new();
        for table in [table(), other_table()] {
            let end = [table.bytes(), b"\xff\xff"].concat();
            let range = RangeOption::from((table.into_bytes(), end));
            let all = tx.get_range_all(range, Serializable).await?;
            rows.extend(all.into_iter().map(|row| (row.key.into(), row.value.into())));
        }
        beside.iter().for_each(|key| drop(rows.remove(key)));
        let state = match self.state(&mut rows) {
            Ok(state) => state,
            Err(key) => return Ok(Err(format!("the record {} cannot be read", text(&key)))),
        };
        let users = match self.planted {
            Some(Planted::AsPrinted) => match planted::stored_as_printed(tx).await? {
                Ok(users) => users,
                Err(why) => return Ok(Err(why)),
            },
            _ => state.users,
        };
        let state = State { users, ..state };
        let projected = match self.planted {
            Some(Planted::AsPrinted) => State { users: BTreeMap::new(), ..state.clone() },
            _ => state.clone(),
        };
        Ok(projection(&projected, &rows).map(|()| Timeline::new(state)))
    }
}

impl Index {
    /// Takes the records out of the rows; the key of one that cannot be read is the error.
    fn state(&self, rows: &mut Entries) -> Result<State, Vec<u8>> {
        let (users, things) = (table().subspace(&"records"), other_table().subspace(&"records"));
        let is_record = |key: &[u8]| users.is_start_of(key) || things.is_start_of(key);
        let (records, entries): (Entries, Entries) =
            std::mem::take(rows).into_iter().partition(|(key, _)| is_record(key));
        *rows = entries;
        let mut state = State::default();
        for (key, value) in records {
            let read = if users.is_start_of(&key) {
                let user = || {
                    let id: String = users.unpack(&key).ok()?;
                    let (name, zipcode) = unpack(&value).ok()?;
                    Some(User { id, name, zipcode })
                };
                user().map(|user| state.set(&user))
            } else {
                let thing = || Thing::decode(things.unpack(&key).ok()?, &value);
                thing().map(|thing| drop(state.things.insert(thing.id.clone(), thing)))
            };
            read.ok_or(key)?;
        }
        Ok(state)
    }
}

/// Compares the entries of all indexes with what the records should have.
fn projection(state: &State, index: &Entries) -> Result<(), String> {
    let of_users = state.users.values().flat_map(entries);
    let expected: Entries = of_users.chain(state.things.values().flat_map(entries_of_thing)).collect();
    for (key, value) in index {
        match expected.get(key) {
            Some(covered) if covered == value => {}
            Some(covered) => {
                return Err(format!(
                    "entry {} covers {}, should be {}",
                    text(key),
                    text(value),
                    text(covered)
                ));
            }
            None => return Err(format!("entry {} belongs to no record", text(key))),
        }
    }
    match expected.keys().find(|key| !index.contains_key(*key)) {
        Some(key) => Err(format!("entry {} is missing", text(key))),
        None => Ok(()),
    }
}

/// A key or value for a person to read; padding cut.
fn text(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes[..bytes.len().min(80)].escape_ascii())
}

fn replaced_user(old: Option<Old<User>>) -> Answer {
    old_user(old.map(|Old(user)| user))
}

fn replaced_thing(old: Option<Old<Thing>>) -> Answer {
    old_thing(old.map(|Old(thing)| thing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable::{
        plan::{Demands, Plan},
        specimen::Mounted,
    };
    use shaketable_sim::seed::Seed;
    use std::collections::BTreeSet;

    fn user(id: &str, name: &str, zip: Option<&str>) -> User {
        User { id: id.into(), name: name.into(), zipcode: zip.map(Into::into) }
    }

    #[test]
    fn the_projection_hears_what_is_missing_stale_and_left_over() {
        let mut state = State::default();
        [user("a", "n", Some("1")), user("b", "m", None)].iter().for_each(|user| state.set(user));
        let sound: Entries = state.users.values().flat_map(entries).collect();
        assert_eq!(sound.len(), 4);
        assert_eq!(projection(&state, &sound), Ok(()));

        let key = entries(&state.users["a"]).into_iter().find(|(_, covered)| !covered.is_empty()).unwrap().0;
        let mut broken = sound.clone();
        broken.insert(key.clone(), b"old".to_vec());
        assert!(projection(&state, &broken).unwrap_err().contains("covers \"old\""));
        broken.remove(&key);
        assert!(projection(&state, &broken).unwrap_err().contains("is missing"));
        let mut broken = sound;
        broken.extend(entries(&user("a", "n", Some("2"))));
        assert!(projection(&state, &broken).unwrap_err().contains("belongs to no record"));
    }

    #[test]
    fn clients_meet_and_every_bound_is_drawn() {
        let (mut moved, mut found, mut bounds) = (0, 0, BTreeSet::new());
        for seed in 0..100 {
            let plan = Plan::<Mounted<Index>>::draw(Seed(seed), &Demands::default());
            let mut model = Timeline::new(State::default());
            for op in plan.operations.iter().flatten().flatten() {
                let draw = Index::draw(&mut Seed(0).stream("index"), None);
                match draw.replay(&mut model, op, &At::default()) {
                    Ok(Answer::User(Some(_)) | Answer::Thing(Some(_))) => moved += 1,
                    Ok(Answer::Found(lists)) if lists[0].count > 1 => found += 1,
                    _ => {}
                }
                if let Op::Between(Span::TagRank(from, to), _) = op {
                    let kind = |bound: &Bound<_>| format!("{bound:?}").split('(').next().map(str::to_owned);
                    bounds.insert((kind(from), kind(to)));
                }
            }
        }
        assert!(moved > 500 && found > 50 && bounds.len() == 9, "{moved} {found} {bounds:?}");
    }

    #[test]
    fn a_thing_is_as_large_as_it_is_asked_to_be() {
        for id in id_pool() {
            let thing = Thing { id, tag: None, rank: i64::MIN, body: Bytes::new() };
            assert_eq!(thing.sized(MAX_RECORD_BYTES).size(), MAX_RECORD_BYTES);
        }
    }

    #[test]
    fn every_bug_has_its_own_name() {
        for bug in BUGS {
            assert!(Planted::named(bug.name).is_some());
        }
    }
}
