//! The processing of a batch by a commit proxy: stamps before the resolvers, resolutions after them.

use crate::{
    atomic, idempotency,
    proto::{CommitData, KeyRange, LoggedTransaction, Mutation, Resolution, Version},
};
use shaketable_tx::{MutationType, key_after};
use std::sync::Arc;

/// Fills in the versionstamps of a transaction that uses them, and adds the write conflict ranges of keys
/// that are known only now, if they are to be guarded. Other transactions are left unchanged and stay shared
/// with their sender.
pub fn stamp(transaction: &mut Arc<CommitData>, version: Version, batch_index: u16, guards: bool) {
    let is_stamped = |m: &Mutation| {
        matches!(
            m,
            Mutation::Atomic(_, _, MutationType::SetVersionstampedKey | MutationType::SetVersionstampedValue)
        )
    };
    if !transaction.mutations.iter().any(is_stamped) {
        return;
    }
    let stamp = atomic::versionstamp(version, batch_index);
    let data = Arc::make_mut(transaction);
    for mutation in &mut data.mutations {
        let is_key = guards && matches!(mutation, Mutation::Atomic(_, _, MutationType::SetVersionstampedKey));
        *mutation = atomic::stamped(mutation, &stamp);
        if let (true, Mutation::Set(key, _)) = (is_key, &*mutation) {
            data.write_ranges.push(KeyRange { begin: key.clone(), end: key_after(key) });
        }
    }
}

/// Combines the resolutions of all resolvers about one transaction: a conflict found by any of them has
/// precedence, then being too old (`determineCommittedTransactions` takes the minimum of FoundationDB's
/// codes).
pub fn combine(resolutions: impl Iterator<Item = Resolution>) -> Resolution {
    resolutions.fold(Resolution::Committed, |all, one| match (all, one) {
        (Resolution::Conflict(mut all), Resolution::Conflict(one)) => {
            all.extend(one);
            all.sort_unstable();
            all.dedup();
            Resolution::Conflict(all)
        }
        (conflict @ Resolution::Conflict(_), _) | (_, conflict @ Resolution::Conflict(_)) => conflict,
        (Resolution::TooOld, _) | (_, Resolution::TooOld) => Resolution::TooOld,
        (Resolution::Committed, Resolution::Committed) => Resolution::Committed,
    })
}

/// An accepted transaction in the form in which it is logged: its writes, and its idempotency id.
pub fn logged(data: &CommitData, version: Version, batch_index: u16) -> LoggedTransaction {
    let mut mutations = Vec::with_capacity(data.mutations.len() + 1);
    mutations.extend_from_slice(&data.mutations);
    if let Some(id) = &data.idempotency_id {
        let (key, value) = idempotency::entry(id, version, batch_index);
        mutations.push(Mutation::Set(key, value));
    }
    LoggedTransaction { attempt: data.attempt, batch_index, mutations }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn a_stamped_key_becomes_a_set_with_a_conflict_range() {
        let key = Bytes::from_static(b"q__________\x01\0\0\0");
        let plain = Mutation::Set(Bytes::from_static(b"a"), Bytes::from_static(b"b"));
        let op = Mutation::Atomic(key, Bytes::from_static(b"v"), MutationType::SetVersionstampedKey);
        let mut data = Arc::new(CommitData { mutations: vec![plain.clone(), op], ..CommitData::default() });
        stamp(&mut data, 0x0102, 3, true);
        let stamped = Bytes::from_static(b"q\0\0\0\0\0\0\x01\x02\0\x03");
        assert_eq!(data.mutations[0], plain);
        assert_eq!(data.mutations[1], Mutation::Set(stamped.clone(), Bytes::from_static(b"v")));
        assert_eq!(data.write_ranges, [KeyRange::new(stamped.clone(), key_after(&stamped))]);
    }

    #[test]
    fn transactions_without_a_stamp_are_not_copied() {
        let mut data = Arc::new(CommitData::default());
        let before = data.clone();
        stamp(&mut data, 1, 1, true);
        assert!(Arc::ptr_eq(&before, &data));
    }

    #[test]
    fn the_gravest_resolution_counts() {
        use Resolution::*;
        let all = |v: Vec<Resolution>| combine(v.into_iter());
        assert_eq!(all(vec![]), Committed);
        assert_eq!(all(vec![Committed, TooOld]), TooOld);
        assert_eq!(all(vec![TooOld, Conflict(vec![2]), Committed]), Conflict(vec![2]));
        assert_eq!(all(vec![Conflict(vec![2, 3]), Conflict(vec![0, 3])]), Conflict(vec![0, 2, 3]));
    }

    #[test]
    fn an_idempotency_id_is_logged_with_its_stamp() {
        let id = Bytes::from_static(b"0123456789abcdef");
        let data = CommitData { idempotency_id: Some(id.clone()), ..CommitData::default() };
        let expected = Mutation::Set(Bytes::from_static(b"\xff\x02/idmp/\0\0\0\0\0\0\0\x09\0\x04"), id);
        assert_eq!(logged(&data, 9, 4).mutations, [expected]);
    }
}
