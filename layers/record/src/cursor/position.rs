//! The bytes of continuations: a position, and what ties it to the call that it belongs to.

use super::Continuation;
use crate::error::Error;
use bytes::Bytes;

/// Continuations of one call: they are refused by every other call, and when they are torn.
///
/// The bytes are a position, followed by the FNV-1a hash, 64 bits, little-endian, of a description of the
/// call and of the position. The hash finds mistakes; it does not protect against somebody who makes up
/// continuations, which can name any position of the call.
#[derive(Clone, Debug)]
pub struct Positions {
    what: &'static str,
    seed: u64,
}

const HASH_BYTES: usize = size_of::<u64>();
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

fn fnv(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
}

impl Positions {
    /// Of the call that these parts describe: everything that decides which rows it gives, and in which
    /// order. `what` is the kind of the call, for [`Error::Continuation`].
    pub fn of(what: &'static str, parts: &[&[u8]]) -> Positions {
        let part = |seed, part: &[u8]| fnv(fnv(seed, &(part.len() as u64).to_le_bytes()), part);
        let seed = parts.iter().fold(part(FNV_OFFSET, what.as_bytes()), |seed, one| part(seed, one));
        Positions { what, seed }
    }

    /// The continuation after this position.
    pub fn after(&self, position: &[u8]) -> Continuation {
        let hash = fnv(self.seed, position).to_le_bytes();
        Continuation::After([position, &hash].concat().into())
    }

    /// The position of a continuation: `None` at the start. Fails with [`Error::Continuation`] if it belongs
    /// to another call, or is torn. A call that begins at [`Continuation::End`] has no rows, and no position.
    pub fn read(&self, from: &Continuation) -> Result<Option<Bytes>, Error> {
        let Continuation::After(bytes) = from else { return Ok(None) };
        let refused = || Error::Continuation(self.what);
        let length = bytes.len().checked_sub(HASH_BYTES).ok_or_else(refused)?;
        let position = bytes.slice(..length);
        match bytes[length..] == fnv(self.seed, &position).to_le_bytes() {
            true => Ok(Some(position)),
            false => Err(refused()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_continuation_belongs_to_one_call() {
        let scan = Positions::of("scan", &[b"ab", b"c"]);
        let after = scan.after(b"position");
        assert_eq!(scan.read(&after), Ok(Some(Bytes::from_static(b"position"))));
        assert_eq!(scan.read(&Continuation::Start), Ok(None));
        for other in [Positions::of("scan", &[b"a", b"bc"]), Positions::of("query", &[b"ab", b"c"])] {
            assert!(matches!(other.read(&after), Err(Error::Continuation(_))));
        }
    }

    #[test]
    fn a_torn_continuation_is_refused() {
        let scan = Positions::of("scan", &[]);
        let bytes = scan.after(b"position").to_bytes().unwrap();
        for length in 1..bytes.len() {
            let torn = Continuation::from_bytes(bytes.slice(..length));
            assert_eq!(scan.read(&torn), Err(Error::Continuation("scan")), "{length} bytes");
        }
        for flipped in 0..bytes.len() {
            let mut torn = bytes.to_vec();
            torn[flipped] ^= 0x10;
            assert_eq!(scan.read(&Continuation::from_bytes(torn.into())), Err(Error::Continuation("scan")));
        }
    }
}
