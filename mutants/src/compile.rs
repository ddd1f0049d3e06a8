//! Which changes compile: the compiler's errors name the places, and what is there is left out.

use crate::{
    Refusal,
    kept::{self, LeftOut},
    package::{self, Package, write_if_other},
    points::{self, Alternative, Point},
    rewrite::{Rewritten, rewrite},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    path::{Path, PathBuf},
};

/// A change that can be switched on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mutant {
    /// Its number in this build.
    pub number: u32,
    /// The package.
    pub package: String,
    /// The file, relative to the package.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The function.
    pub function: String,
    /// The operator.
    pub operator: String,
    /// What is there.
    pub original: String,
    /// What takes its place; empty if nothing does.
    pub change: String,
}

/// A change of the source, wherever it stands and whatever its number is.
pub type Change<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, &'a str);

impl Mutant {
    /// Package, file, function, operator, what is there and what takes its place.
    pub fn change(&self) -> Change<'_> {
        (&self.package, &self.file, &self.function, &self.operator, &self.original, &self.change)
    }
}

/// The files of a package with their places.
pub struct Source<'a> {
    package: &'a Package,
    files: Vec<File>,
    /// The first number after those of its changes.
    end: u32,
    /// The root module of the copy.
    root: PathBuf,
    copy: PathBuf,
    switch: &'static str,
}

struct File {
    path: PathBuf,
    text: String,
    points: Vec<Point>,
    first: u32,
    /// A number for the text and the changes.
    content: u64,
}

impl<'a> Source<'a> {
    /// Copies the package to a folder, and finds the changes that are wanted. They are numbered from `first`.
    pub fn read(
        package: &'a Package,
        folder: &Path,
        first: u32,
        is_wanted: impl Fn(&Mutant) -> bool,
    ) -> Result<Source<'a>, Refusal> {
        let switch = package.switch()?;
        let copy = package.copy(folder)?;
        let (mut files, mut next) = (Vec::new(), first);
        for path in package.source_files()? {
            let text = package::read(&package.source().join(&path))?;
            let named = |e| Refusal(format!("{}: {e}", path.display()));
            let mut points = points::of(&text).map_err(named)?;
            for point in &mut points {
                let wanted =
                    |change: &Alternative| is_wanted(&mutant(package, &path, &text, point, change, 0));
                let wanted: Vec<bool> = point.alternatives.iter().map(wanted).collect();
                let mut wanted = wanted.into_iter();
                point.alternatives.retain(|_| wanted.next().unwrap_or_default());
            }
            points.retain(|point| !point.alternatives.is_empty());
            let count: usize = points.iter().map(|point| point.alternatives.len()).sum();
            if count > 0 {
                let changes = points.iter().flat_map(|point| &point.alternatives);
                let changes: Vec<_> = changes.map(|change| (change.operator, &change.text)).collect();
                let content = kept::hash(&(&text, changes));
                files.push(File { path, text, points, first: next, content });
                next += count as u32;
            }
        }
        let root = copy.join(package.root.strip_prefix(package.source()).unwrap_or(&package.root));
        Ok(Source { package, files, end: next, root, copy, switch })
    }

    /// The first number after those of its changes.
    pub fn end(&self) -> u32 {
        self.end
    }

    /// The package, and the root module of its copy.
    pub fn copied(&self) -> (&'a Package, &Path) {
        (self.package, &self.root)
    }

    /// All changes that are not left out.
    pub fn mutants(&self, left_out: &BTreeSet<u32>) -> Vec<Mutant> {
        let mut mutants = Vec::new();
        for file in &self.files {
            let changes =
                file.points.iter().flat_map(|point| point.alternatives.iter().map(move |a| (point, a)));
            for (number, (point, change)) in (file.first..).zip(changes) {
                mutants.push(mutant(self.package, &file.path, &file.text, point, change, number));
            }
        }
        mutants.retain(|mutant| !left_out.contains(&mutant.number));
        mutants
    }

    /// Writes the copy without what is left out.
    fn write(&self, left_out: &BTreeSet<u32>) -> Result<BTreeMap<PathBuf, Rewritten>, Refusal> {
        let mut written = BTreeMap::new();
        for file in &self.files {
            let rewritten = rewrite(&file.text, &file.points, file.first, left_out, self.switch);
            let path = self.copy.join(&file.path);
            write_if_other(&path, rewritten.text.as_bytes())
                .map_err(|e| Refusal(format!("{}: {e}", path.display())))?;
            written.insert(path.canonicalize().unwrap_or(path), rewritten);
        }
        Ok(written)
    }

    /// Leaves out what does not compile, until everything does, beginning with what an earlier call left out.
    /// `sources` are all that are changed.
    /// `told` receives how many are left after each attempt.
    pub fn check(
        &self,
        sources: &[Source<'_>],
        target: &Path,
        told: impl Fn(usize, usize),
    ) -> Result<BTreeSet<u32>, Refusal> {
        let kept = target.join(format!("{}.left-out.json", self.package.name));
        let mut earlier = LeftOut::read(&kept);
        let of = |file: &File| {
            let numbers = earlier.of(&file.path, file.content).iter();
            numbers.map(|n| file.first + n).collect::<Vec<_>>()
        };
        let left_out =
            self.without_errors(sources, target, self.files.iter().flat_map(of).collect(), told)?;
        for file in &self.files {
            let count: usize = file.points.iter().map(|point| point.alternatives.len()).sum();
            let own = left_out.range(file.first..file.first + count as u32).map(|n| n - file.first);
            earlier.set(&file.path, file.content, own.collect());
        }
        earlier.write(&kept)?;
        Ok(left_out)
    }

    fn without_errors(
        &self,
        sources: &[Source<'_>],
        target: &Path,
        mut left_out: BTreeSet<u32>,
        told: impl Fn(usize, usize),
    ) -> Result<BTreeSet<u32>, Refusal> {
        let all = self.mutants(&BTreeSet::new()).len();
        loop {
            told(all - left_out.len(), all);
            let written = self.write(&left_out)?;
            let mut cargo = package::cargo(&copies(sources), target)?;
            cargo.args(["check", "--message-format=json", "--quiet", "--package", &self.package.name]);
            cargo.arg(if self.package.is_library { "--lib" } else { "--bins" });
            let output = cargo.output().map_err(|e| Refusal(format!("cargo cannot be started: {e}")))?;
            if output.status.success() {
                return Ok(left_out);
            }
            let mut wrong = BTreeSet::new();
            let mut unplaced = None;
            for line in output.stdout.split(|byte| *byte == b'\n') {
                let Ok(message) = serde_json::from_slice::<Value>(line) else { continue };
                let message = &message["message"];
                if message["level"] != "error" {
                    continue;
                }
                let named = named_by(message, &written, &left_out);
                if named.is_empty() {
                    unplaced.get_or_insert_with(|| words(message["rendered"].as_str().unwrap_or_default()));
                }
                wrong.extend(named);
            }
            let before = left_out.len();
            left_out.extend(wrong);
            if left_out.len() == before {
                let said = String::from_utf8_lossy(&output.stderr);
                let first =
                    unplaced.or_else(|| said.lines().find(|l| l.starts_with("error")).map(str::to_owned));
                return Err(Refusal(format!(
                    "{} does not compile: {}",
                    self.package.name,
                    first.unwrap_or_default().chars().take(400).collect::<String>()
                )));
            }
        }
    }
}

fn copies<'a>(sources: &'a [Source<'_>]) -> Vec<(&'a Package, &'a Path)> {
    sources.iter().map(Source::copied).collect()
}

/// Builds a program of a package with the changes of the sources.
pub fn build(sources: &[Source<'_>], target: &Path, of: &Package, program: &str) -> Result<PathBuf, Refusal> {
    let mut cargo = package::cargo(&copies(sources), target)?;
    cargo.args(["build", "--quiet", "--package", &of.name, "--bin", program]);
    let status = cargo.status().map_err(|e| Refusal(format!("cargo cannot be started: {e}")))?;
    match status.success() {
        true => Ok(target.join("debug").join(program)),
        false => Err(Refusal(format!("{program} does not compile with the changes"))),
    }
}

/// A program of tests.
#[derive(Clone, Debug)]
pub struct Built {
    /// Its package and its target.
    pub name: String,
    /// The program.
    pub path: PathBuf,
    /// The folder of its package, in which it runs.
    pub folder: PathBuf,
}

/// Builds tests of a package with the changes of the sources: all of them, those of its library (`lib`), or
/// those of one file of tests.
pub fn build_tests(
    sources: &[Source<'_>],
    target: &Path,
    of: &Package,
    named: Option<&str>,
) -> Result<Vec<Built>, Refusal> {
    let mut cargo = package::cargo(&copies(sources), target)?;
    cargo.args(["test", "--no-run", "--quiet", "--message-format=json", "--package", &of.name]);
    match named {
        Some("lib") => cargo.arg("--lib"),
        Some(test) => cargo.args(["--test", test]),
        None => cargo.arg("--tests"),
    };
    let output = cargo.output().map_err(|e| Refusal(format!("cargo cannot be started: {e}")))?;
    let messages = output.stdout.split(|byte| *byte == b'\n');
    let built = messages.filter_map(|line| {
        let artifact: Value = serde_json::from_slice(line).ok()?;
        let path = artifact["executable"].as_str().filter(|_| artifact["profile"]["test"] == true)?;
        let name = format!("{}:{}", of.name, artifact["target"]["name"].as_str()?);
        Some(Built { name, path: path.into(), folder: of.folder.clone() })
    });
    let built: Vec<Built> = built.collect();
    match output.status.success() && !built.is_empty() {
        true => Ok(built),
        false => Err(Refusal(format!("the tests of {} do not compile with the changes", of.name))),
    }
}

fn mutant(
    package: &Package,
    path: &Path,
    text: &str,
    point: &Point,
    change: &Alternative,
    number: u32,
) -> Mutant {
    let within = package.source().strip_prefix(&package.folder).unwrap_or(Path::new(""));
    Mutant {
        number,
        package: package.name.clone(),
        file: within.join(path).display().to_string(),
        line: point.line,
        function: point.function.clone(),
        operator: change.operator.to_owned(),
        original: words(&text[point.range.clone()]),
        change: words(&change.text),
    }
}

/// A text with one space for each run of white space, and none around `::`.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace(" :: ", "::")
}

/// The changes that an error is about: those that its places are in; else all those at the innermost place of
/// which an error is told.
fn named_by(
    message: &Value,
    written: &BTreeMap<PathBuf, Rewritten>,
    left_out: &BTreeSet<u32>,
) -> BTreeSet<u32> {
    let lost = ends_left_out(message, written);
    if !lost.is_empty() {
        return lost;
    }
    let mut spans = Vec::new();
    collect_spans(message, true, &mut spans);
    let at = |primary: bool| {
        let spans = spans.iter().filter(move |(is_primary, ..)| *is_primary == primary);
        spans.filter_map(|(_, file, range)| Some((written.get(file)?, range.clone())))
    };
    for primary in [true, false] {
        let inside: BTreeSet<u32> = at(primary)
            .flat_map(|(file, range)| {
                let mutants = file.mutants.iter();
                mutants.filter(move |(_, own)| own.start <= range.start && range.end <= own.end)
            })
            .map(|(n, _)| *n)
            .filter(|n| !left_out.contains(n))
            .collect();
        if !inside.is_empty() {
            return inside;
        }
    }
    for primary in [true, false] {
        for (file, range) in at(primary) {
            let around = |own: &Range<usize>| own.start <= range.start && range.end <= own.end;
            let places = file.places.iter().filter(|(_, own)| around(own));
            let smallest = places.min_by_key(|(_, own)| own.len());
            let within =
                file.places.iter().filter(|(_, own)| range.start <= own.start && own.end <= range.end);
            // A function's type is wrong because of what it returns at once.
            let next = file.places.iter().filter(|(_, own)| own.start >= range.end);
            let next = next.min_by_key(|(_, own)| own.start);
            if let Some((numbers, _)) = smallest.or_else(|| within.max_by_key(|(_, own)| own.len())).or(next)
            {
                return numbers.iter().copied().collect();
            }
        }
    }
    BTreeSet::new()
}

/// The changes between a move and the use of what was moved without which the use is not reached: they leave
/// out a `return`, a `break` or a `continue`. No place of the error is theirs.
fn ends_left_out(message: &Value, written: &BTreeMap<PathBuf, Rewritten>) -> BTreeSet<u32> {
    if message["code"]["code"] != "E0382" {
        return BTreeSet::new();
    }
    let ends = |text: &str| ["return", "break", "continue"].iter().any(|word| text.contains(word));
    let spans = || message["spans"].as_array().into_iter().flatten();
    let number = |span: &Value, key: &str| span[key].as_u64().unwrap_or_default() as usize;
    let is_move = |span: &&Value| span["label"].as_str().is_some_and(|label| label.contains("moved"));
    let moved = spans().filter(is_move).map(|span| number(span, "byte_start")).min();
    let used = spans().find(|span| span["is_primary"] == true);
    let (Some(moved), Some(used)) = (moved, used) else { return BTreeSet::new() };
    let path = PathBuf::from(used["file_name"].as_str().unwrap_or_default());
    let Some(file) = written.get(&path.canonicalize().unwrap_or(path)) else { return BTreeSet::new() };
    let between = moved..number(used, "byte_start");
    let places = file.places.iter().filter(|(_, own)| {
        between.start <= own.start && own.end <= between.end && ends(&file.text[own.clone()])
    });
    let numbers: BTreeSet<u32> = places.flat_map(|(numbers, _)| numbers.iter().copied()).collect();
    let left = |(n, own): &&(u32, Range<usize>)| numbers.contains(n) && !ends(&file.text[own.clone()]);
    file.mutants.iter().filter(left).map(|(n, _)| *n).collect()
}

/// The places of a message, with whether the compiler calls them primary: those of its notes are not.
fn collect_spans(message: &Value, is_own: bool, spans: &mut Vec<(bool, PathBuf, Range<usize>)>) {
    for span in message["spans"].as_array().into_iter().flatten() {
        let mut innermost = span;
        // Of a macro's text, where it was called.
        loop {
            let place = |key: &str| innermost[key].as_u64().unwrap_or_default() as usize;
            let file = PathBuf::from(innermost["file_name"].as_str().unwrap_or_default());
            let file = file.canonicalize().unwrap_or(file);
            let is_primary = is_own && span["is_primary"].as_bool().unwrap_or_default();
            spans.push((is_primary, file, place("byte_start")..place("byte_end")));
            match &innermost["expansion"] {
                Value::Object(expansion) if expansion.contains_key("span") => innermost = &expansion["span"],
                _ => break,
            }
        }
    }
    for child in message["children"].as_array().into_iter().flatten() {
        collect_spans(child, false, spans);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_use_after_a_move_is_the_fault_of_the_return_that_was_left_out() {
        let text = "take(op); if on(1) { } else { return; } if on(2) { op.len() > 1 } else { op.len() > 0 }";
        let place = |of: &str| {
            let start = text.find(of).expect("a part");
            start..start + of.len()
        };
        let alternative = |from: &str, length: usize| {
            let start = place(from).end;
            start..start + length
        };
        let file = Rewritten {
            text: text.to_owned(),
            mutants: vec![(1, alternative("on(1) {", 1)), (2, alternative("on(2) { ", 12))],
            places: vec![
                (vec![1], place("if on(1) { } else { return; }")),
                (vec![2], place("if on(2) { op.len() > 1 } else { op.len() > 0 }")),
            ],
        };
        let written = BTreeMap::from([(PathBuf::from("layer.rs"), file)]);
        let span = |of: &str, label: &str| {
            let place = place(of);
            json!({
                "file_name": "layer.rs", "label": label, "is_primary": label.contains("borrowed"),
                "byte_start": place.start, "byte_end": place.end, "expansion": null,
            })
        };
        let error = json!({
            "level": "error", "code": { "code": "E0382" }, "children": [],
            "spans": [span("op", "value moved here"), span("op.len() > 1", "value borrowed here after move")],
        });
        assert_eq!(named_by(&error, &written, &BTreeSet::new()), BTreeSet::from([1]));
    }
}
