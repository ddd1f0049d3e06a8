//! The transaction contract as a test suite: FoundationDB's promises to its clients, with one case for each
//! promise that can be observed through [`Database`] and [`Transaction`](shaketable_tx::Transaction).
//!
//! The suite is generic and runs unchanged on every backend. It requires only its own key prefix in the
//! database: each case uses a fresh prefix, cleared before and after, independent of the other data. Two
//! things reach further: the `\xff/metadataVersion` cases write that one key (which only invalidates caches),
//! and cases of database options change a default of the handle and restore it.
//!
//! Cases of mapped ranges read, but never write, keys below their prefix encoded as a tuple's byte string.
//!
//! Cases are named after sections of the contract:
//!
//! | section | promises |
//! |---|---|
//! | `errors` | error predicates and `on_error` |
//! | `commits` | commit: read-only commits, size, deferred errors, use during a commit |
//! | `conflicts` | conflicts and the window of read versions |
//! | `options` | options, and which of them remain set after `on_error` |
//! | `reads` | reads, read-your-writes, selectors, ranges, extents of conflict ranges |
//! | `atomic` | atomic operations |
//! | `versionstamps` | versionstamps and unreadable keys |
//! | `watches` | watches |
//! | `sizes` | sizes, special keys, the metadata version |
//!
//! [`NOT_OBSERVABLE`] lists the promises that no case can check, with the reasons.
//!
//! A retryable error where a case expects success does not show that the promise is broken (a recovery may
//! happen on a real cluster at any time): the case is repeated, up to a few times.

/// The cases of a file: topic, the function that checks it, and the promise.
macro_rules! catalogue {
    ($($topic:literal, $run:expr, $promise:literal;)*) => {
        vec![$(Case::new(SECTION, $topic, $promise, $run)),*]
    };
}

mod atomic;
mod commit;
mod conflicts;
mod deferred;
mod errors;
mod expect;
mod extents;
mod handle;
mod limits;
mod mapped;
mod options;
mod ranges;
mod reads;
mod sizes;
mod special;
mod stamps;
mod unobservable;
#[cfg(test)]
mod unreachable;
mod unreadable;
mod watches;
mod world;

pub use expect::{Broken, Expectation};
pub use unobservable::{NOT_OBSERVABLE, NotObservable};
pub use world::Ctx;

use bytes::Bytes;
use futures::{
    FutureExt,
    future::{BoxFuture, Either, select},
};
use shaketable_tx::{Database, Db};
use std::{future::Future, panic::AssertUnwindSafe, pin::pin, time::Duration};

/// The sections of the contract that have cases, in order.
pub const SECTIONS: &[&str] =
    &["errors", "commits", "conflicts", "options", "reads", "atomic", "versionstamps", "watches", "sizes"];

/// How often a case is attempted in total if it ends with a retryable error that it did not provoke.
const ATTEMPTS: u32 = 4;

/// How long one attempt of a case may take before it counts as stuck. Cases that wait until a read version is
/// too old need most of a minute on a database that keeps old versions for long.
const PATIENCE: Duration = Duration::from_secs(120);

/// The calls of a case that makes many.
const MANY: u32 = 250_000;

/// The same for a part of the suite, which runs beside faults again and again: with all of its calls this one
/// case would cost more than all others.
const MANY_OF_A_PART: u32 = 2_500;

type Run = Box<dyn Fn(Ctx) -> BoxFuture<'static, Expectation> + Send + Sync>;

/// One promise and the test of it.
pub struct Case {
    /// Section and topic, such as `reads/conflict-range/get`. Unique in the catalogue.
    pub name: String,
    /// The section of the contract, one of [`SECTIONS`].
    pub section: &'static str,
    /// The promise, as one sentence.
    pub promise: String,
    run: Run,
}

impl Case {
    /// A case named `section/topic`.
    fn new<F, Fut>(section: &'static str, topic: &str, promise: impl Into<String>, run: F) -> Case
    where
        F: Fn(Ctx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Expectation> + Send + 'static,
    {
        Case {
            name: format!("{section}/{topic}"),
            section,
            promise: promise.into(),
            run: Box::new(move |c| run(c).boxed()),
        }
    }
}

/// The result of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseResult {
    /// The case's name.
    pub name: String,
    /// The promise it tests.
    pub promise: String,
    /// `Err` states what was promised and what was seen.
    pub result: Result<(), String>,
}

/// Every case, in the order of the sections.
pub fn cases() -> Vec<Case> {
    [
        errors::cases(),
        commit::cases(),
        handle::cases(),
        deferred::cases(),
        conflicts::cases(),
        options::cases(),
        reads::cases(),
        ranges::cases(),
        limits::cases(),
        extents::cases(),
        mapped::cases(),
        atomic::cases(),
        stamps::cases(),
        unreadable::cases(),
        watches::cases(),
        sizes::cases(),
        special::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Runs the cases whose name contains `filter` (all cases if it is empty), one after another, each under its
/// own prefix below `prefix`. A case that fails, panics or gets stuck does not stop the others.
///
/// `prefix` must be shorter than 1,000 bytes, must not begin with `\xff`, and must not be used by others in
/// the meantime.
pub async fn run_all(db: &impl Database, prefix: &[u8], filter: &str) -> Vec<CaseResult> {
    run_each(db, prefix, filter, |_| true).await
}

/// Like [`run_all`], but calls `on_result` with each result, and stops when it returns `false`.
pub async fn run_each(
    db: &impl Database,
    prefix: &[u8],
    filter: &str,
    mut on_result: impl FnMut(&CaseResult) -> bool,
) -> Vec<CaseResult> {
    let db = Db::new(db.clone());
    let mut results = Vec::new();
    for (number, case) in cases().into_iter().enumerate() {
        if case.name.contains(filter) {
            let result = run_case(&db, prefix, (number, MANY), &case).await;
            let case_result = CaseResult { name: case.name, promise: case.promise, result };
            let goes_on = on_result(&case_result);
            results.push(case_result);
            if !goes_on {
                break;
            }
        }
    }
    results
}

/// Runs the cases for whose numbers `is_wanted` returns true, one after another, all under the same prefix
/// below `prefix`, so that a cluster can be made that has the keys of each of them on several servers. A case
/// that makes many calls makes fewer of them.
pub async fn run_part(
    db: &impl Database,
    prefix: &[u8],
    is_wanted: impl Fn(usize) -> bool,
) -> Vec<CaseResult> {
    let db = Db::new(db.clone());
    let mut results = Vec::new();
    for (_, case) in cases().into_iter().enumerate().filter(|(number, _)| is_wanted(*number)) {
        let result = run_case(&db, prefix, (0, MANY_OF_A_PART), &case).await;
        results.push(CaseResult { name: case.name, promise: case.promise, result });
    }
    results
}

/// Runs one case until an attempt is conclusive. Its prefix has this number, and it makes at most so many
/// calls.
async fn run_case(db: &Db, prefix: &[u8], (number, many): (usize, u32), case: &Case) -> Result<(), String> {
    let mut last = String::new();
    for attempt in 0..ATTEMPTS {
        let mut own = prefix.to_vec();
        own.extend_from_slice(format!("{number:03}.{attempt}/").as_bytes());
        let ctx = Ctx::new(db.clone(), Bytes::from(own), many);
        match attempt_case(&ctx, case).await {
            Ok(()) => return Ok(()),
            Err(broken) if broken.is_inconclusive() => last = broken.to_string(),
            Err(broken) => return Err(broken.to_string()),
        }
    }
    Err(format!("{last}, in each of {ATTEMPTS} attempts"))
}

/// One attempt: clears the prefix, runs the case, and clears the prefix again, each with a time limit.
async fn attempt_case(ctx: &Ctx, case: &Case) -> Expectation {
    bounded(ctx, async { Ok(ctx.clear_all().await.map(drop)?) }).await?;
    let outcome = bounded(ctx, (case.run)(ctx.clone())).await;
    let cleared = bounded(ctx, async { Ok(ctx.clear_all().await.map(drop)?) }).await;
    outcome.and(cleared)
}

/// Turns a panic, or an exceeded time limit, into an outcome.
async fn bounded(ctx: &Ctx, work: impl Future<Output = Expectation> + Send) -> Expectation {
    let guarded = pin!(AssertUnwindSafe(work).catch_unwind());
    match select(guarded, ctx.db.env().sleep(PATIENCE)).await {
        Either::Left((Ok(outcome), _)) => outcome,
        Either::Left((Err(panic), _)) => Err(Broken::from_panic(panic.as_ref())),
        Either::Right(_) => Err(Broken::new(format!("did not finish within {PATIENCE:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::unreachable::UnreachableDatabase;
    use super::*;
    use shaketable_tx::Error;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_every_section_has_cases() {
        let all = cases();
        let names: BTreeSet<&str> = all.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names.len(), all.len(), "two cases share a name");
        for section in SECTIONS {
            assert!(all.iter().any(|c| c.section == *section), "section {section} has no case");
        }
        for case in &all {
            assert!(SECTIONS.contains(&case.section), "{} is in no section", case.name);
            assert!(!case.promise.is_empty(), "{} promises nothing", case.name);
        }
    }

    #[test]
    fn a_case_that_fails_stops_no_other() {
        let results = run_all(&UnreachableDatabase::new(), b"contract/", "conflicts/")
            .now_or_never()
            .expect("nothing to wait for");
        assert_eq!(results.len(), cases().iter().filter(|c| c.section == "conflicts").count());
        assert!(results.iter().all(|v| v.result.is_err()));
    }

    #[test]
    fn what_is_not_observable_names_a_section_and_a_reason() {
        for row in NOT_OBSERVABLE {
            assert!(SECTIONS.contains(&row.section), "{}", row.section);
            assert!(!row.promise.is_empty() && !row.reason.is_empty());
        }
    }

    #[test]
    fn an_option_by_its_code_is_refused_when_there_is_none_and_set_otherwise() {
        let (db, watches) = (UnreachableDatabase::new(), 5_i64.to_le_bytes());
        assert_eq!(db.set_option_raw(-1, None), Err(Error::INVALID_OPTION));
        assert_eq!(db.set_option_raw(20, None), Err(Error::INVALID_OPTION_VALUE));
        assert_eq!(db.set_option_raw(20, Some(&watches)), Err(Error::INTERNAL_ERROR), "its own answer");
    }
}
