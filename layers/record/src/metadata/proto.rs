//! Meta-data as bytes: the message `MetaData` of Java's Record Layer, with its field numbers.
//!
//! What this crate does not have is refused, never ignored: predicates of indexes, joined and unnested types,
//! views, stored queries, indexes that are stored under their name instead of a number. Functions and types
//! of indexes that an application adds are named, but are not part of the bytes.

use super::{
    Extensions, FormerIndex, Index, MetaDataError, RecordMetaData, RecordMetaDataBuilder, files, index_types,
    options::NamedValue,
};
use crate::{
    expression::{
        ExpressionError, KeyExpression,
        proto::{Expression, Literal},
    },
    value::Tuple,
};
use foundationdb_tuple::Element;
use prost::Message;

/// The message `MetaData`.
#[derive(Clone, PartialEq, prost::Message)]
struct MetaDataRow {
    /// A `FileDescriptorProto`, with options.
    #[prost(bytes = "vec", optional, tag = "1")]
    records: Option<Vec<u8>>,
    #[prost(message, repeated, tag = "2")]
    indexes: Vec<IndexRow>,
    #[prost(message, repeated, tag = "3")]
    record_types: Vec<RecordTypeRow>,
    #[prost(bool, optional, tag = "4")]
    split_long_records: Option<bool>,
    #[prost(int32, optional, tag = "5")]
    version: Option<i32>,
    #[prost(message, repeated, tag = "6")]
    former_indexes: Vec<FormerIndexRow>,
    #[prost(bytes = "vec", optional, tag = "7")]
    record_count_key: Option<Vec<u8>>,
    #[prost(bool, optional, tag = "8")]
    store_record_versions: Option<bool>,
    #[prost(bytes = "vec", repeated, tag = "9")]
    dependencies: Vec<Vec<u8>>,
    #[prost(int64, optional, tag = "10")]
    subspace_key_counter: Option<i64>,
    #[prost(bool, optional, tag = "11")]
    uses_subspace_key_counter: Option<bool>,
    #[prost(bytes = "vec", repeated, tag = "12")]
    joined_record_types: Vec<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "13")]
    unnested_record_types: Vec<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "14")]
    user_defined_functions: Vec<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "15")]
    views: Vec<Vec<u8>>,
    #[prost(bytes = "vec", repeated, tag = "16")]
    stored_queries: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct IndexRow {
    #[prost(string, repeated, tag = "1")]
    record_types: Vec<String>,
    #[prost(int32, optional, tag = "2")]
    old_type: Option<i32>,
    #[prost(string, optional, tag = "3")]
    name: Option<String>,
    #[prost(message, optional, tag = "4")]
    expression: Option<Expression>,
    /// A packed tuple of one element.
    #[prost(bytes = "vec", optional, tag = "5")]
    subspace_key: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "6")]
    last_modified_version: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "7")]
    value_expression: Option<Vec<u8>>,
    #[prost(string, optional, tag = "8")]
    kind: Option<String>,
    #[prost(message, repeated, tag = "9")]
    options: Vec<NamedValue>,
    #[prost(int32, optional, tag = "10")]
    added_version: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "11")]
    predicate: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RecordTypeRow {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(message, optional, tag = "2")]
    primary_key: Option<Expression>,
    #[prost(int32, optional, tag = "3")]
    since_version: Option<i32>,
    #[prost(message, optional, tag = "4")]
    explicit_key: Option<Literal>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct FormerIndexRow {
    #[prost(string, optional, tag = "3")]
    name: Option<String>,
    #[prost(bytes = "vec", optional, tag = "5")]
    subspace_key: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "6")]
    removed_version: Option<i32>,
    #[prost(int32, optional, tag = "10")]
    added_version: Option<i32>,
}

impl RecordMetaData {
    /// As bytes. Equal meta-data has equal bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, MetaDataError> {
        let file = self.union.parent_file();
        let row = MetaDataRow {
            records: Some(file.encode_to_vec()),
            indexes: self.indexes.values().map(|index| self.index_row(index)).collect::<Result<_, _>>()?,
            record_types: self.type_rows()?,
            split_long_records: Some(self.split_long_records),
            version: Some(self.version),
            former_indexes: self.former.iter().map(former_row).collect(),
            store_record_versions: Some(self.store_record_versions),
            dependencies: files::imported(&file),
            subspace_key_counter: Some(self.subspace_counter),
            uses_subspace_key_counter: Some(true),
            ..MetaDataRow::default()
        };
        Ok(row.encode_to_vec())
    }

    /// The meta-data whose [`to_bytes`](RecordMetaData::to_bytes) these are. It is validated with what the
    /// application adds.
    pub fn from_bytes(bytes: &[u8], extensions: &Extensions) -> Result<RecordMetaData, MetaDataError> {
        RecordMetaDataBuilder::from_bytes(bytes, extensions)?.build()
    }

    fn index_row(&self, index: &Index) -> Result<IndexRow, MetaDataError> {
        let refused = |error: ExpressionError| MetaDataError::Index {
            index: index.name.clone(),
            record_type: "any record type".into(),
            error,
        };
        let mut options = index.options.clone();
        if index.unique {
            options.insert(index_types::UNIQUE_OPTION.into(), "true".into());
        }
        Ok(IndexRow {
            record_types: self.types_of(index).unwrap_or_default().to_vec(),
            name: Some(index.name.clone()),
            expression: Some(Expression::of(&index.expression).map_err(refused)?),
            subspace_key: Some(Tuple::from(index.subspace_key).pack()),
            last_modified_version: Some(index.last_modified_version),
            kind: Some(index.kind.clone()),
            options: options.into_iter().map(|(key, value)| NamedValue { key, value }).collect(),
            added_version: Some(index.added_version),
            ..IndexRow::default()
        })
    }

    fn type_rows(&self) -> Result<Vec<RecordTypeRow>, MetaDataError> {
        let mut rows = Vec::new();
        for record_type in self.types.values() {
            let refused = |error: ExpressionError| MetaDataError::PrimaryKey {
                record_type: record_type.name.clone(),
                error,
            };
            let number = self.union_numbers(&record_type.message).first().copied().unwrap_or(0);
            let is_explicit = Tuple::from(record_type.key.clone()) != Tuple::from(i64::from(number));
            rows.push(RecordTypeRow {
                name: Some(record_type.name.clone()),
                primary_key: Some(Expression::of(&record_type.primary_key).map_err(refused)?),
                since_version: Some(record_type.since_version).filter(|version| *version > 0),
                explicit_key: Literal::of(&record_type.key).filter(|_| is_explicit),
            });
        }
        Ok(rows)
    }
}

fn former_row(former: &FormerIndex) -> FormerIndexRow {
    FormerIndexRow {
        name: Some(former.name.clone()),
        subspace_key: Some(Tuple::from(former.subspace_key).pack()),
        removed_version: Some(former.removed_version),
        added_version: Some(former.added_version),
    }
}

impl RecordMetaDataBuilder {
    /// A builder with stored meta-data, not validated yet.
    pub(super) fn from_bytes(bytes: &[u8], extensions: &Extensions) -> Result<Self, MetaDataError> {
        let row = MetaDataRow::decode(bytes).map_err(|error| MetaDataError::Torn(error.to_string()))?;
        row.refuse_unsupported()?;
        let records = row.records.ok_or_else(|| missing("records"))?;
        let file = files::load(records, row.dependencies)?;
        let mut builder = RecordMetaDataBuilder::default();
        builder.set_extensions(extensions.clone());
        builder.place_types(&file)?;
        for record_type in row.record_types {
            builder.read_type(record_type)?;
        }
        for index in row.indexes {
            builder.read_index(index)?;
        }
        builder.former = row.former_indexes.into_iter().map(former).collect::<Result<_, _>>()?;
        builder.split_long_records = row.split_long_records.unwrap_or(false);
        builder.store_record_versions = row.store_record_versions.unwrap_or(false);
        builder.version = row.version.unwrap_or(0);
        builder.subspace_counter = builder.subspace_counter.max(row.subspace_key_counter.unwrap_or(0));
        Ok(builder)
    }

    fn read_type(&mut self, row: RecordTypeRow) -> Result<(), MetaDataError> {
        let name = row.name.ok_or_else(|| missing("the name of a record type"))?;
        let record_type = self.record_type(&name)?;
        if let Some(key) = row.primary_key {
            record_type.set_primary_key(expression(key, format!("the primary key of {name}"))?);
        }
        if let Some(key) = row.explicit_key {
            record_type.set_record_type_key(key.value());
        }
        record_type.set_since_version(row.since_version.unwrap_or(0));
        Ok(())
    }

    fn read_index(&mut self, row: IndexRow) -> Result<(), MetaDataError> {
        let name = row.name.ok_or_else(|| missing("the name of an index"))?;
        let unsupported = |what| Err(MetaDataError::Unsupported(format!("{what} of index {name}")));
        if row.predicate.is_some() {
            return unsupported("the predicate");
        }
        if row.value_expression.is_some() {
            return unsupported("the value expression");
        }
        if row.old_type.is_some() {
            return unsupported("the numbered type");
        }
        let root = row.expression.ok_or_else(|| missing(&format!("the expression of index {name}")))?;
        let mut index = Index::new(&name, expression(root, format!("index {name}"))?);
        index.kind = row.kind.unwrap_or(index.kind);
        index.options = row.options.into_iter().map(|option| (option.key, option.value)).collect();
        index.subspace_key = number(row.subspace_key, &name)?;
        index.last_modified_version = row.last_modified_version.unwrap_or(0);
        index.added_version = row.added_version.unwrap_or(1);
        match row.record_types.is_empty() {
            true => self.add_index(None, index)?,
            false => self.add_multi_type_index(row.record_types.iter().map(String::as_str), index)?,
        };
        Ok(())
    }
}

impl MetaDataRow {
    fn refuse_unsupported(&self) -> Result<(), MetaDataError> {
        let found = [
            ("a record count key", self.record_count_key.is_some()),
            ("joined record types", !self.joined_record_types.is_empty()),
            ("unnested record types", !self.unnested_record_types.is_empty()),
            ("user-defined functions", !self.user_defined_functions.is_empty()),
            ("views", !self.views.is_empty()),
            ("stored queries", !self.stored_queries.is_empty()),
        ];
        match found.into_iter().find(|(_, found)| *found) {
            Some((what, _)) => Err(MetaDataError::Unsupported(format!("meta-data with {what}"))),
            None => Ok(()),
        }
    }
}

fn former(row: FormerIndexRow) -> Result<FormerIndex, MetaDataError> {
    let name = row.name.unwrap_or_default();
    Ok(FormerIndex {
        subspace_key: number(row.subspace_key, &name)?,
        added_version: row.added_version.unwrap_or(0),
        removed_version: row.removed_version.unwrap_or(0),
        name,
    })
}

/// The number in the packed tuple under which an index is stored.
fn number(packed: Option<Vec<u8>>, index: &str) -> Result<i64, MetaDataError> {
    let by_name = || MetaDataError::Unsupported(format!("index {index} is not stored under a number"));
    let key = Tuple::unpack(&packed.ok_or_else(by_name)?)
        .ok_or_else(|| MetaDataError::Torn(format!("the subspace key of index {index}")))?;
    match key.elements() {
        [Element::Int(number)] if *number > 0 => Ok(*number),
        _ => Err(by_name()),
    }
}

fn expression(row: Expression, of: String) -> Result<KeyExpression, MetaDataError> {
    row.expression().map_err(|error| MetaDataError::Expression { of, error })
}

fn missing(what: &str) -> MetaDataError {
    MetaDataError::Torn(format!("{what} is missing"))
}
