//! The values of scalar fields as elements of keys.

use crate::value::{IntoValue, Value};
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage, Value as ProtoValue,
};

/// The package of `tuple_fields.proto`.
const NULLABLE_PACKAGE: &str = "com.apple.foundationdb.record";

/// Whether this is one of the messages of `tuple_fields.proto` (`NullableInt32` and so on): its field `value`
/// is the value of a scalar that can be absent, also where the syntax does not record whether scalars are
/// present. `UUID` is one of them too: its two fields are the halves of the UUID.
pub fn is_nullable_wrapper(message: &MessageDescriptor) -> bool {
    const NAMES: [&str; 8] = [
        "UUID",
        "NullableDouble",
        "NullableFloat",
        "NullableInt32",
        "NullableInt64",
        "NullableBool",
        "NullableString",
        "NullableBytes",
    ];
    message.package_name() == NULLABLE_PACKAGE && NAMES.contains(&message.name())
}

/// Whether values of this field can be elements of a key.
pub(crate) fn is_scalar(field: &FieldDescriptor) -> bool {
    match field.kind() {
        Kind::Message(message) => is_nullable_wrapper(&message),
        Kind::Uint32 | Kind::Uint64 | Kind::Fixed32 | Kind::Fixed64 => false,
        _ => !field.is_map() && !field.is_group(),
    }
}

/// One value of a field as an element of a key; an enumeration's value is its number. `None` if the type
/// cannot be part of a key: a message, a map, an unsigned integer.
pub fn scalar(value: &ProtoValue) -> Option<Value> {
    Some(match value {
        ProtoValue::Bool(value) => (*value).into_value(),
        ProtoValue::I32(value) | ProtoValue::EnumNumber(value) => (*value).into_value(),
        ProtoValue::I64(value) => (*value).into_value(),
        ProtoValue::F32(value) => (*value).into_value(),
        ProtoValue::F64(value) => (*value).into_value(),
        ProtoValue::String(value) => value.as_str().into_value(),
        ProtoValue::Bytes(value) => value[..].into_value(),
        ProtoValue::Message(message) if is_nullable_wrapper(&message.descriptor()) => wrapped(message)?,
        ProtoValue::U32(_)
        | ProtoValue::U64(_)
        | ProtoValue::Message(_)
        | ProtoValue::List(_)
        | ProtoValue::Map(_) => return None,
    })
}

/// The value of a message of `tuple_fields.proto`.
fn wrapped(message: &DynamicMessage) -> Option<Value> {
    if message.descriptor().name() != "UUID" {
        return match &*message.get_field_by_name("value")? {
            ProtoValue::Message(_) => None,
            value => scalar(value),
        };
    }
    let half = |name| Some(message.get_field_by_name(name)?.as_i64()?.cast_unsigned());
    let (high, low) = (half("most_significant_bits")?, half("least_significant_bits")?);
    Some(uuid::Uuid::from_u64_pair(high, low).into_value())
}
