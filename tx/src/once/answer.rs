//! The encoding of answers in a slot.

use super::Error;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use foundationdb_tuple::{TuplePack, TupleUnpack, Versionstamp, VersionstampOffset};

/// An answer: the result of an operation, which a slot can hold.
///
/// An answer may contain one incomplete versionstamp, which the commit completes: `encode` returns the
/// position of its ten bytes, and the caller receives the result of `decode` for the completed bytes.
pub trait Answer: Send + Sized {
    /// Appends the encoded answer to `out`. If it contains an incomplete versionstamp, returns the index of
    /// its ten bytes in `out`.
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, Error>;

    /// Decodes an answer; `None` if the bytes are not a valid encoding.
    fn decode(bytes: Bytes) -> Option<Self>;
}

impl Answer for () {
    fn encode(&self, _: &mut BytesMut) -> Result<Option<usize>, Error> {
        Ok(None)
    }
    fn decode(bytes: Bytes) -> Option<Self> {
        bytes.is_empty().then_some(())
    }
}

/// Raw bytes, at most [`MAX_ANSWER_BYTES`](super::MAX_ANSWER_BYTES).
impl Answer for Bytes {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, Error> {
        out.extend_from_slice(self);
        Ok(None)
    }
    fn decode(bytes: Bytes) -> Option<Self> {
        Some(bytes)
    }
}

/// One byte more than the inner answer.
impl<A: Answer> Answer for Option<A> {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, Error> {
        out.put_u8(self.is_some() as u8);
        self.as_ref().map_or(Ok(None), |answer| answer.encode(out))
    }
    fn decode(bytes: Bytes) -> Option<Self> {
        match bytes.first()? {
            0 if bytes.len() == 1 => Some(None),
            1 => A::decode(bytes.slice(1..)).map(Some),
            _ => None,
        }
    }
}

/// Each answer follows its length in four bytes. One of them may contain the incomplete versionstamp.
impl<A: Answer> Answer for Vec<A> {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, Error> {
        let mut stamp = None;
        for answer in self {
            let start = out.len();
            out.put_u32(0);
            let found = answer.encode(out)?;
            if found.is_some() && stamp.is_some() {
                return Err(Error::ManyStamps);
            }
            stamp = stamp.or(found);
            let length: u32 = checked_length(out.len() - start - 4, u32::MAX as usize)?;
            out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        }
        Ok(stamp)
    }
    fn decode(mut bytes: Bytes) -> Option<Self> {
        let mut answers = Vec::new();
        while !bytes.is_empty() {
            let length = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
            bytes.advance(4);
            if length > bytes.len() {
                return None;
            }
            answers.push(A::decode(bytes.split_to(length))?);
        }
        Some(answers)
    }
}

/// A length in a field that can hold up to `limit`.
fn checked_length<N: TryFrom<usize>>(bytes: usize, limit: usize) -> Result<N, Error> {
    N::try_from(bytes).map_err(|_| Error::AnswerTooLarge { bytes, limit })
}

/// Encodes an answer of up to 255 bytes after its length in one byte, followed by raw bytes. Returns the
/// position of an incomplete versionstamp as [`Answer::encode`] does.
///
/// # Errors
///
/// [`Error::AnswerTooLarge`] if the answer before the raw bytes is longer.
pub fn encode_headed<A: Answer>(head: &A, body: &[u8], out: &mut BytesMut) -> Result<Option<usize>, Error> {
    let start = out.len();
    out.put_u8(0);
    let stamp = head.encode(out)?;
    out[start] = checked_length(out.len() - start - 1, u8::MAX.into())?;
    out.extend_from_slice(body);
    Ok(stamp)
}

/// Decodes the output of [`encode_headed`].
pub fn decode_headed<A: Answer>(mut bytes: Bytes) -> Option<(A, Bytes)> {
    let length = *bytes.first()? as usize;
    if bytes.len() <= length {
        return None;
    }
    let body = bytes.split_off(1 + length);
    Some((A::decode(bytes.slice(1..))?, body))
}

/// An answer packed by the tuple layer: any tuple, or a single element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed<T>(pub T);

impl<T: TuplePack + for<'de> TupleUnpack<'de> + Send> Answer for Packed<T> {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, Error> {
        let mut packed = Vec::new();
        let stamp = match self.0.pack_into_vec(&mut packed) {
            VersionstampOffset::None { .. } => None,
            VersionstampOffset::OneIncomplete { offset } => Some(out.len() + offset as usize),
            VersionstampOffset::MultipleIncomplete => return Err(Error::ManyStamps),
        };
        out.extend_from_slice(&packed);
        Ok(stamp)
    }
    fn decode(bytes: Bytes) -> Option<Self> {
        crate::nesting::unpack(&bytes).ok().map(Packed)
    }
}

macro_rules! packed_answers {
    ($($type:ty),*) => {$(
        /// Packed by the tuple layer.
        impl Answer for $type {
            fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, Error> {
                Packed(self.clone()).encode(out)
            }
            fn decode(bytes: Bytes) -> Option<Self> {
                Packed::decode(bytes).map(|Packed(value)| value)
            }
        }
    )*};
}
packed_answers!(bool, i64, u64, String, Versionstamp);

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    fn round_trip<A: Answer + PartialEq + Debug>(answer: A) {
        let mut out = BytesMut::new();
        assert_eq!(answer.encode(&mut out), Ok(None));
        assert_eq!(A::decode(out.freeze()), Some(answer));
    }

    #[test]
    fn answers_round_trip() {
        round_trip(());
        round_trip(true);
        round_trip(-5i64);
        round_trip(String::from("a\0b"));
        round_trip(None::<Bytes>);
        round_trip(Some(Bytes::new()));
        round_trip(Some(None::<u64>));
        round_trip(Vec::<u64>::new());
        round_trip(vec![(); 3]);
        round_trip(vec![Bytes::from_static(b"ab"), Bytes::new()]);
        assert_eq!(<Vec<Bytes>>::decode(Bytes::from_static(b"\0\0\0\x09x")), None);
        round_trip(Packed((1u64, String::from("x"))));
        assert_eq!(<Option<Bytes>>::decode(Bytes::new()), None);
        assert_eq!(<Option<Bytes>>::decode(Bytes::from_static(b"\0x")), None);
        assert_eq!(<()>::decode(Bytes::from_static(b"x")), None);
        assert_eq!(u64::decode(Bytes::from_static(b"\x02x\0")), None);
    }

    #[test]
    fn the_position_of_a_stamp_counts_the_bytes_before_it() {
        let mut out = BytesMut::from(&b"head"[..]);
        let at = Packed(("x", Versionstamp::incomplete(3)).1).encode(&mut out).unwrap().unwrap();
        assert_eq!(&out[at..at + 10], &[0xff; 10]);
        out[at..at + 10].copy_from_slice(&[7; 10]);
        let bytes = out.freeze().slice(4..);
        assert_eq!(Versionstamp::decode(bytes), Some(Versionstamp::complete([7; 10], 3)));

        let two = Packed((Versionstamp::incomplete(0), Versionstamp::incomplete(1)));
        assert_eq!(two.encode(&mut BytesMut::new()), Err(Error::ManyStamps));
    }

    #[test]
    fn a_head_whose_length_does_not_fit_into_its_byte_is_refused() {
        let headed = |head: usize| {
            let mut out = BytesMut::new();
            encode_headed(&Bytes::from(vec![7; head]), b"body", &mut out)?;
            Ok(decode_headed::<Bytes>(out.freeze()))
        };
        for head in [0, 1, 254, 255] {
            let body = Bytes::from_static(b"body");
            assert_eq!(headed(head), Ok(Some((Bytes::from(vec![7; head]), body))));
        }
        for bytes in [256, 257, 511, 512, 65_536] {
            assert_eq!(headed(bytes), Err(Error::AnswerTooLarge { bytes, limit: 255 }));
        }
    }
}
