//! Operations on documents, each within a transaction.

use super::{
    DOC_ID, Error, Id,
    keys::{MAX_ID_BYTES, entries},
};
use crate::{
    hierarchy::{
        self, Step, check_depth, pointer, shown,
        tree::{Absent, Place, Tree},
    },
    limits, reachable, read,
    tx::{Env, Isolation, KeyValue, RangeOption, Transaction},
};
use foundationdb_tuple::Subspace;
use futures::{StreamExt, TryStreamExt, future, stream};
use serde_json::Value;

/// Texts with more bytes are stored in pieces: FoundationDB recommends smaller values.
const LONGEST_VALUE: usize = 10_000;

/// Documents in their own subspace.
#[derive(Clone, Debug)]
pub struct Documents {
    subspace: Subspace,
    longest: usize,
    indexes: Vec<Index>,
}

#[derive(Clone, Debug)]
struct Index {
    subspace: Subspace,
    path: Vec<Step>,
}

impl Documents {
    /// The documents in `subspace`, which must not be used for anything else.
    pub fn new(subspace: Subspace) -> Documents {
        Documents { subspace, longest: LONGEST_VALUE, indexes: Vec::new() }
    }

    /// The same, with texts of more than `bytes` bytes stored in pieces of that size. Documents written with
    /// any other size can be read as well.
    pub fn with_pieces_of(mut self, bytes: usize) -> Documents {
        self.longest = bytes.max(1);
        self
    }

    /// The same, with an index on the leaves at `path`, stored in its own subspace. Indexes are part of the
    /// data format: all clients must use the same ones, from the first document on.
    pub fn with_index(mut self, subspace: Subspace, path: Vec<Step>) -> Documents {
        self.indexes.push(Index { subspace, path });
        self
    }

    /// The id of a document, and the document including it: the `doc_id` of an object, or a drawn id. A
    /// document that is not an object does not contain its id. Call it before the retry loop: an id drawn
    /// inside differs in each attempt.
    pub fn identify(env: &Env, doc: &Value) -> Result<(Id, Value), Error> {
        // Checked before any recursion.
        check_depth(doc)?;
        match doc.get(DOC_ID) {
            Some(inside) => match Id::of(inside) {
                Some(id) => Ok((id, doc.clone())),
                None => Err(Error::NotAnId(shown(inside))),
            },
            None => {
                let (id, mut doc) = (Id::draw(env), doc.clone());
                if let Value::Object(members) = &mut doc {
                    members.insert(DOC_ID.to_owned(), id.to_value());
                }
                Ok((id, doc))
            }
        }
    }

    /// Adds a document. If the document exists, it is not changed and the insert is refused.
    pub async fn insert<T: Transaction>(&self, tx: &T, id: &Id, doc: &Value) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let tree = self.tree(id)?;
        agree(id, &[], doc)?;
        if tree.shape(tx, &[]).await?.is_some() {
            return Err(Error::Exists(id.clone()));
        }
        self.indexed(tx, id, &tree, tree.put(tx, &[], doc, Absent::Create)).await?;
        Ok(())
    }

    /// Writes a document in place of everything under its id.
    pub async fn replace<T: Transaction>(&self, tx: &T, id: &Id, doc: &Value) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let tree = self.tree(id)?;
        agree(id, &[], doc)?;
        self.indexed(tx, id, &tree, tree.put(tx, &[], doc, Absent::Create)).await?;
        Ok(())
    }

    /// Changes a part of a document: puts a value at a path, in place of everything there. An element of a
    /// list must be an existing one or the next.
    pub async fn patch<T: Transaction>(
        &self,
        tx: &T,
        id: &Id,
        path: &[Step],
        item: &Value,
    ) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let tree = self.tree(id)?;
        agree(id, path, item)?;
        self.needed(id, self.indexed(tx, id, &tree, tree.put(tx, path, item, Absent::Leave)).await?)
    }

    /// Changes a part of a document: objects are merged with the existing ones, member by member; any other
    /// value replaces what is there. If the merge touches more than 10,000 existing objects, it is refused,
    /// because each of them must be read.
    pub async fn merge<T: Transaction>(
        &self,
        tx: &T,
        id: &Id,
        path: &[Step],
        item: &Value,
    ) -> Result<(), Error> {
        let tx = &tx.writing().await;
        let tree = self.tree(id)?;
        agree(id, path, item)?;
        self.needed(id, self.indexed(tx, id, &tree, tree.merge(tx, path, item, Absent::Leave)).await?)
    }

    /// Removes the value at a path of a document, or the document if the path is empty, and returns whether
    /// there was one. The elements after a removed element of a list move up; an object or list that loses
    /// its last member or element stays as an empty one.
    pub async fn remove<T: Transaction>(&self, tx: &T, id: &Id, path: &[Step]) -> Result<bool, Error> {
        let tx = &tx.writing().await;
        let tree = self.tree(id)?;
        self.indexed(tx, id, &tree, tree.remove(tx, path)).await
    }

    /// The value at a path of a document, or the document if the path is empty. An empty object or list is a
    /// value.
    pub async fn get<T: Transaction>(
        &self,
        tx: &T,
        id: &Id,
        path: &[Step],
        isolation: Isolation,
    ) -> Result<Option<Value>, Error> {
        let tx = &tx.reading().await;
        Ok(self.tree(id)?.get(tx, path, isolation).await?)
    }

    /// The documents that have this leaf at an indexed path, in the order of their ids.
    ///
    /// Documents with long texts of which only the beginnings are equal are read one by one, and count
    /// towards the limit: beyond [`READ_LIMIT`](limits::READ_LIMIT) bytes, with
    /// [`READ_COST`](limits::READ_COST) for each document that is read in addition to its bytes, the call is
    /// refused.
    pub async fn find<T: Transaction>(
        &self,
        tx: &T,
        path: &[Step],
        leaf: &Value,
        isolation: Isolation,
    ) -> Result<Vec<Id>, Error> {
        let tx = &tx.reading().await;
        let index = self.indexes.iter().find(|index| index.path == path);
        let index = index.ok_or_else(|| Error::NoIndex(pointer(path)))?;
        let Some((begin, is_shared)) = entries(&index.subspace, leaf) else { return Ok(Vec::new()) };
        let allowance = &read::Allowance::new();
        let all = RangeOption::from(Subspace::from_bytes(&begin[..]).range());
        let rows = allowance.all::<_, Error>(tx, all, isolation).await?;
        let id = |row: &KeyValue| Id::unpack(&row.key[begin.len()..]).ok_or_else(|| Error::foreign(&row.key));
        let ids = rows.iter().map(id).collect::<Result<Vec<Id>, Error>>()?;
        if !is_shared {
            return Ok(ids);
        }
        allowance.reads(ids.len())?;
        let looks = ids.into_iter().map(|id| async move {
            let found = self.tree(&id)?.get_within(tx, allowance, path, isolation).await?;
            Ok::<_, Error>((found.as_ref() == Some(leaf)).then_some(id))
        });
        let looks: Vec<_> = looks.collect();
        stream::iter(looks).buffered(read::AT_ONCE).try_filter_map(future::ok).try_collect().await
    }

    /// The rows of a document.
    fn tree(&self, id: &Id) -> Result<Tree, Error> {
        if let Id::Text(text) = id
            && text.len() > MAX_ID_BYTES
        {
            return Err(Error::LongId(text.len()));
        }
        let mut root = self.subspace.bytes().to_vec();
        id.push(&mut root);
        limits::key(&root)?;
        Ok(Tree { root, place: Place::Value(self.longest) })
    }

    fn needed(&self, id: &Id, was_there: bool) -> Result<(), Error> {
        if was_there { Ok(()) } else { Err(Error::Missing(id.clone())) }
    }

    /// Changes a document and then updates the indexes. Reads the transaction's own writes.
    async fn indexed<T: Transaction, A>(
        &self,
        tx: &T,
        id: &Id,
        tree: &Tree,
        change: impl Future<Output = Result<A, hierarchy::Error>>,
    ) -> Result<A, Error> {
        let before = self.entries(tx, id, tree).await?;
        let answer = change.await?;
        for (old, new) in before.into_iter().zip(self.entries(tx, id, tree).await?) {
            if old != new {
                reachable!("document: an index follows");
                old.iter().for_each(|key| tx.clear(key));
                new.iter().for_each(|key| tx.set(key, b""));
            }
        }
        Ok(answer)
    }

    /// The current key of the document in each index.
    async fn entries<T: Transaction>(
        &self,
        tx: &T,
        id: &Id,
        tree: &Tree,
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let looks = self.indexes.iter().map(|index| async move {
            let leaf = tree.leaf(tx, &index.path).await?;
            Ok(leaf.and_then(|leaf| entries(&index.subspace, &leaf)).map(|(mut key, _)| {
                id.push(&mut key);
                key
            }))
        });
        let looks: Vec<_> = looks.collect();
        stream::iter(looks).buffered(read::AT_ONCE).try_collect().await
    }
}

/// Refuses a write after which a document would contain an id other than its own.
fn agree(id: &Id, path: &[Step], item: &Value) -> Result<(), Error> {
    let inside = match path {
        [] => item.get(DOC_ID),
        [Step::Key(name)] if name == DOC_ID => Some(item),
        [Step::Key(name), ..] if name == DOC_ID => Some(&Value::Null),
        _ => None,
    };
    match inside {
        Some(inside) if Id::of(inside).as_ref() != Some(id) => {
            Err(Error::OtherId { id: id.clone(), inside: shown(inside) })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_never_holds_the_id_of_another() {
        let inside = |inside: &str| Err(Error::OtherId { id: 7.into(), inside: inside.into() });
        assert_eq!(agree(&7.into(), &[], &json!({"doc_id": 7})), Ok(()));
        assert_eq!(agree(&7.into(), &[], &json!({"id": 8})), Ok(()));
        assert_eq!(agree(&7.into(), &["a".into()], &json!({"doc_id": 8})), Ok(()));
        assert_eq!(agree(&7.into(), &[], &json!(["doc_id"])), Ok(()));
        assert_eq!(agree(&7.into(), &[], &json!({"doc_id": "7"})), inside("\"7\""));
        assert_eq!(agree(&7.into(), &["doc_id".into()], &json!(7.0)), inside("7.0"));
        assert_eq!(agree(&7.into(), &["doc_id".into(), 0.into()], &json!(7)), inside("null"));
        let deep = (0..100_000).fold(Value::Null, |deep, _| Value::from(vec![deep]));
        assert_eq!(agree(&7.into(), &["doc_id".into()], &deep), inside("a list"));
        std::mem::forget(deep);
    }

    #[test]
    fn an_id_is_limited() {
        let documents = Documents::new(Subspace::from("d"));
        assert!(documents.tree(&Id::Text("\0".repeat(MAX_ID_BYTES))).is_ok());
        let long = documents.tree(&Id::Text("x".repeat(MAX_ID_BYTES + 1)));
        assert_eq!(long.unwrap_err(), Error::LongId(MAX_ID_BYTES + 1));
    }
}
