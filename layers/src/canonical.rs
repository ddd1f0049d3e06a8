//! Keys in canonical form: unpacking a key and packing the result gives the same key.
//!
//! The tuple layer also unpacks encodings that it does not produce, such as an integer with leading zero
//! bytes: the same number under another key. A layer that rebuilds a row's key from the unpacked position
//! would then access a different key, and would take the same item again and again, or read the same page
//! forever. Layers therefore use [`unpack_below`] for the positions that they return to; it returns an error
//! for such a key.

use foundationdb_tuple::{PackError, PackResult, Subspace, TuplePack, TupleUnpack};

/// Unpacks the part of a key after the subspace's prefix, unless packing the result gives another key.
pub(crate) fn unpack_below<'de, T>(subspace: &Subspace, key: &'de [u8]) -> PackResult<T>
where
    T: TuplePack + TupleUnpack<'de>,
{
    let place: T = subspace.unpack(key)?;
    match subspace.pack(&place) == key {
        true => Ok(place),
        false => Err(PackError::Message("packed otherwise than it is written".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_key() {
        let space = Subspace::from("s");
        let key = |packed: &[u8]| [space.bytes(), packed].concat();
        for number in [i64::MIN, -256, -255, -1, 0, 1, 255, 256, i64::MAX] {
            assert_eq!(unpack_below::<(i64,)>(&space, &space.pack(&(number,))).ok(), Some((number,)));
        }
        // Five and minus five, encoded in more bytes than necessary.
        for longer in [&[0x16, 0, 5][..], &[0x1d, 1, 5], &[0x12, 0xff, 0xfa]] {
            assert!(space.unpack::<(i64,)>(&key(longer)).is_ok());
            assert!(unpack_below::<(i64,)>(&space, &key(longer)).is_err(), "{longer:?}");
        }
        assert!(unpack_below::<(i64,)>(&space, &key(b"\x15")).is_err());
        assert!(unpack_below::<(i64,)>(&space, b"\x02t\0\x15\x01").is_err());
    }
}
