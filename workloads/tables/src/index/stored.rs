//! Everything that is stored, read as a model, and whether each index is exactly the projection of the
//! records.

use super::{
    Index, Model, State, Thing, as_printed,
    planted::Planted,
    records::{Entries, entries, entries_of_thing, other_table, table},
};
use crate::beside;
use foundationdb_tuple::unpack;
use shaketable::models::timeline::Timeline;
use shaketable_layers::index::{Record, users::User};
use shaketable_tx::{self as tx, Isolation::Serializable, RangeOption, Transaction};
use std::collections::BTreeMap;

impl Index {
    /// Reads everything that is stored, as a model. The inner error describes a broken invariant, such as an
    /// index that is not the projection of the records.
    pub(super) async fn read<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Model, String>> {
        let beside = self.beside();
        if let Err(why) = beside::check(tx, &beside).await? {
            return Ok(Err(why));
        }
        let mut rows = Entries::new();
        for table in [table(), other_table()] {
            let end = [table.bytes(), b"\xff\xff"].concat();
            let range = RangeOption::from((table.into_bytes(), end));
            let all = tx.get_range_all(range, Serializable).await?;
            rows.extend(all.into_iter().map(|row| (row.key.into(), row.value.into())));
        }
        beside.iter().for_each(|key| drop(rows.remove(key)));
        let state = match self.state(&mut rows) {
            Ok(state) => state,
            Err(key) => return Ok(Err(format!("the record {} cannot be read", text(&key)))),
        };
        let users = match self.planted {
            Some(Planted::AsPrinted) => match as_printed::stored(tx).await? {
                Ok(users) => users,
                Err(why) => return Ok(Err(why)),
            },
            _ => state.users,
        };
        let state = State { users, ..state };
        let projected = match self.planted {
            Some(Planted::AsPrinted) => &State { users: BTreeMap::new(), ..state.clone() },
            _ => &state,
        };
        Ok(projection(projected, &rows).map(|()| Timeline::new(state)))
    }
}

impl Index {
    /// Removes the records from the rows. The error is the key of a record that cannot be read.
    fn state(&self, rows: &mut Entries) -> Result<State, Vec<u8>> {
        let (users, things) = (table().subspace(&"records"), other_table().subspace(&"records"));
        let is_record = |key: &[u8]| users.is_start_of(key) || things.is_start_of(key);
        let (records, entries): (Entries, Entries) =
            std::mem::take(rows).into_iter().partition(|(key, _)| is_record(key));
        *rows = entries;
        let mut state = State::default();
        for (key, value) in records {
            let read = if users.is_start_of(&key) {
                let user = || {
                    let id: String = users.unpack(&key).ok()?;
                    let (name, zipcode) = unpack(&value).ok()?;
                    Some(User { id, name, zipcode })
                };
                user().map(|user| state.set(&user))
            } else {
                let thing = || Thing::decode(things.unpack(&key).ok()?, &value);
                thing().map(|thing| drop(state.things.insert(thing.id.clone(), thing)))
            };
            read.ok_or(key)?;
        }
        Ok(state)
    }
}

/// Compares the entries of all indexes with those that the records should have.
fn projection(state: &State, index: &Entries) -> Result<(), String> {
    let of_users = state.users.values().flat_map(entries);
    let expected: Entries = of_users.chain(state.things.values().flat_map(entries_of_thing)).collect();
    for (key, value) in index {
        match expected.get(key) {
            Some(covered) if covered == value => {}
            Some(covered) => {
                return Err(format!(
                    "entry {} covers {}, should be {}",
                    text(key),
                    text(value),
                    text(covered)
                ));
            }
            None => return Err(format!("entry {} belongs to no record", text(key))),
        }
    }
    match expected.keys().find(|key| !index.contains_key(*key)) {
        Some(key) => Err(format!("entry {} is missing", text(key))),
        None => Ok(()),
    }
}

/// A key or a value, readable and truncated.
pub(super) fn text(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes[..bytes.len().min(80)].escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: &str, name: &str, zip: Option<&str>) -> User {
        User { id: id.into(), name: name.into(), zipcode: zip.map(Into::into) }
    }

    #[test]
    fn missing_stale_and_extra_entries_are_found() {
        let mut state = State::default();
        [user("a", "n", Some("1")), user("b", "m", None)].iter().for_each(|user| state.set(user));
        let sound: Entries = state.users.values().flat_map(entries).collect();
        assert_eq!(sound.len(), 4);
        assert_eq!(projection(&state, &sound), Ok(()));

        let key = entries(&state.users["a"]).into_iter().find(|(_, covered)| !covered.is_empty()).unwrap().0;
        let mut broken = sound.clone();
        broken.insert(key.clone(), b"old".to_vec());
        assert!(projection(&state, &broken).unwrap_err().contains("covers \"old\""));
        broken.remove(&key);
        assert!(projection(&state, &broken).unwrap_err().contains("is missing"));
        let mut broken = sound;
        broken.extend(entries(&user("a", "n", Some("2"))));
        assert!(projection(&state, &broken).unwrap_err().contains("belongs to no record"));
    }
}
