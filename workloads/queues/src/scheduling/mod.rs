//! `scheduling`: the class scheduling tutorial, with its indecisive students.
//!
//! Students sign up for classes, drop them, switch between them and list what is available, while an
//! administrator adds classes and initializes the catalogue again. Some seeds use the tutorial's 1,620
//! classes of 100 seats. Most seeds use a few classes with a few seats, where the races are: for the last
//! seat, for a student's sixth class (several clients act for one student), and for the seat that a switch
//! gives up. Names are easily confused, or as long as a name may be. Several calls, including looks, are
//! composed in one transaction, which may continue after a refusal. Every call must return what the
//! sequential model returns in commit order. At every version seats and sign-ups add up, and no student takes
//! more than five classes.

#[cfg(test)]
mod bounds;
mod client;
#[cfg(test)]
mod documents;
mod model;
mod operations;
mod planted;

pub use model::Classes;
pub use operations::{Answer, Op};

use bytes::Bytes;
use client::{contents, page, scheduling};
use operations::{SEATS, student};
use planted::{BUGS, Planted};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use shaketable::{
    Misfit,
    specimen::{self, At, Content, Specimen},
    workload::{Bug, Outcome},
};
use shaketable_layers::scheduling::{Error, MAX_CLASSES, keys::unpack_seats};
use shaketable_sim::seed::Stream;
use shaketable_tx::{
    self as tx, Database, Db, Env,
    Isolation::{self, Serializable},
    KeyValue, RetryError, Transaction, Tx,
    once::Session,
};
use std::collections::BTreeMap;

/// The drawn configuration of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Signups {
    /// Whether most of the tutorial's 1,620 classes exist, or only those that operations name.
    whole_catalogue: bool,
    /// How many of the classes that exist from the beginning are named by operations.
    popular: u16,
    /// The number of further classes that may be added.
    planned: u16,
    seats: u32,
    students: u8,
    /// The weight of drops, where sign-ups have a weight of 12 and switches one of 8.
    drops: u32,
    planted: Option<Planted>,
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<shaketable::specimen::Mounted<Signups>>()
}

impl Specimen for Signups {
    type Op = Op;
    type Answer = Answer;
    type Error = Error;
    type Model = Classes;

    const NAME: &'static str = "scheduling";
    const ABOUT: &'static str = "class scheduling: seats and sign-ups always add up, five classes a student";
    const CHECKS_LIMITS: bool = true;

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

    fn rare_kinds() -> &'static [&'static str] {
        &["InitMany"]
    }

    fn draw(rng: &mut Stream, bug: Option<&str>) -> Signups {
        let whole_catalogue = rng.chance(0.04);
        Signups {
            whole_catalogue,
            popular: rng.range(1..13) as u16,
            planned: rng.range(1..4) as u16,
            seats: if whole_catalogue { SEATS } else { rng.range(1..5) as u32 },
            // Mostly fewer students than clients.
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
        self.drawn()
    }

    fn refuses_cleanly(op: &Op, _: &Error) -> bool {
        !matches!(op, Op::Switch(..))
    }

    fn is_read_only(op: &Op) -> bool {
        matches!(op, Op::Available(..) | Op::ClassesOf(_) | Op::SeatsLeft(_) | Op::SignUps(_))
    }

    async fn setup(&self, db: &Db) -> tx::Result<()> {
        let classes = &self.initial();
        let init = db.run(|tx, _| async move { scheduling().init(&tx, classes, self.seats).await });
        init.await.map(|_| ()).map_err(|e| e.error.fdb().unwrap_or(tx::Error::INTERNAL_ERROR))
    }

    async fn perform(&self, tx: &Tx, _: &Env, op: &Op, _: Isolation) -> Result<Answer, Error> {
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

    async fn apply_planted(
        &self,
        session: &mut Session<Db>,
        ops: &[Op],
    ) -> Option<Outcome<specimen::Answer<Answer>>> {
        planted::apply_planted(self.planted?, self, session, ops).await
    }

    fn takes_turns(&self) -> bool {
        self.planted.is_none()
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

    async fn read_model(&self, tx: &Tx) -> tx::Result<Result<Classes, Misfit>> {
        let scheduling = scheduling();
        let courses = tx.get_range_all(scheduling.keys().courses(), Serializable).await?;
        let attendances = tx.get_range_all(scheduling.keys().attendances(), Serializable).await?;
        Ok(self.found(&courses, &attendances).map_err(Misfit::from))
    }
}

impl Signups {
    /// What is stored, as a model, if seats and sign-ups add up.
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
            false => Err(format!("a sign-up has the value \"{}\"", row.value.escape_ascii())),
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
            return Err(format!("there are sign-ups for {class:?}, which is not offered"));
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
