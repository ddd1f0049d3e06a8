//! The sequential model: documents by id; and how rows are read back as a model.

use super::{Patch, index_space, indexed_path, root, space};
use crate::{
    models::json::{self, Assembly, Item, Json, Leaves, Shown},
    shared,
};
use bytes::Bytes;
use foundationdb_tuple::{Element, unpack};
use imbl::OrdMap;
use serde_json::Value;
use shaketable_layers::{
    document::{DOC_ID, Error, Id, MAX_ID_BYTES},
    hierarchy::{self, Step, Tuple},
};
use shaketable_tx::{self as tx, KeyValue, Tx, nesting};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Documents by id.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    indexed: bool,
    piece: usize,
    documents: Documents,
}

/// Documents by id. A copy of the map is cheap.
type Documents = OrdMap<Id, Arc<Json>>;

impl Model {
    /// No documents, with an index or without, and with texts in pieces of this size.
    pub fn new(indexed: bool, piece: usize) -> Model {
        Model { indexed, piece, documents: Documents::new() }
    }

    fn add(&mut self, id: &Id, doc: Value) -> Result<(), Error> {
        self.accepts(id, &[], Some(&doc))?;
        if self.documents.contains_key(id) {
            return Err(Error::Exists(id.clone()));
        }
        self.fits(id, &[], &doc)?;
        self.documents.insert(id.clone(), Arc::new(Json(doc)));
        Ok(())
    }

    pub(super) fn insert(&mut self, (id, item): &(Id, Item)) -> Result<(), Error> {
        self.add(id, item.value())
    }

    pub(super) fn insert_own(&mut self, Json(doc): &Json) -> Result<Id, Error> {
        let id = Id::of(&doc[DOC_ID]).ok_or_else(|| Error::NotAnId(doc[DOC_ID].to_string()))?;
        self.add(&id, doc.clone())?;
        Ok(id)
    }

    pub(super) fn insert_drawn(&mut self, _: &Json) -> Result<bool, Error> {
        // No other operation uses its id.
        Ok(true)
    }

    pub(super) fn replace(&mut self, id: &Id, item: &Item) -> Result<(), Error> {
        let doc = item.value();
        self.accepts(id, &[], Some(&doc))?;
        self.fits(id, &[], &doc)?;
        self.documents.insert(id.clone(), Arc::new(Json(doc)));
        Ok(())
    }

    pub(super) fn merge(&mut self, id: &Id, path: &[Step], item: &Item) -> Result<(), Error> {
        let item = item.value();
        self.edit((id, path, &item), |old| json::merged(old, &item))
    }

    pub(super) fn patch(&mut self, (id, path, item): &Patch) -> Result<(), Error> {
        let item = item.value();
        self.edit((id, path, &item), |_| item.clone())
    }

    pub(super) fn remove(&mut self, id: &Id, path: &[Step]) -> Result<bool, Error> {
        self.accepts(id, path, None)?;
        json::reaches(&root(id), path)?;
        let mut document = self.documents.remove(id).map(|doc| Arc::unwrap_or_clone(doc).0);
        let was_there = json::remove(&mut document, path);
        self.documents.extend(document.map(|doc| (id.clone(), Arc::new(Json(doc)))));
        Ok(was_there)
    }

    pub(super) fn get(&self, id: &Id, path: &[Step]) -> Result<Option<Shown>, Error> {
        self.accepts(id, path, None)?;
        json::reaches(&root(id), path)?;
        let document = self.documents.get(id).and_then(|doc| json::get(&doc.0, path));
        Ok(document.map(Shown::from))
    }

    pub(super) fn find(&self, (path, leaf): &(Vec<Step>, Json)) -> Result<Vec<Id>, Error> {
        if !self.indexed || *path != indexed_path() {
            let at = path.iter().map(|step| match step {
                Step::Key(name) => format!("/{name}"),
                Step::Index(index) => format!("/{index}"),
            });
            return Err(Error::NoIndex(at.collect()));
        }
        let has = |doc: &Json| json::get(&doc.0, path).is_some_and(|at| Json(at.clone()) == *leaf);
        Ok(self.documents.iter().filter(|(_, doc)| has(doc)).map(|(id, _)| id.clone()).collect())
    }

    /// Changes a document that exists.
    fn edit(
        &mut self,
        (id, path, item): (&Id, &[Step], &Value),
        change: impl FnOnce(Option<Value>) -> Value,
    ) -> Result<(), Error> {
        self.accepts(id, path, Some(item))?;
        self.fits(id, path, item)?;
        let old = self.documents.get(id).ok_or_else(|| Error::Missing(id.clone()))?.0.clone();
        self.documents.insert(id.clone(), Arc::new(Json(json::change(Some(old), path, change)?)));
        Ok(())
    }

    /// Refuses what the layer refuses before it reads.
    fn accepts(&self, id: &Id, path: &[Step], item: Option<&Value>) -> Result<(), Error> {
        if let Id::Text(text) = id
            && text.len() > MAX_ID_BYTES
        {
            return Err(Error::LongId(text.len()));
        }
        let inside = match (path, item) {
            ([], Some(item)) => item.get(DOC_ID),
            ([Step::Key(name)], item) if name == DOC_ID => item,
            // An object or a list is no id.
            ([Step::Key(name), _, ..], Some(_)) if name == DOC_ID => Some(&Value::Null),
            _ => None,
        };
        match inside {
            Some(inside) if Id::of(inside).as_ref() != Some(id) => {
                Err(Error::OtherId { id: id.clone(), inside: inside.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// Refuses what the layer refuses to write, whatever is stored.
    fn fits(&self, id: &Id, path: &[Step], item: &Value) -> Result<(), hierarchy::Error> {
        json::fits(&root(id), Leaves::Value(self.piece), path, item)
    }

    /// Everything that is stored, as a model like this one. The inner error describes a broken invariant,
    /// such as an index that does not follow the documents.
    pub(super) async fn read(self, tx: &Tx) -> tx::Result<Result<Model, String>> {
        let rows = shared::rows(tx, &space()).await?;
        let entries = shared::rows(tx, &index_space()).await?;
        let documents = match assemble(&rows) {
            Ok(documents) => documents,
            Err(e) => return Ok(Err(e)),
        };
        let found: BTreeSet<Vec<u8>> = entries.into_iter().map(|row| row.key.to_vec()).collect();
        let expected: BTreeSet<Vec<u8>> = match self.indexed {
            true => documents.iter().filter_map(|(id, doc)| entry(id, &doc.0)).collect(),
            false => BTreeSet::new(),
        };
        if let Some(key) = found.symmetric_difference(&expected).next() {
            let which = if found.contains(key) { "a stale entry" } else { "no entry" };
            return Ok(Err(format!("the index has {which} {}", key.escape_ascii())));
        }
        let other = documents
            .iter()
            .find(|(id, doc)| doc.0.get(DOC_ID).is_some_and(|inside| Id::of(inside).as_ref() != Some(*id)));
        Ok(match other {
            Some((id, doc)) => Err(format!("the document {id} is {doc:?}")),
            None => Ok(Model { documents, ..self }),
        })
    }
}

/// The key of a document's entry in the index, if it has one.
fn entry(id: &Id, document: &Value) -> Option<Vec<u8>> {
    let mut leaf = json::get(document, &indexed_path()).filter(|v| !v.is_object() && !v.is_array())?.clone();
    if let Value::String(text) = &mut leaf {
        text.truncate(text.floor_char_boundary(1_000));
    }
    Some(json::key(index_space().bytes(), &[leaf, id.to_value()]))
}

/// The JSON value of a tuple's element, if it is the value of a leaf.
fn scalar(element: &Element<'_>) -> Option<Value> {
    Some(match element {
        Element::Nil => Value::Null,
        Element::Bool(truth) => (*truth).into(),
        Element::Int(integer) => (*integer).into(),
        Element::Double(float) => (*float).into(),
        Element::String(text) => text.as_ref().into(),
        _ => return None,
    })
}

/// The documents that consist of these rows, or what is wrong with the rows.
fn assemble(rows: &[KeyValue]) -> Result<Documents, String> {
    let mut documents: BTreeMap<Id, Assembly> = BTreeMap::new();
    let mut texts: BTreeMap<(Id, String), (Tuple, Vec<Bytes>)> = BTreeMap::new();
    for row in rows {
        let odd = || {
            format!(
                "a row that belongs to no document: {} = {}",
                row.key.escape_ascii(),
                row.value.escape_ascii()
            )
        };
        let key = row.key.strip_prefix(space().bytes()).ok_or_else(odd)?;
        let (id, key) = key.split_at_checked(nesting::first_length(key).ok_or_else(odd)?).ok_or_else(odd)?;
        let id = match (unpack::<(u64,)>(id), unpack::<(String,)>(id)) {
            (Ok((number,)), _) => Id::from(number),
            (_, Ok((text,))) => Id::Text(text),
            _ => return Err(odd()),
        };
        let key: Vec<Element<'_>> = unpack(key).map_err(|_| odd())?;
        let mut tuple = key.iter().map(scalar).collect::<Option<Tuple>>().ok_or_else(odd)?;
        let document = documents.entry(id.clone()).or_default();
        if let [.., piece, number] = &tuple[..]
            && *piece == -3
        {
            let number = number.as_u64();
            tuple.truncate(tuple.len() - 2);
            let place = (id, Value::from(tuple.clone()).to_string());
            let (_, pieces) = texts.entry(place).or_insert_with(|| (tuple, Vec::new()));
            if number != Some(pieces.len() as u64) {
                return Err(odd());
            }
            pieces.push(row.value.clone());
            continue;
        }
        // An unsigned element of 64 bits does not fit into `Element::Int`.
        let leaf = match (unpack::<(u64,)>(&row.value), unpack::<Vec<Element<'_>>>(&row.value).as_deref()) {
            (Ok((integer,)), _) => integer.into(),
            (_, Ok([leaf])) => scalar(leaf).ok_or_else(odd)?,
            _ => return Err(odd()),
        };
        tuple.push(leaf);
        document.add(&tuple)?;
    }
    for ((id, _), (mut tuple, pieces)) in texts {
        let text = String::from_utf8(pieces.concat()).map_err(|e| e.to_string())?;
        tuple.push(text.into());
        documents.entry(id).or_default().add(&tuple)?;
    }
    let whole = |(id, document): (Id, Assembly)| match document.finish()? {
        Some(value) => Ok((id, Arc::new(Json(value)))),
        None => Err(format!("the document {id} has no content")),
    };
    documents.into_iter().map(whole).collect()
}
