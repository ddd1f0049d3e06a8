//! Frames of a connection: read one after another, with a limit on their length.
//!
//! Memory grows with what has arrived, and not with what a frame claims to be long.

use super::wire::Wire;
use std::fmt;

/// The bytes of a frame's length.
const HEAD: usize = 4;

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// What ends a connection while frames are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The connection ended between two frames.
    End,
    /// It ended within a frame.
    Truncated,
    /// A frame is longer than the limit.
    TooLong {
        /// What it claims.
        length: u32,
        /// The limit.
        longest: u32,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::End => f.write_str("the connection ended"),
            FrameError::Truncated => f.write_str("the connection ended within a frame"),
            FrameError::TooLong { length, longest } => {
                write!(f, "a frame of {length} bytes, and at most {longest} are accepted")
            }
        }
    }
}

/// Reads the frames of a wire.
pub struct Frames {
    longest: u32,
    bytes: Vec<u8>,
    /// Where the next frame begins in `bytes`.
    start: usize,
}

impl Frames {
    /// A reader of frames of at most this length.
    pub fn new(longest: u32) -> Frames {
        Frames { longest, bytes: Vec::new(), start: 0 }
    }

    /// The body of the next frame.
    pub fn next(&mut self, wire: &Wire) -> Result<&[u8], FrameError> {
        self.fill(wire, HEAD)?;
        let mut head = [0; HEAD];
        head.copy_from_slice(&self.bytes[self.start..][..HEAD]);
        let length = u32::from_le_bytes(head);
        if length > self.longest {
            return Err(FrameError::TooLong { length, longest: self.longest });
        }
        let whole = HEAD + length as usize;
        self.fill(wire, whole)?;
        let body = self.start + HEAD..self.start + whole;
        self.start = body.end;
        Ok(&self.bytes[body])
    }

    /// Reads until there are `wanted` bytes from `start`.
    fn fill(&mut self, wire: &Wire, wanted: usize) -> Result<(), FrameError> {
        while self.bytes.len() - self.start < wanted {
            self.forget();
            let kept = self.bytes.len();
            self.bytes.resize(kept + CHUNK, 0);
            // An error is the end: the other side is gone.
            let read = wire.read(&mut self.bytes[kept..]).unwrap_or(0);
            self.bytes.truncate(kept + read);
            if read == 0 {
                return Err(if kept == 0 { FrameError::End } else { FrameError::Truncated });
            }
        }
        Ok(())
    }

    /// Forgets what was returned, and with it the room for a long frame.
    fn forget(&mut self) {
        self.bytes.drain(..self.start);
        self.start = 0;
        if self.bytes.len() < CHUNK {
            self.bytes.shrink_to(2 * CHUNK);
        }
    }
}
