//! Queries: which records are asked for, and the plan that finds them.
