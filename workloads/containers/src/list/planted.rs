//! Planted bugs: a linked list implemented or used wrongly.

use super::{Answer, List, Op, operations::walked, space};
use bytes::Bytes;
use shaketable::{
    specimen::{Content, INTERLEAVED, UNRECORDED},
    weakened::{Flaw, everything, flawed, only, weakened},
};
use shaketable_layers::{
    id::Id,
    list::{self, Error},
};
use shaketable_tx::{
    Isolation::{self, Serializable, Snapshot},
    Transaction, strinc,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two insertions that run side by side in one transaction follow the same link", "two futures in one transaction";
    Unrecorded = UNRECORDED, "a removal is retried after an unknown result without an operation record", "the guide's remove_next_node";
    NullLink = "null-link", "an absent link is taken for a link to a node named null", "the guide's remove_next_node, on a list whose last node has no link";
    EmptyLink = "empty-link", "an empty link is taken for a link to a node without a name", "the guide's remove_next_node, where bytes are no text";
    BytesLink = "bytes-link", "an id that is read from a link is looked up as bytes, whatever its type", "the guide's remove_next_node, where bytes are no text";
    OwnKeyStays = "own-key-stays", "a removal clears what follows a node's key, and not the key itself", "the guide's remove_next_node, on nodes with a value";
    SnapshotLinks = "snapshot-links", "links are read at snapshot isolation", "reads that decide a write outside conflict detection";
    BlindAttribute = "blind-attribute", "an attribute is set without a check that its node exists", "a node that is gone";
    UncheckedInsert = "unchecked-insert", "a node is inserted without a check whether it exists", "one id twice in a list";
    LinkListed = "link-listed", "the link is listed among the attributes", "an attribute that is none";
    PrefixCleared = "prefix-cleared", "an attribute is removed with all attributes with this prefix", "a range where a key is meant";
    AttributesStay = "attributes-stay", "the first node is removed without its attributes", "a removal of the value and the link only";
    WalkRepeats = "walk-repeats", "a walk after a node begins with that node", "a bound that is inclusive instead of exclusive";
    BehindFirst = "behind-first", "a node for the front is inserted after the first one", "an insertion without a case of its own for the head";
    UncheckedNext = "unchecked-next", "the expected next node is not compared", "a removal of whatever comes next";
    WalkAtSnapshot = "walk-at-snapshot", "a walk is read at snapshot, whatever isolation was requested", "a dropped conflict range";
    WrittenFirst = "written-first", "the value of a new node is written before it is known whether the node exists after which it is inserted", "a refusal that comes too late";
    AttributesEnd = "attributes-end", "attributes are listed up to the name U+FFFF", "a range that ends at a constant";
    SetBeforeCheck = "set-before-check", "an attribute is set before it is known whether its node exists", "a refusal that comes too late";
    LongestRefused = "longest-refused", "a walk of as many nodes as it may visit is refused", "a limit off by one";
    StartCounted = "start-counted", "a walk after a node counts that node towards the nodes that it may visit", "a limit off by one";
    SixOnly = "six-only", "a walk returns at most six nodes", "a limit that tests never reach";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform<T: Transaction>(
    planted: Planted,
    workload: &List,
    tx: &T,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let list = list::List::new(space());
    let content = |(name, value): (String, Bytes)| (name, Content::from(&value));
    match (planted, op) {
        (Planted::NullLink | Planted::EmptyLink | Planted::BytesLink, Op::RemoveNext(node)) => {
            match remove_misread(planted, tx, node).await? {
                Some(removed) => Ok(Answer::Node(Some(removed))),
                None => workload.right(tx, op, isolation).await,
            }
        }
        (Planted::OwnKeyStays, Op::RemoveNext(_)) => {
            let removed = workload.right(&flawed(tx, Flaw::Uncleared, everything()), op, isolation).await?;
            if let Answer::Node(Some(removed)) = &removed {
                let (begin, end) = space().subspace(&("node", removed)).range();
                tx.clear_range(&begin, &end);
            }
            Ok(removed)
        }
        (Planted::AttributesStay, Op::RemoveFirst) => {
            let removed = workload.right(&flawed(tx, Flaw::Uncleared, everything()), op, isolation).await?;
            if let Answer::Node(Some(removed)) = &removed {
                tx.clear(&own_key(removed));
                tx.clear(&next(removed));
            }
            Ok(removed)
        }
        (Planted::SnapshotLinks, Op::RemoveNext(_) | Op::InsertAfter(..)) => {
            workload.right(&weakened(tx.clone(), everything()), op, isolation).await
        }
        (Planted::StartCounted, Op::Walk(Some(_), _)) => match workload.right(tx, op, isolation).await? {
            Answer::LongWalk(list::MAX_WALK, _) => Err(Error::WalkTooLong(list::MAX_WALK)),
            walked => Ok(walked),
        },
        (Planted::WalkAtSnapshot, Op::Walk(..)) => workload.right(tx, op, Snapshot).await,
        (Planted::BlindAttribute, Op::SetAttribute(node, name, byte, length))
            if name != "next" && *length <= 2_000 =>
        {
            tx.set(&space().pack(&("node", node, name)), &vec![*byte; *length]);
            Ok(Answer::Written)
        }
        (Planted::UncheckedInsert, Op::PushFront(id, ..)) => {
            workload.right(&flawed(tx, Flaw::Unread, [only(own_key(id))]), op, isolation).await
        }
        (Planted::LinkListed, Op::Attributes(node)) => {
            let all = list.attributes(tx, node, isolation).await?;
            let link = tx.get(&next(node), isolation).await?.map(|link| ("next".to_owned(), link));
            let mut all: Vec<_> = all.into_iter().chain(link).map(content).collect();
            all.sort_by(|(one, _), (other, _)| one.cmp(other));
            Ok(Answer::Attributes(all))
        }
        (Planted::PrefixCleared, Op::ClearAttribute(node, name)) => {
            let cleared = workload.right(tx, op, isolation).await?;
            let mut begin = space().pack(&("node", node, name));
            begin.pop();
            tx.clear_range(&begin, &strinc(&begin).unwrap_or_default());
            Ok(cleared)
        }
        (Planted::WrittenFirst, Op::InsertAfter(_, id, byte, length)) if *length <= 2_000 => {
            let inserted = workload.right(tx, op, isolation).await;
            if let Err(Error::NoSuchNode(_)) = inserted
                && !list.contains(tx, id, Serializable).await?
            {
                tx.set(&own_key(id), &vec![*byte; *length]);
            }
            inserted
        }
        (Planted::SetBeforeCheck, Op::SetAttribute(node, name, byte, length)) => {
            let set = workload.right(tx, op, isolation).await;
            if let Err(Error::NoSuchNode(_)) = set {
                tx.set(&space().pack(&("node", node, name)), &vec![*byte; *length]);
            }
            set
        }
        (Planted::AttributesEnd, Op::Attributes(node)) => {
            let all = list.attributes(tx, node, isolation).await?;
            let known = all.into_iter().filter(|(name, _)| &name[..] < "\u{ffff}");
            Ok(Answer::Attributes(known.map(content).collect()))
        }
        (Planted::SixOnly, Op::Walk(from, limit)) if *limit < 100 => {
            workload.right(tx, &Op::Walk(from.clone(), (*limit).min(6)), isolation).await
        }
        (Planted::LongestRefused, Op::Walk(..)) => match workload.right(tx, op, isolation).await? {
            Answer::LongWalk(list::MAX_WALK, _) => Err(Error::WalkTooLong(list::MAX_WALK)),
            walked => Ok(walked),
        },
        (Planted::WalkRepeats, Op::Walk(Some(node), limit)) if *limit > 0 => {
            let value = list.value(tx, node, isolation).await?;
            let rest = list.walk(tx, Some(node), limit - 1, isolation).await?;
            let rest = rest.into_iter().map(|node| (node.id, Content::from(&node.value)));
            Ok(walked([(node.clone(), Content::from(&value))].into_iter().chain(rest)))
        }
        (Planted::BehindFirst, Op::PushFront(id, byte, length)) => {
            match list.first(tx, Serializable).await? {
                Some(first) => {
                    let behind = Op::InsertAfter(first, id.clone(), *byte, *length);
                    workload.right(tx, &behind, isolation).await
                }
                None => workload.right(tx, op, isolation).await,
            }
        }
        (Planted::UncheckedNext, Op::RemoveNextIf(node, _)) => {
            list.remove_next_node(tx, node).await.map(|_| Answer::Written)
        }
        _ => workload.right(tx, op, isolation).await,
    }
}

fn own_key(node: &Id) -> Vec<u8> {
    space().pack(&("node", node))
}

fn next(node: &Id) -> Vec<u8> {
    space().pack(&("node", node, "next"))
}

/// Removes the node to which a link leads that is misread; `None` if the node has no such link.
async fn remove_misread<T: Transaction>(planted: Planted, tx: &T, node: &Id) -> Result<Option<Id>, Error> {
    let link = match list::List::new(space()).contains(tx, node, Serializable).await? {
        true => tx.get(&next(node), Serializable).await?,
        false => return Ok(None),
    };
    let removed = match (planted, link.as_deref()) {
        (Planted::NullLink, None) => {
            tx.set(&next(node), &foundationdb_tuple::pack(&None::<i64>));
            return Ok(Some(Id::from("")));
        }
        (Planted::EmptyLink, Some([])) => Id::from(""),
        // Ids that are read have lost their type.
        (Planted::BytesLink, Some(link)) => match foundationdb_tuple::unpack(link) {
            Ok(Id::Text(text)) => Id::Bytes(text.into()),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let behind = tx.get(&next(&removed), Serializable).await?;
    tx.set(&next(node), &behind.unwrap_or_default());
    tx.clear_range(&own_key(&removed), &space().subspace(&("node", &removed)).range().1);
    Ok(Some(removed))
}
