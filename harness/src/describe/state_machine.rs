//! Shakes a layer for which a reference state machine exists: a [`ReferenceStateMachine`] of the crate
//! `proptest-state-machine`.
//!
//! A [`Machine`] adds what a concurrent run needs: how a transition is done in a transaction, what the layer
//! should return for it, and how the stored data is read back as the state of the machine. [`StateMachine`]
//! makes a [`Specimen`] of it.
//!
//! # Preconditions may be false
//!
//! A state machine draws each transition from the state to which the previous ones led. Here several clients
//! run concurrently, and the order in which their transactions will commit is not known when they are drawn.
//! The list of each client is therefore drawn as if the client were alone: it follows the machine from the
//! initial state, and every transition meets its precondition there. In the run other clients change the
//! state as well, so **preconditions may be false**. The layer must refuse a transition whose precondition is
//! false, and [`Machine::answer`] must return the same refusal; [`ReferenceStateMachine::apply`] is not
//! called for it. A precondition that means "this is not worth testing" instead of "the layer refuses this"
//! has to be removed, or replaced by an ordinary answer.
//!
//! Answers are compared in commit order with the state of the machine at that place. The database is read at
//! many versions, and compared with the final state of the machine at the end.
//!
//! # Example
//!
//! Books are lent and returned; a book that is lent cannot be lent again.
//!
//! ```
//! use proptest_state_machine::ReferenceStateMachine;
//! use shaketable::{prelude::*, state_machine::{Machine, StateMachine}};
//! use std::collections::BTreeSet;
//!
//! // The existing reference state machine.
//!
//! struct Library;
//!
//! #[derive(Clone, Debug, Serialize, Deserialize)]
//! enum Transition {
//!     Lend(u8),
//!     Return(u8),
//! }
//! use Transition::{Lend, Return};
//!
//! impl ReferenceStateMachine for Library {
//!     /// The books that are lent.
//!     type State = BTreeSet<u8>;
//!     type Transition = Transition;
//!
//!     fn init_state() -> BoxedStrategy<BTreeSet<u8>> {
//!         Just(BTreeSet::new()).boxed()
//!     }
//!
//!     fn transitions(lent: &BTreeSet<u8>) -> BoxedStrategy<Transition> {
//!         let lend = (0..10u8).prop_map(Lend);
//!         match lent.len() {
//!             0 => lend.boxed(),
//!             _ => prop_oneof![lend, proptest::sample::select(Vec::from_iter(lent.clone())).prop_map(Return)].boxed(),
//!         }
//!     }
//!
//!     fn preconditions(lent: &BTreeSet<u8>, transition: &Transition) -> bool {
//!         match transition {
//!             Lend(book) => !lent.contains(book),
//!             Return(book) => lent.contains(book),
//!         }
//!     }
//!
//!     fn apply(mut lent: BTreeSet<u8>, transition: &Transition) -> BTreeSet<u8> {
//!         match transition {
//!             Lend(book) => lent.insert(*book),
//!             Return(book) => lent.remove(book),
//!         };
//!         lent
//!     }
//! }
//!
//! // The addition: how the layer does a transition, and what it returns.
//!
//! shaketable_tx::refusals! {
//!     /// Why the library refuses.
//!     pub enum Refusal { Lent = "the book is lent", NotLent = "the book is not lent" }
//! }
//!
//! impl Machine for Library {
//!     type Answer = ();
//!     type Error = Refusal;
//!
//!     const NAME: &'static str = "library";
//!     const ABOUT: &'static str = "no book is lent to two readers";
//!
//!     async fn perform<T: Transaction>(tx: &T, transition: &Transition) -> Result<(), Refusal> {
//!         let tx = &tx.writing().await;
//!         let (Lend(book) | Return(book)) = *transition;
//!         let is_lent = tx.get(&[b'#', book], Serializable).await?.is_some();
//!         match transition {
//!             Lend(_) if is_lent => return Err(Refusal::Lent),
//!             Return(_) if !is_lent => return Err(Refusal::NotLent),
//!             Lend(_) => tx.set(&[b'#', book], b"lent"),
//!             Return(_) => tx.clear(&[b'#', book]),
//!         }
//!         Ok(())
//!     }
//!
//!     fn answer(lent: &BTreeSet<u8>, transition: &Transition) -> Result<(), Refusal> {
//!         match (Self::preconditions(lent, transition), transition) {
//!             (true, _) => Ok(()),
//!             (false, Lend(_)) => Err(Refusal::Lent),
//!             (false, Return(_)) => Err(Refusal::NotLent),
//!         }
//!     }
//!
//!     async fn stored<T: Transaction>(tx: &T) -> tx::Result<Result<BTreeSet<u8>, String>> {
//!         let books = tx.get_range_all(RangeOption::new("#", "$"), Serializable).await?;
//!         Ok(Ok(books.iter().map(|row| row.key[1]).collect()))
//!     }
//! }
//!
//! Shake::<Mounted<StateMachine<Library>>>::new().seeds(0..5).assert();
//! Shake::<Mounted<StateMachine<Library>>>::new().bug("unwritten").assert_caught();
//! ```

use crate::{
    describe::specimen::{At, Specimen, UNRECORDED, UNWRITTEN},
    describe::workload::Bug,
};
use bytes::Bytes;
use proptest::{
    collection::vec,
    strategy::{BoxedStrategy, Just, Strategy, ValueTree},
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use proptest_state_machine::{ReferenceStateMachine, Sequential};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use shaketable_sim::seed::Stream;
use shaketable_tx::{self as tx, Database, Env, Isolation, RetryError, Transaction, once};
use std::{
    fmt::{self, Debug, Display, Formatter},
    marker::PhantomData,
    ops::Range,
};

/// A reference state machine and the layer that it describes.
pub trait Machine:
    ReferenceStateMachine<State: PartialEq + Send + Sync, Transition: Serialize + DeserializeOwned + Send + Sync>
{
    /// What a transition returns to its caller.
    type Answer: Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static;
    /// Why the layer refuses a transition; compared by its message.
    type Error: RetryError + From<once::Error> + Display + Debug + Send + 'static;

    /// The name on the command line.
    const NAME: &'static str;
    /// A description of what it shakes, in one line.
    const ABOUT: &'static str;

    /// Its planted bugs, among those that [`Mounted`](crate::describe::specimen::Mounted) implements.
    fn bugs() -> &'static [Bug] {
        BUGS
    }

    /// Writes the initial state into the empty database in one transaction, before any fault.
    fn setup<T: Transaction>(
        tx: &T,
        initial: &Self::State,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = (tx, initial);
        async { Ok(()) }
    }

    /// Whether a transition never writes.
    fn is_read_only(transition: &Self::Transition) -> bool {
        let _ = transition;
        false
    }

    /// Does a transition in a transaction. It takes its turn ([`Transaction::writing`]), because others may
    /// run beside it. An error other than FoundationDB's is a refusal.
    fn perform<T: Transaction>(
        tx: &T,
        transition: &Self::Transition,
    ) -> impl Future<Output = Result<Self::Answer, Self::Error>> + Send;

    /// The answer that the layer should return for a transition in this state, before the transition is
    /// applied. It is called with states that concurrent clients lead to: where the precondition is false it
    /// returns the layer's refusal.
    fn answer(state: &Self::State, transition: &Self::Transition) -> Result<Self::Answer, Self::Error>;

    /// Reads everything that the layer stores, in one transaction, as the state of the machine. The records
    /// of the clients' sessions are in the subspace of the tuple `("sessions",)`. The inner error describes
    /// the structural invariant that is broken.
    fn stored<T: Transaction>(tx: &T)
    -> impl Future<Output = tx::Result<Result<Self::State, String>>> + Send;
}

const BUGS: &[Bug] = &[
    Bug {
        name: UNRECORDED,
        about: "transitions are retried after an unknown result without a record of the first attempt",
        source: "the retry loop of every binding",
    },
    Bug {
        name: UNWRITTEN,
        about: "a transition is acknowledged and never committed",
        source: "a write-behind cache",
    },
];

/// A reference state machine as a specimen: `Mounted<StateMachine<M>>` is its workload.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct StateMachine<M> {
    /// The seed of the initial state, which itself need not be serializable.
    initial: u64,
    #[serde(skip)]
    machine: PhantomData<fn() -> M>,
}

impl<M> Clone for StateMachine<M> {
    fn clone(&self) -> Self {
        StateMachine { initial: self.initial, machine: PhantomData }
    }
}

impl<M> Debug for StateMachine<M> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateMachine").field("initial", &self.initial).finish()
    }
}

impl<M: Machine> StateMachine<M> {
    /// The initial state, which is the same for every call.
    ///
    /// # Panics
    ///
    /// If the machine's strategy rejects every initial state.
    fn initial(&self) -> M::State {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.initial.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &key);
        let config = Config { failure_persistence: None, ..Config::default() };
        match M::init_state().new_tree(&mut TestRunner::new_with_rng(config, rng)) {
            Ok(tree) => tree.current(),
            Err(why) => panic!("no initial state of {} could be drawn: {why}", M::NAME),
        }
    }
}

impl<M: Machine> Specimen for StateMachine<M> {
    type Op = M::Transition;
    type Answer = M::Answer;
    type Error = M::Error;
    type Model = M::State;

    const NAME: &'static str = M::NAME;
    const ABOUT: &'static str = M::ABOUT;

    fn bugs() -> &'static [Bug] {
        M::bugs()
    }

    fn draw(rng: &mut Stream, _: Option<&str>) -> Self {
        StateMachine { initial: rng.u64(), machine: PhantomData }
    }

    fn keys(&self) -> Vec<Bytes> {
        Vec::new()
    }

    /// The strategy of a first transition.
    fn operation(&self, _: usize) -> BoxedStrategy<M::Transition> {
        M::transitions(&self.initial())
    }

    fn transactions(
        &self,
        _: usize,
        transactions: Range<usize>,
        together: Range<usize>,
    ) -> BoxedStrategy<Vec<Vec<M::Transition>>> {
        let initial = self.initial();
        let drawn = vec(together, transactions).prop_flat_map(move |sizes| {
            let initial = initial.clone();
            let alone = Sequential::new(
                sizes.iter().sum::<usize>().into(),
                move || Just(initial.clone()),
                M::preconditions,
                M::transitions,
                M::apply,
            );
            alone.prop_map(move |(_, all, _)| {
                let mut all = all.into_iter();
                sizes.iter().map(|size| all.by_ref().take(*size).collect()).collect()
            })
        });
        drawn.boxed()
    }

    fn is_read_only(transition: &M::Transition) -> bool {
        M::is_read_only(transition)
    }

    async fn setup<D: Database>(&self, db: &D) -> tx::Result<()> {
        let initial = &self.initial();
        let filled = db.run(|tx, _| async move { M::setup(&tx, initial).await }).await;
        crate::describe::sessions::set_up(filled)
    }

    async fn perform<T: Transaction>(
        &self,
        tx: &T,
        _: &Env,
        transition: &M::Transition,
        _: Isolation,
    ) -> Result<M::Answer, M::Error> {
        M::perform(tx, transition).await
    }

    fn model(&self) -> M::State {
        self.initial()
    }

    fn replay(
        &self,
        state: &mut M::State,
        transition: &M::Transition,
        _: &At,
    ) -> Result<M::Answer, M::Error> {
        let answer = M::answer(state, transition)?;
        *state = M::apply(state.clone(), transition);
        Ok(answer)
    }

    async fn read_model<T: Transaction>(&self, tx: &T) -> tx::Result<Result<M::State, String>> {
        M::stored(tx).await
    }
}
