//! The recipe as it is printed: the planted bug `as-printed`, which stores users in a layout of its own.

use super::shown::{Listed, region};
use crate::shared;
use foundationdb_tuple::Subspace;
use shaketable_layers::index::{Error, users::User};
use shaketable_tx::{self as tx, Isolation::Serializable, RangeOption, Transaction, Tx};
use std::collections::BTreeMap;

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

/// The recipe returns nothing. The old user that is returned here is the one that the recipe's own read
/// finds.
pub(super) async fn set(tx: &Tx, user: &User) -> Result<Option<User>, Error> {
    let old = get(tx, &user.id).await?;
    let zip = user.zipcode.as_deref().unwrap_or("");
    tx.set(&printed_user(&user.id).pack(&zip), user.name.as_bytes());
    tx.set(&printed_index(zip).pack(&user.id), b"");
    Ok(old)
}

/// The rows of a user. The recipe takes the first one for the user.
async fn rows(tx: &Tx, id: &str) -> Result<Vec<User>, Error> {
    let user = printed_user(id);
    let rows = shared::rows(tx, &user).await?;
    let row = |row: &tx::KeyValue| {
        let zip: String = user.unpack(&row.key).ok()?;
        let name = String::from_utf8(row.value.to_vec()).ok()?;
        Some(User { id: id.into(), name, zipcode: Some(zip).filter(|zip| !zip.is_empty()) })
    };
    rows.iter().map(row).collect::<Option<_>>().ok_or(Error::Foreign("user"))
}

pub(super) async fn get(tx: &Tx, id: &str) -> Result<Option<User>, Error> {
    Ok(rows(tx, id).await?.into_iter().next())
}

/// The recipe has no deletion: this one is right for its layout.
pub(super) async fn delete(tx: &Tx, id: &str) -> Result<Option<User>, Error> {
    let rows = rows(tx, id).await?;
    for row in &rows {
        let zip = row.zipcode.as_deref().unwrap_or("");
        tx.clear(&printed_user(id).pack(&zip));
        tx.clear(&printed_index(zip).pack(&id));
    }
    Ok(rows.into_iter().next())
}

pub(super) async fn swap(tx: &Tx, one: &str, other: &str) -> Result<bool, Error> {
    let users = (get(tx, one).await?, get(tx, other).await?);
    let (Some(one), Some(other)) = users else { return Ok(false) };
    set(tx, &User { zipcode: other.zipcode.clone(), ..one.clone() }).await?;
    set(tx, &User { zipcode: one.zipcode, ..other }).await?;
    Ok(true)
}

pub(super) async fn in_region(tx: &Tx, zip: &str, covered: bool) -> Result<Vec<Listed>, Error> {
    let index = printed_index(zip);
    let rows = shared::rows(tx, &index).await?;
    let mut named = Vec::new();
    for row in rows {
        let id: String = index.unpack(&row.key).map_err(|_| Error::Foreign("zipcode_index"))?;
        let user = get(tx, &id).await?;
        named.push((id, user.map(|user| user.name).unwrap_or_default()));
    }
    let ids: Vec<_> = named.iter().map(|(id, _)| id.clone()).collect();
    Ok(region(&ids, covered.then_some(&named[..])))
}

/// All users as the recipe stores them. The inner error is a user that is stored twice, or an index that does
/// not fit.
pub(super) async fn stored(tx: &Tx) -> tx::Result<Result<BTreeMap<String, User>, String>> {
    let rows = |name: &str| tx.get_range_all(RangeOption::from(Subspace::from(name).range()), Serializable);
    let (records, index) = (rows("user").await?, rows("zipcode_index").await?);
    let mut users = BTreeMap::new();
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
