//! Planted bugs: a linked list implemented or used wrongly.

use super::{List, Walked, link_of, space};
use shaketable::{
    prelude::*,
    specimen::Content,
    weakened::{Flaw, everything, flawed},
};
use shaketable_layers::{
    id::Id,
    list::{Error, MAX_WALK, Node},
};
use shaketable_tx::strinc;

#[shaketable::planted]
impl List {
    /// An absent link is taken for a link to a node named null.
    #[bug(remove_next, "the guide's remove_next_node, on a list whose last node has no link")]
    async fn null_link(&self, tx: &Tx, node: &Id) -> Result<Option<Id>, Error> {
        self.next(tx, Serializable, node).await?;
        if tx.get(&link_of(node), Serializable).await?.is_some() {
            return self.remove_next(tx, node).await;
        }
        tx.set(&link_of(node), &foundationdb_tuple::pack(&None::<i64>));
        Ok(Some(Id::from("")))
    }

    /// An id that is read from a link is looked up as bytes, whatever its type.
    #[bug(remove_next, "the guide's remove_next_node, where bytes are no text")]
    async fn bytes_link(&self, tx: &Tx, node: &Id) -> Result<Option<Id>, Error> {
        let Some(Id::Text(text)) = self.next(tx, Serializable, node).await? else {
            return self.remove_next(tx, node).await;
        };
        let removed = Id::Bytes(text.into());
        let behind = tx.get(&link_of(&removed), Serializable).await?;
        tx.set(&link_of(node), &behind.unwrap_or_default());
        let keys = space().subspace(&("node", &removed));
        tx.clear_range(keys.bytes(), &keys.range().1);
        Ok(Some(removed))
    }

    /// A removal clears what follows a node's key, and not the key itself.
    #[bug(remove_next, "the guide's remove_next_node, on nodes with a value")]
    async fn own_key_stays(&self, tx: &Tx, node: &Id) -> Result<Option<Id>, Error> {
        let removed = self.remove_next(&flawed(tx, Flaw::Uncleared, everything()), node).await?;
        if let Some(removed) = &removed {
            let (begin, end) = space().subspace(&("node", removed)).range();
            tx.clear_range(&begin, &end);
        }
        Ok(removed)
    }

    /// An attribute is removed with all attributes with this prefix.
    #[bug(clear_attribute, "a range where a key is meant")]
    async fn prefix_cleared(&self, tx: &Tx, node: &Id, name: &str) -> Result<(), Error> {
        self.clear_attribute(tx, node, name).await?;
        let mut begin = space().pack(&("node", node, name));
        begin.pop();
        tx.clear_range(&begin, &strinc(&begin).unwrap_or_default());
        Ok(())
    }

    /// A walk after a node begins with that node.
    #[bug(walk, "a bound that is inclusive instead of exclusive")]
    async fn walk_repeats(
        &self,
        tx: &Tx,
        isolation: Isolation,
        from: Option<Id>,
        limit: usize,
    ) -> Result<Walked, Error> {
        let (Some(id), 1..) = (&from, limit) else { return self.walk(tx, isolation, from, limit).await };
        let first = Node { id: id.clone(), value: self.layer().value(tx, id, isolation).await? };
        let rest = self.layer().walk(tx, Some(id), limit - 1, isolation).await?;
        let nodes = [first].into_iter().chain(rest);
        Ok(Walked::of(nodes.map(|node| (node.id, Content::from(&node.value)))))
    }

    /// A node for the front is inserted after the first one.
    #[bug(push_front, "an insertion without a case of its own for the head")]
    async fn behind_first(&self, tx: &Tx, id: &Id, byte: u8, length: usize) -> Result<(), Error> {
        match self.first(tx, Serializable).await? {
            Some(first) => self.insert_after(tx, &first, id, byte, length).await,
            None => self.push_front(tx, id, byte, length).await,
        }
    }

    /// A walk is read at snapshot, whatever isolation was requested.
    #[bug(walk, "a dropped conflict range")]
    async fn walk_at_snapshot(&self, tx: &Tx, from: Option<Id>, limit: usize) -> Result<Walked, Error> {
        self.walk(tx, Snapshot, from, limit).await
    }

    /// Attributes are listed up to the name U+FFFF.
    #[bug(attributes, "a range that ends at a constant")]
    async fn attributes_end(
        &self,
        tx: &Tx,
        isolation: Isolation,
        node: &Id,
    ) -> Result<Vec<(String, Content)>, Error> {
        let mut all = self.attributes(tx, isolation, node).await?;
        all.retain(|(name, _)| &name[..] < "\u{ffff}");
        Ok(all)
    }

    /// A walk of as many nodes as it may visit is refused.
    #[bug(walk, "a limit off by one")]
    async fn longest_refused(
        &self,
        tx: &Tx,
        isolation: Isolation,
        from: Option<Id>,
        limit: usize,
    ) -> Result<Walked, Error> {
        match self.walk(tx, isolation, from, limit).await? {
            Walked::Long(MAX_WALK, _) => Err(Error::WalkTooLong(MAX_WALK)),
            walked => Ok(walked),
        }
    }
}
