//! Planted bugs: documents implemented or used wrongly.

use super::{Answer, Document, Op, root, space};
use crate::{
    hierarchy::planted::{from_root, members_end, one_number},
    models::json::{Json, Shown},
};
use serde_json::{Map, Value};
use shaketable::{
    specimen::{Answer as Answers, INTERLEAVED, UNRECORDED, ran},
    weakened::{Flaw, everything, flawed},
    workload::Outcome,
};
use shaketable_layers::{
    document::{DOC_ID, Error, Id},
    hierarchy::Step,
};
use shaketable_tx::{
    Database, Db, Env,
    Isolation::{self, Serializable},
    RangeOption, Transaction, Tx,
    once::Session,
    strinc,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two changes of a document that run side by side in one transaction update the index from one state", "two futures in one transaction";
    Unrecorded = UNRECORDED, "a merge is retried after an unknown result without an operation record", "a write done twice";
    IdInTransaction = "id-in-transaction", "the id is drawn inside the transaction function, differently in each attempt", "the recipe's insert_doc";
    BlindReplace = "blind-replace", "the leaves of a document are written in addition to those that are stored", "the recipe's insert_doc over an id that exists";
    FromTheRoot = "from-the-root", "a part of a document is returned from the root on", "a published get_doc with a prefix";
    AbsentIsEmpty = "absent-is-empty", "a missing document and a missing path are read as an empty object", "a published from_tuples";
    OneNumber = "one-number", "1.0 is stored as 1 and -0.0 as 0", "one type for all numbers";
    BytePrefix = "byte-prefix", "a document's rows are all rows with its id's bytes as a prefix, and include those of longer ids", "a prefix taken for a tuple";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole document", "a range that is longer than a batch";
    GetConflicts = "get-conflicts", "a document that is requested at snapshot is read serializably", "an isolation that is not passed on";
    ClearedFirst = "cleared-first", "a document is cleared before it is known whether its new content has another id", "a refusal that comes too late";
    MembersEnd = "members-end", "the members of a document are read up to the name U+FFFF", "a range that ends at a constant";
    NegativeIds = "negative-ids", "an id that does not fit into a signed integer is stored as a negative one", "a cast that wraps";
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform(
    planted: Planted,
    document: &Document,
    tx: &Tx,
    env: &Env,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let documents = document.layer();
    let read = async |id: &Id, path: &[Step]| documents.get(tx, id, path, isolation).await;
    let told = |value: Option<Value>| Ok(Answer::Read(value.as_ref().map(Shown::from)));
    match (planted, op) {
        (Planted::BlindReplace, Op::Replace(..)) => {
            let unclearing = flawed(tx, Flaw::Uncleared, [space().range()]);
            document.perform_correctly(&unclearing, env, op, isolation).await
        }
        (Planted::GetConflicts, Op::Get(..)) => document.perform_correctly(tx, env, op, Serializable).await,
        (Planted::FromTheRoot, Op::Get(id, path)) => {
            told(read(id, path).await?.map(|value| from_root(path, value)))
        }
        (Planted::AbsentIsEmpty, Op::Get(id, path)) => {
            told(read(id, path).await?.or(Some(Map::new().into())))
        }
        (Planted::MembersEnd, Op::Get(id, path)) => told(read(id, path).await?.map(members_end)),
        (Planted::NegativeIds, Op::Insert(id @ Id::Number(n), _) | Op::Replace(id @ Id::Number(n), _))
            if i64::try_from(*n).is_err() =>
        {
            let written = document.perform_correctly(tx, env, op, isolation).await?;
            let (begin, end) = (root(id), [&root(id)[..], &[0xff]].concat());
            let stored = tx.get_range_all(RangeOption::new(begin.clone(), end.clone()), Serializable).await?;
            tx.clear_range(&begin, &end);
            let wrapped = space().pack(&(*n as i64,));
            for row in &stored {
                tx.set(&[&wrapped, &row.key[begin.len()..]].concat(), &row.value);
            }
            Ok(written)
        }
        (Planted::ClearedFirst, Op::Replace(id, _)) => {
            documents.remove(tx, id, &[]).await?;
            document.perform_correctly(tx, env, op, isolation).await
        }
        (Planted::OneNumber, Op::Replace(id, item)) => {
            documents.replace(tx, id, &one_number(item.value())).await.map(|()| Answer::Written)
        }
        (Planted::BytePrefix, Op::Remove(id, path)) if path.is_empty() => {
            let removed = document.perform_correctly(tx, env, op, isolation).await?;
            tx.clear_range(&root(id), &strinc(&root(id)).unwrap_or_default());
            Ok(removed)
        }
        (Planted::FirstBatch, Op::Get(..)) => {
            document.perform_correctly(&flawed(tx, Flaw::FirstBatch, everything()), env, op, isolation).await
        }
        _ => document.perform_correctly(tx, env, op, isolation).await,
    }
}

/// Inserts a document under an id that is drawn inside the retry loop, without an operation record. An
/// attempt that certainly failed leaves no trace of its id, so a second id is drawn only after an attempt
/// that may have committed.
pub async fn id_in_transaction(
    document: &Document,
    session: &Session<Db>,
    ops: &[Op],
) -> Option<Outcome<Answers<Answer>>> {
    let [Op::InsertOwn(Json(doc))] = ops else { return None };
    let (db, drawn) = (session.database().clone(), Id::of(&doc[DOC_ID])?);
    let (documents, env) = (&document.layer(), db.env());
    let inserted = db.run(|tx, attempt| {
        let id = if attempt.maybe_committed { Id::draw(env) } else { drawn.clone() };
        let mut members = doc.as_object().cloned().unwrap_or_default();
        members.insert(DOC_ID.to_owned(), id.to_value());
        let doc = Value::from(members);
        async move {
            documents.insert(&tx, &id, &doc).await?;
            Ok::<_, Error>(vec![Answer::Inserted(id)])
        }
    });
    Some(ran(inserted.await))
}
