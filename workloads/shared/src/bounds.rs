//! More data than one transaction can read, for the tests of layers: a call that would read all of it is
//! refused, instead of exceeding the lifetime of its read version forever, and one that can continue in pages
//! does.

use crate::cluster::on_cluster;
use foundationdb_tuple::{Subspace, TuplePack};
use futures::future::BoxFuture;
use shaketable_tx::{
    self as tx, Database, DatabaseOption, Db, Transaction,
    limits::{READ_LIMIT, TooLarge},
};
use std::ops::Range;

/// More than exists.
pub const MOST: usize = usize::MAX;

/// The result of a call: success, or its error message and the number of attempts.
pub type Ended<A> = Result<A, (String, u32)>;

/// A layer's call, in its own transaction.
pub type Call = fn(Db) -> BoxFuture<'static, Ended<()>>;

/// The subspace of the layer.
pub fn space() -> Subspace {
    Subspace::from("large")
}

/// A part of the layer's subspace.
pub fn below<T: TuplePack>(parts: T) -> Subspace {
    space().subspace(&parts)
}

/// The expected refusal, which must be returned by the first attempt.
pub fn refused<A>() -> Ended<A> {
    Err((TooLarge::Read { limit: READ_LIMIT }.to_string(), 1))
}

/// The result of a call in its own transaction, with the message of its error.
#[macro_export]
macro_rules! ended {
    ($db:expr, |$tx:ident| $call:expr) => {{
        use ::shaketable_tx::Database as _;
        let ended = $db.run(|$tx, _| async move { $call.await }).await;
        ended.map_err(|e| (e.error.to_string(), e.attempts))
    }};
}

/// A test of all calls of a layer that read whole ranges, which have too many rows below these prefixes.
#[macro_export]
macro_rules! refused_calls {
    ([$($below:expr),+ $(,)?], $($what:literal: |$tx:ident| $call:expr,)+) => {
        #[test]
        fn no_call_reads_more_than_a_transaction_has_time_for() {
            const CALLS: &[(&str, $crate::bounds::Call)] = &[
                $(($what, |db| Box::pin(async move { $crate::ended!(db, |$tx| $call).map(drop) }))),+
            ];
            $crate::bounds::check(&[$($below),+], CALLS);
        }
    };
}

/// Fills these prefixes, and fails for a call that is not refused.
pub fn check(full: &[Subspace], calls: &'static [(&str, Call)]) {
    let full = full.to_vec();
    on_cluster(move |db| {
        let full = full.clone();
        async move {
            db.set_option(DatabaseOption::TransactionRetryLimit(3)).expect("an option");
            for below in &full {
                fill(&db, below, 0..102).await;
            }
            for (what, call) in calls {
                assert_eq!(call(db.clone()).await, refused(), "{what}");
            }
        }
    });
}

/// Stores rows of 100,000 bytes below a prefix, whose keys are pairs numbered by their first element.
pub async fn fill(db: &Db, below: &Subspace, rows: Range<usize>) {
    for rows in rows.collect::<Vec<_>>().chunks(50) {
        let stored = db.run(|tx, _| async move {
            rows.iter().for_each(|n| tx.set(&below.pack(&(*n, 0)), &[7; 99_980]));
            Ok::<_, tx::Error>(())
        });
        stored.await.expect("half of what a transaction takes");
    }
}

/// Stores these rows.
pub async fn store(db: &Db, rows: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) {
    for rows in rows.into_iter().collect::<Vec<_>>().chunks(5_000) {
        let stored = db.run(|tx, _| async move {
            rows.iter().for_each(|(key, value)| tx.set(key, value));
            Ok::<_, tx::Error>(())
        });
        stored.await.expect("small rows");
    }
}

/// Four names, for a list that is read in pages.
pub const NAMES: [&str; 4] = ["a", "a\0", "b", "c"];

/// Fails unless pages of these names follow each other, and a short one is the last. `page` reads up to a
/// number of items after the last one of the page before, and `name` tells an item's name.
pub async fn check_pages<I: Clone>(
    page: impl AsyncFn(Option<I>, usize) -> Vec<I>,
    name: impl Fn(&I) -> String,
) {
    let first = page(None, 2).await;
    let second = page(first.last().cloned(), 2).await;
    let pages = [first, second.clone(), page(second.last().cloned(), 2).await, page(None, 0).await];
    let names = pages.map(|page| page.iter().map(&name).collect::<Vec<_>>());
    assert_eq!(names, [&NAMES[..2], &NAMES[2..], &[], &[]]);
}
