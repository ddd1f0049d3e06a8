//! Random numbers of the seed, and threads that wait for their turns: programs that are preloaded with the
//! library of `shaketable-time`.

use super::{build::Program, clock::preloaded};
use std::{collections::BTreeSet, fs};

/// Runs the program with these variables, as a process of a run that has had none before.
fn run(program: &Program, what: &str, variables: &[(&str, &str)]) -> String {
    let (folder, library) = (tempfile::tempdir().expect("a folder"), preloaded());
    let random = folder.path().to_str().expect("the path is text");
    let own = [
        ("SHAKETABLE_RANDOM", random),
        ("SHAKETABLE_FAULTS", "standard"),
        ("LD_PRELOAD", library.to_str().expect("the path is text")),
    ];
    program.run(&[what], &[&own, variables].concat())
}

/// The numbers in a text.
fn numbers(printed: &str) -> Vec<&str> {
    printed
        .split_ascii_whitespace()
        .filter(|word| word.len() == 8 && word.bytes().all(|b| b.is_ascii_hexdigit()))
        .collect()
}

#[test]
fn a_seed_repeats_what_threads_and_children_draw() {
    let program = Program::compile("chance");
    let drawn = |seed: &str| run(&program, "", &[("SHAKETABLE_SEED", seed), ("SHAKETABLE_TIME", "1")]);
    let (first, other) = (drawn("3"), drawn("4"));
    for _ in 0..5 {
        assert_eq!(drawn("3"), first);
    }
    let all: BTreeSet<_> = numbers(&first).into_iter().chain(numbers(&other)).collect();
    assert_eq!((numbers(&first).len(), all.len()), (14, 28), "no two are the same: {first}{other}");
}

#[test]
fn processes_with_the_same_words_draw_different_numbers() {
    let program = Program::compile("chance");
    let (folder, library) = (tempfile::tempdir().expect("a folder"), preloaded());
    let variables = [
        ("SHAKETABLE_RANDOM", folder.path().to_str().expect("the path is text")),
        ("LD_PRELOAD", library.to_str().expect("the path is text")),
    ];
    let drawn = || {
        let printed = program.run(&[""], &variables);
        numbers(&printed).into_iter().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let (first, second) = (drawn(), drawn());
    assert!(first.is_disjoint(&second));
    assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 2);
    fs::remove_dir_all(folder.path()).expect("it is there");
    assert!(drawn().is_disjoint(&drawn()), "nor where they cannot take numbers");
}

#[test]
fn without_the_variable_random_numbers_are_the_systems() {
    let program = Program::compile("chance");
    let library = preloaded();
    let variables = [("LD_PRELOAD", library.to_str().expect("the path is text")), ("SHAKETABLE_SEED", "3")];
    let drawn = || program.run(&[""], &variables);
    assert_ne!(drawn(), drawn());
}

#[test]
fn who_has_a_lock_next_is_the_seeds_to_choose() {
    let program = Program::compile("chance");
    let order = |seed: &str| {
        let variables =
            [("SHAKETABLE_SEED", seed), ("SHAKETABLE_TIME", "1"), ("SHAKETABLE_ONE_AT_A_TIME", "1")];
        run(&program, "threads", &variables).lines().last().expect("it prints an order").to_owned()
    };
    let orders: BTreeSet<_> = ["1", "2", "3"]
        .into_iter()
        .map(|seed| {
            let first = order(seed);
            assert_eq!(first.len(), 60);
            for _ in 0..6 {
                assert_eq!(order(seed), first, "seed {seed}");
            }
            first
        })
        .collect();
    assert_eq!(orders.len(), 3, "seeds differ");
}
