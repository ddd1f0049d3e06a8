//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{below, refused, space},
    cluster::on_cluster,
};
use foundationdb_tuple::Subspace;
use serde_json::json;
use shaketable_layers::document::Documents;
use shaketable_tx::Isolation::Serializable;

shared::refused_calls! {
    [below(1)],
    "get": |tx| Documents::new(space()).get(&tx, &1.into(), &[], Serializable),
    "remove": |tx| Documents::new(space()).remove(&tx, &1.into(), &[0.into()]),
    "find": |tx| {
        let documents = Documents::new(Subspace::from("other")).with_index(space(), vec!["a".into()]);
        async move { documents.find(&tx, &["a".into()], &json!(1), Serializable).await }
    },
}

#[test]
fn documents_that_are_looked_at_for_a_long_text_are_counted() {
    on_cluster(|db| async move {
        let documents = &Documents::new(space()).with_index(Subspace::from("index"), vec!["text".into()]);
        // Fewer than the number that adds up to ten megabytes, and one more.
        let text = |end: &str| json!("x".repeat(900_000) + end);
        let find = async |end: &str| {
            let text = &text(end);
            shared::ended!(db, |tx| documents.find(&tx, &["text".into()], text, Serializable))
        };
        for n in 0..12 {
            let doc = &json!({ "text": text(if n % 2 == 0 { "even" } else { "odd" }) });
            let insert = shared::ended!(db, |tx| documents.insert(&tx, &n.into(), doc));
            assert_eq!(insert, Ok(()));
            match n {
                10 => assert_eq!(find("odd").await, Ok([1, 3, 5, 7, 9].map(Into::into).to_vec())),
                11 => assert_eq!(find("odd").await.map(drop), refused()),
                _ => (),
            }
        }
    });
}
