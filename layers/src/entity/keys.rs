//! The key schema of entities and relationships.
//!
//! ```text
//! (ER, "attribute", entity, attribute)               =  value
//! (ER, "relationship", relationship, primary, foreign)  =  ''
//! (ER, "inverse", relationship, foreign, primary)       =  ''
//! ```
//!
//! Attributes and relationships have separate subspaces: an entity may have the same name as a relationship.

use super::{Direction, Error};
use crate::{canonical, id::Id, limits};
use foundationdb_tuple::Subspace;

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Direction::Forward => "relationship",
            Direction::Inverse => "inverse",
        }
    }

    /// The opposite direction.
    pub(super) fn turned(self) -> Direction {
        match self {
            Direction::Forward => Direction::Inverse,
            Direction::Inverse => Direction::Forward,
        }
    }
}

/// An entity's attributes.
pub(super) fn attributes(er: &Subspace, entity: &Id) -> Subspace {
    er.subspace(&("attribute", entity))
}

/// The key of an attribute.
pub(super) fn attribute(er: &Subspace, entity: &Id, name: &str) -> Vec<u8> {
    attributes(er, entity).pack(&(name,))
}

/// The name of an attribute, decoded from its key.
pub(super) fn name(er: &Subspace, entity: &Id, key: &[u8]) -> Result<String, Error> {
    attributes(er, entity).unpack(key).map(|(name,)| name).map_err(|_| Error::foreign(key))
}

/// All pairs of a relationship, keyed by the entity on one side first.
pub(super) fn pairs(er: &Subspace, direction: Direction, relationship: &str) -> Subspace {
    er.subspace(&(direction.name(), relationship))
}

/// The entities to which an entity is related.
pub(super) fn related(er: &Subspace, direction: Direction, relationship: &str, entity: &Id) -> Subspace {
    pairs(er, direction, relationship).subspace(&(entity,))
}

/// The key of a pair, as seen from `entity`.
pub(super) fn pair(
    er: &Subspace,
    direction: Direction,
    relationship: &str,
    entity: &Id,
    other: &Id,
) -> Vec<u8> {
    related(er, direction, relationship, entity).pack(&(other,))
}

/// The other entity of a pair, decoded from its key in [`related`].
pub(super) fn other(related: &Subspace, key: &[u8]) -> Result<Id, Error> {
    canonical::unpack_below(related, key).map(|(id,)| id).map_err(|_| Error::foreign(key))
}

/// Both keys of a pair.
pub(super) fn both(
    er: &Subspace,
    relationship: &str,
    primary: &Id,
    foreign: &Id,
) -> Result<[Vec<u8>; 2], Error> {
    let keys = [
        pair(er, Direction::Forward, relationship, primary, foreign),
        pair(er, Direction::Inverse, relationship, foreign, primary),
    ];
    for key in &keys {
        limits::key(key)?;
    }
    Ok(keys)
}

/// The two entities of a pair, decoded from its key: first the entity from whose side it is stored.
pub(super) fn ends(pairs: &Subspace, key: &[u8]) -> Result<(Id, Id), Error> {
    canonical::unpack_below(pairs, key).map_err(|_| Error::foreign(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::TooLarge;
    use bytes::Bytes;

    #[test]
    fn pairs_round_trip_from_both_sides() {
        let er = Subspace::from("ER");
        let ids = [Id::from("a"), Bytes::from_static(b"a").into(), "a\0".into(), "".into(), 7.into()];
        for direction in [Direction::Forward, Direction::Inverse] {
            let all = pairs(&er, direction, "belongs_to");
            for one in &ids {
                for other in &ids {
                    let key = pair(&er, direction, "belongs_to", one, other);
                    assert_eq!(ends(&all, &key), Ok((one.clone(), other.clone())));
                    assert!(ends(&pairs(&er, direction.turned(), "belongs_to"), &key).is_err());
                    assert!(ends(&pairs(&er, direction, "belongs"), &key).is_err());
                    let holds = |id| {
                        let (begin, end) = related(&er, direction, "belongs_to", id).range();
                        begin <= key && key < end
                    };
                    assert!(ids.iter().all(|id| holds(id) == (id == one)));
                }
            }
        }
    }

    #[test]
    fn an_entity_may_be_called_as_a_relationship_is() {
        let er = Subspace::from("ER");
        let key = attribute(&er, &"belongs_to".into(), "a\0b");
        assert_eq!(name(&er, &"belongs_to".into(), &key).as_deref(), Ok("a\0b"));
        assert!(!pairs(&er, Direction::Forward, "belongs_to").is_start_of(&key));
        let pair = pair(&er, Direction::Forward, "belongs_to", &1.into(), &2.into());
        assert_eq!(name(&er, &"belongs_to".into(), &pair), Err(Error::foreign(&pair)));
    }

    #[test]
    fn a_pair_fits_when_both_its_keys_do() {
        let er = Subspace::from("ER");
        assert!(both(&er, "r", &1.into(), &1.into()).is_ok());
        let long = Id::from("x".repeat(9_990));
        assert!(matches!(both(&er, "r", &long, &1.into()), Err(Error::TooLarge(TooLarge::Key { .. }))));
        assert!(matches!(both(&er, "r", &1.into(), &long), Err(Error::TooLarge(TooLarge::Key { .. }))));
    }
}
