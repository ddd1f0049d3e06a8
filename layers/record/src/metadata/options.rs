//! `.proto` files: compiling them, and the options with which they say what is a record, a primary key or an
//! index.

use super::{MetaDataError, index_types};
use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, ExtensionDescriptor, FieldDescriptor, FileDescriptor, MessageDescriptor,
    Value as ProtoValue,
};
use protox::{
    Compiler,
    file::{ChainFileResolver, File, FileResolver, GoogleFileResolver},
};
use std::collections::BTreeMap;

/// The files that every `.proto` file can import, by the name with which it does.
pub const PROTO_FILES: [(&str, &str); 2] = [
    ("record_metadata_options.proto", include_str!("../../proto/record_metadata_options.proto")),
    ("tuple_fields.proto", include_str!("../../proto/tuple_fields.proto")),
];

/// Compiles the text of a `.proto` file. It can import [`PROTO_FILES`] and those of Google. Fails with
/// [`MetaDataError::Proto`] if it is not valid.
pub fn compile(text: &str) -> Result<FileDescriptor, MetaDataError> {
    const NAME: &str = "records.proto";
    compile_files(NAME, [(NAME, text)])
}

/// Compiles the file named `root` of these, which are pairs of a name and a text. It can import the others,
/// those of Google, and [`PROTO_FILES`] unless they are among the others. Fails with [`MetaDataError::Proto`]
/// if a file is not valid or is not there.
pub fn compile_files<'a>(
    root: &str,
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<FileDescriptor, MetaDataError> {
    let owned = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
    let texts = PROTO_FILES.into_iter().map(owned).chain(files.into_iter().map(owned)).collect();
    let mut resolver = ChainFileResolver::new();
    resolver.add(Texts(texts));
    resolver.add(GoogleFileResolver::new());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true);
    compiler.open_file(root).map_err(|error| MetaDataError::Proto(shown(&error)))?;
    let pool = DescriptorPool::decode(&compiler.encode_file_descriptor_set()[..])
        .map_err(|error| MetaDataError::Proto(error.to_string()))?;
    pool.get_file_by_name(root).ok_or_else(|| MetaDataError::Proto(format!("there is no file {root}")))
}

/// With the place in the file.
fn shown(error: &protox::Error) -> String {
    match error.file() {
        Some(file) => format!("{file}: {error}"),
        None => error.to_string(),
    }
}

/// Files by their names.
struct Texts(BTreeMap<String, String>);

impl FileResolver for Texts {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let text = self.0.get(name).ok_or_else(|| protox::Error::file_not_found(name))?;
        File::from_source(name, text)
    }
}

/// The options of a file.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SchemaOptions {
    #[prost(bool, optional, tag = "3")]
    pub split_long_records: Option<bool>,
    #[prost(bool, optional, tag = "4")]
    pub store_record_versions: Option<bool>,
}

/// The options of a message.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RecordTypeOptions {
    #[prost(enumeration = "Usage", optional, tag = "1")]
    pub usage: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub since_version: Option<i32>,
    #[prost(message, optional, tag = "3")]
    pub record_type_key: Option<crate::expression::proto::Literal>,
}

/// What a message is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
pub enum Usage {
    /// Told by where the message is used.
    Unset = 0,
    /// A type of records.
    Record = 1,
    /// The message with one field for each type of records.
    Union = 2,
    /// Part of other messages only.
    Nested = 3,
}

/// The options of a field.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FieldOptions {
    #[prost(enumeration = "IndexType", optional, tag = "1")]
    pub indexed: Option<i32>,
    #[prost(bool, optional, tag = "2")]
    pub primary_key: Option<bool>,
    #[prost(message, optional, tag = "3")]
    pub index: Option<IndexOption>,
}

/// The older form of [`IndexOption`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
enum IndexType {
    Index = 1,
    Unique = 2,
    Rank = 3,
    RankUnique = 4,
}

/// The options of an index of one field.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct IndexOption {
    #[prost(string, optional, tag = "1", default = "value")]
    pub kind: Option<String>,
    #[prost(bool, optional, tag = "2")]
    pub unique: Option<bool>,
    #[prost(message, repeated, tag = "3")]
    pub options: Vec<NamedValue>,
}

/// A setting of an index.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NamedValue {
    #[prost(string, required, tag = "1")]
    pub key: String,
    #[prost(string, required, tag = "2")]
    pub value: String,
}

/// The record options of a file.
pub(super) fn of_file(file: &FileDescriptor) -> Result<SchemaOptions, MetaDataError> {
    extension(file, &file.options(), "schema", file.name())
}

/// The record options of a message.
pub(super) fn of_message(message: &MessageDescriptor) -> Result<RecordTypeOptions, MetaDataError> {
    extension(&message.parent_file(), &message.options(), "record", message.full_name())
}

/// The record options of a field.
pub(super) fn of_field(field: &FieldDescriptor) -> Result<FieldOptions, MetaDataError> {
    extension(&field.parent_file(), &field.options(), "field", field.full_name())
}

impl FieldOptions {
    /// The index of the field, if it has one.
    pub fn any_index(self) -> Option<IndexOption> {
        let older = self.indexed.and_then(|kind| IndexType::try_from(kind).ok());
        self.index.or_else(|| {
            let (kind, unique) = match older? {
                IndexType::Index => (index_types::VALUE, false),
                IndexType::Unique => (index_types::VALUE, true),
                IndexType::Rank => (index_types::RANK, false),
                IndexType::RankUnique => (index_types::RANK, true),
            };
            Some(IndexOption { kind: Some(kind.into()), unique: Some(unique), options: Vec::new() })
        })
    }
}

impl RecordTypeOptions {
    /// What the message is used for; a usage that this version does not know counts as unset.
    pub fn used_as(&self) -> Usage {
        self.usage.and_then(|usage| Usage::try_from(usage).ok()).unwrap_or(Usage::Unset)
    }
}

/// The extension `name` of these options, all unset if they do not have it or the files do not define it.
fn extension<M: Message + Default>(
    file: &FileDescriptor,
    options: &DynamicMessage,
    name: &str,
    of: &str,
) -> Result<M, MetaDataError> {
    let known = |extension: &ExtensionDescriptor| {
        extension.number() == 1233
            && extension.containing_message() == prost_reflect::ReflectMessage::descriptor(options)
    };
    let found = file
        .parent_pool()
        .get_extension_by_name(&format!("com.apple.foundationdb.record.{name}"))
        .filter(|found| known(found) && options.has_extension(found));
    let Some(found) = found else { return Ok(M::default()) };
    match &*options.get_extension(&found) {
        ProtoValue::Message(message) => {
            M::decode(&message.encode_to_vec()[..]).map_err(|_| MetaDataError::Options { of: of.into() })
        }
        _ => Err(MetaDataError::Options { of: of.into() }),
    }
}
