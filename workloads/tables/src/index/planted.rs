//! Planted bugs: indexed records implemented or used wrongly, as the recipe is printed or as is easily done
//! by mistake.

use super::{
    Answer, Key, Op, Thing, as_printed,
    client::right,
    operations::{listed, old_user, region, told_user},
    records::{entries, record_key, record_value, table, thing_key, users},
};
use crate::shared::{in_order, isolation, seen_before};
use foundationdb_tuple::{Subspace, pack};
use parking_lot::Mutex;
use shaketable::{
    specimen::{self, INTERLEAVED, Recorded, UNRECORDED, ran},
    weakened::{Flaw, everything, flawed, weakened},
    workload::Outcome,
};
use shaketable_layers::{
    id::Id,
    index::{Error, Record, users::User},
};
use shaketable_tx::{
    self as tx, Database, Db, Isolation::Serializable, RangeOption, Transaction, Tx, once::Session,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two changes of a record that run side by side in one transaction remove the same entries", "two futures in one transaction";
    Unrecorded = UNRECORDED, "a write is retried after an unknown result without an operation record", "a blind write done twice";
    AsPrinted = "as-printed", "the zip code is part of the user's key, and old index entries remain", "the recipe's set_user";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole lookup", "a range that is longer than a batch";
    TwoTransactions = "two-transactions", "index entries are written in a separate transaction", "a database passed where a transaction belongs";
    KeptOld = "kept-old", "the old record read in the first attempt is kept for the retries", "state that survives a retry";
    AnswerOfRetry = "answer-of-retry", "a retry returns what it has replaced itself", "the answer of the last attempt";
    TimeoutIsRefusal = "timeout-is-refusal", "an unknown outcome is reported as a failure", "a timeout reported as a failure";
    LookupThenGet = "lookup-then-get", "a lookup reads entries and records in two transactions", "an answer used in another transaction, generalized";
    LookupApart = "lookup-apart", "a lookup is performed in a separate transaction, before the writes that it follows", "a look-up that does not compose";
    FindAtSnapshot = "find-at-snapshot", "lookups before a write are performed at snapshot", "a snapshot read in a composed look-up";
    TruncatedKey = "truncated-key", "a name is indexed under its first hundred bytes", "an index entry under a truncated key";
    NulUnescaped = "nul-unescaped", "a zip code is stored in the index between its type and a NUL without escaping", "an escape left out";
    PrefixLookup = "prefix-lookup", "a lookup by name finds all names with this prefix", "prefix confusion";
    StartsAlike = "starts-alike", "a zip code with the same prefix as the new one is taken for the same, and its entries remain", "a stale entry on one path";
    TypeLost = "type-lost", "a tag of bytes is looked up as text", "equal under one encoding, different under another";
    CoveredUnchecked = "covered-unchecked", "what an index covers is truncated to the limit", "a limit that is ignored";
    DeletedFirst = "deleted-first", "a record is removed before its successor is found to be too large", "a refusal that comes too late";
    NamesEnd = "names-end", "a lookup by name begins and ends with the text, and leaves out what follows U+FFFF", "a range that ends at a constant";
    LastListed = "last-listed", "a listing of more than six records leaves out the last one", "a loop that ends one too early";
}

fn index_of(name: &str) -> Subspace {
    table().subspace(&("index", name))
}

/// Performs a call that the bug changes; `None` for every other call.
pub async fn perform(planted: Planted, tx: &Tx, op: &Op) -> Result<Option<Answer>, Error> {
    Ok(Some(match (planted, op) {
        (Planted::AsPrinted, op) => return as_printed::perform(tx, op).await.transpose(),
        (Planted::FindAtSnapshot, Op::InRegion(..) | Op::Find(..) | Op::Between(..)) => {
            right(&weakened(tx.clone(), everything()), op).await?
        }
        (Planted::FirstBatch, Op::InRegion(..) | Op::ByName(_)) => {
            let indexes = ["zipcode", "name"].map(|name| index_of(name).range());
            right(&flawed(tx, Flaw::FirstBatch, indexes), op).await?
        }
        (Planted::StartsAlike, Op::SetUser(user)) => {
            let old = users().get_user(tx, &user.id).await?.and_then(|old| old.zipcode).unwrap_or_default();
            if !user.zipcode.as_ref().is_some_and(|new| new.starts_with(&old)) {
                return Ok(None);
            }
            right(&flawed(tx, Flaw::Uncleared, [index_of("zipcode").range()]), op).await?
        }
        (Planted::TruncatedKey, Op::SetUser(user)) => {
            let (index, answer) = (index_of("name"), right(tx, op).await?);
            let cut: String = user.name.chars().take(100).collect();
            tx.clear(&index.pack(&(&user.name, &user.id)));
            tx.set(&index.pack(&(cut, &user.id)), b"");
            answer
        }
        (Planted::NulUnescaped, Op::SetUser(User { id, zipcode: Some(zip), .. })) => {
            let (index, answer) = (index_of("zipcode"), right(tx, op).await?);
            tx.clear(&index.pack(&(zip, id)));
            tx.set(&[index.bytes(), b"\x02", zip.as_bytes(), b"\0", &pack(id)].concat(), b"");
            answer
        }
        (Planted::PrefixLookup, Op::ByName(name)) => {
            let index = index_of("name");
            // Without the NUL that ends a text.
            let mut begin = index.pack(name);
            begin.pop();
            let end = [&begin[..], b"\xff\xff"].concat();
            let rows = tx.get_range_all(RangeOption::from((begin, end)), Serializable).await?;
            let found = rows.iter().filter_map(|row| index.unpack::<(String, String)>(&row.key).ok());
            Answer::Found(vec![listed(found.map(|(_, id)| id))])
        }
        (Planted::TypeLost, Op::Find(Key::Tag(Id::Bytes(bytes)), snapshot)) => {
            let text = Id::Text(String::from_utf8_lossy(bytes).into_owned());
            right(tx, &Op::Find(Key::Tag(text), *snapshot)).await?
        }
        (Planted::CoveredUnchecked, Op::Set(thing)) => match right(tx, op).await {
            Err(Error::CoveredTooLarge { limit, .. }) => {
                // Twice the body is covered.
                let cut = Thing { body: thing.body.slice(..limit / 2), ..thing.clone() };
                let old = right(tx, &Op::Set(cut)).await?;
                tx.set(&thing_key(&thing.id), &thing.encode());
                old
            }
            set => set?,
        },
        (Planted::DeletedFirst, Op::Set(thing)) => {
            let set = right(tx, op).await;
            if let Err(Error::RecordTooLarge { .. } | Error::CoveredTooLarge { .. }) = set {
                right(tx, &Op::Delete(thing.id.clone())).await?;
            }
            set?
        }
        (Planted::NamesEnd, Op::ByName(name)) => {
            let ids = users().get_user_ids_by_name(tx, name).await?;
            Answer::Found(vec![listed(ids.into_iter().filter(|id| &id[..] < "\u{ffff}"))])
        }
        (Planted::LastListed, Op::Users(snapshot)) => {
            let all = users().table().records(tx, isolation(*snapshot)).await?;
            let most = if all.len() > 6 { all.len() - 1 } else { all.len() };
            Answer::Found(vec![listed(all.iter().take(most).map(told_user))])
        }
        _ => return Ok(None),
    }))
}

/// The user that a call writes, and the new record if it is not a deletion.
pub fn written(op: &Op) -> Option<(&str, Option<&User>)> {
    match op {
        Op::SetUser(user)
            if user.name.len() < 5_000 && user.zipcode.as_ref().is_none_or(|z| z.len() < 5_000) =>
        {
            Some((&user.id, Some(user)))
        }
        Op::DeleteUser(id) => Some((id, None)),
        _ => None,
    }
}

/// Performs the calls of a transaction with the bug; `None` if the bug does not change them.
pub async fn apply_planted(
    planted: Planted,
    session: &mut Session<Db>,
    ops: &[Op],
) -> Option<Outcome<specimen::Answer<Answer>>> {
    Some(match (planted, ops) {
        (Planted::TimeoutIsRefusal, ops) if !ops.iter().all(is_read_only) => {
            let run =
                session.apply(|tx| async move { in_order(ops, |op| right(&tx, op)).await.map(Recorded) });
            match specimen::told(run.await) {
                Outcome::Unknown(e) => Outcome::Failed(e),
                known => known,
            }
        }
        (Planted::LookupThenGet, [Op::InRegion(zip, true)]) => {
            let db = session.database().clone();
            let ids = db.run(|tx, _| async move { users().get_user_ids_in_region(&tx, zip).await }).await;
            let ids = &match ids {
                Ok(ids) => ids,
                Err(e) => return Some(specimen::refused(&e.error)),
            };
            let named = db.run(|tx, _| async move {
                let mut named = Vec::new();
                for id in ids {
                    let user = users().get_user(&tx, id).await?;
                    named.push((id.clone(), user.map(|user| user.name).unwrap_or_default()));
                }
                Ok::<_, Error>(vec![region(ids, Some(&named))])
            });
            ran(named.await)
        }
        (Planted::LookupApart, [before @ .., look])
            if !before.iter().all(is_read_only) && is_read_only(look) =>
        {
            let look = |tx| async move { right(&tx, look).await };
            let act = |tx, seen| async move {
                let answers = in_order(before, |op| right(&tx, op)).await?;
                Ok([answers, vec![seen]].concat())
            };
            seen_before(session, look, act).await
        }
        (Planted::TwoTransactions | Planted::KeptOld, [op]) => write(planted, session, written(op)?).await,
        (Planted::AnswerOfRetry, [op]) => {
            let ((id, _), db) = (written(op)?, session.database().clone());
            let record = &Subspace::from("done").pack(&db.env().random_u64());
            let run = db.run(|tx, _| async move {
                if tx.get(record, Serializable).await?.is_some() {
                    return Ok(vec![old_user(users().get_user(&tx, id).await?)]);
                }
                tx.set(record, b"");
                Ok::<_, Error>(vec![right(&tx, op).await?])
            });
            ran(run.await)
        }
        _ => return None,
    })
}

fn is_read_only(op: &Op) -> bool {
    <crate::index::Index as specimen::Specimen>::is_read_only(op)
}

/// Writes one user with the bug.
async fn write(
    planted: Planted,
    session: &mut Session<Db>,
    (id, new): (&str, Option<&User>),
) -> Outcome<specimen::Answer<Answer>> {
    let first = &Mutex::new(None);
    let run = session.apply(|tx| async move {
        let kept: Option<Option<User>> = first.lock().clone().filter(|_| planted == Planted::KeptOld);
        let old = match kept {
            Some(old) => old,
            None => users().get_user(&tx, id).await?,
        };
        *first.lock() = Some(old.clone());
        match new {
            Some(user) => tx.set(&record_key(id), &record_value(user)),
            None => tx.clear(&record_key(id)),
        }
        if planted == Planted::KeptOld {
            index(&tx, old.as_ref(), new);
        }
        Ok::<_, Error>(Recorded(vec![old_user(old)]))
    });
    let outcome = specimen::told(run.await);
    if planted == Planted::TwoTransactions && matches!(outcome, Outcome::Answered(_)) {
        let old = &first.lock().clone().flatten();
        let db = session.database().clone();
        let entries = db.run(|tx, _| async move {
            index(&tx, old.as_ref(), new);
            Ok::<_, tx::Error>(())
        });
        // The record is written; the bug does not care what becomes of the entries.
        let _ = entries.await;
    }
    outcome
}

/// Removes the entries of the old record, and writes those of the new one.
fn index(tx: &Tx, old: Option<&User>, new: Option<&User>) {
    old.into_iter().flat_map(entries).for_each(|(key, _)| tx.clear(&key));
    new.into_iter().flat_map(entries).for_each(|(key, covered)| tx.set(&key, &covered));
}
