//! Selection of the machines that a strike affects.

use super::Strike;
use crate::{
    ids::NodeId,
    world::{Class, World},
};
use std::ops::Deref;

/// The machines of the cluster itself.
pub const CLUSTER: &[Class] = &[Class::Controller, Class::Stateless, Class::Log, Class::Storage];
/// The cluster's machines and its clients.
pub const ALL_MACHINES: &[Class] =
    &[Class::Controller, Class::Stateless, Class::Log, Class::Storage, Class::Client, Class::Auditor];
/// Every client of a run.
pub const CLIENTS: &[Class] = &[Class::Client, Class::Auditor];

/// A strike that has begun, and the machines that there were then. Machines come and go with the databases
/// that a program opens and closes; the end of a strike must concern those that its beginning did.
pub struct Struck {
    strike: Strike,
    machines: Vec<(NodeId, Class)>,
}

impl Struck {
    /// The strike, which begins now.
    pub fn now(world: &World, strike: Strike) -> Struck {
        let mut machines = Vec::new();
        for class in ALL_MACHINES {
            machines.extend(world.machines(*class).into_iter().map(|node| (node, *class)));
        }
        machines.sort_by_key(|(node, _)| *node);
        Struck { strike, machines }
    }

    /// The machines of these classes, by number.
    pub fn machines(&self, classes: &[Class]) -> Vec<NodeId> {
        let such = self.machines.iter().filter(|(_, class)| classes.contains(class));
        such.map(|(node, _)| *node).collect()
    }
}

impl Deref for Struck {
    type Target = Strike;

    fn deref(&self) -> &Strike {
        &self.strike
    }
}

/// The strike's first victim in these classes.
pub fn one(classes: &[Class], strike: &Struck) -> Option<NodeId> {
    pick(&strike.machines(classes), strike.target)
}

/// Two different victims in these classes.
pub fn two(classes: &[Class], strike: &Struck) -> Option<(NodeId, NodeId)> {
    let mut nodes = strike.machines(classes);
    let first = pick(&nodes, strike.target)?;
    nodes.retain(|n| *n != first);
    Some((first, pick(&nodes, strike.other)?))
}

pub(super) fn pick(nodes: &[NodeId], target: u32) -> Option<NodeId> {
    (!nodes.is_empty()).then(|| nodes[target as usize % nodes.len()])
}
