//! Layers that are right as long as their clients are what a simple run has: clients that return after each
//! death under their own number, in one process each, with one clock.

use parking_lot::Mutex;
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable::{
    Bug, Misfit, Outcome, Shake, Step, Workload, entry::entry, finding::Kind, plan::Demands,
    specimen::Mounted,
};
use shaketable_sim::{
    faults::Profile,
    proto::Mutation,
    seed::{Seed, Stream},
};
use shaketable_tx::{Database, Db, Error, Isolation::Serializable, Transaction, Tx};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The workload. Its configuration is what is wrong.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Shared {
    lie: Lie,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Lie {
    /// A lock is released by its owner, or taken over by who has seen it unchanged for a while.
    None,
    /// A lock is released by its owner alone, which finds it again after its death.
    OwnersReturn,
    /// Ids are counted in a static.
    StaticIds,
    /// A row ends at a time of its writer's clock, ten minutes later.
    StoredClock,
    /// The opened state has a block of numbers: the next one is read, used, and counted after that.
    CountedLate,
    /// What is written clears everything before the first key of the layer.
    ClearsBefore,
}

const LIES: [(&str, Lie); 6] = [
    ("none", Lie::None),
    ("owners-return", Lie::OwnersReturn),
    ("static-ids", Lie::StaticIds),
    ("stored-clock", Lie::StoredClock),
    ("counted-late", Lie::CountedLate),
    ("clears-before", Lie::ClearsBefore),
];

const BUGS: &[Bug] = &[
    lie("none"),
    lie("owners-return"),
    lie("static-ids"),
    lie("stored-clock"),
    lie("counted-late"),
    lie("clears-before"),
];

const fn lie(name: &'static str) -> Bug {
    Bug { name, about: "what is wrong with the layer", source: "this test", only_simulated: None }
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

const LOCK: &[u8] = b"lock";
const ROW: &[u8] = b"row";
/// Longer than a clock is ahead or late under faults.
const LIFE: Duration = Duration::from_secs(600);
const PATIENCE: Duration = Duration::from_secs(2);

const COUNTER: &[u8] = b"counter";
/// How many numbers an opened state takes from the counter at once.
const BLOCK: u64 = 8;

/// The number of the row that is written or was read.
type Answer = Option<u64>;

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Op {
    /// Does something under the lock.
    Guarded,
    /// Writes the row.
    Put,
    /// Reads the row.
    Get,
    /// Makes a row with a number that no other row has.
    New,
}

#[derive(Clone, Debug, Default)]
struct Model {
    row: Answer,
    /// Which operation made the row with a number.
    made: BTreeMap<u64, (usize, usize)>,
}

/// A client.
struct Client {
    db: Db,
    number: u64,
    /// The opened state: the next number and the end of the block.
    block: Arc<Mutex<(u64, u64)>>,
}

fn numbers(value: &[u8]) -> Vec<u64> {
    value.chunks_exact(8).map(|part| u64::from_be_bytes(part.try_into().expect("eight bytes"))).collect()
}

impl Shared {
    /// Takes the lock. Returns the value that it now has.
    async fn take(&self, client: &Client) -> Result<Vec<u8>, Error> {
        let env = client.db.env();
        let mut seen = None;
        loop {
            let mine = [client.number.to_be_bytes(), env.random_u64().to_be_bytes()].concat();
            let taken = &mine;
            let is_late = seen.as_ref().is_some_and(|(_, since)| env.now() > *since + PATIENCE);
            let expected = seen.as_ref().map(|(lock, _)| lock).filter(|_| is_late && self.lie == Lie::None);
            let found = client.db.run(|tx, _| async move {
                let found = tx.get(LOCK, Serializable).await?;
                let is_free = found.is_none() || found.as_ref() == expected;
                let was_mine = found.as_ref().is_some_and(|lock| numbers(lock)[0] == client.number);
                if is_free || was_mine {
                    tx.set(LOCK, taken);
                    return Ok(None);
                }
                Ok::<_, Error>(found)
            });
            let Some(found) = found.await.map_err(|e| e.error)? else { return Ok(mine) };
            if seen.as_ref().is_none_or(|(lock, _)| *lock != found) {
                seen = Some((found, env.now()));
            }
            env.sleep(Duration::from_millis(10)).await;
        }
    }

    async fn guarded(&self, client: &Client) -> Result<Answer, Error> {
        let mine = &self.take(client).await?;
        client.db.env().sleep(Duration::from_millis(20)).await;
        let released = client.db.run(|tx, _| async move {
            if tx.get(LOCK, Serializable).await?.as_ref().is_some_and(|lock| lock == mine) {
                tx.clear(LOCK);
            }
            Ok::<_, Error>(None)
        });
        released.await.map_err(|e| e.error)
    }

    async fn put(&self, client: &Client) -> Result<Answer, Error> {
        let id = match self.lie {
            Lie::StaticIds => NEXT_ID.fetch_add(1, Ordering::Relaxed),
            _ => client.db.env().random_u64(),
        };
        let ends = (client.db.env().now() + LIFE).as_nanos() as u64;
        let value = &[id.to_be_bytes(), ends.to_be_bytes()].concat();
        let put = client.db.run(|tx, _| async move {
            tx.set(ROW, value);
            if self.lie == Lie::ClearsBefore {
                tx.clear_range(b"", COUNTER);
            }
            Ok::<_, Error>(Some(id))
        });
        put.await.map_err(|e| e.error)
    }

    async fn new_row(&self, client: &Client) -> Result<Answer, Error> {
        let is_used_up = |(next, end)| next == end;
        while is_used_up(*client.block.lock()) {
            let taken = client.db.run(|tx, _| async move {
                let first = tx.get(COUNTER, Serializable).await?.map_or(0, |value| numbers(&value)[0]);
                tx.set(COUNTER, &(first + BLOCK).to_be_bytes());
                Ok::<_, Error>(first)
            });
            let first = taken.await.map_err(|e| e.error)?;
            // Another task may have been faster.
            if is_used_up(*client.block.lock()) {
                *client.block.lock() = (first, first + BLOCK);
            }
        }
        let (next, end) = *client.block.lock();
        let count = || *client.block.lock() = (next + 1, end);
        if self.lie != Lie::CountedLate {
            count();
        }
        let key = &[b"new", &next.to_be_bytes()[..]].concat();
        let made = client.db.run(|tx, _| async move {
            tx.set(key, b"");
            Ok::<_, Error>(Some(next))
        });
        let made = made.await.map_err(|e| e.error);
        if self.lie == Lie::CountedLate {
            count();
        }
        made
    }

    async fn get(&self, client: &Client) -> Result<Answer, Error> {
        let read = client.db.run(|tx, _| async move { tx.get(ROW, Serializable).await });
        let read = read.await.map_err(|e| e.error)?.map(|row| numbers(&row));
        let now = client.db.env().now().as_nanos() as u64;
        let is_over = |ends: u64| self.lie == Lie::StoredClock && ends < now;
        Ok(read.filter(|row| !is_over(row[1])).map(|row| row[0]))
    }
}

impl Workload for Shared {
    type Op = Op;
    type Answer = Answer;
    type Session = Client;
    type Model = Model;

    const NAME: &'static str = "shared";
    const ABOUT: &'static str = "a lock and a row";
    const TASKS: bool = true;

    fn effects(&self, _: &Op) -> std::ops::RangeInclusive<usize> {
        0..=usize::MAX
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn draw(_: &mut Stream, bug: Option<&str>) -> Shared {
        let lie = LIES.iter().find(|(name, _)| bug == Some(name));
        Shared { lie: lie.map_or(Lie::None, |(_, lie)| *lie) }
    }

    fn clients(&self) -> usize {
        3
    }

    fn keys(&self) -> Vec<bytes::Bytes> {
        vec![LOCK.into(), ROW.into()]
    }

    fn operations(&self, _: usize) -> BoxedStrategy<Vec<Op>> {
        vec(prop_oneof![Just(Op::Guarded), Just(Op::Put), Just(Op::Get), Just(Op::New)], 20..30).boxed()
    }

    async fn open(&self, db: &Db, client: usize) -> Result<Client, Error> {
        Ok(Client { db: db.clone(), number: client as u64, block: Arc::default() })
    }

    async fn open_beside(&self, db: &Db, client: usize, other: &mut Client) -> Result<Client, Error> {
        Ok(Client { block: other.block.clone(), ..self.open(db, client).await? })
    }

    async fn apply(&self, client: &mut Client, op: &Op) -> Outcome<Answer> {
        let done = match op {
            Op::Guarded => self.guarded(client).await,
            Op::Put => self.put(client).await,
            Op::Get => self.get(client).await,
            Op::New => self.new_row(client).await,
        };
        done.map_or_else(Outcome::Unknown, Outcome::Answered)
    }

    fn model(&self) -> Model {
        Model::default()
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        for mutation in step.mutations {
            let Mutation::Set(key, value) = mutation else { continue };
            if *key == ROW {
                model.row = Some(numbers(value)[0]);
            }
            if let Some(number) = key.strip_prefix(b"new") {
                // A commit whose result is unknown is repeated by its operation.
                let by = (step.client, step.index);
                let first = *model.made.entry(numbers(number)[0]).or_insert(by);
                if first != by {
                    return Err(
                        format!("made a row that operation {} of client {} made", first.1, first.0).into()
                    );
                }
            }
        }
        match (step.op, step.answer) {
            (Op::Get, Some(read)) if *read != model.row => {
                Err(format!("read {read:?} where the model has {:?}", model.row).into())
            }
            _ => Ok(()),
        }
    }

    async fn audit(&self, _: &Tx) -> Result<Result<(), Misfit>, Error> {
        Ok(Ok(()))
    }

    async fn check(&self, _: &Db, _: &Model) -> Result<Result<(), Misfit>, Error> {
        Ok(Ok(()))
    }
}

/// Shakes a layer until it is caught, and checks the kind of its first finding and the reason.
fn is_caught(lie: &str, seeds: u64, kind: Kind, why: &str) {
    let (_, result) = Shake::<Shared>::new().seeds(0..seeds).bug(lie).run().failed.expect("it is caught");
    let findings = result.findings;
    assert!(findings.iter().any(|f| f.kind == kind && f.message.contains(why)), "{findings:?}");
}

#[test]
fn a_layer_that_needs_no_client_to_return_passes() {
    Shake::<Shared>::new().seeds(0..100).assert();
    Shake::<Shared>::new().seeds(0..30).faults(Profile::Storm).assert();
}

/// What a client held is free again without that client.
#[test]
fn a_client_that_never_returns_blocks_nobody() {
    is_caught("owners-return", 50, Kind::Live, "has waited for its operation");
}

#[test]
fn a_static_shows_in_the_second_run_of_a_seed() {
    is_caught("static-ids", 1, Kind::Determinism, "asks for: set \"row\" = ");
}

/// The clocks of two processes have no common origin.
#[test]
fn a_time_that_another_process_stored_means_nothing() {
    is_caught("stored-clock", 5, Kind::Model, "read None where the model has Some");
}

/// Several operations are in flight over one opened state.
#[test]
fn tasks_of_one_process_race_over_its_opened_state() {
    is_caught("counted-late", 20, Kind::Model, "made a row that operation");
}

#[test]
fn rows_of_neighbours_are_left_alone() {
    is_caught("clears-before", 1, Kind::Neighbours, "is not the layer's");
}

mod large {
    use shaketable::{prelude::*, specimen::Content};

    shaketable_tx::refusals! {
        /// Nothing is refused.
        pub enum Refusal {}
    }

    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub(super) struct Large;

    /// A value that is large: a run soon has read more than its history keeps.
    #[shaketable::workload(name = "large", model = Value)]
    impl Large {
        #[write]
        async fn put(&self, tx: &Tx, #[draw(0..100u8)] byte: u8) -> Result<(), Refusal> {
            tx.writing().await.set(b"value", &vec![byte; LENGTH]);
            Ok(())
        }

        #[read(weight = 4)]
        async fn get(&self, tx: &Tx) -> Result<Option<Content>, Refusal> {
            Ok(tx.reading().await.get(b"value", Serializable).await?.map(|value| Content::from(&value)))
        }

        #[stored]
        async fn stored(&self, tx: &Tx) -> tx::Result<Value> {
            let value = tx.reading().await.get(b"value", Serializable).await?;
            Ok(Value(value.map(|value| Content::from(&value))))
        }
    }

    const LENGTH: usize = 99_000;

    #[derive(Clone, Debug, Default, PartialEq)]
    pub(super) struct Value(Option<Content>);

    impl Value {
        fn put(&mut self, byte: u8) -> Result<(), Refusal> {
            self.0 = Some(Content::of(byte, LENGTH));
            Ok(())
        }

        fn get(&self) -> Result<Option<Content>, Refusal> {
            Ok(self.0.clone())
        }
    }
}

/// A run of which the trace is kept forgets nothing.
#[test]
fn what_a_long_run_forgets_changes_no_verdict_and_no_witness() {
    let entry = entry::<Mounted<large::Large>>();
    for (seed, bug) in [(2, None), (4, Some("kept-version"))] {
        let scale = 60.try_into().expect("a scale");
        let demands = Demands { bug: bug.map(str::to_owned), scale, ..Demands::default() };
        let run = |keep_trace| {
            let result = entry.run(Seed(seed), &demands, keep_trace);
            (result.findings, result.event_hash, result.counters, result.outcomes)
        };
        let forgetful = run(false);
        assert_eq!(forgetful, run(true));
        assert_eq!(forgetful.0.is_empty(), bug.is_none());
        // The history lets go of what was judged whenever it has grown by 32 MB.
        assert!(forgetful.2.attempts > 1_000, "{} attempts are too few", forgetful.2.attempts);
    }
}
