//! Planted bugs: documents implemented or used wrongly.

use super::{Answer, Document, Op, indexed_path, model::assemble, root, space};
use crate::{
    hierarchy::planted::{from_root, members_end, one_number},
    models::json::{Item, Json, Shown, key, tuple},
};
use serde_json::{Map, Value};
use shaketable::{
    specimen::{Answer as Answers, INTERLEAVED, UNRECORDED, ran},
    weakened::{everything, weakened},
    workload::Outcome,
};
use shaketable_layers::{
    document::{DOC_ID, Error, Id},
    hierarchy::{EMPTY_OBJECT, Step, to_tuples},
};
use shaketable_tx::{
    Database, Env,
    Isolation::{self, Serializable},
    RangeOption, Transaction,
    once::Session,
    strinc,
};

shaketable::planted_bugs! {
    Interleaved = INTERLEAVED, "two changes of a document that run side by side in one transaction update the index from one state", "two futures in one transaction";
    Unrecorded = UNRECORDED, "a merge is retried after an unknown result without an operation record", "a write done twice";
    IdInTransaction = "id-in-transaction", "the id is drawn inside the transaction function, differently in each attempt", "the recipe's insert_doc";
    BlindReplace = "blind-replace", "the leaves of a document are written in addition to those that are stored", "the recipe's insert_doc over an id that exists";
    InsertOverwrites = "insert-overwrites", "an insert replaces a document that exists, without a check", "an insert taken for a replace";
    SnapshotInsert = "snapshot-insert", "whether a document exists is read at snapshot", "the wrong isolation";
    SnapshotPatch = "snapshot-patch", "whether a path leads through an object is read at snapshot", "the wrong isolation";
    FromTheRoot = "from-the-root", "a part of a document is returned from the root on", "a published get_doc with a prefix";
    AbsentIsEmpty = "absent-is-empty", "a missing document and a missing path are read as an empty object", "a published from_tuples";
    TextIds = "text-ids", "the ids 1 and \"1\" name one document", "ids without a type";
    OtherId = "other-id", "a document may contain a doc_id that is not its own", "the recipe's doc_id, changed by a user";
    OneNumber = "one-number", "1.0 is stored as 1 and -0.0 as 0", "one type for all numbers";
    CutText = "cut-text", "of a text that is longer than a piece only the first piece is stored", "a limit on values, met by truncation";
    BytePrefix = "byte-prefix", "a document's rows are all rows with its id's bytes as a prefix, and include those of longer ids", "a prefix taken for a tuple";
    NoMarker = "no-marker", "an object that loses its last member disappears", "the recipe's markers";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole document", "a range that is longer than a batch";
    StaleIndex = "stale-index", "a removal by path does not change the index", "an index beside the documents";
    GetConflicts = "get-conflicts", "a document that is requested at snapshot is read serializably", "an isolation that is not passed on";
    IdBelow = "id-below", "a patch below the id of a document is written", "a check of the path that looks at one step";
    ClearedFirst = "cleared-first", "a document is cleared before it is known whether its new content has another id", "a refusal that comes too late";
    MembersEnd = "members-end", "the members of a document are read up to the name U+FFFF", "a range that ends at a constant";
    NegativeIds = "negative-ids", "an id that does not fit into a signed integer is stored as a negative one", "a cast that wraps";
    LeafUnshared = "leaf-unshared", "an index takes a text that is as long as its entries, or a byte longer, for one that no other text has", "a length that is compared with the wrong end";
    PatchedMissing = "patched-missing", "a patch of a document that does not exist is refused after it was written", "a refusal that comes too late";
}

impl Planted {
    /// Whether the bug writes rows itself. An index would only reveal that the bug does not maintain it.
    pub(super) fn writes_rows(self) -> bool {
        matches!(self, Planted::BlindReplace | Planted::OtherId | Planted::BytePrefix | Planted::IdBelow)
    }
}

/// The least id that does not fit into a signed integer.
const BEYOND_SIGNED: u64 = i64::MAX as u64 + 1;

/// An object without one of its members.
pub fn without(value: &Value, name: &str) -> Map<String, Value> {
    let mut members = value.as_object().cloned().unwrap_or_default();
    members.remove(name);
    members
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform<T: Transaction>(
    planted: Planted,
    document: &Document,
    tx: &T,
    env: &Env,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let documents = document.layer();
    let told = |value: Option<Value>| Ok(Answer::Read(value.as_ref().map(Shown::from)));
    match (planted, op) {
        (Planted::BlindReplace, Op::Replace(id, Item::Value(Json(doc)))) if doc.get(DOC_ID).is_none() => {
            set(tx, id, &[], doc).map(|()| Answer::Written)
        }
        (Planted::InsertOverwrites, Op::Insert(id, item)) => {
            documents.replace(tx, id, &item.value()).await.map(|()| Answer::Written)
        }
        (Planted::SnapshotInsert, Op::Insert(..)) | (Planted::SnapshotPatch, Op::Patch(..)) => {
            document.perform_correctly(&weakened(tx.clone(), everything()), env, op, isolation).await
        }
        (Planted::GetConflicts, Op::Get(..)) => document.perform_correctly(tx, env, op, Serializable).await,
        (Planted::FromTheRoot, Op::Get(id, path)) => {
            let value = documents.get(tx, id, path, isolation).await?;
            told(value.map(|value| from_root(path, value)))
        }
        (Planted::AbsentIsEmpty, Op::Get(id, path)) => {
            told(documents.get(tx, id, path, isolation).await?.or(Some(Map::new().into())))
        }
        (Planted::MembersEnd, Op::Get(id, path)) => {
            told(documents.get(tx, id, path, isolation).await?.map(members_end))
        }
        (Planted::OtherId, Op::Replace(id, Item::Value(Json(doc)))) => {
            match document.perform_correctly(tx, env, op, isolation).await {
                Err(Error::OtherId { .. }) => {
                    clear(tx, id, &[]);
                    set(tx, id, &[], doc).map(|()| Answer::Written)
                }
                other => other,
            }
        }
        (Planted::IdBelow, Op::Patch(id, path, Item::Value(Json(item))))
            if path.len() > 1 && path[0] == Step::from(DOC_ID) =>
        {
            match documents.get(tx, id, &[], Serializable).await? {
                Some(Value::Object(members)) if !members.is_empty() => {
                    clear(tx, id, &path[..1]);
                    tx.clear(&at(id, &tuple(&path[..1])));
                    set(tx, id, path, item).map(|()| Answer::Written)
                }
                _ => document.perform_correctly(tx, env, op, isolation).await,
            }
        }
        (
            Planted::NegativeIds,
            Op::Insert(id @ Id::Number(n @ BEYOND_SIGNED..), _)
            | Op::Replace(id @ Id::Number(n @ BEYOND_SIGNED..), _),
        ) => {
            document.perform_correctly(tx, env, op, isolation).await?;
            let (begin, end) = (root(id), strinc(&root(id)).unwrap_or_default());
            let wrapped = space().pack(&(*n as i64,));
            for row in tx.get_range_all(RangeOption::new(begin.clone(), end), Serializable).await? {
                tx.set(&[&wrapped, &row.key[begin.len()..]].concat(), &row.value);
            }
            clear(tx, id, &[]);
            Ok(Answer::Written)
        }
        (Planted::ClearedFirst, Op::Replace(id, _)) => {
            let replaced = document.perform_correctly(tx, env, op, isolation).await;
            if matches!(replaced, Err(Error::OtherId { .. })) {
                clear(tx, id, &[]);
            }
            replaced
        }
        (Planted::PatchedMissing, Op::Patch(id, path, Item::Value(Json(item)))) => {
            let patched = document.perform_correctly(tx, env, op, isolation).await;
            if let Err(Error::Missing(_)) = patched {
                set(tx, id, path, item)?;
            }
            patched
        }
        (Planted::TextIds | Planted::OneNumber | Planted::CutText, op) => {
            let altered = match planted {
                Planted::TextIds => text_id(op),
                Planted::OneNumber => with_item(op, one_number),
                _ => with_item(op, |item| cut(document, item)),
            };
            document.perform_correctly(tx, env, altered.as_ref().unwrap_or(op), isolation).await
        }
        (Planted::BytePrefix, Op::Remove(id, path)) if path.is_empty() => {
            let removed = document.perform_correctly(tx, env, op, isolation).await?;
            if removed == Answer::Removed(true) {
                let begin = root(id);
                tx.clear_range(&begin, &strinc(&begin).unwrap_or_default());
            }
            Ok(removed)
        }
        (Planted::NoMarker, Op::Remove(id, path)) if !path.is_empty() => {
            let removed = document.perform_correctly(tx, env, op, isolation).await?;
            if removed == Answer::Removed(true) {
                let above = tuple(&path[..path.len() - 1]);
                tx.clear(&at(id, &[above, vec![EMPTY_OBJECT.into()]].concat()));
            }
            Ok(removed)
        }
        (Planted::FirstBatch, Op::Get(id, path)) if path.is_empty() => {
            let batch = tx.get_range(&RangeOption::from(rows(id, path)), 1, Serializable).await?;
            match batch.more {
                true => {
                    let read = assemble(&batch.rows).unwrap_or_default().remove(id);
                    told(read.map(|Json(doc)| doc))
                }
                false => document.perform_correctly(tx, env, op, isolation).await,
            }
        }
        (Planted::LeafUnshared, Op::Find(path, Json(Value::String(text))))
            if document.indexed && *path == indexed_path() && (1_000..=1_001).contains(&text.len()) =>
        {
            let found = document.perform_correctly(tx, env, op, isolation).await?;
            let begins = |length: usize| Item::Text(length).value();
            if begins(text.len()) != *text {
                return Ok(found);
            }
            let mut all = Vec::new();
            for length in [1_000, 1_001, 3_000, 20_000] {
                all.extend(documents.find(tx, path, &begins(length), isolation).await?);
            }
            match found {
                Answer::Found(found) if found.len() < all.len() => Ok(Answer::Found(all)),
                found => Ok(found),
            }
        }
        (Planted::StaleIndex, Op::Remove(id, path)) => {
            document.layer_without_index().remove(tx, id, path).await.map(Answer::Removed)
        }
        _ => document.perform_correctly(tx, env, op, isolation).await,
    }
}

/// Inserts a document under an id that is drawn inside the retry loop, without an operation record. An
/// attempt that certainly failed leaves no trace of its id, so a second id is drawn only after an attempt
/// that may have committed.
pub async fn id_in_transaction<D: Database>(
    document: &Document,
    session: &Session<D>,
    ops: &[Op],
) -> Option<Outcome<Answers<Answer>>> {
    let [Op::InsertOwn(Json(doc))] = ops else { return None };
    let (db, drawn) = (session.database().clone(), Id::of(&doc[DOC_ID])?);
    let (documents, env) = (&document.layer(), db.env());
    let inserted = db.run(|tx, attempt| {
        let mut id = drawn.clone();
        if attempt.maybe_committed {
            id = Id::draw(env);
        }
        let mut members = without(doc, DOC_ID);
        members.insert(DOC_ID.to_owned(), id.to_value());
        let doc = Value::from(members);
        async move {
            documents.insert(&tx, &id, &doc).await?;
            Ok::<_, Error>(vec![Answer::Inserted(id)])
        }
    });
    Some(ran(inserted.await))
}

fn at(id: &Id, tuple: &[Value]) -> Vec<u8> {
    key(&root(id), tuple)
}

fn rows(id: &Id, path: &[Step]) -> (Vec<u8>, Vec<u8>) {
    let begin = at(id, &tuple(path));
    let end = [&begin[..], &[0xff]].concat();
    (begin, end)
}

fn clear<T: Transaction>(tx: &T, id: &Id, path: &[Step]) {
    let (begin, end) = rows(id, path);
    tx.clear_range(&begin, &end);
}

/// Writes the leaves of a value, each in one piece, and clears nothing.
fn set<T: Transaction>(tx: &T, id: &Id, path: &[Step], item: &Value) -> Result<(), Error> {
    for below in to_tuples(item)? {
        let mut tuple = [tuple(path), below].concat();
        let leaf = tuple.pop().unwrap_or_default();
        tx.set(&at(id, &tuple), &key(&[], &[leaf]));
    }
    Ok(())
}

/// The call with a number's text instead of the number as its id.
fn text_id(op: &Op) -> Option<Op> {
    let mut op = op.clone();
    let (Op::Insert(id, _)
    | Op::Replace(id, _)
    | Op::Merge(id, ..)
    | Op::Patch(id, ..)
    | Op::Remove(id, _)
    | Op::Get(id, _)) = &mut op
    else {
        return None;
    };
    let Id::Number(number) = id else { return None };
    *id = Id::Text(number.to_string());
    Some(op)
}

/// The call with another value instead of the one that it writes.
fn with_item(op: &Op, change: impl FnOnce(Value) -> Value) -> Option<Op> {
    let mut op = op.clone();
    let (Op::Insert(_, item) | Op::Replace(_, item) | Op::Merge(.., item) | Op::Patch(.., item)) = &mut op
    else {
        return None;
    };
    *item = Item::Value(Json(change(item.value())));
    Some(op)
}

fn cut(document: &Document, item: Value) -> Value {
    match item {
        Value::String(text) => text[..text.floor_char_boundary(document.piece())].into(),
        other => other,
    }
}
