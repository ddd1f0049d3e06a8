//! Several calls of the queue in one transaction.

use super::{Name, Part, PartAnswer, RequestAnswer, RequestCall, operations::name, staged};
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

pub(super) async fn put(tx: &Tx, values: &[(ItemId, Bytes)]) -> Result<(), Error> {
    for (id, value) in values {
        staged().enqueue(&turned(tx), *id, value).await?;
    }
    Ok(())
}

impl RequestAnswer {
    pub(super) fn of(turn: RequestState) -> Result<RequestAnswer, Error> {
        Ok(match turn {
            RequestState::Waiting(_) => RequestAnswer::Waiting,
            RequestState::Given(item) => RequestAnswer::Given(named(item)?),
            RequestState::Gone => RequestAnswer::Gone,
        })
    }
}

impl RequestCall {
    pub(super) fn values(&self, env: &Env) -> Vec<(ItemId, Bytes)> {
        match self {
            RequestCall::Put(batch) => batch.draw(env),
            _ => Vec::new(),
        }
    }

    pub(super) async fn perform(
        &self,
        tx: &Tx,
        request: Request,
        values: &[(ItemId, Bytes)],
    ) -> Result<RequestAnswer, Error> {
        let queue = staged();
        match self {
            RequestCall::Turn => {
                let read =
                    |tx, isolation| async move { staged().state(&turned(&tx), request, isolation).await };
                RequestAnswer::of(isolation::at_both_levels(tx, self, read).await?)
            }
            RequestCall::Collect => RequestAnswer::of(came_back(queue.collect(&turned(tx), request).await?)),
            RequestCall::Leave => RequestAnswer::of(came_back(queue.leave(&turned(tx), request).await?)),
            RequestCall::Serve(most) => Ok(RequestAnswer::Served(queue.fulfil(&turned(tx), *most).await?)),
            RequestCall::TakeBack => {
                Ok(RequestAnswer::Back(queue.reclaim(&turned(tx), request.ticket()).await?))
            }
            RequestCall::Put(_) => put(tx, values).await.map(|()| RequestAnswer::Put),
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
