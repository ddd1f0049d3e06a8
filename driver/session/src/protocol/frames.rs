//! Frames of a connection: read one after another, with a limit on their length.
//!
//! Memory grows with what has arrived, and not with what a frame claims to be long.

use super::wire::Wire;
use std::{fmt, ops::Range};

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
    /// What has arrived, and room for what will.
    bytes: Vec<u8>,
    /// What has arrived and was not returned, within `bytes`.
    held: Range<usize>,
}

impl Frames {
    /// A reader of frames of at most this length.
    pub fn new(longest: u32) -> Frames {
        Frames { longest, bytes: Vec::new(), held: 0..0 }
    }

    /// The body of the next frame.
    pub fn next(&mut self, wire: &Wire) -> Result<&[u8], FrameError> {
        self.fill(wire, HEAD)?;
        let mut head = [0; HEAD];
        head.copy_from_slice(&self.bytes[self.held.start..][..HEAD]);
        let length = u32::from_le_bytes(head);
        if length > self.longest {
            return Err(FrameError::TooLong { length, longest: self.longest });
        }
        let whole = HEAD + length as usize;
        self.fill(wire, whole)?;
        let body = self.held.start + HEAD..self.held.start + whole;
        self.held.start = body.end;
        Ok(&self.bytes[body])
    }

    /// Reads until this many bytes are held.
    fn fill(&mut self, wire: &Wire, wanted: usize) -> Result<(), FrameError> {
        while self.held.len() < wanted {
            self.make_room();
            // An error is the end: the other side is gone.
            let read = wire.read(&mut self.bytes[self.held.end..][..CHUNK]).unwrap_or(0);
            if read == 0 {
                return Err(if self.held.is_empty() { FrameError::End } else { FrameError::Truncated });
            }
            self.held.end += read;
        }
        Ok(())
    }

    /// Makes room for a chunk, in the place of what was returned. The room for a long frame is given back.
    fn make_room(&mut self) {
        self.bytes.copy_within(self.held.clone(), 0);
        self.held = 0..self.held.len();
        if self.held.len() < CHUNK {
            self.bytes.truncate(2 * CHUNK);
            self.bytes.shrink_to(2 * CHUNK);
        }
        // Only what is added is filled with zeros, and not the whole room for each read.
        let room = self.bytes.len().max(self.held.len() + CHUNK);
        self.bytes.resize(room, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::Write, os::unix::net::UnixStream, thread};

    #[test]
    fn frames_of_all_lengths_are_read_in_order_and_room_is_given_back() {
        let lengths = [0, 5, CHUNK - HEAD, CHUNK, 1, 3 * CHUNK + 7, 2, 2, CHUNK + 1, 0];
        let bodies = lengths.map(|length| (0..length).map(|at| (at * 7 + length) as u8).collect::<Vec<_>>());
        let (near, mut far) = UnixStream::pair().expect("a pair");
        let sent = bodies.clone();
        let writer = thread::spawn(move || {
            for body in sent {
                far.write_all(&(body.len() as u32).to_le_bytes()).expect("written");
                far.write_all(&body).expect("written");
            }
            far.write_all(&[9, 0, 0, 0, 1]).expect("written");
        });
        let (wire, mut frames) = (Wire::unix(near), Frames::new(4 * CHUNK as u32));
        for (n, body) in bodies.iter().enumerate() {
            assert_eq!(frames.next(&wire), Ok(&body[..]), "frame {n}");
        }
        assert_eq!(frames.next(&wire), Err(FrameError::Truncated));
        writer.join().expect("it ends");
        assert!(frames.bytes.len() <= 2 * CHUNK, "{}", frames.bytes.len());
    }

    #[test]
    fn a_frame_that_is_too_long_and_the_end_are_told() {
        let (near, mut far) = UnixStream::pair().expect("a pair");
        far.write_all(&[1, 0, 0, 0, 7, 101, 0, 0, 0]).expect("written");
        let (wire, mut frames) = (Wire::unix(near), Frames::new(100));
        assert_eq!(frames.next(&wire), Ok(&[7][..]));
        assert_eq!(frames.next(&wire), Err(FrameError::TooLong { length: 101, longest: 100 }));
        let (near, far) = UnixStream::pair().expect("a pair");
        drop(far);
        assert_eq!(Frames::new(100).next(&Wire::unix(near)), Err(FrameError::End));
    }
}
