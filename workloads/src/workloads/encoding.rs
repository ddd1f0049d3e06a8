//! `encoding`: county populations under keys of several encodings, read back by the state and by ranges.
//!
//! A run's keys have two or three columns, each of one encoding: integers of one to eight bytes, text by
//! code point, text as a language has it, floats. Parts are those that weaker encodings confuse or
//! displace: numbers on both sides of zero and of where a byte ends, all bits set, text with tabs and zero
//! bytes in it, code points behind the surrogates, names that differ in case or accents, zeros, NaN. Now
//! and then a number does not fit, or a part is nothing for its column.

use crate::{
    sabotage::encoding as sabotage,
    specimen::{At, Specimen, UNRECORDED},
    workload::Bug,
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable_layers::{
    encoding::{Collation, Column, Error, Ordered, Part, Row, Tells},
    tx::{self, Env, Isolation::Serializable, Transaction},
};
use shaketable_sim::seed::Stream;
use std::cmp::Ordering;

flaws! {
    Unrecorded = UNRECORDED, "a population is set again after an unknown result without an operation record", "a blind write done twice";
    TabJoined = "tab-joined", "parts are written as text and joined with tabs", "the guide's tuple_to_key_with_tab";
    FloatSignOnly = "float-sign-only", "of a float only the most significant bit is inverted", "the older guide's note on floats";
    SignBitKept = "sign-bit-kept", "signed integers keep their sign bit", "two's complement as it is";
    LittleEndian = "little-endian", "integers are little-endian", "a machine's own order of bytes";
    Unterminated = "unterminated", "text stands in the key without an end", "parts put one behind the other";
    TextRunsOn = "text-runs-on", "text ends as in a tuple, and what follows may begin with 0xff", "raw bytes behind a tuple";
    Utf16 = "utf-16", "text is written as UTF-16", "a language's own strings";
    LowerCase = "lower-case", "collated text is text in lower case", "the naive collation";
    CollationAlone = "collation-alone", "of collated text only the collation key is written", "a key that says less than its text";
    RangeToFf = "range-to-ff", "what is under a prefix ends where its next byte is 0xff", "a subspace's range around raw bytes";
}

/// The encodings that are drawn for a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Unsigned, in so many bytes.
    Unsigned(u8),
    /// Signed, in so many bytes.
    Signed(u8),
    /// Text by code point.
    Text,
    /// Text as a language has it; only letters are told apart, or everything.
    English(bool),
    /// The same of another language.
    Swedish(bool),
    /// 32 bits.
    Single,
    /// 64 bits.
    Double,
}

const KINDS: [Kind; 13] = [
    Kind::Unsigned(1),
    Kind::Unsigned(2),
    Kind::Unsigned(8),
    Kind::Signed(1),
    Kind::Signed(3),
    Kind::Signed(8),
    Kind::Text,
    Kind::Text,
    Kind::English(false),
    Kind::English(true),
    Kind::Swedish(false),
    Kind::Single,
    Kind::Double,
];

const TEXTS: [&str; 16] = [
    "",
    "a",
    "a\tb",
    "b\tc",
    "c",
    "a\0b",
    "ab",
    "Kings",
    "kings",
    "Königs",
    "Konigs",
    "Åsa",
    "Zulu",
    "zulu",
    "\u{ffff}",
    "\u{10000}",
];

const UNSIGNED: [u64; 10] = [0, 1, 9, 10, 127, 128, 255, 256, 65_535, u64::MAX];

const SIGNED: [i64; 10] = [0, 1, -1, -2, 10, 127, -128, 128, -40_000, i64::MIN];

const FLOATS: [f64; 9] = [-f64::NAN, f64::NEG_INFINITY, -2.0, -1.0, -0.0, 0.0, 1.0, 2.0, f64::NAN];

/// How many parts a column's pool has, of which one has another column's type.
const POOL: u8 = 17;

impl Kind {
    pub(crate) fn column(self) -> Result<Column, Error> {
        let collated = |locale, letters| {
            let tells = if letters { Tells::Letters } else { Tells::Case };
            Collation::new(locale, tells).map(Column::Collated)
        };
        Ok(match self {
            Kind::Unsigned(bytes) => Column::Unsigned(bytes),
            Kind::Signed(bytes) => Column::Signed(bytes),
            Kind::Text => Column::Text,
            Kind::English(letters) => collated("en", letters)?,
            Kind::Swedish(letters) => collated("sv", letters)?,
            Kind::Single => Column::Single,
            Kind::Double => Column::Double,
        })
    }

    /// A part of the column's pool.
    pub(crate) fn part(self, number: u8) -> Part {
        let (at, is_other) = (usize::from(number), number == POOL - 1);
        match self {
            Kind::Text | Kind::English(_) | Kind::Swedish(_) if is_other => Part::Signed(1),
            _ if is_other => "text".into(),
            Kind::Unsigned(_) => Part::Unsigned(UNSIGNED[at % UNSIGNED.len()]),
            Kind::Signed(_) => Part::Signed(SIGNED[at % SIGNED.len()]),
            Kind::Text | Kind::English(_) | Kind::Swedish(_) => TEXTS[at % TEXTS.len()].into(),
            Kind::Single => Part::Single(FLOATS[at % FLOATS.len()] as f32),
            Kind::Double => Part::Double(FLOATS[at % FLOATS.len()]),
        }
    }
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Encoding {
    kinds: Vec<Kind>,
    /// Of each column's pool, the parts that are used.
    parts: Vec<Vec<u8>>,
    flaw: Option<Flaw>,
}

/// One call. Keys, and what they begin with, are numbers of the columns' pools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Sets a population.
    Set(Vec<u8>, u32),
    /// Reads one.
    Get(Vec<u8>),
    /// Removes one.
    Delete(Vec<u8>),
    /// All that begin with these parts: the counties of a state.
    Under(Vec<u8>),
    /// All from here to there.
    Between(Vec<u8>, Vec<u8>),
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// The population.
    Population(Option<String>),
    /// Keys and their populations.
    Populations(Vec<(Vec<Shown>, String)>),
}

/// A part as answers hold it: floats by their bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shown {
    /// An integer, or a float's bits.
    Bits(u64),
    /// A text.
    Text(String),
}

impl From<&Part> for Shown {
    fn from(part: &Part) -> Shown {
        match part {
            Part::Unsigned(n) => Shown::Bits(*n),
            Part::Signed(n) => Shown::Bits(*n as u64),
            Part::Single(x) => Shown::Bits(x.to_bits().into()),
            Part::Double(x) => Shown::Bits(x.to_bits()),
            Part::Text(text) => Shown::Text(text.clone()),
        }
    }
}

/// What should be there, in order.
#[derive(Clone, Debug, Default)]
pub struct Model {
    rows: Vec<(Vec<Part>, String)>,
}

impl PartialEq for Model {
    fn eq(&self, other: &Model) -> bool {
        shown(&self.rows) == shown(&other.rows)
    }
}

fn shown(rows: &[(Vec<Part>, String)]) -> Vec<(Vec<Shown>, String)> {
    rows.iter().map(|(key, value)| (key.iter().map(Shown::from).collect(), value.clone())).collect()
}

pub(crate) fn answer(rows: &[Row]) -> Answer {
    Answer::Populations(shown(&populations(rows)))
}

fn populations(rows: &[Row]) -> Vec<(Vec<Part>, String)> {
    rows.iter().map(|(key, value)| (key.clone(), String::from_utf8_lossy(value).into_owned())).collect()
}

pub(crate) fn space() -> Subspace {
    Subspace::from("population")
}

/// How two keys stand to each other by their values, as far as both go.
fn compare(columns: &[Column], a: &[Part], b: &[Part]) -> Ordering {
    let parts = columns.iter().zip(a.iter().zip(b));
    let part = |(column, parts): (&Column, (&Part, &Part))| match (column, parts) {
        (_, (Part::Unsigned(a), Part::Unsigned(b))) => a.cmp(b),
        (_, (Part::Signed(a), Part::Signed(b))) => a.cmp(b),
        (Column::Collated(collation), (Part::Text(a), Part::Text(b))) => collation.compare(a, b),
        (_, (Part::Text(a), Part::Text(b))) => a.cmp(b),
        (_, (Part::Single(a), Part::Single(b))) => a.total_cmp(b),
        (_, (Part::Double(a), Part::Double(b))) => a.total_cmp(b),
        _ => Ordering::Equal,
    };
    parts.map(part).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

impl Encoding {
    pub(crate) fn key(&self, numbers: &[u8]) -> Vec<Part> {
        // A key that is too long repeats its last column.
        let kind = |at: usize| self.kinds[at.min(self.kinds.len() - 1)];
        numbers.iter().enumerate().map(|(at, number)| kind(at).part(*number)).collect()
    }

    pub(crate) fn columns(&self) -> Result<Vec<Column>, Error> {
        self.kinds.iter().map(|kind| kind.column()).collect()
    }

    /// What the map says of parts before it looks.
    fn accepts(&self, columns: &[Column], parts: &[Part], whole: bool) -> Result<(), Error> {
        let (given, count) = (parts.len(), columns.len());
        if given > count || (whole && given < count) {
            return Err(Error::WrongParts { given, columns: count });
        }
        for ((kind, column), part) in self.kinds.iter().zip(columns).zip(parts) {
            match (kind, part) {
                (Kind::Unsigned(bytes), Part::Unsigned(n))
                    if n.checked_shr(8 * u32::from(*bytes)) > Some(0) =>
                {
                    return Err(Error::OutOfRange { part: format!("{part:?}"), bytes: *bytes });
                }
                (Kind::Signed(bytes), Part::Signed(n)) => {
                    let half = 1i128 << (8 * u32::from(*bytes) - 1);
                    if !(-half..half).contains(&i128::from(*n)) {
                        return Err(Error::OutOfRange { part: format!("{part:?}"), bytes: *bytes });
                    }
                }
                (Kind::Unsigned(_), Part::Unsigned(_))
                | (Kind::Text | Kind::English(_) | Kind::Swedish(_), Part::Text(_))
                | (Kind::Single, Part::Single(_))
                | (Kind::Double, Part::Double(_)) => {}
                _ => {
                    let (part, column) = (format!("{part:?}"), format!("{column:?}"));
                    return Err(Error::WrongType { part, column });
                }
            }
        }
        Ok(())
    }
}

impl Specimen for Encoding {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "encoding";
    const ABOUT: &'static str =
        "populations under keys whose order is that of integers, text, languages, floats";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Encoding {
        let flaw = bug.and_then(Flaw::named);
        let mut kinds: Vec<Kind> = (0..rng.range(2..4)).map(|_| *rng.pick(&KINDS)).collect();
        if let Some(needed) = flaw.map(Flaw::kinds) {
            kinds[..needed.len()].copy_from_slice(needed);
        }
        let mut pool = |_| (0..rng.range(2..7)).map(|_| rng.below(u64::from(POOL) - 1) as u8).collect();
        Encoding { parts: (0..kinds.len()).map(&mut pool).collect(), kinds, flaw }
    }

    fn keys(&self) -> Vec<Bytes> {
        let Ok(columns) = self.columns() else { return Vec::new() };
        let first = |number: &u8| {
            let mut key = space().into_bytes();
            columns[0].encode(&self.kinds[0].part(*number), &mut key).ok().map(|()| Bytes::from(key))
        };
        self.parts[0].iter().filter_map(first).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let parts = |columns: usize| {
            let part = |pool: &Vec<u8>| proptest::sample::select(pool.clone()).boxed();
            self.parts[..columns].iter().map(part).collect::<Vec<_>>()
        };
        let columns = self.kinds.len();
        let population = || 0..10_000_000u32;
        let mut odd = parts(columns);
        odd[columns - 1] = Just(POOL - 1).boxed();
        prop_oneof![
            10 => (parts(columns), population()).prop_map(|(key, n)| Op::Set(key, n)),
            3 => parts(columns).prop_map(Op::Get),
            3 => parts(columns).prop_map(Op::Delete),
            5 => parts(1).prop_map(Op::Under),
            1 => parts(columns).prop_map(Op::Under),
            1 => Just(Op::Under(Vec::new())),
            5 => (parts(1), parts(1)).prop_map(|(from, to)| Op::Between(from, to)),
            3 => (parts(columns), parts(2)).prop_map(|(from, to)| Op::Between(from, to)),
            1 => (odd, population()).prop_map(|(key, n)| Op::Set(key, n)),
            1 => vec(0..4u8, columns + 1).prop_map(Op::Get),
        ]
        .boxed()
    }

    fn is_look(op: &Op) -> bool {
        matches!(op, Op::Get(_) | Op::Under(_) | Op::Between(..))
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Set(..) | Op::Delete(_))
    }

    async fn perform<T: Transaction>(&self, tx: &T, _: &Env, op: &Op) -> Result<Answer, Error> {
        if let Some(flaw) = self.flaw {
            return sabotage::perform(flaw, self, tx, op).await;
        }
        let map = Ordered::new(space(), self.columns()?)?;
        Ok(match op {
            Op::Set(key, population) => {
                map.set(tx, &self.key(key), population.to_string().as_bytes()).await?;
                Answer::Written
            }
            Op::Get(key) => {
                let value = map.get(tx, &self.key(key), Serializable).await?;
                Answer::Population(value.map(|value| String::from_utf8_lossy(&value).into_owned()))
            }
            Op::Delete(key) => {
                map.delete(tx, &self.key(key)).await?;
                Answer::Written
            }
            Op::Under(prefix) => answer(&map.under(tx, &self.key(prefix), Serializable).await?),
            Op::Between(from, to) => {
                answer(&map.between(tx, &self.key(from), &self.key(to), Serializable).await?)
            }
        })
    }

    fn model(&self) -> Model {
        Model::default()
    }

    fn replay(&self, model: &mut Model, op: &Op, _: &At) -> Result<Answer, Error> {
        let columns = self.columns()?;
        let rows = &mut model.rows;
        let place = |rows: &[(Vec<Part>, String)], key: &[Part]| {
            rows.binary_search_by(|(other, _)| compare(&columns, other, key))
        };
        Ok(match op {
            Op::Set(key, population) => {
                let key = self.key(key);
                self.accepts(&columns, &key, true)?;
                match place(rows, &key) {
                    Ok(at) => rows[at].1 = population.to_string(),
                    Err(at) => rows.insert(at, (key, population.to_string())),
                }
                Answer::Written
            }
            Op::Get(key) => {
                let key = self.key(key);
                self.accepts(&columns, &key, true)?;
                Answer::Population(place(rows, &key).ok().map(|at| rows[at].1.clone()))
            }
            Op::Delete(key) => {
                let key = self.key(key);
                self.accepts(&columns, &key, true)?;
                if let Ok(at) = place(rows, &key) {
                    rows.remove(at);
                }
                Answer::Written
            }
            Op::Under(prefix) => {
                let prefix = self.key(prefix);
                self.accepts(&columns, &prefix, false)?;
                let under = rows.iter().filter(|(key, _)| compare(&columns, key, &prefix).is_eq());
                Answer::Populations(shown(&under.cloned().collect::<Vec<_>>()))
            }
            Op::Between(from, to) => {
                let (from, to) = (self.key(from), self.key(to));
                self.accepts(&columns, &from, false)?;
                self.accepts(&columns, &to, false)?;
                let is_between = |key: &[Part]| {
                    compare(&columns, key, &from).is_ge() && compare(&columns, key, &to).is_lt()
                };
                let between = rows.iter().filter(|(key, _)| is_between(key));
                Answer::Populations(shown(&between.cloned().collect::<Vec<_>>()))
            }
        })
    }

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Model, String>> {
        if self.flaw.is_some_and(Flaw::has_own_keys) {
            return Ok(Ok(Model { rows: populations(&sabotage::stored(self, tx).await?) }));
        }
        let rows = match self.columns().and_then(|columns| Ordered::new(space(), columns)) {
            Ok(map) => map.under(tx, &[], Serializable).await,
            Err(e) => Err(e),
        };
        match rows {
            Ok(rows) => Ok(Ok(Model { rows: populations(&rows) })),
            Err(Error::Fdb(e)) => Err(e),
            Err(e) => Ok(Err(e.to_string())),
        }
    }
}

impl Flaw {
    /// The columns that the bug needs.
    fn kinds(self) -> &'static [Kind] {
        match self {
            Flaw::TabJoined | Flaw::Unterminated => &[Kind::Text, Kind::Text],
            Flaw::FloatSignOnly => &[Kind::Double],
            Flaw::SignBitKept => &[Kind::Signed(8)],
            Flaw::LittleEndian => &[Kind::Unsigned(8)],
            Flaw::Utf16 => &[Kind::Text],
            Flaw::LowerCase => &[Kind::English(false)],
            Flaw::CollationAlone => &[Kind::English(true)],
            Flaw::RangeToFf | Flaw::TextRunsOn => &[Kind::Text, Kind::Unsigned(1)],
            Flaw::Unrecorded => &[],
        }
    }

    /// Whether the layer cannot read the keys that the bug writes.
    pub(crate) fn has_own_keys(self) -> bool {
        !matches!(self, Flaw::Unrecorded | Flaw::RangeToFf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_name_parts_that_fit_and_parts_that_do_not() {
        for kind in KINDS {
            let column = kind.column().unwrap();
            let encodes = |n| column.encode(&kind.part(n), &mut Vec::new());
            assert!((0..POOL - 1).any(|n| encodes(n).is_ok()), "{kind:?}");
            assert!(matches!(encodes(POOL - 1), Err(Error::WrongType { .. })), "{kind:?}");
        }
    }
}
