//! `encoding`: county populations are stored under keys of several encodings, and read back by state and by
//! range.
//!
//! The keys of a run have two or three columns, each with one encoding: integers of one to eight bytes, text
//! by code point, text in the order of a language, or floats. Parts are those that weaker encodings confuse
//! or displace: numbers on both sides of zero and of where another byte is needed, numbers with all bits set,
//! text with tabs and zero bytes, code points after the surrogates, names that differ in case or accents,
//! zeros, and NaN. The extremes of every width are used, and the numbers one beyond. A few numbers do not
//! fit, a few parts have the wrong type for their column, a few columns have an impossible width, and a few
//! keys and values are too large.

#[cfg(test)]
mod bounds;
mod columns;
#[cfg(test)]
mod documents;
mod planted;

pub use columns::Kind;

use crate::shared::page_sizes;
use columns::{ALIKE, POOL, collation, seen, text};
use foundationdb_tuple::Subspace;
use proptest::option;
use shaketable::{prelude::*, specimen::Content};
use shaketable_layers::encoding::{Collation, Column, Distinguishes, Error, Ordered, Part, Row};
use shaketable_tx::{VALUE_SIZE_LIMIT, limits};
use std::cmp::Ordering;

/// The drawn configuration of a run. Keys and prefixes are numbers of parts in the columns' pools.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Encoding {
    kinds: Vec<Kind>,
    /// The parts of each column's pool that are used.
    parts: Vec<Vec<u8>>,
    /// Whether the layer cannot read the keys, because a planted bug encodes them.
    own_keys: bool,
}

/// Populations under keys whose order is that of integers, text, languages, floats.
#[shaketable::workload(name = "encoding", model = Model, planted, promises(turns, limits))]
impl Encoding {
    fn draw(rng: &mut Stream, bug: Option<&str>) -> Encoding {
        let mut kinds: Vec<Kind> = (0..rng.range(2..4)).map(|_| Kind::draw(rng)).collect();
        let (needed, own_keys) = planted::needs(bug);
        kinds[..needed.len()].copy_from_slice(needed);
        // The layer refuses keys that are too large; a bug with keys of its own does not use the layer.
        let most = if own_keys { 24 } else { u64::from(POOL) - 1 };
        let mut pool = |_| (0..rng.range(2..9)).map(|_| rng.below(most) as u8).collect();
        Encoding { parts: (0..kinds.len()).map(&mut pool).collect(), kinds, own_keys }
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let columns = self.columns();
        self.parts[0].iter().filter_map(|number| encode(&columns, &self.key(&[*number])).ok()).collect()
    }

    fn key(&self, numbers: &[u8]) -> Vec<Part> {
        // In a key with too many parts the last column is repeated.
        let kind = |at: usize| self.kinds[at.min(self.kinds.len() - 1)];
        numbers.iter().enumerate().map(|(at, number)| kind(at).part(*number)).collect()
    }

    fn columns(&self) -> Vec<Column> {
        self.kinds.iter().map(|kind| kind.column()).collect()
    }

    fn layer(&self) -> Result<Ordered, Error> {
        Ordered::new(space(), self.columns())
    }

    /// Parts of the first columns.
    fn first(&self, columns: usize) -> BoxedStrategy<Vec<u8>> {
        self.parts[..columns].iter().map(|pool| select(pool.clone())).collect::<Vec<_>>().boxed()
    }

    #[draws(key)]
    fn whole(&self) -> BoxedStrategy<Vec<u8>> {
        self.first(self.kinds.len())
    }

    /// A key whose last part has the wrong type for its column.
    fn odd(&self) -> impl Strategy<Value = Vec<u8>> + use<> {
        self.first(self.kinds.len() - 1).prop_map(|key| [&key[..], &[POOL - 1]].concat())
    }

    #[write(weight = 11, blind)]
    async fn set(
        &self,
        tx: &Tx,
        #[draw(prop_oneof![10 => self.whole(), 1 => self.odd()])] key: &[u8],
        #[draw(0..10_000_000u32)] population: u32,
    ) -> Result<(), Error> {
        self.layer()?.set(tx, &self.key(key), population.to_string().as_bytes()).await
    }

    /// Sets a value of the maximum size, or of one byte more.
    #[write(weight = u32::from(!self.own_keys), blind)]
    async fn set_large(&self, tx: &Tx, key: &[u8], #[draw(any::<bool>())] beyond: bool) -> Result<(), Error> {
        self.layer()?.set(tx, &self.key(key), &large(beyond)).await
    }

    #[write(weight = 3, blind)]
    async fn delete(&self, tx: &Tx, key: &[u8]) -> Result<(), Error> {
        self.layer()?.delete(tx, &self.key(key)).await
    }

    /// Reads a population; some keys have too many parts.
    #[read(weight = 5)]
    async fn get(
        &self,
        tx: &Tx,
        isolation: Isolation,
        #[draw(prop_oneof![4 => self.whole(), 1 => vec(0..4u8, self.kinds.len() + 1)])] key: &[u8],
    ) -> Result<Option<Content>, Error> {
        Ok(self.layer()?.get(tx, &self.key(key), isolation).await?.as_ref().map(Content::from))
    }

    /// Reads all populations under a prefix, such as those of a state.
    #[read(weight = 9)]
    async fn under(
        &self,
        tx: &Tx,
        isolation: Isolation,
        #[draw(prop_oneof![7 => self.first(1), 1 => self.whole(), 1 => Just(Vec::new())])] prefix: &[u8],
    ) -> Result<Populations, Error> {
        Ok(populations(self.layer()?.under(tx, &self.key(prefix), isolation).await?))
    }

    /// Reads all populations from one key or prefix to another.
    #[read(weight = if self.own_keys { 0 } else { 9 })]
    async fn between(
        &self,
        tx: &Tx,
        isolation: Isolation,
        #[draw(prop_oneof![2 => (self.first(1), self.first(1)), 1 => (self.whole(), self.first(2))])] ends: (
            Vec<u8>,
            Vec<u8>,
        ),
    ) -> Result<Populations, Error> {
        let (from, to) = (self.key(&ends.0), self.key(&ends.1));
        Ok(populations(self.layer()?.between(tx, &from, &to, isolation).await?))
    }

    /// Reads some populations under a prefix, after a key; some of these keys are incomplete.
    #[read(weight = if self.own_keys { 0 } else { 8 })]
    async fn page(
        &self,
        tx: &Tx,
        isolation: Isolation,
        #[draw(prop_oneof![5 => self.first(1), 3 => Just(Vec::new())])] prefix: &[u8],
        #[draw(prop_oneof![7 => option::weighted(0.8, self.whole()), 1 => self.first(1).prop_map(Some)])]
        after: Option<Vec<u8>>,
        #[draw(prop_oneof![1 => Just(0), 5 => page_sizes()])] most: usize,
    ) -> Result<Populations, Error> {
        let (prefix, after) = (self.key(prefix), after.map(|after| self.key(&after)));
        Ok(populations(self.layer()?.page(tx, &prefix, after.as_deref(), most, isolation).await?))
    }

    /// Encodes the smallest numbers for columns of this width, and returns how many bytes they take.
    #[read]
    async fn width(&self, tx: &Tx, #[draw(0..11u8)] bytes: u8) -> Result<usize, Error> {
        place(tx).await?;
        let mut out = Vec::new();
        Column::Unsigned(bytes).encode(&Part::Unsigned(0), &mut out)?;
        Column::Signed(bytes).encode(&Part::Signed(0), &mut out)?;
        Ok(out.len())
    }

    /// Compares two texts in the order of a language that distinguishes only letters, or also accents, or
    /// everything. Returns whether the first one is before the other (-1), equal, or after it, and whether
    /// both have the same collation key.
    #[read(weight = 3)]
    async fn compare(
        &self,
        tx: &Tx,
        #[draw(prop_oneof![1 => (0..24u8, 0..24u8), 2 => select(&ALIKE[..])])] texts: (u8, u8),
        #[draw(0..3u8)] tells: u8,
    ) -> Result<(i8, bool), Error> {
        place(tx).await?;
        let (collation, a, b) = (collation(tells), text(texts.0), text(texts.1));
        Ok((collation.compare(a, b) as i8, collation.key(a) == collation.key(b)))
    }

    /// Requests the collation of an unknown language.
    #[read(rare)]
    async fn no_language(&self, tx: &Tx) -> Result<(), Error> {
        place(tx).await?;
        Collation::new("no language", Distinguishes::Case).map(drop)
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> Result<Model, Error> {
        let rows = match self.own_keys {
            true => self.numbered(tx, space().into_bytes()).await?,
            false => self.layer()?.under(tx, &[], Serializable).await?,
        };
        Ok(Model { rows: rows.into_iter().map(kept).collect(), ..self.model() })
    }

    fn model(&self) -> Model {
        Model { workload: self.clone(), columns: self.columns(), rows: Vec::new() }
    }
}

/// The model: keys and their populations, in the order of the values of their parts.
#[derive(Clone, Debug)]
pub struct Model {
    workload: Encoding,
    columns: Vec<Column>,
    rows: Vec<(Vec<Part>, Content)>,
}

impl PartialEq for Model {
    fn eq(&self, other: &Model) -> bool {
        self.rows.iter().map(shown).eq(other.rows.iter().map(shown))
    }
}

impl Model {
    fn set(&mut self, key: &[u8], population: u32) -> Result<(), Error> {
        self.put(key, population.to_string().as_bytes())
    }

    fn set_large(&mut self, key: &[u8], beyond: bool) -> Result<(), Error> {
        self.put(key, &large(beyond))
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let key = self.accepted(key, true)?;
        limits::row(&encode(&self.columns, &key)?, value)?;
        match self.find(&key) {
            Ok(at) => self.rows[at].1 = Content::from(value),
            Err(at) => self.rows.insert(at, (key, Content::from(value))),
        }
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        if let Ok(at) = self.find(&self.accepted(key, true)?) {
            self.rows.remove(at);
        }
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Content>, Error> {
        let found = self.find(&self.accepted(key, true)?);
        Ok(found.ok().map(|at| self.rows[at].1.clone()))
    }

    fn under(&self, prefix: &[u8]) -> Result<Populations, Error> {
        self.page(prefix, None, usize::MAX)
    }

    fn between(&self, (from, to): (Vec<u8>, Vec<u8>)) -> Result<Populations, Error> {
        let (from, to) = (self.accepted(&from, false)?, self.accepted(&to, false)?);
        let within = |key: &[Part]| self.order(key, &from).is_ge() && self.order(key, &to).is_lt();
        Ok(self.rows.iter().filter(|(key, _)| within(key)).map(shown).collect())
    }

    fn page(&self, prefix: &[u8], after: Option<Vec<u8>>, most: usize) -> Result<Populations, Error> {
        let prefix = self.accepted(prefix, false)?;
        let after = after.map(|after| self.accepted(&after, true)).transpose()?;
        let is_behind = |key: &[Part]| after.as_ref().is_none_or(|after| self.order(key, after).is_gt());
        let within = |key: &[Part]| self.order(key, &prefix).is_eq() && is_behind(key);
        Ok(self.rows.iter().filter(|(key, _)| within(key)).take(most).map(shown).collect())
    }

    fn width(&self, bytes: u8) -> Result<usize, Error> {
        match bytes {
            1..=8 => Ok(2 * usize::from(bytes)),
            _ => Err(Error::Width(bytes)),
        }
    }

    fn compare(&self, texts: (u8, u8), tells: u8) -> Result<(i8, bool), Error> {
        let (collation, a, b) = (collation(tells), text(texts.0), text(texts.1));
        let keys = collation.key(a).cmp(&collation.key(b));
        Ok((keys.then(a.cmp(b)) as i8, seen(a, tells) == seen(b, tells)))
    }

    fn no_language(&self) -> Result<(), Error> {
        Err(Error::UnknownLocale("no language".to_owned()))
    }

    /// Where a key is, or would be.
    fn find(&self, key: &[Part]) -> Result<usize, usize> {
        self.rows.binary_search_by(|(other, _)| self.order(other, key))
    }

    /// Compares the values of two keys, up to the length of the shorter one.
    fn order(&self, a: &[Part], b: &[Part]) -> Ordering {
        let parts = self.columns.iter().zip(a.iter().zip(b));
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

    /// The parts, unless the layer refuses them before it reads.
    fn accepted(&self, numbers: &[u8], whole: bool) -> Result<Vec<Part>, Error> {
        let (parts, columns) = (self.workload.key(numbers), &self.columns);
        if parts.len() > columns.len() || (whole && parts.len() < columns.len()) {
            return Err(Error::WrongParts { given: parts.len(), columns: columns.len() });
        }
        for (column, part) in columns.iter().zip(&parts) {
            let (number, bytes, range) = match (column, part) {
                (Column::Unsigned(bytes), Part::Unsigned(n)) => (i128::from(*n), *bytes, 0..1 << (8 * bytes)),
                (Column::Signed(bytes), Part::Signed(n)) => {
                    let half = 1 << (8 * bytes - 1);
                    (i128::from(*n), *bytes, -half..half)
                }
                (Column::Text | Column::Collated(_), Part::Text(_))
                | (Column::Single, Part::Single(_))
                | (Column::Double, Part::Double(_)) => continue,
                _ => {
                    let (part, column) = (format!("{part:?}"), format!("{column:?}"));
                    return Err(Error::WrongType { part, column });
                }
            };
            if !range.contains(&number) {
                return Err(Error::OutOfRange { part: format!("{part:?}"), bytes });
            }
        }
        Ok(parts)
    }
}

fn space() -> Subspace {
    Subspace::from("population")
}

/// A key or a prefix, as the layer encodes it.
fn encode(columns: &[Column], parts: &[Part]) -> Result<Vec<u8>, Error> {
    let mut key = space().into_bytes();
    columns.iter().zip(parts).try_for_each(|(column, part)| column.encode(part, &mut key))?;
    Ok(key)
}

/// A read, so that a call that only computes has a place in the history.
async fn place(tx: &Tx) -> Result<(), Error> {
    tx.reading().await.get(space().bytes(), Serializable).await?;
    Ok(())
}

/// The value of a large population.
fn large(beyond: bool) -> Vec<u8> {
    vec![b'9'; VALUE_SIZE_LIMIT + usize::from(beyond)]
}

/// Keys and their populations, as answers contain them: the bits of numbers and the digests of texts, so that
/// an answer fits into a slot.
type Populations = Vec<(Vec<Content>, Content)>;

fn populations(rows: Vec<Row>) -> Populations {
    rows.into_iter().map(|row| shown(&kept(row))).collect()
}

/// A row as the model keeps it.
fn kept((key, value): Row) -> (Vec<Part>, Content) {
    (key, Content::from(&value))
}

fn shown((key, value): &(Vec<Part>, Content)) -> (Vec<Content>, Content) {
    let part = |part: &Part| match part {
        Part::Unsigned(n) => Content::from(&n.to_be_bytes()),
        Part::Signed(n) => Content::from(&n.to_be_bytes()),
        Part::Single(x) => Content::from(&x.to_be_bytes()),
        Part::Double(x) => Content::from(&x.to_be_bytes()),
        Part::Text(text) => Content::from(text),
    };
    (key.iter().map(part).collect(), value.clone())
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Encoding>>()
}
