//! `document`: JSON documents are inserted, replaced, changed by path, removed, read and found.
//!
//! There are few ids and names, and paths are short, so that edits meet. Two ids differ only in their type,
//! and one continues another after a zero byte. In some runs texts are stored in small pieces; in some there
//! is an index on a path that all kinds of edits change. A few documents contain the id of another document,
//! a few ids are too long, and a few values are nested too deep. In some runs most indexed texts are as long
//! as an index holds, and begin alike; in others there are ids at the edges of types and texts.

#[cfg(test)]
mod bounds;
mod client;
#[cfg(test)]
mod documents;
mod model;
mod operations;
mod planted;

pub use model::Model;
pub use operations::{Answer, Op};

use crate::{
    models::json::{self, Json},
    shared::{draw_edge_numbers, draw_edge_texts},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    specimen::{Answer as Answers, At, Specimen},
    workload::{Bug, Outcome},
};
use shaketable_layers::{
    document::{DOC_ID, Documents, Error, Id},
    hierarchy::Step,
};
use shaketable_sim::seed::Stream;
use shaketable_tx::{self as tx, Db, Env, Isolation, Tx, once::Session};

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
    planted: Option<Planted>,
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

impl Document {
    fn layer(&self) -> Documents {
        let documents = Documents::new(space()).with_pieces_of(self.piece);
        if self.indexed { documents.with_index(index_space(), indexed_path()) } else { documents }
    }

    /// The size of the pieces of a text.
    fn piece(&self) -> usize {
        self.piece
    }
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Document>>()
}

impl Specimen for Document {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "document";
    const ABOUT: &'static str = "JSON documents, written, changed and read by path, and found by an index";
    const CHECKS_LIMITS: bool = true;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &["document: a text is stored in pieces", "document: an index follows"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Document {
        let planted = bug.and_then(Planted::named);
        Document {
            names: rng.range(2..json::MOST_NAMES as u64 + 1) as usize,
            longest: rng.range(1..4) as usize,
            piece: *rng.pick(&[4, 200, 10_000]),
            // An index would only reveal that the bug does not maintain it.
            indexed: rng.chance(0.5) && planted != Some(Planted::BytePrefix),
            alike: rng.chance(0.3),
            edges: draw_edge_numbers(rng)
                .into_iter()
                .map(Id::from)
                .chain(draw_edge_texts(rng).iter().map(|text| Id::from(text.as_str())))
                .collect(),
            planted,
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let documents = [Id::from("1"), "b".into(), 1.into(), 1_000.into()].map(|id| root(&id).into());
        let entry = |leaf: &str| index_space().pack(&(leaf,)).into();
        documents.into_iter().chain([entry(""), entry("x")]).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        self.drawn()
    }

    /// Sets the id in a document that is inserted under its own id: one that no other document has.
    fn number(op: &mut Op, client: usize, number: usize) {
        if let Op::InsertOwn(Json(doc)) = op {
            let mut members = doc.as_object().cloned().unwrap_or_default();
            members.insert(DOC_ID.to_owned(), (1_000 * (client + 1) + number).into());
            *doc = members.into();
        }
    }

    fn is_read_only(op: &Op) -> bool {
        matches!(op, Op::Get(..) | Op::Find(..))
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        Self::is_read_only(op) && self.planted.is_none_or(|planted| planted == Planted::GetConflicts)
    }

    async fn perform(&self, tx: &Tx, env: &Env, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        match self.planted {
            Some(planted) => planted::perform(planted, self, tx, env, op, isolation).await,
            None => self.perform_correctly(tx, env, op, isolation).await,
        }
    }

    async fn apply_planted(&self, session: &mut Session<Db>, ops: &[Op]) -> Option<Outcome<Answers<Answer>>> {
        match self.planted {
            Some(Planted::IdInTransaction) => planted::id_in_transaction(self, session, ops).await,
            _ => None,
        }
    }

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
    }

    fn model(&self) -> Model {
        Model::new()
    }

    fn replay(&self, model: &mut Model, op: &Op, _: &At) -> Result<Answer, Error> {
        self.replayed(model, op)
    }

    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Model, Misfit>> {
        Ok(self.read(tx).await?.map_err(Misfit::from))
    }
}
