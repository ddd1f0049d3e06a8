//! What the findings of a run say of its history: the witness of the one that decides, the rows that its
//! claim names, and the operations that panicked.

use super::Words;
use crate::judge::finding::{Finding, Kind, Witness, deciding};
use shaketable_reports::{CallEntry, RunHistory, WitnessEntry};
use shaketable_tx::show;
use std::collections::BTreeSet;

/// The most rows that a claim names. One in whose words more are found names none of them.
const MOST_NAMED: usize = 24;

/// The fewest digits of a number, and characters of a quoted text, that tell a row from others.
const LEAST: usize = 3;

/// Adds what the findings say.
pub(crate) fn explain(history: &mut RunHistory, findings: &[Finding], words: &dyn Words) {
    for finding in findings.iter().filter(|finding| finding.kind == Kind::Panic) {
        for (client, index) in &finding.witness.operations {
            let is_it = |(c, i): (u16, u32)| (usize::from(c), i as usize) == (*client, *index);
            for operation in &mut history.operations {
                if is_it((operation.client, operation.index)) {
                    let why = finding.said.why.lines().next().unwrap_or_default();
                    operation.outcome = format!("panics: {why}");
                }
            }
        }
    }
    let Some(finding) = deciding(findings) else { return };
    history.witness = witness(finding, words);
    if history.witness.transactions.is_empty() {
        history.witness.transactions = of_operations(history);
    }
    name(history, &finding.message);
}

fn witness(Finding { witness, .. }: &Finding, words: &dyn Words) -> WitnessEntry {
    let keys = witness.keys.iter().map(|at| words.key(at).unwrap_or_else(|| show::key(at)));
    WitnessEntry {
        operations: witness.operations.iter().map(|(c, index)| (*c as u16, *index as u32)).collect(),
        transactions: witness.attempts.iter().map(|id| id.0).collect(),
        keys: keys.collect(),
        expected: witness.expected.clone(),
        found: witness.found.clone(),
    }
}

/// The last transactions of the witness's operations: a panic, or a claim that an operation itself makes,
/// names no others.
fn of_operations(history: &RunHistory) -> Vec<u32> {
    let operations: BTreeSet<_> = history.witness.operations.iter().collect();
    let is_theirs = |client: Option<u16>, index: Option<u32>| {
        client.zip(index).is_some_and(|operation| operations.contains(&operation))
    };
    let theirs = history.transactions.iter().filter(|tx| is_theirs(tx.client, tx.operation));
    let theirs: Vec<u32> = theirs.map(|tx| tx.id).collect();
    theirs[theirs.len().saturating_sub(Witness::MOST)..].to_vec()
}

/// Marks the rows that a claim names.
fn name(history: &mut RunHistory, claim: &str) {
    let told = tokens(claim);
    let is_named = |text: &str| {
        let contains = text.len() > LEAST && claim.contains(text);
        contains || tokens(text).iter().any(|token| told.contains(token))
    };
    let mut rows: BTreeSet<String> = BTreeSet::new();
    let data = |call: &&mut CallEntry| call.access.is_read() || call.access.is_write();
    for call in history.transactions.iter_mut().flat_map(|tx| &mut tx.calls).filter(data) {
        for row in &mut call.rows {
            row.named = is_named(&row.key) || row.value.as_deref().is_some_and(is_named);
            if row.named {
                rows.insert(row.key.clone());
            }
        }
        call.named = call.rows.iter().any(|row| row.named) || (call.rows.is_empty() && is_named(&call.at));
    }
    if rows.len() > MOST_NAMED {
        for call in history.transactions.iter_mut().flat_map(|tx| &mut tx.calls) {
            call.named = false;
            call.rows.iter_mut().for_each(|row| row.named = false);
        }
    }
}

/// What of a text can tell one row from others: numbers of some digits, and what is in quotation marks.
fn tokens(text: &str) -> BTreeSet<&str> {
    let numbers = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_number = |word: &&str| word.len() >= LEAST && word.bytes().all(|byte| byte.is_ascii_digit());
    // What is between two marks; a mark that is escaped ends nothing.
    let quoted = text.split('"').skip(1).step_by(2);
    let is_text = |part: &&str| part.len() >= LEAST && !part.ends_with('\\');
    numbers.filter(is_number).chain(quoted.filter(is_text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_reports::{Access, OperationEntry, RowEntry, TransactionEntry};
    use shaketable_sim::judges::Said;

    /// A layer that describes nothing.
    struct Plain;

    impl Words for Plain {}

    fn set(key: &str, value: &str) -> CallEntry {
        let row = RowEntry { key: key.into(), value: Some(value.into()), ..RowEntry::default() };
        CallEntry { access: Access::Set, at: key.into(), rows: vec![row], ..CallEntry::default() }
    }

    /// Two operations of client 1, and their transactions with these calls.
    fn history(calls: Vec<CallEntry>) -> RunHistory {
        let operation = |index| OperationEntry {
            client: 1,
            index,
            outcome: "has an unknown outcome: operation_cancelled (1101)".to_owned(),
            ..OperationEntry::default()
        };
        let of = |id, operation, calls| TransactionEntry {
            id,
            client: Some(1),
            operation,
            calls,
            ..TransactionEntry::default()
        };
        RunHistory {
            operations: vec![operation(0), operation(1)],
            transactions: vec![of(3, Some(0), Vec::new()), of(4, Some(1), calls), of(5, Some(1), Vec::new())],
            ..RunHistory::default()
        }
    }

    #[test]
    fn an_operation_that_panicked_says_so_and_its_transactions_are_the_witness() {
        let said = Said { name: "src/a.rs:7".to_owned(), why: "no such item\nin the list".to_owned() };
        let found = Finding::new(Kind::Panic, "operation 1 of client 1 panicked: no such item").saying(said);
        let mut told = history(Vec::new());
        explain(&mut told, &[found.with(Witness::operation(1, 1))], &Plain);
        assert_eq!(told.operations[1].outcome, "panics: no such item");
        assert!(told.operations[0].outcome.starts_with("has an unknown outcome"));
        assert_eq!(
            (&told.witness.transactions[..], &told.witness.operations[..]),
            (&[4, 5][..], &[(1, 1)][..])
        );
        // A judge that names transactions names those that matter.
        let mut told = history(Vec::new());
        let witness =
            Witness { attempts: vec![shaketable_sim::ids::AttemptId(3)], ..Witness::operation(1, 1) };
        explain(&mut told, &[Finding::new(Kind::Model, "it").with(witness)], &Plain);
        assert_eq!(told.witness.transactions, [3]);
        let mut told = history(Vec::new());
        explain(&mut told, &[], &Plain);
        assert!(told.witness.is_empty());
    }

    #[test]
    fn rows_that_the_claim_names_are_marked() {
        let named = |claim: &str, calls: Vec<CallEntry>| {
            let mut told = history(calls);
            explain(&mut told, &[Finding::new(Kind::Model, claim)], &Plain);
            told.transactions[1].calls.iter().map(|call| call.named).collect::<Vec<_>>()
        };
        let rows = || {
            vec![
                set(r#"("order", 2001)"#, "7"),
                set(r#"("order", 201)"#, "7"),
                set(r#"("user", "ann")"#, "7"),
                set(r#"("user", "anne")"#, "7"),
                set("item 3", r#"("task", "wash")"#),
                CallEntry { access: Access::Clear, at: r#"("order", 2001)"#.into(), ..CallEntry::default() },
                CallEntry { access: Access::Option, at: "2001".into(), ..CallEntry::default() },
            ]
        };
        assert_eq!(named("order 2001 has two", rows()), [true, false, false, false, false, true, false]);
        assert_eq!(named(r#"user "ann" has 7"#, rows()), [false, false, true, false, false, false, false]);
        assert_eq!(named("item 3 is gone", rows()), [false, false, false, false, true, false, false]);
        assert_eq!(
            named(r#""wash" is done twice"#, rows()),
            [false, false, false, false, true, false, false]
        );
        assert_eq!(named("they differ", rows()), [false; 7]);
        let many: Vec<_> = (0..=MOST_NAMED).map(|n| set(&format!("(2001, {n})"), "7")).collect();
        assert_eq!(named("2001 has too many", many.clone()), vec![false; many.len()]);
        assert_eq!(named("2001 has too many", many[1..].to_vec()), vec![true; MOST_NAMED]);
    }
}
