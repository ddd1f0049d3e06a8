//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{MOST, below, space},
};
use shaketable_layers::{label::Label, table::Table};
use shaketable_tx::Isolation::Serializable;

fn label(name: &str) -> Label {
    Label::from(name)
}

shared::refused_calls! {
    [below(("R", "r"))],
    "get_row": |tx| Table::both(space()).get_row(&tx, &label("r"), Serializable),
    "get_column": |tx| Table::by_column(below("R")).get_column(&tx, &label("r"), Serializable),
    "set_row": |tx| async {
        Table::both(space()).set_row(&tx, &label("r"), &[(label("c"), b"v"[..].into())].into()).await
    },
    "delete_row": |tx| Table::both(space()).delete_row(&tx, &label("r")),
    "Grid::slice": |tx| async { Table::both(space()).grid().slice(&tx, &[], Serializable).await },
    "Grid::page": |tx| async {
        Table::both(space()).grid().page(&tx, &[], None, MOST, Serializable).await
    },
}
