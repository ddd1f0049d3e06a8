//! A crate outside of the workspace: a layer of one's own, shaken from its tests and by a command of its own.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

fn ledger() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/ledger")
}

/// Runs cargo there, as its user does.
fn cargo(arguments: &[&str]) -> Output {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(ledger())
        .args(arguments)
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside"));
    // What cargo sets for this test is not what the user's own cargo finds.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_PKG_"))
    {
        cargo.env_remove(name);
    }
    cargo.env_remove("SHAKETABLE_SEEDS").output().expect("cargo runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn its_tests_pass_and_its_command_lists_runs_and_catches() {
    let tested = cargo(&["test", "--locked"]);
    assert!(tested.status.success(), "{}{}", text(&tested.stdout), text(&tested.stderr));
    let command = |arguments: &[&str]| {
        let run = cargo(&[&["run", "--locked", "--quiet", "--"], arguments].concat());
        assert!(run.status.success(), "{arguments:?}: {}{}", text(&run.stdout), text(&run.stderr));
        text(&run.stdout)
    };
    let listed = command(&["list", "workloads"]);
    assert!(listed.contains("  Sums\n") && listed.contains("  accounts\n"), "{listed}");
    let swept = command(&["run", "--seeds", "20", "--check-determinism", "3"]);
    assert!(swept.contains("PASSED"), "{swept}");
    let caught = command(&["bugs", "Sums"]);
    assert!(caught.contains("the planted bug was caught"), "{caught}");
}

/// Lines that say something, without those of tests.
fn lines(file: &str) -> usize {
    let text = std::fs::read_to_string(ledger().join("src").join(file)).expect("an example");
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[test]
fn a_workload_is_short() {
    assert!(lines("guarded.rs") <= 40, "{}", lines("guarded.rs"));
    assert!(lines("modelled.rs") <= 80, "{}", lines("modelled.rs"));
}
