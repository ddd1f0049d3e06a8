//! The encodings, and the key schema.
//!
//! ```text
//! (map) part part ..  =  value            the concatenated parts, each in its column's encoding
//!
//! unsigned   big-endian, as many bytes as the column has
//! signed     as unsigned, in two's complement, with the sign bit inverted
//! text       as in a tuple, UTF-8, which sorts by code point, then a zero byte
//! collated   as in a tuple, the collation key as bytes and the text, then a zero byte
//! float      as in a tuple: IEEE big-endian, the sign bit inverted, all bits of a negative number
//! ```
//!
//! The encoding of a part is never a prefix of another encoding in the same column, so that parts need no
//! separators, and keys sort as their parts do, from the left. A collation key contains less information than
//! the text (two texts may have the same one), which is why it is followed by the text: the text orders equal
//! collation keys, and is returned by reads.
//!
//! In a tuple, a text ends with a zero byte, unless 0xff follows, which means a zero byte inside the text. No
//! element of a tuple begins with 0xff. Here an integer may, hence the second zero byte.

#[cfg(feature = "collation")]
use super::Collation;
use super::Error;
use foundationdb_tuple::{PackResult, Subspace, TupleDepth, TupleUnpack, pack, unpack};

/// Written after a text, so that the following part is not taken for a part of it.
const END: u8 = 0;

/// One part of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A text, in a column ordered by code point or by a collation.
    Text(String),
    /// A float of 32 bits.
    Single(f32),
    /// A float of 64 bits.
    Double(f64),
}

impl From<&str> for Part {
    fn from(text: &str) -> Part {
        Part::Text(text.to_owned())
    }
}

/// The encoding of the parts at one position of a key. Columns are part of the data format: all clients must
/// always use the same.
#[derive(Clone, Debug)]
pub enum Column {
    /// Unsigned integers of this many bytes.
    Unsigned(u8),
    /// Signed integers of this many bytes.
    Signed(u8),
    /// Text in code point order.
    Text,
    /// Text in the order of a language.
    #[cfg(feature = "collation")]
    Collated(Collation),
    /// Floats of 32 bits: first NaN with the sign bit set, then the numbers, with -0.0 before 0.0, then NaN
    /// without it.
    Single,
    /// Floats of 64 bits, in the same order.
    Double,
}

impl Column {
    /// Refuses integer widths that no column can have.
    pub(super) fn check(&self) -> Result<(), Error> {
        match self {
            Column::Unsigned(bytes) | Column::Signed(bytes) if !(1..=8).contains(bytes) => {
                Err(Error::Width(*bytes))
            }
            _ => Ok(()),
        }
    }

    /// Appends the encoding of a part; appends nothing if the part is refused.
    pub fn encode(&self, part: &Part, out: &mut Vec<u8>) -> Result<(), Error> {
        self.check()?;
        let narrow = |word: u64, bytes: &u8| word.to_be_bytes()[8 - usize::from(*bytes)..].to_vec();
        let out_of_range = |bytes: &u8| Error::OutOfRange { part: shown(part), bytes: *bytes };
        out.extend(match (self, part) {
            (Column::Unsigned(bytes), Part::Unsigned(n)) => {
                let fits = *n <= u64::MAX >> (64 - 8 * u32::from(*bytes));
                narrow(fits.then_some(*n).ok_or_else(|| out_of_range(bytes))?, bytes)
            }
            (Column::Signed(bytes), Part::Signed(n)) => {
                let unused = 64 - 8 * u32::from(*bytes);
                let fits = (n << unused) >> unused == *n;
                let mut word = narrow(fits.then_some(*n as u64).ok_or_else(|| out_of_range(bytes))?, bytes);
                word[0] ^= 0x80;
                word
            }
            (Column::Text, Part::Text(text)) => [pack(text), vec![END]].concat(),
            #[cfg(feature = "collation")]
            (Column::Collated(collation), Part::Text(text)) => {
                [pack(&(foundationdb_tuple::Bytes::from(collation.key(text)), text)), vec![END]].concat()
            }
            (Column::Single, Part::Single(x)) => pack(x),
            (Column::Double, Part::Double(x)) => pack(x),
            _ => return Err(Error::WrongType { part: shown(part), column: format!("{self:?}") }),
        });
        Ok(())
    }

    /// Decodes the part at the beginning of `input`; returns it and the rest.
    fn decode<'a>(&self, input: &'a [u8]) -> Option<(Part, &'a [u8])> {
        fn one<'a, T: TupleUnpack<'a>>(input: &'a [u8]) -> Option<(T, &'a [u8])> {
            unpack::<(T, Rest<'a>)>(input).ok().map(|(value, Rest(rest))| (value, rest))
        }
        let word = |bytes: &u8| -> Option<([u8; 8], &'a [u8])> {
            let (own, rest) = input.split_at_checked(usize::from(*bytes))?;
            let mut word = [0; 8];
            word[8 - own.len()..].copy_from_slice(own);
            Some((word, rest))
        };
        match self {
            Column::Unsigned(bytes) => {
                let (word, rest) = word(bytes)?;
                Some((Part::Unsigned(u64::from_be_bytes(word)), rest))
            }
            Column::Signed(bytes) => {
                let (word, rest) = word(bytes)?;
                let unused = 64 - 8 * u32::from(*bytes);
                // The sign bit, which is inverted back, is the first bit of the stored bytes.
                let flipped = (u64::from_be_bytes(word) << unused) ^ (1 << 63);
                Some((Part::Signed((flipped as i64) >> unused), rest))
            }
            Column::Text => {
                let (text, rest) = one(input)?;
                Some((Part::Text(text), rest.strip_prefix(&[END])?))
            }
            #[cfg(feature = "collation")]
            Column::Collated(collation) => {
                let (key, rest) = one::<Vec<u8>>(input)?;
                let (text, rest) = one::<String>(rest)?;
                let rest = rest.strip_prefix(&[END])?;
                (key == collation.key(&text)).then_some((Part::Text(text), rest))
            }
            Column::Single => one(input).map(|(x, rest)| (Part::Single(x), rest)),
            Column::Double => one(input).map(|(x, rest)| (Part::Double(x), rest)),
        }
    }
}

/// The part of an input that the tuple layer has not decoded.
struct Rest<'a>(&'a [u8]);

impl<'de> TupleUnpack<'de> for Rest<'de> {
    fn unpack(input: &'de [u8], _: TupleDepth) -> PackResult<(&'de [u8], Rest<'de>)> {
        Ok((&[], Rest(input)))
    }
}

/// A part as displayed in an error.
fn shown(part: &Part) -> String {
    let mut text = format!("{part:?}");
    if let Some((at, _)) = text.char_indices().nth(48) {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// The prefix of a key.
pub(super) fn prefix(map: &Subspace, columns: &[Column], parts: &[Part]) -> Result<Vec<u8>, Error> {
    if parts.len() > columns.len() {
        return Err(Error::WrongParts { given: parts.len(), columns: columns.len() });
    }
    let mut key = map.bytes().to_vec();
    for (column, part) in columns.iter().zip(parts) {
        column.encode(part, &mut key)?;
    }
    Ok(key)
}

/// A complete key.
pub(super) fn key(map: &Subspace, columns: &[Column], parts: &[Part]) -> Result<Vec<u8>, Error> {
    match parts.len() == columns.len() {
        true => prefix(map, columns, parts),
        false => Err(Error::WrongParts { given: parts.len(), columns: columns.len() }),
    }
}

/// The parts of a key.
pub(super) fn parts(map: &Subspace, columns: &[Column], key: &[u8]) -> Result<Vec<Part>, Error> {
    let mut parts = Vec::with_capacity(columns.len());
    let mut rest = key.strip_prefix(map.bytes()).ok_or_else(|| Error::foreign(key))?;
    for column in columns {
        let (part, after) = column.decode(rest).ok_or_else(|| Error::foreign(key))?;
        parts.push(part);
        rest = after;
    }
    if rest.is_empty() { Ok(parts) } else { Err(Error::foreign(key)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;

    /// Checks that the encodings are in ascending order and decode to the parts.
    fn ascend(column: &Column, ascending: &[Part]) {
        let map = Subspace::from("m");
        let columns = [column.clone(), Column::Text];
        let keys: Vec<_> =
            ascending.iter().map(|part| key(&map, &columns, &[part.clone(), "x".into()]).unwrap()).collect();
        for (key, part) in keys.iter().zip(ascending) {
            let found = parts(&map, &columns, key).unwrap();
            assert_eq!(format!("{found:?}"), format!("{:?}", [part.clone(), "x".into()]));
        }
        for (keys, parts) in keys.windows(2).zip(ascending.windows(2)) {
            assert!(keys[0] < keys[1], "{column:?}: {:?} {:?}", parts[0], parts[1]);
            assert!(!keys[1].starts_with(&keys[0]));
        }
    }

    fn texts(texts: &[&str]) -> Vec<Part> {
        texts.iter().map(|text| (*text).into()).collect()
    }

    #[test]
    fn integers_ascend_in_every_width() {
        for bytes in 1..=8u8 {
            let bits = 8 * u32::from(bytes);
            let most = u64::MAX >> (64 - bits);
            ascend(&Column::Unsigned(bytes), &[0, 1, 127, 128, most].map(Part::Unsigned));
            let most = i64::MAX >> (64 - bits);
            ascend(&Column::Signed(bytes), &[-most - 1, -most, -2, -1, 0, 1, most].map(Part::Signed));
        }
        let mut out = Vec::new();
        Column::Signed(2).encode(&Part::Signed(-2), &mut out).unwrap();
        Column::Unsigned(3).encode(&Part::Unsigned(258), &mut out).unwrap();
        assert_eq!(out, [0x7f, 0xfe, 0, 1, 2]);
    }

    #[test]
    fn integers_that_do_not_fit_are_refused() {
        for (column, part) in [
            (Column::Unsigned(1), Part::Unsigned(256)),
            (Column::Signed(1), Part::Signed(128)),
            (Column::Signed(1), Part::Signed(-129)),
            (Column::Signed(7), Part::Signed(i64::MIN)),
        ] {
            let bytes = if let Column::Signed(7) = column { 7 } else { 1 };
            let refused = column.encode(&part, &mut Vec::new());
            assert_eq!(refused, Err(Error::OutOfRange { part: format!("{part:?}"), bytes }));
        }
    }

    #[test]
    fn widths_that_no_integer_has_are_refused() {
        for bytes in [0, 9, 255] {
            for (column, part) in [
                (Column::Unsigned(bytes), Part::Unsigned(0)),
                (Column::Signed(bytes), Part::Signed(-1)),
                (Column::Signed(bytes), "a part of another type".into()),
            ] {
                let mut out = vec![7];
                assert_eq!(column.encode(&part, &mut out), Err(Error::Width(bytes)));
                assert_eq!(out, [7]);
            }
        }
    }

    #[test]
    fn floats_ascend_as_their_total_order_says() {
        let doubles = [
            -f64::NAN,
            f64::NEG_INFINITY,
            -2.0,
            -1.0,
            -0.0,
            0.0,
            f64::MIN_POSITIVE,
            1.0,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(doubles.is_sorted_by(|a, b| a.total_cmp(b) == Ordering::Less));
        ascend(&Column::Double, &doubles.map(Part::Double));
        ascend(&Column::Single, &doubles[..6].iter().map(|x| Part::Single(*x as f32)).collect::<Vec<_>>());
    }

    #[test]
    fn text_ascends_by_code_point() {
        let ascending = ["", "\0", "\0\u{1}", "A", "Z", "a", "a\0", "a\0b", "ab", "\u{e000}", "\u{10000}"];
        assert!(ascending.is_sorted());
        ascend(&Column::Text, &texts(&ascending));
    }

    #[cfg(feature = "collation")]
    #[test]
    fn text_ascends_in_the_order_of_a_language() {
        use crate::encoding::Distinguishes;
        let collated =
            |locale, distinguishes| Column::Collated(Collation::new(locale, distinguishes).unwrap());
        ascend(&collated("en", Distinguishes::Case), &texts(&["", "a", "A", "å", "ab", "ö", "z", "Z"]));
        ascend(&collated("sv", Distinguishes::Case), &texts(&["a", "z", "Z", "å", "ä", "ö"]));
        // Texts that the collation does not distinguish are adjacent, in code point order.
        ascend(&collated("en", Distinguishes::Letters), &texts(&["A", "a", "Á", "á", "AB", "ab", "b"]));
        ascend(&collated("en", Distinguishes::Accents), &texts(&["A", "a", "Á", "á", "ab"]));
        assert!(Collation::new("no locale", Distinguishes::Case).is_err());
    }

    #[test]
    fn text_ends_before_an_integer_that_begins_with_all_bits_set() {
        let map = Subspace::from("m");
        let columns = [Column::Text, Column::Unsigned(1)];
        let whole = |text: &str, n| key(&map, &columns, &[text.into(), Part::Unsigned(n)]).unwrap();
        let keys = [whole("a", 0), whole("a", 255), whole("a\0", 0), whole("a\0b", 255), whole("ab", 0)];
        assert!(keys.is_sorted());
        for (key, (text, n)) in keys.iter().zip([("a", 0), ("a", 255), ("a\0", 0), ("a\0b", 255), ("ab", 0)])
        {
            assert_eq!(parts(&map, &columns, key), Ok(vec![text.into(), Part::Unsigned(n)]));
        }
    }

    #[test]
    fn parts_that_do_not_match_the_columns_are_refused_by_name() {
        let refused = Column::Text.encode(&Part::Signed(1), &mut Vec::new()).unwrap_err();
        assert_eq!(refused.to_string(), "Signed(1) does not match a column of Text");
        let columns = [Column::Text];
        let map = Subspace::from("m");
        let given = |parts: &[Part]| key(&map, &columns, parts).unwrap_err();
        assert_eq!(given(&[]), Error::WrongParts { given: 0, columns: 1 });
        assert_eq!(given(&texts(&["a", "b"])), Error::WrongParts { given: 2, columns: 1 });
    }

    #[test]
    fn a_long_part_is_shown_by_its_beginning() {
        let text = |letters: usize| Part::from(&*"ä".repeat(letters));
        assert_eq!(shown(&text(40)), format!("Text(\"{}\")", "ä".repeat(40)));
        assert_eq!(shown(&text(41)), format!("Text(\"{}\"…", "ä".repeat(41)));
    }

    #[test]
    fn what_the_columns_do_not_write_is_foreign() {
        let map = Subspace::from("m");
        let columns = [Column::Unsigned(2), Column::Text];
        let whole = key(&map, &columns, &[Part::Unsigned(7), "x".into()]).unwrap();
        let longer = [&whole[..], b"\0"].concat();
        for key in [&whole[..whole.len() - 1], &whole[..5], &longer, b"else"] {
            assert_eq!(parts(&map, &columns, key), Err(Error::foreign(key)));
        }
    }
}
