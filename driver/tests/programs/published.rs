//! The programs that ship inside the published crate `foundationdb`, unmodified, on the library: built from
//! the sources that cargo has downloaded, against this library in place of FoundationDB's.
//!
//! All of its examples run, and these tests: `api`, `atomic`, `database`, `directory`, `error`, `future`,
//! `hca`, `leader_election`, `range`, `ranked_register`, `runner_hooks`, `tenant`, `tokio`, `tuple`, `watch`.
//! The others:
//!
//! | test | why not |
//! |---|---|
//! | `get` | it compares the English text of `not_committed`; `fdb_get_error` returns the name. With that text it passes, on a cluster that keeps one copy (it expects one address of a key), such as that of seed 1 |
//! | `metrics` | it expects that a commit takes a millisecond on the wall; here one takes a few microseconds |
//! | `timekeeper` | it reads a map from time to version, which a task of FoundationDB's cluster keeps |
//! | `api_ub` | it is ignored there: it ends the process without stopping the network |
//! | `trace` | it has tests with a feature of its own only, for the traces of the crate |

use super::build::{library, package};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const EXAMPLES: &[&str] = &[
    "atomic-op-counter",
    "blob",
    "blob-with-manifest",
    "class-scheduling",
    "conflict_reporting",
    "hello-world",
    "instrumented",
    "key_selectors",
    "micro-queue",
    "multi_version",
    "simple-index",
    "versionstamp",
];

const TESTS: &[&str] = &[
    "api",
    "atomic",
    "database",
    "directory",
    "error",
    "future",
    "get",
    "hca",
    "leader_election",
    "range",
    "ranked_register",
    "runner_hooks",
    "tenant",
    "tokio",
    "tuple",
    "watch",
];

/// The one that does not pass, and what it says then.
const FAILS: (&str, &str) = (
    "get",
    "left: \"not_committed\"\n right: \"Transaction not committed due to conflict with another transaction\"",
);

/// Builds the programs and returns them by name.
fn build() -> BTreeMap<String, PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("published");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--quiet", "--message-format=json-render-diagnostics"]);
    cargo.args(["--features", "fdb-7_4,embedded-fdb-include,num-bigint", "--manifest-path"]);
    cargo.arg(package("foundationdb")).arg("--target-dir").arg(target);
    cargo.args(EXAMPLES.iter().flat_map(|name| ["--example", name]));
    cargo.args(TESTS.iter().flat_map(|name| ["--test", name]));
    // What cargo sets for this test is not what their user's own cargo finds, and their runtime is the real
    // one.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_PKG_"))
    {
        cargo.env_remove(name);
    }
    cargo.env("RUSTFLAGS", "").env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
    cargo.env("FDB_CLIENT_LIB_PATH", library().parent().expect("it is in a folder"));
    let built = cargo.output().expect("cargo runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let messages = String::from_utf8(built.stdout).expect("cargo prints text");
    let programs = messages.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let path = message["executable"].as_str()?.into();
        Some((message["target"]["name"].as_str()?.to_owned(), path))
    });
    programs.collect()
}

/// Runs a program in a folder, on the cluster of seed 1.
fn run(program: &Path, folder: &Path) -> Output {
    Command::new(program)
        .current_dir(folder)
        .env("LD_LIBRARY_PATH", library().parent().expect("it is in a folder"))
        .env("SHAKETABLE_SEED", "1")
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("it was built")
}

#[test]
fn the_programs_of_the_published_crate_run_unmodified() {
    let folder = tempfile::tempdir().expect("a folder");
    // An example stores this picture, which the published package does not have.
    let picture = folder.path().join("assets/logo-400x400.png");
    std::fs::create_dir(folder.path().join("assets")).expect("a folder");
    std::fs::write(picture, vec![7; 50_000]).expect("it can be written");
    let programs = build();
    let names: Vec<&str> = programs.keys().map(String::as_str).collect();
    let mut expected = [EXAMPLES, TESTS].concat();
    expected.sort_unstable();
    assert_eq!(names, expected);
    for (name, program) in &programs {
        let output = run(program, folder.path());
        let text = [&*output.stdout, &*output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        match name == FAILS.0 {
            true => assert!(!output.status.success() && text.contains(FAILS.1), "{name}: {text}"),
            false => assert!(output.status.success(), "{name}: {text}"),
        }
        let tested = text.lines().find_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next());
        let is_test = TESTS.contains(&&**name) && name != FAILS.0;
        assert!(!is_test || tested.is_some_and(|number| number != "0"), "{name} has tested nothing: {text}");
    }
}
