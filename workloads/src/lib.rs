//! placeholder
pub mod models;
