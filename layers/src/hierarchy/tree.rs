//! A nested value as rows below a key: the common part of hierarchies and documents.

use super::{
    EMPTY_ARRAY, EMPTY_OBJECT, Error, Step,
    keys::{
        Leaf, Shape, Tuple, build, first_length, leaves, pointer, push_scalar, push_step, scalars, shape,
    },
};
use crate::{
    limits, reachable, read,
    tx::{Isolation, KeyValue, RangeOption, Transaction},
};
use futures::future::try_join_all;
use serde_json::Value;

/// The marker for a text that is stored in pieces, numbered from 0.
const PIECES: i64 = -3;

/// The bytes that FoundationDB counts for a mutation in addition to its content (`sizeof(MutationRef)`).
const MUTATION_BYTES: usize = 44;

/// The bytes that it counts for a conflict range in addition to its keys (`sizeof(KeyRangeRef)`).
const RANGE_BYTES: usize = 24;

/// A key and its value.
type Row = (Vec<u8>, Vec<u8>);

/// The location of the leaf of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// As the last element of the key; the value is empty.
    Key,
    /// As the value; a text with more bytes than this is stored in pieces.
    Value(usize),
}

/// The behaviour of a write if there is no value at all yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// The write creates a value.
    Create,
    /// The write does nothing.
    Leave,
}

/// The rows of one nested value, the root.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) root: Vec<u8>,
    pub(crate) place: Place,
}

/// What must be cleared before a write to a path that can be reached from the existing value.
struct Preparation {
    /// The marker of an empty object or list that is no longer empty after the write.
    marker: Option<Vec<u8>>,
}

impl Tree {
    /// The value at a path.
    pub(crate) async fn get<T: Transaction>(
        &self,
        tx: &T,
        path: &[Step],
        isolation: Isolation,
    ) -> Result<Option<Value>, Error> {
        self.get_within(tx, &read::Allowance::new(), path, isolation).await
    }

    /// Like [`get`](Tree::get), as one of several reads of a call.
    pub(crate) async fn get_within<T: Transaction>(
        &self,
        tx: &T,
        allowance: &read::Allowance,
        path: &[Step],
        isolation: Isolation,
    ) -> Result<Option<Value>, Error> {
        let rows = allowance.all::<_, Error>(tx, self.range(path)?.into(), isolation).await?;
        let (tuples, keys) = self.tuples(self.at(path).len(), &rows)?;
        build(&tuples).map_err(|odd| {
            let odd = tuples.iter().zip(keys).find(|(tuple, _)| std::ptr::eq(*tuple, odd));
            Error::foreign(odd.map_or(&[], |(_, key)| key))
        })
    }

    /// Puts a value at a path in place of what is there. Returns whether it did.
    pub(crate) async fn put<T: Transaction>(
        &self,
        tx: &T,
        path: &[Step],
        item: &Value,
        absent: Absent,
    ) -> Result<bool, Error> {
        let rows = self.rows(path, item)?;
        let Some(preparation) = self.prepare(tx, path, absent).await? else { return Ok(false) };
        preparation.apply(tx);
        self.overwrite(tx, path, rows)?;
        Ok(true)
    }

    /// Puts a value at a path; objects are merged with the existing ones, member by member. Returns whether
    /// it did. Limited to 10,000 objects, each of which is read; more are refused.
    pub(crate) async fn merge<T: Transaction>(
        &self,
        tx: &T,
        path: &[Step],
        item: &Value,
        absent: Absent,
    ) -> Result<bool, Error> {
        let rows = self.rows(path, item)?;
        limits::transaction(bytes(self.at(path).len(), &rows) + merging(&rows))?;
        let Some(preparation) = self.prepare(tx, path, absent).await? else { return Ok(false) };
        // Objects to be merged, and values that replace what is there: nothing is written before all reads
        // are done.
        let (mut open, mut apart) = (Vec::new(), Vec::new());
        if item.is_object() { &mut open } else { &mut apart }.push((path.to_vec(), item));
        let allowance = read::Allowance::new();
        while !open.is_empty() {
            let some = open.split_off(open.len().saturating_sub(read::AT_ONCE));
            allowance.reads(some.len())?;
            let shapes = some.iter().map(|(path, item)| {
                self.object(tx, path, item.as_object().and_then(|members| members.keys().next()))
            });
            for (shape, (path, item)) in try_join_all(shapes).await?.into_iter().zip(some) {
                match (shape, item) {
                    (Some(Shape::Object), Value::Object(members)) => {
                        for (name, member) in members {
                            let below = (child(&path, Step::Key(name.clone())), member);
                            if member.is_object() { &mut open } else { &mut apart }.push(below);
                        }
                    }
                    (Some(Shape::Empty(EMPTY_OBJECT)), Value::Object(members)) if members.is_empty() => {}
                    _ => apart.push((path, item)),
                }
            }
        }
        preparation.apply(tx);
        for (path, item) in apart {
            self.overwrite(tx, &path, self.rows(&path, item)?)?;
        }
        Ok(true)
    }

    /// Removes the value at a path. Returns whether there was one.
    pub(crate) async fn remove<T: Transaction>(&self, tx: &T, path: &[Step]) -> Result<bool, Error> {
        let (begin, end) = self.range(path)?;
        if self.first(tx, &begin, &end).await?.is_none() {
            return Ok(false);
        }
        let Some((last, above)) = path.split_last() else {
            tx.clear_range(&begin, &end);
            return Ok(true);
        };
        let (above_begin, above_end) = self.range(above)?;
        match last {
            Step::Key(_) => {
                let alone = self.first(tx, &above_begin, &begin).await?.is_none()
                    && self.first(tx, &end, &above_end).await?.is_none();
                tx.clear_range(&begin, &end);
                if alone {
                    reachable!("hierarchy: the last member goes");
                    self.mark(tx, above, EMPTY_OBJECT);
                }
            }
            Step::Index(index) => {
                let behind = RangeOption::new(end, above_end.clone());
                let behind = read::all::<_, Error>(tx, behind, Isolation::Serializable).await?;
                let moved = self.moved_up(above, *index, behind)?;
                limits::transaction(bytes(begin.len(), &moved))?;
                tx.clear_range(&begin, &above_end);
                if moved.is_empty() {
                    if *index == 0 {
                        reachable!("hierarchy: the last element goes");
                        self.mark(tx, above, EMPTY_ARRAY);
                    }
                } else {
                    reachable!("hierarchy: elements move up");
                }
                for (key, value) in moved {
                    tx.set(&key, &value);
                }
            }
        }
        Ok(true)
    }

    /// The tuples of rows after a prefix of this length, in order, each with the key of its first row.
    pub(crate) fn tuples<'a>(
        &self,
        prefix: usize,
        rows: &'a [KeyValue],
    ) -> Result<(Vec<Tuple>, Vec<&'a [u8]>), Error> {
        let (mut tuples, mut keys) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        let mut rows = rows.iter().peekable();
        while let Some(row) = rows.next() {
            let foreign = || Error::foreign(&row.key);
            let mut tuple = scalars(&row.key[prefix..]).ok_or_else(foreign)?;
            keys.push(&row.key[..]);
            let pieces = [Value::from(PIECES), Value::from(0)];
            match self.place {
                Place::Key => {}
                Place::Value(_) if tuple.ends_with(&pieces) => {
                    tuple.truncate(tuple.len() - 2);
                    let start = row.key.len() - 1;
                    let mut text = row.value.to_vec();
                    for number in 1u64.. {
                        let mut key = row.key[..start].to_vec();
                        push_step(&mut key, &Step::Index(number));
                        let Some(next) = rows.next_if(|next| next.key == key) else { break };
                        text.extend_from_slice(&next.value);
                    }
                    tuple.push(String::from_utf8(text).map_err(|_| foreign())?.into());
                }
                Place::Value(_) => match &scalars(&row.value).ok_or_else(foreign)?[..] {
                    [leaf] => tuple.push(leaf.clone()),
                    _ => return Err(foreign()),
                },
            }
            tuples.push(tuple);
        }
        Ok((tuples, keys))
    }

    /// The key at which the rows of a path start.
    pub(crate) fn at(&self, path: &[Step]) -> Vec<u8> {
        let mut key = self.root.clone();
        path.iter().for_each(|step| push_step(&mut key, step));
        key
    }

    /// The range of the rows of a path. It does not include a name that continues another one after a zero
    /// byte: the range ends before the 0xff of its escape.
    pub(crate) fn range(&self, path: &[Step]) -> Result<(Vec<u8>, Vec<u8>), Error> {
        let mut begin = self.at(path);
        limits::key(&begin)?;
        let mut end = begin.clone();
        end.push(0xff);
        if let Place::Key = self.place {
            begin.push(0);
        }
        Ok((begin, end))
    }

    /// The rows of a value at a path, after checking FoundationDB's limits for each row and for all of them
    /// together.
    fn rows(&self, path: &[Step], item: &Value) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        leaves(path, item, &mut |path, leaf| {
            let mut key = self.at(path);
            let mut value = Vec::new();
            match (self.place, leaf) {
                (Place::Value(longest), Leaf::Scalar(Value::String(text))) if text.len() > longest => {
                    reachable!("document: a text is stored in pieces");
                    push_step_marker(&mut key, PIECES);
                    for (number, piece) in (0..).zip(text.as_bytes().chunks(longest.max(1))) {
                        let mut key = key.clone();
                        push_step(&mut key, &Step::Index(number));
                        limits::row(&key, piece)?;
                        rows.push((key, piece.to_vec()));
                    }
                    return Ok(());
                }
                (Place::Value(_), Leaf::Scalar(scalar)) => push_scalar(&mut value, scalar)?,
                (Place::Key, Leaf::Scalar(scalar)) => push_scalar(&mut key, scalar)?,
                (_, Leaf::Empty(marker)) => (key, value) = self.marker(path, marker),
            }
            limits::row(&key, &value)?;
            rows.push((key, value));
            Ok(())
        })?;
        limits::transaction(bytes(self.at(path).len(), &rows))?;
        Ok(rows)
    }

    /// Checks that `path` can be reached from the existing value, and returns what must be cleared before a
    /// write; `None` if there is no value and none should be created.
    ///
    /// Starts at the end of the path: existing rows there prove that all parents have the expected types, and
    /// then nothing else is read.
    async fn prepare<T: Transaction>(
        &self,
        tx: &T,
        path: &[Step],
        absent: Absent,
    ) -> Result<Option<Preparation>, Error> {
        let free = Preparation { marker: None };
        if path.is_empty() && absent == Absent::Create {
            return Ok(Some(free));
        }
        if self.shape(tx, path).await?.is_some() {
            return Ok(Some(free));
        }
        for depth in (0..path.len()).rev() {
            let above = &path[..depth];
            let Some(shape) = self.shape(tx, above).await? else { continue };
            let marker = match (&path[depth], shape) {
                (Step::Key(_), Shape::Object) => None,
                (Step::Key(_), Shape::Empty(EMPTY_OBJECT)) => Some(EMPTY_OBJECT),
                (Step::Key(_), _) => return Err(Error::NotAnObject(pointer(above))),
                (Step::Index(index), Shape::List) => {
                    appends(above, *index, self.length(tx, above).await?)?;
                    None
                }
                (Step::Index(index), Shape::Empty(EMPTY_ARRAY)) => {
                    appends(above, *index, 0)?;
                    Some(EMPTY_ARRAY)
                }
                (Step::Index(_), _) => return Err(Error::NotAList(pointer(above))),
            };
            into_nothing(path, depth + 1)?;
            return Ok(Some(Preparation { marker: marker.map(|marker| self.marker(above, marker).0) }));
        }
        if absent == Absent::Leave {
            return Ok(None);
        }
        into_nothing(path, 0)?;
        Ok(Some(free))
    }

    /// The kind of the value at a path that should hold an object. An existing member proves that it does,
    /// and changes of other members then do not conflict.
    async fn object<T: Transaction>(
        &self,
        tx: &T,
        path: &[Step],
        member: Option<&String>,
    ) -> Result<Option<Shape>, Error> {
        if let Some(name) = member {
            let (begin, end) = self.range(&child(path, Step::Key(name.clone())))?;
            if self.first(tx, &begin, &end).await?.is_some() {
                return Ok(Some(Shape::Object));
            }
        }
        let shape = self.shape(tx, path).await?;
        if shape == Some(Shape::Empty(EMPTY_OBJECT)) {
            reachable!("hierarchy: an empty object gets members");
        }
        Ok(shape)
    }

    /// The leaf at a path, if there is one.
    pub(crate) async fn leaf<T: Transaction>(&self, tx: &T, path: &[Step]) -> Result<Option<Value>, Error> {
        match self.shape(tx, path).await? {
            Some(Shape::Leaf) => self.get(tx, path, Isolation::Serializable).await,
            _ => Ok(None),
        }
    }

    /// The kind of the value at a path.
    pub(crate) async fn shape<T: Transaction>(&self, tx: &T, path: &[Step]) -> Result<Option<Shape>, Error> {
        let (begin, end) = self.range(path)?;
        let Some(row) = self.first(tx, &begin, &end).await? else { return Ok(None) };
        let mut tuple = scalars(&row.key[self.at(path).len()..]);
        if let (Place::Value(_), Some(tuple)) = (self.place, &mut tuple) {
            match tuple.first().and_then(Value::as_i64) {
                Some(PIECES) => return Ok(Some(Shape::Leaf)),
                // Completes the tuple, in place of the leaf.
                _ => tuple.push(Value::Null),
            }
        }
        shape(tuple, &row).map(Some)
    }

    /// The number of elements of the list at a path.
    async fn length<T: Transaction>(&self, tx: &T, path: &[Step]) -> Result<u64, Error> {
        let range = RangeOption::from(self.range(path)?).reversed().limit(1);
        let Some(row) = read::all::<_, Error>(tx, range, Isolation::Serializable).await?.pop() else {
            return Ok(0);
        };
        let last = scalars(&row.key[self.at(path).len()..]).and_then(|tuple| tuple.first()?.as_u64());
        last.and_then(|last| last.checked_add(1)).ok_or_else(|| Error::foreign(&row.key))
    }

    async fn first<T: Transaction>(
        &self,
        tx: &T,
        begin: &[u8],
        end: &[u8],
    ) -> Result<Option<KeyValue>, Error> {
        let range = RangeOption::new(begin.to_vec(), end.to_vec()).limit(1);
        Ok(read::all::<_, Error>(tx, range, Isolation::Serializable).await?.pop())
    }

    /// The rows of the elements after the one at `index`, each moved by one towards the start of the list.
    fn moved_up(&self, list: &[Step], index: u64, rows: Vec<KeyValue>) -> Result<Vec<Row>, Error> {
        let prefix = self.at(list);
        let moved = rows.into_iter().map(|row| {
            let foreign = || Error::foreign(&row.key);
            let (element, rest) = first_length(&row.key[prefix.len()..])
                .and_then(|length| row.key[prefix.len()..].split_at_checked(length))
                .ok_or_else(foreign)?;
            let element: u64 = foundationdb_tuple::unpack(element).map_err(|_| foreign())?;
            let before = element.checked_sub(1).filter(|before| *before >= index).ok_or_else(foreign)?;
            let mut key = prefix.clone();
            push_step(&mut key, &Step::Index(before));
            key.extend_from_slice(rest);
            Ok((key, row.value.to_vec()))
        });
        moved.collect()
    }

    /// Writes rows in place of everything at a path.
    fn overwrite<T: Transaction>(&self, tx: &T, path: &[Step], rows: Vec<Row>) -> Result<(), Error> {
        let (begin, end) = self.range(path)?;
        tx.clear_range(&begin, &end);
        for (key, value) in rows {
            tx.set(&key, &value);
        }
        Ok(())
    }

    fn mark<T: Transaction>(&self, tx: &T, path: &[Step], marker: i64) {
        let (key, value) = self.marker(path, marker);
        tx.set(&key, &value);
    }

    /// The row of an empty object or list.
    fn marker(&self, path: &[Step], marker: i64) -> (Vec<u8>, Vec<u8>) {
        let (mut key, null) = (self.at(path), foundationdb_tuple::pack(&None::<()>));
        push_step_marker(&mut key, marker);
        match self.place {
            Place::Value(_) => (key, null),
            Place::Key => {
                key.extend_from_slice(&null);
                (key, Vec::new())
            }
        }
    }
}

impl Preparation {
    fn apply<T: Transaction>(&self, tx: &T) {
        if let Some(marker) = &self.marker {
            reachable!("hierarchy: a marker makes room");
            tx.clear(marker);
        }
    }
}

fn push_step_marker(key: &mut Vec<u8>, marker: i64) {
    foundationdb_tuple::pack_into(&marker, key);
}

fn child(path: &[Step], step: Step) -> Vec<Step> {
    path.iter().cloned().chain([step]).collect()
}

/// Refuses an element that is not the next one of a list of this length.
fn appends(list: &[Step], index: u64, length: u64) -> Result<(), Error> {
    match index == length {
        true => Ok(()),
        false => Err(Error::Gap { at: pointer(list), index, length }),
    }
}

/// Refuses a path that continues from `depth` into a list that does not exist, unless it is at index 0.
fn into_nothing(path: &[Step], depth: usize) -> Result<(), Error> {
    (depth..path.len()).try_for_each(|at| match &path[at] {
        Step::Index(index) => appends(&path[..at], *index, 0),
        Step::Key(_) => Ok(()),
    })
}

/// The bytes that FoundationDB counts for rows that replace a range whose begin key has `begin` bytes: the
/// range between the rows is cleared piece by piece.
fn bytes(begin: usize, rows: &[Row]) -> usize {
    let gap = |length: usize| MUTATION_BYTES + 2 * length + 1;
    let row = |(key, value): &Row| gap(key.len()) + MUTATION_BYTES + key.len() + value.len();
    RANGE_BYTES + 2 * begin + 2 + gap(begin) + rows.iter().map(row).sum::<usize>()
}

/// The maximum that merging adds to it: the reads needed for each row, and the row's own range.
fn merging(rows: &[Row]) -> usize {
    rows.iter().map(|(key, _)| MUTATION_BYTES + 3 * RANGE_BYTES + 8 * (key.len() + 1)).sum()
}

#[cfg(test)]
mod tests {
    use super::{super::keys::tests::values, *};
    use crate::{
        limits::{TRANSACTION_SIZE_LIMIT, TooLarge},
        tx::KEY_SIZE_LIMIT,
    };
    use proptest::prelude::*;
    use serde_json::json;

    fn tree(place: Place) -> Tree {
        Tree { root: b"root".to_vec(), place }
    }

    /// The result of reading these rows.
    fn read(tree: &Tree, rows: Vec<Row>, path: &[Step]) -> Result<Option<Value>, Error> {
        let (begin, end) = tree.range(path)?;
        let rows: Vec<_> = rows
            .into_iter()
            .filter(|(key, _)| *key >= begin && *key < end)
            .map(|(key, value)| KeyValue::new(key, value))
            .collect();
        let (tuples, keys) = tree.tuples(tree.at(path).len(), &rows)?;
        assert_eq!(tuples.len(), keys.len());
        build(&tuples).map_err(|odd| Error::NotAValue(format!("{odd:?}")))
    }

    fn place() -> impl Strategy<Value = Place> {
        prop_oneof![Just(Place::Key), (1..9usize).prop_map(Place::Value), Just(Place::Value(10_000))]
    }

    #[test]
    fn each_byte_of_a_key_counts_as_often_as_foundationdb_counts_it() {
        // The cleared range: both ends, as a mutation and as a conflict range.
        assert_eq!(bytes(9, &[]) - bytes(8, &[]), 4);
        // A row: its key in its mutation, and at both ends of the gap that is cleared after it.
        let with = |key: usize, value: usize| bytes(8, &[(vec![0; key], vec![0; value])]);
        assert_eq!((with(9, 5) - with(8, 5), with(8, 6) - with(8, 5)), (3, 1));
        // Merging: four more pairs of ends per row, the same for each row.
        let rows = |count: usize, key: usize| merging(&vec![(vec![0; key], Vec::new()); count]);
        assert_eq!((rows(1, 9) - rows(1, 8), rows(3, 8)), (8, 3 * rows(1, 8)));
        // What is counted beside the bytes of keys and values.
        assert_eq!((bytes(0, &[]), bytes(0, &[(Vec::new(), Vec::new())]), rows(1, 0)), (71, 160, 124));
    }

    proptest! {
        #[test]
        fn every_value_and_each_part_of_it_is_read_from_its_rows(place in place(), item in values()) {
            let tree = tree(place);
            let rows = tree.rows(&[], &item).unwrap();
            prop_assert!(rows.is_sorted());
            let again = read(&tree, rows.clone(), &[]).unwrap().unwrap();
            prop_assert_eq!(again.to_string(), item.to_string());
            let mut parts: Vec<(Vec<Step>, &Value)> = vec![(Vec::new(), &item)];
            while let Some((path, part)) = parts.pop() {
                let again = read(&tree, rows.clone(), &path).unwrap();
                prop_assert_eq!(again.map(|v| v.to_string()), Some(part.to_string()), "{}", pointer(&path));
                let at = |step| child(&path, step);
                match part {
                    Value::Object(m) => parts.extend(m.iter().map(|(k, v)| (at(Step::Key(k.clone())), v))),
                    Value::Array(l) => parts.extend((0..).zip(l).map(|(i, v)| (at(Step::Index(i)), v))),
                    _ => {
                        let beyond = read(&tree, rows.clone(), &at("a".into())).unwrap();
                        prop_assert_eq!(beyond, None);
                    }
                }
            }
        }
    }

    #[test]
    fn what_continues_a_name_is_not_below_it() {
        let tree = tree(Place::Key);
        let rows = tree.rows(&[], &json!({"a": 1, "a\0": 2, "a\0b": {"c": 3}, "ab": 4})).unwrap();
        assert_eq!(read(&tree, rows.clone(), &["a".into()]), Ok(Some(json!(1))));
        assert_eq!(read(&tree, rows.clone(), &["a\0b".into()]), Ok(Some(json!({"c": 3}))));
        assert_eq!(read(&tree, rows, &["".into()]), Ok(None));
    }

    #[test]
    fn rows_of_no_value_are_foreign_by_key() {
        let (hierarchy, document) = (tree(Place::Key), tree(Place::Value(10)));
        let row = |key: &[u8], value: &[u8]| KeyValue::new([b"root", key].concat(), value.to_vec());
        let foreign = |tree: &Tree, row: KeyValue| {
            assert_eq!(tree.tuples(4, std::slice::from_ref(&row)).unwrap_err(), Error::foreign(&row.key));
        };
        foreign(&hierarchy, row(b"\x01bytes\0", b""));
        foreign(&hierarchy, row(b"\x02endless", b""));
        foreign(&document, row(b"\x15\x01", b"\x15\x01\x15\x01"));
        foreign(&document, row(b"\x15\x01", b""));
        let mut pieces = vec![0x02, b'a', 0];
        push_step_marker(&mut pieces, PIECES);
        push_step(&mut pieces, &Step::Index(0));
        foreign(&document, row(&pieces, b"\xff"));
    }

    #[test]
    fn what_does_not_fit_is_refused_by_its_key() {
        let key = |error: Error| match error {
            Error::TooLarge(TooLarge::Key { bytes, .. }) => bytes,
            other => panic!("{other}"),
        };
        // The root, the leaf's type code and its terminator.
        let longest = KEY_SIZE_LIMIT - 4 - 2;
        let leaf = |bytes: usize| Value::from("x".repeat(bytes));
        assert!(tree(Place::Key).rows(&[], &leaf(longest)).is_ok());
        assert_eq!(key(tree(Place::Key).rows(&[], &leaf(longest + 1)).unwrap_err()), KEY_SIZE_LIMIT + 1);
        let name = Step::Key("x".repeat(longest));
        assert!(tree(Place::Value(10)).rows(std::slice::from_ref(&name), &Value::Null).is_ok());
        assert_eq!(key(tree(Place::Key).rows(&[name], &Value::Null).unwrap_err()), KEY_SIZE_LIMIT + 1);

        let large = Value::from(vec![leaf(9_000); TRANSACTION_SIZE_LIMIT / 9_000]);
        let refused = tree(Place::Value(10_000)).rows(&[], &large).unwrap_err();
        assert!(matches!(refused, Error::TooLarge(TooLarge::Transaction { .. })), "{refused}");
    }
}
