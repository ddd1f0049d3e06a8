//! Where two runs of a program part: the first call of their journals that differs.
//!
//! Threads may make requests without an answer in one order or another, and their waits may begin and end at
//! moments that change nothing. What counts are the calls, in their order, each with what its transaction did
//! before it. Transactions are numbered by their first calls.

use crate::{
    Action, Call, Command, DatabaseId, TransactionId,
    journal::{Event, JournalEntry, Script},
    protocol::Request,
    threads::ThreadNumber,
};
use bytes::Bytes;
use shaketable_tx::{KeySelector, show};
use std::{collections::BTreeMap, io};

/// A call of a transaction, with what it did since its last one.
struct Asked {
    transaction: usize,
    /// The thread that created it: how many had created transactions before. It is told, and does not count.
    thread: u32,
    before: Vec<Action>,
    call: Call,
}

impl PartialEq for Asked {
    fn eq(&self, other: &Asked) -> bool {
        let Asked { transaction, thread: _, before, call } = self;
        (transaction, before, call) == (&other.transaction, &other.before, &other.call)
    }
}

/// The first call that differs between two journals, in words; `None` if all are equal. Fails if one of them
/// cannot be read.
pub fn difference(first: Vec<u8>, second: Vec<u8>) -> io::Result<Option<String>> {
    let (mut first, mut second) = (calls(first)?, calls(second)?);
    let (mut number, mut has_threads): (u64, bool) = (1, false);
    loop {
        let (one, other) = (first.next(), second.next());
        has_threads |= [&one, &other].into_iter().flatten().any(|asked| asked.thread > 0);
        match (one, other) {
            (None, None) => return Ok(None),
            (one, other) if one != other => {
                let [one, other] = told([one.as_ref(), other.as_ref()], has_threads);
                return Ok(Some(format!("call {number}: {one}; in the second run: {other}")));
            }
            _ => number += 1,
        }
    }
}

/// The calls of a journal.
fn calls(journal: Vec<u8>) -> io::Result<impl Iterator<Item = Asked>> {
    let entries = Script::read(journal)?.into_iter().flat_map(|(_, script)| script.entries());
    let (mut thread, mut creators, mut numbers) = (0, BTreeMap::new(), BTreeMap::new());
    let mut actions: BTreeMap<(DatabaseId, TransactionId), Vec<Action>> = BTreeMap::new();
    Ok(entries.filter_map(move |JournalEntry(_, event)| match event {
        Event::Thread(ThreadNumber(number)) => {
            thread = number;
            None
        }
        Event::Asked(Request::Command(database, Command::Create(tx))) => {
            creators.insert((database, tx), thread);
            None
        }
        Event::Asked(Request::Command(database, Command::Transaction(tx, action))) => {
            match action {
                Action::Destroy => drop(actions.remove(&(database, tx))),
                action => actions.entry((database, tx)).or_default().push(action),
            }
            None
        }
        Event::Asked(Request::Call(_, database, tx, call)) => {
            let next = numbers.len() + 1;
            let transaction = *numbers.entry((database, tx)).or_insert(next);
            let thread = creators.get(&(database, tx)).copied().unwrap_or_default();
            Some(Asked {
                transaction,
                thread,
                before: actions.remove(&(database, tx)).unwrap_or_default(),
                call,
            })
        }
        _ => None,
    }))
}

/// What both say, as far as it differs.
fn told([first, second]: [Option<&Asked>; 2], has_threads: bool) -> [String; 2] {
    let said = [first, second].map(|asked| match asked {
        None => "there is none".to_owned(),
        Some(Asked { transaction, thread, call, .. }) => {
            let thread = if has_threads { format!(" of thread {thread}") } else { String::new() };
            format!("transaction {transaction}{thread} {}", of_call(call))
        }
    });
    let (Some(first), Some(second)) = (first, second) else { return said };
    if said[0] != said[1] {
        return said;
    }
    // What it did before differs, or a value.
    let (one, other) = (first.before.iter(), second.before.iter());
    let parted = one.clone().zip(other.clone()).take_while(|(one, other)| one == other).count();
    let before = |mut actions: std::slice::Iter<'_, Action>| match actions.nth(parted) {
        Some(action) => of_action(action),
        None => "nothing more".to_owned(),
    };
    let [said, _] = said;
    [format!("{said}, and before: {}", before(one)), before(other)]
}

fn of_action(action: &Action) -> String {
    match action {
        Action::SetOption { code, .. } => format!("sets option {code}"),
        Action::SetReadVersion(_) => "sets its read version".to_owned(),
        Action::Set(key, value) => format!("sets {} to {}", show::key(key), show::value(value)),
        Action::Clear(key) => format!("clears {}", show::key(key)),
        Action::ClearRange(begin, end) => format!("clears {}", show::range(begin, end)),
        Action::Atomic { key, .. } => format!("changes {}", show::key(key)),
        Action::AddConflictRange(begin, end, _) => {
            format!("adds the conflict range {}", show::range(begin, end))
        }
        Action::Reset => "is reset".to_owned(),
        Action::Cancel => "is cancelled".to_owned(),
        Action::Destroy => "is destroyed".to_owned(),
    }
}

fn of_call(call: &Call) -> String {
    let selected = |selector: &KeySelector| show::key(&selector.key);
    let between = |begin: &Bytes, end: &Bytes| show::range(begin, end);
    match call {
        Call::Get(key, _) => format!("reads {}", show::key(key)),
        Call::GetKey(selector, _) => format!("looks for a key at {}", selected(selector)),
        Call::GetRange(range, ..) | Call::GetMappedRange(range, ..) => {
            format!("reads {} to {}", selected(&range.begin), selected(&range.end))
        }
        Call::GetReadVersion => "asks for its read version".to_owned(),
        Call::Commit => "commits".to_owned(),
        Call::OnError(error) => format!("is to be repeated after {error}"),
        Call::Watch(key) => format!("watches {}", show::key(key)),
        Call::GetVersionstamp => "asks for its versionstamp".to_owned(),
        Call::GetApproximateSize => "asks for its size".to_owned(),
        Call::GetEstimatedRangeSize(begin, end) => format!("asks for the size of {}", between(begin, end)),
        Call::GetRangeSplitPoints(begin, end, _) => {
            format!("asks for split points of {}", between(begin, end))
        }
        Call::GetAddresses(key) => format!("asks for the servers of {}", show::key(key)),
        Call::GetTagThrottledDuration => "asks how long it was throttled".to_owned(),
        Call::GetTotalCost => "asks for its cost".to_owned(),
        Call::Recover => "waits for a recovery".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallId, journal::Journal, settings::Environment};

    fn journal(events: Vec<(u64, Event)>) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        let mut journal = Journal::create(&path, &Environment::default().settings(None));
        for (steps, event) in events {
            (0..steps).for_each(|_| journal.stepped());
            journal.add(event);
        }
        journal.flush();
        std::fs::read(path).expect("there is a journal")
    }

    #[test]
    fn the_first_call_that_differs_is_told() {
        let database = DatabaseId(0);
        let acts = |tx, action| {
            Event::Asked(Request::Command(database, Command::Transaction(TransactionId(tx), action)))
        };
        let sets = |tx, value: &'static str| acts(tx, Action::Set(Bytes::from("key"), Bytes::from(value)));
        let calls = |tx, call| Event::Asked(Request::Call(CallId(tx), database, TransactionId(tx), call));
        let commits = |tx| calls(tx, Call::Commit);
        let watches = |tx| calls(tx, Call::Watch(Bytes::from("a")));
        let parts = |first: Vec<(u64, Event)>, second: Vec<(u64, Event)>| {
            difference(journal(first), journal(second)).expect("they are journals")
        };
        let both = |number: u64| vec![(0, sets(number, "a")), (0, commits(number))];
        // Waits, steps, the order of requests without an answer, and numbers do not count.
        let waits = vec![(0, Event::Sleeps(1, 5)), (1, Event::Wakes(1)), (1, sets(4, "a")), (3, commits(4))];
        assert_eq!(parts(both(1), waits), None);
        let other = vec![(0, sets(2, "b")), (0, sets(1, "a")), (0, commits(1)), (0, commits(2))];
        assert_eq!(
            parts(both(1).into_iter().chain(vec![(0, sets(2, "b")), (0, commits(2))]).collect(), other),
            None
        );
        for (second, told) in [
            (
                vec![(0, sets(1, "b")), (0, commits(1))],
                "call 1: transaction 1 commits, and before: sets \"key\" to \"a\"; in the second run: \
                 sets \"key\" to \"b\"",
            ),
            (
                vec![(0, commits(1))],
                "call 1: transaction 1 commits, and before: sets \"key\" to \"a\"; in the second run: \
                 nothing more",
            ),
            (
                vec![(0, sets(1, "a")), (0, watches(1))],
                "call 1: transaction 1 commits; in the second run: transaction 1 watches \"a\"",
            ),
            (vec![], "call 1: transaction 1 commits; in the second run: there is none"),
        ] {
            assert_eq!(parts(both(1), second).as_deref(), Some(told));
        }
        // Threads are told where there are several.
        let of_thread = |tx, thread| {
            let created = Event::Asked(Request::Command(database, Command::Create(TransactionId(tx))));
            [(0, Event::Thread(ThreadNumber(thread))), (0, created), (0, commits(tx))]
        };
        let by = |first, second| of_thread(1, first).into_iter().chain(of_thread(2, second)).collect();
        assert_eq!(parts(by(0, 1), by(1, 0)), None);
        let watched = of_thread(1, 0).into_iter().chain([(0, watches(1))]).collect();
        assert_eq!(
            parts(by(0, 1), watched).as_deref(),
            Some(
                "call 2: transaction 2 of thread 1 commits; in the second run: transaction 1 of thread 0 watches \"a\""
            )
        );
        assert!(difference(journal(both(1)), b"something else".to_vec()).is_err());
    }
}
