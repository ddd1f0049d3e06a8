//! Planted bugs: indexed records implemented or used wrongly, as the recipe is printed or as is easily done
//! by mistake.

use super::{
    Index, IndexAnswer, IndexOp, Key, Thing, as_printed,
    records::{entries, record_key, record_value, table, thing_key, users},
    shown::{Listed, ShownThing, ShownUser, listed, region, shown_user},
};
use crate::shared::{in_order, seen_before};
use foundationdb_tuple::{Subspace, pack};
use parking_lot::Mutex;
use shaketable::{
    prelude::*,
    specimen::{Answer, Recorded, concluded, ran},
    weakened::{Flaw, flawed},
};
use shaketable_layers::{
    id::Id,
    index::{Error, Record, users::User},
};
use shaketable_tx::RunError;

/// The outcome of a transaction's calls; `None` if a bug does not change them.
type Ended = Option<Outcome<Answer<IndexAnswer>>>;

#[shaketable::planted]
#[flaw(
    find_at_snapshot,
    in_region | find | between,
    AtSnapshot,
    "lookups before a write are performed at snapshot",
    "a snapshot read in a composed look-up"
)]
impl Index {
    /// The zip code is part of the user's key, and old index entries remain.
    #[bug(set_user, "the recipe's set_user")]
    async fn as_printed(&self, tx: &Tx, user: &User) -> Result<Option<ShownUser>, Error> {
        if !is_short(user) {
            return self.set_user(tx, user).await;
        }
        Ok(as_printed::set(tx, user).await?.as_ref().map(shown_user))
    }

    #[bug(delete_user, part_of = "as-printed")]
    async fn printed_delete(&self, tx: &Tx, user_id: &str) -> Result<Option<ShownUser>, Error> {
        Ok(as_printed::delete(tx, user_id).await?.as_ref().map(shown_user))
    }

    #[bug(swap, part_of = "as-printed")]
    async fn printed_swap(&self, tx: &Tx, one: &str, other: &str) -> Result<bool, Error> {
        as_printed::swap(tx, one, other).await
    }

    #[bug(get_user, part_of = "as-printed")]
    async fn printed_get(&self, tx: &Tx, user_id: &str) -> Result<Option<ShownUser>, Error> {
        Ok(as_printed::get(tx, user_id).await?.as_ref().map(shown_user))
    }

    #[bug(in_region, part_of = "as-printed")]
    async fn printed_region(&self, tx: &Tx, zip: &str, covered: bool) -> Result<Vec<Listed>, Error> {
        as_printed::in_region(tx, zip, covered).await
    }

    /// The first batch of a range read is taken for the whole lookup.
    #[bug(in_region, "a range that is longer than a batch")]
    async fn first_batch(&self, tx: &Tx, zip: &str, covered: bool) -> Result<Vec<Listed>, Error> {
        self.in_region(&first_batches(tx), zip, covered).await
    }

    #[bug(by_name, part_of = "first-batch")]
    async fn first_batch_of_names(&self, tx: &Tx, name: &str) -> Result<Listed, Error> {
        self.by_name(&first_batches(tx), name).await
    }

    /// Index entries are written in a separate transaction.
    #[bug(*, "a database passed where a transaction belongs")]
    async fn two_transactions(&self, session: &mut Session<Db>, ops: &[IndexOp]) -> Ended {
        let (write, first) = (&Write::of(ops)?, &Mutex::new(None));
        let run = session.apply(|tx| async move {
            let old = users().get_user(&tx, write.id).await?;
            first.lock().clone_from(&old);
            write.store(&tx);
            Ok::<_, Error>(Recorded(vec![write.answer(old.as_ref())]))
        });
        let outcome = concluded(run.await);
        if matches!(outcome, Outcome::Answered(_)) {
            let (old, db) = (&first.lock().take(), session.database());
            let entries = db.run(|tx, _| async move {
                write.index(&tx, old.as_ref());
                Ok::<_, tx::Error>(())
            });
            // The record is written; the bug does not care what becomes of the entries.
            let _ = entries.await;
        }
        Some(outcome)
    }

    /// The old record read in the first attempt is kept for the retries.
    #[bug(*, "state that survives a retry")]
    async fn kept_old(&self, session: &mut Session<Db>, ops: &[IndexOp]) -> Ended {
        let (write, first) = (&Write::of(ops)?, &Mutex::new(None));
        let run = session.apply(|tx| async move {
            let kept: Option<Option<User>> = first.lock().clone();
            let old = match kept {
                Some(old) => old,
                None => users().get_user(&tx, write.id).await?,
            };
            *first.lock() = Some(old.clone());
            write.store(&tx);
            write.index(&tx, old.as_ref());
            Ok::<_, Error>(Recorded(vec![write.answer(old.as_ref())]))
        });
        Some(concluded(run.await))
    }

    /// A retry returns what it has replaced itself.
    #[bug(*, "the answer of the last attempt")]
    async fn answer_of_retry(&self, session: &mut Session<Db>, ops: &[IndexOp]) -> Ended {
        let (write, db) = (&Write::of(ops)?, &session.database().clone());
        let record = &Subspace::from("done").pack(&db.env().random_u64());
        let run = db.run(|tx, _| async move {
            if tx.get(record, Serializable).await?.is_some() {
                let user = users().get_user(&tx, write.id).await?;
                return Ok(vec![write.answer(user.as_ref())]);
            }
            tx.set(record, b"");
            self.all(&tx, db.env(), ops).await
        });
        Some(ran(run.await))
    }

    /// An unknown outcome is reported as a failure.
    #[bug(*, "a timeout reported as a failure")]
    async fn timeout_is_refusal(&self, session: &mut Session<Db>, ops: &[IndexOp]) -> Ended {
        if ops.iter().all(Index::is_read_only) {
            return None;
        }
        let db = &session.database().clone();
        let run = session.apply(|tx| async move { self.all(&tx, db.env(), ops).await.map(Recorded) });
        Some(match concluded(run.await) {
            Outcome::Unknown(e) => Outcome::Failed(e),
            known => known,
        })
    }

    /// A lookup reads entries and records in two transactions.
    #[bug(in_region, "an answer used in another transaction, generalized")]
    async fn lookup_then_get(
        &self,
        db: &Db,
        zip: &str,
        covered: bool,
    ) -> Result<Vec<Listed>, RunError<Error>> {
        if !covered {
            return db.run(|tx, _| async move { self.in_region(&tx, zip, covered).await }).await;
        }
        let ids = db.run(|tx, _| async move { users().get_user_ids_in_region(&tx, zip).await });
        let ids = &ids.await?;
        db.run(|tx, _| async move {
            let mut named = Vec::new();
            for id in ids {
                let user = users().get_user(&tx, id).await?;
                named.push((id.clone(), user.map(|user| user.name).unwrap_or_default()));
            }
            Ok::<_, Error>(region(ids, Some(&named)))
        })
        .await
    }

    /// A lookup is performed in a separate transaction, before the writes that it follows.
    #[bug(*, "a look-up that does not compose")]
    async fn lookup_apart(&self, session: &mut Session<Db>, ops: &[IndexOp]) -> Ended {
        let (look, before) = ops.split_last()?;
        if before.iter().all(Index::is_read_only) || !Index::is_read_only(look) {
            return None;
        }
        let env = &session.database().env().clone();
        let look = |tx| async move { self.all(&tx, env, std::slice::from_ref(look)).await };
        let act = |tx, seen| async move { Ok([self.all(&tx, env, before).await?, seen].concat()) };
        Some(seen_before(session, look, act).await)
    }

    /// A name is indexed under its first hundred bytes.
    #[bug(set_user, "an index entry under a truncated key")]
    async fn truncated_key(&self, tx: &Tx, user: &User) -> Result<Option<ShownUser>, Error> {
        let (index, old) = (index_of("name"), self.set_user(tx, user).await?);
        let cut: String = user.name.chars().take(100).collect();
        tx.clear(&index.pack(&(&user.name, &user.id)));
        tx.set(&index.pack(&(cut, &user.id)), b"");
        Ok(old)
    }

    /// A zip code is stored in the index between its type and a NUL without escaping.
    #[bug(set_user, "an escape left out")]
    async fn nul_unescaped(&self, tx: &Tx, user: &User) -> Result<Option<ShownUser>, Error> {
        let (index, old) = (index_of("zipcode"), self.set_user(tx, user).await?);
        if let User { id, zipcode: Some(zip), .. } = user {
            tx.clear(&index.pack(&(zip, id)));
            tx.set(&[index.bytes(), b"\x02", zip.as_bytes(), b"\0", &pack(id)].concat(), b"");
        }
        Ok(old)
    }

    /// A lookup by name finds all names with this prefix.
    #[bug(by_name, "prefix confusion")]
    async fn prefix_lookup(&self, tx: &Tx, name: &str) -> Result<Listed, Error> {
        let index = index_of("name");
        // Without the NUL that ends a text.
        let mut begin = index.pack(&name);
        begin.pop();
        let end = [&begin[..], b"\xff\xff"].concat();
        let rows = tx.get_range_all(RangeOption::from((begin, end)), Serializable).await?;
        let found = rows.iter().filter_map(|row| index.unpack::<(String, String)>(&row.key).ok());
        Ok(listed(found.map(|(_, id)| id)))
    }

    /// A zip code with the same prefix as the new one is taken for the same, and its entries remain.
    #[bug(set_user, "a stale entry on one path")]
    async fn starts_alike(&self, tx: &Tx, user: &User) -> Result<Option<ShownUser>, Error> {
        let old = users().get_user(tx, &user.id).await?.and_then(|old| old.zipcode).unwrap_or_default();
        if !user.zipcode.as_ref().is_some_and(|new| new.starts_with(&old)) {
            return self.set_user(tx, user).await;
        }
        self.set_user(&flawed(tx, Flaw::Uncleared, [index_of("zipcode").range()]), user).await
    }

    /// A tag of bytes is looked up as text.
    #[bug(find, "equal under one encoding, different under another")]
    async fn type_lost(&self, tx: &Tx, isolation: Isolation, key: &Key) -> Result<[Listed; 2], Error> {
        let Key::Tag(Id::Bytes(bytes)) = key else { return self.find(tx, isolation, key).await };
        let text = Id::Text(String::from_utf8_lossy(bytes).into_owned());
        self.find(tx, isolation, &Key::Tag(text)).await
    }

    /// What an index covers is truncated to the limit.
    #[bug(set, "a limit that is ignored")]
    async fn covered_unchecked(&self, tx: &Tx, thing: &Thing) -> Result<Option<ShownThing>, Error> {
        let set = self.set(tx, thing).await;
        let Err(Error::CoveredTooLarge { limit, .. }) = set else { return set };
        // Twice the body is covered.
        let cut = Thing { body: thing.body.slice(..limit / 2), ..thing.clone() };
        let old = self.set(tx, &cut).await?;
        tx.set(&thing_key(&thing.id), &thing.encode());
        Ok(old)
    }

    /// A record is removed before its successor is found to be too large.
    #[bug(set, "a refusal that comes too late")]
    async fn deleted_first(&self, tx: &Tx, thing: &Thing) -> Result<Option<ShownThing>, Error> {
        let set = self.set(tx, thing).await;
        if let Err(Error::RecordTooLarge { .. } | Error::CoveredTooLarge { .. }) = set {
            self.delete(tx, &thing.id).await?;
        }
        set
    }

    /// A lookup by name begins and ends with the text, and leaves out what follows U+FFFF.
    #[bug(by_name, "a range that ends at a constant")]
    async fn names_end(&self, tx: &Tx, name: &str) -> Result<Listed, Error> {
        let ids = users().get_user_ids_by_name(tx, name).await?;
        Ok(listed(ids.into_iter().filter(|id| &id[..] < "\u{ffff}")))
    }

    /// A listing of more than six records leaves out the last one.
    #[bug(all_users, "a loop that ends one too early")]
    async fn last_listed(&self, tx: &Tx, isolation: Isolation) -> Result<Listed, Error> {
        let mut all = users().table().records(tx, isolation).await?;
        if all.len() > 6 {
            all.pop();
        }
        Ok(listed(all.iter().map(shown_user)))
    }

    /// The calls of a transaction, performed correctly.
    async fn all(&self, tx: &Tx, env: &Env, ops: &[IndexOp]) -> Result<Vec<IndexAnswer>, Error> {
        in_order(ops, |op| self.perform(tx, env, op, Serializable)).await
    }
}

fn index_of(name: &str) -> Subspace {
    table().subspace(&("index", name))
}

/// A transaction that reads only the first batch of two indexes of users.
fn first_batches(tx: &Tx) -> Tx {
    flawed(tx, Flaw::FirstBatch, ["zipcode", "name"].map(|name| index_of(name).range()))
}

/// Whether a user certainly fits into every key: bugs that write keys themselves check no limits.
fn is_short(user: &User) -> bool {
    user.name.len() < 5_000 && user.zipcode.as_ref().is_none_or(|zip| zip.len() < 5_000)
}

/// A write of one user that is alone in its transaction.
struct Write<'a> {
    id: &'a str,
    /// The new record, if it is not a deletion.
    new: Option<&'a User>,
}

impl Write<'_> {
    fn of(ops: &[IndexOp]) -> Option<Write<'_>> {
        match ops {
            [IndexOp::set_user { user }] if is_short(user) => Some(Write { id: &user.id, new: Some(user) }),
            [IndexOp::delete_user { user_id }] => Some(Write { id: user_id, new: None }),
            _ => None,
        }
    }

    /// Writes the record.
    fn store(&self, tx: &Tx) {
        match self.new {
            Some(user) => tx.set(&record_key(self.id), &record_value(user)),
            None => tx.clear(&record_key(self.id)),
        }
    }

    /// Removes the entries of the old record, and writes those of the new one.
    fn index(&self, tx: &Tx, old: Option<&User>) {
        old.into_iter().flat_map(entries).for_each(|(key, _)| tx.clear(&key));
        self.new.into_iter().flat_map(entries).for_each(|(key, covered)| tx.set(&key, &covered));
    }

    fn answer(&self, old: Option<&User>) -> IndexAnswer {
        let old = old.map(shown_user);
        match self.new {
            Some(_) => IndexAnswer::set_user(old),
            None => IndexAnswer::delete_user(old),
        }
    }
}
