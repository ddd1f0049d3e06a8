//! `staged_queue`: many concurrent dequeues, served in order, while clients die, leave and never come back.
//!
//! A dequeue is several transactions, some of which serve other clients. The model therefore follows what
//! each transaction wrote. Every transaction must be a step that the queue allows: it appends, takes, parks,
//! collects or brings back an item, or registers or leaves a request. The order must be the promised one, and
//! each operation must return the result of its own steps. Some clients leave their request as if they had
//! died. If a dequeue is dropped while its client lives, what it was given belongs to the client's next
//! dequeue. A request is also read, served, collected and left in one transaction, which sees what it has
//! done itself.

#[cfg(test)]
mod bounds;
mod client;
mod composed;
#[cfg(test)]
mod documents;
mod model;
mod operations;
mod planted;
mod stage;

pub use client::Client;
pub use model::Model;
pub use operations::{Answer, Batch, Name, Part, PartAnswer, RequestAnswer, RequestCall};

use crate::shared::{
    self, check_ended, compare, ended, in_turns, objection, one_call, session_keys, stamp, turned, unexpected,
};
use bytes::Bytes;
use client::{dequeue_within, give_up, refused, register, taken};
use foundationdb_tuple::{Bytes as TupleBytes, Subspace};
use futures::FutureExt;
use imbl::OrdMap;
use operations::{crowd, name};
use planted::{BUGS, Planted};
use proptest::{collection::vec, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit, isolation, sessions,
    specimen::Recorded,
    workload::{Bug, Outcome, Step},
};
use shaketable_layers::{
    queue::{ItemId, Position},
    staged_queue::{Error, MAX_VALUE_BYTES, RequestState, StagedQueue},
};
use shaketable_sim::seed::Stream;
use shaketable_tx::{self as tx, Database, Db, Isolation::Serializable, Tx};
use stage::{Stage, stored};
use std::ops::{Range, RangeInclusive};

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Staged {
    clients: usize,
    operations: Range<usize>,
    /// The weights of operations that enqueue, dequeue, leave, reclaim, look, and do several things at once.
    mix: [u32; 6],
    /// How long a parked item is watched before it is brought back, in milliseconds.
    patience: u64,
    /// The maximum padding of values, in bytes.
    padding: u16,
    /// Whether more requests may wait, and more items be there, than one transaction serves and moves.
    crowded: bool,
    /// The timeout that clients set on their database, in milliseconds.
    timeout: Option<i32>,
    planted: Option<Planted>,
}

fn staged() -> StagedQueue {
    StagedQueue::new(Subspace::from("staged"))
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Staged>()
}

impl StagedOp {
    /// Whether it continues a dequeue of its session that was dropped.
    fn dequeues(&self) -> bool {
        use StagedOp::*;
        matches!(self, dequeue {} | within { .. } | cut { .. } | leave {} | vanish {})
    }

    /// The items that it enqueues, if that is all it does.
    fn batch(&self) -> Option<&Batch> {
        use StagedOp::*;
        match self {
            enqueue { batch } | enqueue_several { batch } | enqueue_full { batch } => Some(batch),
            _ => None,
        }
    }

    /// All items that it enqueues.
    fn batches(&mut self) -> Vec<&mut Batch> {
        use StagedOp::*;
        match self {
            enqueue { batch } | enqueue_several { batch } | enqueue_full { batch } => vec![batch],
            call_request { calls } => calls.iter_mut().filter_map(RequestCall::batch).collect(),
            together { parts } => parts.iter_mut().filter_map(Part::batch).collect(),
            _ => Vec::new(),
        }
    }
}

/// Dequeues that register and serve each other, in order, while clients die.
#[shaketable::workload(name = "staged_queue", session = Client, answer = Answer, model = Model)]
impl Staged {
    /// Enqueues an item.
    #[write(weight = 4 * self.mix[0], blind)]
    async fn enqueue(&self, client: &mut Client, #[draw(self.batch(1..2))] batch: Batch) -> Outcome<Answer> {
        let session = &mut client.session;
        let enqueued = match &batch.values()[..] {
            [value] => staged().enqueue_once(session, value).await.map(drop),
            // In the next two operations.
            _ => {
                let items = &batch.draw(session.database().env());
                session.apply(|tx| async move { composed::put(&tx, items).await }).await
            }
        };
        ended(enqueued, |()| Answer::Enqueued, refused)
    }

    /// Enqueues several items in one transaction.
    #[write(weight = self.mix[0], blind)]
    async fn enqueue_several(
        &self,
        client: &mut Client,
        #[draw(self.batch(2..5))] batch: Batch,
    ) -> Outcome<Answer> {
        self.enqueue(client, batch).await
    }

    /// Enqueues items of the maximum size in one transaction.
    #[write(weight = if self.crowded { 6 } else { 1 }, blind)]
    async fn enqueue_full(&self, client: &mut Client, #[draw(self.full())] batch: Batch) -> Outcome<Answer> {
        self.enqueue(client, batch).await
    }

    /// Dequeues an item.
    #[write(weight = 4 * self.mix[1])]
    async fn dequeue(&self, client: &mut Client) -> Outcome<Answer> {
        let dequeued = self.certain(&mut client.session, async |session| staged().dequeue(session).await);
        dequeued.await.map_or_else(|outcome| outcome, taken)
    }

    /// Dequeues an item, or gives up after this many tenths of a millisecond.
    #[write(weight = 2 * self.mix[1])]
    async fn within(
        &self,
        client: &mut Client,
        #[draw(select(&[0, 1, 10, 50, 100, 300, 1_000, 5_000][..]))] patience: u16,
    ) -> Outcome<Answer> {
        dequeue_within(&mut client.session, operations::patience(patience)).await
    }

    /// Dequeues an item, unless it still waits after this many polls: then the future is dropped.
    #[write(weight = self.mix[1])]
    async fn cut(&self, client: &mut Client, #[draw(1u8..60)] polls: u8) -> Outcome<Answer> {
        let dequeued = sessions::polled(u64::from(polls), self.dequeue(client)).await;
        dequeued.unwrap_or(Outcome::Unknown(tx::Error::OPERATION_CANCELLED))
    }

    /// Requests an item and does not wait: gives the request up.
    #[write(weight = self.mix[2])]
    async fn leave(&self, client: &mut Client) -> Outcome<Answer> {
        match self.ask(&mut client.session).await {
            Ok(RequestState::Given(item)) => taken(item),
            Ok(RequestState::Waiting(request)) => give_up(&mut client.session, request).await,
            Ok(RequestState::Gone) => {
                Outcome::Violated("asked for an item, and the request is gone".to_owned())
            }
            Err(outcome) => outcome,
        }
    }

    /// Requests an item and stops.
    #[write(weight = self.mix[2])]
    async fn vanish(&self, client: &mut Client) -> Outcome<Answer> {
        match self.ask(&mut client.session).await {
            Ok(RequestState::Given(item)) => taken(item),
            Ok(_) => Outcome::Answered(Answer::Away),
            Err(outcome) => outcome,
        }
    }

    /// Registers a request without a record, and gives it up if it is known to have committed.
    #[write(weight = self.mix[2])]
    async fn enlist(&self, client: &mut Client) -> Outcome<Answer> {
        match register(client.db()).await {
            Ok(request) => give_up(&mut client.session, request).await,
            Err(outcome) => outcome,
        }
    }

    /// Brings back what was not collected.
    #[write(weight = self.mix[3])]
    async fn reclaim(&self, client: &mut Client) -> Outcome<Answer> {
        match self.bring_back(client.db()).await {
            Ok(()) => Outcome::Answered(Answer::Reclaimed),
            // Some of it may have happened, or may still happen; nothing depends on that.
            Err(e) => unexpected(&e, Outcome::Unknown),
        }
    }

    /// Reads the first item.
    #[read(weight = self.mix[4])]
    async fn peek(&self, client: &mut Client) -> Outcome<Answer> {
        let peek = |tx, _| async move { staged().peek(&turned(&tx), Serializable).await };
        match client.db().run(peek).await.map(|item| item.as_ref().map(name).transpose()) {
            Ok(Ok(name)) => Outcome::Answered(Answer::First(name)),
            Ok(Err(why)) => Outcome::Violated(why),
            Err(e) => refused(e.error),
        }
    }

    /// Counts the items.
    #[read(weight = self.mix[4])]
    async fn count(&self, client: &mut Client) -> Outcome<Answer> {
        let count = |tx, isolation| async move { staged().len(&turned(&tx), isolation).await };
        let counted =
            client.db().run(|tx, _| async move { isolation::at_both_levels(&tx, &"the count", count).await });
        counted.await.map_or_else(|e| refused(e.error), |n| Outcome::Answered(Answer::Count(n)))
    }

    /// Reads everything, row by row.
    #[read(weight = self.mix[4])]
    async fn survey(&self, client: &mut Client) -> Outcome<Answer> {
        match client.db().run(|tx, _| async move { stored(&tx).await }).await {
            Ok(Ok(Stage { items, requests, parked })) => {
                Outcome::Answered(Answer::Rows([items.len(), requests.len(), parked.len()]))
            }
            Ok(Err(why)) => Outcome::Violated(why),
            Err(e) => Outcome::Failed(e.error),
        }
    }

    /// Does several things in one transaction.
    #[write(weight = 2 * self.mix[5])]
    async fn together(&self, client: &mut Client, #[draw(self.parts())] parts: &[Part]) -> Outcome<Answer> {
        let env = &client.db().env().clone();
        let values = &parts.iter().map(|part| part.values(env)).collect::<Vec<_>>();
        let tickets = &parts.iter().map(|_| ItemId::draw(env)).collect::<Vec<_>>();
        let together = client.session.apply(|tx| async move {
            let perform =
                |n: usize, tx| async move { parts[n].perform(&tx, &values[n], tickets[n]).await }.boxed();
            let interleaved = self.planted == Some(Planted::Interleaved);
            in_turns(env, &tx, parts.len(), interleaved, perform).await.map(Recorded)
        });
        ended(together.await, |Recorded(answers)| Answer::Parts(answers), refused)
    }

    /// Registers a request without a record. If that is known to have committed, performs these calls with it
    /// in one transaction, and then stops.
    #[write(weight = self.mix[5])]
    async fn call_request(
        &self,
        client: &mut Client,
        #[draw(self.calls())] calls: &[RequestCall],
    ) -> Outcome<Answer> {
        let db = &client.db().clone();
        let request = match register(db).await {
            Ok(request) => request,
            Err(outcome) => return outcome,
        };
        let values = &calls.iter().map(|call| call.values(db.env())).collect::<Vec<_>>();
        let done = async {
            let answers = client.session.apply(|tx| async move {
                let mut answers = Vec::new();
                for (call, values) in calls.iter().zip(values) {
                    answers.push(match (self.planted, call) {
                        (Some(Planted::TurnBeside), RequestCall::Turn) => planted::turn(db, request).await?,
                        _ => call.perform(&tx, request, values).await?,
                    });
                }
                Ok::<_, Error>(Recorded(answers))
            });
            let answers = answers.await;
            match sessions::known(&mut client.session, answers).await {
                Ok(Some(Recorded(answers))) => Outcome::Answered(Answer::Request(answers)),
                // Refused, or not performed: the request stands.
                Ok(None) | Err(Error::OwnUnreadable) => Outcome::Answered(Answer::Away),
                Err(e) => Outcome::Violated(e.to_string()),
            }
        };
        self.patiently(db, done).await
    }

    /// Tries to enqueue a value that exceeds the limit by this many bytes.
    #[write(rare)]
    async fn oversized(
        &self,
        client: &mut Client,
        #[draw(prop_oneof![Just(1u16), 1..500u16])] beyond: u16,
    ) -> Outcome<Answer> {
        let value = vec![0; MAX_VALUE_BYTES + usize::from(beyond)];
        let enqueued = staged().enqueue_once(&mut client.session, &value).await;
        ended(enqueued, |_| Answer::Enqueued, refused)
    }

    /// Enqueues into a queue whose prefix is so long that a key has the maximum length, or this many bytes
    /// more.
    #[write(rare)]
    async fn deep(&self, client: &mut Client, #[draw(0..2usize)] beyond: usize) -> Outcome<Answer> {
        let id = ItemId::draw(client.db().env());
        let deep = client.session.apply(|tx| async move {
            let tx = one_call(&tx, false).await;
            let queue = StagedQueue::new(shared::deep(&tx, id, beyond).await?);
            queue.enqueue(&tx, id, b"").await?;
            shared::fits(&tx, &id).await?;
            Ok::<(), Error>(())
        });
        ended(deep.await, |()| Answer::Enqueued, refused)
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<StagedOp>> {
        let op = match self.crowded {
            true => prop_oneof![20 => self.operation(client), 1 => crowd()].boxed(),
            false => self.operation(client),
        };
        let named = move |mut ops: Vec<StagedOp>| {
            for (number, batch) in (0..).zip(ops.iter_mut().flat_map(StagedOp::batches)) {
                (batch.client, batch.number) = (client as u16, number);
            }
            ops
        };
        vec(op, self.operations.clone()).prop_map(named).boxed()
    }

    fn length(&mut self) -> Option<&mut Range<usize>> {
        Some(&mut self.operations)
    }

    /// A client that leaves does not know the fate of its request, and a dequeue that failed may have served
    /// others.
    fn may_land_late(&self, answer: &Answer) -> bool {
        matches!(answer, Answer::Away | Answer::Failed(_))
    }

    /// A dequeue registers, serves others, and collects what it was given.
    fn effects(&self, op: &StagedOp) -> RangeInclusive<usize> {
        match op {
            StagedOp::together { .. } | StagedOp::oversized { .. } | StagedOp::deep { .. } => 0..=1,
            op if op.batch().is_some() => 0..=1,
            _ => 0..=usize::MAX,
        }
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "staged_queue: a dequeue finds others waiting",
            "staged_queue: several requests are served at once",
            "staged_queue: more wait than one transaction moves items for",
            "staged_queue: a request is told that there is no item",
            "staged_queue: a client leaves while it waits",
            "staged_queue: an item comes back",
            "staged_queue: a dequeue finds what a dropped one was given",
            "staged_queue: a dequeue gives up and finds what it was given",
        ]
    }

    fn is_given_up(&self, op: &StagedOp) -> bool {
        matches!(op, StagedOp::cut { .. })
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Staged {
        let most = rng.range(8..30) as usize;
        let rare = [(); 4].map(|()| rng.range(1..4));
        let mix = [rng.range(4..12), rng.range(4..12), rare[0], rare[1], rare[2], rare[3]];
        let mut drawn = Staged {
            clients: rng.range(2..10) as usize,
            operations: most / 2..most,
            mix: mix.map(|w| w as u32),
            patience: *rng.pick(&[1, 5, 30, 200]),
            padding: *rng.pick(&[0, 100, 3_000]),
            crowded: rng.chance(0.1),
            timeout: sessions::draw_timeout(rng),
            planted: bug.and_then(Planted::named),
        };
        if drawn.crowded {
            // A transaction that moves a megabyte takes longer than a short timeout, and would be repeated
            // for ever.
            drawn.timeout = drawn.timeout.filter(|milliseconds| *milliseconds >= 1_000);
        }
        drawn
    }

    fn keys(&self) -> Vec<Bytes> {
        let rows = (0..2)
            .flat_map(|part| (1..6).map(move |n| staged().subspace().subspace(&part).pack(&stamp(n)).into()));
        let parked = |n: u8| staged().subspace().subspace(&2).pack(&TupleBytes::from(&[n][..])).into();
        session_keys(self.clients).chain(rows).chain([64, 128, 192].map(parked)).collect()
    }

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Client> {
        let session = sessions::open(db, client, self.timeout).await?;
        Ok(Client { session, calls: 0, open: None })
    }

    async fn apply_planted(&self, client: &mut Client, op: &StagedOp) -> Option<Outcome<Answer>> {
        client.begins(op);
        let outcome = planted::apply(self, client, op).await?;
        Some(client.ends(op, outcome))
    }

    async fn apply(&self, client: &mut Client, op: &StagedOp) -> Outcome<Answer> {
        let outcome = self.perform(client, op).await;
        client.ends(op, outcome)
    }

    async fn resolve_dropped(&self, client: &mut Client) {
        sessions::resolve_dropped(&mut client.session, self.timeout).await;
    }

    async fn resolve(&self, client: &mut Client, op: &StagedOp, error: tx::Error) -> Outcome<Answer> {
        if op.dequeues() {
            // It may have registered a request, with which the next dequeue of the session continues.
            return Outcome::Unknown(error);
        }
        sessions::resolve_unknown(&mut client.session, self.timeout, error, async |session, pending| {
            let enqueued = || Outcome::Answered(Answer::Enqueued);
            Ok(match op {
                StagedOp::enqueue { .. } | StagedOp::enqueue_full { batch: Batch { items: 1, .. } } => {
                    session.resolve(pending).await?.map(|_: Position| enqueued())
                }
                StagedOp::together { .. } => {
                    let parts = session.resolve(pending).await?;
                    parts.map(|Recorded(answers)| Outcome::Answered(Answer::Parts(answers)))
                }
                _ => session.resolve(pending).await?.map(|()| enqueued()),
            })
        })
        .await
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        self.follow(model, step)
    }

    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        Ok(stored(tx).await?.and_then(|stage| stage.check()).map_err(Misfit::from))
    }

    /// Clients that are dead do not return: what was parked for them is brought back, and every item that was
    /// not given to a client must be there.
    async fn check(&self, db: &Db, model: &Model) -> tx::Result<Result<(), Misfit>> {
        if let Err(why) = objection(&model.told, |call, told| model.misled(call, told)) {
            return Ok(Err(why));
        }
        if let Err(e) = self.bring_back(db).await {
            return check_ended(&e);
        }
        let read = db.run(|tx, _| async move { stored(&tx).await }).await.map_err(|e| e.error)?;
        let expected = Stage {
            items: model.stage.remaining(),
            requests: model.stage.requests.clone(),
            parked: OrdMap::new(),
        };
        Ok(read.map_err(Misfit::from).and_then(|stage| compare(&stage, &expected)))
    }
}
