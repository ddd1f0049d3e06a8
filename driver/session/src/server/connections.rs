//! The registry of a server's connections, and its statistics.

use super::limits;
use crate::protocol::wire::Wire;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

/// How many reasons for refusals are kept.
const KEPT: usize = 5;

/// Statistics of a server's connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionStats {
    /// Connections that were served.
    pub served: u64,
    /// Connections that are open.
    pub now: usize,
    /// Connections that were open at once, at most.
    pub most: usize,
    /// Connections that the server ended because of what they sent.
    pub refused: u64,
    /// The first different reasons, each one line.
    pub reasons: Vec<String>,
}

impl fmt::Display for ConnectionStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConnectionStats { served, most, refused, reasons, .. } = self;
        writeln!(f, "connections: {served}, at most {most} at once, {refused} refused")?;
        reasons.iter().try_for_each(|reason| writeln!(f, "  refused: {reason}"))
    }
}

/// The statistics, and the sockets of the open connections.
#[derive(Default)]
pub struct Registry {
    pub stats: ConnectionStats,
    wires: BTreeMap<u64, Arc<Wire>>,
    /// Those that have not sent a valid greeting yet.
    ungreeted: BTreeSet<u64>,
    next: u64,
}

impl Registry {
    /// Adds a connection, and returns its number. If too many have not sent a greeting, the oldest of these
    /// is closed.
    pub fn add(&mut self, wire: Arc<Wire>) -> u64 {
        self.next += 1;
        self.wires.insert(self.next, wire);
        self.ungreeted.insert(self.next);
        if self.ungreeted.len() > limits::CONNECTIONS
            && let Some(wire) = self.ungreeted.pop_first().and_then(|oldest| self.wires.get(&oldest))
        {
            wire.end();
        }
        self.stats.now = self.wires.len();
        self.stats.most = self.stats.most.max(self.stats.now);
        self.next
    }

    /// The connection has sent a valid greeting. Returns `false` if there are too many clients already.
    pub fn accept(&mut self, number: u64) -> bool {
        let has_room = self.wires.len() - self.ungreeted.len() < limits::CONNECTIONS;
        if has_room && self.ungreeted.remove(&number) {
            self.stats.served += 1;
        }
        has_room
    }

    /// Removes a connection that has ended.
    pub fn remove(&mut self, number: u64) {
        self.wires.remove(&number);
        self.ungreeted.remove(&number);
        self.stats.now = self.wires.len();
    }

    /// Counts a connection that was refused.
    pub fn refuse(&mut self, reason: &str) {
        let ConnectionStats { refused, reasons, .. } = &mut self.stats;
        *refused += 1;
        if reasons.len() < KEPT && !reasons.iter().any(|known| known == reason) {
            reasons.push(reason.to_owned());
        }
    }

    /// No connection reads any more requests.
    pub fn end_reads(&self) {
        self.wires.values().for_each(|wire| wire.end_reads());
    }
}
