//! `shaketable new`: writes a crate with a layer, the workload that shakes it, planted bugs, their tests, a
//! command and a CI workflow.
//!
//! It writes the files of the folder `new` beside this one. The crate appears whole or not at all.

use super::{Refusal, output, refuse};
use clap::Args;
use shaketable_reports::Conclusion;
use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

#[derive(Clone, Debug, Args)]
pub(super) struct NewArguments {
    /// The name of the crate and of its folder
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The folder of shaketable's sources [default: those that this program was built from]
    #[arg(long, value_name = "DIR")]
    pub path: Option<PathBuf>,
    /// Depend on released versions instead of sources
    #[arg(long, conflicts_with = "path")]
    pub released: bool,
}

/// Where each file is written, and what it is.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("new/manifest.toml")),
    (".cargo/config.toml", include_str!("new/config.toml")),
    (".github/workflows/ci.yml", include_str!("new/ci.yml")),
    (".gitignore", include_str!("new/gitignore")),
    ("src/layer.rs", include_str!("new/layer.rs")),
    ("src/lib.rs", include_str!("new/lib.rs")),
    ("src/main.rs", include_str!("new/main.rs")),
    ("src/workload.rs", include_str!("new/workload.rs")),
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

/// Whether this program was built from a package of a registry.
fn is_released() -> bool {
    // Where cargo unpacks them.
    env!("CARGO_MANIFEST_DIR").replace('\\', "/").contains("/registry/src/")
}

/// The folder of the sources that this program was built from, if they are still there.
fn own_sources() -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    PACKAGES.iter().all(|package| sources.join(package).join("Cargo.toml").is_file()).then(|| sources.into())
}

/// The way from one folder to another one, both of which are absolute.
fn way(from: &Path, to: &Path) -> PathBuf {
    let same = from.components().zip(to.components()).take_while(|(one, other)| one == other).count();
    let up = from.components().skip(same).map(|_| Component::ParentDir);
    up.chain(to.components().skip(same)).collect()
}

/// What a manifest depends on: a package in the folder of the sources, by the way from the crate's folder, so
/// that both can be moved together; or its released version.
fn dependency(crate_: &Path, sources: Option<&Path>, package: &str) -> Result<String, Refusal> {
    let Some(sources) = sources else {
        return Ok(format!("{{ version = \"{}\" }}", env!("CARGO_PKG_VERSION")));
    };
    let place = sources.join(package);
    if !place.join("Cargo.toml").is_file() {
        refuse!(
            "{} is not the folder of shaketable's sources: it has no {package}/Cargo.toml",
            sources.display()
        );
    }
    match fs::canonicalize(&place) {
        // A basic string of TOML has the escapes of JSON.
        Ok(place) => match way(crate_, &place).to_str() {
            Some(way) => Ok(format!("{{ path = {} }}", serde_json::Value::from(way))),
            None => refuse!("{} cannot be written in a manifest: it is not UTF-8", place.display()),
        },
        Err(error) => refuse!("cannot read {}: {error}", place.display()),
    }
}

/// Writes the crate.
pub(super) fn new(arguments: &NewArguments) -> Result<Conclusion, Refusal> {
    let name = &arguments.name;
    if let Some(why) = why_not(name) {
        refuse!("{name:?} is no name for a crate: {why}");
    }
    let here = match std::env::current_dir() {
        Ok(here) => here,
        Err(error) => refuse!("cannot read the working directory: {error}"),
    };
    let sources = match (&arguments.path, arguments.released) {
        (None, true) => None,
        (None, false) if is_released() => None,
        (None, false) => match own_sources() {
            Some(sources) => Some(sources),
            None => refuse!(
                "the sources that this program was built from are gone: name their folder with --path, or --released"
            ),
        },
        (path, _) => path.clone(),
    };
    let [shaketable, tx] = PACKAGES.map(|package| dependency(&here.join(name), sources.as_deref(), package));
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
        refuse!("{name} exists already");
    }
    if let Err(error) = write(folder, filled) {
        refuse!("cannot write {name}: {error}");
    }
    output::print(&format!(
        "{name} has a layer, a workload, two planted bugs, and a test that catches them. There:\n\n  \
         cargo test                              # passes\n  \
         cargo run --release -- run              # a sweep of 200 seeds\n  \
         cargo run --release -- bugs             # each planted bug until it is caught\n\n\
         Begin with src/layer.rs.\n"
    ))?;
    Ok(Conclusion::Passed)
}

/// Writes all files into a folder beside the crate's, and moves it into its place when it is whole.
fn write(folder: &Path, filled: impl Fn(&str) -> String) -> io::Result<()> {
    let draft = tempfile::Builder::new().prefix(".shaketable-new-").tempdir_in(".")?;
    let whole = draft.path().join(folder);
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
        assert_eq!(dependency(crate_, None, "tx"), Ok(format!("{{ version = \"{version}\" }}")));
        assert!(dependency(crate_, Some(Path::new("nowhere")), "tx").is_err());
        for (sources, from_there) in [
            ("/home/ann/shaketable/tx", "../../shaketable/tx"),
            ("/home/ann/layers/stock/shaketable/tx", "shaketable/tx"),
            ("/srv/tx", "../../../../srv/tx"),
        ] {
            assert_eq!(way(crate_, Path::new(sources)), Path::new(from_there));
        }
        let named = dependency(crate_, own_sources().as_deref(), "tx").expect("the sources are here");
        assert!(named.starts_with("{ path = \"..") && named.ends_with("/tx\" }"), "{named}");
    }
}
