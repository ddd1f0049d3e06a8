//! What is written: bytes that tell which write they are from.

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

/// What is written: bytes that identify the write and, within it, their position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    tag: u32,
    length: usize,
}

impl Data {
    /// Data of up to this length; the tag is set later.
    pub(super) fn up_to(longest: usize) -> impl Strategy<Value = Data> {
        (0..=longest).prop_map(Data::of)
    }

    /// Data of this length.
    pub(crate) fn of(length: usize) -> Data {
        Data { tag: 0, length }
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Sets the tag: this client, and the number of the write.
    pub(crate) fn tag(&mut self, client: usize, number: usize) {
        self.tag = (client << 16 | (number & 0xffff)) as u32;
    }

    /// The bytes: each four bytes are the tag, combined with their position.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        (0..self.length).map(|i| self.tag.to_be_bytes()[i % 4] ^ (i / 4) as u8).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_identify_their_write() {
        let data = |tag| Data { tag, length: 300 }.bytes();
        let (one, other) = (data(0x0001_0001), data(0x0001_0002));
        assert_eq!(one.len(), 300);
        assert!(one.iter().zip(&other).filter(|(a, b)| a != b).count() >= 75);
        assert_ne!(one[..4], one[4..8]);
    }
}
