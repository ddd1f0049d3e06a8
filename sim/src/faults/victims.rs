//! Selection of the machines that a strike affects.

use super::Strike;
use crate::{
    ids::NodeId,
    world::{Class, World},
};

/// The machines of the cluster itself.
pub const CLUSTER: &[Class] = &[Class::Controller, Class::Stateless, Class::Log, Class::Storage];
/// The cluster's machines and its clients.
pub const ALL_MACHINES: &[Class] =
    &[Class::Controller, Class::Stateless, Class::Log, Class::Storage, Class::Client];

/// The machines of these classes, by number.
pub fn machines(world: &World, classes: &[Class]) -> Vec<NodeId> {
    let mut nodes: Vec<NodeId> = classes.iter().flat_map(|class| world.machines(*class)).collect();
    nodes.sort();
    nodes
}

/// The strike's first victim in these classes.
pub fn one(world: &World, classes: &[Class], strike: &Strike) -> Option<NodeId> {
    pick(&machines(world, classes), strike.target)
}

/// Two different victims in these classes.
pub fn two(world: &World, classes: &[Class], strike: &Strike) -> Option<(NodeId, NodeId)> {
    let mut nodes = machines(world, classes);
    let first = pick(&nodes, strike.target)?;
    nodes.retain(|n| *n != first);
    Some((first, pick(&nodes, strike.other)?))
}

fn pick(nodes: &[NodeId], target: u32) -> Option<NodeId> {
    (!nodes.is_empty()).then(|| nodes[target as usize % nodes.len()])
}
