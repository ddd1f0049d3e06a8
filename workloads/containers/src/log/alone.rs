//! Calls that take several transactions, because they wait, or because they verify where an entry is. They do
//! so only if they are not combined with others.

use super::{
    Item, Kind, LONG, Log, LogAnswer, LogOp, is_turn_of, item_of, items, layer,
    planted::{self, Mistake},
};
use shaketable::{
    prelude::*,
    specimen::{Answer, ran, refused},
};
use shaketable_layers::log::{Appended, Entry, Error, Position};
use shaketable_tx::{
    DatabaseOption, RunError,
    once::{Fate, OpId},
};
use std::time::Duration;

/// A position that no entry reaches.
const NEVER: Position = Position { stamp: [0xfe; 10], rank: 0 };

/// How a call ended that was alone in its transaction.
type Ended = Outcome<Answer<LogAnswer>>;

impl Log {
    /// Performs a call that waits, with a mistake in how its tails do.
    pub(super) async fn waited(&self, db: &Db, ops: &[LogOp], mistake: Option<Mistake>) -> Option<Ended> {
        Some(match *ops {
            [LogOp::follow { count, page, patience }] => {
                let followed = Box::pin(follow(db, count, page, patience, mistake)).await;
                ran(followed.map(|items| vec![LogAnswer::follow(items)]))
            }
            [LogOp::idle { limit, patience }] => {
                let idle = Box::pin(tail(db, Some(NEVER), limit, patience, mistake)).await;
                ran(idle.map(|entries| vec![LogAnswer::idle(items(&entries))]))
            }
            [LogOp::nothing {}] => {
                let idle = Box::pin(tail(db, None, 0, 5 * LONG, mistake)).await;
                ran(idle.map(|entries| vec![LogAnswer::nothing(items(&entries))]))
            }
            [LogOp::turn { name, patience }] => {
                match Box::pin(await_turn(db, name.0, patience, mistake)).await {
                    // The rest is performed as for any other call.
                    Ok(true) => return None,
                    waited => ran(waited.map(|_| vec![LogAnswer::turn(false)])),
                }
            }
            _ => return None,
        })
    }

    /// Appends, with or without the session, and verifies the position of the entry.
    pub(super) async fn verified(&self, session: &mut Session<Db>, bare: bool, value: &[u8]) -> Ended {
        let appended = match bare {
            true => Box::pin(append_bare(session.database(), value)).await,
            false => Box::pin(append_once(session, value)).await,
        };
        let found = match appended {
            Ok(position) => self.expect_at(session.database(), position, value).await,
            Err(outcome) => return outcome,
        };
        match found {
            Ok(()) => Outcome::Answered(Answer::Done(vec![LogAnswer::append])),
            Err(why) => Outcome::Violated(why),
        }
    }

    /// Verifies that the entry at this position is this one, unless it may have been trimmed.
    async fn expect_at(&self, db: &Db, position: Position, value: &[u8]) -> Result<(), String> {
        let before = Position { rank: position.rank - 1, ..position };
        let looked = db.run(|tx, _| async move { layer().scan(&tx, Some(before), 1, Snapshot).await }).await;
        match looked {
            Ok(found)
                if self.kind != Kind::Trimmed
                    && found != [Entry { position, value: value.to_vec().into() }] =>
            {
                Err(format!("the entry that was appended at {position:?} is {:?}", items(&found)))
            }
            // It is known that the entry was appended, whether or not this read succeeds.
            _ => Ok(()),
        }
    }
}

/// Waits up to so many milliseconds.
async fn tail(
    db: &Db,
    after: Option<Position>,
    limit: usize,
    patience: u64,
    mistake: Option<Mistake>,
) -> Result<Vec<Entry>, RunError<Error>> {
    let patience = Duration::from_millis(patience);
    match mistake {
        Some(mistake) => planted::tail(mistake, db, after, limit, patience).await,
        None => layer().tail(db, after, limit, patience).await,
    }
}

/// Follows the log from its first entry on.
async fn follow(
    db: &Db,
    count: usize,
    page: usize,
    patience: u64,
    mistake: Option<Mistake>,
) -> Result<Vec<Item>, RunError<Error>> {
    let mut entries: Vec<Entry> = Vec::new();
    while entries.len() < count {
        let after = entries.last().map(|entry| entry.position);
        let more = tail(db, after, page.min(count - entries.len()), patience, mistake).await?;
        if more.is_empty() {
            break;
        }
        entries.extend(more);
    }
    Ok(items(&entries))
}

/// Waits until the last entry is another client's. Returns whether it is.
async fn await_turn(
    db: &Db,
    client: u32,
    patience: u64,
    mistake: Option<Mistake>,
) -> Result<bool, RunError<Error>> {
    let mut last = db.run(|tx, _| async move { layer().last(&tx, Snapshot).await }).await?;
    while !is_turn_of(client, last.as_ref().map(|last| item_of(last).name)) {
        let after = last.map(|last| last.position);
        last = tail(db, after, 10, patience, mistake).await?.pop();
        if last.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Appends in a separate transaction without a session.
async fn append_bare(db: &Db, value: &[u8]) -> Result<Position, Ended> {
    let tx = db.create_transaction().map_err(Outcome::Failed)?;
    loop {
        let appended = match layer().append(&tx, value).await {
            Ok(appended) => appended,
            Err(Error::Fdb(e)) => {
                tx.on_error(e).await.map_err(Outcome::Failed)?;
                continue;
            }
            Err(e) => return Err(refused(&e)),
        };
        let stamp = tx.get_versionstamp();
        match tx.commit().await {
            Ok(()) => return Ok(appended.stamped(stamp.await.map_err(Outcome::Unknown)?)),
            Err(e) if e.is_retryable_not_committed() => tx.on_error(e).await.map_err(Outcome::Failed)?,
            Err(e) => return Err(Outcome::Unknown(e)),
        }
    }
}

/// Appends exactly once.
async fn append_once(session: &mut Session<Db>, value: &[u8]) -> Result<Position, Ended> {
    let appended = match session.apply(|tx| async move { layer().append(&tx, value).await }).await {
        once::Outcome::Applied(appended) => appended,
        once::Outcome::Refused(e) => return Err(refused(&e)),
        once::Outcome::Unknown(op) => known(session, op).await?,
    };
    let unplaced = || Outcome::Violated("an append that was applied has no position".into());
    appended.position().ok_or_else(unplaced)
}

/// The position at which an operation whose outcome was unknown has appended, however long it takes to learn
/// it. It is resolved here because the position is verified. Timeouts are disabled from now on.
async fn known(session: &mut Session<Db>, op: OpId) -> Result<Appended, Ended> {
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
