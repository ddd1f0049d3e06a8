//! Calls that would read more than a transaction has time for.

use crate::shared::{self, bounds::space};
use shaketable_layers::vector::Vector;
use shaketable_tx::Isolation::Serializable;

shared::refused_calls! {
    [space()],
    "scan": |tx| Vector::new(space()).scan(&tx, 0, None, Serializable),
    "stored": |tx| Vector::new(space()).stored(&tx, 0, None, Serializable),
}
