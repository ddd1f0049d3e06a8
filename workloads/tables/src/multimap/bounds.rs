//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{MOST, below, space},
};
use shaketable_layers::{
    label::Label,
    multimap::{Multimap, Multiset},
};
use shaketable_tx::Isolation::Serializable;

fn label(name: &str) -> Label {
    Label::from(name)
}

shared::refused_calls! {
    [below("i")],
    "Multimap::get": |tx| Multimap::new(space()).get(&tx, &label("i"), None, MOST, Serializable),
    "Multimap::all": |tx| Multimap::new(space()).all(&tx, None, MOST, Serializable),
    "Multiset::get": |tx| Multiset::new(space()).get(&tx, &label("i"), None, MOST, Serializable),
    "Multiset::all": |tx| Multiset::new(space()).all(&tx, None, MOST, Serializable),
}
