//! Operations on entities.

use super::{Error, keys};
use crate::{
    id::Id,
    limits, reachable, read, sometimes,
    tx::{Isolation, RangeOption, Transaction, key_after},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// How many foreign entities a primary entity may be related to, and vice versa.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Cardinality {
    /// One foreign entity per primary entity, and one primary per foreign.
    OneToOne,
    /// Any number of foreign entities per primary entity, but one primary per foreign.
    OneToMany,
    /// One foreign entity per primary entity, but any number of primaries per foreign.
    ManyToOne,
    /// Any number of foreign entities per primary entity, and vice versa.
    ManyToMany,
}

/// The side from which a relationship is viewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Direction {
    /// From the primary entity to the foreign ones.
    Forward,
    /// From the foreign entity to the primary ones.
    Inverse,
}

/// Entities in their own subspace, and the declared relationships.
#[derive(Clone, Debug)]
pub struct Entities {
    subspace: Subspace,
    relationships: BTreeMap<String, Cardinality>,
}

impl Cardinality {
    /// Whether an entity viewed from this side can be related to only one other.
    pub fn limits(self, direction: Direction) -> bool {
        match direction {
            Direction::Forward => matches!(self, Cardinality::OneToOne | Cardinality::ManyToOne),
            Direction::Inverse => matches!(self, Cardinality::OneToOne | Cardinality::OneToMany),
        }
    }
}

impl fmt::Display for Cardinality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cardinality::OneToOne => "one-to-one",
            Cardinality::OneToMany => "one-to-many",
            Cardinality::ManyToOne => "many-to-one",
            Cardinality::ManyToMany => "many-to-many",
        })
    }
}

impl Entities {
    /// The entities in `subspace`, which must not be used for anything else, with these relationships.
    pub fn new<N: Into<String>>(
        subspace: Subspace,
        relationships: impl IntoIterator<Item = (N, Cardinality)>,
    ) -> Entities {
        let relationships = relationships.into_iter().map(|(name, of)| (name.into(), of)).collect();
        Entities { subspace, relationships }
    }

    /// Sets the value of an entity's attribute.
    pub async fn add_attribute_value<T: Transaction>(
        &self,
        tx: &T,
        entity: &Id,
        attribute: &str,
        value: &[u8],
    ) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let key = keys::attribute(&self.subspace, entity, attribute);
        limits::row(&key, value)?;
        tx.set(&key, value);
        Ok(())
    }

    /// Removes an entity's attribute, if it exists.
    pub async fn remove_attribute<T: Transaction>(
        &self,
        tx: &T,
        entity: &Id,
        attribute: &str,
    ) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let key = keys::attribute(&self.subspace, entity, attribute);
        limits::key(&key)?;
        tx.clear(&key);
        Ok(())
    }

    /// The value of an entity's attribute, if it exists.
    pub async fn get_attribute_value<T: Transaction>(
        &self,
        tx: &T,
        entity: &Id,
        attribute: &str,
        isolation: Isolation,
    ) -> Result<Option<Bytes>, Error> {
        let tx = &tx.reading().await;
        let key = keys::attribute(&self.subspace, entity, attribute);
        limits::key(&key)?;
        Ok(tx.get(&key, isolation).await?)
    }

    /// All attributes of an entity, in the order of their names.
    pub async fn get_attributes<T: Transaction>(
        &self,
        tx: &T,
        entity: &Id,
        isolation: Isolation,
    ) -> Result<Vec<(String, Bytes)>, Error> {
        let tx = &tx.reading().await;
        let range = RangeOption::from(keys::attributes(&self.subspace, entity).range());
        let rows = read::all::<_, Error>(tx, range, isolation).await?;
        rows.into_iter().map(|row| Ok((keys::name(&self.subspace, entity, &row.key)?, row.value))).collect()
    }

    /// Relates a primary entity to a foreign one. Does nothing if the pair exists.
    pub async fn add_relationship<T: Transaction>(
        &self,
        tx: &T,
        relationship: &str,
        primary: &Id,
        foreign: &Id,
    ) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let cardinality = self.cardinality(relationship)?;
        let keys = keys::both(&self.subspace, relationship, primary, foreign)?;
        for (direction, entity, other) in
            [(Direction::Forward, primary, foreign), (Direction::Inverse, foreign, primary)]
        {
            if !cardinality.limits(direction) {
                continue;
            }
            let of = keys::related(&self.subspace, direction, relationship, entity);
            let range = RangeOption::from(of.range()).limit(1);
            let Some(row) = read::all::<_, Error>(tx, range, Isolation::Serializable).await?.pop() else {
                continue;
            };
            let related = keys::other(&of, &row.key)?;
            if related != *other {
                reachable!("entity: a second relationship is one too many");
                let (relationship, entity) = (relationship.into(), entity.clone());
                return Err(Error::Cardinality { relationship, cardinality, entity, related });
            }
        }
        for key in &keys {
            tx.set(key, b"");
        }
        Ok(())
    }

    /// Removes the pair of a primary entity and a foreign one. Does nothing if it does not exist.
    pub async fn remove_relationship<T: Transaction>(
        &self,
        tx: &T,
        relationship: &str,
        primary: &Id,
        foreign: &Id,
    ) -> Result<(), Error> {
        let tx = &tx.writing().await;
        self.cardinality(relationship)?;
        for key in keys::both(&self.subspace, relationship, primary, foreign)? {
            tx.clear(&key);
        }
        Ok(())
    }

    /// All pairs of a relationship, primary and foreign, in their order.
    pub async fn get_relationships<T: Transaction>(
        &self,
        tx: &T,
        relationship: &str,
        isolation: Isolation,
    ) -> Result<Vec<(Id, Id)>, Error> {
        let tx = &tx.reading().await;
        self.cardinality(relationship)?;
        let all = keys::pairs(&self.subspace, Direction::Forward, relationship);
        let rows = read::all::<_, Error>(tx, RangeOption::from(all.range()), isolation).await?;
        rows.iter().map(|row| keys::ends(&all, &row.key)).collect()
    }

    /// The first `limit` pairs of a relationship, primary and foreign, in their order, or of those after the
    /// pair `after`: pass the last pair of a page to read the next one. A page shorter than `limit` is the
    /// last one.
    pub async fn get_relationships_page<T: Transaction>(
        &self,
        tx: &T,
        relationship: &str,
        after: Option<(&Id, &Id)>,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<(Id, Id)>, Error> {
        let tx = &tx.reading().await;
        self.cardinality(relationship)?;
        let all = keys::pairs(&self.subspace, Direction::Forward, relationship);
        let (mut begin, end) = all.range();
        if let Some((primary, foreign)) = after {
            let last = all.pack(&(primary, foreign));
            limits::key(&last)?;
            begin = key_after(&last).into();
        }
        let rows = read::page::<_, Error>(tx, (begin, end), limit, isolation).await?;
        rows.iter().map(|row| keys::ends(&all, &row.key)).collect()
    }

    /// The entities to which an entity is related: the foreign entities of a primary one, or vice versa.
    pub async fn get_related_entities<T: Transaction>(
        &self,
        tx: &T,
        relationship: &str,
        direction: Direction,
        entity: &Id,
        isolation: Isolation,
    ) -> Result<BTreeSet<Id>, Error> {
        let tx = &tx.reading().await;
        self.cardinality(relationship)?;
        self.related(tx, &read::Allowance::new(), (relationship, direction), entity, isolation).await
    }

    /// The first `limit` of [`get_related_entities`](Entities::get_related_entities), in the order of ids, or
    /// of those after `after`: pass the last id of a page to read the next one. A page shorter than `limit`
    /// is the last one.
    pub async fn get_related_entities_page<T: Transaction>(
        &self,
        tx: &T,
        relationship: &str,
        (direction, entity): (Direction, &Id),
        after: Option<&Id>,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<Id>, Error> {
        let tx = &tx.reading().await;
        self.cardinality(relationship)?;
        let of = keys::related(&self.subspace, direction, relationship, entity);
        let (mut begin, end) = of.range();
        if let Some(after) = after {
            let last = of.pack(&(after,));
            limits::key(&last)?;
            begin = key_after(&last).into();
        }
        let rows = read::page::<_, Error>(tx, (begin, end), limit, isolation).await?;
        rows.iter().map(|row| keys::other(&of, &row.key)).collect()
    }

    /// Whether a primary entity is related to a foreign one.
    pub async fn is_related_entity<T: Transaction>(
        &self,
        tx: &T,
        relationship: &str,
        primary: &Id,
        foreign: &Id,
        isolation: Isolation,
    ) -> Result<bool, Error> {
        let tx = &tx.reading().await;
        self.cardinality(relationship)?;
        let key = keys::pair(&self.subspace, Direction::Forward, relationship, primary, foreign);
        limits::key(&key)?;
        Ok(tx.get(&key, isolation).await?.is_some())
    }

    /// Deletes an entity: its attributes, and every pair that contains it. Returns the number of pairs.
    pub async fn delete_entity<T: Transaction>(&self, tx: &T, entity: &Id) -> Result<u64, Error> {
        let tx = &tx.writing().await;
        let declared = self.relationships.keys();
        let sides: Vec<_> =
            declared.flat_map(|name| [(name, Direction::Forward), (name, Direction::Inverse)]).collect();
        let allowance = &read::Allowance::new();
        let reads: Vec<_> = sides
            .iter()
            .map(|(name, side)| self.related(tx, allowance, (name, *side), entity, Isolation::Serializable))
            .collect();
        let related: Vec<_> = stream::iter(reads).buffered(read::AT_ONCE).try_collect().await?;
        let (mut ranges, mut mirrors) = (vec![keys::attributes(&self.subspace, entity)], Vec::new());
        let mut pairs = 0;
        for ((name, direction), others) in sides.iter().zip(related) {
            ranges.push(keys::related(&self.subspace, *direction, name, entity));
            for other in others {
                // A pair that relates an entity to itself is found from both sides.
                pairs += u64::from(other != *entity || *direction == Direction::Forward);
                mirrors.push(keys::pair(&self.subspace, direction.turned(), name, &other, entity));
            }
        }
        let ranges: Vec<_> = ranges.iter().map(Subspace::range).collect();
        let keys = mirrors.iter().map(|key| limits::clear(key, &key_after(key)));
        limits::transaction(keys.chain(ranges.iter().map(|(begin, end)| limits::clear(begin, end))).sum())?;
        sometimes!(pairs > 1, "entity: a deletion ends several relationships");
        mirrors.iter().for_each(|key| tx.clear(key));
        for (begin, end) in &ranges {
            tx.clear_range(begin, end);
        }
        Ok(pairs)
    }

    /// [`get_related_entities`](Entities::get_related_entities) as one of several reads of a call.
    async fn related<T: Transaction>(
        &self,
        tx: &T,
        allowance: &read::Allowance,
        (relationship, direction): (&str, Direction),
        entity: &Id,
        isolation: Isolation,
    ) -> Result<BTreeSet<Id>, Error> {
        let of = keys::related(&self.subspace, direction, relationship, entity);
        let rows = allowance.all::<_, Error>(tx, RangeOption::from(of.range()), isolation).await?;
        rows.iter().map(|row| keys::other(&of, &row.key)).collect()
    }

    fn cardinality(&self, relationship: &str) -> Result<Cardinality, Error> {
        let known = self.relationships.get(relationship);
        known.copied().ok_or_else(|| Error::UnknownRelationship(relationship.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cardinality_limits_its_sides() {
        use Cardinality::*;
        let limited = |of: Cardinality| [Direction::Forward, Direction::Inverse].map(|side| of.limits(side));
        assert_eq!(
            [OneToOne, OneToMany, ManyToOne, ManyToMany].map(limited),
            [[true, true], [false, true], [true, false], [false, false]]
        );
    }

    #[test]
    fn a_refusal_names_the_entities() {
        let refusal = Error::Cardinality {
            relationship: "owns".into(),
            cardinality: Cardinality::OneToMany,
            entity: 7.into(),
            related: "smith".into(),
        };
        assert_eq!(refusal.to_string(), "\"owns\" is one-to-many: 7 is related to \"smith\" already");
    }
}
