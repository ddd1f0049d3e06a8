//! Paths of named directories with values: a way to give each store its own subspace.

use crate::value::{IntoValue, Tuple};
use foundationdb_tuple::{Element, Subspace};
use std::fmt;

/// A path of directories, each with a name, or with a name and a value.
///
/// Directories next to each other are told apart by their names and values alone: the path is packed as it
/// is, and nothing is looked up or allocated. That no other part of the application uses the same path is the
/// application's duty.
///
/// ```
/// use shaketable_record::store::KeySpacePath;
///
/// let path = KeySpacePath::new("app").add("user", 17).directory("settings");
/// assert_eq!(path.to_string(), "/app/user:17/settings");
/// assert_ne!(path.subspace(), KeySpacePath::new("app").add("user", "17").directory("settings").subspace());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeySpacePath {
    /// Each directory is a nested tuple of its name and, if it has one, its value.
    directories: Tuple,
}

impl KeySpacePath {
    /// The path of one directory.
    pub fn new(name: &str) -> KeySpacePath {
        KeySpacePath { directories: Tuple::empty() }.directory(name)
    }

    /// The path of a directory in this one.
    pub fn directory(mut self, name: &str) -> KeySpacePath {
        self.directories.push(Element::Tuple(vec![name.into_value()]));
        self
    }

    /// The path of the directory with this name and value in this one.
    pub fn add(mut self, name: &str, value: impl IntoValue) -> KeySpacePath {
        self.directories.push(Element::Tuple(vec![name.into_value(), value.into_value()]));
        self
    }

    /// The subspace of the path. The subspaces of paths that begin with this one are in it.
    pub fn subspace(&self) -> Subspace {
        Subspace::from_bytes(self.directories.pack())
    }
}

impl From<KeySpacePath> for Subspace {
    fn from(path: KeySpacePath) -> Subspace {
        path.subspace()
    }
}

impl fmt::Display for KeySpacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for directory in self.directories.elements() {
            let Element::Tuple(parts) = directory else { continue };
            for (i, part) in parts.iter().enumerate() {
                f.write_str(if i == 0 { "/" } else { ":" })?;
                match part {
                    Element::String(text) => f.write_str(text)?,
                    other => fmt::Display::fmt(&crate::value::Shown(other), f)?,
                }
            }
        }
        Ok(())
    }
}
