//! The data modeling guide, "Documents", and the design recipes, "Hierarchical Documents": JSON documents by
//! path.

use crate::shared::cluster::{begin, on_cluster};
use foundationdb_tuple::{Subspace, pack};
use serde_json::{Value, json};
use shaketable_layers::{
    document::{Documents, Error, Id},
    hierarchy::{self, Step, from_json},
};
use shaketable_tx::{
    Database,
    Isolation::Serializable,
    RangeOption, Transaction, Tx,
    limits::TooLarge,
    once::{Outcome, Session, Slots},
};

fn documents() -> Documents {
    Documents::new(Subspace::from("doc"))
}

fn alice() -> Value {
    json!({
        "user": "alice",
        "profile": {"email": "alice@example.com", "verified": true},
        "tags": ["admin", "developer"]
    })
}

async fn rows(tx: &Tx) -> Vec<(Vec<u8>, Vec<u8>)> {
    let rows = tx.get_range_all(RangeOption::from(Subspace::from("doc").range()), Serializable).await;
    rows.expect("rows").into_iter().map(|row| (row.key.to_vec(), row.value.to_vec())).collect()
}

#[test]
fn a_path_is_a_key_and_a_leaf_a_value() {
    on_cluster(|db| async move {
        let (tx, id) = (begin(&db), Id::from(7));
        let doc =
            from_json(r#"{"user": {"name": "alice", "tags": ["dev", "ops"], "none": []}}"#).expect("JSON");
        documents().insert(&tx, &id, &doc).await.expect("an insert");
        let expected = vec![
            (pack(&("doc", 7, "user", "name")), pack(&("alice",))),
            (pack(&("doc", 7, "user", "none", -1)), pack(&(None::<()>,))),
            (pack(&("doc", 7, "user", "tags", 0)), pack(&("dev",))),
            (pack(&("doc", 7, "user", "tags", 1)), pack(&("ops",))),
        ];
        assert_eq!(rows(&tx).await, expected);
        assert_eq!(documents().get(&tx, &id, &[], Serializable).await, Ok(Some(doc)));
    });
}

#[test]
fn parts_of_a_document_are_read_by_their_path() {
    on_cluster(|db| async move {
        let (tx, id) = (begin(&db), Id::from("alice"));
        documents().insert(&tx, &id, &alice()).await.expect("an insert");
        let get = async |path: &[Step]| documents().get(&tx, &id, path, Serializable).await.expect("a read");
        assert_eq!(get(&[]).await, Some(alice()));
        assert_eq!(
            get(&["profile".into()]).await,
            Some(json!({"email": "alice@example.com", "verified": true}))
        );
        assert_eq!(get(&["tags".into()]).await, Some(json!(["admin", "developer"])));
        assert_eq!(get(&["user".into()]).await, Some(json!("alice")));
        assert_eq!(get(&["tags".into(), 1.into()]).await, Some(json!("developer")));
        assert_eq!(get(&["tags".into(), 2.into()]).await, None);
        assert_eq!(documents().get(&tx, &"bob".into(), &[], Serializable).await, Ok(None));
    });
}

#[test]
fn an_id_that_nobody_supplied_is_drawn_and_stored_inside() {
    on_cluster(|db| async move {
        let mut session = Session::open(&db, &Slots::new(Subspace::from("s")), 1).await.expect("a session");
        let mut insert = async |doc: &Value| {
            let (id, doc) = Documents::identify(db.env(), doc)?;
            let (id, doc) = (&id, &doc);
            let inserted = session.apply(|tx| async move {
                documents().insert(&tx, id, doc).await?;
                Ok(id.clone())
            });
            match inserted.await {
                Outcome::Applied(id) => Ok(id),
                Outcome::Refused(e) => Err(e),
                Outcome::Unknown(_) => panic!("a calm cluster answers"),
            }
        };
        let id = insert(&alice()).await.expect("an insert");
        let Id::Number(number) = id else { panic!("{id} is drawn") };
        assert!(number <= 100_000_000);
        let tx = begin(&db);
        let stored = documents().get(&tx, &id, &[], Serializable).await.expect("a read").expect("a document");
        assert_eq!(stored["doc_id"], json!(number));
        assert_eq!(stored["user"], json!("alice"));

        let supplied = json!({"doc_id": "mine", "a": 1});
        assert_eq!(insert(&supplied).await, Ok("mine".into()));
        assert_eq!(insert(&supplied).await, Err(Error::Exists("mine".into())));
        assert_eq!(insert(&json!({"doc_id": 1.5})).await, Err(Error::NotAnId("1.5".into())));
        assert_eq!(insert(&json!({"doc_id": [1]})).await, Err(Error::NotAnId("a list".into())));

        // A list cannot contain the member.
        let id = insert(&json!([1, 2])).await.expect("an insert");
        let tx = begin(&db);
        assert_eq!(documents().get(&tx, &id, &[], Serializable).await, Ok(Some(json!([1, 2]))));
    });
}

#[test]
fn a_document_that_is_nested_without_end_is_refused() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        let deep = (0..100_000).fold(Value::Null, |deep, _| Value::from(vec![deep]));
        let too_deep = |done: Result<(), Error>| {
            assert!(matches!(done, Err(Error::Inside(hierarchy::Error::TooDeep { .. }))))
        };
        too_deep(Documents::identify(db.env(), &deep).map(drop));
        too_deep(documents().insert(&tx, &1.into(), &deep).await);
        too_deep(documents().replace(&tx, &1.into(), &deep).await);
        too_deep(documents().merge(&tx, &1.into(), &["a".into()], &deep).await);
        too_deep(documents().patch(&tx, &1.into(), &["a".into()], &deep).await);
        assert_eq!(documents().get(&tx, &1.into(), &[], Serializable).await, Ok(None));
        // Dropping it would recurse as well.
        std::mem::forget(deep);
    });
}

#[test]
fn any_json_value_is_a_document() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        let values = [
            "null",
            "true",
            "1",
            "1.0",
            "-0.0",
            "18446744073709551615",
            "-9223372036854775808",
            "1e300",
            "\"\"",
            "\"a\\u0000b\"",
            "\"𝄞\"",
            "[]",
            "{}",
            "[[],{}]",
            "{\"\":{\"\":\"\"}}",
            "[null,[null]]",
            "{\"-1\":-1,\"-2\":[-2]}",
        ];
        for (number, text) in (0..).zip(values) {
            let (id, value) = (Id::from(number), from_json(text).expect("JSON"));
            documents().insert(&tx, &id, &value).await.expect("an insert");
            let read = documents().get(&tx, &id, &[], Serializable).await.expect("a read");
            assert_eq!(read.expect("a document").to_string(), value.to_string());
        }
        tx.commit().await.expect("a commit");
    });
}

#[test]
fn a_leaf_is_longer_than_a_value() {
    on_cluster(|db| async move {
        let (tx, id) = (begin(&db), Id::from(1));
        let text = "0123456789𝄞".repeat(20_000);
        documents().insert(&tx, &id, &json!({"text": text, "text\0": 1})).await.expect("an insert");
        assert!(rows(&tx).await.iter().all(|(_, value)| value.len() <= 10_000));
        tx.commit().await.expect("a commit");
        let tx = begin(&db);
        let at = ["text".into()];
        assert_eq!(documents().get(&tx, &id, &at, Serializable).await, Ok(Some(json!(text))));
        documents().patch(&tx, &id, &at, &json!("short")).await.expect("a patch");
        let whole = json!({"text": "short", "text\0": 1});
        assert_eq!(documents().get(&tx, &id, &[], Serializable).await, Ok(Some(whole)));
        assert_eq!(rows(&tx).await.len(), 2);
    });
}

#[test]
fn what_is_too_large_is_refused_before_anything_is_written() {
    on_cluster(|db| async move {
        let (tx, id) = (begin(&db), Id::from(1));
        let large = json!({"a": 1, "b": "x".repeat(10_000_000)});
        let refused = documents().insert(&tx, &id, &large).await;
        assert!(matches!(refused, Err(Error::TooLarge(TooLarge::Transaction { .. }))), "{refused:?}");
        let far = json!({"a": 1, "b".repeat(10_000): 1});
        let refused = documents().insert(&tx, &id, &far).await;
        assert!(matches!(refused, Err(Error::TooLarge(TooLarge::Key { .. }))), "{refused:?}");
        assert!(matches!(from_json("[NaN]"), Err(hierarchy::Error::NotJson(_))));
        assert!(rows(&tx).await.is_empty());
    });
}

#[test]
fn the_largest_that_is_let_through_is_not_refused_later() {
    on_cluster(|db| async move {
        type Shape = fn(u64) -> Value;
        let text: Shape = |tens| json!({"a": 1, "b": "0123456789".repeat(tens as usize)});
        let list: Shape = |numbers| (0..numbers).collect();
        for (id, mut size, step, value) in [(1, 970_000, 5_000, text), (2, 70_000, 1_000, list)] {
            let id = Id::from(id);
            while documents().replace(&begin(&db), &id, &value(size + step)).await.is_ok() {
                size += step;
            }
            let (tx, largest) = (begin(&db), value(size));
            documents().replace(&tx, &id, &largest).await.expect("a replace");
            tx.commit().await.expect("a commit");
            let stored = documents().get(&begin(&db), &id, &[], Serializable).await;
            assert!(stored == Ok(Some(largest)), "{id} is read otherwise");
        }
    });
}

#[test]
fn an_index_holds_the_leaves_that_are_there() {
    on_cluster(|db| async move {
        let at: Vec<Step> = vec!["profile".into(), "email".into()];
        let documents = documents().with_index(Subspace::from("by email"), at.clone());
        let email = json!("alice@example.com");
        let run = db.run(|tx, _| {
            let (documents, at, email) = (&documents, &at, &email);
            async move {
                let find = async |leaf: &Value| documents.find(&tx, at, leaf, Serializable).await;
                documents.insert(&tx, &1.into(), &alice()).await?;
                documents.insert(&tx, &"1".into(), &alice()).await?;
                assert_eq!(find(email).await?, ["1".into(), Id::from(1)]);
                documents.merge(&tx, &1.into(), &["profile".into()], &json!({"email": "a@b.c"})).await?;
                assert_eq!(find(email).await?, [Id::from("1")]);
                assert_eq!(find(&json!("a@b.c")).await?, [Id::from(1)]);
                documents.remove(&tx, &1.into(), &["profile".into()]).await?;
                documents.remove(&tx, &"1".into(), &[]).await?;
                assert_eq!(find(email).await?, []);
                assert_eq!(find(&json!("a@b.c")).await?, []);

                // Texts that are equal beyond the part that an index entry holds.
                let [one, two] = ["1", "2"].map(|end| json!("é".repeat(700) + end));
                for (id, leaf) in (5..).zip([&one, &two]) {
                    documents.insert(&tx, &id.into(), &json!({"profile": {"email": leaf}})).await?;
                }
                assert_eq!(find(&one).await?, [Id::from(5)]);
                assert_eq!(find(&two).await?, [Id::from(6)]);
                assert_eq!(find(&json!("é".repeat(500))).await?, []);
                let none = documents.find(&tx, &[], email, Serializable).await;
                assert_eq!(none, Err(Error::NoIndex(String::new())));
                Ok::<_, Error>(())
            }
        });
        run.await.expect("a calm cluster commits");
    });
}
