//! Everything that is stored, read as a model, and whether each index is exactly the projection of the
//! records.

use super::{
    Model, State, Thing, as_printed,
    records::{entries, entries_of_thing, other_table, table},
};
use crate::beside;
use bytes::Bytes;
use foundationdb_tuple::{Subspace, unpack};
use shaketable_layers::index::{Record, users::User};
use shaketable_tx::{self as tx, Isolation::Serializable, KeyValue, RangeOption, Transaction, Tx};

/// The keys of the rows beside the indexes and the records.
pub(super) fn beside() -> Vec<Vec<u8>> {
    let part = |table: Subspace, part: &str| beside::of(table.subspace(&part).bytes());
    let index = |table: Subspace, name: &str| beside::of(table.subspace(&("index", name)).bytes());
    [
        part(table(), "records"),
        index(table(), "zipcode"),
        index(table(), "name"),
        part(other_table(), "records"),
        index(other_table(), "tag"),
        index(other_table(), "rank"),
    ]
    .concat()
}

/// Reads everything that is stored, as a model; the users in the layout of the recipe as it is printed, if so
/// asked. The inner error describes a broken invariant, such as an index that is not the projection of the
/// records.
pub(super) async fn read(tx: &Tx, as_printed: bool) -> tx::Result<Result<Model, String>> {
    let beside = beside();
    if let Err(why) = beside::check(tx, &beside).await? {
        return Ok(Err(why));
    }
    let mut rows = Vec::new();
    for table in [table(), other_table()] {
        let end = [table.bytes(), b"\xff\xff"].concat();
        let range = RangeOption::from((table.into_bytes(), end));
        rows.extend(tx.get_range_all(range, Serializable).await?);
    }
    // One table lies within the range of the other one.
    rows.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    rows.dedup_by(|a, b| a.key == b.key);
    rows.retain(|row| !beside.iter().any(|key| row.key == key));
    let (mut state, rows) = match state(rows) {
        Ok(read) => read,
        Err(key) => return Ok(Err(format!("the record {} cannot be read", text(&key)))),
    };
    if as_printed {
        state.users.clear();
    }
    if let Err(why) = projection(&state, &rows) {
        return Ok(Err(why));
    }
    if as_printed {
        match as_printed::stored(tx).await? {
            Ok(users) => state.users = users.into(),
            Err(why) => return Ok(Err(why)),
        }
    }
    Ok(Ok(Model::new(state)))
}

/// The records, and the other rows. The error is the key of a record that cannot be read.
fn state(rows: Vec<KeyValue>) -> Result<(State, Vec<KeyValue>), Bytes> {
    let (users, things) = (table().subspace(&"records"), other_table().subspace(&"records"));
    let mut state = State::default();
    let mut others = Vec::new();
    for row in rows {
        let KeyValue { key, value } = &row;
        let read = if users.is_start_of(key) {
            let user = || {
                let id: String = users.unpack(key).ok()?;
                let (name, zipcode) = unpack(value).ok()?;
                Some(User { id, name, zipcode })
            };
            user().map(|user| state.set(&user))
        } else if things.is_start_of(key) {
            let thing = || Thing::decode(things.unpack(key).ok()?, value);
            thing().map(|thing| drop(state.things.insert(thing.id.clone(), thing)))
        } else {
            others.push(row);
            continue;
        };
        read.ok_or(row.key)?;
    }
    Ok((state, others))
}

/// Compares the entries of all indexes, ascending, with those that the records should have.
fn projection(state: &State, index: &[KeyValue]) -> Result<(), String> {
    let of_users = state.users.values().flat_map(entries);
    let mut expected: Vec<_> = of_users.chain(state.things.values().flat_map(entries_of_thing)).collect();
    expected.sort_unstable();
    let mut stored = index.iter().peekable();
    let extra = |row: &KeyValue| Err(format!("entry {} belongs to no record", text(&row.key)));
    for (key, covered) in &expected {
        if let Some(row) = stored.next_if(|row| row.key < key) {
            return extra(row);
        }
        match stored.next_if(|row| row.key == key) {
            Some(row) if row.value == covered => {}
            Some(row) => {
                let (key, value, covered) = (text(key), text(&row.value), text(covered));
                return Err(format!("entry {key} covers {value}, should be {covered}"));
            }
            None => return Err(format!("entry {} is missing", text(key))),
        }
    }
    stored.next().map_or(Ok(()), extra)
}

/// A key or a value, readable and truncated.
fn text(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes[..bytes.len().min(80)].escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::records::Entries;

    fn user(id: &str, name: &str, zip: Option<&str>) -> User {
        User { id: id.into(), name: name.into(), zipcode: zip.map(Into::into) }
    }

    #[test]
    fn missing_stale_and_extra_entries_are_found() {
        let mut state = State::default();
        [user("a", "n", Some("1")), user("b", "m", None)].iter().for_each(|user| state.set(user));
        let sound: Entries = state.users.values().flat_map(entries).collect();
        assert_eq!(sound.len(), 4);
        let projection = |entries: &Entries| {
            let rows = entries.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
            projection(&state, &rows.collect::<Vec<_>>())
        };
        assert_eq!(projection(&sound), Ok(()));

        let key = entries(&state.users["a"]).into_iter().find(|(_, covered)| !covered.is_empty()).unwrap().0;
        let mut broken = sound.clone();
        broken.insert(key.clone(), b"old".to_vec());
        assert!(projection(&broken).unwrap_err().contains("covers \"old\""));
        broken.remove(&key);
        assert!(projection(&broken).unwrap_err().contains("is missing"));
        let mut broken = sound;
        broken.extend(entries(&user("a", "n", Some("2"))));
        assert!(projection(&broken).unwrap_err().contains("belongs to no record"));
    }
}
