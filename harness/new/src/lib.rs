//! Writes a crate with a layer, the workload that shakes it, planted bugs, their tests, a command and a CI
//! workflow: `shaketable new`, and the program of this package, which needs no simulator to be built first.
//!
//! It writes the files of the folder `files`. The crate appears whole or not at all.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

/// Where each file is written, and what it is.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("files/manifest.toml")),
    (".cargo/config.toml", include_str!("files/config.toml")),
    (".github/workflows/ci.yml", include_str!("files/ci.yml")),
    (".gitignore", include_str!("files/gitignore")),
    ("src/layer.rs", include_str!("files/layer.rs")),
    ("src/lib.rs", include_str!("files/lib.rs")),
    ("src/main.rs", include_str!("files/main.rs")),
    ("src/workload.rs", include_str!("files/workload.rs")),
];

/// Names that are taken: dependencies of the crate, Rust's own crates, and folders that cargo builds into.
const TAKEN: &[&str] = &[
    "alloc",
    "build",
    "core",
    "deps",
    "examples",
    "foundationdb-tuple",
    "incremental",
    "proc-macro",
    "serde",
    "shaketable",
    "shaketable-tx",
    "std",
    "test",
];

/// Keywords of Rust, which cannot name a crate in a source.
const KEYWORDS: &[&str] = &[
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do",
    "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// The longest name that a registry takes.
const LONGEST: usize = 64;

/// Why this is no name for a crate.
fn why_not(name: &str) -> Option<String> {
    let like_taken = |taken: &&&str| taken.replace('-', "_") == name.replace('-', "_");
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Some("it does not begin with a letter of a to z".to_owned());
    }
    if let Some(odd) = name.chars().find(|c| !c.is_ascii_alphanumeric() && !"-_".contains(*c)) {
        return Some(format!("it has {odd:?} where only letters of a to z, digits, - and _ may stand"));
    }
    if name.len() > LONGEST {
        return Some(format!("it has {} characters, and {LONGEST} are the most", name.len()));
    }
    if KEYWORDS.contains(&name) {
        return Some("it is a keyword of Rust".to_owned());
    }
    TAKEN.iter().find(like_taken).map(|taken| format!("{taken} has another meaning there"))
}

/// The folders of the packages that a new crate depends on.
const PACKAGES: [&str; 2] = ["harness", "tx"];

/// Where the crate that is written finds shaketable.
#[derive(Clone, Debug)]
pub enum Source {
    /// In this folder of shaketable's sources.
    Folder(PathBuf),
    /// In the registry.
    Released,
}

impl Source {
    /// What a user asks for, or else where the program itself came from: `built_from` is the folder of a
    /// package of it, so many folders below the sources.
    ///
    /// # Errors
    ///
    /// The sources are gone.
    pub fn chosen(
        path: Option<PathBuf>,
        released: bool,
        built_from: &str,
        below: usize,
    ) -> Result<Source, String> {
        // Where cargo unpacks the packages of a registry.
        let from_registry = built_from.replace('\\', "/").contains("/registry/src/");
        if released || path.is_none() && from_registry {
            return Ok(Source::Released);
        }
        let own = || Path::new(built_from).ancestors().nth(below).map(Path::to_owned);
        let is_there = |sources: &PathBuf| {
            PACKAGES.iter().all(|package| sources.join(package).join("Cargo.toml").is_file())
        };
        path.or_else(|| own().filter(is_there)).map(Source::Folder).ok_or_else(|| {
            "the sources that this program was built from are gone: name their folder with --path, or --released"
                .to_owned()
        })
    }
}

/// The way from one folder to another one, both of which are absolute.
fn way(from: &Path, to: &Path) -> PathBuf {
    let same = from.components().zip(to.components()).take_while(|(one, other)| one == other).count();
    let up = from.components().skip(same).map(|_| Component::ParentDir);
    up.chain(to.components().skip(same)).collect()
}

/// Text as a basic string of TOML.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// What a manifest depends on: a package in the folder of the sources, by the way from the crate's folder, so
/// that both can be moved together; or its released version.
fn dependency(crate_: &Path, source: &Source, package: &str) -> Result<String, String> {
    let Source::Folder(sources) = source else {
        return Ok(format!("{{ version = \"{}\" }}", env!("CARGO_PKG_VERSION")));
    };
    let place = sources.join(package);
    if !place.join("Cargo.toml").is_file() {
        return Err(format!(
            "{} is not the folder of shaketable's sources: it has no {package}/Cargo.toml",
            sources.display()
        ));
    }
    let place =
        fs::canonicalize(&place).map_err(|error| format!("cannot read {}: {error}", place.display()))?;
    match way(crate_, &place).to_str() {
        Some(way) => Ok(format!("{{ path = {} }}", quoted(way))),
        None => Err(format!("{} cannot be written in a manifest: it is not UTF-8", place.display())),
    }
}

/// Writes the crate into a folder of its name, and returns what to do with it.
///
/// # Errors
///
/// One line: the name cannot be a crate's, the folder exists, the sources are none, or it cannot be written.
pub fn create(name: &str, source: &Source) -> Result<String, String> {
    if let Some(why) = why_not(name) {
        return Err(format!("{name:?} is no name for a crate: {why}"));
    }
    let here =
        std::env::current_dir().map_err(|error| format!("cannot read the working directory: {error}"))?;
    let [shaketable, tx] = PACKAGES.map(|package| dependency(&here.join(name), source, package));
    let (shaketable, tx) = (shaketable?, tx?);
    let filled = |file: &str| {
        file.replace("{{name}}", name)
            .replace("{{crate}}", &name.replace('-', "_"))
            .replace("{{shaketable}}", &shaketable)
            .replace("{{tx}}", &tx)
    };
    let folder = Path::new(name);
    // A link that leads nowhere is there as well.
    if fs::symlink_metadata(folder).is_ok() {
        return Err(format!("{name} exists already"));
    }
    write(folder, filled).map_err(|error| format!("cannot write {name}: {error}"))?;
    Ok(format!(
        "{name} has a layer, a workload, planted bugs, and a test that catches them. There:\n\n  \
         cargo test           # passes\n  \
         cargo run -- run     # a sweep of 200 seeds\n  \
         cargo run -- bugs    # each planted bug until it is caught\n\n\
         Begin with src/layer.rs.\n"
    ))
}

/// A folder that is removed when this is dropped.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        // It is beside the crate, and its name says what it was.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes all files into a folder beside the crate's, and moves it into its place when it is whole.
fn write(folder: &Path, filled: impl Fn(&str) -> String) -> io::Result<()> {
    let draft = Draft(PathBuf::from(format!(".shaketable-new-{}", std::process::id())));
    fs::create_dir(&draft.0)?;
    let whole = draft.0.join(folder);
    for (file, content) in FILES {
        let file = whole.join(file);
        fs::create_dir_all(file.parent().unwrap_or(&whole))?;
        fs::write(file, filled(content))?;
    }
    fs::rename(whole, folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_crates() {
        for good in ["stock", "my-layer", "my_layer2", "a", "Stock", &"x".repeat(64)] {
            assert_eq!(why_not(good), None, "{good}");
        }
        for bad in [
            "",
            "2stock",
            "-stock",
            "_",
            "my layer",
            "my/layer",
            "..",
            "layer.rs",
            "schön",
            "fn",
            "Self",
            "test",
            "core",
            "serde",
            "shaketable",
            "shaketable_tx",
            &"x".repeat(65),
        ] {
            assert!(why_not(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn every_placeholder_is_known() {
        for (file, content) in FILES {
            // GitHub's expressions have a dollar sign before their braces.
            for (at, _) in content.match_indices("{{").filter(|(at, _)| !content[..*at].ends_with('$')) {
                let known = ["{{name}}", "{{crate}}", "{{shaketable}}", "{{tx}}"];
                assert!(
                    known.iter().any(|known| content[at..].starts_with(known)),
                    "{file}: {}",
                    &content[at..]
                );
            }
        }
    }

    #[test]
    fn a_crate_names_sources_by_the_way_to_them_or_a_released_version() {
        let version = env!("CARGO_PKG_VERSION");
        let crate_ = Path::new("/home/ann/layers/stock");
        assert_eq!(dependency(crate_, &Source::Released, "tx"), Ok(format!("{{ version = \"{version}\" }}")));
        assert!(dependency(crate_, &Source::Folder("nowhere".into()), "tx").is_err());
        for (sources, from_there) in [
            ("/home/ann/shaketable/tx", "../../shaketable/tx"),
            ("/home/ann/layers/stock/shaketable/tx", "shaketable/tx"),
            ("/srv/tx", "../../../../srv/tx"),
        ] {
            assert_eq!(way(crate_, Path::new(sources)), Path::new(from_there));
        }
        let chosen = |from: &str, below| Source::chosen(None, false, from, below);
        let own = chosen(env!("CARGO_MANIFEST_DIR"), 2).expect("the sources are here");
        let named = dependency(crate_, &own, "tx").expect("a folder of them");
        assert!(named.starts_with("{ path = \"..") && named.ends_with("/tx\" }"), "{named}");
        assert!(chosen("/nowhere/harness/new", 2).is_err_and(|why| why.contains("--released")));
        let unpacked = chosen("/home/ann/.cargo/registry/src/index/shaketable-new-0.1.0", 2);
        assert!(matches!(unpacked, Ok(Source::Released)), "{unpacked:?}");
        assert_eq!(quoted("a \"b\" \\c\n"), r#""a \"b\" \\c\u000a""#);
    }
}
