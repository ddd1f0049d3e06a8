//! Planted bugs: documents implemented or used wrongly.

use super::{Document, root, space};
use crate::{
    hierarchy::planted::{from_root, members_end, one_number},
    models::json::{Item, Json, Shown},
};
use serde_json::Map;
use shaketable::{
    prelude::*,
    weakened::{Flaw, flawed},
};
use shaketable_layers::{
    document::{DOC_ID, Error, Id},
    hierarchy::Step,
};
use shaketable_tx::{RunError, strinc};

#[shaketable::planted]
#[flaw(
    first_batch,
    get,
    FirstBatch,
    "the first batch of a range read is taken for the whole document",
    "a range that is longer than a batch"
)]
impl Document {
    /// The id is drawn inside the transaction function, differently in each attempt.
    ///
    /// An attempt that certainly failed leaves no trace of its id, so a second id is drawn only after an
    /// attempt that may have committed.
    #[bug(insert_own, "the recipe's insert_doc")]
    async fn id_in_transaction(&self, db: &Db, doc: &Json) -> Result<Id, RunError<Error>> {
        let (documents, env, Json(doc)) = (&self.layer(), db.env(), doc);
        let drawn = &Id::of(&doc[DOC_ID]).unwrap_or(Id::Number(0));
        db.run(|tx, attempt| async move {
            let id = if attempt.maybe_committed { Id::draw(env) } else { drawn.clone() };
            let mut members = doc.as_object().cloned().unwrap_or_default();
            members.insert(DOC_ID.to_owned(), id.to_value());
            documents.insert(&tx, &id, &members.into()).await.map(|()| id)
        })
        .await
    }

    /// The leaves of a document are written in addition to those that are stored.
    #[bug(replace, "the recipe's insert_doc over an id that exists")]
    async fn blind_replace(&self, tx: &Tx, id: &Id, item: &Item) -> Result<(), Error> {
        self.replace(&flawed(tx, Flaw::Uncleared, [space().range()]), id, item).await
    }

    /// A part of a document is returned from the root on.
    #[bug(get, "a published get_doc with a prefix")]
    async fn from_the_root(
        &self,
        tx: &Tx,
        isolation: Isolation,
        id: &Id,
        path: &[Step],
    ) -> Result<Option<Shown>, Error> {
        let read = self.layer().get(tx, id, path, isolation).await?;
        Ok(read.map(|value| Shown::from(&from_root(path, value))))
    }

    /// A missing document and a missing path are read as an empty object.
    #[bug(get, "a published from_tuples")]
    async fn absent_is_empty(
        &self,
        tx: &Tx,
        isolation: Isolation,
        id: &Id,
        path: &[Step],
    ) -> Result<Option<Shown>, Error> {
        let read = self.layer().get(tx, id, path, isolation).await?;
        Ok(Some(Shown::from(&read.unwrap_or_else(|| Map::new().into()))))
    }

    /// 1.0 is stored as 1 and -0.0 as 0.
    #[bug(replace, "one type for all numbers")]
    async fn one_number(&self, tx: &Tx, id: &Id, item: &Item) -> Result<(), Error> {
        self.layer().replace(tx, id, &one_number(item.value())).await
    }

    /// A document's rows are all rows with its id's bytes as a prefix, and include those of longer ids.
    #[bug(remove, "a prefix taken for a tuple")]
    async fn byte_prefix(&self, tx: &Tx, id: &Id, path: &[Step]) -> Result<bool, Error> {
        let removed = self.remove(tx, id, path).await?;
        if path.is_empty() {
            tx.clear_range(&root(id), &strinc(&root(id)).unwrap_or_default());
        }
        Ok(removed)
    }

    /// A document that is requested at snapshot is read serializably.
    #[bug(get, "an isolation that is not passed on")]
    async fn get_conflicts(&self, tx: &Tx, id: &Id, path: &[Step]) -> Result<Option<Shown>, Error> {
        self.get(tx, Serializable, id, path).await
    }

    /// A document is cleared before it is known whether its new content has another id.
    #[bug(replace, "a refusal that comes too late")]
    async fn cleared_first(&self, tx: &Tx, id: &Id, item: &Item) -> Result<(), Error> {
        self.layer().remove(tx, id, &[]).await?;
        self.replace(tx, id, item).await
    }

    /// The members of a document are read up to the name U+FFFF.
    #[bug(get, "a range that ends at a constant")]
    async fn members_end(
        &self,
        tx: &Tx,
        isolation: Isolation,
        id: &Id,
        path: &[Step],
    ) -> Result<Option<Shown>, Error> {
        let read = self.layer().get(tx, id, path, isolation).await?;
        Ok(read.map(|value| Shown::from(&members_end(value))))
    }

    /// An id that does not fit into a signed integer is stored as a negative one.
    #[bug(insert, "a cast that wraps")]
    async fn negative_ids(&self, tx: &Tx, new: &(Id, Item)) -> Result<(), Error> {
        self.insert(tx, new).await?;
        wrap(tx, &new.0).await
    }

    #[bug(replace, part_of = "negative-ids")]
    async fn negative_replaced(&self, tx: &Tx, id: &Id, item: &Item) -> Result<(), Error> {
        self.replace(tx, id, item).await?;
        wrap(tx, id).await
    }
}

/// Moves a document whose id does not fit into a signed integer to a negative one.
async fn wrap(tx: &Tx, id: &Id) -> Result<(), Error> {
    let Id::Number(n @ 0x8000_0000_0000_0000..) = id else { return Ok(()) };
    let (begin, end) = (root(id), [&root(id)[..], &[0xff]].concat());
    let stored = tx.get_range_all(RangeOption::new(begin.clone(), end.clone()), Serializable).await?;
    tx.clear_range(&begin, &end);
    let wrapped = space().pack(&(*n as i64,));
    for row in &stored {
        tx.set(&[&wrapped, &row.key[begin.len()..]].concat(), &row.value);
    }
    Ok(())
}
