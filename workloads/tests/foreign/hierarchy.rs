//! Hierarchies.

use crate::{Layer, calls::Calls, document::paths, space, written};
use serde_json::json;
use shaketable_layers::hierarchy::{Error, Hierarchy, from_json, from_tuples, to_tuples};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::Isolation::Serializable;

pub struct Hierarchies(Hierarchy);

impl Layer for Hierarchies {
    const NAME: &'static str = "hierarchy";

    fn new() -> Hierarchies {
        Hierarchies(Hierarchy::new(space()))
    }

    async fn write(&self, db: &SimDatabase) {
        let Hierarchies(hierarchy) = self;
        written(db, |tx| async move {
            let item = json!({"name": "text", "list": [1.5, {"deep": true}, [], null], "empty": {}, "n": -2});
            hierarchy.insert(&tx, &[], &item).await
        })
        .await
    }

    async fn call(&self, calls: &mut Calls) {
        let Hierarchies(hierarchy) = self;
        for path in &paths() {
            calls
                .tx("Hierarchy::get", |tx| async move { hierarchy.get(&tx, path, Serializable).await })
                .await;
            let tuples = |tx| async move {
                let tuples = hierarchy.tuples(&tx, path, Serializable).await?;
                let Some(item) = from_tuples(&tuples)? else { return Ok(None) };
                let again = from_json(&item.to_string())?;
                Ok::<_, Error>(Some(to_tuples(&again)?))
            };
            calls.tx("Hierarchy::tuples", tuples).await;
            for item in &[json!("new"), json!({"name": {"x": []}, "list": 1}), json!([[1], 2])] {
                let insert = |tx| async move { hierarchy.insert(&tx, path, item).await };
                calls.tx("Hierarchy::insert", insert).await;
                let replace = |tx| async move { hierarchy.replace(&tx, path, item).await };
                calls.tx("Hierarchy::replace", replace).await;
            }
            calls.tx("Hierarchy::remove", |tx| async move { hierarchy.remove(&tx, path).await }).await;
        }
    }
}
