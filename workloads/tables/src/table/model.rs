//! The model: cells by their labels.

use super::{
    Cell, Fixed, Found, Orders, Replacement, Shape, Value, bytes, contents, free, labelled, labels, nest,
};
use crate::models::labels::{label, unpacks};
use shaketable::specimen::Content;
use shaketable_layers::{label::Label, table::Error};
use shaketable_tx::limits;
use std::collections::BTreeMap;

/// The cells that there should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    shape: Shape,
    cells: BTreeMap<Vec<Label>, Content>,
}

impl Sheet {
    pub(super) fn new(shape: Shape, cells: BTreeMap<Vec<Label>, Content>) -> Sheet {
        Sheet { shape, cells }
    }

    pub(super) fn set(&mut self, cell: &Cell, value: Value) -> Result<(), Error> {
        self.put(self.accepts(cell)?, value)
    }

    pub(super) fn get(&self, cell: &Cell) -> Result<Option<Content>, Error> {
        Ok(self.cells.get(&self.accepts(cell)?).cloned())
    }

    pub(super) fn delete(&mut self, cell: &Cell) -> Result<(), Error> {
        self.cells.remove(&self.accepts(cell)?);
        Ok(())
    }

    pub(super) fn slice(&self, fixed: &Fixed) -> Result<Found, Error> {
        let of = labelled(fixed);
        self.order_of(&of)?;
        let found = self.cells.iter().filter(|(cell, _)| is_among(cell, &of));
        Ok(found.map(|(cell, value)| (free(cell, &of), value.clone())).collect())
    }

    pub(super) fn replace(&mut self, replacement: &Replacement) -> Result<(), Error> {
        let (fixed, cells) = replacement;
        let (of, dimensions) = (labelled(fixed), self.shape.dimensions());
        self.order_of(&of)?;
        self.cells.retain(|cell, _| !is_among(cell, &of));
        for (free, value) in cells {
            let needed = dimensions - of.len();
            if free.len() != needed {
                return Err(Error::WrongDimensions { given: free.len(), dimensions: needed });
            }
            let mut free = free.iter();
            let on = |axis| match of.iter().find(|(fixed, _)| *fixed == axis) {
                Some((_, label)) => Some(label.clone()),
                None => free.next().copied().map(label),
            };
            self.put((0..dimensions).filter_map(on).collect(), *value)?;
        }
        Ok(())
    }

    pub(super) fn page(&self, fixed: &Fixed, after: Option<Cell>, most: usize) -> Result<Found, Error> {
        let of = labelled(fixed);
        let order = self.order_of(&of)?;
        let place = |cell: &[Label]| order.iter().map(|axis| cell[*axis].clone()).collect::<Vec<_>>();
        let after = after.map(|after| self.accepts(&after)).transpose()?.map(|after| place(&after));
        let cells = self.cells.iter().filter(|(cell, _)| is_among(cell, &of));
        let mut found: Vec<_> = cells
            .map(|(cell, value)| (place(cell), cell, value))
            .filter(|(place, ..)| after.as_ref().is_none_or(|after| place > after))
            .collect();
        found.sort();
        Ok(found.into_iter().map(|(_, cell, value)| (contents(cell), value.clone())).take(most).collect())
    }

    pub(super) fn configure(&self, orders: &Orders) -> Result<(), Error> {
        let not_an_order = |axes: &[usize]| Error::NotAnOrder { axes: axes.to_vec(), dimensions: 2 };
        if orders.is_empty() {
            return Err(not_an_order(&[]));
        }
        if let Some((_, axes)) = orders.iter().find(|(_, axes)| !matches!(axes[..], [0, 1] | [1, 0])) {
            return Err(not_an_order(axes));
        }
        for (at, (one, _)) in orders.iter().enumerate() {
            for (also, (other, _)) in orders.iter().enumerate().skip(at + 1) {
                if nest(*one, *other) {
                    return Err(Error::Overlap { orders: [at, also] });
                }
            }
        }
        Ok(())
    }

    /// The axes of the order in which the cells with these labels are adjacent.
    fn order_of(&self, of: &[(usize, Label)]) -> Result<Vec<usize>, Error> {
        self.shape.order_of(&of.iter().map(|(axis, _)| *axis).collect::<Vec<_>>())
    }

    /// Refuses a cell that the table refuses before it reads.
    fn accepts(&self, cell: &Cell) -> Result<Vec<Label>, Error> {
        let dimensions = self.shape.dimensions();
        match cell.len() == dimensions {
            true => Ok(labels(cell)),
            false => Err(Error::WrongDimensions { given: cell.len(), dimensions }),
        }
    }

    /// Sets a cell, unless one of its keys or its value is too large, or it could not be read back.
    fn put(&mut self, cell: Vec<Label>, value: Value) -> Result<(), Error> {
        cell.iter().try_for_each(unpacks)?;
        let content = bytes(value);
        self.shape.keys(&cell).iter().try_for_each(|key| limits::row(key, &content))?;
        self.cells.insert(cell, Content::from(&content));
        Ok(())
    }
}

fn is_among(cell: &[Label], of: &[(usize, Label)]) -> bool {
    of.iter().all(|(axis, label)| cell[*axis] == *label)
}
