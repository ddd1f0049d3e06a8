//! Replies to requests: the promise that a request carries, and the call that waits for it.

use crate::{ids::NodeId, rt::Nanos};
use parking_lot::Mutex;
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

/// The request may or may not have been delivered and executed (`request_maybe_delivered`, `broken_promise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// A request's reply, to be sent once. Dropping it breaks the promise: the caller receives [`Broken`].
pub struct ReplyTo<R: Send + 'static> {
    carrier: Arc<dyn Carrier>,
    server: NodeId,
    caller: NodeId,
    slot: Option<Arc<Slot<R>>>,
}

/// What brings replies to their callers: the network.
pub(crate) trait Carrier: Send + Sync {
    /// Brings a reply, as if the server needed `work` nanoseconds to compute it.
    fn reply(&self, server: NodeId, caller: NodeId, slot: Arc<dyn Arrive>, work: Nanos);
    /// Tells the caller that its request has no reply.
    fn broken(&self, server: NodeId, caller: NodeId, slot: Arc<dyn Arrive>);
}

/// The promise of a reply of `server` to `caller`, and the reply as the caller waits for it.
pub(crate) fn promise<R: Send + 'static>(
    carrier: Arc<dyn Carrier>,
    server: NodeId,
    caller: NodeId,
) -> (ReplyTo<R>, Call<R>) {
    let slot = Arc::new(Slot(Mutex::new(SlotState { value: None, arrived: false, waker: None })));
    (ReplyTo { carrier, server, caller, slot: Some(slot.clone()) }, Call(slot))
}

impl<R: Send + 'static> ReplyTo<R> {
    /// Sends the reply.
    pub fn send(mut self, reply: R) {
        if let Some(slot) = self.slot.take() {
            slot.0.lock().value = Some(Ok(reply));
            self.carrier.reply(self.server, self.caller, slot, 0);
        }
    }

    /// Sends the reply as if the server needed `work` nanoseconds to compute it. Replies that are sent later
    /// may overtake it, as with a server that processes several requests concurrently.
    pub fn send_after(mut self, reply: R, work: Nanos) {
        if let Some(slot) = self.slot.take() {
            slot.0.lock().value = Some(Ok(reply));
            self.carrier.reply(self.server, self.caller, slot, work);
        }
    }

    /// The machine that sent the request.
    pub fn caller(&self) -> NodeId {
        self.caller
    }
}

impl<R: Send + 'static> Drop for ReplyTo<R> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.carrier.broken(self.server, self.caller, slot);
        }
    }
}

/// A reply in flight, as the pump handles it.
pub(crate) trait Arrive: Send + Sync {
    /// Marks the reply as arrived; returns the caller's waker.
    fn arrive(&self) -> Option<Waker>;
    /// Marks the reply as lost; the caller receives [`Broken`].
    fn mark_lost(&self);
}

struct Slot<R>(Mutex<SlotState<R>>);

struct SlotState<R> {
    value: Option<Result<R, Broken>>,
    arrived: bool,
    waker: Option<Waker>,
}

impl<R: Send> Arrive for Slot<R> {
    fn arrive(&self) -> Option<Waker> {
        let mut slot = self.0.lock();
        slot.arrived = true;
        slot.waker.take()
    }

    fn mark_lost(&self) {
        let replaced = self.0.lock().value.replace(Err(Broken));
        drop(replaced);
    }
}

/// A pending reply.
#[must_use = "a call's answer is only learned by awaiting it"]
pub struct Call<R>(Arc<Slot<R>>);

impl<R> Future for Call<R> {
    type Output = Result<R, Broken>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = self.0.0.lock();
        if slot.arrived {
            return Poll::Ready(slot.value.take().unwrap_or(Err(Broken)));
        }
        match &mut slot.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}
