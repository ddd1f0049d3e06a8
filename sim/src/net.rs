//! The simulated network: typed messages between machines, with a random latency for each, delivered in order
//! on each link as with TCP, and the operations that faults need.
//!
//! It is leaner than madsim's endpoints (no addresses, no boxed payloads, and a message that arrives wakes no
//! task but the one that receives it) and uses madsim's clock, tasks and machines. Its guarantees are those
//! of FoundationDB's transport: a message arrives at most once and in order, or not at all; a caller whose
//! request or reply was lost, or whose server died or dropped the request, receives [`Broken`] after some
//! time and cannot determine whether the request was executed.

pub use crate::reply::{Broken, Call, ReplyTo};

use crate::{
    chance,
    config::NetConfig,
    ids::{Endpoint, NodeId},
    proto::Message,
    reply::{self, Arrive, Carrier},
    rt::{Clock, Nanos},
    seed::Stream,
    trace::{Kind, Trace},
};
use parking_lot::Mutex;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    future::Future,
    sync::{Arc, Weak},
    task::{Context, Poll, Wake, Waker},
};

/// A received message.
pub struct Envelope {
    /// The sender.
    pub from: NodeId,
    /// The content.
    pub message: Message,
}

/// The network of a run; a cheap handle.
#[derive(Clone)]
pub struct Net(Arc<Shared>);

struct Shared {
    clock: Clock,
    trace: Arc<Trace>,
    state: Mutex<State>,
    /// What the runtime's timers wake: an [`Arrival`].
    arrival: Waker,
}

struct State {
    config: NetConfig,
    rng: Stream,
    in_flight: InFlight,
    sequence: u64,
    nodes: Vec<Node>,
    inboxes: Vec<Option<InboxState>>,
    /// Messages that nobody receives. Dropping them sends messages, which must not happen where they arrive.
    undeliverable: Vec<Message>,
    pump: Option<Waker>,
    closed: bool,
    disturbance: Disturbance,
}

/// What can make messages late or lose them. While there is nothing of it, every message of a machine that is
/// up arrives in time, and nobody has to ask whether another machine is still there.
#[derive(Default)]
struct Disturbance {
    /// Links that are cut, lossy or slow, and paused machines.
    lasting: usize,
    /// When the last clog ends, or the last of the others ended.
    until: Nanos,
    /// Tasks that are woken at the next disturbance.
    wakers: Vec<Waker>,
}

struct Node {
    up: bool,
    paused: bool,
    /// Links to every machine, by number; grown when first used.
    links: Vec<Link>,
}

#[derive(Clone, Debug, Default)]
struct Link {
    /// When the last message on this link arrives: the next one must not overtake it.
    last: Nanos,
    clogged_until: Nanos,
    cut: bool,
    loss: f64,
    slow: Nanos,
}

struct InboxState {
    node: NodeId,
    opened: u64,
    queue: VecDeque<Envelope>,
    waker: Option<Waker>,
}

/// The messages on their way. Their order is kept apart from them: a message is large, and a heap moves what
/// it holds.
#[derive(Default)]
struct InFlight {
    /// When each arrives, its number, and its place.
    due: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    places: Vec<Option<Parcel>>,
    free: Vec<usize>,
}

impl InFlight {
    fn push(&mut self, at: Nanos, sequence: u64, parcel: Parcel) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(parcel);
        self.due.push(Reverse((at, sequence, place)));
    }

    fn next_at(&self) -> Option<Nanos> {
        self.due.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the message that is due next.
    fn pop(&mut self) -> Option<(Nanos, Parcel)> {
        let Reverse((at, _, place)) = self.due.pop()?;
        self.free.push(place);
        self.places[place].take().map(|parcel| (at, parcel))
    }
}

enum Parcel {
    Message { from: NodeId, to: Endpoint, message: Message },
    Reply { from: NodeId, to: NodeId, slot: Arc<dyn Arrive>, kind: Kind },
}

impl Link {
    fn is_disturbed(&self) -> bool {
        self.cut || self.loss > 0.0 || self.slow > 0
    }
}

impl Disturbance {
    /// Counts one more or one less that lasts; at `now`, something begins or ends. Returns whom to wake.
    fn change(&mut self, now: Nanos, before: bool, after: bool) -> Vec<Waker> {
        self.lasting = self.lasting + usize::from(after) - usize::from(before);
        self.until = self.until.max(now);
        match after {
            true => std::mem::take(&mut self.wakers),
            false => Vec::new(),
        }
    }
}

impl State {
    fn link(&mut self, from: NodeId, to: NodeId) -> &mut Link {
        let links = &mut self.nodes[from.0 as usize].links;
        if links.len() <= to.0 as usize {
            links.resize(to.0 as usize + 1, Link::default());
        }
        &mut links[to.0 as usize]
    }

    /// When a message that is sent `work` from now arrives, or `None` if it is lost. Only messages that are
    /// sent immediately delay the following ones.
    fn arrival(&mut self, now: Nanos, from: NodeId, to: NodeId, work: Nanos) -> Option<Nanos> {
        let base = if from == to {
            1_000
        } else {
            chance::duration(&mut self.rng, &self.config.latency, |other| &other.net.latency)
        };
        let loss = self.link(from, to).loss;
        let lost = loss > 0.0 && self.rng.chance(loss);
        let link = self.link(from, to);
        if link.cut || lost {
            return None;
        }
        let at = ((now + work).max(link.clogged_until) + base + link.slow).max(link.last);
        if work == 0 {
            link.last = at;
        }
        Some(at)
    }

    /// Adds a message, for whose arrival a timer must be [armed](Shared::arm); none if the network is closed.
    fn schedule(&mut self, at: Nanos, parcel: Parcel) -> Option<Nanos> {
        if self.closed {
            return None;
        }
        self.sequence += 1;
        self.in_flight.push(at, self.sequence, parcel);
        Some(at)
    }

    fn detection(&mut self) -> Nanos {
        chance::duration(&mut self.rng, &self.config.detection, |other| &other.net.detection)
    }
}

impl Shared {
    /// Delivers the message that is due next. Returns the waker of the task that goes on with it.
    fn deliver_next(&self, state: &mut State) -> Option<Waker> {
        let (at, parcel) = state.in_flight.pop()?;
        // The runtime fires a timer before its clock shows the timer's time.
        let now = self.clock.now().max(at);
        match parcel {
            Parcel::Message { from, to, message } => {
                let up = state.nodes[to.node.0 as usize].up;
                match &mut state.inboxes[to.token as usize] {
                    Some(inbox) if up => {
                        let b = u64::from(message.tag());
                        self.trace.event(now, to.node, Kind::Deliver, u64::from(from.0), b);
                        inbox.queue.push_back(Envelope { from, message });
                        inbox.waker.take()
                    }
                    _ => {
                        state.undeliverable.push(message);
                        state.pump.take()
                    }
                }
            }
            Parcel::Reply { from, to, slot, kind } => {
                self.trace.event(now, to, kind, u64::from(from.0), 0);
                slot.arrive()
            }
        }
    }

    /// Arms the timer with which a scheduled message arrives: the runtime's timer wakes the network itself,
    /// and the task that receives is the only one to be polled.
    fn arm(&self, arrival: Option<Nanos>) {
        let Some(at) = arrival else { return };
        if self.clock.arm(at, &mut Context::from_waker(&self.arrival)) {
            let pump = self.state.lock().pump.take();
            pump.into_iter().for_each(Waker::wake);
        }
    }
}

impl Carrier for Shared {
    fn reply(&self, server: NodeId, caller: NodeId, slot: Arc<dyn Arrive>, work: Nanos) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        let up = state.nodes[server.0 as usize].up;
        let arrives = if up { state.arrival(now, server, caller, work) } else { None };
        let (at, kind) = match arrives {
            Some(at) => (at, Kind::Reply),
            None => {
                slot.mark_lost();
                (now + state.detection(), Kind::Lost)
            }
        };
        let arrival = state.schedule(at, Parcel::Reply { from: server, to: caller, slot, kind });
        drop(state);
        self.arm(arrival);
    }

    fn broken(&self, server: NodeId, caller: NodeId, slot: Arc<dyn Arrive>) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        slot.mark_lost();
        let at = now + state.detection();
        let arrival =
            state.schedule(at, Parcel::Reply { from: server, to: caller, slot, kind: Kind::Broken });
        drop(state);
        self.arm(arrival);
    }
}

/// A timer fires for each message: the one that is due next arrives. Timers that have not fired are kept as
/// long as the clock, which the network has: they must not keep the network.
struct Arrival(Weak<Shared>);

impl Wake for Arrival {
    /// Runs within the runtime's timer, where no timer can be armed, so that nothing may be sent from here.
    fn wake(self: Arc<Self>) {
        let Some(net) = self.0.upgrade() else { return };
        let woken = net.deliver_next(&mut net.state.lock());
        woken.into_iter().for_each(Waker::wake);
    }
}

impl Net {
    /// A network whose only machine is the supervisor, number 0. [`Net::pump`] must be spawned once.
    pub fn new(clock: Clock, trace: Arc<Trace>, config: NetConfig, rng: Stream) -> Net {
        let state = State {
            config,
            rng,
            in_flight: InFlight::default(),
            sequence: 0,
            nodes: vec![Node { up: true, paused: false, links: Vec::new() }],
            inboxes: Vec::new(),
            undeliverable: Vec::new(),
            pump: None,
            closed: false,
            disturbance: Disturbance::default(),
        };
        Net(Arc::new_cyclic(|net| {
            let arrival = Waker::from(Arc::new(Arrival(net.clone())));
            Shared { clock, trace, state: Mutex::new(state), arrival }
        }))
    }

    /// Adds a new machine, which is up, and returns its number.
    pub fn add_node(&self) -> NodeId {
        let mut state = self.0.state.lock();
        state.nodes.push(Node { up: true, paused: false, links: Vec::new() });
        NodeId(state.nodes.len() as u16 - 1)
    }

    /// Opens a new inbox on `node`.
    pub fn open(&self, node: NodeId) -> Inbox {
        let mut state = self.0.state.lock();
        state.inboxes.push(None);
        let token = state.inboxes.len() as u32 - 1;
        drop(state);
        self.open_at(Endpoint { node, token })
    }

    /// A well-known endpoint on `node`, at which an inbox can be opened repeatedly.
    pub fn reserve(&self, node: NodeId) -> Endpoint {
        let mut state = self.0.state.lock();
        state.inboxes.push(None);
        Endpoint { node, token: state.inboxes.len() as u32 - 1 }
    }

    /// Opens the inbox at a reserved endpoint, which must not be open.
    pub fn open_at(&self, endpoint: Endpoint) -> Inbox {
        let mut state = self.0.state.lock();
        state.sequence += 1;
        let opened = state.sequence;
        let inbox = InboxState { node: endpoint.node, opened, queue: VecDeque::new(), waker: None };
        let before = state.inboxes[endpoint.token as usize].replace(inbox);
        drop(state);
        assert!(before.is_none(), "two inboxes at one endpoint");
        Inbox { net: self.clone(), endpoint, opened }
    }

    /// Ends the pump and drops all messages, so that no references remain.
    pub fn close(&self) {
        let mut state = self.0.state.lock();
        state.closed = true;
        let in_flight = std::mem::take(&mut state.in_flight);
        let undeliverable = std::mem::take(&mut state.undeliverable);
        let inboxes: Vec<_> = state.inboxes.iter_mut().filter_map(Option::take).collect();
        let pump = state.pump.take();
        drop(state);
        // Outside of the lock: dropping a message breaks its promises, which sends messages.
        drop((in_flight, undeliverable, inboxes));
        if let Some(pump) = pump {
            pump.wake();
        }
    }

    /// Sends a one-way message, without information about its delivery.
    pub fn send(&self, from: NodeId, to: Endpoint, message: Message) {
        let now = self.0.clock.now();
        let mut state = self.0.state.lock();
        let arrival = match state.arrival(now, from, to.node, 0) {
            Some(at) => state.schedule(at, Parcel::Message { from, to, message }),
            None => {
                drop(state);
                self.0.trace.event(now, from, Kind::Lost, u64::from(to.node.0), 0);
                // Dropping the message breaks the promises in it.
                drop(message);
                return;
            }
        };
        drop(state);
        self.0.arm(arrival);
    }

    /// Sends a request and waits for its reply. The request is sent when this is called, not at the first
    /// poll.
    pub fn call<R: Send + 'static>(
        &self,
        from: NodeId,
        to: Endpoint,
        request: impl FnOnce(ReplyTo<R>) -> Message,
    ) -> Call<R> {
        let (reply, call) = reply::promise(self.0.clone(), to.node, from);
        self.send(from, to, request(reply));
        call
    }

    /// Delivers what is due without a timer, and drops what nobody receives, until the network is closed.
    /// Spawned once, on the supervisor.
    pub async fn pump(self) {
        std::future::poll_fn(move |cx| {
            loop {
                let now = self.0.clock.now();
                let mut wakers = Vec::new();
                let mut state = self.0.state.lock();
                if state.closed {
                    return Poll::Ready(());
                }
                while state.in_flight.next_at().is_some_and(|at| at <= now) {
                    wakers.extend(self.0.deliver_next(&mut state));
                }
                let undeliverable = std::mem::take(&mut state.undeliverable);
                if wakers.is_empty() && undeliverable.is_empty() {
                    state.pump = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                drop(state);
                // Outside of the lock: dropping a message breaks its promises, which sends messages.
                drop(undeliverable);
                wakers.into_iter().for_each(Waker::wake);
            }
        })
        .await
    }

    /// Whether the machine is up.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.0.state.lock().nodes[node.0 as usize].up
    }

    /// Marks a machine up or down. Going down closes its inboxes: messages in them and in flight to them are
    /// lost.
    pub fn set_up(&self, node: NodeId, up: bool) {
        let mut lost = Vec::new();
        let mut state = self.0.state.lock();
        state.nodes[node.0 as usize].up = up;
        state.disturbance.change(self.0.clock.now(), false, false);
        if !up {
            for inbox in &mut state.inboxes {
                if inbox.as_ref().is_some_and(|i| i.node == node) {
                    lost.extend(inbox.take());
                }
            }
        }
        drop(state);
    }

    /// Delays everything sent from `from` to `to` until the virtual time `until`.
    pub fn clog(&self, from: NodeId, to: NodeId, until: Nanos) {
        self.disturb(from, to, |link| link.clogged_until = link.clogged_until.max(until));
    }

    /// Cuts or restores the link from `from` to `to`: messages sent over a cut link are lost.
    pub fn cut(&self, from: NodeId, to: NodeId, cut: bool) {
        self.disturb(from, to, |link| link.cut = cut);
    }

    /// Loses each message from `from` to `to` with probability `loss`.
    pub fn lose(&self, from: NodeId, to: NodeId, loss: f64) {
        self.disturb(from, to, |link| link.loss = loss);
    }

    /// Adds `slow` nanoseconds to the latency of each message from `from` to `to`.
    pub fn slow(&self, from: NodeId, to: NodeId, slow: Nanos) {
        self.disturb(from, to, |link| link.slow = slow);
    }

    /// Notes that a machine's tasks are stopped, or go on.
    pub fn set_paused(&self, node: NodeId, paused: bool) {
        let now = self.0.clock.now();
        let mut state = self.0.state.lock();
        let before = std::mem::replace(&mut state.nodes[node.0 as usize].paused, paused);
        let wakers = state.disturbance.change(now, before, paused);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn disturb(&self, from: NodeId, to: NodeId, change: impl FnOnce(&mut Link)) {
        // Read for each pair of machines: that is no task that loops.
        let now = self.0.clock.elapsed();
        let mut state = self.0.state.lock();
        let link = state.link(from, to);
        let before = link.is_disturbed();
        change(link);
        let (after, clogged) = (link.is_disturbed(), link.clogged_until);
        let mut wakers = state.disturbance.change(now, before, after);
        if clogged > state.disturbance.until {
            state.disturbance.until = clogged;
            wakers.append(&mut state.disturbance.wakers);
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Removes every clog, cut, loss and slowdown.
    pub fn heal(&self) {
        let now = self.0.clock.now();
        let mut guard = self.0.state.lock();
        let State { nodes, disturbance, .. } = &mut *guard;
        for link in nodes.iter_mut().flat_map(|node| &mut node.links) {
            disturbance.lasting -= usize::from(link.is_disturbed());
            *link = Link { last: link.last, ..Link::default() };
        }
        // What was sent over a clogged link still arrives late.
        disturbance.until = disturbance.until.max(now);
    }

    /// When the last disturbance ended, or will end at the earliest: a link that was clogged, cut, lossy or
    /// slow, a paused machine, or one that went down or came back. The greatest time while the end is not
    /// known.
    pub fn disturbed_until(&self) -> Nanos {
        let state = self.0.state.lock();
        match state.disturbance.lasting {
            0 => state.disturbance.until,
            _ => Nanos::MAX,
        }
    }

    /// Wakes the task at the next disturbance.
    pub fn wake_when_disturbed(&self, cx: &Context<'_>) {
        let wakers = &mut self.0.state.lock().disturbance.wakers;
        if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            wakers.push(cx.waker().clone());
        }
    }
}

/// Messages for one endpoint, in order of arrival. Dropping it closes the endpoint.
pub struct Inbox {
    net: Net,
    endpoint: Endpoint,
    opened: u64,
}

impl Inbox {
    /// The endpoint at which senders reach it.
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// Moves all received messages to the end of `into`; if there are none, wakes the task at the next one.
    pub fn poll_drain(&self, cx: &mut Context<'_>, into: &mut VecDeque<Envelope>) -> Poll<()> {
        let mut state = self.net.0.state.lock();
        let Some(inbox) = &mut state.inboxes[self.endpoint.token as usize] else { return Poll::Pending };
        if inbox.queue.is_empty() {
            match &mut inbox.waker {
                Some(waker) => waker.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        }
        into.append(&mut inbox.queue);
        Poll::Ready(())
    }

    /// The next message. Waits forever if the endpoint's machine goes down.
    pub fn recv(&self) -> impl Future<Output = Envelope> + '_ {
        std::future::poll_fn(move |cx| {
            let mut state = self.net.0.state.lock();
            let Some(inbox) = &mut state.inboxes[self.endpoint.token as usize] else {
                return Poll::Pending;
            };
            match inbox.queue.pop_front() {
                Some(envelope) => Poll::Ready(envelope),
                None => {
                    inbox.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // A killed machine's task may be dropped after the restarted machine has opened its inbox.
        let closed = self.net.0.state.lock().inboxes[self.endpoint.token as usize]
            .take_if(|inbox| inbox.opened == self.opened);
        drop(closed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{rt, seed::Seed};

    #[test]
    fn a_network_ends_with_its_run_whatever_is_in_flight() {
        let net = rt::simulate(Seed(1), async {
            let (clock, trace) = (Clock::current(), Arc::new(Trace::new(false)));
            let net = Net::new(clock, trace, NetConfig::default(), Seed(1).stream("network"));
            rt::spawn(net.clone().pump());
            let inbox = net.open(net.add_node());
            net.send(NodeId(0), inbox.endpoint(), Message::Pop { server: 0, version: 1 });
            net.close();
            Arc::downgrade(&net.0)
        });
        assert_eq!(net.strong_count(), 0);
    }
}
