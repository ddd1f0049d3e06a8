//! The cursors of plans over lists, against what they mean: in pages of any size, stopped after any number of
//! rows.

use super::{Distinct, Found, InTurn, Keep, Merge};
use crate::{
    cursor::{BoxCursor, Continuation, Cursor, Limits, Next, Spent, Stop},
    error::Error,
    value::Tuple,
};
use futures::{
    FutureExt,
    future::{BoxFuture, ready},
};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// The rows of a list; positions are indexes in it. A list that has read at least one row stops at the limit.
struct List {
    rows: Vec<i64>,
    next: usize,
    first: bool,
    spent: Spent,
}

fn list(rows: &[i64], from: &Continuation, spent: &Spent) -> BoxCursor<Found> {
    let next = match from {
        Continuation::Start => 0,
        Continuation::After(bytes) => bytes.len(),
        Continuation::End => rows.len(),
    };
    Box::new(List { rows: rows.to_vec(), next, first: true, spent: spent.clone() })
}

impl Cursor for List {
    type Row = Found;

    fn next(&mut self) -> BoxFuture<'_, Result<Next<Found>, Error>> {
        let at = |next: usize| match next {
            0 => Continuation::Start,
            next => Continuation::After(vec![0; next].into()),
        };
        let next = match (self.rows.get(self.next), self.spent.reached()) {
            (None, _) => Next::Stopped(Stop::Exhausted, Continuation::End),
            (Some(_), Some(stop)) if !self.first => Next::Stopped(stop, at(self.next)),
            (Some(row), _) => {
                let row = Tuple::from(*row);
                self.next += 1;
                self.first = false;
                self.spent.count(1);
                let found = Found { order: row.clone(), primary_key: row, entry: None, record: None };
                Next::Row(found, at(self.next))
            }
        };
        ready(Ok(next)).boxed()
    }
}

type Opened = Box<dyn Cursor<Row = Found>>;

/// The rows of a cursor that is opened again after every `page` rows and whenever it stops, and the rows of
/// each page.
fn pages(page: usize, scanned: usize, open: impl Fn(Continuation, &Spent) -> Opened) -> Vec<Vec<i64>> {
    let mut all = Vec::new();
    let mut from = Continuation::Start;
    while from != Continuation::End {
        let spent = Spent::new(Limits { scanned: Some(scanned), ..Limits::default() });
        let mut cursor = open(from.clone(), &spent);
        let mut rows = Vec::new();
        let before = from.clone();
        while rows.len() < page {
            match cursor.next().now_or_never().expect("lists are ready").expect("no error") {
                Next::Row(row, after) => {
                    let packed = row.primary_key.get(0).cloned();
                    let Some(foundationdb_tuple::Element::Int(number)) = packed else { panic!("{packed:?}") };
                    rows.push(number);
                    from = after;
                }
                Next::Stopped(stop, at) => {
                    assert_eq!(stop == Stop::Exhausted, at == Continuation::End);
                    from = at;
                    break;
                }
            }
        }
        assert!(before != from, "a call makes progress");
        all.push(rows);
    }
    all
}

fn ascending(reverse: bool, rows: &BTreeSet<i64>) -> Vec<i64> {
    let rows: Vec<_> = rows.iter().copied().collect();
    if reverse { rows.into_iter().rev().collect() } else { rows }
}

fn lists() -> impl Strategy<Value = Vec<BTreeSet<i64>>> {
    proptest::collection::vec(proptest::collection::btree_set(0i64..12, 0..10), 1..4)
}

proptest! {
    #[test]
    fn merged_rows_are_those_of_any_or_of_all(lists in lists(), reverse: bool, page in 1usize..5, scanned in 1usize..9) {
        for keep in [Keep::Any, Keep::All] {
            let expected = match keep {
                Keep::Any => lists.iter().flatten().copied().collect(),
                Keep::All => lists[0].iter().copied().filter(|n| lists.iter().all(|l| l.contains(n))).collect(),
            };
            let found = pages(page, scanned, |from, spent| {
                let open = |i: usize, at| Ok(list(&ascending(reverse, &lists[i]), &at, spent));
                Box::new(Merge::new(lists.len(), keep, reverse, &from, open).unwrap())
            });
            prop_assert_eq!(found.concat(), ascending(reverse, &expected));
        }
    }

    #[test]
    fn rows_in_turn_are_those_of_all(lists in lists(), page in 1usize..5, scanned in 1usize..9) {
        let lists: Vec<Vec<i64>> = lists.iter().map(|rows| ascending(false, rows)).collect();
        let found = pages(page, scanned, |from, spent| {
            let (all, of) = (lists.clone(), spent.clone());
            let open = Box::new(move |i: usize, at| Ok(list(&all[i], &at, &of)));
            Box::new(InTurn::new(open, lists.len(), &from, spent).unwrap())
        });
        prop_assert_eq!(found.concat(), lists.concat());
    }

    /// Each page has a row once; after a page come the rows that it does not have.
    #[test]
    fn duplicates_are_removed_within_a_page(rows in proptest::collection::vec(0i64..6, 0..20), page in 1usize..6) {
        let found = pages(page, usize::MAX, |from, spent| {
            Box::new(Distinct::new(list(&rows, &from, spent), from))
        });
        let mut expected = Vec::new();
        let mut rest = &rows[..];
        while !rest.is_empty() {
            let mut seen = Vec::new();
            while let Some((row, after)) = rest.split_first() {
                if !seen.contains(row) {
                    if seen.len() == page {
                        break;
                    }
                    seen.push(*row);
                }
                rest = after;
            }
            expected.push(seen);
        }
        prop_assert_eq!(found.into_iter().filter(|page| !page.is_empty()).collect::<Vec<_>>(), expected);
    }
}

/// The example of the overview: of r1, r2, r1, r3, r2, r3 the first two are r1 and r2; after them come r3 and
/// r2.
#[test]
fn a_page_ends_after_the_duplicates_of_its_rows() {
    let rows = [1, 2, 1, 3, 2, 3];
    let found = pages(2, usize::MAX, |from, spent| Box::new(Distinct::new(list(&rows, &from, spent), from)));
    assert_eq!(found, [[1, 2], [3, 2]]);
}
