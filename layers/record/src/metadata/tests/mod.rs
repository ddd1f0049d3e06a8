//! Meta-data from `.proto` text.

mod building;
mod bytes;
mod evolution;
mod indexes;
mod refusals;

use super::{MetaDataError, RecordMetaData, RecordMetaDataBuilder, compile};

/// The file of the overview's first example, with its options spelled out.
const SIMPLE: &str = r#"
    syntax = "proto2";
    import "record_metadata_options.proto";
    message MySimpleRecord {
        required int64 rec_no = 1 [(com.apple.foundationdb.record.field).primary_key = true];
        optional string str_value_indexed = 2 [(com.apple.foundationdb.record.field).index = {}];
        optional int32 num_value_unique = 3 [(com.apple.foundationdb.record.field).index = { unique: true }];
        optional int32 num_value_2 = 4;
        optional int32 num_value_3_indexed = 5 [(com.apple.foundationdb.record.field).index = {}];
    }
    message UnionDescriptor {
        option (com.apple.foundationdb.record.record).usage = UNION;
        optional MySimpleRecord _MySimpleRecord = 1;
    }
"#;

/// A file with these messages, and with a union of `Order` unless they have one; `key` and `index` are the
/// options of a field, `usage` those of a message.
fn file_text(messages: &str) -> String {
    let record = "com.apple.foundationdb.record";
    let messages = messages
        .replace("[key]", &format!("[({record}.field).primary_key = true]"))
        .replace("[index", &format!("[({record}.field).index"))
        .replace("(usage)", &format!("({record}.record).usage"));
    let union = match messages.contains("UNION") || messages.contains("RecordTypeUnion") {
        true => "",
        false => "message RecordTypeUnion { optional Order _Order = 1; }",
    };
    format!(
        r#"syntax = "proto2"; import "record_metadata_options.proto"; import "tuple_fields.proto"; {messages} {union}"#
    )
}

/// A builder with the records of these messages.
fn builder(messages: &str) -> Result<RecordMetaDataBuilder, MetaDataError> {
    let mut builder = RecordMetaData::builder();
    builder.set_records(&compile(&file_text(messages))?)?;
    Ok(builder)
}

/// Orders with a key, to which indexes are added.
const ORDER: &str = r#"
    message Order {
        optional int64 id = 1 [key]; optional string flower = 2; optional int32 price = 3; repeated string tags = 4;
        optional Line line = 5; optional double weight = 6; repeated Line lines = 7;
    }
    message Line { optional int64 amount = 1; optional Line next = 2; }
"#;

fn orders() -> RecordMetaDataBuilder {
    builder(ORDER).expect("valid records")
}
