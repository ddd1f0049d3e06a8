//! `encoding`: county populations under keys of several encodings, read back by the state and by ranges.
//!
//! A run's keys have two or three columns, each of one encoding: integers of one to eight bytes, text by
//! code point, text as a language has it, floats. Parts are those that weaker encodings confuse or
//! displace: numbers on both sides of zero and of where a byte ends, all bits set, text with tabs and zero
//! bytes in it, code points behind the surrogates, names that differ in case or accents, zeros, NaN. Every
//! width has its own extremes, and what is one beyond. Now and then a number does not fit, a part is nothing for
//! its column, or a column has a width that no integer has; keys and values are too large.

mod planted;

use super::blob::fits;
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable::{
    specimen::{At, Content, Specimen, UNRECORDED},
    workload::Bug,
};
use shaketable_layers::{
    encoding::{Collation, Column, Error, Ordered, Part, Row, Tells},
    limits,
    tx::{
        self, Env,
        Isolation::{self, Serializable},
        Transaction, VALUE_SIZE_LIMIT,
    },
};
use shaketable_sim::seed::Stream;
use std::cmp::Ordering;

shaketable::planted_bugs! {
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
    Wraps = "wraps", "a number that does not fit loses its first bytes", "a cast that wraps around";
    LastAgain = "last-again", "a page begins with the last row of the one before", "a cursor that is the last key";
    PageAtSnapshot = "page-at-snapshot", "a page is read at snapshot, however it is asked for", "a dropped conflict range";
    Blunt = "blunt", "texts that the collation does not tell apart are compared as equal", "an order that is not total";
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

/// Texts; the last two fit into few keys, and into none.
const TEXTS: [&str; 26] = [
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
    "é",
    "e\u{301}",
    "co-op",
    "coop",
    "\0",
    "a\0",
    "a\0\u{10ffff}",
    "\u{10ffff}",
    LARGE,
    TOO_LARGE,
];

/// Texts that some collation does not tell apart.
const ALIKE: [(u8, u8); 8] = [(7, 8), (8, 10), (9, 10), (9, 7), (12, 13), (17, 16), (0, 20), (21, 1)];

const TOO_LARGE: &str = const {
    const BYTES: [u8; 10_000] = [b'x'; 10_000];
    match std::str::from_utf8(&BYTES) {
        Ok(text) => text,
        Err(_) => "",
    }
};

const LARGE: &str = TOO_LARGE.split_at(9_000).0;

const FLOATS: [f64; 14] = [
    -f64::NAN,
    f64::NEG_INFINITY,
    f64::MIN,
    -2.0,
    -1.0,
    -f64::MIN_POSITIVE / 4.0,
    -0.0,
    0.0,
    f64::MIN_POSITIVE,
    1.0,
    2.0,
    f64::MAX,
    f64::INFINITY,
    f64::NAN,
];

/// Numbers from 0 for a column of so many bytes: its largest, the one beyond, and where a byte ends.
fn unsigned(bytes: u8) -> [u64; 14] {
    let most = u64::MAX >> (64 - 8 * u32::from(bytes));
    let [half, beyond] = [most / 2, most.saturating_add(1)];
    [0, 1, 9, 10, 127, 128, 255, 256, 65_535, half, half + 1, most, beyond, u64::MAX]
}

/// Numbers for a column of so many bytes: its extremes, those beyond, and where a byte ends.
fn signed(bytes: u8) -> [i64; 16] {
    let most = i64::MAX >> (64 - 8 * u32::from(bytes));
    let (least, beyond, below) = (-most - 1, most.saturating_add(1), (-most - 1).saturating_sub(1));
    [0, 1, -1, -2, 10, 127, -128, 128, -129, -40_000, most, least, beyond, below, i64::MAX, i64::MIN]
}

/// How many parts a column's pool has, of which the last has another column's type.
const POOL: u8 = 27;

impl Kind {
    /// Draws one: integers of every width.
    fn draw(rng: &mut Stream) -> Kind {
        let (bytes, letters) = (rng.range(1..9) as u8, rng.chance(0.5));
        *rng.pick(&[
            Kind::Unsigned(bytes),
            Kind::Unsigned(bytes),
            Kind::Signed(bytes),
            Kind::Signed(bytes),
            Kind::Text,
            Kind::Text,
            Kind::English(false),
            Kind::English(true),
            Kind::Swedish(letters),
            Kind::Single,
            Kind::Double,
        ])
    }

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
            Kind::Unsigned(bytes) => Part::Unsigned(unsigned(bytes)[at % 14]),
            Kind::Signed(bytes) => Part::Signed(signed(bytes)[at % 16]),
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
    planted: Option<Planted>,
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
    /// Up to so many that begin with these parts, behind a key.
    Page(Vec<u8>, Option<Vec<u8>>, usize),
    /// Sets a value as large as can be, or by a byte larger.
    SetLarge(Vec<u8>, bool),
    /// Encodes the smallest number for a column of this width.
    Width(u8),
    /// How two texts stand to each other, of a language; only letters are told apart, or accents, or all.
    Compare(u8, u8, u8),
    /// Asks for the order of words of no language.
    NoLanguage,
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// The population.
    Population(Option<Content>),
    /// Keys and their populations.
    Populations(Vec<(Vec<Shown>, Content)>),
    /// So many bytes.
    Encoded(usize),
    /// The first text is before the other, equal, behind it; and whether they have one collation key.
    Compared(i8, bool),
}

/// A part as answers hold it, which a slot has to take: floats by their bits, texts in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shown {
    /// An integer, or a float's bits.
    Bits(u64),
    /// A text.
    Text(Content),
}

impl From<&Part> for Shown {
    fn from(part: &Part) -> Shown {
        match part {
            Part::Unsigned(n) => Shown::Bits(*n),
            Part::Signed(n) => Shown::Bits(*n as u64),
            Part::Single(x) => Shown::Bits(x.to_bits().into()),
            Part::Double(x) => Shown::Bits(x.to_bits()),
            Part::Text(text) => Shown::Text(Content::from(text)),
        }
    }
}

/// What should be there, in order.
#[derive(Clone, Debug, Default)]
pub struct Model {
    rows: Vec<(Vec<Part>, Content)>,
}

impl PartialEq for Model {
    fn eq(&self, other: &Model) -> bool {
        shown(&self.rows) == shown(&other.rows)
    }
}

fn shown(rows: &[(Vec<Part>, Content)]) -> Vec<(Vec<Shown>, Content)> {
    rows.iter().map(|(key, value)| (key.iter().map(Shown::from).collect(), value.clone())).collect()
}

pub(crate) fn answer(rows: &[Row]) -> Answer {
    Answer::Populations(shown(&populations(rows)))
}

fn populations(rows: &[Row]) -> Vec<(Vec<Part>, Content)> {
    rows.iter().map(|(key, value)| (key.clone(), Content::from(value))).collect()
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

/// The collation that a comparison is about.
pub(crate) fn collation(tells: u8) -> Result<Collation, Error> {
    Collation::new("en", [Tells::Letters, Tells::Accents, Tells::Case][usize::from(tells) % 3])
}

/// A text of the pool.
pub(crate) fn text(number: u8) -> &'static str {
    TEXTS[usize::from(number) % 24]
}

/// What a collation sees of a text of the pool: base letters, their accents, their case; and of a zero
/// byte nothing.
fn seen(text: &str, tells: u8) -> String {
    let apart =
        text.replace('\0', "").replace('ö', "o\u{308}").replace('Å', "A\u{30a}").replace('é', "e\u{301}");
    let is_accent = |c: char| ('\u{300}'..'\u{370}').contains(&c);
    match tells % 3 {
        0 => apart.to_lowercase().replace(is_accent, ""),
        1 => apart.to_lowercase(),
        _ => apart,
    }
}

/// The value of [`Op::SetLarge`].
fn large(beyond: bool) -> Vec<u8> {
    vec![b'9'; VALUE_SIZE_LIMIT + usize::from(beyond)]
}

/// A call that reads and writes nothing but what a bug with keys of its own can read.
fn plain(op: Op) -> Op {
    match op {
        Op::Page(prefix, ..) => Op::Under(prefix),
        Op::SetLarge(key, _) => Op::Set(key, 1),
        op => op,
    }
}

impl Encoding {
    /// Does a call, with looks at this isolation.
    pub(crate) async fn call<T: Transaction>(
        &self,
        tx: &T,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        let map = Ordered::new(space(), self.columns()?)?;
        Ok(match op {
            Op::Set(key, population) => {
                map.set(tx, &self.key(key), population.to_string().as_bytes()).await?;
                Answer::Written
            }
            Op::SetLarge(key, beyond) => {
                map.set(tx, &self.key(key), &large(*beyond)).await?;
                Answer::Written
            }
            Op::Get(key) => {
                let value = map.get(tx, &self.key(key), isolation).await?;
                Answer::Population(value.as_ref().map(Content::from))
            }
            Op::Delete(key) => {
                map.delete(tx, &self.key(key)).await?;
                Answer::Written
            }
            Op::Under(prefix) => answer(&map.under(tx, &self.key(prefix), isolation).await?),
            Op::Between(from, to) => {
                answer(&map.between(tx, &self.key(from), &self.key(to), isolation).await?)
            }
            Op::Page(prefix, after, most) => {
                let (prefix, after) = (self.key(prefix), after.as_ref().map(|after| self.key(after)));
                answer(&map.page(tx, &prefix, after.as_deref(), *most, isolation).await?)
            }
            Op::Width(bytes) => {
                // A look, for the answer to have its place among the others.
                tx.get(space().bytes(), Serializable).await?;
                let mut out = Vec::new();
                Column::Unsigned(*bytes).encode(&Part::Unsigned(0), &mut out)?;
                Column::Signed(*bytes).encode(&Part::Signed(0), &mut out)?;
                Answer::Encoded(out.len())
            }
            Op::Compare(a, b, tells) => {
                tx.get(space().bytes(), Serializable).await?;
                let (collation, a, b) = (collation(*tells)?, text(*a), text(*b));
                Answer::Compared(collation.compare(a, b) as i8, collation.key(a) == collation.key(b))
            }
            Op::NoLanguage => {
                tx.get(space().bytes(), Serializable).await?;
                Collation::new("no language", Tells::Case)?;
                Answer::Written
            }
        })
    }

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
        let planted = bug.and_then(Planted::named);
        let mut kinds: Vec<Kind> = (0..rng.range(2..4)).map(|_| Kind::draw(rng)).collect();
        if let Some(needed) = planted.map(Planted::kinds) {
            kinds[..needed.len()].copy_from_slice(needed);
        }
        // Keys that are too large are refused by the layer, which a bug with keys of its own goes past.
        let most = if planted.is_some_and(Planted::has_own_keys) { 24 } else { u64::from(POOL) - 1 };
        let mut pool = |_| (0..rng.range(2..9)).map(|_| rng.below(most) as u8).collect();
        Encoding { parts: (0..kinds.len()).map(&mut pool).collect(), kinds, planted }
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
        let page = || proptest::option::weighted(0.8, parts(columns));
        let own = self.planted.is_some_and(Planted::has_own_keys);
        let mut odd = parts(columns);
        odd[columns - 1] = Just(POOL - 1).boxed();
        prop_oneof![
            10 => (parts(columns), population()).prop_map(|(key, n)| Op::Set(key, n)),
            4 => parts(columns).prop_map(Op::Get),
            3 => parts(columns).prop_map(Op::Delete),
            7 => parts(1).prop_map(Op::Under),
            1 => parts(columns).prop_map(Op::Under),
            1 => Just(Op::Under(Vec::new())),
            6 => (parts(1), parts(1)).prop_map(|(from, to)| Op::Between(from, to)),
            3 => (parts(columns), parts(2)).prop_map(|(from, to)| Op::Between(from, to)),
            1 => (odd, population()).prop_map(|(key, n)| Op::Set(key, n)),
            1 => vec(0..4u8, columns + 1).prop_map(Op::Get),
            4 => (parts(1), page(), 0..4usize).prop_map(|(prefix, after, most)| Op::Page(prefix, after, most)),
            3 => (page(), 0..4usize).prop_map(|(after, most)| Op::Page(Vec::new(), after, most)),
            1 => (parts(1), parts(1)).prop_map(|(prefix, after)| Op::Page(prefix, Some(after), 2)),
            1 => (parts(columns), any::<bool>()).prop_map(|(key, beyond)| Op::SetLarge(key, beyond)),
            1 => (0..11u8).prop_map(Op::Width),
            1 => (0..24u8, 0..24u8, 0..3u8).prop_map(|(a, b, tells)| Op::Compare(a, b, tells)),
            2 => (proptest::sample::select(&ALIKE[..]), 0..3u8).prop_map(|((a, b), tells)| Op::Compare(a, b, tells)),
            1 => Just(Op::NoLanguage),
        ]
        .prop_map(move |op| if own { plain(op) } else { op })
        .boxed()
    }

    fn is_look(op: &Op) -> bool {
        !matches!(op, Op::Set(..) | Op::SetLarge(..) | Op::Delete(_))
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        matches!(op, Op::Set(..) | Op::SetLarge(..) | Op::Delete(_))
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        matches!(op, Op::Get(_) | Op::Under(_) | Op::Between(..) | Op::Page(..))
            && self.planted.is_none_or(|planted| planted == Planted::PageAtSnapshot)
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        _: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        let answer = match self.planted {
            Some(planted) => planted::perform(planted, self, tx, op, isolation).await?,
            None => self.call(tx, op, isolation).await?,
        };
        if !Self::is_look(op) {
            fits(tx, op).await?;
        }
        Ok(answer)
    }

    fn model(&self) -> Model {
        Model::default()
    }

    fn replay(&self, model: &mut Model, op: &Op, _: &At) -> Result<Answer, Error> {
        let columns = self.columns()?;
        let rows = &mut model.rows;
        let place = |rows: &[(Vec<Part>, Content)], key: &[Part]| {
            rows.binary_search_by(|(other, _)| compare(&columns, other, key))
        };
        Ok(match op {
            Op::Set(key, _) | Op::SetLarge(key, _) => {
                let key = self.key(key);
                self.accepts(&columns, &key, true)?;
                let value = match op {
                    Op::Set(_, population) => population.to_string().into_bytes(),
                    Op::SetLarge(_, beyond) => large(*beyond),
                    _ => Vec::new(),
                };
                let mut encoded = space().into_bytes();
                columns.iter().zip(&key).try_for_each(|(column, part)| column.encode(part, &mut encoded))?;
                limits::row(&encoded, &value)?;
                match place(rows, &key) {
                    Ok(at) => rows[at].1 = Content::from(&value),
                    Err(at) => rows.insert(at, (key, Content::from(&value))),
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
            Op::Page(prefix, after, most) => {
                let prefix = self.key(prefix);
                self.accepts(&columns, &prefix, false)?;
                let after = after.as_ref().map(|after| self.key(after));
                after.as_ref().map_or(Ok(()), |after| self.accepts(&columns, after, true))?;
                let is_behind =
                    |key: &[Part]| after.as_ref().is_none_or(|after| compare(&columns, key, after).is_gt());
                let under = rows.iter().filter(|(key, _)| compare(&columns, key, &prefix).is_eq());
                let page = under.filter(|(key, _)| is_behind(key)).take(*most);
                Answer::Populations(shown(&page.cloned().collect::<Vec<_>>()))
            }
            Op::Width(bytes) => match bytes {
                1..=8 => Answer::Encoded(2 * usize::from(*bytes)),
                _ => return Err(Error::Width(*bytes)),
            },
            Op::Compare(a, b, tells) => {
                let (collation, a, b) = (collation(*tells)?, text(*a), text(*b));
                let keys = collation.key(a).cmp(&collation.key(b));
                Answer::Compared(keys.then(a.cmp(b)) as i8, seen(a, *tells) == seen(b, *tells))
            }
            Op::NoLanguage => return Err(Error::UnknownLocale("no language".to_owned())),
        })
    }

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Model, String>> {
        if self.planted.is_some_and(Planted::has_own_keys) {
            return Ok(Ok(Model { rows: populations(&planted::stored(self, tx).await?) }));
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

impl Planted {
    /// The columns that the bug needs.
    fn kinds(self) -> &'static [Kind] {
        match self {
            Planted::TabJoined | Planted::Unterminated => &[Kind::Text, Kind::Text],
            Planted::FloatSignOnly => &[Kind::Double],
            Planted::SignBitKept => &[Kind::Signed(8)],
            Planted::LittleEndian => &[Kind::Unsigned(8)],
            Planted::Utf16 => &[Kind::Text],
            Planted::LowerCase => &[Kind::English(false)],
            Planted::CollationAlone => &[Kind::English(true)],
            Planted::RangeToFf | Planted::TextRunsOn => &[Kind::Text, Kind::Unsigned(1)],
            Planted::Wraps => &[Kind::Unsigned(2), Kind::Signed(1)],
            Planted::Unrecorded | Planted::LastAgain | Planted::PageAtSnapshot | Planted::Blunt => &[],
        }
    }

    /// Whether the layer cannot read the keys that the bug writes.
    pub(crate) fn has_own_keys(self) -> bool {
        !matches!(
            self,
            Planted::Unrecorded
                | Planted::RangeToFf
                | Planted::Wraps
                | Planted::LastAgain
                | Planted::PageAtSnapshot
                | Planted::Blunt
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_look_alike_as_a_collation_has_it() {
        for tells in 0..3 {
            let collation = collation(tells).unwrap();
            for (a, b) in (0..24).flat_map(|a| (0..24).map(move |b| (text(a), text(b)))) {
                let alike = seen(a, tells) == seen(b, tells);
                assert_eq!(collation.key(a) == collation.key(b), alike, "{a:?} {b:?} {tells}");
            }
        }
    }

    #[test]
    fn pools_name_parts_that_fit_and_parts_that_do_not() {
        let widths = (1..=8).flat_map(|bytes| [Kind::Unsigned(bytes), Kind::Signed(bytes)]);
        let others = [Kind::Text, Kind::English(false), Kind::Swedish(true), Kind::Single, Kind::Double];
        for kind in widths.chain(others) {
            let column = kind.column().unwrap();
            let encodes = |n| column.encode(&kind.part(n), &mut Vec::new());
            assert!((0..POOL - 1).any(|n| encodes(n).is_ok()), "{kind:?}");
            assert!(matches!(encodes(POOL - 1), Err(Error::WrongType { .. })), "{kind:?}");
        }
    }
}
