//! The first command of the README.

use std::process::Command;

#[test]
fn the_first_verdict_says_how_to_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_shaketable-first"));
    command.current_dir(&folder);
    for name in ["CARGO_TARGET_DIR", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"] {
        command.env_remove(name);
    }
    // As `cargo run` starts it, which decides what the lines that it prints begin with.
    let shaken = command.env("CARGO", "cargo").output().expect("the program runs");
    let [said, error] =
        [&shaken.stdout, &shaken.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert_eq!(shaken.status.code(), Some(0), "{said}{error}");
    for part in [
        "PASSED",
        "\nqueue ",
        "cargo run -- run ",
        "cargo run -- bugs queue",
        "cargo run --release -p shaketable-workloads -- run",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    for file in ["report.json", "report.html"] {
        assert!(folder.path().join("target/shaketable").join(file).is_file(), "{file}");
    }

    // A workload of the catalogue that is not among them.
    let refused = Command::new(env!("CARGO_BIN_EXE_shaketable-first")).args(["run", "record"]).output();
    let refused = refused.expect("the program runs");
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!((refused.status.code(), error.lines().count()), (Some(2), 1), "{error}");
    assert!(error.contains("more workloads: cargo run --release -p shaketable-workloads -- run"), "{error}");
}
