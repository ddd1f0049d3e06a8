//! Indexed users done wrong, one bug at a time: as the recipe prints them, or as one would write them
//! in haste.

use crate::{
    workload::{Outcome, Workload},
    workloads::index::{
        Answer, Client, Entries, Flaw, Index, Model, Op, applied, entries, id, looked_up, old_user,
        record_key, record_value, refused, table, zipcode,
    },
};
use foundationdb_tuple::Subspace;
use parking_lot::Mutex;
use shaketable_layers::{
    index::{
        Error, Old,
        users::{User, Users},
    },
    tx::{
        self, Database,
        Isolation::{self, Serializable, Snapshot},
        RangeOption, RetryError, RunError, Transaction,
    },
};

/// Does an operation that the bug touches; `None` when it leaves this one as it is.
pub async fn apply<D: Database>(
    flaw: Flaw,
    workload: &Index,
    client: &mut Client<D>,
    op: &Op,
) -> Option<Outcome<Answer>> {
    match flaw {
        Flaw::AsPrinted => return as_printed(workload, client, op).await,
        Flaw::TimeoutIsRefusal => {
            return Some(match workload.apply(client, op).await {
                Outcome::Unknown(e) => Outcome::GaveUp(e),
                known => known,
            });
        }
        _ => {}
    }
    let Client { session, users, wrote } = client;
    let db = session.database().clone();
    let (db, users) = (&db, &*users);
    let (new, id) = match *op {
        Op::Set(user, name, zip) => (Some(workload.user(user, name, zip)), id(user)),
        Op::Delete(user) => (None, id(user)),
        Op::InRegion(zip) if flaw == Flaw::FirstBatch => {
            let zip = &zipcode(zip);
            let found = db.run(|tx, _| async move {
                let rows = first_batch(&tx, "zipcode", zip).await?;
                let named = users.get_users_in_region(&tx, zip).await?;
                Ok::<_, Error>((rows, named))
            });
            return Some(looked_up(found.await, |(ids, named)| Answer::Region(ids, named)));
        }
        Op::ByName(name) if flaw == Flaw::FirstBatch => {
            let name = &workload.name(name);
            let found = db.run(|tx, _| async move { first_batch(&tx, "name", name).await });
            return Some(looked_up(found.await, Answer::Ids));
        }
        Op::InRegion(zip) if flaw == Flaw::LookupThenGet => {
            return Some(lookup_then_get(db, users, &zipcode(zip)).await);
        }
        _ => return None,
    };
    let (new, id) = (new.as_ref(), id.as_str());
    let mine = wrote.get(id).cloned();
    match new {
        Some(user) => wrote.insert(id.into(), user.clone()),
        None => wrote.remove(id),
    };
    let mine = &mine;
    Some(match flaw {
        Flaw::OldAtSnapshot
        | Flaw::DeleteForgets
        | Flaw::DeleteByMemory
        | Flaw::NameForgotten
        | Flaw::CoveredStale
        | Flaw::NullIndexed => {
            let isolation = if flaw == Flaw::OldAtSnapshot { Snapshot } else { Serializable };
            let ran = session.apply(|tx| async move {
                let old = read(&tx, users, id, isolation).await?;
                write(&tx, id, old.as_ref(), new);
                let (before, after) = believed(flaw, old.as_ref(), new, mine.as_ref());
                index(&tx, &before, &after);
                Ok::<_, Error>(old.map(Old))
            });
            applied(ran.await, old_user)
        }
        Flaw::KeptOld => {
            let kept = &Mutex::new(None);
            let ran = session.apply(|tx| async move {
                let known: Option<Option<User>> = kept.lock().clone();
                let old = match known {
                    Some(old) => old,
                    None => read(&tx, users, id, Serializable).await?,
                };
                *kept.lock() = Some(old.clone());
                write(&tx, id, old.as_ref(), new);
                index(&tx, &all_entries(old.as_ref()), &all_entries(new));
                Ok::<_, Error>(old.map(Old))
            });
            applied(ran.await, old_user)
        }
        Flaw::TwoTransactions => {
            let ran = session.apply(|tx| async move {
                let old = read(&tx, users, id, Serializable).await?;
                write(&tx, id, old.as_ref(), new);
                Ok::<_, Error>(old.map(Old))
            });
            let outcome = applied(ran.await, old_user);
            if let Outcome::Answered(Answer::Old(old)) = &outcome {
                let ran = db.run(|tx, _| async move {
                    index(&tx, &all_entries(old.as_ref()), &all_entries(new));
                    Ok::<_, tx::Error>(())
                });
                // The record is there: what becomes of the entries is nobody's business any more.
                let _ = ran.await;
            }
            outcome
        }
        Flaw::NoOpRecord | Flaw::AnswerOfRetry => {
            let record = Subspace::from("done").pack(&db.env().random_u64());
            let record = &record;
            let ran = db.run(|tx, _| async move {
                let done = flaw == Flaw::AnswerOfRetry && tx.get(record, Serializable).await?.is_some();
                if done {
                    return Ok(read(&tx, users, id, Serializable).await?.map(Old));
                }
                if flaw == Flaw::AnswerOfRetry {
                    tx.set(record, b"");
                }
                let old = match new {
                    Some(user) => users.set_user(&tx, user).await?,
                    None => users.delete_user(&tx, id).await?,
                };
                Ok::<_, Error>(old.map(Old))
            });
            bare(ran.await, old_user)
        }
        _ => return None,
    })
}

/// The entries that a buggy writer takes for the old ones, and those it wants.
fn believed(flaw: Flaw, old: Option<&User>, new: Option<&User>, mine: Option<&User>) -> (Entries, Entries) {
    let (mut before, mut after) = (all_entries(old), all_entries(new));
    let of_name = |key: &[u8]| key.starts_with(table().subspace(&("index", "name")).bytes());
    match flaw {
        Flaw::DeleteForgets if new.is_none() => before.retain(|key, _| of_name(key)),
        Flaw::DeleteByMemory if new.is_none() => before = all_entries(mine.or(old)),
        Flaw::NameForgotten if old.is_some() && new.is_some() => {
            before.retain(|key, _| !of_name(key));
            after.retain(|key, _| !of_name(key));
        }
        Flaw::CoveredStale => {
            let kept: Vec<_> = after.keys().filter(|key| before.contains_key(*key)).cloned().collect();
            kept.iter().for_each(|key| drop((before.remove(key), after.remove(key))));
        }
        Flaw::NullIndexed => {
            if let Some(user) = new.filter(|user| user.zipcode.is_none()) {
                after.extend(entries(&User { zipcode: Some(String::new()), ..user.clone() }));
            }
        }
        _ => {}
    }
    (before, after)
}

fn all_entries(user: Option<&User>) -> Entries {
    user.map(entries).unwrap_or_default()
}

async fn read<T: Transaction>(
    tx: &T,
    users: &Users,
    id: &str,
    isolation: Isolation,
) -> Result<Option<User>, Error> {
    users.table().get(tx, &id.to_owned(), isolation).await
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

async fn first_batch<T: Transaction>(tx: &T, index: &str, key: &str) -> Result<Vec<String>, Error> {
    let under = table().subspace(&("index", index, key));
    let batch = tx.get_range(&RangeOption::from(under.range()), 1, Serializable).await?;
    batch.rows.iter().map(|row| under.unpack(&row.key).map_err(|_| Error::Foreign("index"))).collect()
}

async fn lookup_then_get<D: Database>(db: &D, users: &Users, zip: &str) -> Outcome<Answer> {
    let ids = db.run(|tx, _| async move { users.get_user_ids_in_region(&tx, zip).await }).await;
    let ids = match ids {
        Ok(ids) => ids,
        Err(e) => return refused(e.error),
    };
    let found = &ids;
    let named = db.run(|tx, _| async move {
        let mut named = Vec::new();
        for id in found {
            let user = users.get_user(&tx, id).await?;
            named.push((id.clone(), user.map(|user| user.name).unwrap_or_default()));
        }
        Ok::<_, Error>(named)
    });
    looked_up(named.await, |named| Answer::Region(ids.clone(), named))
}

/// The outcome of a bare retry loop.
fn bare<A>(ran: Result<A, RunError<Error>>, answer: impl FnOnce(A) -> Answer) -> Outcome<Answer> {
    match ran {
        Err(RunError { error, maybe_committed: true, .. }) => {
            Outcome::Unknown(error.fdb().unwrap_or(tx::Error::COMMIT_UNKNOWN_RESULT))
        }
        ran => looked_up(ran, answer),
    }
}

/// ```text
/// ("user", id, zip code)           =  name
/// ("zipcode_index", zip code, id)  =  ''
/// ```
fn printed_user(id: &str) -> Subspace {
    Subspace::from(("user", id))
}

fn printed_index(zip: &str) -> Subspace {
    Subspace::from(("zipcode_index", zip))
}

fn set_as_printed<T: Transaction>(tx: &T, user: &User) {
    let zip = user.zipcode.as_deref().unwrap_or("");
    tx.set(&printed_user(&user.id).pack(&zip), user.name.as_bytes());
    tx.set(&printed_index(zip).pack(&user.id), b"");
}

/// The rows of a user, of which the recipe takes the first for the user.
async fn rows_as_printed<T: Transaction>(tx: &T, id: &str) -> Result<Vec<User>, Error> {
    let user = printed_user(id);
    let rows = tx.get_range_all(RangeOption::from(user.range()), Serializable).await?;
    let row = |row: &tx::KeyValue| {
        let zip: String = user.unpack(&row.key).ok()?;
        let name = String::from_utf8(row.value.to_vec()).ok()?;
        Some(User { id: id.into(), name, zipcode: Some(zip).filter(|zip| !zip.is_empty()) })
    };
    rows.iter().map(row).collect::<Option<_>>().ok_or(Error::Foreign("user"))
}

async fn get_as_printed<T: Transaction>(tx: &T, id: &str) -> Result<Option<User>, Error> {
    Ok(rows_as_printed(tx, id).await?.into_iter().next())
}

/// The whole workload over the recipe's functions and layout; what the recipe lacks (deletion, names)
/// is done carefully.
async fn as_printed<D: Database>(
    workload: &Index,
    client: &mut Client<D>,
    op: &Op,
) -> Option<Outcome<Answer>> {
    let session = &mut client.session;
    let db = session.database().clone();
    Some(match *op {
        Op::Set(user, name, zip) => {
            let user = &workload.user(user, name, zip);
            let ran = db.run(|tx, _| async move {
                set_as_printed(&tx, user);
                Ok(())
            });
            bare(ran.await, |()| Answer::Stored)
        }
        Op::Delete(user) => {
            let id = &id(user);
            let ran = session.apply(|tx| async move {
                let rows = rows_as_printed(&tx, id).await?;
                for row in &rows {
                    let zip = row.zipcode.as_deref().unwrap_or("");
                    tx.clear(&printed_user(id).pack(&zip));
                    tx.clear(&printed_index(zip).pack(id));
                }
                Ok::<_, Error>(rows.into_iter().next().map(Old))
            });
            applied(ran.await, old_user)
        }
        Op::Swap(one, other) => {
            let (one, other) = (&id(one), &id(other));
            let ran = session.apply(|tx| async move {
                let users = (get_as_printed(&tx, one).await?, get_as_printed(&tx, other).await?);
                let (Some(one), Some(other)) = users else { return Ok(false) };
                set_as_printed(&tx, &User { zipcode: other.zipcode.clone(), ..one.clone() });
                set_as_printed(&tx, &User { zipcode: one.zipcode, ..other });
                Ok::<_, Error>(true)
            });
            applied(ran.await, Answer::Swapped)
        }
        Op::Get(user) => {
            let id = &id(user);
            let ran = db.run(|tx, _| async move { get_as_printed(&tx, id).await });
            looked_up(ran.await, Answer::User)
        }
        Op::InRegion(zip) => {
            let zip = &zipcode(zip);
            let ran = db.run(|tx, _| async move {
                let index = printed_index(zip);
                let rows = tx.get_range_all(RangeOption::from(index.range()), Serializable).await?;
                let mut named = Vec::new();
                for row in rows {
                    let id: String = index.unpack(&row.key).map_err(|_| Error::Foreign("zipcode_index"))?;
                    let user = get_as_printed(&tx, &id).await?;
                    named.push((id, user.map(|user| user.name).unwrap_or_default()));
                }
                Ok::<_, Error>(named)
            });
            looked_up(ran.await, |named| {
                Answer::Region(named.iter().map(|(id, _)| id.clone()).collect(), named)
            })
        }
        Op::InRegions(from, to) => {
            let (from, to) = (&zipcode(from), &zipcode(to));
            let ran = db.run(|tx, _| async move {
                let index = Subspace::from("zipcode_index");
                let range = (index.pack(&(from,)), index.pack(&(to,)));
                if range.0 >= range.1 {
                    return Ok(Vec::new());
                }
                let rows = tx.get_range_all(RangeOption::from(range), Serializable).await?;
                let entry =
                    |row: &tx::KeyValue| index.unpack(&row.key).map_err(|_| Error::Foreign("zipcode_index"));
                rows.iter().map(entry).collect::<Result<Vec<(String, String)>, Error>>()
            });
            looked_up(ran.await, Answer::Regions)
        }
        Op::ByName(name) => {
            let name = &workload.name(name);
            let ran = db.run(|tx, _| async move {
                let users = stored_as_printed(&tx).await?.unwrap_or_default();
                Ok::<_, Error>(users.into_values().filter(|u| u.name == *name).map(|u| u.id).collect())
            });
            looked_up(ran.await, Answer::Ids)
        }
        Op::Oversized(_) => return None,
    })
}

/// All users as the recipe stores them, unless one is stored twice or found where they do not live.
pub async fn stored_as_printed<T: Transaction>(tx: &T) -> tx::Result<Result<Model, String>> {
    let rows = |name: &str| tx.get_range_all(RangeOption::from(Subspace::from(name).range()), Serializable);
    let (records, index) = (rows("user").await?, rows("zipcode_index").await?);
    let mut users = Model::new();
    let mut homes = Vec::new();
    for row in records {
        let Ok((id, zip)) = Subspace::from("user").unpack::<(String, String)>(&row.key) else {
            return Ok(Err("a record cannot be read".into()));
        };
        let name = String::from_utf8_lossy(&row.value).into_owned();
        homes.push((zip.clone(), id.clone()));
        let user = User { id: id.clone(), name, zipcode: Some(zip).filter(|zip| !zip.is_empty()) };
        if let Some(other) = users.insert(id, user) {
            return Ok(Err(format!("{} is stored twice", other.id)));
        }
    }
    homes.sort();
    let found: Result<Vec<(String, String)>, _> =
        index.iter().map(|row| Subspace::from("zipcode_index").unpack(&row.key)).collect();
    Ok(match found {
        Ok(found) if found == homes => Ok(users),
        _ => Err("the index is not the projection of the records".into()),
    })
}
