//! A layer of one's own, and the workload that shakes it: everything a crate outside needs.
//!
//! `cargo run --release --example own_layer` shakes it; `cargo test --example own_layer` does the
//! same from an ordinary `#[test]`, and demands that its planted bugs are caught.

use bytes::Bytes;
use foundationdb_tuple::Subspace;
use proptest::{
    collection::vec,
    strategy::{BoxedStrategy, Strategy},
};
use serde::{Deserialize, Serialize};
use shaketable::{Bug, Outcome, Shake, Step, Workload};
use shaketable_layers::{
    once::{self, Session, Slots},
    sometimes,
    tx::{Database, Error, Isolation, RangeOption, RetryError, Transaction},
};
use shaketable_sim::{proto::Mutation, seed::Stream};
use std::time::Duration;

// ---- The layer: accounts, and transfers between them -------------------------------------------

/// Why a transfer was refused.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("the account does not hold that much")]
    Poor,
    #[error(transparent)]
    Once(#[from] once::Error),
    #[error(transparent)]
    Fdb(#[from] Error),
}

impl RetryError for Refusal {
    fn fdb(&self) -> Option<Error> {
        match self {
            Refusal::Poor => None,
            Refusal::Once(e) => e.fdb(),
            Refusal::Fdb(e) => Some(*e),
        }
    }
}

/// `("ledger", account) = balance`, eight bytes, big-endian.
fn account(number: u32) -> Vec<u8> {
    Subspace::from("ledger").pack(&number)
}

/// Where each client keeps the record of its last operation.
fn clients() -> Slots {
    Slots::new(Subspace::from("ledger-clients"))
}

fn balance(value: Option<&Bytes>) -> u64 {
    value.and_then(|v| v.as_ref().try_into().ok()).map_or(0, u64::from_be_bytes)
}

/// Moves `amount`, inside the caller's transaction.
async fn transfer<T: Transaction>(
    tx: &T,
    from: u32,
    to: u32,
    amount: u64,
    isolation: Isolation,
) -> Result<(), Refusal> {
    let (from, to) = (account(from), account(to));
    let has = balance(tx.get(&from, isolation).await?.as_ref());
    sometimes!(has < amount, "ledger: a transfer is refused");
    let rest = has.checked_sub(amount).ok_or(Refusal::Poor)?;
    tx.set(&from, &rest.to_be_bytes());
    // Read after the write: a transfer to oneself must see it.
    let had = balance(tx.get(&to, isolation).await?.as_ref());
    tx.set(&to, &(had + amount).to_be_bytes());
    Ok(())
}

// ---- The workload ------------------------------------------------------------------------------

/// The workload's drawn configuration: plain data, kept in repro files.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ledger {
    accounts: u32,
    clients: usize,
    bug: Option<String>,
}

/// Every account begins with this much.
const START: u64 = 10;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Transfer {
    from: u32,
    to: u32,
    amount: u64,
}

const BUGS: &[Bug] = &[
    Bug { name: "snapshot-read", about: "balances are read at snapshot", source: "a lost update" },
    Bug {
        name: "no-record",
        about: "a retry after an unknown result pays again",
        source: "the tutorial style",
    },
];

impl Workload for Ledger {
    type Op = Transfer;
    type Answer = bool;
    type Session<D: Database> = Session<D>;
    type Model = Vec<u64>;

    const NAME: &'static str = "ledger";
    const ABOUT: &'static str = "transfers between accounts neither make nor lose money";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    /// A refusal may write a fence that keeps late attempts out: that moves no money.
    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        !matches!(mutations, [Mutation::Set(key, value)] if clients().is_fence(key, value))
    }

    fn points() -> &'static [&'static str] {
        &["ledger: a transfer is refused"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Self {
        Ledger {
            accounts: rng.range(2..10) as u32,
            clients: rng.range(2..6) as usize,
            bug: bug.map(str::to_owned),
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        (0..self.accounts).map(|n| account(n).into()).collect()
    }

    fn operations(&self, _client: usize) -> BoxedStrategy<Vec<Transfer>> {
        let accounts = self.accounts;
        let one = (0..accounts, 0..accounts, 0..START);
        vec(one.prop_map(|(from, to, amount)| Transfer { from, to, amount }), 5..20).boxed()
    }

    async fn setup<D: Database>(&self, db: &D) -> Result<(), Error> {
        let accounts = self.accounts;
        let run = db.run(|tx, _| async move {
            (0..accounts).for_each(|n| tx.set(&account(n), &START.to_be_bytes()));
            Ok::<_, Error>(())
        });
        run.await.map_err(|e| e.error)
    }

    async fn open<D: Database>(&self, db: &D, client: usize) -> Result<Session<D>, Error> {
        Session::open(db, &clients(), client as u64)
            .await
            .map_err(|e| e.fdb().unwrap_or(Error::INTERNAL_ERROR))
    }

    /// After a transfer whose future was dropped, as a request's time-out does it, the session begins no other one
    /// until somebody has asked what became of it.
    async fn recall<D: Database>(&self, session: &mut Session<D>) {
        while let Some(dropped) = session.unread() {
            if session.resolve::<()>(dropped).await.is_err() {
                session.database().env().sleep(Duration::from_millis(10)).await;
            }
        }
    }

    async fn apply<D: Database>(&self, session: &mut Session<D>, op: &Transfer) -> Outcome<bool> {
        let Transfer { from, to, amount } = *op;
        let snapshot = self.bug.as_deref() == Some("snapshot-read");
        let isolation = if snapshot { Isolation::Snapshot } else { Isolation::Serializable };
        if self.bug.as_deref() == Some("no-record") {
            let run = session
                .database()
                .run(|tx, _| async move { transfer(&tx, from, to, amount, isolation).await });
            return match run.await {
                Ok(()) => Outcome::Answered(true),
                Err(e) if e.maybe_committed => {
                    Outcome::Unknown(e.error.fdb().unwrap_or(Error::INTERNAL_ERROR))
                }
                Err(e) => refused(e.error),
            };
        }
        let applied =
            session.apply(move |tx| async move { transfer(&tx, from, to, amount, isolation).await }).await;
        match applied {
            once::Outcome::Applied(()) => Outcome::Answered(true),
            once::Outcome::Refused(why) => refused(why),
            once::Outcome::Unknown(_) => Outcome::Unknown(Error::COMMIT_UNKNOWN_RESULT),
        }
    }

    fn model(&self) -> Vec<u64> {
        vec![START; self.accounts as usize]
    }

    fn step(&self, model: &mut Vec<u64>, step: &Step<'_, Self>) -> Result<(), String> {
        let Transfer { from, to, amount } = *step.op;
        let possible = model[from as usize] >= amount;
        if step.answer.is_some_and(|told| *told != possible) {
            return Err(format!("the account held {}", model[from as usize]));
        }
        if step.committed != possible {
            return Err(format!(
                "the account held {}, and committed is {}",
                model[from as usize], step.committed
            ));
        }
        if possible {
            model[from as usize] -= amount;
            model[to as usize] += amount;
        }
        Ok(())
    }

    async fn audit<D: Database>(&self, tx: &D::Transaction) -> Result<Result<(), String>, Error> {
        let total: u64 = balances(tx).await?.iter().sum();
        let expected = START * u64::from(self.accounts);
        Ok(if total == expected { Ok(()) } else { Err(format!("{total} in all accounts, not {expected}")) })
    }

    async fn check<D: Database>(&self, db: &D, model: &Vec<u64>) -> Result<Result<(), String>, Error> {
        let found = db.run(|tx, _| async move { balances(&tx).await }).await.map_err(|e| e.error)?;
        Ok(if found == *model {
            Ok(())
        } else {
            Err(format!("accounts hold {found:?}, the model {model:?}"))
        })
    }
}

async fn balances<T: Transaction>(tx: &T) -> Result<Vec<u64>, Error> {
    let range = RangeOption::from(Subspace::from("ledger").range());
    let rows = tx.get_range_all(range, Isolation::Serializable).await?;
    Ok(rows.iter().map(|row| balance(Some(&row.value))).collect())
}

/// A refusal is an answer; an error of the database that left nothing behind is not.
fn refused(why: Refusal) -> Outcome<bool> {
    match why.fdb() {
        None => Outcome::Answered(false),
        Some(error) => Outcome::GaveUp(error),
    }
}

fn main() {
    Shake::<Ledger>::new().seeds(0..200).assert();
    for bug in BUGS {
        let (seed, _) = Shake::<Ledger>::new().seeds(0..200).bug(bug.name).assert_caught();
        assert!(seed < 200);
    }
}

#[test]
fn the_ledger_stands() {
    Shake::<Ledger>::new().seeds(0..50).assert();
}

#[test]
fn its_planted_bugs_are_caught() {
    for bug in BUGS {
        Shake::<Ledger>::new().seeds(0..100).bug(bug.name).assert_caught();
    }
}
