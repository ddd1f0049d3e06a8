//! What the layers offer: their folders, and the functions that take a transaction or a database.

use shaketable_layers::points;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Folders of `layers/src` that are no layers: the contract, and the backend of a real cluster.
const NO_LAYERS: [&str; 2] = ["tx", "fdb"];

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("layers").join("src")
}

/// The names of all layers, in order.
pub fn layers() -> Vec<String> {
    let folders = fs::read_dir(sources()).expect("the layers").map(|entry| entry.expect("an entry").path());
    let mut names: Vec<String> = folders
        .filter(|path| path.is_dir())
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .filter(|name| !NO_LAYERS.contains(&&**name))
        .collect();
    names.sort();
    names
}

/// The public functions of a layer that take a transaction or a database and that nobody has called so far.
pub fn uncalled(layer: &str) -> Vec<String> {
    let called: Vec<&str> = points::called().into_iter().collect();
    let is_called = |of: &str, name: &str| {
        called.iter().any(|path| {
            path.starts_with(&format!("shaketable_layers::{layer}::"))
                && path.ends_with(&format!("::{name}"))
                && path.contains(&format!("::{of}"))
        })
    };
    let files = fs::read_dir(sources().join(layer)).expect("a layer's files");
    let texts = files.map(|file| fs::read_to_string(file.expect("a file").path()).expect("a source"));
    texts
        .flat_map(|text| functions(&text))
        .filter(|(of, name)| !is_called(of, name))
        .map(|(of, name)| format!("{of}::{name}"))
        .collect()
}

/// The type, if it is of one, and the name of each function in a source that takes a transaction or a database.
fn functions(text: &str) -> Vec<(String, String)> {
    // Tests stand last.
    let text = text.split("\n#[cfg(test)]\n").next().unwrap_or(text);
    let (mut found, mut of, mut at) = (Vec::new(), "", 0);
    for line in text.split_inclusive('\n') {
        let rest = &text[at..];
        at += line.len();
        let line = line.trim_end();
        if line.starts_with('}') {
            of = "";
        } else if line.starts_with("impl") {
            let name = line.trim_end_matches(" {").rsplit(' ').next().unwrap_or("");
            of = name.split('<').next().unwrap_or("");
        }
        let declared = line.trim_start().strip_prefix("pub ").map(|l| l.strip_prefix("async ").unwrap_or(l));
        let Some(name) = declared.and_then(|line| line.strip_prefix("fn ")) else { continue };
        let signature = rest.split('{').next().unwrap_or(rest);
        if [": Transaction", ": Database"].iter().any(|bound| signature.contains(bound)) {
            let name = name.split(['<', '(']).next().unwrap_or(name);
            found.push((of.to_owned(), name.to_owned()));
        }
    }
    found
}

#[test]
fn functions_are_found_in_source() {
    let text = "
impl<R: Record> Table<R> {
    pub fn plain(&self) {}
    pub async fn set<T: Transaction>(
        &self,
    ) {}
    async fn hidden<T: Transaction>(&self) {}
}
pub fn run<D>(db: &D)
where
    D: Database,
{
}
#[cfg(test)]
mod tests {
    pub fn no<D: Database>() {}
}
";
    let found = functions(text);
    let found: Vec<(&str, &str)> = found.iter().map(|(of, name)| (&**of, &**name)).collect();
    assert_eq!(found, [("Table", "set"), ("", "run")]);
}
