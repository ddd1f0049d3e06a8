//! Layers whose lies leave a trace that one judge alone looks at.

use shaketable::finding::{Finding, Kind, Verdict};
use shaketable::{Misfit, prelude::*};
use shaketable_tx::{Db, Error, KeySelector, Tx};
use std::{cell::Cell, ops::RangeInclusive, time::Duration};

/// The finding of this kind in the first of these seeds that does not pass.
fn found<W: Workload>(shake: Shake<W>, bug: &str, kind: Kind) -> Finding {
    let (_, result) = shake.bug(bug).run().failed.unwrap_or_else(|| panic!("{bug} is not caught"));
    assert_ne!(result.verdict(), Verdict::Harness, "{:?}", result.findings);
    let of_kind = result.findings.iter().find(|finding| finding.kind == kind);
    of_kind.unwrap_or_else(|| panic!("{bug}: {:?}", result.findings)).clone()
}

mod totals {
    use shaketable::prelude::*;
    use shaketable_tx::Tx;
    use std::collections::BTreeMap;

    shaketable_tx::refusals! {
        /// Why a number is refused.
        pub enum Refusal { Zero = "it is zero" }
    }

    const SLOTS: u32 = 6;

    fn slot(number: u32) -> Vec<u8> {
        format!("slot/{number}").into_bytes()
    }

    fn number(value: Option<Bytes>) -> u64 {
        value.and_then(|value| value[..].try_into().ok()).map_or(0, u64::from_le_bytes)
    }

    /// Stores a number and the total of all, of which the others are read at this isolation.
    async fn put(tx: &Tx, at: u32, value: u64, isolation: Isolation) -> Result<(), Refusal> {
        let tx = tx.writing().await;
        if value == 0 {
            return Err(Refusal::Zero);
        }
        let mut total = value;
        for other in (0..SLOTS).filter(|other| *other != at) {
            total += number(tx.get(&slot(other), isolation).await?);
        }
        tx.set(&slot(at), &value.to_le_bytes());
        tx.set(b"total", &total.to_le_bytes());
        Ok(())
    }

    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub(super) struct Totals;

    /// Numbers, and their total.
    #[shaketable::workload(name = "totals", model = Stored, planted)]
    impl Totals {
        const TRANSACTIONS: std::ops::Range<u64> = 20..40;

        #[draws(at)]
        fn at() -> impl Strategy<Value = u32> {
            0..SLOTS
        }

        #[write]
        async fn put(&self, tx: &Tx, at: u32, #[draw(0..100u64)] value: u64) -> Result<(), Refusal> {
            put(tx, at, value, Serializable).await
        }

        #[read]
        async fn get(&self, tx: &Tx, isolation: Isolation, at: u32) -> Result<u64, Refusal> {
            Ok(number(tx.reading().await.get(&slot(at), isolation).await?))
        }

        #[stored]
        async fn stored(&self, tx: &Tx) -> tx::Result<Stored> {
            let mut numbers = BTreeMap::new();
            for at in 0..SLOTS {
                if let Some(value) = tx.get(&slot(at), Serializable).await? {
                    numbers.insert(at, number(Some(value)));
                }
            }
            Ok(Stored(numbers, number(tx.get(b"total", Serializable).await?)))
        }
    }

    #[derive(Clone, Debug, Default, PartialEq)]
    pub(super) struct Stored(BTreeMap<u32, u64>, u64);

    impl Stored {
        fn put(&mut self, at: u32, value: u64) -> Result<(), Refusal> {
            if value == 0 {
                return Err(Refusal::Zero);
            }
            self.0.insert(at, value);
            self.1 = self.0.values().sum();
            Ok(())
        }

        fn get(&self, at: u32) -> Result<u64, Refusal> {
            Ok(self.0.get(&at).copied().unwrap_or(0))
        }
    }

    #[shaketable::planted]
    impl Totals {
        /// The total is that of a snapshot, until the next operation.
        #[bug(put, "a lie")]
        async fn snapshot_total(&self, tx: &Tx, at: u32, value: u64) -> Result<(), Refusal> {
            put(tx, at, value, Snapshot).await
        }
    }
}

#[test]
fn what_is_stored_is_the_model_at_each_audited_version() {
    Shake::<Mounted<totals::Totals>>::new().seeds(0..50).assert();
    let found = found(Shake::<Mounted<totals::Totals>>::new().seeds(0..5), "snapshot-total", Kind::Check);
    assert!(found.message.starts_with("from version "), "{found:?}");
    assert!(found.message.contains(": the database holds "), "{found:?}");
    assert!(found.witness.expected.is_some() && !found.witness.attempts.is_empty(), "{found:?}");
}

mod queues {
    use super::*;

    shaketable_tx::refusals! {
        /// Why an item is refused.
        pub enum Refusal { Full = "the queue is full" }
    }

    fn at(index: u32) -> Vec<u8> {
        [b"queue/", &index.to_be_bytes()[..]].concat()
    }

    async fn enqueue(tx: &Tx, item: u64, isolation: Isolation) -> Result<(), Refusal> {
        let last = tx.get_key(&KeySelector::last_less_than(&b"queue0"[..]), isolation).await?;
        let last = last.strip_prefix(b"queue/").and_then(|index| index.try_into().ok());
        let index = last.map_or(0, |last| u32::from_be_bytes(last) + 1);
        if index == 1_000 {
            return Err(Refusal::Full);
        }
        tx.set(&at(index), &item.to_le_bytes());
        Ok(())
    }

    macro_rules! queue {
        ($(#[doc = $about:literal])+ $name:ident, $isolation:ident, $may_overwrite:literal) => {
            #[derive(Clone, Debug, Default, Serialize, Deserialize)]
            pub struct $name;

            $(#[doc = $about])+
            #[shaketable::workload]
            impl $name {
                const MAY_OVERWRITE: bool = $may_overwrite;

                #[write]
                async fn enqueue(&self, tx: &Tx, #[draw(any::<u64>())] item: u64) -> Result<(), Refusal> {
                    enqueue(tx, item, $isolation).await
                }

                #[invariant("nothing is before the first")]
                async fn holds(&self, tx: &Tx) -> Result<bool, Refusal> {
                    Ok(tx.get(b"queue/", Serializable).await?.is_none())
                }
            }
        };
    }

    queue! {
        /// A queue.
        Sound, Serializable, false
    }
    queue! {
        /// A queue in which two items may have one index.
        Loses, Snapshot, false
    }
    queue! {
        /// Slots of which the last writer wins.
        LastWins, Snapshot, true
    }
}

#[test]
fn an_item_that_another_one_overwrites_is_lost() {
    Shake::<Guarded<queues::Sound>>::new().seeds(0..50).assert();
    Shake::<Guarded<queues::LastWins>>::new().seeds(0..20).assert();
    let swept = Shake::<Guarded<queues::Loses>>::new().seeds(0..5).run();
    let (_, result) = swept.failed.expect("it loses items");
    let [finding] = &result.findings[..] else { panic!("{:?}", result.findings) };
    assert_eq!(finding.kind, Kind::Overwritten);
    assert!(finding.message.contains("in the meantime, which is lost"), "{finding:?}");
    assert_eq!((finding.witness.operations.len(), finding.witness.attempts.len()), (2, 2), "{finding:?}");
}

/// Rows in a subspace, of which some operations reach for the key behind it or before it.
macro_rules! edges {
    ($(#[doc = $about:literal])+ $name:ident, $begin:literal, $end:literal, $read:literal) => {
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        pub struct $name;

        $(#[doc = $about])+
        #[shaketable::workload]
        impl $name {
            fn subspaces(&self) -> [(Vec<u8>, Vec<u8>); 1] {
                [(b"rows/".to_vec(), b"rows0".to_vec())]
            }

            #[write]
            async fn put(&self, tx: &Tx, #[draw(0..9u8)] row: u8) -> Result<(), queues::Refusal> {
                tx.set(&[b"rows/", &[row][..]].concat(), b"");
                Ok(())
            }

            #[write]
            async fn reset(&self, tx: &Tx) -> Result<(), queues::Refusal> {
                tx.clear_range($begin, $end);
                Ok(())
            }

            #[invariant("a row is a byte")]
            async fn holds(&self, tx: &Tx) -> Result<bool, queues::Refusal> {
                let rows = RangeOption::new(b"rows/".to_vec(), $read.to_vec());
                let rows = tx.get_range_all(rows, Serializable).await?;
                Ok(rows.iter().all(|row| row.key.len() == 6))
            }
        }
    };
}

edges! {
    /// Exactly the rows are cleared.
    Exact, b"rows/", b"rows0", b"rows0"
}
edges! {
    /// The end of the range is cleared with it.
    EndIncluded, b"rows/", b"rows0\0", b"rows0"
}
edges! {
    /// The end is that of a shorter prefix.
    ShorterPrefix, b"rows/", b"rowt", b"rows0"
}
edges! {
    /// The range begins before the separator.
    NoSeparator, b"rows", b"rows0", b"rows0"
}
edges! {
    /// The end of the range is read with it.
    ReadsEnd, b"rows/", b"rows0", b"rows0\0"
}

#[test]
fn what_is_beside_a_subspace_is_left_alone() {
    Shake::<Guarded<Exact>>::new().seeds(0..50).assert();
    fn is_found<I: shaketable::Invariants>(kind: Kind, why: &str) {
        let (_, result) = Shake::<Guarded<I>>::new().seeds(0..1).run().failed.expect("it is caught");
        let found = result.findings.iter().find(|found| found.kind == kind);
        let found = found.unwrap_or_else(|| panic!("{:?}", result.findings));
        assert!(found.message.contains(why), "{found:?}");
    }
    let beside = |key: &str| format!("and {key:?} in it is not the layer's: it is in none of its subspaces");
    is_found::<EndIncluded>(Kind::Neighbours, &beside("rows0"));
    is_found::<ShorterPrefix>(Kind::Neighbours, &beside("rows0"));
    is_found::<NoSeparator>(Kind::Neighbours, &beside("rows"));
    // It finds the row of another application.
    is_found::<ReadsEnd>(Kind::Audit, "a row is a byte: does not hold");
}

/// A counter whose clients lie about what became of an operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Counter {
    planted: Option<Planted>,
}

planted_bugs! {
    BlindRepeat = "blind-repeat", "an addition is repeated after an unknown result", "a lie";
    NeverWrites = "never-writes", "an addition is answered and not made", "a lie";
    ConflictUnknown = "conflict-unknown", "a conflict is returned as an unknown outcome", "a lie";
    Remembered = "remembered", "a count is answered from memory forever", "a lie";
    IgnoresOwn = "ignores-own", "a count is remembered for a second, also over own additions", "a lie";
    Stalls = "stalls", "a client waits for 12 s after each conflict", "a lie";
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Op {
    /// Adds once.
    Add,
    /// Adds twice, in two transactions.
    Twice,
    /// Reads a count that may be old.
    Count,
}

/// The state of a client.
struct Client {
    db: Db,
    remembered: Cell<Option<(u64, Duration)>>,
}

const KEY: &[u8] = b"count";

fn number(value: Option<Bytes>) -> u64 {
    value.and_then(|value| value[..].try_into().ok()).map_or(0, u64::from_le_bytes)
}

impl Counter {
    fn lies(&self, lie: Planted) -> bool {
        self.planted == Some(lie)
    }

    /// Adds to the count that is stored, and returns it.
    async fn add(&self, db: &Db, by: u64) -> Outcome<u64> {
        let tx = match db.create_transaction() {
            Ok(tx) => tx,
            Err(e) => return Outcome::Failed(e),
        };
        loop {
            let added = async {
                let count = number(tx.get(KEY, Serializable).await?) + by;
                if by > 0 {
                    tx.set(KEY, &count.to_le_bytes());
                }
                Ok(count)
            };
            let error = match added.await {
                Ok(count) => match tx.commit().await {
                    Ok(()) => return Outcome::Answered(count),
                    Err(e) if e.is_retryable_not_committed() => e,
                    Err(e) if self.lies(Planted::BlindRepeat) => e,
                    Err(e) => return Outcome::Unknown(e),
                },
                Err(e) => e,
            };
            if error == Error::NOT_COMMITTED {
                if self.lies(Planted::ConflictUnknown) {
                    return Outcome::Unknown(error);
                }
                if self.lies(Planted::Stalls) {
                    db.env().sleep(Duration::from_secs(12)).await;
                }
            }
            if let Err(e) = tx.on_error(error).await {
                return Outcome::Failed(e);
            }
        }
    }
}

impl Workload for Counter {
    type Op = Op;
    type Answer = Option<u64>;
    type Session = Client;
    type Model = u64;

    const NAME: &'static str = "counter";
    const ABOUT: &'static str = "a counter";

    fn effects(&self, op: &Op) -> RangeInclusive<usize> {
        match op {
            Op::Add => 1..=1,
            Op::Twice => 2..=2,
            Op::Count => 0..=0,
        }
    }

    fn staleness(&self, op: &Op) -> Option<Staleness> {
        matches!(op, Op::Count).then(Staleness::default)
    }

    fn time_limit(&self, _: &Op) -> Option<Duration> {
        Some(Duration::from_secs(10))
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn draw(_: &mut Stream, bug: Option<&str>) -> Counter {
        Counter { planted: bug.and_then(Planted::named) }
    }

    fn clients(&self) -> usize {
        4
    }

    fn keys(&self) -> Vec<Bytes> {
        vec![KEY.into()]
    }

    fn operations(&self, _: usize) -> BoxedStrategy<Vec<Op>> {
        vec(prop_oneof![3 => Just(Op::Add), 1 => Just(Op::Twice), 2 => Just(Op::Count)], 15..30).boxed()
    }

    async fn open(&self, db: &Db, _: usize) -> tx::Result<Client> {
        Ok(Client { db: db.clone(), remembered: Cell::new(None) })
    }

    async fn apply(&self, client: &mut Client, op: &Op) -> Outcome<Option<u64>> {
        let now = client.db.env().now();
        let kept = match (client.remembered.get(), self.planted) {
            (Some((count, _)), Some(Planted::Remembered)) => Some(count),
            (Some((count, at)), Some(Planted::IgnoresOwn)) if now < at + Duration::from_secs(1) => {
                Some(count)
            }
            _ => None,
        };
        let done = match op {
            Op::Count => match kept {
                Some(count) => Outcome::Answered(count),
                None => self.add(&client.db, 0).await,
            },
            Op::Add if self.lies(Planted::NeverWrites) => Outcome::Answered(0),
            Op::Add => self.add(&client.db, 1).await,
            Op::Twice => match self.add(&client.db, 1).await {
                Outcome::Answered(_) => match self.add(&client.db, 1).await {
                    Outcome::Failed(e) => Outcome::Unknown(e),
                    outcome => outcome,
                },
                outcome => outcome,
            },
        };
        match (op, done) {
            (Op::Count, Outcome::Answered(count)) => {
                client.remembered.set(Some((count, now)));
                Outcome::Answered(Some(count))
            }
            (_, Outcome::Answered(_)) => Outcome::Answered(None),
            (_, Outcome::Failed(e)) => Outcome::Failed(e),
            (_, Outcome::Unknown(e)) => Outcome::Unknown(e),
            (_, Outcome::Violated(why)) => Outcome::Violated(why),
        }
    }

    fn model(&self) -> u64 {
        0
    }

    /// The model trusts each effect, and each addition that is answered.
    fn step(&self, model: &mut u64, step: &Step<'_, Self>) -> Result<(), Misfit> {
        *model += u64::from(step.committed);
        match step.answer {
            Some(Some(count)) if count != model => Err(format!("counted {count} of {model}").into()),
            _ => Ok(()),
        }
    }

    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        tx.get(KEY, Serializable).await?;
        Ok(Ok(()))
    }

    async fn audit_against(&self, tx: &Tx, model: &u64) -> tx::Result<Result<(), Misfit>> {
        let count = number(tx.get(KEY, Serializable).await?);
        Ok(if count == *model { Ok(()) } else { Err(format!("{count} is not {model}").into()) })
    }

    async fn check(&self, db: &Db, model: &u64) -> tx::Result<Result<(), Misfit>> {
        let count = db.run(|tx, _| async move { tx.get(KEY, Serializable).await }).await;
        let count = number(count.map_err(|e| e.error)?);
        Ok(if count == *model { Ok(()) } else { Err(format!("{count} is not {model}").into()) })
    }
}

fn counter(seeds: u64) -> Shake<Counter> {
    Shake::new().seeds(0..seeds)
}

/// Shakes a counter with this lie, and checks the finding.
fn is_told(lie: &str, seeds: u64, kind: Kind, why: &str) {
    let found = found(counter(seeds), lie, kind);
    assert!(found.message.contains(why), "{found:?}");
}

#[test]
fn a_counter_that_does_not_lie_passes() {
    counter(100).assert();
    counter(50).faults(Profile::Storm).assert();
}

/// Other operations may have two effects.
#[test]
fn each_operation_has_as_many_effects_as_it_may() {
    is_told("blind-repeat", 20, Kind::Model, " times: at versions ");
    is_told("never-writes", 5, Kind::Model, "took effect 0 times (`effects` of its workload");
}

#[test]
fn an_outcome_that_is_certain_is_not_unknown() {
    is_told("conflict-unknown", 5, Kind::Unexplained, "but it certainly has no effect");
}

#[test]
fn a_read_that_may_be_stale_sees_what_is_old_and_its_own_writes() {
    is_told("remembered", 5, Kind::Model, "counted ");
    is_told("ignores-own", 5, Kind::Model, "counted ");
}

#[test]
fn an_operation_ends_in_time_while_others_are_served() {
    is_told("stalls", 5, Kind::Slow, "its limit is 10.000 s");
}
