//! One case replayed on a database, step by step, and compared with its recorded results.

use super::cases::{Bytes, Case, Selector, Step};
use futures::future::{BoxFuture, Either, FutureExt, MaybeDone, maybe_done, select};
use serde_json::{Value, json};
use shaketable_tx::{
    ConflictRangeType, Database, Error, Isolation, KeySelector, KeyValue, MutationType, RangeOption, Result,
    StreamingMode, Transaction, TransactionOption,
};
use std::{collections::BTreeMap, pin::Pin, time::Duration};

/// The result of replaying a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// All results and the final keyspace are equal.
    Equal,
    /// The first difference.
    Different(Difference),
}

/// A result that is not the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The step, from 0; `None` if the final keyspace differs, and in a case without steps.
    pub step: Option<usize>,
    /// The call of that step.
    pub what: String,
    /// The recorded result.
    pub expected: String,
    /// The result of the replay.
    pub actual: String,
}

const READ_CONFLICTS: &[u8] = b"\xff\xff/transaction/read_conflict_range/";
const WRITE_CONFLICTS: &[u8] = b"\xff\xff/transaction/write_conflict_range/";
const CONFLICTING: &[u8] = b"\xff\xff/transaction/conflicting_keys/";

/// A transaction of a case, with its commit and watches in progress.
struct Handle<T> {
    tx: T,
    commit: Option<Commit>,
    watches: BTreeMap<String, Watch>,
}

/// A commit that has started.
type Commit = Pin<Box<MaybeDone<BoxFuture<'static, Result<()>>>>>;

enum Watch {
    Waiting(BoxFuture<'static, Result<()>>),
    Over(Result<()>),
}

/// Replays `case` on `db`: clears the user keyspace, stores the initial rows of the case, performs its steps
/// in order, and compares the results.
pub async fn replay<D: Database>(db: &D, case: &Case) -> Result<Replayed> {
    set_up(db, case).await?;
    let mut replay = Replay { db, handles: BTreeMap::new(), stamps: BTreeMap::new() };
    for (number, step) in case.steps.iter().enumerate() {
        let actual = replay.perform(step).await;
        if !replay.agrees(step, &actual) {
            return Ok(Replayed::Different(Difference {
                step: Some(number),
                what: describe(step),
                expected: step.expect.to_string(),
                actual: actual.to_string(),
            }));
        }
    }
    let rows = keyspace(db).await?;
    let expected: Option<Vec<(Vec<u8>, Vec<u8>)>> =
        case.last.iter().map(|(k, v)| Some((k.decode(&replay.stamps)?, v.decode(&replay.stamps)?))).collect();
    let expected = expected.map(|mut rows| {
        // The rows are sorted with this replay's stamps, whose order may differ from that in the recording.
        rows.sort();
        rows
    });
    let actual: Vec<_> = rows.iter().map(|row| (row.key.to_vec(), row.value.to_vec())).collect();
    if expected.as_ref() == Some(&actual) {
        return Ok(Replayed::Equal);
    }
    Ok(Replayed::Different(Difference {
        step: None,
        what: "final keyspace".to_owned(),
        expected: json!(case.last.iter().map(|(k, v)| [&k.0, &v.0]).collect::<Vec<_>>()).to_string(),
        actual: json!(rows_value(&rows)).to_string(),
    }))
}

/// Performs the steps of `case` on `db` and records their results and the final keyspace. Versionstamps are
/// replaced by the names of their transactions, so that the results are valid elsewhere.
pub(super) async fn record<D: Database>(db: &D, mut case: Case) -> Result<Case> {
    set_up(db, &case).await?;
    let mut replay = Replay { db, handles: BTreeMap::new(), stamps: BTreeMap::new() };
    let mut answers = Vec::new();
    for step in &case.steps {
        answers.push(replay.perform(step).await);
    }
    let spell = |bytes: &[u8]| Bytes::spell(bytes, &replay.stamps);
    case.last = keyspace(db).await?.iter().map(|row| (spell(&row.key), spell(&row.value))).collect();
    for (step, answer) in case.steps.iter_mut().zip(answers) {
        step.expect = answer;
    }
    Ok(case)
}

/// Adds system keys after the user's keys, at least as many as the recorded cluster had: a selector that
/// moves beyond the user's keys counts them, and a batch that is limited to a number of rows or bytes of the
/// snapshot has read some. Must be called once, before any case.
pub async fn prepare<D: Database>(db: &D) -> Result<()> {
    db.run(|tx, _| async move {
        tx.set_option(TransactionOption::AccessSystemKeys)?;
        tx.set(b"\xff\x02/fdbClientInfo/migrated/", b"");
        tx.set(b"\xff\x02/serverMetadataChanges", &[b'0'; 32]);
        for n in 0..60u32 {
            let time = (0x6b01_0cce + 10 * n).to_be_bytes();
            tx.set(&[TIME_KEEPER, &time].concat(), &[0; 8]);
        }
        Ok::<_, Error>(())
    })
    .await
    .map_err(|e| e.error)
}

/// Sets the user keyspace to the initial rows of the case.
async fn set_up<D: Database>(db: &D, case: &Case) -> Result<()> {
    let none = BTreeMap::new();
    let rows: Option<Vec<_>> =
        case.setup.iter().map(|(key, value)| Some((key.decode(&none)?, value.decode(&none)?))).collect();
    set_keyspace(db, &rows.expect("the rows before a case have no versionstamps")).await
}

/// Makes these rows the whole content of the user keyspace.
pub(super) async fn set_keyspace<D: Database>(db: &D, rows: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
    let set = |tx: D::Transaction, _| async move {
        tx.clear_range(b"", b"\xff");
        for (key, value) in rows {
            tx.set(key, value);
        }
        Ok::<_, Error>(())
    };
    db.run(set).await.map_err(|e| e.error)
}

/// All rows of the user keyspace.
pub(super) async fn keyspace<D: Database>(db: &D) -> Result<Vec<KeyValue>> {
    let all = RangeOption::new(&b""[..], &b"\xff"[..]).mode(StreamingMode::WantAll);
    db.run(|tx, _| {
        let all = all.clone();
        async move { tx.get_range_all(all, Isolation::Snapshot).await }
    })
    .await
    .map_err(|e| e.error)
}

struct Replay<'a, D: Database> {
    db: &'a D,
    handles: BTreeMap<String, Handle<D::Transaction>>,
    stamps: BTreeMap<String, [u8; 10]>,
}

/// The error of a step without the parameters that its call needs.
const INCOMPLETE: Error = Error::CLIENT_INVALID_OPERATION;

impl<D: Database> Replay<'_, D> {
    /// Performs a step; returns its result in the format of the recordings.
    async fn perform(&mut self, step: &Step) -> Value {
        match self.call(step).await {
            Ok(value) => value,
            Err(e) => json!({ "error": e.code() }),
        }
    }

    async fn call(&mut self, step: &Step) -> Result<Value> {
        if !self.handles.contains_key(&step.tx) {
            let tx = self.db.create_transaction()?;
            self.handles.insert(step.tx.clone(), Handle { tx, commit: None, watches: BTreeMap::new() });
        }
        let handle = self.handles.get_mut(&step.tx).ok_or(INCOMPLETE)?;
        let tx = handle.tx.clone();
        let repeat = step.repeat.unwrap_or([1, 1]);
        let bytes = |b: &Option<Bytes>, times: usize| {
            b.as_ref().and_then(|b| b.decode(&self.stamps)).map(|b| b.repeat(times)).ok_or(INCOMPLETE)
        };
        let key = || bytes(&step.key, repeat[0]);
        let edge = |value: &Option<Value>| {
            let text = value.as_ref().and_then(Value::as_str).ok_or(INCOMPLETE)?;
            Bytes(text.to_owned()).decode(&self.stamps).ok_or(INCOMPLETE)
        };
        let isolation = if step.snapshot { Isolation::Snapshot } else { Isolation::Serializable };
        Ok(match step.op.as_str() {
            "get" => {
                let value = tx.get(&key()?, isolation).await?;
                json!({ "value": value.map(|v| Bytes::encode(&v).0) })
            }
            "get_key" => {
                let selector =
                    step.selector.as_ref().and_then(|s| selector(s, &self.stamps)).ok_or(INCOMPLETE)?;
                json!({ "key": Bytes::encode(&tx.get_key(&selector, isolation).await?).0 })
            }
            "get_range" => {
                let range = range(step, &self.stamps).ok_or(INCOMPLETE)?;
                let batch = tx.get_range(&range, step.iteration.unwrap_or(1), isolation).await?;
                json!({ "rows": rows_value(&batch.rows), "more": batch.more })
            }
            "set" => {
                tx.set(&key()?, &bytes(&step.value, repeat[1])?);
                json!({})
            }
            "clear" => {
                tx.clear(&key()?);
                json!({})
            }
            "clear_range" => {
                tx.clear_range(&edge(&step.begin)?, &edge(&step.end)?);
                json!({})
            }
            "atomic" => {
                let code = mutation(step).ok_or(INCOMPLETE)?;
                void_result(step, tx.atomic_op_code(&key()?, &bytes(&step.operand, 1)?, code))?
            }
            "add_read_conflict_range" => {
                let (begin, end) = (edge(&step.begin)?, edge(&step.end)?);
                void_result(step, tx.add_conflict_range(&begin, &end, ConflictRangeType::Read))?
            }
            "add_write_conflict_range" => {
                let (begin, end) = (edge(&step.begin)?, edge(&step.end)?);
                void_result(step, tx.add_conflict_range(&begin, &end, ConflictRangeType::Write))?
            }
            "conflict_ranges" => json!({
                "read": boundaries(&tx, READ_CONFLICTS).await?,
                "write": boundaries(&tx, WRITE_CONFLICTS).await?,
            }),
            "conflicting_keys" => json!({ "conflicting": boundaries(&tx, CONFLICTING).await? }),
            "set_option" => void_result(step, tx.set_option(option(step).ok_or(INCOMPLETE)?))?,
            "get_read_version" => {
                tx.get_read_version().await?;
                json!({ "ok": true })
            }
            "set_read_version" => {
                tx.set_read_version(step.version.ok_or(INCOMPLETE)?);
                json!({})
            }
            "approximate_size" => json!({ "size": tx.get_approximate_size().await? }),
            "commit" => {
                let stamp = step.stamp.then(|| tx.get_versionstamp());
                tx.commit().await?;
                let read_only = tx.get_committed_version()? == -1;
                let Some(stamp) = stamp else {
                    return Ok(json!({ "committed": true, "read_only": read_only }));
                };
                match stamp.await {
                    Ok(stamp) => {
                        self.stamps.insert(step.tx.clone(), stamp);
                        json!({ "committed": true, "read_only": read_only })
                    }
                    Err(e) => json!({ "committed": true, "stamp_error": e.code() }),
                }
            }
            "commit_start" => {
                let commit = async move { tx.commit().await }.boxed();
                let mut commit = Box::pin(maybe_done(commit));
                // It starts now; its result is awaited later.
                let _ = futures::poll!(commit.as_mut());
                handle.commit = Some(commit);
                json!({})
            }
            "commit_wait" => {
                let mut commit = handle.commit.take().ok_or(INCOMPLETE)?;
                commit.as_mut().await;
                commit.as_mut().take_output().ok_or(INCOMPLETE)??;
                json!({ "committed": true })
            }
            "on_error" => {
                tx.on_error(Error::from_code(step.code.ok_or(INCOMPLETE)?)).await?;
                json!({ "retry": true })
            }
            "reset" => {
                tx.reset();
                json!({})
            }
            "cancel" => {
                tx.cancel();
                json!({})
            }
            "watch" => {
                let watch = Watch::Waiting(tx.watch(&key()?));
                handle.watches.insert(step.id.clone().ok_or(INCOMPLETE)?, watch);
                json!({})
            }
            "watch_wait" => {
                let id = step.id.as_ref().ok_or(INCOMPLETE)?;
                match handle.watches.remove(id).ok_or(INCOMPLETE)? {
                    Watch::Waiting(watch) => watch.await?,
                    Watch::Over(answer) => answer?,
                }
                json!({ "fired": true })
            }
            "watch_ready" => {
                let id = step.id.as_ref().ok_or(INCOMPLETE)?;
                let mut watch = handle.watches.remove(id).ok_or(INCOMPLETE)?;
                let patience = self.db.env().sleep(Duration::from_millis(300));
                if let Watch::Waiting(waiting) = watch {
                    watch = match select(waiting, patience).await {
                        Either::Left((answer, _)) => Watch::Over(answer),
                        Either::Right(((), waiting)) => Watch::Waiting(waiting),
                    };
                }
                let ready = matches!(watch, Watch::Over(_));
                handle.watches.insert(id.clone(), watch);
                json!({ "ready": ready })
            }
            _ => return Err(INCOMPLETE),
        })
    }

    fn agrees(&self, step: &Step, actual: &Value) -> bool {
        self.normal(&step.expect) == self.normal(actual)
    }

    /// The result with a uniform spelling of all byte strings, and with the cluster's own keys masked.
    fn normal(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.spelled(text, mask),
            Value::Array(items) => match &items[..] {
                [Value::String(key), Value::String(value)] => {
                    json!([self.spelled(key, mask), self.spelled(value, |bytes| bytes)])
                }
                items => items.iter().map(|item| self.normal(item)).collect(),
            },
            Value::Object(fields) => {
                let field = |(name, field): (&String, &Value)| match (name.as_str(), field) {
                    ("value", Value::String(text)) => (name.clone(), self.spelled(text, |bytes| bytes)),
                    _ => (name.clone(), self.normal(field)),
                };
                Value::Object(fields.iter().map(field).collect())
            }
            other => other.clone(),
        }
    }

    /// A byte string in one spelling, after `change`.
    fn spelled(&self, text: &str, change: fn(Vec<u8>) -> Vec<u8>) -> Value {
        let bytes = Bytes(text.to_owned()).decode(&self.stamps);
        Value::String(bytes.map_or_else(|| text.to_owned(), |bytes| Bytes::encode(&change(bytes)).0))
    }
}

/// The prefix under which a cluster maps times to versions, followed by a type code and four bytes of
/// seconds.
const TIME_KEEPER: &[u8] = b"\xff\x02/timeKeeper/map/\x18";

/// Where the keys begin that a cluster writes for itself, at any time.
const OWN: &[u8] = b"\xff\x02";

/// A key of the cluster itself, masked: a selector that moves beyond the user's keys may end at any of them,
/// which depends on what the cluster has done by then.
fn mask(key: Vec<u8>) -> Vec<u8> {
    let is_own = key.starts_with(OWN) || (&key[..] > OWN && !key.starts_with(b"\xff\xff"));
    if is_own { OWN.to_vec() } else { key }
}

/// A call that returns nothing in the C API: if this client returns its error immediately, the following
/// results must still be equal. The recording contains what the C API returns, which is nothing for an atomic
/// operation.
fn void_result(step: &Step, answer: Result<()>) -> Result<Value> {
    let recording = step.expect.is_null() && step.op != "atomic";
    match answer {
        Err(e) if recording || step.expect.get("error").is_some() => Err(e),
        _ => Ok(json!({})),
    }
}

async fn boundaries<T: Transaction>(tx: &T, prefix: &[u8]) -> Result<Value> {
    let end = [&prefix[..prefix.len() - 1], b"0"].concat();
    let range = RangeOption::new(prefix.to_vec(), end).mode(StreamingMode::WantAll);
    let batch = tx.get_range(&range, 1, Isolation::Serializable).await?;
    let row = |row: &KeyValue| {
        json!([Bytes::encode(&row.key[prefix.len()..]).0, String::from_utf8_lossy(&row.value)])
    };
    Ok(batch.rows.iter().map(row).collect())
}

fn rows_value(rows: &[KeyValue]) -> Value {
    rows.iter().map(|row| json!([Bytes::encode(&row.key).0, Bytes::encode(&row.value).0])).collect()
}

fn selector(selector: &Selector, stamps: &BTreeMap<String, [u8; 10]>) -> Option<KeySelector> {
    Some(KeySelector::new(selector.key.decode(stamps)?, selector.or_equal, selector.offset))
}

fn range(step: &Step, stamps: &BTreeMap<String, [u8; 10]>) -> Option<RangeOption> {
    let end_of = |value: &Option<Value>| {
        let parsed: Selector = serde_json::from_value(value.clone()?).ok()?;
        selector(&parsed, stamps)
    };
    let mut range = RangeOption::between(end_of(&step.begin)?, end_of(&step.end)?);
    range.limit = step.limit.and_then(|n| usize::try_from(n).ok());
    range.reverse = step.reverse;
    range.mode = match step.mode.as_deref()? {
        "want_all" => StreamingMode::WantAll,
        "iterator" => StreamingMode::Iterator,
        "exact" => StreamingMode::Exact,
        "small" => StreamingMode::Small,
        "medium" => StreamingMode::Medium,
        "large" => StreamingMode::Large,
        "serial" => StreamingMode::Serial,
        _ => return None,
    };
    Some(range)
}

fn mutation(step: &Step) -> Option<u32> {
    let op = match step.mutation.as_deref()? {
        "?" => return u32::try_from(step.code?).ok(),
        "add" => MutationType::Add,
        "bit_and" => MutationType::BitAnd,
        "bit_or" => MutationType::BitOr,
        "bit_xor" => MutationType::BitXor,
        "append_if_fits" => MutationType::AppendIfFits,
        "max" => MutationType::Max,
        "min" => MutationType::Min,
        "byte_min" => MutationType::ByteMin,
        "byte_max" => MutationType::ByteMax,
        "compare_and_clear" => MutationType::CompareAndClear,
        "set_versionstamped_key" => MutationType::SetVersionstampedKey,
        "set_versionstamped_value" => MutationType::SetVersionstampedValue,
        _ => return None,
    };
    Some(op.code())
}

fn option(step: &Step) -> Option<TransactionOption> {
    use TransactionOption::*;
    Some(match step.option.as_deref()? {
        "bypass_unreadable" => BypassUnreadable,
        "next_write_no_write_conflict_range" => NextWriteNoWriteConflictRange,
        "read_system_keys" => ReadSystemKeys,
        "read_your_writes_disable" => ReadYourWritesDisable,
        "report_conflicting_keys" => ReportConflictingKeys,
        "retry_limit" => RetryLimit(step.param?),
        "size_limit" => SizeLimit(step.param?),
        "snapshot_ryw_disable" => SnapshotRywDisable,
        "snapshot_ryw_enable" => SnapshotRywEnable,
        "used_during_commit_protection_disable" => UsedDuringCommitProtectionDisable,
        _ => return None,
    })
}

/// A short description of a step.
fn describe(step: &Step) -> String {
    let mut words = vec![step.tx.clone(), step.op.clone()];
    let texts = [&step.key, &step.value, &step.operand];
    words.extend(texts.into_iter().flatten().map(|b| b.0.clone()));
    words.extend([&step.begin, &step.end].into_iter().flatten().map(Value::to_string));
    words.extend(step.selector.iter().map(|s| format!("{} {} {}", s.key.0, s.or_equal, s.offset)));
    words.extend([&step.mutation, &step.option, &step.mode].into_iter().flatten().cloned());
    words.extend(step.limit.map(|n| format!("limit {n}")));
    words.extend(step.reverse.then(|| "reverse".to_owned()));
    words.extend(step.snapshot.then(|| "snapshot".to_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_s_own_keys_are_masked_and_nothing_else() {
        let at = |time: u32| [TIME_KEEPER, &time.to_be_bytes(), b"\0"].concat();
        assert_eq!(mask(at(0x6b01_0cce)), mask(at(0x6b01_0ce2)));
        assert_eq!(mask(at(1)), mask(b"\xff\x02/fdbClientInfo/migrated/".to_vec()));
        assert_eq!(mask(at(1)), mask(b"\xff\x05x".to_vec()));
        for key in [&b"\xff\x01"[..], b"\xff", b"\xff\xff", b"\xff\xff/status/json", b"\xfe\x02", b"abcd"] {
            assert_eq!(mask(key.to_vec()), key);
        }
    }
}
