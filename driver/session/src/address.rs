//! Addresses of servers: loopback TCP or Unix sockets.
//!
//! | text | a server that listens |
//! |---|---|
//! | `127.0.0.1:4500`, `[::1]:4500`, `localhost:4500` | on this port |
//! | `unix:/tmp/cluster.socket` | on this socket |
//!
//! A cluster file, or a connection string, names a server as `shaketable:serve@ADDRESS`. It cannot be
//! mistaken for one that has a seed as its id (see [`settings`](mod@crate::settings)), because `serve` is no
//! number.

use crate::settings::connection_of;
use std::{
    fmt,
    io::{self, ErrorKind},
    net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs},
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host, by name or by number, and a port.
    Tcp(String, u16),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// What an address looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnAddress;

impl std::error::Error for NotAnAddress {}

impl fmt::Display for NotAnAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address is HOST:PORT or unix:PATH")
    }
}

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Address, NotAnAddress> {
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(NotAnAddress) } else { Ok(Address::Unix(path.into())) };
        }
        let (host, port) = text.rsplit_once(':').ok_or(NotAnAddress)?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() || host.contains(char::is_whitespace) || host.contains(['/', ',', '@']) {
            return Err(NotAnAddress);
        }
        Ok(Address::Tcp(host.to_owned(), port.parse().map_err(|_| NotAnAddress)?))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::Tcp(host, port) => write!(f, "{host}:{port}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// How long one try to connect takes at most.
const LONGEST_TRY: Duration = Duration::from_secs(2);

impl Address {
    /// The text of a cluster file that names this server.
    pub fn cluster_file(&self) -> String {
        format!("shaketable:serve@{self}\n")
    }

    /// The address for programs on this machine, if a server listens at this one: `0.0.0.0` and `::` are all
    /// of its addresses and none to connect to.
    pub fn reachable(&self) -> Address {
        match self {
            Address::Tcp(host, port) if host == "0.0.0.0" => Address::Tcp("127.0.0.1".to_owned(), *port),
            Address::Tcp(host, port) if host == "::" => Address::Tcp("::1".to_owned(), *port),
            other => other.clone(),
        }
    }

    /// Whether other machines can reach it.
    pub fn is_public(&self) -> io::Result<bool> {
        Ok(self.resolve()?.iter().any(|address| !address.ip().is_loopback()))
    }

    /// The addresses of the host; none for a Unix socket.
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        match self {
            Address::Tcp(host, port) => Ok((host.as_str(), *port).to_socket_addrs()?.collect()),
            Address::Unix(_) => Ok(Vec::new()),
        }
    }

    /// Connects by TCP: the first of the host's addresses that answers.
    pub(crate) fn connect_tcp(&self) -> io::Result<TcpStream> {
        let mut refused = io::Error::from(ErrorKind::AddrNotAvailable);
        for address in self.resolve()? {
            match TcpStream::connect_timeout(&address, LONGEST_TRY) {
                Ok(stream) => return Ok(stream),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// Listens by TCP: on the first of the host's addresses that allows it.
    pub(crate) fn listen_tcp(&self) -> io::Result<TcpListener> {
        TcpListener::bind(&self.resolve()?[..])
    }
}

/// The server that a cluster file names, if it names one.
pub fn server_of(cluster_file: &str) -> Result<Option<Address>, NotAnAddress> {
    connection_of(cluster_file).strip_prefix("shaketable:serve@").map(str::parse).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port_or_a_path() {
        for text in ["127.0.0.1:4500", "[::1]:0", "localhost:65535", "unix:/tmp/a b.socket"] {
            assert_eq!(text.parse::<Address>().expect("an address").to_string(), text);
        }
        for text in
            ["", "4500", ":4500", "unix:", "host:", "host:65536", "host:-1", "a b:1", "1.2.3.4:1,5.6.7.8:1"]
        {
            assert_eq!(text.parse::<Address>(), Err(NotAnAddress), "{text}");
        }
    }

    #[test]
    fn loopback_is_not_public() {
        let is_public =
            |text: &str| text.parse::<Address>().expect("an address").is_public().expect("numbers");
        assert!(!is_public("127.0.0.1:1") && !is_public("[::1]:1") && !is_public("unix:/tmp/socket"));
        let all: Address = "0.0.0.0:7".parse().expect("an address");
        assert_eq!(all.reachable().to_string(), "127.0.0.1:7");
        assert!(is_public("0.0.0.0:1") && is_public("[::]:1") && is_public("192.0.2.1:1"));
    }

    #[test]
    fn a_cluster_file_names_a_server_and_not_a_seed() {
        let address: Address = "127.0.0.1:4500".parse().expect("an address");
        assert_eq!(server_of(&address.cluster_file()), Ok(Some(address.clone())));
        assert_eq!(server_of("# by hand\n\n shaketable:serve@127.0.0.1:4500"), Ok(Some(address)));
        for other in ["shaketable:7@127.0.0.1:4500", "docker:serve@127.0.0.1:4500", ""] {
            assert_eq!(server_of(other), Ok(None));
        }
        for wrong in ["shaketable:serve@", "shaketable:serve@nowhere"] {
            assert_eq!(server_of(wrong), Err(NotAnAddress));
        }
        assert!(crate::settings::seed_of("shaketable:serve@127.0.0.1:4500").is_err());
    }
}
