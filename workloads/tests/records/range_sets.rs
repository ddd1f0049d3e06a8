//! Range sets, compared with sets of keys, and what their changes conflict on.

use super::{begin, on_cluster};
use foundationdb_tuple::Subspace;
use shaketable_record::index::range_set::{FIRST, LAST, RangeSet};
use shaketable_sim::seed::Seed;
use shaketable_tx::{Error, Isolation::Serializable, Transaction};

fn set() -> RangeSet {
    RangeSet::new(Subspace::from("ranges"))
}

#[test]
fn ranges_are_those_of_a_set_of_keys() {
    on_cluster(|db| async move {
        const KEYS: u8 = 40;
        let (set, mut rng, mut model) = (set(), Seed(11).stream("ranges"), [false; KEYS as usize]);
        for step in 0..60 {
            let tx = begin(&db);
            let (a, b) = (rng.below(u64::from(KEYS)) as u8, rng.below(u64::from(KEYS)) as u8);
            let (from, to) = (a.min(b), a.max(b));
            let covered = &mut model[usize::from(from)..usize::from(to)];
            let new = covered.contains(&false);
            covered.fill(true);
            assert_eq!(set.insert(&tx, (&[from], &[to])).await, Ok(new));
            tx.commit().await.expect("nobody else writes");
            let tx = begin(&db);
            for key in 0..KEYS {
                assert_eq!(
                    set.contains(&tx, &[key]).await,
                    Ok(model[usize::from(key)]),
                    "{key} in {model:?}"
                );
            }
            let mut gaps: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            for key in (0..KEYS).filter(|key| !model[usize::from(*key)]) {
                match gaps.last_mut().filter(|(_, end)| *end == [key]) {
                    Some((_, end)) => *end = vec![key + 1],
                    None => gaps.push((vec![key], vec![key + 1])),
                }
            }
            let limit = 1 + step % 4;
            gaps.truncate(limit);
            assert_eq!(set.missing(&tx, (&[0], &[KEYS]), limit, Serializable).await, Ok(gaps));
        }
        let tx = begin(&db);
        assert_eq!(set.is_complete(&tx).await, Ok(false));
        assert_eq!(set.insert(&tx, (FIRST, LAST)).await, Ok(true));
        assert_eq!(set.insert(&tx, (FIRST, LAST)).await, Ok(false));
        assert_eq!(set.is_complete(&tx).await, Ok(true));
        set.clear(&tx);
        assert_eq!(set.is_complete(&tx).await, Ok(false));
    });
}

#[test]
fn a_lookup_conflicts_with_the_range_that_gets_its_key_and_with_no_other() {
    on_cluster(|db| async move {
        let set = set();
        let (inside, outside) = (begin(&db), begin(&db));
        for (tx, key) in [(&inside, b"c"), (&outside, b"d")] {
            assert_eq!(set.contains(tx, key).await, Ok(false));
            tx.set(b"written", b"");
        }
        let inserting = begin(&db);
        set.insert(&inserting, (b"b", b"d")).await.expect("inserted");
        inserting.commit().await.expect("nobody else inserts");
        assert_eq!(inside.commit().await, Err(Error::NOT_COMMITTED));
        outside.commit().await.expect("its key is still missing");
    });
}

#[test]
fn overlapping_insertions_conflict_and_adjacent_ones_are_one_row() {
    on_cluster(|db| async move {
        let set = set();
        let (one, two) = (begin(&db), begin(&db));
        set.insert(&one, (b"b", b"d")).await.expect("inserted");
        set.insert(&two, (b"c", b"e")).await.expect("inserted");
        one.commit().await.expect("the first of them");
        assert_eq!(two.commit().await, Err(Error::NOT_COMMITTED));
        let (after, before) = (begin(&db), begin(&db));
        set.insert(&after, (b"d", b"e")).await.expect("inserted");
        set.insert(&before, (b"a", b"b")).await.expect("inserted");
        after.commit().await.expect("adjacent");
        before.commit().await.expect("adjacent");
        let rows = begin(&db).get_range_all(Subspace::from("ranges").range().into(), Serializable).await;
        assert_eq!(rows.expect("read").len(), 2, "a row that was made longer, and the one before it");
    });
}
