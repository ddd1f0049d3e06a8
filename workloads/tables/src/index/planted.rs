//! Planted bugs: indexed records implemented or used wrongly, as the recipe is printed or as is easily done
//! by mistake.

use super::{
    Answer, Key, Listed, Op, Thing, as_printed,
    client::right,
    operations::{listed, old_user, region, told_user},
    records::{
        Entries, covered, entries, entries_of_thing, record_key, record_value, table, thing_key, users,
    },
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
    index::{Error, MAX_RECORD_BYTES, Record, users::User},
};
use shaketable_tx::{
    self as tx, Database, Isolation::Serializable, RangeOption, Transaction, VALUE_SIZE_LIMIT, once::Session,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two changes of a record that run side by side in one transaction remove the same entries", "two futures in one transaction";
    Unrecorded = UNRECORDED, "a write is retried after an unknown result without an operation record", "a blind write done twice";
    AsPrinted = "as-printed", "the zip code is part of the user's key, and old index entries remain", "the recipe's set_user";
    OldAtSnapshot = "old-at-snapshot", "the record to be replaced is read at snapshot", "a read without isolation";
    DeleteForgets = "delete-forgets", "deleting a user does not remove the entries of the zip code", "an index forgotten on delete";
    DeleteByMemory = "delete-by-memory", "deleting a user removes the entries of what the client saw before, not of what is stored", "an index forgotten on delete";
    NameForgotten = "name-forgotten", "the index of names is maintained for new users, not for renamed ones", "an index forgotten on one path";
    CoveredStale = "covered-stale", "a new name does not reach the covering index unless the zip code changes", "an index forgotten on one path, covering";
    CoveredOfOld = "covered-of-old", "a user who moves takes the old name along in the covering index", "a covered part taken from the wrong record";
    NullIndexed = "null-indexed", "a missing zip code is indexed on write and not unindexed on removal", "unset values, handled in two ways";
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
    BetweenIncludes = "between-includes", "a range of zip codes includes its end", "a bound off by one";
    BetweenExcludes = "between-excludes", "a range that excludes its start excludes longer keys that continue with a NUL", "the key after a key, where its entries are meant";
    StartsAlike = "starts-alike", "a zip code with the same prefix as the new one is taken for the same, and its entries remain", "a stale entry on one path";
    SwapForgets = "swap-forgets", "exchanging zip codes does not maintain the covering index", "a stale entry on one path";
    TypeLost = "type-lost", "a tag of bytes is looked up as text", "equal under one encoding, different under another";
    LimitBeyond = "limit-beyond", "a record one byte beyond the limit is stored", "a limit off by one";
    CoveredUnchecked = "covered-unchecked", "what an index covers is truncated to the limit", "a limit that is ignored";
    DeletedFirst = "deleted-first", "a record is removed before its successor is found to be too large", "a refusal that comes too late";
    NamesEnd = "names-end", "a lookup by name begins and ends with the text, and leaves out what follows U+FFFF", "a range that ends at a constant";
    IdLengthInByte = "id-length-in-byte", "the length of an id in the record of what was replaced takes one byte", "a cast that truncates";
    LastListed = "last-listed", "a listing of more than six records leaves out the last one", "a loop that ends one too early";
}

/// Performs a call that the bug changes; `None` for every other call.
pub async fn perform<T: Transaction>(planted: Planted, tx: &T, op: &Op) -> Result<Option<Answer>, Error> {
    let index_of = |name: &str| table().subspace(&("index", name));
    let found_users = |found: Listed| Answer::Found(vec![found]);
    Ok(Some(match (planted, op) {
        (Planted::IdLengthInByte, Op::SetUser(_) | Op::DeleteUser(_) | Op::Set(_) | Op::Delete(_)) => {
            short_ids(right(tx, op).await?)
        }
        (Planted::AsPrinted, op) => return as_printed::perform(tx, op).await.transpose(),
        (Planted::OldAtSnapshot, Op::SetUser(_) | Op::DeleteUser(_))
        | (Planted::FindAtSnapshot, Op::InRegion(_) | Op::Find(..) | Op::Between(..)) => {
            right(&weakened(tx.clone(), everything()), op).await?
        }
        (Planted::DeleteForgets, Op::DeleteUser(_)) => {
            let zipcodes = ["zipcode", "zipcode_name"].map(|name| index_of(name).range());
            right(&flawed(tx, Flaw::Uncleared, zipcodes), op).await?
        }
        (Planted::SwapForgets, Op::Swap(..)) => {
            let covering = [index_of("zipcode_name").range()];
            let unwritten = flawed(tx, Flaw::Unwritten, covering.clone());
            right(&flawed(&unwritten, Flaw::Uncleared, covering), op).await?
        }
        (
            Planted::NameForgotten
            | Planted::CoveredStale
            | Planted::CoveredOfOld
            | Planted::NullIndexed
            | Planted::TruncatedKey
            | Planted::NulUnescaped
            | Planted::StartsAlike,
            Op::SetUser(_) | Op::DeleteUser(_),
        ) => match written(op) {
            Some((id, new)) => replace(planted, tx, id, new).await?,
            None => return Ok(None),
        },
        (Planted::FirstBatch, Op::InRegion(_) | Op::ByName(_)) => {
            let indexes = ["zipcode", "name"].map(|name| index_of(name).range());
            right(&flawed(tx, Flaw::FirstBatch, indexes), op).await?
        }
        (Planted::PrefixLookup, Op::ByName(name)) => {
            let index = index_of("name");
            // Without the NUL that ends a text.
            let mut begin = index.pack(name);
            begin.pop();
            let end = [&begin[..], b"\xff\xff"].concat();
            let found = found(tx, &index, (begin, end)).await?;
            found_users(listed(found.into_iter().map(|(_, id)| id)))
        }
        (Planted::BetweenIncludes, Op::InRegions(from, to)) => {
            let index = index_of("zipcode");
            let range = (index.pack(from), index.subspace(to).range().1);
            found_users(listed(found(tx, &index, range).await?))
        }
        (Planted::BetweenExcludes, Op::InRegions(from, to)) => {
            let index = index_of("zipcode");
            let range = (index.subspace(from).range().1, index.pack(to));
            found_users(listed(found(tx, &index, range).await?))
        }
        (Planted::TypeLost, Op::Find(Key::Tag(Id::Bytes(bytes)), snapshot)) => {
            let text = Id::Text(String::from_utf8_lossy(bytes).into_owned());
            right(tx, &Op::Find(Key::Tag(text), *snapshot)).await?
        }
        (Planted::DeletedFirst, Op::Set(thing)) => {
            let set = right(tx, op).await;
            if let Err(Error::RecordTooLarge { .. } | Error::CoveredTooLarge { .. }) = set {
                right(tx, &Op::Delete(thing.id.clone())).await?;
            }
            set?
        }
        (Planted::NamesEnd, Op::ByName(name)) => {
            let ids = users().get_user_ids_by_name(tx, name).await?;
            found_users(listed(ids.into_iter().filter(|id| &id[..] < "\u{ffff}")))
        }
        (Planted::LastListed, Op::Users(snapshot)) => {
            let mut all = users().table().records(tx, isolation(*snapshot)).await?;
            if all.len() > 6 {
                all.pop();
            }
            found_users(listed(all.iter().map(told_user)))
        }
        (Planted::LimitBeyond, Op::Set(thing)) if thing.size() == MAX_RECORD_BYTES + 1 => {
            store(tx, thing, entries_of_thing(thing)).await?
        }
        (Planted::CoveredUnchecked, Op::Set(thing))
            if covered(thing).len() > VALUE_SIZE_LIMIT && thing.size() <= MAX_RECORD_BYTES =>
        {
            let mut entries = entries_of_thing(thing);
            entries.values_mut().for_each(|value| value.truncate(VALUE_SIZE_LIMIT));
            store(tx, thing, entries).await?
        }
        _ => return Ok(None),
    }))
}

/// What is decoded of a replaced record whose id is cut off at the length that one byte tells.
fn short_ids(answer: Answer) -> Answer {
    let cut = |packed: Vec<u8>| packed.len() & 0xff;
    match answer {
        Answer::User(Some((id, ..))) if cut(pack(&id)) < pack(&id).len() => Answer::User(None),
        Answer::Thing(Some((id, ..))) if cut(pack(&id)) < pack(&id).len() => Answer::Thing(None),
        sound => sound,
    }
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

/// Stores a thing with these entries, whatever the layer would refuse.
async fn store<T: Transaction>(tx: &T, thing: &Thing, entries: Entries) -> Result<Answer, Error> {
    let old = right(tx, &Op::Delete(Record::id(thing).clone())).await?;
    tx.set(&thing_key(Record::id(thing)), &thing.encode());
    entries.iter().for_each(|(key, value)| tx.set(key, value));
    Ok(old)
}

/// Replaces a user's record, with the entries that the bug computes.
async fn replace<T: Transaction>(
    planted: Planted,
    tx: &T,
    id: &str,
    new: Option<&User>,
) -> Result<Answer, Error> {
    let old = read(tx, id).await?;
    write(tx, id, old.as_ref(), new);
    let (before, after) = believed(planted, old.as_ref(), new);
    index(tx, &before, &after);
    Ok(old_user(old))
}

/// The entries that a writer with the bug assumes for the old record, and those for the new one.
fn believed(planted: Planted, old: Option<&User>, new: Option<&User>) -> (Entries, Entries) {
    let (mut before, mut after) = (all_entries(old), all_entries(new));
    let of = |index: &str, key: &[u8]| key.starts_with(table().subspace(&("index", index)).bytes());
    match planted {
        Planted::NameForgotten if old.is_some() && new.is_some() => {
            before.retain(|key, _| !of("name", key));
            after.retain(|key, _| !of("name", key));
        }
        Planted::CoveredStale => {
            let kept: Vec<_> = after.keys().filter(|key| before.contains_key(*key)).cloned().collect();
            kept.iter().for_each(|key| drop((before.remove(key), after.remove(key))));
        }
        Planted::CoveredOfOld => {
            let Some(old) = old else { return (before, after) };
            for (key, value) in &mut after {
                if of("zipcode_name", key) && !before.contains_key(key) {
                    *value = old.name.clone().into_bytes();
                }
            }
        }
        Planted::NullIndexed => {
            if let Some(user) = new.filter(|user| user.zipcode.is_none()) {
                after.extend(entries(&User { zipcode: Some(String::new()), ..user.clone() }));
            }
        }
        Planted::TruncatedKey => {
            let cut = |user: Option<&User>| {
                let name = |user: &User| user.name.chars().take(100).collect();
                all_entries(user.map(|user| User { name: name(user), ..user.clone() }).as_ref())
            };
            for (entries, user) in [(&mut before, old), (&mut after, new)] {
                entries.retain(|key, _| !of("name", key));
                entries.extend(cut(user).into_iter().filter(|(key, _)| of("name", key)));
            }
        }
        Planted::NulUnescaped => {
            for (entries, user) in [(&mut before, old), (&mut after, new)] {
                let Some((user, zip)) = user.and_then(|user| Some((user, user.zipcode.as_ref()?))) else {
                    continue;
                };
                entries.retain(|key, _| !of("zipcode", key));
                let index = table().subspace(&("index", "zipcode"));
                let key = [index.bytes(), b"\x02", zip.as_bytes(), b"\0", &pack(&user.id)].concat();
                entries.insert(key, Vec::new());
            }
        }
        Planted::StartsAlike => {
            let zipcode = |user: Option<&User>| user.and_then(|user| user.zipcode.clone());
            if let (Some(old), Some(new)) = (zipcode(old), zipcode(new))
                && new.starts_with(&old)
                && new != old
            {
                before.retain(|key, _| !of("zipcode", key));
            }
        }
        _ => {}
    }
    (before, after)
}

/// The entries of an index of users in a range of keys, as key and id.
async fn found<T: Transaction>(
    tx: &T,
    index: &Subspace,
    (begin, end): (Vec<u8>, Vec<u8>),
) -> Result<Vec<(String, String)>, Error> {
    if begin >= end {
        return Ok(Vec::new());
    }
    let rows = tx.get_range_all(RangeOption::from((begin, end)), Serializable).await?;
    // A row that cannot be read is ignored.
    Ok(rows.iter().filter_map(|row| index.unpack(&row.key).ok()).collect())
}

async fn read<T: Transaction>(tx: &T, id: &str) -> Result<Option<User>, Error> {
    users().get_user(tx, id).await
}

fn all_entries(user: Option<&User>) -> Entries {
    user.map(entries).unwrap_or_default()
}

fn write<T: Transaction>(tx: &T, id: &str, old: Option<&User>, new: Option<&User>) {
    match (new, old) {
        (Some(user), _) => tx.set(&record_key(id), &record_value(user)),
        (None, Some(_)) => tx.clear(&record_key(id)),
        (None, None) => {}
    }
}

fn index<T: Transaction>(tx: &T, before: &Entries, after: &Entries) {
    before.keys().filter(|key| !after.contains_key(*key)).for_each(|key| tx.clear(key));
    after.iter().for_each(|(key, covered)| tx.set(key, covered));
}

/// Performs the calls of a transaction with the bug; `None` if the bug does not change them.
pub async fn apply_planted<D: Database>(
    planted: Planted,
    session: &mut Session<D>,
    ops: &[Op],
) -> Option<Outcome<specimen::Answer<Answer>>> {
    let db = session.database().clone();
    let db = &db;
    match (planted, ops) {
        (Planted::TimeoutIsRefusal, ops) if !ops.iter().all(is_read_only) => {
            let run =
                session.apply(|tx| async move { in_order(ops, |op| right(&tx, op)).await.map(Recorded) });
            Some(match specimen::told(run.await) {
                Outcome::Unknown(e) => Outcome::Failed(e),
                known => known,
            })
        }
        (Planted::LookupThenGet, [Op::InRegion(zip)]) => Some(lookup_then_get(db, zip).await),
        (Planted::LookupApart, [before @ .., look])
            if !before.iter().all(is_read_only) && is_read_only(look) =>
        {
            let look = |tx| async move { right(&tx, look).await };
            let act = |tx, seen| async move {
                let answers = in_order(before, |op| right(&tx, op)).await?;
                Ok([answers, vec![seen]].concat())
            };
            Some(seen_before(session, look, act).await)
        }
        (
            Planted::DeleteByMemory | Planted::TwoTransactions | Planted::KeptOld | Planted::AnswerOfRetry,
            [op @ (Op::SetUser(_) | Op::DeleteUser(_))],
        ) => {
            let (id, new) = written(op)?;
            apply_planted_one(planted, session, id, new).await
        }
        _ => None,
    }
}

fn is_read_only(op: &Op) -> bool {
    <crate::index::Index as specimen::Specimen>::is_read_only(op)
}

/// Writes one user with the bug.
async fn apply_planted_one<D: Database>(
    planted: Planted,
    session: &mut Session<D>,
    id: &str,
    new: Option<&User>,
) -> Option<Outcome<specimen::Answer<Answer>>> {
    let db = session.database().clone();
    let db = &db;
    let one = |old: Option<User>| Recorded(vec![old_user(old)]);
    Some(match planted {
        Planted::DeleteByMemory if new.is_none() => {
            let look = |tx| async move { read(&tx, id).await };
            let act = |tx, memory: Option<User>| async move {
                let old = read(&tx, id).await?;
                write(&tx, id, old.as_ref(), None);
                index(&tx, &all_entries(memory.as_ref().or(old.as_ref())), &Entries::new());
                Ok(vec![old_user(old)])
            };
            seen_before(session, look, act).await
        }
        Planted::KeptOld => {
            let kept = &Mutex::new(None);
            let run = session.apply(|tx| async move {
                let known: Option<Option<User>> = kept.lock().clone();
                let old = match known {
                    Some(old) => old,
                    None => read(&tx, id).await?,
                };
                *kept.lock() = Some(old.clone());
                write(&tx, id, old.as_ref(), new);
                index(&tx, &all_entries(old.as_ref()), &all_entries(new));
                Ok::<_, Error>(one(old))
            });
            specimen::told(run.await)
        }
        Planted::TwoTransactions => {
            let before = &Mutex::new(None);
            let run = session.apply(|tx| async move {
                let old = read(&tx, id).await?;
                write(&tx, id, old.as_ref(), new);
                *before.lock() = old.clone();
                Ok::<_, Error>(one(old))
            });
            let outcome = specimen::told(run.await);
            if let Outcome::Answered(_) = &outcome {
                let old = &before.lock().clone();
                let run = db.run(|tx, _| async move {
                    index(&tx, &all_entries(old.as_ref()), &all_entries(new));
                    Ok::<_, tx::Error>(())
                });
                // The record is written; the bug does not care what becomes of the entries.
                let _ = run.await;
            }
            outcome
        }
        Planted::AnswerOfRetry => {
            let record = &Subspace::from("done").pack(&db.env().random_u64());
            let run = db.run(|tx, _| async move {
                let old = if tx.get(record, Serializable).await?.is_some() {
                    read(&tx, id).await?
                } else {
                    tx.set(record, b"");
                    match new {
                        Some(user) => users().set_user(&tx, user).await?,
                        None => users().delete_user(&tx, id).await?,
                    }
                };
                Ok::<_, Error>(vec![old_user(old)])
            });
            ran(run.await)
        }
        _ => return None,
    })
}

async fn lookup_then_get<D: Database>(db: &D, zip: &str) -> Outcome<specimen::Answer<Answer>> {
    let ids = db.run(|tx, _| async move { users().get_user_ids_in_region(&tx, zip).await }).await;
    let ids = &match ids {
        Ok(ids) => ids,
        Err(e) => return specimen::refused(&e.error),
    };
    let named = db.run(|tx, _| async move {
        let mut named = Vec::new();
        for id in ids {
            let user = users().get_user(&tx, id).await?;
            named.push((id.clone(), user.map(|user| user.name).unwrap_or_default()));
        }
        Ok::<_, Error>(vec![region(ids, &named)])
    });
    ran(named.await)
}
