//! Calls that return nothing leave their errors to the next call that returns a result.

use super::{
    Case, Ctx, Expectation,
    expect::{fails, same, succeeds},
    world::{Serializable, Snapshot},
};
use shaketable_tx::{ConflictRangeType, Error, MutationType, Transaction};

const SECTION: &str = "commits";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = catalogue! {
        "deferred/conflict-inverted", conflict_inverted,
            "An inverted conflict range is 2005 at the call and spoils nothing.";
        "deferred/conflict-system", conflict_system,
            "A conflict range beyond \\xff is 2004.";
        "deferred/sticky", deferred_sticky,
            "A deferred error stays until the transaction is reset.";
        "deferred/writes-nothing", deferred_writes_nothing,
            "A transaction with a deferred error commits none of its writes.";
    };
    for (topic, call) in SURFACES {
        let promise = format!("A deferred error is the answer of {topic}.");
        cases.push(Case::new(SECTION, &format!("deferred/in-{topic}"), promise, move |c| surfaces(c, *call)));
    }
    for (topic, error, call) in DEFERRED {
        let promise = format!("{topic} is {error}, at the next call that answers and at the commit.");
        cases.push(Case::new(SECTION, &format!("deferred/{topic}"), promise, move |c| {
            deferred(c, *error, *call)
        }));
    }
    cases
}

async fn conflict_inverted(c: Ctx) -> Expectation {
    for kind in [ConflictRangeType::Read, ConflictRangeType::Write] {
        let tx = c.tx()?;
        fails("the call", tx.add_conflict_range(&c.key("b"), &c.key("a"), kind), Error::INVERTED_RANGE)?;
        tx.set(&c.key("a"), b"1");
        succeeds("the commit", tx.commit().await)?;
    }
    Ok(())
}

async fn conflict_system(c: Ctx) -> Expectation {
    for kind in [ConflictRangeType::Read, ConflictRangeType::Write] {
        let tx = c.tx()?;
        let seen = match tx.add_conflict_range(&c.key("a"), b"\xff\xff", kind) {
            Ok(()) => tx.commit().await,
            refused => refused,
        };
        fails("the call or the commit", seen, Error::KEY_OUTSIDE_LEGAL_RANGE)?;
    }
    Ok(())
}

async fn deferred_sticky(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.clear_range(&c.key("b"), &c.key("a"));
    for what in ["the first read", "the second read"] {
        fails(what, tx.get(&c.key("a"), Serializable).await, Error::INVERTED_RANGE)?;
    }
    fails("the commit", tx.commit().await, Error::INVERTED_RANGE)?;
    tx.reset();
    succeeds("a read after reset", tx.get(&c.key("a"), Serializable).await)?;
    succeeds("the commit after reset", tx.commit().await)
}

async fn deferred_writes_nothing(c: Ctx) -> Expectation {
    let tx = c.tx()?;
    tx.set(&c.key("a"), b"before");
    tx.set(&c.key("big"), &[0; 100_001]);
    tx.set(&c.key("b"), b"after");
    fails("the commit", tx.commit().await, Error::VALUE_TOO_LARGE)?;
    same("the rows", c.rows().await?, vec![])
}

/// The calls that return a result, each of which must return the error left by a void call.
#[derive(Clone, Copy)]
enum Call {
    Get,
    GetKey,
    GetRange,
    ReadVersion,
    ApproximateSize,
    Watch,
    Commit,
}

const SURFACES: &[(&str, Call)] = &[
    ("get", Call::Get),
    ("get_key", Call::GetKey),
    ("get_range", Call::GetRange),
    ("get_read_version", Call::ReadVersion),
    ("get_approximate_size", Call::ApproximateSize),
    ("watch", Call::Watch),
    ("commit", Call::Commit),
];

async fn surfaces(c: Ctx, call: Call) -> Expectation {
    let tx = c.tx()?;
    tx.clear_range(&c.key("b"), &c.key("a"));
    let answer = match call {
        Call::Get => tx.get(&c.key("a"), Snapshot).await.map(drop),
        Call::GetKey => tx.get_key(&c.selector("a", false, 1), Snapshot).await.map(drop),
        Call::GetRange => tx.get_range(&c.everything(), 1, Snapshot).await.map(drop),
        Call::ReadVersion => tx.get_read_version().await.map(drop),
        Call::ApproximateSize => tx.get_approximate_size().await.map(drop),
        Call::Watch => tx.watch(&c.key("a")).await,
        Call::Commit => tx.commit().await,
    };
    fails("the answer", answer, Error::INVERTED_RANGE)
}

/// An invalid void call.
#[derive(Clone, Copy)]
enum Wrong {
    SystemSet,
    SystemClear,
    SystemClearRange,
    SystemAtomic,
    LongKey,
    LongValue,
    LongAtomicKey,
    LongOperand,
    InvertedClear,
    UnknownMutation,
}

const DEFERRED: &[(&str, Error, Wrong)] = &[
    ("set-system", Error::KEY_OUTSIDE_LEGAL_RANGE, Wrong::SystemSet),
    ("clear-system", Error::KEY_OUTSIDE_LEGAL_RANGE, Wrong::SystemClear),
    ("clear-range-system", Error::KEY_OUTSIDE_LEGAL_RANGE, Wrong::SystemClearRange),
    ("atomic-system", Error::KEY_OUTSIDE_LEGAL_RANGE, Wrong::SystemAtomic),
    ("set-long-key", Error::KEY_TOO_LARGE, Wrong::LongKey),
    ("set-long-value", Error::VALUE_TOO_LARGE, Wrong::LongValue),
    ("atomic-long-key", Error::KEY_TOO_LARGE, Wrong::LongAtomicKey),
    ("atomic-long-operand", Error::VALUE_TOO_LARGE, Wrong::LongOperand),
    ("clear-range-inverted", Error::INVERTED_RANGE, Wrong::InvertedClear),
    ("unknown-mutation", Error::INVALID_MUTATION_TYPE, Wrong::UnknownMutation),
];

async fn deferred(c: Ctx, error: Error, wrong: Wrong) -> Expectation {
    let tx = c.tx()?;
    let (key, long) = (c.key("a"), [0; 10_001]);
    match wrong {
        Wrong::SystemSet => tx.set(b"\xff/shaketable", b""),
        Wrong::SystemClear => tx.clear(b"\xff/shaketable"),
        Wrong::SystemClearRange => tx.clear_range(&key, b"\xff/shaketable"),
        Wrong::SystemAtomic => tx.atomic_op(b"\xff/shaketable", b"\x01", MutationType::Add),
        Wrong::LongKey => tx.set(&long, b""),
        Wrong::LongValue => tx.set(&key, &[0; 100_001]),
        Wrong::LongAtomicKey => tx.atomic_op(&long, b"\x01", MutationType::Add),
        Wrong::LongOperand => tx.atomic_op(&key, &[0; 100_001], MutationType::Add),
        Wrong::InvertedClear => tx.clear_range(&c.key("b"), &key),
        Wrong::UnknownMutation => {
            for code in [3, 10, 11, 99] {
                // Rejected by the call, or deferred as in the C client.
                if let Err(e) = c.tx()?.atomic_op_code(&key, b"\x01", code) {
                    fails::<()>("the call", Err(e), error)?;
                    continue;
                }
                let tx = c.tx()?;
                tx.atomic_op_code(&key, b"\x01", code)?;
                fails("the next read", tx.get(&key, Serializable).await, error)?;
                fails("the commit", tx.commit().await, error)?;
            }
            return Ok(());
        }
    }
    fails("the next read", tx.get(&c.key("b"), Serializable).await, error)?;
    fails("the commit", tx.commit().await, error)
}
