//! Tests of the topics: each must report traffic that violates its guideline, and must not report other
//! traffic.

use super::{Traffic, traffic::named};
use crate::judge::story::Story;
use crate::run::runner::{Done, Ended, Observation, kind};
use bytes::Bytes;
use foundationdb_tuple::pack;
use shaketable_reports::{AdviceEntry, Severity};
use shaketable_sim::{
    history::{Aside, Attempt, Call, Open, Reported},
    ids::ClientId,
    proto::{KeyRange, Mutation},
    rt::{MILLISECOND, Nanos},
};
use shaketable_tx::{Error, Isolation, KeySelector, KeyValue, MutationType, key_after};

/// How long each operation takes.
const STEP: Nanos = 5 * MILLISECOND;

/// An operation that was done at once.
fn nothing() -> Done {
    Done { kind: String::new(), is_rare: false, ended: Ended::Done, answer: None, called: 0, returned: 0 }
}

/// A run under construction: one operation after another, each of one transaction.
struct Made {
    story: Story,
    done: Vec<Vec<Done>>,
    version: i64,
    now: Nanos,
}

impl Made {
    fn new(clients: usize) -> Made {
        Made { story: Story::default(), done: vec![Vec::new(); clients], version: 1_000, now: 0 }
    }

    /// A transaction of a client's next operation, which began `before` versions ago.
    fn attempt(
        &mut self,
        (client, kind): (usize, &str),
        before: i64,
        calls: Vec<Call>,
        mutations: Option<Vec<Mutation>>,
        change: impl FnOnce(&mut Attempt),
    ) {
        let (version, began) = (self.version, self.now);
        self.version += 10;
        self.now += STEP;
        let operation = Some(self.done[client].len() as u32);
        let (id, attempt) = self.story.attempt(version - before, calls);
        attempt.client = ClientId(client as u16);
        attempt.operation = operation;
        (attempt.version_requested, attempt.ended) = (began, self.now);
        attempt.reported = match mutations {
            Some(_) => Reported::Committed { version: version + 5, batch_index: 0 },
            None => Reported::ReadOnly,
        };
        change(attempt);
        if let Some(mutations) = mutations {
            self.story.log(version + 5, vec![(Some(id), 0, mutations)]);
        }
        let returned = self.now;
        let done = Done { kind: kind.to_owned(), called: began, returned, ..nothing() };
        self.done[client].push(done);
    }

    /// A transaction that reads and writes these keys.
    fn writes(&mut self, by: (usize, &str), read: &[KeyRange], mutations: Vec<Mutation>) {
        let read = read.to_vec();
        self.attempt(by, 0, Vec::new(), Some(mutations), |attempt| attempt.read_ranges = read);
    }

    /// A transaction that only reads.
    fn reads(&mut self, by: (usize, &str), round_trips: u32, calls: Vec<Call>) {
        self.attempt(by, 0, calls, None, |attempt| attempt.round_trips = round_trips);
    }

    fn traffic(&self) -> Traffic {
        Traffic::of(&Observation { history: &self.story.history, done: &self.done })
    }

    /// The entries of a topic.
    fn advice(&self, topic: &str) -> Vec<AdviceEntry> {
        let mut entries = self.traffic().advice("made", None).entries;
        entries.retain(|entry| entry.topic == topic);
        entries
    }

    /// The severity and text of the entries of a topic.
    fn said(&self, topic: &str) -> Vec<(Severity, String)> {
        self.advice(topic).into_iter().map(|entry| (entry.severity, entry.measured)).collect()
    }
}

fn key(n: i64) -> Bytes {
    pack(&("k", n)).into()
}

fn single(key: &Bytes) -> KeyRange {
    KeyRange::new(key.clone(), key_after(key))
}

fn set(key: &Bytes) -> Mutation {
    Mutation::Set(key.clone(), Bytes::from_static(b"v"))
}

fn get(key: &Bytes, isolation: Isolation, value: usize) -> Call {
    Call::Get { key: key.clone(), isolation, answer: Some(Some(Bytes::from(vec![0; value]))) }
}

fn range(rows: u64, value: usize, offset: i32) -> Call {
    let end = KeySelector { offset, ..KeySelector::first_greater_or_equal(pack(&("l",))) };
    let row = |n| KeyValue::new(key(n as i64), vec![0; value]);
    Call::GetRange {
        begin: KeySelector::first_greater_or_equal(pack(&("k",))),
        end,
        limit: 0,
        reverse: false,
        isolation: Isolation::Serializable,
        answer: Some(((0..rows).map(row).collect(), false)),
    }
}

#[test]
fn a_key_that_every_operation_of_a_kind_writes_is_hot() {
    let counter: Bytes = pack(&("counter",)).into();
    let said = |clients: usize, reads: bool, mutation: Mutation| {
        let mut made = Made::new(2);
        for n in 0..40 {
            let read = if reads { vec![single(&counter)] } else { Vec::new() };
            made.writes((n % clients, "Add"), &read, vec![mutation.clone()]);
        }
        made.said("hot key")
    };
    let text = |how| format!("(\"counter\",): up to 200 writes/s; 100 % of Add write it (100 % {how})");
    assert_eq!(said(2, true, set(&counter)), [(Severity::Over, text("after a read"))]);
    let add = Mutation::Atomic(counter.clone(), Bytes::from_static(b"\x01"), MutationType::Add);
    assert_eq!(said(2, false, add), [(Severity::Look, text("atomically"))]);
    assert_eq!(said(2, false, set(&counter)), [(Severity::Look, text("without a read"))]);
    let mut made = Made::new(2);
    for n in 0..40 {
        let read = if n % 5 == 0 { vec![single(&counter)] } else { Vec::new() };
        made.writes((n % 2, "Add"), &read, vec![set(&counter)]);
    }
    assert_eq!(made.advice("hot key")[0].severity, Severity::Look);
    // A key of a single client has no contention.
    assert_eq!(said(1, true, set(&counter)), []);
}

#[test]
fn the_share_of_a_hot_key_is_that_of_the_runs_that_write_it() {
    let run = |key: Bytes| {
        let mut made = Made::new(2);
        (0..20).for_each(|n| made.writes((n % 2, "Add"), &[], vec![set(&key)]));
        made.traffic()
    };
    let mut traffic = run(key(1));
    traffic.merge(&run(pack(&("other",)).into()));
    let entries = traffic.advice("made", None).entries;
    assert!(entries[0].measured.contains("100 % of Add write it"), "{}", entries[0].measured);
}

#[test]
fn keys_that_are_drawn_from_a_few_are_not_hot() {
    let mut made = Made::new(2);
    for n in 0..80_i64 {
        let key = key(n / 2 % 10);
        made.writes(((n % 2) as usize, "Set"), &[single(&key)], vec![set(&key)]);
    }
    let said = made.said("hot key");
    let [(Severity::Fine, text)] = &said[..] else { panic!("{said:?}") };
    assert!(text.starts_with("10 keys with more than 10 writes/s") && text.contains("than 10 %"), "{text}");
}

#[test]
fn conflicts_name_the_kinds_the_range_and_what_was_wasted() {
    let queue: Bytes = pack(&("queue",)).into();
    let all = KeyRange::new([&queue[..], b"\0"].concat(), [&queue[..], b"\xff"].concat());
    let item = |n: i64| -> Bytes { pack(&("queue", n)).into() };
    let made = |refused: usize| {
        let mut made = Made::new(2);
        for n in 0..20 {
            made.writes((0, "Enqueue"), &[], vec![set(&item(n))]);
        }
        for n in 0..20 {
            let read = vec![all.clone()];
            // Its read version is before the last enqueue.
            made.attempt((1, "Dequeue"), 12, Vec::new(), None, |attempt| {
                attempt.read_ranges = read;
                if n < refused {
                    attempt.reported = Reported::Failed(Error::NOT_COMMITTED);
                }
            });
            made.writes((0, "Enqueue"), &[], vec![set(&item(n as i64))]);
        }
        made
    };
    let said = made(6).said("conflicts");
    let [(Severity::Look, text)] = &said[..] else { panic!("{said:?}") };
    assert_eq!(
        text,
        "(\"queue\", ..), read by Dequeue (30 % of its attempts), was written by Enqueue before the commit, as \
         (\"queue\", *): 6 attempts and 30 ms of virtual time wasted, 10 % of all"
    );
    let few = made(3).said("conflicts");
    assert_eq!(few, [(Severity::Fine, "3 of 60 attempts conflicted".to_owned())]);
}

#[test]
fn sizes_are_compared_with_what_is_advised_and_with_the_limits() {
    let severity = |topic: &str, key: usize, value: usize, step: Nanos| {
        let mut made = Made::new(1);
        let mutations = vec![Mutation::Set(vec![b'k'; key].into(), vec![0; value].into())];
        made.attempt((0, "Set"), 0, Vec::new(), Some(mutations), |attempt| attempt.ended += step);
        let said = made.said(topic);
        let [(severity, text)] = &said[..] else { panic!("{said:?}") };
        (*severity, text.clone())
    };
    assert_eq!(severity("key size", 1_000, 1, 0).0, Severity::Fine);
    let (large, text) = severity("key size", 1_001, 1, 0);
    assert_eq!(large, Severity::Look);
    assert!(
        text.starts_with("100 % of written keys have more than 32 bytes") && text.ends_with("1.0 kB"),
        "{text}"
    );
    assert_eq!(severity("value size", 1, 10_000, 0).0, Severity::Fine);
    assert_eq!(severity("value size", 1, 10_001, 0).0, Severity::Look);
    assert_eq!(severity("transaction size", 1, 999_000, 0).0, Severity::Fine);
    assert_eq!(severity("transaction size", 1, 1_000_000, 0).0, Severity::Look);
    // The payload, the mutation's structure, and the write conflict range of the key.
    let (_, text) = severity("transaction size", 1, 1, 0);
    assert_eq!(text, "the largest transaction, of Set, has 73 bytes");
    assert_eq!(severity("duration", 1, 1, 2_000 * MILLISECOND).0, Severity::Fine);
    assert_eq!(severity("duration", 1, 1, 3_000 * MILLISECOND).0, Severity::Look);
    let (long, text) = severity("duration", 1, 1, 5_000 * MILLISECOND);
    assert_eq!((long, text.as_str()), (Severity::Over, "the longest transaction, of Set, took 5 s"));
}

#[test]
fn refusals_because_of_a_limit_come_first() {
    let mut made = Made::new(1);
    for _ in 0..2 {
        made.attempt((0, "Load"), 0, Vec::new(), None, |attempt| {
            attempt.reported = Reported::Failed(Error::TRANSACTION_TOO_LARGE);
        });
    }
    let first = made.traffic().advice("made", None).entries.remove(0);
    assert_eq!((first.severity, first.topic.as_str()), (Severity::Over, "transaction size"));
    assert!(
        first.measured.starts_with("Load was refused 2 times with transaction_too_large"),
        "{}",
        first.measured
    );
}

#[test]
fn reads_one_after_another_are_counted() {
    let made = |round_trips: u32, value: usize| {
        let mut made = Made::new(1);
        for _ in 0..10 {
            let calls = (0..4).map(|n| get(&key(n), Isolation::Serializable, value)).collect();
            made.reads((0, "Walk"), round_trips, calls);
        }
        made
    };
    let slow = made(4, 20);
    let text = "Walk does 4 reads in 4 round trips one after another on average".to_owned();
    assert_eq!(slow.said("round trips"), [(Severity::Look, text)]);
    let text = "Walk reads 4 keys one by one, 80 bytes together, in 100 % of its transactions (4 round trips on average)";
    assert_eq!(slow.said("small reads"), [(Severity::Look, text.to_owned())]);
    let at_once = made(1, 20);
    let text = "at most 1 round trips one after another in a transaction".to_owned();
    assert_eq!(at_once.said("round trips"), [(Severity::Fine, text)]);
    assert_eq!(at_once.said("small reads"), []);
    assert_eq!(made(4, 50).said("small reads"), []);
}

#[test]
fn ranges_offsets_and_watches_are_noted_if_they_are_large() {
    let made = |rows: u64, offset: i32, watches: usize| {
        let mut made = Made::new(1);
        made.attempt((0, "Scan"), 0, vec![range(rows, 995, offset)], None, |a| {
            a.asides = vec![(0, Aside::Watch("w".into())); watches]
        });
        made
    };
    let small = made(3, 1, 1_000);
    let large = made(10, 100, 1_001);
    for topic in ["range size", "offsets", "watches"] {
        assert_eq!((small.said(topic).len(), large.said(topic).len()), (0, 1), "{topic}");
    }
    assert_eq!(large.said("offsets")[0].1, "Scan reads with a key selector of offset 99");
    assert_eq!(
        large.said("range size")[0].1,
        "Scan reads ranges of 10.0 kB in a transaction on average, at most 10.0 kB"
    );
}

#[test]
fn what_is_read_is_compared_with_what_is_stored() {
    let made = |rows: fn(u64) -> u64| {
        let mut made = Made::new(1);
        for n in 0..40 {
            made.writes((0, "Add"), &[], vec![set(&key(n as i64))]);
            made.reads((0, "Sum"), 1, vec![range(rows(n), 1, 1)]);
        }
        made
    };
    let said = made(|stored| stored).said("growth");
    let [(Severity::Look, text)] = &said[..] else { panic!("{said:?}") };
    assert!(text.starts_with("Sum reads 4.5 rows with 6 keys stored, and 35 with 36"), "{text}");
    let fine = |rows| assert_eq!(made(rows).advice("growth")[0].severity, Severity::Fine);
    fine(|_| 10);
    // Without a trend.
    fine(|stored| stored * 7 % 11);
    // Too little to matter.
    fine(|stored| 10 + stored / 20);
}

#[test]
fn growth_is_also_found_in_the_number_of_reads() {
    let mut made = Made::new(1);
    for n in 0..40 {
        made.writes((0, "Add"), &[], vec![set(&key(n))]);
        made.reads((0, "Sum"), 1, (0..n).map(|n| get(&key(n), Isolation::Serializable, 1)).collect());
    }
    let text = &made.said("growth")[0].1;
    assert!(text.starts_with("Sum does 4.5 reads with 6 keys stored, and 35 with 36"), "{text}");
}

#[test]
fn a_key_that_is_written_after_a_snapshot_read_alone_is_noted() {
    let said = |calls: Vec<Call>, read: Vec<KeyRange>, mutation: Mutation| {
        let mut made = Made::new(1);
        made.attempt((0, "Take"), 0, calls, Some(vec![mutation]), |attempt| attempt.read_ranges = read);
        made.said("snapshot reads").len()
    };
    let first = key(1);
    let snapshot = || vec![get(&first, Isolation::Snapshot, 1)];
    let clear = || Mutation::ClearRange(single(&first));
    assert_eq!(said(snapshot(), Vec::new(), clear()), 1);
    assert_eq!(said(snapshot(), Vec::new(), set(&first)), 1);
    assert_eq!(said(snapshot(), vec![single(&first)], clear()), 0);
    assert_eq!(said(vec![get(&first, Isolation::Serializable, 1)], Vec::new(), clear()), 0);
    assert_eq!(said(snapshot(), Vec::new(), set(&key(2))), 0);
    let own = vec![Call::Write(set(&first)), get(&first, Isolation::Snapshot, 1)];
    assert_eq!(said(own, Vec::new(), clear()), 0);
    let add = Mutation::Atomic(first.clone(), Bytes::from_static(b"\x01"), MutationType::Add);
    assert_eq!(said(snapshot(), Vec::new(), add), 0);
}

#[test]
fn how_operations_end_is_noted_where_few_are_done() {
    let made = |ended: fn(usize) -> Ended, step: Nanos| {
        let mut made = Made::new(1);
        for n in 0..100 {
            made.writes((0, "Take"), &[], vec![set(&key(n as i64))]);
            made.now += step;
            let last = made.done[0].last_mut().expect("an operation");
            (last.ended, last.returned) = (ended(n), made.now);
        }
        made
    };
    let fine = made(|n| if n < 10 { Ended::Done } else { Ended::Refused }, 0);
    for topic in ["rarely done", "returned conflicts", "slow operations", "time outside of transactions"] {
        assert_eq!(fine.said(topic), [], "{topic}");
    }
    let failed = made(|n| if n < 98 { Ended::Done } else { Ended::Failed(Some(Error::NOT_COMMITTED)) }, 0);
    let text = "Take failed with not_committed in 2 % of its operations (2): a retry had been safe";
    assert_eq!(failed.said("returned conflicts"), [(Severity::Look, text.to_owned())]);
    let busy = made(|n| if n < 9 { Ended::Done } else { Ended::Refused }, 0);
    let text = "9 % of 100 operations Take were done: 91 were refused, 0 failed, 0 are unknown";
    assert_eq!(busy.said("rarely done"), [(Severity::Look, text.to_owned())]);
    let mut rare = busy;
    rare.done[0].iter_mut().for_each(|done| done.is_rare = true);
    assert_eq!(rare.said("rarely done"), []);
    let slow = made(|n| if n < 99 { Ended::Done } else { Ended::Unknown }, 6_000 * MILLISECOND);
    let text = "100 % of 100 operations Take took longer than 5 s, at most 6 s";
    assert_eq!(slow.said("slow operations"), [(Severity::Look, text.to_owned())]);
    let text = "Take spends 6 s of an operation outside of transactions, on average";
    assert_eq!(slow.said("time outside of transactions"), [(Severity::Look, text.to_owned())]);
    assert_eq!(made(|_| Ended::Done, 400 * MILLISECOND).said("time outside of transactions"), []);
}

#[test]
fn operations_that_leave_only_their_session_s_record_are_counted() {
    let record = || Mutation::Set(pack(&("sessions", 1)).into(), Bytes::from_static(b"v"));
    let said = |empty: i64| {
        let mut made = Made::new(1);
        for n in 0..20 {
            let mutations = if n < empty { vec![record()] } else { vec![record(), set(&key(n))] };
            made.writes((0, "Put"), &[], mutations);
        }
        made.said("no effect")
    };
    let text = "50 % of the operations Put that were done wrote nothing but the record of their session";
    assert_eq!(said(10), [(Severity::Look, text.to_owned())]);
    assert_eq!(said(9), []);
    // A kind that never writes.
    assert_eq!(said(20), []);
}

#[test]
fn many_rows_that_are_read_for_one_are_noted() {
    let said = |rows: u64, written: i64| {
        let mut made = Made::new(1);
        for _ in 0..10 {
            let mutations = (0..written).map(|n| set(&key(n))).collect();
            made.attempt((0, "Find"), 0, vec![range(rows, 1, 1)], Some(mutations), |_| ());
        }
        made.said("rows for one")
    };
    let text = "Find reads ranges of 20 rows, on average, to change one of them";
    assert_eq!(said(20, 1), [(Severity::Look, text.to_owned())]);
    assert_eq!((said(20, 2), said(9, 1)), (vec![], vec![]));
}

#[test]
fn many_rows_that_are_read_for_a_small_answer_are_noted() {
    let said = |rows: u64, answer: u64| {
        let mut made = Made::new(1);
        for _ in 0..10 {
            made.reads((0, "Find"), 1, vec![range(rows, 5, 1)]);
            made.done[0].last_mut().expect("an operation").answer = Some(answer);
        }
        made.said("rows for one")
    };
    let text = "Find reads ranges of 20 rows, on average, for an answer that is not larger than one of them";
    assert_eq!(said(20, 5), [(Severity::Look, text.to_owned())]);
    assert_eq!((said(20, 50), said(9, 5)), (vec![], vec![]));
}

#[test]
fn what_operations_leave_open_is_noted() {
    let mut made = Made::new(2);
    // The third one leaves a transaction and a watch, and the fourth one another watch.
    for (n, (transactions, watches)) in [(0, 0), (1, 1), (1, 2), (1, 1)].into_iter().enumerate() {
        made.reads((1, "Wait"), 1, Vec::new());
        let open = Open { transactions, watches };
        made.story.history.open.extend((open != Open::default()).then_some(((ClientId(1), n as u32), open)));
    }
    let said: Vec<String> = made.said("left open").into_iter().map(|(_, text)| text).collect();
    assert_eq!(
        said,
        [
            "Wait leaves a transaction open at its end, in 25 % of its operations (1)",
            "Wait leaves a watch (and then 2 at most) open at its end, in 50 % of its operations (2)",
        ]
    );
}

#[test]
fn an_update_that_is_overwritten_as_it_was_seen_before_is_lost() {
    let text = |times| {
        format!(
            "Save overwrote (\"k\", 1) as it had read or written it before, without a read that conflicts, and \
             another operation had changed it since, 1 time, in {times} of its transactions that write: that \
             change is lost"
        )
    };
    let said = |made: &Made| made.said("lost updates");
    let mine = || Mutation::Set(key(1), Bytes::from_static(b"mine"));
    // It is read in an earlier transaction of the operation, or in the same one at snapshot.
    let made = |earlier: bool, isolation, guard: &[KeyRange], theirs: Mutation| {
        let mut made = Made::new(2);
        let read = || vec![get(&key(1), isolation, 1)];
        if earlier {
            made.reads((0, "Save"), 1, read());
            made.done[0].pop();
        }
        made.writes((1, "Other"), &[], vec![theirs]);
        let calls = if earlier { Vec::new() } else { read() };
        let guard = guard.to_vec();
        made.attempt((0, "Save"), 11, calls, Some(vec![mine()]), |attempt| attempt.read_ranges = guard);
        made
    };
    use Isolation::{Serializable, Snapshot};
    assert_eq!(said(&made(true, Serializable, &[], set(&key(1)))), [(Severity::Look, text("100 %"))]);
    assert_eq!(said(&made(false, Snapshot, &[], set(&key(1)))), [(Severity::Look, text("100 %"))]);
    let mut tried_again = made(true, Serializable, &[], set(&key(1)));
    let first = tried_again.story.history.attempts[0].as_mut().expect("an attempt");
    first.reported = Reported::Failed(Error::NOT_COMMITTED);
    assert_eq!(said(&tried_again), []);
    // Another key or the same value is written, or a read conflicts.
    for earlier in [true, false] {
        assert_eq!(said(&made(earlier, Snapshot, &[], set(&key(2)))), []);
        assert_eq!(said(&made(earlier, Snapshot, &[], mine())), []);
        assert_eq!(said(&made(earlier, Snapshot, &[single(&key(1))], set(&key(1)))), []);
    }
}

#[test]
fn what_is_written_and_never_read_is_named() {
    let mut made = Made::new(1);
    let other = |n| Bytes::from(pack(&("other", n)));
    for n in 0..3 {
        made.writes((0, "Add"), &[], vec![set(&key(n)), set(&Bytes::from(pack(&("lost", n))))]);
        made.writes((0, "Trim"), &[], vec![Mutation::ClearRange(single(&other(n)))]);
        made.writes((0, "Trim"), &[], vec![Mutation::ClearRange(single(&other(n)))]);
    }
    made.reads((0, "Get"), 1, vec![get(&key(1), Isolation::Serializable, 1)]);
    let said: Vec<String> = made.said("unread").into_iter().map(|(_, text)| text).collect();
    let nobody = "and read by no operation, audit or check";
    assert_eq!(
        said,
        [
            format!("(\"lost\", *) (3 keys): written in 3 transactions of Add, {nobody}"),
            format!("(\"other\", *) (3 keys): cleared, never written in 6 transactions of Trim, {nobody}"),
        ]
    );
}

#[test]
fn the_traffic_of_runs_is_merged() {
    let run = |n: usize| {
        let mut made = Made::new(n);
        for i in 0..20 * n {
            made.writes((i % n, "Add"), &[single(&key(1))], vec![set(&key(1))]);
            made.reads((i % n, "Get"), 2, vec![get(&key(1), Isolation::Serializable, 3)]);
        }
        made.traffic()
    };
    let (mut sum, mut other) = (run(2), run(3));
    sum.merge(&run(3));
    other.merge(&run(2));
    assert_eq!(sum, other);
    let advice = sum.advice("made", Some("bug"));
    assert_eq!((advice.runs, advice.clients, advice.operations), (2, (2, 3), 200));
    assert_eq!((advice.rates, advice.bug.as_deref()), ((200.0, 200.0), Some("bug")));
    let hot = &advice.entries[0];
    assert_eq!(hot.measured, "(\"k\", 1): up to 100 writes/s; 100 % of Add write it (100 % after a read)");
}

#[test]
fn kinds_are_names_of_variants() {
    let kinds = ["Enqueue { n: 1 }", "[Get(3)]", "[Get(3), Get(4)]", "(1, 2)"]
        .map(|shown| named(&Done { kind: kind(shown), ..nothing() }).to_owned());
    assert_eq!(kinds, ["Enqueue", "Get", "(several at once)", "operation"]);
}
