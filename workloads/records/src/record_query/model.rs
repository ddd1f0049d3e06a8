//! A model of records: what conditions and key expressions are, written without the layer's own evaluation.

use super::schema::{FieldOf, Kind, Schema, fields_of};
use foundationdb_tuple::Element;
use prost_reflect::{
    DynamicMessage, FieldDescriptor, MapKey, MessageDescriptor, Value as ProtoValue, prost::Message,
};
use shaketable_record::{
    expression::{FanType, KeyExpression, NullStandin},
    query::{Comparison, EmptyList, Operand, QueryComponent},
    value::{IntoValue, Tuple, Value},
    version::RecordVersion,
};
use std::{cmp::Ordering, collections::BTreeMap};

/// The fields of a message that are present.
pub type Fields = BTreeMap<&'static str, Slot>;

/// What is in a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Slot {
    /// A value.
    One(Value),
    /// The values of a repeated field.
    Many(Vec<Value>),
    /// A message.
    Part(Fields),
    /// The messages of a repeated field.
    Parts(Vec<Fields>),
}

/// A record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its number, which no other record has.
    pub id: i64,
    /// The name of its type.
    pub record_type: &'static str,
    /// Its other fields.
    pub fields: Fields,
    /// Its version, once it is saved.
    pub version: Option<RecordVersion>,
}

/// All records, which ranks are among.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    /// The records.
    pub records: &'a [Record],
    /// Their schema.
    pub schema: &'a Schema,
}

/// The order of two values in keys; null is first.
pub fn order(left: &Value, right: &Value) -> Ordering {
    Tuple::from(left.clone()).cmp(&Tuple::from(right.clone()))
}

fn is_null(value: &Value) -> bool {
    matches!(value, Element::Nil)
}

fn or(values: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let values: Vec<_> = values.into_iter().collect();
    match (values.contains(&Some(true)), values.contains(&None)) {
        (true, _) => Some(true),
        (false, true) => None,
        (false, false) => Some(false),
    }
}

fn and(values: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let values: Vec<_> = values.into_iter().collect();
    match (values.contains(&Some(false)), values.contains(&None)) {
        (true, _) => Some(false),
        (false, true) => None,
        (false, false) => Some(true),
    }
}

fn compare(value: &Value, comparison: &Comparison) -> Option<bool> {
    let with = |other: &Value, holds: fn(Ordering) -> bool| match is_null(value) || is_null(other) {
        true => None,
        false => Some(holds(order(value, other))),
    };
    match comparison {
        Comparison::IsNull => Some(is_null(value)),
        Comparison::NotNull => Some(!is_null(value)),
        Comparison::Equals(other) => with(other, Ordering::is_eq),
        Comparison::NotEquals(other) => with(other, Ordering::is_ne),
        Comparison::Less(other) => with(other, Ordering::is_lt),
        Comparison::LessOrEqual(other) => with(other, Ordering::is_le),
        Comparison::Greater(other) => with(other, Ordering::is_gt),
        Comparison::GreaterOrEqual(other) => with(other, Ordering::is_ge),
        Comparison::In(_) if is_null(value) => None,
        Comparison::In(others) => or(others.iter().map(|other| with(other, Ordering::is_eq))),
        Comparison::StartsWith(prefix) => match (value, prefix) {
            (Element::String(value), Element::String(prefix)) => {
                Some(value.as_bytes().starts_with(prefix.as_bytes()))
            }
            (Element::Bytes(value), Element::Bytes(prefix)) => Some(value.starts_with(prefix)),
            _ => None,
        },
    }
}

fn empty(mode: EmptyList) -> Option<bool> {
    match mode {
        EmptyList::Unknown => None,
        EmptyList::NoMatches => Some(false),
    }
}

fn default_of(name: &str) -> Value {
    match name {
        "name" | "s" => "".into_value(),
        _ => 0.into_value(),
    }
}

impl Model<'_> {
    /// The record's primary key.
    pub fn primary_key(&self, record: &Record) -> Tuple {
        let keys = self.keys(&self.schema.primary_key(), Some(&record.fields), record);
        keys.into_iter().flatten().collect()
    }

    /// The record as a message of its type.
    pub fn message(&self, record: &Record) -> DynamicMessage {
        let found = self.schema.meta_data.record_type(record.record_type);
        record.message(&found.expect("a type of the schema").message)
    }

    /// What a condition is for a record.
    pub fn holds(&self, condition: &QueryComponent, record: &Record) -> Option<bool> {
        self.within(condition, Some(&record.fields), record)
    }

    fn within(&self, condition: &QueryComponent, fields: Option<&Fields>, record: &Record) -> Option<bool> {
        match condition {
            QueryComponent::And(parts) => and(parts.iter().map(|part| self.within(part, fields, record))),
            QueryComponent::Or(parts) => or(parts.iter().map(|part| self.within(part, fields, record))),
            QueryComponent::Not(inner) => self.within(inner, fields, record).map(|holds| !holds),
            QueryComponent::Matches { field, component } => match fields.and_then(|all| all.get(&**field)) {
                Some(Slot::Part(inner)) => self.within(component, Some(inner), record),
                _ => self.within(component, None, record),
            },
            QueryComponent::OneMatches { field, empty: mode, component } => match fields?.get(&**field) {
                Some(Slot::Parts(all)) if !all.is_empty() => {
                    or(all.iter().map(|one| self.within(component, Some(one), record)))
                }
                _ => empty(*mode),
            },
            QueryComponent::Compare { operand, comparison } => {
                self.compare(operand, comparison, fields, record)
            }
        }
    }

    fn compare(
        &self,
        operand: &Operand,
        comparison: &Comparison,
        fields: Option<&Fields>,
        record: &Record,
    ) -> Option<bool> {
        match operand {
            Operand::OneOf { field, empty: mode } => match fields?.get(&*field.name) {
                Some(Slot::Many(all)) if !all.is_empty() => {
                    or(all.iter().map(|one| compare(one, comparison)))
                }
                _ => empty(*mode),
            },
            Operand::Rank(expression) => match self.keys(expression, fields, record) {
                keys if keys.is_empty() => compare(&Element::Nil, comparison),
                keys => or(keys
                    .into_iter()
                    .map(|key| compare(&self.rank(expression, &Tuple::from_iter(key)), comparison))),
            },
            // A query has the name; its plan has the key.
            Operand::RecordType => match comparison.comparands() {
                [Element::String(_), ..] => compare(&record.record_type.into_value(), comparison),
                _ => compare(&self.schema.type_key(record.record_type), comparison),
            },
            Operand::Field(field) => {
                compare(&self.keys(&field.clone().into(), fields, record)[0][0], comparison)
            }
            Operand::Version => {
                compare(&self.keys(&KeyExpression::Version, fields, record)[0][0], comparison)
            }
            Operand::Key(expression) => match self.keys(expression, fields, record) {
                keys if keys.is_empty() => None,
                keys => or(keys.iter().map(|key| compare(&key[0], comparison))),
            },
        }
    }

    /// The rank of a key, which is a group and a score: how many different scores of the group are less.
    pub fn rank(&self, expression: &KeyExpression, key: &Tuple) -> Value {
        let split = |key: &Tuple| key.split_at(expression.grouping_columns());
        let (group, score) = split(key);
        let items = self.records.iter().filter(|other| other.record_type == "Item");
        let keys = items.flat_map(|item| self.keys(expression, Some(&item.fields), item));
        let mut less: Vec<_> = keys
            .map(|key| split(&Tuple::from_iter(key)))
            .filter(|(other, less)| *other == group && *less < score)
            .collect();
        less.sort();
        less.dedup();
        (less.len() as i64).into_value()
    }

    /// The keys of an expression, in order.
    pub fn keys(
        &self,
        expression: &KeyExpression,
        fields: Option<&Fields>,
        record: &Record,
    ) -> Vec<Vec<Value>> {
        let one = |value| vec![vec![value]];
        match expression {
            KeyExpression::Empty => vec![Vec::new()],
            KeyExpression::Version => one(record.version.clone().into_value()),
            KeyExpression::RecordType => one(self.schema.type_key(record.record_type)),
            KeyExpression::Literal(value) => one(value.clone()),
            KeyExpression::Group { whole, .. } => self.keys(whole, fields, record),
            KeyExpression::Concat(parts) => parts.iter().fold(vec![Vec::new()], |keys, part| {
                let rest = self.keys(part, fields, record);
                keys.iter().flat_map(|key| rest.iter().map(|more| [&key[..], more].concat())).collect()
            }),
            KeyExpression::Function { name, arguments } => {
                let of_text = |key: &Vec<Value>| match (&**name, &key[0]) {
                    ("lower", Element::String(text)) => vec![vec![text.to_lowercase().into_value()]],
                    ("lower", other) => vec![vec![other.clone()]],
                    ("words", Element::String(text)) => words(text),
                    ("words", _) => Vec::new(),
                    _ => panic!("there is no function {name}"),
                };
                self.keys(arguments, fields, record).iter().flat_map(of_text).collect()
            }
            KeyExpression::Nest { parent, child } => {
                match (fields.and_then(|all| all.get(&*parent.name)), parent.fan) {
                    (Some(Slot::Part(inner)), FanType::None) => self.keys(child, Some(inner), record),
                    (Some(Slot::Parts(all)), FanType::FanOut) => {
                        all.iter().flat_map(|inner| self.keys(child, Some(inner), record)).collect()
                    }
                    (None, FanType::None) => self.keys(child, None, record),
                    _ => Vec::new(),
                }
            }
            KeyExpression::Field(field) => match (fields.and_then(|all| all.get(&*field.name)), field.fan) {
                _ if field.name == "id" => one(record.id.into_value()),
                (Some(Slot::One(value)), _) => one(value.clone()),
                (Some(Slot::Many(all)), FanType::FanOut) => {
                    all.iter().map(|value| vec![value.clone()]).collect()
                }
                (Some(Slot::Many(all)), _) if !all.is_empty() => one(Element::Tuple(all.clone())),
                (_, FanType::FanOut) => Vec::new(),
                (None, FanType::None) if field.null == NullStandin::NotNull && fields.is_some() => {
                    one(default_of(&field.name))
                }
                _ => one(Element::Nil),
            },
        }
    }
}

impl Record {
    /// As a message of its type.
    pub fn message(&self, descriptor: &MessageDescriptor) -> DynamicMessage {
        let mut message = part(descriptor, &self.fields, fields_of(self.record_type));
        message.set_field_by_name("id", ProtoValue::I64(self.id));
        message
    }
}

fn part(descriptor: &MessageDescriptor, fields: &Fields, of: &[FieldOf]) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    for (name, slot) in fields {
        let field = descriptor.get_field_by_name(name).expect("a field of the schema");
        let kind = of.iter().find(|field| field.name == *name).expect("a field of the model").kind;
        let scalar = |value: &Value| proto_value(value, kind, &field);
        let inner = |fields: &Fields| {
            let of = field.kind().as_message().expect("a message").clone();
            ProtoValue::Message(part(&of, fields, kind.fields().expect("a message with fields")))
        };
        let value = match slot {
            Slot::Parts(all) if kind == Kind::Entry => ProtoValue::Map(all.iter().map(map_entry).collect()),
            Slot::One(value) => scalar(value),
            Slot::Many(values) => ProtoValue::List(values.iter().map(scalar).collect()),
            Slot::Part(fields) => inner(fields),
            Slot::Parts(all) => ProtoValue::List(all.iter().map(inner).collect()),
        };
        message.set_field(&field, value);
    }
    message
}

/// The bytes of a record's message, with the entries of its map in order: a map has none of its own.
pub fn bytes_of(message: &DynamicMessage) -> Vec<u8> {
    let mut rest = message.clone();
    let map = rest.get_field_by_name("extra").and_then(|map| map.as_map().cloned()).unwrap_or_default();
    rest.clear_field_by_name("extra");
    let map: BTreeMap<MapKey, ProtoValue> = map.into_iter().collect();
    [rest.encode_to_vec(), format!("{map:?}").into_bytes()].concat()
}

/// The key and the value of an entry.
fn map_entry(entry: &Fields) -> (MapKey, ProtoValue) {
    match (entry.get("key"), entry.get("value")) {
        (Some(Slot::One(Element::String(key))), Some(Slot::One(Element::Int(value)))) => {
            (MapKey::String(key.clone().into_owned()), ProtoValue::I32(*value as i32))
        }
        _ => panic!("{entry:?} is no entry"),
    }
}

fn proto_value(value: &Value, kind: Kind, field: &FieldDescriptor) -> ProtoValue {
    let of = |fields: &[(&str, ProtoValue)]| {
        let mut message = DynamicMessage::new(field.kind().as_message().expect("a message").clone());
        fields.iter().for_each(|(name, value)| message.set_field_by_name(name, value.clone()));
        ProtoValue::Message(message)
    };
    match (value, kind) {
        (Element::Uuid(id), _) => {
            let (high, low) = id.as_u64_pair();
            let half = |half: u64| ProtoValue::I64(half.cast_signed());
            of(&[("most_significant_bits", half(high)), ("least_significant_bits", half(low))])
        }
        (Element::Int(number), Kind::WrappedInt) => of(&[("value", ProtoValue::I32(*number as i32))]),
        (Element::String(text), Kind::WrappedText) => {
            of(&[("value", ProtoValue::String(text.clone().into_owned()))])
        }
        (Element::Int(number), Kind::Enum) => ProtoValue::EnumNumber(*number as i32),
        (Element::Int(number), _) if field.name() == "big" => ProtoValue::I64(*number),
        (Element::Int(number), _) => ProtoValue::I32(*number as i32),
        (Element::Bool(value), _) => ProtoValue::Bool(*value),
        (Element::String(text), _) => ProtoValue::String(text.clone().into_owned()),
        (Element::Bytes(bytes), _) => ProtoValue::Bytes(bytes.to_vec().into()),
        (Element::Float(number), _) => ProtoValue::F32(*number),
        (Element::Double(number), _) => ProtoValue::F64(*number),
        (other, _) => panic!("{other:?} is in no record"),
    }
}

/// The words of a text, each once: what is between characters that are neither letters nor digits.
fn words(text: &str) -> Vec<Vec<Value>> {
    let (mut words, mut word) = (Vec::new(), String::new());
    for c in text.chars().chain([' ']) {
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        } else if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
    }
    words.sort();
    words.dedup();
    words.into_iter().map(|word| vec![word.into_value()]).collect()
}
