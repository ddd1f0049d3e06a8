//! Planted bugs: entities and relationships implemented or used wrongly.

use super::{End, Entity, Name, RELATIONSHIPS, layer, space};
use shaketable::{prelude::*, specimen::Content};
use shaketable_layers::{entity::Error, id::Id};
use shaketable_tx::strinc;
use std::collections::BTreeSet;

#[shaketable::planted]
#[flaw(uncounted, relate, Unread, "a cardinality is not checked at all", "the guide's add_relationship")]
impl Entity {
    /// Attributes and relationships share one space.
    #[bug(add_attribute, "the guide's key layout")]
    async fn shared_space(&self, tx: &Tx, id: &Id, key: &Name, byte: u8, length: usize) -> Result<(), Error> {
        if length > 2_000 {
            return self.add_attribute(tx, id, key, byte, length).await;
        }
        tx.set(&space().pack(&("relationship", id, key)), &vec![byte; length]);
        Ok(())
    }

    #[bug(attribute, part_of = "shared-space")]
    async fn shared_attribute(
        &self,
        tx: &Tx,
        isolation: Isolation,
        id: &Id,
        key: &Name,
    ) -> Result<Option<Content>, Error> {
        let value = tx.get(&space().pack(&("relationship", id, key)), isolation).await?;
        Ok(value.as_ref().map(Content::from))
    }

    /// The pairs of a relationship include those of all relationships with this prefix.
    #[bug(pairs, "a range over the start of a name")]
    async fn prefix_pairs(&self, tx: &Tx, isolation: Isolation, name: &Name) -> Result<Vec<(Id, Id)>, Error> {
        let mut pairs = self.pairs(tx, isolation, name).await?;
        for (longer, _) in RELATIONSHIPS {
            if longer != name && longer.starts_with(&name[..]) {
                pairs.extend(layer().get_relationships(tx, longer, isolation).await?);
            }
        }
        Ok(pairs)
    }

    /// An attribute is removed with all attributes with this prefix.
    #[bug(remove_attribute, "a range where a key is meant")]
    async fn prefix_attributes(&self, tx: &Tx, id: &Id, key: &Name) -> Result<(), Error> {
        let mut begin = space().pack(&("attribute", id, key));
        begin.pop();
        tx.clear_range(&begin, &strinc(&begin).unwrap_or_default());
        Ok(())
    }

    /// Related entities are read at snapshot, whatever isolation was requested.
    #[bug(related, "a dropped conflict range")]
    async fn related_at_snapshot(&self, tx: &Tx, name: &Name, end: &End) -> Result<BTreeSet<Id>, Error> {
        self.related(tx, Snapshot, name, end).await
    }

    /// Attributes are listed up to the name U+FFFF.
    #[bug(attributes, "a range that ends at a constant")]
    async fn attributes_end(
        &self,
        tx: &Tx,
        isolation: Isolation,
        id: &Id,
    ) -> Result<Vec<(String, Content)>, Error> {
        let mut all = self.attributes(tx, isolation, id).await?;
        all.retain(|(key, _)| &key[..] < "\u{ffff}");
        Ok(all)
    }

    /// The related entities are listed up to the text U+FFFF.
    #[bug(related, "a range that ends at a constant")]
    async fn related_end(
        &self,
        tx: &Tx,
        isolation: Isolation,
        name: &Name,
        end: &End,
    ) -> Result<BTreeSet<Id>, Error> {
        let mut all = self.related(tx, isolation, name, end).await?;
        all.retain(|id| !matches!(id, Id::Text(text) if text.contains('\u{10ffff}')));
        Ok(all)
    }
}
