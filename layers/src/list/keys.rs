//! The key schema of a linked list.
//!
//! ```text
//! (list, "head")                 =  id       the first node
//! (list, "node", id)             =  value    the node itself: it exists as long as this key does
//! (list, "node", id, "next")     =  id       the next node
//! (list, "node", id, attribute)  =  value
//! ```
//!
//! A link holds the packed id, including its type. An absent or empty link is the end of the list: the layer
//! writes an empty one, other programs may omit it.

use super::Error;
use crate::{id::Id, limits};
use bytes::Bytes;
use foundationdb_tuple::Subspace;

/// The attribute under which a node's link is stored.
pub const NEXT: &str = "next";

/// The key of the link to the first node.
pub(super) fn head(list: &Subspace) -> Vec<u8> {
    list.pack(&("head",))
}

/// The subspace of everything about one node.
pub(super) fn node(list: &Subspace, id: &Id) -> Subspace {
    list.subspace(&("node", id))
}

/// The key of a node's link.
pub(super) fn next(list: &Subspace, id: &Id) -> Vec<u8> {
    node(list, id).pack(&(NEXT,))
}

/// The key of a node's attribute.
pub(super) fn attribute(list: &Subspace, id: &Id, name: &str) -> Result<Vec<u8>, Error> {
    match name {
        NEXT => Err(Error::ReservedAttribute(name.into())),
        _ => Ok(node(list, id).pack(&(name,))),
    }
}

/// The range of everything about a node: its own key, and the keys in its subspace.
pub(super) fn whole(list: &Subspace, id: &Id) -> (Vec<u8>, Vec<u8>) {
    let node = node(list, id);
    let (_, end) = node.range();
    (node.into_bytes(), end)
}

/// Refuses a node if one of its keys, or its value, is too long.
pub(super) fn fits(list: &Subspace, id: &Id, value: &[u8]) -> Result<(), Error> {
    limits::key(&next(list, id))?;
    Ok(limits::row(node(list, id).bytes(), value)?)
}

/// The encoding of a link.
pub(super) fn link(to: Option<&Id>) -> Vec<u8> {
    to.map(foundationdb_tuple::pack).unwrap_or_default()
}

/// Decodes a stored link; `key` is the link's own key.
pub(super) fn follow(key: &[u8], stored: Option<Bytes>) -> Result<Option<Id>, Error> {
    match stored {
        Some(link) if !link.is_empty() => {
            foundationdb_tuple::unpack(&link).map(Some).map_err(|_| Error::foreign(key))
        }
        _ => Ok(None),
    }
}

/// The name of an attribute, decoded from its key.
pub(super) fn name(list: &Subspace, id: &Id, key: &[u8]) -> Result<String, Error> {
    node(list, id).unpack(key).map(|(name,)| name).map_err(|_| Error::foreign(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tx::KEY_SIZE_LIMIT;

    #[test]
    fn a_node_holds_its_keys_and_no_other_nodes() {
        let list = Subspace::from("l");
        for id in [Id::from("a"), "".into(), Bytes::from_static(b"a").into(), 7.into()] {
            let (begin, end) = whole(&list, &id);
            let own = [
                node(&list, &id).into_bytes(),
                next(&list, &id),
                attribute(&list, &id, "").unwrap(),
                attribute(&list, &id, "\0\u{10ffff}").unwrap(),
            ];
            assert!(own.iter().all(|key| begin <= *key && *key < end), "{id}");
            for other in [Id::from("a\0"), "aa".into(), "b".into(), Bytes::from_static(b"").into(), 8.into()]
            {
                let keys = [node(&list, &other).into_bytes(), next(&list, &other)];
                assert!(keys.iter().all(|key| *key < begin || end <= *key), "{id} {other}");
            }
            assert!(head(&list) < begin);
        }
    }

    #[test]
    fn an_absent_and_an_empty_link_are_the_end_and_others_keep_their_type() {
        for id in [Id::from("a"), "".into(), Bytes::new().into(), 0.into()] {
            assert_eq!(follow(b"k", Some(link(Some(&id)).into())), Ok(Some(id)));
        }
        assert_eq!(follow(b"k", Some(link(None).into())), Ok(None));
        assert_eq!(follow(b"k", None), Ok(None));
        let null = foundationdb_tuple::pack(&None::<i64>);
        assert_eq!(follow(b"k", Some(null.into())), Err(Error::foreign(b"k")));
    }

    #[test]
    fn attributes_round_trip_and_leave_the_link_alone() {
        let (list, id) = (Subspace::from("l"), Id::from("a"));
        let key = attribute(&list, &id, "x\0y").unwrap();
        assert_eq!(name(&list, &id, &key).as_deref(), Ok("x\0y"));
        assert_eq!(name(&list, &id, b"else"), Err(Error::foreign(b"else")));
        assert_eq!(attribute(&list, &id, "next"), Err(Error::ReservedAttribute("next".into())));
    }

    #[test]
    fn a_node_fits_when_its_longest_key_does() {
        let list = Subspace::from("l");
        let short = next(&list, &"".into()).len();
        let id = |length| Id::from("x".repeat(length));
        assert_eq!(fits(&list, &id(KEY_SIZE_LIMIT - short), b""), Ok(()));
        let refused = fits(&list, &id(KEY_SIZE_LIMIT - short + 1), b"");
        assert!(matches!(refused, Err(Error::TooLarge(limits::TooLarge::Key { .. }))), "{refused:?}");
        let refused = fits(&list, &id(1), &[0; 100_001]);
        assert!(matches!(refused, Err(Error::TooLarge(limits::TooLarge::Value { .. }))), "{refused:?}");
    }
}
