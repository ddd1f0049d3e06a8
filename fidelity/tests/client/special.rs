//! Special keys: what a range of them may span, and what it waits for.

use super::*;
use futures::poll;
use std::pin::pin;

const MODULE: &[u8] = b"\xff\xff/transaction/";
const MODULE_END: &[u8] = b"\xff\xff/transaction0";
const READ_CONFLICTS_END: &[u8] = b"\xff\xff/transaction/read_conflict_range0";

#[test]
fn a_range_of_special_keys_stays_within_the_module_in_which_it_begins() {
    with(&[], |_, db| async move {
        let at = |key: &[u8], offset| KeySelector::new(Bytes::copy_from_slice(key), false, offset);
        let written = |suffix: &str| [WRITE_CONFLICTS, suffix.as_bytes()].concat();
        let (key, after) = (written("k"), written("k\0"));
        let both = || Ok(vec![key.clone(), after.clone()]);
        let beyond = [MODULE_END, b"\0"].concat();
        let crosses = Err(Error::SPECIAL_KEYS_CROSS_MODULE_READ);
        for (begin, end, rows) in [
            (at(MODULE, 1), at(MODULE_END, 1), both()),
            (at(MODULE, 1), at(&beyond, 1), crosses.clone()),
            (at(MODULE, 1), at(&key, 1), Ok(vec![])),
            (at(MODULE, 1), at(&after, 1), Ok(vec![key.clone()])),
            // Selectors move over the rows of the module, and no farther: there is a row before it.
            (at(&key, -9), at(&after, 9), both()),
            (at(&key, 2), at(MODULE_END, 1), Ok(vec![after.clone()])),
            (at(MODULE, 1), at(&after, 0), Ok(vec![])),
            // An end before the begin is within the module or it is not, unless the range is inverted.
            (at(&key, 1), at(MODULE, 3), both()),
            (at(&key, 1), at(b"\xff\xff/transaction", 3), crosses),
            (at(&key, 1), at(b"\xff\xff/transaction", 1), Ok(vec![])),
            (at(&key, 1), at(b"\xff\xff/metrics/", 0), Ok(vec![])),
            // Nothing is between two modules.
            (at(MODULE_END, 1), at(&beyond, 1), Err(Error::SPECIAL_KEYS_NO_MODULE_FOUND)),
            (at(MODULE_END, 1), at(MODULE_END, 1), Ok(vec![])),
        ] {
            let tx = db.create_transaction().expect("a transaction");
            tx.set(b"k", b"value");
            let range = RangeOption { begin, end, ..RangeOption::new("", "") };
            let found = tx.get_range(&range, 1, Isolation::Snapshot).await;
            let found = found.map(|batch| batch.rows.iter().map(|row| row.key.to_vec()).collect());
            assert_eq!(found, rows, "{range:?}");
        }
    });
}

#[test]
fn only_a_range_with_read_conflicts_waits_for_reads_in_progress() {
    with(&[], |_, db| async move {
        let inside = [READ_CONFLICTS, b"k"].concat();
        for (begin, end, waits) in [
            (MODULE, MODULE_END, true),
            (READ_CONFLICTS, READ_CONFLICTS_END, true),
            (&inside, READ_CONFLICTS_END, true),
            (MODULE, &inside, true),
            (MODULE, READ_CONFLICTS, false),
            (READ_CONFLICTS_END, MODULE_END, false),
            (WRITE_CONFLICTS, MODULE_END, false),
        ] {
            let tx = db.create_transaction().expect("a transaction");
            let mut read = pin!(tx.get(b"k", Isolation::Serializable));
            assert!(poll!(read.as_mut()).is_pending(), "the value takes time");
            let range = RangeOption::new(begin.to_vec(), end.to_vec());
            let mut list = pin!(tx.get_range(&range, 1, Isolation::Snapshot));
            assert_eq!(poll!(list.as_mut()).is_pending(), waits, "{range:?}");
        }
    });
}
