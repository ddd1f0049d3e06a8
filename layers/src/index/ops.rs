//! Operations on tables, and the encoding of their recorded answers.

use super::{Error, Record, keys::Keys};
use crate::{
    limits, nesting,
    once::Answer,
    read, sometimes,
    tx::{Isolation, KeyValue, RangeOption, Transaction, key_after},
};
use bytes::{BufMut, Bytes, BytesMut};
use foundationdb_tuple::{PackResult, Subspace, TupleDepth, TuplePack, TupleUnpack};
use std::{
    marker::PhantomData,
    ops::{Bound, RangeBounds},
};

/// The key tuple of an index entry, as returned by lookups.
pub trait IndexKey: TuplePack + for<'de> TupleUnpack<'de> + Sync {}

impl<K: TuplePack + for<'de> TupleUnpack<'de> + Sync> IndexKey for K {}

/// A table of records with indexes, in its own subspace.
#[derive(Clone, Debug)]
pub struct Table<R: Record> {
    keys: Keys,
    record: PhantomData<fn() -> R>,
}

impl<R: Record> Table<R> {
    /// The table in `subspace`, which must not be used for anything else.
    pub fn new(subspace: &Subspace) -> Table<R> {
        Table { keys: Keys::new::<R>(subspace), record: PhantomData }
    }

    /// Stores a record in place of the one with its id, and returns the replaced one.
    pub async fn set<T: Transaction>(&self, tx: &T, record: &R) -> Result<Option<R>, Error> {
        let tx = &tx.writing().await;
        self.keys.fits(record)?;
        self.replace(tx, record.id(), Some(record)).await
    }

    /// Removes the record with that id and returns it; `None` if there was none.
    pub async fn delete<T: Transaction>(&self, tx: &T, id: &R::Id) -> Result<Option<R>, Error> {
        let tx = &tx.writing().await;
        self.replace(tx, id, None).await
    }

    /// The record with that id.
    pub async fn get<T: Transaction>(
        &self,
        tx: &T,
        id: &R::Id,
        isolation: Isolation,
    ) -> Result<Option<R>, Error> {
        let tx = &tx.reading().await;
        match tx.get(&self.keys.record(id), isolation).await? {
            None => Ok(None),
            Some(value) => decode(id.clone(), &value).map(Some),
        }
    }

    /// The ids of the records that the index contains under `key`, in the order of ids.
    pub async fn find<T: Transaction, K: TuplePack>(
        &self,
        tx: &T,
        index: &'static str,
        key: &K,
        isolation: Isolation,
    ) -> Result<Vec<R::Id>, Error> {
        let found = self.find_covered(tx, index, key, isolation).await?;
        Ok(found.into_iter().map(|(id, _)| id).collect())
    }

    /// Like [`find`](Table::find), with the part of each record that the index covers.
    pub async fn find_covered<T: Transaction, K: TuplePack>(
        &self,
        tx: &T,
        index: &'static str,
        key: &K,
        isolation: Isolation,
    ) -> Result<Vec<(R::Id, Bytes)>, Error> {
        let tx = &tx.reading().await;
        let under = self.keys.under(declared::<R>(index)?, &foundationdb_tuple::pack(key));
        let rows = read::all::<_, Error>(tx, RangeOption::from(under.range()), isolation).await?;
        rows.into_iter().map(|row| entry(index, &under, row)).collect()
    }

    /// The first `limit` of the entries that [`find_covered`](Table::find_covered) returns, or of those after
    /// the id `after`: pass the last id of a page to read the next one. A page shorter than `limit` is the
    /// last one.
    pub async fn find_page<T: Transaction, K: TuplePack>(
        &self,
        tx: &T,
        index: &'static str,
        key: &K,
        after: Option<&R::Id>,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<(R::Id, Bytes)>, Error> {
        let tx = &tx.reading().await;
        let under = self.keys.under(declared::<R>(index)?, &foundationdb_tuple::pack(key));
        let (mut begin, end) = under.range();
        if let Some(after) = after {
            begin = page_begin(&under.pack(after))?;
        }
        let rows = read::page::<_, Error>(tx, (begin, end), limit, isolation).await?;
        rows.into_iter().map(|row| entry(index, &under, row)).collect()
    }

    /// The entries of an index whose keys are in `range`: the key, the id and the covered part of each, in
    /// the order of keys, then of ids. A range whose end is before its start has none.
    ///
    /// `K` must have as many elements as the index's keys have.
    pub async fn find_between<T: Transaction, K: IndexKey>(
        &self,
        tx: &T,
        index: &'static str,
        range: impl RangeBounds<K> + Send,
        isolation: Isolation,
    ) -> Result<Vec<(K, R::Id, Bytes)>, Error> {
        let tx = &tx.reading().await;
        let at = declared::<R>(index)?;
        let all = self.keys.under(at, b"");
        // The entries of a key range from the key itself to the end of its subspace.
        let under = |key: &K| self.keys.under(at, &foundationdb_tuple::pack(key));
        let begin = match range.start_bound() {
            Bound::Included(key) => under(key).into_bytes(),
            Bound::Excluded(key) => under(key).range().1,
            Bound::Unbounded => all.range().0,
        };
        let end = match range.end_bound() {
            Bound::Included(key) => under(key).range().1,
            Bound::Excluded(key) => under(key).into_bytes(),
            Bound::Unbounded => all.range().1,
        };
        if begin >= end {
            return Ok(Vec::new());
        }
        let rows = read::all::<_, Error>(tx, RangeOption::from((begin, end)), isolation).await?;
        let entry = |row: KeyValue| {
            let Entry(key, id) = nesting::unpack_below(&all, &row.key).map_err(|_| Error::Foreign(index))?;
            Ok((key, id, row.value))
        };
        rows.into_iter().map(entry).collect()
    }

    /// All records, in the order of ids.
    pub async fn records<T: Transaction>(&self, tx: &T, isolation: Isolation) -> Result<Vec<R>, Error> {
        let tx = &tx.reading().await;
        let rows = read::all::<_, Error>(tx, RangeOption::from(self.keys.records()), isolation).await?;
        rows.iter().map(|row| decode(self.keys.record_id::<R>(&row.key)?, &row.value)).collect()
    }

    /// The first `limit` of all [`records`](Table::records), or of those after the id `after`: pass the last
    /// id of a page to read the next one. A page shorter than `limit` is the last one.
    pub async fn records_page<T: Transaction>(
        &self,
        tx: &T,
        after: Option<&R::Id>,
        limit: usize,
        isolation: Isolation,
    ) -> Result<Vec<R>, Error> {
        let tx = &tx.reading().await;
        let (mut begin, end) = self.keys.records();
        if let Some(after) = after {
            begin = page_begin(&self.keys.record(after))?;
        }
        let rows = read::page::<_, Error>(tx, (begin, end), limit, isolation).await?;
        rows.iter().map(|row| decode(self.keys.record_id::<R>(&row.key)?, &row.value)).collect()
    }

    /// The only function that writes records and entries. The old record is read serializably, so that two
    /// writers of one id conflict and each removes the entries that actually exist.
    async fn replace<T: Transaction>(&self, tx: &T, id: &R::Id, new: Option<&R>) -> Result<Option<R>, Error> {
        let old = self.get(tx, id, Isolation::Serializable).await?;
        let before = old.as_ref().map(|r| self.keys.entries(r)).unwrap_or_default();
        let after = new.map(|r| self.keys.entries(r)).unwrap_or_default();
        sometimes!(
            old.is_some() && new.is_some() && before.keys().ne(after.keys()),
            "index: a record moves to another key of an index"
        );
        sometimes!(
            before.iter().any(|(key, covered)| after.get(key).is_some_and(|new| new != covered)),
            "index: a covered part changes under its key"
        );
        for key in before.keys().filter(|key| !after.contains_key(*key)) {
            tx.clear(key);
        }
        for (key, covered) in after.iter().filter(|(key, covered)| before.get(*key) != Some(covered)) {
            tx.set(key, covered);
        }
        let key = self.keys.record(id);
        match (new, &old) {
            (Some(record), _) => tx.set(&key, &record.encode()),
            (None, Some(_)) => tx.clear(&key),
            (None, None) => {}
        }
        Ok(old)
    }
}

/// The position of an index among those of the table.
fn declared<R: Record>(index: &'static str) -> Result<usize, Error> {
    R::INDEXES.iter().position(|i| i.name == index).ok_or(Error::UnknownIndex(index))
}

/// The begin of the page that follows this key.
fn page_begin(key: &[u8]) -> Result<Vec<u8>, Error> {
    limits::key(key)?;
    Ok(key_after(key).into())
}

/// Decodes an entry under one key: the record's id, and the covered part.
fn entry<I: for<'de> TupleUnpack<'de>>(
    index: &'static str,
    under: &Subspace,
    row: KeyValue,
) -> Result<(I, Bytes), Error> {
    match nesting::unpack_below(under, &row.key) {
        Ok(id) => Ok((id, row.value)),
        Err(_) => Err(Error::Foreign(index)),
    }
}

/// The key of an entry within its index: the elements of the index key, then those of the id, all at one
/// level.
struct Entry<K, I>(K, I);

impl<'de, K: TupleUnpack<'de>, I: TupleUnpack<'de>> TupleUnpack<'de> for Entry<K, I> {
    fn unpack(input: &'de [u8], depth: TupleDepth) -> PackResult<(&'de [u8], Self)> {
        let (rest, key) = K::unpack(input, depth)?;
        let (rest, id) = I::unpack(rest, depth)?;
        Ok((rest, Entry(key, id)))
    }
}

fn decode<R: Record>(id: R::Id, bytes: &[u8]) -> Result<R, Error> {
    R::decode(id, bytes).ok_or(Error::Foreign(super::keys::RECORDS))
}

/// A replaced or deleted record as a session's recorded answer: a [`set`](Table::set) or
/// [`delete`](Table::delete) that is applied exactly once has the answer `Option<Old<R>>`.
///
/// Encoded as the length of the packed id in two bytes, the packed id, and the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Old<R>(pub R);

impl<R: Record> Answer for Old<R> {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, crate::once::Error> {
        let id = foundationdb_tuple::pack(self.0.id());
        let (bytes, limit) = (id.len(), u16::MAX.into());
        let too_large = |_| crate::once::Error::AnswerTooLarge { bytes, limit };
        out.put_u16(bytes.try_into().map_err(too_large)?);
        out.extend_from_slice(&id);
        out.extend_from_slice(&self.0.encode());
        Ok(None)
    }

    fn decode(bytes: Bytes) -> Option<Old<R>> {
        let (length, rest) = bytes.split_at_checked(2)?;
        let (id, record) = rest.split_at_checked(u16::from_be_bytes(length.try_into().ok()?) as usize)?;
        R::decode(nesting::unpack(id).ok()?, record).map(Old)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::users::User, *};
    use crate::index::MAX_RECORD_BYTES;

    fn user(id: &str, name: &str, zipcode: Option<&str>) -> User {
        User { id: id.into(), name: name.into(), zipcode: zipcode.map(Into::into) }
    }

    #[test]
    fn replaced_records_are_answers() {
        for old in [user("a\0b", "", None), user("", "name", Some("1"))] {
            let mut out = BytesMut::new();
            assert_eq!(Old(old.clone()).encode(&mut out), Ok(None));
            assert_eq!(Old::decode(out.freeze()).map(|Old(r): Old<User>| r), Some(old));
        }
        assert!(Old::<User>::decode(Bytes::from_static(b"\0\x09x")).is_none());
    }

    /// Random keys, and nested tuples as deep as a key allows: only a valid entry is decoded as one.
    #[test]
    fn invalid_entries_are_refused() {
        let index = Subspace::from(("t", "index", "name"));
        let read = |key: &[u8]| index.unpack::<Entry<String, String>>(key).map(|Entry(key, id)| (key, id));
        let sound = index.pack(&("k\0", "id"));
        assert_eq!(read(&sound).unwrap(), ("k\0".into(), "id".into()));
        let prefix = index.bytes();
        for deep in [vec![5; 9_900], [vec![2, 0], vec![5; 9_900]].concat(), vec![2; 9_900], vec![0xff; 9]] {
            assert!(read(&[prefix, &deep].concat()).is_err());
        }
        for cut in 0..sound.len() {
            assert!(read(&sound[..cut]).is_err());
        }
        proptest::proptest!(|(tail in proptest::collection::vec(0u8..8, 0..40))| {
            if let Ok((key, id)) = read(&[prefix, &tail].concat()) {
                assert_eq!(index.pack(&(key, id)), [prefix, &tail].concat());
            }
            let _ = User::decode("u".into(), &tail);
            let _ = Old::<User>::decode(tail.into());
        });
    }

    #[test]
    fn entries_are_the_projection() {
        let keys = Keys::new::<User>(&Subspace::from("t"));
        let with = keys.entries(&user("u", "n", Some("z")));
        let without = keys.entries(&user("u", "n", None));
        assert_eq!((with.len(), without.len()), (3, 1));
        assert!(without.iter().all(|(key, value)| with.get(key) == Some(value)));
        let covering = Subspace::from(("t", "index", "zipcode_name", "z", "u"));
        assert_eq!(with.get(covering.bytes()).map(|b| &b[..]), Some(&b"n"[..]));
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let keys = Keys::new::<User>(&Subspace::from("t"));
        let long = "x".repeat(10_001);
        assert!(matches!(
            keys.fits(&user(&long, "n", None)),
            Err(Error::KeyTooLarge { index: "records", .. })
        ));
        assert!(matches!(keys.fits(&user("u", &long, None)), Err(Error::KeyTooLarge { index: "name", .. })));
        assert!(matches!(
            keys.fits(&user("u", "n", Some(&long))),
            Err(Error::KeyTooLarge { index: "zipcode", .. })
        ));
        assert_eq!(keys.fits(&user("u", "n", Some("z"))), Ok(()));
        const { assert!(MAX_RECORD_BYTES < crate::tx::VALUE_SIZE_LIMIT) }
        let head = foundationdb_tuple::pack(&"u").len() + user("u", "", None).encode().len();
        let of = |bytes: usize| keys.fits(&user("u", &"x".repeat(bytes - head), None));
        let beyond = MAX_RECORD_BYTES + 1;
        assert_eq!(of(beyond), Err(Error::RecordTooLarge { bytes: beyond, limit: MAX_RECORD_BYTES }));
        assert!(matches!(of(MAX_RECORD_BYTES), Err(Error::KeyTooLarge { index: "name", .. })));
    }
}
