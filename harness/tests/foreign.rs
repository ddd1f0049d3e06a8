//! What [`Foreign`] demands of operations on foreign bytes: each demand is broken by a layer that does not
//! meet it, and met by one that does.

use shaketable::{
    foreign::{Memory, Wrong},
    prelude::*,
};
use std::sync::atomic::{AtomicUsize, Ordering};

shaketable_tx::refusals! {
    /// Why an operation is refused.
    pub enum Refusal { Odd = "a value is not a number" }
}

fn number(value: &[u8]) -> Result<u64, Refusal> {
    value.try_into().map(u64::from_le_bytes).map_err(|_| Refusal::Odd)
}

/// A layer of three numbers, of which an operation reads one and writes its successor: as `$read` does.
macro_rules! layer {
    ($name:ident, $invariant:expr, |$tx:ident, $value:ident| $read:expr) => {
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        struct $name;

        /// Numbers that are counted up.
        #[shaketable::workload]
        impl $name {
            #[write]
            async fn count(&self, tx: &Tx, #[draw(0..3u8)] of: u8) -> Result<(), Refusal> {
                let $tx = tx;
                let $value =
                    tx.get(&[b'n', of], Serializable).await?.unwrap_or_else(|| Bytes::from(vec![0; 8]));
                let found: u64 = $read;
                tx.set(&[b'n', of], &found.wrapping_add(1).to_le_bytes());
                Ok(())
            }

            #[invariant("as told")]
            async fn holds(&self, _tx: &Tx) -> Result<bool, Refusal> {
                Ok($invariant)
            }
        }
    };
}

layer!(Refuses, true, |_tx, value| number(&value)?);
layer!(Panics, true, |_tx, value| number(&value).expect("a number"));
layer!(Waits, true, |_tx, value| match number(&value) {
    Ok(number) => number,
    Err(_) => std::future::pending().await,
});
layer!(Loops, true, |tx, value| loop {
    // A loop that never waits: the simulated client ends it.
    match number(&value) {
        Ok(number) => break number,
        Err(_) => tx.set(b"x", b"y"),
    }
});
layer!(Asks, true, |tx, value| {
    tx.set(&[&[b'i'; 100], &value[..]].concat(), b"");
    number(&value).unwrap_or(0)
});
layer!(Broken, false, |_tx, value| number(&value)?);

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Empty;

/// A layer that stores nothing.
#[shaketable::workload(name = "empty")]
impl Empty {
    #[write]
    async fn nothing(&self, _tx: &Tx) -> Result<(), Refusal> {
        Ok(())
    }

    #[invariant("nothing")]
    async fn holds(&self, _tx: &Tx) -> Result<bool, Refusal> {
        Ok(true)
    }
}

/// The failures of a layer, each with its case alone.
fn wrong<I: Invariants>() -> Vec<Wrong> {
    Foreign::<Guarded<I>>::new().cases(0..200).run()
}

#[track_caller]
fn assert_found<I: Invariants>(what: &str) {
    let wrong = wrong::<I>();
    assert!(wrong.iter().any(|wrong| wrong.what.contains(what)), "{wrong:#?}");
}

#[test]
fn a_layer_that_refuses_passes() {
    Foreign::<Guarded<Refuses>>::new().cases(0..60).assert();
}

#[test]
fn a_panic_is_found_and_the_case_alone_finds_it_again() {
    let all = wrong::<Panics>();
    let first = all.first().expect("a panic");
    assert!(first.what.contains("panicked: a number: Odd"), "{first}");
    assert!(first.what.contains("foreign.rs:"), "{first}");
    assert_eq!(
        Foreign::<Guarded<Panics>>::new().cases(first.case..first.case + 1).run(),
        std::slice::from_ref(first)
    );
    let told = shaketable::foreign::described(&all).expect("there is one");
    let line = format!("SHAKETABLE_SEEDS={}..{} cargo test", first.case, first.case + 1);
    assert!(told.lines().last().is_some_and(|last| last.starts_with(&line)), "{told}");
}

#[test]
fn what_does_not_end_is_found() {
    assert_found::<Waits>("does not end within 60s");
    assert_found::<Loops>("panicked");
}

#[test]
fn what_is_stored_and_asked_of_the_database_is_found() {
    assert_found::<Asks>("asked FoundationDB for what is stored: key_too_large");
}

#[test]
fn memory_beyond_the_limit_is_found() {
    static TAKEN: AtomicUsize = AtomicUsize::new(100);
    let run = |limit| {
        let begin = |operation: &str| assert!(operation.contains("case 0: operation "), "{operation}");
        let memory = Memory { begin, most: || TAKEN.fetch_add(1, Ordering::Relaxed), limit };
        Foreign::<Guarded<Refuses>>::new().cases(0..1).memory(memory).run()
    };
    assert_eq!(run(1_000), []);
    let wrong = run(99);
    assert!(wrong[0].what.contains(" bytes of memory, of 99"), "{wrong:?}");
}

#[test]
fn a_workload_without_rows_to_damage_is_found() {
    assert_found::<Empty>("store nothing but sessions");
    assert_found::<Broken>("does not pass");
}
