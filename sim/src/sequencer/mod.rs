//! The sequencer: assigns commit versions in a chain, and tracks the highest committed one.

mod state;

pub use state::Versions;

use crate::{
    net::Inbox,
    proto::{Message, ReadVersionReply, Version},
    world::World,
};
use std::sync::Arc;

/// Serves as the sequencer of the generation that follows `recovery_version`, after so many others that
/// followed it and were abandoned. Its versions are above theirs.
pub async fn serve(world: Arc<World>, inbox: Inbox, recovery_version: Version, abandoned: Version) {
    let config = &world.config;
    let jump = match recovery_version {
        0 => config.first_version,
        _ => config.recovery_jump * (abandoned + 1),
    };
    let mut versions = Versions::new(recovery_version, jump, config.versions_per_second);
    let mut failure = Vec::new();
    // Requested before anything was committed in this generation.
    let mut waiting = Vec::new();
    loop {
        match inbox.recv().await.message {
            Message::GetCommitVersion { reply } => reply.send(versions.next(world.clock.now())),
            Message::GetLiveCommittedVersion { reply } => match versions.live() {
                Some(version) => reply.send(read_version(&world, version)),
                None => waiting.push(reply),
            },
            Message::ReportCommitted { version, reply } => {
                versions.committed(version);
                reply.send(());
                for reply in waiting.drain(..) {
                    reply.send(read_version(&world, version));
                }
            }
            Message::Ping { reply } => reply.send(()),
            Message::WaitFailure { reply } => failure.push(reply),
            _ => {}
        }
    }
}

fn read_version(world: &World, version: Version) -> ReadVersionReply {
    ReadVersionReply { version, locked: world.tunables.locked() || world.lock.locked_at(version) }
}
