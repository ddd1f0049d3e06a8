//! The sequential model of class scheduling: what one student after another would be told.

use shaketable_layers::scheduling::{Change, MAX_CLASSES, Refusal};
use std::collections::{BTreeMap, BTreeSet};

/// Seats and sign-ups as plain maps.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Classes {
    seats_left: BTreeMap<String, u32>,
    taken: BTreeMap<String, BTreeSet<String>>,
}

impl Classes {
    /// A catalogue in which every class has so many seats.
    pub fn new(classes: impl IntoIterator<Item = String>, seats: u32) -> Classes {
        Classes { seats_left: classes.into_iter().map(|c| (c, seats)).collect(), taken: BTreeMap::new() }
    }

    /// Offers a class unless it is offered already.
    pub fn add_class(&mut self, class: &str, seats: u32) -> Change {
        if self.seats_left.contains_key(class) {
            return Change::Unneeded;
        }
        self.seats_left.insert(class.into(), seats);
        Change::Made
    }

    /// The first `limit` classes with seats left.
    pub fn available(&self, limit: usize) -> Vec<String> {
        self.seats_left.iter().filter(|(_, left)| **left > 0).map(|(c, _)| c.clone()).take(limit).collect()
    }

    /// The classes of one student.
    pub fn classes_of(&self, student: &str) -> Vec<String> {
        self.taken.get(student).into_iter().flatten().cloned().collect()
    }

    /// What a database holds: the seats left in each class, and who takes what.
    pub fn found(
        seats_left: BTreeMap<String, u32>,
        taken: impl IntoIterator<Item = (String, String)>,
    ) -> Classes {
        let mut classes = Classes { seats_left, taken: BTreeMap::new() };
        for (student, class) in taken {
            classes.taken.entry(student).or_default().insert(class);
        }
        classes
    }

    /// Every class with the seats it has left.
    pub fn seats(&self) -> impl Iterator<Item = (&str, u32)> {
        self.seats_left.iter().map(|(c, left)| (c.as_str(), *left))
    }

    /// How this differs from what the committed operations lead to, if it does.
    pub fn difference(&self, expected: &Classes) -> Option<String> {
        let classes = self.seats_left.keys().chain(expected.seats_left.keys());
        for class in classes {
            let (found, expected) = (self.seats_left.get(class), expected.seats_left.get(class));
            if found != expected {
                return Some(format!(
                    "{class} has {found:?} seats left; the committed operations leave {expected:?}"
                ));
            }
        }
        let students = self.taken.keys().chain(expected.taken.keys());
        for student in students {
            let (found, expected) = (self.classes_of(student), expected.classes_of(student));
            if found != expected {
                return Some(format!(
                    "{student} takes {found:?}; the committed operations lead to {expected:?}"
                ));
            }
        }
        None
    }

    /// Signs up.
    pub fn signup(&mut self, student: &str, class: &str) -> Result<Change, Refusal> {
        let taken = self.taken.get(student);
        if taken.is_some_and(|taken| taken.contains(class)) {
            return Ok(Change::Unneeded);
        }
        let left = self.seats_left.get_mut(class).ok_or(Refusal::UnknownClass)?;
        if *left == 0 {
            return Err(Refusal::NoRemainingSeats);
        }
        if taken.is_some_and(|taken| taken.len() >= MAX_CLASSES) {
            return Err(Refusal::TooManyClasses);
        }
        *left -= 1;
        self.taken.entry(student.into()).or_default().insert(class.into());
        Ok(Change::Made)
    }

    /// Drops.
    pub fn drop(&mut self, student: &str, class: &str) -> Change {
        if !self.taken.get_mut(student).is_some_and(|taken| taken.remove(class)) {
            return Change::Unneeded;
        }
        *self.seats_left.get_mut(class).expect("a class that is taken is offered") += 1;
        Change::Made
    }

    /// Drops `old` and signs up for `new`, or neither.
    pub fn switch(&mut self, student: &str, old: &str, new: &str) -> Result<(), Refusal> {
        if old == new {
            return Err(Refusal::SameClass);
        }
        let Some(taken) = self.taken.get_mut(student).filter(|taken| taken.contains(old)) else {
            return Err(Refusal::NotTakingOld);
        };
        if taken.contains(new) {
            return Err(Refusal::AlreadyTakingNew);
        }
        let left = self.seats_left.get_mut(new).ok_or(Refusal::UnknownClass)?;
        *left = left.checked_sub(1).ok_or(Refusal::NoRemainingSeats)?;
        *self.seats_left.get_mut(old).expect("a class that is taken is offered") += 1;
        taken.remove(old);
        taken.insert(new.into());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(seats: u32) -> Classes {
        Classes::new(["a", "b", "c", "d", "e", "f"].map(String::from), seats)
    }

    #[test]
    fn the_last_seat_goes_to_one_student() {
        let mut m = model(1);
        assert_eq!(m.signup("s", "a"), Ok(Change::Made));
        assert_eq!(m.signup("s", "a"), Ok(Change::Unneeded));
        assert_eq!(m.signup("t", "a"), Err(Refusal::NoRemainingSeats));
        assert_eq!(m.available(2), ["b", "c"]);
        assert_eq!(m.drop("s", "a"), Change::Made);
        assert_eq!(m.drop("s", "a"), Change::Unneeded);
        assert_eq!(m.signup("t", "a"), Ok(Change::Made));
        assert_eq!(m.signup("t", "x"), Err(Refusal::UnknownClass));
    }

    #[test]
    fn the_sixth_class_is_refused_but_can_be_switched_to() {
        let mut m = model(2);
        for c in ["a", "b", "c", "d", "e"] {
            assert_eq!(m.signup("s", c), Ok(Change::Made));
        }
        assert_eq!(m.signup("s", "f"), Err(Refusal::TooManyClasses));
        assert_eq!(m.switch("s", "a", "f"), Ok(()));
        assert_eq!(m.classes_of("s"), ["b", "c", "d", "e", "f"]);
        assert_eq!(m.seats().find(|(c, _)| *c == "a"), Some(("a", 2)));
    }

    #[test]
    fn a_refused_switch_changes_nothing() {
        let mut m = model(1);
        m.signup("s", "a").unwrap();
        m.signup("s", "c").unwrap();
        m.signup("t", "b").unwrap();
        let before = m.clone();
        assert_eq!(m.switch("s", "a", "a"), Err(Refusal::SameClass));
        assert_eq!(m.switch("s", "d", "e"), Err(Refusal::NotTakingOld));
        assert_eq!(m.switch("s", "a", "c"), Err(Refusal::AlreadyTakingNew));
        assert_eq!(m.switch("s", "a", "b"), Err(Refusal::NoRemainingSeats));
        assert_eq!(m.switch("s", "a", "x"), Err(Refusal::UnknownClass));
        assert_eq!(m, before);
    }

    #[test]
    fn differences_are_named() {
        let mut m = model(2);
        m.signup("s", "a").unwrap();
        m.signup("t", "b").unwrap();
        m.drop("t", "b");
        let seats = m.seats().map(|(c, n)| (c.to_owned(), n)).collect::<BTreeMap<_, _>>();
        let found = |taken: &[(&str, &str)]| {
            Classes::found(seats.clone(), taken.iter().map(|(s, c)| (s.to_string(), c.to_string())))
        };
        assert_eq!(found(&[("s", "a")]).difference(&m), None);
        assert!(found(&[]).difference(&m).unwrap().contains("s takes []"));
        assert!(found(&[("s", "a"), ("u", "b")]).difference(&m).unwrap().contains("u takes [\"b\"]"));
        assert!(model(2).difference(&m).unwrap().contains("a has Some(2) seats"));
        assert!(Classes::default().difference(&m).unwrap().contains("a has None"));
    }

    #[test]
    fn adding_a_class_again_takes_no_seat_back() {
        let mut m = model(3);
        m.signup("s", "a").unwrap();
        assert_eq!(m.add_class("a", 3), Change::Unneeded);
        assert_eq!(m.seats().next(), Some(("a", 2)));
        assert_eq!(m.add_class("z", 1), Change::Made);
    }
}
