//! Tests of a reference state machine of `proptest-state-machine` on the shake table. Its initial state is
//! drawn, the list of each client is drawn as if the client were alone, and the other clients make
//! preconditions false.

use proptest_state_machine::ReferenceStateMachine;
use shaketable::{
    plan::{Demands, Plan},
    prelude::*,
    specimen::UNRECORDED,
    state_machine::{Machine, StateMachine},
};
use shaketable_sim::seed::Seed;
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

shaketable_tx::refusals! {
    /// Why a booking is refused.
    pub enum Refusal {
        Full = "there is no seat left",
        NotBooked = "no seat is booked",
    }
}

/// Seats of a few halls that are booked and given up. With `SOUND` the layer reads serializably, without it
/// at snapshot isolation.
struct Halls<const SOUND: bool>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Transition {
    Book(u8),
    GiveUp(u8),
}
use Transition::{Book, GiveUp};

/// The number of seats of a hall.
const SEATS: u64 = 6;

impl<const SOUND: bool> ReferenceStateMachine for Halls<SOUND> {
    /// The number of booked seats of each hall.
    type State = BTreeMap<u8, u64>;
    type Transition = Transition;

    fn init_state() -> BoxedStrategy<Self::State> {
        vec(0..=SEATS, 2..4).prop_map(|booked| (0u8..).zip(booked).collect()).boxed()
    }

    fn transitions(booked: &Self::State) -> BoxedStrategy<Transition> {
        // Only transitions that are not refused if the client is alone.
        let possible = |hall: u8| {
            let hall_has = booked[&hall];
            [(hall_has < SEATS).then_some(Book(hall)), (hall_has > 0).then_some(GiveUp(hall))]
        };
        proptest::sample::select(booked.keys().flat_map(|hall| possible(*hall)).flatten().collect::<Vec<_>>())
            .boxed()
    }

    fn preconditions(booked: &Self::State, transition: &Transition) -> bool {
        match transition {
            Book(hall) => booked[hall] < SEATS,
            GiveUp(hall) => booked[hall] > 0,
        }
    }

    fn apply(mut booked: Self::State, transition: &Transition) -> Self::State {
        match transition {
            Book(hall) => *booked.get_mut(hall).expect("a hall") += 1,
            // This would panic if the precondition were false.
            GiveUp(hall) => *booked.get_mut(hall).expect("a hall") -= 1,
        }
        booked
    }
}

/// The number of refusals that the machine expected, which do not occur if a client is alone.
static REFUSED: AtomicU64 = AtomicU64::new(0);

fn key(hall: u8) -> [u8; 2] {
    [b'#', hall]
}

fn count(value: Option<&Bytes>) -> u64 {
    value.and_then(|value| value.as_ref().try_into().ok()).map_or(0, u64::from_le_bytes)
}

impl<const SOUND: bool> Machine for Halls<SOUND> {
    /// The number of booked seats after the transition.
    type Answer = u64;
    type Error = Refusal;

    const NAME: &'static str = "halls";
    const ABOUT: &'static str = "no hall has more bookings than seats";

    async fn setup<T: Transaction>(tx: &T, initial: &Self::State) -> Result<(), Refusal> {
        initial.iter().for_each(|(hall, booked)| tx.set(&key(*hall), &booked.to_le_bytes()));
        Ok(())
    }

    async fn perform<T: Transaction>(tx: &T, transition: &Transition) -> Result<u64, Refusal> {
        let tx = &tx.writing().await;
        let (Book(hall) | GiveUp(hall)) = *transition;
        let isolation = if SOUND { Serializable } else { Snapshot };
        let booked = count(tx.get(&key(hall), isolation).await?.as_ref());
        let booked = match transition {
            Book(_) if booked >= SEATS => return Err(Refusal::Full),
            Book(_) => booked + 1,
            GiveUp(_) => booked.checked_sub(1).ok_or(Refusal::NotBooked)?,
        };
        tx.set(&key(hall), &booked.to_le_bytes());
        Ok(booked)
    }

    fn answer(booked: &Self::State, transition: &Transition) -> Result<u64, Refusal> {
        let is_possible = Self::preconditions(booked, transition);
        REFUSED.fetch_add(u64::from(!is_possible), Ordering::Relaxed);
        match (is_possible, transition) {
            (true, Book(hall)) => Ok(booked[hall] + 1),
            (true, GiveUp(hall)) => Ok(booked[hall] - 1),
            (false, Book(_)) => Err(Refusal::Full),
            (false, GiveUp(_)) => Err(Refusal::NotBooked),
        }
    }

    async fn stored<T: Transaction>(tx: &T) -> tx::Result<Result<Self::State, String>> {
        let rows = tx.get_range_all(RangeOption::new("#", "$"), Serializable).await?;
        Ok(Ok(rows.iter().map(|row| (row.key[1], count(Some(&row.value)))).collect()))
    }
}

type Shaken<const SOUND: bool> = Mounted<StateMachine<Halls<SOUND>>>;

#[test]
fn a_sound_layer_matches_its_machine_even_if_preconditions_are_false() {
    Shake::<Shaken<true>>::new().assert();
    assert!(REFUSED.load(Ordering::Relaxed) > 0, "no precondition was false");
}

#[test]
fn a_lost_update_is_caught() {
    Shake::<Shaken<false>>::new().assert_caught();
}

#[test]
fn planted_bugs_are_caught() {
    for bug in <Shaken<true> as Workload>::bugs() {
        Shake::<Shaken<true>>::new().bug(bug.name).assert_caught();
    }
    assert!(<Shaken<true> as Workload>::bugs().iter().any(|bug| bug.name == UNRECORDED));
}

#[test]
fn each_client_alone_follows_the_machine_from_the_drawn_initial_state() {
    let mut initial = Vec::new();
    for seed in 0..20 {
        let plan = Plan::draw::<Shaken<true>>(Seed(seed), &Demands::default());
        let again = Plan::from_json::<Shaken<true>>(&plan.to_json()).expect("its own repro file");
        let operations = plan.operations_of::<Shaken<true>>().expect("its own operations");
        assert_eq!(again.operations_of::<Shaken<true>>().as_ref(), Some(&operations));
        let model =
            |plan: &Plan| plan.configuration.get::<Shaken<true>>().expect("its own configuration").model();
        let state = model(&plan);
        assert_eq!(model(&again), state);
        for client in &operations {
            let mut state = state.clone();
            for transition in client.iter().flatten() {
                assert!(Halls::<true>::preconditions(&state, transition), "{transition:?} from {state:?}");
                state = Halls::<true>::apply(state, transition);
            }
            assert!(client.iter().all(|transaction| !transaction.is_empty()));
        }
        initial.push(state);
    }
    assert!(initial.iter().any(|state| *state != initial[0]), "always {:?}", initial[0]);
}
