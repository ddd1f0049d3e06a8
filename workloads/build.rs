//! Tells the program which commit it was built from, for failures to name.

use std::process::Command;

fn main() {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|s| !s.is_empty());
    let commit = match commit {
        Some(commit) if changed => format!("{commit}, changed since"),
        Some(commit) => commit,
        None => "unknown".to_owned(),
    };
    println!("cargo:rustc-env=SHAKETABLE_COMMIT={commit}");
    println!("cargo:rerun-if-changed=build.rs");
    // The log of HEAD grows with every commit and checkout; the sources say whether they changed.
    for path in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", path]) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let workloads = ["src", "shared", "containers", "queues", "records", "tables"];
    let others = ["../harness/src", "../harness/run/src", "../layers/src", "../sim/src", "../reports/src"];
    for folder in workloads.into_iter().chain(others) {
        println!("cargo:rerun-if-changed={folder}");
    }
}

/// What git answers; none without git or outside of a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
