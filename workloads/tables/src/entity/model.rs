//! The sequential model: attributes and pairs; and how rows are read back as a model.

use super::{Answer, Entity, Op, operations::RELATIONSHIPS, space};
use shaketable::specimen::Content;
use shaketable_layers::{
    entity::{Cardinality, Direction, Error},
    id::Id,
};
use shaketable_tx::{self as tx, limits};
use std::collections::{BTreeMap, BTreeSet};

/// Pairs by relationship: the primary and the foreign entity.
pub(super) type Pairs = BTreeSet<(String, Id, Id)>;

/// Attributes and pairs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    attributes: BTreeMap<(Id, String), Content>,
    pairs: Pairs,
}

pub(super) fn cardinality(relationship: &str) -> Result<Cardinality, Error> {
    let known = RELATIONSHIPS.iter().find(|(name, _)| *name == relationship);
    known.map(|(_, of)| *of).ok_or_else(|| Error::UnknownRelationship(relationship.into()))
}

/// Refuses a pair if one of its keys is too long, of those for these sides.
fn fits(relationship: &str, sides: &[Direction], primary: &Id, foreign: &Id) -> Result<(), Error> {
    for side in sides {
        let key = match side {
            Direction::Forward => space().pack(&("relationship", relationship, primary, foreign)),
            Direction::Inverse => space().pack(&("inverse", relationship, foreign, primary)),
        };
        limits::key(&key)?;
    }
    Ok(())
}

pub(super) const SIDES: [Direction; 2] = [Direction::Forward, Direction::Inverse];

pub(super) fn attribute(entity: &Id, name: &str) -> Vec<u8> {
    space().pack(&("attribute", entity, name))
}

impl Model {
    fn pairs(&self, relationship: &str) -> Result<Vec<(Id, Id)>, Error> {
        cardinality(relationship)?;
        let own = self.pairs.iter().filter(|(name, ..)| name == relationship);
        Ok(own.map(|(_, primary, foreign)| (primary.clone(), foreign.clone())).collect())
    }

    fn related(&self, relationship: &str, direction: Direction, entity: &Id) -> BTreeSet<Id> {
        let pairs = self.pairs.iter().filter(|(name, ..)| name == relationship);
        let sides = pairs.map(|(_, primary, foreign)| match direction {
            Direction::Forward => (primary, foreign),
            Direction::Inverse => (foreign, primary),
        });
        sides.filter(|(from, _)| *from == entity).map(|(_, to)| to.clone()).collect()
    }

    fn relate(&mut self, relationship: &str, primary: &Id, foreign: &Id) -> Result<(), Error> {
        let cardinality = cardinality(relationship)?;
        fits(relationship, &SIDES, primary, foreign)?;
        for (direction, entity, other) in
            [(Direction::Forward, primary, foreign), (Direction::Inverse, foreign, primary)]
        {
            let taken = self.related(relationship, direction, entity).into_iter().find(|id| id != other);
            if let (true, Some(related)) = (cardinality.limits(direction), taken) {
                let (relationship, entity) = (relationship.into(), entity.clone());
                return Err(Error::Cardinality { relationship, cardinality, entity, related });
            }
        }
        self.pairs.insert((relationship.into(), primary.clone(), foreign.clone()));
        Ok(())
    }

    /// A violation of a cardinality, if there is one.
    fn broken(&self) -> Option<String> {
        self.pairs.iter().find_map(|(name, primary, foreign)| {
            let of = cardinality(name).ok()?;
            [(Direction::Forward, primary), (Direction::Inverse, foreign)].into_iter().find_map(
                |(side, entity)| {
                    let related = self.related(name, side, entity);
                    (of.limits(side) && related.len() > 1)
                        .then(|| format!("{name} is {of}, and relates {entity} to {related:?}"))
                },
            )
        })
    }
}

impl Entity {
    /// Performs one call on the model.
    pub(super) fn replayed(&self, model: &mut Model, op: &Op) -> Result<Answer, Error> {
        let pair =
            |name: &String, primary: &Id, foreign: &Id| (name.clone(), primary.clone(), foreign.clone());
        Ok(match op {
            Op::AddAttribute(id, attribute, byte, length) => {
                limits::row(&self::attribute(id, attribute), &vec![*byte; *length])?;
                model.attributes.insert((id.clone(), attribute.clone()), Content::of(*byte, *length));
                Answer::Written
            }
            Op::RemoveAttribute(id, attribute) => {
                limits::key(&self::attribute(id, attribute))?;
                model.attributes.remove(&(id.clone(), attribute.clone()));
                Answer::Written
            }
            Op::Relate(name, primary, foreign) => {
                model.relate(name, primary, foreign)?;
                Answer::Written
            }
            Op::Part(name, primary, foreign) => {
                cardinality(name)?;
                fits(name, &SIDES, primary, foreign)?;
                model.pairs.remove(&pair(name, primary, foreign));
                Answer::Written
            }
            Op::Delete(id) => {
                let before = model.pairs.len();
                model.attributes.retain(|(entity, _), _| entity != id);
                model.pairs.retain(|(_, primary, foreign)| primary != id && foreign != id);
                Answer::Deleted((before - model.pairs.len()) as u64)
            }
            Op::Attribute(id, attribute) => {
                limits::key(&self::attribute(id, attribute))?;
                Answer::Value(model.attributes.get(&(id.clone(), attribute.clone())).cloned())
            }
            Op::Attributes(id) => {
                let own = model.attributes.iter().filter(|((entity, _), _)| entity == id);
                Answer::Attributes(own.map(|((_, name), value)| (name.clone(), value.clone())).collect())
            }
            Op::Pairs(name) => Answer::Pairs(model.pairs(name)?),
            Op::PairsPage(name, after, limit) => {
                let mut pairs = model.pairs(name)?;
                if let Some((primary, foreign)) = after {
                    fits(name, &SIDES[..1], primary, foreign)?;
                    pairs.retain(|pair| (&pair.0, &pair.1) > (primary, foreign));
                }
                pairs.truncate(*limit);
                Answer::Pairs(pairs)
            }
            Op::RelatedPage(name, direction, id, after, limit) => {
                cardinality(name)?;
                let mut related = model.related(name, *direction, id);
                if let Some(after) = after {
                    let (primary, foreign) = match direction {
                        Direction::Forward => (id, after),
                        Direction::Inverse => (after, id),
                    };
                    fits(name, &[*direction], primary, foreign)?;
                    related.retain(|id| id > after);
                }
                Answer::Page(related.into_iter().take(*limit).collect())
            }
            Op::Related(name, direction, id) => {
                cardinality(name)?;
                Answer::Entities(model.related(name, *direction, id))
            }
            Op::IsRelated(name, primary, foreign) => {
                cardinality(name)?;
                fits(name, &SIDES[..1], primary, foreign)?;
                Answer::Is(model.pairs.contains(&pair(name, primary, foreign)))
            }
        })
    }
}

/// Reads rows back by the key schema, as a model.
pub(super) fn read(rows: &[tx::KeyValue]) -> Result<Model, String> {
    let below = |part: &str| space().subspace(&(part,));
    let (attributes, forward, inverse) = (below("attribute"), below("relationship"), below("inverse"));
    let (mut model, mut mirrored) = (Model::default(), Pairs::new());
    for row in rows {
        if let Ok(attribute) = attributes.unpack::<(Id, String)>(&row.key) {
            model.attributes.insert(attribute, Content::from(&row.value));
        } else if let Ok(pair) = forward.unpack::<(String, Id, Id)>(&row.key) {
            model.pairs.insert(pair);
        } else if let Ok((name, foreign, primary)) = inverse.unpack::<(String, Id, Id)>(&row.key) {
            mirrored.insert((name, primary, foreign));
        } else {
            return Err(format!("{} is not a key of an entity", row.key.escape_ascii()));
        }
    }
    if let Some((name, primary, foreign)) = model.pairs.symmetric_difference(&mirrored).next() {
        return Err(format!("the relationship {name} of {primary} to {foreign} is stored on one side only"));
    }
    match model.broken() {
        Some(broken) => Err(broken),
        None => Ok(model),
    }
}
