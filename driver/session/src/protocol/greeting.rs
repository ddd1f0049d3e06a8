//! The first sixteen bytes of each side: ten that name the protocol, in small letters from a client and in
//! capital letters from a server; the version (two bytes, little-endian); the longest frame that this side
//! accepts (four bytes, little-endian).
//!
//! The client greets first. A server that does not speak its version greets all the same, and then says so
//! with a [`Response::Refused`](super::Response::Refused), which every version can read.

use super::{LONGEST_REQUEST, LONGEST_RESPONSE, VERSION, wire::Wire};
use rustix::io::Errno;
use std::{fmt, time::Duration};

/// A side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A program.
    Client,
    /// A server.
    Server,
}

impl Side {
    /// How it names the protocol.
    fn name(self) -> &'static [u8; 10] {
        match self {
            Side::Client => b"shaketable",
            Side::Server => b"SHAKETABLE",
        }
    }
}

/// The length of a greeting.
const LENGTH: usize = 16;

/// How long either side waits for the other's greeting.
pub const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// The greeting of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Whose it is.
    pub side: Side,
    /// The version of the protocol that it speaks.
    pub version: u16,
    /// The longest frame that it accepts.
    pub longest: u32,
}

impl Greeting {
    /// What a client says.
    pub const CLIENT: Greeting = Greeting { side: Side::Client, version: VERSION, longest: LONGEST_RESPONSE };
    /// What a server says.
    pub const SERVER: Greeting = Greeting { side: Side::Server, version: VERSION, longest: LONGEST_REQUEST };

    /// Sends it.
    pub fn send(&self, wire: &Wire) -> Result<(), Errno> {
        let version = self.version.to_le_bytes();
        wire.write(&[&self.side.name()[..], &version, &self.longest.to_le_bytes()].concat())
    }

    /// Receives that of the other side, which is this one.
    pub fn receive(wire: &Wire, side: Side) -> Result<Greeting, GreetingError> {
        wire.limit_reads(Some(GREETING_TIMEOUT)).map_err(|_| GreetingError::Gone)?;
        let mut bytes = [0; LENGTH];
        let mut filled = 0;
        while filled < LENGTH {
            match wire.read(&mut bytes[filled..]) {
                Ok(0) => return Err(GreetingError::Gone),
                Ok(read) => filled += read,
                Err(Errno::AGAIN) => return Err(GreetingError::Silent),
                Err(_) => return Err(GreetingError::Gone),
            }
            let known = filled.min(side.name().len());
            if bytes[..known] != side.name()[..known] {
                return Err(GreetingError::Other);
            }
        }
        wire.limit_reads(None).map_err(|_| GreetingError::Gone)?;
        let [.., v0, v1, l0, l1, l2, l3] = bytes;
        Ok(Greeting {
            side,
            version: u16::from_le_bytes([v0, v1]),
            longest: u32::from_le_bytes([l0, l1, l2, l3]),
        })
    }
}

/// Why no valid greeting was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GreetingError {
    /// The connection ended first.
    Gone,
    /// Nothing came in time.
    Silent,
    /// It speaks another protocol.
    Other,
}

impl fmt::Display for GreetingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GreetingError::Gone => "the connection ended before a greeting",
            GreetingError::Silent => "no greeting within 5 seconds",
            GreetingError::Other => "what is sent is not shaketable's protocol",
        })
    }
}
