//! `entity`: entities get attributes, are related to each other as cardinalities allow, and are deleted.
//!
//! There are relationships of each cardinality, whose names are prefixes of each other, and one that is not
//! declared. There are few entities. One of them has the name of a relationship, and some have names so long
//! that not every call is possible with them.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod documents;
mod model;
mod operations;
mod planted;

pub use model::Model;
pub use operations::{Answer, Op};

use crate::shared::{self, draw_edge_ids};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use model::{cardinality, read};
use operations::{RELATIONSHIPS, entities};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    specimen::{At, Content, Specimen},
    workload::Bug,
};
use shaketable_layers::{
    entity::{Cardinality, Entities, Error},
    id::Id,
};
use shaketable_sim::seed::Stream;
use shaketable_tx::{self as tx, Env, Isolation, Tx};

/// The entities' subspace.
fn space() -> Subspace {
    Subspace::from("ER")
}

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entity {
    /// How many of [`entities`] are used.
    entities: usize,
    /// Ids that are used beside them.
    edges: Vec<Id>,
    planted: Option<Planted>,
}

fn layer() -> Entities {
    Entities::new(space(), RELATIONSHIPS)
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Entity>>()
}

impl Entity {
    /// Performs a call correctly.
    async fn right(&self, tx: &Tx, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        let er = layer();
        Ok(match op {
            Op::AddAttribute(id, attribute, byte, length) => {
                er.add_attribute_value(tx, id, attribute, &vec![*byte; *length]).await?;
                Answer::Written
            }
            Op::RemoveAttribute(id, attribute) => {
                er.remove_attribute(tx, id, attribute).await?;
                Answer::Written
            }
            Op::Relate(name, primary, foreign) => {
                er.add_relationship(tx, name, primary, foreign).await?;
                Answer::Written
            }
            Op::Part(name, primary, foreign) => {
                er.remove_relationship(tx, name, primary, foreign).await?;
                Answer::Written
            }
            Op::Delete(id) => Answer::Deleted(er.delete_entity(tx, id).await?),
            Op::Attribute(id, attribute) => {
                let value = er.get_attribute_value(tx, id, attribute, isolation).await?;
                Answer::Value(value.as_ref().map(Content::from))
            }
            Op::Attributes(id) => {
                let all = er.get_attributes(tx, id, isolation).await?;
                Answer::Attributes(all.into_iter().map(|(name, v)| (name, Content::from(&v))).collect())
            }
            Op::Pairs(name) => Answer::Pairs(er.get_relationships(tx, name, isolation).await?),
            Op::Related(name, direction, id) => {
                Answer::Entities(er.get_related_entities(tx, name, *direction, id, isolation).await?)
            }
            Op::PairsPage(name, after, limit) => {
                let after = after.as_ref().map(|(primary, foreign)| (primary, foreign));
                Answer::Pairs(er.get_relationships_page(tx, name, after, *limit, isolation).await?)
            }
            Op::RelatedPage(name, direction, id, after, limit) => {
                let (from, after) = ((*direction, id), after.as_ref());
                Answer::Page(er.get_related_entities_page(tx, name, from, after, *limit, isolation).await?)
            }
            Op::IsRelated(name, primary, foreign) => {
                Answer::Is(er.is_related_entity(tx, name, primary, foreign, isolation).await?)
            }
        })
    }
}

impl Specimen for Entity {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Model;

    const NAME: &'static str = "entity";
    const ABOUT: &'static str = "entities, their attributes, and relationships of each cardinality";
    const CHECKS_LIMITS: bool = true;

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &["entity: a second relationship is one too many", "entity: a deletion ends several relationships"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Entity {
        Entity {
            entities: rng.range(2..entities().len() as u64 + 1) as usize,
            edges: draw_edge_ids(rng),
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let entities = &entities()[..self.entities];
        let pairs = entities.iter().map(|id| space().pack(&("relationship", "owns", id)).into());
        pairs.chain(entities.iter().map(|id| space().pack(&("inverse", "owns", id)).into())).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        self.drawn()
    }

    fn is_read_only(op: &Op) -> bool {
        use Op::*;
        match op {
            AddAttribute(..) | RemoveAttribute(..) | Relate(..) | Part(..) | Delete(_) => false,
            Attribute(..) | Attributes(_) | Pairs(_) | Related(..) | PairsPage(..) | RelatedPage(..)
            | IsRelated(..) => true,
        }
    }

    fn is_conflict_free(&self, op: &Op) -> bool {
        match op {
            Op::AddAttribute(..) | Op::RemoveAttribute(..) | Op::Part(..) => true,
            Op::Relate(name, ..) => cardinality(name) == Ok(Cardinality::ManyToMany),
            _ => false,
        }
    }

    fn takes_isolation(&self, op: &Op) -> bool {
        Self::is_read_only(op) && self.planted.is_none_or(|planted| planted == Planted::RelatedAtSnapshot)
    }

    async fn perform(&self, tx: &Tx, _: &Env, op: &Op, isolation: Isolation) -> Result<Answer, Error> {
        match self.planted {
            Some(planted) => planted::perform(planted, self, tx, op, isolation).await,
            None => self.right(tx, op, isolation).await,
        }
    }

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
    }

    fn model(&self) -> Model {
        Model::default()
    }

    fn replay(&self, model: &mut Model, op: &Op, _: &At) -> Result<Answer, Error> {
        self.replayed(model, op)
    }

    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Model, Misfit>> {
        let rows = shared::rows(tx, &space()).await?;
        Ok(read(&rows).map_err(Misfit::from))
    }
}
