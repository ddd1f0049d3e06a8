//! The worker, which runs on every machine on which the controller recruits roles.

use crate::{
    commit_proxy, grv_proxy,
    ids::{Endpoint, Generation},
    log::{self, LogDisk},
    proto::{LOG, LogSeed, Message, Role},
    reply::ReplyTo,
    resolver,
    rt::{self, Task},
    sequencer,
    world::World,
};
use std::sync::Arc;

/// A role that runs on this machine.
struct Running {
    generation: Generation,
    name: &'static str,
    _task: Task,
}

/// Serves at the machine's well-known endpoint `home`; `disk` is the machine's disk.
pub async fn run(world: Arc<World>, home: Endpoint, disk: Arc<LogDisk>) {
    let inbox = world.net.open_at(home);
    let mut roles: Vec<Running> = Vec::new();
    let mut latest = 0;
    loop {
        world.has_roles(home.node, roles.iter().map(|running| running.name).collect());
        match inbox.recv().await.message {
            Message::Recruit { generation, role, reply } if generation >= latest => {
                latest = generation;
                roles.retain(|running| running.generation >= generation);
                let name = role.name();
                let _task = start(&world, home, &disk, generation, *role, reply);
                roles.push(Running { generation, name, _task });
            }
            Message::LockLog { generation, reply } => {
                roles.retain(|running| !(running.name == LOG && running.generation == generation));
                if let Some(log) = disk.read(generation) {
                    reply.send(log);
                }
            }
            Message::EndGenerations { before } => {
                roles.retain(|running| running.generation >= before);
                disk.forget(before);
            }
            Message::Ping { reply } => reply.send(()),
            _ => {}
        }
    }
}

/// Starts a role with its own inbox, which is reported to the controller.
fn start(
    world: &Arc<World>,
    home: Endpoint,
    disk: &Arc<LogDisk>,
    generation: Generation,
    role: Role,
    reply: ReplyTo<Endpoint>,
) -> Task {
    let inbox = world.net.open(home.node);
    let world = world.clone();
    if let Role::Log(seed) = role {
        return rt::spawn_task(start_log(world, inbox, disk.clone(), generation, seed, reply));
    }
    reply.send(inbox.endpoint());
    match role {
        Role::Sequencer { recovery_version, abandoned } => {
            rt::spawn_task(sequencer::serve(world, inbox, recovery_version, abandoned))
        }
        Role::Resolver { share, recovery_version } => {
            rt::spawn_task(resolver::serve(world, inbox, share, recovery_version))
        }
        Role::CommitProxy(system) => rt::spawn_task(commit_proxy::serve(world, inbox, system)),
        Role::GrvProxy(system) => rt::spawn_task(grv_proxy::serve(world, inbox, system)),
        Role::Log(_) => unreachable!("started above"),
    }
}

/// A log is ready once the entries that it inherits are durable.
async fn start_log(
    world: Arc<World>,
    inbox: crate::net::Inbox,
    disk: Arc<LogDisk>,
    generation: Generation,
    seed: Arc<LogSeed>,
    reply: ReplyTo<Endpoint>,
) {
    world.clock.sleep(world.config.log_sync.start).await;
    disk.create(generation, &seed);
    reply.send(inbox.endpoint());
    log::serve(world, inbox, disk, generation, seed.recovery_version).await
}
