//! The sequential model: nodes in order; and how rows are read back as a model.

use super::{Walked, link_of, space};
use imbl::{OrdMap, Vector};
use shaketable::specimen::Content;
use shaketable_layers::{
    id::Id,
    list::{self, Error, MAX_WALK},
};
use shaketable_tx::{KeyValue, limits};
use std::collections::{BTreeMap, BTreeSet};

/// A list: its nodes in order, and the content of each. Copies are cheap: some lists are long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    order: Vector<Id>,
    nodes: OrdMap<Id, Held>,
}

/// The content of a node.
#[derive(Clone, Debug, PartialEq)]
struct Held {
    value: Content,
    attributes: BTreeMap<String, Content>,
}

impl Held {
    fn of(value: Content) -> Held {
        Held { value, attributes: BTreeMap::new() }
    }
}

impl Model {
    /// A list of these nodes, without values.
    pub(super) fn of(order: Vec<Id>) -> Model {
        let nodes = order.iter().map(|id| (id.clone(), Held::of(Content::of(0, 0)))).collect();
        Model { order: order.into_iter().collect(), nodes }
    }

    pub(super) fn push_front(&mut self, id: &Id, byte: u8, length: usize) -> Result<(), Error> {
        self.insert(0, id, byte, length)
    }

    pub(super) fn insert_after(&mut self, node: &Id, id: &Id, byte: u8, length: usize) -> Result<(), Error> {
        self.insert(self.up_to(node)?, id, byte, length)
    }

    pub(super) fn remove_first(&mut self) -> Result<Option<Id>, Error> {
        Ok(self.remove(0))
    }

    pub(super) fn remove_next(&mut self, node: &Id) -> Result<Option<Id>, Error> {
        Ok(self.remove(self.up_to(node)?))
    }

    pub(super) fn remove_next_if(&mut self, node: &Id, expected: Option<Id>) -> Result<(), Error> {
        let found = self.next(node)?;
        if found != expected {
            return Err(Error::NextChanged { node: node.clone(), expected, found });
        }
        self.remove_next(node).map(drop)
    }

    pub(super) fn set_value(&mut self, node: &Id, byte: u8, length: usize) -> Result<(), Error> {
        fits(node, byte, length)?;
        self.node(node)?.value = Content::of(byte, length);
        Ok(())
    }

    pub(super) fn set_attribute(
        &mut self,
        node: &Id,
        name: &str,
        byte: u8,
        length: usize,
    ) -> Result<(), Error> {
        limits::row(&key_of(node, name)?, &vec![byte; length])?;
        self.node(node)?.attributes.insert(name.into(), Content::of(byte, length));
        Ok(())
    }

    pub(super) fn clear_attribute(&mut self, node: &Id, name: &str) -> Result<(), Error> {
        limits::key(&key_of(node, name)?)?;
        self.node(node)?.attributes.remove(name);
        Ok(())
    }

    pub(super) fn first(&self) -> Result<Option<Id>, Error> {
        Ok(self.order.front().cloned())
    }

    pub(super) fn next(&self, node: &Id) -> Result<Option<Id>, Error> {
        Ok(self.order.get(self.up_to(node)?).cloned())
    }

    pub(super) fn contains(&self, node: &Id) -> Result<bool, Error> {
        fits(node, 0, 0)?;
        Ok(self.nodes.contains_key(node))
    }

    pub(super) fn value(&self, node: &Id) -> Result<Content, Error> {
        Ok(self.held(node)?.value.clone())
    }

    pub(super) fn attribute(&self, node: &Id, name: &str) -> Result<Option<Content>, Error> {
        limits::key(&key_of(node, name)?)?;
        Ok(self.held(node)?.attributes.get(name).cloned())
    }

    pub(super) fn attributes(&self, node: &Id) -> Result<Vec<(String, Content)>, Error> {
        Ok(self.held(node)?.attributes.clone().into_iter().collect())
    }

    pub(super) fn walk(&self, from: Option<Id>, limit: usize) -> Result<Walked, Error> {
        let before = from.map_or(Ok(0), |from| self.up_to(&from))?;
        if (self.order.len() - before).min(limit) > MAX_WALK {
            return Err(Error::WalkTooLong(MAX_WALK));
        }
        let nodes = self.order.iter().skip(before).take(limit);
        Ok(Walked::of(nodes.map(|id| (id.clone(), self.nodes[id].value.clone()))))
    }

    fn node(&mut self, id: &Id) -> Result<&mut Held, Error> {
        self.held(id)?;
        self.nodes.get_mut(id).ok_or_else(|| Error::NoSuchNode(id.clone()))
    }

    fn held(&self, id: &Id) -> Result<&Held, Error> {
        fits(id, 0, 0)?;
        self.nodes.get(id).ok_or_else(|| Error::NoSuchNode(id.clone()))
    }

    /// The number of nodes up to this one, including it.
    fn up_to(&self, id: &Id) -> Result<usize, Error> {
        fits(id, 0, 0)?;
        let at = self.order.iter().position(|node| node == id);
        at.map(|at| at + 1).ok_or_else(|| Error::NoSuchNode(id.clone()))
    }

    fn insert(&mut self, at: usize, id: &Id, byte: u8, length: usize) -> Result<(), Error> {
        fits(id, byte, length)?;
        if self.nodes.contains_key(id) {
            return Err(Error::NodeExists(id.clone()));
        }
        self.order.insert(at, id.clone());
        self.nodes.insert(id.clone(), Held::of(Content::of(byte, length)));
        Ok(())
    }

    fn remove(&mut self, at: usize) -> Option<Id> {
        let id = (at < self.order.len()).then(|| self.order.remove(at))?;
        self.nodes.remove(&id);
        Some(id)
    }

    /// Reads rows back by the key schema, as a list. The error is why they are no list.
    pub(super) fn read(rows: &[KeyValue]) -> Result<Model, String> {
        let (head, below) = (space().pack(&("head",)), space().subspace(&("node",)));
        let mut links: BTreeMap<Option<Id>, Id> = BTreeMap::new();
        let mut nodes: BTreeMap<Id, Held> = BTreeMap::new();
        let mut attributes = Vec::new();
        let link = |key: &[u8], value: &[u8]| match value {
            [] => Ok(None),
            _ => foundationdb_tuple::unpack::<Id>(value)
                .map(Some)
                .map_err(|_| format!("{} is not a link", key.escape_ascii())),
        };
        for row in rows {
            if row.key == head {
                links.extend(link(&row.key, &row.value)?.map(|id| (None, id)));
            } else if let Ok((id,)) = below.unpack::<(Id,)>(&row.key) {
                nodes.insert(id, Held::of(Content::from(&row.value)));
            } else if let Ok((id, name)) = below.unpack::<(Id, String)>(&row.key) {
                match name == list::NEXT {
                    true => links.extend(link(&row.key, &row.value)?.map(|next| (Some(id.clone()), next))),
                    false => attributes.push((id.clone(), name, Content::from(&row.value))),
                }
                if !nodes.contains_key(&id) {
                    return Err(format!("{} belongs to no node", row.key.escape_ascii()));
                }
            } else {
                return Err(format!("{} is not a key of a list", row.key.escape_ascii()));
            }
        }
        for (id, name, value) in attributes {
            nodes.entry(id).and_modify(|node| drop(node.attributes.insert(name, value)));
        }
        let (mut order, mut met): (Vec<Id>, BTreeSet<Id>) = (Vec::new(), BTreeSet::new());
        while let Some(next) = links.get(&order.last().cloned()) {
            if !met.insert(next.clone()) {
                return Err(format!("the links lead back to {next}"));
            }
            if !nodes.contains_key(next) {
                return Err(format!("a link leads to {next}, which does not exist"));
            }
            order.push(next.clone());
        }
        match nodes.keys().find(|id| !met.contains(id)) {
            Some(orphan) => Err(format!("no link leads to {orphan}")),
            None => Ok(Model { order: order.into_iter().collect(), nodes: nodes.into_iter().collect() }),
        }
    }
}

fn fits(id: &Id, byte: u8, length: usize) -> Result<(), Error> {
    limits::key(&link_of(id))?;
    Ok(limits::row(&space().pack(&("node", id)), &vec![byte; length])?)
}

/// The key of an attribute.
fn key_of(node: &Id, name: &str) -> Result<Vec<u8>, Error> {
    match name {
        list::NEXT => Err(Error::ReservedAttribute(name.into())),
        _ => Ok(space().pack(&("node", node, name))),
    }
}
