//! Several calls of the queue in one transaction.

use super::{Deal, Dealt, Name, Part, PartAnswer, operations::name, staged};
use crate::shared::{came_back, one_call, turned};
use bytes::Bytes;
use shaketable::isolation;
use shaketable_layers::{
    queue::{Item, ItemId},
    staged_queue::{Error, Request, RequestState, Taken},
};
use shaketable_tx::{Env, Tx};

/// The name of an item, for use inside a transaction.
fn named(item: Option<Item>) -> Result<Option<Name>, Error> {
    let foreign = |item: &Item| Error::Foreign(item.value.clone());
    item.map(|item| name(&item).map_err(|_| foreign(&item))).transpose()
}

async fn put(tx: &Tx, values: &[(ItemId, Bytes)]) -> Result<(), Error> {
    for (id, value) in values {
        staged().enqueue(&turned(tx), *id, value).await?;
    }
    Ok(())
}

impl Dealt {
    pub(super) fn of(turn: RequestState) -> Result<Dealt, Error> {
        Ok(match turn {
            RequestState::Waiting(_) => Dealt::Waiting,
            RequestState::Given(item) => Dealt::Given(named(item)?),
            RequestState::Gone => Dealt::Gone,
        })
    }
}

impl Deal {
    pub(super) fn values(&self, env: &Env) -> Vec<(ItemId, Bytes)> {
        match self {
            Deal::Put(batch) => batch.draw(env),
            _ => Vec::new(),
        }
    }

    pub(super) async fn perform(
        &self,
        tx: &Tx,
        request: Request,
        values: &[(ItemId, Bytes)],
    ) -> Result<Dealt, Error> {
        let queue = staged();
        match self {
            Deal::Turn => {
                let read =
                    |tx, isolation| async move { staged().state(&turned(&tx), request, isolation).await };
                Dealt::of(isolation::at_both_levels(tx, self, read).await?)
            }
            Deal::Collect => Dealt::of(came_back(queue.collect(&turned(tx), request).await?)),
            Deal::Leave => Dealt::of(came_back(queue.leave(&turned(tx), request).await?)),
            Deal::Serve(most) => Ok(Dealt::Served(queue.fulfil(&turned(tx), *most).await?)),
            Deal::TakeBack => Ok(Dealt::Back(queue.reclaim(&turned(tx), request.ticket()).await?)),
            Deal::Put(_) => put(tx, values).await.map(|()| Dealt::Put),
        }
    }
}

impl Part {
    pub(super) fn values(&self, env: &Env) -> Vec<(ItemId, Bytes)> {
        match self {
            Part::Put(batch) => batch.draw(env),
            Part::Crowd(requests) => (0..*requests).map(|_| (ItemId::draw(env), Bytes::new())).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) async fn perform(
        &self,
        tx: &Tx,
        values: &[(ItemId, Bytes)],
        ticket: ItemId,
    ) -> Result<PartAnswer, Error> {
        Ok(match self {
            Part::Put(_) => {
                let tx = &one_call(tx, false).await;
                put(tx, values).await?;
                PartAnswer::Put
            }
            Part::Take => match came_back(staged().take(&turned(tx), ticket).await?) {
                Taken::Now(item) => PartAnswer::Took(named(item)?),
                Taken::Waiting(_) => PartAnswer::Registered,
            },
            Part::Crowd(_) => {
                let tx = &one_call(tx, false).await;
                for (ticket, _) in values {
                    staged().register(&turned(tx), *ticket).await?;
                }
                PartAnswer::Registered
            }
            Part::Peek => {
                let tx = &one_call(tx, true).await;
                let read = |tx, isolation| async move { staged().peek(&turned(&tx), isolation).await };
                PartAnswer::First(named(isolation::at_both_levels(tx, self, read).await?)?)
            }
            Part::Count => {
                let tx = &one_call(tx, true).await;
                let read = |tx, isolation| async move { staged().len(&turned(&tx), isolation).await };
                PartAnswer::Count(isolation::at_both_levels(tx, self, read).await?)
            }
            Part::Parked => {
                let tx = &one_call(tx, true).await;
                let read = |tx, isolation| async move { staged().parked(&turned(&tx), isolation).await };
                PartAnswer::Count(isolation::at_both_levels(tx, self, read).await?.len())
            }
        })
    }
}
