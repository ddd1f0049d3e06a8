//! Versionstamps: a log that is appended to without conflicts, scanned, and tailed.

use crate::shared::cluster::on_cluster;
use foundationdb_tuple::Subspace;
use futures::future::join;
use shaketable_layers::log::{Error, Log};
use shaketable_tx::{
    Database,
    Isolation::Serializable,
    once::{Outcome, Session, Slots},
};
use std::time::Duration;

fn log() -> Log {
    Log::new(Subspace::from("log"))
}

#[test]
fn an_append_answers_where_its_entry_is() {
    on_cluster(|db| async move {
        let slots = Slots::new(Subspace::from("sessions"));
        let mut session = Session::open(&db, &slots, 1).await.expect("a session");
        let first = session.apply(|tx| async move { log().append(&tx, b"first").await }).await;
        let Outcome::Applied(first) = first else { panic!("not applied") };
        let batch: [&[u8]; 2] = [b"second", b"third"];
        let third = session.apply(|tx| async move {
            log().append(&tx, batch[0]).await?;
            log().append(&tx, batch[1]).await
        });
        let Outcome::Applied(third) = third.await else { panic!("not applied") };
        let [first, third] = [first, third].map(|appended| appended.position().expect("it was applied"));
        let read = db.run(|tx, _| async move {
            let behind = log().scan(&tx, Some(first), 10, Serializable).await?;
            Ok::<_, Error>((log().scan(&tx, None, 1, Serializable).await?, behind))
        });
        let (start, behind) = read.await.expect("a look");
        assert_eq!((start[0].position, &start[0].value[..]), (first, &b"first"[..]));
        let values: Vec<_> = behind.iter().map(|entry| &entry.value[..]).collect();
        assert_eq!(values, batch);
        assert_eq!(behind[1].position, third);
        assert_eq!(behind[0].position.stamp, third.stamp);
    });
}

#[test]
fn a_tail_wakes_when_something_is_appended() {
    on_cluster(|db| async move {
        let env = db.env();
        let began = env.now();
        let appended = async {
            env.sleep(Duration::from_secs(2)).await;
            db.run(|tx, _| async move { log().append(&tx, b"news").await }).await
        };
        let log = log();
        let (tailed, appended) = join(log.tail(&db, None, 10, Duration::from_secs(50)), appended).await;
        appended.expect("an append");
        let entries = tailed.expect("a tail");
        assert_eq!(entries.len(), 1);
        let waited = env.now() - began;
        assert!(waited >= Duration::from_secs(2) && waited < Duration::from_secs(10), "{waited:?}");

        let after = Some(entries[0].position);
        let nothing = log.tail(&db, after, 10, Duration::from_secs(1)).await.expect("a tail");
        assert!(nothing.is_empty());

        let began = env.now();
        let nothing = log.tail(&db, None, 0, Duration::from_secs(10)).await.expect("a tail");
        assert!(nothing.is_empty());
        assert!(env.now() - began < Duration::from_secs(1), "there is nothing to wait for");
    });
}
