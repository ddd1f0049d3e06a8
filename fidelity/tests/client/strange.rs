//! Calls with strange keys: system and special keys, empty and inverted ranges, keys at the limit and beyond.
//! Each ends, and leaves a cluster that works.

use super::*;
use proptest::{collection::vec, prelude::*, test_runner::TestRunner};
use shaketable_tx::ConflictRangeType;
use std::{sync::mpsc::channel, thread, time::Duration};

/// How long a case may take in real time. A call that loops cannot be ended from inside.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
enum Strange {
    Set(Vec<u8>, Vec<u8>),
    Clear(Vec<u8>),
    ClearRange(Vec<u8>, Vec<u8>),
    Atomic(Vec<u8>, Vec<u8>, MutationType),
    Conflict(Vec<u8>, Vec<u8>, ConflictRangeType),
    Get(Vec<u8>, Isolation),
    GetKey(KeySelector, Isolation),
    GetRange(KeySelector, KeySelector, usize, bool, Isolation),
    Estimate(Vec<u8>, Vec<u8>),
    SplitPoints(Vec<u8>, Vec<u8>),
    Addresses(Vec<u8>),
    Watch(Vec<u8>),
    Stamp,
}

fn a_key() -> impl Strategy<Value = Vec<u8>> {
    let named = vec![
        &b""[..],
        b"\0",
        b"a",
        b"a\0",
        b"m",
        b"\xfe\xff",
        b"\xff",
        b"\xff\0",
        b"\xff/SC/",
        b"\xff/metadataVersion",
        b"\xff/metadataVersion\0",
        b"\xff\x02/idmp/",
        b"\xff\xfe",
        b"\xff\xff",
        b"\xff\xff\0",
        b"\xff\xff\0\0",
        b"\xff\xff/status/json",
        b"\xff\xff/transaction/read_conflict_range/",
        b"\xff\xff/transaction/write_conflict_range/\xff\xff",
        b"\xff\xff\xff",
        b"\xff\xff\xff\xff",
    ];
    let long = (
        prop::sample::select(vec![b'a', 0xfe, 0xff]),
        prop::sample::select(vec![
            9_996, 9_999, 10_000, 10_001, 10_008, 10_009, 29_999, 30_000, 30_001, 40_000,
        ]),
    );
    prop_oneof![
        8 => prop::sample::select(named).prop_map(<[u8]>::to_vec),
        2 => vec(prop::sample::select(vec![0, 1, b'a', 0xfe, 0xff]), 0..4),
        1 => long.prop_map(|(byte, length)| vec![byte; length]),
    ]
}

fn a_call() -> impl Strategy<Value = Strange> {
    let isolation = || prop_oneof![Just(Isolation::Serializable), Just(Isolation::Snapshot)];
    let kind = prop_oneof![Just(ConflictRangeType::Read), Just(ConflictRangeType::Write)];
    let selector = || {
        let offset = prop_oneof![-3..4i32, Just(i32::MIN), Just(i32::MIN + 1), Just(i32::MAX)];
        (a_key(), any::<bool>(), offset)
            .prop_map(|(key, or_equal, offset)| KeySelector::new(key, or_equal, offset))
    };
    let value = || vec(any::<u8>(), 0..20);
    prop_oneof![
        1 => (a_key(), value()).prop_map(|(k, v)| Strange::Set(k, v)),
        1 => a_key().prop_map(Strange::Clear),
        1 => (a_key(), a_key()).prop_map(|(b, e)| Strange::ClearRange(b, e)),
        1 => (a_key(), value(), prop::sample::select(MutationType::ALL)).prop_map(|(k, v, m)| Strange::Atomic(k, v, m)),
        3 => (a_key(), a_key(), kind).prop_map(|(b, e, k)| Strange::Conflict(b, e, k)),
        1 => (a_key(), isolation()).prop_map(|(k, i)| Strange::Get(k, i)),
        1 => (selector(), isolation()).prop_map(|(s, i)| Strange::GetKey(s, i)),
        3 => (selector(), selector(), 0..3usize, any::<bool>(), isolation())
            .prop_map(|(b, e, n, r, i)| Strange::GetRange(b, e, n, r, i)),
        1 => (a_key(), a_key()).prop_map(|(b, e)| Strange::Estimate(b, e)),
        1 => (a_key(), a_key()).prop_map(|(b, e)| Strange::SplitPoints(b, e)),
        1 => a_key().prop_map(Strange::Addresses),
        1 => a_key().prop_map(Strange::Watch),
        1 => Just(Strange::Stamp),
    ]
}

const OPTIONS: [TransactionOption; 6] = [
    TransactionOption::ReadYourWritesDisable,
    TransactionOption::ReadSystemKeys,
    TransactionOption::AccessSystemKeys,
    TransactionOption::RawAccess,
    TransactionOption::BypassUnreadable,
    TransactionOption::SpecialKeySpaceRelaxed,
];

/// Makes a call, and takes whatever it answers.
async fn make(tx: &SimTransaction, call: Strange) {
    match call {
        Strange::Set(key, value) => tx.set(&key, &value),
        Strange::Clear(key) => tx.clear(&key),
        Strange::ClearRange(begin, end) => tx.clear_range(&begin, &end),
        Strange::Atomic(key, operand, op) => tx.atomic_op(&key, &operand, op),
        Strange::Conflict(begin, end, kind) => drop(tx.add_conflict_range(&begin, &end, kind)),
        Strange::Get(key, isolation) => drop(tx.get(&key, isolation).await),
        Strange::GetKey(selector, isolation) => drop(tx.get_key(&selector, isolation).await),
        Strange::GetRange(begin, end, limit, reverse, isolation) => {
            let mut range = RangeOption::between(begin, end);
            (range.limit, range.reverse) = ((limit > 0).then_some(limit), reverse);
            drop(tx.get_range(&range, 1, isolation).await);
        }
        Strange::Estimate(begin, end) => drop(tx.get_estimated_range_size_bytes(&begin, &end).await),
        Strange::SplitPoints(begin, end) => drop(tx.get_range_split_points(&begin, &end, 100).await),
        Strange::Addresses(key) => drop(tx.get_addresses_for_key(&key).await),
        Strange::Watch(key) => drop(tx.watch(&key)),
        Strange::Stamp => drop(tx.get_versionstamp()),
    }
}

/// Makes the calls in transactions of their own and in one, with the options.
fn make_all(options: Vec<TransactionOption>, calls: Vec<Strange>) {
    let config = ClusterConfig {
        shard_boundaries: vec!["a".into(), "m".into(), Bytes::from_static(b"\xff")],
        ..ClusterConfig::smallest()
    };
    with_cluster(Seed(5), config, &[], move |_, db| {
        let (options, calls) = (options.clone(), calls.clone());
        async move {
            let begin = || {
                let tx = db.create_transaction().expect("a transaction");
                options.iter().for_each(|option| tx.set_option(option.clone()).expect("an option"));
                tx
            };
            let all = begin();
            for call in calls {
                let one = begin();
                one.set(b"k", b"v");
                make(&one, call.clone()).await;
                let _ = one.commit().await;
                make(&all, call).await;
            }
            let _ = all.commit().await;
            set(&db, b"works").commit().await.expect("a calm commit");
            assert_eq!(value(&db).await.as_deref(), Some(&b"works"[..]));
        }
    });
}

#[test]
fn no_call_with_strange_keys_holds_up_the_cluster() {
    let mut runner = TestRunner::new_with_rng(
        ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() },
        prop::test_runner::TestRng::deterministic_rng(prop::test_runner::RngAlgorithm::ChaCha),
    );
    let options = prop::sample::subsequence(OPTIONS.to_vec(), 0..4);
    let outcome = runner.run(&(options, vec(a_call(), 1..8)), |(options, calls)| {
        let (done, ended) = channel();
        thread::spawn(move || {
            make_all(options, calls);
            // Nobody waits any more if it took too long.
            let _ = done.send(());
        });
        let ended = ended.recv_timeout(PATIENCE);
        prop_assert!(ended.is_ok(), "a call loops or panics: {ended:?}");
        Ok(())
    });
    outcome.expect("every call ends");
}
