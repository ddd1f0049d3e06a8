//! Everything that is stored, read as plain records, and whether it is what the records should have.

use super::{
    Feeds,
    model::{Record, State},
    schema::{Content, META_DATA_VERSION, STORES, store},
};
use crate::{
    beside,
    record_shared::{
        layout::{id_of, part, record_key, text, version_key, version_of},
        rows::{self, Rows},
    },
};
use foundationdb_tuple::{Subspace, Versionstamp, pack};
use shaketable_tx::{self as tx, Tx};
use std::collections::BTreeMap;

/// The numbers under which the indexes are stored.
const ALL: i64 = 1;
const BY_TOPIC: i64 = 2;

impl Feeds {
    /// Reads everything that is stored. The inner error describes a broken invariant.
    pub(super) async fn read(&self, tx: &Tx) -> tx::Result<Result<State, String>> {
        if let Err(why) = beside::check(tx, &self.beside()).await? {
            return Ok(Err(why));
        }
        let mut state = State::default();
        for number in 0..STORES {
            let space = store(number);
            let rows = rows::stored(tx, &space).await?;
            match records(&space, &rows) {
                Ok(records) => state.0[number] = records,
                Err(why) => return Ok(Err(format!("in store {number}: {why}"))),
            }
        }
        Ok(Ok(state))
    }
}

fn records(space: &Subspace, rows: &Rows) -> Result<BTreeMap<i64, Record>, String> {
    let mut records = BTreeMap::new();
    for (key, value) in rows {
        let Some(id) = id_of(space, key) else { continue };
        let content = Content::of_stored(id, value)
            .ok_or_else(|| format!("the record {} cannot be read", text(key)))?;
        let version = rows.get(&version_key(space, id)).and_then(|value| version_of(value));
        let version = version.ok_or_else(|| format!("the record {id} has no version"))?;
        records.insert(id, Record { content, version });
    }
    rows::compare(rows, &expected(space, &records)).map(|()| records)
}

/// All rows of a store with these records: each record has one entry in the index of all records, and each
/// post one in that of topics, with its version.
fn expected(space: &Subspace, records: &BTreeMap<i64, Record>) -> Rows {
    let mut rows = Rows::from([rows::header(space, META_DATA_VERSION)]);
    for (id, Record { content, version }) in records {
        let version = Versionstamp::from(*version);
        rows.insert(record_key(space, *id), content.stored(*id));
        rows.insert(version_key(space, *id), pack(&(version.clone(),)));
        rows.insert(space.pack(&(part::INDEXES, ALL, version.clone(), *id)), Vec::new());
        if let Some(topic) = &content.topic {
            rows.insert(space.pack(&(part::INDEXES, BY_TOPIC, topic.clone(), version, *id)), Vec::new());
        }
    }
    rows
}
