//! The schemas of random queries: the same fields, with and without presence, under three kinds of primary
//! keys; and every kind of index over them.

use crate::record_shared::meta_data;
use foundationdb_tuple::Element;
use shaketable_record::{
    expression::{KeyExpression, NullStandin, concat, field, function, literal},
    metadata::{Index, RecordMetaData, index_types},
    value::Value,
};
use std::sync::{Arc, LazyLock};

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Int,
    /// The number of a value of an enum.
    Enum,
    /// True or false.
    Bool,
    /// A string.
    Text,
    /// Bytes.
    Bytes,
    /// A float of 64 bits.
    Double,
    /// A float of 32 bits.
    Float,
    /// A UUID, as a message of `tuple_fields.proto`.
    Uuid,
    /// A number in a message of `tuple_fields.proto`.
    WrappedInt,
    /// A string in a message of `tuple_fields.proto`.
    WrappedText,
    /// A message `Part`.
    Part,
    /// An entry of a map.
    Entry,
}

impl Kind {
    /// Whether a field of this type that is not repeated is a message, whose presence is stored.
    pub fn is_message(self) -> bool {
        matches!(self, Kind::Uuid | Kind::WrappedInt | Kind::WrappedText | Kind::Part | Kind::Entry)
    }

    /// The fields of a message that has some: of a part, or of an entry.
    pub fn fields(self) -> Option<&'static [FieldOf]> {
        match self {
            Kind::Part => Some(PART),
            Kind::Entry => Some(ENTRY),
            _ => None,
        }
    }
}

/// A field of a record, or of a part of one.
#[derive(Clone, Copy, Debug)]
pub struct FieldOf {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether it has any number of values.
    pub repeated: bool,
}

const fn one(name: &'static str, kind: Kind) -> FieldOf {
    FieldOf { name, kind, repeated: false }
}

const fn many(name: &'static str, kind: Kind) -> FieldOf {
    FieldOf { name, kind, repeated: true }
}

/// The fields of an `Item`, without its number.
pub const ITEM: &[FieldOf] = &[
    one("num", Kind::Int),
    one("big", Kind::Int),
    one("name", Kind::Text),
    one("flag", Kind::Bool),
    one("kind", Kind::Enum),
    one("blob", Kind::Bytes),
    one("score", Kind::Double),
    one("ratio", Kind::Float),
    many("tags", Kind::Text),
    many("nums", Kind::Int),
    one("inner", Kind::Part),
    many("parts", Kind::Part),
    one("token", Kind::Uuid),
    one("price", Kind::WrappedInt),
    one("alias", Kind::WrappedText),
    many("extra", Kind::Entry),
];

/// The types of records.
pub const TYPES: [&str; 3] = ["Item", "Other", "More"];

/// The fields of an `Other` and of a `More`, without their numbers.
pub const OTHER: &[FieldOf] = &[one("num", Kind::Int), one("name", Kind::Text)];

/// The fields of a `Part`.
pub const PART: &[FieldOf] = &[one("a", Kind::Int), one("s", Kind::Text), many("reps", Kind::Int)];

/// The fields of an entry of the map `extra`.
const ENTRY: &[FieldOf] = &[one("key", Kind::Text), one("value", Kind::Int)];

/// The fields of all types.
pub const COMMON: &[FieldOf] = OTHER;

/// The fields of a record type.
pub fn fields_of(record_type: &str) -> &'static [FieldOf] {
    if record_type == "Item" { ITEM } else { OTHER }
}

/// What the primary key has before the record's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyedBy {
    /// Nothing.
    Number,
    /// The record type.
    Type,
    /// This field.
    Field(&'static str),
}

/// How records are described and where they are stored.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The meta-data.
    pub meta_data: Arc<RecordMetaData>,
    /// Whether a field that has its type's default value is present.
    pub presence: bool,
    /// The primary key.
    pub keyed_by: KeyedBy,
}

fn primary_key(keyed_by: KeyedBy) -> KeyExpression {
    let id = KeyExpression::from(field("id"));
    match keyed_by {
        KeyedBy::Number => id,
        KeyedBy::Type => concat([KeyExpression::RecordType, id]),
        KeyedBy::Field(name) => concat([name.into(), id]),
    }
}

impl Schema {
    /// The primary key, which is the same for all types.
    pub fn primary_key(&self) -> KeyExpression {
        primary_key(self.keyed_by)
    }

    /// The key of a record type.
    pub fn type_key(&self, record_type: &str) -> Value {
        self.meta_data.record_type(record_type).map_or(Element::Nil, |found| found.key.clone())
    }
}

/// All schemas.
pub fn schemas() -> &'static [Schema] {
    static SCHEMAS: LazyLock<[Schema; 4]> = LazyLock::new(|| {
        [
            schema("proto2", KeyedBy::Number),
            schema("proto3", KeyedBy::Type),
            schema("proto2", KeyedBy::Field("name")),
            schema("proto3", KeyedBy::Field("num")),
        ]
    });
    &*SCHEMAS
}

fn schema(syntax: &str, keyed_by: KeyedBy) -> Schema {
    let presence = syntax == "proto2";
    let optional = if presence { "optional " } else { "" };
    let text = format!(
        r#"
        syntax = "{syntax}";
        import "tuple_fields.proto";
        enum Color {{ RED = 0; GREEN = 1; BLUE = 2; }}
        message Part {{ {optional}int32 a = 1; {optional}string s = 2; repeated int32 reps = 3; }}
        message Item {{
            {optional}int64 id = 1;
            {optional}int32 num = 2;
            {optional}sint64 big = 3;
            {optional}string name = 4;
            {optional}bool flag = 5;
            {optional}Color kind = 6;
            {optional}bytes blob = 7;
            {optional}double score = 8;
            {optional}float ratio = 9;
            repeated string tags = 10;
            repeated sfixed32 nums = 11;
            optional Part inner = 12;
            repeated Part parts = 13;
            optional com.apple.foundationdb.record.UUID token = 14;
            optional com.apple.foundationdb.record.NullableInt32 price = 15;
            optional com.apple.foundationdb.record.NullableString alias = 16;
            map<string, int32> extra = 17;
        }}
        message Other {{ {optional}int64 id = 1; {optional}int32 num = 2; {optional}string name = 3; }}
        message More {{ {optional}int64 id = 1; {optional}int32 num = 2; {optional}string name = 3; }}
        message RecordTypeUnion {{ optional Item _Item = 1; optional Other _Other = 2; optional More _More = 3; }}
        "#
    );
    let mut builder = meta_data::builder(&meta_data::file(&text));
    builder.set_store_record_versions(true).expect("versions");
    meta_data::set_primary_key(&mut builder, &TYPES, primary_key(keyed_by));
    for (types, index) in indexes() {
        let added = match types {
            Some(types) => builder.add_multi_type_index(types.iter().copied(), index),
            None => builder.add_index(None, index),
        };
        added.expect("an index");
    }
    let meta_data = meta_data::stored(&builder.build().expect("the meta-data"));
    Schema { meta_data, presence, keyed_by }
}

/// Every kind of index, with the types of its records.
fn indexes() -> Vec<(Option<&'static [&'static str]>, Index)> {
    const ITEM: Option<&[&str]> = Some(&["Item"]);
    const BOTH: Option<&[&str]> = Some(&["Item", "Other"]);
    let one = |name: &str| KeyExpression::from(field(name));
    let tags = || KeyExpression::from(field("tags").fan_out());
    let parts = || field("parts").fan_out();
    let entries = |child: KeyExpression| field("extra").fan_out().nest(child);
    let inner = |child: KeyExpression| field("inner").nest(child);
    let ranked = |name: &str, expression: KeyExpression| Index::new(name, expression).kind(index_types::RANK);
    let versioned = |name: &str, columns: Vec<KeyExpression>| {
        Index::new(name, concat(columns)).kind(index_types::VERSION)
    };
    vec![
        (ITEM, Index::new("num", one("num"))),
        (ITEM, Index::new("num_or_zero", field("num").not_null())),
        (ITEM, Index::new("big", one("big"))),
        (BOTH, Index::new("name", one("name"))),
        (ITEM, Index::new("flag_num", concat(["flag", "num"]))),
        (ITEM, Index::new("kind_name_num", concat(["kind", "name", "num"]))),
        (ITEM, Index::new("blob", one("blob"))),
        (ITEM, Index::new("score", one("score"))),
        (ITEM, Index::new("ratio", one("ratio"))),
        (ITEM, Index::new("tags", tags())),
        (ITEM, Index::new("nums", field("nums").fan_out())),
        (ITEM, Index::new("num_tags", concat([one("num"), tags()]))),
        (ITEM, Index::new("tags_num", concat([tags(), one("num")]))),
        (ITEM, Index::new("all_tags", field("tags").concatenate())),
        (ITEM, Index::new("inner", inner(concat(["a", "s"])))),
        (ITEM, Index::new("inner_reps", inner(field("reps").fan_out().into()))),
        (ITEM, Index::new("parts", parts().nest(concat(["a", "s"])))),
        (ITEM, Index::new("parts_apart", concat([parts().nest("a"), parts().nest("s")]))),
        (ITEM, Index::new("parts_reps", parts().nest(field("reps").fan_out()))),
        (ITEM, Index::new("token", one("token"))),
        (ITEM, Index::new("price_alias", concat(["price", "alias"]))),
        (ITEM, Index::new("alias_token", concat(["alias", "token"]))),
        (ITEM, Index::new("extra", entries(concat(["key", "value"])))),
        (ITEM, Index::new("extra_values", entries(field("value").into()))),
        (ITEM, Index::new("literal_num", concat([literal("n"), one("num")]))),
        (ITEM, Index::new("num_literal_name", concat([one("num"), literal(7), one("name")]))),
        (ITEM, Index::new("lower_name", function("lower", "name"))),
        (ITEM, Index::new("words_of_name", function("words", "name"))),
        (BOTH, Index::new("name_num", concat(["name", "num"]))),
        (None, Index::new("num_of_all", one("num"))),
        (None, versioned("version", vec![KeyExpression::Version])),
        (ITEM, versioned("num_version", vec![one("num"), KeyExpression::Version])),
        (None, Index::new("number", one("id")).unique()),
        (ITEM, ranked("rank", one("big"))),
        (ITEM, ranked("rank_by_kind", field("big").null(NullStandin::NullUnique).group_by("kind"))),
        (ITEM, ranked("rank_of_nums", field("nums").fan_out().ungrouped())),
    ]
}
