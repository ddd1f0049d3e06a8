//! The data modeling guide, "Hierarchies": nested dictionaries as tuples, and any sub-tree by its path.

use crate::shared::cluster::{begin, on_cluster};
use foundationdb_tuple::{Subspace, pack};
use serde_json::{Value, json};
use shaketable_layers::hierarchy::{Error, Hierarchy, Step, from_json, from_tuples, to_tuples};
use shaketable_tx::{Isolation::Serializable, RangeOption, Transaction};

fn users() -> Value {
    from_json(
        r#"{"user": {"jones": {"friendOf": "smith", "group": ["sales", "service"]},
                     "smith": {"friendOf": "jones", "group": ["dev", "research"]}}}"#,
    )
    .expect("JSON")
}

fn hier() -> Hierarchy {
    Hierarchy::new(Subspace::from("hier"))
}

fn path<const N: usize>(names: [&str; N]) -> [Step; N] {
    names.map(Step::from)
}

#[test]
fn two_users_are_six_tuples() {
    let tuples = to_tuples(&users()).expect("tuples");
    assert_eq!(
        json!(tuples),
        json!([
            ["user", "jones", "friendOf", "smith"],
            ["user", "jones", "group", 0, "sales"],
            ["user", "jones", "group", 1, "service"],
            ["user", "smith", "friendOf", "jones"],
            ["user", "smith", "group", 0, "dev"],
            ["user", "smith", "group", 1, "research"],
        ])
    );
    assert_eq!(from_tuples(&tuples), Ok(Some(users())));
}

#[test]
fn each_tuple_is_a_key_without_a_value() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        hier().insert(&tx, &[], &users()).await.expect("an insert");
        let rows = tx.get_range_all(RangeOption::from(Subspace::from("hier").range()), Serializable).await;
        let rows = rows.expect("the rows");
        let keys = [
            pack(&("hier", "user", "jones", "friendOf", "smith")),
            pack(&("hier", "user", "jones", "group", 0, "sales")),
            pack(&("hier", "user", "jones", "group", 1, "service")),
            pack(&("hier", "user", "smith", "friendOf", "jones")),
            pack(&("hier", "user", "smith", "group", 0, "dev")),
            pack(&("hier", "user", "smith", "group", 1, "research")),
        ];
        assert_eq!(rows.iter().map(|row| row.key.to_vec()).collect::<Vec<_>>(), keys);
        assert!(rows.iter().all(|row| row.value.is_empty()));
        tx.commit().await.expect("a commit");
    });
}

#[test]
fn a_path_retrieves_the_sub_tree_at_it() {
    on_cluster(|db| async move {
        let (tx, hier) = (begin(&db), hier());
        hier.insert(&tx, &[], &users()).await.expect("an insert");
        let get = async |path: &[Step]| hier.get(&tx, path, Serializable).await.expect("a read");
        let smith = json!({"friendOf": "jones", "group": ["dev", "research"]});
        assert_eq!(get(&path(["user", "smith"])).await, Some(smith));
        assert_eq!(get(&path(["user", "smith", "group"])).await, Some(json!(["dev", "research"])));
        assert_eq!(get(&path(["user", "smith", "friendOf"])).await, Some(json!("jones")));
        assert_eq!(get(&path(["user", "taylor"])).await, None);
        assert_eq!(get(&[]).await, Some(users()));
    });
}

#[test]
fn objects_about_the_same_entities_come_together() {
    on_cluster(|db| async move {
        let (tx, hier) = (begin(&db), hier());
        for text in [
            r#"{"user": {"jones": {"friendOf": "smith"}}}"#,
            r#"{"user": {"smith": {"friendOf": "jones", "group": ["dev"]}}}"#,
            r#"{"user": {"jones": {"group": ["sales", "service"]}, "smith": {"group": ["dev", "research"]}}}"#,
        ] {
            hier.insert(&tx, &[], &from_json(text).expect("JSON")).await.expect("an insert");
        }
        assert_eq!(hier.get(&tx, &[], Serializable).await, Ok(Some(users())));
    });
}

#[test]
fn what_was_written_last_holds() {
    on_cluster(|db| async move {
        let (tx, hier) = (begin(&db), hier());
        let states = [
            json!({"a": 5}),
            json!({"a": {"b": 1}}),
            json!({"a": "text"}),
            json!({"a": [1, 2, 3]}),
            json!({"a": ["x"]}),
            json!({"a": []}),
            json!({"a": {}}),
            json!({"a": {"c": -2}}),
            json!({"a": -1}),
        ];
        for state in states {
            hier.insert(&tx, &[], &state).await.expect("an insert");
            assert_eq!(hier.get(&tx, &[], Serializable).await, Ok(Some(state.clone())));
            let stored = hier.tuples(&tx, &[], Serializable).await.expect("the tuples");
            assert_eq!(Ok(stored), to_tuples(&state), "nothing else is left");
        }
    });
}

#[test]
fn a_list_whose_last_index_has_no_next_is_foreign() {
    on_cluster(|db| async move {
        let (tx, hier) = (begin(&db), hier());
        let key = pack(&("hier", "a", u64::MAX, 1));
        tx.set(&key, b"");
        tx.set(&pack(&("hier", "a", 0, 1)), b"");
        let appended = hier.replace(&tx, &["a".into(), 2.into()], &json!(2)).await;
        assert_eq!(appended, Err(Error::Foreign(key.into())));
    });
}

#[test]
fn an_object_keeps_its_place_when_its_last_member_goes() {
    on_cluster(|db| async move {
        let (tx, hier) = (begin(&db), hier());
        hier.replace(&tx, &path(["a", "b"]), &json!([1, 2, 3])).await.expect("a replace");
        assert_eq!(hier.remove(&tx, &["a".into(), "b".into(), 1.into()]).await, Ok(true));
        assert_eq!(hier.get(&tx, &[], Serializable).await, Ok(Some(json!({"a": {"b": [1, 3]}}))));
        assert_eq!(hier.remove(&tx, &path(["a", "b"])).await, Ok(true));
        assert_eq!(hier.get(&tx, &[], Serializable).await, Ok(Some(json!({"a": {}}))));
        assert_eq!(hier.remove(&tx, &path(["a", "b"])).await, Ok(false));
        hier.replace(&tx, &path(["a", "c"]), &json!(null)).await.expect("a replace");
        assert_eq!(hier.get(&tx, &[], Serializable).await, Ok(Some(json!({"a": {"c": null}}))));
        let through = hier.replace(&tx, &path(["a", "c", "d"]), &json!(1)).await;
        assert_eq!(through, Err(Error::NotAnObject("/a/c".into())));
    });
}
