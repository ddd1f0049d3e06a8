//! Planted bugs: entities and relationships implemented or used wrongly.

use super::{Answer, Op, layer, operations::RELATIONSHIPS, space};
use shaketable::specimen::{Content, INTERLEAVED, UNRECORDED};
use shaketable_layers::{
    entity::{Cardinality, Direction, Error},
    id::Id,
};
use shaketable_tx::{
    Isolation::{self, Serializable, Snapshot},
    RangeOption, Transaction, strinc,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two relationships that are added side by side in one transaction are both the first", "two futures in one transaction";
    Unrecorded = UNRECORDED, "an attribute is set again after an unknown result without an operation record", "a blind write done twice";
    SharedSpace = "shared-space", "attributes and relationships share one space", "the guide's key layout";
    InverseStays = "inverse-stays", "ending a relationship does not remove it from the inverse index", "an index beside the guide's relationships";
    RelationsStay = "relations-stay", "deleting an entity deletes its attributes only", "a deletion of what is stored under a name";
    InverseDangles = "inverse-dangles", "deleting an entity does not delete the relationships in which it is the foreign one", "a deletion by one index of two";
    SnapshotDeletion = "snapshot-deletion", "a deletion reads the relationships at snapshot isolation", "reads that decide a write outside conflict detection";
    SnapshotCardinality = "snapshot-cardinality", "a cardinality is checked at snapshot isolation", "two first relationships at once";
    OtherSide = "other-side", "one-to-many is checked as many-to-one", "a cardinality read from the wrong side";
    PrefixPairs = "prefix-pairs", "the pairs of a relationship include those of all relationships with this prefix", "a range over the start of a name";
    PrefixAttributes = "prefix-attributes", "an attribute is removed with all attributes with this prefix", "a range where a key is meant";
    PageAgain = "page-again", "a page begins with the last pair of the page before", "a bound that is inclusive instead of exclusive";
    SelfTwice = "self-twice", "a deletion counts a relationship of an entity with itself twice", "a count of rows taken for one of pairs";
    AgainRefused = "again-refused", "a pair that exists is refused as a second one would be", "a cardinality that counts the pair itself";
    AttributesStay = "attributes-stay", "deleting an entity leaves its attributes", "a deletion of relationships only";
    Uncounted = "uncounted", "a cardinality is not checked at all", "the guide's add_relationship";
    RelatedAtSnapshot = "related-at-snapshot", "related entities are read at snapshot, whatever isolation was requested", "a dropped conflict range";
    WrittenFirst = "written-first", "a pair is written before its cardinality is checked", "a refusal that comes too late";
    AttributesEnd = "attributes-end", "attributes are listed up to the name U+FFFF", "a range that ends at a constant";
    RelatedEnd = "related-end", "the related entities are listed up to the text U+FFFF", "a range that ends at a constant";
    LastStays = "last-stays", "a deletion leaves the last pair of each relationship", "a loop that ends one too early";
}

const SIDES: [Direction; 2] = [Direction::Forward, Direction::Inverse];

/// The isolation at which a look is performed that was requested at `asked`.
pub fn isolation(planted: Option<Planted>, op: &Op, asked: Isolation) -> Isolation {
    match (planted, op) {
        (Some(Planted::RelatedAtSnapshot), Op::Related(..)) => Isolation::Snapshot,
        _ => asked,
    }
}

/// Performs a call that the bug changes; `None` for every other call.
pub async fn perform<T: Transaction>(planted: Planted, tx: &T, op: &Op) -> Option<Result<Answer, Error>> {
    Some(match (planted, op) {
        (Planted::SharedSpace, Op::AddAttribute(id, name, byte, length)) if *length <= 2_000 => {
            tx.set(&space().pack(&("relationship", id, name)), &vec![*byte; *length]);
            Ok(Answer::Written)
        }
        (Planted::SharedSpace, Op::Attribute(id, name)) => {
            let value = tx.get(&space().pack(&("relationship", id, name)), Serializable).await;
            value.map(|value| Answer::Value(value.as_ref().map(Content::from))).map_err(Error::Fdb)
        }
        (Planted::PrefixPairs, Op::Pairs(name)) if of(name).is_some() => prefix_pairs(tx, name).await,
        (Planted::PrefixAttributes, Op::RemoveAttribute(id, name)) => {
            let mut begin = space().pack(&("attribute", id, name));
            begin.pop();
            tx.clear_range(&begin, &strinc(&begin)?);
            Ok(Answer::Written)
        }
        (Planted::PageAgain, Op::PairsPage(name, Some(after), limit @ 1..)) if of(name).is_some() => {
            let all = layer().get_relationships(tx, name, Serializable).await;
            all.map(|all| Answer::Pairs(all.into_iter().filter(|pair| pair >= after).take(*limit).collect()))
        }
        (Planted::SelfTwice, Op::Delete(id)) => {
            let mut to_itself = 0;
            for (name, _) in RELATIONSHIPS {
                let found = layer().get_related_entities(tx, name, SIDES[0], id, Serializable).await;
                to_itself += u64::from(found.is_ok_and(|found| found.contains(id)));
            }
            layer().delete_entity(tx, id).await.map(|pairs| Answer::Deleted(pairs + to_itself))
        }
        (Planted::AgainRefused, Op::Relate(name, primary, foreign))
            if of(name).is_some_and(|of| of.limits(SIDES[0])) =>
        {
            let related = layer().get_related_entities(tx, name, SIDES[0], primary, Serializable).await;
            match related.map(|related| related.into_iter().next()) {
                Ok(Some(related)) => {
                    let (relationship, entity) = (name.clone(), primary.clone());
                    Err(Error::Cardinality { relationship, cardinality: of(name)?, entity, related })
                }
                Ok(None) => {
                    layer().add_relationship(tx, name, primary, foreign).await.map(|()| Answer::Written)
                }
                Err(e) => Err(e),
            }
        }
        (Planted::WrittenFirst, Op::Relate(name, primary, foreign)) if of(name).is_some() => {
            let key = space().pack(&("relationship", name, primary, foreign));
            let added = layer().add_relationship(tx, name, primary, foreign).await;
            if matches!(added, Err(Error::Cardinality { .. })) {
                tx.set(&key, b"");
            }
            added.map(|()| Answer::Written)
        }
        (Planted::AttributesEnd, Op::Attributes(id)) => {
            let all = layer().get_attributes(tx, id, Serializable).await;
            all.map(|all| {
                let known = all.into_iter().filter(|(name, _)| &name[..] < "\u{ffff}");
                Answer::Attributes(known.map(|(name, value)| (name, Content::from(&value))).collect())
            })
        }
        (Planted::RelatedEnd, Op::Related(name, side, id)) if of(name).is_some() => {
            let all = layer().get_related_entities(tx, name, *side, id, Serializable).await;
            let known = |id: &Id| !matches!(id, Id::Text(text) if text.contains('\u{10ffff}'));
            all.map(|all| Answer::Entities(all.into_iter().filter(known).collect()))
        }
        (Planted::LastStays, Op::Delete(id)) => {
            let mut kept = Vec::new();
            for (name, _) in RELATIONSHIPS {
                match layer().get_related_entities(tx, name, SIDES[0], id, Serializable).await {
                    Ok(found) => kept.extend(found.into_iter().next_back().map(|other| (name, other))),
                    Err(e) => return Some(Err(e)),
                }
            }
            let deleted = layer().delete_entity(tx, id).await;
            for (name, other) in &kept {
                tx.set(&space().pack(&("relationship", name, id, other)), b"");
                tx.set(&space().pack(&("inverse", name, other, id)), b"");
            }
            deleted.map(Answer::Deleted)
        }
        (Planted::AttributesStay, Op::Delete(id)) => {
            let attributes = layer().get_attributes(tx, id, Serializable).await;
            let deleted = layer().delete_entity(tx, id).await;
            for (name, value) in attributes.unwrap_or_default() {
                tx.set(&space().pack(&("attribute", id, name)), &value);
            }
            deleted.map(Answer::Deleted)
        }
        (Planted::InverseStays, Op::Part(name, primary, foreign)) if of(name).is_some() => {
            tx.clear(&space().pack(&("relationship", name, primary, foreign)));
            Ok(Answer::Written)
        }
        (Planted::RelationsStay, Op::Delete(id)) => {
            let counted = delete(tx, id, &[], Serializable).await;
            counted.map(Answer::Deleted)
        }
        (Planted::InverseDangles, Op::Delete(id)) => {
            delete(tx, id, &SIDES[..1], Serializable).await.map(Answer::Deleted)
        }
        (Planted::SnapshotDeletion, Op::Delete(id)) => {
            delete(tx, id, &SIDES, Snapshot).await.map(Answer::Deleted)
        }
        (
            Planted::SnapshotCardinality | Planted::OtherSide | Planted::Uncounted,
            Op::Relate(name, primary, foreign),
        ) => {
            let cardinality = of(name)?;
            relate(planted, tx, (name, cardinality), primary, foreign).await.map(|()| Answer::Written)
        }
        _ => return None,
    })
}

/// The content of a range over the prefix of a relationship's name.
async fn prefix_pairs<T: Transaction>(tx: &T, name: &str) -> Result<Answer, Error> {
    let all = space().subspace(&("relationship",));
    let mut begin = space().pack(&("relationship", name));
    begin.pop();
    let end = strinc(&begin).unwrap_or_default();
    let rows = tx.get_range_all(RangeOption::new(begin, end), Serializable).await?;
    let pairs = rows.iter().filter_map(|row| all.unpack::<(String, Id, Id)>(&row.key).ok());
    Ok(Answer::Pairs(pairs.map(|(_, primary, foreign)| (primary, foreign)).collect()))
}

fn of(relationship: &str) -> Option<Cardinality> {
    RELATIONSHIPS.iter().find(|(name, _)| *name == relationship).map(|(_, of)| *of)
}

/// Deletes the attributes, and the pairs that are found from these sides. Returns the number of all of them.
async fn delete<T: Transaction>(
    tx: &T,
    id: &Id,
    sides: &[Direction],
    isolation: Isolation,
) -> Result<u64, Error> {
    let mut pairs = 0;
    for (name, _) in RELATIONSHIPS {
        for side in SIDES {
            for other in layer().get_related_entities(tx, name, side, id, isolation).await? {
                pairs += u64::from(other != *id || side == Direction::Forward);
                if sides.contains(&side) {
                    let (primary, foreign) = match side {
                        Direction::Forward => (id, &other),
                        Direction::Inverse => (&other, id),
                    };
                    layer().remove_relationship(tx, name, primary, foreign).await?;
                }
            }
        }
    }
    let (begin, end) = space().subspace(&("attribute", id)).range();
    tx.clear_range(&begin, &end);
    Ok(pairs)
}

async fn relate<T: Transaction>(
    planted: Planted,
    tx: &T,
    (name, cardinality): (&str, Cardinality),
    primary: &Id,
    foreign: &Id,
) -> Result<(), Error> {
    let checked = match (planted, cardinality) {
        (Planted::Uncounted, _) => Cardinality::ManyToMany,
        (Planted::OtherSide, Cardinality::OneToMany) => Cardinality::ManyToOne,
        (_, right) => right,
    };
    let isolation = if planted == Planted::SnapshotCardinality { Snapshot } else { Serializable };
    for (side, part, entity, other) in
        [(SIDES[0], "relationship", primary, foreign), (SIDES[1], "inverse", foreign, primary)]
    {
        let of = space().subspace(&(part, name, entity));
        let rows = tx.get_range_all(RangeOption::from(of.range()), isolation).await?;
        let related = rows.iter().filter_map(|row| of.unpack::<(Id,)>(&row.key).ok()).map(|(id,)| id);
        if let (true, Some(related)) = (checked.limits(side), related.into_iter().find(|id| id != other)) {
            let entity = entity.clone();
            return Err(Error::Cardinality { relationship: name.into(), cardinality, entity, related });
        }
    }
    tx.set(&space().pack(&("relationship", name, primary, foreign)), b"");
    tx.set(&space().pack(&("inverse", name, foreign, primary)), b"");
    Ok(())
}
