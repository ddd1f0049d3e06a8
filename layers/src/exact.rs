//! Keys as they are written: what stands at a key leads back to it.
//!
//! The tuple layer reads what it would write otherwise: an integer with zeros before it, which is the same number
//! under another key. A layer that goes back to where such a row said it stands comes to another key: it would
//! take an item again and again, or read the same page for ever. Layers therefore read the places that they go
//! back to with [`unpack_below`], to which such a key is none.

use foundationdb_tuple::{PackError, PackResult, Subspace, TuplePack, TupleUnpack};

/// Unpacks what a key has after the subspace's prefix, unless packing it gives another key.
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
        // Five, and minus five, in more bytes than they need.
        for longer in [&[0x16, 0, 5][..], &[0x1d, 1, 5], &[0x12, 0xff, 0xfa]] {
            assert!(space.unpack::<(i64,)>(&key(longer)).is_ok());
            assert!(unpack_below::<(i64,)>(&space, &key(longer)).is_err(), "{longer:?}");
        }
        assert!(unpack_below::<(i64,)>(&space, &key(b"\x15")).is_err());
        assert!(unpack_below::<(i64,)>(&space, b"\x02t\0\x15\x01").is_err());
    }
}
