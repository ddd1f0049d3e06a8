//! Compiles C programs against the header of this package and the library under test.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::LazyLock,
};
use tempfile::TempDir;

/// The folder where programs find `foundationdb/fdb_c.h`.
fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("include")
}

/// The folder of `fdb_c.h`.
pub static HEADER: LazyLock<PathBuf> = LazyLock::new(|| include().join("foundationdb"));

/// The manifest of a package that cargo has downloaded.
pub fn package(name: &str) -> PathBuf {
    let metadata = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version=1",
            "--all-features",
            "--filter-platform",
            env!("DRIVER_TARGET"),
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value =
        serde_json::from_slice(&metadata.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    let found = packages.iter().find(|package| package["name"] == name).expect("it is one");
    found["manifest_path"].as_str().expect("a path").into()
}

/// The library under test: cargo builds it before its tests, next to them.
pub fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this program has a path");
    let library = test.with_file_name("libfdb_c.so");
    assert!(library.exists(), "{} is not there", library.display());
    library
}

/// A C program of `tests/c`, compiled.
pub struct Program {
    folder: TempDir,
}

impl Program {
    /// Compiles a program of the tests.
    pub fn compile(name: &str) -> Program {
        Self::compile_with(name, &[])
    }

    /// Compiles a program of the tests with these arguments too.
    pub fn compile_with(name: &str, arguments: &[&str]) -> Program {
        Self::compile_from("tests/c", name, arguments)
    }

    /// Compiles a program of a folder of this package. It finds the header with and without the folder
    /// `foundationdb` in its name. The language is C11 unless an argument names another standard.
    pub fn compile_from(folder: &str, name: &str, arguments: &[&str]) -> Program {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let folder = tempfile::tempdir().expect("a folder");
        let libraries = library();
        let names_standard = arguments.iter().any(|argument| argument.starts_with("-std="));
        let compiled = Command::new("cc")
            .args((!names_standard).then_some("-std=gnu11"))
            .args(["-Wall", "-Wextra", "-Werror", "-g"])
            .args(arguments)
            .arg("-I")
            .arg(&*HEADER)
            .arg("-I")
            .arg(include())
            .arg(sources.join(name).with_extension("c"))
            .arg("-o")
            .arg(folder.path().join("program"))
            .arg("-L")
            .arg(libraries.parent().expect("it is in a folder"))
            .args(["-lfdb_c", "-lpthread"])
            .output()
            .expect("there is a C compiler");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        Program { folder }
    }

    /// Runs it with these variables, and returns what it printed. It must succeed.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: &[A], variables: &[(&str, &str)]) -> String {
        let output = self.output(arguments, variables);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", output.status);
        String::from_utf8(output.stdout).expect("it prints text")
    }

    /// Runs it with these variables.
    pub fn output<A: AsRef<OsStr>>(&self, arguments: &[A], variables: &[(&str, &str)]) -> Output {
        self.command(arguments, variables).output().expect("it was compiled")
    }

    /// What runs it with these variables.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: &[A], variables: &[(&str, &str)]) -> Command {
        let mut command = Command::new(self.folder.path().join("program"));
        command
            .args(arguments)
            .env("LD_LIBRARY_PATH", library().parent().expect("it is in a folder"))
            .envs(variables.iter().copied());
        command
    }
}
