//! The controller: monitors the transaction system's roles, and runs a recovery when one of them dies. It
//! also publishes the endpoints of the current generation to clients and storage servers.

mod recovery;
mod state;

pub use state::ControllerDisk;

use crate::{
    ids::{Endpoint, Generation, NodeId},
    net::{Call, Inbox, ReplyTo},
    proto::{ClientInfo, LogSystem, Message},
    rt::{Alarm, MILLISECOND, Nanos},
    world::World,
};
use futures::FutureExt;
use std::{cell::RefCell, future::poll_fn, sync::Arc, task::Poll};

/// How long the controller waits after a failed recovery.
const RETRY: Nanos = 50 * MILLISECOND;

/// The parameters that the controller gets at each start of its machine.
#[derive(Clone)]
pub struct Assets {
    /// Its well-known endpoint.
    pub home: Endpoint,
    /// Its disk.
    pub disk: Arc<ControllerDisk>,
    /// The workers on which sequencers, proxies and resolvers are recruited.
    pub workers: Vec<Endpoint>,
    /// The workers on which logs are recruited.
    pub log_machines: Vec<Endpoint>,
}

struct Controller {
    world: Arc<World>,
    home: Endpoint,
    disk: Arc<ControllerDisk>,
    workers: Vec<Endpoint>,
    log_machines: Vec<Endpoint>,
    published: RefCell<Published>,
}

/// The published information, and the requests that wait for something newer.
#[derive(Default)]
struct Published {
    clients: Arc<ClientInfo>,
    logs: Arc<LogSystem>,
    client_waiters: Vec<(Generation, ReplyTo<Arc<ClientInfo>>)>,
    log_waiters: Vec<(Generation, ReplyTo<Arc<LogSystem>>)>,
}

impl Published {
    fn publish_clients(&mut self, clients: ClientInfo) {
        self.clients = Arc::new(clients);
        for (_, reply) in self.client_waiters.drain(..) {
            reply.send(self.clients.clone());
        }
    }

    fn publish_logs(&mut self, logs: LogSystem) {
        self.logs = Arc::new(logs);
        for (_, reply) in self.log_waiters.drain(..) {
            reply.send(self.logs.clone());
        }
    }
}

/// Serves as the controller.
pub async fn run(world: Arc<World>, assets: Assets) {
    let inbox = world.net.open_at(assets.home);
    let Assets { home, disk, workers, log_machines } = assets;
    let controller = Controller { world, home, disk, workers, log_machines, published: RefCell::default() };
    futures::join!(controller.serve(&inbox), controller.lead());
}

impl Controller {
    async fn serve(&self, inbox: &Inbox) {
        loop {
            let message = inbox.recv().await.message;
            let mut published = self.published.borrow_mut();
            match message {
                Message::GetClientInfo { known, reply } if published.clients.generation > known => {
                    reply.send(published.clients.clone());
                }
                Message::GetClientInfo { known, reply } => published.client_waiters.push((known, reply)),
                Message::GetLogSystem { known, reply } if published.logs.generation > known => {
                    reply.send(published.logs.clone());
                }
                Message::GetLogSystem { known, reply } => published.log_waiters.push((known, reply)),
                Message::Ping { reply } => reply.send(()),
                _ => {}
            }
        }
    }

    async fn lead(&self) {
        loop {
            match self.recover().await {
                Ok(formed) => {
                    self.published.borrow_mut().publish_clients(formed.clients);
                    self.watch(&formed.roles).await;
                }
                Err(_) => self.world.clock.sleep(RETRY).await,
            }
        }
    }

    /// Returns when one of the roles is dead or no longer replies. A role that ends breaks its promise; only
    /// one whose machine or link is disturbed may be there and not reply, and only then are the roles asked.
    async fn watch(&self, roles: &[Endpoint]) {
        let World { clock, config, net, .. } = &*self.world;
        let mut watched: Vec<_> = roles.iter().map(|role| Watched::new(self, *role)).collect();
        let mut alarm = Alarm::default();
        let mut tick = clock.now() + config.heartbeat;
        let mut asks = false;
        poll_fn(|cx| {
            loop {
                let now = clock.now();
                let mut progress = false;
                for role in &mut watched {
                    while role.wait.poll_unpin(cx).is_ready() {
                        role.broken += 1;
                        role.wait = role.ask(|reply| Message::WaitFailure { reply });
                        progress = true;
                    }
                    if let Some((sent, ping)) = &mut role.ping {
                        match ping.poll_unpin(cx) {
                            Poll::Ready(Ok(())) => (role.ping, role.broken) = (None, 0),
                            Poll::Ready(Err(_)) => {
                                role.broken += 1;
                                let again = role.ask(|reply| Message::Ping { reply });
                                role.ping = Some((now, again));
                                progress = true;
                            }
                            Poll::Pending if now >= *sent + config.failure_timeout => return Poll::Ready(()),
                            Poll::Pending => {}
                        }
                    }
                    // A message may be lost; if a role is dead, the next promise breaks as well.
                    if role.broken >= 3 {
                        return Poll::Ready(());
                    }
                }
                net.wake_when_disturbed(cx);
                let is_in_doubt = |role: &Watched| role.ping.is_some() || role.broken > 0;
                let must_ask = now < net.disturbed_until() || watched.iter().any(is_in_doubt);
                // The roles are asked at the times at which they would have been asked if they always were.
                if !std::mem::replace(&mut asks, must_ask) && tick < now {
                    tick = now + config.heartbeat - (now - tick) % config.heartbeat;
                }
                if must_ask && alarm.poll(clock, tick, cx) {
                    tick = clock.now() + config.heartbeat;
                    for role in watched.iter_mut().filter(|role| role.ping.is_none()) {
                        role.ping = Some((now, role.ask(|reply| Message::Ping { reply })));
                    }
                    progress = true;
                }
                if !progress {
                    return Poll::Pending;
                }
            }
        })
        .await
    }
}

/// A monitored role.
struct Watched<'a> {
    world: &'a World,
    me: NodeId,
    role: Endpoint,
    /// Breaks when the role ends.
    wait: Call<()>,
    /// When the ping was sent, and its pending reply.
    ping: Option<(Nanos, Call<()>)>,
    /// The number of broken promises since its last reply.
    broken: u32,
}

impl<'a> Watched<'a> {
    fn new(controller: &'a Controller, role: Endpoint) -> Watched<'a> {
        let (world, me) = (&*controller.world, controller.home.node);
        let wait = world.net.call(me, role, |reply| Message::WaitFailure { reply });
        Watched { world, me, role, wait, ping: None, broken: 0 }
    }

    fn ask(&self, request: impl FnOnce(ReplyTo<()>) -> Message) -> Call<()> {
        self.world.net.call(self.me, self.role, request)
    }
}
