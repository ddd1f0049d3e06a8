//! The sequential model of class scheduling: what the calls of one student after another return.

use super::{Anyway, CLASSES, Page, SEATS, Signups, contents, continued, layer, page, student_name};
use shaketable::specimen::Content;
use shaketable_layers::scheduling::{
    Change, Error, MAX_CLASSES, MAX_INIT, Refusal, catalogue,
    keys::{MAX_NAME, unpack_seats},
};
use shaketable_tx::KeyValue;
use std::collections::{BTreeMap, BTreeSet};

/// Seats and sign-ups as plain maps.
#[derive(Clone, Debug, PartialEq)]
pub struct Classes {
    /// What names the classes.
    signups: Signups,
    seats_left: BTreeMap<String, u32>,
    taken: BTreeMap<String, BTreeSet<String>>,
}

impl Classes {
    /// The catalogue that exists from the beginning.
    pub(super) fn new(signups: &Signups) -> Classes {
        let seats_left = signups.initial().into_iter().map(|class| (class, signups.seats)).collect();
        Classes { signups: signups.clone(), seats_left, taken: BTreeMap::new() }
    }

    pub(super) fn add_class(&mut self, class: u16, seats: u32) -> Result<Change, Error> {
        let class = self.signups.class_name(class);
        fits(&class)?;
        if self.seats_left.contains_key(&class) {
            return Ok(Change::Unneeded);
        }
        self.seats_left.insert(class, seats);
        Ok(Change::Made)
    }

    pub(super) fn init(&mut self) -> Result<usize, Error> {
        self.add(self.signups.initial(), self.signups.seats)
    }

    pub(super) fn init_some(&mut self, classes: &[u16]) -> Result<usize, Error> {
        let classes = classes.iter().map(|class| self.signups.class_name(*class)).collect();
        self.add(classes, self.signups.seats)
    }

    pub(super) fn init_many(&mut self, classes: usize) -> Result<usize, Error> {
        let (classes, seats) = match classes {
            0 => (CLASSES, SEATS),
            classes => (classes, self.signups.seats),
        };
        self.add((0..classes).map(catalogue::class_name).collect(), seats)
    }

    /// Offers those of these classes that are not offered yet, and returns their number.
    fn add(&mut self, classes: Vec<String>, seats: u32) -> Result<usize, Error> {
        classes.iter().try_for_each(|class| fits(class))?;
        if classes.iter().collect::<BTreeSet<_>>().len() > MAX_INIT {
            return Err(Refusal::TooManyAtOnce.into());
        }
        let before = self.seats_left.len();
        for class in classes {
            self.seats_left.entry(class).or_insert(seats);
        }
        Ok(self.seats_left.len() - before)
    }

    pub(super) fn signup(&mut self, student: u8, class: u16, anyway: bool) -> Result<Anyway<Change>, Error> {
        let signed = self.sign_up(student_name(student), self.signups.class_name(class));
        continued(signed.map_err(Error::from), anyway)
    }

    fn sign_up(&mut self, student: String, class: String) -> Result<Change, Refusal> {
        fits(&student)?;
        fits(&class)?;
        let taken = self.taken.get(&student);
        if taken.is_some_and(|taken| taken.contains(&class)) {
            return Ok(Change::Unneeded);
        }
        let left = self.seats_left.get_mut(&class).ok_or(Refusal::UnknownClass)?;
        if *left == 0 {
            return Err(Refusal::NoRemainingSeats);
        }
        if taken.is_some_and(|taken| taken.len() >= MAX_CLASSES) {
            return Err(Refusal::TooManyClasses);
        }
        *left -= 1;
        self.taken.entry(student).or_default().insert(class);
        Ok(Change::Made)
    }

    pub(super) fn drop(&mut self, student: u8, class: u16) -> Result<Change, Error> {
        let (student, class) = (student_name(student), self.signups.class_name(class));
        let Some(taken) = self.taken.get_mut(&student).filter(|taken| taken.contains(&class)) else {
            return Ok(Change::Unneeded);
        };
        taken.remove(&class);
        if taken.is_empty() {
            self.taken.remove(&student);
        }
        *self.seats_left.get_mut(&class).expect("a class that is taken is offered") += 1;
        Ok(Change::Made)
    }

    pub(super) fn switch(
        &mut self,
        student: u8,
        old: u16,
        new: u16,
        anyway: bool,
    ) -> Result<Anyway<()>, Error> {
        let (old, new) = (self.signups.class_name(old), self.signups.class_name(new));
        continued(self.exchange(&student_name(student), &old, new).map_err(Error::from), anyway)
    }

    /// Drops `old` and signs up for `new`, or does neither.
    fn exchange(&mut self, student: &str, old: &str, new: String) -> Result<(), Refusal> {
        if old == new {
            return Err(Refusal::SameClass);
        }
        let Some(taken) = self.taken.get_mut(student).filter(|taken| taken.contains(old)) else {
            return Err(Refusal::NotTakingOld);
        };
        if taken.contains(&new) {
            return Err(Refusal::AlreadyTakingNew);
        }
        fits(&new)?;
        let left = self.seats_left.get_mut(&new).ok_or(Refusal::UnknownClass)?;
        *left = left.checked_sub(1).ok_or(Refusal::NoRemainingSeats)?;
        *self.seats_left.get_mut(old).expect("a class that is taken is offered") += 1;
        taken.remove(old);
        taken.insert(new);
        Ok(())
    }

    pub(super) fn available(&self, after: Option<u16>, most: usize) -> Result<Page, Error> {
        let (after, most) = (after.map(|class| self.signups.class_name(class)), most.max(1));
        let following = |class: &String| after.as_ref().is_none_or(|after| class > after);
        let looked_at: Vec<_> =
            self.seats_left.iter().filter(|(class, _)| following(class)).take(most).collect();
        let available: Vec<_> =
            looked_at.iter().filter(|(_, left)| **left > 0).map(|(class, _)| (*class).clone()).collect();
        let last = looked_at.last().filter(|_| looked_at.len() == most).map(|(class, _)| *class);
        Ok(page(&available, last))
    }

    pub(super) fn classes_of(&self, student: u8) -> Result<Vec<Content>, Error> {
        let taken = self.taken.get(&student_name(student)).into_iter().flatten();
        Ok(contents(&taken.cloned().collect::<Vec<_>>()))
    }

    pub(super) fn seats_left(&self, class: u16) -> Result<Option<u32>, Error> {
        Ok(self.seats_left.get(&self.signups.class_name(class)).copied())
    }

    pub(super) fn sign_ups(&self, most: usize) -> Result<Vec<(Content, Content)>, Error> {
        let all = self.taken.iter().flat_map(|(student, classes)| {
            classes.iter().map(move |class| (Content::from(student), Content::from(class)))
        });
        Ok(all.take(most.max(1)).collect())
    }

    /// What is stored, as a model, if seats and sign-ups add up.
    pub(super) fn found(
        signups: &Signups,
        courses: &[KeyValue],
        attendances: &[KeyValue],
    ) -> Result<Classes, String> {
        let (scheduling, words) = (layer(), |e: Error| e.to_string());
        let keys = scheduling.keys();
        let mut seats_left = BTreeMap::new();
        for row in courses {
            let class = keys.class_of_course(&row.key).map_err(words)?;
            seats_left.insert(class, unpack_seats(&row.key, &row.value).map_err(words)?);
        }
        let mut taken: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut taking: BTreeMap<String, u32> = BTreeMap::new();
        for row in attendances {
            if !row.value.is_empty() {
                return Err(format!("a sign-up has the value \"{}\"", row.value.escape_ascii()));
            }
            let (student, class) = keys.student_and_class(&row.key).map_err(words)?;
            *taking.entry(class.clone()).or_default() += 1;
            taken.entry(student).or_default().insert(class);
        }
        if let Some((student, classes)) = taken.iter().find(|(_, classes)| classes.len() > MAX_CLASSES) {
            return Err(format!("student {student:?} takes {} classes", classes.len()));
        }
        if let Some(class) = taking.keys().find(|class| !seats_left.contains_key(*class)) {
            return Err(format!("there are sign-ups for {class:?}, which is not offered"));
        }
        for n in 0..signups.popular {
            let class = signups.class_name(n);
            let (left, taking) = (seats_left.get(&class), taking.get(&class).copied().unwrap_or(0));
            if left.is_none_or(|left| left + taking != signups.seats) {
                let seats = signups.seats;
                return Err(format!(
                    "{class:?}: {left:?} seats left and {taking} sign-ups, of {seats} seats"
                ));
            }
        }
        Ok(Classes { signups: signups.clone(), seats_left, taken })
    }
}

fn fits(name: &str) -> Result<(), Refusal> {
    if name.len() > MAX_NAME { Err(Refusal::NameTooLong) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_layers::scheduling::keys::pack_seats;

    /// A model of six classes, and of three that can be added: their numbers are those from 6 on.
    fn model(seats: u32) -> Classes {
        let (whole_catalogue, popular, planned) = (false, 6, 3);
        Classes::new(&Signups { whole_catalogue, popular, planned, seats, students: 5, drops: 1 })
    }

    /// The names of the six classes in order: the first one is that of class 0, the last but one of class 5.
    fn sorted(model: &Classes) -> Vec<String> {
        let mut names = model.signups.initial();
        names.sort();
        names
    }

    fn refused<A>(refusal: Refusal) -> Result<A, Error> {
        Err(Error::Refused(refusal))
    }

    #[test]
    fn the_last_seat_goes_to_one_student() {
        let mut m = model(1);
        assert_eq!(m.signup(0, 0, false), Ok(Ok(Change::Made)));
        assert_eq!(m.signup(0, 0, false), Ok(Ok(Change::Unneeded)));
        assert_eq!(m.signup(1, 0, false), refused(Refusal::NoRemainingSeats));
        assert_eq!(m.signup(1, 0, true), Ok(Err(Refusal::NoRemainingSeats)));
        let names = sorted(&m);
        // The class that is full is looked at as well.
        assert_eq!(m.available(None, 3), Ok(page(&names[1..3], Some(&names[2]))));
        assert_eq!(m.available(Some(5), 2), Ok(page(&names[5..], None)));
        assert_eq!(m.drop(0, 0), Ok(Change::Made));
        assert_eq!(m.drop(0, 0), Ok(Change::Unneeded));
        assert_eq!(m.signup(1, 0, false), Ok(Ok(Change::Made)));
        assert_eq!(m.signup(1, 6, false), refused(Refusal::UnknownClass));
    }

    #[test]
    fn the_sixth_class_is_refused_but_can_be_switched_to() {
        let mut m = model(2);
        for class in 0..5 {
            assert_eq!(m.signup(0, class, false), Ok(Ok(Change::Made)));
        }
        assert_eq!(m.signup(0, 5, false), refused(Refusal::TooManyClasses));
        assert_eq!(m.switch(0, 0, 5, false), Ok(Ok(())));
        assert_eq!(m.classes_of(0), Ok(contents(&sorted(&m)[1..])));
        assert_eq!(m.seats_left(0), Ok(Some(2)));
    }

    #[test]
    fn a_refused_switch_changes_nothing() {
        let mut m = model(1);
        for (student, class) in [(0, 0), (0, 2), (1, 1)] {
            assert_eq!(m.signup(student, class, false), Ok(Ok(Change::Made)));
        }
        let before = m.clone();
        for anyway in [false, true] {
            let mut refuses = |old, new, refusal| {
                let expected = if anyway { Ok(Err(refusal)) } else { refused(refusal) };
                assert_eq!(m.switch(0, old, new, anyway), expected);
            };
            refuses(0, 0, Refusal::SameClass);
            refuses(3, 4, Refusal::NotTakingOld);
            refuses(0, 2, Refusal::AlreadyTakingNew);
            refuses(0, 1, Refusal::NoRemainingSeats);
            refuses(0, 6, Refusal::UnknownClass);
        }
        assert_eq!(m, before);
    }

    #[test]
    fn what_is_stored_is_read_back_as_a_model() {
        let mut m = model(2);
        assert_eq!(m.signup(0, 0, false), Ok(Ok(Change::Made)));
        assert_eq!(m.signup(1, 1, false), Ok(Ok(Change::Made)));
        assert_eq!(m.drop(1, 1), Ok(Change::Made));
        let (scheduling, signups) = (layer(), &m.signups);
        let row = |key: Vec<u8>, value: Vec<u8>| KeyValue { key: key.into(), value: value.into() };
        let courses: Vec<_> = (0..6)
            .map(|n| {
                let left = if n == 0 { 1 } else { 2 };
                row(scheduling.keys().course(&signups.class_name(n)), pack_seats(left))
            })
            .collect();
        let found = |taken: &[(u8, u16)]| {
            let attendances: Vec<_> = taken
                .iter()
                .map(|(s, n)| scheduling.keys().attendance(&student_name(*s), &signups.class_name(*n)))
                .map(|key| row(key, Vec::new()))
                .collect();
            Classes::found(signups, &courses, &attendances)
        };
        assert_eq!(found(&[(0, 0)]), Ok(m.clone()));
        assert!(found(&[]).is_err());
        assert!(found(&[(0, 0), (2, 1)]).is_err());
        assert!(found(&[(0, 0), (0, 6)]).is_err());
    }

    #[test]
    fn adding_a_class_again_does_not_change_its_seats() {
        let mut m = model(3);
        assert_eq!(m.signup(0, 0, false), Ok(Ok(Change::Made)));
        assert_eq!(m.add_class(0, 3), Ok(Change::Unneeded));
        assert_eq!(m.seats_left(0), Ok(Some(2)));
        assert_eq!(m.add_class(6, 1), Ok(Change::Made));
        assert_eq!(m.init_some(&[0, 7, 7]), Ok(1));
        assert_eq!(
            (m.seats_left(0), m.seats_left(6), m.seats_left(7)),
            (Ok(Some(2)), Ok(Some(1)), Ok(Some(3)))
        );
    }
}
