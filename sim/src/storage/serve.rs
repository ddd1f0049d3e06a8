//! The storage server's loop: one task that receives, applies, replies and makes durable.

use super::{
    StorageDisk,
    fetch::{Fetched, Fetches},
    pull::Pull,
    requests::{self, Waiting},
    state::{Holds, Readable, State},
    watches::Watches,
};
use crate::{
    chance,
    config::ClusterBug,
    ids::Endpoint,
    net::Call,
    proto::{LogEntry, LogSystem, Message, Version},
    rt::{Alarm, MILLISECOND, Nanos},
    seed::Stream,
    trace::Kind,
    tunables::MachineTunables,
    world::World,
};
use futures::FutureExt;
use shaketable_tx::Error;
use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

/// How long the server waits before it repeats a request to a controller that did not reply.
const RETRY: Nanos = 20 * MILLISECOND;
/// How often the server with the planted bug skips a version.
const SKIPS: f64 = 0.02;

/// Serves as the storage server of this disk, starting from its durable content.
pub async fn run(world: Arc<World>, home: Endpoint, controller: Endpoint, disk: Arc<StorageDisk>) {
    let inbox = world.net.open_at(home);
    let mut server = Server::new(world, home, controller, disk);
    let mut messages = VecDeque::new();
    let mut alarm = Alarm::default();
    poll_fn(|cx| {
        loop {
            let received = inbox.poll_drain(cx, &mut messages).is_ready();
            messages.drain(..).for_each(|envelope| server.receive(envelope.message));
            let told = server.poll_controller(cx);
            let fetched = server.poll_fetches(cx);
            let due = alarm.poll(&server.world.clock, server.due(), cx);
            if due {
                server.tick();
            }
            if ![received, told, fetched, due].contains(&true) {
                return Poll::<()>::Pending;
            }
        }
    })
    .await
}

struct Server {
    world: Arc<World>,
    home: Endpoint,
    controller: Endpoint,
    disk: Arc<StorageDisk>,
    tunables: Arc<MachineTunables>,
    rng: Stream,
    pull: Pull,
    waiting: Waiting,
    watches: Watches,
    fetches: Fetches,
    /// The pending request for a newer log system, and when to repeat it.
    pending_request: Option<Call<Arc<LogSystem>>>,
    ask_at: Nanos,
    /// When the next version becomes durable, and which one: the version that was applied at the previous
    /// time.
    durable_at: Nanos,
    syncing: Version,
    /// The last version that the logs were allowed to discard, and the last one applied that has
    /// transactions.
    popped: Version,
    written: Version,
}

impl Server {
    fn new(world: Arc<World>, home: Endpoint, controller: Endpoint, disk: Arc<StorageDisk>) -> Server {
        let mut state = disk.state.lock();
        state.restart();
        let syncing = state.version();
        drop(state);
        let now = world.clock.now();
        Server {
            tunables: world.tunables.machine(home.node),
            // Two incarnations never start at the same time.
            rng: world.seed.run_stream(&format!("storage {} {now}", disk.server)),
            pull: Pull::new(disk.server),
            waiting: Waiting::default(),
            watches: Watches::default(),
            fetches: Fetches::default(),
            pending_request: None,
            ask_at: now,
            durable_at: now + world.config.storage_durable_interval,
            syncing,
            popped: syncing,
            written: syncing,
            world,
            home,
            controller,
            disk,
        }
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::LogData { generation, entries } => {
                let lag = || {
                    chance::duration(&mut self.rng, &self.world.config.storage_lag, |other| {
                        &other.storage_lag
                    }) + self.tunables.apply_lag()
                };
                self.pull.receive(self.world.clock.now(), generation, entries, lag);
                self.apply();
            }
            Message::AddShard { range, sources, reply } => {
                if self.disk.state.lock().holds(&range) == Holds::Durably {
                    return reply.send(());
                }
                self.fetches.request(self.world.clock.now(), range, sources, reply);
                self.begin_fetches();
            }
            Message::DropShard { range, reply } => {
                self.fetches.forget(&range);
                self.disk.state.lock().forget(&range);
                self.watches.forget(&range, self.world.config.cluster_bug);
                reply.send(());
            }
            Message::Ping { reply } => reply.send(()),
            read => self.read(read),
        }
    }

    /// Replies to a read now, or lets it wait for its version.
    fn read(&mut self, read: Message) {
        let state = self.disk.state.lock();
        let version = requests::version_of(&read).unwrap_or(state.version());
        let is_watch = matches!(read, Message::WatchValue { .. });
        match state.readable(version) {
            Readable::TooOld if !is_watch => requests::refuse(read, Error::TRANSACTION_TOO_OLD),
            Readable::Later if self.is_behind(&state) => requests::refuse(read, Error::PROCESS_BEHIND),
            Readable::Later => {
                drop(state);
                self.waiting.push(self.world.clock.now(), version, read);
            }
            _ => answer(&self.world, &self.tunables, &mut self.rng, &mut self.watches, &state, read),
        }
    }

    /// Whether received versions are so far ahead of applied ones that waiting is pointless.
    fn is_behind(&self, state: &State) -> bool {
        self.pull.received() - state.version() > 2 * self.world.tunables.window()
    }

    /// Applies due entries, and replies to the reads that waited for them.
    fn apply(&mut self) {
        let now = self.world.clock.now();
        let disk = self.disk.clone();
        let mut state = disk.state.lock();
        while let Some(entries) = self.pull.take(now) {
            for entry in entries {
                if entry.version <= state.version() {
                    continue;
                }
                if entry.previous != state.version() {
                    if self.pull.should_resubscribe(now) {
                        self.subscribe(state.version());
                    }
                    break;
                }
                if !entry.transactions.is_empty() {
                    self.written = entry.version;
                }
                let bug = self.planted_bug(&entry);
                state.apply(&entry, self.world.tunables.window(), bug);
                self.watches.applied(&state, &entry, self.world.config.cluster_bug);
                self.world.trace.event(now, self.home.node, Kind::Applied, entry.version as u64, 0);
            }
        }
        for read in self.waiting.take_up_to(state.version()) {
            let version = requests::version_of(&read).unwrap_or_default();
            match state.readable(version) {
                Readable::TooOld if !matches!(read, Message::WatchValue { .. }) => {
                    requests::refuse(read, Error::TRANSACTION_TOO_OLD);
                }
                _ => answer(&self.world, &self.tunables, &mut self.rng, &mut self.watches, &state, read),
            }
        }
    }

    fn planted_bug(&mut self, entry: &LogEntry) -> Option<ClusterBug> {
        let planted = self.world.config.cluster_bug?;
        let strikes = match planted {
            ClusterBug::StorageSkipsVersion => !entry.transactions.is_empty() && self.rng.chance(SKIPS),
            ClusterBug::ReplicaReorders => self.disk.server == 0,
            _ => false,
        };
        strikes.then_some(planted)
    }

    /// Subscribes at a log to everything after `from`.
    fn subscribe(&mut self, from: Version) {
        if let Some(log) = self.pull.next_log(self.world.clock.now()) {
            self.world.net.send(self.home.node, log, Message::Subscribe { from, to: self.home });
        }
    }

    /// Keeps requesting the next log system from the controller; returns whether one was received.
    fn poll_controller(&mut self, cx: &mut Context<'_>) -> bool {
        let now = self.world.clock.now();
        if self.pending_request.is_none() && now >= self.ask_at {
            // A restarted controller has a different inbox at the same address.
            let controller = self.world.address(self.controller.node).unwrap_or(self.controller);
            let known = self.pull.generation();
            let ask = |reply| Message::GetLogSystem { known, reply };
            self.pending_request = Some(self.world.net.call(self.home.node, controller, ask));
        }
        let Some(request) = &mut self.pending_request else { return false };
        let Poll::Ready(answer) = request.poll_unpin(cx) else { return false };
        self.pending_request = None;
        match answer {
            Ok(system) => self.change(system),
            Err(_) => self.ask_at = now + RETRY,
        }
        true
    }

    /// Switches to a new generation: invalid versions of the old one are undone.
    fn change(&mut self, system: Arc<LogSystem>) {
        let disk = self.disk.clone();
        let mut state = disk.state.lock();
        let before = state.version();
        if let Some(end) = self.pull.change(system)
            && before > end
        {
            self.world.event(self.home.node, Kind::Rollback, end as u64, before as u64);
            state.rollback(end);
            self.syncing = self.syncing.min(end);
            self.watches.check_all(&state);
            self.fetches.restart(self.world.clock.now(), |range| state.holds(range) == Holds::Not);
        }
        self.subscribe(state.version());
        drop(state);
        self.begin_fetches();
    }

    fn begin_fetches(&mut self) {
        for range in self.fetches.take_due(self.world.clock.now()) {
            let mut state = self.disk.state.lock();
            if matches!(state.holds(&range), Holds::Not | Holds::Fetching(_)) {
                let since = state.begin_fetch(&range);
                self.fetches.begin(&self.world, self.home.node, range, since);
            }
        }
    }

    fn poll_fetches(&mut self, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        while let Some(Fetched { range, since, rows }) = self.fetches.poll(cx) {
            any = true;
            let mut state = self.disk.state.lock();
            if state.holds(&range) != Holds::Fetching(since) {
                continue;
            }
            match rows {
                Some(rows) => state.end_fetch(&range, since, rows),
                None => self.fetches.failed(self.world.clock.now(), &range),
            }
        }
        any
    }

    /// When there is something to do independently of messages.
    fn due(&self) -> Nanos {
        let ask_at = self.pending_request.is_none().then_some(self.ask_at);
        let pull = self.pull.due(self.world.net.disturbed_until());
        let others = [ask_at, pull, self.waiting.due(), self.fetches.due()];
        others.into_iter().flatten().fold(self.durable_at, Nanos::min)
    }

    /// Does what is due.
    fn tick(&mut self) {
        let now = self.world.clock.now();
        if now >= self.durable_at {
            self.durable_at = now + self.world.config.storage_durable_interval;
            self.make_durable();
        }
        if self.pull.is_silent(now, self.world.net.disturbed_until()) {
            let version = self.disk.state.lock().version();
            self.subscribe(version);
        }
        self.apply();
        self.waiting.take_expired(now).for_each(|read| requests::refuse(read, Error::FUTURE_VERSION));
        self.begin_fetches();
    }

    fn make_durable(&mut self) {
        let mut state = self.disk.state.lock();
        state.make_durable(self.syncing);
        self.syncing = state.version();
        let (server, version) = (self.disk.server, state.durable());
        // Entries without transactions are discarded together.
        let holds_transactions = self.written > self.popped && version > self.popped;
        if holds_transactions || version - self.popped >= self.world.config.window {
            self.popped = version;
            for log in self.pull.logs() {
                self.world.net.send(self.home.node, *log, Message::Pop { server, version });
            }
        }
        self.fetches.settle(|range| state.holds(range) == Holds::Durably);
    }
}

/// Replies to a read whose version is readable, after the duration of reads on this machine.
fn answer(
    world: &World,
    tunables: &MachineTunables,
    rng: &mut Stream,
    watches: &mut Watches,
    state: &State,
    read: Message,
) {
    match read {
        Message::WatchValue { key, value, reply, .. } => {
            watches.set(state, key, value, world.has(ClusterBug::StorageWatchMissesPast), reply);
        }
        read => {
            let work = chance::duration(rng, &world.config.storage_read, |other| &other.storage_read)
                + tunables.read_delay();
            requests::answer(state, read, work);
        }
    }
}
