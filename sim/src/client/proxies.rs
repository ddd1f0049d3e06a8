//! The endpoints of the current generation's proxies, kept up to date by one task per client.

use super::wakers::Wakers;
use crate::{
    ids::{Endpoint, Generation, NodeId},
    proto::{ClientInfo, Message},
    rt::{self, Clock, MILLISECOND, SECOND},
    world::World,
};
use parking_lot::Mutex;
use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{Arc, Weak},
    task::{Context, Poll, Waker},
};

/// The proxies that a client knows.
#[derive(Default)]
pub struct Proxies(Mutex<State>);

#[derive(Default)]
struct State {
    info: Arc<ClientInfo>,
    waiting: Wakers,
}

impl Proxies {
    /// Starts following the controller's information for as long as the returned value is in use. The task
    /// that sends the requests runs on the caller's machine.
    pub fn follow(world: &Arc<World>, node: NodeId, controller: Endpoint) -> Arc<Proxies> {
        let proxies = Arc::new(Proxies::default());
        rt::spawn(monitor(
            Arc::downgrade(world),
            world.clock.clone(),
            node,
            controller,
            Arc::downgrade(&proxies),
        ));
        proxies
    }

    /// The current information.
    pub fn current(&self) -> Arc<ClientInfo> {
        self.0.lock().info.clone()
    }

    /// Completes when a generation other than `known` is known.
    pub fn changed(&self, known: Generation) -> Changed<'_> {
        Changed { proxies: self, known, place: None }
    }

    /// The output of `call`, or `None` if a generation other than `known` becomes known first.
    pub async fn unless_changed<T>(&self, known: Generation, call: impl Future<Output = T>) -> Option<T> {
        let mut call = pin!(call);
        let mut changed = self.changed(known);
        std::future::poll_fn(|cx| match call.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => Pin::new(&mut changed).poll(cx).map(|()| None),
        })
        .await
    }

    fn update(&self, info: Arc<ClientInfo>) {
        let mut state = self.0.lock();
        state.info = info;
        let woken = state.waiting.take();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

/// Repeats the request; while it waits, it keeps neither the world nor the proxies alive.
async fn monitor(
    world: Weak<World>,
    clock: Clock,
    node: NodeId,
    controller: Endpoint,
    proxies: Weak<Proxies>,
) {
    loop {
        let (known, asked) = {
            let (Some(world), Some(proxies)) = (world.upgrade(), proxies.upgrade()) else { return };
            let known = proxies.current().generation;
            // A restarted controller has a different inbox at the same address.
            let to = world.address(controller.node).unwrap_or(controller);
            (known, world.net.call(node, to, |reply| Message::GetClientInfo { known, reply }))
        };
        match clock.timeout(5 * SECOND, asked).await {
            Some(Ok(info)) if info.generation != known => match proxies.upgrade() {
                Some(proxies) => proxies.update(info),
                None => return,
            },
            Some(Ok(_)) | None => {}
            Some(Err(_)) => clock.sleep(20 * MILLISECOND).await,
        }
    }
}

/// Completes when another generation is known; see [`Proxies::changed`].
pub struct Changed<'a> {
    proxies: &'a Proxies,
    known: Generation,
    place: Option<usize>,
}

impl Future for Changed<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.proxies.0.lock();
        if state.info.generation != self.known {
            return Poll::Ready(());
        }
        let place = state.waiting.register(self.place, cx);
        drop(state);
        self.place = Some(place);
        Poll::Pending
    }
}

impl Drop for Changed<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.proxies.0.lock().waiting.forget(place);
        }
    }
}
