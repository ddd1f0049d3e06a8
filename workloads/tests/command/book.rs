//! The book in `docs`, and the README that leads to it: pages and links, programs in Rust, the reference of
//! the command.

use crate::process::{code, folder, shaketable, stdout};
use std::{
    env, fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace's folder").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The files of the book, its summary among them.
fn pages() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("docs/src")).expect("the book");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let mut pages: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|extension| extension == "md")).collect();
    pages.sort();
    pages
}

/// The blocks of code of a document: what is written after the fence, and the lines.
fn blocks(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("```").skip(1).step_by(2).map(|block| block.split_once('\n').expect("a block of lines"))
}

/// A document without its code.
fn prose(text: &str) -> String {
    let outside: String = text.split("```").step_by(2).collect();
    outside.split('`').step_by(2).collect()
}

/// The targets of the links of a document.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).collect()
}

/// The places of a page that a link can name, made of its headings.
fn anchors(text: &str) -> Vec<String> {
    let outside: String = text.split("```").step_by(2).collect();
    let headings = outside.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        heading.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn the_readme_is_short() {
    let lines = read(&root().join("README.md")).lines().count();
    assert!(lines <= 150, "README.md has {lines} lines, and 150 are the most: the book has the details");
}

#[test]
fn every_page_is_in_the_summary() {
    let listed = links(&read(&root().join("docs/src/SUMMARY.md")));
    for page in pages() {
        let name = page.file_name().expect("a name").to_str().expect("UTF-8").to_owned();
        assert!(name == "SUMMARY.md" || listed.contains(&name), "{name} is not in docs/src/SUMMARY.md");
    }
    assert!(listed.len() > 15, "{listed:?}");
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let mut found = 0;
    for document in pages.iter().chain([&root().join("README.md")]) {
        let text = read(document);
        for link in links(&text).into_iter().filter(|link| !link.starts_with("https://")) {
            let (name, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match name {
                "" => document.clone(),
                name => document.with_file_name(name),
            };
            assert!(target.is_file(), "{}: {link} does not exist", document.display());
            // The book is also read where the files of the repository are not: it names those and does not
            // link to them.
            let is_picture = target.starts_with(root().join("docs/src/pictures"));
            assert!(
                !pages.contains(document) || pages.contains(&target) || is_picture,
                "{}: {link} is no page of the book: write `{name}` without a link",
                document.display()
            );
            assert!(
                anchor.is_empty() || anchors(&read(&target)).iter().any(|known| known == anchor),
                "{}: {link} names no heading",
                document.display()
            );
            found += 1;
        }
    }
    assert!(found > 60, "{found} links");
}

/// Every Rust file below these folders of the repository.
fn sources(folders: &[&str]) -> Vec<PathBuf> {
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// Lines without their indentation.
fn flat(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().map(str::trim).collect();
    format!("\n{}\n", lines.join("\n"))
}

/// A longer block may be wrong unnoticed if nothing compiles it.
const LONGEST: usize = 7;

#[test]
fn longer_programs_in_rust_are_parts_of_sources() {
    let folders = ["examples", "workloads/examples", "harness/new/src/files"];
    let sources: Vec<String> = sources(&folders).iter().map(|source| flat(&read(source))).collect();
    let mut found = 0;
    for document in pages().iter().chain([&root().join("README.md")]) {
        let text = read(document);
        for (_, block) in blocks(&text).filter(|(language, _)| language.starts_with("rust")) {
            if block.trim().lines().count() > LONGEST {
                let block = flat(block);
                assert!(
                    sources.iter().any(|source| source.contains(&block)),
                    "{}: this is in no source of {folders:?}: {block}",
                    document.display()
                );
                found += 1;
            }
        }
    }
    assert!(found > 7, "{found} blocks");
}

/// The subcommands whose output is the same each time. `scripts/driver-python` and `scripts/driver-node`
/// check what `with` prints.
const SAME: [&str; 3] = ["advise", "replay", "shrink"];

#[test]
fn what_a_page_shows_of_a_command_is_what_it_prints() {
    let folder = folder("shown");
    let mut found = 0;
    for document in pages().iter().chain([&root().join("README.md")]) {
        let text = read(document);
        for (_, block) in blocks(&text) {
            let Some((line, shown)) = block.strip_prefix("$ shaketable ").and_then(|b| b.split_once('\n'))
            else {
                continue;
            };
            let arguments: Vec<&str> = line.split(' ').collect();
            if SAME.contains(&arguments[0]) {
                let output =
                    shaketable(&arguments).current_dir(&folder).output().expect("the command starts");
                let printed = stdout(&output);
                // Three dots stand for what is left out.
                for line in shown.lines().filter(|line| *line != "...") {
                    assert!(
                        printed.lines().any(|other| other == line),
                        "{}: {line:?} is not in {printed}",
                        document.display()
                    );
                }
                found += 1;
            }
        }
    }
    assert!(found > 3, "{found} outputs");
}

/// The subcommands that a help page lists.
fn subcommands(help: &str) -> Vec<&str> {
    let lines =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // A description goes on in lines that are indented further.
    let names = lines.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    names.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help").collect()
}

/// Appends the help of a command and of its subcommands.
fn append_help(reference: &mut String, path: &[&str]) {
    let arguments = [path, &["--help"][..]].concat();
    let output = shaketable(&arguments).env("COLUMNS", "80").output().expect("the command starts");
    assert_eq!(code(&output), 0, "{arguments:?}");
    let help = stdout(&output);
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    let title = [&["shaketable"][..], path].concat().join(" ");
    *reference += &format!("\n## {title}\n\n```text\n{}\n```\n", lines.join("\n"));
    for subcommand in subcommands(&help) {
        append_help(reference, &[path, &[subcommand][..]].concat());
    }
}

/// Fails unless this is what a page of the book contains. Writes it first if `UPDATE_BOOK` is set.
fn assert_written(page: &str, text: &str) {
    let path = root().join("docs/src").join(page);
    if env::var_os("UPDATE_BOOK").is_some() {
        fs::write(&path, text).expect("written");
    }
    let written = read(&path);
    // Not as one comparison, which would print both.
    let differs = text.lines().zip(written.lines()).find(|(one, other)| one != other);
    assert!(
        text == written,
        "docs/src/{page} is not what the sources say, from {differs:?} on: run\n\
         UPDATE_BOOK=1 cargo test -p shaketable-workloads --test command book::"
    );
}

#[test]
fn the_reference_is_what_the_command_says_of_itself() {
    let written = read(&root().join("docs/src/reference.md"));
    let (beginning, _) = written.split_once("\n## ").expect("a heading");
    let mut reference = beginning.to_owned();
    append_help(&mut reference, &[]);
    assert!(reference.lines().count() > 500, "{reference}");
    assert_written("reference.md", &reference);
}

/// The first paragraph of a module's documentation.
fn opening(source: &Path) -> String {
    let text = read(source);
    let lines = text.lines().map_while(|line| line.strip_prefix("//! "));
    lines.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_table_of_layers_is_what_their_modules_say_first() {
    let folders = fs::read_dir(root().join("layers/src")).expect("the layers");
    let folders = folders.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir());
    let module = |path: PathBuf| (path.file_name().expect("a name").to_owned(), path.join("mod.rs"));
    let record = ("record".into(), root().join("layers/record/src/lib.rs"));
    let mut layers: Vec<_> = folders.map(module).chain([record]).collect();
    layers.sort();
    let written = read(&root().join("docs/src/layers.md"));
    let (mut page, _) =
        written.split_once("| `").map(|(text, rest)| (text.to_owned(), rest)).expect("a table");
    for (name, source) in &layers {
        page += &format!("| `{}` | {} |\n", name.display(), opening(source));
    }
    assert_written("layers.md", &page);
}
