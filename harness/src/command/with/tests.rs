//! `with`, with shell scripts as programs that use the library: they write the reports themselves.

use super::*;
use crate::command::{ForPrograms, Nothing, parse};
use shaketable_session::{
    Action, Call, ClusterName, Command as Asked, DatabaseId, Reply, Session, TransactionId,
    settings::Environment,
};
use shaketable_tx::Isolation;
use std::{os::unix::process::ExitStatusExt, sync::mpsc::channel, thread};

/// A folder with an empty file in place of the library.
fn place() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(LIBRARY.0), "").expect("written");
    folder
}

/// The arguments of a command line after `with`.
fn arguments(words: &[&str]) -> WithArguments {
    let line = [&["shaketable", "with"], words].concat();
    match parse::<Nothing, _>(line).expect("it is understood").command {
        Some(crate::command::Command::ForPrograms(ForPrograms::With(arguments))) => arguments,
        other => panic!("another command: {other:?}"),
    }
}

/// Runs a script with the library in `place`. Returns what is printed, and the exit code.
fn shake(place: &TempDir, options: &[&str], script: &str) -> (String, u8) {
    let library = place.path().to_str().expect("a plain path");
    let arguments = arguments(&[&["--library", library], options, &["--", "sh", "-c", script]].concat());
    let shake = Shake::of(&arguments).expect("it can be run");
    let interrupt = Interrupt::default();
    let mut shaken = shake.run(&interrupt).expect("it is not interrupted");
    repeats::check(&shake, &mut shaken, &interrupt);
    (shake.text(&shaken), shaken.conclusion().exit_code())
}

const REPORT: &str = r"printf 'report of %s\nattempts: 3, 2 committed, 1 of them wrote\n  1 times not_committed (1020)\nfaults: 4\nunknown results: 2, 1 committed\n' $SHAKETABLE_SEED >$SHAKETABLE_REPORT/report-1.txt";

/// What is said of this many runs with that report.
fn passed(runs: u64) -> String {
    format!(
        "{runs} runs passed with standard faults\n{} attempts of transactions: {} committed, {runs} of them wrote; \
         {runs} conflicts, {} unknown results ({runs} committed), {} faults\n",
        3 * runs,
        2 * runs,
        2 * runs,
        4 * runs,
    )
}

#[test]
fn runs_go_on_until_one_fails_and_its_line_replays_it() {
    let place = place();
    let script = format!("{REPORT}; echo it is $SHAKETABLE_SEED; echo err >&2; test $SHAKETABLE_SEED != 5");
    let (text, code) = shake(&place, &["--seeds", "3..9", "--without", "kill,clog"], &script);
    assert_eq!(code, 1, "{text}");
    assert!(text.starts_with("it is 5\nerr\n\nseed 5: sh ended with exit code 1\n\nreport of 5\n"), "{text}");
    let line = text.lines().last().expect("a line");
    let expected = format!(
        " with --seeds 5..6 --faults standard --without kill,clog --library {} -- sh -c ",
        place.path().display()
    );
    assert!(line.starts_with("replay: ") && line.contains(&expected), "{line}");
    let again = shlex::split(line).expect("words of a shell");
    let from = again.iter().position(|word| word == "with").expect("the subcommand") + 1;
    let again: Vec<&str> = again[from..].iter().map(String::as_str).collect();
    assert_eq!(arguments(&again).command[2], script.as_str());
    let (text, code) = shake(&place, &["--seeds", "6..9"], &script);
    assert_eq!((text, code), (passed(3), 0));
}

#[test]
fn the_command_finds_its_settings_in_the_environment() {
    let place = place();
    let (text, code) = shake(
        &place,
        &["--seeds", "7..8", "--faults", "storm", "--without", "loss", "--one-at-a-time"],
        "echo $SHAKETABLE_SEED $SHAKETABLE_FAULTS $SHAKETABLE_WITHOUT $SHAKETABLE_ONE_AT_A_TIME $SHAKETABLE_SERVER
        echo $LD_LIBRARY_PATH; read x; exit 9",
    );
    let library = fs::canonicalize(place.path()).expect("it exists");
    let expected = format!("7 storm loss 1 none\n{}", library.display());
    assert!(code == 1 && text.starts_with(&expected), "{text}");
    assert!(text.contains("ended with exit code 9\nno report: "), "{text}");
    assert!(text.contains(" --without loss --one-at-a-time --library "), "{text}");
}

#[test]
fn with_time_a_program_is_preloaded_and_one_that_would_not_see_it_is_refused() {
    let place = place();
    let library = place.path().to_str().expect("a plain path");
    let refused = |words: &[&str]| {
        let arguments = arguments(&[&["--library", library, "--time", "--"], words].concat());
        match Shake::of(&arguments) {
            Err(Refusal::Usage(line)) => line,
            _ => panic!("it is not refused"),
        }
    };
    let missing = refused(&["sh"]);
    assert!(
        missing.starts_with("there is no libshaketable_time.so in ") && !missing.contains('\n'),
        "{missing}"
    );
    fs::write(place.path().join(TIME), "").expect("written");
    let program = place.path().join("static");
    let mut file = b"\x7fELF\x02\x01".to_vec();
    file.resize(64, 0);
    file[54] = 56;
    fs::write(&program, file).expect("written");
    let program = program.to_str().expect("a plain path");
    assert_eq!(
        refused(&[program, "x"]),
        format!("--time has no effect on {program}: it is linked statically, and loads no library")
    );
    // What is preloaded here is no library, which the loader says on standard error.
    let (text, _) = shake(&place, &["--time"], "echo $SHAKETABLE_TIME $LD_PRELOAD; exit 1");
    let preloaded = fs::canonicalize(place.path()).expect("it exists").join(TIME);
    assert!(text.contains(&format!("\n1 {}\n", preloaded.display())), "{text}");
    assert!(text.contains(" --faults standard --time --library "), "{text}");
    let (text, _) = shake(&place, &[], "echo \"time <$SHAKETABLE_TIME> <$LD_PRELOAD>\"; exit 1");
    assert!(text.starts_with("time <> <>\n"), "{text}");
    // The processes of a run take numbers in a folder, unless they are to have their own randomness.
    let numbers = "test -d \"$SHAKETABLE_RANDOM\" && echo a folder || echo none; exit 1";
    assert!(shake(&place, &["--time"], numbers).0.contains("a folder\n"));
    let (text, _) = shake(&place, &["--time", "--own-randomness"], numbers);
    assert!(text.contains("none\n") && text.contains(" --time --own-randomness --library "), "{text}");
    assert!(shake(&place, &[], numbers).0.contains("none\n"));
    assert!(parse::<Nothing, _>(["shaketable", "with", "--own-randomness", "--", "true"]).is_err());
}

/// What is said of a seed that fails, about whether it repeats.
fn repeats(text: &str) -> &str {
    let from = text.find("\nrepeats: ").expect("it is said") + 1;
    text[from..].split("\nreplay: ").next().expect("there is a line")
}

#[test]
fn a_seed_that_fails_is_run_again_and_what_differs_is_told() {
    let place = place();
    fs::write(place.path().join(TIME), "").expect("written");
    let told = |options: &[&str], first: &str, second: &str, both: &str| {
        let mark = place.path().join("mark");
        let _ = fs::remove_file(&mark);
        let mark = mark.display();
        let script = format!(
            "if test -e {mark}; then {second}; else {first}; fi; touch {mark}; {both}; exit ${{code:-1}}"
        );
        let (text, code) = shake(&place, options, &script);
        assert_eq!(code, 1, "the verdict is that of the first run: {text}");
        repeats(&text).to_owned()
    };
    assert_eq!(told(&[], ":", ":", REPORT), "repeats: yes, to the byte");
    assert_eq!(told(&["--show-output"], "echo a", "echo b", REPORT), "repeats: yes, call for call");
    let add = "  to make seeds repeat, add --one-at-a-time and --time, and look for one again";
    assert_eq!(
        told(&[], "echo same; echo a", "echo same; echo b", REPORT),
        "repeats: yes, call for call\n  what differs first: line 2 of what it printed is \"a\" and then \"b\""
    );
    let no = told(&["--one-at-a-time"], "echo a", "code=0", REPORT);
    let line = "line 1 of what it printed is \"a\" and then nothing more";
    let only = add.replace("--one-at-a-time and ", "");
    assert_eq!(
        no,
        format!("repeats: no: the second run ended with exit code 0\n  what differs first: {line}\n{only}")
    );
    let all = told(&["--one-at-a-time", "--time"], "echo a", "code=0", REPORT);
    assert!(all.ends_with("\n  what a seed does not choose is in docs/src/determinism.md"), "{all}");
    let own = told(&["--one-at-a-time", "--time", "--own-randomness"], "echo a", "code=0", REPORT);
    assert!(
        own.ends_with("\n  to make seeds repeat, leave out --own-randomness, and look for one again"),
        "{own}"
    );

    // The calls of several processes are compared in the order of their numbers.
    let left = |name: &str, variables: &[(&str, &str)], key: &'static str| {
        let file = place.path().join(name);
        fs::write(&file, journal_of(variables, key)).expect("written");
        file.display().to_string()
    };
    let (one, other) = (left("one", &[], "key"), left("other", &[], "lock"));
    let leave = |first: &str, second: &str| {
        let to = "$SHAKETABLE_JOURNAL/journal";
        format!("cp {first} {to}-9.txt; cp {second} {to}-10.txt")
    };
    assert_eq!(told(&[], &leave(&one, &other), &leave(&one, &other), ":"), "repeats: yes, to the byte");
    let differs = told(&[], &leave(&one, &one), &leave(&one, &other), ":");
    let first = "process 2 of 2, call 1: transaction 1 commits, and before: clears \"key\"; in the second run: \
                 clears \"lock\"";
    assert_eq!(
        differs,
        format!("repeats: yes, though not call for call\n  what differs first: {first}\n{add}")
    );
    let passes = format!("{}; code=0", leave(&one, &other));
    let no = told(&[], &leave(&one, &one), &passes, ":");
    assert_eq!(
        no,
        format!("repeats: no: the second run ended with exit code 0\n  what differs first: {first}\n{add}")
    );
    let fewer = told(&[], &leave(&one, &one), &format!("cp {one} $SHAKETABLE_JOURNAL/journal-9.txt"), ":");
    assert!(fewer.contains("\n  what differs first: 2 processes used the cluster, and then 1\n"), "{fewer}");
}

#[test]
fn an_interrupt_of_the_second_run_leaves_the_failure() {
    let place = place();
    let mark = place.path().join("mark");
    let script =
        format!("test -e {0} && {{ touch {0}.again; sleep 100; }}; touch {0}; exit 7", mark.display());
    let library = place.path().to_str().expect("a plain path");
    let arguments = arguments(&["--library", library, "--", "sh", "-c", &script]);
    let shake = Shake::of(&arguments).expect("it can be run");
    let interrupt = Interrupt::default();
    let mut shaken = shake.run(&interrupt).expect("it is not interrupted");
    let (begun, signal) = (mark.with_extension("again"), interrupt.clone());
    let sender = thread::spawn(move || {
        while !begun.exists() {
            thread::yield_now();
        }
        signal.set();
    });
    repeats::check(&shake, &mut shaken, &interrupt);
    sender.join().expect("it has ended");
    let text = shake.text(&shaken);
    assert!(text.contains("\nseed 0: sh ended with exit code 7\n"), "{text}");
    assert_eq!(repeats(&text), "repeats: not known: the second run was interrupted");
    assert_eq!(shaken.conclusion().exit_code(), 1);
}

#[test]
fn several_runs_at_a_time_show_what_they_show_one_after_the_other() {
    let place = place();
    // The seed that is reported is the last of those that fail to end.
    let script = format!(
        "{REPORT}; case $SHAKETABLE_SEED in 2) while ! test -e {0}/late; do sleep 0.01; done; exit 1;; \
         4) touch {0}/late; exit 1;; esac",
        place.path().display()
    );
    let (text, code) = shake(&place, &["--seeds", "0..40", "--jobs", "5"], &script);
    assert!(code == 1 && text.starts_with("\nseed 2: sh ended with exit code 1\n"), "{text}");
    let alone = shake(&place, &["--seeds", "0..40"], &script).0;
    assert_eq!(text, alone);
    let (text, code) = shake(&place, &["--seeds", "6..13", "--jobs", "3"], REPORT);
    assert_eq!((text, code), (passed(7), 0));
    let all =
        arguments(&["--library", place.path().to_str().expect("a plain path"), "--jobs", "4", "--", "sh"]);
    assert_eq!(all.jobs.map(NonZero::get), Some(4));
}

/// Once a seed has failed, those after it are ended. So are all at an interrupt.
#[test]
fn runs_that_do_not_count_are_ended() {
    let place = place();
    let script = "test $SHAKETABLE_SEED = 0 && exit 1; exec sleep 100";
    let (text, code) = shake(&place, &["--jobs", "4", "--seeds", "0..9"], script);
    assert!(code == 1 && text.contains("\nseed 0: "), "{text}");
    let library = place.path().to_str().expect("a plain path");
    let started = place.path().join("started");
    let script = format!("echo $$ >>{}; exec sleep 100", started.display());
    let arguments = arguments(&["--library", library, "--jobs", "3", "--", "sh", "-c", &script]);
    let interrupt = Interrupt::default();
    let (seen, set) = (started.clone(), interrupt.clone());
    let sender = thread::spawn(move || {
        while fs::read_to_string(&seen).map_or(0, |text| text.lines().count()) < 3 {
            thread::yield_now();
        }
        set.set();
    });
    let refused = Shake::of(&arguments).expect("it can be run").run(&interrupt).err();
    sender.join().expect("it has ended");
    assert_eq!(refused, Some(Refusal::Interrupted(143, "interrupted after 0 of 50 runs".to_owned())));
    for pid in fs::read_to_string(started).expect("they had begun").lines() {
        let pid = rustix::process::Pid::from_raw(pid.parse().expect("a number")).expect("a process");
        assert!(rustix::process::test_kill_process(pid).is_err(), "it has ended");
    }
}

#[test]
fn a_report_that_accuses_the_cluster_fails_a_run_that_passes() {
    let script = format!("echo '{}keys are lost' >$SHAKETABLE_REPORT/a; {REPORT}", report::ACCUSED);
    let (text, code) = shake(&place(), &["--seeds", "2"], &script);
    let said = format!("seed 0: sh ended with exit code 0\n{}keys are lost\n", report::ACCUSED);
    assert!(code == 3 && text.contains(&said) && text.contains("report of 0"), "{text}");
}

#[test]
fn a_failing_run_without_a_journal_has_no_page() {
    let place = place();
    let page = place.path().join("page.html");
    let library = place.path().to_str().expect("a plain path");
    let words =
        ["--library", library, "--html", page.to_str().expect("a plain path"), "--", "sh", "-c", "exit 1"];
    assert_eq!(with(&arguments(&words)).expect("it is run"), Conclusion::Violated);
    assert!(!page.exists());
}

#[test]
fn runs_that_never_use_the_cluster_prove_nothing() {
    let (text, code) = shake(&place(), &["--seeds", "2"], "true");
    let said = "2 runs passed, and none used the simulated cluster: sh does not load libfdb_c.so, or opens \
                no database\n";
    assert_eq!((text.as_str(), code), (said, 4));
    // A process that ends before its cluster begins has opened a database.
    let journal = "echo 'shaketable journal 1, whole' >$SHAKETABLE_JOURNAL/journal-1.txt";
    let (text, code) = shake(&place(), &["--seeds", "2"], journal);
    let said = "2 runs passed with standard faults, and none committed a write\n";
    assert!(code == 4 && text.starts_with(said), "exit {code}: {text}");
    let without =
        |numbers: &str, other: &str| shake(&place(), &["--seeds", "2"], &REPORT.replace(numbers, other));
    let (text, code) = without("1 of them wrote", "0 of them wrote");
    assert_eq!((text.contains("and none"), code), (false, 0), "an unknown result committed: {text}");
    let (text, code) = without(": 4", ": 0");
    assert!(
        code == 4 && text.starts_with("2 runs passed with standard faults, and none met a fault\n"),
        "{text}"
    );
    let (_, code) = shake(&place(), &["--seeds", "2", "--faults", "calm"], &REPORT.replace(": 4", ": 0"));
    assert_eq!(code, 0, "it has none to meet");
}

#[test]
fn a_signal_and_the_end_of_its_time_fail_a_run() {
    let place = place();
    let (text, code) = shake(&place, &["--seeds", "2"], &format!("{REPORT}; kill -9 $$"));
    assert!(code == 1 && text.contains("seed 0: sh was ended by signal 9\n"), "{text}");
    let script = format!("trap 'echo asked' INT; {REPORT}; sleep 100 & sleep 100; sleep 100");
    let (text, code) = shake(&place, &["--timeout", "1s"], &script);
    assert!(code == 1 && text.contains("seed 0: sh did not end within 1s\n\nreport of 0"), "{text}");
    assert!(text.starts_with("asked\n"), "{text}");
}

/// A process that ends by itself a little after the command leaves its report; others are ended, also those
/// that have a process group of their own or ignore an interrupt.
#[test]
fn what_outlives_the_command_is_waited_for_and_then_ended() {
    let place = place();
    let (text, code) = shake(&place, &["--seeds", "2"], &format!("(sleep 0.1; {REPORT}) & exit 0"));
    assert_eq!((text, code), (passed(2), 0));
    let pids = place.path().join("pids");
    let begin = "setsid sh -c 'trap \"\" INT; echo $$ >>pids; while :; do sleep 1; done' &";
    let have_begun = "until test \"$(cat pids 2>/dev/null | wc -l)\" = 2; do sleep 0.01; done";
    let script = format!("cd {}; {REPORT}; {begin} {begin} {have_begun}; exit 0", place.path().display());
    let (text, code) = shake(&place, &["--seeds", "1"], &script);
    assert!(text.starts_with("ended, because they outlived sh: sh ("), "{text}");
    assert!(code == 0 && text.contains("\n1 run passed with standard faults\n"), "{text}");
    let pids = fs::read_to_string(pids).expect("they had begun");
    assert_eq!(pids.lines().count(), 2, "{pids}");
    for pid in pids.lines() {
        // The dead may wait for whoever reaps them, and who was killed just now for a processor.
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:\t"));
        let signals = pending.and_then(|signals| u64::from_str_radix(signals, 16).ok()).unwrap_or_default();
        let is_killed = signals & 1 << 8 != 0;
        assert!(status.is_empty() || status.contains("\nState:\tZ") || is_killed, "{status}");
    }
}

#[test]
fn a_command_ends_at_an_interrupt_that_this_process_ignores() {
    let test = std::env::current_exe().expect("this program has a path");
    let name = "command::with::tests::a_signal_and_the_end_of_its_time_fail_a_run";
    let output = Command::new("sh").args(["-c", "trap '' INT; exec $0 $1"]).arg(test).arg(name).output();
    let output = output.expect("there is a shell");
    assert!(output.status.success(), "{}", lossy(&output.stdout));
    assert!(lossy(&output.stdout).contains("1 passed"), "{}", lossy(&output.stdout));
}

/// A program in Go, or one that crashes, leaves the journal of its calls, and no report.
#[test]
fn a_process_without_a_report_is_judged_by_its_journal() {
    let place = place();
    let left = |name: &str, bytes: &[u8]| {
        let file = place.path().join(name);
        fs::write(&file, bytes).expect("written");
        format!("cp {} $SHAKETABLE_REPORT/journal-7.txt", file.display())
    };
    let run = |script: &str| shake(&place, &["--seeds", "1", "--faults", "calm"], script);
    let bytes = journal(&[]);
    let whole = left("whole", &bytes);
    let (text, code) = run(&whole);
    assert!(
        code == 0 && text.starts_with("1 run passed with calm faults\n1 attempt of "),
        "exit {code}: {text}"
    );
    let (text, code) = run(&format!("{whole}; kill -9 $$"));
    let said =
        "of a process that ended without a report; its calls were performed again:\nshaketable: seed 3, ";
    assert!(code == 1 && text.contains(said) && !text.contains(NOT_WHOLE), "{text}");
    let bug = left("bug", &journal(&[("SHAKETABLE_BUG", "stale-read-version")]));
    let (text, _) = run(&format!("{bug}; false"));
    assert!(
        text.contains("\nreplay: SHAKETABLE_BUG=stale-read-version ") && !text.contains("again: "),
        "{text}"
    );
    let (text, _) = run(&format!("{whole}; echo own >$SHAKETABLE_REPORT/report-7.txt; false"));
    assert!(text.contains("\nown\n") && !text.contains("performed again"), "{text}");
    // What is missing was not judged, so that the run has not passed.
    let torn = left("torn", &bytes[..bytes.len() - 1]);
    let changed = left("changed", &[&bytes[..bytes.len() - 1], b"?"].concat());
    let foreign = left("foreign", b"This is a file of somebody else.\n");
    let wrong = [
        (torn, "is damaged at byte "),
        (changed, "is damaged at byte "),
        (left("empty", b""), "could not be written"),
        (foreign, "is no journal"),
    ];
    for (script, why) in wrong {
        let line = format!("\n{NOT_WHOLE}it {why}");
        let (text, code) = run(&script);
        assert!(code == 3 && text.contains(&line), "exit {code}: {text}");
        let (text, code) = run(&format!("{script}; false"));
        assert!(code == 1 && text.contains(&line), "exit {code}: {text}");
    }
}

/// The journal of a program that committed a write, with calm faults and these variables.
fn journal(variables: &[(&str, &str)]) -> Vec<u8> {
    journal_of(variables, "key")
}

/// The same, of one that clears this key.
fn journal_of(variables: &[(&str, &str)], key: &'static str) -> Vec<u8> {
    performed(variables, |host, database| {
        let transaction = host.next_transaction();
        host.command(database, Asked::Create(transaction));
        host.command(database, Asked::Transaction(transaction, Action::Clear(key.into())));
        ask(host, database, transaction, Call::Commit);
    })
}

/// Waits for a call, which the cluster answers.
fn ask(host: &Host, database: DatabaseId, transaction: TransactionId, call: Call) -> Reply {
    let (sender, answer) = channel();
    let completion = Box::new(move |answer| sender.send(answer).expect("it is waited for"));
    host.want(host.call(database, transaction, call, completion));
    answer.recv().expect("it is answered").expect("the cluster is calm")
}

/// The journal of a program that does this, with calm faults and these variables.
fn performed(variables: &[(&str, &str)], program: impl FnOnce(&Host, DatabaseId)) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal");
    let path = path.to_str().expect("a plain path");
    let said =
        [&[("SHAKETABLE_SEED", "3"), ("SHAKETABLE_FAULTS", "calm"), ("SHAKETABLE_JOURNAL", path)], variables];
    let said = said.concat();
    let read = |name: &str| said.iter().find(|(said, _)| *said == name).map(|(_, value)| (*value).to_owned());
    let settings = Environment::read(read).expect("they are understood").settings(None);
    let host = Host::new().expect("a pipe");
    thread::scope(|scope| {
        let served = scope.spawn(|| host.run(|| settings));
        program(&host, host.open(&ClusterName::default()));
        host.stop();
        served.join().expect("it catches panics").expect("the simulator does not fail");
    });
    fs::read(path).expect("there is a journal")
}

#[test]
fn a_page_begins_with_what_failed_and_points_at_what_was_no_longer_true() {
    let key = || b"key".as_slice().into();
    // A thread looks, another one writes, and the first one writes by what it had seen.
    let journal = performed(&[], |host, database| {
        let begin = || {
            let transaction = host.next_transaction();
            host.command(database, Asked::Create(transaction));
            transaction
        };
        let set = |value: &'static [u8]| {
            let transaction = begin();
            host.command(database, Asked::Transaction(transaction, Action::Set(key(), value.into())));
            ask(host, database, transaction, Call::Commit);
        };
        ask(host, database, begin(), Call::Get(key(), Isolation::Serializable));
        thread::scope(|scope| scope.spawn(|| set(b"1")).join()).expect("it commits");
        set(b"2");
    });
    let place = place();
    let library = place.path().to_str().expect("a plain path");
    let arguments = arguments(&["--library", library, "--", "program"]);
    let shake = Shake::of(&arguments).expect("it can be run");
    let folder = tempfile::tempdir().expect("a folder");
    let reports = folder.path().join("reports");
    fs::create_dir(&reports).and_then(|()| fs::write(reports.join("journal-1"), journal)).expect("written");
    let run = Run {
        ending: Ending::Exited(ExitStatusExt::from_raw(1 << 8)),
        printed: b"FAILED test_a.py::test_b - KeyError: 1\n1 failed\n".to_vec(),
        reports: Vec::new(),
        used: true,
        left: Vec::new(),
        folder,
    };
    let Some(shaketable_reports::Body::Replay(report)) = page::body(&shake, 3, &run) else {
        panic!("no page")
    };
    let message = report.verdict.message().expect("it failed");
    assert!(message.starts_with("FAILED test_a.py::test_b - KeyError: 1\n\nThe program ended"), "{message}");
    let [[what, why]] = &report.program.as_ref().expect("of a program").suspects[..] else {
        panic!("{report:?}")
    };
    assert!(what.starts_with("T2 of thread 0 set \"key\" = \"2\" at "), "{what}");
    assert!(why.starts_with("T0 of thread 0 had read nothing at "), "{why}");
    let witness = &report.history.as_ref().expect("a history").witness;
    assert_eq!((&witness.transactions[..], &witness.keys[..]), (&[0, 1, 2][..], &["\"key\"".to_owned()][..]));
}

#[test]
fn a_run_that_prints_without_an_end_keeps_the_end_of_it() {
    let place = place();
    let (text, code) = shake(&place, &["--timeout", "2s"], &format!("{REPORT}; yes; exit 0"));
    assert!(code == 1 && text.len() < SHOWN + 4_096, "{} bytes", text.len());
    assert!(text.starts_with('(') && text.contains(" bytes are left out)\n"), "{}", &text[..80]);
}

#[test]
fn an_interrupt_ends_the_command() {
    let place = place();
    let (pid, library) = (place.path().join("pid"), place.path().to_str().expect("a plain path"));
    let script = format!("echo $$ >{}.new; mv {0}.new {0}; sleep 100", pid.display());
    let arguments = arguments(&["--library", library, "--", "sh", "-c", &script]);
    let interrupt = Interrupt::default();
    let (begun, signal) = (pid.clone(), interrupt.clone());
    let sender = std::thread::spawn(move || {
        while !begun.exists() {
            std::thread::yield_now();
        }
        signal.set();
    });
    let refused = Shake::of(&arguments).expect("it can be run").run(&interrupt);
    assert_eq!(refused.err(), Some(Refusal::Interrupted(143, "interrupted after 0 of 50 runs".to_owned())));
    sender.join().expect("it has ended");
    let pid: i32 = fs::read_to_string(pid).expect("it had begun").trim().parse().expect("a number");
    let pid = rustix::process::Pid::from_raw(pid).expect("a process");
    assert!(rustix::process::test_kill_process(pid).is_err(), "it has ended");
}

#[test]
fn what_cannot_be_run_is_refused_in_one_line() {
    let empty = tempfile::tempdir().expect("a folder");
    let folder = empty.path().to_str().expect("a plain path");
    for (words, said) in [
        (&["--library", folder, "--", "true"][..], "there is no libfdb_c.so in "),
        (&["--without", "klog", "--", "true"], "unknown fault family"),
    ] {
        let refused = Shake::of(&arguments(words)).err().expect("it is refused").to_string();
        assert!(refused.contains(said) && !refused.contains('\n'), "{refused}");
    }
    let beside = library(None, Some(empty.path())).expect_err("there is none").to_string();
    assert!(beside.contains("beside this program, in ") && beside.contains("--library"), "{beside}");
    let place = place();
    let there = Ok(fs::canonicalize(place.path()).expect("it exists"));
    assert_eq!(library(None, Some(place.path())), there);
    let [bin, lib] = ["bin", "lib"].map(|name| empty.path().join(name));
    fs::create_dir(&bin).and_then(|()| std::os::unix::fs::symlink(place.path(), lib)).expect("made");
    assert_eq!(library(None, Some(&bin)), there, "as it is installed");
    assert!(library(Some(&bin), None).is_err(), "a folder that is named is the only one");
    let folder = place.path().to_str().expect("a plain path");
    let arguments = arguments(&["--library", folder, "--", "/nowhere/program"]);
    let refused = Shake::of(&arguments).expect("the library is there").run(&Interrupt::default());
    let refused = refused.err().expect("there is no such program").to_string();
    assert!(refused.starts_with("cannot start /nowhere/program: "), "{refused}");
    for words in [&["shaketable", "with"][..], &["shaketable", "with", "true"], &["shaketable", "with", "--"]]
    {
        assert!(parse::<Nothing, _>(words.iter().copied()).is_err(), "{words:?}");
    }
}

#[test]
fn of_a_long_output_the_end_is_shown() {
    let script = format!("{REPORT}; head -c 2000000 /dev/zero | tr '\\0' x; echo the end; false");
    let (text, code) = shake(&place(), &["--seeds", "1"], &script);
    assert!(code == 1 && text.starts_with("(951432 bytes are left out)\nxxx"), "{}", &text[..80]);
    assert!(text.contains("xxxthe end\n\nseed 0"), "the end is there");
}
