//! Transaction and database options, with the numeric codes of FoundationDB 7.4.
//!
//! Only `Timeout`, `RetryLimit`, `MaxRetryDelay` and `AuthorizationToken` (and the database defaults) remain
//! set after `on_error`; every other option must be set again in each attempt (`fdb.options`,
//! `ReadYourWritesTransaction::resetRyow`).
//!
//! An option also has a raw form: its code and optionally its value as bytes (integers in eight bytes,
//! little-endian).

use super::{Error, Result, show};
use bytes::Bytes;

/// The value of an option.
trait Value: Sized {
    /// The bytes that the C API takes.
    fn encode(&self) -> Option<Vec<u8>>;
    /// In words.
    fn describe(&self) -> Option<String>;
    /// Fails with 2006 for bytes that do not encode a value of this type.
    fn decode(raw: Option<&[u8]>) -> Result<Self>;
}

impl Value for i32 {
    fn encode(&self) -> Option<Vec<u8>> {
        Some(i64::from(*self).to_le_bytes().to_vec())
    }
    fn describe(&self) -> Option<String> {
        Some(self.to_string())
    }
    fn decode(raw: Option<&[u8]>) -> Result<i32> {
        let bytes = raw.and_then(|raw| raw.try_into().ok()).ok_or(Error::INVALID_OPTION_VALUE)?;
        i64::from_le_bytes(bytes).try_into().map_err(|_| Error::INVALID_OPTION_VALUE)
    }
}

impl Value for Bytes {
    fn encode(&self) -> Option<Vec<u8>> {
        Some(self.to_vec())
    }
    fn describe(&self) -> Option<String> {
        Some(show::raw(self))
    }
    fn decode(raw: Option<&[u8]>) -> Result<Bytes> {
        raw.map(Bytes::copy_from_slice).ok_or(Error::INVALID_OPTION_VALUE)
    }
}

impl Value for String {
    fn encode(&self) -> Option<Vec<u8>> {
        Some(self.clone().into_bytes())
    }
    fn describe(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
    fn decode(raw: Option<&[u8]>) -> Result<String> {
        let text = raw.and_then(|raw| std::str::from_utf8(raw).ok());
        text.map(str::to_owned).ok_or(Error::INVALID_OPTION_VALUE)
    }
}

impl<V: Value> Value for Option<V> {
    fn encode(&self) -> Option<Vec<u8>> {
        self.as_ref().and_then(V::encode)
    }
    fn describe(&self) -> Option<String> {
        self.as_ref().and_then(V::describe)
    }
    fn decode(raw: Option<&[u8]>) -> Result<Option<V>> {
        raw.map(|raw| V::decode(Some(raw))).transpose()
    }
}

/// A name in lower case, with an underscore before each further word.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// Declares an enum of options: for each its code, its name and the type of its value.
macro_rules! options {
    (@encode) => { None };
    (@encode $value:ident) => { $value.encode() };
    (@describe) => { None };
    (@describe $value:ident) => { $value.describe() };
    (@decode $raw:ident, $option:path) => {
        match $raw {
            Some([_, ..]) => Err(Error::INVALID_OPTION_VALUE),
            _ => Ok($option),
        }
    };
    (@decode $raw:ident, $option:path, $type:ty) => { <$type as Value>::decode($raw).map($option) };
    (
        $(#[$about:meta])*
        $Option:ident {
            $($(#[$doc:meta])* $code:literal => $Name:ident $(($value:ident: $type:ty))?;)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $Option {
            $($(#[$doc])* $Name $(($type))?,)*
        }

        impl $Option {
            /// The codes of all options, in ascending order.
            pub const CODES: &'static [i32] = &[$($code),*];

            /// FoundationDB's numeric code.
            pub const fn code(&self) -> i32 {
                match self {
                    $(Self::$Name { .. } => $code,)*
                }
            }

            /// FoundationDB's name, in lower case, as bindings have it: `retry_limit`.
            pub fn name(&self) -> String {
                let name = match self {
                    $(Self::$Name { .. } => stringify!($Name),)*
                };
                snake_case(name)
            }

            /// The value in words, if the option has one.
            pub fn described(&self) -> Option<String> {
                match self {
                    $(Self::$Name $(($value))? => options!(@describe $($value)?),)*
                }
            }

            /// The value in the form that the C API takes, if the option has one.
            pub fn value(&self) -> Option<Vec<u8>> {
                match self {
                    $(Self::$Name $(($value))? => options!(@encode $($value)?),)*
                }
            }

            /// The option with this code and value. Fails with 2007 for an unknown code, and with 2006 for an
            /// invalid value: a missing one, one for an option that takes none, or an integer that is not
            /// eight bytes long or does not fit 32 bits. Other limits are checked when the option is set.
            pub fn from_raw(code: i32, value: Option<&[u8]>) -> Result<$Option> {
                match code {
                    $($code => options!(@decode value, $Option::$Name $(, $type)?),)*
                    _ => Err(Error::INVALID_OPTION),
                }
            }
        }
    };
}

options! {
    /// An option of one transaction.
    TransactionOption {
        /// 10: omits the self-conflicting range, so that a retried commit may apply twice.
        10 => CausalWriteRisky;
        /// 20: the read version may miss commits acknowledged just before a failure.
        20 => CausalReadRisky;
        /// 21: no effect.
        21 => CausalReadDisable;
        /// 23: no effect; addresses always include the port.
        23 => IncludePortInAddress;
        /// 30: the next write adds no write conflict range.
        30 => NextWriteNoWriteConflictRange;
        /// 40: commits go to the first commit proxy.
        40 => CommitOnFirstProxy;
        /// 50: for tests of FoundationDB itself.
        50 => CheckWritesEnable;
        /// 51: reads ignore the transaction's own writes. Must precede any operation (2000 after one).
        51 => ReadYourWritesDisable;
        /// 52: no effect.
        52 => ReadAheadDisable;
        /// 110: no effect.
        110 => DurabilityDatacenter;
        /// 120: no effect.
        120 => DurabilityRisky;
        /// 130: no effect.
        130 => DurabilityDevNullIsWebScale;
        /// 200: the highest priority, not throttled.
        200 => PrioritySystemImmediate;
        /// 201: batch priority, below the default.
        201 => PriorityBatch;
        /// 300: for tools that configure a new cluster. Not simulated (2007).
        300 => InitializeNewDatabase;
        /// 301: allows keys up to 0xffff to be read and written.
        301 => AccessSystemKeys;
        /// 302: allows keys up to 0xffff to be read.
        302 => ReadSystemKeys;
        /// 303: like access to system keys, with keys up to 8 bytes longer.
        303 => RawAccess;
        /// 304: no effect without tenants.
        304 => BypassStorageQuota;
        /// 400: prints the transaction's mutations at commit.
        400 => DebugDump;
        /// 401: logs each retry, with an optional name.
        401 => DebugRetryLogging(name: Option<String>);
        /// 402: [`DebugTransactionIdentifier`](Self::DebugTransactionIdentifier) and
        /// [`LogTransaction`](Self::LogTransaction) in one.
        402 => TransactionLoggingEnable(identifier: String);
        /// 403: the identifier of the transaction in traces, 1 to 100 bytes (2006). Setting a second,
        /// different identifier fails with 2000.
        403 => DebugTransactionIdentifier(identifier: String);
        /// 404: traces the transaction; fails with 2000 without an identifier.
        404 => LogTransaction;
        /// 405: the maximum number of bytes of keys and values in traces, at least 1; -1 is unlimited.
        405 => TransactionLoggingMaxFieldLength(bytes: i32);
        /// 406: servers trace the transaction.
        406 => ServerRequestTracing;
        /// 500: milliseconds from creation or reset, over all retries; 0 disables the timeout. Remains set
        /// after `on_error`.
        500 => Timeout(milliseconds: i32);
        /// 501: how often `on_error` may retry; -1 is unlimited. Remains set after `on_error`.
        501 => RetryLimit(retries: i32);
        /// 502: the maximum backoff, in milliseconds. Remains set after `on_error`.
        502 => MaxRetryDelay(milliseconds: i32);
        /// 503: the maximum size of the transaction in bytes, from 32 to 10,000,000.
        503 => SizeLimit(bytes: i32);
        /// 504: the client adds this idempotency id, of 16 to 255 bytes (2007), and resolves an unknown
        /// commit result automatically.
        504 => IdempotencyId(id: Bytes);
        /// 505: like 504, with an id that the client draws.
        505 => AutomaticIdempotency;
        /// 507: storage servers cache what is read (the default).
        507 => ReadServerSideCacheEnable;
        /// 508: storage servers do not cache what is read.
        508 => ReadServerSideCacheDisable;
        /// 509: reads have normal priority at storage servers (the default).
        509 => ReadPriorityNormal;
        /// 510: reads have low priority at storage servers.
        510 => ReadPriorityLow;
        /// 511: reads have high priority at storage servers.
        511 => ReadPriorityHigh;
        /// 600: snapshot reads see the transaction's own writes again (counted against 601).
        600 => SnapshotRywEnable;
        /// 601: snapshot reads ignore the transaction's own writes.
        601 => SnapshotRywDisable;
        /// 700: the transaction works even if the database is locked.
        700 => LockAware;
        /// 701: a call made during the commit does not make the commit fail.
        701 => UsedDuringCommitProtectionDisable;
        /// 702: reads work even if the database is locked.
        702 => ReadLockAware;
        /// 710: for tools of FoundationDB itself: the transaction comes first in its commit batch. Not
        /// simulated (2007).
        710 => FirstInBatch;
        /// 711: for tools that change the configuration.
        711 => UseProvisionalProxies;
        /// 712: after 1020, the conflicting ranges can be read from special keys.
        712 => ReportConflictingKeys;
        /// 713: special-key reads may cross modules or include no module.
        713 => SpecialKeySpaceRelaxed;
        /// 714: special keys may be written.
        714 => SpecialKeySpaceEnableWrites;
        /// 800: a throttling tag, at most 255 bytes (`MAX_TRANSACTION_TAG_LENGTH` in
        /// `fdbclient/ClientKnobs.cpp`).
        800 => Tag(tag: String);
        /// 801: a tag that the cluster may throttle automatically.
        801 => AutoThrottleTag(tag: String);
        /// 900: the parent span of this transaction in distributed traces, 33 bytes (2006).
        900 => SpanParent(span: Bytes);
        /// 1000: requests the sizes of cleared ranges where tags are throttled by cost.
        1000 => ExpensiveClearCostEstimationEnable;
        /// 1100: reads of unreadable keys return the placeholder instead of failing with 1036.
        1100 => BypassUnreadable;
        /// 1101: the read version may come from a cache, up to 0.1 s old; it is never older than this
        /// client's own commits. The C client rejects it with 2007 unless network option 72
        /// (`disable_client_bypass`) is set.
        1101 => UseGrvCache;
        /// 1102: the read version does not come from the cache, regardless of 1101.
        1102 => SkipGrvCache;
        /// 2000: no effect without tenants. Remains set after `on_error`.
        2000 => AuthorizationToken(token: Option<String>);
        /// 4000: compares reads across replicas.
        4000 => EnableReplicaConsistencyCheck;
        /// 4001: the number of replicas to compare, at least -2.
        4001 => ConsistencyCheckRequiredReplicas(replicas: i32);
    }
}

options! {
    /// An option of a database handle: a default for the transactions created from it, or a setting of the
    /// handle itself.
    DatabaseOption {
        /// 10: how many key locations the client caches.
        10 => LocationCacheSize(shards: i32);
        /// 20: the maximum number of outstanding watches (10,000 by default, at most 1,000,000).
        20 => MaxWatches(watches: i32);
        /// 21: the machine that this client runs on; reads prefer replicas on it.
        21 => MachineId(id: Option<String>);
        /// 22: the data centre that this client runs in; replicas and proxies in it are preferred.
        22 => DatacenterId(id: Option<String>);
        /// 26: snapshot reads see the transaction's own writes (counted against 27).
        26 => SnapshotRywEnable;
        /// 27: snapshot reads ignore the transaction's own writes.
        27 => SnapshotRywDisable;
        /// 405: default of [`TransactionOption::TransactionLoggingMaxFieldLength`].
        405 => TransactionLoggingMaxFieldLength(bytes: i32);
        /// 500: default of [`TransactionOption::Timeout`], milliseconds.
        500 => TransactionTimeout(milliseconds: i32);
        /// 501: default of [`TransactionOption::RetryLimit`].
        501 => TransactionRetryLimit(retries: i32);
        /// 502: default of [`TransactionOption::MaxRetryDelay`], milliseconds.
        502 => TransactionMaxRetryDelay(milliseconds: i32);
        /// 503: default of [`TransactionOption::SizeLimit`], bytes.
        503 => TransactionSizeLimit(bytes: i32);
        /// 504: default of [`TransactionOption::CausalReadRisky`].
        504 => TransactionCausalReadRisky;
        /// 505: no effect; addresses always include the port.
        505 => TransactionIncludePortInAddress;
        /// 506: default of [`TransactionOption::AutomaticIdempotency`].
        506 => TransactionAutomaticIdempotency;
        /// 700: default of [`TransactionOption::BypassUnreadable`].
        700 => TransactionBypassUnreadable;
        /// 701: default of [`TransactionOption::UsedDuringCommitProtectionDisable`].
        701 => TransactionUsedDuringCommitProtectionDisable;
        /// 702: default of [`TransactionOption::ReportConflictingKeys`].
        702 => TransactionReportConflictingKeys;
        /// 800: reads the configuration database. Not simulated (2007).
        800 => UseConfigDatabase;
        /// 900: how often the client verifies a causally risky read version, in percent, 0 to 100.
        900 => TestCausalReadRisky(percent: i32);
    }
}

impl TransactionOption {
    /// Whether an application can observe what the option does, beside traces: others are about traces,
    /// about caches and priorities of servers, comparisons of replicas and tenants, or have no effect.
    pub fn is_observable(&self) -> bool {
        use TransactionOption::*;
        !matches!(
            self,
            CausalReadDisable
                | IncludePortInAddress
                | CommitOnFirstProxy
                | CheckWritesEnable
                | ReadAheadDisable
                | DurabilityDatacenter
                | DurabilityRisky
                | DurabilityDevNullIsWebScale
                | BypassStorageQuota
                | DebugDump
                | DebugRetryLogging(_)
                | TransactionLoggingEnable(_)
                | DebugTransactionIdentifier(_)
                | LogTransaction
                | TransactionLoggingMaxFieldLength(_)
                | ServerRequestTracing
                | ReadServerSideCacheEnable
                | ReadServerSideCacheDisable
                | ReadPriorityNormal
                | ReadPriorityLow
                | ReadPriorityHigh
                | UseProvisionalProxies
                | SpanParent(_)
                | ExpensiveClearCostEstimationEnable
                | AuthorizationToken(_)
                | EnableReplicaConsistencyCheck
                | ConsistencyCheckRequiredReplicas(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value that the option with this code accepts.
    fn some<O>(from_raw: impl Fn(Option<&[u8]>) -> Result<O>) -> O {
        let eight = 50_i64.to_le_bytes();
        [None, Some(&eight[..]), Some(b"text")]
            .into_iter()
            .find_map(|raw| from_raw(raw).ok())
            .expect("each option takes one of these")
    }

    #[test]
    fn an_option_is_its_raw_form() {
        for code in TransactionOption::CODES {
            let option = some(|raw| TransactionOption::from_raw(*code, raw));
            assert_eq!(option.code(), *code);
            assert_eq!(TransactionOption::from_raw(*code, option.value().as_deref()), Ok(option));
        }
        for code in DatabaseOption::CODES {
            let option = some(|raw| DatabaseOption::from_raw(*code, raw));
            assert_eq!(option.code(), *code);
            assert_eq!(DatabaseOption::from_raw(*code, option.value().as_deref()), Ok(option));
        }
        assert!(TransactionOption::CODES.is_sorted() && DatabaseOption::CODES.is_sorted());
    }

    #[test]
    fn options_have_the_names_of_bindings_and_values_in_words() {
        let waived = TransactionOption::NextWriteNoWriteConflictRange;
        assert_eq!((&*waived.name(), waived.described()), ("next_write_no_write_conflict_range", None));
        let limit = TransactionOption::RetryLimit(-1);
        assert_eq!((&*limit.name(), limit.described().as_deref()), ("retry_limit", Some("-1")));
        let id = TransactionOption::IdempotencyId(Bytes::from_static(b"id\xff"));
        assert_eq!((&*id.name(), id.described().as_deref()), ("idempotency_id", Some(r#""id\xff""#)));
        let tag = TransactionOption::Tag("batch".to_owned());
        assert_eq!((&*tag.name(), tag.described().as_deref()), ("tag", Some("\"batch\"")));
        assert_eq!(TransactionOption::DebugRetryLogging(None).described(), None);
    }

    #[test]
    fn values_are_what_the_c_api_takes() {
        let raw = |code, value: Option<&[u8]>| TransactionOption::from_raw(code, value);
        let limit = TransactionOption::RetryLimit(-1);
        assert_eq!(limit.value(), Some(vec![0xff; 8]));
        assert_eq!(raw(501, Some(&[0xff; 8])), Ok(limit));
        for wrong in [None, Some(&[0; 4][..]), Some(b""), Some(&(1_i64 << 31).to_le_bytes())] {
            assert_eq!(raw(501, wrong), Err(Error::INVALID_OPTION_VALUE), "{wrong:?}");
        }
        assert_eq!(raw(700, Some(b"")), Ok(TransactionOption::LockAware), "an empty value is none");
        assert_eq!(raw(700, Some(b"x")), Err(Error::INVALID_OPTION_VALUE));
        assert_eq!(raw(800, Some(b"tag")), Ok(TransactionOption::Tag("tag".into())));
        assert_eq!(raw(800, Some(b"\xff")), Err(Error::INVALID_OPTION_VALUE));
        assert_eq!(raw(800, None), Err(Error::INVALID_OPTION_VALUE));
        assert_eq!(raw(401, None), Ok(TransactionOption::DebugRetryLogging(None)));
        assert_eq!(raw(12, None), Err(Error::INVALID_OPTION));
        let machine = DatabaseOption::from_raw(21, Some(b"m1"));
        assert_eq!(machine, Ok(DatabaseOption::MachineId(Some("m1".into()))));
        assert_eq!(DatabaseOption::from_raw(1, None), Err(Error::INVALID_OPTION));
    }
}
