//! Crates outside of the workspace, as users have them: layers that are shaken from their tests and by commands of their
//! own. All of them are built into one folder, so that what they depend on is built once.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}

/// Runs cargo in a crate's folder, as its user does.
fn cargo(folder: &Path, arguments: &[&str]) -> Output {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(folder)
        .args(arguments)
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside"));
    // What cargo sets for this test is not what the user's own cargo finds.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_PKG_"))
    {
        cargo.env_remove(name);
    }
    cargo.env_remove("SHAKETABLE_SEEDS").output().expect("cargo runs")
}

/// What cargo printed on its standard output; fails with all that it printed if it failed.
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let run = cargo(folder, arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(run.status.success(), "cargo {arguments:?}: {}{}", text(&run.stdout), text(&run.stderr));
    text(&run.stdout)
}

/// What the crate's own command printed.
fn command(folder: &Path, arguments: &[&str]) -> String {
    printed(folder, &[&["run", "--locked", "--quiet", "--"], arguments].concat())
}

#[test]
fn the_ledgers_tests_pass_and_its_command_lists_runs_and_catches() {
    let ledger = example("ledger");
    printed(&ledger, &["test", "--locked"]);
    let listed = command(&ledger, &["list", "workloads"]);
    assert!(listed.contains("  Sums\n") && listed.contains("  accounts\n"), "{listed}");
    let swept = command(&ledger, &["run", "--seeds", "20", "--check-determinism", "3"]);
    assert!(swept.contains("PASSED"), "{swept}");
    let caught = command(&ledger, &["bugs", "Sums"]);
    assert!(caught.contains("the planted bug was caught"), "{caught}");
}

#[test]
fn the_mailboxes_tests_pass_and_its_command_runs() {
    let mailbox = example("mailbox");
    let tested = printed(&mailbox, &["test", "--locked"]);
    assert!(tested.contains("planted_bugs_are_caught ... ok"), "{tested}");
    let swept = command(&mailbox, &["run", "--seeds", "20", "--check-determinism", "3"]);
    assert!(swept.contains("PASSED"), "{swept}");
}

/// Lines that say something, without those of tests.
fn lines(file: &str) -> usize {
    let text = std::fs::read_to_string(example("ledger").join("src").join(file)).expect("an example");
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[test]
fn a_workload_is_short() {
    assert!(lines("guarded.rs") <= 40, "{}", lines("guarded.rs"));
    assert!(lines("modelled.rs") <= 80, "{}", lines("modelled.rs"));
}
