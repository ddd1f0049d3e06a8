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
mod client;
#[cfg(test)]
mod documents;
mod model;
mod operations;
mod planted;
mod records;
mod stored;

pub use model::{Model, State};
pub use operations::{Answer, Key, Listed, Op, Span, ToldThing, ToldUser};
pub use records::Thing;

use crate::{beside, shared::draw_edge_texts};
use bytes::Bytes;
use client::{replaced_thing, replaced_user, right};
use foundationdb_tuple::Subspace;
use planted::{BUGS, Planted};
use proptest::prelude::*;
use records::{entries, other_table, record_key, record_value, table, thing_key, things, users};
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    models::timeline::Timeline,
    specimen::{self, At, Recorded, Specimen},
    strategies,
    workload::{Bug, Outcome},
};
use shaketable_layers::index::{Error, Old, users::User};
use shaketable_sim::seed::Stream;
use shaketable_tx::{
    self as tx, Database, Db, Env,
    Isolation::{self, Snapshot},
    Transaction, Tx,
    once::{self, Fate, OpId, Session},
};
use std::fmt::Debug;

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
    mix: [u32; 4],
    planted: Option<Planted>,
}

impl Index {
    /// The keys of the rows beside the indexes and the records.
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
            let zipcode = Some(self.zipcodes().swap_remove(0));
            state.set(&User { id: format!("user-{n}"), name: self.names().swap_remove(0), zipcode });
        }
        state
    }

    /// Whether a write that is alone in its transaction is recorded with the layer's own answer.
    fn records_alone(&self, ops: &[Op]) -> bool {
        let writes = matches!(ops, [Op::SetUser(_) | Op::DeleteUser(_) | Op::Set(_) | Op::Delete(_)]);
        self.planted.is_none() && writes
    }
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Index>>()
}

impl Specimen for Index {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "index";
    const ABOUT: &'static str =
        "records found by key and by range: every index is the projection of the records";
    const CHECKS_LIMITS: bool = true;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &["index: a record moves to another key of an index", "index: a covered part changes under its key"]
    }

    fn rare_kinds() -> &'static [&'static str] {
        &["Undeclared"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Index {
        let planted = bug.and_then(Planted::named);
        let most = strategies::CONFUSED_TEXT.len() as u64 + 1;
        // The recipe's own layout begins without users.
        let crowds: &[u16] = if planted == Some(Planted::AsPrinted) { &[0] } else { &[0, 0, 0, 150] };
        let mut drawn = Index {
            users: rng.range(2..most) as usize,
            zipcodes: rng.range(1..most) as usize,
            names: rng.range(1..most) as usize,
            edges: draw_edge_texts(rng),
            id_padding: 0,
            padding: *rng.pick(&[0, 0, 100, 1_500]),
            crowd: *rng.pick(crowds),
            ids: (rng.range(0..18) as usize, rng.range(2..10) as usize),
            mix: [rng.range(2..10), rng.range(2..6), rng.range(1..8), rng.range(1..6)].map(|w| w as u32),
            planted,
        };
        drawn.id_padding = strategies::draw_padding(rng);
        drawn
    }

    fn keys(&self) -> Vec<Bytes> {
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
        records.chain(entries).chain(things).map(Bytes::from).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        self.drawn()
    }

    fn is_read_only(op: &Op) -> bool {
        !matches!(op, Op::SetUser(_) | Op::DeleteUser(_) | Op::Swap(..) | Op::Set(_) | Op::Delete(_))
    }

    /// Looks at snapshot have no conflict range. Writes of different records do not conflict either, but here
    /// clients write the same ones.
    fn is_conflict_free(&self, op: &Op) -> bool {
        use Op::*;
        matches!(
            op,
            Users(true) | Get(_, true) | Find(_, true) | Pages(_, true, _) | Things(true) | Between(_, true)
        )
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
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

    async fn perform(&self, tx: &Tx, _: &Env, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        if let Some(planted) = self.planted
            && let Some(answer) = planted::perform(planted, tx, op).await?
        {
            return Ok(answer);
        }
        match op.at_snapshot() {
            Some(op) if isolation == Snapshot => right(tx, &op).await,
            _ => right(tx, op).await,
        }
    }

    async fn apply(
        &self,
        _: Option<&str>,
        session: &mut Session<Db>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        if let Some(planted) = self.planted {
            return planted::apply_planted(planted, session, ops).await;
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

    async fn resolve(
        &self,
        _: Option<&str>,
        session: &mut Session<Db>,
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

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
    }

    fn model(&self) -> Model {
        Timeline::new(self.first_state())
    }

    fn replay(&self, model: &mut Model, op: &Op, at: &At) -> Result<Answer, Error> {
        self.replayed(model, op, at)
    }

    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Model, Misfit>> {
        Ok(self.read(tx).await?.map_err(Misfit::from))
    }
}
