//! A database that cannot be reached: sufficient to list the cases, and to check that every case fails on it
//! by itself.

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use shaketable_tx::*;
use std::{
    future::{Future, Ready},
    time::Duration,
};

/// The database.
#[derive(Clone, Debug)]
pub(super) struct UnreachableDatabase(Env);

impl UnreachableDatabase {
    pub(super) fn new() -> UnreachableDatabase {
        UnreachableDatabase(Env::new(FrozenEnvironment))
    }
}

/// An environment in which no time passes.
struct FrozenEnvironment;

impl Environment for FrozenEnvironment {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        futures::future::pending().boxed()
    }
}

impl Database for UnreachableDatabase {
    type Transaction = Never;
    fn create_transaction(&self) -> Result<Never> {
        Err(Error::INTERNAL_ERROR)
    }
    fn set_option(&self, _: DatabaseOption) -> Result<()> {
        Err(Error::INTERNAL_ERROR)
    }
    fn env(&self) -> &Env {
        &self.0
    }
}

/// A transaction that cannot be created.
#[derive(Clone, Debug)]
pub(super) enum Never {}

fn never<T>(never: &Never) -> Ready<T> {
    match *never {}
}

impl Transaction for Never {
    fn turns(&self) -> &Turns {
        match *self {}
    }
    fn with_turns(&self, _: Turns) -> Never {
        match *self {}
    }
    fn get(&self, _: &[u8], _: Isolation) -> impl Future<Output = Result<Option<Bytes>>> + Send + use<> {
        never(self)
    }
    fn get_key(&self, _: &KeySelector, _: Isolation) -> impl Future<Output = Result<Bytes>> + Send + use<> {
        never(self)
    }
    fn get_range(
        &self,
        _: &RangeOption,
        _: usize,
        _: Isolation,
    ) -> impl Future<Output = Result<RangeBatch>> + Send + use<> {
        never(self)
    }
    fn set(&self, _: &[u8], _: &[u8]) {
        match *self {}
    }
    fn clear(&self, _: &[u8]) {
        match *self {}
    }
    fn clear_range(&self, _: &[u8], _: &[u8]) {
        match *self {}
    }
    fn atomic_op(&self, _: &[u8], _: &[u8], _: MutationType) {
        match *self {}
    }
    fn add_conflict_range(&self, _: &[u8], _: &[u8], _: ConflictRangeType) -> Result<()> {
        match *self {}
    }
    fn watch(&self, _: &[u8]) -> BoxFuture<'static, Result<()>> {
        match *self {}
    }
    fn get_read_version(&self) -> impl Future<Output = Result<i64>> + Send + use<> {
        never(self)
    }
    fn set_read_version(&self, _: i64) {
        match *self {}
    }
    fn get_committed_version(&self) -> Result<i64> {
        match *self {}
    }
    fn get_versionstamp(&self) -> BoxFuture<'static, Result<[u8; 10]>> {
        match *self {}
    }
    fn get_approximate_size(&self) -> impl Future<Output = Result<i64>> + Send + use<> {
        never(self)
    }
    fn get_estimated_range_size_bytes(
        &self,
        _: &[u8],
        _: &[u8],
    ) -> impl Future<Output = Result<i64>> + Send + use<> {
        never(self)
    }
    fn get_range_split_points(
        &self,
        _: &[u8],
        _: &[u8],
        _: i64,
    ) -> impl Future<Output = Result<Vec<Bytes>>> + Send + use<> {
        never(self)
    }
    fn set_option(&self, _: TransactionOption) -> Result<()> {
        match *self {}
    }
    fn commit(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        never(self)
    }
    fn on_error(&self, _: Error) -> impl Future<Output = Result<()>> + Send + use<> {
        never(self)
    }
    fn reset(&self) {
        match *self {}
    }
    fn cancel(&self) {
        match *self {}
    }
}
