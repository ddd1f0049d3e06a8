//! The turn of a request, as an [order](super::order) has it, and the deaths of clients at requests.

use super::{
    families::Family,
    order::{COMEBACK, LONGEST_HOLD},
    strikes::{Death, Request, Step},
};
use crate::{
    ids::{ClientId, NodeId},
    trace::Kind,
    world::World,
};
use std::{sync::Arc, task::Poll};

/// A request of a client, from the moment at which it is about to be made until it was answered: until this
/// is dropped.
pub(crate) struct Turn {
    world: Arc<World>,
    node: NodeId,
    step: Step,
}

impl Turn {
    /// A request that is about to be made; `None` if nothing in the plan concerns requests.
    pub(crate) fn begin(
        world: &Arc<World>,
        (node, client): (NodeId, ClientId),
        operation: Option<u32>,
        request: Request,
    ) -> Option<Turn> {
        let faults = &world.faults;
        let operation = operation.filter(|_| faults.order.active && faults.are_on())?;
        let mut state = faults.order.state.lock();
        let count = state.counts.entry((client, operation, request)).or_default();
        let step = Step { client, operation, request, index: *count };
        *count += 1;
        state.made.push(step);
        Some(Turn { world: world.clone(), node, step })
    }

    /// Whether the plan has an order for it.
    pub(crate) fn is_ordered(&self) -> bool {
        self.world.faults.order.positions.contains_key(&self.step)
    }

    /// Completes when the request is to be sent: never if the client dies before.
    pub(crate) async fn come(&self) {
        let faults = &self.world.faults;
        if let Some(position) = faults.order.positions.get(&self.step) {
            let turn = std::future::poll_fn(|cx| match faults.are_on() && faults.other_rates().is_none() {
                true => faults.order.poll_turn(*position, cx),
                false => Poll::Ready(()),
            });
            if self.world.clock.timeout(LONGEST_HOLD, turn).await.is_none() {
                faults.order.state.lock().overdue += 1;
            }
        }
        self.die(false).await;
    }

    /// Completes when the client is to receive the answer that has arrived: never if it dies before.
    pub(crate) async fn answered(&self) {
        self.die(true).await;
    }

    /// Never completes if the client dies here.
    async fn die(&self, after: bool) {
        let faults = &self.world.faults;
        if !faults.are_on() {
            return;
        }
        let leaves = || {
            let is_commit = self.step.request == Request::Commit;
            is_commit && faults.order.state.lock().leaving.get(&self.node) == Some(&after)
        };
        let is_planned = faults.order.deaths.contains(&Death { step: self.step, after });
        if is_planned || leaves() {
            match is_planned {
                true => faults.order.state.lock().dying.push((self.node, Family::ClientDeath)),
                false => faults.order.leaves_now(self.node),
            }
            faults.order.wake();
            faults.order.end(self.step.client, self.step.operation);
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.is_ordered() {
            self.world.faults.order.finish(|step| *step == self.step);
        }
    }
}

/// Kills clients where the plan says so, and starts those again that do not leave for good.
pub(super) async fn drive(world: Arc<World>) {
    loop {
        let (node, family) = std::future::poll_fn(|cx| world.faults.order.poll_death(cx)).await;
        let leaves = family == Family::Departure;
        if world.faults.are_on() {
            if leaves {
                world.retire(node)
            } else {
                world.kill(node)
            }
            world.faults.count(family);
            world.event(NodeId(0), Kind::Fault, family as u64, 0);
        }
        if leaves {
            continue;
        }
        world.clock.sleep(COMEBACK).await;
        world.start(node);
    }
}
