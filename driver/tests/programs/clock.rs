//! Virtual time in place of the clock: what programs see that are preloaded with the library of
//! `shaketable-time`.

use super::build::{Program, library};
use object::{Object, ObjectSymbol};
use shaketable_session::Host;
use std::{collections::BTreeSet, fs, path::PathBuf};

/// The library that is preloaded: cargo builds it before these tests, next to them.
pub fn preloaded() -> PathBuf {
    library().with_file_name("libshaketable_time.so")
}

/// Runs the program of the clock with these variables. Returns what it printed, its report and its journal.
fn run(program: &Program, what: &str, variables: &[(&str, &str)]) -> (String, String, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).to_str().expect("the path is text").to_owned();
    let (report, journal, library) = (file("report"), file("journal"), preloaded());
    let own = [
        ("SHAKETABLE_REPORT", report.as_str()),
        ("SHAKETABLE_JOURNAL", &journal),
        ("LD_PRELOAD", library.to_str().expect("the path is text")),
    ];
    let printed = program.run(&[what], &[&own, variables].concat());
    let report = fs::read_to_string(report).expect("there is a report");
    (printed, report, fs::read(journal).expect("there is a journal"))
}

#[test]
fn what_sleeps_or_waits_with_a_timeout_takes_virtual_time_to_the_nanosecond() {
    let program = Program::compile("clock");
    for (what, seeds, times) in [("sleeps", 1..2, 2), ("files", 1..3, 10), ("locks", 1..3, 5)] {
        for seed in seeds {
            let seed = &*seed.to_string();
            let variables =
                [("SHAKETABLE_SEED", seed), ("SHAKETABLE_FAULTS", "standard"), ("SHAKETABLE_TIME", "1")];
            let (printed, report, journal) = run(&program, what, &variables);
            assert!(printed.lines().count() > 8, "{printed}");
            assert!(report.ends_with(" SHAKETABLE_TIME=1\n"), "{report}");
            assert!(!report.contains("not determined by the seed alone"), "{report}");
            for _ in 1..times {
                let (again, its_report, _) = run(&program, what, &variables);
                assert_eq!((again, its_report), (printed.clone(), report.clone()), "{what} with seed {seed}");
            }
            let replayed = Host::replay(journal).expect("a pipe").expect("something was asked");
            assert_eq!(replayed, report, "{what} with seed {seed}");
        }
    }
}

#[test]
fn threads_that_sleep_run_one_at_a_time_too() {
    let program = Program::compile("clock");
    let mut different = Vec::new();
    for seed in ["1", "2", "3"] {
        let variables = [
            ("SHAKETABLE_SEED", seed),
            ("SHAKETABLE_FAULTS", "standard"),
            ("SHAKETABLE_ONE_AT_A_TIME", "1"),
            ("SHAKETABLE_TIME", "1"),
        ];
        let (printed, report, journal) = run(&program, "threads", &variables);
        for _ in 0..4 {
            let (again, its_report, _) = run(&program, "threads", &variables);
            assert_eq!((again, its_report), (printed.clone(), report.clone()), "seed {seed}");
        }
        assert_eq!(Host::replay(journal).expect("a pipe").as_ref(), Some(&report));
        different.push(printed);
    }
    different.dedup();
    assert_eq!(different.len(), 3, "seeds differ");
}

#[test]
fn without_the_variable_the_clock_is_real() {
    let program = Program::compile("clock");
    run(&program, "real", &[]);
    run(&program, "real", &[("SHAKETABLE_TIME", "")]);
}

#[test]
fn who_cannot_have_virtual_time_is_told_so_in_one_line() {
    let program = Program::compile("clock");
    let time = ("SHAKETABLE_TIME", "1");
    let output = program.output(&["real"], &[time]);
    let errors = String::from_utf8_lossy(&output.stderr);
    let said = "shaketable: SHAKETABLE_TIME is 1, but libshaketable_time.so is not in LD_PRELOAD: ";
    assert!(errors.starts_with(said) && errors.contains("fdb_setup_network() is 2022"), "{errors}");
    let library = preloaded();
    let preload = ("LD_PRELOAD", library.to_str().expect("the path is text"));
    let output = program.output(&["real"], &[time, preload, ("SHAKETABLE_SERVER", "unix:/nowhere")]);
    let errors = String::from_utf8_lossy(&output.stderr);
    let said = "shaketable: SHAKETABLE_TIME is 1, but the cluster of a server has no virtual time for its programs\n";
    assert!(errors.contains(said) && errors.contains(" is 2104 and not 0"), "{errors}");
}

#[test]
fn the_library_has_these_functions_and_no_others() {
    let expected = "clock_gettime gettimeofday time nanosleep clock_nanosleep usleep sleep poll ppoll select pselect \
                    epoll_wait epoll_pwait pthread_cond_timedwait pthread_cond_clockwait sem_timedwait \
                    sem_clockwait pthread_mutex_timedlock pthread_mutex_clocklock pthread_rwlock_timedrdlock \
                    pthread_rwlock_timedwrlock pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock syscall \
                    getrandom getentropy arc4random arc4random_buf arc4random_uniform read __read_chk fopen \
                    fopen64 fclose fread fread_unlocked __fread_chk fgetc getc pthread_create pthread_join \
                    pthread_mutex_lock pthread_mutex_unlock pthread_cond_wait pthread_cond_signal \
                    pthread_cond_broadcast sem_wait sem_post shaketable_time_attach shaketable_time_take_turns";
    let bytes = fs::read(preloaded()).expect("it is there");
    let file = object::File::parse(&*bytes).expect("it is a library");
    let leaving = file.dynamic_symbols().filter(|symbol| symbol.is_definition() && symbol.is_global());
    let exported: BTreeSet<_> = leaving.map(|symbol| symbol.name().expect("symbols have names")).collect();
    assert_eq!(exported, expected.split_ascii_whitespace().collect());
}
