//! How one call is performed: in one transaction, or in several if it waits.

use super::{
    Answer, Kind, Log, Name, Op,
    operations::{TURN, item, items, value},
    planted::{self, Planted},
    space,
};
use crate::shared::one_call;
use shaketable::{specimen, workload::Outcome};
use shaketable_layers::log::{self, Appended, Entry, Error, Position};
use shaketable_tx::{
    self as tx, Database, DatabaseOption, Db,
    Isolation::{self, Serializable, Snapshot},
    RetryError, RunError, Transaction, Tx,
    once::{self, Fate, OpId, Session},
};
use std::time::Duration;

/// Performs a call correctly, a look at this isolation.
pub(super) async fn perform(tx: &Tx, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
    let log = log::Log::new(space());
    let tx = &match op {
        Op::Page(..) => one_call(tx, true).await,
        Op::Succeed(_) | Op::Turn(..) | Op::Trim(_) => one_call(tx, false).await,
        Op::Append(..) | Op::Follow(..) | Op::Idle(..) | Op::Last => tx.clone(),
    };
    match op {
        Op::Append(name, byte, length) => {
            log.append(tx, &value(*name, *byte, *length)).await?;
            Ok(Answer::Written)
        }
        Op::Page(skipped, limit) => {
            let behind = skip(tx, *skipped, isolation).await?;
            let after = behind.map(|(position, _)| position);
            let entries = log.scan(tx, after, *limit, isolation).await?;
            Ok(Answer::Behind(behind.map(|(_, name)| name), items(&entries)))
        }
        // It is always alone in its operation.
        Op::Idle(..) => Ok(Answer::First(Vec::new())),
        Op::Follow(count, ..) => Ok(Answer::First(items(&log.scan(tx, None, *count, Serializable).await?))),
        Op::Succeed(name) => {
            let last = log.last(tx, Serializable).await?;
            log.append(tx, &value(*name, TURN.0, TURN.1)).await?;
            Ok(Answer::Last(last.map(|last| item(last.position.stamp, &last.value))))
        }
        Op::Turn(name, _) => {
            let last = log.last(tx, Serializable).await?;
            let is_turn = is_turn_of(name.0, last.as_ref().map(name_of));
            if is_turn {
                log.append(tx, &value(*name, TURN.0, TURN.1)).await?;
            }
            Ok(Answer::Turn(is_turn))
        }
        Op::Last => {
            let last = log.last(tx, isolation).await?;
            Ok(Answer::Last(last.map(|last| item(last.position.stamp, &last.value))))
        }
        Op::Trim(entries) => {
            let trimmed = log.scan(tx, None, *entries, Serializable).await?;
            if let Some(last) = trimmed.last() {
                log.trim(tx, last.position).await?;
            }
            Ok(Answer::Trimmed(trimmed.len()))
        }
    }
}

/// The position after this many entries, and the name of the entry there.
pub(super) async fn skip(
    tx: &Tx,
    skip: usize,
    isolation: Isolation,
) -> Result<Option<(Position, Name)>, Error> {
    let skipped = log::Log::new(space()).scan(tx, None, skip, isolation).await?;
    Ok(skipped.last().map(|last| (last.position, item(last.position.stamp, &last.value).name)))
}

/// Whether it is a client's turn when the last entry has this name.
pub(super) fn is_turn_of(client: u32, last: Option<Name>) -> bool {
    last.map_or(client == 0, |last| last.0 != client)
}

fn name_of(entry: &Entry) -> Name {
    item(entry.position.stamp, &entry.value).name
}

impl Log {
    /// Performs a call that takes several transactions because it waits, or because it verifies where an
    /// entry is; such a call is never combined with others.
    pub(super) async fn perform_alone(
        &self,
        session: &mut Session<Db>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        let [op] = ops else { return None };
        let db = session.database().clone();
        let is_right = self.planted.is_none_or(Planted::is_in_tail);
        Some(match *op {
            Op::Follow(count, page, patience) => {
                specimen::ran(Box::pin(self.follow(&db, count, page, patience)).await)
            }
            Op::Idle(limit, patience) => {
                let after = (limit > 0).then_some(Position { stamp: [0xfe; 10], rank: 0 });
                let idle = Box::pin(self.tail(&db, after, limit, patience)).await;
                specimen::ran(idle.map(|entries| vec![Answer::First(items(&entries))]))
            }
            Op::Turn(name, patience) => match Box::pin(self.await_turn(&db, name.0, patience)).await {
                // The rest is performed as for any other call.
                Ok(true) => return None,
                waited => specimen::ran(waited.map(|_| vec![Answer::Turn(false)])),
            },
            Op::Append(name, byte, length) if is_right && byte % 4 < 2 => {
                let value = value(name, byte, length);
                let appended = match byte % 4 {
                    0 => Box::pin(self.append_bare(&db, &value)).await,
                    _ => Box::pin(self.append_once(session, &value)).await,
                };
                match appended {
                    Ok(()) => Outcome::Answered(specimen::Answer::Done(vec![Answer::Written])),
                    Err(outcome) => outcome,
                }
            }
            _ => return None,
        })
    }
}

impl Log {
    async fn tail(
        &self,
        db: &Db,
        after: Option<Position>,
        limit: usize,
        patience: u64,
    ) -> Result<Vec<Entry>, RunError<Error>> {
        let patience = Duration::from_millis(patience);
        match self.planted {
            Some(planted) if planted.is_in_tail() => planted::tail(planted, db, after, limit, patience).await,
            _ => log::Log::new(space()).tail(db, after, limit, patience).await,
        }
    }

    /// Follows the log from its first entry on.
    async fn follow(
        &self,
        db: &Db,
        count: usize,
        page: usize,
        patience: u64,
    ) -> Result<Vec<Answer>, RunError<Error>> {
        let mut entries: Vec<Entry> = Vec::new();
        while entries.len() < count {
            let after = entries.last().map(|entry| entry.position);
            let more = self.tail(db, after, page.min(count - entries.len()), patience).await?;
            if more.is_empty() {
                break;
            }
            entries.extend(more);
        }
        Ok(vec![Answer::First(items(&entries))])
    }

    /// Waits until the last entry is another client's. Returns whether it is.
    async fn await_turn(&self, db: &Db, client: u32, patience: u64) -> Result<bool, RunError<Error>> {
        let log = &log::Log::new(space());
        let mut last = db.run(|tx, _| async move { log.last(&tx, Snapshot).await }).await?;
        while !is_turn_of(client, last.as_ref().map(name_of)) {
            let after = last.map(|last| last.position);
            last = self.tail(db, after, 10, patience).await?.pop();
            if last.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Appends in a separate transaction without a session, and verifies the position of the entry.
    async fn append_bare(&self, db: &Db, value: &[u8]) -> Result<(), Outcome<specimen::Answer<Answer>>> {
        let log = log::Log::new(space());
        let tx = db.create_transaction().map_err(Outcome::Failed)?;
        let position = loop {
            let appended = match log.append(&tx, value).await {
                Ok(appended) => appended,
                Err(Error::Fdb(e)) => {
                    tx.on_error(e).await.map_err(Outcome::Failed)?;
                    continue;
                }
                Err(e) => return Err(specimen::refused(&e)),
            };
            let stamp = tx.get_versionstamp();
            match tx.commit().await {
                Ok(()) => break appended.stamped(stamp.await.map_err(Outcome::Unknown)?),
                Err(e) if e.is_retryable_not_committed() => tx.on_error(e).await.map_err(Outcome::Failed)?,
                Err(e) => return Err(Outcome::Unknown(e)),
            }
        };
        self.expect_at(db, position, value).await
    }

    /// Appends exactly once, and verifies the position of the entry.
    async fn append_once(
        &self,
        session: &mut Session<Db>,
        value: &[u8],
    ) -> Result<(), Outcome<specimen::Answer<Answer>>> {
        let log = &log::Log::new(space());
        let appended = match session.apply(|tx| async move { log.append(&tx, value).await }).await {
            once::Outcome::Applied(appended) => appended,
            once::Outcome::Refused(e) => return Err(specimen::refused(&e)),
            once::Outcome::Unknown(op) => known(session, op).await?,
        };
        match appended.position() {
            Some(position) => self.expect_at(session.database(), position, value).await,
            None => Err(Outcome::Violated("an append that was applied has no position".into())),
        }
    }

    /// Verifies that the entry at this position is this one, unless it may have been trimmed.
    async fn expect_at(
        &self,
        db: &Db,
        position: Position,
        value: &[u8],
    ) -> Result<(), Outcome<specimen::Answer<Answer>>> {
        let before = Position { rank: position.rank - 1, ..position };
        let log = &log::Log::new(space());
        let looked = db.run(|tx, _| async move { log.scan(&tx, Some(before), 1, Snapshot).await }).await;
        match looked {
            Ok(found)
                if self.kind != Kind::Trimmed
                    && found != [Entry { position, value: value.to_vec().into() }] =>
            {
                let found = items(&found);
                Err(Outcome::Violated(format!("the entry that was appended at {position:?} is {found:?}")))
            }
            // It is known that the entry was appended, whether or not this read succeeds.
            _ => Ok(()),
        }
    }
}

/// The position at which an operation whose outcome was unknown has appended, however long it takes to learn
/// it. It is resolved here because what such an operation recorded is not an answer of this workload.
/// Timeouts are disabled from now on.
async fn known(session: &mut Session<Db>, op: OpId) -> Result<Appended, Outcome<specimen::Answer<Answer>>> {
    let db = session.database().clone();
    db.set_option(DatabaseOption::TransactionTimeout(0)).map_err(Outcome::Unknown)?;
    loop {
        return match session.resolve(op).await {
            Ok(Fate::Applied(appended)) => Ok(appended),
            Ok(Fate::NotApplied) => Err(Outcome::Failed(tx::Error::COMMIT_UNKNOWN_RESULT)),
            Ok(Fate::Forgotten) => Err(Outcome::Violated("a session's own operation was forgotten".into())),
            Err(e) if e.fdb().is_some() => {
                db.env().sleep(Duration::from_millis(10)).await;
                continue;
            }
            Err(e) => Err(Outcome::Violated(e.to_string())),
        };
    }
}
