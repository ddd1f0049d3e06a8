//! The contract's [`Transaction`] over the real client.

use super::raw::RawTransaction;
use crate::offsets;
use bytes::Bytes;
use foundationdb::{
    FdbError,
    future::{FdbAddress, FdbValues},
    mapped_key_values::{FdbMappedKeyValue, MappedKeyValues},
    options,
};
use futures::{FutureExt, future::BoxFuture};
use shaketable_tx::{
    ConflictRangeType, Error, Isolation, KeySelector, KeyValue, MappedBatch, MappedRow, Mapper, MutationType,
    RangeBatch, RangeOption, Result, StreamingMode, Transaction, TransactionOption, Turns,
};
use std::{future::Future, sync::Arc, time::Duration};

/// A transaction of a [`FdbDatabase`](super::FdbDatabase).
#[derive(Clone)]
pub struct FdbTransaction {
    raw: Arc<RawTransaction>,
    turns: Turns,
}

pub(super) fn error(error: FdbError) -> Error {
    Error::from_code(error.code())
}

impl FdbTransaction {
    pub(super) fn new(raw: RawTransaction) -> FdbTransaction {
        FdbTransaction { raw: Arc::new(raw), turns: Turns::default() }
    }

    /// Awaits an outstanding call; holds the transaction until the call has finished, because dropping the
    /// transaction would cancel it.
    async fn answer<A>(self, call: impl Future<Output = Result<A, FdbError>>) -> Result<A> {
        call.await.map_err(error)
    }
}

fn is_snapshot(isolation: Isolation) -> bool {
    isolation == Isolation::Snapshot
}

fn selector(selector: &KeySelector) -> foundationdb::KeySelector<'_> {
    foundationdb::KeySelector::new((&selector.key[..]).into(), selector.or_equal, selector.offset)
}

fn range_option(range: &RangeOption) -> foundationdb::RangeOption<'_> {
    foundationdb::RangeOption {
        begin: selector(&range.begin),
        end: selector(&range.end),
        limit: range.limit,
        target_bytes: range.target_bytes,
        mode: mode(range.mode),
        reverse: range.reverse,
        ..Default::default()
    }
}

fn mode(mode: StreamingMode) -> options::StreamingMode {
    match mode {
        StreamingMode::WantAll => options::StreamingMode::WantAll,
        StreamingMode::Iterator => options::StreamingMode::Iterator,
        StreamingMode::Exact => options::StreamingMode::Exact,
        StreamingMode::Small => options::StreamingMode::Small,
        StreamingMode::Medium => options::StreamingMode::Medium,
        StreamingMode::Large => options::StreamingMode::Large,
        StreamingMode::Serial => options::StreamingMode::Serial,
    }
}

/// A key or a value of a batch, in the C client's memory.
struct BatchBytes<const VALUE: bool> {
    batch: Arc<FdbValues>,
    row: usize,
}

impl<const VALUE: bool> AsRef<[u8]> for BatchBytes<VALUE> {
    fn as_ref(&self) -> &[u8] {
        let row = &self.batch[self.row];
        if VALUE { row.value() } else { row.key() }
    }
}

fn rows(values: FdbValues) -> RangeBatch {
    let (more, batch) = (values.more(), Arc::new(values));
    let row = |row| KeyValue {
        key: Bytes::from_owner(BatchBytes::<false> { batch: batch.clone(), row }),
        value: Bytes::from_owner(BatchBytes::<true> { batch: batch.clone(), row }),
    };
    RangeBatch { rows: (0..batch.len()).map(row).collect(), more }
}

/// Copies the rows: the crate provides the rows of mapped rows only by reference.
fn mapped(values: &MappedKeyValues) -> MappedBatch {
    let pair =
        |key: &[u8], value: &[u8]| KeyValue::new(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
    let row = |row: &FdbMappedKeyValue| MappedRow {
        parent: pair(row.parent_key(), row.parent_value()),
        begin: Bytes::copy_from_slice(row.begin_range()),
        end: Bytes::copy_from_slice(row.end_range()),
        rows: row.key_values().iter().map(|found| pair(found.key(), found.value())).collect(),
    };
    MappedBatch { rows: values.iter().map(row).collect(), more: values.more() }
}

impl Transaction for FdbTransaction {
    fn turns(&self) -> &Turns {
        &self.turns
    }

    fn with_turns(&self, turns: Turns) -> Self {
        FdbTransaction { raw: self.raw.clone(), turns }
    }

    fn get(
        &self,
        key: &[u8],
        isolation: Isolation,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<> {
        let read = self.raw.get(key, is_snapshot(isolation));
        self.clone().answer(async { Ok(read.await?.map(Bytes::from_owner)) })
    }

    fn get_key(
        &self,
        key: &KeySelector,
        isolation: Isolation,
    ) -> impl Future<Output = Result<Bytes>> + Send + use<> {
        let read = self.raw.get_key(&selector(key), is_snapshot(isolation));
        self.clone().answer(async { Ok(Bytes::from_owner(read.await?)) })
    }

    fn get_range(
        &self,
        range: &RangeOption,
        iteration: usize,
        isolation: Isolation,
    ) -> impl Future<Output = Result<RangeBatch>> + Send + use<> {
        let read = self.raw.get_range(&range_option(range), iteration, is_snapshot(isolation));
        self.clone().answer(async { Ok(rows(read.await?)) })
    }

    fn get_mapped_range(
        &self,
        range: &RangeOption,
        mapper: &[u8],
        iteration: usize,
        isolation: Isolation,
    ) -> impl Future<Output = Result<MappedBatch>> + Send + use<> {
        // The C API reads range results from memory regardless of the result's type: a mapper for single keys
        // must not reach it.
        let asked = match Mapper::parse(mapper) {
            Err(Error::UNSUPPORTED_OPERATION) => Err(Error::UNSUPPORTED_OPERATION),
            _ => {
                Ok(self.raw.get_mapped_range(&range_option(range), mapper, iteration, is_snapshot(isolation)))
            }
        };
        let this = self.clone();
        async move {
            let read = asked?;
            this.answer(async { Ok(mapped(&read.await?)) }).await
        }
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        self.raw.set(key, value);
    }

    fn clear(&self, key: &[u8]) {
        self.raw.clear(key);
    }

    fn clear_range(&self, begin: &[u8], end: &[u8]) {
        self.raw.clear_range(begin, end);
    }

    fn atomic_op(&self, key: &[u8], operand: &[u8], op: MutationType) {
        // All these codes exist, so that this call does not fail.
        let _ = self.atomic_op_code(key, operand, op.code());
    }

    /// The client checks the code; for an unknown code, the next call that returns a result fails.
    fn atomic_op_code(&self, key: &[u8], operand: &[u8], code: u32) -> Result<()> {
        let (key, operand) = offsets::sanitized(key, operand, code);
        self.raw.atomic_op_code(&key, &operand, code);
        Ok(())
    }

    fn add_conflict_range(&self, begin: &[u8], end: &[u8], kind: ConflictRangeType) -> Result<()> {
        let kind = match kind {
            ConflictRangeType::Read => options::ConflictRangeType::Read,
            ConflictRangeType::Write => options::ConflictRangeType::Write,
        };
        self.raw.add_conflict_range(begin, end, kind).map_err(error)
    }

    /// After the commit, the watch outlives the transaction.
    fn watch(&self, key: &[u8]) -> BoxFuture<'static, Result<()>> {
        self.raw.watch(key).map(|fired| fired.map_err(error)).boxed()
    }

    fn get_read_version(&self) -> impl Future<Output = Result<i64>> + Send + use<> {
        self.clone().answer(self.raw.get_read_version())
    }

    fn set_read_version(&self, version: i64) {
        self.raw.set_read_version(version);
    }

    fn get_committed_version(&self) -> Result<i64> {
        self.raw.committed_version().map_err(error)
    }

    fn get_versionstamp(&self) -> BoxFuture<'static, Result<[u8; 10]>> {
        let stamp = self.raw.get_versionstamp();
        let stamp = async { stamp.await.map_err(error)?[..].try_into().map_err(|_| Error::INTERNAL_ERROR) };
        stamp.boxed()
    }

    fn get_approximate_size(&self) -> impl Future<Output = Result<i64>> + Send + use<> {
        self.clone().answer(self.raw.get_approximate_size())
    }

    fn get_estimated_range_size_bytes(
        &self,
        begin: &[u8],
        end: &[u8],
    ) -> impl Future<Output = Result<i64>> + Send + use<> {
        self.clone().answer(self.raw.get_estimated_range_size_bytes(begin, end))
    }

    fn get_range_split_points(
        &self,
        begin: &[u8],
        end: &[u8],
        chunk_size: i64,
    ) -> impl Future<Output = Result<Vec<Bytes>>> + Send + use<> {
        let read = self.raw.get_range_split_points(begin, end, chunk_size);
        let points =
            async { Ok(read.await?.into_iter().map(|point| Bytes::copy_from_slice(point.key())).collect()) };
        self.clone().answer(points)
    }

    fn set_option(&self, option: TransactionOption) -> Result<()> {
        self.set_option_raw(option.code(), option.value().as_deref())
    }

    fn set_option_raw(&self, code: i32, value: Option<&[u8]>) -> Result<()> {
        self.raw.set_option(code, value).map_err(error)
    }

    fn get_addresses_for_key(&self, key: &[u8]) -> impl Future<Output = Result<Vec<String>>> + Send + use<> {
        let asked = self.raw.get_addresses_for_key(key);
        let text = |address: &FdbAddress| address.to_string_lossy().into_owned();
        self.clone().answer(async move { Ok(asked.await?.iter().map(text).collect()) })
    }

    fn get_tag_throttled_duration(&self) -> impl Future<Output = Result<Duration>> + Send + use<> {
        let asked = self.raw.tag_throttled_duration();
        let duration = async {
            let seconds = asked.await?.0;
            Ok(Duration::try_from_secs_f64(seconds).unwrap_or_default())
        };
        self.clone().answer(duration)
    }

    fn get_total_cost(&self) -> impl Future<Output = Result<i64>> + Send + use<> {
        self.clone().answer(self.raw.total_cost())
    }

    fn commit(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        self.clone().answer(self.raw.commit())
    }

    fn on_error(&self, error: Error) -> impl Future<Output = Result<()>> + Send + use<> {
        self.clone().answer(self.raw.on_error(error.code()))
    }

    fn reset(&self) {
        self.raw.reset();
    }

    fn cancel(&self) {
        self.raw.cancel();
    }
}
