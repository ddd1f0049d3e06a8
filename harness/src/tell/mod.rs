//! What runs show about a layer in addition to their findings.

pub mod advice;
