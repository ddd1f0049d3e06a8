//! Why an operation on a table did not happen.

layer_error! {
    /// What an operation on a table can fail with; nothing was changed.
    pub enum Error {
        /// The table keeps no order that begins with these axes, so that finding the cells would mean
        /// reading all of them. In a table of two dimensions rows are axis 0 and columns axis 1.
        #[error("the table keeps no order that begins with the axes {0:?}")]
        NoOrder(Vec<usize>),
        /// A cell, or what is given of it, has as many labels as the table has (free) dimensions.
        #[error("{given} labels where there are {dimensions} dimensions")]
        WrongDimensions {
            /// How many labels were given.
            given: usize,
            /// How many are needed.
            dimensions: usize,
        },
        /// A table keeps at least one order, and each order names every axis once.
        #[error("not an order of {dimensions} axes: {axes:?}")]
        NotAnOrder {
            /// What was given.
            axes: Vec<usize>,
            /// How many axes there are.
            dimensions: usize,
        },
        /// The subspaces of these two orders are the same, or one is in the other: cells of one would be
        /// taken for cells of the other.
        #[error("the orders {} and {} share keys", orders[0], orders[1])]
        Overlap {
            /// Their places among the orders.
            orders: [usize; 2],
        },
    }
}
