//! Calls that would read more than a transaction has time for.

use crate::shared::{self, bounds::space};
use shaketable_layers::counter::{Part, SplitCounter};
use shaketable_tx::Isolation::Serializable;

shared::refused_calls! {
    [space()],
    "get": |tx| SplitCounter::new(space(), 3).get(&tx, Serializable),
    "add_within": |tx| SplitCounter::new(space(), 3).add_within(&tx, Part(0), 1, 0, 9),
}
