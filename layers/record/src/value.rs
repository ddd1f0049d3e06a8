//! Values of keys: the elements of the tuple layer, and tuples of them that compare as FoundationDB orders
//! them.

use crate::version::RecordVersion;
use foundationdb_tuple::{Element, TuplePack, Versionstamp, VersionstampOffset};
use shaketable_tx::nesting;
use std::{borrow::Cow, cmp::Ordering, fmt};

/// One element of a key.
pub type Value = Element<'static>;

/// What can be an element of a key.
pub trait IntoValue {
    /// The element.
    fn into_value(self) -> Value;
}

macro_rules! into_value {
    ($($type:ty: $value:ident => $element:expr;)*) => {$(
        impl IntoValue for $type {
            fn into_value(self) -> Value {
                let $value = self;
                $element
            }
        }
    )*};
}
into_value! {
    Value: value => value;
    i32: value => Element::Int(value.into());
    i64: value => Element::Int(value);
    f32: value => Element::Float(value);
    f64: value => Element::Double(value);
    bool: value => Element::Bool(value);
    &str: value => Element::String(Cow::Owned(value.into()));
    String: value => Element::String(Cow::Owned(value));
    &[u8]: value => Element::Bytes(value.to_vec().into());
    Vec<u8>: value => Element::Bytes(value.into());
    uuid::Uuid: value => Element::Uuid(value);
    Versionstamp: value => Element::Versionstamp(value);
    RecordVersion: value => Element::Versionstamp(value.stamp());
}

impl<V: IntoValue> IntoValue for Option<V> {
    fn into_value(self) -> Value {
        self.map_or(Element::Nil, V::into_value)
    }
}

/// A tuple of values: a primary key, the key of an index entry, a prefix. Two tuples are equal, and are
/// ordered, as their packed bytes are.
#[derive(Clone, Default)]
pub struct Tuple(Vec<Value>);

impl Tuple {
    /// The tuple without elements.
    pub fn empty() -> Tuple {
        Tuple::default()
    }

    /// Its elements.
    pub fn elements(&self) -> &[Value] {
        &self.0
    }

    /// The number of its elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The element at `position`.
    pub fn get(&self, position: usize) -> Option<&Value> {
        self.0.get(position)
    }

    /// Appends an element.
    pub fn push(&mut self, value: impl IntoValue) {
        self.0.push(value.into_value());
    }

    /// This tuple, followed by the elements of another.
    pub fn followed_by(&self, other: &Tuple) -> Tuple {
        Tuple([self.elements(), other.elements()].concat())
    }

    /// The first `length` elements, and the others.
    pub fn split_at(&self, length: usize) -> (Tuple, Tuple) {
        let (first, rest) = self.0.split_at(length.min(self.len()));
        (Tuple(first.to_vec()), Tuple(rest.to_vec()))
    }

    /// Whether the first elements are those of `prefix`.
    pub fn starts_with(&self, prefix: &Tuple) -> bool {
        self.len() >= prefix.len() && self.split_at(prefix.len()).0 == *prefix
    }

    /// The packed tuple, and the position of an incomplete versionstamp in it.
    pub fn pack_stamped(&self) -> (Vec<u8>, VersionstampOffset) {
        let mut packed = Vec::new();
        let offset = self.0.pack_into_vec(&mut packed);
        (packed, offset)
    }

    /// The packed tuple.
    pub fn pack(&self) -> Vec<u8> {
        self.pack_stamped().0
    }

    /// Unpacks a tuple; `None` if the bytes are not a packed tuple.
    pub fn unpack(packed: &[u8]) -> Option<Tuple> {
        let elements: Vec<Element<'_>> = nesting::unpack(packed).ok()?;
        Some(elements.into_iter().map(Element::into_owned).collect())
    }
}

impl FromIterator<Value> for Tuple {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Tuple {
        Tuple(values.into_iter().collect())
    }
}

impl IntoIterator for Tuple {
    type Item = Value;
    type IntoIter = std::vec::IntoIter<Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl PartialEq for Tuple {
    fn eq(&self, other: &Tuple) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Tuple {}

impl PartialOrd for Tuple {
    fn partial_cmp(&self, other: &Tuple) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By the packed bytes: [`Element`] alone takes a nested tuple of one element for that element.
impl Ord for Tuple {
    fn cmp(&self, other: &Tuple) -> Ordering {
        self.pack().cmp(&other.pack())
    }
}

/// As the elements are written in a list: `[1, "a", null]`.
impl fmt::Debug for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, value) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            fmt::Display::fmt(&Shown(value), f)?;
        }
        f.write_str("]")
    }
}

/// A value in readable form.
pub struct Shown<'a>(pub &'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Element::Nil => f.write_str("null"),
            Element::Bytes(bytes) => write!(f, "0x{}", Hex(bytes)),
            Element::String(text) => write!(f, "{text:?}"),
            Element::Tuple(values) => fmt::Display::fmt(&Tuple(values.clone()), f),
            Element::Int(number) => write!(f, "{number}"),
            Element::BigInt(number) => write!(f, "{number}"),
            Element::Float(number) => write!(f, "{number:?}"),
            Element::Double(number) => write!(f, "{number:?}"),
            Element::Bool(value) => write!(f, "{value}"),
            Element::Uuid(id) => write!(f, "{id}"),
            Element::Versionstamp(stamp) if stamp.is_complete() => write!(f, "@{}", Hex(stamp.as_bytes())),
            Element::Versionstamp(stamp) => write!(f, "@incomplete+{}", stamp.user_version()),
        }
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<V: IntoValue> From<V> for Tuple {
    fn from(value: V) -> Tuple {
        Tuple(vec![value.into_value()])
    }
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        impl<$($name: IntoValue),*> From<($($name,)*)> for Tuple {
            #[allow(non_snake_case, reason = "each value is named as its type")]
            fn from(($($name,)*): ($($name,)*)) -> Tuple {
                Tuple(vec![$($name.into_value()),*])
            }
        }
    )*};
}
tuples! { A; A B; A B C; A B C D; A B C D E; A B C D E F; }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_compare_as_they_are_stored() {
        let nested = Tuple::from_iter([Element::Tuple(vec![Element::Int(1)])]);
        assert_ne!(nested, Tuple::from(1));
        assert!(Tuple::from(None::<i64>) < Tuple::from(-1));
        assert!(Tuple::from(("a", 1)) < Tuple::from(("a", 2)));
        assert!(Tuple::from("a") < Tuple::from(("a", 1)));
        assert!(Tuple::from(("a", 1, true)).starts_with(&Tuple::from(("a", 1))));
        assert!(!Tuple::from("ab").starts_with(&Tuple::from("a")));
        assert!(!Tuple::from("a").starts_with(&Tuple::from(("a", 1))));
    }

    #[test]
    fn tuples_are_shown_as_lists() {
        let mut tuple = Tuple::from((1, "a\"b", None::<i64>, vec![1u8, 255], 1.5, true));
        tuple.push(Element::Tuple(vec![Element::Int(2), Element::Nil]));
        tuple.push(RecordVersion::incomplete(7));
        assert_eq!(tuple.to_string(), r#"[1, "a\"b", null, 0x01ff, 1.5, true, [2, null], @incomplete+7]"#);
        assert_eq!(Tuple::unpack(&tuple.split_at(7).0.pack()), Some(tuple.split_at(7).0));
        assert_eq!(Tuple::unpack(b"\x02x"), None);
    }
}
