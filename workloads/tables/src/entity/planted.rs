//! Planted bugs: entities and relationships implemented or used wrongly.

use super::{Answer, Entity, Op, layer, operations::RELATIONSHIPS, space};
use foundationdb_tuple::TuplePack;
use shaketable::{
    specimen::{Content, INTERLEAVED, UNRECORDED},
    weakened::{Flaw, Span, everything, flawed, weakened},
};
use shaketable_layers::{
    entity::{
        Cardinality::{self, ManyToOne, OneToMany},
        Direction, Entities, Error,
    },
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

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform<T: Transaction>(
    planted: Planted,
    workload: &Entity,
    tx: &T,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let kept = |spans: Vec<Span>| flawed(tx, Flaw::Uncleared, spans);
    match (planted, op) {
        (Planted::SharedSpace, Op::AddAttribute(id, name, byte, length)) if *length <= 2_000 => {
            tx.set(&space().pack(&("relationship", id, name)), &vec![*byte; *length]);
            Ok(Answer::Written)
        }
        (Planted::SharedSpace, Op::Attribute(id, name)) => {
            let value = tx.get(&space().pack(&("relationship", id, name)), Serializable).await?;
            Ok(Answer::Value(value.as_ref().map(Content::from)))
        }
        (Planted::PrefixPairs, Op::Pairs(name)) if of(name).is_some() => prefix_pairs(tx, name).await,
        (Planted::PrefixAttributes, Op::RemoveAttribute(id, name)) => {
            let mut begin = space().pack(&("attribute", id, name));
            begin.pop();
            tx.clear_range(&begin, &strinc(&begin).unwrap_or_default());
            Ok(Answer::Written)
        }
        (Planted::PageAgain, Op::PairsPage(name, Some(after), limit @ 1..)) => {
            let all = layer().get_relationships(tx, name, isolation).await?;
            Ok(Answer::Pairs(all.into_iter().filter(|pair| pair >= after).take(*limit).collect()))
        }
        (Planted::SelfTwice, Op::Delete(id)) => {
            let mut to_itself = 0;
            for (name, _) in RELATIONSHIPS {
                let found = layer().get_related_entities(tx, name, SIDES[0], id, Serializable).await?;
                to_itself += u64::from(found.contains(id));
            }
            layer().delete_entity(tx, id).await.map(|pairs| Answer::Deleted(pairs + to_itself))
        }
        (Planted::AgainRefused, Op::Relate(name, primary, _))
            if of(name).is_some_and(|of| of.limits(SIDES[0])) =>
        {
            let related = layer().get_related_entities(tx, name, SIDES[0], primary, Serializable).await?;
            match (related.into_iter().next(), of(name)) {
                (Some(related), Some(cardinality)) => {
                    let (relationship, entity) = (name.clone(), primary.clone());
                    Err(Error::Cardinality { relationship, cardinality, entity, related })
                }
                _ => workload.right(tx, op, isolation).await,
            }
        }
        (Planted::WrittenFirst, Op::Relate(name, primary, foreign)) => {
            let added = workload.right(tx, op, isolation).await;
            if matches!(added, Err(Error::Cardinality { .. })) {
                tx.set(&space().pack(&("relationship", name, primary, foreign)), b"");
            }
            added
        }
        (Planted::AttributesEnd, Op::Attributes(id)) => {
            let all = layer().get_attributes(tx, id, isolation).await?;
            let known = all.into_iter().filter(|(name, _)| &name[..] < "\u{ffff}");
            Ok(Answer::Attributes(known.map(|(name, value)| (name, Content::from(&value))).collect()))
        }
        (Planted::RelatedAtSnapshot, Op::Related(..)) => workload.right(tx, op, Snapshot).await,
        (Planted::RelatedEnd, Op::Related(name, side, id)) => {
            let known = |id: &Id| !matches!(id, Id::Text(text) if text.contains('\u{10ffff}'));
            let all = layer().get_related_entities(tx, name, *side, id, isolation).await?;
            Ok(Answer::Entities(all.into_iter().filter(known).collect()))
        }
        (Planted::LastStays, Op::Delete(id)) => {
            let mut kept = Vec::new();
            for (name, _) in RELATIONSHIPS {
                let found = layer().get_related_entities(tx, name, SIDES[0], id, Serializable).await?;
                kept.extend(found.into_iter().next_back().map(|other| (name, other)));
            }
            let deleted = workload.right(tx, op, isolation).await?;
            for (name, other) in &kept {
                tx.set(&space().pack(&("relationship", name, id, other)), b"");
                tx.set(&space().pack(&("inverse", name, other, id)), b"");
            }
            Ok(deleted)
        }
        (Planted::AttributesStay, Op::Delete(_)) => {
            workload.right(&kept(vec![range(("attribute",))]), op, isolation).await
        }
        (Planted::InverseStays, Op::Part(..)) => {
            workload.right(&kept(vec![range(("inverse",))]), op, isolation).await
        }
        (Planted::RelationsStay, Op::Delete(_)) => {
            let relations = vec![range(("relationship",)), range(("inverse",))];
            workload.right(&kept(relations), op, isolation).await
        }
        (Planted::InverseDangles, Op::Delete(id)) => {
            let found_inverse = RELATIONSHIPS.iter().flat_map(|(name, _)| {
                let (all, own) = (range(("relationship", name)), range(("relationship", name, id)));
                [(all.0, own.0), (own.1, all.1), range(("inverse", name, id))]
            });
            workload.right(&kept(found_inverse.collect()), op, isolation).await
        }
        (Planted::SnapshotDeletion, Op::Delete(_)) | (Planted::SnapshotCardinality, Op::Relate(..)) => {
            workload.right(&weakened(tx.clone(), everything()), op, isolation).await
        }
        (Planted::Uncounted, Op::Relate(..)) => {
            workload.right(&flawed(tx, Flaw::Unread, everything()), op, isolation).await
        }
        (Planted::OtherSide, Op::Relate(name, primary, foreign)) if of(name) == Some(OneToMany) => {
            let other = Entities::new(space(), [(name.clone(), ManyToOne)]);
            match other.add_relationship(tx, name, primary, foreign).await {
                Err(Error::Cardinality { relationship, entity, related, .. }) => {
                    Err(Error::Cardinality { relationship, cardinality: OneToMany, entity, related })
                }
                added => added.map(|()| Answer::Written),
            }
        }
        _ => workload.right(tx, op, isolation).await,
    }
}

/// The keys of which these are the first parts.
fn range(of: impl TuplePack) -> Span {
    space().subspace(&of).range()
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
