//! The content of the queue as its rows store it, the invariants that hold at every version, and the effect
//! of several calls in one transaction.

use super::{Name, Part, PartAnswer, RequestAnswer, RequestCall, operations::name, staged};
use crate::shared::{pop_first, put, rows};
use imbl::{OrdMap, OrdSet};
use shaketable_layers::{
    queue::{ItemId, Position},
    staged_queue::{Error, Request, Row},
};
use shaketable_sim::proto::Version;
use shaketable_tx::{self as tx, KeyValue, Tx};
use std::collections::BTreeSet;

/// What is stored, as the rows describe it. A copy is cheap, and so is what differs between two stages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) items: OrdMap<Position, Name>,
    pub(super) requests: OrdSet<Request>,
    pub(super) parked: OrdMap<ItemId, Option<(Position, Name)>>,
}

impl Stage {
    /// The stage after these rows were changed: as they were, and as they are.
    pub(super) fn changed(&self, (were, are): (Vec<KeyValue>, Vec<KeyValue>)) -> Result<Stage, String> {
        let (queue, mut stage) = (staged(), self.clone());
        for (row, stands) in were.iter().map(|row| (row, false)).chain(are.iter().map(|row| (row, true))) {
            match queue.row(row).map_err(|e| e.to_string())? {
                Row::Item(item) => put(&mut stage.items, item.position, name(&item)?, stands),
                Row::Request(request) => drop(match stands {
                    true => stage.requests.insert(request),
                    false => stage.requests.remove(&request),
                }),
                Row::Parked(ticket, given) => {
                    let given = given.map(|item| Ok::<_, String>((item.position, name(&item)?)));
                    put(&mut stage.parked, ticket, given.transpose()?, stands);
                }
            }
        }
        Ok(stage)
    }

    /// Checks what must hold at every version: each item is stored in one place, and so is each ticket.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut names: BTreeSet<Name> = BTreeSet::new();
        let parked = self.parked.values().flatten();
        let twice = self.items.iter().chain(parked.map(|(p, n)| (p, n))).find(|(_, n)| !names.insert(**n));
        if let Some((position, name)) = twice {
            return Err(format!("the item {name:?} at {position:?} is there twice"));
        }
        let served = self.requests.iter().find(|request| self.parked.contains_key(&request.ticket()));
        served.map_or(Ok(()), |request| Err(format!("the request {request:?} waits and is served")))
    }

    /// The effect of a transaction of these parts, or the refusal: it cannot read what it has appended
    /// itself.
    pub(super) fn together(&self, parts: &[Part]) -> Result<Expected, Error> {
        let (mut items, mut expected) = (self.items.clone(), Expected::default());
        for part in parts {
            let readable = |found: bool| match found || expected.put.is_empty() {
                true => Ok(()),
                false => Err(Error::OwnUnreadable),
            };
            let answer = match part {
                Part::Put(batch) => {
                    expected.put.extend(batch.names());
                    PartAnswer::Put
                }
                Part::Take if !self.requests.is_empty() => {
                    expected.registered += 1;
                    PartAnswer::Registered
                }
                Part::Take => {
                    readable(!items.is_empty())?;
                    let first = pop_first(&mut items);
                    expected.taken.extend(first);
                    PartAnswer::Took(first.map(|(_, name)| name))
                }
                Part::Peek => {
                    readable(!items.is_empty())?;
                    PartAnswer::First(items.get_min().map(|(_, name)| *name))
                }
                Part::Count => {
                    readable(false)?;
                    PartAnswer::Count(items.len())
                }
                Part::Parked => PartAnswer::Count(self.parked.len()),
                Part::Crowd(requests) => {
                    expected.registered += usize::from(*requests);
                    PartAnswer::Registered
                }
            };
            expected.answers.push(answer);
        }
        Ok(expected)
    }

    /// The effect of a transaction of these calls about a request; `None` if it is refused, because it cannot
    /// read what it has appended itself. The items that it enqueues are not included. Only requests that
    /// stood at its read version are served; later ones do not conflict.
    pub(super) fn call_request(
        &self,
        calls: &[RequestCall],
        request: &Request,
        read: Version,
    ) -> Option<(Stage, Vec<Name>, Vec<RequestAnswer>)> {
        let (mut stage, mut put, mut answers) = (self.clone(), Vec::new(), Vec::new());
        let ticket = request.ticket();
        for call in calls {
            let stands = match (stage.parked.get(&ticket), stage.requests.contains(request)) {
                (Some(given), _) => RequestAnswer::Given(given.map(|(_, name)| name)),
                (None, true) => RequestAnswer::Waiting,
                (None, false) => RequestAnswer::Gone,
            };
            answers.push(match (call, stands) {
                (RequestCall::Put(batch), _) => {
                    put.extend(batch.names());
                    RequestAnswer::Put
                }
                (RequestCall::Serve(most), _) => {
                    let seen = stage.requests.iter().take_while(|request| version(&request.stamp()) <= read);
                    let first: Vec<_> = seen.take((*most).max(1)).copied().collect();
                    // Even without a request it reads an item, without a conflict.
                    if stage.items.len() < first.len() && !put.is_empty() {
                        return None;
                    }
                    for request in &first {
                        let item = pop_first(&mut stage.items);
                        stage.requests.remove(request);
                        stage.parked.insert(request.ticket(), item);
                    }
                    RequestAnswer::Served(first.len())
                }
                (RequestCall::TakeBack, stands) => {
                    let parked = stage.parked.remove(&ticket);
                    stage.items.extend(parked.flatten());
                    RequestAnswer::Back(matches!(stands, RequestAnswer::Given(_)))
                }
                (RequestCall::Collect | RequestCall::Leave, RequestAnswer::Given(_)) => {
                    stage.parked.remove(&ticket);
                    stands
                }
                (RequestCall::Leave, RequestAnswer::Waiting) => {
                    stage.requests.remove(request);
                    RequestAnswer::Gone
                }
                (RequestCall::Turn | RequestCall::Collect | RequestCall::Leave, stands) => stands,
            });
        }
        Some((stage, put, answers))
    }

    /// The items that are still to be dequeued, at the places where they would be if all were brought back.
    pub(super) fn remaining(&self) -> OrdMap<Position, Name> {
        self.items.iter().map(|(p, n)| (*p, *n)).chain(self.parked.values().flatten().copied()).collect()
    }
}

/// The expected effect of several things in one transaction.
#[derive(Default)]
pub(super) struct Expected {
    pub(super) answers: Vec<PartAnswer>,
    pub(super) put: Vec<Name>,
    pub(super) taken: Vec<(Position, Name)>,
    pub(super) registered: usize,
}

/// The commit version in a stamp.
pub(super) fn version([version @ .., _, _]: &[u8; 10]) -> Version {
    Version::from_be_bytes(*version)
}

/// Reads everything that is stored.
pub(super) async fn stored(tx: &Tx) -> tx::Result<Result<Stage, String>> {
    Ok(Stage::default().changed((Vec::new(), rows(tx, staged().subspace()).await?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foundationdb_tuple::{Bytes as TupleBytes, Versionstamp};

    #[test]
    fn broken_invariants_are_found() {
        let request = |n: u8| {
            let key = staged().subspace().subspace(&1).pack(&(
                Versionstamp::complete([n; 10], 0),
                0,
                TupleBytes::from(&[n; 16][..]),
            ));
            match staged().row(&KeyValue::new(key, "")) {
                Ok(Row::Request(request)) => request,
                other => panic!("{other:?}"),
            }
        };
        let at = |n: u8| Position::Commit { stamp: [n; 10], rank: 0, id: ItemId([n; 16]) };
        let mut stage = Stage::default();
        stage.items.insert(at(1), (0, 0, 0));
        stage.requests.insert(request(5));
        stage.parked.insert(ItemId([6; 16]), Some((at(2), (0, 1, 0))));
        assert_eq!(stage.check(), Ok(()));
        assert_eq!(stage.remaining().len(), 2);
        stage.parked.insert(ItemId([5; 16]), None);
        assert!(stage.check().unwrap_err().contains("waits and is served"));
        stage.parked.insert(ItemId([5; 16]), Some((at(1), (0, 0, 0))));
        assert!(stage.check().unwrap_err().contains("twice"));
    }
}
