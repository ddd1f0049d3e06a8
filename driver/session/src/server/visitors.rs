//! Who is connected, and who was.

use super::limits;
use crate::protocol::wire::Wire;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

/// How many reasons of refusals are kept.
const KEPT: usize = 5;

/// Who came to a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visitors {
    /// Connections that were served.
    pub served: u64,
    /// Connections that are open.
    pub now: usize,
    /// Connections that were open at once, at most.
    pub most: usize,
    /// Connections that the server ended, because of what was sent.
    pub refused: u64,
    /// The first different reasons, each one line.
    pub reasons: Vec<String>,
}

impl fmt::Display for Visitors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Visitors { served, most, refused, reasons, .. } = self;
        writeln!(f, "connections: {served}, at most {most} at once, {refused} refused")?;
        reasons.iter().try_for_each(|reason| writeln!(f, "  refused: {reason}"))
    }
}

/// The visitors, and the wires of those who are there.
#[derive(Default)]
pub struct Book {
    pub visitors: Visitors,
    wires: BTreeMap<u64, Arc<Wire>>,
    /// Those that are no clients yet.
    silent: BTreeSet<u64>,
    next: u64,
}

impl Book {
    /// Somebody has connected. Returns a number for [`leave`](Book::leave). Whoever has been silent longest
    /// goes, if there are too many.
    pub fn enter(&mut self, wire: Arc<Wire>) -> u64 {
        self.next += 1;
        self.wires.insert(self.next, wire);
        self.silent.insert(self.next);
        if self.silent.len() > limits::CONNECTIONS
            && let Some(wire) = self.silent.pop_first().and_then(|oldest| self.wires.get(&oldest))
        {
            wire.end();
        }
        self.visitors.now = self.wires.len();
        self.visitors.most = self.visitors.most.max(self.visitors.now);
        self.next
    }

    /// Somebody is a client, unless there are as many as can be.
    pub fn serve(&mut self, number: u64) -> bool {
        let has_room = self.wires.len() - self.silent.len() < limits::CONNECTIONS;
        if has_room && self.silent.remove(&number) {
            self.visitors.served += 1;
        }
        has_room
    }

    /// A connection is over.
    pub fn leave(&mut self, number: u64) {
        self.wires.remove(&number);
        self.silent.remove(&number);
        self.visitors.now = self.wires.len();
    }

    /// A connection was refused.
    pub fn refuse(&mut self, reason: &str) {
        let Visitors { refused, reasons, .. } = &mut self.visitors;
        *refused += 1;
        if reasons.len() < KEPT && !reasons.iter().any(|known| known == reason) {
            reasons.push(reason.to_owned());
        }
    }

    /// Every connection reads no more requests.
    pub fn dismiss(&self) {
        self.wires.values().for_each(|wire| wire.end_reads());
    }
}
