//! Runs: what the same seed repeats, what faults do, and what the report says.

use super::build::Program;
use shaketable_session::{Host, report::Totals};

/// Runs a program with variables and a report. Returns what it printed and the report.
fn run(program: &Program, arguments: &[&str], variables: &[(&str, &str)]) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report");
    let report = ("SHAKETABLE_REPORT", path.to_str().expect("the path is text"));
    let printed = program.run(arguments, &[variables, &[report]].concat());
    (printed, std::fs::read_to_string(path).expect("there is a report"))
}

/// Its cluster begins on another thread, which may not have seen the database when the program ends.
#[test]
fn a_program_that_only_opens_a_database_leaves_a_trace_however_soon_it_ends() {
    let program = Program::compile("opens");
    for how in ["stop", "exit", "_exit"] {
        for _ in 0..25 {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().to_str().expect("the path is text");
            program.run(&[how], &[("SHAKETABLE_JOURNAL", path), ("SHAKETABLE_REPORT", path)]);
            let names =
                std::fs::read_dir(path).expect("a folder").map(|file| file.expect("a file").file_name());
            let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
            let has = |what: &str| names.iter().any(|name| name.starts_with(what));
            assert!(has("journal-") && (how != "stop" || has("report-")), "{how}: {names:?}");
        }
    }
}

#[test]
fn a_seed_repeats_its_answers_and_its_events() {
    let program = Program::compile("transfers");
    let mut different = Vec::new();
    for seed in ["1", "2", "3", "4", "5"] {
        let variables = [("SHAKETABLE_SEED", seed), ("SHAKETABLE_FAULTS", "standard")];
        let first = run(&program, &[], &variables);
        assert!(first.1.contains("hash ") && first.0.lines().count() >= 60, "{first:?}");
        for _ in 0..3 {
            assert_eq!(run(&program, &[], &variables), first);
        }
        different.push(first.1);
    }
    different.sort();
    different.dedup();
    assert_eq!(different.len(), 5, "seeds differ");
}

#[test]
fn a_seed_repeats_a_program_whose_event_loop_is_woken_by_callbacks() {
    let program = Program::compile("loop");
    let mut different = Vec::new();
    for seed in 0..10 {
        let seed = seed.to_string();
        let variables = [("SHAKETABLE_SEED", seed.as_str()), ("SHAKETABLE_FAULTS", "standard")];
        let first = run(&program, &[], &variables);
        assert!(first.0.lines().count() >= 400, "{first:?}");
        assert_eq!(run(&program, &[], &variables), first);
        // Threads that do nothing change nothing.
        assert_eq!(run(&program, &["100"], &variables), first);
        different.push(first.1);
    }
    different.sort();
    different.dedup();
    assert_eq!(different.len(), 10, "seeds differ");
}

#[test]
fn a_seed_repeats_a_program_whose_threads_run_one_at_a_time() {
    let program = Program::compile("threads");
    let mut different = Vec::new();
    for seed in ["1", "2", "3"] {
        let one_at_a_time = ("SHAKETABLE_ONE_AT_A_TIME", "1");
        let variables = [("SHAKETABLE_SEED", seed), ("SHAKETABLE_FAULTS", "standard"), one_at_a_time];
        let (_, first) = run(&program, &[], &variables);
        assert!(first.ends_with(" SHAKETABLE_ONE_AT_A_TIME=1\n"), "{first}");
        assert!(!first.contains("not determined by the seed alone"), "{first}");
        for _ in 0..4 {
            assert_eq!(run(&program, &[], &variables).1, first);
        }
        different.push(first);
    }
    different.dedup();
    assert_eq!(different.len(), 3, "seeds differ");
}

#[test]
fn a_program_with_several_cluster_files_has_several_clusters() {
    let program = Program::compile("clusters");
    for seed in ["1", "2", "3"] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name).to_str().expect("the path is text").to_owned();
        let (journal, events) = (file("journal"), file("events"));
        let variables = [
            ("SHAKETABLE_SEED", seed),
            ("SHAKETABLE_FAULTS", "storm"),
            ("SHAKETABLE_JOURNAL", &journal),
            ("SHAKETABLE_EVENTS", &events),
        ];
        let first = run(&program, &[], &variables);
        let hashes = first.1.lines().filter(|line| line.starts_with("events: ")).collect::<Vec<_>>();
        assert_eq!(hashes.len(), 16, "{}", first.1);
        assert_ne!(hashes[0], hashes[1]);
        assert_eq!(first.1.lines().filter(|line| *line == "cluster two:b").count(), 1, "{}", first.1);
        assert_eq!(replayed(journal.as_ref()), first.1, "seed {seed}");
        let events = std::fs::read_to_string(&events).expect("there are events");
        assert_eq!(events.lines().filter(|line| line.starts_with("cluster ")).count(), 15);
        assert_eq!(run(&program, &[], &variables), first);
    }
}

#[test]
fn faults_strike_and_the_report_names_unknown_results_and_how_to_run_it_again() {
    let program = Program::compile("transfers");
    let (mut retries, mut unknown, mut listed) = (0, 0, 0);
    let mut totals = Totals::default();
    for seed in 0..20 {
        let seed = seed.to_string();
        let variables = [("SHAKETABLE_SEED", seed.as_str()), ("SHAKETABLE_FAULTS", "storm")];
        let (printed, report) = run(&program, &[], &variables);
        totals.add(&report);
        retries += printed.lines().count() - 60;
        unknown += printed.lines().filter(|line| line.contains("error 1021")).count();
        listed +=
            report.lines().filter(|line| line.contains("commit_unknown_result (1021), and it is")).count();
        assert!(
            report.contains(&format!("again: SHAKETABLE_SEED={seed} SHAKETABLE_FAULTS=storm")),
            "{report}"
        );
    }
    assert!(retries > 20 && unknown > 0, "{retries} retries, {unknown} unknown results");
    assert_eq!(listed, unknown);
    // What is read from the reports is what they list.
    assert!(totals.unknown >= unknown as u64 && totals.unknown_committed > 0, "{totals:?}");
    assert!(totals.attempts > totals.committed && totals.committed >= totals.wrote, "{totals:?}");
    assert!(totals.wrote > 20 && totals.faults > 20 && totals.conflicts > 0, "{totals:?}");
}

#[test]
fn the_seed_can_stand_in_the_cluster_file() {
    let program = Program::compile("transfers");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("fdb.cluster");
    std::fs::write(&file, "shaketable:77@127.0.0.1:4500\n").expect("it can be written");
    let file = file.to_str().expect("the path is text");
    let (_, by_file) = run(&program, &[file], &[]);
    assert_eq!(by_file, run(&program, &[], &[("SHAKETABLE_SEED", "77")]).1);
    let (_, by_both) = run(&program, &[file], &[("SHAKETABLE_SEED", "78")]);
    assert!(by_both.contains("seed 78"), "{by_both}");
}

#[test]
fn a_program_that_just_ends_has_a_report() {
    let (_, report) = run(&Program::compile("abandon"), &[], &[("SHAKETABLE_SEED", "5")]);
    assert!(report.contains("seed 5") && report.contains("attempts: 1, 1 committed"), "{report}");
}

/// The report of a run that is performed again from its journal.
fn replayed(journal: &std::path::Path) -> String {
    let journal = std::fs::read(journal).expect("there is a journal");
    Host::replay(journal).expect("a pipe").expect("something was asked")
}

#[test]
fn a_journal_gives_the_run_again() {
    let programs = [
        ("transfers", &[][..], ""),
        ("loop", &[], ""),
        ("threads", &[], ""),
        ("threads", &[], "1"),
        ("ends", &["exit"], ""),
    ];
    for (name, arguments, one_at_a_time) in programs {
        let program = Program::compile(name);
        for seed in ["1", "2", "3"] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("journal");
            let journal = ("SHAKETABLE_JOURNAL", path.to_str().expect("the path is text"));
            let turns = ("SHAKETABLE_ONE_AT_A_TIME", one_at_a_time);
            let variables = [("SHAKETABLE_SEED", seed), ("SHAKETABLE_FAULTS", "standard"), turns, journal];
            let (_, report) = run(&program, arguments, &variables);
            assert_eq!(replayed(&path), report, "{name} with seed {seed}");
            let journal = std::fs::read(&path).expect("there is a journal");
            let performed = Host::perform(journal, true).expect("a pipe").expect("something was asked");
            assert_eq!(performed.text, report, "its history changes nothing");
            let (told, recording) = performed.run.expect("it has ended");
            let attempts = recording.expect("it was to be kept").history.attempts;
            assert_eq!(attempts.len(), told.attempts, "{name} with seed {seed}");
            assert!(!told.end.events.is_empty());
        }
    }
}

/// As on a full disk: the program goes on, standard error says so, and so does who performs its calls again.
#[test]
fn a_journal_that_cannot_be_written_to_its_end_is_not_taken_for_the_run() {
    let program = Program::compile("transfers");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal");
    let journal = ("SHAKETABLE_JOURNAL", path.to_str().expect("the path is text"));
    let whole = program.command::<&str>(&[], &[("SHAKETABLE_SEED", "1"), journal]);
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 4; exec \"$0\""]).arg(whole.get_program());
    limited.envs(whole.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = limited.output().expect("there is a shell");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    let said =
        errors.lines().find(|line| line.starts_with("shaketable: cannot write the journal of the run: "));
    assert!(said.is_some(), "{errors}");
    let report = replayed(&path);
    assert!(report.contains("\nTHE JOURNAL IS NOT WHOLE: it could not be written to its end; "), "{report}");
}

#[test]
fn a_program_that_ends_without_a_report_is_judged_by_its_journal() {
    let program = Program::compile("ends");
    for how in ["_exit", "abort", "crash", "kill"] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name).to_str().expect("the path is text").to_owned();
        let (path, unwritten) = (file("journal"), file("report"));
        let variables =
            [("SHAKETABLE_SEED", "5"), ("SHAKETABLE_JOURNAL", &path), ("SHAKETABLE_REPORT", &unwritten)];
        let output = program.output(&[how], &variables);
        assert_eq!(output.status.success(), how == "_exit", "{output:?}");
        assert!(!std::path::Path::new(&unwritten).exists(), "{how}");
        let report = replayed(path.as_ref());
        assert!(report.contains("seed 5") && report.contains("\nattempts: 3, 3 committed"), "{report}");
        assert!(report.contains("\nthe cluster kept FoundationDB's promises"), "{report}");
    }
    // The cluster of such a program is accused as that of any other.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("journal");
    let journal = ("SHAKETABLE_JOURNAL", path.to_str().expect("the path is text"));
    let bug = [("SHAKETABLE_SEED", "1"), ("SHAKETABLE_BUG", "stale-read-version"), journal];
    Program::compile("transfers").output::<&str>(&[], &bug);
    let torn = std::fs::read(&path).expect("there is a journal");
    let report = Host::replay(torn[..torn.len() - 1].to_vec()).expect("a pipe").expect("something was asked");
    assert!(report.contains("SIMULATED CLUSTER FAILED: it is not so that a transaction sees"), "{report}");
}

/// The size of a process follows neither what it has written and reset, nor the number of its transactions.
#[test]
fn memory_is_bounded() {
    let program = Program::compile("many");
    let kilobytes = |arguments: &[&str], memory| {
        let printed = program.run(arguments, &[("SHAKETABLE_MEMORY", memory)]);
        printed.trim().parse::<u64>().expect("a number")
    };
    let reset = kilobytes(&["10", "50"], "1000");
    assert!(reset < 250_000, "{reset} kB, of which 50,000 are in use at once");
    // Half a kilobyte for each transaction more would be too much.
    let (few, many) = (kilobytes(&["4000"], "4"), kilobytes(&["14000"], "4"));
    assert!(many < few + 5_000, "{few} kB, and then {many} kB");
}

/// A cluster file that names a server is not followed if the environment says so.
#[test]
fn the_cluster_can_be_one_of_the_process_whatever_a_file_says() {
    let program = Program::compile("transfers");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("fdb.cluster");
    std::fs::write(&file, "shaketable:serve@127.0.0.1:1\n").expect("it can be written");
    let file = file.to_str().expect("the path is text");
    let own = [("SHAKETABLE_SEED", "7"), ("SHAKETABLE_SERVER", "none")];
    assert_eq!(run(&program, &[file], &own), run(&program, &[], &own[..1]));
}

#[test]
fn a_variable_that_is_wrong_is_one_line_and_an_error() {
    let output = Program::compile("abandon").output::<&str>(&[], &[("SHAKETABLE_FAULTS", "wild")]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    let said = "shaketable: SHAKETABLE_FAULTS is none of calm, standard and storm: wild\n";
    assert!(errors.starts_with(said), "{errors}");
    assert!(errors.contains("fdb_setup_network() is 2022"), "{errors}");
    let output = Program::compile("abandon").output::<&str>(&[], &[("SHAKETABLE_FUALTS", "storm")]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    let said =
        "shaketable: SHAKETABLE_FUALTS is not a variable that this library reads; SHAKETABLE_FAULTS is\n";
    assert!(errors.starts_with(said), "{errors}");
}

#[test]
fn the_counter_of_the_examples_counts_twice_after_an_unknown_result_that_committed() {
    let program = Program::compile_from("examples", "counter", &[]);
    assert_eq!(run(&program, &[], &[]).0, "20\n");
    let folder = tempfile::tempdir().expect("a folder");
    let (mut wrong, mut named) = (0, 0);
    for seed in 0..20 {
        let (seed, path) = (seed.to_string(), folder.path().join("report"));
        let path = path.to_str().expect("the path is text");
        let variables =
            [("SHAKETABLE_SEED", seed.as_str()), ("SHAKETABLE_FAULTS", "storm"), ("SHAKETABLE_REPORT", path)];
        let printed = program.output::<&str>(&[], &variables).stdout;
        let count: usize =
            String::from_utf8(printed).expect("it is text").trim().parse().expect("it is a number");
        let report = std::fs::read_to_string(path).expect("there is a report");
        let unknown = report.split("unknown results: ").nth(1).expect("they are listed");
        let committed = unknown.lines().filter(|line| line.ends_with(", and it is committed")).count();
        assert_eq!(count, 20 + committed, "{report}");
        wrong += usize::from(count > 20);
        named += unknown.lines().filter(|line| *line == "    Add \"counter\"").count();
    }
    assert!(wrong > 2 && named >= wrong, "{wrong} runs count wrong, {named} unknown results are named");
}

#[test]
fn a_cluster_that_breaks_its_promises_is_accused_in_the_report_and_on_standard_error() {
    let program = Program::compile("transfers");
    let bug = [("SHAKETABLE_SEED", "1"), ("SHAKETABLE_BUG", "stale-read-version")];
    let (_, report) = run(&program, &[], &bug);
    let accused = "SIMULATED CLUSTER FAILED: it is not so that a transaction sees what was acknowledged before it began: attempt ";
    assert!(report.lines().nth(1).is_some_and(|line| line.starts_with(accused)), "{report}");
    assert!(report.ends_with("SHAKETABLE_FAULTS=calm SHAKETABLE_BUG=stale-read-version\n"), "{report}");
    let output = program.output::<&str>(&[], &bug);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.starts_with(&format!("shaketable: {accused}")), "{errors}");
    let (_, sound) = run(&program, &[], &bug[..1]);
    assert!(sound.contains("\nthe cluster kept FoundationDB's promises"), "{sound}");
}

#[test]
fn the_topology_can_be_fixed_and_the_events_kept() {
    let program = Program::compile("transfers");
    let folder = tempfile::tempdir().expect("a folder");
    let events = folder.path().join("events");
    let seed = ("SHAKETABLE_SEED", "1");
    let kept = [seed, ("SHAKETABLE_EVENTS", events.to_str().expect("the path is text"))];
    let (_, report) = run(&program, &[], &kept);
    let lines = std::fs::read_to_string(&events).expect("there are events").lines().count();
    assert!(report.contains(&format!("events: {lines}, hash ")), "{lines} lines: {report}");
    assert_eq!(report, run(&program, &[], &[seed]).1, "keeping them changes nothing");
    let (_, report) =
        run(&program, &[], &[&kept[..], &[("SHAKETABLE_CLUSTER", "storage_servers=7")]].concat());
    assert!(report.ends_with(" SHAKETABLE_CLUSTER=storage_servers=7\n"), "{report}");
    let started = std::fs::read_to_string(&events).expect("there are events");
    let before = started.lines().take_while(|line| line.contains(" 0.000000 s")).count();
    assert!(before > 7 && lines > 100, "{before} machines");
}
