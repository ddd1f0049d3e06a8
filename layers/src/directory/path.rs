//! Paths: the names of directories.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The absolute path of a directory: the names from the root to it. The root's path is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Path(Vec<String>);

impl Path {
    /// The names.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// This path followed by `names`.
    pub fn join(&self, names: &[impl AsRef<str>]) -> Path {
        Path(self.0.iter().cloned().chain(names.iter().map(|name| name.as_ref().to_owned())).collect())
    }
}

impl<S: AsRef<str>> From<&[S]> for Path {
    fn from(names: &[S]) -> Path {
        Path::default().join(names)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("/");
        }
        self.0.iter().try_for_each(|name| write!(f, "/{name:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_paths_are_displayed_differently() {
        let shown = |names: &[&str]| Path::from(names).to_string();
        assert_eq!(shown(&[]), "/");
        assert_eq!(shown(&["a", "é x"]), r#"/"a"/"é x""#);
        assert_ne!(shown(&["a/b"]), shown(&["a", "b"]));
        assert_eq!(shown(&["", "\0"]), r#"/""/"\0""#);
    }
}
