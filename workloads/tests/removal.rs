//! A layer is its folder and the folder of its workload. One is removed here, in a copy of the repository,
//! with the lines that list these folders: the rest compiles, and no longer names it. What adds a layer is
//! the same.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A layer on which no other one depends.
const LAYER: &str = "vector";

/// Its folders.
const FOLDERS: [&str; 2] = ["layers/src/vector", "workloads/containers/src/vector"];

/// Its lines.
const LINES: [(&str, &str); 3] = [
    ("layers/src/lib.rs", "pub mod vector;"),
    ("workloads/containers/src/lib.rs", "pub mod vector;"),
    ("workloads/containers/src/lib.rs", "        vector::entry(),"),
];

/// What is not searched for the layer's name: what a test writes from the sources, the history of what there
/// was, and this test.
const ELSEWHERE: [&str; 5] = [
    "docs/src/layers.md",
    "CHANGELOG.md",
    "workloads/tests/removal.rs",
    // FoundationDB's recipes have a layer of that name, too.
    "docs/src/analysis-foundationdb-recipes.md",
    "analyses",
];

/// The files below a folder of the repository, relative to it, without what is built, and what is Git's.
fn files(root: &Path) -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![PathBuf::new()], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(root.join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = folder.join(entry.file_name());
            if ["target", ".git", "node_modules"].iter().any(|name| path.ends_with(name)) {
                continue;
            }
            match entry.file_type().expect("a kind of file").is_dir() {
                true => open.push(path),
                false => found.push(path),
            }
        }
    }
    found
}

/// The repository without the layer: its files, and what is in them.
fn rest(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut rest = BTreeMap::new();
    for file in files(root).into_iter().filter(|file| !FOLDERS.iter().any(|folder| file.starts_with(folder)))
    {
        let mut content = fs::read(root.join(&file)).expect("a file");
        for (_, line) in LINES.iter().filter(|(list, _)| file == Path::new(list)) {
            let text = String::from_utf8(content).expect("UTF-8");
            let (before, after) = text.split_once(&format!("{line}\n")).unwrap_or_else(|| {
                panic!("{} has no line {line:?}: LINES are those that list the layer", file.display())
            });
            content = [before, after].concat().into_bytes();
        }
        rest.insert(file, content);
    }
    // Cargo tells packages of one name by their version and their folder in the workspace. With another
    // version these are not taken for the repository's own: each build would find what the other has built.
    let version = concat!("version = \"", env!("CARGO_PKG_VERSION"));
    let manifest = rest.get_mut(Path::new("Cargo.toml")).expect("the workspace");
    *manifest =
        String::from_utf8_lossy(manifest).replace(version, &format!("{version}-removal")).into_bytes();
    rest
}

/// Makes a folder of these files. One that is the same keeps its time, so that cargo does not compile it
/// again.
fn write(files: &BTreeMap<PathBuf, Vec<u8>>, to: &Path) {
    fs::create_dir_all(to).expect("created");
    for gone in self::files(to).iter().filter(|file| !files.contains_key(*file)) {
        fs::remove_file(to.join(gone)).expect("removed");
    }
    for (file, content) in files {
        let file = to.join(file);
        if fs::read(&file).ok().as_ref() != Some(content) {
            fs::create_dir_all(file.parent().expect("a folder")).expect("created");
            fs::write(file, content).expect("written");
        }
    }
}

/// Whether a text names the layer's module, its folder or its workload. Alone it may be another word.
fn names_it(text: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(LAYER).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + LAYER.len()..]);
        let is_whole = !before.ends_with(is_word) && !after.starts_with(is_word);
        let is_path =
            after.starts_with("::") || ["::", "mod ", "/"].iter().any(|mark| before.ends_with(mark));
        let is_quoted = ["\"", "`"].iter().any(|mark| before.ends_with(mark) && after.starts_with(mark));
        let is_listed = before.trim_end().ends_with(['{', ',']) && after.trim_start().starts_with([',', '}']);
        is_whole && (is_path || is_quoted || is_listed)
    })
}

#[test]
fn mentions_are_found_and_words_are_not() {
    for named in [
        "use vector::Vector;",
        "a::vector,",
        "mod vector;",
        "\"vector\"",
        "src/vector/keys.rs",
        "{a, vector}",
    ] {
        assert!(names_it(named), "{named}");
    }
    for word in
        ["a map or a vector", "self.vector.push()", "Vector::new()", "a::vectors", "bit_vector::new()"]
    {
        assert!(!names_it(word), "{word}");
    }
}

#[test]
fn a_layer_is_its_two_folders_and_the_lines_that_list_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    for folder in FOLDERS {
        assert!(root.join(folder).is_dir(), "{folder}");
    }
    let rest = rest(root);
    let is_searched = |file: &Path| {
        let has_names = ["rs", "toml", "md"].iter().any(|kind| file.extension().is_some_and(|k| k == *kind));
        has_names && !ELSEWHERE.iter().any(|place| file.starts_with(place))
    };
    let text = |content: &[u8]| String::from_utf8_lossy(content).into_owned();
    let naming = rest.iter().filter(|(file, content)| is_searched(file) && names_it(&text(content)));
    let naming: Vec<&PathBuf> = naming.map(|(file, _)| file).collect();
    assert!(naming.is_empty(), "these name the layer {LAYER}, which has places of its own: {naming:#?}");

    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("removal");
    write(&rest, &place);
    // In this build's folder much of what the copy depends on is there. Cargo would join the flags of the
    // copy with those of the folders around it, which are the same ones.
    let check = Command::new(env!("CARGO"))
        .current_dir(&place)
        .args(["check", "--package", "shaketable-workloads", "--lib", "--offline", "--quiet"])
        .env("CARGO_TARGET_DIR", place.join("../.."))
        .env("RUSTFLAGS", "--cfg madsim")
        .output()
        .expect("cargo runs");
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
}
