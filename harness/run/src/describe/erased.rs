//! Workloads, operations, answers and models without their types. This is the one boundary between a workload
//! and what plans, runs, judges and shrinks it: everything behind it is compiled once, and not for each
//! workload.

use crate::{
    describe::beside::{self, AnyTree, Beside},
    describe::misfit::Misfit,
    describe::strict::{self, PlanError},
    describe::waiting::Timing,
    describe::weakened::Span,
    describe::workload::{Bug, Outcome, Staleness, Step, Workload},
};
use bytes::Bytes;
use futures::{FutureExt, future::LocalBoxFuture};
use proptest::strategy::{BoxedStrategy, Strategy, ValueTree};
use serde::{Serialize, Serializer};
use serde_json::Value;
use shaketable_sim::{
    proto::{Mutation, Version},
    rt::Nanos,
    seed::{Seed, Stream},
};
use shaketable_tx::{Db, Error, Tx};
use std::{
    any::Any,
    collections::VecDeque,
    fmt::{self, Debug},
    ops::{Deref, Range, RangeInclusive},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

/// An operation or an answer of any workload. Clones share it.
#[derive(Clone)]
pub struct AnyValue(Arc<dyn ErasedValue>);

trait ErasedValue: Any + Debug + erased_serde::Serialize + Send + Sync {}

impl<T: Any + Debug + Serialize + Send + Sync> ErasedValue for T {}

impl AnyValue {
    /// A value without its type.
    pub fn new<T: Any + Debug + Serialize + Send + Sync>(value: T) -> AnyValue {
        AnyValue(Arc::new(value))
    }

    /// The value, if this is its type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        let value: &dyn Any = &*self.0;
        value.downcast_ref()
    }

    /// The value of a type that its workload gave it. A panic is a defect of this crate.
    fn of<T: Any>(&self) -> &T {
        match self.get() {
            Some(value) => value,
            None => panic!("{self:?} is of another workload"),
        }
    }
}

impl Debug for AnyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for AnyValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        erased_serde::serialize(&*self.0, serializer)
    }
}

/// A value tree of a value without its type.
struct Forgotten<T>(AnyTree<T>);

impl<T: Any + Debug + Serialize + Send + Sync> ValueTree for Forgotten<T> {
    type Value = AnyValue;

    fn current(&self) -> AnyValue {
        AnyValue::new(self.0.current())
    }

    fn simplify(&mut self) -> bool {
        self.0.simplify()
    }

    fn complicate(&mut self) -> bool {
        self.0.complicate()
    }
}

/// The sequential model of any workload.
pub struct AnyModel(Box<dyn ErasedModel>);

trait ErasedModel: Any + Send + Sync {
    fn boxed_clone(&self) -> Box<dyn ErasedModel>;
}

impl<M: Any + Clone + Send + Sync> ErasedModel for M {
    fn boxed_clone(&self) -> Box<dyn ErasedModel> {
        Box::new(self.clone())
    }
}

impl Clone for AnyModel {
    fn clone(&self) -> Self {
        AnyModel(self.0.boxed_clone())
    }
}

impl AnyModel {
    /// The model, if this is its type.
    pub fn get<M: Any>(&self) -> Option<&M> {
        let model: &dyn Any = &*self.0;
        model.downcast_ref()
    }

    fn of<M: Any>(&self) -> &M {
        self.get().unwrap_or_else(|| panic!("a model of another workload"))
    }

    fn of_mut<M: Any>(&mut self) -> &mut M {
        let model: &mut dyn Any = &mut *self.0;
        model.downcast_mut().unwrap_or_else(|| panic!("a model of another workload"))
    }
}

/// The session of a client of any workload.
pub(crate) struct AnySession(Box<dyn Any>);

impl AnySession {
    fn of<S: Any>(&mut self) -> &mut S {
        self.0.downcast_mut().unwrap_or_else(|| panic!("a session of another workload"))
    }
}

/// A [`Step`] of any workload.
pub(crate) struct AnyStep<'a> {
    pub(crate) client: usize,
    pub(crate) index: usize,
    pub(crate) op: &'a AnyValue,
    pub(crate) answer: Option<&'a AnyValue>,
    pub(crate) committed: bool,
    pub(crate) stamp: Option<[u8; 10]>,
    pub(crate) read_version: Option<Version>,
    pub(crate) mutations: &'a [Mutation],
    pub(crate) called: Nanos,
    pub(crate) returned: Nanos,
    pub(crate) timing: &'a Timing,
}

impl<'a> AnyStep<'a> {
    fn of<W: Workload>(&self) -> Step<'a, W> {
        Step {
            client: self.client,
            index: self.index,
            op: self.op.of(),
            answer: self.answer.map(AnyValue::of),
            committed: self.committed,
            stamp: self.stamp,
            read_version: self.read_version,
            mutations: self.mutations,
            called: self.called,
            returned: self.returned,
            timing: self.timing,
        }
    }
}

/// A workload of any type, with its drawn configuration. Clones share it.
#[derive(Clone)]
pub struct AnyWorkload(Arc<dyn ErasedWorkload>);

impl AnyWorkload {
    /// A workload without its type.
    pub fn new<W: Workload>(configuration: W) -> AnyWorkload {
        AnyWorkload(Arc::new(configuration))
    }

    /// The workload of the configuration in a repro file.
    pub(crate) fn read<W: Workload>(configuration: &Value) -> Result<AnyWorkload, PlanError> {
        strict::strictly::<W>("configuration", configuration).map(AnyWorkload::new)
    }

    /// The configuration, if the workload is of this type.
    pub fn get<W: Workload>(&self) -> Option<&W> {
        let workload: &dyn Any = &*self.0;
        workload.downcast_ref()
    }
}

impl Deref for AnyWorkload {
    type Target = dyn ErasedWorkload;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Debug for AnyWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for AnyWorkload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        erased_serde::serialize(&*self.0, serializer)
    }
}

/// What [`Workload`] has, without types.
#[doc(hidden)]
#[expect(private_interfaces, reason = "the trait is called by this crate only")]
pub trait ErasedWorkload: Any + Debug + erased_serde::Serialize + Send + Sync {
    fn name(&self) -> &'static str;
    fn bugs(&self) -> &'static [Bug];
    fn rare_kinds(&self) -> &'static [&'static str];
    /// Another configuration of the same workload.
    fn redrawn(&self, rng: &mut Stream, bug: Option<&str>) -> AnyWorkload;
    /// The configuration of this JSON; `None` if it is not complete, or has a field that no configuration
    /// has.
    fn reconfigured(&self, value: &Value) -> Option<AnyWorkload>;
    /// The operation of this JSON, which is at `path` of a repro file.
    fn operation(&self, path: &str, value: &Value) -> Result<AnyValue, PlanError>;
    fn clients(&self) -> usize;
    fn keys(&self) -> Vec<Bytes>;
    fn subspaces(&self) -> Vec<Span>;
    fn operations(&self, client: usize) -> BoxedStrategy<Vec<AnyValue>>;
    /// Draws operations beside the model, and gives their value trees to `kept`: `filling` of the first
    /// client that fill the store, and then as many of each client as `count` says. `None` if the workload
    /// does not.
    fn drawn_beside(
        &self,
        count: &dyn Fn(usize) -> usize,
        filling: usize,
        again: f64,
        seed: Seed,
        kept: &mut dyn FnMut(usize, AnyTree<AnyValue>),
    ) -> Option<()>;
    fn length(&self) -> Option<Range<usize>>;
    fn effects(&self, op: &AnyValue) -> RangeInclusive<usize>;
    fn may_overwrite(&self, op: &AnyValue) -> bool;
    fn time_limit(&self, op: &AnyValue) -> Option<Duration>;
    fn is_effect(&self, mutations: &[Mutation]) -> bool;
    fn is_conflict_free(&self, op: &AnyValue) -> bool;
    fn kinds(&self, op: &AnyValue) -> Vec<&'static str>;
    fn is_refusal(&self, answer: &AnyValue) -> bool;
    fn is_given_up(&self, op: &AnyValue) -> bool;
    fn staleness(&self, op: &AnyValue) -> Option<Staleness>;
    fn may_land_late(&self, answer: &AnyValue) -> bool;
    fn describe_key(&self, key: &[u8]) -> Option<String>;
    fn describe_value(&self, key: &[u8], value: &[u8]) -> Option<String>;
    fn setup<'a>(&'a self, db: &'a Db) -> LocalBoxFuture<'a, Result<(), Error>>;
    fn open<'a>(&'a self, db: &'a Db, client: usize) -> LocalBoxFuture<'a, Result<AnySession, Error>>;
    fn has_tasks(&self) -> bool;
    fn open_beside<'a>(
        &'a self,
        db: &'a Db,
        client: usize,
        other: &'a mut AnySession,
    ) -> LocalBoxFuture<'a, Result<AnySession, Error>>;
    /// Prepares a client for its next operation: it resolves a dropped one.
    fn prepare<'a>(&'a self, session: &'a mut AnySession) -> LocalBoxFuture<'a, ()>;
    /// Does one operation: in the planted bug's variant, if there is one.
    fn perform<'a>(
        &'a self,
        session: &'a mut AnySession,
        op: &'a AnyValue,
    ) -> LocalBoxFuture<'a, Outcome<AnyValue>>;
    fn resolve<'a>(
        &'a self,
        session: &'a mut AnySession,
        op: &'a AnyValue,
        error: Error,
    ) -> LocalBoxFuture<'a, Outcome<AnyValue>>;
    fn model(&self) -> AnyModel;
    fn step(&self, model: &mut AnyModel, step: &AnyStep<'_>) -> Result<(), Misfit>;
    /// Audits, and compares what is stored with the model if there is one.
    fn audit<'a>(
        &'a self,
        tx: &'a Tx,
        model: Option<&'a AnyModel>,
    ) -> LocalBoxFuture<'a, Result<Result<(), Misfit>, Error>>;
    fn check<'a>(
        &'a self,
        db: &'a Db,
        model: &'a AnyModel,
    ) -> LocalBoxFuture<'a, Result<Result<(), Misfit>, Error>>;
}

/// What a client observes of an operation, without types.
pub(crate) fn forgotten<A: Any + Debug + Serialize + Send + Sync>(outcome: Outcome<A>) -> Outcome<AnyValue> {
    match outcome {
        Outcome::Answered(answer) => Outcome::Answered(AnyValue::new(answer)),
        Outcome::Failed(error) => Outcome::Failed(error),
        Outcome::Unknown(error) => Outcome::Unknown(error),
        Outcome::Violated(why) => Outcome::Violated(why),
    }
}

#[expect(private_interfaces, reason = "the trait is called by this crate only")]
impl<W: Workload> ErasedWorkload for W {
    fn name(&self) -> &'static str {
        W::NAME
    }
    fn bugs(&self) -> &'static [Bug] {
        W::bugs()
    }
    fn rare_kinds(&self) -> &'static [&'static str] {
        W::rare_kinds()
    }
    fn redrawn(&self, rng: &mut Stream, bug: Option<&str>) -> AnyWorkload {
        AnyWorkload::new(W::draw(rng, bug))
    }
    fn reconfigured(&self, value: &Value) -> Option<AnyWorkload> {
        AnyWorkload::read::<W>(value).ok()
    }
    fn operation(&self, path: &str, value: &Value) -> Result<AnyValue, PlanError> {
        strict::strictly::<W::Op>(path, value).map(AnyValue::new)
    }
    fn clients(&self) -> usize {
        Workload::clients(self)
    }
    fn keys(&self) -> Vec<Bytes> {
        Workload::keys(self)
    }
    fn subspaces(&self) -> Vec<Span> {
        Workload::subspaces(self)
    }
    fn operations(&self, client: usize) -> BoxedStrategy<Vec<AnyValue>> {
        let forget = |list: Vec<W::Op>| list.into_iter().map(AnyValue::new).collect();
        Workload::operations(self, client).prop_map(forget as fn(_) -> _).boxed()
    }
    fn length(&self) -> Option<Range<usize>> {
        Workload::length(&mut self.clone()).cloned()
    }
    fn drawn_beside(
        &self,
        count: &dyn Fn(usize) -> usize,
        filling: usize,
        again: f64,
        seed: Seed,
        kept: &mut dyn FnMut(usize, AnyTree<AnyValue>),
    ) -> Option<()> {
        let besides: Vec<_> = (0..Workload::clients(self))
            .map(|client| Workload::operation_beside(self, client))
            .collect::<Option<_>>()?;
        let counts: Vec<usize> = (0..besides.len()).map(count).collect();
        // The model after each of the last operations, the newest first.
        let mut models = VecDeque::from([Arc::new(Workload::model(self))]);
        let mut operations: Vec<Vec<W::Op>> = vec![Vec::new(); counts.len()];
        let refusals = Rc::default();
        let mut order = 0;
        let mut draw = |models: &mut VecDeque<Arc<W::Model>>, client: usize, filling, name: &str| {
            let late = |late: usize| models[(late * counts.len()).min(models.len() - 1)].clone();
            let known = [late(0), late(beside::LATE[0]), late(beside::LATE[1])];
            let earlier = &operations[client];
            let beside = Beside { models: &known, earlier, order, again, filling, refusals: &refusals };
            let tree = beside::tree(seed, name, &besides[client](&beside))?;
            let op = tree.current();
            let after = self.foresee(&models[0], &op, order).map_or_else(|| models[0].clone(), Arc::new);
            models.push_front(after);
            order += 1;
            operations[client].push(op);
            kept(client, Box::new(Forgotten(tree)));
            Some(())
        };
        for index in 0..filling {
            draw(&mut models, 0, true, &format!("filling-{index}"))?;
            // Nobody is late: the others have not begun.
            models.truncate(1);
        }
        let longest = counts.iter().copied().max().unwrap_or(0);
        for index in 0..longest {
            for client in (0..counts.len()).filter(|client| index < counts[*client]) {
                draw(&mut models, client, false, &format!("operation-{client}-{index}"))?;
                models.truncate(1 + beside::LATE[1] * counts.len());
            }
        }
        Some(())
    }
    fn effects(&self, op: &AnyValue) -> RangeInclusive<usize> {
        Workload::effects(self, op.of())
    }
    fn may_overwrite(&self, op: &AnyValue) -> bool {
        Workload::may_overwrite(self, op.of())
    }
    fn time_limit(&self, op: &AnyValue) -> Option<Duration> {
        Workload::time_limit(self, op.of())
    }
    fn is_effect(&self, mutations: &[Mutation]) -> bool {
        Workload::is_effect(self, mutations)
    }
    fn is_conflict_free(&self, op: &AnyValue) -> bool {
        Workload::is_conflict_free(self, op.of())
    }
    fn kinds(&self, op: &AnyValue) -> Vec<&'static str> {
        Workload::kinds(self, op.of())
    }
    fn is_refusal(&self, answer: &AnyValue) -> bool {
        Workload::is_refusal(self, answer.of())
    }
    fn is_given_up(&self, op: &AnyValue) -> bool {
        Workload::is_given_up(self, op.of())
    }
    fn staleness(&self, op: &AnyValue) -> Option<Staleness> {
        Workload::staleness(self, op.of())
    }
    fn may_land_late(&self, answer: &AnyValue) -> bool {
        Workload::may_land_late(self, answer.of())
    }
    fn describe_key(&self, key: &[u8]) -> Option<String> {
        Workload::describe_key(self, key)
    }
    fn describe_value(&self, key: &[u8], value: &[u8]) -> Option<String> {
        Workload::describe_value(self, key, value)
    }
    fn setup<'a>(&'a self, db: &'a Db) -> LocalBoxFuture<'a, Result<(), Error>> {
        Workload::setup(self, db).boxed_local()
    }
    fn open<'a>(&'a self, db: &'a Db, client: usize) -> LocalBoxFuture<'a, Result<AnySession, Error>> {
        let opened = async move {
            let session: W::Session = Workload::open(self, db, client).await?;
            Ok(AnySession(Box::new(session)))
        };
        opened.boxed_local()
    }
    fn has_tasks(&self) -> bool {
        W::TASKS
    }
    fn open_beside<'a>(
        &'a self,
        db: &'a Db,
        client: usize,
        other: &'a mut AnySession,
    ) -> LocalBoxFuture<'a, Result<AnySession, Error>> {
        let opened = async move {
            let other = other.of::<W::Session>();
            let session: W::Session = Workload::open_beside(self, db, client, other).await?;
            Ok(AnySession(Box::new(session)))
        };
        opened.boxed_local()
    }
    fn prepare<'a>(&'a self, session: &'a mut AnySession) -> LocalBoxFuture<'a, ()> {
        self.resolve_dropped(session.of::<W::Session>()).boxed_local()
    }
    fn perform<'a>(
        &'a self,
        session: &'a mut AnySession,
        op: &'a AnyValue,
    ) -> LocalBoxFuture<'a, Outcome<AnyValue>> {
        let (session, op) = (session.of::<W::Session>(), op.of::<W::Op>());
        let performed = async move {
            forgotten(match self.apply_planted(session, op).await {
                Some(outcome) => outcome,
                None => self.apply(session, op).await,
            })
        };
        performed.boxed_local()
    }
    fn resolve<'a>(
        &'a self,
        session: &'a mut AnySession,
        op: &'a AnyValue,
        error: Error,
    ) -> LocalBoxFuture<'a, Outcome<AnyValue>> {
        let session = session.of::<W::Session>();
        Workload::resolve(self, session, op.of(), error).map(forgotten).boxed_local()
    }
    fn model(&self) -> AnyModel {
        AnyModel(Box::new(Workload::model(self)))
    }
    fn step(&self, model: &mut AnyModel, step: &AnyStep<'_>) -> Result<(), Misfit> {
        Workload::step(self, model.of_mut(), &step.of())
    }
    fn audit<'a>(
        &'a self,
        tx: &'a Tx,
        model: Option<&'a AnyModel>,
    ) -> LocalBoxFuture<'a, Result<Result<(), Misfit>, Error>> {
        match model {
            Some(model) => Workload::audit_against(self, tx, model.of()).boxed_local(),
            None => Workload::audit(self, tx).boxed_local(),
        }
    }
    fn check<'a>(
        &'a self,
        db: &'a Db,
        model: &'a AnyModel,
    ) -> LocalBoxFuture<'a, Result<Result<(), Misfit>, Error>> {
        Workload::check(self, db, model.of()).boxed_local()
    }
}
