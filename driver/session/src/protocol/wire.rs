//! A connected socket, TCP or Unix, which two threads use at once: one reads and one writes.

use crate::address::Address;
use rustix::{
    io::{self, Errno},
    net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown, sockopt},
};
use std::{
    net::TcpStream,
    os::{fd::OwnedFd, unix::net::UnixStream},
    time::Duration,
};

/// A connected socket. It is closed with the last reference.
pub struct Wire(OwnedFd);

impl Wire {
    /// Connects to a server.
    pub fn connect(address: &Address) -> std::io::Result<Wire> {
        match address {
            Address::Tcp(..) => address.connect_tcp().and_then(Wire::tcp),
            Address::Unix(path) => UnixStream::connect(path).map(Wire::unix),
        }
    }

    /// A wire of a TCP connection. Small frames are sent at once, and a machine that vanishes is noticed.
    pub fn tcp(stream: TcpStream) -> std::io::Result<Wire> {
        stream.set_nodelay(true)?;
        let socket = OwnedFd::from(stream);
        sockopt::set_socket_keepalive(&socket, true)?;
        Ok(Wire(socket))
    }

    /// A wire of a Unix socket.
    pub fn unix(stream: UnixStream) -> Wire {
        Wire(stream.into())
    }

    /// Limits how long a read waits. A read that has waited so long fails.
    pub fn limit_reads(&self, timeout: Option<Duration>) -> io::Result<()> {
        sockopt::set_socket_timeout(&self.0, sockopt::Timeout::Recv, timeout)
    }

    /// Reads some bytes: none at the end of the connection.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match recv(&self.0, &mut *buffer, RecvFlags::empty()) {
                Ok((read, _)) => return Ok(read),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes all bytes. A program whose server is gone gets an error and no signal.
    pub fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match send(&self.0, bytes, no_signal()) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Nothing more is written: the other side reads to the end.
    pub fn end_writes(&self) {
        // It fails if the other side is gone.
        let _ = shutdown(&self.0, Shutdown::Write);
    }

    /// Nothing more is read: a read that waits returns with nothing.
    pub fn end_reads(&self) {
        let _ = shutdown(&self.0, Shutdown::Read);
    }

    /// Ends both, also what waits in another thread.
    pub fn end(&self) {
        let _ = shutdown(&self.0, Shutdown::Both);
    }
}

/// Where the flag does not exist, the standard library sets an option of the socket.
fn no_signal() -> SendFlags {
    #[cfg(not(target_vendor = "apple"))]
    return SendFlags::NOSIGNAL;
    #[cfg(target_vendor = "apple")]
    return SendFlags::empty();
}
