//! The transaction contract, call by call.

use super::{transaction::SimTransaction, version};
use crate::{
    endings::{Ending, beside, with_ending},
    rt,
};
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use shaketable_tx::{
    ConflictRangeType, Error, Isolation, KeySelector, MappedBatch, MutationType, RangeBatch, RangeOption,
    Result, Transaction, TransactionOption, Turns,
};
use std::{future::Future, time::Duration};

/// The codes by which newer clients replace `min` and `bit_and`.
const MIN_V2: u32 = 18;
const AND_V2: u32 = 19;

impl SimTransaction {
    /// A call whose ending the history has.
    fn with_ending<T, F>(&self, call: F) -> impl Future<Output = Result<T>> + Send + use<T, F>
    where
        T: Send,
        F: Future<Output = Result<T>> + Send,
    {
        let (client, operation) = (self.0.client.clone(), self.0.operation);
        let world = client.connection.world.clone();
        with_ending(call, move || world.clock.elapsed(), move |ending| client.note_ending(operation, ending))
    }

    /// The answer to a call that returns at once; the history has its error.
    fn noted<T>(&self, answer: Result<T>) -> Result<T> {
        answer.inspect_err(|error| self.0.client.note_ending(self.0.operation, Ending::Error(*error)))
    }
}

impl Transaction for SimTransaction {
    fn turns(&self) -> &Turns {
        &self.1
    }

    fn with_turns(&self, turns: Turns) -> Self {
        SimTransaction(self.0.clone(), turns)
    }

    fn get(
        &self,
        key: &[u8],
        isolation: Isolation,
    ) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<> {
        self.with_ending(self.do_get(key, isolation))
    }

    fn get_key(
        &self,
        selector: &KeySelector,
        isolation: Isolation,
    ) -> impl Future<Output = Result<Bytes>> + Send + use<> {
        self.with_ending(self.do_get_key(selector, isolation))
    }

    fn get_range(
        &self,
        range: &RangeOption,
        iteration: usize,
        isolation: Isolation,
    ) -> impl Future<Output = Result<RangeBatch>> + Send + use<> {
        self.with_ending(self.do_get_range(range, iteration, isolation))
    }

    fn get_mapped_range(
        &self,
        range: &RangeOption,
        mapper: &[u8],
        iteration: usize,
        isolation: Isolation,
    ) -> impl Future<Output = Result<MappedBatch>> + Send + use<> {
        self.with_ending(self.do_get_mapped_range(range, mapper, iteration, isolation))
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        self.do_set(key, value);
    }

    fn clear(&self, key: &[u8]) {
        self.do_clear(key);
    }

    fn clear_range(&self, begin: &[u8], end: &[u8]) {
        self.do_clear_range(begin, end);
    }

    fn atomic_op(&self, key: &[u8], operand: &[u8], op: MutationType) {
        // Deferred to the next call that returns a result.
        let _ = self.do_atomic_op(key, operand, Some(op));
    }

    fn atomic_op_code(&self, key: &[u8], operand: &[u8], code: u32) -> Result<()> {
        let op = match code {
            MIN_V2 => Some(MutationType::Min),
            AND_V2 => Some(MutationType::BitAnd),
            code => MutationType::from_code(code),
        };
        let answer = self.do_atomic_op(key, operand, op);
        self.noted(op.map_or(answer, |_| Ok(())))
    }

    fn add_conflict_range(&self, begin: &[u8], end: &[u8], kind: ConflictRangeType) -> Result<()> {
        self.noted(self.do_add_conflict_range(begin, end, kind))
    }

    fn watch(&self, key: &[u8]) -> BoxFuture<'static, Result<()>> {
        self.with_ending(self.do_watch(key)).boxed()
    }

    fn get_read_version(&self) -> impl Future<Output = Result<i64>> + Send + use<> {
        self.with_ending(self.do_get_read_version())
    }

    fn set_read_version(&self, version: i64) {
        let mut state = self.0.state.lock();
        if let Err(e) = version::set_read_version(&self.0, &mut state, version) {
            state.defer(e);
        }
    }

    fn get_committed_version(&self) -> Result<i64> {
        Ok(self.0.state.lock().committed_version)
    }

    fn get_versionstamp(&self) -> BoxFuture<'static, Result<[u8; 10]>> {
        self.with_ending(self.do_get_versionstamp()).boxed()
    }

    fn get_approximate_size(&self) -> impl Future<Output = Result<i64>> + Send + use<> {
        let state = self.0.state.lock();
        let size = state.deferred().map(|()| state.size);
        drop(state);
        // The client's network thread answers: what the caller does next comes before the answer.
        self.with_ending(async move {
            rt::yield_now().await;
            size
        })
    }

    fn get_estimated_range_size_bytes(
        &self,
        begin: &[u8],
        end: &[u8],
    ) -> impl Future<Output = Result<i64>> + Send + use<> {
        self.with_ending(self.do_estimate(begin, end))
    }

    fn get_range_split_points(
        &self,
        begin: &[u8],
        end: &[u8],
        chunk_size: i64,
    ) -> impl Future<Output = Result<Vec<Bytes>>> + Send + use<> {
        self.with_ending(self.do_split_points(begin, end, chunk_size))
    }

    fn get_addresses_for_key(&self, key: &[u8]) -> impl Future<Output = Result<Vec<String>>> + Send + use<> {
        self.with_ending(self.do_get_addresses(key))
    }

    /// Requests are not delayed here: a throttled tag is an immediate error.
    fn get_tag_throttled_duration(&self) -> impl Future<Output = Result<Duration>> + Send + use<> {
        let none = self.0.state.lock().deferred().map(|()| Duration::ZERO);
        self.with_ending(std::future::ready(none))
    }

    fn get_total_cost(&self) -> impl Future<Output = Result<i64>> + Send + use<> {
        let state = self.0.state.lock();
        let cost = state.deferred().map(|()| state.cost);
        drop(state);
        self.with_ending(std::future::ready(cost))
    }

    fn set_option(&self, option: TransactionOption) -> Result<()> {
        let mut state = self.0.state.lock();
        let answer = state.set_option(&self.0.client, &option);
        if let Err(e) = answer {
            state.defer(e);
        }
        drop(state);
        self.noted(answer)
    }

    fn set_option_raw(&self, code: i32, value: Option<&[u8]>) -> Result<()> {
        self.set_option(self.noted(TransactionOption::from_raw(code, value))?)
    }

    fn commit(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        self.with_ending(self.do_commit())
    }

    fn on_error(&self, error: Error) -> impl Future<Output = Result<()>> + Send + use<> {
        let (tx, client, operation) = (self.clone(), self.0.client.clone(), self.0.operation);
        let world = client.connection.world.clone();
        let end = beside(error, move |ending| client.note_ending(operation, ending));
        with_ending(async move { tx.do_on_error(error).await }, move || world.clock.elapsed(), end)
    }

    fn reset(&self) {
        self.do_reset();
    }

    fn cancel(&self) {
        self.do_cancel();
    }
}
