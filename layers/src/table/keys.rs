//! The key schema of tables.
//!
//! ```text
//! by row       (table, row, column)           =  value
//! by column    (table, column, row)           =  value
//! both         (table, 'R', row, column)      =  value
//!              (table, 'C', column, row)      =  value
//! any number   (order, label, label, ..)      =  value     for each order, with its axes in sequence
//! ```

use super::Error;
use crate::label::Label;
use foundationdb_tuple::Subspace;

/// One order in which a table stores its cells: its own subspace, and the axes, slowest first.
#[derive(Clone, Debug)]
pub struct Order {
    subspace: Subspace,
    axes: Vec<usize>,
}

impl Order {
    /// The order of these axes, in a subspace that must not be used for anything else.
    pub fn new(subspace: Subspace, axes: &[usize]) -> Order {
        Order { subspace, axes: axes.to_vec() }
    }

    /// Refuses an order that does not contain each axis once.
    pub(super) fn check(&self, dimensions: usize) -> Result<(), Error> {
        let mut axes = self.axes.clone();
        axes.sort_unstable();
        match axes.iter().copied().eq(0..dimensions) {
            true => Ok(()),
            false => Err(Error::NotAnOrder { axes: self.axes.clone(), dimensions }),
        }
    }

    /// Whether keys of one order may be keys of the other: one subspace contains the other.
    pub(super) fn overlaps(&self, other: &Order) -> bool {
        self.subspace.is_start_of(other.subspace.bytes()) || other.subspace.is_start_of(self.subspace.bytes())
    }

    /// The key of a cell.
    pub(super) fn key(&self, cell: &[Label]) -> Vec<u8> {
        self.subspace.pack(&self.axes.iter().map(|axis| &cell[*axis]).collect::<Vec<_>>())
    }

    /// The subspace of the cells with these labels on these axes, if they are adjacent in this order. `None`
    /// for a single cell.
    pub(super) fn below(&self, fixed: &[(usize, &Label)]) -> Option<Subspace> {
        if fixed.len() >= self.axes.len() {
            return None;
        }
        let label = |axis: &usize| fixed.iter().find(|(fixed, _)| fixed == axis).map(|(_, label)| *label);
        let labels: Option<Vec<&Label>> = self.axes.iter().take(fixed.len()).map(label).collect();
        Some(self.subspace.subspace(&labels?))
    }

    /// The cell of a key: its labels by axis.
    pub(super) fn cell(&self, key: &[u8]) -> Result<Vec<Label>, Error> {
        let labels: Vec<Label> = self.subspace.unpack(key).map_err(|_| Error::foreign(key))?;
        if labels.len() != self.axes.len() {
            return Err(Error::foreign(key));
        }
        let mut cell: Vec<_> = self.axes.iter().copied().zip(labels).collect();
        cell.sort_by_key(|(axis, _)| *axis);
        Ok(cell.into_iter().map(|(_, label)| label).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Grid, *};

    #[test]
    fn keys_sort_by_their_axes_and_round_trip() {
        let labels: [Label; 4] = ["".into(), "a".into(), "ab".into(), 1.into()];
        let order = Order::new(Subspace::from("t"), &[2, 0, 1]);
        let mut last = Vec::new();
        for third in &labels {
            for first in &labels {
                for second in &labels {
                    let cell = vec![first.clone(), second.clone(), third.clone()];
                    let key = order.key(&cell);
                    assert!(last < key);
                    assert_eq!(order.cell(&key).as_ref(), Ok(&cell));
                    let (begin, end) = order.below(&[(0, first), (2, third)]).unwrap().range();
                    assert!(begin <= key && key < end);
                    last = key;
                }
            }
        }
        assert!(order.below(&[(0, &labels[0])]).is_none() && order.below(&[(1, &labels[0])]).is_none());
        assert_eq!(order.below(&[]).unwrap(), Subspace::from("t"));
        let all = [(0, &labels[0]), (1, &labels[0]), (2, &labels[0])];
        assert!(order.below(&all).is_none());
        for key in [order.subspace.pack(&("a", "b")), order.subspace.pack(&("a", "b", "c", "d"))] {
            assert_eq!(order.cell(&key), Err(Error::foreign(&key)));
        }
    }

    #[test]
    fn an_order_names_each_axis_once() {
        let check = |axes: &[usize]| Order::new(Subspace::all(), axes).check(3);
        assert_eq!(check(&[2, 0, 1]), Ok(()));
        for axes in [&[0, 1][..], &[0, 1, 1], &[0, 1, 3], &[0, 1, 2, 2], &[]] {
            assert_eq!(check(axes), Err(Error::NotAnOrder { axes: axes.to_vec(), dimensions: 3 }));
        }
    }

    #[test]
    fn orders_that_share_keys_are_refused() {
        let grid = |subspaces: [Subspace; 3]| {
            let orders = subspaces.map(|subspace| Order::new(subspace, &[0, 1]));
            Grid::new(2, orders.to_vec()).map(drop)
        };
        let [a, ab, b] = [Subspace::from("a"), Subspace::from(("a", "b")), Subspace::from("b")];
        let raw = |bytes: &[u8]| Subspace::from_bytes(bytes.to_vec());
        assert_eq!(grid([ab.clone(), raw(b"a"), b.clone()]), Ok(()));
        assert_eq!(grid([ab.clone(), b.clone(), a.clone()]), Err(Error::Overlap { orders: [0, 2] }));
        assert_eq!(grid([b.clone(), a, ab.clone()]), Err(Error::Overlap { orders: [1, 2] }));
        assert_eq!(grid([b.clone(), b.clone(), ab.clone()]), Err(Error::Overlap { orders: [0, 1] }));
        assert_eq!(grid([raw(b"ab"), raw(b"c"), raw(b"c\0")]), Err(Error::Overlap { orders: [1, 2] }));
        assert_eq!(grid([Subspace::all(), b, ab]), Err(Error::Overlap { orders: [0, 1] }));
    }

    #[test]
    fn the_layouts_of_two_dimensions_are_those_of_the_documents() {
        let cell = ["row".into(), "column".into()];
        let table = Subspace::from("T");
        let rows = Order::new(table.subspace(&"R"), &[0, 1]);
        let columns = Order::new(table.subspace(&"C"), &[1, 0]);
        assert_eq!(rows.key(&cell), table.pack(&("R", "row", "column")));
        assert_eq!(columns.key(&cell), table.pack(&("C", "column", "row")));
    }
}
