//! One case: damaged rows in a fresh cluster, and operations on them.

use super::{Memory, Wrong, bytes::Write, store::Store};
use crate::{
    describe::{
        erased::{AnySession, AnyValue, AnyWorkload},
        workload::Outcome,
    },
    judge::{finding::is_of_call, panics},
    run::{calm, pool, runner},
};
use bytes::Bytes;
use futures::{
    FutureExt,
    future::{Either, select},
};
use shaketable_sim::seed::Seed;
use shaketable_tx::{self as tx, Database, DatabaseOption, Db, Error, Transaction};
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

/// The time limit of an operation, in virtual time.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of operations of a case.
const OPERATIONS: usize = 20;

/// The stack size of a case, bytes: that of a thread of a program that says nothing else.
const STACK: usize = 2 << 20;

/// The bytes of the rows that are stored in one transaction.
const BATCH: usize = 1 << 20;

/// What is done in a case.
#[derive(Clone)]
struct Case {
    name: String,
    workload: AnyWorkload,
    /// The rows; `None` if a key is cleared.
    rows: Vec<(Bytes, Option<Bytes>)>,
    operations: Vec<(usize, AnyValue)>,
    /// Whether operations see the effects of earlier ones. Otherwise each begins with the damaged rows.
    keeps: bool,
    memory: Option<Memory>,
}

/// Runs a case. Returns the first operation that does not end as it must.
pub(super) fn run(store: &Store, case: u64, memory: Option<Memory>) -> Option<Wrong> {
    let workload = store.workload.name();
    let mut draws = Seed(case).stream(workload);
    let writes = store.damages.of(case, &mut draws);
    let rows: Vec<_> = store.rows.iter().map(|row| (row.key.clone(), Some(row.value.clone()))).collect();
    let damage = writes.iter().map(|write| (write.key.clone(), write.value.clone()));
    let keeps = draws.chance(0.3);
    let draw = |_| {
        let of_kind = draws.pick(&store.operations);
        draws.pick(of_kind).clone()
    };
    let undamaged = Case {
        name: format!("{workload}, case {case}"),
        workload: store.workload.clone(),
        operations: (0..OPERATIONS).map(draw).collect(),
        rows,
        keeps,
        memory,
    };
    let damaged = Case { rows: undamaged.rows.iter().cloned().chain(damage).collect(), ..undamaged.clone() };
    let what = damaged.run().err()?;
    // An operation that ends like this without the damage, such as one that asks for what is too large, does
    // not because of it.
    if undamaged.run().is_err_and(|without| without == what) {
        return None;
    }
    Some(Wrong { workload, case, what, damage: writes.iter().map(Write::to_string).collect() })
}

impl Case {
    /// Does the operations in a fresh cluster. The error is the first one that does not end as it must.
    fn run(self) -> Result<(), String> {
        let (name, this) = (self.name.clone(), Arc::new(self));
        let simulated = || {
            let ended = catch_unwind(AssertUnwindSafe(|| {
                calm::simulate_here(move |db| {
                    let this = this.clone();
                    // On the heap: without optimization, a future is moved once for each function that it
                    // passes through.
                    async move { this.perform(db).boxed_local().await }
                })
            }));
            ended.unwrap_or_else(|panic| Err(panics::caught(&*panic).to_string()))
        };
        let recorded = || panics::recorded(simulated);
        runner::watched(name.clone(), || pool::apart(name, STACK, recorded))
    }

    async fn perform(&self, db: Db) -> Result<(), String> {
        let mut sessions = BTreeMap::new();
        for (number, (client, op)) in self.operations.iter().enumerate() {
            if number == 0 || !self.keeps {
                sessions.clear();
                self.store(&db).await.map_err(|error| format!("the rows cannot be stored: {error}"))?;
            }
            let operation = format!("operation {number} of client {client} ({op:?})");
            if let Some(memory) = self.memory {
                (memory.begin)(&format!("{}: {operation}", self.name));
            }
            let done = self.operate(&db, &mut sessions, *client, op);
            let done = AssertUnwindSafe(done).catch_unwind();
            let wrong = match select(done.boxed_local(), db.env().sleep(PATIENCE)).await {
                Either::Left((Ok(ended), _)) => ended.err(),
                Either::Left((Err(panic), _)) => Some(format!("panicked: {}", panics::caught(&*panic))),
                Either::Right(_) => Some(format!("does not end within {PATIENCE:?}")),
            };
            let excess = self.memory.map(|memory| ((memory.most)(), memory.limit));
            let excess = excess.filter(|(most, limit)| most > limit);
            let excess = excess.map(|(most, limit)| format!("took {most} bytes of memory, of {limit}"));
            if let Some(wrong) = wrong.or(excess) {
                return Err(format!("{operation} {wrong}"));
            }
        }
        Ok(())
    }

    /// Makes the damaged rows all that is stored.
    async fn store(&self, db: &Db) -> tx::Result<()> {
        // An operation may have set one.
        db.set_option(DatabaseOption::TransactionTimeout(0))?;
        let size = |row: &(Bytes, Option<Bytes>)| row.0.len() + row.1.as_ref().map_or(0, Bytes::len);
        let mut rest = &self.rows[..];
        let mut is_first = true;
        while is_first || !rest.is_empty() {
            let mut bytes = 0;
            let mut fits = |row| {
                bytes += size(row);
                bytes <= BATCH
            };
            let (batch, next) = rest.split_at(rest.iter().position(|row| !fits(row)).unwrap_or(rest.len()));
            let written = db.run(|tx, _| async move {
                if is_first {
                    tx.clear_range(b"", b"\xff");
                }
                for (key, value) in batch {
                    match value {
                        Some(value) => tx.set(key, value),
                        None => tx.clear(key),
                    }
                }
                Ok::<_, Error>(())
            });
            written.await.map_err(|e| e.error)?;
            (rest, is_first) = (next, false);
        }
        Ok(())
    }

    /// Does an operation of a client. The error says what is wrong.
    async fn operate(
        &self,
        db: &Db,
        sessions: &mut BTreeMap<usize, AnySession>,
        client: usize,
        op: &AnyValue,
    ) -> Result<(), String> {
        let mut session = match sessions.remove(&client) {
            Some(session) => session,
            None => match self.workload.open(db, client).await {
                Ok(session) => session,
                // It may read what is damaged.
                Err(error) => return accepted(error),
            },
        };
        // A drawn timeout would end operations before they have read what is damaged.
        db.set_option(DatabaseOption::TransactionTimeout(0)).map_err(|e| e.to_string())?;
        self.workload.prepare(&mut session).await;
        let outcome = match self.workload.perform(&mut session, op).await {
            Outcome::Unknown(error) => self.workload.resolve(&mut session, op, error).await,
            outcome => outcome,
        };
        sessions.insert(client, session);
        // What is answered can be shown, whatever it contains.
        drop(format!("{outcome:?}"));
        match outcome {
            Outcome::Failed(error) | Outcome::Unknown(error) => accepted(error),
            Outcome::Answered(_) | Outcome::Violated(_) => Ok(()),
        }
    }
}

/// An error that ends an operation is not one about what FoundationDB was asked: a layer checks what it has
/// read before it passes it on.
fn accepted(error: Error) -> Result<(), String> {
    match is_of_call(error) {
        true => Err(format!("asked FoundationDB for what is stored: {error} ({})", error.code())),
        false => Ok(()),
    }
}
