//! The operations inside a transaction: they compose, and see each other's writes.

use super::{
    catalogue,
    error::{Error, Refusal},
    keys::{self, Keys},
};
use crate::tx::{Isolation::Serializable, RangeOption, Transaction};
use foundationdb_tuple::Subspace;
use futures::{TryStreamExt, future, pin_mut};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

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

/// One scheduling application: its functions inside a transaction.
///
/// Each takes the transaction it runs in, so that several make one step. A refusal has changed
/// nothing, also when the caller goes on with the transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduling {
    keys: Keys,
}

impl Scheduling {
    /// The application whose data lie below `root`.
    pub fn new(root: &Subspace) -> Scheduling {
        Scheduling { keys: Keys::new(root) }
    }

    /// The key schema.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Offers `class` with so many `seats`, unless it is offered already: a class that students
    /// have signed up for keeps the seats it has left.
    pub async fn add_class<T: Transaction>(&self, tx: &T, class: &str, seats: u32) -> Result<Change, Error> {
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
        self.init(tx, catalogue::class_names().collect::<Vec<_>>(), catalogue::SEATS).await
    }

    /// Every class that has seats left, in the order of their names.
    pub async fn available_classes<T: Transaction>(&self, tx: &T) -> Result<Vec<String>, Error> {
        self.available_classes_up_to(tx, usize::MAX).await
    }

    /// The first `limit` classes that have seats left. Reads no further than it must, so that a
    /// change of a later class is no conflict.
    pub async fn available_classes_up_to<T: Transaction>(
        &self,
        tx: &T,
        limit: usize,
    ) -> Result<Vec<String>, Error> {
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
        let key = self.keys.course(class);
        match tx.get(&key, Serializable).await? {
            Some(value) => Ok(Some(keys::unpack_seats(&key, &value)?)),
            None => Ok(None),
        }
    }

    /// The classes that `student` takes, in the order of their names.
    pub async fn classes_of<T: Transaction>(&self, tx: &T, student: &str) -> Result<Vec<String>, Error> {
        let rows = tx.get_range_all(self.keys.attendances_of(student), Serializable).await?;
        rows.iter().map(|row| Ok(self.keys.student_and_class(&row.key)?.1)).collect()
    }

    /// Signs `student` up for `class`: one seat less, one class more. Nothing to do when the student
    /// takes it already. Refused with [`Refusal::UnknownClass`], [`Refusal::NoRemainingSeats`] and
    /// [`Refusal::TooManyClasses`], in this order.
    pub async fn signup<T: Transaction>(&self, tx: &T, student: &str, class: &str) -> Result<Change, Error> {
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
        let left = seats.ok_or(Refusal::UnknownClass)?.checked_sub(1).ok_or(Refusal::NoRemainingSeats)?;
        if taken.len() >= MAX_CLASSES {
            return Err(Refusal::TooManyClasses.into());
        }
        tx.set(&self.keys.course(class), &keys::pack_seats(left));
        tx.set(&attendance, b"");
        Ok(Change::Made)
    }

    /// Takes `student` out of `class`: one seat more, one class less. Nothing to do when the student
    /// does not take it, or when there is no such class.
    pub async fn drop<T: Transaction>(&self, tx: &T, student: &str, class: &str) -> Result<Change, Error> {
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
        // The seat given up a moment ago is free in this transaction, whoever else wants it.
        self.signup(tx, student, old).await?;
        Err(refusal.into())
    }
}
