//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{refused, space, store},
    cluster::on_cluster,
};
use serde_json::json;
use shaketable_layers::hierarchy::Hierarchy;
use shaketable_tx::{Database, DatabaseOption, Isolation::Serializable};

shared::refused_calls! {
    [space()],
    "get": |tx| Hierarchy::new(space()).get(&tx, &[], Serializable),
    "tuples": |tx| Hierarchy::new(space()).tuples(&tx, &[], Serializable),
    "remove": |tx| Hierarchy::new(space()).remove(&tx, &[0.into()]),
}

#[test]
fn elements_move_up_by_thousands_and_more_are_refused() {
    on_cluster(|db| async move {
        db.set_option(DatabaseOption::TransactionRetryLimit(0)).expect("an option");
        let hierarchy = &Hierarchy::new(space());
        // Of each element's key, thrice as many bytes are written as read.
        let text = "x".repeat(130);
        for (elements, fits) in [(15_000u64, true), (20_000, false)] {
            store(&db, (0..elements).map(|n| (space().pack(&(n, &text)), Vec::new()))).await;
            let removed = shared::ended!(db, |tx| hierarchy.remove(&tx, &[0.into()]));
            match fits {
                true => assert_eq!(removed, Ok(true)),
                false => assert!(matches!(removed, Err((why, 1)) if why.contains("in one transaction"))),
            }
        }
    });
}

#[test]
fn objects_come_together_by_thousands_and_more_are_refused() {
    on_cluster(|db| async move {
        db.set_option(DatabaseOption::TransactionRetryLimit(0)).expect("an option");
        let hierarchy = &Hierarchy::new(space());
        let objects = |number: usize, value: i64| {
            let members = (0..number).map(|n| (format!("{n:05}"), json!({ "x": value })));
            serde_json::Value::Object(members.collect())
        };
        let insert = async |item| {
            let item = &item;
            shared::ended!(db, |tx| hierarchy.insert(&tx, &[], item))
        };
        let read = async |name: &str| {
            let path = &[name.into(), "x".into()];
            shared::ended!(db, |tx| hierarchy.get(&tx, path, Serializable))
        };
        // Where nothing exists, one read is sufficient.
        assert_eq!(insert(objects(11_000, 1)).await, Ok(()));
        assert_eq!(insert(objects(11_000, 2)).await, refused());
        assert_eq!(read("00000").await, Ok(Some(json!(1))));
        assert_eq!(insert(objects(9_900, 2)).await, Ok(()));
        assert_eq!(read("09899").await, Ok(Some(json!(2))));
        assert_eq!(read("09900").await, Ok(Some(json!(1))));
    });
}
