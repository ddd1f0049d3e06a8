//! What needs no fault. One task does one thing after the other.

use super::{Account, Claim, FdbStore, Place, RangeQuery, account, claim, told};
use foundationdb::Database;
use std::sync::Arc;

type Db = Arc<Database>;

fn ids(accounts: &[Account]) -> String {
    let ids: Vec<&str> = accounts.iter().map(|account| &*account.id).collect();
    if ids.is_empty() { "none".into() } else { ids.join(", ") }
}

async fn hundred(db: &Db) -> Claim<()> {
    for n in 0..100 {
        let account = account(&format!("account {n:02}"), &format!("{n:02}@example"), "all");
        told(Account { note: "n".repeat(1000), ..account }.save(db.clone()).await)?;
    }
    Ok(())
}

/// A range of all has all.
pub async fn all(db: Db) -> Claim {
    hundred(&db).await?;
    let keys = told(Account::load_by_primary_range(db.clone(), RangeQuery::All).await)?.len();
    let index = told(Account::load_by_unique_index_range_email(db, RangeQuery::All, false).await)?.len();
    claim(keys == 100 && index == 100, || {
        format!("100 accounts are saved: All finds {keys} by key and {index} by e-mail")
    })?;
    Ok("all were found".into())
}

/// The first 60 of 100 are 60.
pub async fn first(db: Db) -> Claim {
    hundred(&db).await?;
    let found = told(Account::load_by_primary_range(db, RangeQuery::NFirstResults(60)).await)?.len();
    claim(found == 60, || format!("100 accounts are saved: NFirstResults(60) finds {found}"))?;
    Ok("60 were found".into())
}

/// Keys of any length are found.
pub async fn long(db: Db) -> Claim {
    for id in ["short", "4a2b8c66-90f1-4d65-8d5e-0d7d5a1f2c11"] {
        told(account(id, id, "all").save(db.clone()).await)?;
    }
    let found = told(Account::load_by_primary_range(db, RangeQuery::All).await)?;
    claim(found.len() == 2, || format!("2 accounts are saved: All finds {}", ids(&found)))?;
    Ok("both were found".into())
}

/// So are numbers.
pub async fn numbers(db: Db) -> Claim {
    for id in [-1, 0, 1, 254, 255, 1000] {
        told(Place { id }.save(db.clone()).await)?;
    }
    let numbers = |places: Vec<Place>| places.iter().map(|place| place.id).collect::<Vec<_>>();
    let all = numbers(told(Place::load_by_primary_range(db.clone(), RangeQuery::All).await)?);
    let some = RangeQuery::StartAndStop(-1, 2);
    let some = numbers(told(Place::load_by_primary_range(db, some).await)?);
    claim(all.len() == 6 && some == [-1, 0, 1], || {
        format!(
            "-1, 0, 1, 254, 255 and 1000 are saved: All finds {all:?}, and from -1 to 2 there are {some:?}"
        )
    })?;
    Ok("all were found".into())
}

/// A range is between two strings.
pub async fn between(db: Db) -> Claim {
    for id in ["a", "bb", "c"] {
        told(account(id, id, "all").save(db.clone()).await)?;
    }
    let query = RangeQuery::StartAndStop("a".to_owned(), "c".to_owned());
    let found = told(Account::load_by_primary_range(db, query).await)?;
    claim(found.len() == 2, || format!("a, bb and c are saved: from a to c there are {}", ids(&found)))?;
    Ok("both were found".into())
}

/// Two who have loaded an account change its e-mail address, one after the other.
pub async fn updated(db: Db) -> Claim {
    let loaded = account("1", "old@example", "all");
    told(loaded.save(db.clone()).await)?;
    for email in ["first@example", "second@example"] {
        told(loaded.update(db.clone(), account("1", email, "all")).await)?;
    }
    let found = Account::load_by_email(db.clone(), "first@example".into()).await;
    claim(found.is_err(), || {
        format!("the index finds first@example, and the account has {}", found.expect("it does").email)
    })?;
    let saved = account("2", "first@example", "all").save(db).await;
    claim(saved.is_ok(), || "nobody has first@example, and it is taken".into())?;
    Ok("the index has what the account has".into())
}

/// One who has loaded an account deletes it. Meanwhile it got another e-mail address, and another account got
/// its first one.
pub async fn deleted(db: Db) -> Claim {
    let loaded = account("1", "a@example", "all");
    told(loaded.save(db.clone()).await)?;
    told(loaded.update(db.clone(), account("1", "b@example", "all")).await)?;
    told(account("2", "a@example", "all").save(db.clone()).await)?;
    told(loaded.delete(db.clone()).await)?;
    let saved = account("3", "a@example", "all").save(db.clone()).await;
    let all = told(Account::load_by_primary_range(db, RangeQuery::All).await)?;
    claim(saved.is_err(), || format!("accounts {} have a@example", ids(&all)))?;
    Ok("an e-mail address has one account".into())
}

/// What the documentation does in this order: saves, updates to another owner, and deletes what was saved.
pub async fn documented(db: Db) -> Claim {
    let saved = account("1", "bob@example", "Bob");
    told(saved.save(db.clone()).await)?;
    told(saved.update(db.clone(), account("1", "alice@example", "Alice")).await)?;
    told(saved.delete(db).await)
        .map_err(|error| format!("the deletion of the documentation fails: {error}"))?;
    Ok("it is deleted".into())
}

/// One who has loaded an account deletes it. Meanwhile it has moved to another group.
pub async fn group(db: Db) -> Claim {
    let loaded = account("1", "1@example", "a");
    told(loaded.save(db.clone()).await)?;
    told(account("2", "2@example", "a").save(db.clone()).await)?;
    told(account("3", "3@example", "b").save(db.clone()).await)?;
    told(loaded.update(db.clone(), account("1", "1@example", "b")).await)?;
    told(loaded.delete(db.clone()).await)?;
    match told(Account::load_by_group(db, "b".into()).await) {
        Ok(found) => claim(ids(&found) == "3", || format!("group b has accounts {}", ids(&found)))?,
        Err(error) => return Err(format!("account 3 is in group b, whose query fails: {error}")),
    }
    Ok("the group is found".into())
}

/// An account is saved again, in another group and with another e-mail address.
pub async fn saved(db: Db) -> Claim {
    told(account("1", "a@example", "a").save(db.clone()).await)?;
    if account("1", "b@example", "b").save(db.clone()).await.is_err() {
        return Ok("it is refused".into());
    }
    let found = told(Account::load_by_group(db, "a".into()).await)?;
    claim(found.iter().all(|account| account.group == "a"), || {
        format!("the query of group a finds an account of group {}", found[0].group)
    })?;
    Ok("the indexes follow".into())
}

/// The calls that the documentation shows, with its answers.
pub async fn readme(db: Db) -> Claim {
    let accounts: Vec<Account> =
        (1..20).map(|n| account(&format!("id-{n}"), &format!("sk-{n}"), "Bob")).collect();
    for account in &accounts {
        told(account.save(db.clone()).await)?;
    }
    let number = async |query| told(Account::load_by_primary_range(db.clone(), query).await);
    let index = async |query| told(Account::load_by_unique_index_range_email(db.clone(), query, false).await);
    let text = |text: &str| text.to_owned();
    claim(number(RangeQuery::All).await?.len() == 19, || "not all".into())?;
    let found = number(RangeQuery::StartAndStop(text("id-3"), text("id-6"))).await?;
    claim(ids(&found) == "id-3, id-4, id-5", || format!("from id-3 to id-6: {}", ids(&found)))?;
    let found = index(RangeQuery::NFirstResults(5)).await?;
    claim(found.last().is_some_and(|last| last.email == "sk-5"), || format!("the first 5: {}", ids(&found)))?;
    let found = index(RangeQuery::StartAndNbResult(text("sk-4"), 2)).await?;
    claim(ids(&found) == "id-4, id-5", || format!("2 from sk-4: {}", ids(&found)))?;
    claim(told(Account::load(db.clone(), &"id-7").await)? == accounts[6], || "another".into())?;
    claim(told(Account::load_by_email(db.clone(), text("sk-7")).await)? == accounts[6], || "another".into())?;
    claim(told(Account::load_by_group(db.clone(), text("Bob")).await)?.len() == 19, || "not all".into())?;
    let again = account("other", "sk-7", "Bob").save(db.clone()).await;
    claim(again.is_err(), || "two accounts have sk-7".into())?;
    told(accounts[6].update(db.clone(), account("id-7", "new", "Alice")).await)?;
    claim(told(Account::load_by_group(db.clone(), text("Alice")).await)?.len() == 1, || "not one".into())?;
    claim(Account::load_by_email(db.clone(), text("sk-7")).await.is_err(), || "it is still found".into())?;
    told(account("id-7", "new", "Alice").delete(db.clone()).await)?;
    claim(Account::load(db.clone(), &"id-7").await.is_err(), || "it is still there".into())?;
    claim(Account::load_by_group(db.clone(), text("Alice")).await.is_err(), || "it is still found".into())?;
    Ok("as documented".into())
}
