//! Calls that request estimates from storage servers, and explicit requests for the read version.

use super::{
    guard::{Guard, guard, guarded},
    keys::ALL_END,
    transaction::{Inner, SimTransaction},
    version::read_version,
};
use crate::{
    proto::{KeyRange, Location, Message},
    system_keys::address,
};
use bytes::Bytes;
use shaketable_tx::{Error, Result};
use std::{future::Future, sync::Arc};

impl SimTransaction {
    pub(super) fn do_get_read_version(&self) -> impl Future<Output = Result<i64>> + Send + use<> {
        let inner = self.0.clone();
        let asked = {
            let mut state = inner.state.lock();
            match state.deferred().and_then(|()| state.alive(&inner.client)) {
                Ok(()) => Ok((state.epoch, read_version(&inner, &mut state, false))),
                Err(e) => Err(e),
            }
        };
        async move {
            let (epoch, version) = asked?;
            guarded(&inner, epoch, version.get()).await
        }
    }

    pub(super) fn do_estimate(
        &self,
        begin: &[u8],
        end: &[u8],
    ) -> impl Future<Output = Result<i64>> + Send + use<> {
        let entered = self.enter_range(begin, end);
        async move {
            let (inner, epoch, range) = entered?;
            let estimate = over_shards(
                &inner,
                range,
                0,
                |total, metrics: i64| *total += metrics,
                |range, reply| Message::GetStorageMetrics { range, reply },
            );
            guarded(&inner, epoch, estimate).await
        }
    }

    pub(super) fn do_split_points(
        &self,
        begin: &[u8],
        end: &[u8],
        chunk_size: i64,
    ) -> impl Future<Output = Result<Vec<Bytes>>> + Send + use<> {
        let entered = self.enter_range(begin, end).and_then(|(inner, epoch, range)| {
            let max = inner.state.lock().max_read();
            match range.begin > max || range.end > max {
                true => Err(Error::KEY_OUTSIDE_LEGAL_RANGE),
                false => Ok((inner, epoch, range)),
            }
        });
        async move {
            let (inner, epoch, range) = entered?;
            let end = range.end.clone();
            let first = vec![range.begin.clone()];
            let points = over_shards(
                &inner,
                range,
                first,
                |points, found: Vec<Bytes>| points.extend(found),
                |range, reply| Message::GetSplitPoints { range, chunk_size, reply },
            );
            let mut points = guarded(&inner, epoch, points).await?;
            points.push(end);
            points.dedup();
            Ok(points)
        }
    }

    pub(super) fn do_get_addresses(
        &self,
        key: &[u8],
    ) -> impl Future<Output = Result<Vec<String>>> + Send + use<> {
        let inner = self.0.clone();
        let asked = {
            let mut state = inner.state.lock();
            state.enter(&inner.client).map(|()| {
                let version = read_version(&inner, &mut state, false);
                (state.epoch, version, Guard::of_read(&inner, &mut state))
            })
        };
        let key = Bytes::copy_from_slice(key);
        async move {
            let (epoch, version, read) = asked?;
            let found = async {
                version.get().await?;
                if key >= ALL_END {
                    return Ok(Vec::new());
                }
                let location = inner.client.connection.location(&key, false).await;
                Ok(location.servers.iter().map(|server| address(server.node)).collect())
            };
            let answer = guard(read, found).await;
            let mut state = inner.state.lock();
            state.check(&inner.client, epoch)?;
            answer.inspect_err(|e| state.read_failed(*e))
        }
    }

    fn enter_range(&self, begin: &[u8], end: &[u8]) -> Result<(Arc<Inner>, u32, KeyRange)> {
        if begin > end {
            return Err(Error::INVERTED_RANGE);
        }
        let mut state = self.0.state.lock();
        state.enter(&self.0.client)?;
        let range = KeyRange::new(Bytes::copy_from_slice(begin), Bytes::copy_from_slice(end));
        Ok((self.0.clone(), state.epoch, range))
    }
}

/// Sends a request to a replica of each shard that intersects `range`, in order, and accumulates the replies.
async fn over_shards<R: Send + 'static, T>(
    inner: &Inner,
    range: KeyRange,
    mut total: T,
    add: impl Fn(&mut T, R),
    request: impl Fn(KeyRange, crate::net::ReplyTo<Result<R>>) -> Message,
) -> Result<T> {
    // No shard has special keys.
    let KeyRange { mut begin, end } = range;
    let end = end.min(ALL_END);
    while begin < end {
        let ask = |location: &Location, reply| {
            request(
                KeyRange { begin: begin.clone(), end: end.clone().min(location.range.end.clone()) },
                reply,
            )
        };
        let (location, answer) = inner.client.connection.read_from(&begin, false, ask).await?;
        add(&mut total, answer);
        begin = location.range.end.clone();
    }
    Ok(total)
}
