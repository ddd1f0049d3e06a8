//! What followed from commits that took effect although their program was told otherwise: each such attempt,
//! and those that read what it wrote or were refused because of it, or else wrote over it. That is most often
//! why a program fails, and a picture of many transactions hides it.

use super::story::in_one_line;
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
    let mut chains: Vec<Vec<&TransactionEntry>> = firsts.map(|first| chain(history, first)).collect();
    // Those that somebody met say more.
    chains.sort_by_key(|chain| chain.len() == 1);
    let shown = |chain: &Vec<&TransactionEntry>| {
        let keys = written(chain[0]);
        chain.iter().map(|tx| in_one_line(history, tx, &keys)).collect()
    };
    chains.iter().take(MOST_CHAINS).map(shown).collect()
}

/// An attempt, and those that followed from it: the last attempt at the same transaction, and then by their
/// ends.
fn chain<'a>(history: &'a RunHistory, first: &'a TransactionEntry) -> Vec<&'a TransactionEntry> {
    let keys = written(first);
    let later = || history.transactions.iter().filter(|tx| tx.id != first.id && tx.ended > first.began);
    let last = last_attempt(history, first);
    let is_again = |tx: &TransactionEntry| tx.id == last.id;
    let mut after: Vec<&TransactionEntry> = later().filter(|tx| is_again(tx) || depends(tx, first)).collect();
    if after.is_empty() {
        after = later().filter(|tx| !written(tx).is_disjoint(&keys)).collect();
    }
    // What the program did once more comes first, whoever met it meanwhile.
    after.sort_by_key(|tx| (!is_again(tx), tx.ended, tx.id));
    [first].into_iter().chain(after.into_iter().take(MOST_STEPS)).collect()
}

/// The last attempt at the same transaction: those before it failed, or the program would have gone on.
fn last_attempt<'a>(history: &'a RunHistory, first: &'a TransactionEntry) -> &'a TransactionEntry {
    history.transactions.iter().fold(first, |last, tx| if tx.after == Some(last.id) { tx } else { last })
}

/// The keys that an attempt wrote one by one.
fn written(tx: &TransactionEntry) -> BTreeSet<&str> {
    let writes = tx.calls.iter().filter(|call| call.access.is_write() && !call.bookkeeping);
    writes.map(|call| call.at.as_str()).collect()
}

/// Whether an attempt read what another one had written, or was refused because of it.
fn depends(tx: &TransactionEntry, first: &TransactionEntry) -> bool {
    let reads_it = tx.calls.iter().flat_map(|call| &call.rows).any(|row| row.writer == Some(first.id));
    reads_it || tx.refused_by == Some(first.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Access, CallEntry, RowEntry};

    fn call(access: Access, key: &str, writer: Option<u32>) -> CallEntry {
        let row =
            RowEntry { key: key.to_owned(), value: Some("1".to_owned()), writer, ..RowEntry::default() };
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
            TransactionEntry {
                refused_by: Some(3),
                ..attempt(8, Fate::Conflict, vec![call(Access::Set, "b", None)])
            },
            attempt(7, Fate::UnknownNotCommitted, vec![call(Access::Set, "b", None)]),
            TransactionEntry { id: 50, after: Some(3), ..attempt(5, Fate::Conflict, Vec::new()) },
            TransactionEntry {
                thread: Some(1),
                after: Some(50),
                ..attempt(9, Fate::Committed, vec![call(Access::Set, "c", None)])
            },
        ];
        let history = RunHistory { transactions, is_program: true, ..RunHistory::default() };
        let expected = [
            vec![
                "T3 of client 2, no read version: sets a = 1 => ends as UnknownCommitted",
                "T9 of client 2, thread 1, again after T50, no read version: sets c = 1 => ends as Committed",
                "T4 of client 2, no read version: reads a = 1 [T3] => ends as ReadOnly",
                "T8 of client 2, no read version: sets b = 1 => ends as Conflict",
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
