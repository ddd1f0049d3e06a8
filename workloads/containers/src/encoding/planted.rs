//! Planted bugs: keys encoded wrongly.
//!
//! The order of the keys is wrong, or two keys are the same. The values contain the numbers of the parts of
//! their keys, so that wrong keys can be read back.

use super::{Answer, Encoding, Kind, Op, model::answer, space};
use bytes::Bytes;
use foundationdb_tuple::{Bytes as TupleBytes, pack};
use shaketable::{
    specimen::{Content, UNRECORDED},
    weakened::{Flaw, everything, flawed},
};
use shaketable_layers::encoding::{Column, Error, Ordered, Part, Row};
use shaketable_tx::{
    self as tx,
    Isolation::{self, Serializable, Snapshot},
    RangeOption, Transaction, Tx, strinc,
};

shaketable::planted_bugs! {
    Unrecorded = UNRECORDED, "a population is set again after an unknown result without an operation record", "a blind write done twice";
    TabJoined = "tab-joined", "texts are joined with tabs", "the guide's tuple_to_key_with_tab";
    FloatSignOnly = "float-sign-only", "of a float only the most significant bit is inverted", "the older guide's note on floats";
    Unterminated = "unterminated", "text has no terminator in the key", "concatenated parts";
    TextRunsOn = "text-runs-on", "text is terminated as in a tuple, and the next part may begin with 0xff", "raw bytes after a tuple";
    Utf16 = "utf-16", "text is written as UTF-16", "a language's own strings";
    CollationAlone = "collation-alone", "of collated text only the collation key is stored", "a key with less information than its text";
    RangeToFf = "range-to-ff", "the range under a prefix ends at the next byte 0xff", "a subspace's range around raw bytes";
    PageAtSnapshot = "page-at-snapshot", "a page is read at snapshot, whatever isolation was requested", "a dropped conflict range";
}

impl Planted {
    /// The columns that the bug needs.
    pub(super) fn kinds(self) -> &'static [Kind] {
        match self {
            Planted::TabJoined | Planted::Unterminated | Planted::Utf16 => &[Kind::Text, Kind::Text],
            Planted::FloatSignOnly => &[Kind::Double],
            Planted::CollationAlone => &[Kind::English(true)],
            Planted::RangeToFf | Planted::TextRunsOn => &[Kind::Text, Kind::Unsigned(1)],
            Planted::Unrecorded | Planted::PageAtSnapshot => &[],
        }
    }

    /// Whether the layer cannot read the keys that the bug writes.
    pub(super) fn has_own_keys(self) -> bool {
        !matches!(self, Planted::Unrecorded | Planted::RangeToFf | Planted::PageAtSnapshot)
    }
}

/// Performs a call with the bug, or correctly if the bug does not change this call.
pub async fn perform(
    planted: Planted,
    workload: &Encoding,
    tx: &Tx,
    op: &Op,
    isolation: Isolation,
) -> Result<Answer, Error> {
    let columns = workload.columns()?;
    let encode = |parts: &[Part]| encode(planted, &columns, parts);
    if !planted.has_own_keys() {
        return match (planted, op) {
            (Planted::PageAtSnapshot, Op::Page(..)) => workload.call(tx, op, Snapshot).await,
            (Planted::RangeToFf, Op::Under(prefix)) => {
                let (map, prefix) = (Ordered::new(space(), columns.clone())?, workload.key(prefix));
                let mut rows = map.under(tx, &prefix, Serializable).await?;
                let end = [&encode(&prefix)[..], b"\xff"].concat();
                rows.retain(|(parts, _)| encode(parts) < end);
                Ok(answer(&rows))
            }
            _ => workload.call(tx, op, isolation).await,
        };
    }
    // What must be refused is refused correctly.
    let right = workload.call(&flawed(tx, Flaw::Unwritten, everything()), op, Serializable).await?;
    let key = |numbers: &[u8]| encode(&workload.key(numbers));
    match op {
        Op::Set(numbers, population) => {
            let value = [&[numbers.len() as u8], &numbers[..], population.to_string().as_bytes()].concat();
            tx.set(&key(numbers), &value);
        }
        Op::Delete(numbers) => tx.clear(&key(numbers)),
        Op::Get(numbers) => {
            let value = tx.get(&key(numbers), Serializable).await?;
            return Ok(Answer::Population(value.map(|value| Content::from(&apart(&value).1))));
        }
        Op::Under(prefix) => return Ok(answer(&under(workload, tx, key(prefix)).await?)),
        _ => {}
    }
    Ok(right)
}

/// A key or a prefix, as the bug encodes it.
fn encode(planted: Planted, columns: &[Column], parts: &[Part]) -> Vec<u8> {
    let mut key = space().into_bytes();
    for (column, part) in columns.iter().zip(parts) {
        let bytes = match (planted, column, part) {
            (Planted::TabJoined, _, Part::Text(text)) => [text.as_bytes(), b"\t"].concat(),
            (Planted::FloatSignOnly, _, Part::Double(x)) => (x.to_bits() ^ (1 << 63)).to_be_bytes().to_vec(),
            (Planted::Unterminated, Column::Text, Part::Text(text)) => text.as_bytes().to_vec(),
            (Planted::TextRunsOn, Column::Text, Part::Text(text)) => pack(text),
            (Planted::Utf16, Column::Text, Part::Text(text)) => {
                pack(&TupleBytes::from(text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>()))
            }
            (Planted::CollationAlone, Column::Collated(collation), Part::Text(text)) => {
                pack(&TupleBytes::from(collation.key(text)))
            }
            // Parts that must be refused were refused before.
            _ => {
                column.encode(part, &mut key).unwrap_or_default();
                continue;
            }
        };
        key.extend(bytes);
    }
    key
}

/// The numbers of the parts that a value contains, and the population.
fn apart(value: &[u8]) -> (&[u8], Bytes) {
    let (numbers, population) = value[1..].split_at(usize::from(value[0]));
    (numbers, Bytes::copy_from_slice(population))
}

/// Reads what is below a prefix, in the order of the wrong keys.
pub async fn under(workload: &Encoding, tx: &Tx, prefix: Vec<u8>) -> tx::Result<Vec<Row>> {
    let end = strinc(&prefix).unwrap_or_default();
    let rows = tx.get_range_all(RangeOption::new(prefix, end), Serializable).await?;
    let row = |row: &tx::KeyValue| {
        let (numbers, population) = apart(&row.value);
        (workload.key(numbers), population)
    };
    Ok(rows.iter().map(row).collect())
}
