//! Entities and relationships.

use crate::{Layer, calls::Calls, space, written};
use bytes::Bytes;
use shaketable_layers::{
    entity::{Cardinality, Direction, Entities},
    id::Id,
};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::Isolation::Serializable;

pub struct AllEntities(Entities);

const RELATIONSHIPS: [(&str, Cardinality); 4] = [
    ("one", Cardinality::OneToOne),
    ("children", Cardinality::OneToMany),
    ("parent", Cardinality::ManyToOne),
    ("friends", Cardinality::ManyToMany),
];

pub fn ids() -> [Id; 5] {
    ["smith".into(), 7.into(), Bytes::from_static(b"\0\xff").into(), i64::MIN.into(), "nobody".into()]
}

impl Layer for AllEntities {
    const NAME: &'static str = "entity";

    fn new() -> AllEntities {
        AllEntities(Entities::new(space(), RELATIONSHIPS))
    }

    async fn write(&self, db: &SimDatabase) {
        let AllEntities(er) = self;
        written(db, |tx| async move {
            let [smith, seven, bytes, least, _] = ids();
            er.add_attribute_value(&tx, &smith, "name", b"Smith").await?;
            er.add_attribute_value(&tx, &seven, "", b"").await?;
            for (relationship, _) in RELATIONSHIPS {
                er.add_relationship(&tx, relationship, &seven, &bytes).await?;
            }
            er.add_relationship(&tx, "friends", &smith, &least).await
        })
        .await
    }

    async fn call(&self, calls: &mut Calls) {
        let AllEntities(er) = self;
        let ids = &ids();
        for id in ids {
            let attributes = |tx| async move { er.get_attributes(&tx, id, Serializable).await };
            calls.tx("Entities::get_attributes", attributes).await;
            let value = |tx| async move { er.get_attribute_value(&tx, id, "name", Serializable).await };
            calls.tx("Entities::get_attribute_value", value).await;
            let add = |tx| async move { er.add_attribute_value(&tx, id, "name", b"new").await };
            calls.tx("Entities::add_attribute_value", add).await;
            let remove = |tx| async move { er.remove_attribute(&tx, id, "name").await };
            calls.tx("Entities::remove_attribute", remove).await;
            for (relationship, _) in RELATIONSHIPS {
                let [.., other, _] = ids;
                let add = |tx| async move { er.add_relationship(&tx, relationship, id, other).await };
                calls.tx("Entities::add_relationship", add).await;
                let remove = |tx| async move { er.remove_relationship(&tx, relationship, id, other).await };
                calls.tx("Entities::remove_relationship", remove).await;
                let is = |tx| async move {
                    er.is_related_entity(&tx, relationship, id, other, Serializable).await
                };
                calls.tx("Entities::is_related_entity", is).await;
                for side in [Direction::Forward, Direction::Inverse] {
                    let related = |tx| async move {
                        er.get_related_entities(&tx, relationship, side, id, Serializable).await
                    };
                    calls.tx("Entities::get_related_entities", related).await;
                    calls
                        .pages("Entities::get_related_entities_page", async |tx, after: Option<Id>| {
                            let of = (side, id);
                            let after = after.as_ref();
                            let page =
                                er.get_related_entities_page(&tx, relationship, of, after, 1, Serializable);
                            page.await.map(|mut page| page.pop())
                        })
                        .await;
                }
            }
            calls.tx("Entities::delete_entity", |tx| async move { er.delete_entity(&tx, id).await }).await;
        }
        for (relationship, _) in RELATIONSHIPS.into_iter().chain([("unknown", Cardinality::OneToOne)]) {
            let pairs = |tx| async move { er.get_relationships(&tx, relationship, Serializable).await };
            calls.tx("Entities::get_relationships", pairs).await;
            calls
                .pages("Entities::get_relationships_page", async |tx, after: Option<(Id, Id)>| {
                    let after = after.as_ref().map(|(primary, foreign)| (primary, foreign));
                    er.get_relationships_page(&tx, relationship, after, 1, Serializable)
                        .await
                        .map(|mut page| page.pop())
                })
                .await;
        }
    }
}
