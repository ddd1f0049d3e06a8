//! The sequential model: keys and their populations, in the order of the values of their parts.

use super::{
    Answer, Encoding, Kind, Op, Shown,
    columns::{collation, seen, text},
    operations::large,
    space,
};
use shaketable::specimen::Content;
use shaketable_layers::encoding::{Column, Error, Part, Row};
use shaketable_tx::limits;
use std::cmp::Ordering;

/// The expected content, in order.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub(super) rows: Vec<(Vec<Part>, Content)>,
}

impl PartialEq for Model {
    fn eq(&self, other: &Model) -> bool {
        shown(&self.rows) == shown(&other.rows)
    }
}

fn shown(rows: &[(Vec<Part>, Content)]) -> Vec<(Vec<Shown>, Content)> {
    rows.iter().map(|(key, value)| (key.iter().map(Shown::from).collect(), value.clone())).collect()
}

pub(super) fn answer(rows: &[Row]) -> Answer {
    Answer::Populations(shown(&populations(rows)))
}

pub(super) fn populations(rows: &[Row]) -> Vec<(Vec<Part>, Content)> {
    rows.iter().map(|(key, value)| (key.clone(), Content::from(value))).collect()
}

/// Compares the values of two keys, up to the length of the shorter one.
fn compare(columns: &[Column], a: &[Part], b: &[Part]) -> Ordering {
    let parts = columns.iter().zip(a.iter().zip(b));
    let part = |(column, parts): (&Column, (&Part, &Part))| match (column, parts) {
        (_, (Part::Unsigned(a), Part::Unsigned(b))) => a.cmp(b),
        (_, (Part::Signed(a), Part::Signed(b))) => a.cmp(b),
        (Column::Collated(collation), (Part::Text(a), Part::Text(b))) => collation.compare(a, b),
        (_, (Part::Text(a), Part::Text(b))) => a.cmp(b),
        (_, (Part::Single(a), Part::Single(b))) => a.total_cmp(b),
        (_, (Part::Double(a), Part::Double(b))) => a.total_cmp(b),
        _ => Ordering::Equal,
    };
    parts.map(part).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

impl Encoding {
    /// Performs one call on the model.
    pub(super) fn replayed(&self, model: &mut Model, op: &Op) -> Result<Answer, Error> {
        let columns = self.columns()?;
        let rows = &mut model.rows;
        let place = |rows: &[(Vec<Part>, Content)], key: &[Part]| {
            rows.binary_search_by(|(other, _)| compare(&columns, other, key))
        };
        Ok(match op {
            Op::Set(key, _) | Op::SetLarge(key, _) => {
                let key = self.key(key);
                self.accepts(&columns, &key, true)?;
                let value = match op {
                    Op::Set(_, population) => population.to_string().into_bytes(),
                    Op::SetLarge(_, beyond) => large(*beyond),
                    _ => Vec::new(),
                };
                let mut encoded = space().into_bytes();
                columns.iter().zip(&key).try_for_each(|(column, part)| column.encode(part, &mut encoded))?;
                limits::row(&encoded, &value)?;
                match place(rows, &key) {
                    Ok(at) => rows[at].1 = Content::from(&value),
                    Err(at) => rows.insert(at, (key, Content::from(&value))),
                }
                Answer::Written
            }
            Op::Get(key) => {
                let key = self.key(key);
                self.accepts(&columns, &key, true)?;
                Answer::Population(place(rows, &key).ok().map(|at| rows[at].1.clone()))
            }
            Op::Delete(key) => {
                let key = self.key(key);
                self.accepts(&columns, &key, true)?;
                if let Ok(at) = place(rows, &key) {
                    rows.remove(at);
                }
                Answer::Written
            }
            Op::Under(prefix) => {
                let prefix = self.key(prefix);
                self.accepts(&columns, &prefix, false)?;
                let under = rows.iter().filter(|(key, _)| compare(&columns, key, &prefix).is_eq());
                Answer::Populations(shown(&under.cloned().collect::<Vec<_>>()))
            }
            Op::Between(from, to) => {
                let (from, to) = (self.key(from), self.key(to));
                self.accepts(&columns, &from, false)?;
                self.accepts(&columns, &to, false)?;
                let is_between = |key: &[Part]| {
                    compare(&columns, key, &from).is_ge() && compare(&columns, key, &to).is_lt()
                };
                let between = rows.iter().filter(|(key, _)| is_between(key));
                Answer::Populations(shown(&between.cloned().collect::<Vec<_>>()))
            }
            Op::Page(prefix, after, most) => {
                let prefix = self.key(prefix);
                self.accepts(&columns, &prefix, false)?;
                let after = after.as_ref().map(|after| self.key(after));
                after.as_ref().map_or(Ok(()), |after| self.accepts(&columns, after, true))?;
                let is_behind =
                    |key: &[Part]| after.as_ref().is_none_or(|after| compare(&columns, key, after).is_gt());
                let under = rows.iter().filter(|(key, _)| compare(&columns, key, &prefix).is_eq());
                let page = under.filter(|(key, _)| is_behind(key)).take(*most);
                Answer::Populations(shown(&page.cloned().collect::<Vec<_>>()))
            }
            Op::Width(bytes) => match bytes {
                1..=8 => Answer::Encoded(2 * usize::from(*bytes)),
                _ => return Err(Error::Width(*bytes)),
            },
            Op::Compare(a, b, tells) => {
                let (collation, a, b) = (collation(*tells)?, text(*a), text(*b));
                let keys = collation.key(a).cmp(&collation.key(b));
                Answer::Compared(keys.then(a.cmp(b)) as i8, seen(a, *tells) == seen(b, *tells))
            }
            Op::NoLanguage => return Err(Error::UnknownLocale("no language".to_owned())),
        })
    }

    /// Refuses parts that the layer refuses before it reads.
    fn accepts(&self, columns: &[Column], parts: &[Part], whole: bool) -> Result<(), Error> {
        let (given, count) = (parts.len(), columns.len());
        if given > count || (whole && given < count) {
            return Err(Error::WrongParts { given, columns: count });
        }
        for ((kind, column), part) in self.kinds.iter().zip(columns).zip(parts) {
            match (kind, part) {
                (Kind::Unsigned(bytes), Part::Unsigned(n))
                    if n.checked_shr(8 * u32::from(*bytes)) > Some(0) =>
                {
                    return Err(Error::OutOfRange { part: format!("{part:?}"), bytes: *bytes });
                }
                (Kind::Signed(bytes), Part::Signed(n)) => {
                    let half = 1i128 << (8 * u32::from(*bytes) - 1);
                    if !(-half..half).contains(&i128::from(*n)) {
                        return Err(Error::OutOfRange { part: format!("{part:?}"), bytes: *bytes });
                    }
                }
                (Kind::Unsigned(_), Part::Unsigned(_))
                | (Kind::Text | Kind::English(_) | Kind::Swedish(_), Part::Text(_))
                | (Kind::Single, Part::Single(_))
                | (Kind::Double, Part::Double(_)) => {}
                _ => {
                    let (part, column) = (format!("{part:?}"), format!("{column:?}"));
                    return Err(Error::WrongType { part, column });
                }
            }
        }
        Ok(())
    }
}
