//! The files of stored meta-data: the descriptors of the records and of what they import, as bytes and back.

use super::{
    MetaDataError,
    options::{PROTO_FILES, compile_files},
};
use prost::Message;
use prost_reflect::{DescriptorError, DescriptorPool, FileDescriptor};
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto};
use std::{
    collections::BTreeMap,
    sync::{Mutex, OnceLock, PoisonError},
};

/// A `FileDescriptorSet`.
#[derive(Clone, PartialEq, prost::Message)]
struct FileSetRow {
    #[prost(bytes = "vec", repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

/// A file that every reader has.
struct OwnFile {
    /// The `FileDescriptorProto`.
    bytes: Vec<u8>,
    imports: Vec<String>,
}

/// The files of this crate and what they import, by name.
fn own() -> &'static BTreeMap<String, OwnFile> {
    static OWN: OnceLock<BTreeMap<String, OwnFile>> = OnceLock::new();
    OWN.get_or_init(|| {
        let compiled = PROTO_FILES.iter().filter_map(|(name, _)| compile_files(name, []).ok());
        let files = compiled.flat_map(|file| file.parent_pool().files().collect::<Vec<_>>());
        let own = |file: FileDescriptor| {
            let imports = file.dependencies().map(|import| import.name().to_owned()).collect();
            (file.name().to_owned(), OwnFile { bytes: file.encode_to_vec(), imports })
        };
        files.map(own).collect()
    })
}

/// The files of this crate among these, and what they import.
fn own_among(mut names: Vec<String>) -> BTreeMap<&'static str, &'static OwnFile> {
    let mut found = BTreeMap::new();
    while let Some(name) = names.pop() {
        if let Some((name, file)) = own().get_key_value(&name)
            && found.insert(name.as_str(), file).is_none()
        {
            names.extend(file.imports.iter().cloned());
        }
    }
    found
}

/// A pool of some files of this crate, built once: they are far larger than most files that import them.
fn pool_of(files: &BTreeMap<&'static str, &'static OwnFile>) -> Result<DescriptorPool, DescriptorError> {
    static POOLS: Mutex<BTreeMap<Vec<&'static str>, DescriptorPool>> = Mutex::new(BTreeMap::new());
    let names: Vec<_> = files.keys().copied().collect();
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = pools.get(&names) {
        return Ok(pool.clone());
    }
    let pool = DescriptorPool::decode(&encoded(files.values().map(|file| file.bytes.clone()))[..])?;
    pools.insert(names, pool.clone());
    Ok(pool)
}

fn encoded(files: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    FileSetRow { files: files.into_iter().collect() }.encode_to_vec()
}

/// The files that a file imports, directly or not, in the order of their names, as `FileDescriptorProto`s
/// with options; without those of this crate.
pub(super) fn imported(file: &FileDescriptor) -> Vec<Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending: Vec<FileDescriptor> = file.dependencies().collect();
    while let Some(next) = pending.pop() {
        let bytes = next.encode_to_vec();
        if !found.contains_key(next.name()) && own().get(next.name()).is_none_or(|own| own.bytes != bytes) {
            pending.extend(next.dependencies());
            found.insert(next.name().to_owned(), bytes);
        }
    }
    found.into_values().collect()
}

/// The file with these bytes, which imports those of the others, in any order, and those of this crate.
pub(super) fn load(file: Vec<u8>, others: Vec<Vec<u8>>) -> Result<FileDescriptor, MetaDataError> {
    let torn = |reason: String| MetaDataError::Torn(format!("the records: {reason}"));
    let name = read(&file)?.name.unwrap_or_default();
    let (mut files, mut imports) = (BTreeMap::new(), Vec::new());
    for bytes in others.into_iter().chain([file]) {
        let file = read(&bytes)?;
        files.insert(file.name.unwrap_or_default(), bytes);
        imports.extend(file.dependency);
    }
    imports.retain(|import| !files.contains_key(import));
    let own = own_among(imports);
    // A file under the name of one of this crate takes its place, also for the others of this crate.
    let pool = match own.keys().any(|name| files.contains_key(*name)) {
        false => pool_of(&own),
        true => {
            for (name, file) in own {
                files.entry(name.to_owned()).or_insert_with(|| file.bytes.clone());
            }
            Ok(DescriptorPool::new())
        }
    };
    let added = pool.and_then(|mut pool| {
        pool.decode_file_descriptor_set(&encoded(files.into_values())[..]).map(|()| pool)
    });
    let pool = added.map_err(|error| torn(error.to_string()))?;
    pool.get_file_by_name(&name).ok_or_else(|| torn(format!("there is no file {name}")))
}

/// A file without its options. Its syntax and its names are checked: a [`DescriptorPool`] panics for a syntax
/// that it does not know, and does not find what it has under a name that is not an identifier.
fn read(bytes: &[u8]) -> Result<FileDescriptorProto, MetaDataError> {
    let torn = |reason: String| MetaDataError::Torn(format!("a file of records: {reason}"));
    let file = FileDescriptorProto::decode(bytes).map_err(|error| torn(error.to_string()))?;
    if !matches!(file.syntax.as_deref(), None | Some("proto2" | "proto3")) {
        return Err(torn(format!("its syntax is {:?}", file.syntax())));
    }
    let package = file.package.iter().filter(|package| !package.is_empty()).flat_map(|name| name.split('.'));
    let services = file.service.iter().flat_map(|service| {
        let methods = service.method.iter().map(|method| method.name());
        methods.chain([service.name()])
    });
    let extensions = file.extension.iter().map(|extension| extension.name());
    let mut names: Vec<&str> = package.chain(services).chain(extensions).collect();
    file.enum_type.iter().for_each(|it| enum_names(it, &mut names));
    file.message_type.iter().for_each(|it| message_names(it, &mut names));
    match names.iter().find(|name| !is_identifier(name)) {
        Some(name) => Err(torn(format!("{name:?} is not a name"))),
        None => Ok(file),
    }
}

fn message_names<'a>(message: &'a DescriptorProto, names: &mut Vec<&'a str>) {
    names.push(message.name());
    names.extend(message.field.iter().chain(&message.extension).map(|field| field.name()));
    names.extend(message.oneof_decl.iter().map(|oneof| oneof.name()));
    message.enum_type.iter().for_each(|it| enum_names(it, names));
    message.nested_type.iter().for_each(|it| message_names(it, names));
}

fn enum_names<'a>(of: &'a EnumDescriptorProto, names: &mut Vec<&'a str>) {
    names.push(of.name());
    names.extend(of.value.iter().map(|value| value.name()));
}

fn is_identifier(name: &str) -> bool {
    let is_start = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.as_bytes().first().is_some_and(is_start)
        && name.bytes().all(|byte| is_start(&byte) || byte.is_ascii_digit())
}
