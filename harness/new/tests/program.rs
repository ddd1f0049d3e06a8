//! The program as somebody uses it who has built nothing yet.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// An empty folder for one test.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// How many files and folders are in a folder.
fn count(folder: &Path) -> usize {
    fs::read_dir(folder).expect("the folder").count()
}

/// The exit code of the program with this line, and what it printed on both outputs.
fn run(folder: &Path, line: &str) -> (Option<i32>, String, String) {
    let program = env!("CARGO_BIN_EXE_shaketable-new");
    let ran = Command::new(program).current_dir(folder).args(line.split_whitespace()).output();
    let ran = ran.expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ran.status.code(), text(&ran.stdout), text(&ran.stderr))
}

#[test]
fn a_crate_is_written_once_and_whole() {
    let folder = folder("written");
    // As the README and the tutorial have it.
    let line = "cargo run -p shaketable-new -- my-layer";
    for page in [include_str!("../../../README.md"), include_str!("../../../docs/src/tutorial.md")] {
        assert!(page.contains(line));
    }
    let (code, said, error) = run(&folder, "my-layer");
    assert_eq!((code, &*error), (Some(0), ""));
    assert!(said.contains("cargo test"), "{said}");
    assert_eq!(count(&folder), 1, "nothing else is left");
    let crate_ = folder.join("my-layer");
    let manifest = fs::read_to_string(crate_.join("Cargo.toml")).expect("a manifest");
    let (_, rest) = manifest.split_once("shaketable = { path = \"").expect("a dependency");
    let sources = crate_.join(rest.split('"').next().expect("a path"));
    assert!(sources.join("src/guide.md").is_file(), "{}", sources.display());
    assert!(!manifest.contains("{{"), "{manifest}");

    let (code, _, error) = run(&folder, "my-layer --released");
    assert_eq!((code, &*error), (Some(2), "shaketable-new: my-layer exists already\n"));
    assert_eq!(fs::read_to_string(crate_.join("Cargo.toml")).expect("a manifest"), manifest);
    assert_eq!(count(&folder), 1);
}

#[test]
fn what_it_cannot_do_is_one_line() {
    let folder = folder("refused");
    for (line, why) in [
        ("fn", "a keyword of Rust"),
        ("my-stock --path .", "it has no harness/Cargo.toml"),
        ("my/stock", "is no name for a crate"),
        ("my-stock --fast", "unknown option --fast"),
    ] {
        let (code, said, error) = run(&folder, line);
        assert_eq!((code, &*said, error.lines().count()), (Some(2), "", 1), "{line}: {error}");
        assert!(error.contains(why), "{line}: {error}");
        assert_eq!(count(&folder), 0, "{line}");
    }
    let (code, said, error) = run(&folder, "--help");
    assert_eq!((code, &*error), (Some(0), ""));
    assert!(said.contains("--released"), "{said}");
}
