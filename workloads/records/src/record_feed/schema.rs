//! The records of the workload as plain data, the feeds of which they are a part, and the meta-data of the
//! layer.

use crate::record_shared::meta_data;
use foundationdb_tuple::Subspace;
use prost::Message;
use serde::{Deserialize, Serialize};
use shaketable_record::{
    expression::{KeyExpression, concat, field},
    metadata::{Index, RecordMetaData, index_types},
};
use std::sync::{Arc, LazyLock};

/// The records as a `.proto` file.
const RECORDS: &str = r#"
syntax = "proto2";
message Post {
    optional int64 id = 1;
    optional int64 value = 2;
    optional string topic = 3;
}
message Note {
    optional int64 id = 1;
    optional int64 value = 2;
}
message RecordTypeUnion { optional Post _Post = 1; optional Note _Note = 2; }
"#;

/// The names of the record types.
const POST: &str = "Post";
const NOTE: &str = "Note";

/// The names of the indexes: all records, and the posts by their topics.
pub(super) const ALL: &str = "all";
pub(super) const BY_TOPIC: &str = "by_topic";

/// The changes of the meta-data that their version counts: records do not take several rows, they have
/// versions, and the indexes.
pub(super) const META_DATA_VERSION: i32 = 4;

/// How many stores there are.
pub(super) const STORES: usize = 2;

/// The version of a record: the versionstamp of its transaction, and the record's number there.
pub type Version = [u8; 12];

/// Where all stores are.
pub(super) fn space() -> Subspace {
    Subspace::from("feeds")
}

/// Where a store is.
pub(super) fn store(number: usize) -> Subspace {
    space().subspace(&(number,))
}

/// A record without its primary key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The topic of a post, if it has one; `None` for a note.
    #[serde(with = "listed")]
    pub topic: Option<Option<String>>,
    /// What changes.
    pub value: i64,
}

/// The fields of either record type.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Row {
    #[prost(int64, optional, tag = "1")]
    pub id: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    pub value: Option<i64>,
    #[prost(string, optional, tag = "3")]
    pub topic: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct UnionRow {
    #[prost(message, optional, tag = "1")]
    post: Option<Row>,
    #[prost(message, optional, tag = "2")]
    note: Option<Row>,
}

impl Content {
    /// The record type.
    pub(super) fn kind(&self) -> &'static str {
        if self.topic.is_some() { POST } else { NOTE }
    }

    /// The record.
    pub(super) fn row(&self, id: i64) -> Row {
        Row { id: Some(id), value: Some(self.value), topic: self.topic.clone().flatten() }
    }

    /// The record of this type.
    pub(super) fn of_row(kind: &str, row: Row) -> Content {
        Content { topic: (kind == POST).then_some(row.topic), value: row.value.unwrap_or_default() }
    }

    /// The union message with the record, as it is stored.
    pub(super) fn stored(&self, id: i64) -> Vec<u8> {
        let row = Some(self.row(id));
        let union = match self.topic {
            Some(_) => UnionRow { post: row, note: None },
            None => UnionRow { post: None, note: row },
        };
        union.encode_to_vec()
    }

    /// The record in a union message, if it is exactly that record's.
    pub(super) fn of_stored(id: i64, bytes: &[u8]) -> Option<Content> {
        let content = match UnionRow::decode(bytes).ok()? {
            UnionRow { post: Some(row), note: None } => Content::of_row(POST, row),
            UnionRow { post: None, note: Some(row) } => Content::of_row(NOTE, row),
            _ => return None,
        };
        (content.stored(id) == bytes).then_some(content)
    }
}

/// A feed: records in the order of their last updates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Feed {
    /// The store.
    pub store: usize,
    /// The topic of the posts, if only posts of one topic, or only those without one, are in the feed.
    #[serde(with = "listed")]
    pub topic: Option<Option<String>>,
}

/// An optional topic as data: a list of one, because the topic may be missing itself, and `null` says that
/// once only.
mod listed {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    type Topic = Option<String>;

    pub(super) fn serialize<S: Serializer>(topic: &Option<Topic>, to: S) -> Result<S::Ok, S::Error> {
        topic.as_ref().map(|topic| [topic]).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Topic>, D::Error> {
        Ok(Option::<[Topic; 1]>::deserialize(from)?.map(|[topic]| topic))
    }
}

impl Feed {
    /// Whether a record is in the feed.
    pub(super) fn has(&self, content: &Content) -> bool {
        self.topic.is_none() || self.topic == content.topic
    }
}

/// The meta-data.
pub(super) fn meta_data() -> Arc<RecordMetaData> {
    static BUILT: LazyLock<Arc<RecordMetaData>> = LazyLock::new(|| meta_data::stored(&build()));
    BUILT.clone()
}

fn build() -> RecordMetaData {
    let mut builder = meta_data::builder(&meta_data::file(RECORDS));
    builder.set_split_long_records(false).expect("a version");
    builder.set_store_record_versions(true).expect("a version");
    meta_data::set_primary_key(&mut builder, &[POST, NOTE], field("id"));
    let all = Index::new(ALL, KeyExpression::Version).kind(index_types::VERSION);
    builder.add_index(None, all).expect("the index is valid");
    let by_topic = concat([KeyExpression::from(field("topic")), KeyExpression::Version]);
    let by_topic = Index::new(BY_TOPIC, by_topic).kind(index_types::VERSION);
    builder.add_index(Some(POST), by_topic).expect("the index is valid");
    builder.build().expect("the meta-data is valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_stored() {
        for topic in [None, Some(None), Some(Some("a".to_owned()))] {
            let content = Content { topic, value: 3 };
            assert_eq!(Content::of_stored(7, &content.stored(7)), Some(content.clone()));
            assert_eq!(Content::of_stored(8, &content.stored(7)), None);
        }
        assert_eq!(META_DATA_VERSION, meta_data().version());
    }
}
