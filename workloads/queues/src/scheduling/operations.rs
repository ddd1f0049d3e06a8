//! The calls of the workload and their answers as plain data, and how they are drawn.

use super::Signups;
use crate::shared::page_sizes;
use proptest::{collection::vec, prelude::*, sample::select};
use serde::{Deserialize, Serialize};
use shaketable::{specimen::Content, strategies::CONFUSED_TEXT};
use shaketable_layers::scheduling::{Change, MAX_INIT, Refusal, catalogue, keys::MAX_NAME};

/// One call. Classes are numbers: the popular ones first, then the planned ones. The names of [`LONG_CLASS`]
/// and [`LONG_STUDENT`] are too long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Offers a class with this many seats.
    AddClass(u16, u32),
    /// Initializes the classes that exist from the beginning.
    Init,
    /// Initializes these classes.
    InitSome(Vec<u16>),
    /// Initializes the first classes of the tutorial's catalogue, or all of them if 0.
    InitMany(usize),
    /// Signs a student up for a class.
    Signup(u8, u16),
    /// Removes a student from a class.
    Drop(u8, u16),
    /// Moves a student from one class to another.
    Switch(u8, u16, u16),
    /// Lists those with seats left, of this many classes after this one.
    Available(Option<u16>, usize),
    /// Lists the classes of a student.
    ClassesOf(u8),
    /// Reads the seats left in a class.
    SeatsLeft(u16),
    /// Lists the first sign-ups, by their keys.
    SignUps(usize),
    /// Performs the call, and continues the transaction if it is refused.
    Anyway(Box<Op>),
}

/// The classes of the tutorial's catalogue.
const CLASSES: usize = 1_620;
/// The seats of each of them.
pub(super) const SEATS: u32 = 100;
/// The class whose name is too long.
const LONG_CLASS: u16 = u16::MAX;
/// The student whose name is too long.
const LONG_STUDENT: u8 = u8::MAX;

/// What a call returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Whether a class was added, a student signed up, or a class was dropped.
    Change(Change),
    /// The number of classes that were added.
    Added(usize),
    /// Switched.
    Switched,
    /// Refused; the transaction continued.
    Refused(Refusal),
    /// The number of classes on a page, the classes, and the class after which the next page begins.
    Page(usize, Content, Option<Content>),
    /// The classes of a student.
    Classes(Vec<Content>),
    /// The seats left in a class.
    Seats(Option<u32>),
    /// Students, and their classes.
    SignUps(Vec<(Content, Content)>),
}

pub(super) fn student(n: u8) -> String {
    match usize::from(n) {
        n if n < CONFUSED_TEXT.len() => CONFUSED_TEXT[n].into(),
        n if n == usize::from(LONG_STUDENT) => "s".repeat(MAX_NAME + 1),
        _ => "\0".repeat(MAX_NAME),
    }
}

impl Signups {
    /// Draws one call.
    pub(super) fn drawn(&self) -> BoxedStrategy<Op> {
        let (popular, planned) = (self.popular, self.planned);
        let class = || prop_oneof![60 => 0..popular + planned, 1 => Just(LONG_CLASS)];
        let student = || prop_oneof![60 => 0..self.students, 1 => Just(250u8), 1 => Just(LONG_STUDENT)];
        let seats = select(vec![
            0,
            1,
            self.seats,
            255,
            256,
            65_535,
            65_536,
            i32::MAX as u32,
            i32::MAX as u32 + 1,
            u32::MAX,
        ]);
        let many = [0, MAX_INIT, MAX_INIT + 1];
        // Few runs have the whole catalogue.
        let (least, weight) = if self.whole_catalogue { (0, 4) } else { (2, 1) };
        let most = prop_oneof![1 => Just(0), 4 => page_sizes(), 1 => Just(usize::MAX)];
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
            weight => select(many[least..].to_vec()).prop_map(Op::InitMany),
            4 => (proptest::option::of(class()), most.clone()).prop_map(|(c, most)| Op::Available(c, most)),
            3 => student().prop_map(Op::ClassesOf),
            3 => class().prop_map(Op::SeatsLeft),
            1 => (0..9usize).prop_map(Op::SignUps),
        ]
        .boxed()
    }

    /// The name of a class.
    pub(super) fn class(&self, n: u16) -> String {
        let (place, popular) = (usize::from(n), usize::from(self.popular));
        match place {
            _ if n == LONG_CLASS => "c".repeat(MAX_NAME + 1),
            _ if place >= popular => format!("a{}", "\0planned".repeat(place - popular + 1)),
            _ if self.whole_catalogue => catalogue::class_name(place * (CLASSES / popular.max(1))),
            _ if place < CONFUSED_TEXT.len() => CONFUSED_TEXT[place].into(),
            9 => "\0".repeat(MAX_NAME),
            _ => "x".repeat(MAX_NAME + 10 - place),
        }
    }

    /// The classes that exist from the beginning.
    pub(super) fn initial(&self) -> Vec<String> {
        match self.whole_catalogue {
            // The last ones are added by operations.
            true => (0..CLASSES - 20).map(catalogue::class_name).collect(),
            false => (0..self.popular).map(|n| self.class(n)).collect(),
        }
    }

    /// The classes that an operation initializes.
    pub(super) fn initialised(&self, op: &Op) -> Vec<String> {
        match op {
            Op::InitSome(classes) => classes.iter().map(|class| self.class(*class)).collect(),
            Op::InitMany(0) => (0..CLASSES).map(catalogue::class_name).collect(),
            Op::InitMany(most) => (0..*most).map(catalogue::class_name).collect(),
            _ => self.initial(),
        }
    }

    pub(super) fn seats_of(&self, op: &Op) -> u32 {
        if matches!(op, Op::InitMany(0)) { SEATS } else { self.seats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::drawn;
    use shaketable::specimen::{At, Mounted, Specimen};
    use shaketable_layers::scheduling::Error;
    use std::collections::BTreeSet;

    #[test]
    fn names_of_classes_and_students_differ_and_two_are_too_long() {
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
    fn the_races_of_the_tutorial_are_drawn() {
        let (mut last_seat, mut sixth, mut switched, mut kept) = (0, 0, 0, 0);
        for seed in 0..200 {
            let (mounted, operations) = drawn::<Mounted<Signups>>(seed);
            let configuration = serde_json::to_value(&mounted).expect("plain data");
            let signup: Signups =
                serde_json::from_value(configuration["specimen"].clone()).expect("the same");
            let mut model = signup.model();
            for op in operations.iter().flatten().flatten() {
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
