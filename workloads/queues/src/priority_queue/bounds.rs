//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{MOST, NAMES, check_pages, space},
    cluster::{begin, on_cluster},
};
use shaketable_layers::{
    priority_queue::{Item, PriorityQueue},
    queue::ItemId,
};
use shaketable_tx::Isolation::Serializable;

shared::refused_calls! {
    [space()],
    "len": |tx| PriorityQueue::new(space()).len(&tx, Serializable),
    "items": |tx| PriorityQueue::new(space()).items(&tx, Serializable),
    "items_page": |tx| PriorityQueue::new(space()).items_page(&tx, None, MOST, Serializable),
}

#[test]
fn pages_follow_each_other_and_a_short_one_is_the_last() {
    on_cluster(|db| async move {
        let tx = begin(&db);
        let queue = PriorityQueue::new(space());
        for (n, name) in (0..).zip(NAMES) {
            queue.push(&tx, ItemId([n; 16]), i64::from(n / 3), name.as_bytes()).await.expect("an item");
        }
        let page = async |after: Option<Item>, limit| {
            let after = after.map(|item| item.place);
            queue.items_page(&tx, after, limit, Serializable).await.expect("a page")
        };
        check_pages(page, |item| String::from_utf8_lossy(&item.value).into_owned()).await;
    });
}
