//! Crates outside of the workspace, as users have them: layers that are shaken from their tests and by
//! commands of their own. They are built once, from the packages as they would be published, so that a
//! package that lacks a file shows; and into the workspace's folder, with its flags and versions, and with
//! its profile and features for what the packages depend on, so that little of that is built again. The
//! packages themselves have cargo's own profile, as users have them: the simulator is not optimized.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::LazyLock,
};

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A copy of the repository: the packages in place of its folders, and the examples.
static PLACE: LazyLock<PathBuf> = LazyLock::new(packaged);

/// The packages that crates outside of the workspace depend on, by the folder that they are copied to.
const PACKAGES: [(&str, &str); 9] = [
    ("harness", "shaketable"),
    ("driver", "shaketable-driver"),
    ("macros", "shaketable-macros"),
    ("reports", "shaketable-reports"),
    ("run", "shaketable-run"),
    ("session", "shaketable-session"),
    ("template", "shaketable-new"),
    ("sim", "shaketable-sim"),
    ("tx", "shaketable-tx"),
];

const EXAMPLES: [&str; 3] = ["ledger", "mailbox", "tickets"];

/// What the crate `foundationdb` asks of packages that others depend on as well, and so does the workspace
/// (`fdb/Cargo.toml`). With other features, all that derives or draws would be built once more.
const FEATURES: &str = "
[dependencies.rand]
version = \"0.10\"

[build-dependencies.syn]
version = \"3\"
features = [\"visit-mut\"]
";

fn example(name: &str) -> PathBuf {
    PLACE.join("examples").join(name)
}

fn packaged() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packaged");
    let unpacked = Path::new(env!("CARGO_TARGET_TMPDIR")).join("unpacked");
    let _ = fs::remove_dir_all(&unpacked);
    fs::create_dir_all(&unpacked).expect("a folder for the tests");
    printed(&root(), &["package", "--workspace", "--no-verify", "--allow-dirty", "--locked", "--offline"]);
    let version = env!("CARGO_PKG_VERSION");
    for (folder, package) in PACKAGES {
        let packed = target().join("package").join(format!("{package}-{version}.crate"));
        // New times of modification: in a package they are all the same, and cargo would take what an earlier
        // test built for what is there now.
        let unpack = Command::new("tar").current_dir(&unpacked).arg("xzmf").arg(packed).status();
        assert!(unpack.expect("tar runs").success(), "{package}");
        let from = unpacked.join(format!("{package}-{version}"));
        for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
            assert!(from.join(file).metadata().is_ok_and(|file| file.len() > 100), "{package} has no {file}");
        }
        if folder == "driver" {
            // Cargo would write the package's C library over that of the workspace, which has the same name
            // and which programs with bindings may be loading at that moment.
            let manifest = from.join("Cargo.toml");
            let text = fs::read_to_string(&manifest).expect("a manifest");
            assert!(text.contains("\"cdylib\","), "{text}");
            fs::write(&manifest, text.replace("\"cdylib\",", "")).expect("written");
        }
        update(&from, &place.join(folder));
    }
    for name in EXAMPLES {
        update(&root().join("examples").join(name), &place.join("examples").join(name));
    }
    fs::create_dir_all(place.join(".cargo")).expect("a folder");
    fs::write(place.join(".cargo/config.toml"), profile()).expect("written");
    // Those that another package depends on, in every crate; a lock file names each that is not used.
    patch_in(&place, &place, &["macros", "reports", "run", "session", "sim", "template", "tx"]);
    patch_in(&place, &place.join("examples/tickets"), &["driver"]);
    for example in EXAMPLES.map(|name| place.join("examples").join(name)) {
        // Its own lock file has all that it needs. What of it is on no machine yet is downloaded.
        printed(&example, &["tree", "--locked"]);
        ask_features(&example);
        printed(&example, &["tree", "--offline"]);
    }
    place
}

/// Adds [`FEATURES`] to a crate's manifest.
fn ask_features(crate_: &Path) {
    let manifest = crate_.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).expect("a manifest");
    fs::write(manifest, text + FEATURES).expect("written");
}

/// The workspace's profile. The packages themselves are not optimized, and have their debug assertions.
fn profile() -> String {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let (_, profile) = manifest.split_once("[profile.dev]\n").expect("a profile");
    let (settings, packages) = profile.split_once("[profile.dev.package]\n").expect("levels of packages");
    let packages = packages.split("\n\n").next().unwrap_or_default();
    let foreign = packages.lines().filter(|line| !line.starts_with("shaketable"));
    let own = PACKAGES.map(|(_, package)| format!("{package}.debug-assertions = true"));
    let lines: Vec<&str> = foreign.chain(own.iter().map(String::as_str)).collect();
    format!("[profile.dev]\n{settings}[profile.dev.package]\n{}\n", lines.join("\n"))
}

/// Lets a crate in this folder find packages that are in no registry.
fn patch(crate_: &Path, folders: &[&str]) {
    patch_in(&PLACE, crate_, folders);
}

fn patch_in(place: &Path, crate_: &Path, folders: &[&str]) {
    let config = crate_.join(".cargo/config.toml");
    let mut text = fs::read_to_string(&config).expect("a configuration") + "\n[patch.crates-io]\n";
    for (folder, package) in PACKAGES.iter().filter(|(folder, _)| folders.contains(folder)) {
        text += &format!("{package} = {{ path = {:?} }}\n", place.join(folder));
    }
    fs::write(config, text).expect("written");
}

/// Makes a folder what another one is. A file that is the same keeps its time, and is not built again.
fn update(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    let mut there = names(from);
    there.retain(|name| name != "target");
    for gone in names(to).iter().filter(|name| !there.contains(name)).map(|name| to.join(name)) {
        match gone.is_dir() {
            true => fs::remove_dir_all(gone).expect("removed"),
            false => fs::remove_file(gone).expect("removed"),
        }
    }
    for (from, to) in there.iter().map(|name| (from.join(name), to.join(name))) {
        if from.is_dir() {
            update(&from, &to);
            continue;
        }
        let content = fs::read(from).expect("a file");
        if fs::read(&to).ok().as_ref() != Some(&content) {
            fs::write(to, content).expect("written");
        }
    }
}

/// Where all of them are built.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("cargo's folder for builds").to_owned()
}

/// Runs cargo in a crate's folder, as its user does.
fn cargo(folder: &Path, arguments: &[&str]) -> Output {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(folder).args(arguments).env("CARGO_TARGET_DIR", target());
    // Cargo joins a crate's flags with those of the folders around it, which are the same ones.
    cargo.env("RUSTFLAGS", "--cfg madsim");
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
    assert!(listed.contains("  sums\n") && listed.contains("  accounts\n"), "{listed}");
    let swept = command(&ledger, &["run", "--seeds", "20", "--check-determinism", "3"]);
    assert!(swept.contains("PASSED"), "{swept}");
    let caught = command(&ledger, &["bugs"]);
    assert!(caught.contains("all 12 planted bugs were caught"), "{caught}");
}

#[test]
fn the_mailboxes_tests_pass_and_its_command_runs() {
    let mailbox = example("mailbox");
    let tested = printed(&mailbox, &["test", "--locked"]);
    assert!(tested.contains("planted_bugs_are_caught ... ok"), "{tested}");
    let swept = command(&mailbox, &["run", "--seeds", "20", "--check-determinism", "3"]);
    assert!(swept.contains("PASSED"), "{swept}");
    // The first failures that the book shows, from the folder of the repository.
    let line = "cargo run --manifest-path examples/mailbox/Cargo.toml -- bugs";
    assert!(include_str!("../../docs/src/failures.md").contains(line));
    let arguments: Vec<&str> = line.split(' ').skip(1).collect();
    let caught = printed(&PLACE, &arguments);
    assert!(caught.contains("all 5 planted bugs were caught"), "{caught}");
}

#[test]
fn functions_of_the_crate_foundationdb_are_shaken_without_its_library() {
    let tickets = example("tickets");
    let tested = printed(&tickets, &["test", "--locked"]);
    assert!(tested.contains("what_does_not_hold_is_found ... ok"), "{tested}");
    let swept = command(&tickets, &["run", "--seeds", "20", "--check-determinism", "10"]);
    assert!(swept.contains("PASSED") && swept.contains("40 seeds ran twice and did the same"), "{swept}");
    let caught = command(&tickets, &["bugs"]);
    assert!(caught.contains("all 10 planted bugs were caught"), "{caught}");
    // What the book shows.
    let (shop, manifest) = (tickets.join("src/shop.rs"), tickets.join("Cargo.toml"));
    let source = [shop, manifest].map(|path| fs::read_to_string(path).expect("a source")).concat();
    let (_, section) =
        include_str!("../../docs/src/programs.md").split_once("## Rust\n").expect("the section");
    let blocks: Vec<&str> = section.split("```").collect();
    assert!(blocks[1].strip_prefix("toml\n").is_some_and(|shown| source.contains(shown)), "{}", blocks[1]);
    assert!(blocks[3].strip_prefix("rust\n").is_some_and(|shown| source.contains(shown)), "{}", blocks[3]);
    let line = "shrink sale 15 --bug bought-twice";
    assert!(section.contains(line));
    let words: Vec<&str> = line.split(' ').collect();
    let failed = cargo(&tickets, &[&["run", "--locked", "--quiet", "--"], &words[..]].concat());
    let said = String::from_utf8_lossy(&failed.stdout).into_owned();
    assert_eq!(failed.status.code(), Some(1), "{said}");
    assert!(said.contains("to 1 operation of 1 client, 1 fault"), "{said}");
    // A number that a static keeps makes two runs of a seed differ: the first call with another argument is
    // named.
    let twice = ["run", "sale", "--bug", "numbered-by-static", "--seeds", "2"];
    let different = cargo(&tickets, &[&["run", "--locked", "--quiet", "--"], &twice[..]].concat());
    let said = String::from_utf8_lossy(&different.stdout).into_owned();
    assert_eq!(different.status.code(), Some(1), "{said}");
    assert!(said.contains("asks for: get (\"tickets\", \"order\", "), "{said}");
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_new_crate_does_what_the_tutorial_says() {
    let (ledger, place) = (example("ledger"), PLACE.join("new"));
    printed(&ledger, &["build", "--locked"]);
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).expect("a folder for the test");
    let new = |name: &str| {
        let program = target().join("debug").join(format!("ledger{}", std::env::consts::EXE_SUFFIX));
        let ran = Command::new(program).current_dir(&place).args(["new", name]).output();
        let ran = ran.expect("the ledger's command runs");
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    // What else is refused is a test of the package `shaketable-new`.
    let (code, error) = new("fn");
    assert_eq!(code, Some(2), "{error}");
    assert!(error.starts_with("ledger: ") && error.contains("a keyword of Rust"), "{error}");
    assert!(names(&place).is_empty(), "{:?}", names(&place));
    assert_eq!(new("my-layer"), (Some(0), String::new()));

    let crate_ = place.join("my-layer");
    assert_eq!(names(&place), ["my-layer"]);
    assert_eq!(names(&crate_), [".cargo", ".github", ".gitignore", "Cargo.toml", "src"]);
    let read = |file: PathBuf| fs::read_to_string(file).expect("a file");
    let manifest = read(crate_.join("Cargo.toml"));
    assert!(manifest.contains("shaketable = { path = \"../../harness\" }"), "{manifest}");
    let flags = "rustflags = [\"--cfg\", \"madsim\"]\n";
    for example in EXAMPLES {
        let config = read(root().join("examples").join(example).join(".cargo/config.toml"));
        assert_eq!(read(crate_.join(".cargo/config.toml")), config);
        assert!(config.contains(&format!("[build]\n{flags}")), "{config}");
    }
    // Its own style, not that of the folder it is written to here.
    printed(&crate_, &["fmt", "--check", "--", "--config", "max_width=100,use_small_heuristics=Default"]);
    // What the ledger was built with, so that nothing is downloaded and little is built.
    let lock = read(ledger.join("Cargo.lock")).replace("\"ledger\"", "\"my-layer\"");
    fs::write(crate_.join("Cargo.lock"), lock).expect("written");
    ask_features(&crate_);
    let tested = printed(&crate_, &["test", "--offline"]);
    for test in ["every_answer_is_the_models", "planted_bugs_are_caught"] {
        assert!(tested.contains(&format!("{test} ... ok")), "{tested}");
    }
    follow_the_tutorial(&crate_);
}

const TUTORIAL: &str = include_str!("../../docs/src/tutorial.md");

/// The block of the tutorial with this line.
fn block(line: &str) -> &'static str {
    let mut blocks = TUTORIAL.split("\n```").skip(1).step_by(2);
    let block = blocks.find(|block| block.lines().any(|other| other.contains(line)));
    block
        .unwrap_or_else(|| panic!("the tutorial has no block with {line}"))
        .split_once('\n')
        .expect("lines")
        .1
}

/// Compares what a command printed with the block of the tutorial that has this line.
fn shows(line: &str, printed: &str) {
    // Where something is written depends on cargo's folder for builds.
    let is_path = |line: &&str| line.starts_with("repro file: ") || line.starts_with("shrunk to: ");
    for shown in block(line).lines().filter(|line| !line.starts_with("$ ") && !is_path(line)) {
        assert!(printed.lines().any(|other| other.trim_end() == shown), "{shown:?} is not in {printed}");
    }
}

/// Replaces a part of a file, which is there once.
fn edit(file: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(file).expect("a source");
    assert_eq!(text.matches(old).count(), 1, "{old}");
    fs::write(file, text.replace(old, new)).expect("written");
}

/// Does in the new crate what the tutorial says, and compares what it shows.
fn follow_the_tutorial(crate_: &Path) {
    let [layer, workload] = ["src/layer.rs", "src/workload.rs"].map(|file| crate_.join(file));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let failing = |arguments: &[&str]| {
        let run = cargo(crate_, arguments);
        let said = text(&run.stdout) + &text(&run.stderr);
        assert!(!run.status.success(), "{said}");
        said
    };
    let fails = |arguments: &[&str]| failing(&[&["run", "--locked", "--quiet", "--"], arguments].concat());
    let test = ["test", "--offline"];
    // 2. Run it.
    shows("operations", &command(crate_, &["run", "--seeds", "50"]));
    let caught = command(crate_, &["bugs"]);
    shows("planted in", &caught);
    assert!(caught.contains("all 8 planted bugs were caught"), "{caught}");
    // 3. Make a mistake.
    let (right, wrong) = ("item, Isolation::Serializable).await?", "item, Isolation::Snapshot).await?");
    assert!(block(wrong).lines().count() == 1);
    edit(&layer, right, wrong);
    shows("shrunk from", &failing(&test));
    // 5. Keep it, and mend it.
    shows("tests/regressions/stock/", &command(crate_, &["regressions", "add", "stock", "1"]));
    edit(&layer, wrong, right);
    shows("1 regression passed", &command(crate_, &["regressions", "check"]));
    // 6. Look at a bug of the retry loop.
    shows("--bug unrecorded", &fails(&["shrink", "stock", "1", "--bug", "unrecorded"]));
    // 7. Add an operation: to the layer, the workload and its model.
    let [of_layer, of_workload, of_model] =
        ["/// Exchanges some", "async fn exchange(&self", "fn exchange(&mut self"].map(block);
    let text = fs::read_to_string(&layer).expect("a source");
    fs::write(&layer, format!("{text}\n{of_layer}\n")).expect("written");
    edit(&workload, "#[draws(item)]", "#[draws(item, from, to)]");
    edit(&workload, "    #[read]\n", &format!("{of_workload}\n\n    #[read]\n"));
    edit(&workload, "    fn count(&self, item", &format!("{of_model}\n\n    fn count(&self, item"));
    printed(crate_, &test);
    edit(&layer, &format!("{{\n    {}\n    let left = take(", TURN), "{\n    let left = take(");
    shows("from: 0, to: 0", &failing(&test));
}

/// What `exchange` is left without.
const TURN: &str = "let tx = &tx.writing().await;";

#[test]
fn the_examples_and_a_new_crate_build_from_the_packages() {
    // The other tests build the examples from the packages, and a new crate that names their folder. This one
    // names their version.
    let (ledger, place) = (example("ledger"), PLACE.join("published"));
    printed(&ledger, &["build", "--locked"]);
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).expect("a folder for the test");
    let program = target().join("debug").join(format!("ledger{}", std::env::consts::EXE_SUFFIX));
    let ran = Command::new(program).current_dir(&place).args(["new", "my-stock", "--released"]).status();
    assert!(ran.expect("the ledger's command runs").success());
    let crate_ = place.join("my-stock");
    let manifest = fs::read_to_string(crate_.join("Cargo.toml")).expect("a manifest");
    assert!(!manifest.contains("path ="), "{manifest}");
    let lock = fs::read_to_string(ledger.join("Cargo.lock")).expect("a lock file");
    fs::write(crate_.join("Cargo.lock"), lock.replace("\"ledger\"", "\"my-stock\"")).expect("written");
    patch(&crate_, &["harness"]);
    ask_features(&crate_);
    printed(&crate_, &["build", "--offline"]);
}

/// Lines that say something, without those of tests.
fn lines(file: &str) -> usize {
    let text = fs::read_to_string(root().join("examples/ledger/src").join(file)).expect("an example");
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[test]
fn a_workload_is_short() {
    assert!(lines("guarded.rs") <= 40, "{}", lines("guarded.rs"));
    assert!(lines("modelled.rs") <= 60, "{}", lines("modelled.rs"));
}
