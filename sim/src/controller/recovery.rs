//! Recovery: ends a generation of the transaction system and starts the next.
//!
//! The old logs are locked, which ends all acknowledgements; the recovery version is at or after every
//! acknowledged commit; new roles are recruited, the new logs with the old entries; the new generation is
//! written to the controller's disk before it accepts a commit. A recovery that fails on the way is started
//! again from the content of the disk: the old logs stay unchanged until then, and everything that an
//! abandoned attempt recruited has its own generation.

use super::{
    Controller,
    state::{assign, end_of_generation, forget_last_commit, resolvers},
};
use crate::{
    config::ClusterBug,
    ids::{Endpoint, Generation},
    net::{Broken, ReplyTo},
    proto::{
        ClientInfo, CommitData, CommitReply, LogSeed, LogSystem, Message, Mutation, Role, TransactionSystem,
        Version,
    },
    rt::Nanos,
    system_keys,
    trace::Kind,
};
use futures::future::join_all;
use std::sync::Arc;

/// A generation that accepts commits.
pub(super) struct Formed {
    /// Every role's inbox: if one of them dies, the generation has ended.
    pub roles: Vec<Endpoint>,
    /// The endpoints for clients.
    pub clients: ClientInfo,
}

impl Controller {
    /// Ends the generation on the disk and starts the next.
    pub(super) async fn recover(&self) -> Result<Formed, Broken> {
        let config = &self.world.config;
        let mut record = self.disk.read();
        record.attempt += 1;
        let generation = record.attempt;
        self.persist(record.clone()).await;
        self.world.event(self.home.node, Kind::RecoveryBegin, generation, 0);

        let seed = self.lock(record.generation, &record.logs).await?;
        let recovery_version = seed.recovery_version;
        let workers = self.alive(&self.workers).await?;
        let log_machines = self.alive(&self.log_machines).await?;

        let log_count = usize::from(config.logs.max(1)).min(log_machines.len());
        let logs: Vec<_> = assign(&log_machines, generation, 0, log_count).collect();
        let seed = Arc::new(seed);
        let log_roles = logs.iter().map(|home| (*home, Role::Log(seed.clone())));
        let log_endpoints = self.recruit(generation, log_roles).await?;

        let abandoned = record.abandoned(recovery_version);
        let mut core = vec![Role::Sequencer { recovery_version, abandoned }];
        core.extend(resolvers(&config.resolver_boundaries, recovery_version));
        let taken = core.len();
        let core = self.recruit(generation, assign(&workers, generation, 0, taken).zip(core)).await?;
        let system = Arc::new(TransactionSystem {
            recovery_version,
            sequencer: core[0],
            resolvers: core[1..].to_vec(),
            logs: log_endpoints.clone(),
        });
        let commits = usize::from(config.commit_proxies.max(1));
        let proxies = usize::from(config.grv_proxies.max(1)) + commits;
        let proxy_roles = (0..proxies).map(|i| match i < commits {
            true => Role::CommitProxy(system.clone()),
            false => Role::GrvProxy(system.clone()),
        });
        let homes = assign(&workers, generation, taken, proxies);
        let mut commit_proxies = self.recruit(generation, homes.zip(proxy_roles)).await?;
        let grv_proxies = commit_proxies.split_off(commits);

        // From here on, the generation may accept commits, and the next recovery starts from it.
        let old = record.generation;
        record.ends.insert(old, recovery_version);
        record.generation = generation;
        record.logs = logs;
        self.persist(record.clone()).await;
        {
            let mut history = self.world.history.lock();
            // Abandoned attempts between the two never accepted a commit.
            history.ended.extend((old..generation).map(|ended| (ended, recovery_version)));
        }
        self.world.lock.recovered(recovery_version);
        let log_system = LogSystem { generation, logs: log_endpoints.clone(), ends: record.ends.clone() };
        self.published.borrow_mut().publish_logs(log_system);
        for home in self.workers.iter().chain(&self.log_machines) {
            self.world.net.send(self.home.node, *home, Message::EndGenerations { before: generation });
        }

        let mutations = if record.initialized { Vec::new() } else { system_keys::initial(&self.world) };
        let version = self.recovery_transaction(commit_proxies[0], mutations).await?;
        record.initialized = true;
        self.disk.write(record);
        self.world.event(self.home.node, Kind::RecoveryEnd, generation, version as u64);
        let roles = [&core[..], &log_endpoints, &commit_proxies, &grv_proxies].concat();
        Ok(Formed { roles, clients: ClientInfo { generation, grv_proxies, commit_proxies } })
    }

    /// Locks the logs of a generation: as many as reply, at least one.
    async fn lock(&self, generation: Generation, logs: &[Endpoint]) -> Result<LogSeed, Broken> {
        if generation == 0 {
            let popped = vec![0; usize::from(self.world.config.storage_servers)];
            return Ok(LogSeed { popped, ..LogSeed::default() });
        }
        let locks = logs.iter().map(|log| self.ask(*log, 1, |reply| Message::LockLog { generation, reply }));
        let locked: Vec<_> = join_all(locks).await.into_iter().flatten().collect();
        let mut seed = end_of_generation(&locked).ok_or(Broken)?;
        if self.world.config.cluster_bug == Some(ClusterBug::RecoveryForgetsCommit) {
            forget_last_commit(&mut seed);
        }
        Ok(seed)
    }

    /// The machines that reply, at least one.
    async fn alive(&self, machines: &[Endpoint]) -> Result<Vec<Endpoint>, Broken> {
        let pings = machines
            .iter()
            .map(|home| async { self.ask(*home, 1, |reply| Message::Ping { reply }).await.map(|()| *home) });
        let alive: Vec<_> = join_all(pings).await.into_iter().flatten().collect();
        if alive.is_empty() { Err(Broken) } else { Ok(alive) }
    }

    /// Recruits all of these roles; returns the endpoints of their inboxes.
    async fn recruit(
        &self,
        generation: Generation,
        roles: impl Iterator<Item = (Endpoint, Role)>,
    ) -> Result<Vec<Endpoint>, Broken> {
        let recruits = roles.map(|(home, role)| {
            self.ask(home, 4, |reply| Message::Recruit { generation, role: Box::new(role), reply })
        });
        join_all(recruits).await.into_iter().collect()
    }

    /// The generation's first commit: its version is the first readable version. It is empty, except in a new
    /// cluster.
    async fn recovery_transaction(
        &self,
        proxy: Endpoint,
        mutations: Vec<Mutation>,
    ) -> Result<Version, Broken> {
        let data = Arc::new(CommitData { mutations, lock_aware: true, ..CommitData::default() });
        match self.ask(proxy, 10, |reply| Message::Commit { data, reply }).await? {
            Ok(CommitReply::Committed { version, .. }) => Ok(version),
            _ => Err(Broken),
        }
    }

    /// Sends a request and waits for the reply, for at most `patience` times the failure timeout.
    async fn ask<R: Send + 'static>(
        &self,
        to: Endpoint,
        patience: Nanos,
        request: impl FnOnce(ReplyTo<R>) -> Message,
    ) -> Result<R, Broken> {
        let call = self.world.net.call(self.home.node, to, request);
        let timeout = self.world.config.failure_timeout * patience;
        self.world.clock.timeout(timeout, call).await.unwrap_or(Err(Broken))
    }

    async fn persist(&self, record: super::state::Record) {
        self.world.clock.sleep(self.world.config.log_sync.start).await;
        self.disk.write(record);
    }
}
