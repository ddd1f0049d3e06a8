//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{MOST, NAMES, below, check_pages, space},
    cluster::{begin, on_cluster},
};
use shaketable_layers::index::{Table, users::User};
use shaketable_tx::Isolation::Serializable;

fn users() -> Table<User> {
    Table::new(&space())
}

shared::refused_calls! {
    [below(("index", "name", "k")), below("records")],
    "find": |tx| users().find(&tx, "name", &"k", Serializable),
    "find_covered": |tx| users().find_covered(&tx, "name", &"k", Serializable),
    "find_page": |tx|
        users().find_page(&tx, "name", &"k", None, MOST, Serializable),
    "records_page": |tx| users().records_page(&tx, None, MOST, Serializable),
    "find_between": |tx|
        users().find_between::<_, String>(&tx, "name", .., Serializable),
    "records": |tx| users().records(&tx, Serializable),
}

#[test]
fn pages_follow_each_other_and_a_short_one_is_the_last() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        let users = users();
        for id in NAMES {
            let user = User { id: id.into(), name: "n".into(), zipcode: None };
            users.set(&tx, &user).await.expect("a user");
        }
        let found = async |after: Option<(String, _)>, limit| {
            let after = after.as_ref().map(|(id, _)| id);
            users.find_page(&tx, "name", &"n", after, limit, Serializable).await.expect("a page")
        };
        check_pages(found, |(id, _)| id.clone()).await;
        let all = async |after: Option<User>, limit| {
            let after = after.as_ref().map(|user| &user.id);
            users.records_page(&tx, after, limit, Serializable).await.expect("a page")
        };
        check_pages(all, |user| user.id.clone()).await;
    });
}
