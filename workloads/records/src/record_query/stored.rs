//! Everything that is stored, decoded here, and whether the entries are those of the records.
//!
//! The layout is that of the table in the layer's `store/keyspace.rs`.

use super::{
    Queries, State, beside,
    model::{Fields, Model, Record, Slot},
    records::{entry, is_default},
    schema::{FieldOf, Kind, PART, TYPES, fields_of},
    space,
};
use crate::{
    record_shared::layout::{part, state, suffix},
    shared,
};
use foundationdb_tuple::{Element, Subspace, pack};
use prost_reflect::{DynamicMessage, MapKey, ReflectMessage, Value as ProtoValue};
use shaketable_record::{
    index::IndexState,
    store::{describe_key, describe_value},
    value::{IntoValue, Tuple, Value},
    version::RecordVersion,
};
use shaketable_tx::{self as tx, KeyValue, Tx};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

impl Queries {
    /// Reads everything that is stored. The inner error describes a broken invariant.
    pub(super) async fn stored(&self, tx: &Tx) -> tx::Result<Result<State, String>> {
        if let Err(why) = beside::check(tx, &Queries::beside()).await? {
            return Ok(Err(why));
        }
        let rows = shared::rows(tx, &space()).await?;
        Ok(self.decoded(&rows))
    }

    /// Whether each row of the store can be told by what it is.
    pub(super) async fn described(&self, tx: &Tx) -> tx::Result<Result<(), String>> {
        let meta_data = &self.schema().meta_data;
        let is_told = |text: Option<String>| text.is_some_and(|text| !text.is_empty());
        // With its primary key, or with the columns of its entry.
        let indexes = space().subspace(&(part::INDEXES,));
        let has_key = |key: &[u8]| {
            let text = describe_key(&space(), meta_data, key).unwrap_or_default();
            text.contains(": ") || !indexes.is_start_of(key)
        };
        let (records, whole) = (space().subspace(&(part::RECORDS,)), pack(&suffix::WHOLE));
        let untold = |row: &&KeyValue| {
            let value = describe_value(&space(), meta_data, &row.key, &row.value);
            !is_told(describe_key(&space(), meta_data, &row.key))
                || !has_key(&row.key)
                || records.is_start_of(&row.key) && row.key.ends_with(&whole) && !is_told(value)
        };
        let rows = shared::rows(tx, &space()).await?;
        Ok(match rows.iter().find(untold) {
            Some(row) => Err(format!("nothing is told of the row {:?}", row.key)),
            None => Ok(()),
        })
    }

    fn decoded(&self, rows: &[KeyValue]) -> Result<State, String> {
        let below = |part: i64| {
            let space = space().subspace(&(part,));
            rows.iter()
                .filter(move |row| space.is_start_of(&row.key))
                .map(|row| (&row.key[..], &row.value[..]))
        };
        let state = State {
            records: self.records(below(part::RECORDS))?,
            states: below(part::STATES)
                .map(|(key, value)| state_of(key, value))
                .collect::<Result<_, String>>()?,
        };
        let stored: BTreeSet<&[u8]> = below(part::INDEXES).map(|(key, _)| key).collect();
        self.entries(&state, &stored).map(|()| state)
    }

    /// Whether the entries of each index that is readable are those of the records, and there are none of one
    /// that is disabled.
    fn entries(&self, state: &State, stored: &BTreeSet<&[u8]>) -> Result<(), String> {
        let schema = self.schema();
        let model = Model { records: &state.records, schema };
        let keyed: Vec<_> = state.records.iter().map(|record| (record, model.primary_key(record))).collect();
        for index in schema.meta_data.indexes() {
            let space = space().subspace(&(part::INDEXES, index.subspace_key));
            let own: BTreeSet<&[u8]> = stored.iter().copied().filter(|key| space.is_start_of(key)).collect();
            let mut expected = BTreeSet::new();
            for (record, primary_key) in &keyed {
                if schema.meta_data.is_index_of(index, record.record_type) {
                    let keys = model.keys(&index.expression, Some(&record.fields), record);
                    let keys = keys.into_iter().map(Tuple::from_iter);
                    expected.extend(keys.map(|key| key_of(&space, &key.followed_by(primary_key))));
                }
            }
            let fits = match state.states.get(&index.name) {
                None => own.iter().copied().eq(expected.iter().map(|key| &key[..])),
                Some(IndexState::Disabled) => own.is_empty(),
                Some(_) => own.iter().all(|key| expected.contains(*key)),
            };
            if !fits {
                let text = |key: &[u8]| Tuple::unpack(&key[space.bytes().len()..]);
                let own: Vec<_> = own.into_iter().map(text).collect();
                let expected: Vec<_> = expected.iter().map(|key| text(key)).collect();
                return Err(format!("index {} has {own:?}, should have {expected:?}", index.name));
            }
        }
        Ok(())
    }

    fn records<'a>(&self, rows: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Result<Vec<Record>, String> {
        let mut parts: BTreeMap<i64, (Option<&[u8]>, Option<RecordVersion>)> = BTreeMap::new();
        let below = space().subspace(&(part::RECORDS,));
        for (key, value) in rows {
            let unknown = || format!("\"{}\" is no row of a record", key.escape_ascii());
            let columns = Tuple::unpack(&key[below.bytes().len()..]).ok_or_else(unknown)?;
            let [.., Element::Int(id), Element::Int(suffix)] = columns.elements() else {
                return Err(unknown());
            };
            let part = parts.entry(*id).or_default();
            match (suffix, Tuple::unpack(value).as_ref().map(Tuple::elements)) {
                (&suffix::WHOLE, _) => part.0 = Some(value),
                (&suffix::VERSION, Some([Element::Versionstamp(version)])) => {
                    part.1 = Some(version.clone().into())
                }
                _ => return Err(unknown()),
            }
        }
        let record = |(id, (bytes, version)): (i64, (Option<&[u8]>, _))| {
            let record = bytes.and_then(|bytes| self.decode(id, bytes));
            let record = record.ok_or_else(|| format!("record {id} cannot be read"))?;
            Ok(Record { version, ..record })
        };
        parts.into_iter().map(record).collect()
    }

    /// The record with this number in a union message.
    fn decode(&self, id: i64, bytes: &[u8]) -> Option<Record> {
        let union = DynamicMessage::decode(self.schema().meta_data.union().clone(), bytes).ok()?;
        let (_, value) = union.fields().next()?;
        let message = value.as_message()?;
        let record_type = TYPES.into_iter().find(|name| *name == message.descriptor().name())?;
        let own = message.get_field_by_name("id")?.as_i64()?;
        let fields = self.fields(message, fields_of(record_type))?;
        (own == id).then_some(Record { id, record_type, fields, version: None })
    }

    fn fields(&self, message: &DynamicMessage, of: &[FieldOf]) -> Option<Fields> {
        let mut fields = Fields::new();
        for FieldOf { name, kind, .. } in of {
            if !message.has_field_by_name(name) {
                continue;
            }
            let part = |value: &ProtoValue| self.fields(value.as_message()?, PART);
            let slot = match (&*message.get_field_by_name(name)?, kind) {
                (ProtoValue::Map(all), _) => {
                    let by_key: BTreeMap<_, _> = all.iter().collect();
                    let entry = |(key, one): (&MapKey, &ProtoValue)| {
                        Some(entry(key.as_str()?.into_value(), value(one)?))
                    };
                    Slot::Parts(by_key.into_iter().map(entry).collect::<Option<_>>()?)
                }
                (ProtoValue::List(all), Kind::Part) => {
                    Slot::Parts(all.iter().map(part).collect::<Option<_>>()?)
                }
                (ProtoValue::List(all), _) => Slot::Many(all.iter().map(value).collect::<Option<_>>()?),
                (one, Kind::Part) => Slot::Part(part(one)?),
                (one, _) => Slot::One(value(one)?),
            };
            // What has the default value of its type is not present without presence.
            let is_absent = matches!(&slot, Slot::One(value) if !kind.is_message() && is_default(value));
            if is_absent && !self.schema().presence {
                return None;
            }
            fields.insert(name, slot);
        }
        Some(fields)
    }
}

fn key_of(space: &Subspace, key: &Tuple) -> Vec<u8> {
    [space.bytes(), &key.pack()].concat()
}

/// The state of an index: its name, and which one it is.
fn state_of(key: &[u8], value: &[u8]) -> Result<(String, IndexState), String> {
    let name: Result<(String,), _> = space().subspace(&(part::STATES,)).unpack(key);
    let state = match Tuple::unpack(value).as_ref().map(Tuple::elements) {
        Some([Element::Int(state::WRITE_ONLY)]) => Some(IndexState::WriteOnly),
        Some([Element::Int(state::DISABLED)]) => Some(IndexState::Disabled),
        _ => None,
    };
    match (name, state) {
        (Ok((name,)), Some(state)) => Ok((name, state)),
        _ => Err(format!("\"{}\" is no state of an index", key.escape_ascii())),
    }
}

fn value(value: &ProtoValue) -> Option<Value> {
    Some(match value {
        ProtoValue::Bool(value) => value.into_value(),
        ProtoValue::I32(number) | ProtoValue::EnumNumber(number) => (*number).into_value(),
        ProtoValue::I64(number) => (*number).into_value(),
        ProtoValue::F32(number) => (*number).into_value(),
        ProtoValue::F64(number) => (*number).into_value(),
        ProtoValue::String(text) => text.clone().into_value(),
        ProtoValue::Bytes(bytes) => bytes.to_vec().into_value(),
        ProtoValue::Message(message) => match message.get_field_by_name("value") {
            Some(inner) => self::value(&inner)?,
            None => {
                let half = |name| Some(message.get_field_by_name(name)?.as_i64()?.cast_unsigned());
                let (high, low) = (half("most_significant_bits")?, half("least_significant_bits")?);
                Uuid::from_u64_pair(high, low).into_value()
            }
        },
        _ => return None,
    })
}
