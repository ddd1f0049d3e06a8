//! The operations: inside a transaction, where they compose and see each other's writes, and exactly
//! once through a session.

use super::{
    catalogue,
    error::{Error, Refusal},
    keys::{self, Keys},
};
use crate::{
    once::{self, Answer, Outcome, Session},
    reachable, sometimes,
    tx::{Database, Isolation::Serializable, RangeOption, Transaction},
};
use bytes::{Bytes, BytesMut};
use foundationdb_tuple::Subspace;
use futures::{TryStreamExt, future, pin_mut};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, future::Future};

/// How many classes a student may take at once.
pub const MAX_CLASSES: usize = 5;

/// Whether an operation that is free to find nothing to do did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Change {
    /// The state was changed.
    Made,
    /// The state was already as asked for; nothing was written.
    Unneeded,
}

impl Answer for Change {
    fn encode(&self, out: &mut BytesMut) -> Result<Option<usize>, once::Error> {
        (*self == Change::Made).encode(out)
    }
    fn decode(bytes: Bytes) -> Option<Change> {
        bool::decode(bytes).map(|made| if made { Change::Made } else { Change::Unneeded })
    }
}

/// How many classes [`Scheduling::init_once`] adds in one transaction: some 600 kB of its 10 MB.
const CLASSES_PER_TRANSACTION: usize = 2_000;

/// One scheduling application.
///
/// Most functions take the transaction they run in, so that several make one step; a refusal has
/// changed nothing, also when the caller goes on with the transaction. Those that end in `_once` run
/// a transaction of their own, exactly once, through a [`Session`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduling {
    keys: Keys,
}

impl Scheduling {
    /// The application whose data lie below `root`.
    pub fn new(root: &Subspace) -> Scheduling {
        crate::called!();
        Scheduling { keys: Keys::new(root) }
    }

    /// The key schema.
    pub fn keys(&self) -> &Keys {
        crate::called!();
        &self.keys
    }

    /// Offers `class` with so many `seats`, unless it is offered already: a class that students
    /// have signed up for keeps the seats it has left.
    pub async fn add_class<T: Transaction>(&self, tx: &T, class: &str, seats: u32) -> Result<Change, Error> {
        crate::called!();
        keys::check_name(class)?;
        let key = self.keys.course(class);
        if tx.get(&key, Serializable).await?.is_some() {
            return Ok(Change::Unneeded);
        }
        tx.set(&key, &keys::pack_seats(seats));
        Ok(Change::Made)
    }

    /// [`add_class`](Scheduling::add_class) for each of `classes` that is not offered yet, with one
    /// range read for all of them; the number of classes added.
    ///
    /// A class costs about 250 bytes of the transaction's 10,000,000: the tutorial's 1,620 are
    /// well within one transaction, 30,000 are not.
    pub async fn init<T, C>(&self, tx: &T, classes: C, seats: u32) -> Result<usize, Error>
    where
        T: Transaction,
        C: IntoIterator + Send,
        C::Item: AsRef<str>,
    {
        crate::called!();
        let mut missing = BTreeSet::new();
        for class in classes {
            keys::check_name(class.as_ref())?;
            missing.insert(self.keys.course(class.as_ref()));
        }
        let (Some(first), Some(last)) = (missing.first(), missing.last()) else {
            return Ok(0);
        };
        let asked = RangeOption::new(first.clone(), crate::tx::key_after(last));
        for row in tx.get_range_all(asked, Serializable).await? {
            missing.remove(row.key.as_ref());
        }
        let value = keys::pack_seats(seats);
        for key in &missing {
            tx.set(key, &value);
        }
        Ok(missing.len())
    }

    /// The tutorial's catalogue: [`init`](Scheduling::init) with 1,620 classes of 100 seats.
    pub async fn init_catalogue<T: Transaction>(&self, tx: &T) -> Result<usize, Error> {
        crate::called!();
        self.init(tx, catalogue::class_names().collect::<Vec<_>>(), catalogue::SEATS).await
    }

    /// Every class that has seats left, in the order of their names.
    pub async fn available_classes<T: Transaction>(&self, tx: &T) -> Result<Vec<String>, Error> {
        crate::called!();
        self.available_classes_up_to(tx, usize::MAX).await
    }

    /// The first `limit` classes that have seats left. Reads no further than it must, so that a
    /// change of a later class is no conflict.
    pub async fn available_classes_up_to<T: Transaction>(
        &self,
        tx: &T,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
        crate::called!();
        let mut classes = Vec::new();
        let rows = tx.get_ranges_keyvalues(self.keys.courses(), Serializable);
        pin_mut!(rows);
        while classes.len() < limit
            && let Some(row) = rows.try_next().await?
        {
            if keys::unpack_seats(&row.key, &row.value)? > 0 {
                classes.push(self.keys.class_of_course(&row.key)?);
            }
        }
        Ok(classes)
    }

    /// The seats left in `class`, or `None` when it is not offered.
    pub async fn seats_left<T: Transaction>(&self, tx: &T, class: &str) -> Result<Option<u32>, Error> {
        crate::called!();
        let key = self.keys.course(class);
        match tx.get(&key, Serializable).await? {
            Some(value) => Ok(Some(keys::unpack_seats(&key, &value)?)),
            None => Ok(None),
        }
    }

    /// The classes that `student` takes, in the order of their names.
    pub async fn classes_of<T: Transaction>(&self, tx: &T, student: &str) -> Result<Vec<String>, Error> {
        crate::called!();
        let rows = tx.get_range_all(self.keys.attendances_of(student), Serializable).await?;
        rows.iter().map(|row| Ok(self.keys.student_and_class(&row.key)?.1)).collect()
    }

    /// Signs `student` up for `class`: one seat less, one class more. Nothing to do when the student
    /// takes it already. Refused with [`Refusal::UnknownClass`], [`Refusal::NoRemainingSeats`] and
    /// [`Refusal::TooManyClasses`], in this order.
    pub async fn signup<T: Transaction>(&self, tx: &T, student: &str, class: &str) -> Result<Change, Error> {
        crate::called!();
        keys::check_name(student)?;
        keys::check_name(class)?;
        let attendance = self.keys.attendance(student, class);
        // One range read tells both whether the student takes the class and how many others.
        let taken = self.keys.attendances_of(student).limit(MAX_CLASSES);
        let (taken, seats) = future::try_join(
            async { Ok(tx.get_range_all(taken, Serializable).await?) },
            self.seats_left(tx, class),
        )
        .await?;
        if taken.iter().any(|row| row.key == attendance) {
            return Ok(Change::Unneeded);
        }
        let Some(left) = seats.ok_or(Refusal::UnknownClass)?.checked_sub(1) else {
            reachable!("scheduling: a class is full");
            return Err(Refusal::NoRemainingSeats.into());
        };
        if taken.len() >= MAX_CLASSES {
            reachable!("scheduling: a sixth class is refused");
            return Err(Refusal::TooManyClasses.into());
        }
        sometimes!(left == 0, "scheduling: the last seat is taken");
        tx.set(&self.keys.course(class), &keys::pack_seats(left));
        tx.set(&attendance, b"");
        Ok(Change::Made)
    }

    /// Takes `student` out of `class`: one seat more, one class less. Nothing to do when the student
    /// does not take it, or when there is no such class.
    pub async fn drop<T: Transaction>(&self, tx: &T, student: &str, class: &str) -> Result<Change, Error> {
        crate::called!();
        let attendance = self.keys.attendance(student, class);
        if tx.get(&attendance, Serializable).await?.is_none() {
            return Ok(Change::Unneeded);
        }
        let seats = self.seats_left(tx, class).await?.ok_or_else(|| Error::corrupt(&attendance))?;
        let seats = seats.checked_add(1).ok_or_else(|| Error::corrupt(&self.keys.course(class)))?;
        tx.set(&self.keys.course(class), &keys::pack_seats(seats));
        tx.clear(&attendance);
        Ok(Change::Made)
    }

    /// [`drop`](Scheduling::drop) of `old` and [`signup`](Scheduling::signup) for `new`, as one step.
    ///
    /// The number of classes the student takes stays as it is: `old` must be held
    /// ([`Refusal::NotTakingOld`]), `new` must not be ([`Refusal::AlreadyTakingNew`]), and the two
    /// must differ ([`Refusal::SameClass`]). When `new` refuses the student, `old` is kept.
    pub async fn switch<T: Transaction>(
        &self,
        tx: &T,
        student: &str,
        old: &str,
        new: &str,
    ) -> Result<(), Error> {
        crate::called!();
        if old == new {
            return Err(Refusal::SameClass.into());
        }
        if self.drop(tx, student, old).await? == Change::Unneeded {
            return Err(Refusal::NotTakingOld.into());
        }
        let refusal = match self.signup(tx, student, new).await {
            Ok(Change::Made) => return Ok(()),
            Ok(Change::Unneeded) => Refusal::AlreadyTakingNew,
            Err(Error::Refused(refusal)) => refusal,
            Err(failure) => return Err(failure),
        };
        reachable!("scheduling: a refused switch keeps the old class");
        // The seat given up a moment ago is free in this transaction, whoever else wants it.
        self.signup(tx, student, old).await?;
        Err(refusal.into())
    }
}

/// The same operations, exactly once through a client's session.
impl Scheduling {
    /// [`add_class`](Scheduling::add_class), exactly once.
    pub fn add_class_once<D: Database>(
        &self,
        session: &mut Session<D>,
        class: &str,
        seats: u32,
    ) -> impl Future<Output = Outcome<Change, Error>> + Send {
        crate::called!();
        session.apply(move |tx| async move { self.add_class(&tx, class, seats).await })
    }

    /// [`init`](Scheduling::init) for a catalogue of any size, a few thousand classes in each
    /// transaction; the number of classes added. Being create-if-absent, it can be begun again
    /// wherever it stopped, and an unknown outcome of one part leaves nothing to resolve: only a
    /// part that is certainly there is counted.
    pub fn init_once<D: Database>(
        &self,
        session: &mut Session<D>,
        classes: &[String],
        seats: u32,
    ) -> impl Future<Output = Outcome<u64, Error>> + Send {
        crate::called!();
        async move {
            let mut added = 0;
            for part in classes.chunks(CLASSES_PER_TRANSACTION) {
                let init =
                    session.apply(move |tx| async move { Ok(self.init(&tx, part, seats).await? as u64) });
                match init.await {
                    Outcome::Applied(n) => added += n,
                    ended => return ended,
                }
            }
            Outcome::Applied(added)
        }
    }

    /// [`signup`](Scheduling::signup), exactly once.
    pub fn signup_once<D: Database>(
        &self,
        session: &mut Session<D>,
        student: &str,
        class: &str,
    ) -> impl Future<Output = Outcome<Change, Error>> + Send {
        crate::called!();
        session.apply(move |tx| async move { self.signup(&tx, student, class).await })
    }

    /// [`drop`](Scheduling::drop), exactly once.
    pub fn drop_once<D: Database>(
        &self,
        session: &mut Session<D>,
        student: &str,
        class: &str,
    ) -> impl Future<Output = Outcome<Change, Error>> + Send {
        crate::called!();
        session.apply(move |tx| async move { self.drop(&tx, student, class).await })
    }

    /// [`switch`](Scheduling::switch), exactly once.
    pub fn switch_once<D: Database>(
        &self,
        session: &mut Session<D>,
        student: &str,
        old: &str,
        new: &str,
    ) -> impl Future<Output = Outcome<(), Error>> + Send {
        crate::called!();
        session.apply(move |tx| async move { self.switch(&tx, student, old, new).await })
    }
}
