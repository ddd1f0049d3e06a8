//! What FoundationDB promises its clients: how true the simulated client is to the real one.
//!
//! [`contract`] has the promises as tests over any database; [`conformance`] replays what a real cluster
//! answered, and [`survey`] reads directories as rows store them.

pub mod conformance;
pub mod contract;
pub mod survey;
