//! Planted bugs: keys encoded wrongly.
//!
//! The order of the keys is wrong, or two keys are the same. The values contain the numbers of the parts of
//! their keys, so that wrong keys can be read back.

use super::{
    Answer, Encoding, Kind, Op,
    columns::{collation, text},
    model::answer,
    space,
};
use bytes::Bytes;
use shaketable::specimen::{Content, UNRECORDED};
use shaketable_layers::encoding::{Column, Error, Ordered, Part, Row};
use shaketable_tx::{
    self as tx,
    Isolation::{self, Serializable, Snapshot},
    RangeOption, Transaction, strinc,
};

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a population is set again after an unknown result without an operation record", "a blind write done twice";
    TabJoined = "tab-joined", "parts are written as text and joined with tabs", "the guide's tuple_to_key_with_tab";
    FloatSignOnly = "float-sign-only", "of a float only the most significant bit is inverted", "the older guide's note on floats";
    SignBitKept = "sign-bit-kept", "signed integers keep their sign bit", "two's complement as it is";
    LittleEndian = "little-endian", "integers are little-endian", "a machine's own order of bytes";
    Unterminated = "unterminated", "text has no terminator in the key", "concatenated parts";
    TextRunsOn = "text-runs-on", "text is terminated as in a tuple, and the next part may begin with 0xff", "raw bytes after a tuple";
    Utf16 = "utf-16", "text is written as UTF-16", "a language's own strings";
    LowerCase = "lower-case", "collated text is converted to lower case", "the naive collation";
    CollationAlone = "collation-alone", "of collated text only the collation key is stored", "a key with less information than its text";
    RangeToFf = "range-to-ff", "the range under a prefix ends at the next byte 0xff", "a subspace's range around raw bytes";
    Wraps = "wraps", "a number that does not fit loses its first bytes", "a cast that wraps around";
    LastAgain = "last-again", "a page begins with the last row of the page before", "a cursor that is the last key";
    PageAtSnapshot = "page-at-snapshot", "a page is read at snapshot, whatever isolation was requested", "a dropped conflict range";
    Blunt = "blunt", "texts that the collation does not distinguish are compared as equal", "an order that is not total";
}

impl Planted {
    /// The columns that the bug needs.
    pub(super) fn kinds(self) -> &'static [Kind] {
        match self {
            Planted::TabJoined | Planted::Unterminated => &[Kind::Text, Kind::Text],
            Planted::FloatSignOnly => &[Kind::Double],
            Planted::SignBitKept => &[Kind::Signed(8)],
            Planted::LittleEndian => &[Kind::Unsigned(8)],
            Planted::Utf16 => &[Kind::Text],
            Planted::LowerCase => &[Kind::English(false)],
            Planted::CollationAlone => &[Kind::English(true)],
            Planted::RangeToFf | Planted::TextRunsOn => &[Kind::Text, Kind::Unsigned(1)],
            Planted::Wraps => &[Kind::Unsigned(2), Kind::Signed(1)],
            Planted::Unrecorded | Planted::LastAgain | Planted::PageAtSnapshot | Planted::Blunt => &[],
        }
    }

    /// Whether the layer cannot read the keys that the bug writes.
    pub(super) fn has_own_keys(self) -> bool {
        !matches!(
            self,
            Planted::Unrecorded
                | Planted::RangeToFf
                | Planted::Wraps
                | Planted::LastAgain
                | Planted::PageAtSnapshot
                | Planted::Blunt
        )
    }
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform<T: Transaction>(
    planted: Planted,
    workload: &Encoding,
    tx: &T,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let columns = workload.columns()?;
    let map = Ordered::new(space(), columns.clone())?;
    match (planted, op) {
        (Planted::Wraps, Op::Set(numbers, population)) => {
            let set = workload.call(tx, op, Serializable).await;
            let Err(Error::OutOfRange { .. }) = set else { return set };
            let narrow = |(column, part): (&Column, Part)| match (column, part) {
                (Column::Unsigned(bytes), Part::Unsigned(n)) => {
                    Part::Unsigned(n & u64::MAX >> (64 - 8 * u32::from(*bytes)))
                }
                (Column::Signed(bytes), Part::Signed(n)) => {
                    let unused = 64 - 8 * u32::from(*bytes);
                    Part::Signed(n << unused >> unused)
                }
                (_, part) => part,
            };
            let key: Vec<Part> = columns.iter().zip(workload.key(numbers)).map(narrow).collect();
            map.set(tx, &key, population.to_string().as_bytes()).await?;
            Ok(Answer::Written)
        }
        (Planted::LastAgain, Op::Page(prefix, Some(after), most)) if *most > 0 => {
            let mut rows = Vec::new();
            let (prefix, after) = (workload.key(prefix), workload.key(after));
            let page = map.page(tx, &prefix, Some(&after), *most, Serializable).await?;
            if after.starts_with(&prefix)
                && let Some(value) = map.get(tx, &after, Serializable).await?
            {
                rows.push((after, value));
            }
            rows.extend(page);
            rows.truncate(*most);
            Ok(answer(&rows))
        }
        (Planted::PageAtSnapshot, Op::Page(..)) => workload.call(tx, op, Snapshot).await,
        (Planted::Blunt, Op::Compare(a, b, tells)) => {
            tx.get(space().bytes(), Serializable).await?;
            let (collation, a, b) = (collation(*tells)?, text(*a), text(*b));
            let (a, b) = (collation.key(a), collation.key(b));
            Ok(Answer::Compared(a.cmp(&b) as i8, a == b))
        }
        (Planted::RangeToFf, Op::Under(prefix)) => {
            let right = map.under(tx, &workload.key(prefix), Serializable).await?;
            let end = [&encode(planted, &columns, &workload.key(prefix))[..], b"\xff"].concat();
            let to_ff = |(parts, _): &Row| encode(planted, &columns, parts) < end;
            Ok(answer(&right.into_iter().filter(to_ff).collect::<Vec<_>>()))
        }
        _ if planted.has_own_keys() => {
            perform_with_keys(workload, tx, op, &map, |parts| encode(planted, &columns, parts)).await
        }
        _ => workload.call(tx, op, isolation).await,
    }
}

/// Performs a call with keys that `encode` makes. What must be refused is refused correctly.
async fn perform_with_keys<T: Transaction>(
    workload: &Encoding,
    tx: &T,
    op: &Op,
    map: &Ordered,
    encode: impl Fn(&[Part]) -> Vec<u8>,
) -> Result<Answer, Error> {
    let key = |numbers: &[u8]| encode(&workload.key(numbers));
    match op {
        Op::Set(numbers, population) => {
            map.get(tx, &workload.key(numbers), Snapshot).await?;
            tx.set(&key(numbers), &with(numbers, &population.to_string()));
            Ok(Answer::Written)
        }
        Op::Get(numbers) => {
            map.get(tx, &workload.key(numbers), Serializable).await?;
            let value = tx.get(&key(numbers), Serializable).await?.map(|value| without(&value).1);
            Ok(Answer::Population(value.as_ref().map(Content::from)))
        }
        Op::Delete(numbers) => {
            map.delete(tx, &workload.key(numbers)).await?;
            tx.clear(&key(numbers));
            Ok(Answer::Written)
        }
        Op::Under(prefix) => {
            map.under(tx, &workload.key(prefix), Serializable).await?;
            let begin = key(prefix);
            let end = strinc(&begin).unwrap_or_default();
            Ok(answer(&rows(workload, tx, RangeOption::new(begin, end)).await?))
        }
        Op::Between(from, to) => {
            map.between(tx, &workload.key(from), &workload.key(to), Serializable).await?;
            match (key(from), key(to)) {
                (begin, end) if begin >= end => Ok(answer(&[])),
                (begin, end) => Ok(answer(&rows(workload, tx, RangeOption::new(begin, end)).await?)),
            }
        }
        _ => workload.call(tx, op, Serializable).await,
    }
}

/// A key or a prefix, as the bug encodes it.
fn encode(planted: Planted, columns: &[Column], parts: &[Part]) -> Vec<u8> {
    let mut key = space().into_bytes();
    for (at, (column, part)) in columns.iter().zip(parts).enumerate() {
        match (planted, column, part) {
            (Planted::TabJoined, _, part) => {
                if at > 0 {
                    key.push(b'\t');
                }
                match part {
                    Part::Text(text) => key.extend(text.as_bytes()),
                    Part::Unsigned(n) => key.extend(n.to_string().as_bytes()),
                    Part::Signed(n) => key.extend(n.to_string().as_bytes()),
                    Part::Single(x) => key.extend(x.to_string().as_bytes()),
                    Part::Double(x) => key.extend(x.to_string().as_bytes()),
                }
            }
            (Planted::FloatSignOnly, Column::Double, Part::Double(x)) => {
                key.extend((x.to_bits() ^ (1 << 63)).to_be_bytes());
            }
            (Planted::SignBitKept, Column::Signed(8), Part::Signed(n)) => key.extend(n.to_be_bytes()),
            (Planted::LittleEndian, Column::Unsigned(8), Part::Unsigned(n)) => key.extend(n.to_le_bytes()),
            (Planted::Unterminated, Column::Text, Part::Text(text)) => key.extend(text.as_bytes()),
            (Planted::TextRunsOn, Column::Text, Part::Text(text)) => {
                key.extend(foundationdb_tuple::pack(text))
            }
            (Planted::Utf16, Column::Text, Part::Text(text)) => {
                let units = text.encode_utf16().flat_map(u16::to_be_bytes);
                key.extend(foundationdb_tuple::pack(&foundationdb_tuple::Bytes::from(
                    units.collect::<Vec<_>>(),
                )));
            }
            (Planted::LowerCase, Column::Collated(_), Part::Text(text)) => {
                key.extend(foundationdb_tuple::pack(&text.to_lowercase()));
            }
            (Planted::CollationAlone, Column::Collated(collation), Part::Text(text)) => {
                key.extend(foundationdb_tuple::pack(&foundationdb_tuple::Bytes::from(collation.key(text))));
            }
            // Parts that must be refused were refused before.
            _ => column.encode(part, &mut key).unwrap_or_default(),
        }
    }
    key
}

/// A value, with the numbers of its key's parts.
fn with(numbers: &[u8], value: &str) -> Vec<u8> {
    [&[numbers.len() as u8], numbers, value.as_bytes()].concat()
}

/// The numbers, and the value.
fn without(value: &[u8]) -> (Vec<u8>, Bytes) {
    let (numbers, value) = value[1..].split_at(usize::from(value[0]));
    (numbers.to_vec(), Bytes::copy_from_slice(value))
}

async fn rows<T: Transaction>(workload: &Encoding, tx: &T, range: RangeOption) -> tx::Result<Vec<Row>> {
    let rows = tx.get_range_all(range, Serializable).await?;
    let row = |row: &tx::KeyValue| {
        let (numbers, value) = without(&row.value);
        (workload.key(&numbers), value)
    };
    Ok(rows.iter().map(row).collect())
}

/// Reads everything, in the order of the wrong keys.
pub async fn stored<T: Transaction>(workload: &Encoding, tx: &T) -> tx::Result<Vec<Row>> {
    let begin = space().into_bytes();
    let end = strinc(&begin).unwrap_or_default();
    rows(workload, tx, RangeOption::new(begin, end)).await
}
