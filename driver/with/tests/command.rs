//! The program as people have it who have no Rust toolchain.
#![cfg(unix)]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};
use tempfile::TempDir;

/// The program below `bin`, and the library that it looks for below `lib`.
fn installed() -> TempDir {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    for folder in ["bin", "lib"] {
        fs::create_dir(root.path().join(folder)).expect("created");
    }
    let program = root.path().join("bin/shaketable");
    // Not a copy: a file that is written cannot be started as long as a process that was forked has it.
    fs::hard_link(env!("CARGO_BIN_EXE_shaketable-with"), program).expect("linked");
    fs::write(root.path().join("lib/libfdb_c.so"), "").expect("written");
    root
}

fn run(program: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("CARGO").env_remove("LD_LIBRARY_PATH");
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (status.code().expect("it ends by itself"), text(stdout), text(stderr))
}

#[test]
fn an_installed_program_finds_the_library_from_any_folder() {
    let root = installed();
    // A link from a folder in which commands are looked for.
    let link = root.path().join("shaketable");
    std::os::unix::fs::symlink(root.path().join("bin/shaketable"), &link).expect("a link");
    let lib = fs::canonicalize(root.path().join("lib")).expect("it exists");
    for program in [root.path().join("bin/shaketable"), link] {
        let script = "echo \"it is in $LD_LIBRARY_PATH\"; exit 1";
        let (code, printed, said) = run(&program, &["with", "--seeds", "1", "--", "sh", "-c", script]);
        assert_eq!(code, 1, "{said}");
        assert!(printed.starts_with(&format!("it is in {}\n", lib.display())), "{printed}");
        let replay = format!("\nreplay: {} with --seeds 0..1 ", program.display());
        assert!(printed.contains(&replay), "{printed}");
    }
    fs::remove_file(lib.join("libfdb_c.so")).expect("removed");
    let (code, printed, said) = run(&root.path().join("bin/shaketable"), &["with", "--", "true"]);
    assert_eq!((code, printed.as_str(), said.lines().count()), (2, "", 1), "{said}");
    assert!(said.starts_with("shaketable: there is no libfdb_c.so beside this program, in "), "{said}");
}

#[test]
fn it_has_the_subcommands_that_need_no_workload() {
    let root = installed();
    let program = root.path().join("bin/shaketable");
    let (code, help, _) = run(&program, &["--help"]);
    let listed = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("a list");
    let names: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_once("  ").map(|(name, _)| name.trim()))
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!((code, names), (0, vec!["list", "serve", "with", "completions", "man", "help"]));
    for wrong in
        [&["run"][..], &[], &["with", "--seeds", "0", "--", "true"], &["serve", "--listen", "nowhere"]]
    {
        let (code, printed, said) = run(&program, wrong);
        assert_eq!((code, printed.as_str(), said.lines().count()), (2, "", 1), "{wrong:?}: {said}");
        assert!(said.starts_with("shaketable: "), "{said}");
    }
    let (code, families, _) = run(&program, &["list", "faults"]);
    assert!(code == 0 && families.contains("unknown-committed"), "{families}");
    let (code, script, _) = run(&program, &["completions", "bash"]);
    assert!(
        code == 0 && script.contains("--one-at-a-time") && !script.contains("check-determinism"),
        "{script}"
    );
    let pages = root.path().join("man");
    fs::create_dir(&pages).expect("created");
    let (code, _, said) = run(&program, &["man", pages.to_str().expect("a plain path")]);
    assert_eq!(code, 0, "{said}");
    assert!(pages.join("shaketable-with.1").is_file() && !pages.join("shaketable-run.1").exists());
    assert_eq!(run(&program, &["--version"]).1, format!("shaketable {}\n", env!("CARGO_PKG_VERSION")));
}
