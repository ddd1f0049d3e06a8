//! Errors of table operations.

layer_error! {
    /// Why an operation on a table failed; nothing was changed.
    pub enum Error {
        /// The table keeps no order that begins with these axes, so that finding the cells would require
        /// reading all of them. In a table of two dimensions, rows are axis 0 and columns are axis 1.
        #[error("the table keeps no order that begins with the axes {0:?}")]
        NoOrder(Vec<usize>),
        /// The number of labels of a cell, or of the free part of it, differs from the number of (free)
        /// dimensions.
        #[error("{given} labels where there are {dimensions} dimensions")]
        WrongDimensions {
            /// How many labels were given.
            given: usize,
            /// How many are required.
            dimensions: usize,
        },
        /// A table keeps at least one order, and each order contains every axis once.
        #[error("not an order of {dimensions} axes: {axes:?}")]
        NotAnOrder {
            /// The given axes.
            axes: Vec<usize>,
            /// The number of axes.
            dimensions: usize,
        },
        /// The subspaces of these two orders are equal, or one contains the other: cells of one order would
        /// be taken for cells of the other.
        #[error("the orders {} and {} share keys", orders[0], orders[1])]
        Overlap {
            /// Their positions among the orders.
            orders: [usize; 2],
        },
    }
}
