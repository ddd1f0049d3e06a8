//! Texts on single runs: replays and stories.

use crate::samples::{
    pages,
    small::{COMMIT, document, history, run, shrunk, violated},
};
use insta::assert_snapshot;
use shaketable_reports::{
    Access, Body, CallEntry, ErrorReport, Fate, OperationEntry, ProgramReport, RowEntry, RunReport, Verdict,
    html, json,
    text::{self, Details},
};

/// A real cluster shows no events, has no virtual time, and does not say which faults struck.
#[test]
fn a_run_on_a_real_cluster_is_told_without_what_only_a_simulated_one_has() {
    let mut run = run(7, violated());
    (run.event_hash, run.virtual_ns, run.events) = (None, None, 0);
    run.faults_delivered.clear();
    let told = text::replay(&run, COMMIT, Details::All);
    let page = html::render(&document(Body::Replay(Box::new(run)))).expect("it has a page");
    for absent in ["event hash", "virtual time", "struck"] {
        assert!(!told.contains(absent), "{told}");
        assert!(!page.contains(&format!("<dt>{absent}</dt>")), "{absent}");
    }
}

#[test]
fn a_replay_that_passed() {
    let mut run = run(7, Verdict::Passed);
    run.bug = None;
    run.repro = Some("small.json".into());
    assert_snapshot!(text::replay(&run, COMMIT, Details::Brief));
}

#[test]
fn a_replay_that_failed() {
    assert_snapshot!(text::replay(&run(7, violated()), COMMIT, Details::Brief));
}

#[test]
fn a_failure_that_was_shrunk() {
    let failed = RunReport { shrunk: Some(Box::new(shrunk())), ..run(7, violated()) };
    assert_snapshot!(text::replay(&failed, COMMIT, Details::All));
    let document = document(Body::Replay(Box::new(failed)));
    assert_eq!(json::parse(&json::render(&document)).as_ref(), Ok(&document));
}

#[test]
fn the_page_of_a_program_explains_the_errors_that_it_was_given() {
    let error = ErrorReport {
        error: "not_committed (1020)".into(),
        times: 3,
        injected: Some([("spurious-conflict".to_owned(), 2)].into()),
        meaning: "Another transaction wrote.".into(),
        link: "https://example.org/conflicts.html#a".into(),
    };
    let of_its_own = ErrorReport { injected: Some(Default::default()), ..error.clone() };
    let program = Some(Box::new(ProgramReport {
        suspects: vec![["T2 of thread 1 set a = 3".to_owned(), "it had read a = 1".to_owned()]],
        errors: vec![error, of_its_own],
    }));
    let failed = RunReport { program, history: Some(Box::new(history())), plan: None, ..run(7, violated()) };
    let page = |run: RunReport| {
        let document = document(Body::Replay(Box::new(run)));
        assert_eq!(json::parse(&json::render(&document)).as_ref(), Ok(&document));
        html::render(&document).expect("a page")
    };
    let shown = [
        "The program ran on a simulated FoundationDB cluster",
        "3 times <code>not_committed (1020)</code>",
        "Another transaction wrote. The simulation injected it 2 times, without another cause (spurious-conflict 2). <a href=\"https://example.org/conflicts.html#a\">",
        "The simulation injected none: each has a cause of its own.",
        "Every transaction, by time",
        "Where to look first",
        "<li>T2 of thread 1 set a = 3<div>it had read a = 1</div></li>",
        "Commits that took effect although the program was not told so",
        "<li>T2 of client 0, at version 20: reads (&quot;counter&quot;,) = 1 [T1]; sets (&quot;counter&quot;,) = 2 =&gt;",
    ];
    let (of_workload, of_program) = (page(RunReport { program: None, ..failed.clone() }), page(failed));
    for text in shown {
        assert!(of_program.contains(text) && !of_workload.contains(text), "{text}");
    }
}

#[test]
fn a_story_of_many_clients_has_no_columns() {
    let mut many = history();
    for client in 2..4 {
        let operation = OperationEntry { client, ..many.operations[1].clone() };
        many.operations.push(operation);
    }
    assert_snapshot!(text::story(&many));
}

#[test]
fn a_transcript_shows_operations_all_calls_of_their_attempts_and_faults_by_time() {
    let mut whole = pages::history();
    let row = |key: &str, value: Option<&str>, writer| RowEntry {
        key: format!("(\"{key}\",)"),
        value: value.map(str::to_owned),
        writer,
        shared: false,
        ..RowEntry::default()
    };
    let call = |access, at: &str, rows| CallEntry {
        access,
        at: at.into(),
        rows,
        answered: true,
        ..CallEntry::default()
    };
    let pair = || vec![row("a", Some("1"), Some(0)), row("b", Some("2"), Some(6))];
    whole.transactions[4].calls.extend([
        CallEntry { answered: false, ..call(Access::Get, "(\"a\",)", Vec::new()) },
        call(Access::Get, "(\"c\",)", vec![row("c", None, Some(3))]),
        call(Access::GetKey, "after (\"a\",)", vec![row("b", None, None)]),
        call(Access::GetRange, "(\"a\",) to (\"c\",)", Vec::new()),
        CallEntry { snapshot: true, ..call(Access::GetRange, "(\"a\",) to (\"c\",)", pair()) },
        CallEntry { more: 3, ..call(Access::GetRange, "(\"a\",) to (\"z\",), reverse", pair()) },
        call(Access::Set, "(\"a\",)", vec![row("a", Some("2"), None)]),
        call(Access::Clear, "(\"a\",) to (\"c\",)", Vec::new()),
        CallEntry {
            atomic: "Add".into(),
            ..call(Access::Atomic, "(\"a\",)", vec![row("a", Some("1"), None)])
        },
        call(Access::ReadConflict, "(\"a\",) to (\"c\",)", Vec::new()),
        call(Access::WriteConflict, "(\"a\",)", Vec::new()),
        call(Access::Watch, "(\"a\",)", Vec::new()),
        call(Access::Watch, "(\"b\",)", vec![row("b", Some("2"), Some(6))]),
        call(Access::Option, "timeout", vec![row("timeout", Some("500"), None)]),
        call(Access::Option, "next_write_no_write_conflict_range", Vec::new()),
        call(Access::ReadVersion, "100003349", Vec::new()),
    ]);
    assert_snapshot!(text::transcript(&whole));
}

#[test]
fn a_story_shows_the_keys_of_its_witness_also_if_one_transaction_alone_touches_them() {
    let mut stale = history();
    let mut entry = stale.transactions[3].calls[1].clone();
    (entry.at, entry.shared) = ("(\"entry\",)".into(), false);
    (entry.rows[0].key, entry.rows[0].shared) = (entry.at.clone(), false);
    stale.transactions[3].calls.push(entry);
    assert!(!text::story(&stale).contains("entry"), "{}", text::story(&stale));
    stale.witness.keys.push("(\"entry\",)".into());
    assert!(text::story(&stale).contains("sets (\"entry\",) = 12"), "{}", text::story(&stale));
}

#[test]
fn a_long_story_is_thinned_out() {
    let mut long = history();
    let watch = CallEntry {
        access: Access::Watch,
        at: "(\"counter\",)".into(),
        shared: true,
        ..CallEntry::default()
    };
    long.transactions[3].calls.push(watch);
    for id in 4..40 {
        let mut read = long.transactions[3].clone();
        (read.id, read.fate, read.version) = (id, Fate::ReadOnly, None);
        read.calls.truncate(1);
        long.transactions.push(read);
    }
    let story = text::story(&long);
    assert!(story.lines().count() < 40, "{story}");
    assert!(story.contains("36 transactions without a write that matters: left out"), "{story}");
    assert!(story.contains("attempt 3,") && !story.contains("attempt 4,"), "{story}");
    assert!(story.contains("watches (\"counter\",)"), "{story}");
    long.witness.transactions.push(4);
    assert!(text::story(&long).contains("* attempt 4,"));
    assert!(!text::story(&long).contains("setup\n"), "its writes are named where they are read");
    long.witness.transactions.push(0);
    assert!(text::story(&long).contains("0.000  setup\n          * attempt 0,"), "{}", text::story(&long));
}

#[test]
fn a_failure_gives_the_replay_line_of_another_seed() {
    let line = "shaketable replay queue 44 --faults standard --without clog --bug recipe-dequeue";
    assert_eq!(run(3, violated()).replay_of(44).as_deref(), Some(line));
    let repro = RunReport { replay: "shaketable replay small.json".into(), ..run(3, violated()) };
    assert_eq!(repro.replay_of(44), None);
}
