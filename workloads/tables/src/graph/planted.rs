//! Planted bugs: a graph implemented or used wrongly.

use super::{Graph, Kind, space};
use shaketable::prelude::*;
use shaketable_layers::{graph::Error, id::Id};
use std::{collections::BTreeSet, mem::take, time::Duration};

#[shaketable::planted]
impl Graph {
    /// Friends of friends include the friends.
    #[bug(friends_of_friends, "the guide's getFriendsOfFriends")]
    async fn untidy(&self, tx: &Tx, isolation: Isolation, user: &Id) -> Result<BTreeSet<Id>, Error> {
        let friends = self.layer().friends(tx, user, isolation).await?;
        let mut second = self.second_degree(tx, isolation, friends).await?;
        second.remove(user);
        Ok(second)
    }

    /// Each user's friends are read in a separate transaction.
    #[bug(friends_of_friends, "the guide's getFriendsOfFriends, which is not transactional")]
    async fn torn(&self, db: &Db, user: &Id) -> Result<BTreeSet<Id>, tx::Error> {
        let (mut near, mut far) = (BTreeSet::new(), BTreeSet::from([user.clone()]));
        for _ in 0..2 {
            near = take(&mut far);
            for id in &near {
                db.env().sleep(Duration::from_millis(40)).await;
                let read =
                    db.run(|tx, _| async move { self.layer().friends(&tx, id, Serializable).await }).await;
                far.extend(read.map_err(|e| e.error.fdb().unwrap_or(tx::Error::INTERNAL_ERROR))?);
            }
        }
        far.retain(|id| id != user && !near.contains(id));
        Ok(far)
    }

    /// Users follow themselves.
    #[bug(follow, "the guide's followUser")]
    async fn self_edge(&self, tx: &Tx, u: &Id, v: &Id) -> Result<(), Error> {
        if u != v {
            return self.layer().follow(tx, u, v).await;
        }
        tx.set(&space().pack(&(u, Kind::Following.name(), v)), b"");
        tx.set(&space().pack(&(v, Kind::Followers.name(), u)), b"");
        Ok(())
    }

    /// A user who was read from the database is looked up as bytes.
    #[bug(friends_of_friends, "the guide's getFriends, where bytes are no text")]
    async fn untyped(&self, tx: &Tx, isolation: Isolation, user: &Id) -> Result<BTreeSet<Id>, Error> {
        let friends = self.layer().friends(tx, user, isolation).await?;
        let bytes = |id: &Id| match id {
            Id::Text(text) => Id::Bytes(text.clone().into()),
            id => id.clone(),
        };
        let mut second = self.second_degree(tx, isolation, friends.iter().map(bytes).collect()).await?;
        second.retain(|id| id != user && !friends.contains(id));
        Ok(second)
    }

    /// Only the friends of the first sixteen friends are read.
    #[bug(friends_of_friends, "a bound on concurrency, taken for a bound on the result")]
    async fn first_friends(&self, tx: &Tx, isolation: Isolation, user: &Id) -> Result<BTreeSet<Id>, Error> {
        let friends = self.layer().friends(tx, user, isolation).await?;
        let first = friends.iter().take(16).cloned().collect();
        let mut second = self.second_degree(tx, isolation, first).await?;
        second.retain(|id| id != user && !friends.contains(id));
        Ok(second)
    }

    /// The friends of friends are read at snapshot, and the friends at the requested isolation.
    #[bug(friends_of_friends, "an isolation that is not passed on")]
    async fn theirs_at_snapshot(
        &self,
        tx: &Tx,
        isolation: Isolation,
        user: &Id,
    ) -> Result<BTreeSet<Id>, Error> {
        let friends = self.layer().friends(tx, user, isolation).await?;
        let mut second = self.second_degree(tx, Snapshot, friends.clone()).await?;
        second.retain(|id| id != user && !friends.contains(id));
        Ok(second)
    }

    /// An id from 128 to 255 is stored as a negative number.
    #[bug(follow, "a cast that wraps")]
    async fn signed_byte(&self, tx: &Tx, u: &Id, v: Id) -> Result<(), Error> {
        let wrapped = match v {
            Id::Int(v @ 128..=255) => Id::Int(v - 256),
            v => v,
        };
        self.layer().follow(tx, u, &wrapped).await
    }

    /// An id that does not fit into 32 bits is cut off.
    #[bug(follow, "a cast that truncates")]
    async fn narrowed(&self, tx: &Tx, u: &Id, v: Id) -> Result<(), Error> {
        let cut = match v {
            Id::Int(v) => Id::Int((v as i32).into()),
            v => v,
        };
        self.layer().follow(tx, u, &cut).await
    }

    /// Friends are listed up to the text U+FFFF.
    #[bug(ends, "a range that ends at a constant")]
    async fn friends_end(
        &self,
        tx: &Tx,
        isolation: Isolation,
        kind: Kind,
        user: &Id,
    ) -> Result<BTreeSet<Id>, Error> {
        let known = |id: &Id| !matches!(id, Id::Text(text) if text.contains('\u{10ffff}'));
        let all = self.ends(tx, isolation, kind, user).await?;
        Ok(all.into_iter().filter(|id| kind != Kind::Friends || known(id)).collect())
    }

    /// The friends of these users.
    async fn second_degree(
        &self,
        tx: &Tx,
        isolation: Isolation,
        of: BTreeSet<Id>,
    ) -> Result<BTreeSet<Id>, Error> {
        let mut second = BTreeSet::new();
        for friend in &of {
            second.extend(self.layer().friends(tx, friend, isolation).await?);
        }
        Ok(second)
    }
}
