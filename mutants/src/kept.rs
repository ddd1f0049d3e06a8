//! What is kept between calls, below the target folder: which changes do not compile, and what runs have
//! shown of a built program. A call that was ended is continued, and one on the same program asks again only
//! for what it has not seen.

use crate::{Refusal, package::write_if_other};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Mutex,
};

/// A number for a content.
pub fn hash(content: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}

/// The changes of each file that did not compile, counted from the first of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeftOut(BTreeMap<String, OfFile>);

#[derive(Debug, Default, Serialize, Deserialize)]
struct OfFile {
    /// That of the file's text and its changes: those of another text are checked anew.
    content: u64,
    left_out: Vec<u32>,
}

impl LeftOut {
    /// Reads what an earlier call kept. What cannot be read is checked anew.
    pub fn read(file: &Path) -> LeftOut {
        let text = fs::read_to_string(file).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Those of a file, if it had this content.
    pub fn of(&self, path: &Path, content: u64) -> &[u32] {
        match self.0.get(&path.display().to_string()) {
            Some(kept) if kept.content == content => &kept.left_out,
            _ => &[],
        }
    }

    /// Notes those of a file.
    pub fn set(&mut self, path: &Path, content: u64, left_out: Vec<u32>) {
        self.0.insert(path.display().to_string(), OfFile { content, left_out });
    }

    /// Writes the file.
    pub fn write(&self, file: &Path) -> Result<(), Refusal> {
        let named = |e: io::Error| Refusal(format!("{}: {e}", file.display()));
        write_if_other(file, &serde_json::to_vec(self).map_err(|e| named(e.into()))?).map_err(named)
    }
}

/// The results of one kind of a program's runs: a line of JSON for each, written as soon as it is known.
#[derive(Debug)]
pub struct Results<T> {
    /// Those of earlier calls.
    pub earlier: Vec<T>,
    path: PathBuf,
    file: Mutex<File>,
}

impl<T: Serialize + DeserializeOwned> Results<T> {
    /// Opens a file, or begins it.
    pub fn open(path: PathBuf) -> Result<Results<T>, Refusal> {
        let named = |e: io::Error| Refusal(format!("{}: {e}", path.display()));
        let text = fs::read_to_string(&path).unwrap_or_default();
        // A line that a call did not write to its end is none.
        let earlier = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let mut file = OpenOptions::new().create(true).append(true).open(&path).map_err(named)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n").map_err(named)?;
        }
        Ok(Results { earlier, path, file: Mutex::new(file) })
    }

    /// Adds one.
    pub fn add(&self, result: &T) -> Result<(), Refusal> {
        let named = |e: io::Error| Refusal(format!("{}: {e}", self.path.display()));
        let mut line = serde_json::to_vec(result).map_err(|e| named(e.into()))?;
        line.push(b'\n');
        match self.file.lock() {
            Ok(mut file) => file.write_all(&line).map_err(named),
            Err(_) => Ok(()),
        }
    }
}

/// The name of the copied program in its folder.
pub const PROGRAM: &str = "program";

/// The folder with the results of a built program, and with a copy of the program: another call may build
/// another one meanwhile. Those of the programs that were there before go.
pub fn results_of(program: &Path, folder: &Path) -> Result<PathBuf, Refusal> {
    let named = |e: io::Error| Refusal(format!("{}: {e}", folder.display()));
    let own = folder.join(format!("{:016x}", hash(&fs::read(program).map_err(named)?)));
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        if entry.path() != own {
            fs::remove_dir_all(entry.path()).map_err(named)?;
        }
    }
    fs::create_dir_all(&own).map_err(named)?;
    let copy = own.join(PROGRAM);
    if !copy.exists() {
        fs::copy(program, own.join("copied"))
            .and_then(|_| fs::rename(own.join("copied"), copy))
            .map_err(named)?;
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_kept_and_half_a_line_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs");
        Results::open(path.clone()).unwrap().add(&7u32).unwrap();
        fs::write(&path, "7\n[8").unwrap();
        let results: Results<u32> = Results::open(path.clone()).unwrap();
        assert_eq!(results.earlier, [7]);
        results.add(&9).unwrap();
        assert_eq!(Results::<u32>::open(path).unwrap().earlier, [7, 9]);
    }

    #[test]
    fn results_are_those_of_one_build() {
        let folder = tempfile::tempdir().unwrap();
        let (program, results) = (folder.path().join("program"), folder.path().join("results"));
        fs::write(&program, "one").unwrap();
        let one = results_of(&program, &results).unwrap();
        assert_eq!(results_of(&program, &results).unwrap(), one);
        fs::write(&program, "two").unwrap();
        let two = results_of(&program, &results).unwrap();
        assert!(!one.exists() && two.exists());
    }

    #[test]
    fn changes_of_another_text_are_checked_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (file, path) = (folder.path().join("left-out"), Path::new("src/layer.rs"));
        let mut left_out = LeftOut::read(&file);
        left_out.set(path, 4, vec![1, 2]);
        left_out.write(&file).unwrap();
        let read = LeftOut::read(&file);
        assert_eq!((read.of(path, 4), read.of(path, 5)), (&[1, 2][..], &[][..]));
    }
}
