//! Several calls of the queue in one transaction.

use super::{Act, ActAnswer, Handling, leased, operations::name};
use crate::shared::{came_back, one_call, turned};
use shaketable::isolation;
use shaketable_layers::{
    leased_queue::{Claim, Error, Hold, Lease},
    queue::ItemId,
};
use shaketable_tx::{
    Isolation::{self, Serializable},
    Tx, always,
};

/// Performs a call; `id` is the id of the item that it enqueues.
pub(super) async fn perform(tx: &Tx, act: &Act, id: ItemId) -> Result<ActAnswer, Error> {
    let queue = leased();
    Ok(match act {
        Act::Put(batch) => {
            queue.enqueue(&turned(tx), id, &batch.value()).await?;
            ActAnswer::Put
        }
        Act::Count(most) => {
            let (tx, read) =
                (one_call(tx, true).await, |tx, isolation| async move { count(&tx, *most, isolation).await });
            isolation::at_both_levels(&tx, act, read).await?
        }
        Act::Leases(most) => {
            let (tx, read) =
                (
                    one_call(tx, true).await,
                    |tx, isolation| async move { leases(&tx, *most, isolation).await },
                );
            isolation::at_both_levels(&tx, act, read).await?
        }
        Act::Take(handling) => take(&one_call(tx, false).await, *handling).await?,
        Act::Stale => {
            let tx = &one_call(tx, false).await;
            let mut ended = 0;
            if let Some(Lease { hold, revision }) = first_lease(tx).await? {
                let elder = Hold { token: hold.token - 1, ..hold };
                for stale in [
                    Lease { hold, revision: revision + 1 },
                    Lease { hold, revision: revision - 1 },
                    Lease { hold: elder, revision },
                ] {
                    ended += usize::from(queue.expire(&turned(tx), stale).await?);
                }
            }
            ActAnswer::Ended(ended)
        }
    })
}

pub(super) async fn count(tx: &Tx, most: usize, isolation: Isolation) -> Result<ActAnswer, Error> {
    let (waiting, claimed) = leased().len(&turned(tx), most, isolation).await?;
    Ok(ActAnswer::Count(waiting, claimed))
}

async fn leases(tx: &Tx, most: usize, isolation: Isolation) -> Result<ActAnswer, Error> {
    let (mut held, mut after) = (Vec::new(), None);
    loop {
        let page = leased().leases(&turned(tx), after, most, isolation).await?;
        always!(page.held.len() <= most.max(1), "a page of {most} leases has {}", page.held.len());
        held.extend(page.held.iter().map(|l| (l.hold.position, l.hold.token, l.revision)));
        after = page.next;
        if after.is_none() {
            return Ok(ActAnswer::Leases(held));
        }
    }
}

async fn first_lease(tx: &Tx) -> Result<Option<Lease>, Error> {
    let mut after = None;
    loop {
        let page = leased().leases(&turned(tx), after, 2, Serializable).await?;
        after = page.next;
        if !page.held.is_empty() || after.is_none() {
            return Ok(page.held.first().copied());
        }
    }
}

async fn take(tx: &Tx, handling: Handling) -> Result<ActAnswer, Error> {
    let queue = leased();
    let Some(Claim { hold, value }) = came_back(queue.claim(&turned(tx)).await?) else {
        return Ok(ActAnswer::Nothing);
    };
    let name = name(&value).map_err(|_| Error::Foreign(value))?;
    let (mut revision, mut lost) = (0, true);
    match handling {
        Handling::Acknowledge => queue.acknowledge(&turned(tx), hold).await?,
        Handling::Release => queue.release(&turned(tx), hold).await?,
        Handling::Expire => lost = queue.expire(&turned(tx), Lease { hold, revision }).await?,
        Handling::Renew(times) => {
            for _ in 0..times {
                revision = queue.renew(&turned(tx), hold).await?;
            }
            return Ok(ActAnswer::Taken(name, hold.token, revision, false));
        }
    }
    // An item that is not held any more must be refused by every call.
    for again in [
        queue.renew(&turned(tx), hold).await.map(drop),
        queue.acknowledge(&turned(tx), hold).await,
        queue.release(&turned(tx), hold).await,
    ] {
        match again {
            Err(Error::Lost(of)) => lost &= of == hold,
            Err(e) => return Err(e),
            Ok(()) => lost = false,
        }
    }
    lost &= !queue.expire(&turned(tx), Lease { hold, revision }).await?;
    Ok(ActAnswer::Taken(name, hold.token, revision, lost))
}
