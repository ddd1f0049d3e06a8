//! Ranges of keys, and how they are read: by the layer, page after page, and by the model.

use super::schema::{packed, tuple};
use foundationdb_tuple::Element;
use shaketable::prelude::*;
use shaketable_record::{
    cursor::{BoxCursor, Continuation, CursorExt, Endpoint, Limits, Spent, TupleRange},
    error::Error,
};
use shaketable_tx::always;
use std::{fmt::Debug, time::Duration};

/// A range, and how it is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span<L> {
    /// Where it begins.
    pub low: End<L>,
    /// Where it ends.
    pub high: End<L>,
    /// Whether it is read from its end.
    pub reverse: bool,
    /// How much one call reads; the following ones continue it.
    pub paging: Paging,
}

/// One end of a range: this many columns of the key of something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End<L> {
    /// No end.
    Open,
    /// Keys that begin with these columns are in the range.
    Inclusive(L, usize),
    /// Keys that begin with these columns are not in the range.
    Exclusive(L, usize),
}

/// How much one call of a scan reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Paging {
    /// Everything.
    All,
    /// That many rows are returned.
    Rows(usize),
    /// That many rows are read.
    Scanned(usize),
    /// About that many bytes are read.
    Bytes(usize),
    /// It reads for that many microseconds.
    Micros(u64),
}

impl<L> Span<L> {
    /// The columns of both ends.
    pub(super) fn ends(&self, columns: impl Fn(&L) -> Vec<Element<'static>>) -> Ends {
        [&self.low, &self.high].map(|end| end.columns(&columns))
    }

    /// The range, for the layer.
    pub(super) fn range(&self, columns: impl Fn(&L) -> Vec<Element<'static>>) -> TupleRange {
        let [low, high] = self.ends(columns).map(endpoint);
        TupleRange::between(low, high)
    }
}

impl<L> End<L> {
    /// The columns of this end.
    fn columns(&self, columns: impl Fn(&L) -> Vec<Element<'static>>) -> End<Vec<Element<'static>>> {
        match self {
            End::Open => End::Open,
            End::Inclusive(like, most) => End::Inclusive(first(columns(like), *most), *most),
            End::Exclusive(like, most) => End::Exclusive(first(columns(like), *most), *most),
        }
    }
}

pub(super) fn first(mut columns: Vec<Element<'static>>, most: usize) -> Vec<Element<'static>> {
    columns.truncate(most);
    columns
}

fn end<L: Clone + Debug + 'static>(like: BoxedStrategy<L>) -> BoxedStrategy<End<L>> {
    prop_oneof![
        2 => Just(End::Open),
        3 => (like.clone(), 0..5usize).prop_map(|(like, columns)| End::Inclusive(like, columns)),
        3 => (like, 0..5usize).prop_map(|(like, columns)| End::Exclusive(like, columns)),
    ]
    .boxed()
}

pub(super) fn span<L: Clone + Debug + 'static>(like: BoxedStrategy<L>) -> BoxedStrategy<Span<L>> {
    let paging = prop_oneof![
        3 => Just(Paging::All),
        2 => (1..4usize).prop_map(Paging::Rows),
        2 => (1..4usize).prop_map(Paging::Scanned),
        1 => (1..300usize).prop_map(Paging::Bytes),
        1 => (0..3_000u64).prop_map(Paging::Micros),
    ];
    (end(like.clone()), end(like), any::<bool>(), paging)
        .prop_map(|(low, high, reverse, paging)| Span { low, high, reverse, paging })
        .boxed()
}

/// The ends of a range, by their columns.
type Ends = [End<Vec<Element<'static>>>; 2];

/// Whether a key is in a range. An end is compared with as many columns of the key as it has.
pub(super) fn contains([low, high]: &Ends, key: &[Element<'static>]) -> bool {
    let compared = |end: &[Element<'static>]| packed(&key[..end.len().min(key.len())]).cmp(&packed(end));
    let above = match low {
        End::Open => true,
        End::Inclusive(end, _) => compared(end).is_ge(),
        End::Exclusive(end, _) => compared(end).is_gt(),
    };
    let below = match high {
        End::Open => true,
        End::Inclusive(end, _) => compared(end).is_le(),
        End::Exclusive(end, _) => compared(end).is_lt(),
    };
    above && below
}

fn endpoint(end: End<Vec<Element<'static>>>) -> Endpoint {
    match end {
        End::Open => Endpoint::Open,
        End::Inclusive(columns, _) => Endpoint::Inclusive(tuple(&columns)),
        End::Exclusive(columns, _) => Endpoint::Exclusive(tuple(&columns)),
    }
}

/// The rows of a scan, page after page, each of which begins with the bytes of the continuation of the one
/// before.
pub(super) async fn pages<L, R: Send + 'static>(
    span: &Span<L>,
    env: &Env,
    scan: impl Fn(Continuation, &Spent) -> Result<BoxCursor<R>, Error>,
) -> Result<Vec<R>, Error> {
    let (mut all, mut from) = (Vec::new(), Continuation::Start);
    let none = Limits::default();
    let limits = match span.paging {
        Paging::All => none,
        Paging::Rows(rows) => Limits::rows(rows),
        Paging::Scanned(scanned) => Limits { scanned: Some(scanned), ..none },
        Paging::Bytes(bytes) => Limits { bytes: Some(bytes), ..none },
        Paging::Micros(micros) => Limits { time: Some((Duration::from_micros(micros), env.clone())), ..none },
    };
    loop {
        let spent = Spent::new(limits.clone());
        let cursor = scan(from.clone(), &spent)?.limited(&spent, from);
        let page = cursor.to_list().await?;
        let most = match span.paging {
            Paging::Rows(most) | Paging::Scanned(most) => most,
            _ => usize::MAX,
        };
        always!(page.rows.len() <= most, "a page of {} rows where {most} are allowed", page.rows.len());
        let (is_empty, next) = (page.rows.is_empty(), page.continuation.to_bytes());
        always!(!is_empty || next.is_none(), "a page without rows is not the last one");
        all.extend(page.rows);
        match next {
            Some(bytes) if !is_empty => from = Continuation::from_bytes(bytes),
            _ => return Ok(all),
        }
    }
}
