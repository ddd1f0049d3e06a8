//! The sequential model of class scheduling: what the calls of one student after another return.

use shaketable_layers::scheduling::{Change, MAX_CLASSES, MAX_INIT, Refusal, keys::MAX_NAME};
use std::collections::{BTreeMap, BTreeSet};

/// Seats and sign-ups as plain maps.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Classes {
    seats_left: BTreeMap<String, u32>,
    taken: BTreeMap<String, BTreeSet<String>>,
}

impl Classes {
    /// A catalogue in which every class has this many seats.
    pub fn new(classes: impl IntoIterator<Item = String>, seats: u32) -> Classes {
        Classes { seats_left: classes.into_iter().map(|c| (c, seats)).collect(), taken: BTreeMap::new() }
    }

    /// Offers a class, unless it is offered already.
    pub fn add_class(&mut self, class: &str, seats: u32) -> Result<Change, Refusal> {
        fits(class)?;
        if self.seats_left.contains_key(class) {
            return Ok(Change::Unneeded);
        }
        self.seats_left.insert(class.into(), seats);
        Ok(Change::Made)
    }

    /// Offers those of these classes that are not offered yet, and returns their number.
    pub fn init(&mut self, classes: &[String], seats: u32) -> Result<usize, Refusal> {
        classes.iter().try_for_each(|class| fits(class))?;
        if classes.iter().collect::<BTreeSet<_>>().len() > MAX_INIT {
            return Err(Refusal::TooManyAtOnce);
        }
        let before = self.seats_left.len();
        for class in classes {
            self.seats_left.entry(class.clone()).or_insert(seats);
        }
        Ok(self.seats_left.len() - before)
    }

    /// Of the first `most` classes after `after` those with seats left; and the last of the `most` classes,
    /// if there may be more.
    pub fn available(&self, after: Option<&str>, most: usize) -> (Vec<String>, Option<String>) {
        let looked_at: Vec<_> = self
            .seats_left
            .iter()
            .filter(|(class, _)| after.is_none_or(|after| &***class > after))
            .take(most)
            .collect();
        let available = looked_at.iter().filter(|(_, left)| **left > 0).map(|(c, _)| (*c).clone()).collect();
        let last = looked_at.last().filter(|_| looked_at.len() == most).map(|(c, _)| (*c).clone());
        (available, last)
    }

    /// The seats left in a class that is offered.
    pub fn seats_left(&self, class: &str) -> Option<u32> {
        self.seats_left.get(class).copied()
    }

    /// All sign-ups.
    pub fn sign_ups(&self) -> impl Iterator<Item = (&str, &str)> {
        self.taken.iter().flat_map(|(s, classes)| classes.iter().map(move |c| (s.as_str(), c.as_str())))
    }

    /// The classes of a student.
    pub fn classes_of(&self, student: &str) -> Vec<String> {
        self.taken.get(student).into_iter().flatten().cloned().collect()
    }

    /// The model of what a database contains: the seats left in each class, and the classes of each student.
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

    /// Signs a student up for a class.
    pub fn signup(&mut self, student: &str, class: &str) -> Result<Change, Refusal> {
        fits(student)?;
        fits(class)?;
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

    /// Removes a student from a class.
    pub fn drop(&mut self, student: &str, class: &str) -> Change {
        let Some(taken) = self.taken.get_mut(student).filter(|taken| taken.contains(class)) else {
            return Change::Unneeded;
        };
        taken.remove(class);
        if taken.is_empty() {
            self.taken.remove(student);
        }
        *self.seats_left.get_mut(class).expect("a class that is taken is offered") += 1;
        Change::Made
    }

    /// Drops `old` and signs up for `new`, or does neither.
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
        fits(new)?;
        let left = self.seats_left.get_mut(new).ok_or(Refusal::UnknownClass)?;
        *left = left.checked_sub(1).ok_or(Refusal::NoRemainingSeats)?;
        *self.seats_left.get_mut(old).expect("a class that is taken is offered") += 1;
        taken.remove(old);
        taken.insert(new.into());
        Ok(())
    }
}

fn fits(name: &str) -> Result<(), Refusal> {
    if name.len() > MAX_NAME { Err(Refusal::NameTooLong) } else { Ok(()) }
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
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        assert_eq!(m.available(None, 3), (names(&["b", "c"]), Some("c".into())));
        assert_eq!(m.available(Some("e"), 2), (names(&["f"]), None));
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
        assert_eq!(m.seats_left("a"), Some(2));
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
    fn what_is_stored_is_read_back_as_a_model() {
        let mut m = model(2);
        m.signup("s", "a").unwrap();
        m.signup("t", "b").unwrap();
        m.drop("t", "b");
        let seats = ["a", "b", "c", "d", "e", "f"].map(|c| (c.to_owned(), if c == "a" { 1 } else { 2 }));
        let found = |taken: &[(&str, &str)]| {
            let taken = taken.iter().map(|(s, c)| (s.to_string(), c.to_string()));
            Classes::found(seats.clone().into(), taken)
        };
        assert_eq!(found(&[("s", "a")]), m);
        assert_ne!(found(&[]), m);
        assert_ne!(found(&[("s", "a"), ("u", "b")]), m);
    }

    #[test]
    fn adding_a_class_again_does_not_change_its_seats() {
        let mut m = model(3);
        m.signup("s", "a").unwrap();
        assert_eq!(m.add_class("a", 3), Ok(Change::Unneeded));
        assert_eq!(m.seats_left("a"), Some(2));
        assert_eq!(m.add_class("z", 1), Ok(Change::Made));
        assert_eq!(m.init(&["a".into(), "y".into(), "y".into()], 7), Ok(1));
        assert_eq!((m.seats_left("a"), m.seats_left("y")), (Some(2), Some(7)));
    }
}
