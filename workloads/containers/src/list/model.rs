//! The sequential model: nodes in order; and how rows are read back as a model.

use super::{Answer, List, Op, operations::walked, space};
use shaketable::specimen::Content;
use shaketable_layers::{
    id::Id,
    list::{self, Error, MAX_WALK},
};
use shaketable_tx::{self as tx, limits};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A list: its nodes in order, and the content of each. Clones share them: some lists are long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    pub(super) order: Arc<Vec<Id>>,
    pub(super) nodes: Arc<BTreeMap<Id, Held>>,
}

/// The content of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    pub(super) value: Content,
    pub(super) attributes: BTreeMap<String, Content>,
}

impl Model {
    fn node(&mut self, id: &Id) -> Result<&mut Held, Error> {
        self.held(id)?;
        Arc::make_mut(&mut self.nodes).get_mut(id).ok_or_else(|| Error::NoSuchNode(id.clone()))
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

    fn insert(&mut self, at: usize, id: &Id, byte: u8, length: usize) -> Result<Answer, Error> {
        fits(id, byte, length)?;
        if self.nodes.contains_key(id) {
            return Err(Error::NodeExists(id.clone()));
        }
        Arc::make_mut(&mut self.order).insert(at, id.clone());
        let value = Content::of(byte, length);
        Arc::make_mut(&mut self.nodes).insert(id.clone(), Held { value, attributes: BTreeMap::new() });
        Ok(Answer::Written)
    }

    fn remove(&mut self, at: usize) -> Option<Id> {
        let id = (at < self.order.len()).then(|| Arc::make_mut(&mut self.order).remove(at))?;
        Arc::make_mut(&mut self.nodes).remove(&id);
        Some(id)
    }
}

fn fits(id: &Id, byte: u8, length: usize) -> Result<(), Error> {
    limits::key(&space().pack(&("node", id, list::NEXT)))?;
    Ok(limits::row(&space().pack(&("node", id)), &vec![byte; length])?)
}

pub(super) fn attribute(id: &Id, name: &str) -> Result<Vec<u8>, Error> {
    match name {
        list::NEXT => Err(Error::ReservedAttribute(name.into())),
        _ => Ok(space().pack(&("node", id, name))),
    }
}

impl List {
    /// Performs one call on the model.
    pub(super) fn replayed(&self, model: &mut Model, op: &Op) -> Result<Answer, Error> {
        Ok(match op {
            Op::PushFront(id, byte, length) => model.insert(0, id, *byte, *length)?,
            Op::InsertAfter(after, id, byte, length) => {
                let at = model.up_to(after)?;
                model.insert(at, id, *byte, *length)?
            }
            Op::RemoveFirst => Answer::Node(model.remove(0)),
            Op::RemoveNext(id) => {
                let at = model.up_to(id)?;
                Answer::Node(model.remove(at))
            }
            Op::RemoveNextIf(id, expected) => {
                let at = model.up_to(id)?;
                let found = model.order.get(at).cloned();
                if found != *expected {
                    return Err(Error::NextChanged { node: id.clone(), expected: expected.clone(), found });
                }
                model.remove(at);
                Answer::Written
            }
            Op::SetValue(id, byte, length) => {
                fits(id, *byte, *length)?;
                model.node(id)?.value = Content::of(*byte, *length);
                Answer::Written
            }
            Op::SetAttribute(id, name, byte, length) => {
                limits::row(&attribute(id, name)?, &vec![*byte; *length])?;
                model.node(id)?.attributes.insert(name.clone(), Content::of(*byte, *length));
                Answer::Written
            }
            Op::ClearAttribute(id, name) => {
                limits::key(&attribute(id, name)?)?;
                model.node(id)?.attributes.remove(name);
                Answer::Written
            }
            Op::First => Answer::Node(model.order.first().cloned()),
            Op::Contains(id) => {
                fits(id, 0, 0)?;
                Answer::Is(model.nodes.contains_key(id))
            }
            Op::Next(id) => {
                let at = model.up_to(id)?;
                Answer::Node(model.order.get(at).cloned())
            }
            Op::Value(id) => Answer::Value(Some(model.held(id)?.value.clone())),
            Op::Attribute(id, name) => {
                limits::key(&attribute(id, name)?)?;
                Answer::Value(model.held(id)?.attributes.get(name).cloned())
            }
            Op::Attributes(id) => {
                Answer::Attributes(model.held(id)?.attributes.clone().into_iter().collect())
            }
            Op::Walk(after, limit) => {
                let from = after.as_ref().map_or(Ok(0), |after| model.up_to(after))?;
                let nodes = &model.order[from..];
                if nodes.len().min(*limit) > MAX_WALK {
                    return Err(Error::WalkTooLong(MAX_WALK));
                }
                let nodes = nodes.iter().take(*limit);
                walked(nodes.map(|id| (id.clone(), model.nodes[id].value.clone())))
            }
        })
    }
}

/// Reads rows back by the key schema, as a list. The error is why they are no list.
pub(super) fn read(rows: &[tx::KeyValue]) -> Result<Model, String> {
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
            nodes.insert(id, Held { value: Content::from(&row.value), attributes: BTreeMap::new() });
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
        None => Ok(Model { order: order.into(), nodes: nodes.into() }),
    }
}
