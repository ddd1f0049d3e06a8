//! Every public function of every layer is called by an operation of some workload, under faults.
//!
//! The public functions are read from the sources, so that a new one cannot be left out: inherent functions
//! of the types that a layer exports, and free functions that it exports. Each opens with `crate::called!()`,
//! which notes that an operation (and not a setup, an audit or a check) called it; a sweep under standard
//! faults then has to call all of them.

use shaketable_layers::points;
use shaketable_sim::seed::Seed;
use shaketable_workloads::{
    catalogue::{Entry, catalogue},
    plan::Demands,
};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

/// Folders of `layers/src` that are no layers: the contract, and the backend of a real cluster.
const NO_LAYERS: [&str; 2] = ["tx", "fdb"];

/// The workloads that are not called as the layer that they shake. The ring of `cycle` has no layer.
const SHAKES: [(&str, &str); 4] =
    [("session", "once"), ("signup", "scheduling"), ("upload", "blob"), ("cycle", "")];

/// Seeds that a workload may take until nothing of its layer is missing.
const SEEDS: u64 = 60;

/// Public functions that no operation can call, each with the reason. Paths as in [`Function::path`].
const EXCEPTIONS: &[(&str, &str)] = &[
    ("directory::Directories::content", "says where the layer lies"),
    ("leased_queue::LeasedQueue::subspace", "says where the layer lies"),
    ("priority_queue::PriorityQueue::subspace", "says where the layer lies"),
    ("queue::Queue::subspace", "says where the layer lies"),
    ("leased_queue::LeasedQueue::row", "reads a row that somebody has got elsewhere: a model's part"),
    ("staged_queue::Request::stamp", "a model's part, which compares it with the transaction's"),
    (
        "directory::Allocator::allocate",
        "a create draws from the same chances, with the rest of them for its next try",
    ),
];

/// A public function as the sources declare it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Function {
    /// Its layer: a folder of `layers/src`.
    layer: String,
    /// Its path: `layer::Type::function`, or `layer::function` if it belongs to no type.
    path: String,
    /// Whether `crate::called!();` is its first statement.
    noted: bool,
}

fn layers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("layers").join("src")
}

/// The names in `pub use ..` of a `mod.rs`, and its public submodules.
fn exports(module: &str) -> BTreeSet<String> {
    let (mut names, mut rest) = (BTreeSet::new(), module);
    while let Some((_, after)) = rest.split_once("\npub use ") {
        let (list, next) = after.split_once(';').expect("a list of exports ends");
        let list = list.rsplit_once("::{").map_or_else(
            || list.rsplit("::").next().unwrap_or(list),
            |(_, names)| names.trim_end_matches('}'),
        );
        names.extend(list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned));
        rest = next;
    }
    let modules = module.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    names.extend(modules.map(|name| format!("mod {name}")));
    names
}

/// The type that an inherent implementation is of; `None` for one of a trait, and for other lines.
fn inherent(line: &str) -> Option<&str> {
    let arrowless = line.replace("->", "  ");
    let mut rest = line.strip_prefix("impl")?;
    if rest.starts_with('<') {
        let mut open = 0;
        let end = arrowless["impl".len()..].find(|c| {
            open += i32::from(c == '<') - i32::from(c == '>');
            open == 0
        });
        rest = &rest[end? + 1..];
    }
    let header = rest.trim_start().trim_end_matches('{').trim_end();
    let name = header.split(['<', ' ']).next().filter(|name| !name.is_empty())?;
    (!header.contains(" for ")).then_some(name)
}

/// The name of the public function that a line begins to declare.
fn declared(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = ["async ", "const ", "unsafe "]
        .into_iter()
        .fold(rest, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    rest.strip_prefix("fn ")?.split(['<', '(']).next()
}

/// What stands first in the body of the function that `text` begins with, after comments.
fn first_statement(text: &str) -> &str {
    let mut open = 0;
    let body = text.find(|c| {
        open += i32::from("([".contains(c)) - i32::from(")]".contains(c));
        c == '{' && open == 0
    });
    let mut rest = body.map_or("", |at| &text[at + 1..]).trim_start();
    while rest.starts_with("//") {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
    }
    rest
}

/// The public functions of one file; `exported` says of a name whether the layer exports it.
fn functions_of(layer: &str, text: &str, exported: impl Fn(&str) -> bool) -> Vec<Function> {
    // Tests stand last.
    let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text);
    let mut found = Vec::new();
    let mut implementation: Option<&str> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let rest = &text[at..];
        at += line.len();
        let line = line.trim_end();
        let mut add = |of: Option<&str>, name: &str, noted: bool| {
            if exported(of.unwrap_or(name)) {
                let name = of.map_or(name.to_owned(), |of| format!("{of}::{name}"));
                found.push(Function { layer: layer.to_owned(), path: format!("{layer}::{name}"), noted });
            }
        };
        if line.starts_with('}') {
            implementation = None;
        } else if line.starts_with("impl") {
            implementation = inherent(line);
        } else {
            let noted = || first_statement(rest.trim_start()).starts_with("crate::called!();");
            if let Some(name) = declared(line) {
                add(None, name, noted());
            } else if let Some(of) = implementation
                && let Some(name) = line.strip_prefix("    ").and_then(declared)
            {
                add(Some(of), name, noted());
            }
        }
    }
    found
}

/// The public functions of all layers.
fn functions() -> BTreeSet<Function> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(layers()).expect("the layers") {
        let folder = entry.expect("an entry").path();
        let layer = folder.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        if !folder.is_dir() || NO_LAYERS.contains(&&*layer) {
            continue;
        }
        let read =
            |path: &Path| fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let exports = exports(&read(&folder.join("mod.rs")));
        for file in fs::read_dir(&folder).expect("a layer's files") {
            let path = file.expect("a file").path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
            let public = stem == "mod" || exports.contains(&format!("mod {stem}"));
            found.extend(functions_of(&layer, &read(&path), |name| public || exports.contains(name)));
        }
    }
    found
}

/// A path that was noted, as [`Function::path`] writes it: without the crate, the module's files and what
/// generics a type has.
fn short(noted: &str) -> String {
    // An implementation away from its type is `<impl path>`.
    let (mut plain, mut open) = (String::new(), 0usize);
    for c in noted.replace("<impl ", "").chars() {
        match c {
            '<' => open += 1,
            '>' => open = open.saturating_sub(1),
            c if open == 0 => plain.push(c),
            _ => (),
        }
    }
    let parts: Vec<&str> = plain.split("::").collect();
    let is_type = |part: &&str| part.starts_with(|c: char| c.is_ascii_uppercase());
    let layer = parts.get(1).copied().unwrap_or_default();
    let name = parts.last().copied().unwrap_or_default();
    match parts.iter().rev().find(|part| is_type(part)) {
        Some(of) => format!("{layer}::{of}::{name}"),
        None => format!("{layer}::{name}"),
    }
}

/// What of these no operation has called so far.
fn missing(functions: &BTreeSet<Function>) -> BTreeSet<String> {
    let called: BTreeSet<String> = points::called().into_iter().map(short).collect();
    functions.iter().map(|function| &function.path).filter(|path| !called.contains(*path)).cloned().collect()
}

/// Whether a function need not be called.
fn is_excused(path: &str) -> bool {
    EXCEPTIONS.iter().any(|(name, _)| *name == path)
}

/// Runs a workload until nothing of its layer is missing.
fn shake(entry: &dyn Entry, functions: &BTreeSet<Function>) {
    let layer =
        SHAKES.iter().find(|(name, _)| *name == entry.name()).map_or(entry.name(), |(_, layer)| layer);
    let own: BTreeSet<Function> =
        functions.iter().filter(|f| f.layer == layer && !is_excused(&f.path)).cloned().collect();
    for seed in (0..SEEDS).take_while(|_| !missing(&own).is_empty()) {
        // Whether it stands is for others to judge.
        entry.run(Seed(seed), &Demands::default(), false);
    }
}

#[test]
fn every_public_function_notes_that_it_is_called() {
    let silent: Vec<String> =
        functions().into_iter().filter(|f| !f.noted && !is_excused(&f.path)).map(|f| f.path).collect();
    assert!(silent.is_empty(), "these do not open with `crate::called!();`: {silent:#?}");
}

#[test]
fn every_public_function_is_called_by_an_operation_under_faults() {
    let (functions, catalogue, next) = (functions(), catalogue(), AtomicUsize::new(0));
    assert!(functions.len() > 200, "only {} public functions were found", functions.len());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(entry) = catalogue.get(next.fetch_add(1, Ordering::Relaxed)) {
                    shake(entry.as_ref(), &functions);
                }
            });
        }
    });
    let missing = missing(&functions);
    let gaps: Vec<_> = missing.iter().filter(|path| !is_excused(path)).collect();
    assert!(gaps.is_empty(), "no operation of any workload calls these: {gaps:#?}");
    let excused = EXCEPTIONS.iter().map(|(path, _)| path);
    let idle: Vec<_> = excused.filter(|path| !missing.contains(**path)).collect();
    assert!(idle.is_empty(), "these are called, or do not exist, and need no exception: {idle:#?}");
}

#[test]
fn public_functions_are_found_in_source() {
    let module = "//! m\n\nmod keys;\npub mod open;\n\npub use keys::{Kept, free};\npub use other::One;\n";
    let exports = exports(module);
    assert_eq!(exports.iter().map(String::as_str).collect::<Vec<_>>(), ["Kept", "One", "free", "mod open"]);
    let text = "
impl<D: Fn() -> u8, const N: usize> Kept<D> {
    pub fn plain(&self, f: impl Fn() -> [u8; 2]) -> Option<u8> {
        // Why.
        crate::called!();
    }
    pub async fn silent<T>(
        &self,
    ) -> u8
    where
        T: Copy,
    {
        f(|| { crate::called!(); })
    }
    pub(super) fn hidden() {
    }
}
impl Clone for Kept {
    pub fn no() {}
}
impl Private {
    pub fn no() {}
}
pub fn free() {
    crate::called!();
}
pub fn unexported() {}

#[cfg(test)]
mod tests {
    pub fn free() {}
}
";
    let found = functions_of("l", text, |name| exports.contains(name));
    let found: Vec<(&str, bool)> = found.iter().map(|f| (&*f.path, f.noted)).collect();
    assert_eq!(found, [("l::Kept::plain", true), ("l::Kept::silent", false), ("l::free", true)]);
}

#[test]
fn paths_are_those_of_the_source() {
    for (noted, path) in [
        ("shaketable_layers::log::ops::Log::append", "log::Log::append"),
        ("shaketable_layers::once::session::Session<D>::begin", "once::Session::begin"),
        (
            "shaketable_layers::blob::upload::<impl shaketable_layers::blob::ops::Blobs>::upload",
            "blob::Blobs::upload",
        ),
        ("shaketable_layers::index::ops::Table<R>::set", "index::Table::set"),
        ("shaketable_layers::once::ops::check", "once::check"),
    ] {
        assert_eq!(short(noted), path);
    }
}
