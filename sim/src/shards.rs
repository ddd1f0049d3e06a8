//! The shard map as plain data, as FoundationDB keeps it under `\xff/keyServers`.

use crate::{config::ClusterConfig, proto::KeyRange};
use bytes::Bytes;
use std::collections::VecDeque;

/// The end of the last shard.
pub const END_OF_KEYSPACE: Bytes = Bytes::from_static(b"\xff\xff");

/// A shard and the storage servers that hold it. Storage servers are identified by number, dense from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its keys.
    pub range: KeyRange,
    /// The servers that clients read it from.
    pub team: Vec<u16>,
    /// The team to which it is moving, if any.
    pub moving_to: Option<Vec<u16>>,
    /// Former members of the team that have not dropped it yet.
    pub leaving: Vec<u16>,
}

/// All shards, in key order, without gaps. The map survives all faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardMap {
    shards: Vec<Shard>,
    requests: VecDeque<(usize, Vec<u16>)>,
}

impl ShardMap {
    /// The initial map of a database: the configured boundaries, with replicas assigned in turn.
    pub fn new(config: &ClusterConfig) -> ShardMap {
        let servers = config.storage_servers.max(1);
        let replicas = config.replicas.clamp(1, servers);
        let mut begins = vec![Bytes::new()];
        begins.extend(
            config.shard_boundaries.iter().filter(|b| !b.is_empty() && **b < END_OF_KEYSPACE).cloned(),
        );
        begins.sort();
        begins.dedup();
        let ends: Vec<Bytes> = begins[1..].iter().cloned().chain([END_OF_KEYSPACE]).collect();
        let shards = begins
            .into_iter()
            .zip(ends)
            .enumerate()
            .map(|(i, (begin, end))| Shard {
                range: KeyRange { begin, end },
                team: (0..replicas).map(|r| ((i + usize::from(r)) % usize::from(servers)) as u16).collect(),
                moving_to: None,
                leaving: Vec::new(),
            })
            .collect();
        ShardMap { shards, requests: VecDeque::new() }
    }

    /// All shards, in order.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// The ranges that a server holds as a team member.
    pub fn held_by(&self, server: u16) -> impl Iterator<Item = &KeyRange> {
        self.shards.iter().filter(move |s| s.team.contains(&server)).map(|s| &s.range)
    }

    /// The shards that intersect a range, in order or from its end, at most `limit`.
    pub fn intersecting(
        &self,
        range: &KeyRange,
        limit: usize,
        reverse: bool,
    ) -> impl Iterator<Item = &Shard> {
        let from = self.shards.partition_point(|s| s.range.end <= range.begin);
        let to = self.shards.partition_point(|s| s.range.begin < range.end).max(from);
        let shards = &self.shards[from..to];
        let (forth, back) = if reverse { (&shards[..0], shards) } else { (shards, &shards[..0]) };
        forth.iter().chain(back.iter().rev()).take(limit)
    }

    /// Requests that a shard be moved to another team. The data distributor processes requests in turn.
    /// Returns whether there is anything to do: not while that shard is moving, nor for a team that is empty
    /// or already holds it.
    pub fn request_move(&mut self, shard: usize, team: Vec<u16>) -> bool {
        let Some(at) = self.shards.get(shard) else { return false };
        let waiting = self.requests.iter().any(|(other, _)| *other == shard);
        let same = team.iter().all(|s| at.team.contains(s)) && team.len() == at.team.len();
        if team.is_empty() || same || waiting || at.moving_to.is_some() || !at.leaving.is_empty() {
            return false;
        }
        self.requests.push_back((shard, team));
        true
    }

    /// The shard that is moving or has former members left; otherwise the next requested one, which is then
    /// moving.
    pub(super) fn next_move(&mut self) -> Option<usize> {
        let under_way = self.shards.iter().position(|s| s.moving_to.is_some() || !s.leaving.is_empty());
        under_way.or_else(|| {
            let (shard, team) = self.requests.pop_front()?;
            self.shards[shard].moving_to = Some(team);
            Some(shard)
        })
    }

    /// The new team holds the shard: clients are directed to it, and servers that are not in it may drop the
    /// shard.
    pub(super) fn switch(&mut self, shard: usize) {
        let shard = &mut self.shards[shard];
        if let Some(team) = shard.moving_to.take() {
            let old = std::mem::replace(&mut shard.team, team);
            shard.leaving = old.into_iter().filter(|s| !shard.team.contains(s)).collect();
        }
    }

    /// A former member has dropped the shard.
    pub(super) fn left(&mut self, shard: usize, server: u16) {
        self.shards[shard].leaving.retain(|s| *s != server);
    }

    /// Whether nothing is moving and no move is requested.
    pub fn is_settled(&self) -> bool {
        self.requests.is_empty() && self.shards.iter().all(|s| s.moving_to.is_none() && s.leaving.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> ShardMap {
        ShardMap::new(&ClusterConfig {
            storage_servers: 3,
            replicas: 2,
            shard_boundaries: vec![Bytes::from_static(b"b"), Bytes::from_static(b"m")],
            ..ClusterConfig::smallest()
        })
    }

    #[test]
    fn shards_cover_the_keyspace_and_servers_share_them() {
        let map = map();
        assert_eq!(map.shards().len(), 3);
        assert!(map.shards()[0].range.begin.is_empty());
        assert_eq!(map.shards()[2].range.end, END_OF_KEYSPACE);
        assert!(map.shards().windows(2).all(|w| w[0].range.end == w[1].range.begin));
        assert!(map.shards().iter().all(|s| s.team.len() == 2));
        assert_eq!(map.held_by(1).count(), 2);
    }

    #[test]
    fn intersecting_runs_both_ways() {
        let map = map();
        let begins = |range: &KeyRange, limit, reverse| -> Vec<Bytes> {
            map.intersecting(range, limit, reverse).map(|s| s.range.begin.clone()).collect()
        };
        assert_eq!(begins(&KeyRange::new("a", "c"), 9, false), ["", "b"]);
        assert_eq!(begins(&KeyRange::new("a", "z"), 2, true), ["m", "b"]);
        assert_eq!(begins(&KeyRange::new("m", "m\0"), 9, false), ["m"]);
    }

    #[test]
    fn a_move_is_asked_for_once_and_passes_through_its_steps() {
        let mut map = map();
        assert!(!map.request_move(0, vec![1, 0]), "the same team");
        assert!(map.request_move(0, vec![0, 2]));
        assert!(!map.request_move(0, vec![1, 2]), "already asked for");
        assert_eq!(map.next_move(), Some(0));
        assert_eq!(map.shards()[0].team, [0, 1], "readers stay where they are");
        map.switch(0);
        assert_eq!((&map.shards()[0].team[..], &map.shards()[0].leaving[..]), (&[0, 2][..], &[1][..]));
        assert_eq!(map.next_move(), Some(0), "the former member is not done");
        map.left(0, 1);
        assert!(map.is_settled());
        assert_eq!(map.next_move(), None);
    }
}
