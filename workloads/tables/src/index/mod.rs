//! `index`: records that change their places in indexes, found by key and by range of keys.
//!
//! There are two tables: the users of the simple index recipe, found by zip code and by name; and things
//! whose ids and tags are bytes, text and numbers, with an index over two elements and an index that covers
//! more than the record contains. There are few ids and keys, so that clients meet, and they are easily
//! confused. Every call is composed with others in one transaction; a write that is alone in its transaction
//! is recorded with the layer's own answer. At every version each index must be the projection of the
//! records, which is computed here independently from the key schema: one entry for every record that has a
//! key in the index, and no other entry.

mod as_printed;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
mod model;
mod planted;
mod records;
mod shown;
mod stored;
mod values;

use crate::{
    beside,
    shared::{came_back, draw_edge_texts, one_call, page_sizes, paged},
};
use model::{Model, State};
use records::{Thing, entries, record_key, record_value, thing_key, things, users};
use shaketable::{
    prelude::*,
    specimen::{Answer, Recorded, concluded},
    strategies,
};
use shaketable_layers::{
    id::Id,
    index::{Error, Old, users::User},
};
use shaketable_tx::once::{Fate, OpId};
use shown::{
    Listed, ShownThing, ShownUser, listed, listed_covered, listed_span, region, replaced_thing,
    replaced_user, shown_thing, shown_user,
};
use values::{Key, Span, mostly};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Index {
    /// How many users, zip codes and names are used.
    users: usize,
    zipcodes: usize,
    names: usize,
    /// Texts that are used beside them.
    edges: Vec<String>,
    /// The number of equal bytes with which the ids of users and of things begin.
    id_padding: usize,
    /// The number of equal bytes with which names begin.
    padding: usize,
    /// The number of further users that exist from the beginning, all with the same zip code.
    crowd: u16,
    /// The first of the ids and tags that are used, and their number.
    ids: (usize, usize),
    /// The weights of writes and of looks, for users and for things.
    user_writes: u32,
    user_looks: u32,
    thing_writes: u32,
    thing_looks: u32,
    /// Whether users are stored in the layout of the recipe as it is printed, which is a planted bug.
    as_printed: bool,
}

/// The number of records on a page.
const PAGE: usize = 3;

/// Records found by key and by range: every index is the projection of the records.
#[shaketable::workload(name = "index", model = Model, planted, promises(turns, limits))]
impl Index {
    fn draw(rng: &mut Stream, bug: Option<&str>) -> Index {
        let as_printed = bug == Some("as-printed");
        let most = strategies::CONFUSED_TEXT.len() as u64 + 1;
        // The recipe's own layout begins without users.
        let crowds: &[u16] = if as_printed { &[0] } else { &[0, 0, 0, 150] };
        Index {
            users: rng.range(2..most) as usize,
            zipcodes: rng.range(1..most) as usize,
            names: rng.range(1..most) as usize,
            edges: draw_edge_texts(rng),
            padding: *rng.pick(&[0, 0, 100, 1_500]),
            crowd: *rng.pick(crowds),
            ids: (rng.range(0..18) as usize, rng.range(2..10) as usize),
            user_writes: rng.range(2..10) as u32,
            user_looks: rng.range(2..6) as u32,
            thing_writes: rng.range(1..8) as u32,
            thing_looks: rng.range(1..6) as u32,
            id_padding: strategies::draw_padding(rng),
            as_printed,
        }
    }

    fn points() -> &'static [&'static str] {
        &["index: a record moves to another key of an index", "index: a covered part changes under its key"]
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let ids = self.user_ids();
        let records = ids.iter().map(|id| record_key(id));
        let (names, zipcodes) = (self.names(), self.zipcodes());
        let users = ids.iter().enumerate().map(|(n, id)| User {
            id: id.clone(),
            name: names[n % names.len()].clone(),
            zipcode: Some(zipcodes[n % zipcodes.len()].clone()),
        });
        let entries = users.flat_map(|user| entries(&user).into_keys());
        let things = self.id_window().into_iter().map(|id| thing_key(&id));
        records.chain(entries).chain(things).collect()
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        beside::plant(db, &stored::beside()).await?;
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

    fn first_state(&self) -> State {
        let mut state = State::default();
        for n in 0..self.crowd {
            let zipcode = Some(self.zipcodes().swap_remove(0));
            state.set(&User { id: format!("user-{n}"), name: self.names().swap_remove(0), zipcode });
        }
        state
    }

    #[draws(user_id, one, other)]
    fn user_id(&self) -> BoxedStrategy<String> {
        mostly(self.user_ids())
    }

    #[draws(zip, from, to)]
    fn zip(&self) -> BoxedStrategy<String> {
        mostly(self.zipcodes())
    }

    #[draws(name)]
    fn name(&self) -> BoxedStrategy<String> {
        mostly(self.names())
    }

    /// The id of a thing, or a tag.
    #[draws(id)]
    fn id(&self) -> BoxedStrategy<Id> {
        select(self.id_window()).boxed()
    }

    #[draws(key)]
    fn key(&self) -> BoxedStrategy<Key> {
        prop_oneof![
            self.id().prop_map(Key::Tag),
            self.tag_rank().prop_map(|(tag, rank)| Key::TagRank(tag, rank)),
            strategies::integers().prop_map(Key::Rank),
        ]
        .boxed()
    }

    #[draws(isolation)]
    fn isolation() -> impl Strategy<Value = Isolation> {
        select(vec![Serializable, Snapshot])
    }

    #[write(weight = 8 * self.user_writes, at)]
    async fn set_user(&self, tx: &Tx, #[draw(self.user())] user: &User) -> Result<Option<ShownUser>, Error> {
        Ok(replaced_user(came_back(users().set_user(tx, user).await?.map(Old))))
    }

    #[write(weight = 3 * self.user_writes, at)]
    async fn delete_user(&self, tx: &Tx, user_id: &str) -> Result<Option<ShownUser>, Error> {
        Ok(replaced_user(came_back(users().delete_user(tx, user_id).await?.map(Old))))
    }

    /// Exchanges the zip codes of two users, if both exist.
    #[write(weight = 2 * self.user_writes, at)]
    async fn swap(&self, tx: &Tx, one: &str, other: &str) -> Result<bool, Error> {
        let (tx, users) = (&one_call(tx, false).await, users());
        let one = users.get_user(tx, one).await?;
        let other = users.get_user(tx, other).await?;
        let (Some(one), Some(other)) = (one, other) else { return Ok(false) };
        users.set_user(tx, &User { zipcode: other.zipcode.clone(), ..one.clone() }).await?;
        users.set_user(tx, &User { zipcode: one.zipcode, ..other }).await?;
        Ok(true)
    }

    #[read(weight = 3 * self.user_looks, at)]
    async fn get_user(&self, tx: &Tx, user_id: &str) -> Result<Option<ShownUser>, Error> {
        Ok(users().get_user(tx, user_id).await?.as_ref().map(shown_user))
    }

    /// Finds the users with a zip code in the index, and in the covering index if `covered`.
    #[read(weight = 3 * self.user_looks, at)]
    async fn in_region(
        &self,
        tx: &Tx,
        zip: &str,
        #[draw(any::<bool>())] covered: bool,
    ) -> Result<Vec<Listed>, Error> {
        let users = users();
        if !covered {
            return Ok(region(&users.get_user_ids_in_region(tx, zip).await?, None));
        }
        let tx = &one_call(tx, true).await;
        let ids = users.get_user_ids_in_region(tx, zip).await?;
        Ok(region(&ids, Some(&users.get_users_in_region(tx, zip).await?)))
    }

    /// Finds the users with a zip code from the first one on, before the second one.
    #[read(weight = 2 * self.user_looks, at)]
    async fn in_regions(&self, tx: &Tx, from: &str, to: &str) -> Result<Listed, Error> {
        Ok(listed(users().get_user_ids_in_regions(tx, from, to).await?))
    }

    #[read(weight = 2 * self.user_looks, at)]
    async fn by_name(&self, tx: &Tx, name: &str) -> Result<Listed, Error> {
        Ok(listed(users().get_user_ids_by_name(tx, name).await?))
    }

    #[read(weight = self.user_looks, at)]
    async fn all_users(&self, tx: &Tx, isolation: Isolation) -> Result<Listed, Error> {
        Ok(listed(users().table().records(tx, isolation).await?.iter().map(shown_user)))
    }

    #[write(weight = 8 * self.thing_writes, at)]
    async fn set(&self, tx: &Tx, #[draw(self.thing())] thing: &Thing) -> Result<Option<ShownThing>, Error> {
        Ok(replaced_thing(came_back(things().set(tx, thing).await?.map(Old))))
    }

    #[write(weight = 3 * self.thing_writes, at)]
    async fn delete(&self, tx: &Tx, id: &Id) -> Result<Option<ShownThing>, Error> {
        Ok(replaced_thing(came_back(things().delete(tx, id).await?.map(Old))))
    }

    #[read(weight = self.thing_looks, at)]
    async fn get(&self, tx: &Tx, isolation: Isolation, id: &Id) -> Result<Option<ShownThing>, Error> {
        Ok(things().get(tx, id, isolation).await?.as_ref().map(shown_thing))
    }

    /// Finds the things with a key, once without and once with what is covered.
    #[read(weight = 2 * self.thing_looks, at)]
    async fn find(&self, tx: &Tx, isolation: Isolation, key: &Key) -> Result<[Listed; 2], Error> {
        let (tx, things) = (&one_call(tx, true).await, things());
        let ids = things.find(tx, key.index(), key, isolation).await?;
        let covered = things.find_covered(tx, key.index(), key, isolation).await?;
        Ok([listed(&ids), listed_covered(&covered)])
    }

    /// Finds the things with a key by pages of this many.
    #[read(weight = self.thing_looks, at)]
    async fn pages(
        &self,
        tx: &Tx,
        isolation: Isolation,
        key: &Key,
        #[draw(page_sizes())] most: usize,
    ) -> Result<[Listed; 2], Error> {
        let (tx, things) = (&one_call(tx, true).await, &things());
        let page = |last: Option<&(Id, Bytes)>| {
            let after = last.map(|(id, _)| id.clone());
            async move { things.find_page(tx, key.index(), key, after.as_ref(), most, isolation).await }
        };
        let found = paged(most, page).await?;
        Ok([listed(found.iter().map(|(id, _)| id)), listed_covered(&found)])
    }

    #[read(weight = self.thing_looks, at)]
    async fn all_things(&self, tx: &Tx, isolation: Isolation) -> Result<Listed, Error> {
        let (tx, things) = (&one_call(tx, true).await, &things());
        let page = |last: Option<&Thing>| {
            let after = last.map(|thing| thing.id.clone());
            async move { things.records_page(tx, after.as_ref(), PAGE, isolation).await }
        };
        Ok(listed(paged(PAGE, page).await?.iter().map(shown_thing)))
    }

    #[read(weight = 3 * self.thing_looks, at)]
    async fn between(
        &self,
        tx: &Tx,
        isolation: Isolation,
        #[draw(self.span())] span: Span,
    ) -> Result<Listed, Error> {
        let things = things();
        Ok(match span {
            Span::Tag(ends) => listed_span::<Id>(things.find_between(tx, "tag", ends, isolation).await?),
            Span::TagRank(ends) => {
                listed_span::<(Id, i64)>(things.find_between(tx, "tag_rank", ends, isolation).await?)
            }
            Span::Rank(ends) => listed_span::<i64>(things.find_between(tx, "rank", ends, isolation).await?),
        })
    }

    /// Reads an index that is not declared.
    #[read(rare)]
    async fn undeclared(&self, tx: &Tx, #[draw(any::<bool>())] range: bool) -> Result<Listed, Error> {
        let things = things();
        Ok(match range {
            false => listed(things.find(tx, "body", &1, Serializable).await?),
            true => listed_span(things.find_between(tx, "body", 1..2, Serializable).await?),
        })
    }

    /// A write that is alone in its transaction is recorded with the layer's own answer.
    async fn apply(
        &self,
        bug: Option<&str>,
        session: &mut Session<Db>,
        ops: &[IndexOp],
    ) -> Option<Outcome<Answer<IndexAnswer>>> {
        let (users, things) = (&users(), &things());
        let answer = match (bug, ops) {
            (None, [IndexOp::set_user { user }]) => {
                let run = session.apply(|tx| async move { Ok(users.set_user(&tx, user).await?.map(Old)) });
                run.await.map(|old| IndexAnswer::set_user(replaced_user(old)))
            }
            (None, [IndexOp::delete_user { user_id }]) => {
                let run =
                    session.apply(|tx| async move { Ok(users.delete_user(&tx, user_id).await?.map(Old)) });
                run.await.map(|old| IndexAnswer::delete_user(replaced_user(old)))
            }
            (None, [IndexOp::set { thing }]) => {
                let run = session.apply(|tx| async move { Ok(things.set(&tx, thing).await?.map(Old)) });
                run.await.map(|old| IndexAnswer::set(replaced_thing(old)))
            }
            (None, [IndexOp::delete { id }]) => {
                let run = session.apply(|tx| async move { Ok(things.delete(&tx, id).await?.map(Old)) });
                run.await.map(|old| IndexAnswer::delete(replaced_thing(old)))
            }
            _ => return None,
        };
        Some(concluded::<_, Error>(answer.map(|answer| Recorded(vec![answer]))))
    }

    async fn resolve(
        &self,
        bug: Option<&str>,
        session: &mut Session<Db>,
        ops: &[IndexOp],
        pending: OpId,
    ) -> Result<Fate<Vec<IndexAnswer>>, once::Error> {
        let user = |answer: fn(_) -> _| move |old| vec![answer(replaced_user(old))];
        let thing = |answer: fn(_) -> _| move |old| vec![answer(replaced_thing(old))];
        Ok(match (bug, ops) {
            (None, [IndexOp::set_user { .. }]) => {
                session.resolve(pending).await?.map(user(IndexAnswer::set_user))
            }
            (None, [IndexOp::delete_user { .. }]) => {
                session.resolve(pending).await?.map(user(IndexAnswer::delete_user))
            }
            (None, [IndexOp::set { .. }]) => session.resolve(pending).await?.map(thing(IndexAnswer::set)),
            (None, [IndexOp::delete { .. }]) => {
                session.resolve(pending).await?.map(thing(IndexAnswer::delete))
            }
            _ => session.resolve(pending).await?.map(|Recorded(answers)| answers),
        })
    }

    fn model(&self) -> Model {
        Model::new(self.first_state())
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Result<Model, String>> {
        stored::read(tx, self.as_printed).await
    }
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Index>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::drawn;
    use shaketable_sim::seed::Seed;
    use std::{collections::BTreeSet, ops::Bound};

    #[test]
    fn clients_meet_and_every_bound_is_drawn() {
        use IndexAnswer::*;
        let (mut moved, mut found, mut bounds) = (0, 0, BTreeSet::new());
        let workload = Index::draw(&mut Seed(0).stream("index"), None);
        for seed in 0..100 {
            let mut model = Model::new(State::default());
            let (_, operations) = drawn::<Mounted<Index>>(seed);
            for op in operations.iter().flatten().flatten() {
                match workload.replay(&mut model, op, &At::default()) {
                    Ok(set_user(Some(_)) | delete_user(Some(_)) | get_user(Some(_))) => moved += 1,
                    Ok(set(Some(_)) | delete(Some(_)) | get(Some(_))) => moved += 1,
                    Ok(in_region(lists)) if lists[0].count > 1 => found += 1,
                    Ok(find([list, _]) | pages([list, _])) if list.count > 1 => found += 1,
                    Ok(in_regions(list) | by_name(list) | between(list)) if list.count > 1 => found += 1,
                    Ok(all_users(list) | all_things(list)) if list.count > 1 => found += 1,
                    _ => {}
                }
                if let IndexOp::between { span: Span::TagRank((from, to)), .. } = op {
                    let kind = |bound: &Bound<_>| format!("{bound:?}").split('(').next().map(str::to_owned);
                    bounds.insert((kind(from), kind(to)));
                }
            }
        }
        assert!(moved > 500 && found > 50 && bounds.len() == 9, "{moved} {found} {bounds:?}");
    }
}
