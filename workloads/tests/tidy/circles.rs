//! Circles of files that use each other: whoever reads one of them has to read them all.

use super::{read, root, rust_files};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};
use syn::{
    Item, UseTree,
    visit::{self, Visit},
};

/// The path of a module, or of a name in one.
type Names = Vec<String>;

/// A source folder, and the number of files that the largest circle below it may have. Shorter is better: a
/// number here only ever falls.
const LARGEST: &[(&str, usize)] = &[
    ("driver/src", 2),
    ("driver/session/src", 4),
    ("driver/time/src", 3),
    ("fdb/src", 2),
    ("harness/new/src", 1),
    ("harness/run/src", 4),
    ("harness/src", 10),
    ("layers/record/src", 3),
    ("layers/src", 4),
    ("mutants/src", 6),
    ("reports/src", 5),
    ("sim/src", 6),
    ("sim/src/client", 1),
    ("sim/src/faults", 1),
    ("tx/src", 2),
];

/// The files of which `shaketable-new` makes a crate.
const TEMPLATES: &str = "harness/new/src/files";

/// What one file says: the paths that it uses, and what it exports again, by name.
#[derive(Default)]
struct Said {
    used: Vec<Names>,
    exported: BTreeMap<String, Names>,
}

impl Said {
    fn note(&mut self, tree: &UseTree, before: &Names, is_exported: bool) {
        let with = |name: String| [&before[..], &[name]].concat();
        let (path, name) = match tree {
            UseTree::Path(path) => return self.note(&path.tree, &with(path.ident.to_string()), is_exported),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.note(tree, before, is_exported));
            }
            UseTree::Glob(_) => (before.clone(), None),
            UseTree::Name(name) if name.ident == "self" => (before.clone(), before.last().cloned()),
            UseTree::Name(name) => (with(name.ident.to_string()), Some(name.ident.to_string())),
            UseTree::Rename(rename) => (with(rename.ident.to_string()), Some(rename.rename.to_string())),
        };
        match name {
            Some(name) if is_exported => drop(self.exported.insert(name, path)),
            _ => self.used.push(path),
        }
    }
}

impl<'a> Visit<'a> for Said {
    fn visit_item(&mut self, item: &'a Item) {
        match item {
            Item::Mod(module) if module.attrs.iter().any(|attribute| attribute.path().is_ident("cfg")) => {}
            Item::Use(used) => {
                self.note(&used.tree, &Vec::new(), !matches!(used.vis, syn::Visibility::Inherited));
            }
            item => visit::visit_item(self, item),
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.segments.len() > 1 {
            self.used.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }
}

/// The module that a file is.
fn module(file: &Path, folder: &Path) -> Names {
    let below = file.strip_prefix(folder).expect("below it").with_extension("");
    let mut names: Names = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        names.pop();
    }
    names
}

/// The file, named by its module, in which what a module calls by this path is declared.
fn declared(files: &BTreeMap<Names, Said>, within: &Names, path: &[String], depth: usize) -> Option<Names> {
    let (first, rest) = path.split_first()?;
    let mut full = match first.as_str() {
        "crate" => Vec::new(),
        "self" => within.clone(),
        "super" => within[..within.len().checked_sub(1)?].to_vec(),
        child if files.contains_key(&[&within[..], &[child.to_owned()]].concat()) => {
            [&within[..], &[child.to_owned()]].concat()
        }
        _ => return None,
    };
    for name in rest {
        match name.as_str() {
            "super" => drop(full.pop()),
            name => full.push(name.to_owned()),
        }
    }
    let known = (0..=full.len()).rev().find(|length| files.contains_key(&full[..*length]))?;
    let (module, rest) = full.split_at(known);
    let exported = rest.first().and_then(|name| files[module].exported.get(name));
    let again = exported
        .filter(|_| depth < 8)
        .and_then(|path| declared(files, &module.to_vec(), &[&path[..], &rest[1..]].concat(), depth + 1));
    Some(again.unwrap_or_else(|| module.to_vec()))
}

/// The largest circle of files below a folder.
fn largest(folder: &str) -> Vec<String> {
    let crate_folder = root().join(&folder[..folder.find("src").expect("sources") + 3]);
    // Templates are files of the crates that they make.
    let sources = rust_files(&crate_folder)
        .into_iter()
        .filter(|file| !file.starts_with(root().join(TEMPLATES)) && !file.ends_with("tests.rs"));
    let files: BTreeMap<Names, Said> = sources
        .map(|file| {
            let mut said = Said::default();
            said.visit_file(
                &syn::parse_file(&read(&file)).unwrap_or_else(|e| panic!("{}: {e}", file.display())),
            );
            (module(&file, &crate_folder), said)
        })
        .collect();
    let used_by = |file: &Names| -> BTreeSet<Names> {
        let used = files[file].used.iter().filter_map(|path| declared(&files, file, path, 0));
        used.filter(|used| used != file).collect()
    };
    let edges: BTreeMap<&Names, BTreeSet<Names>> = files.keys().map(|file| (file, used_by(file))).collect();
    let reached = |from: &Names| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(file) = open.pop() {
            open.extend(edges[&file].iter().filter(|next| seen.insert((*next).clone())).cloned());
        }
        seen
    };
    let reached: BTreeMap<&Names, BTreeSet<Names>> = files.keys().map(|file| (file, reached(file))).collect();
    let below = module(&root().join(folder).join("mod.rs"), &crate_folder);
    let circle = |file: &&Names| -> Vec<String> {
        let circle = reached[*file].iter().filter(|other| reached[other].contains(*file));
        circle.filter(|file| file.starts_with(&below)).map(|file| file.join("/")).collect()
    };
    let of_folder = files.keys().filter(|file| file.starts_with(&below));
    of_folder.map(|file| circle(&file)).max_by_key(Vec::len).unwrap_or_default()
}

#[test]
fn circles_of_files_stay_small() {
    for (folder, most) in LARGEST {
        let largest = largest(folder);
        assert_eq!(largest.len().max(1), *most, "the largest circle of {folder} is {largest:?}");
    }
}
