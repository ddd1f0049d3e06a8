//! `document`: JSON documents are inserted, replaced, changed by path, removed, read and found.
//!
//! Few ids, names and short paths, so that edits meet. Two ids differ in their type only, one continues
//! another behind a zero byte. In some runs texts are stored in small pieces, in some there is an index on a
//! path that all kinds of edits touch. Now and then a document says that it is another one, an id is too
//! long, or a value nested too deep.

mod planted;

use crate::models::json::{self, Assembly, Item, Json, Leaves, Shown};
use bytes::Bytes;
use foundationdb_tuple::{Element, Subspace, unpack};
use proptest::{prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shaketable::{
    specimen::{Answer as Answers, At, Specimen, UNRECORDED},
    workload::{Bug, Outcome},
};
use shaketable_layers::{
    always,
    document::{DOC_ID, Documents, Error, Id, MAX_ID_BYTES},
    hierarchy::{self, Step, Tuple},
    once::Session,
    tx::{
        self, Database, Env,
        Isolation::{self, Serializable},
        KeyValue, RangeOption, Transaction,
    },
};
use shaketable_sim::seed::Stream;
use std::collections::{BTreeMap, BTreeSet};

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a merge is retried after an unknown result without an operation record", "a write done twice";
    IdInTransaction = "id-in-transaction", "the id is drawn in the transaction's body: another one in each attempt", "the recipe's insert_doc";
    BlindReplace = "blind-replace", "a document's leaves are set beside those that are there", "the recipe's insert_doc over an id that exists";
    InsertOverwrites = "insert-overwrites", "an insert asks nothing and replaces the document that is there", "an insert taken for a replace";
    SnapshotInsert = "snapshot-insert", "whether a document is there already is read at snapshot", "the wrong isolation";
    SnapshotPatch = "snapshot-patch", "that a path leads through an object is read at snapshot", "the wrong isolation";
    FromTheRoot = "from-the-root", "a subdocument is answered from the root on", "a published get_doc with a prefix";
    AbsentIsEmpty = "absent-is-empty", "a missing document and a missing path are read as an empty object", "a published from_tuples";
    TextIds = "text-ids", "the ids 1 and \"1\" name one document", "ids without a type";
    OtherId = "other-id", "a document may hold a doc_id that is not its own", "the recipe's doc_id, changed by a user";
    OneNumber = "one-number", "1.0 is stored as 1 and -0.0 as 0", "one type for all numbers";
    CutText = "cut-text", "a text longer than a piece keeps only its first", "a value's limit met by cutting";
    BytePrefix = "byte-prefix", "a document's rows are all that begin with its id's bytes, and with them those of a longer id", "a prefix taken for a tuple";
    NoMarker = "no-marker", "an object that loses its last member is gone", "the recipe's markers";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole document", "a range that is longer than a batch";
    StaleIndex = "stale-index", "a removal by path leaves the index as it was", "an index beside the documents";
    GetConflicts = "get-conflicts", "a document that is asked for at snapshot is read serializably", "an isolation that is not passed on";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Document {
    /// How many names members have.
    names: usize,
    /// The longest path, in steps.
    longest: usize,
    /// The size of a text's pieces.
    piece: usize,
    /// Whether there is an index on [`indexed_path`].
    indexed: bool,
    planted: Option<Planted>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Inserts a document.
    Insert(Id, Item),
    /// Inserts a document under the id that it holds.
    InsertOwn(Json),
    /// Inserts a document under an id that is drawn, reads it, and removes it.
    InsertDrawn(Json),
    /// Replaces a document.
    Replace(Id, Item),
    /// Merges an item into what is at a path.
    Merge(Id, Vec<Step>, Item),
    /// Replaces what is at a path.
    Patch(Id, Vec<Step>, Item),
    /// Removes what is at a path.
    Remove(Id, Vec<Step>),
    /// Reads what is at a path.
    Get(Id, Vec<Step>),
    /// Finds the documents with this leaf at a path.
    Find(Vec<Step>, Json),
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Written.
    Written,
    /// Written, under this id.
    Inserted(Id),
    /// Whether there was something to remove.
    Removed(bool),
    /// What is there.
    Read(Option<Shown>),
    /// The documents found.
    Found(Vec<Id>),
}

pub(crate) fn space() -> Subspace {
    Subspace::from("documents")
}

fn index_space() -> Subspace {
    Subspace::from("documents by leaf")
}

fn indexed_path() -> Vec<Step> {
    vec!["a".into()]
}

/// How the key of a document begins.
pub(crate) fn root(id: &Id) -> Vec<u8> {
    json::key(space().bytes(), &[id.to_value()])
}

/// The JSON value of a tuple's element, if it is one.
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

/// The documents of rows in their order, or what is wrong with them.
pub(crate) fn assemble(rows: &[KeyValue]) -> Result<BTreeMap<Id, Json>, String> {
    let mut documents: BTreeMap<Id, Assembly> = BTreeMap::new();
    let mut texts: BTreeMap<(Id, String), (Tuple, Vec<Bytes>)> = BTreeMap::new();
    for row in rows {
        let odd = || {
            format!("a row that no document has: {} = {}", row.key.escape_ascii(), row.value.escape_ascii())
        };
        let key: Vec<Element<'_>> = space().unpack(&row.key).map_err(|_| odd())?;
        let mut tuple = key.iter().map(scalar).collect::<Option<Tuple>>().ok_or_else(odd)?;
        let id = tuple.first().and_then(Id::of).ok_or_else(odd)?;
        tuple.remove(0);
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
        // An element of 64 bits without a sign is more than `Element::Int` holds.
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
        Some(value) => Ok((id, Json(value))),
        None => Err(format!("nothing of the document {id}")),
    };
    documents.into_iter().map(whole).collect()
}

impl Planted {
    /// Whether it writes rows itself. An index beside them would only show that it was forgotten.
    fn writes_rows(self) -> bool {
        matches!(
            self,
            Planted::BlindReplace | Planted::SnapshotPatch | Planted::OtherId | Planted::BytePrefix
        )
    }
}

impl Document {
    pub(crate) fn layer(&self) -> Documents {
        let documents = self.layer_without_index();
        if self.indexed { documents.with_index(index_space(), indexed_path()) } else { documents }
    }

    pub(crate) fn layer_without_index(&self) -> Documents {
        Documents::new(space()).with_pieces_of(self.piece)
    }

    /// The size of a text's pieces.
    pub(crate) fn piece(&self) -> usize {
        self.piece
    }

    /// What the layer refuses before it looks at what is there.
    fn accepts(&self, id: &Id, path: &[Step], item: Option<&Value>) -> Result<(), Error> {
        if let Id::Text(text) = id
            && text.len() > MAX_ID_BYTES
        {
            return Err(Error::LongId(text.len()));
        }
        let inside = match (path, item) {
            ([], Some(item)) => item.get(DOC_ID),
            ([Step::Key(name)], item) if name == DOC_ID => item,
            _ => None,
        };
        match inside {
            Some(inside) if Id::of(inside).as_ref() != Some(id) => {
                Err(Error::OtherId { id: id.clone(), inside: inside.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// What the layer refuses to write, whatever is there.
    fn fits(&self, id: &Id, path: &[Step], item: &Value) -> Result<(), hierarchy::Error> {
        json::fits(&root(id), Leaves::Value(self.piece), path, item)
    }

    /// Changes a document that is there.
    fn edit(
        &self,
        model: &mut BTreeMap<Id, Json>,
        (id, path, item): (&Id, &[Step], &Value),
        change: impl FnOnce(Option<Value>) -> Value,
    ) -> Result<Answer, Error> {
        self.accepts(id, path, Some(item))?;
        self.fits(id, path, item)?;
        let Json(old) = model.get(id).cloned().ok_or_else(|| Error::Missing(id.clone()))?;
        model.insert(id.clone(), Json(json::change(Some(old), path, change)?));
        Ok(Answer::Written)
    }

    /// What one document has to do with the index: its entry's key.
    fn entry(&self, id: &Id, document: &Value) -> Option<Vec<u8>> {
        let mut leaf =
            json::get(document, &indexed_path()).filter(|v| !v.is_object() && !v.is_array())?.clone();
        if let Value::String(text) = &mut leaf {
            // Long texts are drawn of one byte a character.
            text.truncate(1_000);
        }
        Some(json::key(index_space().bytes(), &[leaf, id.to_value()]))
    }
}

impl Specimen for Document {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = BTreeMap<Id, Json>;

    const NAME: &'static str = "document";
    const ABOUT: &'static str = "JSON documents, written, changed and read by path, and found by an index";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &["document: a text is stored in pieces", "document: an index follows"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Document {
        let planted = bug.and_then(Planted::named);
        Document {
            names: rng.range(2..5) as usize,
            longest: rng.range(1..4) as usize,
            piece: *rng.pick(&[4, 200, 10_000]),
            indexed: rng.chance(0.5) && !planted.is_some_and(Planted::writes_rows)
                || planted == Some(Planted::StaleIndex),
            planted,
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let documents = [Id::from("1"), "b".into(), 1.into(), 1_000.into()].map(|id| root(&id).into());
        let entry = |leaf: &str| index_space().pack(&(leaf,)).into();
        documents.into_iter().chain([entry(""), entry("x")]).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let id = || select(vec![Id::from(1), "1".into(), "a".into(), "a\0b".into()]);
        let path = || json::path(self.names, self.longest);
        let names = self.names;
        let own =
            (json::value(names), select(vec![1.into(), Value::from("1"), "a".into(), Value::from(1.0)]));
        let own = own.prop_map(|(value, id)| {
            let mut members = value.as_object().cloned().unwrap_or_default();
            members.insert(DOC_ID.to_owned(), id);
            Value::from(members)
        });
        let text = select(vec![0, 4, 5, 210, 999, 1_000, 1_001, 3_000, 20_000]).prop_map(Item::Text);
        let value = |value: Value| Item::Value(Json(value));
        let item = prop_oneof![
            20 => json::value(names).prop_map(value),
            6 => json::leaf().prop_map(value),
            3 => text.clone(),
            2 => own.prop_map(value),
        ];
        let long_id = Id::Text("x".repeat(MAX_ID_BYTES + 1));
        let far = vec![Step::from("x".repeat(tx::KEY_SIZE_LIMIT).as_str())];
        let mut kinds = vec![
            (60, (id(), item.clone()).prop_map(|(id, item)| Op::Insert(id, item)).boxed()),
            (20, json::value(names).prop_map(|doc| Op::InsertOwn(Json(doc))).boxed()),
            (5, json::value(names).prop_map(|doc| Op::InsertDrawn(Json(doc))).boxed()),
            (40, (id(), item.clone()).prop_map(|(id, item)| Op::Replace(id, item)).boxed()),
            (60, (id(), path(), item.clone()).prop_map(|(id, path, item)| Op::Merge(id, path, item)).boxed()),
            (80, (id(), path(), item).prop_map(|(id, path, item)| Op::Patch(id, path, item)).boxed()),
            (70, (id(), path()).prop_map(|(id, path)| Op::Remove(id, path)).boxed()),
            (80, (id(), path()).prop_map(|(id, path)| Op::Get(id, path)).boxed()),
            (
                4,
                json::leaf()
                    .prop_map(|id| Op::Patch(1.into(), vec![DOC_ID.into()], Item::Value(Json(id))))
                    .boxed(),
            ),
            (
                2,
                (id(), path())
                    .prop_map(|(id, path)| Op::Patch(id, path, Item::Nested(hierarchy::MAX_DEPTH)))
                    .boxed(),
            ),
            (1, Just(Op::Insert(long_id, Item::Text(1))).boxed()),
            (1, id().prop_map(move |id| Op::Patch(id, far.clone(), Item::Text(1))).boxed()),
            (2, json::leaf().prop_map(|leaf| Op::Find(vec!["b".into()], Json(leaf))).boxed()),
        ];
        if self.indexed {
            let leaf = prop_oneof![3 => json::leaf(), 1 => text.prop_map(|item| item.value())];
            let on = |leaf: BoxedStrategy<Value>| (id(), leaf);
            let leaf = leaf.boxed();
            kinds.push((40, leaf.clone().prop_map(|leaf| Op::Find(indexed_path(), Json(leaf))).boxed()));
            let patch =
                on(leaf).prop_map(|(id, leaf)| Op::Patch(id, indexed_path(), Item::Value(Json(leaf))));
            kinds.push((30, patch.boxed()));
        }
        proptest::strategy::Union::new_weighted(kinds).boxed()
    }

    /// Gives a document that is inserted under its own id one that no other has.
    fn number(op: &mut Op, client: usize, number: usize) {
        if let Op::InsertOwn(Json(doc)) = op {
            let mut members = doc.as_object().cloned().unwrap_or_default();
            members.insert(DOC_ID.to_owned(), (1_000 * (client + 1) + number).into());
            *doc = members.into();
        }
    }

    fn is_look(op: &Op) -> bool {
        matches!(op, Op::Get(..) | Op::Find(..))
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        Self::is_look(op) && self.planted.is_none_or(|planted| planted == Planted::GetConflicts)
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        env: &Env,
        op: &Op,
        isolation: Isolation,
    ) -> Result<Answer, Error> {
        if let Some(planted) = self.planted
            && let Some(answer) = planted::perform(planted, self, tx, env, op).await
        {
            return answer;
        }
        let isolation = planted::isolation(self.planted, op, isolation);
        self.rightly(tx, env, op, isolation).await
    }

    async fn divert<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
    ) -> Option<Outcome<Answers<Answer>>> {
        match self.planted {
            Some(Planted::IdInTransaction) => planted::id_in_transaction(self, session, ops).await,
            _ => None,
        }
    }

    fn model(&self) -> Self::Model {
        BTreeMap::new()
    }

    fn replay(&self, model: &mut Self::Model, op: &Op, _: &At) -> Result<Answer, Error> {
        let add = |model: &mut Self::Model, id: &Id, doc: Value| {
            self.accepts(id, &[], Some(&doc))?;
            if model.contains_key(id) {
                return Err(Error::Exists(id.clone()));
            }
            self.fits(id, &[], &doc)?;
            model.insert(id.clone(), Json(doc));
            Ok(())
        };
        Ok(match op {
            Op::Insert(id, item) => {
                add(model, id, item.value())?;
                Answer::Written
            }
            Op::InsertOwn(Json(doc)) => {
                let id = Id::of(&doc[DOC_ID]).ok_or_else(|| Error::NotAnId(doc[DOC_ID].to_string()))?;
                add(model, &id, doc.clone())?;
                Answer::Inserted(id)
            }
            // Nobody else has its id.
            Op::InsertDrawn(_) => Answer::Removed(true),
            Op::Replace(id, item) => {
                let doc = item.value();
                self.accepts(id, &[], Some(&doc))?;
                self.fits(id, &[], &doc)?;
                model.insert(id.clone(), Json(doc));
                Answer::Written
            }
            Op::Merge(id, path, item) => {
                let item = item.value();
                self.edit(model, (id, path, &item), |old| json::merged(old, &item))?
            }
            Op::Patch(id, path, item) => {
                let item = item.value();
                self.edit(model, (id, path, &item), |_| item.clone())?
            }
            Op::Remove(id, path) => {
                self.accepts(id, path, None)?;
                json::reaches(&root(id), path)?;
                let mut document = model.remove(id).map(|Json(doc)| doc);
                let was_there = json::remove(&mut document, path);
                model.extend(document.map(|doc| (id.clone(), Json(doc))));
                Answer::Removed(was_there)
            }
            Op::Get(id, path) => {
                self.accepts(id, path, None)?;
                json::reaches(&root(id), path)?;
                let document = model.get(id).and_then(|Json(doc)| json::get(doc, path));
                Answer::Read(document.map(Shown::from))
            }
            Op::Find(path, leaf) => {
                if !self.indexed || *path != indexed_path() {
                    let at = path.iter().map(|step| match step {
                        Step::Key(name) => format!("/{name}"),
                        Step::Index(index) => format!("/{index}"),
                    });
                    return Err(Error::NoIndex(at.collect()));
                }
                let has = |doc: &Json| json::get(&doc.0, path).is_some_and(|at| Json(at.clone()) == *leaf);
                Answer::Found(model.iter().filter(|(_, doc)| has(doc)).map(|(id, _)| id.clone()).collect())
            }
        })
    }

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Self::Model, String>> {
        let rows = tx.get_range_all(RangeOption::from(space().range()), Serializable).await?;
        let entries = tx.get_range_all(RangeOption::from(index_space().range()), Serializable).await?;
        let documents = match assemble(&rows) {
            Ok(documents) => documents,
            Err(e) => return Ok(Err(e)),
        };
        let found: BTreeSet<Vec<u8>> = entries.into_iter().map(|row| row.key.to_vec()).collect();
        let expected: BTreeSet<Vec<u8>> = match self.indexed {
            true => documents.iter().filter_map(|(id, Json(doc))| self.entry(id, doc)).collect(),
            false => BTreeSet::new(),
        };
        if let Some(key) = found.symmetric_difference(&expected).next() {
            let which = if found.contains(key) { "a stale entry" } else { "no entry" };
            return Ok(Err(format!("the index has {which} {}", key.escape_ascii())));
        }
        let other = documents.iter().find(|(id, Json(doc))| {
            doc.get(DOC_ID).is_some_and(|inside| Id::of(inside).as_ref() != Some(*id))
        });
        Ok(match other {
            Some((id, doc)) => Err(format!("the document {id} is {doc:?}")),
            None => Ok(documents),
        })
    }
}

impl Document {
    /// Does a call as it should be done.
    pub(crate) async fn rightly<T: Transaction>(
        &self,
        tx: &T,
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
                // It holds an id, so that none is drawn here.
                let (id, doc) = Documents::identify(env, doc)?;
                documents.insert(tx, &id, &doc).await?;
                Answer::Inserted(id)
            }
            Op::InsertDrawn(Json(doc)) => {
                let (id, doc) = Documents::identify(env, doc)?;
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

/// An object without one of its members.
pub(crate) fn without(value: &Value, name: &str) -> Map<String, Value> {
    let mut members = value.as_object().cloned().unwrap_or_default();
    members.remove(name);
    members
}
