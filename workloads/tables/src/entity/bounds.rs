//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{MOST, below, fill, refused, space},
    cluster::on_cluster,
};
use shaketable_layers::{
    entity::{
        Cardinality,
        Direction::{Forward, Inverse},
        Entities,
    },
    id::Id,
};
use shaketable_tx::Isolation::Serializable;

fn entities() -> Entities {
    let relationships = ["knows", "owns"].map(|name| (name, Cardinality::ManyToMany));
    Entities::new(space(), relationships)
}

shared::refused_calls! {
    [below(("attribute", "e")), below(("relationship", "knows", "e"))],
    "get_attributes": |tx| entities().get_attributes(&tx, &"e".into(), Serializable),
    "get_relationships": |tx| entities().get_relationships(&tx, "knows", Serializable),
    "get_relationships_page": |tx|
        entities().get_relationships_page(&tx, "knows", None, MOST, Serializable),
    "get_related_entities": |tx|
        entities().get_related_entities(&tx, "knows", Forward, &"e".into(), Serializable),
    "get_related_entities_page": |tx| {
        let e = Id::from("e");
        async move {
            let of = (Forward, &e);
            entities().get_related_entities_page(&tx, "knows", of, None, MOST, Serializable).await
        }
    },
    "delete_entity": |tx| entities().delete_entity(&tx, &"e".into()),
}

#[test]
fn reads_of_one_call_are_counted_together() {
    on_cluster(|db| async move {
        let db = &db;
        // Sixty of a hundred rows on either side.
        for below in [below(("relationship", "knows", "e")), below(("inverse", "owns", "e"))] {
            fill(db, &below, 0..60).await;
        }
        let one = shared::ended!(db, |tx| async {
            entities().get_related_entities(&tx, "owns", Inverse, &"f".into(), Serializable).await
        });
        assert_eq!(one.map(|related| related.len()), Ok(0));
        assert_eq!(shared::ended!(db, |tx| entities().delete_entity(&tx, &"e".into())).map(drop), refused());
    });
}
