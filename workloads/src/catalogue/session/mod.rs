//! `session`: the exactly-once mechanism itself, by every way into it, while two processes believe to be the
//! same client.
//!
//! Each client of the mechanism has a register. In some seeds two clients of the run share a number, as when a
//! process that was believed dead goes on: the later to open wins. Operations are dropped, kept and committed
//! long afterwards, disturbed, limited in their retries, and asked about by others. The model follows what each
//! transaction wrote to the slots: an incarnation begins, an operation is applied or ruled out, each after all
//! before it. At the end every claim about an operation's fate is held against what had happened.

mod planted;

use bytes::Bytes;
use foundationdb_tuple::{Subspace, Versionstamp, pack};
use futures::future::join;
use parking_lot::Mutex;
use proptest::{collection::vec, prelude::*};
use serde::{Deserialize, Serialize};
use shaketable::{
    judges::Keyspace,
    sessions::{self, slots},
    workload::{Bug, Outcome, Step, Workload},
};
use shaketable_layers::{
    always,
    once::{self, Check, Error, Fate, Landing, OpId, Packed, Session, check, converging, record, resolve},
    tx::{
        self, Attempt, Database, DatabaseOption, Isolation::Serializable, MutationType, RetryError, RunError,
        Transaction, TransactionOption,
    },
};
use shaketable_sim::{proto::Mutation, seed::Stream};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    time::Duration,
};

shaketable::planted_bugs! {
    Unread = "unread-slot", "the record is written without a look at the slot", "a retry that trusts nobody else to write";
    SnapshotSlot = "snapshot-slot", "the slot is read at snapshot", "a record outside the conflict ranges";
    OldEpoch = "old-epoch", "a superseded session goes on", "a process believed dead";
    OneByte = "one-byte-numbers", "operations are counted in one byte", "a counter that nobody thought large";
    UsedIsRefused = "used-is-refused", "2017 of a commit counts as a refusal", "a list of unknown results that is not complete";
    FatalIsRefused = "fatal-is-refused", "1022 of a commit counts as a refusal", "a list of unknown results that is not complete";
    RefusedUnfenced = "refused-unfenced", "a refusal after an unknown attempt is passed on as it is", "a retry loop that keeps the last error alone";
    DroppedIsRefused = "dropped-is-refused", "an operation whose commit was dropped counts as not applied", "a request time-out";
    UnfencedFate = "unfenced-fate", "an operation that is not recorded counts as not applied, without a fence", "a look for a record";
    BegunOver = "begun-over", "an operation begins although nobody has asked what became of a dropped one", "an answer that is lost unnoticed";
    AnswersLast = "answers-the-last", "whatever is recorded in the slot is taken for the operation's own answer", "a slot without numbers";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sessions {
    clients: usize,
    operations: Range<usize>,
    /// Whether clients two by two share a number.
    twins: bool,
    /// How many operations a burst has at most.
    burst: u16,
    /// The timeout that clients set on their database, milliseconds.
    timeout: Option<i32>,
    /// The retry limit that they set on it.
    retries: Option<i32>,
    planted: Option<Planted>,
}

/// One operation. Those that add name a number to be added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Begins a new incarnation.
    Open,
    /// Reads the register and adds; unless that leaves the bound, which refuses it.
    Add(i8),
    /// Adds without a look.
    Blind(i8),
    /// Adds by a retry loop of its own, with this retry limit.
    Manual(i8, i32),
    /// Adds, and uses a clone of the transaction after so many tenths of a millisecond.
    Clone(i8, u8),
    /// Adds, and drops the future of the commit after so many polls.
    Cut(i8, u8),
    /// Prepares to add, and keeps the transaction.
    Keep(i8),
    /// Commits what was kept.
    Late,
    /// So many operations that add one, one after the other.
    Burst(u16),
    /// Asks what became of the pending operation: by the session, or as another process would.
    Settle(bool),
    /// Asks what became of the operation of this incarnation and number, as another process would.
    Ask(u8, u8),
    /// What the session has settled by itself.
    Settled,
    /// Looks at the slot and the register.
    Look,
    /// Writes a mark, which may happen twice.
    Mark(u8),
}

impl Op {
    /// Whether it begins an operation of the session.
    pub(crate) fn begins(&self) -> bool {
        matches!(
            self,
            Op::Add(_)
                | Op::Blind(_)
                | Op::Manual(..)
                | Op::Clone(..)
                | Op::Cut(..)
                | Op::Keep(_)
                | Op::Burst(_)
        )
    }
}

/// What an operation answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// An incarnation has begun, and this is what was recorded last before it.
    Opened(Option<(OpId, Known)>),
    /// Applied: the register's value, unless nobody looked, and the versionstamp.
    Applied(i64, [u8; 10]),
    /// So many operations were applied, and perhaps more.
    Burst(u16),
    /// Not applied, for this reason.
    Refused(String),
    /// Not applied, because the database did not let it.
    Failed(i32),
    /// What became of an operation.
    Fate(OpId, Known),
    /// Not applied, because this operation was dropped before; and what had become of it, asked for now.
    Unread(OpId, Known),
    /// The register, and whether the slot says that the last operation is ruled out; `None` without a slot.
    Seen(i64, Option<bool>),
    /// Nothing to be said of.
    Nothing,
}

/// What is known of an operation's fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Known {
    /// Applied, with this value and versionstamp.
    Applied(i64, [u8; 10]),
    /// Not applied, for ever.
    NotApplied,
    /// Overwritten.
    Forgotten,
}

/// What every operation answers and records: the register's value, or 0 when nobody looked, and the
/// versionstamp.
pub(crate) type Told = Packed<(i64, Versionstamp)>;

fn told(Packed((value, stamp)): Told) -> Answer {
    let mut bytes = [0; 10];
    bytes.copy_from_slice(stamp.transaction_version());
    Answer::Applied(value, bytes)
}

fn known(fate: Fate<Told>) -> Known {
    match fate.map(told) {
        Fate::Applied(Answer::Applied(value, stamp)) => Known::Applied(value, stamp),
        Fate::Forgotten => Known::Forgotten,
        _ => Known::NotApplied,
    }
}

/// Why an addition does not happen.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The database's error.
    #[error(transparent)]
    Fdb(#[from] tx::Error),
    /// The mechanism's.
    #[error(transparent)]
    Once(#[from] Error),
    /// The register is at its bound.
    #[error("the register is at its bound")]
    Bound,
}

impl RetryError for Refusal {
    fn fdb(&self) -> Option<tx::Error> {
        match self {
            Refusal::Fdb(e) => Some(*e),
            Refusal::Once(e) => e.fdb(),
            Refusal::Bound => None,
        }
    }
}

/// No register goes beyond.
const BOUND: i64 = 40;

/// A client's register.
pub(crate) fn register(number: u64) -> Bytes {
    Subspace::from("register").pack(&number).into()
}

fn mark(client: usize) -> Bytes {
    pack(&("mark", client as u64)).into()
}

fn number(value: Option<Bytes>) -> i64 {
    value.and_then(|value| value[..].try_into().ok()).map_or(0, i64::from_le_bytes)
}

/// Reads the register and adds.
pub(crate) async fn add<T: Transaction>(tx: &T, client: u64, by: i8) -> Result<Told, Refusal> {
    let key = register(client);
    let value = number(tx.get(&key, Serializable).await?) + i64::from(by);
    if value.abs() > BOUND {
        return Err(Refusal::Bound);
    }
    tx.set(&key, &value.to_le_bytes());
    Ok(Packed((value, Versionstamp::incomplete(0))))
}

fn blind<T: Transaction>(tx: &T, client: u64, by: i8) -> Told {
    tx.atomic_op(&register(client), &i64::from(by).to_le_bytes(), MutationType::Add);
    Packed((0, Versionstamp::incomplete(0)))
}

/// What a client of the run holds.
pub struct Client<D: Database> {
    db: D,
    pub(crate) number: u64,
    run: usize,
    session: Option<Session<D>>,
    /// A transaction that was prepared and not committed.
    kept: Option<D::Transaction>,
    /// The operation that was begun and dropped, and for whose fate nobody has asked: no other one may begin.
    pub(crate) dropped: Option<OpId>,
}

impl<D: Database> Client<D> {
    /// The session; opened if there is none.
    pub(crate) async fn session(&mut self) -> Result<&mut Session<D>, Answer> {
        if self.session.is_none() {
            let opened = Session::open(&self.db, &slots(), self.number).await;
            self.session = Some(opened.map_err(|e| refused(Refusal::Once(e)))?);
        }
        self.session.as_mut().ok_or(Answer::Nothing)
    }
}

/// What is said of an operation that was not applied.
pub(crate) fn refused(refusal: Refusal) -> Answer {
    refusal.fdb().map_or_else(|| Answer::Refused(refusal.to_string()), |e| Answer::Failed(e.code()))
}

fn ended(outcome: once::Outcome<Told, Refusal>) -> Outcome<Answer> {
    match outcome.map(told) {
        once::Outcome::Applied(answer) => Outcome::Answered(answer),
        once::Outcome::Refused(refusal) => Outcome::Answered(refused(refusal)),
        once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
    }
}

/// A retry loop of a client's own, with a retry limit.
async fn manual<D: Database>(session: &mut Session<D>, by: i8, limit: i32) -> Outcome<Answer> {
    let op = match session.begin().await {
        Ok(op) => op,
        Err(e) => return Outcome::Answered(refused(e.into())),
    };
    let (db, slots) = (session.database().clone(), session.slots().clone());
    let mut attempt = Attempt::default();
    let gave_up = |error: Refusal, attempt: Attempt| RunError {
        error,
        maybe_committed: attempt.maybe_committed,
        attempts: attempt.number + 1,
    };
    let ran = async {
        let tx = db.create_transaction().map_err(|e| gave_up(e.into(), attempt))?;
        loop {
            let once = async {
                tx.set_option(TransactionOption::RetryLimit(limit))?;
                let landing = match check::<_, Told>(&tx, &slots, op).await? {
                    Check::Done(answer) => Landing::ready(answer),
                    Check::New(permit) => record(&tx, permit, add(&tx, op.client, by).await?)?,
                };
                Ok::<_, Refusal>(landing)
            };
            let failed = match once.await {
                Ok(landing) => match tx.commit().await {
                    Ok(()) => return Ok(landing),
                    Err(e) => {
                        attempt.maybe_committed |= e.leaves_commit_unknown();
                        Refusal::Fdb(e)
                    }
                },
                Err(e) => e,
            };
            let Some(error) = failed.fdb() else { return Err(gave_up(failed, attempt)) };
            if let Err(e) = tx.on_error(error).await {
                return Err(gave_up(e.into(), attempt));
            }
            attempt.number += 1;
        }
    };
    let ran = ran.await;
    ended(session.conclude(op, ran).await)
}

/// Adds; a clone of the transaction is used while the commit may be under way.
async fn disturbed<D: Database>(
    session: &mut Session<D>,
    number: u64,
    by: i8,
    after: Duration,
) -> Outcome<Answer> {
    let (kept, db) = (Mutex::new(None), session.database().clone());
    let kept = &kept;
    let added = session.apply(|tx| async move {
        *kept.lock() = Some(tx.clone());
        add(&tx, number, by).await
    });
    ended(join(added, meddle(&db, kept, after)).await.0)
}

/// Uses the transaction that is kept, if there is one by then. It is the call that disturbs a commit, not what it
/// answers.
pub(crate) async fn meddle<D: Database>(db: &D, kept: &Mutex<Option<D::Transaction>>, after: Duration) {
    db.env().sleep(after).await;
    let clone = kept.lock().clone();
    if let Some(tx) = clone {
        let _ = tx.get(&register(0), Serializable).await;
    }
}

/// Prepares an operation in a transaction that is still to commit.
async fn prepared<D: Database>(
    session: &mut Session<D>,
    by: i8,
) -> Result<(OpId, D::Transaction, Landing<Told>), Refusal> {
    let op = session.begin().await?;
    let (db, slots) = (session.database().clone(), session.slots().clone());
    let ready = async {
        let tx = db.create_transaction()?;
        let landing = match check::<_, Told>(&tx, &slots, op).await? {
            Check::Done(answer) => Landing::ready(answer),
            Check::New(permit) => record(&tx, permit, add(&tx, op.client, by).await?)?,
        };
        Ok((op, tx, landing))
    };
    match ready.await {
        Err(error) => {
            // Nothing was committed.
            let ran = RunError { error, maybe_committed: false, attempts: 1 };
            let _ = session.conclude::<Told, Refusal>(op, Err(ran)).await;
            Err(error)
        }
        ready => ready,
    }
}

/// Adds; the future of the commit is dropped when it was polled so often and still waits: the operation then.
pub(crate) async fn cut<D: Database>(
    session: &mut Session<D>,
    by: i8,
    polls: u8,
) -> Result<Outcome<Answer>, OpId> {
    let (op, tx, landing) = match prepared(session, by).await {
        Ok(prepared) => prepared,
        Err(refusal) => return Ok(Outcome::Answered(refused(refusal))),
    };
    let ran = match sessions::polled(u64::from(polls), tx.commit()).await {
        None => return Err(op),
        Some(Ok(())) => Ok(landing),
        Some(Err(e)) => {
            Err(RunError { error: Refusal::Fdb(e), maybe_committed: e.leaves_commit_unknown(), attempts: 1 })
        }
    };
    Ok(ended(session.conclude(op, ran).await))
}

/// Several operations, one after the other; what became of those that end unknown the next one settles.
async fn burst<D: Database>(session: &mut Session<D>, number: u64, count: u16) -> Answer {
    let mut applied = 0;
    for n in 0..count {
        let by = if n % 2 == 0 { 1 } else { -1 };
        match session.apply(|tx| async move { Ok::<_, Refusal>(blind(&tx, number, by)) }).await {
            once::Outcome::Applied(_) => applied += 1,
            once::Outcome::Refused(unread @ Refusal::Once(Error::Unread(_))) => return refused(unread),
            once::Outcome::Refused(refusal) if refusal.fdb().is_none() => break,
            once::Outcome::Refused(_) | once::Outcome::Unknown(_) => {}
        }
    }
    Answer::Burst(applied)
}

/// What a slot holds, by its documented layout.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Slot {
    pub(crate) epoch: u64,
    pub(crate) answered: (u64, u64),
    pub(crate) applied: Option<Bytes>,
}

impl Slot {
    pub(crate) fn of(value: &Bytes) -> Result<Slot, String> {
        let word =
            |at: usize| -> Option<u64> { Some(u64::from_be_bytes(value.get(at..at + 8)?.try_into().ok()?)) };
        let read = || Some((word(1)?, word(9)?, word(17)?, *value.get(25)?));
        match read() {
            Some((epoch, incarnation, number, verdict)) if value[0] == 1 && verdict < 2 => Ok(Slot {
                epoch,
                answered: (incarnation, number),
                applied: (verdict == 1).then(|| value.slice(26..)),
            }),
            _ => Err(format!("no slot: \"{}\"", value.escape_ascii())),
        }
    }

    fn fate(&self) -> Result<Known, String> {
        match &self.applied {
            None => Ok(Known::NotApplied),
            Some(answer) => match <Told as once::Answer>::decode(answer.clone()).map(told) {
                Some(Answer::Applied(value, stamp)) => Ok(Known::Applied(value, stamp)),
                _ => Err(format!("no answer: \"{}\"", answer.escape_ascii())),
            },
        }
    }

    /// The last operation, and what became of it.
    fn last(&self, client: u64) -> Result<Option<(OpId, Known)>, String> {
        let (epoch, seq) = self.answered;
        Ok(if seq > 0 { Some((OpId { client, epoch, seq }, self.fate()?)) } else { None })
    }
}

/// Names an operation: its client, its place in the client's list.
type Call = (usize, usize);

/// The model: what is stored, and what became of whom.
#[derive(Clone, Default)]
pub struct Model {
    rows: Keyspace,
    /// Whose incarnation each number's last one is, and whether its client has certainly heard of it.
    opener: BTreeMap<u64, (usize, bool)>,
    /// What each call that opened found.
    found: BTreeMap<Call, Option<(OpId, Known)>>,
    /// What was applied, and by which call.
    applied: BTreeMap<OpId, (Known, Call)>,
    /// What operations say.
    told: BTreeMap<Call, Answer>,
}

impl Model {
    fn slot(&self, number: u64) -> Result<Slot, String> {
        self.rows.0.get(&slots().key(number)).map_or(Ok(Slot::default()), Slot::of)
    }

    fn register(&self, client: u64) -> i64 {
        number(self.rows.0.get(&register(client)).cloned())
    }

    /// Does what a transaction wrote, and says whether it may.
    fn commit(&mut self, client: u64, step: &Step<'_, Sessions>) -> Result<(), String> {
        let (before, sum) = (self.slot(client)?, self.register(client));
        let keys: BTreeSet<&Bytes> = step.mutations.iter().map(key).collect();
        step.mutations.iter().for_each(|mutation| self.rows.apply(mutation, None));
        let call = (step.client, step.index);
        if let Op::Mark(_) = step.op {
            return match keys.iter().all(|key| **key == mark(step.client)) {
                true => Ok(()),
                false => Err(format!("a mark that writes {keys:?}")),
            };
        }
        let (slot, register) = (slots().key(client), register(client));
        if !keys.contains(&slot) || keys.iter().any(|key| **key != slot && **key != register) {
            return Err(format!("wrote {keys:?}"));
        }
        let (after, added) = (self.slot(client)?, self.register(client) - sum);
        let touched = keys.contains(&register);
        if after.epoch == before.epoch + 1 {
            let same = after.answered == before.answered && after.applied == before.applied;
            let heard = step.answer.is_some_and(|answer| !matches!(answer, Answer::Failed(_)));
            self.opener.insert(client, (step.client, heard));
            self.found.insert(call, before.last(client)?);
            return match same && !touched {
                true => Ok(()),
                false => Err(format!("an incarnation begins and makes {after:?} of {before:?}")),
            };
        }
        if after.epoch != before.epoch || after.answered.0 != after.epoch {
            return Err(format!("an incarnation that is over made {after:?} of {before:?}"));
        }
        if after.answered <= before.answered {
            return Err(format!("an operation that is over made {after:?} of {before:?}"));
        }
        let Some((op, fate)) = after.last(client)? else {
            return Err("an operation without a number".into());
        };
        let Known::Applied(value, stamp) = fate else {
            return match touched {
                true => Err(format!("{op} was ruled out and wrote")),
                false => Ok(()),
            };
        };
        if Some(stamp) != step.stamp {
            return Err(format!("{op} records the stamp {stamp:02x?}, but has {:02x?}", step.stamp));
        }
        let expected = match step.op {
            Op::Add(by) | Op::Manual(by, _) | Op::Clone(by, _) | Op::Cut(by, _) | Op::Keep(by) => {
                (i64::from(*by), sum + i64::from(*by))
            }
            Op::Blind(by) => (i64::from(*by), 0),
            Op::Burst(_) => (added.signum(), 0),
            op => return Err(format!("{op:?} was applied")),
        };
        if (added, value) != expected || value.abs() > BOUND {
            return Err(format!("{op} added {added} and records {value}, should be {expected:?}"));
        }
        let before = self.applied.values().find(|(_, by)| *by == call);
        if let (Some(before), false) = (before, matches!(step.op, Op::Burst(_))) {
            return Err(format!("{op} was applied, and so was {before:?}"));
        }
        self.applied.insert(op, (fate, call));
        Ok(())
    }

    /// Whether an answer fits that changed nothing, at this version.
    fn fits(&self, client: u64, step: &Step<'_, Sessions>) -> Result<bool, String> {
        let (slot, sum) = (self.slot(client)?, self.register(client));
        Ok(match (step.op, step.answer) {
            (Op::Look, Some(Answer::Seen(value, ruled_out))) => {
                let stored = self.rows.0.contains_key(&slots().key(client));
                (*value, *ruled_out) == (sum, stored.then_some(slot.applied.is_none()))
            }
            (
                Op::Add(by) | Op::Manual(by, _) | Op::Clone(by, _) | Op::Cut(by, _) | Op::Keep(by),
                Some(Answer::Refused(why)),
            ) if *why == Refusal::Bound.to_string() => (sum + i64::from(*by)).abs() > BOUND,
            // By another's incarnation, or by one of its own of which it has not heard; or by a number that
            // somebody has asked about before it began.
            (_, Some(Answer::Refused(why))) if *why == Error::Superseded.to_string() => {
                let own = self.opener.get(&client) == Some(&(step.client, true));
                !own || (slot.applied.is_none() && slot.answered.0 == slot.epoch)
            }
            (_, Some(Answer::Refused(why))) => *why == Error::Fenced.to_string() && slot.applied.is_none(),
            _ => true,
        })
    }

    /// What is wrong with what an operation says, now that all is over.
    fn misled(&self, call: &Call, told: &Answer) -> Option<String> {
        let own = || self.applied.iter().filter(|(_, (_, by))| by == call);
        let fits = match told {
            Answer::Applied(value, stamp) => {
                own().map(|(_, (fate, _))| *fate).eq([Known::Applied(*value, *stamp)])
            }
            Answer::Burst(count) => own().count() >= usize::from(*count),
            Answer::Opened(last) => self.found.get(call) == Some(last),
            Answer::Fate(op, fate) | Answer::Unread(op, fate) => {
                own().next().is_none()
                    && match fate {
                        Known::Forgotten => true,
                        Known::NotApplied => !self.applied.contains_key(op),
                        applied => self.applied.get(op).is_some_and(|(fate, _)| fate == applied),
                    }
            }
            Answer::Refused(_) | Answer::Failed(_) | Answer::Seen(..) | Answer::Nothing => {
                own().next().is_none()
            }
        };
        let applied: Vec<_> = own().collect();
        (!fits).then(|| format!("says {told:?}, and has applied {applied:?}"))
    }
}

fn key(mutation: &Mutation) -> &Bytes {
    match mutation {
        Mutation::Set(key, _) | Mutation::Atomic(key, ..) => key,
        Mutation::ClearRange(range) => &range.begin,
    }
}

impl Sessions {
    fn number(&self, client: usize) -> u64 {
        (if self.twins { client / 2 } else { client }) as u64
    }

    /// Ends an operation: one that was refused for a dropped one asks what became of that. While a dropped
    /// operation is known to be unread, no other one may begin.
    async fn read_dropped<D: Database>(
        client: &mut Client<D>,
        op: &Op,
        dropped: Option<OpId>,
        outcome: Outcome<Answer>,
    ) -> Outcome<Answer> {
        if !op.begins() {
            return outcome;
        }
        let unread = client.session.as_mut().and_then(|session| Some((session.unread()?, session)));
        let named = match (&outcome, unread) {
            (Outcome::Answered(Answer::Refused(why)), Some((unread, session))) => {
                (*why == Error::Unread(unread).to_string()).then_some((unread, session))
            }
            _ => None,
        };
        let refused_for = named.as_ref().map(|(unread, _)| *unread);
        always!(
            dropped.is_none() || refused_for == dropped,
            "once: an operation begins although nobody has asked what became of {dropped:?}"
        );
        let Some((unread, session)) = named else { return outcome };
        client.dropped = None;
        Outcome::Answered(match session.resolve(unread).await {
            Ok(fate) => Answer::Unread(unread, known(fate)),
            Err(e) => refused(Refusal::Once(e)),
        })
    }

    async fn perform<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Result<Outcome<Answer>, Answer> {
        let (number, db) = (client.number, client.db.clone());
        Ok(Outcome::Answered(match op {
            Op::Open => {
                client.dropped = None;
                let opened = Session::open(&db, &slots(), number).await;
                let session = client.session.insert(opened.map_err(|e| refused(Refusal::Once(e)))?);
                let last = session.last::<Told>().map_err(|e| refused(Refusal::Once(e)))?;
                Answer::Opened(last.map(|(op, fate)| (op, known(fate))))
            }
            Op::Add(by) => {
                let by = *by;
                let added = client.session().await?.apply(|tx| async move { add(&tx, number, by).await });
                return Ok(ended(added.await));
            }
            Op::Blind(by) => {
                let by = *by;
                let added = client.session().await?;
                return Ok(ended(added.apply(|tx| async move { Ok(blind(&tx, number, by)) }).await));
            }
            Op::Manual(by, limit) => return Ok(manual(client.session().await?, *by, *limit).await),
            Op::Clone(by, after) => {
                let after = Duration::from_micros(100 * u64::from(*after));
                return Ok(disturbed(client.session().await?, number, *by, after).await);
            }
            Op::Cut(by, polls) => {
                return Ok(cut(client.session().await?, *by, *polls).await.unwrap_or_else(|op| {
                    client.dropped = Some(op);
                    Outcome::Unknown(tx::Error::OPERATION_CANCELLED)
                }));
            }
            Op::Keep(by) => match prepared(client.session().await?, *by).await {
                Ok((op, tx, _)) => {
                    (client.kept, client.dropped) = (Some(tx), Some(op));
                    return Ok(Outcome::Unknown(tx::Error::OPERATION_CANCELLED));
                }
                Err(refusal) => refused(refusal),
            },
            Op::Late => {
                if let Some(tx) = client.kept.take() {
                    // Whether it may is the model's to say.
                    let _ = tx.commit().await;
                }
                Answer::Nothing
            }
            Op::Burst(count) => burst(client.session().await?, number, *count).await,
            Op::Settle(by_session) => {
                if *by_session {
                    client.dropped = None;
                }
                let session = client.session().await?;
                // One that was answered as unknown, and one that nobody has heard of.
                let Some(op) = session.unknown().or(session.pending()) else {
                    return Ok(Outcome::Answered(Answer::Nothing));
                };
                let fate = match by_session {
                    true => session.resolve(op).await,
                    false => resolve(&db, session.slots(), op).await,
                };
                fate.map_or_else(|e| refused(Refusal::Once(e)), |fate| Answer::Fate(op, known(fate)))
            }
            Op::Ask(epoch, seq) => {
                let op = OpId { client: number, epoch: u64::from(*epoch), seq: u64::from(*seq) };
                let fate = resolve(&db, &slots(), op).await;
                fate.map_or_else(|e| refused(Refusal::Once(e)), |fate| Answer::Fate(op, known(fate)))
            }
            Op::Settled => match client.session().await?.settled::<Told>() {
                Ok(Some((op, fate))) => Answer::Fate(op, known(fate)),
                Ok(None) => Answer::Nothing,
                Err(e) => refused(Refusal::Once(e)),
            },
            Op::Look => {
                let slot = slots().key(number);
                let (slot, own) = (&slot, &register(number));
                let seen = db.run(|tx, _| async move {
                    let sum = tx.get(own, Serializable).await?;
                    Ok::<_, tx::Error>((sum, tx.get(slot, Serializable).await?))
                });
                match seen.await {
                    Ok((sum, value)) => {
                        let ruled_out = value.map(|value| slots().is_fence(slot, &value));
                        Answer::Seen(self::number(sum), ruled_out)
                    }
                    Err(e) => Answer::Failed(e.error.code()),
                }
            }
            Op::Mark(byte) => {
                let (key, byte) = (&mark(client.run), *byte);
                let marked = converging(&db, |tx| async move {
                    tx.set(key, &[byte]);
                    Ok::<_, tx::Error>(())
                });
                match marked.await {
                    Err(e) if e.maybe_committed => return Ok(Outcome::Unknown(e.error)),
                    Err(e) => Answer::Failed(e.error.code()),
                    Ok(()) => Answer::Nothing,
                }
            }
        }))
    }
}

impl Workload for Sessions {
    type Op = Op;
    type Answer = Answer;
    type Session<D: Database> = Client<D>;
    type Model = Model;

    const NAME: &'static str = "session";
    const ABOUT: &'static str =
        "the exactly-once mechanism by every way into it, two processes as one client";
    const ONE_EFFECT: bool = false;

    /// Slots are followed write by write.
    fn is_effect(&self, _: &[Mutation]) -> bool {
        true
    }

    /// A failure to open, or to begin, says nothing of the last attempt at it; a burst nothing of those of its
    /// operations that it does not count.
    fn may_land_late(&self, answer: &Answer) -> bool {
        matches!(answer, Answer::Failed(_) | Answer::Burst(_))
    }

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "once: a client comes back",
            "once: a retry finds its operation recorded",
            "once: a refusal needs a fence",
            "once: an unknown operation is ruled out",
            "once: an unknown operation turns out applied",
            "once: a session settles what had been applied",
            "once: a session refuses to begin after a dropped operation",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Sessions {
        let most = rng.range(10..50) as usize;
        Sessions {
            clients: rng.range(2..7) as usize,
            operations: most / 2..most,
            twins: rng.chance(0.6),
            burst: if rng.chance(0.15) { 300 } else { 5 },
            timeout: sessions::draw_timeout(rng),
            retries: rng.chance(0.4).then(|| *rng.pick(&[0, 1, 3, 10])),
            planted: bug.and_then(Planted::named),
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        let numbers = 0..self.clients as u64;
        numbers.flat_map(|client| [slots().key(client), register(client)]).collect()
    }

    fn operations(&self, _: usize) -> BoxedStrategy<Vec<Op>> {
        let by = || (-9i8..10).prop_filter("something to add", |by| *by != 0);
        let op = prop_oneof![
            2 => Just(Op::Open),
            12 => by().prop_map(Op::Add),
            8 => by().prop_map(Op::Blind),
            6 => (by(), -1i32..4).prop_map(|(by, limit)| Op::Manual(by, limit)),
            6 => (by(), 0u8..80).prop_map(|(by, after)| Op::Clone(by, after)),
            6 => (by(), 0u8..12).prop_map(|(by, polls)| Op::Cut(by, polls)),
            4 => by().prop_map(Op::Keep),
            4 => Just(Op::Late),
            1 => (self.burst / 2..self.burst + 1).prop_map(Op::Burst),
            4 => any::<bool>().prop_map(Op::Settle),
            1 => (1u8..5, 1u8..12).prop_map(|(epoch, seq)| Op::Ask(epoch, seq)),
            4 => Just(Op::Settled),
            6 => Just(Op::Look),
            2 => any::<u8>().prop_map(Op::Mark),
        ];
        vec(op, self.operations.clone()).boxed()
    }

    async fn open<D: Database>(&self, db: &D, client: usize) -> tx::Result<Client<D>> {
        if let Some(timeout) = self.timeout {
            db.set_option(DatabaseOption::TransactionTimeout(timeout))?;
        }
        if let Some(retries) = self.retries {
            db.set_option(DatabaseOption::TransactionRetryLimit(retries))?;
        }
        Ok(Client {
            db: db.clone(),
            number: self.number(client),
            run: client,
            session: None,
            kept: None,
            dropped: None,
        })
    }

    async fn divert<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Option<Outcome<Answer>> {
        let dropped = client.dropped;
        let outcome = planted::apply(self.planted?, client, op).await?;
        Some(Sessions::read_dropped(client, op, dropped, outcome).await)
    }

    async fn apply<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Outcome<Answer> {
        let dropped = client.dropped;
        let outcome = self.perform(client, op).await.unwrap_or_else(Outcome::Answered);
        Sessions::read_dropped(client, op, dropped, outcome).await
    }

    fn model(&self) -> Model {
        Model::default()
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), String> {
        if let Some(answer) = step.answer {
            model.told.insert((step.client, step.index), answer.clone());
        }
        let client = self.number(step.client);
        if step.committed {
            return model.commit(client, step);
        }
        match model.fits(client, step)? {
            true => Ok(()),
            false => Err(format!(
                "answered {:?} where the slot is {:?} and the register {}",
                step.answer,
                model.slot(client)?,
                model.register(client)
            )),
        }
    }

    async fn audit<D: Database>(&self, tx: &D::Transaction) -> tx::Result<Result<(), String>> {
        for client in 0..self.clients as u64 {
            let slot = tx.get(&slots().key(client), Serializable).await?;
            if let Some(Err(why)) = slot.as_ref().map(Slot::of) {
                return Ok(Err(why));
            }
        }
        Ok(Ok(()))
    }

    async fn check<D: Database>(&self, db: &D, model: &Model) -> tx::Result<Result<(), String>> {
        let misled = model.told.iter().find_map(|(at, told)| model.misled(at, told).map(|why| (at, why)));
        if let Some(((client, index), why)) = misled {
            return Ok(Err(format!("operation {index} of client {client} {why}")));
        }
        let rows = &model.rows;
        let keys = (0..self.clients)
            .flat_map(|client| [slots().key(client as u64), register(client as u64), mark(client)]);
        let keys: Vec<Bytes> = keys.collect();
        let keys = &keys;
        let differs = db.run(|tx, _| async move {
            for key in keys {
                let value = tx.get(key, Serializable).await?;
                if value.as_ref() != rows.0.get(key) {
                    return Ok::<_, tx::Error>(Err(format!("{key:?} holds {value:?}")));
                }
            }
            Ok(Ok(()))
        });
        differs.await.map_err(|e| e.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_read_as_it_is_documented() {
        let mut value = vec![1];
        [7u64, 6, 300].iter().for_each(|word| value.extend_from_slice(&word.to_be_bytes()));
        let ruled_out = [&value[..], &[0]].concat();
        let slot = Slot { epoch: 7, answered: (6, 300), applied: None };
        assert_eq!(Slot::of(&ruled_out.into()), Ok(slot.clone()));
        assert_eq!(slot.last(3), Ok(Some((OpId { client: 3, epoch: 6, seq: 300 }, Known::NotApplied))));
        let applied = [&value[..], &[1], b"x"].concat();
        assert_eq!(Slot::of(&applied.into()).map(|slot| slot.applied), Ok(Some(Bytes::from_static(b"x"))));
        assert!(Slot::of(&Bytes::from_static(b"\x01")).is_err());
        assert!(slots().is_fence(&slots().key(1), &[&value[..], &[0]].concat()));
    }

    #[test]
    fn a_session_says_what_it_has_settled_by_itself() {
        let (first, settled) = shaketable::calm::simulate(|db| async move {
            let mut session = Session::open(&db, &slots(), 0).await.expect("a session");
            assert_eq!(session.settled::<u64>(), Ok(None));
            let op = session.begin().await.expect("an operation");
            let tx = db.create_transaction().expect("a transaction");
            let Ok(Check::<u64>::New(permit)) = once::check(&tx, &slots(), op).await else {
                panic!("{op} was never applied")
            };
            once::record(&tx, permit, 7u64).expect("an answer");
            tx.commit().await.expect("a commit");
            // As if the answer to the commit had been lost.
            let error = tx::Error::COMMIT_UNKNOWN_RESULT;
            let lost = Err(RunError { error, maybe_committed: true, attempts: 1 });
            let unknown = session.conclude::<u64, tx::Error>(op, lost).await;
            assert!(matches!(unknown, once::Outcome::Unknown(_)), "{unknown:?}");
            session.begin().await.expect("the next operation");
            (op, session.settled::<u64>())
        });
        assert_eq!(settled, Ok(Some((first, once::Fate::Applied(7)))));
    }

    #[test]
    fn every_bug_has_its_own_name() {
        for bug in BUGS {
            assert!(Planted::named(bug.name).is_some());
        }
    }
}
