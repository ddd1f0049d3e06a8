//! The API of the layers: their folders, and the public functions that their sources declare.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// A public function as the sources declare it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// Its layer: a folder of `layers/src`, or `once`.
    pub layer: String,
    /// Its path: `layer::Type::function`, or `layer::function` if it does not belong to a type.
    pub path: String,
}

/// The layers and the mechanism that they share, in order: their names and folders.
pub fn layers() -> BTreeMap<String, PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = root.with_file_name("layers").join("src");
    let folders = fs::read_dir(sources).expect("the layers").map(|entry| entry.expect("an entry").path());
    let once = root.with_file_name("tx").join("src/once");
    let folders = folders.filter(|path| path.is_dir()).chain([once]);
    let named = folders.filter_map(|path| Some((path.file_name()?.to_str()?.to_owned(), path)));
    named.collect()
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

/// The type of an inherent implementation; `None` for an implementation of a trait, and for other lines.
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

/// The name of the public function whose declaration starts on a line.
fn declared(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest = ["async ", "const ", "unsafe "]
        .into_iter()
        .fold(rest, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    rest.strip_prefix("fn ")?.split(['<', '(']).next()
}

/// The public functions of one file; `exported` returns whether the layer exports a name.
fn functions_of(layer: &str, text: &str, exported: impl Fn(&str) -> bool) -> Vec<Function> {
    // Tests are at the end.
    let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or(text);
    let mut found = Vec::new();
    let mut implementation: Option<&str> = None;
    for line in text.lines() {
        let mut add = |of: Option<&str>, name: &str| {
            if exported(of.unwrap_or(name)) {
                let name = of.map_or(name.to_owned(), |of| format!("{of}::{name}"));
                found.push(Function { layer: layer.to_owned(), path: format!("{layer}::{name}") });
            }
        };
        if line.starts_with('}') {
            implementation = None;
        } else if line.starts_with("impl") {
            implementation = inherent(line);
        } else if let Some(name) = declared(line) {
            add(None, name);
        } else if let Some(of) = implementation
            && let Some(name) = line.strip_prefix("    ").and_then(declared)
        {
            add(Some(of), name);
        }
    }
    found
}

/// The public functions of all layers.
pub fn functions() -> BTreeSet<Function> {
    let mut found = BTreeSet::new();
    for (layer, folder) in layers() {
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

#[test]
fn public_functions_are_found_in_source() {
    let module = "//! m\n\nmod keys;\npub mod open;\n\npub use keys::{Kept, free};\npub use other::One;\n";
    let exports = exports(module);
    assert_eq!(exports.iter().map(String::as_str).collect::<Vec<_>>(), ["Kept", "One", "free", "mod open"]);
    let text = "
impl<D: Fn() -> u8, const N: usize> Kept<D> {
    pub fn plain(&self, f: impl Fn() -> [u8; 2]) -> Option<u8> {
    }
    pub async fn waits<T: Transaction>(
        &self,
    ) -> u8
    where
        T: Copy,
    {
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
}
pub fn unexported() {}

#[cfg(test)]
mod tests {
    pub fn free() {}
}
";
    let found = functions_of("l", text, |name| exports.contains(name));
    let found: Vec<_> = found.iter().map(|f| &*f.path).collect();
    assert_eq!(found, ["l::Kept::plain", "l::Kept::waits", "l::free"]);
}
