//! The program `shaketable-new`: `shaketable new` for whoever has no program with it yet.

use shaketable_new::{Source, create};
use std::{io::Write, path::PathBuf, process::ExitCode};

const HELP: &str = "\
Create a crate with a layer, its workload and their tests

Usage: shaketable-new [OPTIONS] <NAME>

Arguments:
  <NAME>  The name of the crate and of its folder

Options:
      --path <DIR>  The folder of shaketable's sources [default: those that this program was built from]
      --released    Depend on released versions instead of sources
  -h, --help        Print help

Exit codes: 0, or 2 for wrong usage and what cannot be written
";

/// What the words of a command line ask for, or what is wrong with them.
fn asked(words: impl IntoIterator<Item = String>) -> Result<Option<(String, Source)>, String> {
    let (mut name, mut path, mut released) = (None, None, false);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match &*word {
            "-h" | "--help" => return Ok(None),
            "--released" => released = true,
            "--path" => path = Some(PathBuf::from(words.next().ok_or("--path needs a folder")?)),
            _ if word.starts_with("--path=") => path = Some(PathBuf::from(&word["--path=".len()..])),
            _ if word.starts_with('-') => return Err(format!("unknown option {word}: see --help")),
            _ if name.is_some() => return Err(format!("one name is enough: {word:?}")),
            _ => name = Some(word),
        }
    }
    if path.is_some() && released {
        return Err("--path and --released exclude each other".to_owned());
    }
    let name = name.ok_or("it needs the name of a crate: see --help")?;
    Ok(Some((name, Source::chosen(path, released, env!("CARGO_MANIFEST_DIR"), 2)?)))
}

fn main() -> ExitCode {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let done = asked(words).and_then(|asked| match asked {
        None => Ok(HELP.to_owned()),
        Some((name, source)) => create(&name, &source),
    });
    // Nobody reads what cannot be written.
    match done {
        Ok(text) => {
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "shaketable-new: {why}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_ask_for_nothing_say_why() {
        let asked = |line: &str| asked(line.split_whitespace().map(str::to_owned));
        for (line, why) in [
            ("", "needs the name"),
            ("a b", "one name"),
            ("a --path", "needs a folder"),
            ("a --release", "unknown option"),
            ("a --path x --released", "exclude each other"),
        ] {
            assert!(asked(line).is_err_and(|said| said.contains(why)), "{line}");
        }
        assert!(asked("a --help").is_ok_and(|asked| asked.is_none()));
        for line in ["a --path=x", "--path x a"] {
            let Ok(Some((name, Source::Folder(folder)))) = asked(line) else { panic!("{line}") };
            assert_eq!((&*name, folder), ("a", PathBuf::from("x")));
        }
    }
}
