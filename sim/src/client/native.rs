//! Reads of the snapshot: selectors and ranges across any number of shards (the part of
//! `fdbclient/NativeAPI.actor.cpp` below read-your-writes).

use super::{
    connection::Connection,
    keys::ALL_END,
    range::{Batch, Fetch},
    selector::Selector,
};
use crate::{
    faults::Family,
    proto::{GetKeyValuesReply, KeyRange, Location, Message, ResolvedKey, Version},
};
use bytes::Bytes;
use shaketable_tx::{KeySelector, Result, key_after};

impl Connection {
    /// The key to which `selector` resolves at `version`, between the beginning and the end of all keys.
    pub async fn key(&self, selector: KeySelector, version: Version) -> Result<Bytes> {
        let mut selector = selector;
        loop {
            if selector.key >= ALL_END {
                if selector.offset > 0 {
                    return Ok(ALL_END);
                }
                selector.or_equal = false;
            } else if selector.key.is_empty() && selector.offset <= 0 && !selector.or_equal {
                return Ok(Bytes::new());
            }
            let before = !selector.or_equal && selector.offset <= 0;
            let request =
                |_: &Location, reply| Message::GetKey { selector: selector.clone(), version, reply };
            match self.read(&selector.key, before, request).await?.1 {
                ResolvedKey::Found(key) => return Ok(key),
                ResolvedKey::Beyond(rest) => selector = rest,
            }
        }
    }

    async fn edge(&self, selector: &Selector, version: Version) -> Result<Bytes> {
        if selector.is_key() {
            return Ok(selector.key.clone());
        }
        let Selector { key, offset } = selector.clone();
        self.key(KeySelector { key, or_equal: false, offset }, version).await
    }

    /// A batch of a range at `version`: as many rows as the limits allow, or fewer if they are limited in
    /// bytes and a shard ends.
    pub async fn range(&self, fetch: Fetch, version: Version) -> Result<Batch> {
        let Fetch { begin, end, mut limits, reverse } = fetch;
        let mut batch = Batch::default();
        if end.key.is_empty() && end.offset <= 1 {
            return Ok(batch);
        }
        let mut from = self.edge(&begin, version).await?;
        let mut to = self.edge(&end, version).await?;
        if from >= to {
            return Ok(batch);
        }
        let from_begin = begin.key.is_empty() && begin.is_backward();
        let at_begin = from.is_empty() && begin.is_backward();
        let at_end = to >= ALL_END && !end.is_key();
        let min_rows = limits.min_rows;
        while from < to {
            let (limit, limit_bytes) = limits.request();
            let key = if reverse { to.clone() } else { from.clone() };
            let request = |location: &Location, reply| {
                let range = KeyRange {
                    begin: from.clone().max(location.range.begin.clone()),
                    end: to.clone().min(location.range.end.clone()),
                };
                Message::GetKeyValues { range, version, limit, limit_bytes, reverse, reply }
            };
            let (location, reply) = self.read::<GetKeyValuesReply>(&key, reverse, request).await?;
            for row in &reply.rows {
                limits.take(row);
            }
            let last = reply.rows.last().map(|row| row.key.clone());
            batch.rows.extend(reply.rows);
            // A storage server that has reached its limits reports that there is more without checking.
            let exhausted = !reply.more;
            // The end of what has been read so far.
            let through = match (exhausted, last, reverse) {
                (false, Some(last), true) => last,
                (false, Some(last), false) => key_after(&last),
                (_, _, true) => location.range.begin.clone(),
                (_, _, false) => location.range.end.clone(),
            };
            if reverse {
                to = through.clone();
            } else {
                from = through.clone();
            }
            if limits.is_reached() {
                batch.more = true;
                break;
            }
            if (from < to || !exhausted) && limits.may_end() && !batch.rows.is_empty() {
                batch.more = true;
                batch.read_through = exhausted.then_some(through);
                break;
            }
        }
        let least = min_rows.max(1) as usize;
        if limits.bytes.is_some() && batch.rows.len() > least && self.fault_occurs(Family::OneRowBatches) {
            batch.rows.truncate(least);
            batch.more = true;
            batch.read_through = None;
        }
        batch.read_to_begin = from_begin || (at_begin && !(reverse && batch.more));
        batch.read_through_end = at_end && (reverse || !batch.more);
        Ok(batch)
    }
}
