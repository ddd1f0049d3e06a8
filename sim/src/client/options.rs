//! Options of a transaction, and which of them remain set after a retry.

use super::sizes::TRANSACTION_SIZE_LIMIT;
use crate::{
    history::OwnWrites,
    proto::Priority,
    rt::{MILLISECOND, Nanos, SECOND},
};
use shaketable_tx::{DatabaseOption, Error, Result, TransactionOption};

/// A tag is longer than 16 bytes.
const TAG_TOO_LONG: Error = Error::from_code(2110);
/// A transaction has more than five tags.
const TOO_MANY_TAGS: Error = Error::from_code(2109);

/// The options in effect, named after what they set; see [`TransactionOption`]. Times are in nanoseconds; a
/// timeout of 0 and a retry limit of -1 mean no limit.
#[derive(Clone, Debug)]
pub struct Options {
    pub causal_write_risky: bool,
    pub causal_read_risky: bool,
    pub next_write_no_conflict: bool,
    pub ryw_disabled: bool,
    pub priority: Priority,
    pub read_system_keys: bool,
    pub write_system_keys: bool,
    pub raw_access: bool,
    pub timeout: Nanos,
    pub retry_limit: i32,
    pub max_retry_delay: Nanos,
    pub size_limit: i64,
    pub automatic_idempotency: bool,
    /// Snapshot reads see the transaction's own writes while this is positive.
    pub snapshot_ryw: i32,
    pub lock_aware: bool,
    pub read_only: bool,
    pub used_during_commit_allowed: bool,
    pub report_conflicting_keys: bool,
    pub special_keys_relaxed: bool,
    pub special_keys_writes: bool,
    pub tags: u8,
    pub bypass_unreadable: bool,
    pub use_grv_cache: bool,
    pub skip_grv_cache: bool,
    /// The identifier of the transaction in traces.
    pub identifier: Option<String>,
}

impl Options {
    /// The options of a new transaction of a database with the snapshot counter `snapshot_ryw`.
    pub fn new(snapshot_ryw: i32) -> Options {
        Options {
            causal_write_risky: false,
            causal_read_risky: false,
            next_write_no_conflict: false,
            ryw_disabled: false,
            priority: Priority::Default,
            read_system_keys: false,
            write_system_keys: false,
            raw_access: false,
            timeout: 0,
            retry_limit: -1,
            max_retry_delay: SECOND,
            size_limit: TRANSACTION_SIZE_LIMIT,
            automatic_idempotency: false,
            snapshot_ryw,
            lock_aware: false,
            read_only: false,
            used_during_commit_allowed: false,
            report_conflicting_keys: false,
            special_keys_relaxed: false,
            special_keys_writes: false,
            tags: 0,
            bypass_unreadable: false,
            use_grv_cache: false,
            skip_grv_cache: false,
            identifier: None,
        }
    }

    /// Whether snapshot reads see the transaction's own writes.
    pub fn snapshot_ryw(&self) -> bool {
        self.snapshot_ryw > 0
    }

    /// Which of the transaction's own writes its reads see.
    pub fn own_writes(&self) -> OwnWrites {
        OwnWrites {
            read: !self.ryw_disabled,
            snapshot_read: self.snapshot_ryw(),
            unreadable: self.bypass_unreadable,
        }
    }

    /// Sets one option. The caller must check whether [`TransactionOption::ReadYourWritesDisable`] is set too
    /// late.
    pub fn set(&mut self, option: &TransactionOption) -> Result<()> {
        use TransactionOption::*;
        let at_least = |value: i32, least: i32| {
            if value < least { Err(Error::INVALID_OPTION_VALUE) } else { Ok(value) }
        };
        let milliseconds = |value: i32| Ok(at_least(value, 0)? as Nanos * MILLISECOND);
        match option {
            CausalWriteRisky => self.causal_write_risky = true,
            CausalReadRisky => self.causal_read_risky = true,
            NextWriteNoWriteConflictRange => self.next_write_no_conflict = true,
            ReadYourWritesDisable => self.ryw_disabled = true,
            PrioritySystemImmediate => self.priority = Priority::Immediate,
            PriorityBatch => self.priority = Priority::Batch,
            AccessSystemKeys => {
                self.read_system_keys = true;
                self.write_system_keys = true;
                self.raw_access = true;
            }
            ReadSystemKeys => {
                self.read_system_keys = true;
                self.raw_access = true;
            }
            RawAccess => self.raw_access = true,
            Timeout(value) => self.timeout = milliseconds(*value)?,
            RetryLimit(value) => self.retry_limit = at_least(*value, -1)?,
            MaxRetryDelay(value) => self.max_retry_delay = milliseconds(*value)?,
            SizeLimit(value) if i64::from(*value) > TRANSACTION_SIZE_LIMIT => {
                return Err(Error::INVALID_OPTION_VALUE);
            }
            SizeLimit(value) => self.size_limit = i64::from(at_least(*value, 32)?),
            AutomaticIdempotency => self.automatic_idempotency = true,
            SnapshotRywEnable => self.snapshot_ryw += 1,
            SnapshotRywDisable => self.snapshot_ryw -= 1,
            LockAware => {
                self.lock_aware = true;
                self.read_only = false;
            }
            ReadLockAware if !self.lock_aware => {
                self.lock_aware = true;
                self.read_only = true;
            }
            ReadLockAware => {}
            UsedDuringCommitProtectionDisable => self.used_during_commit_allowed = true,
            ReportConflictingKeys => self.report_conflicting_keys = true,
            SpecialKeySpaceRelaxed => self.special_keys_relaxed = true,
            SpecialKeySpaceEnableWrites => self.special_keys_writes = true,
            Tag(tag) | AutoThrottleTag(tag) if tag.len() > 255 => return Err(TAG_TOO_LONG),
            Tag(_) | AutoThrottleTag(_) if self.tags >= 5 => return Err(TOO_MANY_TAGS),
            Tag(_) | AutoThrottleTag(_) => self.tags += 1,
            BypassUnreadable => self.bypass_unreadable = true,
            UseGrvCache => self.use_grv_cache = true,
            SkipGrvCache => self.skip_grv_cache = true,
            TransactionLoggingEnable(identifier) | DebugTransactionIdentifier(identifier) => {
                if !(1..=100).contains(&identifier.len()) {
                    return Err(Error::INVALID_OPTION_VALUE);
                }
                if self.identifier.get_or_insert_with(|| identifier.clone()) != identifier {
                    return Err(Error::CLIENT_INVALID_OPERATION);
                }
            }
            LogTransaction if self.identifier.is_none() => return Err(Error::CLIENT_INVALID_OPERATION),
            TransactionLoggingMaxFieldLength(0) => return Err(Error::INVALID_OPTION_VALUE),
            TransactionLoggingMaxFieldLength(value) => drop(at_least(*value, -1)?),
            ConsistencyCheckRequiredReplicas(value) => drop(at_least(*value, -2)?),
            IdempotencyId(id) if !(16..256).contains(&id.len()) => return Err(Error::INVALID_OPTION),
            IdempotencyId(_) => self.automatic_idempotency = false,
            SpanParent(span) if span.len() != 33 => return Err(Error::INVALID_OPTION_VALUE),
            // Some of these have an effect on a real cluster, which no application could observe either.
            option if !option.is_observable() => {}
            _ => return Err(Error::INVALID_OPTION),
        }
        Ok(())
    }
}

/// Whether an option remains set after `on_error`.
pub fn is_persistent(option: &TransactionOption) -> bool {
    use TransactionOption::*;
    matches!(option, Timeout(_) | RetryLimit(_) | MaxRetryDelay(_) | AuthorizationToken(_))
}

/// The transaction option for which a database option is the default.
pub fn default_of(option: &DatabaseOption) -> Option<TransactionOption> {
    use DatabaseOption::*;
    Some(match option {
        TransactionTimeout(v) => TransactionOption::Timeout(*v),
        TransactionRetryLimit(v) => TransactionOption::RetryLimit(*v),
        TransactionMaxRetryDelay(v) => TransactionOption::MaxRetryDelay(*v),
        TransactionSizeLimit(v) => TransactionOption::SizeLimit(*v),
        TransactionLoggingMaxFieldLength(v) => TransactionOption::TransactionLoggingMaxFieldLength(*v),
        TransactionIncludePortInAddress => TransactionOption::IncludePortInAddress,
        TransactionCausalReadRisky => TransactionOption::CausalReadRisky,
        TransactionAutomaticIdempotency => TransactionOption::AutomaticIdempotency,
        TransactionBypassUnreadable => TransactionOption::BypassUnreadable,
        TransactionUsedDuringCommitProtectionDisable => TransactionOption::UsedDuringCommitProtectionDisable,
        TransactionReportConflictingKeys => TransactionOption::ReportConflictingKeys,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An option's name without its value.
    fn name(option: &impl std::fmt::Debug) -> String {
        let name = format!("{option:?}");
        name.split('(').next().unwrap_or_default().trim_start_matches("Transaction").to_owned()
    }

    #[test]
    fn read_lock_aware_transactions_are_read_only_unless_also_lock_aware() {
        use TransactionOption::{LockAware, ReadLockAware};
        let after = |set: &[TransactionOption]| {
            let mut options = Options::new(1);
            set.iter().for_each(|option| options.set(option).expect("an option"));
            (options.lock_aware, options.read_only)
        };
        assert_eq!(after(&[]), (false, false));
        assert_eq!(after(&[ReadLockAware]), (true, true));
        assert_eq!(after(&[LockAware]), (true, false));
        assert_eq!(after(&[ReadLockAware, LockAware]), (true, false));
        assert_eq!(after(&[LockAware, ReadLockAware]), (true, false));
    }

    #[test]
    fn values_are_taken_within_their_limits() {
        use TransactionOption::*;
        let takes = |option: TransactionOption| Options::new(1).set(&option) == Ok(());
        let number = |option: fn(i32) -> TransactionOption, least: i32| {
            assert!(takes(option(least)) && !takes(option(least - 1)), "{:?}", option(least));
        };
        number(Timeout, 0);
        number(RetryLimit, -1);
        number(MaxRetryDelay, 0);
        number(SizeLimit, 32);
        number(ConsistencyCheckRequiredReplicas, -2);
        number(TransactionLoggingMaxFieldLength, -1);
        assert!(!takes(TransactionLoggingMaxFieldLength(0)) && takes(TransactionLoggingMaxFieldLength(1)));
        assert!(takes(SizeLimit(10_000_000)) && !takes(SizeLimit(10_000_001)));
        let lengths = |option: fn(usize) -> TransactionOption, least: usize, most: usize| {
            let taken: Vec<usize> = (0..300).filter(|length| takes(option(*length))).collect();
            assert_eq!(taken, (least..=most).collect::<Vec<_>>(), "{:?}", option(least));
        };
        lengths(|length| Tag("t".repeat(length)), 0, 255);
        lengths(|length| AutoThrottleTag("t".repeat(length)), 0, 255);
        lengths(|length| DebugTransactionIdentifier("i".repeat(length)), 1, 100);
        lengths(|length| TransactionLoggingEnable("i".repeat(length)), 1, 100);
        lengths(|length| IdempotencyId(vec![7; length].into()), 16, 255);
        lengths(|length| SpanParent(vec![7; length].into()), 33, 33);
    }

    #[test]
    fn a_sixth_tag_is_too_many_and_a_second_identifier_must_be_the_first() {
        use TransactionOption::*;
        let mut options = Options::new(1);
        for n in 0..5 {
            assert_eq!(options.set(&Tag(n.to_string())), Ok(()));
        }
        assert_eq!(options.set(&Tag("6".into())), Err(TOO_MANY_TAGS));
        assert_eq!(options.tags, 5);
        assert_eq!(
            options.set(&LogTransaction),
            Err(Error::CLIENT_INVALID_OPERATION),
            "nobody knows its name"
        );
        for (identifier, answer) in
            [("one", Ok(())), ("other", Err(Error::CLIENT_INVALID_OPERATION)), ("one", Ok(()))]
        {
            assert_eq!(options.set(&DebugTransactionIdentifier(identifier.into())), answer);
        }
        assert_eq!(options.set(&LogTransaction), Ok(()));
    }

    #[test]
    fn a_default_for_transactions_is_the_option_of_its_name() {
        let mut defaults = 0;
        for code in DatabaseOption::CODES {
            let value = 7_i64.to_le_bytes();
            let option = [None, Some(&value[..]), Some(b"text")]
                .into_iter()
                .find_map(|raw| DatabaseOption::from_raw(*code, raw).ok())
                .expect("each option takes one of these");
            // The names of the others do not start with this prefix.
            let is_default = format!("{option:?}").starts_with("Transaction");
            let found = default_of(&option);
            assert_eq!(found.is_some(), is_default, "{option:?}");
            if let Some(found) = found {
                assert_eq!((name(&found), found.value()), (name(&option), option.value()));
                defaults += 1;
            }
        }
        assert_eq!(defaults, 11);
    }
}
