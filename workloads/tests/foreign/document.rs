//! Documents and their indexes.

use crate::{Layer, calls::Calls, space, written};
use serde_json::json;
use shaketable_layers::{
    document::{Documents, Id},
    hierarchy::Step,
};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::{Database, Isolation::Serializable};

pub struct AllDocuments(Documents);

fn ids() -> [Id; 4] {
    [1.into(), "a".into(), "leaf".into(), u64::MAX.into()]
}

pub fn paths() -> Vec<Vec<Step>> {
    vec![
        vec![],
        vec!["name".into()],
        vec!["list".into()],
        vec!["list".into(), 0.into()],
        vec!["list".into(), 1.into(), "deep".into()],
        vec!["list".into(), 7.into()],
        vec!["list".into(), u64::MAX.into()],
        vec!["empty".into()],
        vec!["none".into(), "such".into()],
        vec![0.into()],
    ]
}

impl Layer for AllDocuments {
    const NAME: &'static str = "document";

    fn new() -> AllDocuments {
        let index = |name: &str| space().subspace(&("index", name));
        AllDocuments(
            Documents::new(space().subspace(&"documents"))
                .with_pieces_of(4)
                .with_index(index("name"), vec!["name".into()])
                .with_index(index("deep"), vec!["list".into(), 1.into(), "deep".into()]),
        )
    }

    async fn write(&self, db: &SimDatabase) {
        let AllDocuments(documents) = self;
        written(db, |tx| async move {
            let [number, text, leaf, _] = ids();
            let doc = json!({"name": "long text", "list": [1.5, {"deep": true}, []], "empty": {}});
            documents.insert(&tx, &number, &doc).await?;
            documents.insert(&tx, &text, &json!({"name": 7, "doc_id": "a"})).await?;
            documents.insert(&tx, &leaf, &json!(null)).await
        })
        .await
    }

    async fn call(&self, calls: &mut Calls) {
        let AllDocuments(documents) = self;
        for (at, id) in ids().iter().enumerate() {
            let items = &[json!("another text"), json!({"name": {"x": []}}), json!([[1], 2])];
            for (path, item) in paths().iter().zip(items.iter().cycle()).skip(at).step_by(1 + 3 * at) {
                calls
                    .tx(
                        "Documents::get",
                        |tx| async move { documents.get(&tx, id, path, Serializable).await },
                    )
                    .await;
                let patch = |tx| async move { documents.patch(&tx, id, path, item).await };
                calls.tx("Documents::patch", patch).await;
                let merge = |tx| async move { documents.merge(&tx, id, path, item).await };
                calls.tx("Documents::merge", merge).await;
                calls
                    .tx("Documents::remove", |tx| async move { documents.remove(&tx, id, path).await })
                    .await;
            }
            let doc = &json!({"name": "new", "list": [0, {"deep": 1}]});
            calls.tx("Documents::insert", |tx| async move { documents.insert(&tx, id, doc).await }).await;
            calls.tx("Documents::replace", |tx| async move { documents.replace(&tx, id, doc).await }).await;
        }
        for (path, leaf) in &[
            (vec!["name".into()], json!("long text")),
            (vec!["name".into()], json!(7)),
            (vec!["name".into()], json!("x".repeat(2_000))),
            (vec!["list".into(), 1.into(), "deep".into()], json!(true)),
            (vec!["none".into()], json!(1)),
        ] {
            calls
                .tx(
                    "Documents::find",
                    |tx| async move { documents.find(&tx, path, leaf, Serializable).await },
                )
                .await;
        }
        let env = calls.db.env().clone();
        calls.call("Documents::identify", async { Documents::identify(&env, &json!({"a": 1})) }).await;
    }
}
