//! How a ranked set is kept.

/// How many elements of a level there are for one of the next: two to this power.
pub(super) const FAN: u32 = 4;

/// The hash of an element: how many of its low bits are zero decides to which levels the element belongs.
/// Another hash can be used for a set that has elements: what is there can still be counted and removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hash {
    /// That of Java's `Arrays.hashCode`.
    #[default]
    Jdk,
    /// The 32-bit cyclic redundancy check of IEEE 802.3, which spreads similar elements better.
    Crc,
}

impl Hash {
    pub(super) fn of(self, element: &[u8]) -> u32 {
        match self {
            Hash::Jdk => element
                .iter()
                .fold(1u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte as i8) as u32)),
            Hash::Crc => {
                let crc = element.iter().fold(!0u32, |crc, byte| {
                    (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
                });
                !crc
            }
        }
    }
}

/// How a set is kept. All users of one set must use the same number of levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The number of levels: 2 to 8. With `n` levels, lookups are fast up to about `16^n` elements.
    pub levels: u32,
    /// The hash of elements.
    pub hash: Hash,
    /// Whether an element that is added several times counts as often.
    pub count_duplicates: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config { levels: 6, hash: Hash::Jdk, count_duplicates: false }
    }
}

/// The largest number of levels.
pub const MAX_LEVELS: u32 = u32::BITS / FAN;

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are those of `Arrays.hashCode` and of `java.util.zip.CRC32`.
    #[test]
    fn elements_are_hashed_as_in_java() {
        assert_eq!(Hash::Jdk.of(b""), 1);
        assert_eq!(Hash::Jdk.of(b"\x01"), 32);
        assert_eq!(Hash::Jdk.of(b"\xff"), 30);
        assert_eq!(Hash::Jdk.of(b"abc"), 126_145);
        assert_eq!(Hash::Crc.of(b"123456789"), 0xcbf4_3926);
    }
}
