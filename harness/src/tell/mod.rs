//! What runs tell about a layer beside their findings.

pub mod advice;
