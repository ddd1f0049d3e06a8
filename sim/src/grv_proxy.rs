//! The GRV proxy: serves read versions, many requests with one.
//!
//! A version is not less than any version acknowledged before it was requested: it is the sequencer's highest
//! committed version, fetched after the request arrived, and returned only if every log confirms that its
//! generation was not locked by a recovery in the meantime (`causal_read_risky` skips that check).

use crate::{
    batcher::Batcher,
    config::ClusterBug,
    net::{Broken, Inbox},
    proto::{Message, ReadVersionReply, TransactionSystem},
    rt::Alarm,
    world::World,
};
use futures::{StreamExt, stream::FuturesUnordered};
use shaketable_tx::Error;
use std::{collections::VecDeque, future::poll_fn, sync::Arc, task::Poll};

type Reply = crate::reply::ReplyTo<Result<ReadVersionReply, Error>>;

/// Serves as a GRV proxy of a generation, until it cannot reach the sequencer or a log for longer than the
/// failure timeout: the controller, which may reach both, must then recruit a new one.
pub async fn serve(world: Arc<World>, inbox: Inbox, system: Arc<TransactionSystem>) {
    let node = inbox.endpoint().node;
    let stale = world.config.cluster_bug == Some(ClusterBug::StaleReadVersion);
    let mut rng = world.seed.run_stream(&format!("grv proxy {}", inbox.endpoint().token));
    let mut before: Option<ReadVersionReply> = None;
    let mut batcher = Batcher::<(bool, Reply)>::new(world.config.grv_batch_interval, usize::MAX);
    let mut flights = FuturesUnordered::new();
    let mut failure = Vec::new();
    let mut messages = VecDeque::new();
    let mut alarm = Alarm::default();
    poll_fn(|cx| {
        loop {
            let mut progress = inbox.poll_drain(cx, &mut messages).is_ready();
            for envelope in messages.drain(..) {
                match envelope.message {
                    Message::GetReadVersion { causal_read_risky, reply, .. } => {
                        batcher.add(world.clock.now(), (causal_read_risky, reply));
                    }
                    Message::Ping { reply } => reply.send(()),
                    Message::WaitFailure { reply } => failure.push(reply),
                    _ => {}
                }
            }
            if batcher.due().is_some_and(|at| alarm.poll(&world.clock, at, cx)) {
                let batch = batcher.take();
                let is_risky = |(risky, _): &(bool, Reply)| *risky;
                let risky = match world.config.cluster_bug == Some(ClusterBug::ProxySkipsChecks) {
                    true => batch.iter().any(is_risky),
                    false => batch.iter().all(is_risky),
                };
                let (world, system) = (world.clone(), system.clone());
                flights.push(async move {
                    // A lost message is sent again: repeating the request is harmless.
                    let patience = world.clock.now() + world.config.failure_timeout;
                    loop {
                        match read_version(&world, node, &system, risky).await {
                            Ok(answer) => return Some((batch, answer)),
                            Err(Broken) if world.clock.now() > patience => return None,
                            Err(Broken) => {}
                        }
                    }
                });
                progress = true;
            }
            while let Poll::Ready(Some(answered)) = flights.poll_next_unpin(cx) {
                progress = true;
                let Some((batch, fresh)) = answered else { return Poll::Ready(()) };
                let mut answer = fresh;
                if let (true, Some(before)) = (stale && rng.chance(0.25), before) {
                    answer.version = before.version;
                }
                before = Some(fresh);
                batch.into_iter().for_each(|(_, reply)| reply.send(Ok(answer)));
            }
            if !progress {
                return Poll::Pending;
            }
        }
    })
    .await
}

async fn read_version(
    world: &World,
    node: crate::ids::NodeId,
    system: &TransactionSystem,
    risky: bool,
) -> Result<ReadVersionReply, Broken> {
    let live = world.net.call(node, system.sequencer, |reply| Message::GetLiveCommittedVersion { reply });
    let logs = if risky { &[] } else { &system.logs[..] };
    let running: Vec<_> = logs
        .iter()
        .map(|log| world.net.call(node, *log, |reply| Message::ConfirmRunning { reply }))
        .collect();
    let live = live.await?;
    for confirmed in running {
        confirmed.await?;
    }
    Ok(live)
}
