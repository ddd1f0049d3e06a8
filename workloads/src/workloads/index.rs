//! `index`: users who move and change their names, found by zip code and by name.
//!
//! Clients set, delete and exchange few users with few zip codes and names, so that they meet on the
//! same records and index keys. Lookups by each index, and through the covering one, answer what the
//! sequential model holds. At every version each index is the projection of the records, reckoned here
//! anew from the key schema: an entry for every record that has a key in it, and none besides.

use crate::{
    sabotage::index as sabotage,
    sessions::{self, slots},
    workload::{Bug, Outcome, Step, Workload},
};
use bytes::Bytes;
use foundationdb_tuple::{Subspace, pack, unpack};
use proptest::{collection::vec, option, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable_layers::{
    index::{
        Error, Old,
        users::{User, Users},
    },
    once::{self, Session},
    tx::{self, Database, Isolation::Serializable, RangeOption, RetryError, RunError, Transaction},
};
use shaketable_sim::seed::Stream;
use std::{collections::BTreeMap, ops::Range};

flaws! {
    AsPrinted = "as-printed", "the zip code is part of the user's key, and old index entries stay", "the recipe's set_user";
    OldAtSnapshot = "old-at-snapshot", "the record to be replaced is read at snapshot", "a read without isolation";
    DeleteForgets = "delete-forgets", "deleting a user leaves the zip code's entries", "an index forgotten on delete";
    DeleteByMemory = "delete-by-memory", "deleting a user removes the entries of what the client wrote last, not of what is stored", "an index forgotten on delete";
    NameForgotten = "name-forgotten", "the index of names is maintained for new users, not for renamed ones", "an index forgotten on one path";
    CoveredStale = "covered-stale", "a new name does not reach the covering index unless the zip code changes", "an index forgotten on one path, covering";
    NullIndexed = "null-indexed", "an unknown zip code is indexed when set and not when removed", "unset values, decided twice";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole lookup", "a range that is longer than a batch";
    NoOpRecord = "no-op-record", "a write is retried after an unknown result without an operation record", "a blind write done twice";
    TwoTransactions = "two-transactions", "index entries are written in a transaction of their own", "a database handed where a transaction belongs";
    KeptOld = "kept-old", "the old record read in the first attempt is kept for the retries", "state that survives a retry";
    AnswerOfRetry = "answer-of-retry", "a retry answers with what it replaced itself", "the answer of the last attempt";
    TimeoutIsRefusal = "timeout-is-refusal", "an unknown outcome is reported as a failure", "a timeout reported as a failure";
    LookupThenGet = "lookup-then-get", "a lookup reads entries and records in two transactions", "an answer used in another transaction, its general form";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Index {
    users: u8,
    zipcodes: u8,
    names: u8,
    /// Names are padded to about so many bytes.
    padding: u16,
    clients: usize,
    operations: Range<usize>,
    /// How often an operation writes, and how often it looks.
    mix: [u32; 2],
    /// The timeout that clients set on their database, milliseconds.
    timeout: Option<i32>,
    pub(crate) flaw: Option<Flaw>,
}

/// One operation. Users, names and zip codes are numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Stores a user: name, and zip code if known.
    Set(u8, u8, Option<u8>),
    /// Removes a user.
    Delete(u8),
    /// Exchanges the zip codes of two users in one step, if both are there.
    Swap(u8, u8),
    /// Reads a user.
    Get(u8),
    /// Finds the users with a zip code, by the index and by the covering one.
    InRegion(u8),
    /// Finds the users with a zip code from the first on, before the second.
    InRegions(u8, u8),
    /// Finds the users with a name.
    ByName(u8),
    /// Tries to store a user whose name is too long to be indexed.
    Oversized(u8),
}

/// What an operation answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Stored or deleted; this user was there before.
    Old(Option<User>),
    /// Stored, by a function that says no more.
    Stored,
    /// Whether both users were there.
    Swapped(bool),
    /// This user is there.
    User(Option<User>),
    /// These ids have the zip code, and these ids with names, by the covering index.
    Region(Vec<String>, Vec<(String, String)>),
    /// These zip codes of the range have these ids.
    Regions(Vec<(String, String)>),
    /// These ids have the name.
    Ids(Vec<String>),
    /// Refused: too large.
    TooLarge,
}

/// What a client holds.
pub struct Client<D: Database> {
    pub(crate) session: Session<D>,
    pub(crate) users: Users,
    /// What this client wrote last for each id.
    pub(crate) wrote: BTreeMap<String, User>,
}

/// Index entries: keys with what they cover.
pub(crate) type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Users by id.
pub type Model = BTreeMap<String, User>;

pub(crate) fn table() -> Subspace {
    Subspace::from("users")
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

pub(crate) fn record_key(id: &str) -> Vec<u8> {
    table().pack(&("records", id))
}

pub(crate) fn id(user: u8) -> String {
    format!("user-{user}")
}

pub(crate) fn zipcode(n: u8) -> String {
    format!("{:05}", 94_000 + u32::from(n))
}

impl Index {
    pub(crate) fn name(&self, n: u8) -> String {
        format!("name-{n}-{}", "x".repeat(self.padding.into()))
    }

    pub(crate) fn user(&self, user: u8, name: u8, zip: Option<u8>) -> User {
        User { id: id(user), name: self.name(name), zipcode: zip.map(zipcode) }
    }
}

impl Workload for Index {
    type Op = Op;
    type Answer = Answer;
    type Session<D: Database> = Client<D>;
    type Model = Model;

    const NAME: &'static str = "index";
    const ABOUT: &'static str =
        "users found by zip code and by name: every index is the projection of the records";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &["index: a record moves to another key of an index", "index: a covered part changes under its key"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Index {
        let (flaw, most) = (bug.and_then(Flaw::named), rng.range(8..40) as usize);
        Index {
            users: rng.range(2..12) as u8,
            zipcodes: rng.range(1..5) as u8,
            names: rng.range(1..5) as u8,
            padding: *rng.pick(&[0, 0, 1_500]),
            clients: rng.range(2..9) as usize,
            operations: most / 2..most,
            mix: [rng.range(2..10), rng.range(1..6)].map(|w| w as u32),
            // A bug in what is made of a timeout needs one.
            timeout: (rng.chance(0.5) || flaw == Some(Flaw::TimeoutIsRefusal))
                .then(|| rng.range(50..1_000) as i32),
            flaw,
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        let slots = (0..self.clients as u64).map(|client| slots().key(client));
        let records = (0..self.users).map(|user| record_key(&id(user)).into());
        let users = (0..self.users).map(|n| self.user(n, n % self.names, Some(n % self.zipcodes)));
        let entries = users.flat_map(|user| entries(&user).into_keys()).map(Bytes::from);
        slots.chain(records).chain(entries).collect()
    }

    fn operations(&self, _: usize) -> BoxedStrategy<Vec<Op>> {
        let (user, name, zip) = (0..self.users, 0..self.names, 0..self.zipcodes);
        let [write, look] = self.mix;
        let op = prop_oneof![
            8 * write => (user.clone(), name.clone(), option::weighted(0.8, zip.clone()))
                .prop_map(|(user, name, zip)| Op::Set(user, name, zip)),
            3 * write => user.clone().prop_map(Op::Delete),
            2 * write => (user.clone(), user.clone()).prop_map(|(a, b)| Op::Swap(a, b)),
            3 * look => user.clone().prop_map(Op::Get),
            3 * look => zip.clone().prop_map(Op::InRegion),
            2 * look => (zip.clone(), 0..=self.zipcodes).prop_map(|(from, to)| Op::InRegions(from, to)),
            2 * look => name.prop_map(Op::ByName),
            1 => user.prop_map(Op::Oversized),
        ];
        vec(op, self.operations.clone()).boxed()
    }

    async fn open<D: Database>(&self, db: &D, client: usize) -> tx::Result<Client<D>> {
        let session = sessions::open(db, client, self.timeout).await?;
        Ok(Client { session, users: Users::new(&table()), wrote: BTreeMap::new() })
    }

    async fn divert<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Option<Outcome<Answer>> {
        sabotage::apply(self.flaw?, self, client, op).await
    }

    async fn apply<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Outcome<Answer> {
        let Client { session, users, .. } = client;
        let (db, users) = (session.database().clone(), &*users);
        match *op {
            Op::Set(user, name, zip) => {
                let user = self.user(user, name, zip);
                applied(users.table().set_once(session, &user).await, Answer::Old)
            }
            Op::Delete(user) => applied(users.table().delete_once(session, &id(user)).await, Answer::Old),
            Op::Swap(one, other) => {
                let (one, other) = (&id(one), &id(other));
                let swapped = session.apply(|tx| async move {
                    let one = users.get_user(&tx, one).await?;
                    let other = users.get_user(&tx, other).await?;
                    let (Some(one), Some(other)) = (one, other) else { return Ok(false) };
                    users.set_user(&tx, &User { zipcode: other.zipcode.clone(), ..one.clone() }).await?;
                    users.set_user(&tx, &User { zipcode: one.zipcode, ..other }).await?;
                    Ok::<_, Error>(true)
                });
                applied(swapped.await, Answer::Swapped)
            }
            Op::Get(user) => {
                let id = &id(user);
                let user = db.run(|tx, _| async move { users.get_user(&tx, id).await });
                looked_up(user.await, Answer::User)
            }
            Op::InRegion(zip) => {
                let zip = &zipcode(zip);
                let found = db.run(|tx, _| async move {
                    let ids = users.get_user_ids_in_region(&tx, zip).await?;
                    Ok::<_, Error>((ids, users.get_users_in_region(&tx, zip).await?))
                });
                looked_up(found.await, |(ids, named)| Answer::Region(ids, named))
            }
            Op::InRegions(from, to) => {
                let (from, to) = (&zipcode(from), &zipcode(to));
                let found = db.run(|tx, _| async move { users.get_user_ids_in_regions(&tx, from, to).await });
                looked_up(found.await, Answer::Regions)
            }
            Op::ByName(name) => {
                let name = &self.name(name);
                let found = db.run(|tx, _| async move { users.get_user_ids_by_name(&tx, name).await });
                looked_up(found.await, Answer::Ids)
            }
            Op::Oversized(user) => {
                let user = User { id: id(user), name: "x".repeat(10_000), zipcode: None };
                applied(users.table().set_once(session, &user).await, Answer::Old)
            }
        }
    }

    async fn resolve<D: Database>(
        &self,
        client: &mut Client<D>,
        op: &Op,
        error: tx::Error,
    ) -> Outcome<Answer> {
        let ask = async |session: &mut Session<D>, pending| {
            let answer = match op {
                Op::Swap(..) => session.resolve(pending).await?.map(Answer::Swapped),
                _ => session.resolve(pending).await?.map(old_user),
            };
            Ok(answer.map(Outcome::Answered))
        };
        sessions::settle(&mut client.session, self.timeout, error, ask).await
    }

    fn model(&self) -> Model {
        Model::new()
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), String> {
        if !step.committed && step.answer.is_none() {
            return Ok(());
        }
        let expected = self.replay(model, step.op, step.committed);
        match step.answer {
            Some(Answer::Stored) | None => Ok(()),
            Some(answer) if *answer == expected => Ok(()),
            Some(answer) => Err(format!("answered {answer:?} where the model answers {expected:?}")),
        }?;
        // What changes nothing may commit nothing.
        let changes = match (step.op, &expected) {
            (Op::Set(..), _) => true,
            (Op::Delete(_), Answer::Old(old)) => old.is_some(),
            (Op::Swap(..), Answer::Swapped(both)) => *both,
            _ => false,
        };
        match (step.committed, step.op) {
            (false, _) if changes => Err(format!("answered {expected:?}, but nothing was committed")),
            (true, Op::Get(_) | Op::InRegion(_) | Op::InRegions(..) | Op::ByName(_) | Op::Oversized(_)) => {
                Err("committed a write".into())
            }
            _ => Ok(()),
        }
    }

    /// Each index is the projection of the records, and no id is stored twice.
    async fn audit<D: Database>(&self, tx: &D::Transaction) -> tx::Result<Result<(), String>> {
        Ok(self.stored(tx).await?.map(|_| ()))
    }

    async fn check<D: Database>(&self, db: &D, model: &Model) -> tx::Result<Result<(), String>> {
        let stored = db.run(|tx, _| async move { self.stored(&tx).await }).await.map_err(|e| e.error)?;
        Ok(stored.and_then(|stored| match stored.iter().find(|(id, user)| model.get(*id) != Some(*user)) {
            Some((id, user)) => Err(format!("{user:?} is stored, should be {:?}", model.get(id))),
            None => match model.keys().find(|id| !stored.contains_key(*id)) {
                Some(id) => Err(format!("{id} is missing")),
                None => Ok(()),
            },
        }))
    }
}

impl Index {
    /// What an operation does to the model, and answers. One that did not commit does nothing.
    fn replay(&self, model: &mut Model, op: &Op, committed: bool) -> Answer {
        let having = |model: &Model, has: &dyn Fn(&User) -> bool| -> Vec<User> {
            model.values().filter(|user| has(user)).cloned().collect()
        };
        match *op {
            Op::Set(user, name, zip) if committed => {
                Answer::Old(model.insert(id(user), self.user(user, name, zip)))
            }
            Op::Delete(user) if committed => Answer::Old(model.remove(&id(user))),
            Op::Set(user, ..) | Op::Delete(user) => Answer::Old(model.get(&id(user)).cloned()),
            Op::Swap(one, other) => {
                let users = model.get(&id(one)).cloned().zip(model.get(&id(other)).cloned());
                let Some((one, other)) = users else { return Answer::Swapped(false) };
                if committed {
                    let zipcode = other.zipcode.clone();
                    model.insert(one.id.clone(), User { zipcode, ..one.clone() });
                    model.insert(other.id.clone(), User { zipcode: one.zipcode, ..other });
                }
                Answer::Swapped(true)
            }
            Op::Get(user) => Answer::User(model.get(&id(user)).cloned()),
            Op::InRegion(zip) => {
                let zip = zipcode(zip);
                let found = having(model, &|user| user.zipcode.as_ref() == Some(&zip));
                let ids = found.iter().map(|user| user.id.clone()).collect();
                Answer::Region(ids, found.into_iter().map(|user| (user.id, user.name)).collect())
            }
            Op::InRegions(from, to) => {
                let range = (zipcode(from), zipcode(to));
                let within =
                    |user: &User| user.zipcode.as_ref().is_some_and(|zip| range.0 <= *zip && *zip < range.1);
                let found = having(model, &within).into_iter();
                let mut found: Vec<_> = found.filter_map(|user| Some((user.zipcode?, user.id))).collect();
                found.sort();
                Answer::Regions(found)
            }
            Op::ByName(name) => {
                let name = self.name(name);
                Answer::Ids(having(model, &|user| user.name == name).into_iter().map(|u| u.id).collect())
            }
            Op::Oversized(_) => Answer::TooLarge,
        }
    }

    /// All users, unless an index is not their projection.
    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Model, String>> {
        if self.flaw == Some(Flaw::AsPrinted) {
            return sabotage::stored_as_printed(tx).await;
        }
        let all = |part: &str| RangeOption::from(table().subspace(&part).range());
        let records = tx.get_range_all(all("records"), Serializable).await?;
        let index = tx.get_range_all(all("index"), Serializable).await?;
        let record = |row: &tx::KeyValue| {
            let (_, id): (String, String) = table().unpack(&row.key).ok()?;
            let (name, zipcode) = unpack(&row.value).ok()?;
            Some((id.clone(), User { id, name, zipcode }))
        };
        let users: Option<Model> = records.iter().map(record).collect();
        let Some(users) = users else { return Ok(Err("a record cannot be read".into())) };
        let index = index.into_iter().map(|row| (row.key.into(), row.value.into())).collect();
        Ok(projection(&users, &index).map(|()| users))
    }
}

/// Compares the entries of all indexes with what the users should have.
fn projection(users: &Model, index: &Entries) -> Result<(), String> {
    let expected: Entries = users.values().flat_map(entries).collect();
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

/// A stored user's value, by the key schema.
pub(crate) fn record_value(user: &User) -> Vec<u8> {
    pack(&(&user.name, &user.zipcode))
}

pub(crate) fn old_user(old: Option<Old<User>>) -> Answer {
    Answer::Old(old.map(|Old(user)| user))
}

pub(crate) fn applied<A>(
    outcome: once::Outcome<A, Error>,
    answer: impl FnOnce(A) -> Answer,
) -> Outcome<Answer> {
    match outcome {
        once::Outcome::Applied(a) => Outcome::Answered(answer(a)),
        once::Outcome::Refused(e) => refused(e),
        once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
    }
}

pub(crate) fn refused(error: Error) -> Outcome<Answer> {
    match error {
        Error::KeyTooLarge { .. } => Outcome::Answered(Answer::TooLarge),
        e => e.fdb().map_or_else(|| Outcome::Violated(e.to_string()), Outcome::GaveUp),
    }
}

/// The outcome of a transaction that does not write.
pub(crate) fn looked_up<A>(
    ran: Result<A, RunError<Error>>,
    answer: impl FnOnce(A) -> Answer,
) -> Outcome<Answer> {
    ran.map_or_else(|e| refused(e.error), |a| Outcome::Answered(answer(a)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Demands, Plan};
    use shaketable_sim::seed::Seed;

    fn user(id: &str, name: &str, zip: Option<&str>) -> User {
        User { id: id.into(), name: name.into(), zipcode: zip.map(Into::into) }
    }

    #[test]
    fn the_projection_hears_what_is_missing_stale_and_left_over() {
        let users: Model =
            [user("a", "n", Some("1")), user("b", "m", None)].map(|u| (u.id.clone(), u)).into();
        let sound: Entries = users.values().flat_map(entries).collect();
        assert_eq!(sound.len(), 4);
        assert_eq!(projection(&users, &sound), Ok(()));

        let key = entries(&users["a"]).into_iter().find(|(_, covered)| !covered.is_empty()).unwrap().0;
        let mut broken = sound.clone();
        broken.insert(key.clone(), b"old".to_vec());
        assert!(projection(&users, &broken).unwrap_err().contains("covers \"old\""));
        broken.remove(&key);
        assert!(projection(&users, &broken).unwrap_err().contains("is missing"));
        let mut broken = sound;
        broken.extend(entries(&user("a", "n", Some("2"))));
        assert!(projection(&users, &broken).unwrap_err().contains("belongs to no record"));
    }

    #[test]
    fn clients_meet_on_users_zip_codes_and_names() {
        let (mut moved, mut found, mut swapped) = (0, 0, 0);
        for seed in 0..100 {
            let plan = Plan::<Index>::draw(Seed(seed), &Demands::default());
            let mut model = Model::new();
            for op in plan.operations.iter().flatten() {
                match plan.configuration.replay(&mut model, op, true) {
                    Answer::Old(Some(_)) => moved += 1,
                    Answer::Region(ids, _) if ids.len() > 1 => found += 1,
                    Answer::Swapped(true) => swapped += 1,
                    _ => {}
                }
            }
        }
        assert!(moved > 500 && found > 50 && swapped > 100, "{moved} {found} {swapped}");
    }

    #[test]
    fn every_bug_has_its_own_name() {
        for bug in Index::bugs() {
            assert!(Flaw::named(bug.name).is_some());
        }
    }
}
