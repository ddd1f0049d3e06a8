//! What remains of a failing run breaks the invariant that the run broke, in the same words: also where a
//! smaller run breaks another one, whatever their names and messages look like. Of several contradictions of
//! a run, the earliest is told first.

use shaketable::{
    Guarded, Workload, entry::entry, finding::Kind, finding::deciding, plan::Demands, runner::RunResult,
};
use shaketable_sim::seed::Seed;

mod layers {
    use shaketable::prelude::*;
    use shaketable_tx::Tx;

    shaketable_tx::refusals! {
        /// Why an operation is refused.
        pub enum Refusal { Never = "it is never done" }
    }

    async fn number(tx: &Tx, key: &[u8]) -> tx::Result<u64> {
        let value = tx.get(key, Serializable).await?;
        Ok(value.and_then(|value| value.as_ref().try_into().ok()).map_or(0, u64::from_le_bytes))
    }

    use shaketable_tx as tx;

    async fn ticks(tx: &Tx) -> tx::Result<u64> {
        let ticks = number(tx, b"ticks").await?;
        tx.set(b"ticks", &(ticks + 1).to_le_bytes());
        Ok(ticks)
    }

    macro_rules! ticks {
        ($layer:ident, |$ticks:ident| $operation:block, |$audited:ident| $invariant:block) => {
            #[derive(Clone, Debug, Default, Serialize, Deserialize)]
            pub struct $layer;

            /// A claim in code is broken before the invariant is.
            #[shaketable::workload]
            impl $layer {
                const OPERATIONS: std::ops::Range<u64> = 20..21;

                #[write]
                async fn tick(&self, tx: &Tx) -> Result<(), Refusal> {
                    let $ticks = ticks(tx).await?;
                    $operation;
                    Ok(())
                }

                #[invariant("there are few")]
                async fn holds(&self, tx: &Tx) -> Result<bool, Refusal> {
                    let $audited = number(tx, b"ticks").await?;
                    $invariant;
                    Ok($audited <= 20)
                }
            }
        };
    }
    ticks!(ClaimOfOperation, |ticks| { shaketable_tx::always!(ticks < 10, "ten") }, |_audited| {});
    ticks!(ClaimOfInvariant, |_ticks| {}, |audited| { shaketable_tx::always!(audited < 10, "ten") });
    ticks!(ClaimThatIsLater, |ticks| { shaketable_tx::always!(ticks < 25, "many") }, |_audited| {});

    /// The counts of a key, of which a race loses one: what is left, and what was counted.
    async fn counts(tx: &Tx, key: u8) -> tx::Result<(u64, u64)> {
        let left = tx.get(&[b'r', key], Serializable).await?.map_or(0, |v| u64::from(v[0]));
        Ok((left, number(tx, &[b's', key]).await?))
    }

    async fn count(tx: &Tx, key: u8) -> tx::Result<()> {
        let n = tx.get(&[b'r', key], Snapshot).await?.map_or(0, |v| v[0]);
        tx.set(&[b'r', key], &[n + 1]);
        tx.atomic_op(&[b's', key], &1u64.to_le_bytes(), MutationType::Add);
        Ok(())
    }

    async fn common(tx: &Tx) -> tx::Result<()> {
        let n = number(tx, b"easy").await?;
        tx.set(b"easy", &(n + 1).to_le_bytes());
        Ok(())
    }

    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub struct Slips;

    /// Two defects that break one invariant, with two messages.
    #[shaketable::workload(name = "slips")]
    impl Slips {
        #[write]
        async fn common(&self, tx: &Tx) -> Result<(), Refusal> {
            Ok(common(tx).await?)
        }

        #[write]
        async fn rare(&self, tx: &Tx, #[draw(0..2u8)] key: u8) -> Result<(), Refusal> {
            Ok(count(tx, key).await?)
        }

        #[invariant("the state is right")]
        async fn holds(&self, tx: &Tx) -> Result<Result<(), String>, Refusal> {
            for key in 0..2u8 {
                let (n, m) = counts(tx, key).await?;
                if n != m {
                    return Ok(Err(format!("RARE: {n} of {m} are left")));
                }
            }
            let easy = number(tx, b"easy").await?;
            Ok(if easy > 30 { Err(format!("EASY: {easy} is more than 30")) } else { Ok(()) })
        }
    }

    macro_rules! two_names {
        ($layer:ident, $easy:literal, $rare:literal) => {
            #[derive(Clone, Debug, Default, Serialize, Deserialize)]
            pub struct $layer;

            /// Two defects that break two invariants.
            #[shaketable::workload]
            impl $layer {
                #[write]
                async fn common(&self, tx: &Tx) -> Result<(), Refusal> {
                    Ok(common(tx).await?)
                }

                #[write]
                async fn rare(&self, tx: &Tx, #[draw(0..2u8)] key: u8) -> Result<(), Refusal> {
                    Ok(count(tx, key).await?)
                }

                #[invariant($easy)]
                async fn holds(&self, tx: &Tx) -> Result<bool, Refusal> {
                    Ok(number(tx, b"easy").await? <= 30)
                }

                #[invariant($rare)]
                async fn holds_2(&self, tx: &Tx) -> Result<bool, Refusal> {
                    let ((a, b), (c, d)) = (counts(tx, 0).await?, counts(tx, 1).await?);
                    Ok(a == b && c == d)
                }
            }
        };
    }
    two_names!(NamesApart, "few are counted", "nothing is lost");
    two_names!(NamesWithColons, "state: few are counted", "state: nothing is lost");
    two_names!(NamesWithNumbers, "account 1 is right", "account 2 is right");
    two_names!(NamesWithQuotes, "\"few\" is right", "\"lost\" is right");

    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub struct Refused;

    /// An invariant that is refused once something is written.
    #[shaketable::workload(name = "refused")]
    impl Refused {
        #[write]
        async fn put(&self, tx: &Tx, #[draw(0..200u8)] n: u8) -> Result<(), Refusal> {
            tx.set(b"n", &[n]);
            Ok(())
        }

        #[invariant("something is read")]
        async fn holds(&self, tx: &Tx) -> Result<bool, Refusal> {
            Ok(tx.get(b"other", Serializable).await?.is_none())
        }

        #[invariant("nothing is wrong")]
        async fn holds_2(&self, tx: &Tx) -> Result<bool, Refusal> {
            match tx.get(b"n", Serializable).await? {
                None => Ok(true),
                Some(_) => Err(Refusal::Never),
            }
        }
    }

    #[derive(Clone, Debug, Default, Serialize, Deserialize)]
    pub struct Panics;

    /// An invariant that panics once something is written.
    #[shaketable::workload(name = "panics")]
    impl Panics {
        #[write]
        async fn put(&self, tx: &Tx, #[draw(0..200u8)] n: u8) -> Result<(), Refusal> {
            tx.set(b"n", &[n]);
            Ok(())
        }

        #[invariant("nothing is wrong")]
        async fn holds(&self, tx: &Tx) -> Result<bool, Refusal> {
            assert!(tx.get(b"n", Serializable).await?.is_none(), "it is written");
            Ok(true)
        }
    }
}

/// What the finding that decides says.
fn message(result: &RunResult) -> String {
    deciding(&result.findings).expect("it fails").message.clone()
}

/// Checks, for some seeds that fail in either of two ways, that what remains fails in the same way.
fn keeps_its_failure<W: Workload>(ways: [&str; 2]) {
    let entry = entry::<W>();
    let way = |message: &str| ways.into_iter().find(|way| message.contains(way)).expect("a known failure");
    let mut looked_at = ways.map(|_| 0);
    for seed in 0..40 {
        let failed = entry.run(Seed(seed), &Demands::default(), false);
        let Some(found) = deciding(&failed.findings).map(|finding| way(&finding.message)) else { continue };
        let number = ways.iter().position(|way| *way == found).expect("one of them");
        if looked_at[number] == 2 {
            continue;
        }
        looked_at[number] += 1;
        let plan = entry.plan(Seed(seed), &Demands::default());
        let shrunk = entry.shrink(&plan, &mut |so_far| so_far.replays < 80).expect("a repro file");
        let remains = message(&shrunk.expect("it fails").result);
        assert_eq!(way(&remains), found, "{} {seed}: {remains}", W::NAME);
    }
    assert!(looked_at.iter().all(|seeds| *seeds > 0), "{}: {looked_at:?}", W::NAME);
}

#[test]
fn names_are_not_cut() {
    keeps_its_failure::<Guarded<layers::NamesApart>>(["few are counted", "nothing is lost"]);
    keeps_its_failure::<Guarded<layers::NamesWithColons>>([
        "state: few are counted",
        "state: nothing is lost",
    ]);
    keeps_its_failure::<Guarded<layers::NamesWithNumbers>>(["account 1 is right", "account 2 is right"]);
    keeps_its_failure::<Guarded<layers::NamesWithQuotes>>(["\"few\" is right", "\"lost\" is right"]);
}

#[test]
fn messages_of_one_invariant_are_told_apart() {
    keeps_its_failure::<Guarded<layers::Slips>>(["EASY", "RARE"]);
}

#[test]
fn a_refused_invariant_has_its_name() {
    let entry = entry::<Guarded<layers::Refused>>();
    let message = message(&entry.run(Seed(1), &Demands::default(), false));
    assert!(message.ends_with(": nothing is wrong: refused: it is never done"), "{message}");
}

#[test]
fn the_earliest_contradiction_is_told_first() {
    fn first<W: Workload>() -> Vec<Kind> {
        let of = |seed| {
            let found = entry::<W>().run(Seed(seed), &Demands::default(), false).findings;
            let kinds: Vec<Kind> = found.iter().map(|finding| finding.kind).collect();
            assert!(kinds.contains(&Kind::Audit) && kinds.contains(&Kind::Always), "{seed}: {found:?}");
            kinds[0]
        };
        (0..5).map(of).collect()
    }
    assert_eq!(first::<Guarded<layers::ClaimOfOperation>>(), [Kind::Always; 5]);
    assert_eq!(first::<Guarded<layers::ClaimOfInvariant>>(), [Kind::Always; 5]);
    assert_eq!(first::<Guarded<layers::ClaimThatIsLater>>(), [Kind::Audit; 5]);
}

#[test]
fn a_panic_in_an_invariant_has_its_name() {
    let entry = entry::<Guarded<layers::Panics>>();
    let message = message(&entry.run(Seed(1), &Demands::default(), false));
    assert!(message.contains("panicked: nothing is wrong: it is written ("), "{message}");
}
