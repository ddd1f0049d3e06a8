//! A socket that clients connect to.

use crate::{address::Address, protocol::wire::Wire};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    fs,
    io::{self, ErrorKind},
    net::TcpListener,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{
            fs::FileTypeExt,
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
};

/// How long a wait for a client lasts, before the server checks whether it is to stop.
const ACCEPT_TIMEOUT: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A socket that clients connect to.
pub enum Listener {
    /// A port.
    Tcp(TcpListener),
    /// A Unix socket, whose file is removed in the end.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens. A Unix socket that is left from a server which ended is replaced.
    pub fn bind(address: &Address) -> io::Result<Listener> {
        let listener = match address {
            Address::Tcp(..) => {
                let listener = address.listen_tcp()?;
                listener.set_nonblocking(true)?;
                Listener::Tcp(listener)
            }
            Address::Unix(path) => {
                remove_abandoned(path)?;
                let listener = UnixListener::bind(path)?;
                listener.set_nonblocking(true)?;
                Listener::Unix(listener, path.clone())
            }
        };
        Ok(listener)
    }

    /// Where it listens: the system has chosen the port if it was to.
    pub fn address(&self) -> io::Result<Address> {
        Ok(match self {
            Listener::Tcp(listener) => {
                let address = listener.local_addr()?;
                Address::Tcp(address.ip().to_string(), address.port())
            }
            Listener::Unix(_, path) => Address::Unix(path.clone()),
        })
    }

    /// The next client, if one comes soon.
    pub fn accept(&self) -> Option<Wire> {
        let mut readers = [PollFd::from_borrowed_fd(self.socket(), PollFlags::IN)];
        // A signal interrupts it, and the caller waits again.
        let _ = poll(&mut readers, Some(&ACCEPT_TIMEOUT));
        // A client that is gone again is none.
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept().ok()?;
                stream.set_nonblocking(false).ok()?;
                Wire::tcp(stream).ok()
            }
            Listener::Unix(listener, _) => {
                let (stream, _) = listener.accept().ok()?;
                stream.set_nonblocking(false).ok()?;
                Some(Wire::unix(stream))
            }
        }
    }

    fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener, _) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            // Somebody else may have removed it.
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes a socket that no server listens on. Other files stay.
fn remove_abandoned(path: &Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    match UnixStream::connect(path) {
        Err(error) if is_socket && error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Ok(()),
    }
}
