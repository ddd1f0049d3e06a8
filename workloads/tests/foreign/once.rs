//! The slots of sessions.

use crate::{Layer, calls::Calls, space, written};
use bytes::Bytes;
use foundationdb_tuple::Versionstamp;
use shaketable_layers::{
    blob::Generation,
    directory::Directory,
    id::Id,
    index::{Old, users::User},
    leased_queue::{Claim, Hold},
    log::Appended,
    once::{Answer, Check, Error, Fate, OpId, Packed, Session, Slots, check, converging, record, resolve},
    priority_queue, queue,
    scheduling::Change,
    staged_queue::{Registered, Request, Taken, Turn},
    tx::{Isolation::Serializable, RangeOption, Transaction},
};
use shaketable_sim::client::SimDatabase;
use std::fmt::Debug;

pub struct AllSlots(Slots);

const CLIENTS: [u64; 4] = [0, 1, u64::MAX, 7];

impl AllSlots {
    /// Asks for the fate of an operation whose answer is of this type.
    async fn ask<A: Answer + Debug>(&self, calls: &mut Calls, op: OpId) {
        let AllSlots(slots) = self;
        calls.tx("once::check", |tx| async move { check::<_, A>(&tx, slots, op).await }).await;
    }
}

impl Layer for AllSlots {
    const NAME: &'static str = "once";

    fn new() -> AllSlots {
        AllSlots(Slots::new(space()))
    }

    async fn write(&self, db: &SimDatabase) {
        let AllSlots(slots) = self;
        for client in CLIENTS.into_iter().take(3) {
            let mut session = Session::open(db, slots, client).await.expect("a calm cluster answers");
            let op = session.begin().await.expect("a calm cluster answers");
            let fate = session.resolve::<Bytes>(op).await.expect("a calm cluster answers");
            assert_eq!(fate, Fate::NotApplied);
            if client > 0 {
                let answered = session.apply(|_| async { Ok::<_, Error>(Some(Id::from("answer"))) }).await;
                assert!(matches!(answered, shaketable_layers::once::Outcome::Applied(_)), "{answered:?}");
            }
        }
    }

    async fn call(&self, calls: &mut Calls) {
        let AllSlots(slots) = self;
        let db = &calls.db.clone();
        for client in CLIENTS {
            for (epoch, seq) in [(1, 1), (1, 2), (0, 0), (2, 1), (u64::MAX, u64::MAX)] {
                let op = OpId { client, epoch, seq };
                let applied = |tx| async move {
                    match check::<_, Option<Id>>(&tx, slots, op).await? {
                        Check::New(permit) => record(&tx, permit, Some(Id::from("new"))).map(|_| ()),
                        Check::Done(_) => Ok(()),
                    }
                };
                calls.tx("once::record", applied).await;
                self.ask::<Option<Bytes>>(calls, op).await;
            }
            let op = OpId { client, epoch: 1, seq: 2 };
            self.ask::<()>(calls, op).await;
            self.ask::<bool>(calls, op).await;
            self.ask::<Vec<String>>(calls, op).await;
            self.ask::<Packed<(i64, Vec<u64>)>>(calls, op).await;
            self.ask::<Versionstamp>(calls, op).await;
            self.ask::<Generation>(calls, op).await;
            self.ask::<Directory>(calls, op).await;
            self.ask::<shaketable_layers::document::Id>(calls, op).await;
            self.ask::<Old<User>>(calls, op).await;
            self.ask::<Claim>(calls, op).await;
            self.ask::<Hold>(calls, op).await;
            self.ask::<Appended>(calls, op).await;
            self.ask::<priority_queue::Item>(calls, op).await;
            self.ask::<queue::Item>(calls, op).await;
            self.ask::<Change>(calls, op).await;
            self.ask::<Registered>(calls, op).await;
            self.ask::<Request>(calls, op).await;
            self.ask::<Taken>(calls, op).await;
            self.ask::<Turn>(calls, op).await;
        }
        let fences = |tx: <SimDatabase as shaketable_layers::tx::Database>::Transaction| async move {
            let rows = tx.get_range_all(RangeOption::from(space().range()), Serializable).await?;
            Ok::<_, Error>(rows.iter().filter(|row| slots.is_fence(&row.key, &row.value)).count())
        };
        calls.tx("Slots::is_fence", fences).await;
        for client in CLIENTS {
            let op = OpId { client, epoch: 1, seq: 2 };
            let resolved = async {
                let fate = resolve::<_, Option<Id>>(db, slots, op).await?;
                Ok::<_, Error>(fate.map(|id| format!("{id:?}")))
            };
            calls.call("once::resolve", resolved).await;
            let session = async {
                let mut session = Session::open(db, slots, client).await?;
                session.last::<Option<Id>>()?;
                let op = session.begin().await?;
                session.resolve::<Option<Id>>(op).await?;
                session.settled::<Option<Id>>()?;
                Ok::<_, Error>(format!("{:?}", session.apply(|_| async { Ok::<_, Error>(7i64) }).await))
            };
            calls.call("Session::open", session).await;
        }
        calls.run("once::converging", converging(db, |_| async { Ok::<_, Error>(()) })).await;
        written(db, |_| async { Ok::<_, Error>(()) }).await;
    }
}
