//! The content of the queue as its rows store it, the invariants that hold at every version, and the effect
//! of several calls in one transaction.

use super::{Act, ActAnswer, Handling, Name, leased, operations::name};
use crate::shared::{pop_first, put, rows};
use imbl::OrdMap;
use shaketable_layers::{leased_queue::Row, queue::Position};
use shaketable_tx::{self as tx, KeyValue, Tx};
use std::collections::BTreeSet;

/// What is stored, as the rows describe it. A copy is cheap, and so is what differs between two stages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) waiting: OrdMap<Position, Name>,
    pub(super) claimed: OrdMap<Position, Name>,
    /// For each lease its token, its revision, and whether it is held.
    pub(super) leases: OrdMap<Position, (i64, i64, bool)>,
}

impl Stage {
    /// The stage after these rows were changed: as they were, and as they are.
    pub(super) fn changed(&self, (were, are): (Vec<KeyValue>, Vec<KeyValue>)) -> Result<Stage, String> {
        let (queue, mut stage) = (leased(), self.clone());
        for (row, stands) in were.iter().map(|row| (row, false)).chain(are.iter().map(|row| (row, true))) {
            match queue.row(row).map_err(|e| e.to_string())? {
                Row::Waiting(item) => put(&mut stage.waiting, item.position, name(&item.value)?, stands),
                Row::Claimed(item) => put(&mut stage.claimed, item.position, name(&item.value)?, stands),
                Row::Lease(lease, held) => {
                    let row = (lease.hold.token, lease.revision, held);
                    put(&mut stage.leases, lease.hold.position, row, stands);
                }
            }
        }
        Ok(stage)
    }

    /// Performs several calls of one transaction. Returns what they return, and what was claimed; `None` if
    /// one of them would read an item that they have enqueued.
    pub(super) fn together(&mut self, acts: &[Act]) -> Option<(Vec<ActAnswer>, Vec<Taken>)> {
        let (mut answers, mut taken, mut own) = (Vec::new(), Vec::new(), false);
        for act in acts {
            answers.push(match act {
                Act::Put(_) => {
                    own = true;
                    ActAnswer::Put
                }
                Act::Count(most) => {
                    let most = (*most).max(1);
                    if own && self.waiting.len() < most {
                        return None;
                    }
                    ActAnswer::Count(self.waiting.len().min(most), self.claimed.len().min(most))
                }
                Act::Leases(_) => {
                    let held = self.leases.iter().filter(|(_, (_, _, held))| *held);
                    ActAnswer::Leases(
                        held.map(|(at, (token, revision, _))| (*at, *token, *revision)).collect(),
                    )
                }
                Act::Stale => ActAnswer::Ended(0),
                Act::Take(handling) => match pop_first(&mut self.waiting) {
                    None if own => return None,
                    None => ActAnswer::Nothing,
                    Some((at, name)) => {
                        let token = self.leases.get(&at).map_or(0, |(token, ..)| *token) + 1;
                        let (revision, lost) = match handling {
                            Handling::Acknowledge => {
                                self.leases.remove(&at);
                                (0, true)
                            }
                            Handling::Release | Handling::Expire => {
                                self.leases.insert(at, (token, 0, false));
                                self.waiting.insert(at, name);
                                (0, true)
                            }
                            Handling::Renew(times) => {
                                self.leases.insert(at, (token, i64::from(*times), true));
                                self.claimed.insert(at, name);
                                (i64::from(*times), false)
                            }
                        };
                        taken.push((at, name, *handling));
                        ActAnswer::Taken(name, token, revision, lost)
                    }
                },
            });
        }
        Some((answers, taken))
    }

    /// Checks what must hold at every version: an item is stored in one place, is claimed exactly if its
    /// lease is held, and no lease is left of an item that is gone.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        let twice = self.waiting.iter().chain(&self.claimed).find(|(_, name)| !names.insert(**name));
        if let Some((position, name)) = twice {
            return Err(format!("the item {name:?} at {position:?} is there twice"));
        }
        let held = |position: &Position| self.leases.get(position).is_some_and(|(_, _, held)| *held);
        if let Some((position, name)) = self.claimed.iter().find(|(position, _)| !held(position)) {
            return Err(format!("the item {name:?} at {position:?} is claimed under no lease"));
        }
        let orphan = self.leases.keys().find(|&position| {
            !if held(position) {
                self.claimed.contains_key(position)
            } else {
                self.waiting.contains_key(position)
            }
        });
        orphan.map_or(Ok(()), |position| Err(format!("the lease at {position:?} is of no item")))
    }
}

/// An item that a transaction claimed, and what the transaction did with it.
type Taken = (Position, Name, Handling);

/// Reads everything that is stored.
pub(super) async fn stored(tx: &Tx) -> tx::Result<Result<Stage, String>> {
    Ok(Stage::default().changed((Vec::new(), rows(tx, leased().subspace()).await?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_layers::queue::ItemId;

    #[test]
    fn broken_invariants_are_found() {
        let at = |n: u8| Position::Commit { stamp: [n; 10], rank: 0, id: ItemId([n; 16]) };
        let mut stage = Stage::default();
        stage.waiting.insert(at(1), (0, 0));
        stage.waiting.insert(at(2), (0, 1));
        stage.claimed.insert(at(3), (0, 2));
        stage.leases.insert(at(2), (1, 0, false));
        stage.leases.insert(at(3), (4, 2, true));
        assert_eq!(stage.check(), Ok(()));
        stage.leases.insert(at(1), (1, 0, true));
        assert!(stage.check().unwrap_err().contains("of no item"));
        stage.leases.remove(&at(1));
        stage.leases.insert(at(3), (4, 2, false));
        assert!(stage.check().unwrap_err().contains("under no lease"));
        stage.claimed.insert(at(3), (0, 0));
        assert!(stage.check().unwrap_err().contains("twice"));
    }
}
