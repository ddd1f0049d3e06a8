//! The files of stored meta-data: the descriptors of the records and of what they import, as bytes and back.

use super::{
    MetaDataError,
    options::{PROTO_FILES, compile_files},
};
use prost::Message;
use prost_reflect::{DescriptorPool, FileDescriptor};
use std::{collections::BTreeMap, sync::OnceLock};

/// What names a `FileDescriptorProto` and its imports.
#[derive(Clone, PartialEq, prost::Message)]
struct FileRow {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, repeated, tag = "3")]
    imports: Vec<String>,
}

/// A `FileDescriptorSet`.
#[derive(Clone, PartialEq, prost::Message)]
struct FileSetRow {
    #[prost(bytes = "vec", repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

/// The files of this crate and what they import, as `FileDescriptorProto`s by name: every reader has them.
fn own() -> &'static BTreeMap<String, Vec<u8>> {
    static OWN: OnceLock<BTreeMap<String, Vec<u8>>> = OnceLock::new();
    OWN.get_or_init(|| {
        let compiled = PROTO_FILES.iter().filter_map(|(name, _)| compile_files(name, []).ok());
        let files = compiled.flat_map(|file| file.parent_pool().files().collect::<Vec<_>>());
        files.map(|file| (file.name().to_owned(), file.encode_to_vec())).collect()
    })
}

/// The files that a file imports, directly or not, in the order of their names, as `FileDescriptorProto`s with options;
/// without those of this crate.
pub(super) fn imported(file: &FileDescriptor) -> Vec<Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending: Vec<FileDescriptor> = file.dependencies().collect();
    while let Some(next) = pending.pop() {
        let bytes = next.encode_to_vec();
        if !found.contains_key(next.name()) && own().get(next.name()) != Some(&bytes) {
            pending.extend(next.dependencies());
            found.insert(next.name().to_owned(), bytes);
        }
    }
    found.into_values().collect()
}

/// The file with these bytes, which imports those of the others, in any order, and those of this crate.
pub(super) fn load(file: Vec<u8>, others: Vec<Vec<u8>>) -> Result<FileDescriptor, MetaDataError> {
    let torn = |reason: String| MetaDataError::Torn(format!("the records: {reason}"));
    let name = row(&file)?.name.unwrap_or_default();
    let mut files = BTreeMap::new();
    let mut pending = others;
    pending.push(file);
    while let Some(bytes) = pending.pop() {
        let row = row(&bytes)?;
        files.insert(row.name.unwrap_or_default(), bytes);
        let missing = row.imports.iter().filter(|import| !files.contains_key(*import));
        pending.extend(missing.filter_map(|import| own().get(import).cloned()));
    }
    let set = FileSetRow { files: files.into_values().collect() };
    let pool = DescriptorPool::decode(&set.encode_to_vec()[..]).map_err(|error| torn(error.to_string()))?;
    pool.get_file_by_name(&name).ok_or_else(|| torn(format!("there is no file {name}")))
}

fn row(bytes: &[u8]) -> Result<FileRow, MetaDataError> {
    FileRow::decode(bytes).map_err(|error| MetaDataError::Torn(format!("a file of records: {error}")))
}
