//! `document`: JSON documents are inserted, replaced, changed by path, removed, read and found.
//!
//! There are few ids and names, and paths are short, so that edits meet. Two ids differ only in their type,
//! and one continues another after a zero byte. In some runs texts are stored in small pieces; in some there
//! is an index on a path that all kinds of edits change. A few documents contain the id of another document,
//! a few ids are too long, and a few values are nested too deep. In some runs most indexed texts are as long
//! as an index holds, and begin alike; in others there are ids at the edges of types and texts.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
mod model;
mod planted;

use crate::{
    models::json::{self, Item, Json, Shown},
    shared::{came_back, draw_edge_numbers, draw_edge_texts, one_call},
};
use foundationdb_tuple::Subspace;
use model::Model;
use proptest::strategy::Union;
use serde_json::Value;
use shaketable::{prelude::*, real::key_room, strategies};
use shaketable_layers::{
    document::{DOC_ID, Documents, Error, Id, MAX_ID_BYTES},
    hierarchy::{MAX_DEPTH, Step},
};
use shaketable_tx::{KEY_SIZE_LIMIT, always};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Document {
    /// The number of different names of members.
    names: usize,
    /// The maximum length of a path, in steps.
    longest: usize,
    /// The size of the pieces of a text.
    piece: usize,
    /// Whether there is an index on [`indexed_path`].
    indexed: bool,
    /// Whether most leaves on the indexed path are long texts that begin alike.
    alike: bool,
    /// Ids that are used beside the usual ones.
    edges: Vec<Id>,
}

/// What is written at a path of a document.
type Patch = (Id, Vec<Step>, Item);

/// JSON documents, written, changed and read by path, and found by an index.
#[shaketable::workload(name = "document", model = Model, planted, promises(turns, limits))]
impl Document {
    fn draw(rng: &mut Stream, bug: Option<&str>) -> Document {
        Document {
            names: rng.range(2..json::MOST_NAMES as u64 + 1) as usize,
            longest: rng.range(1..4) as usize,
            piece: *rng.pick(&[4, 200, 10_000]),
            // An index would only reveal that the bug does not maintain it.
            indexed: rng.chance(0.5) && bug != Some("byte-prefix"),
            alike: rng.chance(0.3),
            edges: draw_edge_numbers(rng)
                .into_iter()
                .map(Id::from)
                .chain(draw_edge_texts(rng).iter().map(|text| Id::from(text.as_str())))
                .collect(),
        }
    }

    fn points() -> &'static [&'static str] {
        &["document: a text is stored in pieces", "document: an index follows"]
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        let documents = [Id::from("1"), "b".into(), 1.into(), 1_000.into()].map(|id| root(&id));
        let entries = ["", "x"].map(|leaf| index_space().pack(&(leaf,)));
        documents.into_iter().chain(entries).collect()
    }

    /// Sets the id in a document that is inserted under its own id: one that no other document has.
    fn number(op: &mut DocumentOp, client: usize, number: usize) {
        if let DocumentOp::insert_own { doc: Json(doc) } = op {
            let mut members = doc.as_object().cloned().unwrap_or_default();
            members.insert(DOC_ID.to_owned(), (1_000 * (client + 1) + number).into());
            *doc = members.into();
        }
    }

    fn layer(&self) -> Documents {
        let documents = Documents::new(space()).with_pieces_of(self.piece);
        if self.indexed { documents.with_index(index_space(), indexed_path()) } else { documents }
    }

    fn usual_id(&self) -> BoxedStrategy<Id> {
        let usual = [Id::from(1), "1".into(), "a".into(), "a\0b".into()];
        let usual = select([&usual[..], &self.edges].concat());
        let number = select(&strategies::UNSIGNED[..]).prop_map(Id::from);
        let text = select(&strategies::BEYOND_ASCII[..]).prop_map(Id::from);
        let long = select(vec![255, 256, 257, MAX_ID_BYTES - 1, MAX_ID_BYTES]);
        let long = long.prop_map(|bytes| Id::Text("x".repeat(bytes)));
        strategies::mostly(usual, prop_oneof![6 => number, 1 => text, 1 => long]).boxed()
    }

    #[draws(id)]
    fn id(&self) -> BoxedStrategy<Id> {
        self.usual_id()
    }

    #[draws(path)]
    fn path(&self) -> BoxedStrategy<Vec<Step>> {
        json::path(self.names, self.longest).boxed()
    }

    #[draws(doc)]
    fn doc(&self) -> BoxedStrategy<Json> {
        json::value(self.names).prop_map(Json).boxed()
    }

    #[draws(item)]
    fn item(&self) -> BoxedStrategy<Item> {
        let ids = select(vec![1.into(), Value::from("1"), "a".into(), Value::from(1.0)]);
        let own = (json::value(self.names), ids).prop_map(|(value, id)| {
            let mut members = value.as_object().cloned().unwrap_or_default();
            members.insert(DOC_ID.to_owned(), id);
            Value::from(members)
        });
        prop_oneof![
            20 => json::value(self.names).prop_map(value),
            6 => json::leaf().prop_map(value),
            3 => self.text(),
            2 => own.prop_map(value),
        ]
        .boxed()
    }

    fn text(&self) -> BoxedStrategy<Item> {
        let piece = self.piece;
        let edges = [piece - 1, piece, piece + 1, 2 * piece - 1, 2 * piece, 2 * piece + 1];
        // Each piece repeats its key: more of them under a long id would fit into no transaction, which the
        // model does not count.
        let bytes = || {
            let bytes = [vec![0, 4, 5, 210, 999, 1_000, 1_001, 3_000, 20_000], edges.to_vec()].concat();
            select(bytes).prop_map(move |bytes| bytes.min(500 * piece))
        };
        prop_oneof![3 => bytes().prop_map(Item::Text), 1 => bytes().prop_map(Item::Wide)].boxed()
    }

    /// Leaves of the indexed path. Of long texts that begin alike, the index holds the same beginning.
    fn indexed_leaf(&self) -> BoxedStrategy<Value> {
        let alike = select(vec![997, 998, 999, 1_000, 1_001, 3_000]).prop_map(Item::Text);
        prop_oneof![
            if self.alike { 1 } else { 3 } => json::leaf(),
            1 => self.text().prop_map(|item| item.value()),
            if self.alike { 6 } else { 1 } => alike.prop_map(|item| item.value()),
        ]
        .boxed()
    }

    fn insertion(&self) -> BoxedStrategy<(Id, Item)> {
        let long_id = Id::Text("x".repeat(MAX_ID_BYTES + 1));
        prop_oneof![60 => (self.usual_id(), self.item()), 1 => Just((long_id, Item::Text(1)))].boxed()
    }

    fn patches(&self) -> BoxedStrategy<Patch> {
        let (id, piece) = (|| self.usual_id(), self.piece);
        let far = vec![Step::from("x".repeat(KEY_SIZE_LIMIT).as_str())];
        // The keys of a text, or of its pieces, have up to so many bytes more than the path.
        let room = KEY_SIZE_LIMIT - key_room() - json::key(&root(&1.into()), &["".into()]).len();
        let edge = (0..6usize, select(vec![1, piece + 1, 2 * piece])).prop_map(move |(less, bytes)| {
            (1.into(), vec![Step::from("x".repeat(room - less).as_str())], Item::Text(bytes))
        });
        let step = select(vec![Step::from("a"), Step::Index(0)]);
        let own_id = |id| (1.into(), vec![DOC_ID.into()], value(id));
        let in_id = |(id, step, leaf)| (id, vec![DOC_ID.into(), step], value(leaf));
        let deep = (MAX_DEPTH - 2..MAX_DEPTH + 2).prop_map(Item::Nested);
        let mut kinds = vec![
            (80, (id(), self.path(), self.item()).boxed()),
            (4, json::leaf().prop_map(own_id).boxed()),
            (8, (id(), step, json::leaf()).prop_map(in_id).boxed()),
            (2, (id(), self.path(), deep).boxed()),
            (2, edge.boxed()),
            (1, (id(), Just(far), Just(Item::Text(1))).boxed()),
        ];
        if self.indexed {
            let at = |(id, leaf)| (id, indexed_path(), value(leaf));
            kinds.push((30, (id(), self.indexed_leaf()).prop_map(at).boxed()));
        }
        Union::new_weighted(kinds).boxed()
    }

    fn finds(&self) -> BoxedStrategy<(Vec<Step>, Json)> {
        let mut kinds = vec![(2, json::leaf().prop_map(|leaf| (vec!["b".into()], Json(leaf))).boxed())];
        if self.indexed {
            kinds.push((40, self.indexed_leaf().prop_map(|leaf| (indexed_path(), Json(leaf))).boxed()));
        }
        Union::new_weighted(kinds).boxed()
    }

    #[write(weight = 61)]
    async fn insert(&self, tx: &Tx, #[draw(self.insertion())] new: &(Id, Item)) -> Result<(), Error> {
        self.layer().insert(tx, &new.0, &new.1.value()).await
    }

    /// Inserts a document under the id that it contains.
    #[write(weight = 20)]
    async fn insert_own(&self, tx: &Tx, env: &Env, doc: &Json) -> Result<Id, Error> {
        // The document contains an id, so that none is drawn here.
        let (id, doc) = Documents::identify(env, &doc.0)?;
        self.layer().insert(tx, &id, &doc).await?;
        Ok(came_back(id))
    }

    /// Inserts a document under an id that the layer draws, reads it, and removes it.
    #[write(weight = 5)]
    async fn insert_drawn(&self, tx: &Tx, env: &Env, doc: &Json) -> Result<bool, Error> {
        let (documents, (id, doc)) = (self.layer(), Documents::identify(env, &doc.0)?);
        let tx = &one_call(tx, false).await;
        documents.insert(tx, &id, &doc).await?;
        let read = documents.get(tx, &id, &[], Serializable).await?;
        always!(
            read.as_ref().map(Shown::from) == Some(Shown::from(&doc)),
            "{doc} was inserted, and {read:?} is there"
        );
        documents.remove(tx, &id, &[]).await
    }

    #[write(weight = 40)]
    async fn replace(&self, tx: &Tx, id: &Id, item: &Item) -> Result<(), Error> {
        self.layer().replace(tx, id, &item.value()).await
    }

    #[write(weight = 60)]
    async fn merge(&self, tx: &Tx, id: &Id, path: &[Step], item: &Item) -> Result<(), Error> {
        self.layer().merge(tx, id, path, &item.value()).await
    }

    #[write(weight = if self.indexed { 127 } else { 97 })]
    async fn patch(&self, tx: &Tx, #[draw(self.patches())] patch: &Patch) -> Result<(), Error> {
        let (id, path, item) = patch;
        self.layer().patch(tx, id, path, &item.value()).await
    }

    #[write(weight = 70)]
    async fn remove(&self, tx: &Tx, id: &Id, path: &[Step]) -> Result<bool, Error> {
        self.layer().remove(tx, id, path).await
    }

    #[read(weight = 80)]
    async fn get(
        &self,
        tx: &Tx,
        isolation: Isolation,
        id: &Id,
        path: &[Step],
    ) -> Result<Option<Shown>, Error> {
        Ok(self.layer().get(tx, id, path, isolation).await?.as_ref().map(Shown::from))
    }

    #[read(weight = if self.indexed { 42 } else { 2 })]
    async fn find(
        &self,
        tx: &Tx,
        isolation: Isolation,
        #[draw(self.finds())] at: &(Vec<Step>, Json),
    ) -> Result<Vec<Id>, Error> {
        self.layer().find(tx, &at.0, &at.1.0, isolation).await
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Result<Model, String>> {
        self.model().read(tx).await
    }

    fn model(&self) -> Model {
        Model::new(self.indexed, self.piece)
    }
}

fn space() -> Subspace {
    Subspace::from("documents")
}

fn index_space() -> Subspace {
    Subspace::from("documents by leaf")
}

fn indexed_path() -> Vec<Step> {
    vec!["a".into()]
}

/// The prefix of a document's keys.
fn root(id: &Id) -> Vec<u8> {
    json::key(space().bytes(), &[id.to_value()])
}

fn value(value: Value) -> Item {
    Item::Value(Json(value))
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Document>>()
}
