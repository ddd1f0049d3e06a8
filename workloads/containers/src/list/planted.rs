//! Planted bugs: a linked list implemented or used wrongly.

use super::{Answer, List, Op, operations::walked, space};
use shaketable::{
    specimen::{Content, INTERLEAVED, UNRECORDED},
    weakened::{Flaw, everything, flawed},
};
use shaketable_layers::{
    id::Id,
    list::{self, Error, Node},
};
use shaketable_tx::{
    Isolation::{self, Serializable, Snapshot},
    Transaction, Tx, strinc,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two insertions that run side by side in one transaction follow the same link", "two futures in one transaction";
    Unrecorded = UNRECORDED, "a removal is retried after an unknown result without an operation record", "the guide's remove_next_node";
    NullLink = "null-link", "an absent link is taken for a link to a node named null", "the guide's remove_next_node, on a list whose last node has no link";
    BytesLink = "bytes-link", "an id that is read from a link is looked up as bytes, whatever its type", "the guide's remove_next_node, where bytes are no text";
    OwnKeyStays = "own-key-stays", "a removal clears what follows a node's key, and not the key itself", "the guide's remove_next_node, on nodes with a value";
    PrefixCleared = "prefix-cleared", "an attribute is removed with all attributes with this prefix", "a range where a key is meant";
    WalkRepeats = "walk-repeats", "a walk after a node begins with that node", "a bound that is inclusive instead of exclusive";
    BehindFirst = "behind-first", "a node for the front is inserted after the first one", "an insertion without a case of its own for the head";
    WalkAtSnapshot = "walk-at-snapshot", "a walk is read at snapshot, whatever isolation was requested", "a dropped conflict range";
    AttributesEnd = "attributes-end", "attributes are listed up to the name U+FFFF", "a range that ends at a constant";
    LongestRefused = "longest-refused", "a walk of as many nodes as it may visit is refused", "a limit off by one";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform(
    planted: Planted,
    workload: &List,
    tx: &Tx,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let list = list::List::new(space());
    let right = workload.right(tx, op, isolation);
    match (planted, op) {
        (Planted::NullLink | Planted::BytesLink, Op::RemoveNext(node)) => {
            let next = |node: &Id| space().pack(&("node", node, list::NEXT));
            let led_to = list.next(tx, node, Serializable).await?;
            let link = tx.get(&next(node), Serializable).await?;
            let removed = match (planted, led_to, link) {
                (Planted::NullLink, _, None) => {
                    tx.set(&next(node), &foundationdb_tuple::pack(&None::<i64>));
                    return Ok(Answer::Node(Some(Id::from(""))));
                }
                // Ids that are read have lost their type.
                (Planted::BytesLink, Some(Id::Text(text)), _) => Id::Bytes(text.into()),
                _ => return right.await,
            };
            let behind = tx.get(&next(&removed), Serializable).await?;
            tx.set(&next(node), &behind.unwrap_or_default());
            let keys = space().subspace(&("node", &removed));
            tx.clear_range(keys.bytes(), &keys.range().1);
            Ok(Answer::Node(Some(removed)))
        }
        (Planted::OwnKeyStays, Op::RemoveNext(_)) => {
            let removed = workload.right(&flawed(tx, Flaw::Uncleared, everything()), op, isolation).await?;
            if let Answer::Node(Some(removed)) = &removed {
                let (begin, end) = space().subspace(&("node", removed)).range();
                tx.clear_range(&begin, &end);
            }
            Ok(removed)
        }
        (Planted::WalkAtSnapshot, Op::Walk(..)) => workload.right(tx, op, Snapshot).await,
        (Planted::PrefixCleared, Op::ClearAttribute(node, name)) => {
            let cleared = right.await?;
            let mut begin = space().pack(&("node", node, name));
            begin.pop();
            tx.clear_range(&begin, &strinc(&begin).unwrap_or_default());
            Ok(cleared)
        }
        (Planted::AttributesEnd, Op::Attributes(_)) => {
            let mut attributes = right.await?;
            if let Answer::Attributes(all) = &mut attributes {
                all.retain(|(name, _)| &name[..] < "\u{ffff}");
            }
            Ok(attributes)
        }
        (Planted::LongestRefused, Op::Walk(..)) => match right.await? {
            Answer::LongWalk(list::MAX_WALK, _) => Err(Error::WalkTooLong(list::MAX_WALK)),
            walked => Ok(walked),
        },
        (Planted::WalkRepeats, Op::Walk(Some(id), limit)) if *limit > 0 => {
            let first = Node { id: id.clone(), value: list.value(tx, id, isolation).await? };
            let rest = list.walk(tx, Some(id), limit - 1, isolation).await?;
            Ok(walked([first].into_iter().chain(rest).map(|node| (node.id, Content::from(&node.value)))))
        }
        (Planted::BehindFirst, Op::PushFront(id, byte, length)) => {
            let Some(first) = list.first(tx, Serializable).await? else { return right.await };
            let behind = Op::InsertAfter(first, id.clone(), *byte, *length);
            workload.right(tx, &behind, isolation).await
        }
        _ => right.await,
    }
}
