//! The simple index recipe: users by id, found by zip code and by name.
//!
//! ```text
//! (users, "records", id)                            =  (name, zip code or null)
//! (users, "index", "zipcode", zip code, id)         =  ''
//! (users, "index", "zipcode_name", zip code, id)    =  name      covering
//! (users, "index", "name", name, id)                =  ''
//! ```
//!
//! Unlike the commonly published form of the recipe, the zip code is not part of the record's key, so that a
//! user who moves remains one user and is found only under the current zip code.

use super::{Error, Index, Record, Table, covers_nothing};
use crate::tx::{Isolation, Transaction};
use foundationdb_tuple::{Subspace, pack};
use serde::{Deserialize, Serialize};

/// A user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct User {
    /// Identifies the user.
    pub id: String,
    /// The name, indexed.
    pub name: String,
    /// The zip code if known, indexed.
    pub zipcode: Option<String>,
}

impl Record for User {
    type Id = String;

    const INDEXES: &'static [Index<User>] = &[
        Index { name: "zipcode", key: zipcode, covers: covers_nothing },
        Index { name: "zipcode_name", key: zipcode, covers: |user| user.name.clone().into_bytes() },
        Index { name: "name", key: |user| Some(pack(&user.name)), covers: covers_nothing },
    ];

    fn id(&self) -> &String {
        &self.id
    }

    fn encode(&self) -> Vec<u8> {
        pack(&(&self.name, &self.zipcode))
    }

    fn decode(id: String, bytes: &[u8]) -> Option<User> {
        let (name, zipcode) = foundationdb_tuple::unpack(bytes).ok()?;
        Some(User { id, name, zipcode })
    }
}

fn zipcode(user: &User) -> Option<Vec<u8>> {
    user.zipcode.as_ref().map(pack)
}

/// The users, with the recipe's names for the queries. All reads are serializable.
#[derive(Clone, Debug)]
pub struct Users(Table<User>);

impl Users {
    /// The users in `subspace`, which must not be used for anything else.
    pub fn new(subspace: &Subspace) -> Users {
        Users(Table::new(subspace))
    }

    /// The underlying table, for all other operations.
    pub fn table(&self) -> &Table<User> {
        &self.0
    }

    /// Stores a user in place of the one with this id, and returns the replaced one.
    pub async fn set_user<T: Transaction>(&self, tx: &T, user: &User) -> Result<Option<User>, Error> {
        self.0.set(tx, user).await
    }

    /// The user with this id.
    pub async fn get_user<T: Transaction>(&self, tx: &T, id: &str) -> Result<Option<User>, Error> {
        self.0.get(tx, &id.to_owned(), Isolation::Serializable).await
    }

    /// Removes a user and returns it.
    pub async fn delete_user<T: Transaction>(&self, tx: &T, id: &str) -> Result<Option<User>, Error> {
        self.0.delete(tx, &id.to_owned()).await
    }

    /// The ids of the users with this zip code, ascending.
    pub async fn get_user_ids_in_region<T: Transaction>(
        &self,
        tx: &T,
        zipcode: &str,
    ) -> Result<Vec<String>, Error> {
        self.0.find(tx, "zipcode", &zipcode, Isolation::Serializable).await
    }

    /// Ids and names of the users with this zip code, by id, read only from the covering index.
    pub async fn get_users_in_region<T: Transaction>(
        &self,
        tx: &T,
        zipcode: &str,
    ) -> Result<Vec<(String, String)>, Error> {
        let found = self.0.find_covered(tx, "zipcode_name", &zipcode, Isolation::Serializable).await?;
        let named = |(id, name): (String, bytes::Bytes)| {
            Ok((id, String::from_utf8(name.into()).map_err(|_| Error::Foreign("zipcode_name"))?))
        };
        found.into_iter().map(named).collect()
    }

    /// Zip codes and ids of the users with a zip code in `from..to`: by zip code, then by id.
    pub async fn get_user_ids_in_regions<T: Transaction>(
        &self,
        tx: &T,
        from: &str,
        to: &str,
    ) -> Result<Vec<(String, String)>, Error> {
        let range = from.to_owned()..to.to_owned();
        let found = self.0.find_between(tx, "zipcode", range, Isolation::Serializable).await?;
        Ok(found.into_iter().map(|(zipcode, id, _)| (zipcode, id)).collect())
    }

    /// The ids of the users with this name, ascending.
    pub async fn get_user_ids_by_name<T: Transaction>(
        &self,
        tx: &T,
        name: &str,
    ) -> Result<Vec<String>, Error> {
        self.0.find(tx, "name", &name, Isolation::Serializable).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_round_trip() {
        for zipcode in [None, Some(String::new()), Some("94\0".into())] {
            let user = User { id: "u".into(), name: "n\0".into(), zipcode };
            assert_eq!(User::decode(user.id.clone(), &user.encode()), Some(user));
        }
        assert_eq!(User::decode("u".into(), b"\x02n"), None);
    }
}
