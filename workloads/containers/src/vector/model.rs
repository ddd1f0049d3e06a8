//! The sequential model: the rows of a matrix; and how rows are read back as a model.

use super::{Answer, Call, Op, Vector, space};
use shaketable::specimen::Content;
use shaketable_layers::vector::{Error, MAX_SCAN, MAX_VALUE_BYTES};
use shaketable_tx::{self as tx, limits};
use std::collections::BTreeMap;

/// Rows that have elements.
pub type Model = BTreeMap<i64, Row>;

/// One row: its size, and the elements that are not the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    size: i64,
    elements: BTreeMap<i64, Content>,
}

/// The last index: the size is one more.
const LAST: i64 = i64::MAX - 1;

fn counts(index: i64) -> Result<i64, Error> {
    if index < 0 { Err(Error::Negative(index)) } else { Ok(index) }
}

fn is_index(index: i64) -> Result<(), Error> {
    if counts(index)? == i64::MAX { Err(Error::Full) } else { Ok(()) }
}

impl Row {
    fn inside(&self, index: i64) -> Result<(), Error> {
        is_index(index)?;
        match index < self.size {
            true => Ok(()),
            false => Err(Error::OutOfRange { index, size: self.size }),
        }
    }

    fn put(&mut self, index: i64, value: Content, default: &Content) {
        self.size = self.size.max(index + 1);
        match value == *default {
            true => drop(self.elements.remove(&index)),
            false => drop(self.elements.insert(index, value)),
        }
    }

    fn take(&mut self, index: i64, default: &Content) -> Content {
        self.elements.remove(&index).unwrap_or_else(|| default.clone())
    }

    fn resize(&mut self, size: i64) {
        self.size = size;
        self.elements.split_off(&size);
    }

    /// The elements in a range that are not the default.
    fn between(&self, start: i64, end: Option<i64>) -> Result<Vec<(i64, Content)>, Error> {
        counts(start)?;
        let end = end.map_or(Ok(i64::MAX), counts)?;
        let within = self.elements.iter().filter(|(index, _)| (start..end).contains(*index));
        Ok(within.map(|(index, value)| (*index, value.clone())).collect())
    }

    fn scan(&self, start: i64, end: Option<i64>, default: &Content) -> Result<Vec<Content>, Error> {
        let within = self.between(start, end)?;
        let elements = (end.unwrap_or(i64::MAX).min(self.size) - start).max(0);
        if elements > MAX_SCAN {
            return Err(Error::ScanTooLong { elements, limit: MAX_SCAN });
        }
        let mut all = vec![default.clone(); elements as usize];
        for (index, value) in within {
            all[(index - start) as usize] = value;
        }
        Ok(all)
    }
}

impl Vector {
    /// Performs one call on the model.
    pub(super) fn replayed(&self, model: &mut Model, op: &Op) -> Result<Answer, Error> {
        let default = self.default();
        is_index(op.row)?;
        match op.call {
            Call::Rows => {
                return Ok(Answer::Number(model.last_key_value().map_or(0, |(row, _)| row + 1)));
            }
            Call::TruncateRows(rows) => {
                model.split_off(&counts(rows)?);
                return Ok(Answer::Written);
            }
            _ => (),
        }
        let row = model.entry(op.row).or_default();
        // Refuses to store the default where nothing is stored. If it is too long, no element equals it.
        let fill = |row: &Row, index: i64| match row.elements.contains_key(&index) {
            true => Ok(()),
            false => self.fits(op.row, index, b'd', self.default).map(drop),
        };
        let answer = match &op.call {
            Call::Push(byte, length) => {
                let index = row.size;
                row.put(index, self.fits(op.row, index, *byte, *length)?, &default);
                Answer::Number(index)
            }
            Call::Pop => {
                if row.size > 1 {
                    fill(row, row.size - 2)?;
                }
                Answer::Value((row.size > 0).then(|| {
                    row.size -= 1;
                    row.take(row.size, &default)
                }))
            }
            Call::Set(index, byte, length) => {
                row.put(*index, self.fits(op.row, *index, *byte, *length)?, &default);
                Answer::Written
            }
            Call::Swap(one, other) => {
                row.inside(*one)?;
                row.inside(*other)?;
                for (from, to) in [(*other, *one), (*one, *other)] {
                    if one != other && !row.elements.contains_key(&from) {
                        self.fits(op.row, to, b'd', self.default)?;
                    }
                }
                let (first, second) = (row.take(*one, &default), row.elements.get(other).cloned());
                row.put(*other, first.clone(), &default);
                row.put(*one, if one == other { first } else { second.unwrap_or(default.clone()) }, &default);
                Answer::Written
            }
            Call::Resize(size) => {
                if counts(*size)? > 0 {
                    fill(row, size - 1)?;
                }
                row.resize(*size);
                Answer::Written
            }
            Call::Truncate(size) => {
                if (1..row.size).contains(&counts(*size)?) {
                    fill(row, size - 1)?;
                }
                row.resize(row.size.min(*size));
                Answer::Written
            }
            Call::Get(index) => {
                row.inside(*index)?;
                Answer::Value(Some(row.elements.get(index).cloned().unwrap_or(default)))
            }
            Call::Back => Answer::Value(
                (row.size > 0).then(|| row.elements.get(&(row.size - 1)).cloned().unwrap_or(default)),
            ),
            Call::Size => Answer::Number(row.size),
            Call::IsEmpty => Answer::Is(row.size == 0),
            Call::Scan(start, end) => Answer::Scan(row.scan(*start, *end, &default)?),
            Call::Stored(start, end) => Answer::Stored(row.between(*start, *end)?),
            Call::TruncateRows(_) | Call::Rows => Answer::Written,
        };
        if row.size == 0 {
            model.remove(&op.row);
        }
        Ok(answer)
    }

    /// Refuses a value that the layer refuses before it writes.
    fn fits(&self, row: i64, index: i64, byte: u8, length: usize) -> Result<Content, Error> {
        is_index(index)?;
        limits::value_up_to(MAX_VALUE_BYTES, &space().pack(&(row, index)), &vec![byte; length])?;
        Ok(Content::of(byte, length))
    }

    /// Reads rows back by the key schema, as a model.
    pub(super) fn read(&self, rows: &[tx::KeyValue]) -> Result<Model, String> {
        let mut model = Model::new();
        for stored in rows {
            let place = space().unpack::<(i64, i64)>(&stored.key);
            let Ok((row @ 0.., index @ 0..=LAST)) = place else {
                return Err(format!("{} is not the key of an element", stored.key.escape_ascii()));
            };
            model.entry(row).or_default().put(index, Content::from(&stored.value), &self.default());
        }
        Ok(model)
    }
}
