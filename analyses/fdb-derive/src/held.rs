//! Tasks create, change and delete accounts, all at once; each has its own, and one is common to all. A task
//! loads an account in the transaction that changes it, so that nobody works with an old one.

use super::{Account, Chance, Claim, FdbStore, account, claim, inner, said};
use fdb_trait::KvError;
use foundationdb::{Database, FdbBindingError, RetryableTransaction};
use futures::future;
use std::{cell::Cell, collections::BTreeMap, sync::Arc};

const TASKS: u64 = 5;
const OWN: u64 = 2;
const STEPS: u64 = 8;
const EMAILS: u64 = 6;
const GROUPS: u64 = 3;
const COMMON: &str = "common";

type Db = Arc<Database>;
/// The states of which an account of a task has one: more than one only after an unknown result.
type States = BTreeMap<String, Vec<Option<Account>>>;

fn email(n: u64) -> String {
    format!("{n}@example")
}

fn group(n: u64) -> String {
    format!("group {n}")
}

/// None if the layer says that it is not there.
fn there<T>(answer: Result<T, FdbBindingError>) -> Result<Option<T>, FdbBindingError> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(error) => match inner(&error) {
            Some(KvError::Empty | KvError::FdbNotFound | KvError::FdbMissingIndex) => Ok(None),
            _ => Err(error),
        },
    }
}

/// An error of FoundationDB, which the layer leaves to its caller.
fn fails(error: &FdbBindingError) -> bool {
    matches!(inner(error), Some(KvError::FdbError(_))) || error.get_fdb_error().is_some()
}

async fn put(tr: &RetryableTransaction, id: &str, new: Option<Account>) -> Result<(), FdbBindingError> {
    match (there(Account::load_in_trx(tr, &id).await)?, new) {
        (Some(old), Some(new)) => old.update_in_trx(tr, new).await,
        (None, Some(new)) => new.save_in_trx(tr).await,
        (Some(old), None) => old.delete_in_trx(tr).await,
        (None, None) => Ok(()),
    }
}

async fn act(db: &Db, task: u64) -> Claim<(States, Vec<String>)> {
    let mut chance = Chance::new(task);
    let mut states: States = (0..OWN).map(|n| (format!("{task}.{n}"), vec![None])).collect();
    let mut noted = Vec::new();
    for step in 0..STEPS {
        let id = format!("{task}.{}", chance.below(OWN));
        let (new_email, new_group) = (email(chance.below(EMAILS)), group(chance.below(GROUPS)));
        let note = format!("{task}.{step};");
        let new = (chance.below(4) > 0)
            .then(|| Account { note: note.clone(), ..account(&id, &new_email, &new_group) });
        let unknown = Cell::new(false);
        let done = db.run(|tr, maybe| {
            unknown.set(unknown.get() || bool::from(maybe));
            let (new, id) = (new.clone(), &id);
            async move { put(&tr, id, new).await }
        });
        let state = states.get_mut(&id).expect("its own");
        match done.await {
            Ok(()) => *state = vec![new],
            Err(error) if fails(&error) => state.push(new),
            Err(error) => {
                // Taken by another account.
                claim(matches!(inner(&error), Some(KvError::UniqueIndexAlreadyExist)), || {
                    format!("{id}: {}", said(&KvError::FdbCommitError(error)))
                })?;
                if unknown.get() {
                    state.push(new);
                }
            }
        }

        // Everyone adds to the account that all share.
        let added = &note;
        let done = db.run(|tr, _| async move {
            let mut new = Account::load_in_trx(&tr, &COMMON).await?;
            let old = new.clone();
            if !new.note.contains(added) {
                new.note += added;
            }
            old.update_in_trx(&tr, new).await
        });
        if done.await.is_ok() {
            noted.push(note);
        }

        let (by_email, by_group) = (email(chance.below(EMAILS)), group(chance.below(GROUPS)));
        let seen = db.run(|tr, _| {
            let (by_email, by_group) = (by_email.clone(), by_group.clone());
            async move { Ok(agree(&tr, by_email, by_group).await?) }
        });
        match seen.await {
            Ok(agrees) => agrees?,
            Err(error) if fails(&error) => {}
            Err(error) => return Err(format!("a query fails: {}", said(&KvError::FdbCommitError(error)))),
        }
    }
    Ok((states, noted))
}

/// What the indexes find has what they say.
async fn agree(
    tr: &RetryableTransaction,
    email: String,
    group: String,
) -> Result<Claim<()>, FdbBindingError> {
    if let Some(found) = there(Account::load_by_email_in_trx(tr, email.clone()).await)? {
        if found.email != email {
            return Ok(Err(format!("the index finds {email}, and account {} has {}", found.id, found.email)));
        }
    }
    for found in there(Account::load_by_group_in_trx(tr, group.clone()).await)?.unwrap_or_default() {
        if found.group != group {
            return Ok(Err(format!("the index of {group} finds account {} of {}", found.id, found.group)));
        }
    }
    Ok(Ok(()))
}

/// All that is there, in one transaction: the accounts with these keys, and what the indexes find.
async fn audit(
    db: &Db,
    ids: &[String],
) -> Result<(Vec<Option<Account>>, Vec<Account>, Vec<Account>), FdbBindingError> {
    db.run(|tr, _| async move {
        let (mut accounts, mut emails, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for id in ids {
            accounts.push(there(Account::load_in_trx(&tr, id).await)?);
        }
        for email in (0..EMAILS).map(email).chain([COMMON.to_owned()]) {
            emails.extend(there(Account::load_by_email_in_trx(&tr, email).await)?);
        }
        for group in (0..GROUPS).map(group).chain([COMMON.to_owned()]) {
            groups.extend(there(Account::load_by_group_in_trx(&tr, group).await)?.unwrap_or_default());
        }
        Ok((accounts, emails, groups))
    })
    .await
}

pub async fn held(db: Db) -> Claim {
    let begun = db.run(|tr, _| async move {
        match there(Account::load_in_trx(&tr, &COMMON).await)? {
            Some(_) => Ok(()),
            None => account(COMMON, COMMON, COMMON).save_in_trx(&tr).await,
        }
    });
    begun.await.map_err(|error| error.to_string())?;
    let done = future::join_all((0..TASKS).map(|task| act(&db, task))).await;
    let mut states = States::new();
    let mut noted = Vec::new();
    for task in done {
        let (own, notes) = task?;
        states.extend(own);
        noted.extend(notes);
    }

    let ids: Vec<String> = states.keys().cloned().chain([COMMON.to_owned()]).collect();
    let mut found = audit(&db, &ids).await;
    // An error of FoundationDB is left to the caller.
    while found.as_ref().is_err_and(fails) {
        found = audit(&db, &ids).await;
    }
    let (accounts, mut emails, mut groups) = found.map_err(|error| {
        format!("a query of what is there fails: {}", said(&KvError::FdbCommitError(error)))
    })?;
    for (id, found) in ids.iter().zip(&accounts).filter(|(id, _)| *id != COMMON) {
        claim(states[id].contains(found), || format!("account {id} is not what its task was told"))?;
    }
    let common = accounts.last().cloned().flatten().ok_or("the common account is gone")?;
    for note in &noted {
        let times = common.note.split_inclusive(';').filter(|it| it == note).count();
        claim(times == 1, || format!("note {note} is there {times} times"))?;
    }
    let mut there: Vec<Account> = accounts.into_iter().flatten().collect();
    for list in [&mut there, &mut emails, &mut groups] {
        list.sort_by(|a, b| a.id.cmp(&b.id));
    }
    let ids = |list: &[Account]| list.iter().map(|it| it.id.clone()).collect::<Vec<_>>().join(", ");
    claim(emails == there, || {
        format!("accounts {} are there, and e-mail addresses find {}", ids(&there), ids(&emails))
    })?;
    claim(groups == there, || {
        format!("accounts {} are there, and groups find {}", ids(&there), ids(&groups))
    })?;
    Ok(format!("{} accounts, {} notes", there.len(), noted.len()))
}
