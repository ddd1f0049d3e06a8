//! The package that is changed, and a copy of it that is compiled in its place.
//!
//! The copy is below the target folder. Cargo compiles the package as ever; a wrapper around the compiler,
//! which is this program, gives it the copy's root module. So no manifest is changed, and the package's other
//! files are found by the same relative paths.

use crate::Refusal;
use serde_json::Value;
use std::{
    env,
    ffi::OsString,
    fs, io,
    os::unix::{fs::symlink, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

/// A package, as `cargo metadata` has it.
#[derive(Clone, Debug)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The root module of its library, or of its program if it has no library.
    pub root: PathBuf,
    /// The name of that crate.
    pub target: String,
    /// Whether the root is that of a library.
    pub is_library: bool,
    /// Its programs.
    pub programs: Vec<String>,
    /// The programs that `cargo run` chooses.
    pub default_run: Option<String>,
    /// The crates that it names, with their names in its source.
    pub dependencies: Vec<String>,
    /// The files that are changed unless the call names others: `package.metadata.shaketable.mutants`.
    pub files: Vec<String>,
}

/// The packages of a workspace, and its target folder.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Its members.
    pub packages: Vec<Package>,
    /// The target folder.
    pub target: PathBuf,
    /// The package of the folder where the program runs.
    pub here: Option<String>,
}

impl Workspace {
    /// Asks cargo.
    pub fn read() -> Result<Workspace, Refusal> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let asked = Command::new(cargo).args(["metadata", "--no-deps", "--format-version", "1"]).output();
        let output = asked.map_err(|e| Refusal(format!("cargo cannot be started: {e}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let line = said.lines().find(|line| line.starts_with("error")).unwrap_or("cargo metadata failed");
            return Err(Refusal(line.to_owned()));
        }
        let metadata: Value = serde_json::from_slice(&output.stdout)
            .map_err(|e| Refusal(format!("cargo metadata cannot be read: {e}")))?;
        let packages: Vec<Package> =
            metadata["packages"].as_array().into_iter().flatten().filter_map(package).collect();
        let current = env::current_dir().map_err(|e| Refusal(format!("the current folder: {e}")))?;
        let here = packages.iter().filter(|package| current.starts_with(&package.folder));
        let here = here.max_by_key(|package| package.folder.as_os_str().len()).map(|p| p.name.clone());
        let target = PathBuf::from(metadata["target_directory"].as_str().unwrap_or("target"));
        Ok(Workspace { packages, target, here })
    }

    /// The packages with these names, those before that others of them depend on.
    pub fn packages(&self, names: &[String]) -> Result<Vec<&Package>, Refusal> {
        let mut left = names.iter().map(|name| self.package(name)).collect::<Result<Vec<_>, _>>()?;
        let mut packages = Vec::new();
        while let Some(next) = left.iter().position(|package| {
            let needs = |other: &&Package| package.depends_on(&other.name, self);
            !left.iter().any(|other| other.name != package.name && needs(other))
        }) {
            packages.push(left.remove(next));
        }
        Ok(packages)
    }

    /// The package with this name.
    pub fn package(&self, name: &str) -> Result<&Package, Refusal> {
        let found = self.packages.iter().find(|package| package.name == name);
        found.ok_or_else(|| Refusal(format!("the workspace has no package {name:?}")))
    }
}

fn package(found: &Value) -> Option<Package> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let manifest = PathBuf::from(found["manifest_path"].as_str()?);
    let targets = found["targets"].as_array()?;
    let is = |target: &&Value, kinds: &[&str]| {
        target["kind"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|kind| kind.as_str().is_some_and(|k| kinds.contains(&k)))
    };
    let library = targets.iter().find(|t| is(t, &["lib", "rlib", "cdylib", "proc-macro"]));
    let root = library.or_else(|| targets.iter().find(|t| is(t, &["bin"])))?;
    let renamed = |dependency: &Value| text(&dependency["rename"]).or_else(|| text(&dependency["name"]));
    // A test may need what needs its package.
    let needed = found["dependencies"].as_array()?.iter().filter(|dependency| dependency["kind"].is_null());
    let wanted = &found["metadata"]["shaketable"]["mutants"];
    Some(Package {
        name: text(&found["name"])?,
        folder: manifest.parent()?.to_path_buf(),
        root: root["src_path"].as_str()?.into(),
        target: root["name"].as_str()?.replace('-', "_"),
        is_library: library.is_some(),
        programs: targets.iter().filter(|t| is(t, &["bin"])).filter_map(|t| text(&t["name"])).collect(),
        default_run: text(&found["default_run"]),
        dependencies: needed.filter_map(renamed).collect(),
        files: wanted.as_array().into_iter().flatten().filter_map(text).collect(),
    })
}

impl Package {
    /// Whether it needs another package of the workspace to be compiled first.
    fn depends_on(&self, name: &str, workspace: &Workspace) -> bool {
        let others = self.dependencies.iter().filter(|dependency| **dependency != self.name);
        let mut others = others.filter_map(|dependency| workspace.package(dependency).ok());
        others.any(|other| other.name == name || other.depends_on(name, workspace))
    }

    /// The program that `cargo run` would start.
    pub fn program(&self) -> Result<&str, Refusal> {
        let named = self.default_run.as_ref().or(self.programs.first());
        named.map(String::as_str).ok_or_else(|| Refusal(format!("the package {} has no program", self.name)))
    }

    /// The folder with its source.
    pub fn source(&self) -> &Path {
        self.root.parent().unwrap_or(&self.folder)
    }

    /// The path in its source of the module with the switch.
    pub fn switch(&self) -> Result<&'static str, Refusal> {
        let has = |name: &str| self.dependencies.iter().any(|dependency| dependency == name);
        match self.name.as_str() {
            "shaketable-tx" => Ok("crate::mutants"),
            _ if has("shaketable-tx") => Ok("::shaketable_tx::mutants"),
            name => Err(Refusal(format!("{name} needs the dependency shaketable-tx, which has the switch"))),
        }
    }

    /// Its source files, relative to its source folder, without those of tests.
    pub fn source_files(&self) -> Result<Vec<PathBuf>, Refusal> {
        let mut files = Vec::new();
        collect(self.source(), &mut files)
            .map_err(|e| Refusal(format!("{}: {e}", self.source().display())))?;
        files.sort();
        let mut tests: Vec<PathBuf> = Vec::new();
        for file in &files {
            let text = read(file)?;
            let beside = match file.file_stem().and_then(|stem| stem.to_str()) {
                Some("lib" | "main" | "mod") => file.parent().unwrap_or(file).to_path_buf(),
                _ => file.with_extension(""),
            };
            tests.extend(crate::points::test_modules(&text).iter().map(|name| beside.join(name)));
        }
        files.retain(|file| {
            !tests.iter().any(|test| file.starts_with(test) || *file == test.with_extension("rs"))
        });
        let relative =
            |file: PathBuf| file.strip_prefix(self.source()).map(Path::to_path_buf).unwrap_or(file);
        Ok(files.into_iter().map(relative).collect())
    }

    /// Makes the copy in a folder: its source files are files of their own, everything else is a link.
    pub fn copy(&self, to: &Path) -> Result<PathBuf, Refusal> {
        let failed = |e: io::Error| Refusal(format!("{}: {e}", to.display()));
        let within = self.source().strip_prefix(&self.folder).unwrap_or(Path::new("")).to_path_buf();
        let top = within.components().next().map(|first| first.as_os_str().to_owned());
        fs::create_dir_all(to).map_err(failed)?;
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let link = to.join(entry.file_name());
            if Some(entry.file_name()) != top && link.symlink_metadata().is_err() {
                symlink(entry.path(), link).map_err(failed)?;
            }
        }
        let source = to.join(&within);
        // What is no Rust is read from there as well.
        let mut files = Vec::new();
        everything(self.source(), &mut files).map_err(failed)?;
        for file in files {
            let copy = source.join(file.strip_prefix(self.source()).unwrap_or(&file));
            write_if_other(&copy, &fs::read(&file).map_err(failed)?).map_err(failed)?;
        }
        Ok(source)
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    everything(folder, files)?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    Ok(())
}

fn everything(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => everything(&entry.path(), files)?,
            false => files.push(entry.path()),
        }
    }
    Ok(())
}

/// The text of a file.
pub fn read(file: &Path) -> Result<String, Refusal> {
    fs::read_to_string(file).map_err(|e| Refusal(format!("{}: {e}", file.display())))
}

/// Writes a file unless it has this content, so that cargo compiles what has changed.
pub fn write_if_other(file: &Path, content: &[u8]) -> io::Result<()> {
    if fs::read(file).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, content)
}

/// The variables that make this program a wrapper of the compiler: the names of the crates, their root
/// modules, and those of the copies, each a list of paths.
const CRATES: &str = "SHAKETABLE_MUTANTS_CRATES";
const ROOTS: &str = "SHAKETABLE_MUTANTS_ROOTS";
const COPIES: &str = "SHAKETABLE_MUTANTS_COPIES";

/// A call of cargo in which packages are compiled from their copies, of which the root modules are given.
pub fn cargo(packages: &[(&Package, &Path)], target: &Path) -> Result<Command, Refusal> {
    let wrapper = wrapper(packages, target)?;
    let list = |paths: Vec<&Path>| {
        env::join_paths(paths).map_err(|e| Refusal(format!("the path of a package cannot be passed on: {e}")))
    };
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .env("RUSTC_WORKSPACE_WRAPPER", wrapper)
        .env(CRATES, list(packages.iter().map(|(package, _)| Path::new(&package.target)).collect())?)
        .env(ROOTS, list(packages.iter().map(|(package, _)| &*package.root).collect())?)
        .env(COPIES, list(packages.iter().map(|(_, copy)| *copy).collect())?)
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "none");
    Ok(command)
}

/// A link to this program for these packages: what cargo has compiled with another wrapper it compiles anew,
/// and it cannot know by itself which packages are changed.
fn wrapper(packages: &[(&Package, &Path)], target: &Path) -> Result<PathBuf, Refusal> {
    let named = |e: io::Error| Refusal(format!("{}: {e}", target.display()));
    let own = env::current_exe().map_err(|e| Refusal(format!("this program's own path: {e}")))?;
    let names: Vec<&str> = packages.iter().map(|(package, _)| &*package.name).collect();
    let link = target.join("wrappers").join(names.join("+"));
    if fs::read_link(&link).ok().as_ref() != Some(&own) {
        fs::create_dir_all(target.join("wrappers")).map_err(named)?;
        let _ = fs::remove_file(&link);
        symlink(own, &link).map_err(named)?;
    }
    Ok(link)
}

/// Runs the compiler, if cargo has started this program as its wrapper.
pub fn compiler() -> Option<ExitCode> {
    let list = |name: &str| Some(env::split_paths(&env::var_os(name)?).collect::<Vec<_>>());
    let (crates, roots, copies) = (list(CRATES)?, list(ROOTS)?, list(COPIES)?);
    let mut arguments = env::args_os().skip(1);
    let compiler = arguments.next()?;
    let mut arguments: Vec<OsString> = arguments.collect();
    for ((name, root), copy) in crates.iter().zip(&roots).zip(&copies) {
        if !arguments.windows(2).any(|pair| pair[0] == "--crate-name" && *pair[1] == **name) {
            continue;
        }
        for argument in &mut arguments {
            let is_root = Path::new(&argument).extension().is_some_and(|extension| extension == "rs")
                && fs::canonicalize(&argument).ok() == fs::canonicalize(root).ok();
            if is_root {
                argument.clone_from(&copy.into());
            }
        }
        arguments.extend(["--cap-lints", "allow"].map(OsString::from));
    }
    let failed = Command::new(compiler).args(arguments).exec();
    eprintln!("the compiler cannot be started: {failed}");
    Some(ExitCode::from(2))
}
