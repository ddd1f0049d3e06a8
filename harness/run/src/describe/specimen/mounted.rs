//! The workload of a specimen.

use super::{
    Answer, At, Specimen,
    foreseen::{self, Calls, Foreseen},
    perform::{Reads, apply_all, are_too_large, concluded, ran_all, without_session},
    planted::{BugState, Planted, UNRECORDED},
};
use crate::{
    describe::beside::OneBeside,
    describe::misfit::Misfit,
    describe::sessions::{self, slots},
    describe::weakened::Span,
    describe::workload::{Bug, Outcome, Step, Workload},
};
use bytes::Bytes;
use proptest::{
    collection::vec,
    strategy::{BoxedStrategy, Strategy},
};
use serde::{Deserialize, Serialize};
use shaketable_sim::{proto::Mutation, seed::Stream};
use shaketable_tx::{self as tx, Database, Db, Env, Isolation, Tx, once::Session};
use std::{fmt::Debug, ops::Range, sync::Arc};

/// The maximum number of calls in a transaction of some runs.
const MANY: Range<u64> = 7..13;

/// A specimen as a workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Mounted<S: Specimen> {
    pub(super) specimen: S,
    clients: usize,
    transactions: Range<usize>,
    together: Range<usize>,
    /// The timeout that clients set on their database, in milliseconds.
    timeout: Option<i32>,
    /// Whether clients use plain transactions instead of a session: an unknown commit result is then not
    /// resolved.
    without_session: bool,
    planted: Option<String>,
}

/// The state of a client of a specimen.
pub struct Client<S: Specimen> {
    pub(super) session: Session<Db>,
    pub(super) bug_state: BugState<S>,
}

impl<S: Specimen> Mounted<S> {
    /// Whether each call is checked for its turn. What a bug does is found by other means.
    pub(super) fn takes_turns(&self) -> bool {
        self.planted.is_none() && self.specimen.takes_turns()
    }

    /// Does one call, with the planted bug if it is one of a table of operations.
    pub(super) async fn perform_call(
        &self,
        tx: &Tx,
        env: &Env,
        op: &S::Op,
        isolation: Isolation,
    ) -> Result<S::Answer, S::Error> {
        if let Some(bug) = &self.planted
            && let Some(done) = self.specimen.perform_planted(bug, (tx, env), op, isolation).await
        {
            return done;
        }
        self.specimen.perform(tx, env, op, isolation).await
    }

    /// Does a transaction on the model, and returns the expected answer. A refusal leaves the model with what
    /// was done until then.
    fn expect(&self, model: &mut S::Model, ops: &[S::Op], at: &At) -> Answer<S::Answer> {
        let mut answers = Vec::with_capacity(ops.len());
        for op in ops {
            match self.specimen.replay(model, op, at) {
                Ok(answer) => answers.push(answer),
                Err(refusal) => return Answer::Refused(refusal.to_string()),
            }
        }
        Answer::Done(answers)
    }
}

/// The outcome of a transaction with so many calls: a violation if FoundationDB has refused what the layer
/// itself should have. `checks` is whether the layer [promises](Specimen::CHECKS_LIMITS) that.
fn within_limits<A>(checks: bool, calls: usize, outcome: Outcome<A>) -> Outcome<A> {
    let Outcome::Failed(error) = outcome else { return outcome };
    let is_limit = match error {
        tx::Error::KEY_TOO_LARGE
        | tx::Error::VALUE_TOO_LARGE
        | tx::Error::KEY_OUTSIDE_LEGAL_RANGE
        | tx::Error::INVERTED_RANGE => true,
        // Several calls together may be too large where each alone is not.
        tx::Error::TRANSACTION_TOO_LARGE => calls == 1,
        _ => false,
    };
    match checks && is_limit {
        true => Outcome::Violated(format!("failed with {error}, which the layer did not refuse itself")),
        false => outcome,
    }
}

impl<S: Specimen> Workload for Mounted<S> {
    type Op = Vec<S::Op>;
    type Answer = Answer<S::Answer>;
    type Session = Client<S>;
    type Model = S::Model;

    const NAME: &'static str = S::NAME;
    const ABOUT: &'static str = S::ABOUT;

    fn bugs() -> &'static [Bug] {
        S::bugs()
    }

    fn points() -> &'static [&'static str] {
        S::points()
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Self {
        let most = rng.range(S::TRANSACTIONS) as usize;
        // Some transactions have more calls than any constant of a layer expects.
        let together = match S::TOGETHER.end > 2 && rng.chance(0.15) {
            true => rng.range(MANY),
            false => rng.range(S::TOGETHER),
        } as usize;
        Mounted {
            clients: rng.range(S::CLIENTS) as usize,
            transactions: most / 2..most + 1,
            together: 1..together + 1,
            timeout: sessions::draw_timeout(rng),
            without_session: rng.chance(0.1) && bug != Some(UNRECORDED),
            planted: bug.filter(|bug| Planted::named(bug).is_some() || S::plants(bug)).map(str::to_owned),
            specimen: S::draw(rng, bug),
        }
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn keys(&self) -> Vec<Bytes> {
        let slots = (0..self.clients as u64).map(|client| slots().key(client));
        slots.chain(self.specimen.keys()).collect()
    }

    fn subspaces(&self) -> Vec<Span> {
        self.specimen.subspaces()
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Vec<S::Op>>> {
        let one = vec(self.specimen.operation(client), self.together.clone());
        let drawn = vec(one, self.transactions.clone());
        let numbered = move |mut list: Vec<Vec<S::Op>>| {
            for (number, op) in list.iter_mut().flatten().enumerate() {
                S::number(op, client, number);
            }
            list
        };
        drawn.prop_map(numbered).boxed()
    }

    fn operation_beside(&self, client: usize) -> Option<OneBeside<'_, S::Model, Vec<S::Op>>> {
        let calls = Arc::new(Calls {
            specimen: self.specimen.clone(),
            call: self.specimen.operation(client),
            count: self.together.clone(),
            many: match S::TOGETHER.end > 2 {
                true => MANY.start as usize..MANY.end as usize,
                false => 1..2,
            },
            client,
        });
        Some(Box::new(move |beside| {
            let foreseen = Foreseen {
                calls: calls.clone(),
                models: beside.models.to_vec(),
                order: beside.order,
                again: beside.again,
                refusals: beside.refusals.clone(),
                filling: beside.filling,
                first: beside.earlier.iter().map(Vec::len).sum(),
            };
            foreseen.boxed()
        }))
    }

    fn foresee(&self, model: &S::Model, ops: &Vec<S::Op>, order: u64) -> Option<S::Model> {
        if ops.iter().all(S::is_read_only) {
            return None;
        }
        let mut after = model.clone();
        let Answer::Done(mut expected) = self.expect(&mut after, ops, &foreseen::place(order)) else {
            return None;
        };
        self.specimen.choose(&mut after, &mut expected, None, &[]);
        Some(after)
    }

    fn length(&mut self) -> Option<&mut Range<usize>> {
        Some(&mut self.transactions)
    }

    fn is_conflict_free(&self, ops: &Vec<S::Op>) -> bool {
        ops.iter().all(|op| self.specimen.is_conflict_free(op))
    }

    fn rare_kinds() -> &'static [&'static str] {
        S::rare_kinds()
    }

    fn describe_key(&self, key: &[u8]) -> Option<String> {
        self.specimen.describe_key(key)
    }

    fn describe_value(&self, key: &[u8], value: &[u8]) -> Option<String> {
        self.specimen.describe_value(key, value)
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        self.specimen.setup(db).await
    }

    async fn open(&self, db: &Db, client: usize) -> tx::Result<Client<S>> {
        let session = sessions::open(db, client, self.timeout).await?;
        Ok(Client { session, bug_state: BugState::default() })
    }

    async fn resolve_dropped(&self, client: &mut Client<S>) {
        sessions::resolve_dropped(&mut client.session, self.timeout).await;
    }

    async fn apply_planted(&self, client: &mut Client<S>, ops: &Vec<S::Op>) -> Option<Outcome<Self::Answer>> {
        let bug = self.planted.as_deref();
        if let Some(bug) = bug
            && let Some(outcome) = self.specimen.apply_bug(bug, &mut client.session, ops).await
        {
            return Some(outcome);
        }
        match self.specimen.apply(bug, &mut client.session, ops).await {
            Some(outcome) => Some(within_limits(S::CHECKS_LIMITS, ops.len(), outcome)),
            None => self.perform_planted(bug?, client, ops).await,
        }
    }

    async fn apply(&self, Client { session, .. }: &mut Client<S>, ops: &Vec<S::Op>) -> Outcome<Self::Answer> {
        if ops.iter().all(S::is_read_only) {
            let read = ran_all(self, session.database(), ops, Reads::Fresh).await;
            return within_limits(S::CHECKS_LIMITS, ops.len(), read);
        }
        if self.without_session {
            return within_limits(
                S::CHECKS_LIMITS,
                ops.len(),
                without_session(self, session.database(), ops).await,
            );
        }
        within_limits(S::CHECKS_LIMITS, ops.len(), concluded(apply_all(self, session, ops).await))
    }

    async fn resolve(
        &self,
        client: &mut Client<S>,
        ops: &Vec<S::Op>,
        error: tx::Error,
    ) -> Outcome<Self::Answer> {
        sessions::resolve_unknown(&mut client.session, self.timeout, error, async |session, pending| {
            let fate = self.specimen.resolve(self.planted.as_deref(), session, ops, pending).await?;
            Ok(fate.map(|answers| Outcome::Answered(Answer::Done(answers))))
        })
        .await
    }

    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        self.specimen.is_effect(mutations)
    }

    fn model(&self) -> S::Model {
        self.specimen.model()
    }

    fn step(&self, model: &mut S::Model, step: &Step<'_, Self>) -> Result<(), Misfit> {
        let refusal = match step.answer {
            Some(Answer::Refused(message)) => Some(&message[..]),
            _ => None,
        };
        let at =
            At { stamp: step.stamp, read_version: step.read_version, called: step.known_at_call(), refusal };
        if !step.committed && step.answer.is_none() {
            return Ok(());
        }
        let read_only = step.op.iter().all(S::is_read_only);
        let answers = match step.answer {
            Some(Answer::Done(answers)) => Some(&answers[..]),
            _ => None,
        };
        // After what is committed, or only read, and does not fit, nobody asks for the model.
        let keeps = !(step.committed || read_only && answers.is_some());
        let before = keeps.then(|| model.clone());
        let mut expected = self.expect(model, step.op, &at);
        if let Answer::Done(expected) = &mut expected {
            self.specimen.choose(model, expected, answers, step.mutations);
        }
        if let (Some(Answer::Refused(why)), Answer::Done(answers)) = (step.answer, &expected)
            && are_too_large(answers, why)
        {
            expected = Answer::Refused(why.clone());
        }
        if let Some(answer) = step.answer
            && *answer != expected
        {
            let (found, expected) = (format!("{answer:?}"), format!("{expected:?}"));
            let message = format!("answered {found} where the model answers {expected}");
            return Err(Misfit::new(message, expected, found));
        }
        if let ([op], Answer::Done(answers), Some(_)) = (&step.op[..], &expected, step.answer)
            && let Some(wait) = self.specimen.wait(model, op, &answers[0], &at)
        {
            step.waited(wait)?;
        }
        if let ([op], Some(_)) = (&step.op[..], step.answer)
            && let Some(limit) = self.specimen.timeout(op)
        {
            step.returned_within(limit)?;
        }
        match (&expected, step.committed, before) {
            // A call that changes nothing need not commit anything.
            (Answer::Done(_), false, Some(before)) if !read_only && before != *model => {
                Err("answered, but nothing was committed".into())
            }
            (Answer::Done(_), true, _) if read_only => Err("committed a write".into()),
            (Answer::Refused(why), true, _) => {
                Err(format!("committed where the model refuses: {why}").into())
            }
            (Answer::Refused(_), false, Some(before)) => {
                *model = before;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn audit(&self, tx: &Tx) -> tx::Result<Result<(), Misfit>> {
        Ok(self.specimen.read_model(tx).await?.map(drop))
    }

    async fn audit_against(&self, tx: &Tx, model: &S::Model) -> tx::Result<Result<(), Misfit>> {
        Ok(is_stored(self.specimen.read_model(tx).await?, model))
    }

    async fn check(&self, db: &Db, model: &S::Model) -> tx::Result<Result<(), Misfit>> {
        let specimen = &self.specimen;
        let stored =
            db.run(|tx, _| async move { specimen.read_model(&tx).await }).await.map_err(|e| e.error)?;
        Ok(is_stored(stored, model))
    }
}

/// Compares what is stored with the model.
fn is_stored<M: Debug + PartialEq>(stored: Result<M, Misfit>, model: &M) -> Result<(), Misfit> {
    let stored = stored?;
    if stored == *model {
        return Ok(());
    }
    let (found, expected) = (format!("{stored:?}"), format!("{model:?}"));
    let message = format!("the database holds {found}, should hold {expected}");
    Err(Misfit::new(message, expected, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_foundationdb_refuses_in_the_place_of_the_layer_is_a_violation() {
        let is_violation = |checks, calls, error| {
            matches!(within_limits::<()>(checks, calls, Outcome::Failed(error)), Outcome::Violated(_))
        };
        for error in [tx::Error::KEY_TOO_LARGE, tx::Error::VALUE_TOO_LARGE, tx::Error::INVERTED_RANGE] {
            assert!(is_violation(true, 3, error));
            assert!(!is_violation(false, 3, error));
        }
        let large = tx::Error::TRANSACTION_TOO_LARGE;
        assert!(is_violation(true, 1, large) && !is_violation(true, 2, large));
        assert!(!is_violation(true, 1, tx::Error::TRANSACTION_TIMED_OUT));
    }
}
