//! What followed from commits that took effect although their program was told otherwise: each such attempt,
//! and those that met what it wrote. That is most often why a program fails, and a picture of many
//! transactions hides it.

use super::story::told;
use crate::history::{Fate, RunHistory, TransactionEntry};
use std::collections::BTreeSet;

/// The most such attempts that are told of.
const MOST_CHAINS: usize = 3;
/// The most attempts that are told of after each.
const MOST_STEPS: usize = 4;

/// The attempts and those that followed from them, each in a line. An attempt that nothing met is there, too.
pub fn chains(history: &RunHistory) -> Vec<Vec<String>> {
    let is_first =
        |tx: &&TransactionEntry| matches!(tx.fate, Fate::UnknownCommitted | Fate::DroppedCommitted);
    let firsts = history.transactions.iter().filter(is_first).filter(|tx| !written(tx).is_empty());
    let mut chains: Vec<(bool, Vec<String>)> = firsts
        .map(|first| {
            let keys = written(first);
            let meets = |tx: &&TransactionEntry| {
                tx.id != first.id && tx.ended > first.began && meets(tx, first, &keys)
            };
            let mut after: Vec<&TransactionEntry> = history.transactions.iter().filter(meets).collect();
            after.sort_by_key(|tx| (tx.ended, tx.id));
            let is_met = !after.is_empty();
            let steps = [first].into_iter().chain(after.into_iter().take(MOST_STEPS));
            (is_met, steps.map(|tx| told(history, tx, &keys)).collect())
        })
        .collect();
    // Those that somebody met say more.
    chains.sort_by_key(|(is_met, _)| !is_met);
    chains.truncate(MOST_CHAINS);
    chains.into_iter().map(|(_, chain)| chain).collect()
}

/// The keys that an attempt wrote one by one.
fn written(tx: &TransactionEntry) -> BTreeSet<&str> {
    let writes = tx.calls.iter().filter(|call| !call.access.is_read() && !call.bookkeeping);
    writes.map(|call| call.at.as_str()).collect()
}

/// Whether an attempt read what another one had written, or wrote a key that it had written.
fn meets(tx: &TransactionEntry, first: &TransactionEntry, keys: &BTreeSet<&str>) -> bool {
    tx.calls.iter().any(|call| {
        let reads_it = call.rows.iter().any(|row| row.writer == Some(first.id));
        reads_it || (!call.access.is_read() && keys.contains(call.at.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Access, CallEntry, RowEntry};

    fn call(access: Access, key: &str, writer: Option<u32>) -> CallEntry {
        let row = RowEntry { key: key.to_owned(), value: Some("1".to_owned()), writer, shared: false };
        CallEntry { access, at: key.to_owned(), rows: vec![row], answered: true, ..CallEntry::default() }
    }

    /// An attempt that ends at ten times its number.
    fn attempt(id: u32, fate: Fate, calls: Vec<CallEntry>) -> TransactionEntry {
        let (began, ended) = (u64::from(id) * 10 - 9, u64::from(id) * 10);
        let end = format!("ends as {fate:?}");
        TransactionEntry {
            id,
            client: Some(2),
            began,
            ended,
            fate,
            calls,
            end,
            ..TransactionEntry::default()
        }
    }

    #[test]
    fn who_meets_what_an_unknown_commit_wrote_is_told_in_order() {
        let transactions = vec![
            attempt(1, Fate::Committed, vec![call(Access::Get, "a", None)]),
            attempt(2, Fate::UnknownCommitted, vec![call(Access::Set, "unmet", None)]),
            attempt(3, Fate::UnknownCommitted, vec![call(Access::Set, "a", None)]),
            attempt(4, Fate::ReadOnly, vec![call(Access::Get, "a", Some(3))]),
            attempt(5, Fate::Committed, vec![call(Access::Get, "a", Some(1)), call(Access::Set, "b", None)]),
            attempt(6, Fate::Committed, vec![call(Access::Clear, "a", None)]),
            attempt(7, Fate::UnknownNotCommitted, vec![call(Access::Set, "b", None)]),
        ];
        let history = RunHistory { transactions, is_program: true, ..RunHistory::default() };
        let expected = [
            vec![
                "T3 of client 2, no read version: sets a = 1 => ends as UnknownCommitted",
                "T4 of client 2, no read version: reads a = 1 [T3] => ends as ReadOnly",
                "T6 of client 2, no read version: clears a => ends as Committed",
            ],
            vec!["T2 of client 2, no read version: sets unmet = 1 => ends as UnknownCommitted"],
        ];
        assert_eq!(chains(&history), expected);
    }

    #[test]
    fn many_are_cut() {
        let transactions: Vec<_> = (1..=12)
            .map(|id| attempt(id, Fate::DroppedCommitted, vec![call(Access::Set, "a", None)]))
            .collect();
        let chains = chains(&RunHistory { transactions, ..RunHistory::default() });
        assert_eq!(chains.iter().map(Vec::len).collect::<Vec<_>>(), [MOST_STEPS + 1; MOST_CHAINS]);
    }
}
