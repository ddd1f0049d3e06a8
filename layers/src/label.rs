//! Labels: typed names of rows, columns, indexes or values within a key.

use crate::nesting;
use foundationdb_tuple::{
    Bytes as TupleBytes, Element, PackResult, TupleDepth, TuplePack, TupleUnpack, VersionstampOffset,
};
use std::{fmt, io};

/// One element of the tuple layer, encoded as in a key.
///
/// Labels of different types are different labels: the text `"1"`, the integer 1, the float 1.0 and `true`
/// identify four rows. Labels compare equal, and sort, as their keys do: null first, then byte strings, text,
/// tuples, integers, floats of 32 and of 64 bits, booleans. -0.0 and 0.0 are different labels, and NaN is
/// equal to itself. A label that is nested deeper than [`MAX_DEPTH`](nesting::MAX_DEPTH) occurs in no key:
/// layers refuse to write it and to read it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(Vec<u8>);

impl Label {
    /// The null label, which sorts before all others.
    pub fn nil() -> Label {
        Label::of(None::<()>)
    }

    /// Combines several labels into one.
    pub fn tuple(labels: &[Label]) -> Label {
        Label::of(labels)
    }

    /// The label as encoded in a key.
    pub fn packed(&self) -> &[u8] {
        &self.0
    }

    /// The label as a value of this type, such as `i64`, `String` or `f64`. `None` if it has another type or
    /// is nested deeper than [`MAX_DEPTH`](nesting::MAX_DEPTH).
    pub fn to<'a, T: TupleUnpack<'a>>(&'a self) -> Option<T> {
        nesting::unpack::<(T,)>(&self.0).ok().map(|(value,)| value)
    }

    // Private: none of the types that a label can be made of can be an incomplete versionstamp.
    fn of(element: impl TuplePack) -> Label {
        Label((element,).pack_to_vec())
    }
}

macro_rules! labels {
    ($($type:ty),*) => {$(
        impl From<$type> for Label {
            fn from(value: $type) -> Label {
                Label::of(value)
            }
        }
    )*};
}
labels!(&str, String, i32, u32, i64, f32, f64, bool);

impl From<&[u8]> for Label {
    fn from(bytes: &[u8]) -> Label {
        Label::of(TupleBytes::from(bytes))
    }
}

impl TuplePack for Label {
    fn pack<W: io::Write>(&self, w: &mut W, depth: TupleDepth) -> io::Result<VersionstampOffset> {
        // Null is the only element that is encoded differently inside a tuple.
        if depth.depth() > 1 && *self == Label::nil() {
            return None::<()>.pack(w, depth);
        }
        w.write_all(&self.0)?;
        Ok(VersionstampOffset::None { size: self.0.len() as u32 })
    }
}

impl<'de> TupleUnpack<'de> for Label {
    fn unpack(input: &'de [u8], depth: TupleDepth) -> PackResult<(&'de [u8], Label)> {
        nesting::check_depth_of_first(input)?;
        let (rest, element) = Element::unpack(input, depth)?;
        // A key's own bytes are kept; an element inside a tuple is encoded again, in its top-level form.
        Ok(match depth.depth() {
            0 | 1 => (rest, Label(input[..input.len() - rest.len()].to_vec())),
            _ => (rest, Label::of(element)),
        })
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to::<Element<'_>>() {
            Some(Element::Nil) => f.write_str("nil"),
            Some(Element::String(text)) => write!(f, "{text:?}"),
            Some(Element::Int(n)) => write!(f, "{n}"),
            Some(Element::Float(x)) => write!(f, "{x:?}f32"),
            Some(Element::Double(x)) => write!(f, "{x:?}"),
            Some(Element::Bool(b)) => write!(f, "{b}"),
            Some(Element::Bytes(bytes)) => write!(f, "b\"{}\"", bytes.escape_ascii()),
            _ => match self.to::<Vec<Label>>() {
                Some(labels) => f.debug_list().entries(labels).finish(),
                None => write!(f, "\"{}\"", self.0.escape_ascii()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundationdb_tuple::Subspace;

    fn some() -> Vec<Label> {
        vec![
            Label::nil(),
            (&b""[..]).into(),
            (&b"\0\xff"[..]).into(),
            "".into(),
            "1".into(),
            "a\0b".into(),
            "ab".into(),
            Label::tuple(&[]),
            Label::tuple(&[Label::nil(), "a".into()]),
            i64::MIN.into(),
            (-1).into(),
            0.into(),
            1.into(),
            256.into(),
            i64::MAX.into(),
            1.5f32.into(),
            (-f64::NAN).into(),
            f64::NEG_INFINITY.into(),
            (-0.0).into(),
            0.0.into(),
            1.0.into(),
            f64::NAN.into(),
            false.into(),
            true.into(),
        ]
    }

    #[test]
    fn labels_sort_as_keys_do_and_round_trip() {
        let labels = some();
        assert!(labels.is_sorted_by(|a, b| a < b));
        let space = Subspace::from("t");
        let keys: Vec<_> = labels.iter().map(|label| space.pack(&(label, "end"))).collect();
        assert!(keys.is_sorted());
        for (key, label) in keys.iter().zip(&labels) {
            let (found, end): (Label, String) = space.unpack(key).unwrap();
            assert_eq!((&found, &*end), (label, "end"));
            assert_eq!(space.unpack::<Vec<Label>>(key).unwrap().len(), 2);
        }
    }

    #[test]
    fn nil_is_packed_as_the_tuple_layer_packs_null() {
        use foundationdb_tuple::pack;
        assert_eq!(pack(&(Label::nil(), 1)), pack(&(None::<()>, 1)));
        assert_eq!(pack(&((Label::nil(), 1), 2)), pack(&((None::<()>, 1), 2)));
    }

    #[test]
    fn a_versionstamp_after_a_label_is_found() {
        use foundationdb_tuple::Versionstamp;
        for label in some() {
            let key = Subspace::from("t").pack_with_versionstamp(&(&label, Versionstamp::incomplete(7)));
            let (key, offset) = key.split_at(key.len() - 4);
            assert_eq!(offset, (key.len() as u32 - 12).to_le_bytes(), "{label:?}");
        }
    }

    #[test]
    fn labels_are_shown_as_what_they_hold() {
        let shown: Vec<String> = some().iter().map(|label| format!("{label:?}")).collect();
        let expected = [
            "nil",
            "b\"\"",
            "b\"\\x00\\xff\"",
            "\"\"",
            "\"1\"",
            "\"a\\0b\"",
            "\"ab\"",
            "[]",
            "[nil, \"a\"]",
            "-9223372036854775808",
            "-1",
            "0",
            "1",
            "256",
            "9223372036854775807",
            "1.5f32",
            "NaN",
            "-inf",
            "-0.0",
            "0.0",
            "1.0",
            "NaN",
            "false",
            "true",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn nested_labels_round_trip() {
        let labels = some();
        let tuple = Label::tuple(&labels);
        assert_eq!(tuple.to::<Vec<Label>>(), Some(labels));
        assert_eq!(tuple.packed(), foundationdb_tuple::pack(&(tuple.to::<Element<'_>>(),)));
    }

    #[test]
    fn a_label_that_is_nested_too_deep_is_neither_read_nor_shown_inside() {
        let nest = |depth| (0..depth).fold(Label::nil(), |inner, _| Label::tuple(&[inner]));
        let (deepest, deeper) = (nest(nesting::MAX_DEPTH), nest(nesting::MAX_DEPTH + 1));
        let read = |label: &Label| nesting::unpack::<(Label,)>(label.packed()).map(|(label,)| label);
        assert_eq!(read(&deepest).ok(), Some(deepest.clone()));
        assert!(deepest.to::<Element<'_>>().is_some());
        assert!(read(&deeper).is_err());
        assert!(foundationdb_tuple::unpack::<(Label,)>(deeper.packed()).is_err());
        assert_eq!(deeper.to::<Element<'_>>(), None);
        assert!(format!("{deepest:?} {deeper:?}").ends_with("\\x00\""));
        let bottomless = Label([0x05; 9_980].to_vec());
        assert_eq!((bottomless.to::<Vec<Label>>(), bottomless.to::<Element<'_>>()), (None, None));
        assert!(read(&bottomless).is_err());
    }

    #[test]
    fn labels_know_their_type() {
        assert_eq!(Label::from(1).to::<i64>(), Some(1));
        assert_eq!(Label::from("1").to::<i64>(), None);
        assert_eq!(Label::from("1").to::<String>().as_deref(), Some("1"));
        let shown = Label::tuple(&[1.into(), "1".into(), 1.0.into(), true.into(), Label::nil()]);
        assert_eq!(format!("{shown:?}"), r#"[1, "1", 1.0, true, nil]"#);
    }
}
