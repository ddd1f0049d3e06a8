//! Ranked sets, compared with sorted lists, and what their changes conflict on.

use super::{begin, on_cluster};
use foundationdb_tuple::Subspace;
use shaketable_record::index::ranked_set::{Config, Hash, RankedSet};
use shaketable_sim::seed::Seed;
use shaketable_tx::{Db, Error, Tx};
use shaketable_tx::{Isolation::Serializable, Transaction};

fn set(config: Config) -> RankedSet {
    RankedSet::new(Subspace::from("ranks"), config)
}

fn element(number: u64) -> Vec<u8> {
    foundationdb_tuple::pack(&(number as i64,))
}

/// What the set answers for every element and every rank, next to a sorted list.
async fn compare(tx: &Tx, set: &RankedSet, model: &[u64], counts: bool, all: u64) {
    let mut listed = model.to_vec();
    listed.sort_unstable();
    if !counts {
        listed.dedup();
    }
    assert_eq!(set.size(tx, Serializable).await, Ok(listed.len() as i64));
    for number in 0..all {
        let key = element(number);
        let below = listed.iter().filter(|other| **other < number).count() as i64;
        let equal = listed.iter().filter(|other| **other == number).count() as i64;
        assert_eq!(set.rank(tx, &key, Serializable).await, Ok(below), "the rank of {number} in {listed:?}");
        assert_eq!(set.count(tx, &key, Serializable).await, Ok(equal));
        assert_eq!(set.contains(tx, &key, Serializable).await, Ok(equal > 0));
    }
    for rank in -1..=listed.len() as i64 {
        let nth = usize::try_from(rank).ok().and_then(|rank| listed.get(rank)).map(|number| element(*number));
        assert_eq!(set.get_nth(tx, rank, Serializable).await, Ok(nth), "rank {rank} in {listed:?}");
    }
    assert_eq!(set.inconsistency(tx).await, Ok(None));
}

/// Random additions and removals, several in a transaction; with few levels, so that all of them are used.
async fn shake(db: Db, config: Config, steps: usize) {
    const ELEMENTS: u64 = 200;
    let (set, mut rng, mut model) = (set(config), Seed(7).stream("ranks"), Vec::new());
    for _ in 0..steps {
        let tx = begin(&db);
        for _ in 0..1 + rng.below(8) {
            let number = rng.below(ELEMENTS);
            let at = model.iter().position(|other| *other == number);
            match at.filter(|_| rng.chance(0.4)) {
                Some(at) => {
                    model.swap_remove(at);
                    assert_eq!(set.remove(&tx, &element(number)).await, Ok(true));
                }
                None => {
                    let new = at.is_none() || config.count_duplicates;
                    assert_eq!(set.add(&tx, &element(number)).await, Ok(new));
                    if new {
                        model.push(number);
                    }
                }
            }
        }
        let missing = (0..).find(|number| !model.contains(number)).expect("not all numbers are in the set");
        assert_eq!(set.remove(&tx, &element(missing)).await, Ok(false));
        tx.commit().await.expect("nobody else writes");
    }
    compare(&begin(&db), &set, &model, config.count_duplicates, ELEMENTS).await;
}

#[test]
fn ranks_are_those_of_a_sorted_list() {
    on_cluster(|db| shake(db, Config::default(), 60));
}

#[test]
fn ranks_with_duplicates_are_those_of_a_sorted_list() {
    on_cluster(|db| shake(db, Config { count_duplicates: true, hash: Hash::Crc, levels: 3 }, 60));
}

#[test]
fn a_set_without_rows_is_empty() {
    on_cluster(|db| async move {
        compare(&begin(&db), &set(Config::default()), &[], false, 3).await;
        assert_eq!(set(Config::default()).remove(&begin(&db), &element(1)).await, Ok(false));
    });
}

/// The elements of the list that stay at level 0, so that their additions have no reason to conflict.
fn plain(numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    let hash = |number| {
        element(number)
            .iter()
            .fold(1i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte as i8)))
    };
    numbers.filter(|number| hash(*number) & 15 != 0).collect()
}

#[test]
fn changes_of_unrelated_elements_do_not_conflict() {
    on_cluster(|db| async move {
        let set = set(Config::default());
        let numbers = plain(0..100);
        let first = begin(&db);
        for number in numbers.iter().step_by(3) {
            set.add(&first, &element(*number)).await.expect("added");
        }
        first.commit().await.expect("nobody else writes");
        let (one, two, three) = (begin(&db), begin(&db), begin(&db));
        set.add(&one, &element(numbers[1])).await.expect("added");
        set.add(&two, &element(numbers[10])).await.expect("added");
        set.remove(&three, &element(numbers[21])).await.expect("removed");
        for tx in [one, two, three] {
            tx.commit().await.expect("unrelated changes do not conflict");
        }
        assert_eq!(set.inconsistency(&begin(&db)).await, Ok(None));
    });
}

#[test]
fn additions_of_one_element_conflict() {
    on_cluster(|db| async move {
        let set = set(Config { count_duplicates: true, ..Config::default() });
        let (one, two) = (begin(&db), begin(&db));
        set.add(&one, &element(1)).await.expect("added");
        set.add(&two, &element(1)).await.expect("added");
        one.commit().await.expect("the first of them");
        assert_eq!(two.commit().await, Err(Error::NOT_COMMITTED));
    });
}

#[test]
fn counts_that_are_not_of_a_set_are_refused_or_repaired() {
    on_cluster(|db| async move {
        for count in [i64::MAX, i64::MIN, -1] {
            for level in 0..3 {
                let tx = begin(&db);
                let set = set(Config { levels: 3, count_duplicates: true, ..Config::default() });
                for number in 0..100 {
                    set.add(&tx, &element(number)).await.expect("added");
                }
                for number in [0, 1, 2, 3] {
                    let key = Subspace::from("ranks").pack(&(level, &element(number)[..]));
                    tx.set(&key, &count.to_le_bytes());
                }
                tx.set(&Subspace::from("ranks").pack(&(level, &b""[..])), &count.to_le_bytes());
                for number in 0..5 {
                    let _ = set.rank(&tx, &element(number + 1), Serializable).await;
                    let _ = set.get_nth(&tx, i64::MAX - number as i64, Serializable).await;
                    let _ = set.size(&tx, Serializable).await;
                    let _ = set.inconsistency(&tx).await;
                    let _ = set.add(&tx, &element(number)).await;
                    let _ = set.remove(&tx, &element(number)).await;
                    let _ = set.add(&tx, &element(1_000 + number)).await;
                }
            }
        }
        let tx = begin(&db);
        let set = set(Config { count_duplicates: true, ..Config::default() });
        set.add(&tx, &element(1)).await.expect("added");
        tx.set(&Subspace::from("ranks").pack(&(0, &element(1)[..])), &i64::MAX.to_le_bytes());
        assert!(matches!(
            set.add(&tx, &element(1)).await,
            Err(shaketable_record::error::Error::Foreign { .. })
        ));
    });
}
