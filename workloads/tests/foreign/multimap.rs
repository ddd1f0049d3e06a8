//! Multimaps and multisets.

use crate::{Layer, calls::Calls, space, written};
use shaketable_layers::{
    label::Label,
    multimap::{Multimap, Multiset},
};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::Isolation::Serializable;

pub struct Multimaps {
    map: Multimap,
    set: Multiset,
}

pub fn labels() -> [Label; 5] {
    ["a".into(), 7.into(), Label::tuple(&[Label::nil(), "x".into()]), Label::nil(), (-0.0).into()]
}

impl Layer for Multimaps {
    const NAME: &'static str = "multimap";

    fn new() -> Multimaps {
        Multimaps { map: Multimap::new(space().subspace(&0)), set: Multiset::new(space().subspace(&1)) }
    }

    async fn write(&self, db: &SimDatabase) {
        written(db, |tx| async move {
            let labels = labels();
            for index in &labels[..2] {
                for value in &labels[2..4] {
                    self.map.add(&tx, index, value).await?;
                    self.set.add(&tx, index, value, 3).await?;
                }
            }
            Ok::<_, shaketable_layers::multimap::Error>(())
        })
        .await;
    }

    async fn call(&self, calls: &mut Calls) {
        let Multimaps { map, set } = self;
        for index in &labels() {
            for value in &labels()[2..] {
                calls.tx("Multimap::add", |tx| async move { map.add(&tx, index, value).await }).await;
                calls.tx("Multimap::remove", |tx| async move { map.remove(&tx, index, value).await }).await;
                let is = |tx| async move { map.is_element(&tx, index, value, Serializable).await };
                calls.tx("Multimap::is_element", is).await;
                let count = |tx| async move { set.count(&tx, index, value, Serializable).await };
                calls.tx("Multiset::count", count).await;
                for copies in [0, 3, u32::MAX] {
                    let add = |tx| async move { set.add(&tx, index, value, copies).await };
                    calls.tx("Multiset::add", add).await;
                    let remove = |tx| async move { set.remove(&tx, index, value, copies).await };
                    calls.tx("Multiset::remove", remove).await;
                }
            }
            calls.tx("Multimap::remove_all", |tx| async move { map.remove_all(&tx, index).await }).await;
            calls.tx("Multiset::remove_all", |tx| async move { set.remove_all(&tx, index).await }).await;
            calls
                .pages("Multimap::get", async |tx, after: Option<Label>| {
                    map.get(&tx, index, after.as_ref(), 1, Serializable).await.map(|mut page| page.pop())
                })
                .await;
            calls
                .pages("Multiset::get", async |tx, after: Option<Label>| {
                    let page = set.get(&tx, index, after.as_ref(), 1, Serializable).await;
                    page.map(|mut page| page.pop().map(|(value, _)| value))
                })
                .await;
        }
        calls
            .pages("Multimap::all", async |tx, after: Option<(Label, Label)>| {
                let after = after.as_ref().map(|(index, value)| (index, value));
                map.all(&tx, after, 1, Serializable).await.map(|mut page| page.pop())
            })
            .await;
        calls
            .pages("Multiset::all", async |tx, after: Option<(Label, Label)>| {
                let after = after.as_ref().map(|(index, value)| (index, value));
                set.all(&tx, after, 1, Serializable).await.map(|mut page| page.pop().map(|(pair, _)| pair))
            })
            .await;
        let labels = |tx| async move {
            // The elements that were read can be unpacked.
            let pairs = map.all(&tx, None, 1_000, Serializable).await?;
            Ok::<_, shaketable_layers::multimap::Error>(
                pairs
                    .iter()
                    .map(|(index, _)| (index.to::<Vec<Label>>(), index.to::<String>()))
                    .collect::<Vec<_>>(),
            )
        };
        calls.tx("Multimap::all", labels).await;
    }
}
