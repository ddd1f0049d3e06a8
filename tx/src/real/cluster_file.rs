//! Cluster files, checked before the C client reads them: its own errors for an invalid file are unspecific.

use std::{
    ffi::{CStr, CString},
    io,
    net::SocketAddr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// A cluster file: `description:id@address:port,address:port`, each address optionally followed by `:tls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterFile {
    path: CString,
    coordinators: String,
}

/// Why a cluster file is unusable.
#[derive(Debug, thiserror::Error)]
pub enum ClusterFileError {
    /// It could not be read.
    #[error("cannot read the cluster file {}: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// It does not have the format of a cluster file.
    #[error("{} is not a cluster file (`description:id@address:port,..`): {why}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl ClusterFile {
    /// Reads a cluster file.
    pub fn read(path: &Path) -> Result<ClusterFile, ClusterFileError> {
        let unreadable = |error| ClusterFileError::Unreadable { path: path.to_owned(), error };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let coordinators =
            coordinators(&text).map_err(|why| ClusterFileError::Malformed { path: path.to_owned(), why })?;
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|e| unreadable(e.into()))?;
        Ok(ClusterFile { path, coordinators })
    }

    /// The path of the file.
    pub fn path(&self) -> &CStr {
        &self.path
    }

    /// The coordinators' addresses as written in the file.
    pub fn coordinators(&self) -> &str {
        &self.coordinators
    }
}

/// Parses the coordinators from the only line of a cluster file that is neither empty nor a comment.
fn coordinators(text: &str) -> Result<String, String> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let line = lines.next().ok_or("it is empty")?;
    if lines.next().is_some() {
        return Err("it has more than one line".into());
    }
    let (name, addresses) = line.split_once('@').ok_or("it has no `@`")?;
    let (description, id) = name.split_once(':').ok_or("nothing before the `@` ends with `:id`")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if description.is_empty() || !description.chars().all(plain) {
        return Err(format!("`{description}` is no description (letters, digits and `_`)"));
    }
    if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Err(format!("`{id}` is no id (letters and digits)"));
    }
    match addresses.split(',').find(|address| !is_address(address)) {
        None => Ok(addresses.to_owned()),
        Some(wrong) => Err(format!("`{wrong}` is no address with a port")),
    }
}

/// Whether this is an IP address or a host name, a port, and optionally `:tls`.
fn is_address(address: &str) -> bool {
    let address = address.strip_suffix(":tls").unwrap_or(address);
    let is_name = |host: &str| {
        !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
    };
    address.parse::<SocketAddr>().is_ok()
        || address.rsplit_once(':').is_some_and(|(host, port)| is_name(host) && port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_file_names_its_coordinators() {
        let ok = |text: &str| coordinators(text).unwrap();
        assert_eq!(ok("docker:docker@127.0.0.1:4500\n"), "127.0.0.1:4500");
        assert_eq!(
            ok("# made by a script\n a_b:x1@[::1]:4500:tls,fdb-1.local:4501\n"),
            "[::1]:4500:tls,fdb-1.local:4501"
        );
    }

    #[test]
    fn an_invalid_cluster_file_is_refused_with_the_reason() {
        for (text, part) in [
            ("", "empty"),
            ("# nothing else", "empty"),
            ("a:b@1.2.3.4:1\na:b@1.2.3.4:1", "more than one line"),
            ("docker:docker", "no `@`"),
            ("docker@127.0.0.1:4500", ":id"),
            ("do-cker:x@127.0.0.1:4500", "`do-cker`"),
            ("docker:@127.0.0.1:4500", "`` is no id"),
            ("docker:x@127.0.0.1:45", ""),
            ("docker:x@127.0.0.1", "`127.0.0.1`"),
            ("docker:x@127.0.0.1:4500,", "``"),
            ("docker:x@127.0.0.1:99999", "`127.0.0.1:99999`"),
        ] {
            match coordinators(text) {
                Ok(_) => assert_eq!(part, "", "{text}"),
                Err(why) => assert!(!part.is_empty() && why.contains(part), "{text}: {why}"),
            }
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let missing = ClusterFile::read(Path::new("no/such/fdb.cluster")).unwrap_err();
        assert!(missing.to_string().starts_with("cannot read the cluster file no/such/fdb.cluster: "));
    }
}
