//! The sequential model: cells by their labels.

use super::{
    Answer, Op, Table,
    operations::{Value, bytes, fixed, labels, nest, page},
};
use crate::models::labels::{Which, label, unpacks};
use shaketable::specimen::Content;
use shaketable_layers::{label::Label, table::Error};
use shaketable_tx::limits;
use std::collections::BTreeMap;

/// The expected content.
pub type Model = BTreeMap<Vec<Label>, Content>;

impl Table {
    /// Performs one call on the model.
    pub(super) fn replayed(&self, model: &mut Model, op: &Op) -> Result<Answer, Error> {
        let among = |cell: &[Label], axes: &[usize], of: &[Label]| {
            axes.iter().zip(of).all(|(axis, label)| cell[*axis] == *label)
        };
        Ok(match op {
            Op::Set(cell, value) => {
                let cell = self.accepts(cell)?;
                self.holds(&cell, *value)?;
                model.insert(cell, Content::of(value.0, value.1));
                Answer::Written
            }
            Op::Get(cell) => Answer::Value(model.get(&self.accepts(cell)?).cloned()),
            Op::Delete(cell) => {
                model.remove(&self.accepts(cell)?);
                Answer::Written
            }
            Op::Slice(given) => {
                let (axes, of) = fixed(given);
                if !self.shape.keeps(&axes) {
                    return Err(Error::NoOrder(axes));
                }
                let found = model.iter().filter(|(cell, _)| among(cell, &axes, &of));
                let cell = |(cell, value): (&Vec<Label>, &Content)| {
                    let free = cell.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
                    (free.map(|(_, label)| Content::from(label.packed())).collect(), value.clone())
                };
                Answer::Cells(found.map(cell).collect())
            }
            Op::Replace(given, cells) => {
                let (axes, of) = fixed(given);
                if !self.shape.keeps(&axes) {
                    return Err(Error::NoOrder(axes));
                }
                model.retain(|cell, _| !among(cell, &axes, &of));
                for (free, value) in cells {
                    let needed = self.shape.dimensions() - axes.len();
                    if free.len() != needed {
                        return Err(Error::WrongDimensions { given: free.len(), dimensions: needed });
                    }
                    let mut free = free.iter();
                    let label = |axis| match axes.iter().position(|fixed| *fixed == axis) {
                        Some(at) => Some(of[at].clone()),
                        None => free.next().copied().map(label),
                    };
                    let cell: Vec<Label> = (0..self.shape.dimensions()).filter_map(label).collect();
                    self.holds(&cell, *value)?;
                    model.insert(cell, Content::of(value.0, value.1));
                }
                Answer::Written
            }
            Op::Page(given, after, most) => {
                let (axes, of) = fixed(given);
                let order = self.shape.order_of(&axes).ok_or_else(|| Error::NoOrder(axes.clone()))?;
                let after = after.as_ref().map(|after| self.accepts(after)).transpose()?;
                let place = |cell: &[Label]| order.iter().map(|axis| cell[*axis].clone()).collect::<Vec<_>>();
                let after = after.map(|after| place(&after));
                let mut found: Vec<_> = model
                    .iter()
                    .filter(|(cell, _)| among(cell, &axes, &of))
                    .map(|(cell, value)| (place(cell), cell, value))
                    .filter(|(place, ..)| after.as_ref().is_none_or(|after| place > after))
                    .collect();
                found.sort();
                page(found.into_iter().map(|(_, cell, value)| (cell, value.clone())).take(*most))
            }
            Op::Orders(orders) => {
                let is_order = |axes: &[usize]| matches!(axes, [0, 1] | [1, 0]);
                if orders.is_empty() {
                    return Err(Error::NotAnOrder { axes: Vec::new(), dimensions: 2 });
                }
                if let Some((_, axes)) = orders.iter().find(|(_, axes)| !is_order(axes)) {
                    return Err(Error::NotAnOrder { axes: axes.clone(), dimensions: 2 });
                }
                for (at, (one, _)) in orders.iter().enumerate() {
                    for (also, (other, _)) in orders.iter().enumerate().skip(at + 1) {
                        if nest(*one, *other) {
                            return Err(Error::Overlap { orders: [at, also] });
                        }
                    }
                }
                Answer::Written
            }
        })
    }
}

impl Table {
    /// Refuses a cell that the table refuses before it reads.
    fn accepts(&self, cell: &[Which]) -> Result<Vec<Label>, Error> {
        let dimensions = self.shape.dimensions();
        match cell.len() == dimensions {
            true => Ok(labels(cell)),
            false => Err(Error::WrongDimensions { given: cell.len(), dimensions }),
        }
    }

    /// Refuses a cell whose keys or value are too large, or that could not be read back.
    fn holds(&self, cell: &[Label], value: Value) -> Result<(), Error> {
        let value = bytes(value);
        cell.iter().try_for_each(unpacks)?;
        self.shape.keys(cell).iter().try_for_each(|key| Ok(limits::row(key, &value)?))
    }
}
