//! Methods of a [`Transaction`](shaketable_tx::Transaction) that wraps another one. A wrapper writes some
//! of them itself and delegates the others.

/// Delegates the named methods to the transaction in the field `$inner`:
/// `pass_on! { <T> inner: set, clear }`. `T` is the type parameter of the wrapper.
macro_rules! pass_on {
    (<$T:ident> $inner:ident: $($method:ident),+ $(,)?) => {
        $(pass_on!(@$method $T $inner);)+
    };
    (@turns $T:ident $inner:ident) => {
        fn turns(&self) -> &Turns {
            self.$inner.turns()
        }
    };
    (@set $T:ident $inner:ident) => {
        fn set(&self, key: &[u8], value: &[u8]) {
            self.$inner.set(key, value);
        }
    };
    (@clear $T:ident $inner:ident) => {
        fn clear(&self, key: &[u8]) {
            self.$inner.clear(key);
        }
    };
    (@clear_range $T:ident $inner:ident) => {
        fn clear_range(&self, begin: &[u8], end: &[u8]) {
            self.$inner.clear_range(begin, end);
        }
    };
    (@atomic_op $T:ident $inner:ident) => {
        fn atomic_op(&self, key: &[u8], operand: &[u8], op: MutationType) {
            self.$inner.atomic_op(key, operand, op);
        }
    };
    (@add_conflict_range $T:ident $inner:ident) => {
        fn add_conflict_range(&self, begin: &[u8], end: &[u8], kind: ConflictRangeType) -> Result<()> {
            self.$inner.add_conflict_range(begin, end, kind)
        }
    };
    (@watch $T:ident $inner:ident) => {
        fn watch(&self, key: &[u8]) -> BoxFuture<'static, Result<()>> {
            self.$inner.watch(key)
        }
    };
    (@get_read_version $T:ident $inner:ident) => {
        fn get_read_version(&self) -> impl Future<Output = Result<i64>> + Send + use<$T> {
            self.$inner.get_read_version()
        }
    };
    (@set_read_version $T:ident $inner:ident) => {
        fn set_read_version(&self, version: i64) {
            self.$inner.set_read_version(version);
        }
    };
    (@get_committed_version $T:ident $inner:ident) => {
        fn get_committed_version(&self) -> Result<i64> {
            self.$inner.get_committed_version()
        }
    };
    (@get_versionstamp $T:ident $inner:ident) => {
        fn get_versionstamp(&self) -> BoxFuture<'static, Result<[u8; 10]>> {
            self.$inner.get_versionstamp()
        }
    };
    (@get_approximate_size $T:ident $inner:ident) => {
        fn get_approximate_size(&self) -> impl Future<Output = Result<i64>> + Send + use<$T> {
            self.$inner.get_approximate_size()
        }
    };
    (@get_estimated_range_size_bytes $T:ident $inner:ident) => {
        fn get_estimated_range_size_bytes(
            &self,
            begin: &[u8],
            end: &[u8],
        ) -> impl Future<Output = Result<i64>> + Send + use<$T> {
            self.$inner.get_estimated_range_size_bytes(begin, end)
        }
    };
    (@get_range_split_points $T:ident $inner:ident) => {
        fn get_range_split_points(
            &self,
            begin: &[u8],
            end: &[u8],
            chunk_size: i64,
        ) -> impl Future<Output = Result<Vec<Bytes>>> + Send + use<$T> {
            self.$inner.get_range_split_points(begin, end, chunk_size)
        }
    };
    (@get_addresses_for_key $T:ident $inner:ident) => {
        fn get_addresses_for_key(
            &self,
            key: &[u8],
        ) -> impl Future<Output = Result<Vec<String>>> + Send + use<$T> {
            self.$inner.get_addresses_for_key(key)
        }
    };
    (@get_tag_throttled_duration $T:ident $inner:ident) => {
        fn get_tag_throttled_duration(&self) -> impl Future<Output = Result<Duration>> + Send + use<$T> {
            self.$inner.get_tag_throttled_duration()
        }
    };
    (@get_total_cost $T:ident $inner:ident) => {
        fn get_total_cost(&self) -> impl Future<Output = Result<i64>> + Send + use<$T> {
            self.$inner.get_total_cost()
        }
    };
    (@set_option $T:ident $inner:ident) => {
        fn set_option(&self, option: TransactionOption) -> Result<()> {
            self.$inner.set_option(option)
        }
    };
    (@commit $T:ident $inner:ident) => {
        fn commit(&self) -> impl Future<Output = Result<()>> + Send + use<$T> {
            self.$inner.commit()
        }
    };
    (@on_error $T:ident $inner:ident) => {
        fn on_error(&self, error: Error) -> impl Future<Output = Result<()>> + Send + use<$T> {
            self.$inner.on_error(error)
        }
    };
    (@reset $T:ident $inner:ident) => {
        fn reset(&self) {
            self.$inner.reset();
        }
    };
    (@cancel $T:ident $inner:ident) => {
        fn cancel(&self) {
            self.$inner.cancel();
        }
    };
}

pub(crate) use pass_on;
