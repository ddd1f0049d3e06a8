//! Random records and random queries over them: what a plan finds is what the model finds, whichever indexes
//! it uses, in pages of any size and in both directions. The records, the queries and the model are those of
//! the workload `record_query`.

mod pure;
mod stored;
