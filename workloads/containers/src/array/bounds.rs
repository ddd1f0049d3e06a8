//! Calls that would read more than a transaction has time for.

use crate::shared::{
    self,
    bounds::{MOST, space},
};
use shaketable_layers::array::Array;
use shaketable_tx::Isolation::Serializable;

shared::refused_calls! {
    [space()],
    "cells": |tx| Array::with_dimensions(space(), 2).cells(&tx, &[], Serializable),
    "page": |tx| Array::with_dimensions(space(), 2).page(&tx, &[], None, MOST, Serializable),
}
