//! Planted bugs: a linked list implemented or used wrongly.

use super::{Answer, Op, space};
use crate::shared;
use bytes::Bytes;
use shaketable::specimen::{Content, INTERLEAVED, UNRECORDED};
use shaketable_layers::{
    id::Id,
    list::{Error, List},
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
    SixOnly = "six-only", "a walk returns at most six nodes", "a limit that tests never reach";
}

/// The isolation at which a look is performed that was requested at `asked`.
pub fn isolation(planted: Option<Planted>, op: &Op, asked: Isolation) -> Isolation {
    match (planted, op) {
        (Some(Planted::WalkAtSnapshot), Op::Walk(..)) => Isolation::Snapshot,
        _ => asked,
    }
}

/// Performs a call that the bug changes; `None` for every other call.
pub async fn perform<T: Transaction>(planted: Planted, tx: &T, op: &Op) -> Option<Result<Answer, Error>> {
    let list = List::new(space());
    match (planted, op) {
        (
            Planted::NullLink
            | Planted::EmptyLink
            | Planted::BytesLink
            | Planted::OwnKeyStays
            | Planted::SnapshotLinks,
            Op::RemoveNext(node),
        ) => Some(remove_next_node(planted, tx, node).await.map(Answer::Node)),
        (Planted::SnapshotLinks, Op::InsertAfter(after, id, byte, length)) if *length <= 2_000 => {
            Some(insert_after(tx, after, id, &vec![*byte; *length]).await.map(|()| Answer::Written))
        }
        (Planted::BlindAttribute, Op::SetAttribute(node, name, byte, length))
            if name != "next" && *length <= 2_000 =>
        {
            tx.set(&space().pack(&("node", node, name)), &vec![*byte; *length]);
            Some(Ok(Answer::Written))
        }
        (Planted::UncheckedInsert, Op::PushFront(id, byte, length)) if *length <= 2_000 => {
            let first = list.first(tx, Serializable).await;
            Some(first.map(|first| {
                insert(tx, &space().pack(&("head",)), first.as_ref(), id, &vec![*byte; *length]);
                Answer::Written
            }))
        }
        (Planted::LinkListed, Op::Attributes(node)) => {
            let all = attributes(tx, node).await.transpose()?;
            Some(all.map(Answer::Attributes))
        }
        (Planted::PrefixCleared, Op::ClearAttribute(node, name)) if name != "next" => {
            let found = list.contains(tx, node, Serializable).await;
            let mut begin = space().pack(&("node", node, name));
            begin.pop();
            match found {
                Ok(true) => tx.clear_range(&begin, &strinc(&begin)?),
                Ok(false) => return None,
                Err(e) => return Some(Err(e)),
            }
            Some(Ok(Answer::Written))
        }
        (Planted::WrittenFirst, Op::InsertAfter(after, id, byte, length)) if *length <= 2_000 => {
            let there = async {
                let exists = list.contains(tx, id, Serializable).await?;
                Ok(exists || list.contains(tx, after, Serializable).await?)
            };
            match there.await {
                Ok(true) => return None,
                Ok(false) => tx.set(&space().pack(&("node", id)), &vec![*byte; *length]),
                Err(e) => return Some(Err(e)),
            }
            Some(Err(Error::NoSuchNode(after.clone())))
        }
        (Planted::SetBeforeCheck, Op::SetAttribute(node, name, byte, length))
            if name != "next" && *length <= 2_000 =>
        {
            match list.contains(tx, node, Serializable).await {
                Ok(_) => tx.set(&space().pack(&("node", node, name)), &vec![*byte; *length]),
                Err(e) => return Some(Err(e)),
            }
            let set = list.set_attribute(tx, node, name, &vec![*byte; *length]).await;
            Some(set.map(|()| Answer::Written))
        }
        (Planted::AttributesEnd, Op::Attributes(node)) => {
            let all = list.attributes(tx, node, Serializable).await;
            let known = |(name, _): &(String, Bytes)| &name[..] < "\u{ffff}";
            let content = |(name, value): (String, Bytes)| (name, Content::from(&value));
            Some(all.map(|all| Answer::Attributes(all.into_iter().filter(known).map(content).collect())))
        }
        (Planted::SixOnly, Op::Walk(from, limit)) if *limit < 100 => {
            let nodes = list.walk(tx, from.as_ref(), (*limit).min(6), Serializable).await;
            let node = |node: shaketable_layers::list::Node| (node.id, Content::from(&node.value));
            Some(nodes.map(|nodes| Answer::Walk(nodes.into_iter().map(node).collect())))
        }
        (Planted::AttributesStay, Op::RemoveFirst) => Some(remove_first(tx).await.map(Answer::Node)),
        (Planted::WalkRepeats, Op::Walk(Some(node), limit)) if *limit > 0 => {
            let value = match list.value(tx, node, Serializable).await {
                Ok(value) => (node.clone(), Content::from(&value)),
                Err(e) => return Some(Err(e)),
            };
            let rest = list.walk(tx, Some(node), limit - 1, Serializable).await;
            Some(rest.map(|rest| {
                let rest = rest.into_iter().map(|node| (node.id, Content::from(&node.value)));
                Answer::Walk([value].into_iter().chain(rest).collect())
            }))
        }
        (Planted::BehindFirst, Op::PushFront(id, byte, length)) if *length <= 2_000 => {
            match list.first(tx, Serializable).await {
                Ok(Some(first)) if !list.contains(tx, id, Serializable).await.unwrap_or(true) => {
                    let value = vec![*byte; *length];
                    Some(list.insert_after(tx, &first, id, &value).await.map(|()| Answer::Written))
                }
                _ => None,
            }
        }
        (Planted::UncheckedNext, Op::RemoveNextIf(node, _)) => {
            Some(list.remove_next_node(tx, node).await.map(|_| Answer::Written))
        }
        _ => None,
    }
}

/// Everything stored after a node's key, including the link; `None` if the node does not exist.
async fn attributes<T: Transaction>(tx: &T, node: &Id) -> Result<Option<Vec<(String, Content)>>, Error> {
    if !List::new(space()).contains(tx, node, Serializable).await? {
        return Ok(None);
    }
    let node = space().subspace(&("node", node));
    let rows = shared::rows(tx, &node).await?;
    let named =
        rows.into_iter().filter_map(|row| Some((node.unpack::<(String,)>(&row.key).ok()?.0, row.value)));
    Ok(Some(named.map(|(name, value)| (name, Content::from(&value))).collect()))
}

/// Removes the first node without its attributes.
async fn remove_first<T: Transaction>(tx: &T) -> Result<Option<Id>, Error> {
    let list = List::new(space());
    let Some(first) = list.first(tx, Serializable).await? else { return Ok(None) };
    let behind = list.next(tx, &first, Serializable).await?;
    tx.set(&space().pack(&("head",)), &packed(behind.as_ref()));
    tx.clear(&space().pack(&("node", &first)));
    tx.clear(&next(&first));
    Ok(Some(first))
}

fn next(node: &Id) -> Vec<u8> {
    space().pack(&("node", node, "next"))
}

fn packed(id: Option<&Id>) -> Vec<u8> {
    id.map(foundationdb_tuple::pack).unwrap_or_default()
}

fn insert<T: Transaction>(tx: &T, link: &[u8], behind: Option<&Id>, id: &Id, value: &[u8]) {
    tx.set(&space().pack(&("node", id)), value);
    tx.set(&next(id), &packed(behind));
    tx.set(link, &packed(Some(id)));
}

async fn insert_after<T: Transaction>(tx: &T, after: &Id, id: &Id, value: &[u8]) -> Result<(), Error> {
    let list = List::new(space());
    let behind = list.next(tx, after, Snapshot).await?;
    if list.contains(tx, id, Snapshot).await? {
        return Err(Error::NodeExists(id.clone()));
    }
    insert(tx, &next(after), behind.as_ref(), id, value);
    Ok(())
}

/// The guide's `remove_next_node`: copies the next node's link to this node, and clears the next node.
async fn remove_next_node<T: Transaction>(planted: Planted, tx: &T, node: &Id) -> Result<Option<Id>, Error> {
    let isolation = match planted {
        Planted::SnapshotLinks => Snapshot,
        _ => Serializable,
    };
    if !List::new(space()).contains(tx, node, isolation).await? {
        return Err(Error::NoSuchNode(node.clone()));
    }
    let Some((packed, removed)) = link(planted, tx, node, isolation).await? else { return Ok(None) };
    let below = space().subspace(&"node");
    let of = |parts: &[u8]| [below.bytes(), &packed[..], parts].concat();
    let behind = tx.get(&of(&foundationdb_tuple::pack(&"next")), isolation).await?;
    let null = || Bytes::from(foundationdb_tuple::pack(&None::<i64>));
    tx.set(
        &next(node),
        &behind.unwrap_or_else(|| if planted == Planted::NullLink { null() } else { Bytes::new() }),
    );
    let begin = match planted {
        Planted::OwnKeyStays => of(b"\0"),
        _ => of(b""),
    };
    tx.clear_range(&begin, &of(b"\xff"));
    Ok(Some(removed))
}

/// The target of a node's link: as it is packed in keys, and as an id.
async fn link<T: Transaction>(
    planted: Planted,
    tx: &T,
    node: &Id,
    isolation: Isolation,
) -> Result<Option<(Vec<u8>, Id)>, Error> {
    let stored = tx.get(&next(node), isolation).await?;
    let pair = |id: Id| (foundationdb_tuple::pack(&id), id);
    Ok(match (planted, stored) {
        (Planted::NullLink, None) => Some((foundationdb_tuple::pack(&None::<i64>), "".into())),
        (_, None) => None,
        (Planted::EmptyLink, Some(link)) if link.is_empty() => Some(pair(Id::from(""))),
        (_, Some(link)) if link.is_empty() => None,
        (planted, Some(link)) => match (planted, foundationdb_tuple::unpack(&link)) {
            // Ids that are read have lost their type.
            (Planted::BytesLink, Ok(Id::Text(text))) => Some(pair(Id::Bytes(text.into()))),
            (_, Ok(id)) => Some(pair(id)),
            (_, Err(_)) => return Err(Error::Foreign(link)),
        },
    })
}
