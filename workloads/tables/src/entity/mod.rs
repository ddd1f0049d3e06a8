//! `entity`: entities get attributes, are related to each other as cardinalities allow, and are deleted.
//!
//! There are relationships of each cardinality, whose names are prefixes of each other, and one that is not
//! declared. There are few entities. One of them has the name of a relationship, and some have names so long
//! that not every call is possible with them.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
mod planted;

use crate::shared::{self, draw_edge_ids, edge_ids, page_sizes};
use foundationdb_tuple::Subspace;
use proptest::option;
use shaketable::{prelude::*, real::key_room, specimen::Content, strategies};
use shaketable_layers::{
    entity::{Cardinality, Direction, Entities, Error},
    id::Id,
};
use shaketable_tx::{KEY_SIZE_LIMIT, KeyValue, limits};
use std::collections::{BTreeMap, BTreeSet};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entity {
    /// How many of [`entities`] are used.
    entities: usize,
    /// Ids that are used beside them.
    edges: Vec<Id>,
}

/// The name of a relationship or of an attribute.
type Name = String;

/// A side of a relationship, and the entity that is there.
type End = (Direction, Id);

/// Entities, their attributes, and relationships of each cardinality.
#[shaketable::workload(name = "entity", model = Related, planted, promises(turns, limits))]
impl Entity {
    fn draw(rng: &mut Stream) -> Entity {
        Entity { entities: rng.range(2..entities().len() as u64 + 1) as usize, edges: draw_edge_ids(rng) }
    }

    fn points() -> &'static [&'static str] {
        &["entity: a second relationship is one too many", "entity: a deletion ends several relationships"]
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let entities = &entities()[..self.entities];
        let below = |part| entities.iter().map(move |id| space().pack(&(part, "owns", id)));
        below("relationship").chain(below("inverse")).collect()
    }

    fn is_conflict_free(&self, op: &EntityOp) -> bool {
        match op {
            EntityOp::add_attribute { .. } | EntityOp::remove_attribute { .. } | EntityOp::part { .. } => {
                true
            }
            EntityOp::relate { name, .. } => cardinality(name) == Ok(Cardinality::ManyToMany),
            _ => false,
        }
    }

    #[draws(id, primary, foreign)]
    fn id(&self) -> BoxedStrategy<Id> {
        strategies::mostly(select([&entities()[..self.entities], &self.edges].concat()), edge_ids()).boxed()
    }

    #[draws(name)]
    fn name() -> impl Strategy<Value = Name> {
        let names: Vec<&str> = RELATIONSHIPS.iter().map(|(name, _)| *name).collect();
        prop_oneof![12 => select(names), 1 => Just(UNDECLARED)].prop_map(String::from)
    }

    #[draws(key)]
    fn key() -> impl Strategy<Value = Name> {
        strategies::mostly(select(&ATTRIBUTES), select(&strategies::BEYOND_ASCII[..])).prop_map(String::from)
    }

    #[draws(end)]
    fn end(&self) -> BoxedStrategy<End> {
        (select(&SIDES[..]), self.id()).boxed()
    }

    #[draws(limit)]
    fn limit() -> impl Strategy<Value = usize> {
        prop_oneof![2 => Just(0), 8 => page_sizes()]
    }

    #[write(weight = 4)]
    async fn add_attribute(
        &self,
        tx: &Tx,
        id: &Id,
        key: &Name,
        #[draw(any::<u8>())] byte: u8,
        #[draw(prop_oneof![12 => strategies::value_lengths(40), 1 => Just(2_000)])] length: usize,
    ) -> Result<(), Error> {
        layer().add_attribute_value(tx, id, key, &vec![byte; length]).await
    }

    #[write(weight = 2)]
    async fn remove_attribute(&self, tx: &Tx, id: &Id, key: &Name) -> Result<(), Error> {
        layer().remove_attribute(tx, id, key).await
    }

    #[write(weight = 10)]
    async fn relate(&self, tx: &Tx, name: &Name, primary: &Id, foreign: &Id) -> Result<(), Error> {
        layer().add_relationship(tx, name, primary, foreign).await
    }

    /// Ends the relationship of two entities.
    #[write(weight = 4)]
    async fn part(&self, tx: &Tx, name: &Name, primary: &Id, foreign: &Id) -> Result<(), Error> {
        layer().remove_relationship(tx, name, primary, foreign).await
    }

    #[write(weight = 2)]
    async fn delete(&self, tx: &Tx, id: &Id) -> Result<u64, Error> {
        layer().delete_entity(tx, id).await
    }

    #[read(weight = 2)]
    async fn attribute(
        &self,
        tx: &Tx,
        isolation: Isolation,
        id: &Id,
        key: &Name,
    ) -> Result<Option<Content>, Error> {
        Ok(layer().get_attribute_value(tx, id, key, isolation).await?.as_ref().map(Content::from))
    }

    #[read]
    async fn attributes(
        &self,
        tx: &Tx,
        isolation: Isolation,
        id: &Id,
    ) -> Result<Vec<(String, Content)>, Error> {
        let all = layer().get_attributes(tx, id, isolation).await?;
        Ok(all.into_iter().map(|(key, value)| (key, Content::from(&value))).collect())
    }

    #[read(weight = 2)]
    async fn pairs(&self, tx: &Tx, isolation: Isolation, name: &Name) -> Result<Vec<(Id, Id)>, Error> {
        layer().get_relationships(tx, name, isolation).await
    }

    #[read(weight = 3)]
    async fn related(
        &self,
        tx: &Tx,
        isolation: Isolation,
        name: &Name,
        end: &End,
    ) -> Result<BTreeSet<Id>, Error> {
        layer().get_related_entities(tx, name, end.0, &end.1, isolation).await
    }

    #[read(weight = 2)]
    async fn pairs_page(
        &self,
        tx: &Tx,
        isolation: Isolation,
        name: &Name,
        #[draw(option::of((self.id(), self.id())))] after: Option<(Id, Id)>,
        limit: usize,
    ) -> Result<Vec<(Id, Id)>, Error> {
        let after = after.as_ref().map(|(primary, foreign)| (primary, foreign));
        layer().get_relationships_page(tx, name, after, limit, isolation).await
    }

    #[read(weight = 2)]
    async fn related_page(
        &self,
        tx: &Tx,
        isolation: Isolation,
        name: &Name,
        end: &End,
        #[draw(option::of(self.id()))] after: Option<Id>,
        limit: usize,
    ) -> Result<Vec<Id>, Error> {
        let from = (end.0, &end.1);
        layer().get_related_entities_page(tx, name, from, after.as_ref(), limit, isolation).await
    }

    #[read]
    async fn is_related(
        &self,
        tx: &Tx,
        isolation: Isolation,
        name: &Name,
        primary: &Id,
        foreign: &Id,
    ) -> Result<bool, Error> {
        layer().is_related_entity(tx, name, primary, foreign, isolation).await
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Result<Related, String>> {
        Ok(read(&shared::rows(tx, &space()).await?))
    }
}

/// Pairs by relationship: the primary and the foreign entity.
type Pairs = BTreeSet<(String, Id, Id)>;

/// The model: attributes and pairs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Related {
    attributes: BTreeMap<(Id, String), Content>,
    pairs: Pairs,
}

impl Related {
    fn add_attribute(&mut self, id: &Id, key: &Name, byte: u8, length: usize) -> Result<(), Error> {
        limits::row(&attribute(id, key), &vec![byte; length])?;
        self.attributes.insert((id.clone(), key.clone()), Content::of(byte, length));
        Ok(())
    }

    fn remove_attribute(&mut self, id: &Id, key: &Name) -> Result<(), Error> {
        limits::key(&attribute(id, key))?;
        self.attributes.remove(&(id.clone(), key.clone()));
        Ok(())
    }

    fn relate(&mut self, name: &Name, primary: &Id, foreign: &Id) -> Result<(), Error> {
        let cardinality = cardinality(name)?;
        fits(name, &SIDES, primary, foreign)?;
        for (direction, entity, other) in
            [(Direction::Forward, primary, foreign), (Direction::Inverse, foreign, primary)]
        {
            let taken = self.at(name, direction, entity).into_iter().find(|id| id != other);
            if let (true, Some(related)) = (cardinality.limits(direction), taken) {
                let (relationship, entity) = (name.clone(), entity.clone());
                return Err(Error::Cardinality { relationship, cardinality, entity, related });
            }
        }
        self.pairs.insert((name.clone(), primary.clone(), foreign.clone()));
        Ok(())
    }

    fn part(&mut self, name: &Name, primary: &Id, foreign: &Id) -> Result<(), Error> {
        cardinality(name)?;
        fits(name, &SIDES, primary, foreign)?;
        self.pairs.remove(&(name.clone(), primary.clone(), foreign.clone()));
        Ok(())
    }

    fn delete(&mut self, id: &Id) -> Result<u64, Error> {
        let before = self.pairs.len();
        self.attributes.retain(|(entity, _), _| entity != id);
        self.pairs.retain(|(_, primary, foreign)| primary != id && foreign != id);
        Ok((before - self.pairs.len()) as u64)
    }

    fn attribute(&self, id: &Id, key: &Name) -> Result<Option<Content>, Error> {
        limits::key(&attribute(id, key))?;
        Ok(self.attributes.get(&(id.clone(), key.clone())).cloned())
    }

    fn attributes(&self, id: &Id) -> Result<Vec<(String, Content)>, Error> {
        let own = self.attributes.iter().filter(|((entity, _), _)| entity == id);
        Ok(own.map(|((_, key), value)| (key.clone(), value.clone())).collect())
    }

    fn pairs(&self, name: &Name) -> Result<Vec<(Id, Id)>, Error> {
        cardinality(name)?;
        let own = self.pairs.iter().filter(|(of, ..)| of == name);
        Ok(own.map(|(_, primary, foreign)| (primary.clone(), foreign.clone())).collect())
    }

    fn related(&self, name: &Name, (direction, id): &End) -> Result<BTreeSet<Id>, Error> {
        cardinality(name)?;
        Ok(self.at(name, *direction, id))
    }

    fn pairs_page(&self, name: &Name, after: Option<(Id, Id)>, limit: usize) -> Result<Vec<(Id, Id)>, Error> {
        let mut pairs = self.pairs(name)?;
        if let Some(after) = after {
            fits(name, &SIDES[..1], &after.0, &after.1)?;
            pairs.retain(|pair| *pair > after);
        }
        pairs.truncate(limit);
        Ok(pairs)
    }

    fn related_page(
        &self,
        name: &Name,
        end: &End,
        after: Option<Id>,
        limit: usize,
    ) -> Result<Vec<Id>, Error> {
        let mut related = self.related(name, end)?;
        if let Some(after) = &after {
            let (primary, foreign) = match end {
                (Direction::Forward, id) => (id, after),
                (Direction::Inverse, id) => (after, id),
            };
            fits(name, &[end.0], primary, foreign)?;
            related.retain(|id| id > after);
        }
        Ok(related.into_iter().take(limit).collect())
    }

    fn is_related(&self, name: &Name, primary: &Id, foreign: &Id) -> Result<bool, Error> {
        cardinality(name)?;
        fits(name, &SIDES[..1], primary, foreign)?;
        Ok(self.pairs.contains(&(name.clone(), primary.clone(), foreign.clone())))
    }

    /// The entities to which this one is related, seen from this side.
    fn at(&self, name: &str, side: Direction, id: &Id) -> BTreeSet<Id> {
        let pairs = self.pairs.iter().filter(|(of, ..)| of == name);
        let sides = pairs.map(|(_, primary, foreign)| match side {
            Direction::Forward => (primary, foreign),
            Direction::Inverse => (foreign, primary),
        });
        sides.filter(|(from, _)| *from == id).map(|(_, to)| to.clone()).collect()
    }

    /// A violation of a cardinality, if there is one.
    fn broken(&self) -> Option<String> {
        self.pairs.iter().find_map(|(name, primary, foreign)| {
            let of = cardinality(name).ok()?;
            [(Direction::Forward, primary), (Direction::Inverse, foreign)].into_iter().find_map(
                |(side, entity)| {
                    let related = self.at(name, side, entity);
                    (of.limits(side) && related.len() > 1)
                        .then(|| format!("{name} is {of}, and relates {entity} to {related:?}"))
                },
            )
        })
    }
}

const SIDES: [Direction; 2] = [Direction::Forward, Direction::Inverse];

/// The relationships, at least one of each cardinality.
const RELATIONSHIPS: [(&str, Cardinality); 6] = [
    ("belongs_to", Cardinality::ManyToMany),
    ("married", Cardinality::OneToOne),
    ("owns", Cardinality::OneToMany),
    ("works_for", Cardinality::ManyToOne),
    ("own", Cardinality::ManyToMany),
    ("", Cardinality::OneToOne),
];

/// A relationship that is not declared.
const UNDECLARED: &str = "knows";

/// The attributes that are drawn.
const ATTRIBUTES: [&str; 7] = ["region", "", "a\0", "a", "regio", "a\u{10ffff}", "\u{10ffff}"];

/// The entities that are drawn.
fn entities() -> Vec<Id> {
    vec![
        "a".into(),
        Bytes::from_static(b"a").into(),
        "belongs_to".into(),
        7.into(),
        "".into(),
        i64::MIN.into(),
        "region\0".into(),
        "a\u{10ffff}".into(),
        long(space().pack(&("attribute", "", "region")).len()),
        long(space().pack(&("relationship", "married", "", "a")).len()),
        Bytes::from_static(b"\xff").into(),
        "a\0".into(),
    ]
}

/// An entity whose name is as long as possible for a key with this many other bytes: its attribute `region`,
/// or its marriage to `"a"`. Longer keys are refused.
fn long(others: usize) -> Id {
    Id::from("x".repeat(KEY_SIZE_LIMIT - others - key_room()))
}

/// The entities' subspace.
fn space() -> Subspace {
    Subspace::from("ER")
}

fn layer() -> Entities {
    Entities::new(space(), RELATIONSHIPS)
}

fn cardinality(name: &str) -> Result<Cardinality, Error> {
    let known = RELATIONSHIPS.iter().find(|(known, _)| *known == name);
    known.map(|(_, of)| *of).ok_or_else(|| Error::UnknownRelationship(name.into()))
}

/// Refuses a pair if one of its keys is too long, of those for these sides.
fn fits(name: &str, sides: &[Direction], primary: &Id, foreign: &Id) -> Result<(), Error> {
    for side in sides {
        let key = match side {
            Direction::Forward => space().pack(&("relationship", name, primary, foreign)),
            Direction::Inverse => space().pack(&("inverse", name, foreign, primary)),
        };
        limits::key(&key)?;
    }
    Ok(())
}

fn attribute(id: &Id, key: &str) -> Vec<u8> {
    space().pack(&("attribute", id, key))
}

/// Reads rows back by the key schema, as a model.
fn read(rows: &[KeyValue]) -> Result<Related, String> {
    let below = |part: &str| space().subspace(&(part,));
    let (attributes, forward, inverse) = (below("attribute"), below("relationship"), below("inverse"));
    let (mut model, mut mirrored) = (Related::default(), Pairs::new());
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
    model.broken().map_or(Ok(model), Err)
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Entity>>()
}
