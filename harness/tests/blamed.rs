//! Tests of who is accused: a correct layer that does things in an unusual way is not, and what is wrong is
//! named for what it is.

use bytes::Bytes;
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable::beside::OneBeside;
use shaketable::finding::{Kind, Verdict};
use shaketable::plan::{Demands, Plan};
use shaketable::{Bug, Misfit, Outcome, Shake, Step, Workload};
use shaketable_sim::{
    proto::Mutation,
    seed::{Seed, Stream},
};
use shaketable_tx::{Database, Db, Error, Isolation, Transaction, TransactionOption, Tx};
use std::time::Duration;

/// A register. Its configuration is what its clients do in an unusual way.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Register {
    manner: Manner,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Manner {
    /// Errors are returned as they come: nobody calls `on_error`.
    Plain,
    /// The same with batch priority.
    Batch,
    /// Gets share a transaction that was created with the client, and look up what became of a dropped
    /// operation before they use it.
    Pooled,
    /// A get reports an error that nobody gave it.
    Invented,
    /// A get that met an error reports another one.
    Renamed,
}

const MANNERS: [Manner; 5] =
    [Manner::Plain, Manner::Batch, Manner::Pooled, Manner::Invented, Manner::Renamed];

const BUGS: &[Bug] = &[bug("Plain"), bug("Batch"), bug("Pooled"), bug("Invented"), bug("Renamed")];

const fn bug(name: &'static str) -> Bug {
    Bug { name, about: "a manner of the clients of the register", source: "this test", only_simulated: None }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Op {
    Set(u32),
    Get,
}

const KEY: &[u8] = b"register";

/// A client, and the transaction that its gets share.
struct Client {
    db: Db,
    reader: Tx,
    is_inside: bool,
}

fn number(value: Option<Bytes>) -> Option<u32> {
    value.and_then(|bytes| Some(u32::from_be_bytes(bytes.as_ref().try_into().ok()?)))
}

impl Register {
    fn begin(&self, db: &Db) -> Result<Tx, Error> {
        let tx = db.create_transaction()?;
        if self.manner == Manner::Batch {
            tx.set_option(TransactionOption::PriorityBatch)?;
        }
        Ok(tx)
    }

    async fn set(&self, db: &Db, value: u32) -> Outcome<Option<u32>> {
        let tx = match self.begin(db) {
            Ok(tx) => tx,
            Err(error) => return Outcome::Failed(error),
        };
        tx.set(KEY, &value.to_be_bytes());
        match tx.commit().await {
            Ok(()) => Outcome::Answered(None),
            Err(error) if error.is_retryable_not_committed() => Outcome::Failed(error),
            Err(error) => Outcome::Unknown(error),
        }
    }

    async fn get(&self, client: &Client) -> Result<Option<u32>, Error> {
        let tx = match self.manner {
            Manner::Pooled => {
                client.reader.reset();
                client.db.env().sleep(Duration::from_millis(20)).await;
                client.reader.clone()
            }
            _ => self.begin(&client.db)?,
        };
        match (tx.get(KEY, Isolation::Serializable).await, self.manner) {
            (Err(_), Manner::Renamed) => Err(Error::INTERNAL_ERROR),
            (Ok(Some(value)), Manner::Invented) if value.last() == Some(&7) => {
                Err(Error::GRV_PROXY_MEMORY_LIMIT_EXCEEDED)
            }
            (value, _) => value.map(number),
        }
    }
}

impl Workload for Register {
    type Op = Op;
    type Answer = Option<u32>;
    type Session = Client;
    type Model = Option<u32>;

    const NAME: &'static str = "register";
    const ABOUT: &'static str = "one register";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn draw(_: &mut Stream, bug: Option<&str>) -> Register {
        let named = |manner: &&Manner| bug == Some(format!("{manner:?}").as_str());
        Register { manner: MANNERS.iter().find(named).copied().unwrap_or(Manner::Plain) }
    }

    fn clients(&self) -> usize {
        3
    }

    fn keys(&self) -> Vec<Bytes> {
        vec![Bytes::from_static(KEY)]
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Op>> {
        let op = prop_oneof![Just(Op::Set(0)), Just(Op::Get)];
        let numbered = move |mut ops: Vec<Op>| {
            for (at, op) in ops.iter_mut().enumerate() {
                if let Op::Set(value) = op {
                    *value = (client * 1_000 + at) as u32;
                }
            }
            ops
        };
        vec(op, 20..30).prop_map(numbered).boxed()
    }

    // Drawn one after the other, as in most runs: a get comes when something is set.
    fn operation_beside(&self, client: usize) -> Option<OneBeside<'_, Option<u32>, Op>> {
        Some(Box::new(move |beside| {
            let set = Just(Op::Set((client * 1_000 + beside.earlier.len()) as u32));
            match *beside.models[0] {
                None => set.boxed(),
                Some(_) => prop_oneof![set, Just(Op::Get)].boxed(),
            }
        }))
    }

    fn foresee(&self, _: &Option<u32>, op: &Op, _: u64) -> Option<Option<u32>> {
        match op {
            Op::Set(value) => Some(Some(*value)),
            Op::Get => None,
        }
    }

    async fn open(&self, db: &Db, _: usize) -> Result<Client, Error> {
        Ok(Client { db: db.clone(), reader: db.create_transaction()?, is_inside: false })
    }

    async fn resolve_dropped(&self, client: &mut Client) {
        if std::mem::take(&mut client.is_inside) && self.manner == Manner::Pooled {
            let looked = client.db.run(|tx, _| async move { tx.get(b"fate", Isolation::Serializable).await });
            // What it finds does not matter here.
            let _ = looked.await;
        }
    }

    async fn apply(&self, client: &mut Client, op: &Op) -> Outcome<Option<u32>> {
        client.is_inside = true;
        let outcome = match op {
            Op::Set(value) => self.set(&client.db, *value).await,
            Op::Get => self.get(client).await.map_or_else(Outcome::Failed, Outcome::Answered),
        };
        client.is_inside = false;
        outcome
    }

    fn is_effect(&self, _: &[Mutation]) -> bool {
        true
    }

    fn model(&self) -> Option<u32> {
        None
    }

    fn step(&self, model: &mut Option<u32>, step: &Step<'_, Self>) -> Result<(), Misfit> {
        match (step.op, step.answer) {
            (Op::Set(value), _) if step.committed => *model = Some(*value),
            (Op::Set(_), Some(_)) => return Err("acknowledged, but nothing was committed".into()),
            (Op::Get, Some(read)) if read != model => {
                return Err(format!("read {read:?} where the model has {model:?}").into());
            }
            _ => {}
        }
        Ok(())
    }

    async fn audit(&self, _: &Tx) -> Result<Result<(), Misfit>, Error> {
        Ok(Ok(()))
    }

    async fn check(&self, db: &Db, model: &Option<u32>) -> Result<Result<(), Misfit>, Error> {
        let read = db.run(|tx, _| async move { tx.get(KEY, Isolation::Serializable).await }).await;
        let read = number(read.map_err(|e| e.error)?);
        Ok(if read == *model { Ok(()) } else { Err(format!("contains {read:?}, not {model:?}").into()) })
    }
}

fn passes(manner: Manner) {
    let sweep = Shake::<Register>::new().seeds(0..300).bug(&format!("{manner:?}")).run();
    let failed = sweep.failed.map(|(seed, result)| (seed, result.findings));
    assert!(failed.is_none(), "{failed:?}");
}

/// The decisive finding of the first seed that is caught.
fn is_caught(manner: Manner, says: &str) {
    let (_, result) = Shake::<Register>::new().seeds(0..100).bug(&format!("{manner:?}")).assert_caught();
    assert_eq!(result.verdict(), Verdict::Violated);
    assert!(result.findings[0].message.contains(says), "{:?}", result.findings);
}

#[test]
fn a_layer_may_return_errors_as_they_come() {
    passes(Manner::Plain);
}

#[test]
fn a_layer_may_return_errors_of_batch_priority_as_they_come() {
    passes(Manner::Batch);
}

#[test]
fn what_a_client_reads_to_prepare_is_no_place_of_the_operation() {
    passes(Manner::Pooled);
}

#[test]
fn an_error_that_nobody_gave_is_a_finding() {
    is_caught(Manner::Invented, "its transaction met no error");
}

#[test]
fn an_error_in_place_of_the_one_that_was_given_is_a_finding() {
    is_caught(Manner::Renamed, "what its transactions met was");
}

mod wrong {
    use shaketable::prelude::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    shaketable_tx::refusals! {
        /// Why an operation is refused.
        pub enum Refusal { No = "it is never done" }
    }

    static CALLS: AtomicU64 = AtomicU64::new(0);

    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub struct Counted;

    /// A layer with a static.
    #[shaketable::workload(name = "counted")]
    impl Counted {
        #[write]
        async fn put(&self, tx: &Tx) -> Result<(), Refusal> {
            tx.set(b"n", &CALLS.fetch_add(1, Ordering::Relaxed).to_le_bytes());
            Ok(())
        }

        #[invariant("nothing is wrong")]
        async fn holds(&self, tx: &Tx) -> Result<bool, Refusal> {
            let _ = tx;
            Ok(true)
        }
    }

    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub struct TooMuch;

    /// A setup that is more than a transaction holds.
    #[shaketable::workload(name = "too_much")]
    impl TooMuch {
        async fn setup(&self, tx: &Tx) -> Result<(), Refusal> {
            for key in 0..120u8 {
                tx.set(&[b'l', key], &vec![b'x'; 99_000]);
            }
            Ok(())
        }

        #[write]
        async fn put(&self, tx: &Tx, #[draw(0..200u8)] n: u8) -> Result<(), Refusal> {
            tx.set(b"n", &[n]);
            Ok(())
        }

        #[invariant("nothing is wrong")]
        async fn holds(&self, tx: &Tx) -> Result<bool, Refusal> {
            let _ = tx;
            Ok(true)
        }
    }

    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub struct TooLong;

    /// A setup with too long a key.
    #[shaketable::workload(name = "too_long")]
    impl TooLong {
        async fn setup(&self, tx: &Tx) -> Result<(), Refusal> {
            tx.set(&vec![b'k'; 20_000], b"");
            Ok(())
        }

        #[write]
        async fn put(&self, tx: &Tx, #[draw(0..200u8)] n: u8) -> Result<(), Refusal> {
            tx.set(b"n", &[n]);
            Ok(())
        }

        #[invariant("nothing is wrong")]
        async fn holds(&self, tx: &Tx) -> Result<bool, Refusal> {
            let _ = tx;
            Ok(true)
        }
    }
}

/// The kind and the message of what decides about the first seed of a workload, which accuses the workload.
fn of_workload<W: Workload>(shake: Shake<W>) -> (Kind, String) {
    let (_, result) = shake.seeds(0..1).run().failed.expect("it is wrong");
    assert_eq!((result.verdict(), result.accuses_workload()), (Verdict::Violated, true));
    (result.findings[0].kind, result.findings[0].message.clone())
}

#[test]
fn a_setup_that_asks_for_what_is_refused_accuses_the_workload() {
    let too_much = of_workload(Shake::<shaketable::Guarded<wrong::TooMuch>>::new());
    let too_long = of_workload(Shake::<shaketable::Guarded<wrong::TooLong>>::new());
    for ((kind, message), error) in [(too_much, "transaction_too_large"), (too_long, "key_too_large")] {
        assert!(kind == Kind::Setup && message.contains(error), "{kind}: {message}");
    }
}

#[test]
fn a_static_that_makes_runs_differ_is_told_by_what_it_changes_first() {
    let shake = Shake::<shaketable::Guarded<wrong::Counted>>::new().check_determinism();
    let (kind, message) = of_workload(shake);
    assert_eq!(kind, Kind::Determinism);
    for part in ["in what operation 0 of client", "(put)", "asks for: set \"n\" = ", "a static"] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

mod levels {
    use shaketable::prelude::*;
    use shaketable_tx::{ConflictRangeType, Tx};

    shaketable_tx::refusals! {
        /// Nothing is refused.
        pub enum Refusal {}
    }

    fn key(at: u8) -> [u8; 2] {
        [b'n', at]
    }

    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub(super) struct Two;

    /// Two numbers, and their sum: a read that does not ask for an isolation level has its own.
    #[shaketable::workload(name = "two", model = Numbers, planted)]
    impl Two {
        #[write(blind)]
        async fn put(
            &self,
            tx: &Tx,
            #[draw(0..2u8)] at: u8,
            #[draw(0..100u8)] value: u8,
        ) -> Result<(), Refusal> {
            tx.writing().await.set(&key(at), &[value]);
            Ok(())
        }

        #[read]
        async fn sum(&self, tx: &Tx) -> Result<u8, Refusal> {
            Ok(numbers(tx).await?.iter().sum())
        }

        /// Looks at a number, also where others write it, and tells nothing of it.
        #[read]
        async fn look(
            &self,
            tx: &Tx,
            #[draw(select(vec![Serializable, Snapshot]))] isolation: Isolation,
        ) -> Result<(), Refusal> {
            tx.reading().await.get(&key(0), isolation).await?;
            Ok(())
        }

        #[stored]
        async fn stored(&self, tx: &Tx) -> Result<Numbers, Refusal> {
            numbers(tx).await.map(Numbers)
        }
    }

    #[shaketable::planted]
    impl Two {
        /// A look at snapshot conflicts.
        #[bug(look, "an isolation level that is not passed on")]
        async fn stricter(&self, tx: &Tx) -> Result<(), Refusal> {
            self.look(tx, Serializable).await
        }

        /// A look does not conflict.
        #[bug(look, "an isolation level that is not passed on")]
        async fn laxer(&self, tx: &Tx) -> Result<(), Refusal> {
            self.look(tx, Snapshot).await
        }

        /// The two levels are exchanged where a look asks for snapshot.
        #[bug(look, "a mistaken test")]
        async fn exchanged(&self, tx: &Tx, isolation: Isolation) -> Result<(), Refusal> {
            tx.reading().await.get(&key(0), isolation).await?;
            if isolation == Snapshot {
                tx.add_conflict_key(&key(0), ConflictRangeType::Read)?;
            }
            Ok(())
        }
    }

    #[derive(Clone, Debug, Default, PartialEq)]
    pub(super) struct Numbers([u8; 2]);

    impl Numbers {
        fn put(&mut self, at: u8, value: u8) -> Result<(), Refusal> {
            self.0[usize::from(at)] = value;
            Ok(())
        }

        fn sum(&self) -> Result<u8, Refusal> {
            Ok(self.0.iter().sum())
        }

        fn look(&self, _: Isolation) -> Result<(), Refusal> {
            Ok(())
        }
    }

    async fn numbers(tx: &Tx) -> Result<[u8; 2], Refusal> {
        let tx = tx.reading().await;
        let mut numbers = [0; 2];
        for (at, number) in numbers.iter_mut().enumerate() {
            let value = tx.get(&key(at as u8), Serializable).await?;
            *number = value.and_then(|value| value.first().copied()).unwrap_or(0);
        }
        Ok(numbers)
    }
}

#[test]
fn a_read_that_does_not_ask_for_an_isolation_level_is_done_at_its_own() {
    Shake::<shaketable::specimen::Mounted<levels::Two>>::new().seeds(0..10).assert();
}

#[test]
fn a_look_whose_level_is_drawn_reads_at_this_level() {
    for bug in ["stricter", "laxer", "exchanged"] {
        Shake::<shaketable::specimen::Mounted<levels::Two>>::new().bug(bug).assert_caught();
    }
}

mod long {
    use shaketable::prelude::*;

    shaketable_tx::refusals! {
        /// Nothing is refused.
        pub enum Refusal {}
    }

    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub(super) struct Told;

    /// A number. Two answers fit into what a session can record of a transaction, and three do not.
    #[shaketable::workload(name = "told", model = Number)]
    impl Told {
        #[write]
        async fn put(&self, tx: &Tx, #[draw(0..100u8)] value: u8) -> Result<String, Refusal> {
            tx.writing().await.set(b"n", &[value]);
            Ok(words(value))
        }

        #[stored]
        async fn stored(&self, tx: &Tx) -> tx::Result<Number> {
            let value = tx.reading().await.get(b"n", Serializable).await?;
            Ok(Number(value.and_then(|value| value.first().copied()).unwrap_or(0)))
        }
    }

    #[derive(Clone, Debug, Default, PartialEq)]
    pub(super) struct Number(u8);

    impl Number {
        fn put(&mut self, value: u8) -> Result<String, Refusal> {
            self.0 = value;
            Ok(words(value))
        }
    }

    fn words(value: u8) -> String {
        value.to_string().repeat(20_000)
    }
}

#[test]
fn answers_that_a_session_cannot_record_accuse_no_layer() {
    Shake::<shaketable::specimen::Mounted<long::Told>>::new().seeds(0..20).assert();
}

#[test]
fn a_workload_draws_its_operations_beside_its_model() {
    let first = |seed| {
        let plan = Plan::draw::<Register>(Seed(seed), &Demands::default());
        matches!(plan.operations_of::<Register>().expect("its own")[0][0], Op::Set(_))
    };
    let sets = (0..40).filter(|seed| first(*seed)).count();
    // Without a model half of them would be.
    assert!(sets > 30, "{sets}");
}
