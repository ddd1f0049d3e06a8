//! The key schema of graphs.
//!
//! ```text
//! (users, u, "friendsWith", v)  =  ''    and  (users, v, "friendsWith", u)  =  ''
//! (users, u, "hasFollowed", v)  =  ''    and  (users, v, "followedBy", u)   =  ''
//! ```
//!
//! Every edge is stored for both of its users, so that either side is one range read.

use super::Error;
use crate::{canonical, id::Id, limits};
use foundationdb_tuple::Subspace;

/// The kind of an edge from the point of view of the user under which it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    FriendsWith,
    HasFollowed,
    FollowedBy,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::FriendsWith => "friendsWith",
            Kind::HasFollowed => "hasFollowed",
            Kind::FollowedBy => "followedBy",
        }
    }

    fn named(name: &str) -> Option<Kind> {
        [Kind::FriendsWith, Kind::HasFollowed, Kind::FollowedBy].into_iter().find(|kind| kind.name() == name)
    }

    /// The kind of the same edge from the point of view of the other user.
    pub fn mirrored(self) -> Kind {
        match self {
            Kind::FriendsWith => Kind::FriendsWith,
            Kind::HasFollowed => Kind::FollowedBy,
            Kind::FollowedBy => Kind::HasFollowed,
        }
    }
}

/// The subspace of a user.
pub(super) fn user(users: &Subspace, user: &Id) -> Subspace {
    users.subspace(&(user,))
}

/// A user's edges of one kind.
pub(super) fn edges(users: &Subspace, user: &Id, kind: Kind) -> Subspace {
    users.subspace(&(user, kind.name()))
}

/// The key of an edge under one of its users.
pub(super) fn edge(users: &Subspace, user: &Id, kind: Kind, other: &Id) -> Vec<u8> {
    edges(users, user, kind).pack(&(other,))
}

/// Both keys of an edge.
pub(super) fn both(users: &Subspace, user: &Id, kind: Kind, other: &Id) -> Result<[Vec<u8>; 2], Error> {
    if user == other {
        return Err(Error::SelfEdge(user.clone()));
    }
    let keys = [edge(users, user, kind, other), edge(users, other, kind.mirrored(), user)];
    for key in &keys {
        limits::key(key)?;
    }
    Ok(keys)
}

/// The kind of an edge and the user at its other end, decoded from its key.
pub(super) fn end(users: &Subspace, user: &Id, key: &[u8]) -> Result<(Kind, Id), Error> {
    let parts = canonical::unpack_below::<(String, Id)>(&self::user(users, user), key).ok();
    parts.and_then(|(kind, other)| Some((Kind::named(&kind)?, other))).ok_or_else(|| Error::foreign(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::TooLarge;
    use bytes::Bytes;

    #[test]
    fn edges_round_trip_and_stay_with_their_user() {
        let users = Subspace::from("users");
        let ids = [Id::from("a"), Bytes::from_static(b"a").into(), "a\0".into(), "".into(), 7.into()];
        for kind in [Kind::FriendsWith, Kind::HasFollowed, Kind::FollowedBy] {
            assert_eq!(kind.mirrored().mirrored(), kind);
            for u in &ids {
                for v in &ids {
                    let key = edge(&users, u, kind, v);
                    assert_eq!(end(&users, u, &key), Ok((kind, v.clone())));
                    let holds = |id| {
                        let (begin, end) = user(&users, id).range();
                        begin <= key && key < end
                    };
                    assert!(ids.iter().all(|other| holds(other) == (other == u)), "{u} {v}");
                }
            }
        }
        let foreign = users.pack(&("a", "blocks", "b"));
        assert_eq!(end(&users, &ids[0], &foreign), Err(Error::foreign(&foreign)));
    }

    #[test]
    fn an_edge_to_oneself_or_too_long_is_refused() {
        let users = Subspace::from("users");
        let both = |u: &Id, v: &Id| both(&users, u, Kind::HasFollowed, v);
        assert_eq!(both(&7.into(), &7.into()), Err(Error::SelfEdge(7.into())));
        assert!(both(&"a".into(), &Bytes::from_static(b"a").into()).is_ok());
        let long = Id::from("x".repeat(9_990));
        assert!(matches!(both(&long, &1.into()), Err(Error::TooLarge(TooLarge::Key { .. }))));
    }
}
