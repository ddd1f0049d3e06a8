//! A transaction that begins again with its commit, as in old versions of the API.

use super::{selected::api_version, transaction::FDBTransaction, versions::KEEPS_COMMITTED};
use parking_lot::Mutex;
use shaketable_session::{Action, Call, Command, TransactionId};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// What a commit makes of a transaction before version 700: it begins again, with a new read version,
/// although the transaction itself can only be reset.
#[derive(Default)]
pub struct Restart {
    /// The number of the part of the transaction's life between two resets.
    life: AtomicU64,
    /// One more than the life in which a commit has ended, or 0.
    ended: AtomicU64,
    /// The transaction that has the new read version.
    fresh: Mutex<Option<TransactionId>>,
}

impl Restart {
    /// The life in which a commit is made.
    pub fn life(&self) -> u64 {
        self.life.load(SeqCst)
    }

    /// A commit of this life has ended, with or without success.
    pub fn commit_ended(&self, life: u64) {
        if api_version() < KEEPS_COMMITTED {
            self.ended.store(life + 1, SeqCst);
        }
    }
}

/// Whether a call is answered by what has begun again.
fn is_of_the_new_one(call: &Call) -> bool {
    matches!(call, Call::GetReadVersion | Call::GetTotalCost | Call::GetTagThrottledDuration)
}

impl FDBTransaction {
    /// The transaction that a call is made on.
    pub fn called(&self, call: &Call) -> TransactionId {
        let restart = &self.restart;
        if matches!(call, Call::OnError(_)) {
            self.renew();
        }
        if restart.ended.load(SeqCst) != restart.life() + 1 {
            return self.id;
        }
        if is_of_the_new_one(call) {
            let create = || {
                let id = self.session.next_transaction();
                self.session.command(self.database, Command::Create(id));
                id
            };
            return *restart.fresh.lock().get_or_insert_with(create);
        }
        if !matches!(call, Call::GetApproximateSize | Call::GetVersionstamp) {
            // A transaction that is used after its commit has an error, which every later call returns.
            self.renew();
        }
        self.id
    }

    /// The transaction is reset, or cannot be used until it is.
    pub fn renew(&self) {
        self.restart.life.fetch_add(1, SeqCst);
        if let Some(fresh) = self.restart.fresh.lock().take() {
            self.session.command(self.database, Command::Transaction(fresh, Action::Destroy));
        }
    }
}
