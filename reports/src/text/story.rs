//! The story of a run.

use crate::history::RunHistory;
use std::fmt::Write;

/// The transactions and how they ended.
pub fn story(history: &RunHistory) -> String {
    history.transactions.iter().fold(String::new(), |mut story, transaction| {
        let _ = writeln!(story, "transaction {} {}", transaction.id, transaction.end);
        story
    })
}
