//! `scheduling`: the class scheduling tutorial, with its indecisive students.
//!
//! Students sign up for classes, drop them, switch between them and list what is available, while an
//! administrator adds classes and initialises the catalogue again. Some seeds run the tutorial's
//! 1,620 classes of 100 seats; most a handful of classes with a few seats, where the races are: for the
//! last seat, for a student's sixth class (several clients have one student), and for the seat that a
//! switch gives up. Their names are easily confused, or as long as a name may be. Several calls are composed
//! in one transaction, looks among them, and go on after a refusal. Every answer is what the sequential model
//! says in commit order; at every version seats and sign-ups add up, and nobody takes more than five classes.

mod model;
mod planted;

use crate::catalogue::scheduling::model::Classes;
use bytes::Bytes;
use foundationdb_tuple::{Subspace, pack};
use proptest::{collection::vec, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{
    specimen::{self, At, Content, Specimen},
    strategies::CONFUSED_TEXT,
    workload::{Bug, Outcome},
};
use shaketable_layers::{
    once::Session,
    scheduling::{
        self, Change, Error, MAX_CLASSES, MAX_INIT, Refusal, Scheduling, catalogue,
        keys::{MAX_NAME, unpack_seats},
    },
    tx::{
        self, Database, Env,
        Isolation::{self, Serializable},
        KeyValue, RetryError, Transaction,
    },
};
use shaketable_sim::seed::Stream;
use std::collections::BTreeMap;

shaketable::planted_bugs! {
    AddClassAsPrinted = "add-class-as-printed", "add_class sets the seats of a class that students have signed up for", "the tutorial's add_class";
    InitAsPrinted = "init-as-printed", "init clears everything before it adds the classes", "the tutorial's init";
    NoOpRecord = "no-op-record", "signup, drop and switch are retried without an operation record", "the tutorial's \"all of the transactions are idempotent\"";
    SnapshotReads = "snapshot-reads", "sign-ups and seats are read at snapshot", "foundationdb-rs examples/class-scheduling.rs";
    SwitchAsPrinted = "switch-as-printed", "switch does not ask whether the old class is held", "the tutorial's switch";
    SwitchKeepsHalf = "switch-keeps-half", "switch swallows the refusal of the new class after dropping the old one", "an error swallowed in a composed call";
    RefusedSwitchDrops = "refused-switch-drops", "a refused switch has dropped the old class for a caller who goes on", "a refusal that leaves half of its work";
    SixthAtSnapshot = "sixth-class-at-snapshot", "a student's classes are counted at snapshot", "foundationdb-rs examples/class-scheduling.rs, write skew";
    FirstBatch = "first-batch", "the first batch of a range read is taken for the whole", "a range that is longer than a batch";
    NestedDatabase = "nested-database", "switch drops the old class in a transaction of its own", "addClass of the older guide of the data modeling guide";
    OwnWritesUnseen = "own-writes-unseen", "switch runs with read-your-writes disabled", "a transaction that cannot see itself";
    LookBeside = "look-beside", "a list in a transaction is read in another one beside it", "a look-up that is given the database";
    TimeoutIsRefusal = "timeout-is-refusal", "an unknown outcome is reported as a failure", "a timeout reported as a failure";
    RetryAsNew = "retry-as-new", "an operation whose outcome is unknown is done again as a new one", "a timeout taken for a failure";
    SeatsKept = "seats-kept", "the seats read in the first attempt are kept for the retries", "state that survives a retry";
    InitRefills = "init-refills", "init gives a class all its seats again that has none left", "absent and zero taken for one";
    PageSkips = "page-skips", "a page begins after all keys that begin with that of the class before", "a cursor that is a prefix";
    FullIsListed = "full-is-listed", "a class without seats is listed as available", "a list of all classes";
    BareStudent = "bare-student", "the classes of a student are those of all whose names begin like his", "a prefix without its end";
    SeatsCutOff = "seats-cut-off", "seats are stored in 16 bits", "a number that outgrows its field";
}

/// The workload, drawn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Signups {
    /// Whether the tutorial's 1,620 classes are there, or only those that operations name.
    whole_catalogue: bool,
    /// How many classes that are there from the beginning do operations name.
    popular: u16,
    /// How many further classes may be added.
    planned: u16,
    seats: u32,
    students: u8,
    /// How often students drop a class, of 16 times.
    drops: u32,
    planted: Option<Planted>,
}

/// One call. Classes are numbers: the popular ones first, then the planned ones; [`LONG_CLASS`] has a name
/// that is too long, as [`LONG_STUDENT`] has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Offers a class with so many seats.
    AddClass(u16, u32),
    /// Makes sure that the classes of the beginning are there.
    Init,
    /// Makes sure that these are.
    InitSome(Vec<u16>),
    /// Makes sure that the first so many classes of the tutorial's catalogue are; 0 is the catalogue.
    InitMany(usize),
    /// Signs a student up for a class.
    Signup(u8, u16),
    /// Takes a student out of a class.
    Drop(u8, u16),
    /// Moves a student from a class to another.
    Switch(u8, u16, u16),
    /// Lists those with seats of so many classes after this one.
    Available(Option<u16>, usize),
    /// Lists a student's classes.
    ClassesOf(u8),
    /// Asks for the seats left in a class.
    SeatsLeft(u16),
    /// Lists the first so many sign-ups, by their keys.
    SignUps(usize),
    /// Goes on if this is refused.
    Anyway(Box<Op>),
}

/// The class whose name is too long.
pub(crate) const LONG_CLASS: u16 = u16::MAX;
/// The student whose name is too long.
pub(crate) const LONG_STUDENT: u8 = u8::MAX;

/// What it answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Whether a class was added, a student signed up, a class dropped.
    Change(Change),
    /// So many classes were added.
    Added(usize),
    /// Switched.
    Switched,
    /// Refused, and the transaction went on.
    Refused(Refusal),
    /// How many classes a page has, these, and after which one the next page begins.
    Page(usize, Content, Option<Content>),
    /// A student's classes.
    Classes(Vec<Content>),
    /// The seats left in a class.
    Seats(Option<u32>),
    /// Students and their classes.
    SignUps(Vec<(Content, Content)>),
}

pub(crate) fn scheduling() -> Scheduling {
    Scheduling::new(&Subspace::from("scheduling"))
}

pub(crate) fn student(n: u8) -> String {
    match usize::from(n) {
        n if n < CONFUSED_TEXT.len() => CONFUSED_TEXT[n].into(),
        n if n == usize::from(LONG_STUDENT) => "s".repeat(MAX_NAME + 1),
        _ => "\0".repeat(MAX_NAME),
    }
}

pub(crate) fn page(classes: &[String], next: Option<&String>) -> Answer {
    Answer::Page(classes.len(), Content::from(&pack(&classes.to_vec())), next.map(Content::from))
}

fn contents(names: &[String]) -> Answer {
    Answer::Classes(names.iter().map(Content::from).collect())
}

impl Signups {
    /// The seats of every class that is there from the beginning.
    pub(crate) fn seats(&self) -> u32 {
        self.seats
    }

    /// The name of a class.
    pub(crate) fn class(&self, n: u16) -> String {
        let (place, popular) = (usize::from(n), usize::from(self.popular));
        match place {
            _ if n == LONG_CLASS => "c".repeat(MAX_NAME + 1),
            _ if place >= popular => format!("a{}", "\0planned".repeat(place - popular + 1)),
            _ if self.whole_catalogue => catalogue::class_name(place * (catalogue::CLASSES / popular.max(1))),
            _ if place < CONFUSED_TEXT.len() => CONFUSED_TEXT[place].into(),
            9 => "\0".repeat(MAX_NAME),
            _ => "x".repeat(MAX_NAME + 10 - place),
        }
    }

    /// The classes that are there from the beginning.
    pub(crate) fn initial(&self) -> Vec<String> {
        match self.whole_catalogue {
            true => catalogue::class_names().collect(),
            false => (0..self.popular).map(|n| self.class(n)).collect(),
        }
    }

    /// The classes that one of the ways to initialise is about.
    pub(crate) fn initialised(&self, op: &Op) -> Vec<String> {
        match op {
            Op::InitSome(classes) => classes.iter().map(|class| self.class(*class)).collect(),
            Op::InitMany(0) => catalogue::class_names().collect(),
            Op::InitMany(most) => (0..*most).map(catalogue::class_name).collect(),
            _ => self.initial(),
        }
    }

    fn seats_of(&self, op: &Op) -> u32 {
        if matches!(op, Op::InitMany(0)) { catalogue::SEATS } else { self.seats }
    }
}

impl Specimen for Signups {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Classes;

    const NAME: &'static str = "scheduling";
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
            "scheduling: other classes lie between those of a catalogue",
        ]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Signups {
        let whole_catalogue = rng.chance(0.04);
        Signups {
            whole_catalogue,
            popular: rng.range(1..13) as u16,
            planned: rng.range(1..4) as u16,
            seats: if whole_catalogue { catalogue::SEATS } else { rng.range(1..5) as u32 },
            // Fewer students than clients, mostly.
            students: rng.range(1..6) as u8,
            drops: *rng.pick(&[1, 4, 10]),
            planted: bug.and_then(Planted::named),
        }
    }

    fn keys(&self) -> Vec<Bytes> {
        let (scheduling, first) = (scheduling(), self.class(0));
        let courses = (0..self.popular + self.planned).map(|n| scheduling.keys().course(&self.class(n)));
        let students = (0..self.students).map(|s| scheduling.keys().attendance(&student(s), &first));
        courses.chain(students).map(Bytes::from).collect()
    }

    fn operation(&self, _: usize) -> BoxedStrategy<Op> {
        let (popular, planned) = (self.popular, self.planned);
        let class = || prop_oneof![60 => 0..popular + planned, 1 => Just(LONG_CLASS)];
        let student = || prop_oneof![60 => 0..self.students, 1 => Just(250u8), 1 => Just(LONG_STUDENT)];
        let seats = select(vec![0, 1, self.seats, 256, 65_535, u32::MAX]);
        let many = [0, MAX_INIT, MAX_INIT + 1];
        let most = prop_oneof![4 => 0..4usize, 1 => Just(usize::MAX)];
        let student_s = prop_oneof![
            12 => (student(), class()).prop_map(|(s, c)| Op::Signup(s, c)),
            self.drops => (student(), class()).prop_map(|(s, c)| Op::Drop(s, c)),
            8 => (student(), class(), class()).prop_map(|(s, old, new)| Op::Switch(s, old, new)),
        ]
        .boxed();
        let anyway = student_s.clone().prop_map(|op| Op::Anyway(Box::new(op)));
        prop_oneof![
            20 => student_s,
            12 => anyway,
            3 => ((popular..popular + planned), seats.clone()).prop_map(|(c, n)| Op::AddClass(c, n)),
            1 => (class(), seats).prop_map(|(c, n)| Op::AddClass(c, n)),
            1 => Just(Op::Init),
            2 => vec(class(), 0..4).prop_map(Op::InitSome),
            1 => select(many[if self.whole_catalogue { 0 } else { 2 }..].to_vec()).prop_map(Op::InitMany),
            4 => (proptest::option::of(class()), most.clone()).prop_map(|(c, most)| Op::Available(c, most)),
            3 => student().prop_map(Op::ClassesOf),
            3 => class().prop_map(Op::SeatsLeft),
            1 => (0..9usize).prop_map(Op::SignUps),
        ]
        .boxed()
    }

    fn is_look(op: &Op) -> bool {
        matches!(op, Op::Available(..) | Op::ClassesOf(_) | Op::SeatsLeft(_) | Op::SignUps(_))
    }

    async fn setup<D: Database>(&self, db: &D) -> tx::Result<()> {
        let classes = &self.initial();
        let init = db.run(|tx, _| async move { scheduling().init(&tx, classes, self.seats).await });
        init.await.map(|_| ()).map_err(|e| e.error.fdb().unwrap_or(tx::Error::INTERNAL_ERROR))
    }

    async fn perform<T: Transaction>(&self, tx: &T, _: &Env, op: &Op, _: Isolation) -> Result<Answer, Error> {
        let (op, anyway) = match op {
            Op::Anyway(op) => (&**op, true),
            op => (op, false),
        };
        let done = match self.planted {
            Some(planted) => planted::perform(planted, self, tx, op).await,
            None => self.call(tx, op).await,
        };
        match done {
            Err(Error::Refused(refusal)) if anyway => Ok(Answer::Refused(refusal)),
            done => done,
        }
    }

    async fn divert<D: Database>(
        &self,
        session: &mut Session<D>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        planted::divert(self.planted?, self, session, ops).await
    }

    fn model(&self) -> Classes {
        Classes::new(self.initial(), self.seats)
    }

    fn replay(&self, model: &mut Classes, op: &Op, _: &At) -> Result<Answer, Error> {
        Ok(match op {
            Op::AddClass(class, seats) => Answer::Change(model.add_class(&self.class(*class), *seats)?),
            Op::Init | Op::InitSome(_) | Op::InitMany(_) => {
                Answer::Added(model.init(&self.initialised(op), self.seats_of(op))?)
            }
            Op::Signup(s, class) => Answer::Change(model.signup(&student(*s), &self.class(*class))?),
            Op::Drop(s, class) => Answer::Change(model.drop(&student(*s), &self.class(*class))),
            Op::Switch(s, old, new) => {
                model.switch(&student(*s), &self.class(*old), &self.class(*new))?;
                Answer::Switched
            }
            Op::Available(after, most) => {
                let after = after.map(|class| self.class(class));
                let (classes, next) = model.available(after.as_deref(), (*most).max(1));
                page(&classes, next.as_ref())
            }
            Op::ClassesOf(s) => contents(&model.classes_of(&student(*s))),
            Op::SeatsLeft(class) => Answer::Seats(model.seats_left(&self.class(*class))),
            Op::SignUps(most) => {
                let first = model.sign_ups().take((*most).max(1));
                Answer::SignUps(first.map(|(s, class)| (Content::from(s), Content::from(class))).collect())
            }
            Op::Anyway(op) => {
                let before = model.clone();
                match self.replay(model, op, &At::default()) {
                    Err(Error::Refused(refusal)) => {
                        *model = before;
                        Answer::Refused(refusal)
                    }
                    answered => return answered,
                }
            }
        })
    }

    async fn stored<T: Transaction>(&self, tx: &T) -> tx::Result<Result<Classes, String>> {
        let scheduling = scheduling();
        let courses = tx.get_range_all(scheduling.keys().courses(), Serializable).await?;
        let attendances = tx.get_range_all(scheduling.keys().attendances(), Serializable).await?;
        Ok(self.found(&courses, &attendances))
    }
}

impl Signups {
    /// Does a call right.
    pub(crate) async fn call<T: Transaction>(&self, tx: &T, op: &Op) -> Result<Answer, Error> {
        let scheduling = scheduling();
        Ok(match op {
            Op::AddClass(class, seats) => {
                Answer::Change(scheduling.add_class(tx, &self.class(*class), *seats).await?)
            }
            Op::InitMany(0) => Answer::Added(scheduling.init_catalogue(tx).await?),
            Op::Init | Op::InitSome(_) | Op::InitMany(_) => {
                Answer::Added(scheduling.init(tx, &self.initialised(op), self.seats).await?)
            }
            Op::Signup(s, class) => {
                Answer::Change(scheduling.signup(tx, &student(*s), &self.class(*class)).await?)
            }
            Op::Drop(s, class) => {
                Answer::Change(scheduling.drop(tx, &student(*s), &self.class(*class)).await?)
            }
            Op::Switch(s, old, new) => {
                scheduling.switch(tx, &student(*s), &self.class(*old), &self.class(*new)).await?;
                Answer::Switched
            }
            Op::Available(after, most) => {
                let after = after.map(|class| self.class(class));
                let scheduling::Page { classes, next } =
                    scheduling.available_classes(tx, after.as_deref(), *most).await?;
                page(&classes, next.as_ref())
            }
            Op::ClassesOf(s) => contents(&scheduling.classes_of(tx, &student(*s)).await?),
            Op::SeatsLeft(class) => Answer::Seats(scheduling.seats_left(tx, &self.class(*class)).await?),
            Op::SignUps(most) => {
                let range = scheduling.keys().attendances().limit((*most).max(1));
                let rows = tx.get_range_all(range, Serializable).await?;
                let sign_up = |row: &KeyValue| {
                    let (student, class) = scheduling.keys().student_and_class(&row.key)?;
                    Ok((Content::from(&student), Content::from(&class)))
                };
                Answer::SignUps(rows.iter().map(sign_up).collect::<Result<_, Error>>()?)
            }
            // Refusals are the caller's.
            Op::Anyway(op) => Box::pin(self.call(tx, op)).await?,
        })
    }

    /// What is stored, if seats and sign-ups add up.
    fn found(&self, courses: &[KeyValue], attendances: &[KeyValue]) -> Result<Classes, String> {
        let (scheduling, words) = (scheduling(), |e: Error| e.to_string());
        let keys = scheduling.keys();
        let mut seats = BTreeMap::new();
        for row in courses {
            let class = keys.class_of_course(&row.key).map_err(words)?;
            seats.insert(class, unpack_seats(&row.key, &row.value).map_err(words)?);
        }
        let sign_ups = attendances.iter().map(|row| match row.value.is_empty() {
            true => keys.student_and_class(&row.key).map_err(words),
            false => Err(format!("a sign-up holds \"{}\"", row.value.escape_ascii())),
        });
        let sign_ups = sign_ups.collect::<Result<Vec<_>, _>>()?;
        let mut taking: BTreeMap<&str, u32> = BTreeMap::new();
        let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
        for (student, class) in &sign_ups {
            *taking.entry(class).or_default() += 1;
            *taken.entry(student).or_default() += 1;
        }
        if let Some((student, n)) = taken.iter().find(|(_, n)| **n > MAX_CLASSES) {
            return Err(format!("student {student:?} takes {n} classes"));
        }
        if let Some(class) = taking.keys().find(|class| !seats.contains_key(**class)) {
            return Err(format!("sign-ups for {class:?}, which nobody offers"));
        }
        for n in 0..self.popular {
            let class = self.class(n);
            let (left, taking) = (seats.get(&class), taking.get(&*class).copied().unwrap_or(0));
            if left.is_none_or(|left| left + taking != self.seats) {
                let seats = self.seats;
                return Err(format!(
                    "{class:?}: {left:?} seats left and {taking} sign-ups, of {seats} seats"
                ));
            }
        }
        Ok(Classes::found(seats, sign_ups))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable::{
        plan::{Demands, Plan},
        specimen::Mounted,
    };
    use shaketable_sim::seed::Seed;
    use std::collections::BTreeSet;

    #[test]
    fn classes_and_students_have_names_of_their_own_and_two_are_too_long() {
        for whole_catalogue in [false, true] {
            let (popular, planned) = (12, 3);
            let signup =
                Signups { whole_catalogue, popular, planned, seats: 1, students: 5, drops: 1, planted: None };
            let names: BTreeSet<String> = (0..15).map(|n| signup.class(n)).collect();
            assert_eq!(names.len(), 15);
            assert!(names.iter().all(|name| name.len() <= MAX_NAME));
            assert!((0..popular).all(|n| signup.initial().contains(&signup.class(n))));
            assert_eq!(signup.class(LONG_CLASS).len(), MAX_NAME + 1);
        }
        let students: BTreeSet<String> = (0..5).chain([250, LONG_STUDENT]).map(student).collect();
        assert_eq!(students.len(), 7);
    }

    #[test]
    fn the_races_the_tutorial_speaks_of_are_drawn() {
        let (mut last_seat, mut sixth, mut switched, mut kept) = (0, 0, 0, 0);
        for seed in 0..200 {
            let plan: Plan<Mounted<Signups>> = Plan::draw(Seed(seed), &Demands::default());
            let configuration = serde_json::to_value(&plan.configuration).expect("plain data");
            let signup: Signups =
                serde_json::from_value(configuration["specimen"].clone()).expect("the same");
            let mut model = signup.model();
            for op in plan.operations.iter().flatten().flatten() {
                let switch = matches!(op, Op::Anyway(op) if matches!(**op, Op::Switch(..)));
                match signup.replay(&mut model, op, &At::default()) {
                    Err(Error::Refused(Refusal::NoRemainingSeats)) => last_seat += 1,
                    Err(Error::Refused(Refusal::TooManyClasses)) => sixth += 1,
                    Ok(Answer::Refused(Refusal::NoRemainingSeats)) if switch => kept += 1,
                    Ok(Answer::Switched) => switched += 1,
                    _ => {}
                }
            }
        }
        assert!(
            last_seat > 200 && sixth > 50 && switched > 200 && kept > 50,
            "{last_seat} {sixth} {switched} {kept}"
        );
    }
}
