//! Values in answers and models.

use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// A value in answers and models: its length, hash and first bytes. This distinguishes it from other values,
/// and stays short enough to be printed and to be recorded by a session.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Content {
    length: usize,
    hash: u64,
    start: Vec<u8>,
}

impl Content {
    /// The content of a value of `length` equal bytes.
    pub fn of(byte: u8, length: usize) -> Content {
        Content::from(&vec![byte; length][..])
    }

    /// The value's length, in bytes.
    pub fn length(&self) -> usize {
        self.length
    }
}

impl<B: AsRef<[u8]> + ?Sized> From<&B> for Content {
    fn from(bytes: &B) -> Content {
        let bytes = bytes.as_ref();
        let start = bytes[..bytes.len().min(12)].to_vec();
        Content { length: bytes.len(), hash: shaketable_sim::trace::hash_bytes(0, bytes), start }
    }
}

impl Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.length > self.start.len() {
            true => write!(
                f,
                "\"{}…\" ({} bytes, {:08x})",
                self.start.escape_ascii(),
                self.length,
                self.hash as u32
            ),
            false => write!(f, "\"{}\"", self.start.escape_ascii()),
        }
    }
}
