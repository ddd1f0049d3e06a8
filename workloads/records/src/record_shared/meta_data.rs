//! The beginning of meta-data: the file of records, and the primary keys.

use shaketable_record::{
    expression::KeyExpression,
    metadata::{RecordMetaData, RecordMetaDataBuilder, compile},
    prost_reflect::FileDescriptor,
};
use std::sync::Arc;

/// The file of records with this text.
pub(crate) fn file(text: &str) -> FileDescriptor {
    compile(text).expect("the file of records is valid")
}

/// Meta-data of the records of a file.
pub(crate) fn builder(file: &FileDescriptor) -> RecordMetaDataBuilder {
    let mut builder = RecordMetaData::builder();
    builder.set_records(file).expect("the records are valid");
    builder
}

/// Gives the same primary key to these types.
pub(crate) fn set_primary_key(
    builder: &mut RecordMetaDataBuilder,
    types: &[&str],
    primary_key: impl Into<KeyExpression>,
) {
    let primary_key = primary_key.into();
    for name in types {
        builder.record_type(name).expect("a type").set_primary_key(primary_key.clone());
    }
}

/// The meta-data as it comes back from a store of meta-data.
pub(crate) fn stored(built: &RecordMetaData) -> Arc<RecordMetaData> {
    let bytes = built.to_bytes().expect("it can be stored");
    let read = RecordMetaData::from_bytes(&bytes, built.extensions()).expect("it can be read");
    assert_eq!(read.to_bytes().expect("it can be stored"), bytes, "what was read is what was stored");
    Arc::new(read)
}
