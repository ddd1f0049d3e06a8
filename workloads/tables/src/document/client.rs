//! How one call is performed in a transaction.

use super::{Answer, Document, Op};
use crate::models::json::{Json, Shown};
use crate::shared::{came_back, one_call};
use shaketable_layers::document::{Documents, Error};
use shaketable_tx::{
    Env,
    Isolation::{self, Serializable},
    Tx, always,
};

impl Document {
    /// Performs a call correctly.
    pub(super) async fn perform_correctly(
        &self,
        tx: &Tx,
        env: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        let documents = self.layer();
        Ok(match op {
            Op::Insert(id, item) => {
                documents.insert(tx, id, &item.value()).await?;
                Answer::Written
            }
            Op::InsertOwn(Json(doc)) => {
                // The document contains an id, so that none is drawn here.
                let (id, doc) = Documents::identify(env, doc)?;
                documents.insert(tx, &id, &doc).await?;
                Answer::Inserted(came_back(id))
            }
            Op::InsertDrawn(Json(doc)) => {
                let (id, doc) = Documents::identify(env, doc)?;
                let tx = &one_call(tx, false).await;
                documents.insert(tx, &id, &doc).await?;
                let read = documents.get(tx, &id, &[], Serializable).await?;
                always!(
                    read.as_ref().map(Shown::from) == Some(Shown::from(&doc)),
                    "{doc} was inserted, and {read:?} is there"
                );
                Answer::Removed(documents.remove(tx, &id, &[]).await?)
            }
            Op::Replace(id, item) => {
                documents.replace(tx, id, &item.value()).await?;
                Answer::Written
            }
            Op::Merge(id, path, item) => {
                documents.merge(tx, id, path, &item.value()).await?;
                Answer::Written
            }
            Op::Patch(id, path, item) => {
                documents.patch(tx, id, path, &item.value()).await?;
                Answer::Written
            }
            Op::Remove(id, path) => Answer::Removed(documents.remove(tx, id, path).await?),
            Op::Get(id, path) => {
                Answer::Read(documents.get(tx, id, path, isolation).await?.as_ref().map(Shown::from))
            }
            Op::Find(path, leaf) => Answer::Found(documents.find(tx, path, &leaf.0, isolation).await?),
        })
    }
}
