//! `entity`: entities get attributes, are related to each other as the cardinalities allow, and are deleted.
//!
//! Relationships of each cardinality, with names that are prefixes of each other, and one that nobody declared;
//! few entities, one of which is called as a relationship is, and some so long that not all is possible with
//! them.

mod planted;

use bytes::Bytes;
use foundationdb_tuple::Subspace;
use proptest::{option, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    specimen::{At, Content, Specimen, UNRECORDED},
    strategies,
    workload::Bug,
};
use shaketable_layers::{
    entity::{Cardinality, Direction, Entities, Error},
    id::Id,
    limits,
    tx::{
        self, Env,
        Isolation::{self, Serializable},
        RangeOption, Transaction,
    },
};
use shaketable_sim::seed::Stream;
use std::collections::{BTreeMap, BTreeSet};

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "an attribute is set again after an unknown result without an operation record", "a blind write done twice";
    SharedSpace = "shared-space", "attributes and relationships share one space", "the guide's key layout";
    InverseStays = "inverse-stays", "ending a relationship leaves it in the inverse index", "an index beside the guide's relationships";
    RelationsStay = "relations-stay", "deleting an entity deletes its attributes only", "a deletion of what is stored under a name";
    InverseDangles = "inverse-dangles", "deleting an entity leaves the relationships in which it is the foreign one", "a deletion by one index of two";
    SnapshotDeletion = "snapshot-deletion", "a deletion reads the relationships at snapshot isolation", "reads that decide a write outside conflict detection";
    SnapshotCardinality = "snapshot-cardinality", "a cardinality is checked at snapshot isolation", "two first relationships at once";
    OtherSide = "other-side", "one-to-many is checked as many-to-one", "a cardinality read from the wrong side";
    PrefixPairs = "prefix-pairs", "the pairs of a relationship are those of all whose names begin with its name", "a range over the start of a name";
    PrefixAttributes = "prefix-attributes", "an attribute is removed with all whose names begin with its name", "a range where a key is meant";
    PageAgain = "page-again", "a page begins with the pair that the page before ended with", "a bound that is inclusive instead of exclusive";
    SelfTwice = "self-twice", "a deletion counts what relates an entity to itself from both sides", "a count of rows taken for one of pairs";
    AgainRefused = "again-refused", "a pair that is there is refused where a second one would be", "a cardinality that counts the pair itself";
    AttributesStay = "attributes-stay", "deleting an entity leaves its attributes", "a deletion of relationships only";
    Uncounted = "uncounted", "a cardinality is not checked at all", "the guide's add_relationship";
    RelatedAtSnapshot = "related-at-snapshot", "whom an entity is related to is read at snapshot, however it is asked for", "a dropped conflict range";
}

/// The relationships: of each cardinality.
pub(crate) const RELATIONSHIPS: [(&str, Cardinality); 6] = [
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
const ATTRIBUTES: [&str; 5] = ["region", "", "a\0", "a", "regio"];

/// The entities' subspace.
pub(crate) fn space() -> Subspace {
    Subspace::from("ER")
}

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
        long(space().pack(&("attribute", "", "region")).len()),
        long(space().pack(&("relationship", "married", "", "a")).len()),
        Bytes::from_static(b"\xff").into(),
        "a\0".into(),
    ]
}

/// An entity whose key is of the largest size where all around its name takes so many bytes: its attribute
/// `region`, or its marriage to `"a"`. What is longer is refused.
fn long(others: usize) -> Id {
    Id::from("x".repeat(tx::KEY_SIZE_LIMIT - others))
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entity {
    /// Of [`entities`], how many there are.
    entities: usize,
    planted: Option<Planted>,
}

/// One call. Values are so many bytes of a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Op {
    /// Sets an attribute.
    AddAttribute(Id, String, u8, usize),
    /// Removes an attribute.
    RemoveAttribute(Id, String),
    /// Relates two entities.
    Relate(String, Id, Id),
    /// Relates them no more.
    Part(String, Id, Id),
    /// Deletes an entity.
    Delete(Id),
    /// Reads an attribute.
    Attribute(Id, String),
    /// Reads all attributes.
    Attributes(Id),
    /// Reads all pairs of a relationship.
    Pairs(String),
    /// Reads whom an entity is related to.
    Related(String, Direction, Id),
    /// Reads so many pairs of a relationship, from the first one on or after a pair.
    PairsPage(String, Option<(Id, Id)>, usize),
    /// Reads so many of those whom an entity is related to, from the first one on or after one.
    RelatedPage(String, Direction, Id, Option<Id>, usize),
    /// Reads whether two are related.
    IsRelated(String, Id, Id),
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Written.
    Written,
    /// So many pairs are gone.
    Deleted(u64),
    /// An attribute.
    Value(Option<Content>),
    /// Attributes in the order of their names.
    Attributes(Vec<(String, Content)>),
    /// Pairs in their order.
    Pairs(Vec<(Id, Id)>),
    /// Entities.
    Entities(BTreeSet<Id>),
    /// Entities in their order.
    Page(Vec<Id>),
    /// Whether it is so.
    Is(bool),
}

/// Pairs by relationship: primary and foreign.
type Pairs = BTreeSet<(String, Id, Id)>;

/// Attributes and pairs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    attributes: BTreeMap<(Id, String), Content>,
    pairs: Pairs,
}

pub(crate) fn layer() -> Entities {
    Entities::new(space(), RELATIONSHIPS)
}

fn cardinality(relationship: &str) -> Result<Cardinality, Error> {
    let known = RELATIONSHIPS.iter().find(|(name, _)| *name == relationship);
    known.map(|(_, of)| *of).ok_or_else(|| Error::UnknownRelationship(relationship.into()))
}

/// Refuses a pair of which a key is too long, seen from the sides that matter.
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

const SIDES: [Direction; 2] = [Direction::Forward, Direction::Inverse];

fn attribute(entity: &Id, name: &str) -> Vec<u8> {
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

    /// What a cardinality forbids, and is there.
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

/// The key schema read from the other end.
fn read(rows: &[tx::KeyValue]) -> Result<Model, String> {
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
            return Err(format!("{} is no key of an entity", row.key.escape_ascii()));
        }
    }
    if let Some((name, primary, foreign)) = model.pairs.symmetric_difference(&mirrored).next() {
        return Err(format!("that {primary} is related to {foreign} by {name} is known on one side only"));
    }
    match model.broken() {
        Some(broken) => Err(broken),
        None => Ok(model),
    }
}

impl Specimen for Entity {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "entity";
    const ABOUT: &'static str = "entities, their attributes, and relationships of each cardinality";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &["entity: a second relationship is one too many", "entity: a deletion ends several relationships"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Entity {
        Entity {
            entities: rng.range(2..entities().len() as u64 + 1) as usize,
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let entities = &entities()[..self.entities];
        let pairs = entities.iter().map(|id| space().pack(&("relationship", "owns", id)).into());
        pairs.chain(entities.iter().map(|id| space().pack(&("inverse", "owns", id)).into())).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let entities = entities()[..self.entities].to_vec();
        let id = move || select(entities.clone());
        let names: Vec<&str> = RELATIONSHIPS.iter().map(|(name, _)| *name).collect();
        let name = || prop_oneof![12 => select(names.clone()), 1 => Just(UNDECLARED)].prop_map(String::from);
        let attribute = || select(&ATTRIBUTES).prop_map(String::from);
        let length = prop_oneof![12 => strategies::value_lengths(40), 1 => Just(2_000)];
        let direction = || select(SIDES.to_vec());
        let limit = || prop_oneof![8 => 0..4usize, 1 => Just(100)];
        let related = (name(), direction(), id(), option::of(id()), limit());
        prop_oneof![
            4 => (id(), attribute(), any::<u8>(), length).prop_map(|(i, a, b, n)| Op::AddAttribute(i, a, b, n)),
            2 => (id(), attribute()).prop_map(|(i, a)| Op::RemoveAttribute(i, a)),
            10 => (name(), id(), id()).prop_map(|(r, p, f)| Op::Relate(r, p, f)),
            4 => (name(), id(), id()).prop_map(|(r, p, f)| Op::Part(r, p, f)),
            2 => id().prop_map(Op::Delete),
            2 => (id(), attribute()).prop_map(|(i, a)| Op::Attribute(i, a)),
            1 => id().prop_map(Op::Attributes),
            2 => name().prop_map(Op::Pairs),
            3 => (name(), direction(), id()).prop_map(|(r, d, i)| Op::Related(r, d, i)),
            2 => (name(), option::of((id(), id())), limit()).prop_map(|(r, p, n)| Op::PairsPage(r, p, n)),
            2 => related.prop_map(|(r, d, i, after, n)| Op::RelatedPage(r, d, i, after, n)),
            1 => (name(), id(), id()).prop_map(|(r, p, f)| Op::IsRelated(r, p, f)),
        ]
        .boxed()
    }

    fn is_look(op: &Op) -> bool {
        use Op::*;
        match op {
            AddAttribute(..) | RemoveAttribute(..) | Relate(..) | Part(..) | Delete(_) => false,
            Attribute(..) | Attributes(_) | Pairs(_) | Related(..) | PairsPage(..) | RelatedPage(..)
            | IsRelated(..) => true,
        }
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        match op {
            Op::AddAttribute(..) | Op::RemoveAttribute(..) | Op::Part(..) => true,
            Op::Relate(name, ..) => cardinality(name) == Ok(Cardinality::ManyToMany),
            _ => false,
        }
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        Self::is_look(op) && self.planted.is_none_or(|planted| planted == Planted::RelatedAtSnapshot)
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        _: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        if let Some(planted) = self.planted
            && let Some(answer) = planted::perform(planted, tx, op).await
        {
            return answer;
        }
        let isolation = planted::isolation(self.planted, op, isolation);
        let er = layer();
        Ok(match op {
            Op::AddAttribute(id, attribute, byte, length) => {
                er.add_attribute_value(tx, id, attribute, &vec![*byte; *length]).await?;
                Answer::Written
            }
            Op::RemoveAttribute(id, attribute) => {
                er.remove_attribute(tx, id, attribute).await?;
                Answer::Written
            }
            Op::Relate(name, primary, foreign) => {
                er.add_relationship(tx, name, primary, foreign).await?;
                Answer::Written
            }
            Op::Part(name, primary, foreign) => {
                er.remove_relationship(tx, name, primary, foreign).await?;
                Answer::Written
            }
            Op::Delete(id) => Answer::Deleted(er.delete_entity(tx, id).await?),
            Op::Attribute(id, attribute) => {
                let value = er.get_attribute_value(tx, id, attribute, isolation).await?;
                Answer::Value(value.as_ref().map(Content::from))
            }
            Op::Attributes(id) => {
                let all = er.get_attributes(tx, id, isolation).await?;
                Answer::Attributes(all.into_iter().map(|(name, v)| (name, Content::from(&v))).collect())
            }
            Op::Pairs(name) => Answer::Pairs(er.get_relationships(tx, name, isolation).await?),
            Op::Related(name, direction, id) => {
                Answer::Entities(er.get_related_entities(tx, name, *direction, id, isolation).await?)
            }
            Op::PairsPage(name, after, limit) => {
                let after = after.as_ref().map(|(primary, foreign)| (primary, foreign));
                Answer::Pairs(er.get_relationships_page(tx, name, after, *limit, isolation).await?)
            }
            Op::RelatedPage(name, direction, id, after, limit) => {
                let (from, after) = ((*direction, id), after.as_ref());
                Answer::Page(er.get_related_entities_page(tx, name, from, after, *limit, isolation).await?)
            }
            Op::IsRelated(name, primary, foreign) => {
                Answer::Is(er.is_related_entity(tx, name, primary, foreign, isolation).await?)
            }
        })
    }

    fn model(&self) -> Model {
        Model::default()
    }

    fn replay(&self, model: &mut Model, op: &Op, _: &At) -> Result<Answer, Error> {
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

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Model, String>> {
        let rows = tx.get_range_all(RangeOption::from(space().range()), Serializable).await?;
        Ok(read(&rows))
    }
}
