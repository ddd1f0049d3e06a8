//! What needs a fault. Nobody else is there.

use super::{Account, Claim, FdbStore, account, claim, said, told};
use foundationdb::Database;
use std::sync::Arc;

type Db = Arc<Database>;

/// Looks for an account that is there, by its key and by both indexes.
pub async fn lookup(db: Db) -> Claim {
    while let Err(error) = account("1", "a@example", "all").save(db.clone()).await {
        // The first attempt has saved it.
        if said(&error) == "unique index already exist" {
            break;
        }
    }
    for n in 1..=60 {
        let key = Account::load(db.clone(), &"1").await;
        told(key.map_err(|error| error)).map_err(|error| format!("query {n} by key fails: {error}"))?;
        let group = Account::load_by_group(db.clone(), "all".into()).await;
        told(group).map_err(|error| format!("query {n} by group fails: {error}"))?;
        let email = Account::load_by_email(db.clone(), "a@example".into()).await;
        told(email).map_err(|error| format!("query {n} by e-mail fails: {error}"))?;
    }
    Ok("it is found".into())
}

/// Saves accounts, each once.
pub async fn create(db: Db) -> Claim {
    for n in 1..=20 {
        let saved = account(&n.to_string(), &format!("{n}@example"), "all").save(db.clone()).await;
        told(saved).map_err(|error| format!("save of account {n}, which nobody else saves: {error}"))?;
    }
    Ok("all were saved".into())
}

/// Changes the e-mail address of an account again and again.
pub async fn change(db: Db) -> Claim {
    let mut now = account("1", "0@example", "all");
    while now.save(db.clone()).await.is_err() && Account::load(db.clone(), &"1").await.is_err() {}
    for n in 1..=20 {
        let new = account("1", &format!("{n}@example"), "all");
        let updated = now.update(db.clone(), new.clone()).await;
        told(updated)
            .map_err(|error| format!("update {n} of an account that nobody else updates: {error}"))?;
        now = new;
    }
    Ok("all were made".into())
}

/// Deletes accounts, each once. Each is alone in its group.
pub async fn delete(db: Db) -> Claim {
    for n in 1..=20 {
        let it = account(&n.to_string(), &format!("{n}@example"), &n.to_string());
        while it.save(db.clone()).await.is_err() && Account::load(db.clone(), &it.id).await.is_err() {}
        let deleted = it.delete(db.clone()).await;
        told(deleted)
            .map_err(|error| format!("delete of account {n}, which nobody else deletes: {error}"))?;
        claim(Account::load(db.clone(), &it.id).await.is_err(), || {
            format!("account {n} is deleted, and there")
        })?;
    }
    Ok("all were deleted".into())
}
