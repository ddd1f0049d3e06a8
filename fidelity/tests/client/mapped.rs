//! Mapped range reads.

use super::*;

#[test]
fn mapped_ranges_lead_to_rows() {
    use foundationdb_tuple::pack;
    with(&[Family::OneRowBatches], |world, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        for n in 0..30_i64 {
            tx.set(&pack(&("index", n % 7, n)), &pack(&(n, "value")));
            for part in 0..3_i64 {
                tx.set(&pack(&("record", n, part)), &pack(&(n * part,)));
            }
        }
        for n in 0..2_100_i64 {
            tx.set(&pack(&("record", 100, n)), b"");
        }
        tx.set(&pack(&("many", 100)), b"");
        tx.commit().await.expect("a calm commit");

        let all = |name: &str| {
            let begin = pack(&(name,));
            RangeOption::new(begin.clone(), shaketable_tx::strinc(&begin).expect("an end"))
        };
        let by_key = pack(&("record", "{K[2]}", "{...}"));
        let by_value = pack(&("record", "{V[0]}", "{...}"));
        for (mapper, one_row) in [(&by_key, false), (&by_value, false), (&by_key, true)] {
            world.faults.switch(one_row);
            let tx = db.create_transaction().expect("a transaction");
            let (mut range, mut seen) = (all("index"), 0);
            for iteration in 1.. {
                let batch = tx.get_mapped_range(&range, mapper, iteration, Isolation::Serializable).await;
                let batch = batch.expect("a batch");
                for row in &batch.rows {
                    let (_, _, n): (String, i64, i64) =
                        foundationdb_tuple::unpack(&row.parent.key).expect("a key");
                    assert_eq!(row.parent.value, pack(&(n, "value")));
                    assert_eq!(row.begin, pack(&("record", n)));
                    let part = |row: &shaketable_tx::KeyValue| (row.key.to_vec(), row.value.to_vec());
                    let found: Vec<_> = row.rows.iter().map(part).collect();
                    let expected = (0..3).map(|p: i64| (pack(&("record", n, p)), pack(&(n * p,))));
                    assert_eq!(found, expected.collect::<Vec<_>>());
                }
                seen += batch.rows.len();
                assert!(!batch.rows.is_empty() || !batch.more);
                let Some(last) = batch.rows.last().filter(|_| batch.more) else { break };
                range.begin = shaketable_tx::KeySelector::first_greater_than(last.parent.key.clone());
            }
            assert_eq!(seen, 30);
            world.faults.switch(false);
            // Another client adds a row to the range to which the last row maps.
            let theirs = db.create_transaction().expect("a transaction");
            theirs.set(&pack(&("record", 29, 7)), b"");
            theirs.commit().await.expect("a calm commit");
            tx.set(b"write", b"");
            assert_eq!(tx.commit().await, Err(Error::NOT_COMMITTED));
            let theirs = db.create_transaction().expect("a transaction");
            theirs.clear(&pack(&("record", 29, 7)));
            theirs.commit().await.expect("a calm commit");
        }

        let tx = db.create_transaction().expect("a transaction");
        let mapper = pack(&("record", "{K[1]}", "{...}"));
        let batch =
            tx.get_mapped_range(&all("many"), &mapper, 1, Isolation::Serializable).await.expect("a batch");
        assert_eq!(batch.rows[0].rows.len(), 2_000, "as many as a storage server looks up");
    });
}

#[test]
fn a_mapped_batch_ends_when_its_bytes_are_used_up() {
    use foundationdb_tuple::pack;
    with(&[], |_, db| async move {
        // Small rows that map to large ones.
        let (tx, large) = (db.create_transaction().expect("a transaction"), vec![7; 2_000]);
        for n in 0..60_i64 {
            tx.set(&pack(&("index", n)), b"");
            tx.set(&pack(&("record", n)), &large);
        }
        tx.commit().await.expect("a calm commit");
        let begin = pack(&("index",));
        let range = RangeOption::new(begin.clone(), shaketable_tx::strinc(&begin).expect("an end"));
        let mapper = pack(&("record", "{K[1]}", "{...}"));
        let tx = db.create_transaction().expect("a transaction");
        let before = tx.get_total_cost().await.expect("a cost");
        let batch = tx.get_mapped_range(&range, &mapper, 1, Isolation::Serializable).await.expect("a batch");
        // The first iteration requests 4,096 bytes; ten rows are mapped before they are counted.
        assert_eq!((batch.rows.len(), batch.more), (10, true));
        let read = |rows: usize, each: usize| rows * each;
        let bytes = read(10, pack(&("index", 1)).len()) + read(10, 2_000);
        let cost = tx.get_total_cost().await.expect("a cost") - before;
        assert!(cost >= bytes as i64, "{cost} for {bytes} bytes");

        // Rows that are not small: only a fraction of the bytes is available for them.
        let tx = db.create_transaction().expect("a transaction");
        (0..60_i64).for_each(|n| tx.set(&pack(&("heavy", n)), &large[..200]));
        tx.commit().await.expect("a calm commit");
        let begin = pack(&("heavy",));
        let range = RangeOption::new(begin.clone(), shaketable_tx::strinc(&begin).expect("an end"));
        let tx = db.create_transaction().expect("a transaction");
        let batch = tx.get_mapped_range(&range, &mapper, 1, Isolation::Serializable).await.expect("a batch");
        assert_eq!((batch.rows.len(), batch.more), (4, true));
        assert_eq!(tx.get_total_cost().await, Ok(3 * 4_096), "of both, keys and values");

        // Small rows that map to small ones: the primary rows end the batch.
        let tx = db.create_transaction().expect("a transaction");
        for n in 0..60_i64 {
            tx.set(&pack(&("light", n)), b"");
            tx.set(&pack(&("small", n)), b"small");
        }
        tx.commit().await.expect("a calm commit");
        let begin = pack(&("light",));
        let range = RangeOption::new(begin.clone(), shaketable_tx::strinc(&begin).expect("an end"));
        let mapper = pack(&("small", "{K[1]}", "{...}"));
        let tx = db.create_transaction().expect("a transaction");
        let batch = tx.get_mapped_range(&range, &mapper, 1, Isolation::Serializable).await.expect("a batch");
        assert_eq!((batch.rows.len(), batch.more), (25, true));
    });
}

#[test]
fn a_mapped_range_lies_within_the_keys_that_may_be_read() {
    with(&[], |_, db| async move {
        let outside = Err(Error::KEY_OUTSIDE_LEGAL_RANGE);
        for (begin, end, rows) in [
            (&b"a"[..], &b"\xff"[..], Ok(0)),
            (b"\xff", b"\xff", Ok(0)),
            (b"a", b"\xff\0", outside),
            (b"\xff\0", b"a", outside),
        ] {
            let tx = db.create_transaction().expect("a transaction");
            let range = RangeOption::new(begin, end);
            let mapper = foundationdb_tuple::pack(&("record", "{K[0]}", "{...}"));
            let found = tx.get_mapped_range(&range, &mapper, 1, Isolation::Serializable).await;
            assert_eq!(found.map(|batch| batch.rows.len()), rows, "{range:?}");
        }
    });
}

#[test]
fn a_mapped_read_is_in_the_history_and_conflicts_as_far_as_its_selectors_led() {
    use foundationdb_tuple::pack;
    with(&[], |world, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        clear_system_keys(&tx);
        for n in 0..3_i64 {
            tx.set(&pack(&("index", n)), b"");
            tx.set(&pack(&("a record", n, "part")), b"");
        }
        tx.commit().await.expect("a calm commit");
        let index = |n: i64| Bytes::from(pack(&("index", n)));
        let begin = KeySelector::first_greater_or_equal(pack(&("index",)));
        let beyond = KeySelector::new(index(1), false, 9);
        let mapper = pack(&("a record", "{K[1]}", "{...}"));
        // A limit (0 for none), whether it is read in reverse, its rows, and the end of the resulting
        // conflict range.
        for (limit, reverse, rows, end) in [
            (0, false, &[0, 1, 2][..], Bytes::from_static(b"\xff")),
            (2, false, &[0, 1], key_after(&index(1))),
            (0, true, &[2, 1, 0], key_after(&index(2))),
        ] {
            let tx = db.create_transaction().expect("a transaction");
            let limit = (limit > 0).then_some(limit);
            let range = RangeOption {
                begin: begin.clone(),
                end: beyond.clone(),
                limit,
                reverse,
                ..RangeOption::new("", "")
            };
            let batch =
                tx.get_mapped_range(&range, &mapper, 1, Isolation::Serializable).await.expect("a batch");
            let found: Vec<Bytes> = batch.rows.iter().map(|row| row.parent.key.clone()).collect();
            let wanted: Vec<Bytes> = rows.iter().map(|n| index(*n)).collect();
            assert_eq!((found, batch.more), (wanted.clone(), limit.is_some()));
            let last = listed(&tx, READ_CONFLICTS).await.pop();
            assert_eq!(last, Some((begin.key.clone(), end)), "limit {limit:?}, reverse {reverse}");
            drop(tx);
            // First the range, then those to which its rows map.
            let recorded = attempts(&world).pop().expect("an attempt");
            let read: Vec<(Vec<Bytes>, usize, bool)> = recorded
                .calls
                .iter()
                .filter_map(|call| match call {
                    Call::GetRange { answer: Some((rows, _)), limit, reverse, .. } => {
                        Some((rows.iter().map(|row| row.key.clone()).collect(), *limit, *reverse))
                    }
                    _ => None,
                })
                .collect();
            let record = |n: &i64| (vec![Bytes::from(pack(&("a record", *n, "part")))], 0, false);
            let all: Vec<_> = std::iter::once((wanted, limit.unwrap_or(0), reverse))
                .chain(rows.iter().map(record))
                .collect();
            assert_eq!(read, all);
        }
    });
}
