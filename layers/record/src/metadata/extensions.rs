//! What an application adds and meta-data refers to by name.

use super::index_types;
use crate::expression::Functions;
use std::collections::BTreeSet;

/// What an application adds to this crate, and meta-data refers to by name: functions of key expressions, and
/// types of indexes. It is not stored with the meta-data: whoever loads meta-data gives it.
#[derive(Clone, Debug, Default)]
pub struct Extensions {
    /// The functions that expressions can call.
    pub functions: Functions,
    /// The types of indexes that the application maintains itself.
    pub index_types: BTreeSet<String>,
}

impl Extensions {
    /// Whether indexes can be of this type.
    pub fn has_index_type(&self, kind: &str) -> bool {
        index_types::ALL.contains(&kind) || self.index_types.contains(kind)
    }
}
