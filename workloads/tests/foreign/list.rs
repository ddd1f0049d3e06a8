//! Linked lists.

use crate::{Layer, calls::Calls, entity::ids, space, written};
use shaketable_layers::{
    id::Id,
    list::{List, NEXT},
};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::Isolation::Serializable;

pub struct Lists(List);

impl Layer for Lists {
    const NAME: &'static str = "list";

    fn new() -> Lists {
        Lists(List::new(space()))
    }

    async fn write(&self, db: &SimDatabase) {
        let Lists(list) = self;
        written(db, |tx| async move {
            let [smith, seven, bytes, least, _] = ids();
            for id in [&smith, &seven, &bytes, &least] {
                list.push_front(&tx, id, b"value").await?;
            }
            list.set_attribute(&tx, &seven, "name", b"value").await
        })
        .await;
    }

    async fn call(&self, calls: &mut Calls) {
        let Lists(list) = self;
        let new = &Id::from("new");
        for id in &ids() {
            let [_, other, ..] = &ids();
            calls
                .tx("List::insert_after", |tx| async move { list.insert_after(&tx, id, new, b"").await })
                .await;
            calls.tx("List::push_front", |tx| async move { list.push_front(&tx, id, b"").await }).await;
            calls
                .tx("List::remove_next_node", |tx| async move { list.remove_next_node(&tx, id).await })
                .await;
            let remove = |tx| async move { list.remove_next_node_if(&tx, id, Some(other)).await };
            calls.tx("List::remove_next_node_if", remove).await;
            calls.tx("List::next", |tx| async move { list.next(&tx, id, Serializable).await }).await;
            calls.tx("List::contains", |tx| async move { list.contains(&tx, id, Serializable).await }).await;
            calls
                .tx("List::walk", |tx| async move { list.walk(&tx, Some(id), 2_000, Serializable).await })
                .await;
            calls.tx("List::value", |tx| async move { list.value(&tx, id, Serializable).await }).await;
            calls.tx("List::set_value", |tx| async move { list.set_value(&tx, id, b"new").await }).await;
            for name in ["name", "", NEXT] {
                let set = |tx| async move { list.set_attribute(&tx, id, name, b"new").await };
                calls.tx("List::set_attribute", set).await;
                let clear = |tx| async move { list.clear_attribute(&tx, id, name).await };
                calls.tx("List::clear_attribute", clear).await;
                let attribute = |tx| async move { list.attribute(&tx, id, name, Serializable).await };
                calls.tx("List::attribute", attribute).await;
            }
            calls
                .tx("List::attributes", |tx| async move { list.attributes(&tx, id, Serializable).await })
                .await;
        }
        calls.tx("List::push_front", |tx| async move { list.push_front(&tx, new, b"").await }).await;
        calls.tx("List::remove_first", |tx| async move { list.remove_first(&tx).await }).await;
        calls.tx("List::first", |tx| async move { list.first(&tx, Serializable).await }).await;
        calls
            .tx("List::walk", |tx| async move { list.walk(&tx, None, usize::MAX, Serializable).await })
            .await;
        let remove_all = |tx| async move {
            let mut removed = Vec::new();
            while let Some(node) = list.remove_first(&tx).await? {
                assert!(removed.len() < 100, "{removed:?}");
                removed.push(node);
            }
            Ok::<_, shaketable_layers::list::Error>(removed)
        };
        calls.tx("List::remove_first", remove_all).await;
    }
}
