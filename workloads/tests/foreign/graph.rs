//! Graphs of friends and followers.

use crate::{Layer, calls::Calls, entity::ids, space, written};
use shaketable_layers::{graph::Graph, id::Id};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::Isolation::Serializable;

pub struct Graphs(Graph);

impl Layer for Graphs {
    const NAME: &'static str = "graph";

    fn new() -> Graphs {
        Graphs(Graph::new(space()))
    }

    async fn write(&self, db: &SimDatabase) {
        let Graphs(graph) = self;
        written(db, |tx| async move {
            let [smith, seven, bytes, least, _] = ids();
            graph.add_friend(&tx, &smith, &seven).await?;
            graph.add_friend(&tx, &seven, &bytes).await?;
            graph.add_friend(&tx, &smith, &least).await?;
            graph.follow(&tx, &bytes, &seven).await?;
            graph.follow(&tx, &seven, &smith).await
        })
        .await
    }

    async fn call(&self, calls: &mut Calls) {
        let Graphs(graph) = self;
        for id in &ids() {
            let [_, other, ..] = &ids();
            calls.tx("Graph::friends", |tx| async move { graph.friends(&tx, id, Serializable).await }).await;
            calls
                .tx("Graph::following", |tx| async move { graph.following(&tx, id, Serializable).await })
                .await;
            calls
                .tx("Graph::followers", |tx| async move { graph.followers(&tx, id, Serializable).await })
                .await;
            let second = |tx| async move { graph.friends_of_friends(&tx, id, Serializable).await };
            calls.tx("Graph::friends_of_friends", second).await;
            calls
                .pages("Graph::friends_page", async |tx, after: Option<Id>| {
                    graph
                        .friends_page(&tx, id, after.as_ref(), 1, Serializable)
                        .await
                        .map(|mut page| page.pop())
                })
                .await;
            calls
                .pages("Graph::following_page", async |tx, after: Option<Id>| {
                    graph
                        .following_page(&tx, id, after.as_ref(), 1, Serializable)
                        .await
                        .map(|mut page| page.pop())
                })
                .await;
            calls
                .pages("Graph::followers_page", async |tx, after: Option<Id>| {
                    graph
                        .followers_page(&tx, id, after.as_ref(), 1, Serializable)
                        .await
                        .map(|mut page| page.pop())
                })
                .await;
            let are = |tx| async move { graph.are_friends(&tx, id, other, Serializable).await };
            calls.tx("Graph::are_friends", are).await;
            calls
                .tx("Graph::follows", |tx| async move { graph.follows(&tx, id, other, Serializable).await })
                .await;
            calls.tx("Graph::add_friend", |tx| async move { graph.add_friend(&tx, id, other).await }).await;
            calls
                .tx("Graph::remove_friend", |tx| async move { graph.remove_friend(&tx, id, other).await })
                .await;
            calls.tx("Graph::follow", |tx| async move { graph.follow(&tx, id, other).await }).await;
            calls.tx("Graph::unfollow", |tx| async move { graph.unfollow(&tx, id, other).await }).await;
            calls.tx("Graph::remove_user", |tx| async move { graph.remove_user(&tx, id).await }).await;
        }
    }
}
