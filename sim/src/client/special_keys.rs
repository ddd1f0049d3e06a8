//! Special keys: the transaction's own conflict ranges, and the keys that made its commit fail.
//!
//! The modules' boundaries are those of FoundationDB, so that reads across them fail in the same way; only
//! the transaction module contains rows here.

use super::{
    conflict::RangeSet,
    database::Client,
    guard::{guarded, idle},
    keys::{ALL_END, SPECIAL_END, single_key},
    limits::Limits,
    selector::Selector,
    transaction::{Inner, SimTransaction, State},
    write_map,
};
use crate::{
    atomic,
    proto::{CommitReply, KeyRange},
};
use bytes::Bytes;
use shaketable_layers::tx::{Error, KeyValue, RangeBatch, RangeOption, Result};
use std::{future::Future, sync::Arc};

/// The modules of the special key space.
const MODULES: &[(&[u8], &[u8])] = &[
    (b"\xff\xff/actor_lineage/", b"\xff\xff/actor_lineage0"),
    (b"\xff\xff/actor_profiler_conf/", b"\xff\xff/actor_profiler_conf0"),
    (b"\xff\xff/cluster_file_path", b"\xff\xff/cluster_file_path\x00"),
    (b"\xff\xff/cluster_id", b"\xff\xff/cluster_id\x00"),
    (b"\xff\xff/configuration/", b"\xff\xff/configuration0"),
    (b"\xff\xff/connection_string", b"\xff\xff/connection_string\x00"),
    (b"\xff\xff/error_message", b"\xff\xff/error_message\x00"),
    (b"\xff\xff/global_config/", b"\xff\xff/global_config0"),
    (b"\xff\xff/management/", b"\xff\xff/management0"),
    (b"\xff\xff/metrics/", b"\xff\xff/metrics0"),
    (b"\xff\xff/status/json", b"\xff\xff/status/json\x00"),
    (b"\xff\xff/tracing/", b"\xff\xff/tracing0"),
    (b"\xff\xff/transaction/", b"\xff\xff/transaction0"),
    (b"\xff\xff/worker_interfaces/", b"\xff\xff/worker_interfaces0"),
];

const STATUS: &[u8] = b"\xff\xff/status/json";
const CONFLICTING: &[u8] = b"\xff\xff/transaction/conflicting_keys/";
const READ: &[u8] = b"\xff\xff/transaction/read_conflict_range/";
const READ_END: &[u8] = b"\xff\xff/transaction/read_conflict_range0";
const WRITE: &[u8] = b"\xff\xff/transaction/write_conflict_range/";

/// The module that contains `key`, or the gap between modules around it; and whether it is a module.
fn module(key: &[u8]) -> (&[u8], &[u8], bool) {
    let (mut from, mut to): (&[u8], &[u8]) = (b"\xff\xff", b"\xff\xff\xff");
    for (begin, end) in MODULES {
        if key < *begin {
            to = begin;
            break;
        }
        if key < *end {
            return (begin, end, true);
        }
        from = end;
    }
    (from, to, false)
}

/// The boundaries of a set, each with a value that indicates whether a range begins or ends there.
fn boundaries(prefix: &[u8], set: &RangeSet, rows: &mut Vec<KeyValue>) {
    for range in set.ranges() {
        rows.push(KeyValue::new([prefix, &range.begin].concat(), &b"1"[..]));
        rows.push(KeyValue::new([prefix, &range.end].concat(), &b"0"[..]));
    }
}

impl State {
    fn read_conflicts(&self) -> RangeSet {
        let mut set = self.reads.clone();
        let native = self.native.read_ranges.iter().chain(&self.native.extra_reads);
        native.cloned().for_each(|range| set.insert(range));
        set
    }

    fn write_conflicts(&self, committed: Option<[u8; 10]>) -> RangeSet {
        let mut set = RangeSet::default();
        let written = write_map::conflict_ranges(&self.writes, &Bytes::new(), &write_map::EVERYTHING);
        written.into_iter().for_each(|range| set.insert(range));
        if self.options.ryw_disabled {
            self.native.write_ranges.iter().cloned().for_each(|range| set.insert(range));
        }
        for key in &self.stamp_keys {
            let landing = match committed {
                Some(stamp) => Ok(single_key(&atomic::substitute(key, &stamp))),
                None => atomic::versionstamped_key_range(key, self.version.known(), &self.max_read()),
            };
            set.insert(landing.unwrap_or_else(|_| KeyRange::new("", "")));
        }
        set
    }

    fn special_rows(&self, client: &Client) -> Vec<KeyValue> {
        let mut rows = vec![KeyValue::new(STATUS, client.connection.status())];
        boundaries(CONFLICTING, &self.conflicting, &mut rows);
        boundaries(READ, &self.read_conflicts(), &mut rows);
        let committed = match &self.outcome {
            Some(CommitReply::Committed { version, batch_index }) => {
                Some(atomic::versionstamp(*version, *batch_index))
            }
            _ => None,
        };
        boundaries(WRITE, &self.write_conflicts(committed), &mut rows);
        rows
    }
}

/// The position of `selector` among `rows`, all of which are in `[begin, end)`.
fn position(selector: &Selector, rows: &[KeyValue], (begin, end): (&[u8], &[u8])) -> usize {
    let key = selector.key.clone().clamp(Bytes::copy_from_slice(begin), Bytes::copy_from_slice(end));
    let base = rows.partition_point(|row| row.key < key) as i64;
    (base + i64::from(selector.offset) - 1).clamp(0, rows.len() as i64) as usize
}

async fn read(
    inner: Arc<Inner>,
    begin: Selector,
    end: Selector,
    mut limits: Limits,
    reverse: bool,
) -> Result<RangeBatch> {
    let (relaxed, epoch) = {
        let state = inner.state.lock();
        state.deferred()?;
        (state.options.special_keys_relaxed, state.epoch)
    };
    if begin.offset >= end.offset && begin.key >= end.key {
        return Ok(RangeBatch::default());
    }
    let (from, to) = match relaxed {
        true => (&ALL_END[..], &SPECIAL_END[..]),
        false => {
            let (from, to, is_module) = module(&begin.key);
            if *end.key < *from || *to < *end.key {
                return Err(Error::SPECIAL_KEYS_CROSS_MODULE_READ);
            }
            if !is_module {
                return Err(Error::SPECIAL_KEYS_NO_MODULE_FOUND);
            }
            (from, to)
        }
    };
    if *begin.key < *READ_END && *end.key > *READ {
        // Conflict ranges of reads in progress are included.
        let watches = inner.state.lock().watches.clone();
        let pending = async {
            for watch in watches {
                watch.read().await;
            }
            idle(&inner, epoch).await
        };
        guarded(&inner, epoch, false, pending).await?;
    }
    let mut rows = inner.state.lock().special_rows(&inner.client);
    rows.retain(|row| (from..to).contains(&&*row.key));
    let (first, last) = (position(&begin, &rows, (from, to)), position(&end, &rows, (from, to)));
    let mut chosen: Vec<KeyValue> = rows.drain(first..last.max(first)).collect();
    if reverse {
        chosen.reverse();
    }
    let mut more = false;
    let mut taken = Vec::new();
    for row in chosen {
        limits.take(&row);
        taken.push(row);
        if limits.is_reached() {
            more = true;
            break;
        }
    }
    Ok(RangeBatch { rows: taken, more })
}

impl SimTransaction {
    pub(super) fn special_get(
        &self,
        key: &[u8],
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<> {
        let range = single_key(key);
        let limits = Limits { rows: Some(1), min_rows: 1, bytes: None };
        let batch = read(
            self.0.clone(),
            Selector::first_at(range.begin),
            Selector::first_at(range.end),
            limits,
            false,
        );
        async move { Ok(batch.await?.rows.pop().map(|row| row.value)) }
    }

    pub(super) fn special_range(
        &self,
        range: &RangeOption,
        limits: Limits,
    ) -> impl Future<Output = Result<RangeBatch>> + Send + use<> {
        read(
            self.0.clone(),
            Selector::plain(&range.begin),
            Selector::plain(&range.end),
            limits,
            range.reverse,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_ascending_and_disjoint() {
        assert!(MODULES.windows(2).all(|pair| pair[0].1 < pair[1].0));
        assert_eq!(module(b"\xff\xff/transaction/x"), (MODULES[12].0, MODULES[12].1, true));
        assert_eq!(module(b"\xff\xff/metrics0"), (MODULES[9].1, MODULES[10].0, false));
        assert_eq!(module(b"\xff\xff"), (&b"\xff\xff"[..], MODULES[0].0, false));
    }
}
