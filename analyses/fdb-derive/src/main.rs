//! Accounts that FdbStore keeps. Each program exits with 1 and one line if a claim does not hold.

mod held;
mod plain;
mod shaken;

use fdb_derive::FdbStore;
use fdb_trait::{FdbStore, KvError, RangeQuery};
// The generated code names these.
use foundationdb::{Database, FdbBindingError, options::StreamingMode};
use serde::{Deserialize, Serialize};
use std::{process::ExitCode, sync::Arc};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FdbStore)]
struct Account {
    #[fdb_key]
    id: String,
    #[fdb_unique_index]
    email: String,
    #[fdb_index]
    group: String,
    note: String,
}

/// One whose key is a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, FdbStore)]
struct Place {
    #[fdb_key]
    id: i64,
}

fn account(id: &str, email: &str, group: &str) -> Account {
    let [id, email, group] = [id, email, group].map(str::to_owned);
    Account { id, email, group, note: String::new() }
}

/// A claim that does not hold says why in one line, the same in every run of a seed.
type Claim<T = String> = Result<T, String>;

fn claim(holds: bool, broken: impl FnOnce() -> String) -> Claim<()> {
    if holds { Ok(()) } else { Err(broken()) }
}

/// The error of the layer inside of one of the binding.
fn inner(error: &FdbBindingError) -> Option<&KvError> {
    let FdbBindingError::CustomError(error) = error else { return None };
    match error.downcast_ref::<KvError>()? {
        KvError::FdbCommitError(error) => inner(error),
        error => Some(error),
    }
}

/// What an error says in the end, in the words of the layer or of FoundationDB.
fn said(error: &KvError) -> String {
    match error {
        KvError::FdbCommitError(FdbBindingError::CustomError(error)) => match error.downcast_ref::<KvError>()
        {
            Some(error) => said(error),
            None => error.to_string(),
        },
        KvError::FdbCommitError(error) => error.to_string(),
        KvError::FdbError(error) => error.message().to_owned(),
        error => error.to_string(),
    }
}

/// An answer of the layer that must not be an error.
fn told<T>(answer: Result<T, KvError>) -> Claim<T> {
    answer.map_err(|error| said(&error))
}

/// Numbers that follow from the seed.
struct Chance(u64);

impl Chance {
    fn new(stream: u64) -> Self {
        let seed = std::env::var("SHAKETABLE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
        Self(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15) ^ (stream << 32) ^ 0x5851_f42d)
    }

    /// One below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

async fn run(db: Arc<Database>, program: &str) -> Claim {
    match program {
        "held" => held::held(db).await,
        "all" => plain::all(db).await,
        "first" => plain::first(db).await,
        "long" => plain::long(db).await,
        "numbers" => plain::numbers(db).await,
        "between" => plain::between(db).await,
        "updated" => plain::updated(db).await,
        "deleted" => plain::deleted(db).await,
        "documented" => plain::documented(db).await,
        "group" => plain::group(db).await,
        "saved" => plain::saved(db).await,
        "readme" => plain::readme(db).await,
        "lookup" => shaken::lookup(db).await,
        "create" => shaken::create(db).await,
        "change" => shaken::change(db).await,
        "delete" => shaken::delete(db).await,
        _ => Err(format!("there is no program {program}")),
    }
}

fn main() -> ExitCode {
    // SAFETY: it is dropped before the process ends.
    let network = unsafe { foundationdb::boot() };
    // One thread: then the seed determines the order of all calls.
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let program = std::env::args().nth(1).expect("the name of a program");
    let db = Arc::new(Database::default().expect("it opens"));
    let done = runtime.block_on(run(db, &program));
    drop(network);
    match done {
        Ok(said) => println!("{said}"),
        Err(broken) => {
            eprintln!("{broken}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
