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
#[cfg(test)]
mod documents;
mod model;
mod planted;

use crate::shared::{came_back, one_call, page_sizes};
use foundationdb_tuple::{Subspace, pack};
use model::Classes;
use proptest::option;
use shaketable::{prelude::*, specimen::Content, strategies::CONFUSED_TEXT};
use shaketable_layers::scheduling::{
    Change, Error, MAX_INIT, Refusal, Scheduling, catalogue, keys::MAX_NAME,
};

/// The drawn configuration of a run. Operations name classes by numbers: the popular ones first, then the
/// planned ones. The names of [`LONG_CLASS`] and [`LONG_STUDENT`] are too long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
}

/// The weight of sign-ups, drops and switches together, whatever that of drops is among them. Each is
/// multiplied with this, and each other weight with [`Signups::changes`].
const CHANGES: u32 = 32;
/// The classes of the tutorial's catalogue.
const CLASSES: usize = 1_620;
/// The seats of each of them.
const SEATS: u32 = 100;
/// The class whose name is too long.
const LONG_CLASS: u16 = u16::MAX;
/// The student whose name is too long.
const LONG_STUDENT: u8 = u8::MAX;

/// What a call returns after which the transaction may continue anyway.
type Anyway<A> = Result<A, Refusal>;

/// The number of classes on a page, the classes, and the class after which the next page begins.
type Page = (usize, Content, Option<Content>);

/// Class scheduling: seats and sign-ups always add up, five classes a student.
#[shaketable::workload(name = "scheduling", model = Classes, planted, promises(turns, limits))]
impl Signups {
    fn draw(rng: &mut Stream) -> Signups {
        let whole_catalogue = rng.chance(0.04);
        Signups {
            whole_catalogue,
            popular: rng.range(1..13) as u16,
            planned: rng.range(1..4) as u16,
            seats: if whole_catalogue { SEATS } else { rng.range(1..5) as u32 },
            // Mostly fewer students than clients.
            students: rng.range(1..6) as u8,
            drops: *rng.pick(&[1, 4, 10]),
        }
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

    fn keys(&self) -> Vec<Vec<u8>> {
        let (scheduling, first) = (layer(), self.class_name(0));
        let courses = (0..self.popular + self.planned).map(|n| scheduling.keys().course(&self.class_name(n)));
        let students = (0..self.students).map(|s| scheduling.keys().attendance(&student_name(s), &first));
        courses.chain(students).collect()
    }

    /// The sum of the weights of sign-ups, drops and switches.
    fn changes(&self) -> u32 {
        12 + self.drops + 8
    }

    #[draws(student)]
    fn any_student(&self) -> BoxedStrategy<u8> {
        prop_oneof![60 => 0..self.students, 1 => Just(250u8), 1 => Just(LONG_STUDENT)].boxed()
    }

    #[draws(class, old, new)]
    fn any_class(&self) -> BoxedStrategy<u16> {
        prop_oneof![60 => 0..self.popular + self.planned, 1 => Just(LONG_CLASS)].boxed()
    }

    #[draws(seats)]
    fn any_seats(&self) -> BoxedStrategy<u32> {
        let edges = [0, 1, 255, 256, 65_535, 65_536, i32::MAX as u32, i32::MAX as u32 + 1, u32::MAX];
        select([&edges[..], &[self.seats]].concat()).boxed()
    }

    /// Whether the transaction continues if the call is refused.
    #[draws(anyway)]
    fn anyway() -> impl Strategy<Value = bool> {
        prop_oneof![20 => Just(false), 12 => Just(true)]
    }

    async fn setup(&self, tx: &Tx) -> Result<(), Error> {
        layer().init(tx, self.initial(), self.seats).await.map(|_| ())
    }

    /// Offers a class with this many seats.
    #[write(weight = 4 * self.changes())]
    async fn add_class(
        &self,
        tx: &Tx,
        #[draw(prop_oneof![
            3 => self.popular..self.popular + self.planned,
            1 => self.any_class(),
        ])]
        class: u16,
        seats: u32,
    ) -> Result<Change, Error> {
        Ok(came_back(layer().add_class(tx, &self.class_name(class), seats).await?))
    }

    /// Initializes the classes that exist from the beginning.
    #[write(weight = self.changes())]
    async fn init(&self, tx: &Tx) -> Result<usize, Error> {
        layer().init(tx, self.initial(), self.seats).await
    }

    #[write(weight = 2 * self.changes())]
    async fn init_some(
        &self,
        tx: &Tx,
        #[draw(vec(self.any_class(), 0..4))] classes: &[u16],
    ) -> Result<usize, Error> {
        layer().init(tx, classes.iter().map(|class| self.class_name(*class)), self.seats).await
    }

    /// Initializes the first classes of the tutorial's catalogue, or all of them if 0. Few runs have all of
    /// it.
    #[write(weight = self.changes() * if self.whole_catalogue { 4 } else { 1 }, rare)]
    async fn init_many(
        &self,
        tx: &Tx,
        #[draw(select(&[0, MAX_INIT, MAX_INIT + 1][if self.whole_catalogue { 0 } else { 2 }..]))]
        classes: usize,
    ) -> Result<usize, Error> {
        match classes {
            0 => layer().init_catalogue(tx).await,
            _ => layer().init(tx, (0..classes).map(catalogue::class_name), self.seats).await,
        }
    }

    #[write(weight = CHANGES * 12)]
    async fn signup(&self, tx: &Tx, student: u8, class: u16, anyway: bool) -> Result<Anyway<Change>, Error> {
        let signed = layer().signup(tx, &student_name(student), &self.class_name(class)).await;
        continued(signed.map(came_back), anyway)
    }

    #[write(weight = CHANGES * self.drops)]
    async fn drop(&self, tx: &Tx, student: u8, class: u16) -> Result<Change, Error> {
        Ok(came_back(layer().drop(tx, &student_name(student), &self.class_name(class)).await?))
    }

    #[write(weight = CHANGES * 8, composed)]
    async fn switch(
        &self,
        tx: &Tx,
        student: u8,
        old: u16,
        new: u16,
        anyway: bool,
    ) -> Result<Anyway<()>, Error> {
        let (old, new) = (self.class_name(old), self.class_name(new));
        continued(layer().switch(tx, &student_name(student), &old, &new).await, anyway)
    }

    /// Lists those with seats left, of this many classes after this one.
    #[read(weight = 4 * self.changes())]
    async fn available(
        &self,
        tx: &Tx,
        #[draw(option::of(self.any_class()))] after: Option<u16>,
        #[draw(prop_oneof![1 => Just(0), 4 => page_sizes(), 1 => Just(usize::MAX)])] most: usize,
    ) -> Result<Page, Error> {
        let after = after.map(|class| self.class_name(class));
        let read = layer().available_classes(tx, after.as_deref(), most).await?;
        Ok(page(&read.classes, read.next.as_ref()))
    }

    #[read(weight = 3 * self.changes())]
    async fn classes_of(&self, tx: &Tx, student: u8) -> Result<Vec<Content>, Error> {
        Ok(contents(&layer().classes_of(tx, &student_name(student)).await?))
    }

    #[read(weight = 3 * self.changes())]
    async fn seats_left(&self, tx: &Tx, class: u16) -> Result<Option<u32>, Error> {
        layer().seats_left(tx, &self.class_name(class)).await
    }

    /// Lists the first sign-ups, by their keys.
    #[read(weight = self.changes())]
    async fn sign_ups(
        &self,
        tx: &Tx,
        #[draw(0..9usize)] most: usize,
    ) -> Result<Vec<(Content, Content)>, Error> {
        let scheduling = layer();
        let range = scheduling.keys().attendances().limit(most.max(1));
        let rows = one_call(tx, true).await.get_range_all(range, Serializable).await?;
        let sign_ups = rows.iter().map(|row| {
            let (student, class) = scheduling.keys().student_and_class(&row.key)?;
            Ok((Content::from(&student), Content::from(&class)))
        });
        sign_ups.collect()
    }

    #[stored]
    async fn stored(&self, tx: &Tx) -> tx::Result<Result<Classes, String>> {
        let scheduling = layer();
        let courses = tx.get_range_all(scheduling.keys().courses(), Serializable).await?;
        let attendances = tx.get_range_all(scheduling.keys().attendances(), Serializable).await?;
        Ok(Classes::found(self, &courses, &attendances))
    }

    fn model(&self) -> Classes {
        Classes::new(self)
    }

    /// The name of a class.
    fn class_name(&self, n: u16) -> String {
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
    fn initial(&self) -> Vec<String> {
        match self.whole_catalogue {
            // The last ones are added by operations.
            true => (0..CLASSES - 20).map(catalogue::class_name).collect(),
            false => (0..self.popular).map(|n| self.class_name(n)).collect(),
        }
    }
}

fn layer() -> Scheduling {
    Scheduling::new(&Subspace::from("scheduling"))
}

fn student_name(n: u8) -> String {
    match usize::from(n) {
        n if n < CONFUSED_TEXT.len() => CONFUSED_TEXT[n].into(),
        n if n == usize::from(LONG_STUDENT) => "s".repeat(MAX_NAME + 1),
        _ => "\0".repeat(MAX_NAME),
    }
}

/// A refusal is an answer, if the transaction continues after it.
fn continued<A>(done: Result<A, Error>, anyway: bool) -> Result<Anyway<A>, Error> {
    match done {
        Err(Error::Refused(refusal)) if anyway => Ok(Err(refusal)),
        done => done.map(Ok),
    }
}

fn page(classes: &[String], next: Option<&String>) -> Page {
    (classes.len(), Content::from(&pack(&classes.to_vec())), next.map(Content::from))
}

fn contents(names: &[String]) -> Vec<Content> {
    names.iter().map(Content::from).collect()
}

/// This workload in the catalogue. Unit tests run none: their build would generate its code once more.
#[cfg(not(test))]
pub fn entry() -> Box<dyn shaketable::entry::Entry> {
    shaketable::entry::entry::<Mounted<Signups>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::drawn;
    use std::collections::BTreeSet;

    #[test]
    fn names_of_classes_and_students_differ_and_two_are_too_long() {
        for whole_catalogue in [false, true] {
            let (popular, planned) = (12, 3);
            let signups = Signups { whole_catalogue, popular, planned, seats: 1, students: 5, drops: 1 };
            let names: BTreeSet<String> = (0..15).map(|n| signups.class_name(n)).collect();
            assert_eq!(names.len(), 15);
            assert!(names.iter().all(|name| name.len() <= MAX_NAME));
            assert!((0..popular).all(|n| signups.initial().contains(&signups.class_name(n))));
            assert_eq!(signups.class_name(LONG_CLASS).len(), MAX_NAME + 1);
        }
        let students: BTreeSet<String> = (0..5).chain([250, LONG_STUDENT]).map(student_name).collect();
        assert_eq!(students.len(), 7);
    }

    #[test]
    fn the_races_of_the_tutorial_are_drawn() {
        use SignupsAnswer::switch;
        let (mut last_seat, mut sixth, mut switched, mut kept) = (0, 0, 0, 0);
        for seed in 0..200 {
            let (mounted, operations) = drawn::<Mounted<Signups>>(seed);
            let configuration = serde_json::to_value(&mounted).expect("plain data");
            let signups: Signups =
                serde_json::from_value(configuration["specimen"].clone()).expect("the same");
            let mut model = signups.model();
            for op in operations.iter().flatten().flatten() {
                match signups.replay(&mut model, op, &At::default()) {
                    Err(Error::Refused(Refusal::NoRemainingSeats)) => last_seat += 1,
                    Err(Error::Refused(Refusal::TooManyClasses)) => sixth += 1,
                    Ok(switch(Err(Refusal::NoRemainingSeats))) => kept += 1,
                    Ok(switch(Ok(()))) => switched += 1,
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
