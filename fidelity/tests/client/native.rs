//! Reads past own writes, compared with a plain map.

use super::*;

/// Up to two of three letters, so that keys coincide.
fn drawn_key(rng: &mut Stream) -> Bytes {
    (0..rng.below(3)).map(|_| b'a' + rng.below(3) as u8).collect()
}

fn drawn_selector(rng: &mut Stream) -> KeySelector {
    let offset = if rng.chance(0.4) { 1 } else { rng.below(11) as i32 - 5 };
    KeySelector::new(drawn_key(rng), rng.chance(0.3), offset)
}

/// The key to which a selector resolves among these keys.
fn named(keys: &BTreeSet<Bytes>, selector: &KeySelector) -> Bytes {
    let below = |key: &&Bytes| **key < selector.key || selector.or_equal && **key == selector.key;
    match keys.iter().filter(below).count() as i64 + i64::from(selector.offset) - 1 {
        at if at < 0 => Bytes::new(),
        at => keys.iter().nth(at as usize).cloned().unwrap_or(Bytes::from_static(b"\xff\xff")),
    }
}

/// The keys of a range in the order of the read.
fn between(keys: &BTreeSet<Bytes>, range: &RangeOption) -> Vec<Bytes> {
    let end = |selector: &KeySelector| match selector.offset {
        // An end that is a key need not exist.
        1 if selector.or_equal => key_after(&selector.key),
        1 => selector.key.clone(),
        _ => named(keys, selector),
    };
    let (from, to) = (end(&range.begin), end(&range.end));
    let mut found: Vec<Bytes> = keys.iter().filter(|key| from <= **key && **key < to).cloned().collect();
    if range.reverse {
        found.reverse();
    }
    found
}

/// The expected result of a read among these keys.
type Again = Box<dyn Fn(&BTreeSet<Bytes>) -> Vec<Bytes> + Send>;

/// Each read, its result and its conflict ranges are included in the snapshot: a conflict range that is too
/// large, or a batch with less information than possible, is not visible in any result.
#[test]
fn reads_past_own_writes_answer_as_a_plain_map_and_conflict_on_all_that_could_change_it() {
    const STORES: usize = 12;
    const READS: usize = 16;
    let shards = ["ab", "b", "bc"].map(Bytes::from).to_vec();
    let config = ClusterConfig { shard_boundaries: shards, ..ClusterConfig::smallest() };
    let told = Arc::new(Mutex::new(String::new()));
    let tell = told.clone();
    with_cluster(Seed(3), config, &[], move |_, db| {
        let tell = tell.clone();
        async move {
            let mut rng = Seed(5).stream("native reads");
            for _ in 0..STORES {
                let keys: BTreeSet<Bytes> = (0..rng.below(10)).map(|_| drawn_key(&mut rng)).collect();
                let tx = db.create_transaction().expect("a transaction");
                clear_system_keys(&tx);
                tx.clear_range(b"", b"\xff");
                keys.iter().for_each(|key| tx.set(key, b"value"));
                tx.commit().await.expect("a calm commit");
                let mut lines = format!("{}\n", words(&keys));
                for _ in 0..READS {
                    let tx = native(&db, &[]);
                    let (begin, end) = (drawn_selector(&mut rng), drawn_selector(&mut rng));
                    let again: Again;
                    let answer = if rng.chance(0.3) {
                        let key = tx.get_key(&begin, Isolation::Serializable).await.expect("a key");
                        write!(lines, "  key {}", word(&begin)).expect("a string takes it");
                        again =
                            Box::new(move |keys| vec![named(keys, &begin).min(Bytes::from_static(b"\xff"))]);
                        vec![key]
                    } else {
                        let limit = rng.chance(0.5).then(|| 1 + rng.below(4) as usize);
                        let mut range = RangeOption { begin, end, limit, ..RangeOption::new("", "") };
                        range.reverse = rng.chance(0.5);
                        let batch = tx.get_range(&range, 1, Isolation::Serializable).await.expect("a batch");
                        let (direction, more) = (
                            if range.reverse { "back" } else { "on" },
                            if batch.more { ", more" } else { "" },
                        );
                        let limit = limit.map_or("all".to_owned(), |limit| limit.to_string());
                        let (begin, end) = (word(&range.begin), word(&range.end));
                        write!(lines, "  {begin} to {end} {direction}, {limit}{more}")
                            .expect("a string takes it");
                        let rows: Vec<Bytes> = batch.rows.into_iter().map(|row| row.key).collect();
                        let part = if batch.more { rows.len() } else { usize::MAX };
                        again = Box::new(move |keys| between(keys, &range).into_iter().take(part).collect());
                        rows
                    };
                    assert_eq!(answer, again(&keys), "{lines}");
                    let conflicts = listed(&tx, READ_CONFLICTS).await;
                    let ranges: Vec<String> = conflicts
                        .iter()
                        .map(|(a, b)| format!("{}..{}", a.escape_ascii(), b.escape_ascii()))
                        .collect();
                    writeln!(lines, " = {} [{}]", words(&answer), ranges.join(" "))
                        .expect("a string takes it");
                    for _ in 0..20 {
                        let mut changed = keys.clone();
                        for _ in 0..3 {
                            let key = drawn_key(&mut rng);
                            if !conflicts.iter().any(|(begin, end)| *begin <= key && key < *end)
                                && !changed.remove(&key)
                            {
                                changed.insert(key);
                            }
                        }
                        assert_eq!(answer, again(&changed), "among {changed:?}\n{lines}");
                    }
                }
                tell.lock().push_str(&lines);
            }
        }
    });
    insta::assert_snapshot!(told.lock());
}

/// A selector as one word: its key, and its offset.
fn word(selector: &KeySelector) -> String {
    let equal = if selector.or_equal { "=" } else { "" };
    format!("'{}'{equal}{:+}", selector.key.escape_ascii(), selector.offset)
}

fn words<'a>(keys: impl IntoIterator<Item = &'a Bytes>) -> String {
    let keys: Vec<String> = keys.into_iter().map(|key| format!("'{}'", key.escape_ascii())).collect();
    keys.join(" ")
}

#[test]
fn keys_and_ranges_may_lead_to_either_end_of_all_keys() {
    use TransactionOption::ReadSystemKeys;
    with(&[], |_, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        clear_system_keys(&tx);
        ["b", "c", "d"].iter().for_each(|key| tx.set(key.as_bytes(), b""));
        tx.commit().await.expect("a calm commit");
        let at = |key: &'static [u8], offset| KeySelector::new(key, false, offset);
        let system = &[ReadSystemKeys][..];
        // Options, a selector, the key to which it resolves, and the resulting conflict range.
        for (options, selector, key, (begin, end)) in [
            (&[][..], at(b"a", 0), &b""[..], (&b""[..], &b"a"[..])),
            (&[], at(b"c", -5), b"", (b"", b"c")),
            (&[], at(b"c", 9), b"\xff", (b"c", b"\xff\xff")),
            (system, at(b"c", 9), b"\xff\xff", (b"c", b"\xff\xff")),
            (system, at(b"\xff\xff", 0), b"d", (b"d", b"\xff\xff")),
            (system, KeySelector::new(&b"\xff\xff"[..], true, 0), b"d", (b"d", b"\xff\xff")),
            (system, at(b"\xff\xff", -1), b"c", (b"c", b"\xff\xff")),
        ] {
            let tx = native(&db, options);
            assert_eq!(
                tx.get_key(&selector, Isolation::Serializable).await.as_deref(),
                Ok(key),
                "{selector:?}"
            );
            let conflicts = listed(&tx, READ_CONFLICTS).await;
            assert_eq!(conflicts, [(Bytes::from_static(begin), Bytes::from_static(end))], "{selector:?}");
        }
        // Both ends of a range, its limit (0 for none), whether it is read in reverse, its rows and its
        // conflict range.
        for (options, begin, end, limit, reverse, rows, conflict) in [
            (&[][..], at(b"a", 1), at(b"c", 9), 0, false, "bcd", (&b"a"[..], &b"\xff\xff"[..])),
            (&[], at(b"a", 1), at(b"c", 9), 2, false, "bc", (b"a", b"c\0")),
            (&[], at(b"c", -5), at(b"d", 1), 0, false, "bc", (b"", b"d")),
            (&[], at(b"c", -5), at(b"d", 1), 1, true, "c", (b"c", b"d")),
            (&[], at(b"c", -5), at(b"d", 1), 1, false, "b", (b"", b"c")),
            (&[], at(b"", -5), at(b"d", 1), 1, false, "b", (b"", b"b\0")),
            (&[], at(b"", -5), at(b"d", 1), 1, true, "c", (b"", b"d")),
            (system, at(b"a", 1), at(b"c", 9), 0, false, "bcd", (b"a", b"\xff\xff")),
            (system, at(b"a", 1), at(b"\xff\xff", 1), 0, true, "dcb", (b"a", b"\xff\xff")),
        ] {
            let tx = native(&db, options);
            let range = RangeOption {
                limit: (limit > 0).then_some(limit),
                reverse,
                begin,
                end,
                ..RangeOption::new("", "")
            };
            let batch = tx.get_range(&range, 1, Isolation::Serializable).await.expect("a batch");
            let keys: Vec<u8> = batch.rows.iter().map(|row| row.key[0]).collect();
            assert_eq!((String::from_utf8_lossy(&keys), batch.more), (rows.into(), limit > 0), "{range:?}");
            let (begin, end) = (Bytes::from_static(conflict.0), Bytes::from_static(conflict.1));
            let conflicts = listed(&tx, READ_CONFLICTS).await;
            let covered = conflicts.iter().any(|range| *range == (begin.clone(), end.clone()));
            assert!(covered, "{range:?} conflicts on {conflicts:?}");
        }
    });
}

#[test]
fn the_size_of_an_empty_range_may_be_requested() {
    with(&[], |_, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        assert_eq!(tx.get_estimated_range_size_bytes(b"a", b"a").await, Ok(0));
        assert_eq!(tx.get_estimated_range_size_bytes(b"b", b"a").await, Err(Error::INVERTED_RANGE));
    });
}

#[test]
fn a_read_past_own_writes_returns_no_key_of_the_system() {
    with(&[], |_, db| async move {
        let tx = db.create_transaction().expect("a transaction");
        tx.set_option(TransactionOption::AccessSystemKeys).expect("an option");
        [&b"a"[..], b"b", b"\xff", b"\xff/x"].into_iter().for_each(|key| tx.set(key, b""));
        tx.commit().await.expect("a commit");
        let tx = native(&db, &[]);
        let range = RangeOption {
            begin: KeySelector::first_greater_or_equal(&b"a"[..]),
            end: KeySelector::new(&b"a"[..], false, 4),
            ..RangeOption::new(&b"a"[..], &b"b"[..])
        };
        let rows = tx.get_range_all(range, Isolation::Serializable).await.expect("a read");
        assert_eq!(rows.iter().map(|row| &row.key[..]).collect::<Vec<_>>(), [b"a", b"b"]);
    });
}
