//! Reads of a transaction's own writes and what it commits, against the simplest client: it keeps the list of
//! all calls, and computes each answer from the snapshot. The judges must agree with both.

use super::*;
use proptest::{collection::vec, prelude::*};
use shaketable_sim::judges::{Evidence, Judge, Truth, combine};

#[derive(Clone, Debug)]
enum Action {
    Set(u8, Data),
    /// From a key to another one; one key if they are the same.
    Clear(u8, u8),
    Atomic(MutationType, u8, Data),
    StampKey,
    StampValue(u8),
    SnapshotRyw(bool),
    Get(u8, Isolation),
    GetKey(Selector, Isolation),
    GetRange(Selector, Selector, usize, bool, Isolation),
}

/// A byte, and how often it is repeated.
type Data = (u8, usize);

/// A key, `or_equal`, an offset.
type Selector = (u8, bool, i32);

#[derive(Clone, Debug)]
struct Transacted {
    read_your_writes: bool,
    bypass_unreadable: bool,
    actions: Vec<Action>,
}

const KEYS: u8 = 5;

/// Operands of one length, of others, and some of which few fit into a value.
const LENGTHS: [usize; 10] = [0, 1, 1, 2, 8, 8, 30_000, 30_000, 60_000, 99_999];

fn a_transaction() -> impl Strategy<Value = Transacted> {
    use prop::sample::select;
    // Half of them are so few that they often meet again.
    let few = || (select(&[0, 1][..]), Just(1));
    let data = || prop_oneof![few(), (select(&[0, 1, 1, 0xff][..]), select(&LENGTHS[..]))];
    let key = || 0..KEYS;
    let isolation = || select(&[Isolation::Serializable, Isolation::Snapshot][..]);
    let selector = || (key(), any::<bool>(), -2..4i32);
    let plain = || key().prop_map(|key| (key, false, 1));
    let bound = || prop_oneof![2 => plain(), 1 => selector()];
    let is_stamped = |op: &MutationType| {
        matches!(op, MutationType::SetVersionstampedKey | MutationType::SetVersionstampedValue)
    };
    let ops: Vec<_> = MutationType::ALL.iter().copied().filter(|op| !is_stamped(op)).collect();
    let action = prop_oneof![
        4 => (key(), data()).prop_map(|(k, d)| Action::Set(k, d)),
        4 => (key(), key()).prop_map(|(a, b)| Action::Clear(a.min(b), a.max(b))),
        16 => (select(ops), key(), data()).prop_map(|(op, k, d)| Action::Atomic(op, k, d)),
        10 => (key(), data()).prop_map(|(k, d)| Action::Atomic(MutationType::AppendIfFits, k, d)),
        4 => (key(), few()).prop_map(|(k, d)| Action::Atomic(MutationType::CompareAndClear, k, d)),
        1 => Just(Action::StampKey),
        1 => key().prop_map(Action::StampValue),
        2 => any::<bool>().prop_map(Action::SnapshotRyw),
        8 => (key(), isolation()).prop_map(|(k, i)| Action::Get(k, i)),
        4 => (selector(), isolation()).prop_map(|(s, i)| Action::GetKey(s, i)),
        4 => (bound(), bound(), 0..4usize, any::<bool>(), isolation())
            .prop_map(|(b, e, l, r, i)| Action::GetRange(b, e, l, r, i)),
    ];
    (prop::bool::weighted(0.8), any::<bool>(), vec(action, 1..16)).prop_map(
        |(read_your_writes, bypass_unreadable, actions)| Transacted {
            read_your_writes,
            bypass_unreadable,
            actions,
        },
    )
}

fn name(key: u8) -> Bytes {
    Bytes::copy_from_slice(&[b'k', b'0' + key])
}

fn bytes((byte, times): Data) -> Bytes {
    vec![byte; times].into()
}

fn key_selector((key, or_equal, offset): Selector) -> KeySelector {
    KeySelector::new(name(key), or_equal, offset)
}

type Rows = BTreeMap<Bytes, Bytes>;

/// The value of a key after these writes. Of appends in a row the client sends one, unless it knows the value
/// that they are appended to (`coalesceOver` in `fdbclient/WriteMap.cpp`).
fn value_of(key: u8, before: Option<&Bytes>, writes: &[Action], joins: bool) -> Option<Bytes> {
    let (mut value, mut is_known) = (before.cloned(), false);
    let mut run: Option<(Option<Bytes>, Bytes)> = None;
    for write in writes {
        let operand;
        match write {
            Action::Set(k, data) if *k == key => (value, is_known, run) = (Some(bytes(*data)), true, None),
            Action::Clear(a, b) if (*a..=*b).contains(&key) => (value, is_known, run) = (None, true, None),
            Action::Atomic(op, k, data) if *k == key => {
                operand = bytes(*data);
                let appends = *op == MutationType::AppendIfFits && joins && !is_known;
                run = match (appends, run) {
                    (false, _) => None,
                    (true, None) => Some((value.clone(), operand.clone())),
                    (true, Some((before, all))) => Some((before, combine(*op, Some(&all), &operand)?)),
                };
                value = match &run {
                    Some((before, all)) => combine(*op, before.as_ref(), all),
                    None => combine(*op, value.as_ref(), &operand),
                };
            }
            _ => {}
        }
    }
    value
}

fn after(base: &Rows, writes: &[Action], joins: bool) -> Rows {
    let mut rows = base.clone();
    for key in 0..KEYS {
        match value_of(key, base.get(&name(key)), writes, joins) {
            Some(value) => rows.insert(name(key), value),
            None => rows.remove(&name(key)),
        };
    }
    rows
}

fn resolve(rows: &Rows, (key, or_equal, offset): Selector) -> Bytes {
    let keys: Vec<&Bytes> = rows.keys().collect();
    let first = keys.partition_point(|k| **k < name(key) || (or_equal && **k == name(key)));
    match usize::try_from(first as i64 + i64::from(offset) - 1) {
        Ok(at) => keys.get(at).map_or(Bytes::from_static(b"\xff"), |k| (*k).clone()),
        Err(_) => Bytes::new(),
    }
}

/// The answers of the transaction so far are those of the list of calls.
#[derive(Default)]
struct Listed {
    base: Rows,
    writes: Vec<Action>,
    stamped: bool,
    clears: bool,
    snapshot_ryw: i32,
}

impl Listed {
    /// What a read sees, unless a versionstamp may be in its way.
    fn seen(&self, tx: &Transacted, isolation: Isolation) -> Option<Rows> {
        let own = tx.read_your_writes && (isolation == Isolation::Serializable || self.snapshot_ryw >= 0);
        let writes: &[Action] = if own { &self.writes } else { &[] };
        (!own || !self.stamped).then(|| after(&self.base, writes, true))
    }

    /// Performs a call, and compares its answer.
    async fn perform(&mut self, handle: &SimTransaction, tx: &Transacted, action: &Action) {
        match action {
            Action::Set(key, data) => handle.set(&name(*key), &bytes(*data)),
            Action::Clear(a, b) if a == b => handle.clear(&name(*a)),
            Action::Clear(a, b) => handle.clear_range(&name(*a), &name(b + 1)),
            Action::Atomic(op, key, data) => handle.atomic_op(&name(*key), &bytes(*data), *op),
            Action::StampKey => {
                handle.atomic_op(b"s..........\x01\0\0\0", b"", MutationType::SetVersionstampedKey);
            }
            Action::StampValue(key) => {
                handle.atomic_op(&name(*key), &[0; 14], MutationType::SetVersionstampedValue);
            }
            Action::SnapshotRyw(on) => {
                let option = if *on {
                    TransactionOption::SnapshotRywEnable
                } else {
                    TransactionOption::SnapshotRywDisable
                };
                handle.set_option(option).expect("an option");
                self.snapshot_ryw += if *on { 1 } else { -1 };
            }
            Action::Get(key, isolation) => {
                let found = handle.get(&name(*key), *isolation).await;
                if let Some(rows) = self.seen(tx, *isolation) {
                    assert_eq!(found, Ok(rows.get(&name(*key)).cloned()), "{action:?}");
                }
            }
            Action::GetKey(selector, isolation) => {
                let found = handle.get_key(&key_selector(*selector), *isolation).await;
                // The client counts what its `CompareAndClear` has cleared.
                if let (Some(rows), false) = (self.seen(tx, *isolation), self.clears) {
                    assert_eq!(found, Ok(resolve(&rows, *selector)), "{action:?}");
                }
            }
            Action::GetRange(begin, end, limit, reverse, isolation) => {
                let mut range = RangeOption::new("", "");
                (range.begin, range.end) = (key_selector(*begin), key_selector(*end));
                (range.limit, range.reverse) = (Some(*limit), *reverse);
                let found = handle.get_range_all(range, *isolation).await;
                let is_plain = |(_, or_equal, offset): &Selector| !or_equal && *offset == 1;
                let Some(rows) = self.seen(tx, *isolation) else { return };
                if self.clears && !(is_plain(begin) && is_plain(end)) {
                    return;
                }
                let (from, to) = (resolve(&rows, *begin), resolve(&rows, *end));
                let within = rows.into_iter().filter(|(key, _)| from <= *key && *key < to);
                let mut expected: Vec<_> = within.collect();
                if *reverse {
                    expected.reverse();
                }
                expected.truncate(if *limit == 0 { usize::MAX } else { *limit });
                let found = found.map(|rows| rows.into_iter().map(|row| (row.key, row.value)).collect());
                assert_eq!(found, Ok(expected), "{action:?}");
            }
        }
        match action {
            Action::StampKey | Action::StampValue(_) => self.stamped = true,
            Action::Set(..) | Action::Clear(..) | Action::Atomic(..) => {
                self.clears |= matches!(action, Action::Atomic(MutationType::CompareAndClear, ..));
                self.writes.push(action.clone());
            }
            _ => {}
        }
    }
}

async fn rows_of(db: &SimDatabase) -> Rows {
    let read = |tx: SimTransaction, _| async move {
        tx.get_range_all(RangeOption::new(&b""[..], &b"\xff"[..]), Isolation::Serializable).await
    };
    let rows = db.run(read).await.expect("a calm cluster answers");
    rows.into_iter().map(|row| (row.key, row.value)).collect()
}

fn judged(world: &World) {
    let history = world.history.lock();
    let truth = Truth::of(&history);
    let evidence = Evidence { history: &history, truth: &truth, replicas: &[] };
    for judge in [Judge::Serializable, Judge::Durable] {
        assert_eq!(judge.judge(&evidence).map_err(|objection| objection.message), Ok(()));
    }
}

async fn performed(world: Arc<World>, db: SimDatabase, all: Vec<Transacted>) {
    for tx in &all {
        let base = rows_of(&db).await;
        let handle = db.create_transaction().expect("a transaction");
        if !tx.read_your_writes {
            handle.set_option(TransactionOption::ReadYourWritesDisable).expect("an option");
        }
        if tx.bypass_unreadable {
            handle.set_option(TransactionOption::BypassUnreadable).expect("an option");
        }
        let mut listed = Listed { base, ..Listed::default() };
        for action in &tx.actions {
            listed.perform(&handle, tx, action).await;
        }
        // A read of what cannot be read makes the commit fail.
        if handle.commit().await.is_ok() && !listed.stamped {
            assert_eq!(
                rows_of(&db).await,
                after(&listed.base, &listed.writes, tx.read_your_writes),
                "{tx:?}"
            );
        }
    }
    judged(&world);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn client_and_judges_agree_with_the_list_of_calls(all in vec(a_transaction(), 1..10)) {
        with(&[], move |world, db| performed(world, db, all.clone()));
    }
}

/// Two appends on one key, the least input: joined they do not fit, one of them would.
#[test]
fn appends_in_a_row_fit_together_or_not_at_all() {
    let append = |length| Action::Atomic(MutationType::AppendIfFits, 0, (b'b', length));
    let get = Action::Get(0, Isolation::Serializable);
    let plain = |actions| Transacted { read_your_writes: true, bypass_unreadable: false, actions };
    let all = vec![
        plain(vec![Action::Set(0, (b'a', 60_000))]),
        plain(vec![append(30_000), append(30_000), get.clone()]),
        plain(vec![get]),
    ];
    with(&[], move |world, db| {
        let all = all.clone();
        async move {
            performed(world, db.clone(), all).await;
            assert_eq!(rows_of(&db).await.values().map(Bytes::len).collect::<Vec<_>>(), [60_000]);
        }
    });
}
