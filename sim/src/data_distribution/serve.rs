//! The data distributor's task: carries out requested moves, one at a time.
//!
//! Its progress is stored in the shard map, which survives it: after a restart it continues from there, and
//! repeats requests that may have been sent before. The order of the steps protects the data: the new team
//! has the shard durably, then the database says so, then clients are directed to it, then the old team drops
//! it.

use crate::{
    client::Proxies,
    ids::{Endpoint, NodeId},
    net::{Broken, Call, ReplyTo},
    proto::{CommitData, CommitReply, KeyRange, Message, Mutation},
    rt::{MILLISECOND, Nanos},
    shards::Shard,
    system_keys,
    trace::Kind,
    world::{Class, World},
};
use futures::future::try_join_all;
use std::sync::Arc;

/// The interval at which the distributor looks for work, and retries failed steps.
const INTERVAL: Nanos = 100 * MILLISECOND;

/// Adds the data distributor's machine, which asks `controller` for the proxies.
pub fn add(world: &Arc<World>, controller: Endpoint) {
    world.add_machine(Class::Stateless, "data distributor", move |world, node| run(world, node, controller));
}

async fn run(world: Arc<World>, node: NodeId, controller: Endpoint) {
    world.has_roles(node, vec!["data_distributor"]);
    let proxies = Proxies::follow(&world, node, controller);
    loop {
        let next = world.shards.lock().next_move();
        let done = match next {
            Some(shard) => step(&world, node, shard, &proxies).await,
            None => Err(Broken),
        };
        if done.is_err() {
            world.clock.sleep(INTERVAL).await;
        }
    }
}

/// Advances a shard's move as far as the servers reply.
async fn step(world: &World, node: NodeId, shard: usize, proxies: &Proxies) -> Result<(), Broken> {
    let servers = world.machines(Class::Storage);
    let node_of = |server: &u16| servers[usize::from(*server)];
    let at = world.shards.lock().shards()[shard].clone();
    if let Some(team) = &at.moving_to {
        let sources: Vec<NodeId> = at.team.iter().map(node_of).collect();
        let fetches = team.iter().filter(|server| !at.team.contains(server)).map(|server| {
            let add = |reply| Message::AddShard { range: at.range.clone(), sources: sources.clone(), reply };
            ask(world, node, node_of(server), add)
        });
        try_join_all(fetches).await?;
        let moved = Shard { team: team.clone(), ..at.clone() };
        write(world, node, proxies, system_keys::key_servers(world, &moved)).await?;
        let team = team.first().copied().unwrap_or_default();
        world.shards.lock().switch(shard);
        world.event(node, Kind::ShardMoved, shard as u64, u64::from(team));
    }
    let leaving = world.shards.lock().shards()[shard].leaving.clone();
    for server in leaving {
        let range: KeyRange = at.range.clone();
        ask(world, node, node_of(&server), |reply| Message::DropShard { range, reply }).await?;
        world.shards.lock().left(shard, server);
    }
    Ok(())
}

/// Commits a change of the cluster's own keys. It is repeated until it is known to be committed, which
/// changes nothing more.
async fn write(world: &World, node: NodeId, proxies: &Proxies, change: Mutation) -> Result<(), Broken> {
    let info = proxies.current();
    let to = *info.commit_proxies.first().ok_or(Broken)?;
    let mutations = vec![change];
    let write_ranges = system_keys::written(&mutations);
    let data = Arc::new(CommitData { mutations, write_ranges, lock_aware: true, ..CommitData::default() });
    let sent = world.net.call(node, to, |reply| Message::Commit { data, reply });
    match proxies.unless_changed(info.generation, sent).await {
        Some(Ok(Ok(CommitReply::Committed { .. }))) => Ok(()),
        _ => Err(Broken),
    }
}

/// Sends a request to a storage server; fails if its machine has never been up.
async fn ask(
    world: &World,
    node: NodeId,
    server: NodeId,
    request: impl FnOnce(ReplyTo<()>) -> Message,
) -> Result<(), Broken> {
    let call: Call<()> = world.net.call(node, world.address(server).ok_or(Broken)?, request);
    call.await
}
