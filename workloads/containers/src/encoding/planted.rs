//! Planted bugs: keys encoded wrongly, and ranges read wrongly.
//!
//! The order of wrong keys is wrong, or two of them are the same. Their values begin with the numbers of the
//! parts of the keys, so that they can be read back.

use super::{Encoding, EncodingAnswer, EncodingOp, Kind, Populations, encode, populations, space};
use crate::shared::in_order;
use foundationdb_tuple::{Bytes as TupleBytes, pack};
use futures::TryFutureExt;
use shaketable::{
    prelude::*,
    specimen::{Answer, Content, Recorded, concluded, ran},
};
use shaketable_layers::encoding::{Column, Error, Part, Row};
use shaketable_tx::strinc;

/// The columns that a bug needs, and whether the layer cannot read the keys that it writes.
pub(super) fn needs(bug: Option<&str>) -> (&'static [Kind], bool) {
    match bug {
        Some("tab-joined" | "unterminated" | "utf-16") => (&[Kind::Text, Kind::Text], true),
        Some("float-sign-only") => (&[Kind::Double], true),
        Some("collation-alone") => (&[Kind::English(true)], true),
        Some("text-runs-on") => (&[Kind::Text, Kind::Unsigned(1)], true),
        Some("range-to-ff") => (&[Kind::Text, Kind::Unsigned(1)], false),
        _ => (&[], false),
    }
}

/// How a transaction ended; `None` if the bug does not change it.
type Ended = Option<Outcome<Answer<EncodingAnswer>>>;

/// The bytes of a part in a key, if a bug encodes it wrongly.
type Wrong = fn(&Column, &Part) -> Option<Vec<u8>>;

/// A text in a column by code point.
fn text<'a>(column: &Column, part: &'a Part) -> Option<&'a str> {
    match (column, part) {
        (Column::Text, Part::Text(text)) => Some(text),
        _ => None,
    }
}

#[shaketable::planted]
impl Encoding {
    /// Texts are joined with tabs.
    #[bug(*, "the guide's tuple_to_key_with_tab")]
    async fn tab_joined(&self, session: &mut Session<Db>, ops: &[EncodingOp]) -> Ended {
        let wrong: Wrong = |_, part| match part {
            Part::Text(text) => Some([text.as_bytes(), b"\t"].concat()),
            _ => None,
        };
        self.wrongly(session, ops, wrong).await
    }

    /// Of a float only the most significant bit is inverted.
    #[bug(*, "the older guide's note on floats")]
    async fn float_sign_only(&self, session: &mut Session<Db>, ops: &[EncodingOp]) -> Ended {
        let wrong: Wrong = |_, part| match part {
            Part::Double(x) => Some((x.to_bits() ^ (1 << 63)).to_be_bytes().to_vec()),
            _ => None,
        };
        self.wrongly(session, ops, wrong).await
    }

    /// Text has no terminator in the key.
    #[bug(*, "concatenated parts")]
    async fn unterminated(&self, session: &mut Session<Db>, ops: &[EncodingOp]) -> Ended {
        self.wrongly(session, ops, |column, part| text(column, part).map(Vec::from)).await
    }

    /// Text is terminated as in a tuple, and the next part may begin with 0xff.
    #[bug(*, "raw bytes after a tuple")]
    async fn text_runs_on(&self, session: &mut Session<Db>, ops: &[EncodingOp]) -> Ended {
        self.wrongly(session, ops, |column, part| Some(pack(&text(column, part)?))).await
    }

    /// Text is written as UTF-16.
    #[bug(*, "a language's own strings")]
    async fn utf_16(&self, session: &mut Session<Db>, ops: &[EncodingOp]) -> Ended {
        let wrong: Wrong = |column, part| {
            let units: Vec<u8> = text(column, part)?.encode_utf16().flat_map(u16::to_be_bytes).collect();
            Some(pack(&TupleBytes::from(units)))
        };
        self.wrongly(session, ops, wrong).await
    }

    /// Of collated text only the collation key is stored.
    #[bug(*, "a key with less information than its text")]
    async fn collation_alone(&self, session: &mut Session<Db>, ops: &[EncodingOp]) -> Ended {
        let wrong: Wrong = |column, part| match (column, part) {
            (Column::Collated(by), Part::Text(text)) => Some(pack(&TupleBytes::from(by.key(text)))),
            _ => None,
        };
        self.wrongly(session, ops, wrong).await
    }

    /// The range under a prefix ends at the next byte 0xff.
    #[bug(under, "a subspace's range around raw bytes")]
    async fn range_to_ff(&self, tx: &Tx, isolation: Isolation, prefix: &[u8]) -> Result<Populations, Error> {
        let (prefix, columns) = (self.key(prefix), self.columns());
        let mut rows = self.layer()?.under(tx, &prefix, isolation).await?;
        let end = [&encode(&columns, &prefix)?[..], b"\xff"].concat();
        rows.retain(|(parts, _)| encode(&columns, parts).is_ok_and(|key| key < end));
        Ok(populations(rows))
    }

    /// A page is read at snapshot, whatever isolation was requested.
    #[bug(page, "a dropped conflict range")]
    async fn page_at_snapshot(
        &self,
        tx: &Tx,
        prefix: &[u8],
        after: Option<Vec<u8>>,
        most: usize,
    ) -> Result<Populations, Error> {
        self.page(tx, Snapshot, prefix, after, most).await
    }

    /// Does the calls of a transaction with keys that are encoded wrongly.
    async fn wrongly(&self, session: &mut Session<Db>, ops: &[EncodingOp], wrong: Wrong) -> Ended {
        let db = session.database().clone();
        let env = db.env();
        let calls = |tx: Tx| async move { in_order(ops, |op| self.call(&tx, env, op, wrong)).await };
        Some(match ops.iter().all(Self::is_read_only) {
            true => ran(db.run(|tx, _| calls(tx)).await),
            false => concluded(session.apply(|tx| calls(tx).map_ok(Recorded)).await),
        })
    }

    async fn call(&self, tx: &Tx, env: &Env, op: &EncodingOp, wrong: Wrong) -> Result<EncodingAnswer, Error> {
        let encode = |numbers: &[u8], whole| {
            let model = self.model();
            let (mut key, parts) = (space().into_bytes(), model.accepted(numbers, whole)?);
            for (column, part) in model.columns.iter().zip(&parts) {
                match wrong(column, part) {
                    Some(bytes) => key.extend(bytes),
                    None => column.encode(part, &mut key)?,
                }
            }
            Ok::<_, Error>(key)
        };
        Ok(match op {
            EncodingOp::set { key, population } => {
                let value = [&[key.len() as u8], &key[..], population.to_string().as_bytes()].concat();
                tx.set(&encode(key, true)?, &value);
                EncodingAnswer::set
            }
            EncodingOp::delete { key } => {
                tx.clear(&encode(key, true)?);
                EncodingAnswer::delete
            }
            EncodingOp::get { key } => {
                let value = tx.get(&encode(key, true)?, Serializable).await?;
                EncodingAnswer::get(value.map(|value| Content::from(apart(&value).1)))
            }
            EncodingOp::under { prefix } => {
                EncodingAnswer::under(populations(self.numbered(tx, encode(prefix, false)?).await?))
            }
            other => self.perform(tx, env, other, Serializable).await?,
        })
    }

    /// Reads the rows below a prefix, in the order of the wrong keys.
    pub(super) async fn numbered(&self, tx: &Tx, prefix: Vec<u8>) -> tx::Result<Vec<Row>> {
        let end = strinc(&prefix).unwrap_or_default();
        let rows = tx.get_range_all(RangeOption::new(prefix, end), Serializable).await?;
        let row = |row: &tx::KeyValue| {
            let (numbers, population) = apart(&row.value);
            (self.key(numbers), Bytes::copy_from_slice(population))
        };
        Ok(rows.iter().map(row).collect())
    }
}

/// The numbers of the parts that a value begins with, and the population.
fn apart(value: &[u8]) -> (&[u8], &[u8]) {
    value[1..].split_at(usize::from(value[0]))
}
