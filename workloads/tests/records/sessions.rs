//! Exactly once: what a session does on a store happens once, whatever happens to the commits.

use crate::{
    cluster::{self, session},
    fixture::{commit, open, stores},
    on_cluster,
    schema::{assert_indexes, meta_data, rows, simple, with},
};
use foundationdb_tuple::Subspace;
use prost_reflect::Value;
use shaketable_layers::queue::{ItemId, Order, Queue};
use shaketable_record::{
    error::Error,
    store::{RecordContext, RecordStore},
    value::Tuple,
};
use shaketable_sim::{
    faults::{FaultPlan, Profile},
    rt::SECOND,
    seed::Seed,
};
use shaketable_tx::{
    self as tx, Database, Db,
    Isolation::Serializable,
    Transaction,
    once::{self, Outcome, Session, Slots},
};

fn number(number: i32) -> [(&'static str, Value); 1] {
    [("num_value_2", Value::I32(number))]
}

#[test]
fn an_insert_is_applied_once_although_its_commit_is_repeated() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        let mut session = session(&db).await;
        let op = session.begin().await.unwrap();
        // The attempt commits, but the client does not learn of it; the loop tries again.
        let attempt = |op: once::OpId| {
            let (db, stores, slots) = (db.clone(), stores.clone(), session.slots().clone());
            let record = simple(&meta_data, 1, number(1));
            async move {
                let tx = db.create_transaction().unwrap();
                let permit = match once::check::<_, ()>(&tx, &slots, op).await.unwrap() {
                    once::Check::Done(()) => return false,
                    once::Check::New(permit) => permit,
                };
                let context = RecordContext::within(tx.clone());
                let store = stores.create_or_open(&context).await.unwrap();
                store.insert_record(&record).await.expect("not there yet");
                context.close();
                once::record(&tx, permit, ()).unwrap();
                tx.commit().await.unwrap();
                true
            }
        };
        assert!(attempt(op).await);
        assert!(!attempt(op).await, "the second attempt finds what the first one did");
        let insert = |store: RecordStore<_>| {
            let record = simple(&meta_data, 1, number(2));
            async move { store.insert_record(&record).await.map(|_| ()) }
        };
        let again: Outcome<(), Error> = {
            let mut other = Session::open(&db, session.slots(), 1).await.unwrap();
            stores.run(&mut other, insert).await
        };
        assert_eq!(again, Outcome::Refused(Error::Exists(Tuple::from(1))));
    });
}

/// What a test of several layers can meet.
#[derive(Debug, PartialEq, thiserror::Error)]
enum Mixed {
    #[error(transparent)]
    Records(#[from] Error),
    #[error(transparent)]
    Queue(#[from] shaketable_layers::queue::Error),
    #[error(transparent)]
    Once(#[from] once::Error),
    #[error(transparent)]
    Fdb(#[from] tx::Error),
}

impl tx::RetryError for Mixed {
    fn fdb(&self) -> Option<tx::Error> {
        match self {
            Mixed::Records(error) => error.fdb(),
            Mixed::Queue(error) => error.fdb(),
            Mixed::Once(error) => error.fdb(),
            Mixed::Fdb(error) => Some(*error),
        }
    }
}

#[test]
fn a_record_and_an_item_of_a_queue_are_one_transaction() {
    on_cluster(|db| async move {
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        let queue = &Queue::new(Subspace::from("q"), Order::Index);
        let mut session = session(&db).await;
        for (rec_no, refuse) in [(1, false), (2, true)] {
            let (meta_data, id) = (&meta_data, ItemId::draw(db.env()));
            let outcome: Outcome<(), Mixed> = stores
                .run(&mut session, |store| async move {
                    store.save_record(&simple(meta_data, rec_no, [])).await?;
                    queue.enqueue(store.context().transaction()?, id, b"item").await?;
                    if refuse {
                        return Err(Error::NotFound(Tuple::from(rec_no)).into());
                    }
                    Ok(())
                })
                .await;
            match refuse {
                false => assert_eq!(outcome, Outcome::Applied(())),
                true => assert_eq!(outcome, Outcome::Refused(Error::NotFound(Tuple::from(2)).into())),
            }
        }
        assert_eq!(queue.len(&cluster::begin(&db), Serializable).await, Ok(1));
        let store = open(&stores, &db).await;
        assert!(store.load_record(&Tuple::from(1)).await.unwrap().is_some());
        assert!(store.load_record(&Tuple::from(2)).await.unwrap().is_none());
        commit(store).await;
    });
}

#[test]
fn changes_are_made_once_under_faults() {
    // Commits whose result is unknown, among others.
    let plan = FaultPlan::draw(Seed(5), Profile::Storm, 5 * SECOND, &[]);
    cluster::under(plan, |machine| async move {
        let db = Db::new(machine.open());
        let meta_data = meta_data();
        let stores = stores("s", meta_data.clone());
        let mut session = loop {
            if let Ok(session) = Session::open(&db, &Slots::new(Subspace::from("sessions")), 0).await {
                break session;
            }
        };
        let mut applied = 0;
        for _ in 0..40 {
            let meta_data = &meta_data;
            let outcome: Outcome<(), Error> = stores
                .run(&mut session, |store| async move {
                    let old = store.load_record(&Tuple::from(1)).await?;
                    let field = old.and_then(|old| old.message.get_field_by_name("num_value_2")?.as_i32());
                    let next = simple(meta_data, 1, number(field.unwrap_or(0) + 1));
                    store.save_record(&next).await.map(|_| ())
                })
                .await;
            applied += match outcome {
                Outcome::Applied(()) => 1,
                Outcome::Refused(error) => panic!("{error}"),
                Outcome::Unknown(op) => loop {
                    match session.resolve::<()>(op).await {
                        Ok(once::Fate::Applied(())) => break 1,
                        Ok(_) => break 0,
                        Err(_) => {}
                    }
                },
            };
        }
        assert!(applied > 0);
        let store = with(&stores, &db, async |store| {
            assert_indexes(store).await;
            store.load_record(&Tuple::from(1)).await.unwrap().unwrap()
        });
        let found = store.await.message.get_field_by_name("num_value_2").unwrap().as_i32();
        assert_eq!(found, Some(applied));
        assert!(!rows(&db).await.is_empty());
    });
}
