//! Rules of the code base as tests: each failure states the preferred alternative.

mod circles;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

const CRATES: &[&str] =
    &["tx", "fdb", "fidelity", "mutants", "layers", "sim", "harness", "workloads", "reports", "driver"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace's folder").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Every Rust file below `folder`, in order.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.expect("an entry").path();
            if path.is_dir() && path.file_name().is_some_and(|n| n != "target") {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The crates that a crate of workloads may use.
const WORKLOADS_USE: [&str; 6] = [
    "shaketable",
    "shaketable-tx",
    "shaketable-fidelity",
    "shaketable-layers",
    "shaketable-record",
    "shaketable-sim",
];

/// The crates of workloads, which do not use each other but for the first.
const GROUPS: [&str; 5] = [
    "shaketable-workloads-shared",
    "shaketable-workloads-containers",
    "shaketable-workloads-queues",
    "shaketable-workloads-records",
    "shaketable-workloads-tables",
];

#[test]
fn crates_depend_in_one_direction() {
    let allowed = BTreeMap::from([
        ("tx", vec![]),
        ("fdb", vec!["shaketable-tx", "shaketable-workloads"]),
        ("fidelity", vec!["shaketable-tx", "shaketable-layers", "shaketable-sim"]),
        ("mutants", vec![]),
        ("layers", vec!["shaketable-tx"]),
        ("layers/record", vec!["shaketable-tx"]),
        ("sim", vec!["shaketable-tx"]),
        (
            "harness",
            vec![
                "shaketable-tx",
                "shaketable-fdb",
                "shaketable-sim",
                "shaketable-run",
                "shaketable-reports",
                "shaketable-session",
                "shaketable-macros",
                "shaketable-new",
            ],
        ),
        ("harness/macros", vec![]),
        ("harness/new", vec![]),
        (
            "harness/run",
            vec![
                "shaketable-tx",
                "shaketable-fdb",
                "shaketable-sim",
                "shaketable-reports",
                "shaketable-driver",
                // The examples of its documentation.
                "shaketable",
            ],
        ),
        ("workloads", [&WORKLOADS_USE[..], &GROUPS[..], &["shaketable-reports"][..]].concat()),
        (
            "workloads/first",
            vec!["shaketable", "shaketable-workloads-containers", "shaketable-workloads-queues"],
        ),
        ("workloads/shared", WORKLOADS_USE.to_vec()),
        ("workloads/containers", [&WORKLOADS_USE[..], &GROUPS[..1]].concat()),
        ("workloads/queues", [&WORKLOADS_USE[..], &GROUPS[..1]].concat()),
        ("workloads/records", [&WORKLOADS_USE[..], &GROUPS[..1]].concat()),
        ("workloads/tables", [&WORKLOADS_USE[..], &GROUPS[..1]].concat()),
        ("reports", vec![]),
        ("driver/session", vec!["shaketable-tx", "shaketable-sim"]),
        // The tests of the driver preload the library; no code uses the crate.
        ("driver", vec!["shaketable-tx", "shaketable-sim", "shaketable-session", "shaketable-time"]),
        ("driver/time", vec![]),
        // People without a Rust toolchain have it: no catalogue, and nothing that only the catalogue needs.
        ("driver/with", vec!["shaketable"]),
    ]);
    for (name, allowed) in allowed {
        let manifest = read(&root().join(name).join("Cargo.toml"));
        let used = manifest
            .lines()
            .filter(|line| {
                ["shaketable-", "shaketable.", "shaketable "].iter().any(|name| line.starts_with(name))
            })
            .map(|line| line.split(['.', ' ', '=']).next().expect("a name"));
        for used in used {
            assert!(
                allowed.contains(&used),
                "{name} must not depend on {used}: ARCHITECTURE.md has the arrows"
            );
        }
        if name.starts_with("layers") || ["tx", "fdb", "fidelity", "reports"].contains(&name) {
            let (built, _) = manifest.split_once("[dev-dependencies]").unwrap_or((&manifest, ""));
            assert!(!built.contains("madsim"), "{name} must build without madsim");
        }
    }
}

/// The rooms of the harness, folders of the sources of its two crates: each one uses those before it.
const ROOMS: [(&str, &str); 6] = [
    ("harness/run/src", "describe"),
    ("harness/run/src", "judge"),
    ("harness/run/src", "run"),
    ("harness/run/src", "search"),
    ("harness/src", "advice"),
    ("harness/src", "command"),
];

/// The modules of its own crate that the code of a source names, from the crate's root; without its tests.
fn named_modules(text: &str) -> Vec<String> {
    let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text);
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::").filter(|(at, _)| !code[..*at].ends_with('$')) {
        let path = &code[at + "crate::".len()..];
        let Some(list) = path.strip_prefix('{') else {
            found.push(word(path));
            continue;
        };
        let (mut depth, mut begins) = (0, true);
        for (at, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                c if begins && !c.is_whitespace() => {
                    found.push(word(&list[at..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn modules_are_found_in_source() {
    let text = "// crate::no\nuse crate::{\n    a::{b, c::{d, e}},\n    f,\n};\nfn g() { crate::h::i(); $crate::j!() }\n";
    assert_eq!(named_modules(text), ["a", "f", "h"]);
}

#[test]
fn rooms_of_the_harness_use_those_below() {
    let names = ROOMS.map(|(_, room)| room);
    for (level, (sources, room)) in ROOMS.into_iter().enumerate() {
        let files = rust_files(&root().join(sources).join(room));
        assert!(!files.is_empty(), "the harness has no {room}");
        for file in files {
            for named in named_modules(&read(&file)) {
                assert!(
                    names[..=level].contains(&&*named),
                    "{} names {named}: rooms use {names:?} from left to right",
                    file.display()
                );
            }
        }
    }
}

/// The names and versions of a lock file's packages.
fn locked(lock: &str) -> BTreeSet<(&str, &str)> {
    lock.split("[[package]]")
        .filter_map(|package| {
            let value = |name: &str| package.split_once(&format!("\n{name} = \""))?.1.split('"').next();
            Some((value("name")?, value("version")?))
        })
        .collect()
}

#[test]
fn examples_have_the_workspaces_versions() {
    // What is locked at another version is built once more by the tests of the examples, with all that
    // depends on it.
    let workspace = read(&root().join("Cargo.lock"));
    let workspace = locked(&workspace);
    for example in ["ledger", "mailbox", "tickets"] {
        let lock = read(&root().join("examples").join(example).join("Cargo.lock"));
        let locked = locked(&lock);
        assert!(locked.len() > 100, "{example}: {}", locked.len());
        // An example may need another version beside the workspace's.
        let is_once = |name: &str| locked.iter().filter(|(other, _)| *other == name).count() == 1;
        let is_known = |name: &str| workspace.iter().any(|(known, _)| *known == name);
        let other: Vec<_> =
            locked.difference(&workspace).filter(|(name, _)| is_known(name) && is_once(name)).collect();
        assert!(other.is_empty(), "{example} locks these at other versions than the workspace: {other:?}");
    }
}

/// Files that no crate has: neither a root nor declared by the file that their folder belongs to.
fn undeclared(folder: &Path) -> Vec<PathBuf> {
    let is_root = |path: &Path| {
        let path = path.strip_prefix(root()).expect("a file of the workspace");
        let inside = |name: &str| path.components().any(|part| part.as_os_str() == name);
        ["lib", "main", "build"].iter().any(|name| path.file_stem().is_some_and(|stem| stem == *name))
            || inside("bin")
            || inside("tests")
            || !inside("src")
    };
    let is_declared = |path: &PathBuf| {
        let is_folder = path.file_name().is_some_and(|name| name == "mod.rs");
        let module = if is_folder { path.parent().expect("its folder") } else { path };
        let name = module.file_stem().and_then(|name| name.to_str()).expect("a name");
        let folder = module.parent().expect("a folder");
        let parents = ["mod.rs", "lib.rs", "main.rs"].map(|name| folder.join(name));
        let texts = parents.into_iter().chain([folder.with_extension("rs")]).map(fs::read_to_string);
        texts.flatten().any(|text| text.contains(&format!("mod {name};")))
    };
    rust_files(folder).into_iter().filter(|path| !is_root(path) && !is_declared(path)).collect()
}

#[test]
fn every_file_is_part_of_a_crate() {
    let dead: Vec<_> = CRATES.iter().flat_map(|of| undeclared(&root().join(of))).collect();
    assert!(dead.is_empty(), "nobody compiles {dead:?}: declare them as modules, or delete them");
}

#[test]
fn every_module_says_first_what_it_is_for() {
    for name in CRATES {
        for file in rust_files(&root().join(name)) {
            let text = read(&file);
            assert!(text.starts_with("//!"), "{} does not open with //! and what it is for", file.display());
        }
    }
}

/// The lines of comments that are longer than code may be. Rows of tables and code in documentation are what
/// they are.
fn long_comments(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let is_long = |line: &&str| {
        let Some(comment) = line.trim_start().strip_prefix("//") else { return false };
        let comment = comment.trim_start_matches(['/', '!']).trim_start();
        is_code ^= comment.starts_with("```");
        let is_one_word = !comment.trim_start_matches(['*', '-', ' ']).contains(' ');
        line.chars().count() > 110 && !is_code && !comment.starts_with(['|', '[']) && !is_one_word
    };
    text.lines().filter(is_long).collect()
}

#[test]
fn comments_end_where_code_does() {
    let long = format!("/// {}", "word ".repeat(25));
    let text = format!("{long}\n//! | {long} |\n/// ```\n{long}\n/// ```\nlet a = 1; {long}\n");
    assert_eq!(long_comments(&text), [long]);
    for file in CRATES.iter().flat_map(|name| rust_files(&root().join(name))) {
        assert_eq!(long_comments(&read(&file)), [""; 0], "{}: lines end at 110", file.display());
    }
}

#[test]
fn layers_have_the_same_files() {
    let layers = root().join("layers/src");
    for entry in fs::read_dir(&layers).expect("the layers") {
        let folder = entry.expect("an entry").path();
        if !folder.is_dir() {
            continue;
        }
        for file in ["mod.rs", "keys.rs", "ops.rs", "error.rs"] {
            assert!(folder.join(file).is_file(), "{} has no {file}", folder.display());
        }
    }
}

/// The sources of the layers, those of the Record Layer and of what layers are built on included.
fn layer_files() -> Vec<PathBuf> {
    ["layers/src", "layers/record/src", "tx/src"].map(|folder| rust_files(&root().join(folder))).concat()
}

#[test]
fn layers_know_no_runtime_and_no_simulation() {
    for file in layer_files() {
        // Tokio's locks need none of its runtimes.
        let text = read(&file).replace("tokio::sync::", "");
        for word in ["madsim", "tokio::", "shaketable_sim", "std::time::Instant"] {
            assert!(!text.contains(word), "{} names {word}: take a tx::Env instead", file.display());
        }
    }
}

/// The files of layers that read ranges directly, and stop when they have read enough: a batch of a job, and
/// the content of a blob.
const READS_RANGES: [&str; 2] = ["bulk/ops.rs", "blob/ops.rs"];

#[test]
fn layers_read_ranges_with_a_bound() {
    let layers = root().join("layers/src");
    for file in rust_files(&layers) {
        let reads = read(&file).contains("get_range");
        let may = READS_RANGES.iter().any(|name| file == layers.join(name));
        assert_eq!(reads, may, "{}: a layer reads ranges with read::all, page or first", file.display());
    }
}

/// The functions of a source that run their own transactions, and whether their documentation states what
/// dropping their futures means.
fn droppable(text: &str) -> Vec<(&str, bool)> {
    let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text);
    let mut found = Vec::new();
    let mut documented = String::new();
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n') {
        let code = line.trim_start();
        if let Some(words) = code.strip_prefix("///") {
            documented.push_str(words);
        } else if let Some(declared) = code.strip_prefix("pub fn ") {
            let signature = rest.split('{').next().unwrap_or(rest);
            let own = [": Database", "Session<D>"].iter().any(|word| signature.contains(word));
            if own && signature.contains("impl Future") {
                let name = declared.split(['<', '(']).next().unwrap_or(declared);
                found.push((name, documented.to_lowercase().contains("dropp")));
            }
            documented.clear();
        } else if !code.starts_with('#') {
            documented.clear();
        }
        rest = after;
    }
    found
}

#[test]
fn what_runs_transactions_says_what_dropping_means() {
    let silent = "/// Adds.\npub fn add<D: Database>(db: &D) -> impl Future<Output = ()> {\n}\n";
    assert_eq!(droppable(silent), [("add", false)]);
    let mut found = 0;
    for file in layer_files() {
        let path = file.strip_prefix(root()).unwrap().to_owned();
        // What a dropped future of the contract means is FoundationDB's.
        if path.parent().is_some_and(|folder| folder.ends_with("tx/src")) {
            continue;
        }
        for (name, says) in droppable(&read(&file)) {
            found += 1;
            assert!(says, "{name} in {} does not say what dropping its future means", path.display());
        }
    }
    assert!(found > 20, "{found} functions");
}

#[test]
fn only_one_file_of_the_simulator_touches_the_runtime() {
    for file in rust_files(&root().join("sim/src")) {
        if file.ends_with("rt.rs") || file.ends_with("lib.rs") {
            continue;
        }
        assert!(!read(&file).contains("madsim::"), "{} names madsim: go through sim::rt", file.display());
    }
}

/// The claims that workloads list are those that their layers make, so that a claim that is in no list, and
/// would not be missed, cannot be written.
#[test]
fn every_claim_is_listed_by_a_workload() {
    let listed: Vec<&str> =
        shaketable_workloads::catalogue::catalogue().iter().flat_map(|e| e.points().to_vec()).collect();
    let groups = GROUPS.map(|package| package.trim_start_matches("shaketable-").replace('-', "/"));
    let others = ["tx", "layers", "layers/record", "harness", "harness/run", "workloads"].map(str::to_owned);
    for name in groups.into_iter().chain(others) {
        for file in rust_files(&root().join(name).join("src")) {
            if file.ends_with("points.rs") {
                continue;
            }
            for point in points_in(&read(&file)) {
                assert!(
                    listed.contains(&&*point),
                    "{}: no workload lists the claim {point:?}",
                    file.display()
                );
            }
        }
    }
}

/// The names in `reachable!("...")` and `sometimes!(.., "...")`.
fn points_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (marker, skip) in [("reachable!(", false), ("sometimes!(", true)] {
        for (at, _) in text.match_indices(marker) {
            let call = &text[at + marker.len()..];
            let call = &call[..call.find(");").unwrap_or(call.len())];
            let name = if skip { call.rsplit(", ").next() } else { Some(call) };
            if let Some(name) = name.and_then(|n| n.trim().strip_prefix('"')?.strip_suffix('"')) {
                found.push(name.to_owned());
            }
        }
    }
    found
}

#[test]
fn points_are_found_in_source() {
    let text = "sometimes!(a > b, \"x y\");\nfoo::reachable!(\"z\");";
    assert_eq!(points_in(text), ["z", "x y"]);
}

#[test]
fn documents_name_only_paths_that_exist() {
    let documents = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "harness/src/guide.md",
        "layers/record/EXAMPLES.md",
    ];
    let book = fs::read_dir(root().join("docs/src")).expect("the book");
    let pages = book.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file());
    for document in documents.map(|document| root().join(document)).into_iter().chain(pages) {
        let text = read(&document);
        for word in text.split('`').skip(1).step_by(2) {
            let first = word.split('/').next().unwrap_or("");
            let is_path = word.contains('/')
                && !word.contains([' ', '*', '<', '{', ':', '$'])
                && (CRATES.contains(&first)
                    || [".ci", ".cargo", ".github", "docs", "examples", "scripts"].contains(&first));
            assert!(
                !is_path || root().join(word).exists(),
                "{} names {word}, which does not exist",
                document.display()
            );
        }
    }
}

/// The tests that are named in the last column of the table of examples, as `FILE::TEST`.
#[test]
fn each_example_of_the_record_layer_has_a_test() {
    let table = read(&root().join("layers/record/EXAMPLES.md"));
    let mut named = 0;
    for row in table.lines().filter(|line| line.starts_with('|')).skip(2) {
        let tests = row.trim_end_matches('|').rsplit('|').next().unwrap_or("");
        let tests: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test: {row}");
        for test in tests {
            let (file, name) = test.split_once("::").unwrap_or_else(|| panic!("no file: {test}"));
            let text = read(&root().join(file));
            assert!(text.contains(&format!("fn {name}(")), "{file} has no test {name}");
            named += 1;
        }
    }
    assert!(named > 40, "{named} tests");
}

#[test]
fn a_table_with_a_session_may_have_every_method_of_a_workload() {
    let parsed = |path: &str| syn::parse_file(&read(&root().join(path))).expect("it is Rust").items;
    let described = parsed("harness/run/src/describe/workload.rs").into_iter().find_map(|item| match item {
        syn::Item::Trait(item) if item.ident == "Workload" => Some(item.items),
        _ => None,
    });
    // What the attribute says is no constant of the block.
    let described = described.expect("the trait").into_iter().filter_map(|item| match item {
        syn::TraitItem::Fn(method) => Some(method.sig.ident.to_string()),
        syn::TraitItem::Const(item) => Some(item.ident.to_string()),
        _ => None,
    });
    let described: BTreeSet<String> =
        described.filter(|name| !["NAME", "ABOUT"].contains(&name.as_str())).collect();
    let listed = parsed("harness/macros/src/several.rs").into_iter().filter_map(|item| match item {
        syn::Item::Const(syn::ItemConst { expr, .. }) => match *expr {
            syn::Expr::Array(list) => Some(list.elems),
            _ => None,
        },
        _ => None,
    });
    let listed = listed.flatten().filter_map(|name| match name {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(name), .. }) => Some(name.value()),
        _ => None,
    });
    assert_eq!(listed.collect::<BTreeSet<_>>(), described);
}
