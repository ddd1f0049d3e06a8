//! Planted bugs: entities and relationships implemented or used wrongly.

use super::{Answer, Entity, Op, layer, operations::RELATIONSHIPS, space};
use shaketable::{
    specimen::{Content, INTERLEAVED, UNRECORDED},
    weakened::{Flaw, everything, flawed},
};
use shaketable_layers::{entity::Error, id::Id};
use shaketable_tx::{
    Isolation::{self, Serializable, Snapshot},
    Transaction, Tx, strinc,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two relationships that are added side by side in one transaction are both the first", "two futures in one transaction";
    Unrecorded = UNRECORDED, "an attribute is set again after an unknown result without an operation record", "a blind write done twice";
    SharedSpace = "shared-space", "attributes and relationships share one space", "the guide's key layout";
    PrefixPairs = "prefix-pairs", "the pairs of a relationship include those of all relationships with this prefix", "a range over the start of a name";
    PrefixAttributes = "prefix-attributes", "an attribute is removed with all attributes with this prefix", "a range where a key is meant";
    Uncounted = "uncounted", "a cardinality is not checked at all", "the guide's add_relationship";
    RelatedAtSnapshot = "related-at-snapshot", "related entities are read at snapshot, whatever isolation was requested", "a dropped conflict range";
    AttributesEnd = "attributes-end", "attributes are listed up to the name U+FFFF", "a range that ends at a constant";
    RelatedEnd = "related-end", "the related entities are listed up to the text U+FFFF", "a range that ends at a constant";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform(
    planted: Planted,
    workload: &Entity,
    tx: &Tx,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    match (planted, op) {
        (Planted::SharedSpace, Op::AddAttribute(id, name, byte, length)) if *length <= 2_000 => {
            tx.set(&space().pack(&("relationship", id, name)), &vec![*byte; *length]);
            Ok(Answer::Written)
        }
        (Planted::SharedSpace, Op::Attribute(id, name)) => {
            let value = tx.get(&space().pack(&("relationship", id, name)), Serializable).await?;
            Ok(Answer::Value(value.as_ref().map(Content::from)))
        }
        (Planted::PrefixPairs, Op::Pairs(name)) => {
            let mut pairs = layer().get_relationships(tx, name, isolation).await?;
            for (longer, _) in RELATIONSHIPS {
                if longer != name && longer.starts_with(&name[..]) {
                    pairs.extend(layer().get_relationships(tx, longer, isolation).await?);
                }
            }
            Ok(Answer::Pairs(pairs))
        }
        (Planted::PrefixAttributes, Op::RemoveAttribute(id, name)) => {
            let mut begin = space().pack(&("attribute", id, name));
            begin.pop();
            tx.clear_range(&begin, &strinc(&begin).unwrap_or_default());
            Ok(Answer::Written)
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
        (Planted::Uncounted, Op::Relate(..)) => {
            workload.right(&flawed(tx, Flaw::Unread, everything()), op, isolation).await
        }
        _ => workload.right(tx, op, isolation).await,
    }
}
