//! Logs.

use crate::{Layer, calls::Calls, space, written};
use shaketable_layers::log::{Log, Position};
use shaketable_sim::client::SimDatabase;
use shaketable_tx::Isolation::{Serializable, Snapshot};
use std::time::Duration;

pub struct Logs(Log);

impl Layer for Logs {
    const NAME: &'static str = "log";

    fn new() -> Logs {
        Logs(Log::new(space()))
    }

    async fn write(&self, db: &SimDatabase) {
        let Logs(log) = self;
        for _ in 0..3 {
            written(db, |tx| async move {
                log.append(&tx, b"first").await?;
                log.append(&tx, b"second").await
            })
            .await;
        }
    }

    async fn call(&self, calls: &mut Calls) {
        let Logs(log) = self;
        let positions = [([0; 10], 0), ([1; 10], 300), ([0xff; 10], i64::MAX), ([0xff; 10], i64::MIN)];
        for position in positions.map(|(stamp, rank)| Position { stamp, rank }) {
            calls.tx("Log::scan", |tx| async move { log.scan(&tx, Some(position), 9, Snapshot).await }).await;
            calls.tx("Log::trim", |tx| async move { log.trim(&tx, position).await }).await;
        }
        calls.tx("Log::append", |tx| async move { log.append(&tx, b"new").await }).await;
        calls.tx("Log::scan", |tx| async move { log.scan(&tx, None, usize::MAX, Serializable).await }).await;
        calls.tx("Log::last", |tx| async move { log.last(&tx, Serializable).await }).await;
        calls
            .pages("Log::scan", async |tx, after: Option<Position>| {
                log.scan(&tx, after, 1, Serializable)
                    .await
                    .map(|mut page| page.pop().map(|entry| entry.position))
            })
            .await;
        let db = &calls.db.clone();
        let patience = Duration::from_secs(1);
        calls.run("Log::tail", async { log.tail(db, None, 2, patience).await }).await;
        let last = Position { stamp: [0xff; 10], rank: i64::MAX };
        calls.run("Log::tail", async { log.tail(db, Some(last), 2, patience).await }).await;
    }
}
