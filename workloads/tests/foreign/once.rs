//! The slots of sessions, with answers of every kind.

use crate::{Layer, calls::Calls, space};
use bytes::Bytes;
use foundationdb_tuple::{Subspace, Versionstamp};
use shaketable_layers::{
    blob::Generation,
    directory::{self, CandidateSeed, Directories, Directory, PARTITION},
    document,
    id::Id,
    index::{Old, users::User},
    leased_queue::{Claim, Hold},
    log::{self, Log},
    priority_queue::{self, Place},
    queue::{self, ItemId, Position},
    scheduling::Change,
    staged_queue::{self, RequestState, StagedQueue},
};
use shaketable_sim::client::{SimDatabase, SimTransaction};
use shaketable_tx::{
    Isolation::Serializable,
    RangeOption, RetryError, Transaction,
    once::{
        Answer, Check, Error, Fate, OpId, Outcome, Packed, Session, Slots, check, converging, record, resolve,
    },
};
use std::{fmt::Debug, future::Future};

pub struct AllSlots(Slots);

/// The client whose slot contains a directory.
const DIRECTORY: u64 = 12;

/// A client whose slot is fenced, one without a slot, and some with answers.
const CLIENTS: [u64; 5] = [10, u64::MAX, 11, DIRECTORY, 13];

const POSITION: Position = Position::Commit { stamp: [1; 10], rank: 300, id: ItemId([0; 16]) };

const HOLD: Hold = Hold { position: POSITION, token: 7 };

fn item() -> queue::Item {
    queue::Item { position: POSITION, value: Bytes::from_static(b"value") }
}

fn elsewhere(name: &str) -> Subspace {
    Subspace::from(("elsewhere", name))
}

async fn directory(tx: SimTransaction) -> Result<Directory, directory::Error> {
    let all = Directories::new(elsewhere("nodes"), elsewhere("content"));
    all.create(&tx, &["partition"], PARTITION, CandidateSeed(1)).await?;
    all.create(&tx, &["partition", "a"], b"tag", CandidateSeed(2)).await
}

async fn appended(tx: SimTransaction) -> Result<log::Appended, log::Error> {
    Log::new(elsewhere("log")).append(&tx, b"entry").await
}

async fn registered(tx: SimTransaction) -> Result<staged_queue::Registered, staged_queue::Error> {
    StagedQueue::new(elsewhere("staged")).register(&tx, ItemId([0xff; 16])).await
}

/// The last operations of clients, with one client for each kind of answer.
macro_rules! operations {
    ($each:ident) => {
        $each!(11, |_| async { Ok::<_, Error>(Some(Id::from("answer"))) });
        $each!(DIRECTORY, directory);
        $each!(13, |_| async { Ok::<_, Error>(vec![String::from("a"), String::new()]) });
        $each!(14, |_| async { Ok::<_, Error>(Packed((7i64, vec![u64::MAX, 0]))) });
        $each!(15, |_| async { Ok::<_, Error>(Versionstamp::incomplete(0)) });
        $each!(16, |_| async { Ok::<_, Error>(Generation { version: 1, step: 300 }) });
        $each!(17, |_| async { Ok::<_, Error>(document::Id::Number(u64::MAX)) });
        $each!(18, |_| async {
            Ok::<_, Error>(Old(User { id: "u".into(), name: "".into(), zipcode: None }))
        });
        $each!(19, |_| async { Ok::<_, Error>(Claim { hold: HOLD, value: Bytes::from_static(b"value") }) });
        $each!(20, |_| async { Ok::<_, Error>(HOLD) });
        $each!(21, appended);
        $each!(22, |_| async {
            let place = Place { priority: -1, count: 2, id: ItemId([3; 16]) };
            Ok::<_, Error>(Some(priority_queue::Item { place, value: Bytes::new() }))
        });
        $each!(23, |_| async { Ok::<_, Error>(item()) });
        $each!(24, |_| async { Ok::<_, Error>(Change::Made) });
        $each!(25, registered);
        $each!(26, |_| async { Ok::<_, Error>(RequestState::Given(Some(item()))) });
        $each!(27, |_| async { Ok::<_, Error>(staged_queue::Taken::Now(Some(item()))) });
        $each!(28, |_| async { Ok::<_, Error>(true) });
        $each!(29, |_| async { Ok::<_, Error>(()) });
        $each!(30, |_| async { Ok::<_, Error>(Bytes::from_static(b"\0\xff")) });
    };
}

/// Checks a client's last operation, whose answer has the type of `operation`'s result.
async fn ask<A, E, F>(calls: &mut Calls, slots: &Slots, client: u64, _operation: impl Fn(SimTransaction) -> F)
where
    F: Future<Output = Result<A, E>>,
    A: Answer + Debug,
{
    let op = OpId { client, epoch: 1, seq: 1 };
    calls.tx("once::check", |tx| async move { check::<_, A>(&tx, slots, op).await }).await;
}

/// Applies an operation in a session that is then dropped.
async fn done<A, E, F>(
    db: &SimDatabase,
    slots: &Slots,
    client: u64,
    operation: impl Fn(SimTransaction) -> F + Send + Sync,
) where
    F: Future<Output = Result<A, E>> + Send,
    A: Answer + Debug,
    E: RetryError + From<Error> + Debug + Send,
{
    let mut session = Session::open(db, slots, client).await.expect("a calm cluster answers");
    let outcome = session.apply(operation).await;
    assert!(matches!(outcome, Outcome::Applied(_)), "{outcome:?}");
}

impl Layer for AllSlots {
    const NAME: &'static str = "once";

    const HAS_TUPLES: bool = false;

    fn new() -> AllSlots {
        AllSlots(Slots::new(space()))
    }

    async fn write(&self, db: &SimDatabase) {
        let AllSlots(slots) = self;
        let mut session = Session::open(db, slots, 10).await.expect("a calm cluster answers");
        let op = session.begin().await.expect("a calm cluster answers");
        assert_eq!(session.resolve::<Bytes>(op).await, Ok(Fate::NotApplied));
        macro_rules! done {
            ($client:expr, $operation:expr) => {
                done(db, slots, $client, $operation).await;
            };
        }
        operations!(done);
    }

    async fn call(&self, calls: &mut Calls) {
        let AllSlots(slots) = self;
        macro_rules! ask {
            ($client:expr, $operation:expr) => {
                ask(calls, slots, $client, $operation).await;
            };
        }
        operations!(ask);
        let directory = |tx| async move {
            match check(&tx, slots, OpId { client: DIRECTORY, epoch: 1, seq: 1 }).await? {
                Check::New(_) => Ok(None),
                Check::Done(found) => {
                    let found: Directory = found;
                    found.below().list(&tx, &[], Serializable).await.ok();
                    found.exists(&tx, Serializable).await.map(Some)
                }
            }
        };
        calls.tx::<_, directory::Error, _>("Directory::exists", directory).await;
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
            }
        }
        let fences = |tx: SimTransaction| async move {
            let rows = tx.get_range_all(RangeOption::from(space().range()), Serializable).await?;
            Ok::<_, Error>(rows.iter().filter(|row| slots.is_fence(&row.key, &row.value)).count())
        };
        calls.tx("Slots::is_fence", fences).await;
        let db = &calls.db.clone();
        for client in CLIENTS.into_iter().chain(14..=30) {
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
        calls.run("once::converging", async { converging(db, |_| async { Ok::<_, Error>(()) }).await }).await;
    }
}
