//! The only module from which a client sends messages: to proxies and to storage servers, including the
//! choice of a replica, the location cache and the retries that are invisible to layers.

use super::{landings::Landings, locations::Locations, proxies::Proxies};
use crate::{
    config::ClusterBug,
    faults::{Family, Occurrence, Request, Turn},
    ids::{ClientId, Endpoint, NodeId},
    net::{Broken, Call, ReplyTo},
    proto::{
        ClientInfo, CommitData, CommitReply, KeyRange, Location, Message, Priority, ReadVersionReply,
        Version, WRONG_SHARD_SERVER,
    },
    rt::{MILLISECOND, Nanos},
    seed::Stream,
    trace::Kind,
    world::World,
};
use bytes::Bytes;
use parking_lot::Mutex;
use shaketable_tx::{Error, Result};
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// How long a client waits before it requests a shard's location again (`WRONG_SHARD_SERVER_DELAY`).
const WRONG_SHARD_DELAY: Nanos = 10 * MILLISECOND;
/// How long it waits before it tries another proxy of the same generation.
const PROXY_RETRY_DELAY: Nanos = 20 * MILLISECOND;

/// The maximum age of a cached read version (`MAX_VERSION_CACHE_LAG`).
const VERSION_CACHE_LAG: Nanos = 100 * MILLISECOND;

/// The newest version that the client knows to be committed, and when it was requested: the read version of
/// transactions that accept a cached one. It is updated by read versions and by the client's own commits, so
/// that a client sees its own acknowledged commits.
#[derive(Clone, Copy, Debug, Default)]
struct VersionCache {
    version: Version,
    requested_at: Nanos,
}

impl VersionCache {
    /// Records `version`, whose request was sent at `requested_at`.
    fn update(&mut self, version: Version, requested_at: Nanos) {
        // Replies may overtake each other.
        if version >= self.version {
            *self = VersionCache { version, requested_at: requested_at.max(self.requested_at) };
        }
    }

    fn fresh(&self, now: Nanos) -> Option<Version> {
        (self.version > 0 && now - self.requested_at <= VERSION_CACHE_LAG).then_some(self.version)
    }
}

/// The cached read version of a process, which all of its databases of one cluster share (`DatabaseContext`'s
/// `sharedStatePtr`).
#[derive(Clone, Default)]
pub struct ReadVersions(Arc<Mutex<VersionCache>>);

impl ReadVersions {
    fn update(&self, version: Version, requested_at: Nanos) {
        self.0.lock().update(version, requested_at);
    }
}

/// A client's connection to the cluster.
pub struct Connection {
    /// The run.
    pub world: Arc<World>,
    /// The client's machine.
    pub node: NodeId,
    /// The client.
    pub client: ClientId,
    proxies: Arc<Proxies>,
    locations: Mutex<Locations>,
    versions: ReadVersions,
    chance: Mutex<Stream>,
    /// Commits that ended with 1039 and are still on their way.
    pub landings: Landings,
    /// Whether anything ended with 1039, so that this is a multi-version client.
    switched: AtomicBool,
}

/// The result of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commit {
    /// The proxy's reply.
    Answered(Result<CommitReply>),
    /// No reply: it may have committed, or may still.
    Unknown,
}

/// Why no replica replied to a read successfully.
enum ReadFailure {
    /// The shard has moved.
    WrongShard,
    /// No replica could be reached.
    Unreachable,
    /// The replicas replied with an error.
    Failed(Error),
}

/// The flags of a read version request.
#[derive(Clone, Copy, Debug, Default)]
pub struct VersionFlags {
    /// Its priority.
    pub priority: Priority,
    /// Skip the check that the generation is still current.
    pub causal_read_risky: bool,
    /// Works even if the database is locked.
    pub lock_aware: bool,
}

impl Connection {
    /// A connection of `client` on `node`, with `chance` as its source of randomness and the process's read
    /// versions. Runs its monitor on the caller's machine.
    pub fn new(
        world: Arc<World>,
        node: NodeId,
        client: ClientId,
        controller: Endpoint,
        chance: Stream,
        versions: ReadVersions,
    ) -> Arc<Connection> {
        let proxies = Proxies::follow(&world, node, controller);
        Arc::new(Connection {
            world,
            node,
            client,
            proxies,
            locations: Mutex::new(Locations::default()),
            versions,
            chance: Mutex::new(chance),
            landings: Landings::default(),
            switched: AtomicBool::new(false),
        })
    }

    /// A draw from the client's own stream.
    pub fn draw<T>(&self, draw: impl FnOnce(&mut Stream) -> T) -> T {
        draw(&mut self.chance.lock())
    }

    /// Whether anything of this client has ended with 1039.
    pub fn has_switched(&self) -> bool {
        self.switched.load(Ordering::Relaxed)
    }

    /// Completes after `duration`.
    pub async fn sleep(&self, duration: Nanos) {
        self.world.clock.sleep(duration).await;
    }

    /// The proxies that the client knows.
    pub fn info(&self) -> Arc<ClientInfo> {
        self.proxies.current()
    }

    /// Sets how many locations are cached.
    pub fn set_location_capacity(&self, capacity: usize) {
        self.locations.lock().set_capacity(capacity);
    }

    fn pick(&self, endpoints: &[Endpoint]) -> Option<Endpoint> {
        match endpoints {
            [] => None,
            [one] => Some(*one),
            many => Some(many[self.draw(|chance| chance.index(many.len()))]),
        }
    }

    /// Fetches a read version. The first request is sent when this is called.
    pub fn read_version(
        self: &Arc<Self>,
        flags: VersionFlags,
    ) -> impl Future<Output = Result<ReadVersionReply>> + Send + use<> {
        let this = self.clone();
        let ask = move |info: &ClientInfo| {
            let to = this.pick(&info.grv_proxies)?;
            let VersionFlags { priority, causal_read_risky, lock_aware } = flags;
            Some(this.world.net.call(this.node, to, |reply| Message::GetReadVersion {
                priority,
                causal_read_risky,
                lock_aware,
                reply,
            }))
        };
        let mut info = self.proxies.current();
        let mut call = ask(&info);
        let requested_at = self.world.clock.now();
        let this = self.clone();
        async move {
            loop {
                let Some(sent) = call.take() else {
                    this.proxies.changed(info.generation).await;
                    info = this.proxies.current();
                    call = ask(&info);
                    continue;
                };
                match this.proxies.unless_changed(info.generation, sent).await {
                    Some(Ok(answer)) => {
                        if let Ok(reply) = &answer {
                            this.versions.update(reply.version, requested_at);
                        }
                        return answer;
                    }
                    Some(Err(Broken)) => this.pause(info.generation).await,
                    None => {}
                }
                info = this.proxies.current();
                call = ask(&info);
            }
        }
    }

    /// A version that was recently known to be committed, without a request.
    pub fn cached_version(&self) -> Option<Version> {
        self.versions.0.lock().fresh(self.world.clock.now())
    }

    /// Waits for a short time, or until the proxies change.
    async fn pause(&self, generation: u64) {
        self.proxies.unless_changed(generation, self.sleep(PROXY_RETRY_DELAY)).await;
    }

    /// Sends a commit to a proxy, once there is one, and waits for the result. Cached read versions are not
    /// older than a successfully acknowledged commit.
    pub async fn commit(&self, data: Arc<CommitData>) -> Commit {
        let requested_at = self.world.clock.now();
        let answer = self.send_commit(data).await;
        if let Commit::Answered(Ok(CommitReply::Committed { version, .. })) = answer
            && !self.world.has(ClusterBug::ClientCachesStale)
        {
            self.versions.update(version, requested_at);
        }
        answer
    }

    /// Like [`commit`](Connection::commit), but without updating the client's cache.
    pub async fn send_commit(&self, data: Arc<CommitData>) -> Commit {
        loop {
            let info = self.proxies.current();
            let Some(to) = self.pick(&info.commit_proxies) else {
                self.proxies.changed(info.generation).await;
                continue;
            };
            let sent = self.world.net.call(self.node, to, |reply| Message::Commit { data, reply });
            return match self.proxies.unless_changed(info.generation, sent).await {
                Some(Ok(answer)) => Commit::Answered(answer),
                Some(Err(Broken)) | None => Commit::Unknown,
            };
        }
    }

    fn known_location(&self, key: &[u8], before: bool) -> Option<Arc<Location>> {
        self.locations.lock().find(key, before).cloned()
    }

    /// The shard that holds `key`, or the keys just before it.
    pub async fn location(&self, key: &Bytes, before: bool) -> Arc<Location> {
        loop {
            if let Some(location) = self.known_location(key, before) {
                return location;
            }
            let info = self.proxies.current();
            let Some(to) = self.pick(&info.commit_proxies) else {
                self.proxies.changed(info.generation).await;
                continue;
            };
            let range = match before {
                true => KeyRange { begin: Bytes::new(), end: key.clone() },
                false => super::keys::single_key(key),
            };
            let sent = self.world.net.call(self.node, to, |reply| Message::GetKeyLocations {
                range,
                limit: 1,
                reverse: before,
                reply,
            });
            let Some(found) = self.proxies.unless_changed(info.generation, sent).await else { continue };
            match found.into_iter().flatten().next() {
                // A small cache may drop it at once.
                Some(location) => return self.locations.lock().insert(location),
                None => self.pause(info.generation).await,
            }
        }
    }

    /// Whether a family of events that the contract allows occurs here.
    pub fn fault_occurs(&self, family: Family) -> bool {
        self.fault(family).is_some()
    }

    /// A request of an operation that is about to be made, if the plan concerns requests.
    pub fn turn(&self, operation: Option<u32>, request: Request) -> Option<Turn> {
        Turn::begin(&self.world, (self.node, self.client), operation, request)
    }

    /// The fault of a family that the contract allows, if it occurs here.
    pub fn fault(&self, family: Family) -> Option<Occurrence> {
        let occurrence = self.world.faults.occurs(self.client, family)?;
        if let Family::ClusterVersionChanged | Family::SpuriousWatch = family {
            self.switched.store(true, Ordering::Relaxed);
        }
        self.world.event(self.node, Kind::Fault, family as u64, 0);
        Some(occurrence)
    }

    /// The error of the first of these families that occurs here.
    pub fn refusal_of(&self, families: impl IntoIterator<Item = Family>) -> Option<Error> {
        families.into_iter().find(|family| self.fault_occurs(*family)).and_then(Family::error)
    }

    /// Errors that the contract allows at any read.
    fn read_fault(&self) -> Result<()> {
        let allowed = [Family::TooOld, Family::FutureVersion, Family::ProcessBehind];
        self.refusal_of(allowed).map_or(Ok(()), Err)
    }

    fn send<R: Send + 'static>(
        &self,
        to: Endpoint,
        request: impl FnOnce(ReplyTo<Result<R>>) -> Message,
    ) -> Call<Result<R>> {
        self.world.net.call(self.node, to, request)
    }

    /// Sends a request to the shard's replicas in turn, starting with a random one (`sent`, if a request to
    /// it was already sent).
    async fn ask<R: Send + 'static>(
        &self,
        location: &Location,
        mut sent: Option<(usize, Call<Result<R>>)>,
        request: impl Fn(ReplyTo<Result<R>>) -> Message,
    ) -> Result<R, ReadFailure> {
        let servers = &location.servers;
        let mut failed = None;
        let mut first = None;
        for turn in 0..servers.len() {
            let (at, call) = match sent.take() {
                Some(sent) => sent,
                None => {
                    let first = *first.get_or_insert_with(|| self.first_replica(location));
                    let at = (first + turn) % servers.len();
                    (at, self.send(servers[at], &request))
                }
            };
            first.get_or_insert(at);
            match call.await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(WRONG_SHARD_SERVER)) => return Err(ReadFailure::WrongShard),
                // Only this error is a reason to ask another one (`checkAndProcessResult` of FoundationDB's
                // load balancing): for a version of the future each of them would make the caller wait.
                Ok(Err(e @ Error::PROCESS_BEHIND)) => failed = Some(e),
                Ok(Err(e)) => return Err(ReadFailure::Failed(e)),
                Err(Broken) => {}
            }
        }
        Err(failed.map_or(ReadFailure::Unreachable, ReadFailure::Failed))
    }

    fn first_replica(&self, location: &Location) -> usize {
        match location.servers.len() {
            0 | 1 => 0,
            n => self.draw(|chance| chance.index(n)),
        }
    }

    /// After a read to which no replica replied: drops the cached location and waits, or returns the error.
    async fn recover(&self, location: &Arc<Location>, failure: ReadFailure) -> Result<()> {
        if let ReadFailure::Failed(error) = failure {
            return Err(error);
        }
        self.locations.lock().forget(location);
        self.sleep(WRONG_SHARD_DELAY).await;
        Ok(())
    }

    /// Reads from the shard that holds `key` (or the keys just before it); `request` builds the request for a
    /// location. Returns the location with the reply.
    pub async fn read<R: Send + 'static>(
        &self,
        key: &Bytes,
        before: bool,
        request: impl Fn(&Location, ReplyTo<Result<R>>) -> Message,
    ) -> Result<(Arc<Location>, R)> {
        self.read_fault()?;
        self.read_from(key, before, request).await
    }

    /// Like [`read`](Connection::read), without the errors injected by faults.
    pub async fn read_from<R: Send + 'static>(
        &self,
        key: &Bytes,
        before: bool,
        request: impl Fn(&Location, ReplyTo<Result<R>>) -> Message,
    ) -> Result<(Arc<Location>, R)> {
        loop {
            let location = self.location(key, before).await;
            match self.ask(&location, None, |reply| request(&location, reply)).await {
                Ok(answer) => return Ok((location, answer)),
                Err(failure) => self.recover(&location, failure).await?,
            }
        }
    }

    /// The value of `key` at `version`. If its location is known, the request is sent when this is called.
    pub fn value(
        self: &Arc<Self>,
        key: Bytes,
        version: Version,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<> {
        let this = self.clone();
        let fault = self.read_fault();
        let request = {
            let key = key.clone();
            move |reply| Message::GetValue { key: key.clone(), version, reply }
        };
        let sent = match fault {
            Ok(()) => self.known_location(&key, false).filter(|l| !l.servers.is_empty()).map(|location| {
                let at = self.first_replica(&location);
                let call = self.send(location.servers[at], &request);
                (location, at, call)
            }),
            Err(_) => None,
        };
        async move {
            fault?;
            let mut next = sent.map(|(location, at, call)| (location, Some((at, call))));
            loop {
                let (location, sent) = match next.take() {
                    Some(next) => next,
                    None => (this.location(&key, false).await, None),
                };
                match this.ask(&location, sent, &request).await {
                    Ok(answer) => return Ok(answer),
                    Err(failure) => this.recover(&location, failure).await?,
                }
            }
        }
    }
}
