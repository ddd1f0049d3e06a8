//! What FoundationDB promises its clients, as tests over any database: how true the simulated client is to
//! the real one.

pub mod contract;
pub mod survey;
