//! `signup`: the class scheduling tutorial, with its indecisive students.
//!
//! Students sign up for classes, drop them, switch between them and list what is available, while an
//! administrator adds classes and initialises the catalogue again. Some seeds run the tutorial's
//! 1,620 classes of 100 seats; most a handful of classes with a few seats, where the races are: for the
//! last seat, for a student's sixth class (two sessions of one student), and for the seat that a
//! switch gives up. Every answer is what the sequential model says in commit order; at every version
//! seats and sign-ups add up, and nobody takes more than five classes.

use crate::{
    models::classes::Classes,
    sabotage::scheduling as sabotage,
    sessions,
    workload::{Bug, Outcome, Step, Workload},
};
use bytes::Bytes;
use foundationdb_tuple::Subspace;
use futures::future::try_join_all;
use proptest::{
    collection::vec,
    strategy::{BoxedStrategy, Strategy},
};
use serde::{Deserialize, Serialize};
use shaketable_layers::{
    once::{self, Session},
    scheduling::{Change, Error, MAX_CLASSES, Refusal, Scheduling, catalogue, keys::unpack_seats},
    tx::{self, Database, Isolation::Serializable, RetryError, RunError, Transaction},
};
use shaketable_sim::seed::Stream;
use std::{collections::BTreeMap, ops::Range, sync::Arc};

flaws! {
    AddClassAsPrinted = "add-class-as-printed", "add_class sets the seats of a class that students have signed up for", "the tutorial's add_class";
    InitAsPrinted = "init-as-printed", "init clears everything before it adds the classes", "the tutorial's init";
    NoOpRecord = "no-op-record", "signup, drop and switch are retried without an operation record", "the tutorial's \"all of the transactions are idempotent\"";
    SnapshotReads = "snapshot-reads", "sign-ups and seats are read at snapshot", "foundationdb-rs examples/class-scheduling.rs";
    SwitchAsPrinted = "switch-as-printed", "switch does not ask whether the old class is held", "the tutorial's switch";
    SwitchKeepsHalf = "switch-keeps-half", "switch swallows the refusal of the new class after dropping the old one", "an error swallowed in a composed call";
    SixthAtSnapshot = "sixth-class-at-snapshot", "a student's classes are counted at snapshot", "foundationdb-rs examples/class-scheduling.rs, write skew";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole", "a range that is longer than a batch";
    NestedDatabase = "nested-database", "switch drops the old class in a transaction of its own", "addClass of the older guide of the data modeling guide";
    OwnWritesUnseen = "own-writes-unseen", "switch runs with read-your-writes disabled", "a transaction that cannot see itself";
    TimeoutIsRefusal = "timeout-is-refusal", "an unknown outcome is reported as a failure", "a timeout reported as a failure";
    RetryAsNew = "retry-as-new", "an operation whose outcome is unknown is done again as a new one", "a timeout taken for a failure";
    SeatsKept = "seats-kept", "the seats read in the first attempt are kept for the retries", "state that survives a retry";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Signup {
    /// Whether the tutorial's 1,620 classes are there, or only those that operations name.
    whole_catalogue: bool,
    /// How many classes that are there from the beginning do operations name.
    popular: u16,
    /// How many further classes may be added.
    planned: u16,
    seats: u32,
    students: u8,
    clients: u8,
    operations: Range<usize>,
    /// The timeout that clients set on their database, milliseconds.
    timeout: Option<i32>,
    flaw: Option<Flaw>,
}

/// One operation. Classes are numbers: the popular ones first, then the planned ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Offers a class.
    AddClass(u16),
    /// Makes sure that the catalogue is there.
    Init,
    /// Signs a student up for a class.
    Signup(u8, u16),
    /// Takes a student out of a class.
    Drop(u8, u16),
    /// Moves a student from a class to another.
    Switch(u8, u16, u16),
    /// Lists the first so many classes that have seats; 0 lists all.
    Available(u16),
    /// Lists a student's classes.
    ClassesOf(u8),
}

/// What an operation answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Whether a class was added, a student signed up, a class dropped.
    Change(Change),
    /// So many classes were added.
    Added(u64),
    /// Switched.
    Switched,
    /// Refused.
    Refused(Refusal),
    /// A list of classes.
    Classes(Vec<String>),
}

/// What a client holds.
pub struct Client<D: Database> {
    pub(crate) session: Session<D>,
    pub(crate) scheduling: Scheduling,
    pub(crate) names: Arc<[String]>,
}

fn scheduling() -> Scheduling {
    Scheduling::new(&Subspace::from("scheduling"))
}

pub(crate) fn student(n: u8) -> String {
    format!("s{n}")
}

impl Op {
    fn mutates(&self) -> bool {
        !matches!(self, Op::Available(_) | Op::ClassesOf(_))
    }
}

impl Signup {
    /// The seats of every class.
    pub(crate) fn seats(&self) -> u32 {
        self.seats
    }

    /// The classes that operations name.
    fn names(&self) -> Vec<String> {
        let apart =
            if self.whole_catalogue { catalogue::CLASSES / usize::from(self.popular.max(1)) } else { 1 };
        let popular = (0..usize::from(self.popular)).map(|n| catalogue::class_name(n * apart));
        popular.chain((0..self.planned).map(|n| format!("20:00 evening class {n}"))).collect()
    }

    /// The classes that are there from the beginning.
    pub(crate) fn initial(&self) -> Vec<String> {
        if self.whole_catalogue {
            catalogue::class_names().collect()
        } else {
            self.names().into_iter().take(self.popular.into()).collect()
        }
    }

    /// A list of moods as an indecisive student's operations. Like the tutorial's students they believe
    /// that what they asked for has happened; now and then one asks for another student's account.
    fn decide(&self, client: usize, moods: Vec<Mood>) -> Vec<Op> {
        let own = client as u8 % self.students;
        let mut taken: BTreeMap<u8, Vec<u16>> = BTreeMap::new();
        let mut operations = Vec::with_capacity(moods.len());
        for Mood { mood, class, which, account } in moods {
            let class = class % (self.popular + self.planned);
            let student = if account < 40 { account % self.students } else { own };
            let mine = taken.entry(student).or_default();
            let full = mine.len() >= MAX_CLASSES && mood % 8 != 0;
            let which = if mine.is_empty() { None } else { Some(usize::from(which) % mine.len()) };
            operations.push(match (mood, which) {
                (0..8, _) => Op::AddClass(
                    if mood < 4 { self.popular + class % self.planned.max(1) } else { class }
                        % (self.popular + self.planned),
                ),
                (8..12, _) => Op::Init,
                (12..20, _) => Op::Available(if self.whole_catalogue { class % 8 } else { class % 4 }),
                (20..28, _) => Op::ClassesOf(student),
                // Now and then a drop or a switch of a class that is not held.
                (28..34, _) => Op::Drop(student, class),
                (34..40, _) => Op::Switch(student, class, u16::from(account) % self.popular),
                (40..140, Some(held)) if mood < 90 || full => {
                    let old = std::mem::replace(&mut mine[held], class);
                    Op::Switch(student, old, class)
                }
                (40..140, Some(held)) => Op::Drop(student, mine.swap_remove(held)),
                _ if full => Op::Drop(student, mine.swap_remove(which.unwrap_or(0))),
                _ => {
                    mine.push(class);
                    Op::Signup(student, class)
                }
            });
        }
        operations
    }
}

/// What an operation is decided from.
#[derive(Clone, Copy, Debug)]
struct Mood {
    mood: u8,
    class: u16,
    which: u8,
    account: u8,
}

/// The model, and the names that operations mean.
#[derive(Clone)]
pub struct Model {
    classes: Classes,
    initial: Arc<[String]>,
    names: Arc<[String]>,
}

impl Workload for Signup {
    type Op = Op;
    type Answer = Answer;
    type Session<D: Database> = Client<D>;
    type Model = Model;

    const NAME: &'static str = "signup";
    const ABOUT: &'static str = "class scheduling: seats and sign-ups always add up, five classes a student";

    fn bugs() -> &'static [Bug] {
        BUGS
    }

    fn points() -> &'static [&'static str] {
        &[
            "scheduling: a class is full",
            "scheduling: a sixth class is refused",
            "scheduling: the last seat is taken",
            "scheduling: a refused switch keeps the old class",
            "once: a refusal needs a fence",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Signup {
        let whole_catalogue = rng.chance(0.1);
        let clients = rng.range(2..9) as u8;
        let most = rng.range(8..32) as usize;
        Signup {
            whole_catalogue,
            popular: rng.range(1..13) as u16,
            planned: rng.range(0..3) as u16,
            seats: if whole_catalogue { catalogue::SEATS } else { rng.range(1..5) as u32 },
            // Fewer students than clients: some have two sessions.
            students: rng.range(1..u64::from(clients) + 1) as u8,
            clients,
            operations: most / 2..most,
            timeout: sessions::draw_timeout(rng),
            flaw: bug.and_then(Flaw::named),
        }
    }

    fn clients(&self) -> usize {
        self.clients.into()
    }

    fn keys(&self) -> Vec<Bytes> {
        let (scheduling, names) = (scheduling(), self.names());
        let courses = names.iter().map(|class| scheduling.keys().course(class));
        let students = (0..self.students).map(|s| scheduling.keys().attendance(&student(s), &names[0]));
        courses.chain(students).map(Bytes::from).collect()
    }

    fn operations(&self, client: usize) -> BoxedStrategy<Vec<Op>> {
        use proptest::num::{u8, u16};
        let mood = (u8::ANY, u16::ANY, u8::ANY, u8::ANY);
        let mood = mood.prop_map(|(mood, class, which, account)| Mood { mood, class, which, account });
        let signup = self.clone();
        vec(mood, self.operations.clone()).prop_map(move |moods| signup.decide(client, moods)).boxed()
    }

    async fn setup<D: Database>(&self, db: &D) -> tx::Result<()> {
        let (scheduling, classes) = (&scheduling(), &self.initial());
        let init = db.run(|tx, _| async move { scheduling.init(&tx, classes, self.seats).await });
        init.await.map(|_| ()).map_err(|e| e.error.fdb().unwrap_or(tx::Error::INTERNAL_ERROR))
    }

    async fn open<D: Database>(&self, db: &D, client: usize) -> tx::Result<Client<D>> {
        let session = sessions::open(db, client, self.timeout).await?;
        Ok(Client { session, scheduling: scheduling(), names: self.names().into() })
    }

    async fn divert<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Option<Outcome<Answer>> {
        sabotage::apply(self.flaw?, self, client, op).await
    }

    async fn apply<D: Database>(&self, client: &mut Client<D>, op: &Op) -> Outcome<Answer> {
        let Client { session, scheduling, names } = client;
        let name = |class: u16| names[usize::from(class)].as_str();
        match *op {
            Op::AddClass(class) => {
                applied(scheduling.add_class_once(session, name(class), self.seats).await, Answer::Change)
            }
            Op::Init => {
                applied(scheduling.init_once(session, &self.initial(), self.seats).await, Answer::Added)
            }
            Op::Signup(s, class) => {
                applied(scheduling.signup_once(session, &student(s), name(class)).await, Answer::Change)
            }
            Op::Drop(s, class) => {
                applied(scheduling.drop_once(session, &student(s), name(class)).await, Answer::Change)
            }
            Op::Switch(s, old, new) => {
                let switched = scheduling.switch_once(session, &student(s), name(old), name(new)).await;
                applied(switched, |()| Answer::Switched)
            }
            Op::Available(limit) => {
                let limit = if limit == 0 { usize::MAX } else { limit.into() };
                let (db, scheduling) = (session.database(), &*scheduling);
                let list =
                    db.run(|tx, _| async move { scheduling.available_classes_up_to(&tx, limit).await });
                listed(list.await)
            }
            Op::ClassesOf(s) => {
                let (db, scheduling, s) = (session.database(), &*scheduling, &student(s));
                listed(db.run(|tx, _| async move { scheduling.classes_of(&tx, s).await }).await)
            }
        }
    }

    async fn resolve<D: Database>(
        &self,
        client: &mut Client<D>,
        op: &Op,
        error: tx::Error,
    ) -> Outcome<Answer> {
        let ask = async |session: &mut Session<D>, pending| {
            let answer = match op {
                Op::Switch(..) => session.resolve(pending).await?.map(|()| Answer::Switched),
                Op::Init => session.resolve(pending).await?.map(Answer::Added),
                _ => session.resolve(pending).await?.map(Answer::Change),
            };
            Ok(answer.map(Outcome::Answered))
        };
        sessions::settle(&mut client.session, self.timeout, error, ask).await
    }

    fn model(&self) -> Model {
        let initial = self.initial();
        Model {
            classes: Classes::new(initial.iter().cloned(), self.seats),
            initial: initial.into(),
            names: self.names().into(),
        }
    }

    fn step(&self, model: &mut Model, step: &Step<'_, Self>) -> Result<(), String> {
        // An operation that changed nothing must fit where it stands, and leaves the model as it is.
        let mut aside = (!step.committed && step.op.mutates()).then(|| model.clone());
        let expected = match step.answer {
            None if !step.committed => return Ok(()),
            _ => self.replay(aside.as_mut().unwrap_or(model), step.op),
        };
        match step.answer {
            Some(answer) if *answer != expected => {
                Err(format!("answered {answer:?} where the model answers {expected:?}"))
            }
            Some(_) if aside.is_some_and(|aside| aside.classes != model.classes) => {
                Err(format!("answered {expected:?}, but nothing was committed"))
            }
            _ => Ok(()),
        }
    }

    async fn audit<D: Database>(&self, tx: &D::Transaction) -> tx::Result<Result<(), String>> {
        let (scheduling, names) = (scheduling(), self.names());
        let seats =
            try_join_all(names.iter().map(|class| {
                let key = scheduling.keys().course(class);
                async move {
                    Ok::<_, tx::Error>(tx.get(&key, Serializable).await?.map(|v| unpack_seats(&key, &v)))
                }
            }));
        let seats = seats.await?;
        let rows = tx.get_range_all(scheduling.keys().attendances(), Serializable).await?;
        let mut taking: BTreeMap<String, u32> = BTreeMap::new();
        let mut taken: BTreeMap<String, usize> = BTreeMap::new();
        for row in &rows {
            match scheduling.keys().student_and_class(&row.key) {
                Ok((student, class)) => {
                    *taking.entry(class).or_default() += 1;
                    *taken.entry(student).or_default() += 1;
                }
                Err(e) => return Ok(Err(e.to_string())),
            }
        }
        if let Some((student, n)) = taken.iter().find(|(_, n)| **n > MAX_CLASSES) {
            return Ok(Err(format!("student {student} takes {n} classes")));
        }
        for (class, left) in names.iter().zip(seats) {
            let taking = taking.remove(class).unwrap_or(0);
            let capacity = if left.is_some() { self.seats } else { 0 };
            match left.unwrap_or(Ok(0)) {
                Ok(left) if left + taking == capacity => {}
                Ok(left) => {
                    return Ok(Err(format!(
                        "{class}: {left} seats left and {taking} sign-ups, of {capacity} seats"
                    )));
                }
                Err(e) => return Ok(Err(e.to_string())),
            }
        }
        Ok(taking
            .pop_first()
            .map_or(Ok(()), |(class, n)| Err(format!("{n} sign-ups for {class}, which nobody asked for"))))
    }

    async fn check<D: Database>(&self, db: &D, model: &Model) -> tx::Result<Result<(), String>> {
        let scheduling = &scheduling();
        let read = db.run(|tx, _| async move {
            let courses = tx.get_range_all(scheduling.keys().courses(), Serializable).await?;
            let attendances = tx.get_range_all(scheduling.keys().attendances(), Serializable).await?;
            Ok::<_, tx::Error>((courses, attendances))
        });
        let (courses, attendances) = read.await.map_err(|e| e.error)?;
        let keys = scheduling.keys();
        let found = || -> Result<Classes, Error> {
            let seats =
                courses.iter().map(|r| Ok((keys.class_of_course(&r.key)?, unpack_seats(&r.key, &r.value)?)));
            let taken = attendances.iter().map(|r| keys.student_and_class(&r.key));
            Ok(Classes::found(seats.collect::<Result<_, Error>>()?, taken.collect::<Result<Vec<_>, _>>()?))
        };
        Ok(match found() {
            Ok(found) => found.difference(&model.classes).map_or(Ok(()), Err),
            Err(e) => Err(e.to_string()),
        })
    }
}

impl Signup {
    /// Does an operation on the model.
    fn replay(&self, Model { classes: model, initial, names }: &mut Model, op: &Op) -> Answer {
        let name = |class: u16| names[usize::from(class)].as_str();
        let change = |c: Result<Change, Refusal>| c.map_or_else(Answer::Refused, Answer::Change);
        match *op {
            Op::AddClass(class) => Answer::Change(model.add_class(name(class), self.seats)),
            Op::Init => {
                let added = initial.iter().filter(|c| model.add_class(c, self.seats) == Change::Made).count();
                Answer::Added(added as u64)
            }
            Op::Signup(s, class) => change(model.signup(&student(s), name(class))),
            Op::Drop(s, class) => Answer::Change(model.drop(&student(s), name(class))),
            Op::Switch(s, old, new) => {
                let switched = model.switch(&student(s), name(old), name(new));
                switched.map_or_else(Answer::Refused, |()| Answer::Switched)
            }
            Op::Available(limit) => {
                Answer::Classes(model.available(if limit == 0 { usize::MAX } else { limit.into() }))
            }
            Op::ClassesOf(s) => Answer::Classes(model.classes_of(&student(s))),
        }
    }
}

pub(crate) fn applied<A>(
    outcome: once::Outcome<A, Error>,
    answer: impl FnOnce(A) -> Answer,
) -> Outcome<Answer> {
    match outcome {
        once::Outcome::Applied(a) => Outcome::Answered(answer(a)),
        once::Outcome::Refused(e) => refused(e),
        once::Outcome::Unknown(_) => Outcome::Unknown(tx::Error::COMMIT_UNKNOWN_RESULT),
    }
}

pub(crate) fn refused(error: Error) -> Outcome<Answer> {
    match error {
        Error::Refused(refusal) => Outcome::Answered(Answer::Refused(refusal)),
        e => e.fdb().map_or_else(|| Outcome::Violated(e.to_string()), Outcome::GaveUp),
    }
}

pub(crate) fn listed(ran: Result<Vec<String>, RunError<Error>>) -> Outcome<Answer> {
    ran.map_or_else(|e| refused(e.error), |classes| Outcome::Answered(Answer::Classes(classes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Demands, Plan};
    use shaketable_sim::seed::Seed;

    fn plans() -> impl Iterator<Item = Plan<Signup>> {
        (0..200).map(|seed| Plan::draw(Seed(seed), &Demands::default()))
    }

    #[test]
    fn operations_name_classes_and_students_that_exist() {
        for Plan { configuration: c, operations, .. } in plans() {
            let (names, classes) = (c.names(), c.popular + c.planned);
            assert_eq!(names.len(), usize::from(classes));
            assert!(names.iter().take(c.popular.into()).all(|n| c.initial().contains(n)));
            for op in operations.into_iter().flatten() {
                let (students, named) = match op {
                    Op::AddClass(class) => (vec![], vec![class]),
                    Op::Signup(s, class) | Op::Drop(s, class) => (vec![s], vec![class]),
                    Op::Switch(s, old, new) => (vec![s], vec![old, new]),
                    Op::ClassesOf(s) => (vec![s], vec![]),
                    Op::Init | Op::Available(_) => (vec![], vec![]),
                };
                assert!(students.iter().all(|s| *s < c.students) && named.iter().all(|n| *n < classes));
            }
        }
    }

    #[test]
    fn the_races_the_tutorial_speaks_of_are_drawn() {
        let (mut last_seat, mut sixth, mut switched, mut whole) = (0, 0, 0, 0);
        for Plan { configuration: c, operations, .. } in plans() {
            whole += u32::from(c.whole_catalogue);
            let mut model = c.model();
            for op in operations.iter().flatten() {
                match c.replay(&mut model, op) {
                    Answer::Refused(Refusal::NoRemainingSeats) => last_seat += 1,
                    Answer::Refused(Refusal::TooManyClasses) => sixth += 1,
                    Answer::Switched => switched += 1,
                    _ => {}
                }
            }
        }
        assert!(
            last_seat > 200 && sixth > 50 && switched > 200 && whole > 5,
            "{last_seat} {sixth} {switched} {whole}"
        );
    }

    #[test]
    fn every_bug_has_its_own_name() {
        for bug in Signup::bugs() {
            assert!(Flaw::named(bug.name).is_some());
        }
        let names: std::collections::BTreeSet<_> = Signup::bugs().iter().map(|b| b.name).collect();
        assert_eq!(names.len(), Signup::bugs().len());
    }
}
