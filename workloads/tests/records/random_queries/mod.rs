//! Random records and random queries over them: what a plan finds is what the model finds, whichever indexes it uses, in
//! pages of any size and in both directions.

mod check;
mod compare;
mod generate;
mod model;
mod pure;
mod schema;
mod stored;
