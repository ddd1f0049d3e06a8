//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{MOST, space},
};
use shaketable_layers::encoding::{Column, Ordered, Part};
use shaketable_tx::Isolation::Serializable;

fn ordered() -> Ordered {
    Ordered::new(space(), vec![Column::Unsigned(1)]).expect("a column")
}

shared::refused_calls! {
    [space()],
    "under": |tx| ordered().under(&tx, &[], Serializable),
    "page": |tx| ordered().page(&tx, &[], None, MOST, Serializable),
    "between": |tx| ordered().between(&tx, &[Part::Unsigned(0)], &[Part::Unsigned(255)], Serializable),
}
