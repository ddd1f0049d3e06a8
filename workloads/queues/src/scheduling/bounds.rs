//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{MOST, below, space},
};
use shaketable_layers::scheduling::Scheduling;

shared::refused_calls! {
    [below("class"), below(("attends", "s"))],
    "available_classes": |tx| Scheduling::new(&space()).available_classes(&tx, None, MOST),
    "classes_of": |tx| Scheduling::new(&space()).classes_of(&tx, "s"),
}
