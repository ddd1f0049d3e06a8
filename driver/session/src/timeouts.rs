//! The timeouts of transactions, as the program's commands set them: `TIMEOUT` (500) and the database's
//! `TRANSACTION_TIMEOUT` (500).
//!
//! The simulated client ends calls at their timeouts. This copy is for code that needs the deadlines outside
//! of it: a remote session without a server has no such client, and the main task must advance virtual time
//! for timeouts that nothing else waits for.

use crate::{Action, Command, DatabaseId, TransactionId};
use std::{collections::BTreeMap, time::Duration};

/// The code of both options.
const TIMEOUT: i32 = 500;

/// A transaction and its database.
pub type Of = (DatabaseId, TransactionId);

/// The timeouts of the transactions that exist. All times are of one clock, which the caller chooses.
#[derive(Default)]
pub struct Timeouts {
    defaults: BTreeMap<DatabaseId, Option<Duration>>,
    transactions: BTreeMap<Of, Timed>,
    /// No transaction has a later deadline.
    latest: Duration,
}

#[derive(Clone, Copy)]
struct Timed {
    born: Duration,
    limit: Option<Duration>,
}

/// Milliseconds as an option has them; 0 is no limit.
fn limit(value: Option<&[u8]>) -> Option<Duration> {
    let milliseconds = i64::from_le_bytes(value?.try_into().ok()?);
    u64::try_from(milliseconds).ok().filter(|&limit| limit > 0).map(Duration::from_millis)
}

impl Timeouts {
    /// Takes note of a command that was given at this time.
    pub fn see(&mut self, database: DatabaseId, command: &Command, now: Duration) {
        match command {
            Command::SetDatabaseOption { code: TIMEOUT, value } => {
                self.defaults.insert(database, limit(value.as_deref()));
            }
            Command::SetDatabaseOption { .. } | Command::Close => {}
            Command::Create(id) | Command::Transaction(id, Action::Reset) => {
                let limit = self.defaults.get(&database).copied().flatten();
                self.insert((database, *id), Timed { born: now, limit });
            }
            Command::Transaction(id, Action::Destroy) => {
                self.transactions.remove(&(database, *id));
            }
            Command::Transaction(id, Action::SetOption { code: TIMEOUT, value }) => {
                if let Some(timed) = self.transactions.get(&(database, *id)).copied() {
                    self.insert((database, *id), Timed { limit: limit(value.as_deref()), ..timed });
                }
            }
            Command::Transaction(..) => {}
        }
    }

    fn insert(&mut self, of: Of, timed: Timed) {
        let deadline = timed.limit.map_or(Duration::ZERO, |limit| timed.born.saturating_add(limit));
        self.latest = self.latest.max(deadline);
        self.transactions.insert(of, timed);
    }

    /// A client is gone, with its transactions.
    pub fn forget(&mut self, database: DatabaseId) {
        self.defaults.remove(&database);
        self.transactions.retain(|(of, _), _| *of != database);
    }

    /// When the time of a transaction is over.
    pub fn deadline(&self, of: Of) -> Option<Duration> {
        let Timed { born, limit } = self.transactions.get(&of)?;
        limit.map(|limit| born.saturating_add(limit))
    }

    /// Whether the time of a transaction begins with this command, or gets another end by it. The command
    /// must have been seen ([`see`](Timeouts::see)).
    pub fn begins(&self, database: DatabaseId, command: &Command) -> bool {
        match command {
            Command::Transaction(_, Action::SetOption { code: TIMEOUT, .. }) => true,
            Command::Create(id) | Command::Transaction(id, Action::Reset) => {
                self.deadline((database, *id)).is_some()
            }
            _ => false,
        }
    }

    /// Whether there is a transaction whose time will be over after `now`.
    pub fn is_any_after(&self, now: Duration) -> bool {
        self.latest > now
            && self.transactions.keys().any(|of| self.deadline(*of).is_some_and(|deadline| deadline > now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn a_timeout_counts_from_the_creation_or_the_reset_and_the_database_has_a_default() {
        let (database, id) = (DatabaseId(0), TransactionId(1));
        let seconds = Duration::from_secs;
        let value = |milliseconds: i64| Some(Bytes::copy_from_slice(&milliseconds.to_le_bytes()));
        let mut timeouts = Timeouts::default();
        let set = |milliseconds| {
            Command::Transaction(id, Action::SetOption { code: TIMEOUT, value: value(milliseconds) })
        };
        timeouts.see(database, &Command::Create(id), seconds(1));
        assert_eq!(timeouts.deadline((database, id)), None);
        timeouts.see(database, &set(2_000), seconds(2));
        assert_eq!(timeouts.deadline((database, id)), Some(seconds(3)));
        assert!(timeouts.is_any_after(seconds(2)) && !timeouts.is_any_after(seconds(3)));
        timeouts.see(
            database,
            &Command::SetDatabaseOption { code: TIMEOUT, value: value(5_000) },
            seconds(2),
        );
        assert_eq!(timeouts.deadline((database, id)), Some(seconds(3)), "it has one of its own");
        timeouts.see(database, &Command::Transaction(id, Action::Reset), seconds(3));
        assert_eq!(timeouts.deadline((database, id)), Some(seconds(8)));
        timeouts.see(database, &set(0), seconds(3));
        assert_eq!(timeouts.deadline((database, id)), None);
        timeouts.see(database, &Command::Transaction(id, Action::Destroy), seconds(3));
        assert!(timeouts.transactions.is_empty());
    }
}
